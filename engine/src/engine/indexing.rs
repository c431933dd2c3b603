//! Tables as recovery needs them: rows checked, index entries made, memory counted; several
//! tables at once.

use std::ops::Bound;
use std::sync::Arc;

use super::open::OpenError;
use crate::log::StoreError;
use crate::parallel::in_parallel;
use crate::storage::{KeyBuf, Row, Tree};
use crate::table::TableMeta;

/// A table whose rows may be relied on, and its index trees, whole.
pub(super) struct BuiltTable {
    pub table: Arc<TableMeta>,
    pub rows: Tree,
    /// In the order of the table's indexes.
    pub indexes: Vec<Tree>,
    /// Accounted bytes of rows and entries.
    pub memory: i64,
}

/// A table's definition and its recovered rows.
type Work = (Arc<TableMeta>, Tree);

impl BuiltTable {
    /// Builds tables on up to `threads` threads; in their order.
    pub fn all(work: Vec<Work>, threads: usize) -> Vec<Result<BuiltTable, OpenError>> {
        let mut work: Vec<(usize, Work)> = work.into_iter().enumerate().collect();
        // The longest first: none is left to run alone at the end.
        work.sort_by_key(|(_, (_, rows))| std::cmp::Reverse(rows.len()));
        let mut built = in_parallel(work, threads, |(at, (table, rows))| (at, BuiltTable::one(table, rows)));
        built.sort_by_key(|(at, _)| *at);
        built.into_iter().map(|(_, built)| built).collect()
    }

    fn one(table: Arc<TableMeta>, rows: Tree) -> Result<BuiltTable, OpenError> {
        let mut entries: Vec<Vec<(KeyBuf, Row)>> =
            table.indexes.iter().map(|_| Vec::with_capacity(rows.len() as usize)).collect();
        let mut memory = 0;
        for (key, row) in rows.cursor(Bound::Unbounded) {
            // Nothing may rely on a row before this.
            if !table.layout.is_valid(row) {
                let message = format!("a row of table {} does not fit its columns", table.def.name);
                return Err(StoreError::Damaged(message).into());
            }
            memory += crate::txn::entry_bytes(key, row);
            for (index, entries) in table.indexes.iter().zip(&mut entries) {
                let mut entry = KeyBuf::new();
                table.index_key(index, row, key, &mut entry);
                entries.push((entry, Row::from(key)));
            }
        }
        let mut indexes = Vec::with_capacity(entries.len());
        for (index, mut entries) in table.indexes.iter().zip(entries) {
            entries.sort_unstable();
            let mut tree = Tree::new();
            for (entry, key) in entries {
                memory += crate::txn::entry_bytes(&entry, &key);
                if tree.insert_new(&entry, key, 0).is_err() {
                    let (table, index) = (table.def.name.clone(), index.def.name.clone());
                    return Err(OpenError::Index { table, index });
                }
            }
            indexes.push(tree);
        }
        Ok(BuiltTable { table, rows, indexes, memory })
    }
}
