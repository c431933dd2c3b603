//! Which table a join begins with where no condition names rows of one by a key: by how many rows the join
//! is guessed to look at from there.
//!
//! There are no statistics of values. What is known is how many rows tables have, about, and which columns
//! are keys of their own: where `a.x` is equal to one of 1,000 keys, 50,000 rows have fifty a key. How many
//! rows a condition keeps is guessed by its form alone, so another beginning than the first table that is
//! written has to promise much.

use archipel_sql::catalog::TableKind;
use archipel_sql::error::Result;
use rustc_hash::{FxHashMap, FxHashSet};

use super::item::Item;
use crate::bound::{BoundExpr, Rel};
use crate::native::plan::access::choice::Restrictions;
use crate::native::plan::access::conjunct::Conjunct;
use crate::native::plan::access::selectivity::share_kept;
use crate::native::plan::compiler::Compiler;
use crate::native::run::access::path::OrderKey;

/// A join of more tables begins with the first one: each beginning is followed to its end.
const TABLES_MAX: usize = 8;
/// What looks at no more rows than that is fast enough from anywhere.
const COST_MIN: f64 = 5_000.0;
/// How many times fewer rows another beginning has to promise.
const GAIN_MIN: f64 = 2.0;
/// What going down a tree costs, in rows that are read one after the other.
const COST_OF_LOOKUP: f64 = 3.0;
/// What each of several rows costs that are found by one key.
const COST_OF_FOUND: f64 = 2.0;
/// What a table has whose rows nobody has counted yet: looks at sizes are sampled, and what is written often
/// or much is looked at.
const ROWS_UNCOUNTED: f64 = 500.0;
/// How many values a column has of which nothing is known.
const VALUES_GUESSED: f64 = 200.0;

/// What is known of the tables of a join.
struct Known {
    /// How many rows each has.
    rows: Vec<f64>,
    /// What share of them its own conditions keep.
    kept: Vec<f64>,
    /// How many values columns have, by slots.
    values: FxHashMap<u32, f64>,
}

impl Known {
    /// Columns that are equal have as many values as the one of them that has the fewest.
    fn equate(&mut self, pairs: &[(u32, u32)]) {
        loop {
            let mut changed = false;
            for (a, b) in pairs {
                let fewest = match (self.values.get(a), self.values.get(b)) {
                    (Some(a), Some(b)) => a.min(*b),
                    (Some(known), None) | (None, Some(known)) => *known,
                    (None, None) => continue,
                };
                for slot in [a, b] {
                    changed |= self.values.insert(*slot, fewest) != Some(fewest);
                }
            }
            if !changed {
                return;
            }
        }
    }
}

impl Compiler<'_> {
    /// The item to begin with, if it is worth it to begin elsewhere than usual.
    pub(super) fn beginning<'b>(
        &mut self,
        items: &[Item<'b>],
        conjuncts: &[Conjunct<'b>],
        facts: &FxHashMap<u32, BoundExpr>,
        wanted: &[OrderKey],
    ) -> Result<Option<usize>> {
        if items.len() < 2 || items.len() > TABLES_MAX || !wanted.is_empty() {
            return Ok(None);
        }
        let Some(mut known) = self.known_of(items, conjuncts, facts)? else { return Ok(None) };
        let pairs: Vec<(u32, u32)> = conjuncts.iter().filter_map(|c| self.column_equality(c)).collect();
        known.equate(&pairs);
        // All are read from one end to the other: usually the first one is.
        let usual = self.cost_from(0, items, conjuncts, facts, &known)?;
        if usual < COST_MIN {
            return Ok(None);
        }
        let mut best: Option<(usize, f64)> = None;
        for first in 1..items.len() {
            if known.rows[first] * GAIN_MIN > usual {
                continue;
            }
            let cost = self.cost_from(first, items, conjuncts, facts, &known)?;
            if cost * GAIN_MIN <= usual && best.is_none_or(|(_, least)| cost < least) {
                best = Some((first, cost));
            }
        }
        Ok(best.map(|(first, _)| first))
    }

    /// What is known of tables none of which is reached by a key; `None` if one is, or is no plain table.
    fn known_of<'b>(
        &mut self,
        items: &[Item<'b>],
        conjuncts: &[Conjunct<'b>],
        facts: &FxHashMap<u32, BoundExpr>,
    ) -> Result<Option<Known>> {
        let mut unavailable: Vec<u32> = items.iter().flat_map(|item| item.layout.iter().copied()).collect();
        unavailable.sort_unstable();
        let mut known = Known { rows: Vec::new(), kept: Vec::new(), values: FxHashMap::default() };
        for item in items {
            let Rel::Scan { table, lock: None, .. } = item.rel else { return Ok(None) };
            let plain = table.kind == TableKind::Table && item.lateral.is_none() && !item.effects;
            let used = item.usage.key.is_some() || item.usage.lock.is_some() || item.usage.write;
            if !plain || used {
                return Ok(None);
            }
            let rows = match self.rows_of(table) {
                0 => ROWS_UNCOUNTED,
                counted => counted as f64,
            };
            let meta = self.table(table)?;
            let choice = self.choose_path(&Restrictions {
                table,
                meta: &meta,
                layout: &item.layout,
                conjuncts,
                unavailable: &unavailable,
                facts,
                wanted: &[],
                mixed: true,
            });
            // One tree from one end to the other has a score of 1.
            if choice.score > 1 {
                return Ok(None);
            }
            let indexes = meta.def.indexes.iter().filter(|index| index.unique).map(|index| &index.key);
            for key in std::iter::once(&meta.def.key).chain(indexes) {
                if let [column] = &key[..]
                    && let Some(slot) = item.layout.get(usize::from(column.column))
                {
                    known.values.insert(*slot, rows);
                }
            }
            known.rows.push(rows);
            known.kept.push(share_kept(conjuncts, &item.layout));
        }
        Ok(Some(known))
    }

    /// How many rows a join looks at, about, that begins with an item and goes on as joins do.
    fn cost_from<'b>(
        &mut self,
        first: usize,
        items: &[Item<'b>],
        conjuncts: &[Conjunct<'b>],
        facts: &FxHashMap<u32, BoundExpr>,
        known: &Known,
    ) -> Result<f64> {
        let mut open: Vec<usize> = (0..items.len()).filter(|at| *at != first).collect();
        let mut placed: FxHashSet<u32> = items[first].layout.iter().copied().collect();
        let mut waiting: Vec<Conjunct<'b>> = conjuncts.to_vec();
        let mut cost = known.rows[first];
        let mut rows = (known.rows[first] * known.kept[first]).max(1.0);
        while !open.is_empty() {
            let rest: Vec<&Item<'b>> = open.iter().map(|at| &items[*at]).collect();
            let unplaced: Vec<u32> = rest.iter().flat_map(|item| item.layout.iter().copied()).collect();
            waiting.retain(|c| c.reads_any(&unplaced));
            let next = self.best_item(&rest, &waiting, &placed, facts, &[], false)?;
            let at = open.remove(next);
            let item = &items[at];
            let others: Vec<u32> = open.iter().flat_map(|at| items[*at].layout.iter().copied()).collect();
            let now: Vec<Conjunct<'b>> = waiting.iter().filter(|c| !c.reads_any(&others)).cloned().collect();
            let now = self.without_implied(now, &item.layout);
            let mut shares: Vec<f64> = Vec::new();
            for conjunct in now.iter().filter(|c| c.slots.iter().any(|slot| placed.contains(slot))) {
                shares.extend(self.column_equality(conjunct).map(|(slot, _)| {
                    1.0 / known.values.get(&slot).copied().unwrap_or(VALUES_GUESSED).max(1.0)
                }));
            }
            // What is equal besides says less, for columns hang together.
            shares.sort_by(f64::total_cmp);
            let share: f64 =
                shares.iter().enumerate().map(|(nth, share)| share.powf(0.5f64.powi(nth as i32))).product();
            let Rel::Scan { table, .. } = item.rel else { continue };
            let meta = self.table(table)?;
            let choice = self.choose_path(&Restrictions {
                table,
                meta: &meta,
                layout: &item.layout,
                conjuncts: &now,
                unavailable: &[],
                facts,
                wanted: &[],
                mixed: true,
            });
            let by_key = choice.joined && choice.unique;
            let found = if by_key { rows } else { rows * known.rows[at] * share };
            cost += match choice.joined {
                true if by_key => rows * COST_OF_LOOKUP,
                true => rows * COST_OF_LOOKUP + found * COST_OF_FOUND,
                false => known.rows[at] + rows + found,
            };
            rows = (found * known.kept[at]).max(1.0);
            placed.extend(&item.layout);
        }
        Ok(cost)
    }
}
