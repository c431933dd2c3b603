//! RAISE, ASSERT and GET DIAGNOSTICS.

use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_sql::error::Result;
use archipel_sql::types::Type;

use crate::compile::compiler::Compiler;
use crate::compile::error_context::expression_line;
use crate::plpgsql::ast::*;
use crate::run::operation::expression::Compiled;
use crate::run::operation::*;

impl Compiler<'_> {
    pub(in crate::compile) fn raise(&mut self, raise: &Raise) -> Result<OperationKind> {
        let mut params = Vec::new();
        for param in &raise.params {
            params.push(self.text_expression(param)?);
        }
        let mut options = Vec::new();
        for (option, value) in &raise.options {
            options.push((*option, self.text_expression(value)?));
        }
        Ok(OperationKind::Raise(Box::new(RaisePlan {
            level: raise.level,
            condition: raise.condition.clone(),
            format: raise.format.clone(),
            params,
            options,
            again: raise.again,
        })))
    }

    /// An expression in its text form.
    fn text_expression(&mut self, fragment: &Fragment) -> Result<Compiled> {
        let bound = self.bind(fragment, None)?;
        let bound = if bound.ty == Type::TEXT || bound.ty == Type::UNKNOWN {
            bound
        } else {
            // The output function, not the cast: a boolean prints as t.
            BoundExpr::new(ExprKind::ConvertIo(Box::new(bound)), Type::TEXT)
        };
        self.plan_spoken(&bound, expression_line(fragment))
    }

    pub(in crate::compile) fn assert(
        &mut self,
        condition: &Fragment,
        message: Option<&Fragment>,
    ) -> Result<OperationKind> {
        let condition = self.condition(condition)?.run;
        // It is computed if the condition does not hold.
        self.open_for_calls(false);
        let message = message.map(|message| self.text_expression(message)).transpose()?;
        Ok(OperationKind::Assert { condition, message })
    }

    pub(super) fn get_diagnostics(
        &mut self,
        stacked: bool,
        items: &[(Target, Diagnostic)],
    ) -> Result<OperationKind> {
        let mut plans = Vec::new();
        for (target, item) in items {
            self.asks |= matches!(item, Diagnostic::Context | Diagnostic::ErrorContext);
            let (register, ty) = self.scalar_target(target)?;
            let scratch = self.scratch();
            let from = if *item == Diagnostic::RowCount { Type::INT8 } else { Type::TEXT };
            let value = BoundExpr::new(ExprKind::Variable(scratch), from);
            let cast = self.cast(value, ty)?;
            let cast = self.plan_expression(&cast)?;
            self.trace.forget(register, "diagnostics");
            plans.push((DiagnosticTarget { register, scratch, cast }, *item));
        }
        Ok(OperationKind::GetDiagnostics { items: plans, stacked })
    }
}
