//! Joins that keep their shape: LEFT and FULL ones, and inner ones that must stay where they are.

use archipel_sql::error::Result;

use super::are_equal;
use crate::bind::visit;
use crate::bound::{BoundExpr, Rel};
use crate::explain::plan::PlanNode;
use crate::native::plan::access::conjunct::Conjunct;
use crate::native::plan::compiler::{Compiler, Layout, passed_through};
use crate::native::plan::relation::node::{Planned, ScanUse};
use crate::native::run::access::path::OrderKey;
use crate::native::run::operator::join::LoopKind;
use crate::native::run::operator::node::Node;

/// A table under nothing but conditions and renamings.
struct Bare<'b> {
    rel: &'b Rel,
    layout: Layout,
}

impl Compiler<'_> {
    /// LEFT and FULL joins, and inner ones that must stay where they are.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn plan_outer<'b>(
        &mut self,
        kind: LoopKind,
        rel: &'b Rel,
        left: &'b Rel,
        right: &'b Rel,
        on: Option<&'b BoundExpr>,
        lateral: bool,
        pushed: Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        let whole = self.declare(rel);
        let (left_layout, right_layout) = (self.declare(left), self.declare(right));
        // What restricts only the preserved side may act before the join.
        let (above, below): (Vec<_>, Vec<_>) =
            pushed.into_iter().partition(|c| kind == LoopKind::Full || c.reads_any(&right_layout));
        let wanted_left: &[OrderKey] = if kind != LoopKind::Full
            && !wanted.is_empty()
            && wanted.iter().all(|key| left_layout.contains(&key.slot))
        {
            wanted
        } else {
            &[]
        };
        let line = self.open(match kind {
            LoopKind::Inner => PlanNode::new("Nested Loop"),
            LoopKind::Left => PlanNode { join: Some("Left"), ..PlanNode::new("Nested Loop") },
            LoopKind::Full => PlanNode { join: Some("Full"), ..PlanNode::new("Hash Join") },
        });
        let planned = self.plan_outer_sides(kind, left, right, on, lateral, &whole, below, wanted_left);
        self.close();
        if self.is_describing() {
            self.name_join(line, &planned);
        }
        let planned = planned?;
        // Above the join these columns may be null, whatever they had to be for a row to match.
        let (left_layout, right_layout): (&[u32], &[u32]) = match kind {
            LoopKind::Inner => (&[], &[]),
            LoopKind::Left => (&[], &right_layout),
            LoopKind::Full => (&left_layout, &right_layout),
        };
        for slot in left_layout.iter().chain(right_layout) {
            self.known.remove(slot);
            self.in_turn.remove(slot);
        }
        let node = self.filter_above(planned.node, &above)?;
        Ok(Planned { node, ordered: planned.ordered && !wanted_left.is_empty() })
    }

    #[allow(clippy::too_many_arguments)]
    fn plan_outer_sides<'b>(
        &mut self,
        kind: LoopKind,
        left: &'b Rel,
        right: &'b Rel,
        on: Option<&'b BoundExpr>,
        lateral: bool,
        whole: &Layout,
        below: Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        let (left_layout, right_layout) = (self.declare(left), self.declare(right));
        let planned = self.plan(left, below, wanted)?;
        let ordered = planned.ordered;
        let on = on.map(|on| self.conjuncts(on, whole)).unwrap_or_default();
        self.note_joined(&on);
        if lateral {
            let memo = self.memo_between(left, right);
            let right = self.scoped(&left_layout, |c| Ok(c.plan(right, Vec::new(), &[])?.node))?;
            self.describe_join(&[], &on);
            let on = self.all_of(&on)?;
            let mut node = self.nested(planned.node, right, &left_layout, &right_layout, on, kind, false);
            if let Node::Loop(join) = &mut node {
                join.memo = memo;
            }
            return Ok(Planned { node, ordered });
        }
        let volatile = on.iter().any(|c| visit::is_volatile(c.expr));
        // A bare table may be looked up by values of the left row.
        if kind != LoopKind::Full && !volatile {
            let mut conjuncts = Vec::new();
            if let Some(bare) = self.bare(right, &mut conjuncts) {
                conjuncts.extend(on.iter().cloned());
                let facts = self.constants_of(&conjuncts);
                let (inside, outside): (Vec<_>, Vec<_>) =
                    conjuncts.into_iter().partition(|c| c.reads_any(&bare.layout));
                if self.is_joined(bare.rel, &bare.layout, &inside, &facts)? {
                    self.pairs_elsewhere |= !are_equal(&inside, &bare.layout);
                    let plan = |c: &mut Self| c.plan_rel(bare.rel, inside, &facts, &[], ScanUse::default());
                    let right = self.counted(plan)?.node;
                    self.describe_join(&[], &outside);
                    let on = self.all_of(&outside)?;
                    let node = self.nested(planned.node, right, &left_layout, &right_layout, on, kind, false);
                    return Ok(Planned { node, ordered });
                }
            }
        }
        let (local, across): (Vec<_>, Vec<_>) = on.into_iter().partition(|c| {
            kind != LoopKind::Full
                && !visit::is_volatile(c.expr)
                && !c.slots.is_empty()
                && c.slots.iter().all(|slot| right_layout.contains(slot))
        });
        let (keys, rest, hashed) = self.hash_keys(across, &right_layout)?;
        let locking = self.locking_scans();
        let opened = self.open_hashed(!keys.is_empty());
        let right = self.plan(right, local, &[]);
        if opened {
            self.close();
        }
        let right = right?.node;
        self.describe_join(&hashed, &rest);
        let kept = self.with_lock_slots(&right_layout, locking);
        let on = self.all_of(&rest)?;
        let node = self.hash_or_buffer(planned.node, right, &left_layout, &kept, keys, on, kind);
        Ok(Planned { node, ordered })
    }

    /// The table below filters and renamings, the filters added to `conjuncts`.
    fn bare<'b>(&mut self, rel: &'b Rel, conjuncts: &mut Vec<Conjunct<'b>>) -> Option<Bare<'b>> {
        match rel {
            Rel::Scan { .. } | Rel::Family { .. } => {
                let layout = self.declare(rel);
                Some(Bare { rel, layout })
            }
            Rel::Filter { input, predicate } if !visit::is_volatile(predicate) => {
                let layout = self.declare(input);
                let bare = self.bare(input, conjuncts)?;
                // The inner ones are asked first.
                conjuncts.extend(self.conjuncts(predicate, &layout));
                Some(bare)
            }
            Rel::Project { input, exprs } => {
                let below = self.declare(input);
                if exprs.iter().all(|expr| passed_through(expr, &below).is_some()) {
                    self.bare(input, conjuncts)
                } else {
                    None
                }
            }
            _ => None,
        }
    }
}
