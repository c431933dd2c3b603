//! Partitions by their numbers, for whoever is told of one by its number.
//!
//! A number belongs to one partition, or the shell of one, for the life of the engine. So this list only
//! grows, and all versions of the routing table share it: none copies it, and what one of them finds there
//! is a partition whose range it then looks up among its own (see [`super::RoutingTable::range_of`]).
//!
//! Invariant: what a partition is, is not known here.

use parking_lot::RwLock;

use crate::id::PartitionId;

/// See the module. `P` leads to a partition. Latched: splits, merges and moves ask, and those write that
/// bring partitions.
pub(super) struct Numbers<P>(RwLock<Vec<Option<P>>>);

impl<P: Copy> Numbers<P> {
    /// Notes a partition that comes into a routing table.
    pub fn note(&self, id: PartitionId, partition: P) {
        let at = id.0 as usize;
        let mut all = self.0.write();
        if all.len() <= at {
            all.resize(at + 1, None);
        }
        all[at] = Some(partition);
    }

    /// The partition with this number, if there ever was one.
    pub fn get(&self, id: PartitionId) -> Option<P> {
        self.0.read().get(id.0 as usize).copied().flatten()
    }
}

impl<P> Default for Numbers<P> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}
