//! Conditions that calls are made under, and what expressions hold.

use archipel_planner::bind::visit;
use archipel_planner::bound::{BoundExpr, ExprKind, JoinKind, Rel, SetCall, SetItem};
use archipel_sql::datum::Datum;
use archipel_sql::types::Type;

/// Whether a LIMIT is known to let a row through.
pub(super) fn asks_for_rows(limit: Option<&BoundExpr>) -> bool {
    match limit.map(|limit| &limit.kind) {
        None => true,
        Some(ExprKind::Const(Datum::Int8(count))) => *count > 0,
        Some(_) => false,
    }
}

/// `expr IS [NOT] value`.
pub(super) fn is_bool(expr: BoundExpr, value: bool, negated: bool) -> BoundExpr {
    BoundExpr::new(ExprKind::IsBool { expr: Box::new(expr), value, negated }, Type::BOOL)
}

/// Conditions as one.
pub(super) fn all_of(mut conditions: Vec<BoundExpr>) -> BoundExpr {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => BoundExpr::new(ExprKind::And(conditions), Type::BOOL),
    }
}

/// The parts of a condition that hold calls, and those that do not.
pub(super) fn parted(condition: BoundExpr) -> (Vec<BoundExpr>, Vec<BoundExpr>) {
    let items = match condition.kind {
        ExprKind::And(items) => items,
        kind => vec![BoundExpr::new(kind, condition.ty)],
    };
    items.into_iter().partition(holds_call)
}

/// What ON of an inner join says with calls becomes a condition on its rows.
pub(super) fn on_as_condition(rel: &mut Rel) {
    let Rel::Join { kind: JoinKind::Inner, on, .. } = rel else { return };
    let Some(condition) = on.take_if(|on| holds_call(on)) else { return };
    let (calls, plain) = parted(condition);
    *on = (!plain.is_empty()).then(|| all_of(plain));
    let input = Box::new(std::mem::replace(rel, Rel::Unit));
    *rel = Rel::Filter { input, predicate: all_of(calls) };
}

/// Whether the calls of a condition are made for the rows it is on: below a join one that is about one side
/// alone is tested on the rows of that side, all of them, and of more tables than two nobody knows which come first.
pub(super) fn is_tested_above(condition: &BoundExpr, input: &Rel) -> bool {
    let Rel::Join { left, right, .. } = input else { return true };
    let several = [left, right].into_iter().any(|side| matches!(**side, Rel::Join { .. }));
    let items = match &condition.kind {
        ExprKind::And(items) => &items[..],
        _ => std::slice::from_ref(condition),
    };
    let width = left.width();
    let on_both = |item: &BoundExpr| {
        let mut sides = [false; 2];
        visit::visit_expr(item, 0, &mut |part, nesting| {
            if let ExprKind::Column { depth, index } = part.kind
                && depth == nesting
            {
                sides[usize::from(usize::from(index) >= width)] = true;
            }
            true
        });
        sides == [true; 2]
    };
    !several && items.iter().filter(|item| holds_call(item)).all(on_both)
}

/// Whether an expression holds a call that may be taken out.
pub(super) fn holds_call(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit::visit_expr(expr, 0, &mut |part, _| {
        found |= matches!(&part.kind, ExprKind::Routine { routine, .. } if routine.volatility == 'v');
        !found
    });
    found
}

/// Whether an expression reads the row of a query, or runs one.
pub(super) fn depends_on_rows(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit::visit_expr(expr, 0, &mut |part, _| {
        found |= matches!(part.kind, ExprKind::Column { .. } | ExprKind::Subquery(_));
        !found
    });
    found
}

/// Whether an expression runs a query: that would see what calls before it have done.
pub(super) fn reads_query(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit::visit_expr(expr, 0, &mut |part, _| {
        found |= matches!(part.kind, ExprKind::Subquery(_));
        !found
    });
    found
}

pub(super) fn item_reads_query(item: &SetItem) -> bool {
    match item {
        SetItem::Scalar(expr) => reads_query(expr),
        SetItem::Set { call: SetCall::Scalar(expr), .. } => reads_query(expr),
        SetItem::Set { call: SetCall::Routine { args, .. } | SetCall::Builtin { args, .. }, .. } => {
            args.iter().any(reads_query)
        }
    }
}
