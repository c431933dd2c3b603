//! Aggregates of the rows that belong to a row, computed for all rows together.
//!
//! Run for each row, `(SELECT avg(t.v) FROM t WHERE t.x = o.x)` reads `t` as often as `o` has rows. Grouped by
//! `t.x`, one pass over `t` has the answers for all of them; a row without a group has those of no rows:
//!
//! ```text
//! Filter [o.v < 2 * (Project [f(agg)] of Aggregate of Filter [inner AND t.x = o.x] over t)] over o
//!     Filter [o.v < 2 * f(agg)] over o ⟕ Aggregate by t.x of (Filter [inner] over t) ON t.x = o.x
//! ```
//!
//! Invariant: what is computed of rows that no row asks for cannot fail. What is made of the aggregates is
//! computed where the subquery stood, for the same rows as before.

use archipel_planner::bind::visit::{
    calls_volatile, effort, is_correlated, visit_expr, visit_expr_mut, visit_rel,
};
use archipel_planner::bound::*;
use archipel_sql::datum::Datum;
use archipel_sql::function::{Aggregate, ResolvedFunction};
use archipel_sql::types::{Oid, Type};
use datafusion::logical_expr::Operator;

use super::semi_join::{depth_read, reads_outside};
use crate::aggregate::keys::has_key_form;
use crate::failure::{can_fail, fails_by_range_alone, is_numeric_arithmetic, is_widening};
use crate::lower::condition::conjuncts;
use crate::lower::operator::native_operator;

/// A query whose subqueries are joins, as far as they are aggregates of the rows that belong to a row.
pub(crate) fn grouped(rel: Rel) -> Rel {
    let mut wanted = false;
    visit_rel(&rel, 0, &mut |expr, _| {
        wanted |= matches!(&expr.kind, ExprKind::Subquery(subquery)
            if subquery.correlated && subquery.kind == SubqueryKind::Scalar);
        !wanted
    });
    if wanted { Grouping { harmless: Vec::new() }.closed(rel) } else { rel }
}

/// What has been seen on the way.
struct Grouping {
    /// Queries of WITH that cannot fail, by their ids.
    harmless: Vec<u32>,
}

/// A subquery taken apart.
struct Parts {
    /// What is equal: the function, its side in here, that of the row around it, and whether ours is the first.
    keys: Vec<(ResolvedFunction, BoundExpr, BoundExpr, bool)>,
    rows: Rel,
    aggregates: Vec<AggregateCall>,
    /// What is answered, over the row of the aggregates.
    value: BoundExpr,
}

impl Grouping {
    /// A relation of the same columns.
    fn closed(&mut self, rel: Rel) -> Rel {
        let types = rel.types();
        let rel = self.open(rel);
        if rel.width() == types.len() {
            return rel;
        }
        let exprs = types.iter().enumerate().map(|(place, ty)| BoundExpr::column(place, *ty)).collect();
        Rel::Project { input: Box::new(rel), exprs }
    }

    /// The same, with columns of joined rows behind its own.
    fn open(&mut self, rel: Rel) -> Rel {
        match rel {
            Rel::Filter { input, mut predicate } => {
                let mut input = Box::new(self.open(*input));
                if let ExprKind::And(parts) = &mut predicate.kind {
                    // What is joined does not show any longer that it was a query.
                    parts.sort_by_key(effort);
                }
                self.join(&mut input, &mut predicate);
                Rel::Filter { input, predicate }
            }
            Rel::Project { input, mut exprs } => {
                let mut input = Box::new(self.open(*input));
                exprs.iter_mut().for_each(|expr| self.join(&mut input, expr));
                Rel::Project { input, exprs }
            }
            Rel::Aggregate { input, mut group_by, sets, mut aggregates, groupings } => {
                let mut input = Box::new(self.open(*input));
                group_by.iter_mut().for_each(|expr| self.join(&mut input, expr));
                for call in &mut aggregates {
                    call.args.iter_mut().for_each(|expr| self.join(&mut input, expr));
                    call.filter.iter_mut().for_each(|expr| self.join(&mut input, expr));
                    call.order_by.iter_mut().for_each(|key| self.join(&mut input, &mut key.expr));
                }
                Rel::Aggregate { input, group_by, sets, aggregates, groupings }
            }
            Rel::Sort { input, mut keys } => {
                let mut input = Box::new(self.open(*input));
                keys.iter_mut().for_each(|key| self.join(&mut input, &mut key.expr));
                Rel::Sort { input, keys }
            }
            Rel::Join { kind, left, right, on, lateral: false } => {
                let (left, right) = (Box::new(self.closed(*left)), Box::new(self.closed(*right)));
                Rel::Join { kind, left, right, on, lateral: false }
            }
            Rel::Distinct { input, on } => Rel::Distinct { input: Box::new(self.closed(*input)), on },
            Rel::Limit { input, limit, offset, with_ties } => {
                Rel::Limit { input: Box::new(self.open(*input)), limit, offset, with_ties }
            }
            Rel::SetOp { op, all, left, right } => {
                let (left, right) = (Box::new(self.closed(*left)), Box::new(self.closed(*right)));
                Rel::SetOp { op, all, left, right }
            }
            Rel::With { mut ctes, body } => {
                for cte in &mut ctes {
                    if let CteBody::Query(query) = &mut cte.body {
                        let own = std::mem::replace(query, Rel::Unit);
                        *query = self.closed(own);
                        if self.is_harmless(query) {
                            self.harmless.push(cte.id);
                        }
                    }
                }
                Rel::With { ctes, body: Box::new(self.open(*body)) }
            }
            other => other,
        }
    }

    /// Joins what subqueries in an expression answer to the rows that it is computed of.
    fn join(&mut self, input: &mut Rel, expr: &mut BoundExpr) {
        visit_expr_mut(expr, 0, &mut |part, _| {
            let ty = part.ty;
            let ExprKind::Subquery(subquery) = &mut part.kind else { return true };
            let inner = std::mem::replace(&mut subquery.rel, Rel::Unit);
            subquery.rel = self.closed(inner);
            if let SubqueryKind::Any { left, .. } | SubqueryKind::All { left, .. } = &mut subquery.kind {
                left.iter_mut().for_each(|expr| self.join(input, expr));
            }
            let value = self.parts(subquery).filter(|parts| parts.value.ty == ty);
            if let Some(value) = value.map(|parts| joined(input, parts)) {
                *part = value;
            }
            false
        });
    }

    fn parts(&self, subquery: &Subquery) -> Option<Parts> {
        if !subquery.correlated || subquery.kind != SubqueryKind::Scalar || calls_volatile(&subquery.rel) {
            return None;
        }
        let (value, aggregate) = match &subquery.rel {
            Rel::Project { input, exprs } => (exprs.first()?.clone(), &**input),
            other => (BoundExpr::column(0, *other.types().first()?), other),
        };
        let Rel::Aggregate { input, group_by, sets, aggregates, groupings } = aggregate else { return None };
        let one_group = group_by.is_empty() && matches!(&sets[..], [only] if only.is_empty());
        if !one_group || !groupings.is_empty() || has_subquery(&value) {
            return None;
        }
        if !aggregates.iter().all(is_harmless_call) {
            return None;
        }
        let (mut keys, mut inner) = (Vec::new(), Vec::new());
        let mut rows = &**input;
        loop {
            match rows {
                Rel::Filter { input, predicate } => {
                    for part in conjuncts(predicate) {
                        if reads_outside(part) {
                            keys.push(key(part)?);
                        } else if is_harmless(part) {
                            inner.push(part.clone());
                        } else {
                            return None;
                        }
                    }
                    rows = input;
                }
                // It takes columns of joined rows away that nobody reads.
                Rel::Project { input, exprs }
                    if is_prefix(exprs) && matches!(**input, Rel::Filter { .. }) =>
                {
                    rows = input;
                }
                _ => break,
            }
        }
        if keys.is_empty() || rows.width() == 0 || is_correlated(rows) || !self.is_harmless(rows) {
            return None;
        }
        let mut rows = rows.clone();
        if !inner.is_empty() {
            let predicate = BoundExpr::new(ExprKind::And(inner), Type::BOOL);
            rows = Rel::Filter { input: Box::new(rows), predicate };
        }
        Some(Parts { keys, rows, aggregates: aggregates.clone(), value })
    }

    /// Whether all rows of a relation can be made whoever asks for them: nothing in it fails.
    fn is_harmless(&self, rel: &Rel) -> bool {
        match rel {
            Rel::Unit | Rel::Scan { lock: None, .. } | Rel::Family { lock: None, .. } => true,
            Rel::CteScan { id, .. } => self.harmless.contains(id),
            Rel::Values { rows, .. } => rows.iter().flatten().all(is_harmless),
            Rel::Filter { input, predicate } => self.is_harmless(input) && is_harmless(predicate),
            Rel::Project { input, exprs } => self.is_harmless(input) && exprs.iter().all(is_harmless),
            Rel::Join { left, right, on, lateral: false, .. } => {
                self.is_harmless(left) && self.is_harmless(right) && on.iter().all(is_harmless)
            }
            Rel::Aggregate { input, group_by, aggregates, .. } => {
                self.is_harmless(input)
                    && group_by.iter().all(is_harmless)
                    && aggregates.iter().all(is_harmless_call)
            }
            _ => false,
        }
    }
}

/// Whether a projection is nothing but the first columns of its input.
fn is_prefix(exprs: &[BoundExpr]) -> bool {
    exprs.iter().enumerate().all(|(place, expr)| {
        matches!(expr.kind, ExprKind::Column { depth: 0, index } if usize::from(index) == place)
    })
}

/// Whether there is a query in an expression.
fn has_subquery(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit_expr(expr, 0, &mut |part, _| {
        found |= matches!(part.kind, ExprKind::Subquery(_));
        !found
    });
    found
}

/// A key of the groups: something in here that is equal to something of the row around the subquery.
fn key(part: &BoundExpr) -> Option<(ResolvedFunction, BoundExpr, BoundExpr, bool)> {
    let ExprKind::Call { function, args } = &part.kind else { return None };
    let [left, right] = &args[..] else { return None };
    if native_operator(function) != Some(Operator::Eq) || !is_harmless(part) {
        return None;
    }
    let (own, outer, first) = match (depth_read(left), depth_read(right)) {
        (Some(0), Some(1)) => (left, right, true),
        (Some(1), Some(0)) => (right, left, false),
        _ => return None,
    };
    // Values that are equal have to be of one group, and found by a hash.
    let fit = has_key_form(own.ty) && fails_by_range_alone(own) && fails_by_range_alone(outer);
    fit.then(|| (*function, own.clone(), outer.clone(), first))
}

/// Whether computing an expression cannot fail, whatever the row. Numerics go far beyond what is stored.
fn is_harmless(expr: &BoundExpr) -> bool {
    match &expr.kind {
        ExprKind::And(list) | ExprKind::Or(list) | ExprKind::Coalesce(list) => list.iter().all(is_harmless),
        ExprKind::Not(inner)
        | ExprKind::IsNull(inner)
        | ExprKind::IsNotNull(inner)
        | ExprKind::Relabel(inner) => is_harmless(inner),
        ExprKind::Case { arms, otherwise } => {
            arms.iter().all(|(condition, value)| is_harmless(condition) && is_harmless(value))
                && otherwise.iter().all(|value| is_harmless(value))
        }
        ExprKind::Call { function, args } => {
            let own = native_operator(function).is_some()
                || is_numeric_arithmetic(function)
                || is_widening(function, args);
            own && args.iter().all(is_harmless) || !can_fail(expr)
        }
        _ => !can_fail(expr),
    }
}

/// Whether an aggregate of any rows in here can be computed, and neither asks for their order nor for the row
/// around the subquery.
fn is_harmless_call(call: &AggregateCall) -> bool {
    let Accumulator::Builtin(function) = &call.function else { return false };
    // Sums of others may leave their range.
    let summed = |arg: &BoundExpr| matches!(arg.ty.oid, Oid::INT2 | Oid::INT4 | Oid::INT8 | Oid::NUMERIC);
    // They cannot fail for what they are given here, and are NULL over no rows, but for `count`.
    let fit = match function.aggregate {
        Aggregate::Sum | Aggregate::Average => call.args.iter().all(summed),
        Aggregate::Least | Aggregate::Greatest => call.args.iter().all(|arg| has_key_form(arg.ty)),
        Aggregate::Count | Aggregate::All | Aggregate::Any => true,
        _ => false,
    };
    fit && call.order_by.is_empty()
        && (!call.distinct || call.args.iter().all(|arg| has_key_form(arg.ty)))
        && call.args.iter().chain(&call.filter).all(|expr| is_harmless(expr) && !reads_outside(expr))
}

/// Joins groups to the rows that ask for them: what is answered, over the joined row.
fn joined(input: &mut Rel, parts: Parts) -> BoundExpr {
    let Parts { keys, rows, aggregates, mut value } = parts;
    let (width, count) = (input.width(), keys.len());
    let mut on = Vec::with_capacity(count);
    let mut group_by = Vec::with_capacity(count);
    for (place, (function, own, mut outer, first)) in keys.into_iter().enumerate() {
        visit_expr_mut(&mut outer, 0, &mut |part, _| {
            if let ExprKind::Column { depth, .. } = &mut part.kind {
                *depth -= 1;
            }
            true
        });
        let group = BoundExpr::column(width + place, own.ty);
        let args = if first { vec![group, outer] } else { vec![outer, group] };
        on.push(BoundExpr::new(ExprKind::Call { function, args }, Type::BOOL));
        group_by.push(own);
    }
    visit_expr_mut(&mut value, 0, &mut |part, _| {
        match &mut part.kind {
            ExprKind::Column { depth: 0, index } => {
                let column = BoundExpr::column(width + count + usize::from(*index), part.ty);
                let none = aggregates
                    .get(usize::from(*index))
                    .filter(|call| is_count(call))
                    .map(|_| BoundExpr::constant(Datum::Int8(0), Type::INT8));
                // DataFusion sees no column here that must not be NULL: it would make an inner join of it,
                // and test what can fail below that, of groups that no row asks for.
                let values = std::iter::once(column).chain(none).collect();
                *part = BoundExpr::new(ExprKind::Coalesce(values), part.ty);
                return false;
            }
            ExprKind::Column { depth, .. } => *depth -= 1,
            _ => {}
        }
        true
    });
    let sets = vec![(0..count as u16).collect()];
    let groups = Rel::Aggregate { input: Box::new(rows), group_by, sets, aggregates, groupings: Vec::new() };
    *input = Rel::Join {
        kind: JoinKind::Left,
        left: Box::new(std::mem::replace(input, Rel::Unit)),
        right: Box::new(groups),
        on: Some(BoundExpr::new(ExprKind::And(on), Type::BOOL)),
        lateral: false,
    };
    value
}

fn is_count(call: &AggregateCall) -> bool {
    matches!(&call.function, Accumulator::Builtin(function) if function.is(Aggregate::Count))
}
