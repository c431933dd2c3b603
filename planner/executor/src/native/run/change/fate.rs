//! What the parts of one statement are going to write, known before any of them writes: they all
//! see the rows from before it, and yet none may change a row that another one has changed.
//!
//! PostgreSQL's parts write as they run. There a row that an earlier part has updated or deleted is
//! passed over by UPDATE and DELETE, and one it has written stands in the way of ON CONFLICT.

use archipel_engine::id::TreeId;
use archipel_engine::storage::KeyBuf;
use rustc_hash::{FxHashMap, FxHashSet};

/// What will become of a stored row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Changed,
    Gone,
}

/// See the module's head.
#[derive(Default)]
pub(crate) struct Foreseen {
    /// Tables that more than one part writes; of others nothing needs to be remembered but what
    /// ON CONFLICT asks of its own rows.
    contested: Vec<TreeId>,
    /// Keys of rows to come, in their table and in its unique indexes.
    proposed: FxHashSet<(TreeId, KeyBuf)>,
    /// Stored rows, by their storage key.
    met: FxHashMap<TreeId, FxHashMap<KeyBuf, Fate>>,
}

impl Foreseen {
    pub fn new(contested: &[TreeId]) -> Foreseen {
        Foreseen { contested: contested.to_vec(), ..Foreseen::default() }
    }

    pub fn is_contested(&self, table: TreeId) -> bool {
        self.contested.contains(&table)
    }

    pub fn is_proposed(&self, key: &(TreeId, KeyBuf)) -> bool {
        self.proposed.contains(key)
    }

    /// A row with these keys will be inserted.
    pub fn propose(&mut self, keys: impl IntoIterator<Item = (TreeId, KeyBuf)>) {
        self.proposed.extend(keys);
    }

    pub fn fate(&self, table: TreeId, key: &[u8]) -> Option<Fate> {
        self.met.get(&table)?.get(key).copied()
    }

    /// A stored row will be written; false if that is somebody else's already.
    pub fn meet(&mut self, table: TreeId, key: &[u8], fate: Fate) -> bool {
        let rows = self.met.entry(table).or_default();
        if rows.contains_key(key) {
            return false;
        }
        rows.insert(KeyBuf::from_slice(key), fate);
        true
    }
}
