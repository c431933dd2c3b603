//! Memory follows its partition to another node: one piece of the way.
//!
//! An action in the partition's queue, so it runs on a thread of the island the partition is at
//! home on, which makes a piece of its trees again ([`crate::storage::Tree::remake`]): what that
//! thread allocates lies on its own memory node. It changes nothing that a program or a snapshot
//! can see, is not logged, and is whole after every piece; a crash forgets it, like all memory.

use super::Txn;
use crate::panics::NoUnwind;
use crate::partition::{ClaimSet, NO_NODE, PartitionRef, RoutingTable};
use crate::program::{Program, Stop};

/// Makes a piece of a partition's memory again.
pub(crate) struct FollowMemory {
    pub partition: PartitionRef,
    pub bytes_max: usize,
    /// Set by the run.
    pub followed: Followed,
}

/// What a piece came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Followed {
    pub bytes: usize,
    /// Everything lies on the node of the home now.
    pub done: bool,
}

impl Program for FollowMemory {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        if let Some((group, low)) = routing.range_of(self.partition.id) {
            claims.add_point(group, &low);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.followed = txn.follow_memory(self.partition, self.bytes_max);
        Ok(())
    }
}

impl Txn<'_> {
    /// Makes a piece of a partition's memory again, if this thread is of the island that the
    /// partition is at home on, and the partition is still there.
    fn follow_memory(&mut self, partition: PartitionRef, bytes_max: usize) -> Followed {
        let node = |id| self.shared.executors().get(usize::from(id)).and_then(|it| it.memory_node());
        let here = self.worker.executor.filter(|_| self.worker.island.is_some());
        let (Some(node), Some(here)) = (node(partition.home().0), here.and_then(|id| node(id.0))) else {
            return Followed::default();
        };
        if here != node || !self.held.iter().any(|held| held.id == partition.id) {
            return Followed::default();
        }
        if partition.memory_node() == node {
            return Followed { bytes: 0, done: true };
        }
        // Until it is through, some of it lies here and some there.
        partition.set_memory_node(NO_NODE);
        // SAFETY: held by this transaction; the reference ends with the function.
        let data = unsafe { partition.data_mut() };
        let whole = NoUnwind::new("in the middle of making memory again");
        let (bytes, done) = data.remake(node, bytes_max);
        whole.pass();
        match &data.following {
            Some(following) => {
                partition.followed.store(following.entries, std::sync::atomic::Ordering::Relaxed)
            }
            None => partition.set_memory_node(node),
        }
        Followed { bytes, done }
    }
}
