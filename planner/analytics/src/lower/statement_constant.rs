//! What stays the same for all rows of one execution, computed once.
//!
//! A row-wise function would compute `to_timestamp('1996-01-01', 'YYYY-MM-DD')` for each row, and a
//! comparison with it would have no native form. A part that reads no row and has no effects has one value
//! for the whole query: it is computed beforehand and stands there as a constant. One that fails stays as it
//! is: its error is told when a row comes to it, if one does.
//!
//! Beside a NULL that PostgreSQL knows when it plans, a strict call computes nothing of its rows. One that
//! only a run tells has no such effect, so it is not put in its place.

use archipel_planner::bind::visit::visit_children_mut;
use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_planner::native::{is_known_of_known, known_within};
use archipel_sql::datum::Datum;
use archipel_sql::function::{Comparison, Intrinsic, Operands, ResolvedFunction, Volatility};
use archipel_sql::stack;
use archipel_sql::types::Oid;
use datafusion::logical_expr::Operator;

use crate::evaluate::{Context, evaluate, refusal};

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// An expression with the values of its parts that read no row.
pub(crate) fn settled(expr: &BoundExpr, context: &Context) -> BoundExpr {
    let mut expr = expr.clone();
    if refusal(&expr).is_none() {
        settle(&mut expr, context);
    }
    expr
}

/// What a part of an expression is for all rows of an execution; of several parts, the least counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// Nothing is put in its place.
    Left,
    /// A constant now, which PostgreSQL computes when it runs.
    Steady,
    /// A constant, which PostgreSQL knows when it plans.
    Known,
}

/// Puts values in the place of what has one.
fn settle(expr: &mut BoundExpr, context: &Context) -> Standing {
    // Whoever lowers what is too deep says so.
    if stack::check().is_err() {
        return Standing::Left;
    }
    let mut standing = match &expr.kind {
        ExprKind::Const(_) => return Standing::Known,
        ExprKind::Column { .. } => Standing::Left,
        ExprKind::Call { function, .. } if function.function.volatility == Volatility::Volatile => {
            Standing::Left
        }
        // What these do with a value is not looked into.
        ExprKind::ArrayConvert { .. } | ExprKind::RowConvert { .. } | ExprKind::Domain { .. } => {
            Standing::Left
        }
        _ if is_known_of_known(expr) => Standing::Known,
        _ => Standing::Steady,
    };
    visit_children_mut(expr, 0, &mut |part, _| {
        standing = standing.min(settle(part, context));
        false
    });
    if is_null_call(expr) {
        expr.kind = ExprKind::Const(Datum::Null);
        return Standing::Known;
    }
    if standing == Standing::Left {
        return standing;
    }
    match evaluate(expr, &[], context) {
        Ok(Datum::Null) if standing == Standing::Steady => Standing::Left,
        Ok(value) => {
            expr.kind = ExprKind::Const(value);
            standing
        }
        Err(_) => Standing::Left,
    }
}

/// Whether a strict call has a constant NULL among its arguments, and nothing is computed for its errors.
/// Conditions have native forms, which joins are made by.
fn is_null_call(expr: &BoundExpr) -> bool {
    let ExprKind::Call { function, args } = &expr.kind else { return false };
    function.function.strict
        && expr.ty.oid != Oid::BOOL
        && args.iter().any(BoundExpr::is_null_constant)
        && known_within(args, usize::MAX).is_empty()
}

/// A comparison of a date with a timestamp that is a constant, as one of dates: the places of the date
/// among the arguments, what it is compared by as if it stood on the left, and with which date. Midnight
/// begins a day, so that nothing lies between a day and its date.
pub(crate) fn of_dates(function: &ResolvedFunction, args: &[BoundExpr]) -> Option<(usize, Operator, i32)> {
    let Some(Intrinsic::Compare(comparison, Operands::Moments)) = function.intrinsic() else { return None };
    let place = match function.function.args {
        [Oid::DATE, Oid::TIMESTAMP] => 0,
        [Oid::TIMESTAMP, Oid::DATE] => 1,
        _ => return None,
    };
    let operator = operator_of(comparison);
    let [left, right] = args else { return None };
    let (date, moment) = if place == 0 { (left, right) } else { (right, left) };
    let operator = if place == 0 { operator } else { operator.swap()? };
    let (Oid::DATE, ExprKind::Const(Datum::Timestamp(moment))) = (date.ty.oid, &moment.kind) else {
        return None;
    };
    let (day, midnight) = match *moment {
        i64::MAX => (i32::MAX, true),
        i64::MIN => (i32::MIN, true),
        micros => {
            (i32::try_from(micros.div_euclid(MICROS_PER_DAY)).ok()?, micros.rem_euclid(MICROS_PER_DAY) == 0)
        }
    };
    let operator = match operator {
        // Later than midnight: the day itself is before.
        Operator::Lt if !midnight => Operator::LtEq,
        Operator::GtEq if !midnight => Operator::Gt,
        Operator::Eq | Operator::NotEq if !midnight => return None,
        operator => operator,
    };
    Some((place, operator, day))
}

/// DataFusion's operator of a comparison.
pub(crate) fn operator_of(comparison: Comparison) -> Operator {
    match comparison {
        Comparison::Eq => Operator::Eq,
        Comparison::Ne => Operator::NotEq,
        Comparison::Lt => Operator::Lt,
        Comparison::Le => Operator::LtEq,
        Comparison::Gt => Operator::Gt,
        Comparison::Ge => Operator::GtEq,
    }
}
