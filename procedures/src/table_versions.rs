//! The engine's tables that a routine was compiled of, each with its version.
//!
//! A catalog that answers as before is not enough to know that a compiled routine is good still. Within a
//! transaction that has defined something, routines are compiled of its own catalog and of the tables as
//! the engine has them, to which nothing has been done until it commits. Afterwards the published catalog
//! is that very catalog, and the tables are others: their versions say so.

use std::sync::{Arc, Mutex, PoisonError};

use archipel_engine::TableMeta;
use archipel_engine::id::TreeId;
use archipel_planner::native::TableSource;
use rustc_hash::FxHashMap;

/// Versions by tree; `None` of a table that the engine did not have.
#[derive(Default)]
pub(crate) struct TableVersions(FxHashMap<TreeId, Option<u32>>);

impl TableVersions {
    /// Whether the tables are what they were. They count as asked for of `tables`.
    pub(crate) fn hold(&self, tables: &dyn TableSource) -> bool {
        self.0.iter().all(|(tree, version)| version_of(tables, *tree) == *version)
    }
}

fn version_of(tables: &dyn TableSource, tree: TreeId) -> Option<u32> {
    tables.table(tree).map(|table| table.version)
}

/// Tables as another source has them, with what is asked written down until [`Self::finish`]. What was
/// compiled keeps it for what it will look up when it runs.
pub(crate) struct TableRecorder {
    source: Arc<dyn TableSource + Send + Sync>,
    asked: Mutex<Option<TableVersions>>,
}

impl TableRecorder {
    pub(crate) fn new(source: Arc<dyn TableSource + Send + Sync>) -> Arc<TableRecorder> {
        Arc::new(TableRecorder { source, asked: Mutex::new(Some(TableVersions::default())) })
    }

    /// What has been asked; nothing is written down any more.
    pub(crate) fn finish(&self) -> TableVersions {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}

impl TableSource for TableRecorder {
    fn table(&self, tree: TreeId) -> Option<Arc<TableMeta>> {
        let table = self.source.table(tree);
        if let Some(asked) = &mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner) {
            asked.0.insert(tree, table.as_ref().map(|table| table.version));
        }
        table
    }

    fn rows(&self, tree: TreeId) -> u64 {
        self.source.rows(tree)
    }
}
