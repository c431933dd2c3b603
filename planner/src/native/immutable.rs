//! Calls that PostgreSQL computes when it plans: what their errors say, and which of them read more than
//! their arguments.

use archipel_sql::function::{ScalarFunction, Volatility, is_written_in_sql};
use archipel_sql::types::Oid;

use super::CompiledExpr;
use super::context::ExecError;
use crate::bind::visit::visit_expr;
use crate::bound::{BoundExpr, ExprKind};

/// What PostgreSQL calls immutable although it reads the TimeZone of the session: its value belongs to
/// no plan.
pub(super) fn reads_time_zone(function: &ScalarFunction) -> bool {
    function.name == "age" && function.args == [Oid::TIMESTAMPTZ, Oid::TIMESTAMPTZ]
}

/// The place an error in a function is told with that PostgreSQL has in SQL: one of constants it runs,
/// any other call becomes part of the expression around it.
pub(super) fn body_context(function: &ScalarFunction, args: &[BoundExpr]) -> Option<String> {
    let runs = is_written_in_sql(function)
        && function.volatility == Volatility::Immutable
        && args.iter().all(is_known);
    runs.then(|| format!("SQL function \"{}\" statement 1", function.name))
}

/// Whether a value is known before its statement runs; literals are parameters of their plan.
fn is_known(expr: &BoundExpr) -> bool {
    let mut known = true;
    visit_expr(expr, 0, &mut |part, _| {
        known &= match &part.kind {
            ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Relabel(_) => true,
            ExprKind::Call { function, .. } => function.function.volatility == Volatility::Immutable,
            _ => false,
        };
        known
    });
    known
}

/// A call whose errors are told with a place.
pub(super) fn in_context(code: CompiledExpr, line: String) -> CompiledExpr {
    Box::new(move |ctx| {
        code(ctx).map_err(|error| match error {
            ExecError::Sql(mut error) => {
                error.fields_mut().context.get_or_insert_with(|| line.clone());
                ExecError::Sql(error)
            }
            other => other,
        })
    })
}
