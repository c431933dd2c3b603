//! FROM entries with effects that read the rows of entries before them: functions that write or draw
//! numbers, and queries with such calls. How often their rows are made shows.
//!
//! PostgreSQL makes them anew when a row that they read from moves, and its plans keep entries that have
//! nothing to do with such a row out of the way:
//!
//! ```text
//! FROM q, o, LATERAL f(q.id)                        f is called for each row of q
//! FROM q JOIN o ON o.id = q.id, LATERAL f(q.id)     … for each row of the join
//! FROM q, LATERAL f(q.id), LATERAL g(q.id)          f and g are called for each row of q
//! ```
//!
//! So entries that no condition connects are joined apart ([`apart`]), and what they come to is made once.
//! Among those that are connected, the ones with effects come last; the rows of each are kept until there
//! is another row of the entries without effects.
//!
//! An outer join stays where it is written, and repeats the rows of one of its sides where nothing connects
//! the sides ([`Compiler::parts_of`]). Above it PostgreSQL keeps what it made by the values that were read
//! (Memoize), and so do we.

use super::item::Item;
use crate::bind::visit;
use crate::bound::{CteBody, ExprKind, Rel, SetCall, SetItem};
use crate::native::plan::access::conjunct::Conjunct;
use crate::native::plan::compiler::{Compiler, passed_through};
use crate::native::plan::walk;

/// Whether making a relation's rows has effects, or may give others each time.
pub(super) fn has_effects(rel: &Rel) -> bool {
    let mut found = crate::bind::visit::calls_volatile(rel);
    walk::visit_all_relations(rel, &mut |part| found |= makes_volatile_rows(part));
    found
}

fn makes_volatile_rows(rel: &Rel) -> bool {
    let volatile =
        |call: &SetCall| matches!(call, SetCall::Routine { routine, .. } if routine.volatility == 'v');
    match rel {
        Rel::Function { call, .. } => volatile(call),
        Rel::ProjectSet { items, .. } => {
            items.iter().any(|item| matches!(item, SetItem::Set { call, .. } if volatile(call)))
        }
        Rel::With { ctes, .. } => ctes.iter().any(|cte| matches!(cte.body, CteBody::Modify(_))),
        _ => false,
    }
}

/// What the right side of a lateral join reads of the left row, whose slots are given.
pub(super) fn read_of(rel: &Rel, left: &[u32]) -> Vec<u32> {
    let mut read = Vec::new();
    walk::visit_rel(rel, 1, &mut |expr, nesting| {
        if let ExprKind::Column { depth, index } = expr.kind
            && depth == nesting
            && let Some(slot) = left.get(usize::from(index))
            && !read.contains(slot)
        {
            read.push(*slot);
        }
    });
    read
}

impl Compiler<'_> {
    /// The values that an item reads, if what is placed before it repeats the rows that they are from.
    pub(super) fn memo_above(&mut self, placed: &[Item<'_>], item: &Item<'_>) -> Vec<u32> {
        let reads = |other: &Item<'_>| item.read.iter().any(|slot| other.layout.contains(slot));
        let repeated = item.effects
            && !placed.iter().any(|other| other.effects && reads(other))
            && placed
                .iter()
                .any(|other| !other.effects && is_repeated(&self.parts_of(other.rel), &item.read));
        if repeated { item.read.clone() } else { Vec::new() }
    }

    /// The same of the right side of a lateral join.
    pub(super) fn memo_between(&mut self, left: &Rel, right: &Rel) -> Vec<u32> {
        let read = read_of(right, &self.declare(left));
        let repeated = has_effects(right) && is_repeated(&self.parts_of(left), &read);
        if repeated { read } else { Vec::new() }
    }

    /// The slots of a relation's rows in parts that nothing within it connects: it has a row for each of the
    /// combinations of theirs. What sorts, cuts off or locks rows is a query that PostgreSQL plans by itself,
    /// and looks for nothing to keep above it.
    pub(super) fn parts_of(&mut self, rel: &Rel) -> Vec<Vec<u32>> {
        match rel {
            Rel::Filter { input, predicate } => {
                let mut parts = self.parts_of(input);
                let layout = self.declare(input);
                for conjunct in self.conjuncts(predicate, &layout) {
                    connect(&mut parts, &conjunct.slots);
                }
                parts
            }
            Rel::Project { input, exprs } => {
                let below = self.declare(input);
                let layout = self.declare(rel);
                if exprs.iter().any(visit::is_volatile) {
                    return vec![layout];
                }
                let mut parts = self.parts_of(input);
                for (expr, slot) in exprs.iter().zip(layout) {
                    if passed_through(expr, &below).is_none() {
                        let read = self.slots_read(expr, &below);
                        connect(&mut parts, &read);
                        if let Some(part) =
                            parts.iter_mut().find(|part| part.iter().any(|s| read.contains(s)))
                        {
                            part.push(slot);
                        }
                    }
                }
                parts
            }
            Rel::Join { left, right, on, lateral, .. } => {
                let (before, after) = (self.declare(left), self.declare(right));
                let mut parts = self.parts_of(left);
                parts.extend(self.parts_of(right));
                if let Some(on) = on {
                    let layout = self.declare(rel);
                    for conjunct in self.conjuncts(on, &layout) {
                        connect(&mut parts, &conjunct.slots);
                    }
                }
                if *lateral {
                    let mut read = read_of(right, &before);
                    read.extend(after);
                    connect(&mut parts, &read);
                }
                parts
            }
            _ => vec![self.declare(rel)],
        }
    }
}

/// Makes one part of all that have some of these slots.
fn connect(parts: &mut Vec<Vec<u32>>, slots: &[u32]) {
    let (met, mut apart): (Vec<Vec<u32>>, Vec<Vec<u32>>) =
        std::mem::take(parts).into_iter().partition(|part| part.iter().any(|slot| slots.contains(slot)));
    if !met.is_empty() {
        apart.push(met.concat());
    }
    *parts = apart;
}

/// Whether a row of what is read comes again for each of the rows of a part that is not.
fn is_repeated(parts: &[Vec<u32>], read: &[u32]) -> bool {
    parts.len() > 1 && parts.iter().any(|part| !part.iter().any(|slot| read.contains(slot)))
}

/// The entries in groups that nothing connects: no condition, but for those about rows made with effects,
/// and no entry that reads another. The first is the one whose rows a statement changes, or else one with
/// effects.
pub(super) fn apart<'b>(items: Vec<Item<'b>>, conjuncts: &[Conjunct<'b>]) -> Vec<Vec<Item<'b>>> {
    let made: Vec<u32> =
        items.iter().filter(|item| item.effects).flat_map(|item| item.layout.iter().copied()).collect();
    let between = conjuncts.iter().filter(|conjunct| !conjunct.reads_any(&made));
    let lateral = items.iter().map(|item| {
        let slots: Vec<u32> = item.read.iter().chain(&item.layout).copied().collect();
        slots
    });
    let links: Vec<Vec<u32>> = between.map(|conjunct| conjunct.slots.to_vec()).chain(lateral).collect();
    // Which group an item is in: that of the first item it is connected with.
    let mut groups: Vec<usize> = (0..items.len()).collect();
    for link in &links {
        let linked = |item: &Item<'_>| item.layout.iter().any(|slot| link.contains(slot));
        let mut met: Vec<usize> = Vec::new();
        for (item, group) in items.iter().zip(&groups) {
            if linked(item) {
                met.push(*group);
            }
        }
        let Some(first) = met.iter().min().copied() else { continue };
        for group in &mut groups {
            if met.contains(group) {
                *group = first;
            }
        }
    }
    let mut parts: Vec<Vec<Item<'b>>> = Vec::new();
    parts.resize_with(items.len(), Vec::new);
    for (item, group) in items.into_iter().zip(groups) {
        parts[group].push(item);
    }
    parts.retain(|part| !part.is_empty());
    parts.sort_by_key(|part| {
        let changed = part.iter().any(|item| item.usage.key.is_some());
        let effects = part.iter().any(|item| item.effects);
        (!changed, !effects)
    });
    parts
}
