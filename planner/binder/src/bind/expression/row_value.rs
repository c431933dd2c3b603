//! Expressions whose values are rows, and their fields.

use archipel_sql::datum::Datum;
use archipel_sql::types::{Oid, Type};

use crate::bound::{BoundExpr, ExprKind};

/// Whether it is what a record variable holds, a row of no named type: SQL does not know what it is made
/// of before it is there.
pub(crate) fn is_variable_row(expr: &BoundExpr) -> bool {
    let ExprKind::Row(items, Some(_)) = &expr.kind else { return false };
    expr.ty == Type::RECORD && items.iter().all(|item| matches!(item.kind, ExprKind::Variable(_)))
}

/// A row of a named type for whom nothing but `record` is known: it says itself what it is.
pub(crate) fn as_record(expr: BoundExpr) -> BoundExpr {
    match expr.kind {
        ExprKind::Const(Datum::Null) if expr.ty.oid.is_composite() => BoundExpr { ty: Type::RECORD, ..expr },
        _ if expr.ty.oid.is_composite() => BoundExpr::new(ExprKind::Relabel(Box::new(expr)), Type::RECORD),
        _ => expr,
    }
}

/// A field of a record; of a row constructor, the very item, unless it is a literal of no type: that nobody
/// reads as another than it was.
pub(crate) fn record_field(record: BoundExpr, index: usize, ty: Type) -> BoundExpr {
    match record.kind {
        ExprKind::Row(mut items, _) if index < items.len() && ty.oid != Oid::UNKNOWN => {
            items.swap_remove(index)
        }
        kind => {
            let record = Box::new(BoundExpr::new(kind, record.ty));
            BoundExpr::new(ExprKind::Field { record, index: index as u16 }, ty)
        }
    }
}

/// Whether it is a row constructor: two of them compare field by field. A row that has become a value
/// of a named type, or is a table's, is compared as a whole.
pub(crate) fn is_row(expr: &BoundExpr) -> bool {
    matches!(expr.kind, ExprKind::Row(..)) && expr.ty.oid == Oid::RECORD
}
