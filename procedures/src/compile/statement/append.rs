//! Assignments that make a variable's value longer: `text := text || part`,
//! `array := array || element`, `array := array || other`.

use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_sql::error::Result;
use archipel_sql::function::Intrinsic;
use archipel_sql::type_table::element_of;
use archipel_sql::types::{Oid, Type};

use crate::compile::compiler::Compiler;
use crate::plpgsql::ast::VariableId;
use crate::run::operation::OperationKind;

impl Compiler<'_> {
    /// The operation for such an assignment to the variable in `register`; `None` for others.
    pub(in crate::compile) fn append(
        &mut self,
        register: u32,
        bound: &BoundExpr,
        variable: VariableId,
    ) -> Result<Option<OperationKind>> {
        if self.not_null(variable).is_some() || self.is_named(bound) {
            return Ok(None);
        }
        if bound.ty == Type::TEXT {
            let mut parts = Vec::new();
            if !concatenated(bound, register, &mut parts) || parts.is_empty() {
                return Ok(None);
            }
            let parts = parts.into_iter().map(|part| self.plan_part(part));
            return Ok(Some(OperationKind::AppendText { register, parts: parts.collect::<Result<_>>()? }));
        }
        let (ExprKind::Call { function, args }, Some(element)) = (&bound.kind, element_of(bound.ty.oid))
        else {
            return Ok(None);
        };
        match (function.intrinsic(), &args[..]) {
            (Some(Intrinsic::ArrayAppend), [base, value])
                if is_variable(base, register) && value.ty.oid == element =>
            {
                let value = self.plan_part(value)?;
                Ok(Some(OperationKind::AppendElement { register, element, value }))
            }
            (Some(Intrinsic::ArrayConcatenate), [base, other])
                if is_variable(base, register) && other.ty.oid == bound.ty.oid =>
            {
                let value = self.plan_part(other)?;
                Ok(Some(OperationKind::AppendArray { register, value, function: *function }))
            }
            _ => Ok(None),
        }
    }
}

fn is_variable(expr: &BoundExpr, register: u32) -> bool {
    matches!(expr.kind, ExprKind::Variable(read) if read == register)
}

/// What is appended to the variable in `register`, in order; false if the expression is something
/// else.
fn concatenated<'b>(expr: &'b BoundExpr, register: u32, parts: &mut Vec<&'b BoundExpr>) -> bool {
    if is_variable(expr, register) {
        return true;
    }
    let ExprKind::Call { function, args } = &expr.kind else { return false };
    match &args[..] {
        [left, right] if function.is(Intrinsic::Concatenate) && right.ty.oid == Oid::TEXT => {
            let appends = concatenated(left, register, parts);
            parts.push(right);
            appends
        }
        _ => false,
    }
}
