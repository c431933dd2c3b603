//! One table's or index's part of a partition: its rows and, beside them, row locks with uncommitted
//! images, and old versions for snapshots. All of it is keyed by key, so that it splits with the rows.
//!
//! ```text
//!   RowLock   who locks a row, what its writer has made of it, who waits     to the end of the transaction
//!   tree      committed rows
//!   versions  what they were, for registered snapshots                       as long as one needs it
//! ```
//!
//! Invariant: nobody reaches the tree but through here. [`Root::row`] and [`Root::rows`] say in their names
//! that what they show is committed and lies beneath all images, [`Root::changed_since`] asks the rows
//! together with their past.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::id::{Epoch, TreeId, TxnId};
use crate::storage::tree::{Lookup, fetch_rows_noted};
use crate::storage::versions::{Departure, Replaced, TreeVersions};
use crate::storage::{Finger, KeyBuf, Row, Tree};
use crate::txn::{LockMode, RowWaiter};

/// See the module.
pub(crate) struct Root {
    /// `None`: the position is free.
    pub id: Option<TreeId>,
    /// The layout version of the table; programs compiled for another one must recompile.
    pub version: u32,
    /// Somebody locks the table, or did, in a mode that one-shots must look at.
    pub locked: bool,
    tree: Tree,
    /// Leaves stamped up to here are in the last checkpoint.
    pub checkpointed: u64,
    /// Where the tree was last entered.
    finger: Finger,
    /// Row locks and uncommitted images of interactive transactions.
    pub overlay: BTreeMap<Box<[u8]>, RowLock>,
    /// Before-images for registered snapshots.
    pub versions: TreeVersions,
    /// The epoch of the definition that made this root: an older snapshot finds nothing of its
    /// past here.
    pub since: Epoch,
}

/// Who locks a row, what its writer made of it, and who waits.
#[derive(Default)]
pub(crate) struct RowLock {
    pub holders: SmallVec<[(TxnId, LockMode); 1]>,
    pub image: Option<Image>,
    pub waiters: Vec<Arc<RowWaiter>>,
}

/// An uncommitted image. Its writer holds a mode that excludes other writers; holders of
/// weaker locks do not see it.
pub(crate) struct Image {
    pub writer: TxnId,
    /// `None` is a deleted row.
    pub row: Option<Row>,
    /// What became of the committed row under the key by this writer's hand, whatever it has put
    /// there since.
    pub departure: Departure,
}

impl RowLock {
    /// What `me` made of the row, if it wrote it.
    pub fn image_of(&self, me: TxnId) -> Option<&Option<Row>> {
        self.image.as_ref().filter(|image| image.writer == me).map(|image| &image.row)
    }
}

/// [`Root::since`] of a root whose definition has not committed yet.
pub(crate) const NOT_COMMITTED: Epoch = Epoch(u64::MAX);

impl Root {
    pub fn empty() -> Self {
        Self {
            id: None,
            version: 0,
            locked: false,
            tree: Tree::new(),
            checkpointed: 0,
            finger: Finger::default(),
            overlay: BTreeMap::new(),
            versions: TreeVersions::default(),
            since: Epoch(0),
        }
    }

    /// The root of a tree that was always there: recovery.
    pub fn new(id: TreeId, version: u32) -> Self {
        Self { id: Some(id), version, ..Self::empty() }
    }

    /// The root of a tree that a definition makes.
    pub fn defined(id: TreeId, version: u32) -> Self {
        Self { since: NOT_COMMITTED, ..Self::new(id, version) }
    }

    /// The same root with other rows.
    pub fn with_rows(self, tree: Tree) -> Self {
        Self { tree, finger: Finger::default(), ..self }
    }

    /// Takes all rows out.
    pub fn take_rows(&mut self) -> Tree {
        self.finger = Finger::default();
        std::mem::take(&mut self.tree)
    }

    /// How many row locks are held here.
    pub fn locks(&self) -> usize {
        self.overlay.values().map(|lock| lock.holders.len()).sum()
    }

    /// The committed row under a key, beneath all images, and what its leaf knows.
    #[inline]
    pub fn row(&self, key: &[u8]) -> Lookup<'_> {
        self.tree.lookup(key)
    }

    /// The same, near the one that was asked for last.
    #[inline]
    pub fn row_near(&mut self, key: &[u8]) -> Lookup<'_> {
        self.tree.lookup_with(key, &mut self.finger)
    }

    /// The row under a key as a registered snapshot sees it, beneath all images.
    pub fn row_at<'r>(&'r self, key: &[u8], snapshot: Epoch) -> Option<&'r [u8]> {
        self.versions.at(key, snapshot, self.tree.get(key))
    }

    /// The committed rows, beneath all images: for whoever puts those above them himself, or goes by
    /// numbers of rows.
    #[inline]
    pub fn rows(&self) -> &Tree {
        &self.tree
    }

    /// Whether a transaction of an epoch after `snapshot` wrote the row under a key: see
    /// [`TreeVersions::changed_since`].
    pub fn changed_since(&self, key: &[u8], snapshot: Epoch) -> bool {
        self.versions.changed_since(&self.tree, key, snapshot)
    }

    /// The same of any key between the bounds.
    pub fn range_changed_since(&self, low: Bound<&[u8]>, high: Bound<&[u8]>, snapshot: Epoch) -> bool {
        self.versions.range_changed_since(&self.tree, low, high, snapshot)
    }

    /// Keeps what a write that is in place already has replaced: see [`TreeVersions::keep`].
    pub fn keep_version(&mut self, replaced: Replaced<'_>, epoch: Epoch, newest: Epoch) -> u64 {
        self.versions.keep(&self.tree, replaced, epoch, newest)
    }

    /// Asks the memory for rows that will be asked for next, in this order.
    pub fn fetch_ahead<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) {
        fetch_rows_noted(keys.map(|key| (&self.tree, key)), &mut self.finger.ahead);
    }

    /// Puts a row in place of whatever is there, which comes back.
    #[inline]
    pub fn put(&mut self, key: &[u8], row: Row, stamp: u64) -> Option<Row> {
        self.tree.insert(key, row, stamp)
    }

    /// Puts a row unless one is there; then it comes back.
    #[inline]
    pub fn put_new(&mut self, key: &[u8], row: Row, stamp: u64) -> Result<(), Row> {
        self.tree.insert_new_with(key, row, stamp, &mut self.finger)
    }

    /// Changes a row in place; `None`: there is none.
    #[inline]
    pub fn update<R>(&mut self, key: &[u8], stamp: u64, change: impl FnOnce(&mut Row) -> R) -> Option<R> {
        self.tree.update_with(key, stamp, &mut self.finger, change)
    }

    /// Takes a row out.
    #[inline]
    pub fn remove(&mut self, key: &[u8], stamp: u64) -> Option<Row> {
        self.tree.remove(key, stamp)
    }

    /// Makes the memory of the rows again, from a key on: see [`Tree::remake`].
    pub fn remake_rows(
        &mut self,
        from: Option<&[u8]>,
        go_on: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Option<KeyBuf> {
        self.tree.remake(from, go_on)
    }

    /// The addresses of everything in its trees.
    pub fn allocations(&self, visit: &mut dyn FnMut(*const u8)) {
        self.tree.allocations(visit);
        self.versions.allocations(visit);
    }

    /// Cuts off everything at and above `key`.
    pub fn split_off(&mut self, key: &[u8]) -> Self {
        Self {
            id: self.id,
            version: self.version,
            locked: self.locked,
            tree: self.tree.split_off(key),
            checkpointed: self.checkpointed,
            finger: Finger::default(),
            overlay: self.overlay.split_off(key),
            versions: self.versions.split_off(key),
            since: self.since,
        }
    }

    /// Takes in the same tree's part of the partition to the right.
    pub fn append(&mut self, mut right: Self) {
        if self.id.is_none() && self.tree.is_empty() {
            *self = right;
            return;
        }
        assert!(right.id == self.id && right.version == self.version, "parts of one tree have one layout");
        self.tree.append(std::mem::take(&mut right.tree));
        self.overlay.append(&mut right.overlay);
        self.versions.append(right.versions);
        self.locked |= right.locked;
        self.since = self.since.max(right.since);
        self.checkpointed = self.checkpointed.min(right.checkpointed);
    }
}
