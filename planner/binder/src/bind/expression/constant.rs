//! Constants: what the meaning of a literal depends on, and constants of another type.

use archipel_sql::cast;
use archipel_sql::datetime::interval_depends_on_style;
use archipel_sql::type_table::{element_of, is_of_time};
use archipel_sql::types::{Oid, Type};

use crate::bound::{BoundExpr, ExprKind};

/// Whether a type's values, or their elements, are numbers of what a session knows by names.
pub(super) fn is_name(ty: Oid) -> bool {
    match element_of(ty) {
        Some(element) => element.names_object(),
        // Relations are looked up by themselves.
        None => ty.names_object() && ty != Oid::REGCLASS,
    }
}

/// Whether what a literal of a type of time means depends on the session's settings, or on the day. The
/// elements of an array are not looked at: one of them might.
pub(super) fn depends_on_settings(ty: Oid, text: &str) -> bool {
    match ty {
        Oid::TIMESTAMPTZ | Oid::TIMETZ => true,
        Oid::DATE | Oid::TIMESTAMP => {
            text.bytes().any(|byte| byte.is_ascii_alphabetic()) || !begins_with_year(text)
        }
        Oid::TIME => text.bytes().any(|byte| byte.is_ascii_alphabetic()),
        Oid::INTERVAL => interval_depends_on_style(text),
        _ => element_of(ty).is_some_and(is_of_time),
    }
}

/// Whether a date is read alike in every order of day and month.
fn begins_with_year(text: &str) -> bool {
    let digits = text.trim_start().bytes().take_while(u8::is_ascii_digit).count();
    digits >= 4
}

/// An expression as one of a type that holds the same; a constant is held as that type holds it.
pub(super) fn relabelled(expr: BoundExpr, ty: Type) -> BoundExpr {
    match expr {
        BoundExpr { kind: ExprKind::Const(value), ty: from, .. } => {
            BoundExpr::constant(cast::relabel(value, from.oid, ty.oid), ty)
        }
        expr => BoundExpr::new(ExprKind::Relabel(Box::new(expr)), ty),
    }
}
