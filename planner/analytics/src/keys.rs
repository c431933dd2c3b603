//! Numerics as keys, of joins, groups and orders.
//!
//! A numeric without a fixed scale is carried by bytes that end with its scale: 1.0 and 1.00 are equal and
//! not carried alike. Without the zeros at its end a value has one form, whose bytes have the order of
//! numerics: that is the key. What a query shows of a group is a value that came, as it was written.

use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_planner::row::Codec;
use archipel_sql::function::{ResolvedFunction, lookup_functions};
use archipel_sql::types::{Oid, Type};
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, Operator, binary_expr};

use crate::carrier::comparable;
use crate::condition::can_fail;
use crate::evaluate::{is_volatile, refusal};
use crate::lower::{Lowerer, Lowering, columns_of, unsupported};

/// What stands for a value where values are compared; `what` is said of a type that has no such form.
pub(crate) fn key_form(expr: &BoundExpr, what: &str) -> Lowering<BoundExpr> {
    if comparable(expr.ty) {
        return Ok(expr.clone());
    }
    match trimmed(expr) {
        Some(key) => Ok(key),
        None => unsupported(what),
    }
}

/// Whether values of a type can be told apart by a key.
pub(crate) fn has_key_form(ty: Type) -> bool {
    comparable(ty) || Codec::of(ty) == Codec::Numeric
}

/// A numeric without the zeros at its end.
fn trimmed(expr: &BoundExpr) -> Option<BoundExpr> {
    if expr.ty.oid != Oid::NUMERIC {
        return None;
    }
    let function = *lookup_functions("trim_scale").iter().find(|function| function.args == [Oid::NUMERIC])?;
    let function = ResolvedFunction { function, result: Type::NUMERIC };
    Some(BoundExpr::new(ExprKind::Call { function, args: vec![expr.clone()] }, Type::NUMERIC))
}

/// What a cast to numeric takes, where it is an integer: that cannot fail.
fn widened(expr: &BoundExpr) -> &BoundExpr {
    match &expr.kind {
        ExprKind::Call { function, args } if function.function.name == "numeric" => match &args[..] {
            [inner] if matches!(inner.ty.oid, Oid::INT2 | Oid::INT4 | Oid::INT8) => inner,
            _ => expr,
        },
        _ => expr,
    }
}

impl Lowerer<'_> {
    /// Whether two numerics are equal that are carried differently or without a fixed scale, in a form that
    /// a join can hash.
    pub(crate) fn equal_numerics(
        &mut self,
        equality: &ResolvedFunction,
        sides: [&BoundExpr; 2],
        columns: &[(Column, Type)],
    ) -> Lowering<Option<Expr>> {
        let [left, right] = sides.map(columns_of);
        let apart =
            !left.is_empty() && !right.is_empty() && !left.iter().any(|column| right.contains(column));
        let fit =
            |side: &BoundExpr| refusal(side).is_none() && !is_volatile(side) && !can_fail(widened(side));
        if equality.function.name != "numeric_eq" || !apart || !sides.into_iter().all(fit) {
            return Ok(None);
        }
        let [left, right] = sides.map(trimmed);
        let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
        let left = self.row_function(&left, None, columns)?;
        let right = self.row_function(&right, None, columns)?;
        Ok(Some(binary_expr(left, Operator::Eq, right)))
    }
}
