//! The snapshots there are, and those that are about to be.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::id::{Epoch, TreeId};

/// See the module.
pub(super) struct Registered {
    /// By their epochs.
    pub states: BTreeMap<(Epoch, u64), Arc<SnapshotState>>,
    /// How many do not know their epoch yet, by the oldest that it may be.
    pub coming: BTreeMap<Epoch, usize>,
    /// How many of the states read rows of the trees of each bit of [`Trees`].
    readers: [u32; u64::BITS as usize],
    /// How many there have been.
    pub numbered: u64,
}

impl Default for Registered {
    fn default() -> Self {
        Self { states: BTreeMap::new(), coming: BTreeMap::new(), readers: [0; 64], numbered: 0 }
    }
}

impl Registered {
    /// The oldest epoch that is read, or may be.
    pub fn oldest(&self) -> Option<Epoch> {
        let state = self.states.keys().next().map(|(epoch, _)| *epoch);
        let coming = self.coming.keys().next().copied();
        state.into_iter().chain(coming).min()
    }

    /// Somebody who did not know the epoch knows it.
    pub fn came(&mut self, from: Epoch) {
        if let Some(count) = self.coming.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.coming.remove(&from);
            }
        }
    }

    /// Counts a reader of these trees, or with false counts none any more.
    pub fn count(&mut self, trees: Trees, reads: bool) {
        for (bit, count) in self.readers.iter_mut().enumerate() {
            let has = (trees.0 >> bit & 1) as u32;
            *count = if reads { *count + has } else { *count - has };
        }
    }

    /// The trees that somebody reads.
    pub fn trees(&self) -> Trees {
        let bits = self.readers.iter().enumerate().filter(|(_, count)| **count > 0);
        Trees(bits.fold(0, |trees, (bit, _)| trees | 1 << bit))
    }
}

/// What others see of a snapshot, and how they end it.
#[derive(Debug)]
pub(crate) struct SnapshotState {
    pub epoch: Epoch,
    /// Tells it from others of its epoch.
    pub number: u64,
    pub opened_micros: i64,
    pub holder: u64,
    pub transaction: bool,
    /// See [`Trees`]. Changes under the lock of those registered.
    pub trees: AtomicU64,
    pub cancelled: AtomicBool,
}

/// A set of trees, as one bit for each sixty-fourth of them: a tree that is not in the set may
/// be taken for one that is, never the other way round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trees(pub(super) u64);

impl Trees {
    /// Every tree.
    pub const ALL: Trees = Trees(u64::MAX);

    /// These trees, and those that share their bits.
    pub fn of(trees: impl IntoIterator<Item = TreeId>) -> Trees {
        Trees(trees.into_iter().fold(0, |bits, tree| bits | Self::bit(tree)))
    }

    #[inline]
    pub fn has(self, tree: TreeId) -> bool {
        self.0 & Self::bit(tree) != 0
    }

    #[inline]
    fn bit(tree: TreeId) -> u64 {
        1 << (tree.0 % u64::BITS)
    }
}
