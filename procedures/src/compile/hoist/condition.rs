//! Conditions that calls are made under, and what expressions hold.

use archipel_planner::bind::visit;
use archipel_planner::bound::{BoundExpr, ExprKind, JoinKind, Rel, SetCall, SetItem};
use archipel_sql::datum::Datum;
use archipel_sql::types::Type;

use super::reads::relations;

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
    let on_both = |item: &BoundExpr| sides_of(item, width) == [true; 2];
    !several && items.iter().filter(|item| holds_call(item)).all(on_both)
}

/// Which sides of a join a condition reads, the left one being so wide.
pub(super) fn sides_of(condition: &BoundExpr, width: usize) -> [bool; 2] {
    let mut sides = [false; 2];
    visit::visit_expr(condition, 0, &mut |part, nesting| {
        if let ExprKind::Column { depth, index } = part.kind
            && depth == nesting
        {
            sides[usize::from(usize::from(index) >= width)] = true;
        }
        true
    });
    sides
}

/// Lets conditions with calls that are about one side of an inner join be tested on the rows of that side,
/// behind the other conditions about it. Those about the left side are where a function is called for
/// each row of it.
pub(super) fn conditions_to_sides(rel: &mut Rel) {
    let Rel::Filter { input, predicate } = rel else { return };
    let Rel::Join { kind, left, right, lateral, .. } = &mut **input else { return };
    let called = matches!(&**right, Rel::Function { call: SetCall::Routine { routine, .. }, .. } if routine.volatility == 'v');
    let inner = *kind == JoinKind::Inner;
    let plain = inner && !*lateral;
    let of_function = called && (inner || *kind == JoinKind::Left);
    if !plain && !of_function {
        return;
    }
    let width = left.width();
    let whole = std::mem::replace(predicate, BoundExpr::constant(Datum::Null, Type::BOOL));
    let items = match whole.kind {
        ExprKind::And(items) => items,
        kind => vec![BoundExpr::new(kind, whole.ty)],
    };
    let wanted = [[true, false], [false, true]];
    let of_side = |item: &&BoundExpr, side| !reads_query(item) && sides_of(item, width) == side;
    let moves = wanted.map(|side| {
        let to_left = side == wanted[0];
        let of_calls = items.iter().filter(|item| of_side(item, side)).any(holds_call);
        (to_left && called) || (of_calls && inner && (to_left || !*lateral))
    });
    let mut moved = [Vec::new(), Vec::new()];
    let mut left_over = Vec::new();
    for mut item in items {
        let sides = sides_of(&item, width);
        let side = (0..2).find(|side| moves[*side] && sides == wanted[*side] && !reads_query(&item));
        match side {
            Some(1) => {
                visit::visit_expr_mut(&mut item, 0, &mut |part, nesting| {
                    if let ExprKind::Column { depth, index } = &mut part.kind
                        && *depth == nesting
                    {
                        *index -= width as u16;
                    }
                    true
                });
                moved[1].push(item);
            }
            Some(_) => moved[0].push(item),
            None => left_over.push(item),
        }
    }
    for (side, conditions) in [left, right].into_iter().zip(moved) {
        if !conditions.is_empty() {
            let input = Box::new(std::mem::replace(&mut **side, Rel::Unit));
            **side = Rel::Filter { input, predicate: all_of(conditions) };
        }
    }
    if left_over.is_empty() {
        *rel = std::mem::replace(&mut **input, Rel::Unit);
    } else {
        *predicate = all_of(left_over);
    }
}

/// Whether an expression holds a call that may be taken out.
pub(super) fn holds_call(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit::visit_expr(expr, 0, &mut |part, _| {
        match &part.kind {
            ExprKind::Routine { routine, .. } => found |= routine.volatility == 'v',
            ExprKind::Subquery(subquery) => relations(&subquery.rel, &mut |rel| {
                found |= matches!(rel, Rel::Function { call: SetCall::Routine { routine, .. }, .. }
                    if routine.volatility == 'v');
            }),
            _ => {}
        }
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
