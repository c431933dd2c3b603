//! What was read off the routines so far, and what is still to be done about it.

use std::collections::BTreeMap;

use archipel_planner::ddl::EvidentPlace;
use archipel_sql::catalog::Catalog;
use archipel_sql::types::Oid;

use super::cache::Known;

/// Attempts to copy one table: its rows may be deleted all the time, or be read by queries that
/// never end.
const COPIES_MAX: u32 = 4;

/// What was read off the routines so far, for one look after another.
#[derive(Default)]
pub struct Designer {
    pub(super) known: tokio::sync::Mutex<Known>,
    /// Tables that are too large to be rewritten at once.
    pub(super) copies: parking_lot::Mutex<Vec<(Oid, EvidentPlace)>>,
    /// How often copying a table has come to nothing since the start.
    failures: parking_lot::Mutex<BTreeMap<Oid, u32>>,
}

impl Designer {
    /// Whether copying a table has come to nothing too often.
    pub(crate) fn gave_up(&self, table: Oid) -> bool {
        self.failures.lock().get(&table).is_some_and(|failures| *failures >= COPIES_MAX)
    }

    /// Counts a failure, and forgets those of tables that are not in `catalog` any more.
    pub(super) fn note_failure(&self, table: Oid, catalog: &Catalog) {
        let mut failures = self.failures.lock();
        failures.retain(|known, _| catalog.table_by_oid(*known).is_some());
        *failures.entry(table).or_default() += 1;
    }
}
