//! The sides of a join: which may be read before the other, and joins turned around.

use archipel_planner::bind::visit;
use archipel_planner::bound::{BoundExpr, ExprKind, JoinKind, Rel};
use archipel_sql::datum::Datum;
use archipel_sql::types::Type;

use super::condition::{all_of, holds_call, parted, reads_query, sides_of};
use super::reads::relations;

/// Lets what ON of an outer join says with calls be a condition on the rows of its right side: alone, where
/// it is about these alone, or else for each row of the left side, behind what it says without.
pub(super) fn on_to_right(rel: &mut Rel) {
    let Rel::Join { kind: JoinKind::Left, left, right, on, lateral } = rel else { return };
    let Some(condition) = on.take_if(|on| holds_call(on)) else { return };
    let width = left.width();
    let (calls, plain) = parted(condition);
    let of_right = calls.iter().all(|item| !reads_query(item) && sides_of(item, width) == [false, true]);
    let (items, left_over) = match of_right {
        true => (calls, plain),
        false => (plain.into_iter().chain(calls).collect(), Vec::new()),
    };
    let whole = || BoundExpr::constant(Datum::Bool(true), Type::BOOL);
    *on = Some(if left_over.is_empty() { whole() } else { all_of(left_over) });
    if !*lateral && !of_right {
        visit::add_outer_nesting(right);
        *lateral = true;
    }
    let nested = u16::from(*lateral);
    let into_right = |mut item: BoundExpr| {
        visit::visit_expr_mut(&mut item, 0, &mut |part, nesting| {
            if let ExprKind::Column { depth, index } = &mut part.kind
                && *depth >= nesting
            {
                match *depth == nesting && usize::from(*index) >= width {
                    true => *index -= width as u16,
                    false => *depth += nested,
                }
            }
            true
        });
        item
    };
    let input = Box::new(std::mem::replace(&mut **right, Rel::Unit));
    let predicate = all_of(items.into_iter().map(into_right).collect());
    **right = Rel::Filter { input, predicate };
}

/// A RIGHT JOIN as a LEFT JOIN.
pub(super) fn turned(rel: &mut Rel) {
    let Rel::Join { kind, left, right, on, lateral: false } = rel else { return };
    let (before, behind) = (left.width(), right.width());
    *kind = JoinKind::Left;
    std::mem::swap(left, right);
    if let Some(on) = on {
        visit::visit_expr_mut(on, 0, &mut |part, nesting| {
            if let ExprKind::Column { depth, index } = &mut part.kind
                && *depth == nesting
            {
                match usize::from(*index) < before {
                    true => *index += behind as u16,
                    false => *index -= before as u16,
                }
            }
            true
        });
    }
    let types = rel.types();
    let places = (behind..behind + before).chain(0..behind);
    let exprs = places.map(|place| BoundExpr::column(place, types[place])).collect();
    *rel = Rel::Project { input: Box::new(std::mem::replace(rel, Rel::Unit)), exprs };
}

/// Whether the tables that a query reads may be read before it.
pub(super) fn may_wait(rel: &Rel) -> bool {
    let mut may = true;
    relations(rel, &mut |rel| {
        may &= match rel {
            Rel::Scan { table, lock, .. } => lock.is_none() && !table.columns.is_empty(),
            Rel::Family { lock, .. } => lock.is_none(),
            Rel::Lock { .. } | Rel::With { .. } => false,
            _ => true,
        }
    });
    may
}

/// Whether a query reads nothing of the statement around it but rows and variables.
pub(super) fn is_apart(rel: &Rel) -> bool {
    let mut reads = false;
    relations(rel, &mut |rel| reads |= matches!(rel, Rel::CteScan { .. }));
    may_wait(rel) && !reads
}
