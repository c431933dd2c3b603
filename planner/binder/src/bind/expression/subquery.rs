//! Whether there is a query in an expression as it is written.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, FunctionArguments, visit_expressions};

/// Whether there is a query in an expression.
pub fn has_subquery(expr: &Expr) -> bool {
    visit_expressions(expr, |part| match part {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        // ARRAY(SELECT …)
        Expr::Function(function) if matches!(function.args, FunctionArguments::Subquery(_)) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}
