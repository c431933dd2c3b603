//! Conditions that come before those of whoever reads rows: a view's that is a security barrier, and those of
//! policies. What could tell of rows that they hide, by what it fails with or says, is asked behind them, or kept
//! out. What only compares can do neither: it may find the rows.

use archipel_sql::datum::Datum;
use archipel_sql::types::Type;

use crate::bind::visit::is_asked_at_once;
use crate::bound::*;
use crate::comparison::comparison;

/// The conjunction of conditions.
pub(crate) fn all_of(mut parts: Vec<BoundExpr>) -> Option<BoundExpr> {
    match parts.len() {
        0 | 1 => parts.pop(),
        _ => Some(BoundExpr::new(ExprKind::And(parts), Type::BOOL)),
    }
}

/// Whether a view's own conditions are asked before those of whoever reads it, wherever these sink to.
pub(crate) fn is_asked_first(rel: &Rel) -> bool {
    match rel {
        Rel::Scan { .. } | Rel::Family { .. } => true,
        Rel::Project { input, .. } => is_asked_first(input),
        Rel::Filter { input, predicate } => is_asked_first(input) && is_asked_at_once(predicate),
        _ => false,
    }
}

/// Rows that no condition around them sinks into: no more than into those of OFFSET 0.
pub(crate) fn behind_barrier(rel: Rel) -> Rel {
    let offset = Some(BoundExpr::constant(Datum::Int8(0), Type::INT8));
    Rel::Limit { input: Box::new(rel), limit: None, offset, with_ties: false }
}

/// The conditions of a barrier, and others behind those.
pub(crate) fn in_turn(mut parts: Vec<BoundExpr>, others: Vec<BoundExpr>) -> Vec<BoundExpr> {
    if parts.iter().all(is_asked_at_once) {
        parts.extend(others);
        return parts;
    }
    let (mut parts, late): (Vec<_>, Vec<_>) = conjuncts(parts).partition(is_asked_at_once);
    // Rows are found by those that compare and do no more.
    let (compare, others): (Vec<_>, Vec<_>) = conjuncts(others).partition(only_compares);
    match (all_of(late), all_of(others)) {
        (Some(late), Some(others)) => {
            let kind = ExprKind::Case { arms: vec![(late, others)], otherwise: None };
            parts.push(BoundExpr::new(kind, Type::BOOL));
        }
        (late, others) => parts.extend(late.into_iter().chain(others)),
    }
    parts.extend(compare);
    parts
}

pub(crate) fn conjuncts(conditions: Vec<BoundExpr>) -> impl Iterator<Item = BoundExpr> {
    conditions.into_iter().flat_map(|condition| match condition.kind {
        ExprKind::And(parts) => parts,
        _ => vec![condition],
    })
}

/// Whether a condition compares a column with what no row is read for, which never fails.
pub(crate) fn only_compares(condition: &BoundExpr) -> bool {
    let ExprKind::Call { function, args } = &condition.kind else { return false };
    let is_plain = |arg: &BoundExpr| {
        matches!(
            arg.kind,
            ExprKind::Column { .. } | ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Variable(_)
        )
    };
    comparison(function.function).is_some() && args.iter().all(is_plain)
}

/// Gives barriers in rows the conditions of whoever reads them that only compare, too: so rows are found by them.
pub(crate) fn with_comparisons(mut rel: Rel, predicate: Option<&BoundExpr>) -> Rel {
    for condition in conjuncts(predicate.cloned().into_iter().collect()).filter(only_compares) {
        sink(&mut rel, condition);
    }
    rel
}

/// Puts a condition on rows into the barrier that all that it reads comes from.
fn sink(rel: &mut Rel, condition: BoundExpr) {
    match rel {
        Rel::Filter { input, .. } => sink(input, condition),
        Rel::Project { input, exprs } => {
            if let Some(below) = moved(condition, &|index| plain_column(exprs.get(index)?)) {
                sink(input, below);
            }
        }
        Rel::Join { kind: JoinKind::Inner, left, right, lateral: false, .. } => {
            let width = left.width();
            let on_left = |index: usize| (index < width).then_some(index);
            match moved(condition.clone(), &on_left) {
                Some(own) => sink(left, own),
                None => {
                    if let Some(own) = moved(condition, &|index: usize| index.checked_sub(width)) {
                        sink(right, own);
                    }
                }
            }
        }
        Rel::Limit { input, limit: None, offset: Some(offset), .. }
            if matches!(offset.kind, ExprKind::Const(Datum::Int8(0))) =>
        {
            if let Rel::Filter { input: rows, predicate } = &mut **input
                && matches!(**rows, Rel::Scan { .. } | Rel::Family { .. })
            {
                let own = std::mem::replace(predicate, BoundExpr::constant(Datum::Null, Type::BOOL));
                *predicate = BoundExpr::new(ExprKind::And(vec![condition, own]), Type::BOOL);
            }
        }
        _ => {}
    }
}

fn plain_column(expr: &BoundExpr) -> Option<usize> {
    match expr.kind {
        ExprKind::Column { depth: 0, index } => Some(usize::from(index)),
        _ => None,
    }
}

/// A comparison with its columns in other places; `None` if one has none there, or if it reads no column.
fn moved(mut condition: BoundExpr, place: &dyn Fn(usize) -> Option<usize>) -> Option<BoundExpr> {
    let ExprKind::Call { args, .. } = &mut condition.kind else { return None };
    let mut reads = false;
    for arg in args {
        if let ExprKind::Column { depth: 0, index } = &mut arg.kind {
            *index = u16::try_from(place(usize::from(*index))?).ok()?;
            reads = true;
        }
    }
    reads.then_some(condition)
}
