//! Which expressions can fail, and by what.

use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_sql::datum::Datum;
use archipel_sql::function::{Arithmetic, IntegerWidth, Intrinsic, ResolvedFunction};

use crate::lower::operator::native_operator;
use crate::lower::statement_constant::of_dates;

/// Whether evaluating an expression may raise an error. What has a native form never does.
pub(crate) fn can_fail(expr: &BoundExpr) -> bool {
    match &expr.kind {
        ExprKind::Column { .. } | ExprKind::Const(_) | ExprKind::Param(_) => false,
        ExprKind::Relabel(inner)
        | ExprKind::IsNull(inner)
        | ExprKind::IsNotNull(inner)
        | ExprKind::Not(inner) => can_fail(inner),
        ExprKind::IsBool { expr, .. } => can_fail(expr),
        ExprKind::And(list) | ExprKind::Or(list) => list.iter().any(can_fail),
        ExprKind::InList { left, list, equality, .. } => {
            native_operator(equality).is_none() || can_fail(left) || list.iter().any(can_fail)
        }
        ExprKind::Call { function, args } => {
            let safe = native_operator(function).is_some()
                || is_safe_like(function, args)
                || of_dates(function, args).is_some();
            !safe || args.iter().any(can_fail)
        }
        _ => true,
    }
}

/// Whether evaluating an expression fails for nothing but a value that is out of range.
pub(crate) fn fails_by_range_alone(expr: &BoundExpr) -> bool {
    match &expr.kind {
        ExprKind::Relabel(inner) => fails_by_range_alone(inner),
        ExprKind::Coalesce(list) => list.iter().all(fails_by_range_alone),
        ExprKind::Call { function, args } => {
            let fits = native_operator(function).is_some()
                || is_range_checked(function)
                || is_widening(function, args);
            fits && args.iter().all(fails_by_range_alone)
        }
        _ => !can_fail(expr),
    }
}

/// Whether a function adds, subtracts or multiplies, or changes nothing but the letters of a text.
fn is_range_checked(function: &ResolvedFunction) -> bool {
    match function.intrinsic() {
        Some(Intrinsic::Integer(operation, _)) => {
            matches!(operation, Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply)
        }
        Some(Intrinsic::DateArithmetic | Intrinsic::Lower | Intrinsic::Upper) => true,
        _ => is_numeric_arithmetic(function),
    }
}

/// Whether a function adds, subtracts or multiplies numerics.
pub(crate) fn is_numeric_arithmetic(function: &ResolvedFunction) -> bool {
    matches!(
        function.intrinsic(),
        Some(Intrinsic::NumericAdd | Intrinsic::NumericSubtract | Intrinsic::NumericMultiply)
    )
}

/// Whether a call casts an integer to a type that has room for all of its type.
pub(crate) fn is_widening(function: &ResolvedFunction, args: &[BoundExpr]) -> bool {
    let [inner] = args else { return false };
    match (function.intrinsic(), IntegerWidth::of(inner.ty.oid)) {
        (Some(Intrinsic::ToNumeric), Some(_)) => true,
        (Some(Intrinsic::ToInteger(width)), Some(own)) => own < width,
        _ => false,
    }
}

/// Whether a call matches LIKE a pattern that cannot end in an escape.
fn is_safe_like(function: &ResolvedFunction, args: &[BoundExpr]) -> bool {
    let like = matches!(function.intrinsic(), Some(Intrinsic::Like | Intrinsic::NotLike));
    like && matches!(args, [_, BoundExpr { kind: ExprKind::Const(Datum::Text(pattern)), .. }]
        if !pattern.contains('\\'))
}
