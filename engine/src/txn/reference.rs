//! Reference tables: one partition for their writers, published versions for everybody.
//!
//! A published version is an immutable tree; the vector of all of them is replaced as a whole.
//! A reader takes the vector once, without a claim, and its commit point checks that every
//! table it read is still the current one and that no writer is between marking and
//! publishing. A writer holds the reference partition, works on trees that share their nodes
//! with the published ones, marks the vector as changing before it enters its epoch, and
//! publishes before it leaves. Between the two it takes a number above those of all who have read
//! what it replaces ([`super::epoch`]), and a version carries the number of its writer for those who will
//! read it: so the order of the log ([`crate::log::transaction`]) knows of readers that claimed nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::{Place, Txn};
use crate::id::{Epoch, TreeId};
use crate::partition::{PartitionRef, Root};
use crate::program::Stop;
use crate::storage::tree::Shared as SharedNodes;
use crate::storage::{Row, SharedMap, Tree};

/// A tree whose versions share nodes.
pub(crate) type SharedTree = Tree<SharedNodes>;

/// One published version of a reference table or of one of its indexes.
#[derive(Clone)]
pub(crate) struct ReferenceTable {
    /// Layout version of the table.
    pub version: u32,
    /// The epoch it was published in.
    pub epoch: Epoch,
    /// The number of the transaction that published it: whoever reads it comes behind that.
    pub number: u64,
    pub tree: SharedTree,
}

/// All reference tables, as of one commit.
#[derive(Clone, Default)]
pub(crate) struct ReferenceVector {
    /// Even; grows by two with every publication.
    pub version: u64,
    pub tables: SharedMap<TreeId, Arc<ReferenceTable>>,
}

/// A table as it was before commits of these epochs, oldest first; `None`: it was not there.
type Past = VecDeque<(Epoch, Option<Arc<ReferenceTable>>)>;

/// The current vector and, for registered snapshots, past tables.
pub(crate) struct References {
    /// The current vector's version, plus one while a writer is between marking and publishing.
    version: CachePadded<AtomicU64>,
    /// Whether that writer puts other definitions in place, or may.
    defines: AtomicBool,
    current: ArcSwap<ReferenceVector>,
    past: Mutex<FxHashMap<TreeId, Past>>,
}

impl References {
    pub fn new(vector: ReferenceVector) -> Self {
        Self {
            version: CachePadded::new(AtomicU64::new(vector.version)),
            defines: AtomicBool::new(false),
            current: ArcSwap::from_pointee(vector),
            past: Mutex::default(),
        }
    }

    pub fn load(&self) -> Arc<ReferenceVector> {
        self.current.load_full()
    }

    /// The current version, odd while it is changing.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Whether somebody is about to put other definitions in place.
    pub fn defines(&self) -> bool {
        self.defines.load(Ordering::SeqCst)
    }

    /// Marks the vector as changing, and the definitions if they are; the caller holds the reference
    /// partition.
    pub fn mark(&self, defines: bool) {
        if defines {
            self.defines.store(true, Ordering::SeqCst);
        }
        let before = self.version.fetch_or(1, Ordering::SeqCst);
        debug_assert!(before & 1 == 0, "one writer at a time");
    }

    pub fn unmark(&self) {
        self.version.fetch_and(!1, Ordering::SeqCst);
        self.defines.store(false, Ordering::SeqCst);
    }

    /// Publishes the next version of the vector, in which these tables have changed, come or gone; the
    /// caller marked it.
    pub fn publish(&self, mut vector: ReferenceVector, changed: &[TreeId], epoch: Epoch, keep_past: bool) {
        let old = self.current.load_full();
        vector.version = old.version + 2;
        let version = vector.version;
        if keep_past {
            let mut past = self.past.lock();
            for id in changed {
                past.entry(*id).or_default().push_back((epoch, old.tables.get(id).cloned()));
            }
        }
        self.current.store(Arc::new(vector));
        self.version.store(version, Ordering::SeqCst);
        self.defines.store(false, Ordering::SeqCst);
    }

    /// A table as of `epoch`.
    pub fn at(&self, id: TreeId, epoch: Epoch) -> Option<Arc<ReferenceTable>> {
        // The past is read before the present: a publication between the two is then missed in
        // neither, for it adds to the past first.
        let past = self.past.lock();
        let of_table = past.get(&id).and_then(|past| {
            let at = past.partition_point(|(until, _)| *until <= epoch);
            past.get(at).map(|(_, before)| before.clone())
        });
        match of_table {
            Some(before) => before,
            None => {
                // Publishing takes the lock before it stores, so this is the table the past
                // does not yet know a successor of.
                self.current.load().tables.get(&id).cloned()
            }
        }
    }

    /// Forgets what no registered snapshot needs. The oldest is asked for under the lock: for one that
    /// registers later whoever publishes waits for it, and keeps what that needs afterwards.
    pub fn collect(&self, oldest: impl FnOnce() -> Option<Epoch>) {
        let mut past = self.past.lock();
        match oldest() {
            None => past.clear(),
            Some(oldest) => past.retain(|_, past| {
                let gone = past.partition_point(|(until, _)| *until <= oldest);
                past.drain(..gone);
                !past.is_empty()
            }),
        }
    }
}

/// A tree to write to: a partition's own, or a reference table's next version.
pub(super) enum WriteTree<'t> {
    Own(&'t mut Root),
    Reference(&'t mut SharedTree),
}

impl WriteTree<'_> {
    #[inline]
    pub fn insert(&mut self, key: &[u8], row: Row, stamp: u64) -> Option<Row> {
        match self {
            Self::Own(root) => root.put(key, row, stamp),
            Self::Reference(tree) => tree.insert(key, row, stamp),
        }
    }

    #[inline]
    pub fn insert_new(&mut self, key: &[u8], row: Row, stamp: u64) -> Result<(), Row> {
        match self {
            Self::Own(root) => root.put_new(key, row, stamp),
            Self::Reference(tree) => tree.insert_new(key, row, stamp),
        }
    }

    #[inline]
    pub fn update<R>(&mut self, key: &[u8], stamp: u64, change: impl FnOnce(&mut Row) -> R) -> Option<R> {
        match self {
            Self::Own(root) => root.update(key, stamp, change),
            Self::Reference(tree) => tree.update(key, stamp, change),
        }
    }

    #[inline]
    pub fn remove(&mut self, key: &[u8], stamp: u64) -> Option<Row> {
        match self {
            Self::Own(root) => root.remove(key, stamp),
            Self::Reference(tree) => tree.remove(key, stamp),
        }
    }
}

impl Txn<'_> {
    /// The vector this transaction reads from.
    pub(super) fn reference_vector(&mut self) -> &Arc<ReferenceVector> {
        if self.references.is_none() {
            self.references = Some(self.worker.take_references(self.shared));
        }
        self.references.as_ref().expect("set by the line above")
    }

    /// A reference table (or an index of one) as this transaction sees it.
    pub(super) fn reference_tree(&mut self, place: Place) -> Result<&SharedTree, Stop> {
        if let Some(at) = self.reference_writes.iter().position(|(id, ..)| *id == place.id) {
            let (_, version, tree) = &self.reference_writes[at];
            return if *version == place.version { Ok(tree) } else { Err(Stop::Recompile) };
        }
        if !self.references_read.contains(&place.id) {
            self.references_read.push(place.id);
        }
        let (epoch, number) = match self.reference_vector().tables.get(&place.id) {
            Some(table) if table.version == place.version => (table.epoch, table.number),
            _ => return Err(Stop::Recompile),
        };
        self.depend(epoch);
        self.come_after(number);
        match self.references.as_ref().and_then(|vector| vector.tables.get(&place.id)) {
            Some(table) => Ok(&table.tree),
            None => Err(Stop::Recompile),
        }
    }

    /// A reference table (or an index of one) as of a snapshot.
    pub(super) fn reference_at(
        &mut self,
        place: Place,
        snapshot: Epoch,
    ) -> Result<Arc<ReferenceTable>, Stop> {
        if let Some((_, table)) = self.past_references.iter().find(|(id, _)| *id == place.id) {
            let table = table.clone();
            return if table.version == place.version { Ok(table) } else { Err(self.past_is_gone()) };
        }
        let table = self.shared.references.at(place.id, snapshot);
        // Nothing is claimed here, so this is asked when it has been found.
        if self.pages_are_gone() {
            return Err(Stop::SnapshotTooOld);
        }
        match table {
            Some(table) if table.version == place.version => {
                self.past_references.push((place.id, table.clone()));
                Ok(table)
            }
            // Defined, or defined anew, since.
            _ => Err(self.past_is_gone()),
        }
    }

    /// A row of a reference table as of a snapshot.
    pub(super) fn past_reference_get(
        &mut self,
        place: Place,
        key: &[u8],
        snapshot: Epoch,
    ) -> Result<Option<&[u8]>, Stop> {
        let epoch = self.reference_at(place, snapshot)?.epoch;
        self.depend(epoch);
        let table = self.past_references.iter().find(|(id, _)| *id == place.id);
        Ok(table.and_then(|(_, table)| table.tree.get(key)).map(|row| &**row))
    }

    pub(super) fn reference_get(&mut self, place: Place, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let (tree, ahead) = &mut self.worker.scratch.ahead;
        let way = if *tree == Some(place.id) { ahead.take() } else { None };
        Ok(self.reference_tree(place)?.get_by(key, way).map(|row| &**row))
    }

    /// The tree to write to; the caller holds `partition`.
    pub(super) fn tree_for_write(
        &mut self,
        partition: PartitionRef,
        place: Place,
    ) -> Result<WriteTree<'_>, Stop> {
        if !place.is_reference() {
            return Ok(WriteTree::Own(self.root(partition, place)?));
        }
        let at = match self.reference_writes.iter().position(|(id, ..)| *id == place.id) {
            Some(at) => at,
            None => {
                let tree = self.reference_tree(place)?.clone();
                self.reference_writes.push((place.id, place.version, tree));
                self.reference_writes.len() - 1
            }
        };
        Ok(WriteTree::Reference(&mut self.reference_writes[at].2))
    }

    /// Whether what was read from reference tables is still current and unmarked. `marked`:
    /// this transaction itself marked the vector.
    pub(super) fn references_valid(&self, marked: bool) -> bool {
        let Some(seen) = &self.references else { return true };
        let now = self.shared.references.version();
        if now == seen.version | u64::from(marked) {
            return true;
        }
        if now & 1 == 1 && !marked {
            return false;
        }
        let current = self.shared.references.load();
        let read =
            self.references_read.iter().all(|id| match (seen.tables.get(id), current.tables.get(id)) {
                (Some(seen), Some(current)) => Arc::ptr_eq(seen, current),
                (None, None) => true,
                _ => false,
            });
        // A publication between the two loads shows in the version.
        read && self.shared.references.version() == now
    }
}
