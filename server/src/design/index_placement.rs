//! Advice on where the entries of indexes should be, by what they were used for of late.
//!
//! ```text
//! placement   what it has lost, in claims of partitions
//! global      one each write, one each use that names the distribution column
//! prefixed    each use that does not name it reads the whole table: its partitions, or its pages if more
//! ```
//!
//! An index is better off elsewhere if it would have lost half as much at the most, and the difference is
//! [`CLAIMS_MIN`] claims, and one for each of its entries, which have to be made anew. No index is told to be
//! prefixed by which a deployed routine, or a foreign key, looks for something without that column: it would
//! read the whole table, however seldom that is.
//!
//! It stays at advice. Taking it unasked would have to be kept in the catalog beside what was said, and the
//! index made anew in slices as CREATE INDEX makes it.

use std::collections::BTreeMap;

use archipel_engine::PAGE_ROWS_MAX;
use archipel_engine::id::TreeId;
use archipel_engine::index_uses::UseCounts;
use archipel_procedures::advice::Sizes;
use archipel_procedures::evidence::Evidence;
use archipel_sql::catalog::names::quote_qualified;
use archipel_sql::catalog::{Catalog, Distribution, Index, PlacementOption, Relation, Table};
use archipel_sql::types::Oid;
use rustc_hash::FxHashMap;

use super::recent_uses::{Recent, Seen};
use crate::database::Database;
use crate::server::Server;

/// What a change has to save at the least, beside a claim for each entry.
const CLAIMS_MIN: u64 = 10_000;

/// An index that should be elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlacementAdvice {
    /// Its table, and of an index of a partitioned table that.
    pub table: Oid,
    pub schema: String,
    /// The distribution column of the rows.
    pub column: u16,
    pub reason: String,
    pub statement: String,
    /// Claims that it would save in an hour.
    pub saved_per_hour: u64,
}

/// What the indexes of a database were used for of late, by their trees.
pub(crate) fn recent_uses(server: &Server, database: &Database) -> FxHashMap<TreeId, Recent> {
    // Not as a session sees it: what is not there is forgotten.
    let catalog = database.catalog.current().catalog.clone();
    let tables = catalog.tables().filter(|table| table.is_stored() && !table.indexes.is_empty());
    let metas = tables.filter_map(|table| server.engine.table(TreeId(table.tree)));
    let mut seen: Vec<(TreeId, Seen)> = Vec::new();
    for meta in metas {
        seen.extend(meta.indexes.iter().map(|index| (index.def.id, Seen::of(&index.uses))));
    }
    database.recent_uses.look(crate::clock::now(), seen.into_iter())
}

/// What an index, or all of those that are part of one, has lost and would have lost elsewhere.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    counts: UseCounts,
    /// Claims.
    here: u64,
    elsewhere: u64,
    here_per_hour: u64,
    elsewhere_per_hour: u64,
    entries: u64,
    ruled_out: bool,
}

impl Lost {
    /// By the uses of one index whose table is read whole in so many pages.
    fn of(recent: Recent, pages: u64, entries: u64, to: PlacementOption) -> Lost {
        let counts = recent.counts;
        let global = counts.writes + counts.bound;
        let prefixed = counts.unbound.saturating_mul(pages);
        let (here, elsewhere) = match to {
            PlacementOption::Prefixed => (global, prefixed),
            PlacementOption::Global => (prefixed, global),
        };
        Lost {
            counts,
            here,
            elsewhere,
            here_per_hour: recent.per_hour(here),
            elsewhere_per_hour: recent.per_hour(elsewhere),
            entries,
            ruled_out: false,
        }
    }

    fn add(&mut self, other: Lost) {
        self.counts = self.counts.plus(other.counts);
        self.here = self.here.saturating_add(other.here);
        self.elsewhere = self.elsewhere.saturating_add(other.elsewhere);
        self.here_per_hour += other.here_per_hour;
        self.elsewhere_per_hour += other.elsewhere_per_hour;
        self.entries += other.entries;
        self.ruled_out |= other.ruled_out;
    }

    fn is_too_much(&self) -> bool {
        let saved = self.here.saturating_sub(self.elsewhere);
        !self.ruled_out && self.elsewhere <= self.here / 2 && saved >= CLAIMS_MIN + self.entries
    }
}

/// The indexes of a catalog that should be elsewhere, in the order of their numbers.
pub(super) fn placement_advice(
    catalog: &Catalog,
    evidence: &[Evidence],
    recent: &FxHashMap<TreeId, Recent>,
    sizes: &impl Sizes,
) -> Vec<PlacementAdvice> {
    let mut lost: BTreeMap<(Oid, bool), (Relation, u16, PlacementOption, Lost)> = BTreeMap::new();
    let tables = catalog.tables().filter(|table| table.is_stored() && table.schema != "pg_catalog");
    for table in tables {
        let Distribution::Column { column, group } = table.distribution else { continue };
        let rows = sizes.rows(table);
        let pages = (sizes.partitions(group) as u64).max(rows.div_ceil(PAGE_ROWS_MAX as u64)).max(1);
        for (place, index) in table.indexes.iter().enumerate() {
            let uses = recent.get(&TreeId(index.tree)).filter(|recent| recent.counts != UseCounts::default());
            let Some((to, uses)) = table.other_placement(index).zip(uses) else { continue };
            let ruled_out = to == PlacementOption::Prefixed && asks_without(table, index, column, evidence);
            let own = Lost { ruled_out, ..Lost::of(*uses, pages, rows, to) };
            let whole = whole_of(catalog, Relation::Index(table.clone(), place));
            let key = (whole.oid(), to == PlacementOption::Global);
            lost.entry(key).or_insert((whole, column, to, Lost::default())).3.add(own);
        }
    }
    let told = lost.into_values().filter(|(.., lost)| lost.is_too_much());
    told.filter_map(|(index, column, to, lost)| advice(&index, column, to, &lost)).collect()
}

/// The index of a partitioned table that this is part of; itself, if of none.
fn whole_of(catalog: &Catalog, index: Relation) -> Relation {
    let Relation::Index(table, place) = &index else { return index };
    let above = table.indexes[*place].parent.and_then(|parent| catalog.relation_by_oid(parent));
    above.map_or_else(|| index.clone(), |above| whole_of(catalog, above))
}

/// Whether a deployed routine or a foreign key looks for something by an index without the distribution column.
fn asks_without(table: &Table, index: &Index, column: u16, evidence: &[Evidence]) -> bool {
    let by_routine = evidence.iter().any(|shown| shown.unbound_indexes.contains(&TreeId(index.tree)));
    let first = index.columns.first().filter(|_| index.expression(0).is_none());
    by_routine
        || table.foreign_keys.iter().any(|key| {
            first.is_some_and(|first| key.columns.contains(&first.column)) && !key.columns.contains(&column)
        })
}

fn advice(index: &Relation, column: u16, to: PlacementOption, lost: &Lost) -> Option<PlacementAdvice> {
    let Relation::Index(table, _) = index else { return None };
    let UseCounts { writes, bound, unbound, .. } = lost.counts;
    let name = &table.columns.get(usize::from(column))?.name;
    let (here, elsewhere) = (lost.here, lost.elsewhere);
    let why = match to {
        PlacementOption::Prefixed => format!(
            "by itself it has cost a partition more in each of {writes} writes and {bound} uses that name \"{name}\": \
             {here} claims of late; {unbound} uses that do not name it would have cost {elsewhere} beside the rows"
        ),
        PlacementOption::Global => format!(
            "beside the rows it does not serve {unbound} uses that do not name \"{name}\": {here} claims of late; \
             {writes} writes and {bound} uses that name it would have cost {elsewhere} by itself"
        ),
    };
    let full_name = quote_qualified(index.schema(), index.name());
    Some(PlacementAdvice {
        table: table.oid,
        schema: index.schema().to_owned(),
        column,
        reason: why,
        statement: format!("ALTER INDEX {full_name} SET (placement = {});", to.word()),
        saved_per_hour: lost.here_per_hour.saturating_sub(lost.elsewhere_per_hour),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: u64 = 8;
    const ENTRIES: u64 = 5_000;

    fn lost(writes: u64, bound: u64, unbound: u64, to: PlacementOption) -> Lost {
        let counts = UseCounts { writes, bound, unbound, ..UseCounts::default() };
        Lost::of(Recent { counts, hours: 2.0 }, PAGES, ENTRIES, to)
    }

    fn to_prefixed(writes: u64, bound: u64, unbound: u64) -> bool {
        lost(writes, bound, unbound, PlacementOption::Prefixed).is_too_much()
    }

    fn to_global(writes: u64, bound: u64, unbound: u64) -> bool {
        lost(writes, bound, unbound, PlacementOption::Global).is_too_much()
    }

    #[test]
    fn what_is_written_and_read_by_one_tenant_goes_to_its_rows() {
        assert!(to_prefixed(10_000, 5_000, 0));
        assert!(!to_prefixed(9_999, 5_000, 0), "it would not pay for {ENTRIES} entries");
        // A seldom use of all tenants is dear.
        assert!(to_prefixed(20_000, 10_000, 1_875));
        assert!(!to_prefixed(20_000, 10_000, 1_876), "it would lose more than half as much");
    }

    #[test]
    fn what_is_read_across_tenants_goes_by_itself() {
        assert!(to_global(0, 0, 1_875));
        assert!(!to_global(0, 0, 1_874));
        assert!(to_global(5_000, 5_000, 3_125));
        assert!(!to_global(5_000, 5_000, 3_124));
    }

    #[test]
    fn nothing_goes_to_and_fro() {
        for claims in [0, 10_000, 20_000, 100_000] {
            for unbound in [0, 1_000, 2_000, 6_250, 12_500, 25_000] {
                assert!(!to_prefixed(claims, 0, unbound) || !to_global(claims, 0, unbound));
            }
        }
        assert!(!to_prefixed(100_000, 0, 12_500) && !to_global(100_000, 0, 12_500), "they are alike");
    }

    #[test]
    fn one_routine_that_asks_without_the_column_rules_prefixed_out() {
        let mut both = lost(100_000, 0, 0, PlacementOption::Prefixed);
        assert!(both.is_too_much());
        // Of an index of a partitioned table one part is enough.
        both.add(Lost { ruled_out: true, ..Lost::default() });
        assert!(!both.is_too_much());
    }
}
