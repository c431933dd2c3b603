//! Whether what an expression answers hangs on more than the row it reads: settings, the catalog, the
//! time, a function that is not immutable.

use archipel_sql::function::Volatility;
use archipel_sql::type_table::is_of_time;
use archipel_sql::types::Oid;

use crate::bind::visit::visit_expr;
use crate::bound::{BoundExpr, ExprKind};

/// Whether an expression may change its value by itself.
pub(crate) fn is_mutable(expr: &BoundExpr) -> bool {
    let mut mutable = false;
    visit_expr(expr, 0, &mut |part, _| {
        mutable |= match &part.kind {
            ExprKind::Call { function, .. } => function.function.volatility != Volatility::Immutable,
            ExprKind::Routine { routine, .. } => routine.volatility != 'i',
            // A name was looked up when it was written; a time is read by the session that runs it.
            ExprKind::ConvertIo(inner) if matches!(inner.kind, ExprKind::Const(_)) => {
                is_of_time(inner.ty.oid) || is_of_time(part.ty.oid)
            }
            ExprKind::ConvertIo(inner) => shows_settings(inner.ty.oid) || reads_settings(part.ty.oid),
            _ => false,
        };
        true
    });
    mutable
}

/// Whether a type's output function is not immutable: its text depends on settings, or on the
/// catalog.
fn shows_settings(oid: Oid) -> bool {
    matches!(oid, Oid::DATE | Oid::TIMESTAMP | Oid::TIMESTAMPTZ) || looks_further(oid)
}

/// Whether a type's input function is not immutable.
fn reads_settings(oid: Oid) -> bool {
    is_of_time(oid) || looks_further(oid)
}

/// Arrays, records, types that somebody made and names of catalog objects.
fn looks_further(oid: Oid) -> bool {
    oid.names_object()
        || oid == Oid::RECORD
        || oid.kind().is_some()
        || archipel_sql::type_table::element_of(oid).is_some()
}
