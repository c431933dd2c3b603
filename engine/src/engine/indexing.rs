//! Tables as recovery needs them: rows checked, index entries made, memory counted; several
//! tables at once.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::open::OpenError;
use crate::log::StoreError;
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

/// Where threads take one thing from and leave another.
type Seat<T> = Mutex<Option<T>>;

impl BuiltTable {
    /// Builds tables on up to `threads` threads; in their order.
    pub fn all(work: Vec<Work>, threads: usize) -> Vec<Result<BuiltTable, OpenError>> {
        let count = work.len();
        // The longest first: none is left to run alone at the end.
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(work[at].1.len()));
        let work: Vec<Seat<Work>> = work.into_iter().map(|item| Mutex::new(Some(item))).collect();
        let built: Vec<Seat<Result<BuiltTable, OpenError>>> = (0..count).map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        let run = || {
            while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Some((table, rows)) = work[at].lock().take() {
                    *built[at].lock() = Some(BuiltTable::one(table, rows));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.min(count) {
                scope.spawn(run);
            }
            run();
        });
        built.into_iter().filter_map(Mutex::into_inner).collect()
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
