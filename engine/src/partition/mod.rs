//! Partitions as actors.
//!
//! A partition is a state word, a queue and data; at most one thread holds it, and only the
//! holder touches the data. The state word has two bits:
//!
//! ```text
//!   0               idle: nobody holds it and its queue is empty
//!   HELD            somebody holds it: a thread, or a ticket it was lent to
//!   HELD | QUEUED   as before, and the queue is not empty: whoever releases passes it on
//! ```
//!
//! Invariant: `QUEUED` is never set without `HELD`. Entering a queue sets both bits in one
//! step; whoever finds that `HELD` was clear before has become the holder and must serve the
//! queue. Releasing is a compare-and-swap from `HELD` to idle, which fails when somebody queued
//! meanwhile; the releaser then still holds the partition and hands it to an executor. So no
//! wake-up is lost, and a direct claim (idle to `HELD`) succeeds only past an empty queue.
//!
//! Lock order: queue latches in partition order, then a ticket's own lock. The latches are held
//! to push and to pop, and to divide or unite queues when a partition is split or two are
//! merged: ranges move with the tickets that wait for them. A ticket that enters the queue of a
//! merged partition later, by an old routing table, is lent the shell, finds that it covers
//! nothing, and starts again at the right one.
//!
//! **Shells.** A partition that was merged into its neighbour, or whose group is gone, gives back
//! its data and becomes a shell, which later is another partition. There is no moment at which
//! nobody has its address any more: a thread that slept, or a ticket, may have it from a routing
//! table of long ago. It does no harm, because an address promises nothing. Whoever has claimed a
//! partition asks it which group it is of and which keys it covers, and what it finds there is
//! true while it holds it. So the moment to use a shell again is when it can be claimed: then no
//! thread holds it, it is lent to no ticket, and no ticket stands in its queue. One that comes
//! later by an old table takes its turn, finds neither its group nor its key, and looks again.
//! The number stays with the shell: latches are taken in its order by lists that were sorted
//! before. See `crate::engine`'s `partitions`.

mod claims;
mod data;
mod gate;
mod held_order;
mod numbers;
mod root;
mod routes;
mod routing;
mod ticket;

use std::cell::UnsafeCell;
use std::sync::Arc;

use smallvec::SmallVec;

pub(crate) use claims::ClaimEntry;
pub use claims::ClaimSet;
pub(crate) use data::{CollectFrom, PartitionData};
pub(crate) use held_order::HeldOrder;
pub(crate) use root::{Ended, LetGo, NOT_COMMITTED, Root, Written};
pub use routes::{Routes, RoutesIter};
pub use routing::{Route, RoutingTable};
pub(crate) use ticket::SplitRanges;
pub(crate) use ticket::{Lend, Ticket};

use gate::{HELD, Queue};

use crate::engine::Shared;
use crate::executor::Worker;
use crate::id::{ExecutorId, GroupId, PartitionId};
use crate::monitor::PartitionStatistics;
use crate::program::Stop;
use crate::storage::KeyBuf;
use crate::sync::{self, AtomicU16, AtomicU32, AtomicU64, Mutex, Ordering};

/// Partitions are never freed while the process lives (their data is, see [`Partition::vacate`],
/// and the shell is used again), so that a stale reference is harmless: it finds a partition of
/// another group, or one whose bounds no longer cover its key.
pub(crate) type PartitionRef = &'static Partition;

/// The partitions one transaction holds, in partition order.
pub(crate) type HeldList = SmallVec<[PartitionRef; 4]>;

/// A boxed transaction that waits for its partitions.
pub(crate) trait Job: Send {
    /// Runs with all partitions of `held`, and releases them.
    fn run(self: Box<Self>, shared: &Arc<Shared>, worker: &mut Worker, held: HeldList);
    /// Enters the queues again: it waited for a row, holding nothing, and was woken.
    fn resubmit(self: Box<Self>, shared: &Arc<Shared>, worker: &mut Worker);
    /// Ends without running.
    fn end(self: Box<Self>, reason: Stop);
    /// What it predicts to touch, for the time when ranges move.
    fn claims(&self) -> &ClaimSet;
}

/// One key range of one group: see the module.
#[repr(align(128))]
pub(crate) struct Partition {
    state: AtomicU32,
    home: AtomicU16,
    /// Its own for ever.
    pub id: PartitionId,
    /// Written by the holder of a shell only.
    group: AtomicU32,
    data: UnsafeCell<PartitionData>,
    queue: Mutex<Queue>,
    /// Transactions that ended holding this partition. Written by the holder only.
    pub actions: AtomicU64,
    /// Sampled nanoseconds of those transactions (one in [`SAMPLE_EVERY`]).
    pub sampled_nanos: AtomicU64,
    /// Those of them that came through the queue.
    pub queued: AtomicU64,
    /// Rows and bytes as of the last release by a writer, for the views.
    pub rows: AtomicU64,
    pub bytes: AtomicU64,
    /// [`PINNED`] and [`FROZEN`]. Written by the holder only.
    flags: AtomicU32,
    /// The memory node its rows lie on, or [`NO_NODE`]. Written by the holder only.
    memory_node: AtomicU16,
    /// Entries that have been made again for the node of its home, while that is under way.
    pub followed: AtomicU64,
    /// What the monitor reads; the holder only tries the latch.
    pub statistics: Mutex<PartitionStatistics>,
    /// The group and the first key it began with, which it keeps until it is a shell: a split cuts off
    /// what is above, and a merge takes in what is to the right.
    began_at: Mutex<(GroupId, KeyBuf)>,
}

/// The memory lies on several nodes, or nobody knows where; or an island that has several nodes.
pub(crate) const NO_NODE: u16 = u16::MAX;

/// The partition's home stays.
pub(crate) const PINNED: u32 = 1;
/// The partition's bounds stay.
pub(crate) const FROZEN: u32 = 2;

/// One transaction in this many is timed.
pub(crate) const SAMPLE_EVERY: u64 = 64;

// SAFETY: everything but `data` is atomic or latched; `data` is reached only through
// `data_mut`, whose caller must hold the partition, and holding is exclusive.
unsafe impl Sync for Partition {}
// SAFETY: no part of a partition is bound to the thread that made it.
unsafe impl Send for Partition {}

impl Partition {
    /// Makes a partition, for the life of the process.
    pub fn leak(
        id: PartitionId,
        group: GroupId,
        home: ExecutorId,
        data: PartitionData,
        held: bool,
    ) -> PartitionRef {
        Box::leak(Box::new(Self {
            state: AtomicU32::new(if held { HELD } else { 0 }),
            home: AtomicU16::new(home.0),
            id,
            group: AtomicU32::new(group.0),
            began_at: Mutex::new((group, data.low.clone())),
            data: UnsafeCell::new(data),
            queue: Mutex::new(Queue::default()),
            actions: AtomicU64::new(0),
            sampled_nanos: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            flags: AtomicU32::new(0),
            memory_node: AtomicU16::new(NO_NODE),
            followed: AtomicU64::new(0),
            statistics: Mutex::default(),
        }))
    }

    /// The group it is of. Stays while somebody holds the partition; to others it is a hint.
    #[inline]
    pub fn group(&self) -> GroupId {
        GroupId(self.group.load(Ordering::Relaxed))
    }

    /// Makes a shell a partition of a group. The caller has claimed it.
    pub fn begin(&self, group: GroupId, home: ExecutorId, data: PartitionData) {
        self.group.store(group.0, Ordering::Relaxed);
        self.set_home(home);
        self.set_flags(0);
        self.set_memory_node(NO_NODE);
        for count in [&self.actions, &self.sampled_nanos, &self.queued, &self.rows, &self.bytes] {
            count.store(0, Ordering::Relaxed);
        }
        // Whoever ran over the shell by an old routing table was perhaps measured.
        *self.statistics.lock() = PartitionStatistics::default();
        *self.began_at.lock() = (group, data.low.clone());
        // SAFETY: held by the caller; the reference ends with the statement.
        *unsafe { self.data_mut() } = data;
    }

    /// Makes the partition a shell: it gives back what it holds and covers no key. The caller holds
    /// it, and no routing table names it any more that is, or will be, published.
    pub fn vacate(&self) {
        // SAFETY: held by the caller; the reference ends with the statement.
        *unsafe { self.data_mut() } = PartitionData::shell(&KeyBuf::new());
        *self.statistics.lock() = PartitionStatistics::default();
    }

    /// The group and the first key it has now, or had last if it is a shell. To those who do not hold it
    /// this is a hint, to be compared with a routing table.
    pub fn began_at(&self) -> (GroupId, KeyBuf) {
        self.began_at.lock().clone()
    }

    pub fn home(&self) -> ExecutorId {
        ExecutorId(self.home.load(Ordering::Relaxed))
    }

    /// Gives the partition another home; the caller holds it.
    pub fn set_home(&self, home: ExecutorId) {
        self.home.store(home.0, Ordering::Relaxed);
    }

    /// The memory node that all of its memory lies on, or [`NO_NODE`].
    pub fn memory_node(&self) -> u16 {
        self.memory_node.load(Ordering::Relaxed)
    }

    /// Notes where its memory lies; the caller holds the partition, or nobody else knows it yet.
    pub fn set_memory_node(&self, node: u16) {
        self.memory_node.store(node, Ordering::Relaxed);
        self.followed.store(0, Ordering::Relaxed);
    }

    /// Memory of `other` has come into this partition's trees; the caller holds both.
    pub fn mix_memory(&self, other: &Partition) {
        let node = self.memory_node();
        self.set_memory_node(if node == other.memory_node() { node } else { NO_NODE });
    }

    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// The caller holds the partition, or nobody else knows it yet.
    pub fn set_flags(&self, flags: u32) {
        self.flags.store(flags, Ordering::Relaxed);
    }

    /// Neither split, nor merged: asked for by hand.
    pub fn is_frozen(&self) -> bool {
        self.flags() & FROZEN != 0
    }

    pub fn is_pinned(&self) -> bool {
        self.flags() & PINNED != 0
    }

    /// The data of a held partition.
    ///
    /// # Safety
    /// The caller holds the partition, and no other reference made by this method is in use.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn data_mut(&self) -> &mut PartitionData {
        debug_assert!(self.is_held(), "data is touched under a claim only");
        // SAFETY: exclusive by the caller's promise.
        unsafe { &mut *self.data.get() }
    }

    /// Frees the data; for the engine's end, when nobody can claim any more.
    pub fn clear(&self) {
        if self.try_claim() {
            // SAFETY: just claimed, and kept claimed for ever.
            let data = unsafe { self.data_mut() };
            *data = PartitionData::new(Default::default(), None);
            self.queue.lock().tickets.clear();
        }
    }

    /// Numbers for the views, as of now; the caller holds the partition.
    pub fn note_size(&self, data: &PartitionData) {
        self.rows.store(data.rows(), Ordering::Relaxed);
        self.bytes.store(data.bytes.max(0) as u64, Ordering::Relaxed);
    }

    /// Gives the upper part of a split half of what was counted; the caller holds both.
    pub fn share_counters(&self, upper: &Partition) {
        let counters = [
            (&self.actions, &upper.actions),
            (&self.sampled_nanos, &upper.sampled_nanos),
            (&self.queued, &upper.queued),
        ];
        for (lower, upper) in counters {
            let count = lower.load(Ordering::Relaxed);
            upper.store(count / 2, Ordering::Relaxed);
            lower.store(count - count / 2, Ordering::Relaxed);
        }
        self.statistics.lock().forget();
    }

    /// Takes over what was counted on a partition that is merged into this one; the caller
    /// holds both.
    pub fn take_counters(&self, from: &Partition) {
        let counters = [
            (&self.actions, &from.actions),
            (&self.sampled_nanos, &from.sampled_nanos),
            (&self.queued, &from.queued),
        ];
        for (into, from) in counters {
            into.store(into.load(Ordering::Relaxed) + from.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
        self.statistics.lock().forget();
        from.statistics.lock().forget();
    }

    /// Counts a run that came through the queue; the caller holds the partition.
    pub fn count_queued(&self) {
        self.queued.store(self.queued.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Adds to the partition's counters; the caller holds it, so plain loads and stores do.
    pub fn count_action(&self, nanos: Option<u64>) {
        self.actions.store(self.actions.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if let Some(nanos) = nanos {
            self.sampled_nanos.store(self.sampled_nanos.load(Ordering::Relaxed) + nanos, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "partition {} of group {}", self.id, self.group())
    }
}

#[cfg(test)]
mod tests;
