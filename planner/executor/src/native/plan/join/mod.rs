//! Joins: which table first, and how each next one is reached.
//!
//! Inner joins are flattened into items and conditions, whatever the parentheses were, and put
//! in order greedily: the item with the best path first (where there is none, the one from where
//! fewest rows are looked at, by guess: [`estimate`]), then whichever is best reached from those
//! placed. An item whose path takes values from placed rows becomes the inner side of a
//! nested loop (an index lookup join); one that merely shares an equality is hashed; the rest
//! is buffered once. Outer joins keep their shape and are items themselves. How often items with effects
//! run shows, and decides their order ([`lateral`](lateral)).

pub(crate) mod estimate;
pub(crate) mod hash_key;
pub(crate) mod item;
pub(crate) mod lateral;
pub(crate) mod outer;
pub(crate) mod postponed;

use archipel_sql::catalog::{TableKind, TableRef};
use archipel_sql::error::Result;
use archipel_sql::interrupt;
use rustc_hash::{FxHashMap, FxHashSet};

use super::compiler::{Compiler, Layout, passed_through};
use crate::bind::visit;
use crate::bound::{BoundExpr, ExprKind, JoinKind, Rel};
use crate::comparison::{Comparison, comparison};
use crate::native::plan::access::choice::Restrictions;
use crate::native::plan::access::conjunct::Conjunct;
use crate::native::plan::access::conjunct::derived::Derived;
use crate::native::plan::relation::node::{Planned, ScanUse};
use crate::native::run::access::lookup::Lookup;
use crate::native::run::access::path::{OrderKey, Tree};
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::join::{HashJoin, Loop, LoopKind};
use crate::native::run::operator::node::Node;
use item::Item;
use lateral::{apart, has_effects, read_of};

/// What looking at an item, or at a condition, counts as ([`interrupt::steps`]): each is looked at for every
/// item that is placed.
const STEPS_PER_LOOK: usize = 32;

/// What it counts for in the order of joins that rows of a system relation are looked up among kept ones.
const KEPT_SCORE: u32 = 40;

/// What it counts for that conditions lead to its rows by themselves: more than that the one placed before does.
const SOUGHT_SCORE: u32 = 45;

/// Which of some items each slot belongs to.
fn owners(items: &[&Item<'_>]) -> FxHashMap<u32, usize> {
    let slots = |(place, item): (usize, &&Item<'_>)| -> Vec<(u32, usize)> {
        item.layout.iter().map(|slot| (*slot, place)).collect()
    };
    items.iter().enumerate().flat_map(slots).collect()
}

/// The conditions on each of so many items, those across several on each of these. `owners`: which item a slot
/// belongs to.
fn told_apart<'b>(
    conjuncts: &[Conjunct<'b>],
    owners: &FxHashMap<u32, usize>,
    items: usize,
) -> Vec<Vec<Conjunct<'b>>> {
    let mut own: Vec<Vec<Conjunct<'b>>> = vec![Vec::new(); items];
    // The last one that each has been told.
    let mut told: Vec<Option<usize>> = vec![None; items];
    for (number, conjunct) in conjuncts.iter().enumerate() {
        for item in conjunct.slots.iter().filter_map(|slot| owners.get(slot)) {
            if told[*item].replace(number) != Some(number) {
                own[*item].push(conjunct.clone());
            }
        }
    }
    own
}

/// Whether conditions say that something of a row of these slots equals something of another row.
fn are_equal(conjuncts: &[Conjunct<'_>], layout: &[u32]) -> bool {
    conjuncts.iter().any(|conjunct| {
        matches!(&conjunct.expr.kind, ExprKind::Call { function, .. } if comparison(function.function) == Some(Comparison::Eq))
            && conjunct.reads_any(layout)
            && conjunct.slots.iter().any(|slot| !layout.contains(slot))
    })
}

impl Compiler<'_> {
    /// Plans a tree of filters and inner joins.
    pub fn plan_joins<'b>(
        &mut self,
        rel: &'b Rel,
        pushed: Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        let mut items = Vec::new();
        let mut conjuncts = Vec::new();
        self.flatten(rel, &mut items, &mut conjuncts);
        conjuncts.extend(pushed);
        let postponed = self.postponed(&mut items, &mut conjuncts, wanted);
        let since = self.plan.lines.len();
        let planned = self.plan_items(items, conjuncts, wanted)?;
        self.compute_postponed(since, planned, postponed)
    }

    fn plan_items<'b>(
        &mut self,
        mut items: Vec<Item<'b>>,
        conjuncts: Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        let facts = self.constants_of(&conjuncts);
        if items.len() == 1
            && let Some(item) = items.pop()
        {
            return self.plan_item(&item, conjuncts, &facts, wanted);
        }
        self.note_joined(&conjuncts);
        if self.is_describing() {
            // Join by join.
            return self.order_joins(items, conjuncts, &facts, wanted);
        }
        let line = self.open("Nested Loop");
        let planned = self.order_joins(items, conjuncts, &facts, wanted);
        self.close();
        self.name_join(line, &planned);
        planned
    }

    /// Says of a join that was told as a loop what it has become.
    fn name_join(&mut self, line: usize, planned: &Result<Planned>) {
        if let Ok(Planned { node: Node::Hash(_), .. }) = planned
            && let Some((_, node)) = self.plan.lines.get_mut(line)
        {
            node.what = "Hash Join";
        }
    }

    fn order_joins<'b>(
        &mut self,
        items: Vec<Item<'b>>,
        mut conjuncts: Vec<Conjunct<'b>>,
        facts: &FxHashMap<u32, BoundExpr>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        if !items.iter().any(|item| item.effects) {
            let tables: Vec<&[u32]> = items.iter().map(|item| &item.layout[..]).collect();
            let derived = self.derived_equalities(&conjuncts, facts, &tables);
            let mut all: Vec<Conjunct<'_>> = conjuncts;
            all.extend(derived.iter().map(Derived::conjunct));
            return self.order_group(items, all, facts, wanted);
        }
        let mut placed: Option<Planned> = None;
        let start = self.plan.lines.len();
        let mut groups = apart(items, &conjuncts).into_iter();
        while let Some(group) = groups.next() {
            let rest = groups.as_slice().iter().flatten();
            let unplaced: Vec<u32> = rest.flat_map(|item| item.layout.iter().copied()).collect();
            let (now, later): (Vec<_>, Vec<_>) = conjuncts.into_iter().partition(|c| !c.reads_any(&unplaced));
            conjuncts = later;
            placed = Some(match placed {
                None => self.order_group(group, now, facts, wanted)?,
                Some(left) => self.join_group(start, left, group, now, facts)?,
            });
        }
        Ok(placed.unwrap_or(Planned { node: Node::Unit, ordered: false }))
    }

    /// Joins one more group of items to what is placed: what they come to is made once.
    fn join_group<'b>(
        &mut self,
        start: usize,
        left: Planned,
        group: Vec<Item<'b>>,
        conjuncts: Vec<Conjunct<'b>>,
        facts: &FxHashMap<u32, BoundExpr>,
    ) -> Result<Planned> {
        let layout: Vec<u32> = group.iter().flat_map(|item| item.layout.iter().copied()).collect();
        let mut node = self.join_once(start, left.node, &layout, conjuncts, |c, local| {
            c.order_group(group, local, facts, &[])
        })?;
        // Where there is nothing on the right side, the effects of the left one are none's.
        match &mut node {
            Node::Loop(join) => join.right_first = true,
            Node::Hash(join) => join.right_first = true,
            _ => {}
        }
        Ok(Planned { node: self.watched(start, node), ordered: left.ordered })
    }

    fn order_group<'b>(
        &mut self,
        mut items: Vec<Item<'b>>,
        mut conjuncts: Vec<Conjunct<'b>>,
        facts: &FxHashMap<u32, BoundExpr>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        let mut placed: Option<Planned> = None;
        let start = self.plan.lines.len();
        let mut placed_slots: FxHashSet<u32> = FxHashSet::default();
        // Where rows of the items without effects are counted, and the slots of those placed since.
        let mut counted: Option<(u32, Vec<u32>)> = None;
        let mut done: Vec<Item<'b>> = Vec::new();
        let mut beginning = self.beginning(&items, &conjuncts, facts, wanted)?;
        while !items.is_empty() {
            let next = match beginning.take() {
                Some(first) => first,
                None => {
                    let open: Vec<&Item<'b>> = items.iter().collect();
                    self.best_item(&open, &conjuncts, &placed_slots, facts, wanted, placed.is_none())?
                }
            };
            let item = items.remove(next);
            let unplaced: FxHashSet<u32> =
                items.iter().flat_map(|item| item.layout.iter().copied()).collect();
            let waits = |c: &Conjunct<'_>| c.slots.iter().any(|slot| unplaced.contains(slot));
            let (later, now): (Vec<_>, Vec<_>) = conjuncts.into_iter().partition(waits);
            conjuncts = later;
            let now = self.without_implied(now, &item.layout);
            placed = Some(match placed {
                None => {
                    let wanted: &[OrderKey] =
                        if wanted.iter().all(|key| item.layout.contains(&key.slot)) { wanted } else { &[] };
                    let planned = self.plan_item(&item, now, facts, wanted)?;
                    Planned { node: planned.node, ordered: planned.ordered && !wanted.is_empty() }
                }
                Some(Planned { mut node, ordered }) => {
                    let reads =
                        |item: &Item<'_>, slots: &[u32]| item.read.iter().any(|slot| slots.contains(slot));
                    if item.effects
                        && counted.is_none()
                        && items.iter().any(|other| other.effects && !reads(other, &item.layout))
                    {
                        let slot = self.slot();
                        self.mark(slot);
                        node = Node::Count { input: Box::new(node), slot };
                        counted = Some((slot, Vec::new()));
                    }
                    let known =
                        counted.as_ref().filter(|(_, since)| !since.is_empty() && !reads(&item, since));
                    let count = known.filter(|_| item.effects).map(|(count, _)| *count);
                    let memo = self.memo_above(&done, &item);
                    let node = match memo.is_empty() && count.is_none() {
                        true => self.join_item(start, node, &item, now, facts)?,
                        false => self.keep_item(start, node, &item, now, facts, (count, memo))?,
                    };
                    if let Some((_, since)) = &mut counted {
                        since.extend(&item.layout);
                    }
                    Planned { node, ordered }
                }
            });
            placed_slots.extend(&item.layout);
            done.push(item);
        }
        // A FROM clause without items does not exist, but an answer is cheap.
        let planned = placed.unwrap_or(Planned { node: Node::Unit, ordered: false });
        let node = self.filter_above(planned.node, &conjuncts)?;
        Ok(Planned { node, ordered: planned.ordered })
    }

    /// Joins a lateral item whose rows are good until another row is counted, or for values that it reads.
    fn keep_item<'b>(
        &mut self,
        start: usize,
        left: Node,
        item: &Item<'b>,
        conjuncts: Vec<Conjunct<'b>>,
        facts: &FxHashMap<u32, BoundExpr>,
        (count, memo): (Option<u32>, Vec<u32>),
    ) -> Result<Node> {
        let (local, rest): (Vec<_>, Vec<_>) =
            conjuncts.into_iter().partition(|c| c.slots.iter().all(|slot| item.layout.contains(slot)));
        let locking = self.locking_scans();
        let right = self.plan_item(item, local, facts, &[])?.node;
        self.wrap_in_join(start, &[], &rest);
        let kept = self.with_lock_slots(&item.layout, locking);
        let on = self.all_of(&rest)?;
        let mut node = self.nested(left, right, &[], &kept, on, LoopKind::Inner, false);
        if let Node::Loop(join) = &mut node {
            join.kept = count.filter(|_| memo.is_empty());
            join.memo = memo;
        }
        Ok(self.watched(start, node))
    }

    /// Takes inner joins, filters and mere renamings apart. Of conditions that do alike the inner ones are asked
    /// first: those of policies, and of views that are barriers, must be.
    fn flatten<'b>(&mut self, rel: &'b Rel, items: &mut Vec<Item<'b>>, conjuncts: &mut Vec<Conjunct<'b>>) {
        match rel {
            Rel::Filter { input, predicate } if !visit::is_volatile(predicate) => {
                let layout = self.declare(input);
                self.flatten(input, items, conjuncts);
                conjuncts.extend(self.conjuncts(predicate, &layout));
            }
            Rel::Project { input, exprs } => {
                let below = self.declare(input);
                if exprs.iter().all(|expr| passed_through(expr, &below).is_some()) {
                    self.flatten(input, items, conjuncts);
                } else {
                    let layout = self.declare(rel);
                    items.push(Item::new(rel, layout));
                }
            }
            Rel::Join { kind: JoinKind::Inner, left, right, on, lateral }
                if !on.as_ref().is_some_and(visit::is_volatile) =>
            {
                let whole = self.declare(rel);
                self.flatten(left, items, conjuncts);
                if *lateral {
                    let lateral = self.declare(left);
                    let layout = self.declare(right);
                    let (read, effects) = (read_of(right, &lateral), has_effects(right));
                    let lateral = Some(lateral);
                    items.push(Item { lateral, read, effects, ..Item::new(right, layout) });
                } else {
                    self.flatten(right, items, conjuncts);
                }
                if let Some(on) = on {
                    conjuncts.extend(self.conjuncts(on, &whole));
                }
            }
            _ => {
                let layout = self.declare(rel);
                items.push(Item::new(rel, layout));
            }
        }
    }

    /// Plans the target of UPDATE or DELETE joined with its FROM items. The target's scan keeps
    /// the key of its current row.
    pub fn target_joins<'b>(
        &mut self,
        table: &TableRef,
        scan: &'b Rel,
        from: Option<&'b Rel>,
        conjuncts: Vec<Conjunct<'b>>,
        key: usize,
    ) -> Result<Node> {
        let usage = ScanUse { key: Some(key), write: true, ..ScanUse::default() };
        let layout = self.declare(scan);
        let (volatile, own): (Vec<_>, Vec<_>) =
            conjuncts.into_iter().partition(|c| visit::is_volatile(c.expr));
        let node = match from {
            None => {
                let facts = self.constants_of(&own);
                // As it is read: with the numbers of its rows, or without.
                let (read, alias) = match scan {
                    Rel::Scan { table, alias, .. } => (table, alias.clone()),
                    _ => (table, None),
                };
                self.plan.alias = alias;
                self.counted(|c| c.plan_scan(read, &layout, &own, &facts, &[], usage))?.node
            }
            Some(from) => {
                let mut items = vec![Item { usage, ..Item::new(scan, layout) }];
                let mut conjuncts = Vec::new();
                self.flatten(from, &mut items, &mut conjuncts);
                conjuncts.extend(own);
                self.note_joined(&conjuncts);
                let facts = self.constants_of(&conjuncts);
                self.order_joins(items, conjuncts, &facts, &[])?.node
            }
        };
        self.filter_above(node, &volatile)
    }

    /// The item to place next.
    fn best_item(
        &mut self,
        items: &[&Item<'_>],
        conjuncts: &[Conjunct<'_>],
        placed: &FxHashSet<u32>,
        facts: &FxHashMap<u32, BoundExpr>,
        wanted: &[OrderKey],
        first: bool,
    ) -> Result<usize> {
        let mut best = (0, 0);
        let owners = owners(items);
        // Those of an item itself do not count for it.
        let mut unavailable: Vec<u32> = owners.keys().copied().collect();
        unavailable.sort_unstable();
        let mut connected = vec![false; items.len()];
        for conjunct in conjuncts.iter().filter(|_| !first) {
            let mut read = conjunct.slots.iter().filter_map(|slot| owners.get(slot));
            if let Some(own) = read.next()
                && read.all(|other| other == own)
                && conjunct.slots.iter().any(|slot| placed.contains(slot))
            {
                connected[*own] = true;
            }
        }
        let own = told_apart(conjuncts, &owners, items.len());
        for (position, item) in items.iter().enumerate() {
            let conjuncts = &own[position][..];
            interrupt::steps(STEPS_PER_LOOK * (1 + conjuncts.len()))?;
            if let Some(left) = &item.lateral
                && left.iter().any(|slot| owners.get(slot).is_some_and(|owner| *owner != position))
            {
                continue;
            }
            let mut score = match item.rel {
                Rel::Scan { table, lock, .. } if table.kind != TableKind::System => {
                    let meta = self.table(table)?;
                    let wanted: &[OrderKey] = if first { wanted } else { &[] };
                    let choice = self.choose_path(&Restrictions {
                        table,
                        meta: &meta,
                        layout: &item.layout,
                        conjuncts,
                        unavailable: &unavailable,
                        facts,
                        wanted,
                        mixed: lock.is_none() && item.usage.lock.is_none(),
                    });
                    choice.score + if choice.joined { 2000 } else { 0 }
                }
                Rel::Family { family, .. } => {
                    let (score, joined) =
                        self.family_score(family, &item.layout, conjuncts, &unavailable, facts)?;
                    score + if joined { 2000 } else { 0 }
                }
                Rel::Scan { table, .. }
                    if self.is_kept_by_value(table, &item.layout, conjuncts, &unavailable) =>
                {
                    KEPT_SCORE
                }
                Rel::Scan { table, .. } if self.is_sought(table, &item.layout, conjuncts) => SOUGHT_SCORE,
                // Known to be small.
                Rel::Values { .. } | Rel::Unit | Rel::Function { .. } => 18,
                _ => 6,
            };
            if connected[position] {
                score += 500;
            }
            if item.effects {
                score = 0;
            }
            if score + 1 > best.1 {
                best = (position, score + 1);
            }
        }
        Ok(best.0)
    }

    fn plan_item<'b>(
        &mut self,
        item: &Item<'b>,
        conjuncts: Vec<Conjunct<'b>>,
        facts: &FxHashMap<u32, BoundExpr>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        self.counted(|c| match item.lateral.clone() {
            Some(left) => c.scoped(&left, |c| c.plan_rel(item.rel, conjuncts, facts, wanted, item.usage)),
            None => c.plan_rel(item.rel, conjuncts, facts, wanted, item.usage),
        })
    }

    fn plan_rel<'b>(
        &mut self,
        rel: &'b Rel,
        conjuncts: Vec<Conjunct<'b>>,
        facts: &FxHashMap<u32, BoundExpr>,
        wanted: &[OrderKey],
        usage: ScanUse,
    ) -> Result<Planned> {
        match rel {
            Rel::Scan { table, lock, alias } => {
                let layout = self.declare(rel);
                let usage = ScanUse { lock: *lock, ..usage };
                self.plan.alias = alias.clone();
                self.plan_scan(table, &layout, &conjuncts, facts, wanted, usage)
            }
            Rel::Family { family, lock, alias } => {
                let layout = self.declare(rel);
                let usage = ScanUse { lock: *lock, ..usage };
                self.plan.alias = alias.clone();
                self.plan_family(family, &layout, &conjuncts, facts, wanted, usage)
            }
            Rel::Join { kind: JoinKind::Inner, left, right, on, lateral } => {
                // An inner join with a volatile condition: in place, without reordering.
                self.plan_outer(LoopKind::Inner, rel, left, right, on.as_ref(), *lateral, conjuncts, wanted)
            }
            Rel::Join { kind, left, right, on, lateral } => {
                let (kind, left, right) = match kind {
                    JoinKind::Right => (LoopKind::Left, right, left),
                    JoinKind::Full => (LoopKind::Full, left, right),
                    _ => (LoopKind::Left, left, right),
                };
                self.plan_outer(kind, rel, left, right, on.as_ref(), *lateral, conjuncts, wanted)
            }
            _ => self.plan(rel, conjuncts, wanted),
        }
    }

    /// Whether the best path to a table takes values from rows read before.
    fn is_joined(
        &mut self,
        rel: &Rel,
        layout: &Layout,
        conjuncts: &[Conjunct<'_>],
        facts: &FxHashMap<u32, BoundExpr>,
    ) -> Result<bool> {
        match rel {
            Rel::Scan { table, lock, .. } if table.kind != TableKind::System => {
                let meta = self.table(table)?;
                let on = Restrictions {
                    table,
                    meta: &meta,
                    layout,
                    conjuncts,
                    unavailable: &[],
                    facts,
                    wanted: &[],
                    mixed: lock.is_none(),
                };
                Ok(self.choose_path(&on).joined)
            }
            Rel::Scan { table, .. } => Ok(self.is_kept_by_value(table, layout, conjuncts, &[])),
            Rel::Family { family, .. } => Ok(self.family_score(family, layout, conjuncts, &[], facts)?.1),
            _ => Ok(false),
        }
    }

    /// Joins one more item to what is placed.
    fn join_item<'b>(
        &mut self,
        start: usize,
        left: Node,
        item: &Item<'b>,
        conjuncts: Vec<Conjunct<'b>>,
        facts: &FxHashMap<u32, BoundExpr>,
    ) -> Result<Node> {
        let looked_up =
            item.lateral.is_none() && self.is_joined(item.rel, &item.layout, &conjuncts, facts)?;
        self.pairs_elsewhere |= looked_up && !are_equal(&conjuncts, &item.layout);
        let joined = looked_up || item.lateral.is_some();
        // The key of an UPDATE's target stands beside its slots and is not kept in buffers.
        if joined || item.usage.key.is_some() {
            let right = self.plan_item(item, conjuncts, facts, &[])?.node;
            self.wrap_in_join(start, &[], &[]);
            let node = self.nested(left, right, &[], &item.layout, None, LoopKind::Inner, false);
            return Ok(self.watched(start, node));
        }
        self.join_once(start, left, &item.layout, conjuncts, |c, local| c.plan_item(item, local, facts, &[]))
    }

    /// Joins what `right` plans by the conditions on it alone, whose rows are made once: by hashes if
    /// conditions across allow that. `layout`: its slots.
    fn join_once<'b>(
        &mut self,
        start: usize,
        left: Node,
        layout: &[u32],
        conjuncts: Vec<Conjunct<'b>>,
        right: impl FnOnce(&mut Self, Vec<Conjunct<'b>>) -> Result<Planned>,
    ) -> Result<Node> {
        let (local, across): (Vec<_>, Vec<_>) =
            conjuncts.into_iter().partition(|c| c.slots.iter().all(|slot| layout.contains(slot)));
        let (keys, rest, hashed) = self.hash_keys(across, layout)?;
        let locking = self.locking_scans();
        let opened = self.open_hashed(!keys.is_empty());
        let right = right(self, local);
        if opened {
            self.close();
        }
        let right = right?.node;
        self.wrap_in_join(start, &hashed, &rest);
        let kept = self.with_lock_slots(layout, locking);
        let on = self.all_of(&rest)?;
        let node = self.hash_or_buffer(left, right, &[], &kept, keys, on, LoopKind::Inner);
        Ok(self.watched(start, node))
    }

    #[allow(clippy::too_many_arguments)]
    fn nested(
        &mut self,
        mut left: Node,
        mut right: Node,
        left_slots: &[u32],
        right_slots: &[u32],
        on: Option<CompiledPredicate>,
        kind: LoopKind,
        buffered: bool,
    ) -> Node {
        if let (Node::Scan(left), Node::Scan(right), false) = (&mut left, &mut right, buffered) {
            // What a condition throws away is not looked up either; entries of an index have no columns.
            if left.filter.is_none() && matches!(left.path.tree, Tree::Storage) {
                left.lookup = Lookup::of(right, || self.lookup_place());
            }
        }
        let right_slots = self.pruned_slots(right_slots);
        let left_slots = self.pruned_slots(left_slots);
        Node::Loop(Loop {
            left: Box::new(left),
            right: Box::new(right),
            on,
            kind,
            right_slots,
            left_slots,
            buffered,
            right_first: false,
            kept: None,
            memo: Vec::new(),
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn hash_or_buffer(
        &mut self,
        left: Node,
        right: Node,
        left_slots: &[u32],
        right_slots: &[u32],
        keys: Vec<(Source, Source)>,
        on: Option<CompiledPredicate>,
        kind: LoopKind,
    ) -> Node {
        if keys.is_empty() {
            return self.nested(left, right, left_slots, right_slots, on, kind, true);
        }
        let (left_keys, right_keys) = keys.into_iter().unzip();
        let right_slots = self.pruned_slots(right_slots);
        let left_slots = self.pruned_slots(left_slots);
        Node::Hash(HashJoin {
            left: Box::new(left),
            right: Box::new(right),
            left_keys,
            right_keys,
            on,
            kind,
            right_slots,
            left_slots,
            right_first: false,
        })
    }
}
