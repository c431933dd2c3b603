//! What PostgreSQL knows of an expression when it plans: whether its value, whether that it is NULL.

use archipel_sql::catalog::Routine;
use archipel_sql::datum::Datum;
use archipel_sql::function::{FunctionContext, Intrinsic, ScalarFunction, Volatility};
use archipel_sql::interrupt;
use archipel_sql::types::Oid;

use crate::bind::visit::visit_expr;
use crate::bound::{BoundExpr, ExprKind};

/// Whether a value is known to be NULL before a statement runs: it is written so, or a strict call or a
/// CASE comes to it without a look at a row.
pub fn is_null(expr: &BoundExpr) -> bool {
    match &expr.kind {
        ExprKind::Const(value) => value.is_null(),
        ExprKind::Relabel(inner) => is_null(inner),
        ExprKind::Call { function, args } => function.function.strict && args.iter().any(is_null),
        ExprKind::Routine { routine, args } => is_null_call(routine, args),
        ExprKind::Case { arms, otherwise } => match decided(arms, otherwise.as_deref()) {
            Some(value) => value.is_none_or(is_null),
            None => false,
        },
        _ => false,
    }
}

/// Whether a routine is not called because an argument is known to be NULL. PostgreSQL finds that of no
/// sets and records.
pub fn is_null_call(routine: &Routine, args: &[BoundExpr]) -> bool {
    let of_rows = routine.returns_set || routine.result.oid == Oid::RECORD;
    routine.strict && !of_rows && args.iter().any(is_null)
}

/// The value of a CASE whose conditions are constants as far as they are asked; within, `None` for the
/// NULL of one without ELSE.
pub fn decided<'e>(
    arms: &'e [(BoundExpr, BoundExpr)],
    otherwise: Option<&'e BoundExpr>,
) -> Option<Option<&'e BoundExpr>> {
    for (condition, value) in arms {
        match condition.kind {
            ExprKind::Const(Datum::Bool(true)) => return Some(Some(value)),
            ExprKind::Const(Datum::Bool(false) | Datum::Null) => {}
            _ => return None,
        }
    }
    Some(otherwise)
}

/// What PostgreSQL calls immutable although it reads a setting of the session, TimeZone or
/// quote_all_identifiers: its value belongs to no plan.
pub fn reads_settings(function: &ScalarFunction) -> bool {
    function.is(Intrinsic::AgeInZone) || function.is(Intrinsic::QuoteIdentifier)
}

/// Whether the value of a call with constants may stand in its place.
pub fn is_steady(function: &ScalarFunction) -> bool {
    function.volatility == Volatility::Immutable && !reads_settings(function)
}

/// What a call may take when it is computed beforehand: some ten milliseconds, on a thread that others wait
/// for. What is longer makes a value that no plan keeps, or is computed as well by the run.
const FOLDED_STEPS: usize = 8 << 20;

/// The value of a call with constants, where that may stand in its place. An error stays for run time,
/// where it may never be reached; so does what takes long.
pub fn folded(function: &ScalarFunction, values: &[Datum]) -> Option<Datum> {
    if !is_steady(function) {
        return None;
    }
    interrupt::briefly(FOLDED_STEPS, || function.call(&FunctionContext::detached(), values)).ok()
}

/// Whether PostgreSQL knows a value when it plans: it is made of constants, and of parameters, whose
/// values it plans with, by what never changes.
pub fn is_known(expr: &BoundExpr) -> bool {
    let mut known = true;
    visit_expr(expr, 0, &mut |part, _| {
        known &= is_known_of_known(part);
        known
    });
    known
}

/// Whether PostgreSQL knows a value when it plans if it knows the parts.
pub fn is_known_of_known(expr: &BoundExpr) -> bool {
    match &expr.kind {
        ExprKind::Column { .. } | ExprKind::Variable(_) => false,
        ExprKind::Subquery(_) | ExprKind::Routine { .. } => false,
        ExprKind::Call { function, .. } => function.function.volatility == Volatility::Immutable,
        ExprKind::ConvertIo(inner) => is_written_alike(inner.ty.oid) && is_written_alike(expr.ty.oid),
        _ => true,
    }
}

/// Whether values of a type have one text, whatever the session's settings.
fn is_written_alike(oid: Oid) -> bool {
    matches!(
        oid,
        Oid::BOOL
            | Oid::INT2
            | Oid::INT4
            | Oid::INT8
            | Oid::NUMERIC
            | Oid::TEXT
            | Oid::VARCHAR
            | Oid::BPCHAR
            | Oid::NAME
            | Oid::UUID
            | Oid::BIT
            | Oid::VARBIT
            | Oid::INET
            | Oid::CIDR
            | Oid::MACADDR
            | Oid::MACADDR8
            | Oid::JSON
            | Oid::JSONB
    )
}

/// The largest parts of arguments that PostgreSQL knows when it plans, whole arguments perhaps: those that
/// it reaches through calls alone, and computes. No more of them than `most`.
pub fn known_within<'e>(exprs: impl IntoIterator<Item = &'e BoundExpr>, most: usize) -> Vec<&'e BoundExpr> {
    let mut known = Vec::new();
    exprs.into_iter().for_each(|expr| add_known(expr, most, &mut known));
    known
}

fn add_known<'e>(expr: &'e BoundExpr, most: usize, known: &mut Vec<&'e BoundExpr>) {
    if known.len() >= most || matches!(expr.kind, ExprKind::Const(_) | ExprKind::Param(_)) {
        return;
    }
    if is_known(expr) || is_null(expr) {
        return known.push(expr);
    }
    match &expr.kind {
        ExprKind::Call { args, .. } => args.iter().for_each(|arg| add_known(arg, most, known)),
        ExprKind::Relabel(inner) | ExprKind::ConvertIo(inner) => add_known(inner, most, known),
        _ => {}
    }
}
