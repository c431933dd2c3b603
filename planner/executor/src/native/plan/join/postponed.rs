//! Columns that subqueries in FROM compute by queries of their own, for those of their rows that a join keeps.
//!
//! ```text
//! SELECT * FROM (SELECT t.*, (SELECT … WHERE … = t.id) AS dear FROM t) v, u WHERE v.id = u.a OR v.id = u.b
//! ```
//!
//! `dear` is computed above the join, as PostgreSQL does, which pulls such subqueries up: rows that go with
//! none of the others never ask for it, nor fail by it, and rows that go with many ask once. Below the join it
//! stays where a condition reads it.

use archipel_sql::error::Result;

use super::item::Item;
use super::lateral::has_effects;
use crate::bind::visit::{self, Effort};
use crate::bound::{BoundExpr, ExprKind, Rel};
use crate::native::plan::access::conjunct::Conjunct;
use crate::native::plan::compiler::Compiler;
use crate::native::plan::relation::node::Planned;
use crate::native::run::access::path::OrderKey;
use crate::native::run::operator::node::Node;
use crate::native::run::operator::postponed as run;

/// A projection whose input is joined, and that is computed of what the join comes to.
pub(super) struct Postponed<'b> {
    rel: &'b Rel,
    input: &'b Rel,
    exprs: &'b [BoundExpr],
}

/// Whether an expression asks queries about the row it is computed of, and it does not show how often.
pub(in crate::native::plan) fn asks_without_effects(expr: &BoundExpr) -> bool {
    visit::effort(expr) == Effort::Query && !visit::is_volatile(expr) && !asks_with_effects(expr)
}

/// Whether a query in an expression makes rows with effects.
fn asks_with_effects(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit::visit_expr(expr, 0, &mut |part, _| {
        found |= matches!(&part.kind, ExprKind::Subquery(subquery) if has_effects(&subquery.rel));
        !found
    });
    found
}

impl Compiler<'_> {
    /// Takes projections with queries in them off the items of a join, where neither its conditions nor the
    /// order that is wanted, nor another item reads what they compute.
    pub(super) fn postponed<'b>(
        &mut self,
        items: &mut Vec<Item<'b>>,
        conjuncts: &mut Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Vec<Postponed<'b>> {
        let mut postponed = Vec::new();
        // What is locked is kept by scans, and how often effects are seen is told by the items' order.
        let is_plain = |item: &Item<'b>| item.lateral.is_none() && !item.effects && item.usage.key.is_none();
        if items.len() < 2 || self.lock_targets.is_some() || !items.iter().all(is_plain) {
            return postponed;
        }
        let mut at = 0;
        while at < items.len() {
            let Rel::Project { input, exprs } = items[at].rel else {
                at += 1;
                continue;
            };
            if !self.may_wait(&items[at], input, exprs, conjuncts, wanted) {
                at += 1;
                continue;
            }
            let rel = items.remove(at).rel;
            let (mut below, mut asked) = (Vec::new(), Vec::new());
            self.flatten(input, &mut below, &mut asked);
            // The inner conditions are asked first.
            asked.append(conjuncts);
            *conjuncts = asked;
            items.splice(at..at, below);
            postponed.push(Postponed { rel, input, exprs });
        }
        postponed
    }

    fn may_wait(
        &mut self,
        item: &Item<'_>,
        input: &Rel,
        exprs: &[BoundExpr],
        conjuncts: &[Conjunct<'_>],
        wanted: &[OrderKey],
    ) -> bool {
        if !exprs.iter().any(|expr| visit::effort(expr) == Effort::Query)
            || exprs.iter().any(visit::is_volatile)
            || exprs.iter().any(asks_with_effects)
            || has_effects(input)
        {
            return false;
        }
        let below = self.declare(input);
        let computed: Vec<u32> = item.layout.iter().copied().filter(|slot| !below.contains(slot)).collect();
        !conjuncts.iter().any(|conjunct| conjunct.reads_any(&computed))
            && !wanted.iter().any(|key| computed.contains(&key.slot))
    }

    /// Computes what was postponed above a join, whose lines of the plan began at `since`.
    pub(super) fn compute_postponed(
        &mut self,
        since: usize,
        planned: Planned,
        postponed: Vec<Postponed<'_>>,
    ) -> Result<Planned> {
        let mut node = planned.node;
        // What stood inside of others comes first.
        for Postponed { rel, input, exprs } in postponed.into_iter().rev() {
            let below = self.declare(input);
            let layout = self.declare(rel);
            let columns = self.scoped(&below, |c| {
                c.describe_postponed(since, exprs, &below, &layout);
                c.computed(exprs, &below, &layout)
            })?;
            let mut read: Vec<u32> = exprs.iter().flat_map(|expr| self.slots_read(expr, &below)).collect();
            read.sort_unstable();
            read.dedup();
            node = Node::Postponed(run::Postponed { input: Box::new(node), columns, read });
        }
        Ok(Planned { node, ordered: planned.ordered })
    }
}
