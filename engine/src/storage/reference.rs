//! Reference tables: one partition writes, every thread reads without a claim.
//!
//! The writer holds the claim of the reference table's partition and works on trees whose nodes
//! are shared with what it published before ([`Tree<Shared>`]); publishing clones the roots,
//! O(1) each. All reference trees together form one immutable [`ReferenceView`]; a reader takes
//! the current view once, after its last claim, so it sees all of a writer's commit or nothing
//! of it. Taking it costs one load of a shared number that changes only when somebody
//! publishes: each thread caches the view it saw last ([`ReferenceReader`]).
//!
//! ```text
//! writer, at its commit point      reader
//! ---------------------------      ------
//! mark its trees as changing       takes the view
//! enter the epoch …                runs
//! publish (unmarks)                commit point: every tree it used is still_current?
//! ```
//!
//! A reader whose tree is marked, or was published again, restarts: so epoch order agrees with
//! what readers saw. Marks and stamps are per tree; writers of other tables disturb nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::tree::{Shared, Tree};
use crate::id::{Epoch, TreeId};

/// A reference table's tree, as its writer and its readers hold it.
pub type ReferenceTree = Tree<Shared>;

/// Odd while a writer is between its mark and its publication.
type Stamp = Arc<AtomicU64>;

/// One published tree.
#[derive(Clone)]
pub struct ReferenceEntry {
    /// The rows.
    pub tree: ReferenceTree,
    /// Epoch of the commit that published it: what a reader depends on.
    pub epoch: Epoch,
    seen: u64,
    stamp: Stamp,
}

impl ReferenceEntry {
    /// Whether this is still the newest version and no writer is about to replace it.
    #[inline]
    pub fn still_current(&self) -> bool {
        self.stamp.load(Ordering::SeqCst) == self.seen
    }
}

/// All reference trees at one moment.
#[derive(Clone, Default)]
pub struct ReferenceView {
    version: u64,
    entries: FxHashMap<TreeId, ReferenceEntry>,
}

impl ReferenceView {
    /// The published state of one tree.
    #[inline]
    pub fn entry(&self, tree: TreeId) -> Option<&ReferenceEntry> {
        self.entries.get(&tree)
    }

    /// Grows with every publication.
    pub fn version(&self) -> u64 {
        self.version
    }
}

/// The place where reference trees are published.
#[derive(Default)]
pub struct ReferenceTables {
    /// Equal to the view's version; readers compare it with what they have cached.
    version: AtomicU64,
    view: ArcSwap<ReferenceView>,
    /// Publications come from different partitions: one at a time.
    publishing: Mutex<()>,
}

/// A tree's new state in a publication; `None` drops the tree.
pub type Publication = (TreeId, Option<ReferenceTree>);

impl ReferenceTables {
    /// Nothing published.
    pub fn new() -> Self {
        Self::default()
    }

    /// Marks trees as changing: readers that used them fail their check from here on. The
    /// caller holds the claim that makes it their only writer, and publishes soon after.
    pub fn mark(&self, trees: &[TreeId]) {
        let view = self.view.load();
        for entry in trees.iter().filter_map(|tree| view.entry(*tree)) {
            let stamp = entry.stamp.load(Ordering::SeqCst);
            if stamp.is_multiple_of(2) {
                entry.stamp.store(stamp + 1, Ordering::SeqCst);
            }
        }
    }

    /// Takes a mark back, without a new version: the writer changed its mind.
    pub fn unmark(&self, trees: &[TreeId]) {
        let view = self.view.load();
        for entry in trees.iter().filter_map(|tree| view.entry(*tree)) {
            entry.stamp.store(entry.seen, Ordering::SeqCst);
        }
    }

    /// Publishes new states of several trees as one version, written in `epoch`.
    pub fn publish(&self, epoch: Epoch, changes: Vec<Publication>) {
        let _one_at_a_time = self.publishing.lock();
        let mut view = ReferenceView::clone(&self.view.load());
        view.version += 1;
        let version = view.version;
        let mut stamps = Vec::with_capacity(changes.len());
        for (id, tree) in changes {
            let stamp = view.entries.get(&id).map_or_else(Stamp::default, |entry| Arc::clone(&entry.stamp));
            // Even, and never a value this tree has had before.
            let seen = version * 2;
            match tree {
                Some(tree) => {
                    view.entries.insert(id, ReferenceEntry { tree, epoch, seen, stamp: Arc::clone(&stamp) });
                }
                None => {
                    view.entries.remove(&id);
                }
            }
            stamps.push((stamp, seen));
        }
        self.view.store(Arc::new(view));
        for (stamp, seen) in stamps {
            stamp.store(seen, Ordering::SeqCst);
        }
        self.version.store(version, Ordering::SeqCst);
    }

    /// The current view; readers on hot paths keep a [`ReferenceReader`].
    pub fn current(&self) -> Arc<ReferenceView> {
        self.view.load_full()
    }
}

/// A thread's cached view.
#[derive(Default)]
pub struct ReferenceReader {
    view: Arc<ReferenceView>,
}

impl ReferenceReader {
    /// The current view: one load of a shared number if nothing was published since.
    #[inline]
    pub fn current(&mut self, tables: &ReferenceTables) -> &Arc<ReferenceView> {
        if tables.version.load(Ordering::Acquire) != self.view.version {
            self.view = tables.current();
        }
        &self.view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEM: TreeId = TreeId(7);
    const OTHER: TreeId = TreeId(8);

    fn tree(value: u8) -> ReferenceTree {
        let mut tree = ReferenceTree::new();
        tree.insert(b"key", Box::new([value]), 1);
        tree
    }

    #[test]
    fn a_view_never_changes_and_a_reader_gets_the_newest() {
        let tables = ReferenceTables::new();
        let mut reader = ReferenceReader::default();
        assert!(reader.current(&tables).entry(ITEM).is_none());
        let mut writer = tree(1);
        tables.publish(Epoch(3), vec![(ITEM, Some(writer.clone()))]);
        let old = Arc::clone(reader.current(&tables));
        writer.insert(b"key", Box::new([2]), 4);
        tables.publish(Epoch(4), vec![(ITEM, Some(writer.clone()))]);
        let value =
            |view: &ReferenceView| view.entry(ITEM).and_then(|e| e.tree.get(b"key")).map(|row| row[0]);
        assert_eq!(value(&old), Some(1));
        assert_eq!(value(reader.current(&tables)), Some(2));
        assert_eq!(reader.current(&tables).entry(ITEM).map(|entry| entry.epoch), Some(Epoch(4)));
        tables.publish(Epoch(5), vec![(ITEM, None)]);
        assert!(reader.current(&tables).entry(ITEM).is_none());
    }

    #[test]
    fn a_reader_is_told_of_marks_and_publications_of_its_own_trees_only() {
        let tables = ReferenceTables::new();
        tables.publish(Epoch(1), vec![(ITEM, Some(tree(1))), (OTHER, Some(tree(1)))]);
        let view = tables.current();
        let (item, other) = (view.entry(ITEM).expect("published"), view.entry(OTHER).expect("published"));
        assert!(item.still_current());
        tables.mark(&[ITEM]);
        assert!(!item.still_current());
        tables.unmark(&[ITEM]);
        assert!(item.still_current());
        tables.mark(&[ITEM]);
        tables.publish(Epoch(2), vec![(ITEM, Some(tree(2)))]);
        assert!(!item.still_current());
        assert!(other.still_current());
        assert!(tables.current().entry(ITEM).expect("published").still_current());
        tables.publish(Epoch(3), vec![(OTHER, None)]);
        assert!(!other.still_current());
    }
}
