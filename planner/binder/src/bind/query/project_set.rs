//! SELECT lists that call functions that answer rows, in each other's arguments, too; and GROUP BY that does.

use archipel_sql::types::Type;

use super::target_list::replace_placeholders;
use crate::bind::scope::SET_BASE;
use crate::bind::visit::{visit_expr, visit_expr_mut};
use crate::bound::*;

/// The SELECT list as a Project, or as a ProjectSet if it calls set-returning functions.
pub(super) fn projected(rel: Rel, exprs: Vec<BoundExpr>, mut sets: Vec<(SetCall, Type)>) -> Rel {
    if sets.is_empty() {
        return Rel::Project { input: Box::new(rel), exprs };
    }
    if sets.iter().any(|(call, _)| call.args().iter().any(|arg| !sets_read(arg).is_empty())) {
        return projected_in_stages(rel, exprs, sets);
    }
    let set_of = |expr: &BoundExpr| match expr.kind {
        ExprKind::Column { depth: 0, index } if index >= SET_BASE => Some(usize::from(index - SET_BASE)),
        _ => None,
    };
    let plain = |expr: &BoundExpr| {
        let mut plain = true;
        visit_expr(expr, 0, &mut |part, nesting| {
            plain &= !matches!(part.kind, ExprKind::Column { depth, index } if depth == nesting && index >= SET_BASE);
            true
        });
        plain
    };
    let direct: Vec<usize> = exprs.iter().filter_map(&set_of).collect();
    let in_order = direct.iter().enumerate().all(|(i, set)| i == *set) && direct.len() == sets.len();
    if in_order && exprs.iter().all(|expr| set_of(expr).is_some() || plain(expr)) {
        let mut sets = sets.into_iter();
        let items = exprs
            .into_iter()
            .map(|expr| match set_of(&expr).and_then(|_| sets.next()) {
                Some((call, ty)) => SetItem::Set { call, ty },
                None => SetItem::Scalar(expr),
            })
            .collect();
        return Rel::ProjectSet { input: Box::new(rel), items };
    }
    // Sets inside expressions: expand them beside the input's columns, then compute.
    let input = rel.types();
    let width = input.len() as u16;
    let mut items: Vec<SetItem> =
        input.iter().enumerate().map(|(i, ty)| SetItem::Scalar(BoundExpr::column(i, *ty))).collect();
    items.extend(sets.drain(..).map(|(call, ty)| SetItem::Set { call, ty }));
    let mut exprs = exprs;
    for expr in &mut exprs {
        replace_placeholders(expr, SET_BASE, u16::MAX, width);
    }
    let expanded = Rel::ProjectSet { input: Box::new(rel), items };
    Rel::Project { input: Box::new(expanded), exprs }
}

/// The sets of a SELECT list whose placeholders an expression reads.
pub(super) fn sets_read(expr: &BoundExpr) -> Vec<usize> {
    let mut read = Vec::new();
    visit_expr(expr, 0, &mut |part, nesting| {
        if let ExprKind::Column { depth, index } = part.kind
            && depth == nesting
            && index >= SET_BASE
        {
            read.push(usize::from(index - SET_BASE));
        }
        true
    });
    read
}

/// Sets whose arguments are sets: those are expanded first, then what reads them, and so on.
fn projected_in_stages(mut rel: Rel, mut exprs: Vec<BoundExpr>, sets: Vec<(SetCall, Type)>) -> Rel {
    let mut stages: Vec<usize> = Vec::with_capacity(sets.len());
    for (call, _) in &sets {
        let read = call.args().iter().flat_map(sets_read);
        // Arguments are bound before the call that they are of.
        let below = read.filter_map(|set| stages.get(set).copied()).max();
        stages.push(below.map_or(0, |stage| stage + 1));
    }
    let last = stages.iter().copied().max().unwrap_or_default();
    let mut places = vec![0_u16; sets.len()];
    for stage in 0..=last {
        let input = rel.types();
        let mut items: Vec<SetItem> =
            input.iter().enumerate().map(|(i, ty)| SetItem::Scalar(BoundExpr::column(i, *ty))).collect();
        for (set, (call, ty)) in sets.iter().enumerate().filter(|(set, _)| stages[*set] == stage) {
            let mut call = call.clone();
            call.args_mut().iter_mut().for_each(|arg| place_sets(arg, &places));
            places[set] = items.len() as u16;
            items.push(SetItem::Set { call, ty: *ty });
        }
        rel = Rel::ProjectSet { input: Box::new(rel), items };
    }
    exprs.iter_mut().for_each(|expr| place_sets(expr, &places));
    Rel::Project { input: Box::new(rel), exprs }
}

/// Gives placeholders of sets the places that these have.
pub(super) fn place_sets(expr: &mut BoundExpr, places: &[u16]) {
    visit_expr_mut(expr, 0, &mut |part, nesting| {
        if let ExprKind::Column { depth, index } = &mut part.kind
            && *depth == nesting
            && *index >= SET_BASE
            && let Some(place) = places.get(usize::from(*index - SET_BASE))
        {
            *index = *place;
        }
        true
    });
}

/// Lets equal calls be one, so that those that are grouped by are known elsewhere: the placeholder of each.
pub(super) fn share_sets(sets: &mut [(SetCall, Type)]) -> Vec<u16> {
    let mut places: Vec<u16> = Vec::with_capacity(sets.len());
    for set in 0..sets.len() {
        let (before, rest) = sets.split_at_mut(set);
        let Some(call) = rest.first_mut() else { break };
        // Arguments are bound before the call that they are of.
        call.0.args_mut().iter_mut().for_each(|arg| place_sets(arg, &places));
        let known = before.iter().position(|known| known == call);
        places.push(SET_BASE + known.unwrap_or(set) as u16);
    }
    places
}

/// The calls that are needed, and the placeholder that each has among them.
pub(super) fn needed_sets(sets: Vec<(SetCall, Type)>, needed: &[bool]) -> (Vec<(SetCall, Type)>, Vec<u16>) {
    let mut places: Vec<u16> = Vec::with_capacity(sets.len());
    let mut kept: Vec<(SetCall, Type)> = Vec::new();
    for ((mut call, ty), needed) in sets.into_iter().zip(needed) {
        places.push(SET_BASE + kept.len() as u16);
        if *needed {
            call.args_mut().iter_mut().for_each(|arg| place_sets(arg, &places));
            kept.push((call, ty));
        }
    }
    (kept, places)
}

/// What an Aggregate reads that groups by what functions answer: their rows beside the input's columns.
pub(super) fn expanded_groups(
    rel: Rel,
    exprs: Vec<BoundExpr>,
    sets: Vec<(SetCall, Type)>,
) -> (Rel, Vec<BoundExpr>) {
    let mut needed = vec![false; sets.len()];
    exprs.iter().flat_map(sets_read).for_each(|set| needed[set] = true);
    for set in (0..sets.len()).rev() {
        if needed[set] {
            sets[set].0.args().iter().flat_map(sets_read).for_each(|read| needed[read] = true);
        }
    }
    let (sets, places) = needed_sets(sets, &needed);
    let mut columns: Vec<BoundExpr> =
        rel.types().iter().enumerate().map(|(i, ty)| BoundExpr::column(i, *ty)).collect();
    let mut groups = Vec::with_capacity(exprs.len());
    for mut expr in exprs {
        if sets_read(&expr).is_empty() {
            groups.push(expr);
            continue;
        }
        place_sets(&mut expr, &places);
        groups.push(BoundExpr::column(columns.len(), expr.ty));
        columns.push(expr);
    }
    (projected(rel, columns, sets), groups)
}
