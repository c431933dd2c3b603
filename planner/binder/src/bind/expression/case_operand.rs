//! The operand of a simple CASE, which every arm's condition repeats, where it may not be evaluated
//! more than once: a conversion to the type that it has marks it, which nothing else writes.

use archipel_sql::types::Oid;

use crate::bind::visit;
use crate::bind::visit::is_volatile;
use crate::bound::{BoundExpr, ExprKind};

/// Marks an operand if it is volatile.
pub(super) fn mark(operand: BoundExpr) -> BoundExpr {
    if operand.ty.oid == Oid::RECORD || !is_volatile(&operand) {
        return operand;
    }
    let ty = operand.ty;
    BoundExpr::new(ExprKind::Relabel(Box::new(operand)), ty)
}

/// The marked operand in the condition of an arm, its mark included.
pub fn marked(condition: &BoundExpr) -> Option<BoundExpr> {
    let mut found = None;
    visit::visit_expr(condition, 0, &mut |part, nesting| {
        if let ExprKind::Relabel(inner) = &part.kind
            && found.is_none()
            && nesting == 0
            && inner.ty == part.ty
            && is_volatile(inner)
        {
            found = Some(part.clone());
        }
        found.is_none()
    });
    found
}

/// Puts another expression in the place of a marked operand.
pub fn replace(condition: &mut BoundExpr, operand: &BoundExpr, other: &BoundExpr) {
    visit::visit_expr_mut(condition, 0, &mut |part, _| {
        let found = part == operand;
        if found {
            *part = other.clone();
        }
        !found
    });
}
