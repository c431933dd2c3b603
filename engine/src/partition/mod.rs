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
//! only to push and to pop.

mod claims;
mod data;
mod routing;
mod ticket;

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

pub(crate) use claims::ClaimEntry;
pub use claims::ClaimSet;
pub(crate) use data::{CollectFrom, Image, PartitionData, Root, RowLock};
pub use routing::{Route, RoutingTable};
pub(crate) use ticket::{Job, Lend, Ticket};

use crate::id::{ExecutorId, GroupId, PartitionId};

const HELD: u32 = 1;
const QUEUED: u32 = 2;

/// Partitions are never freed while the process lives (their data is, see
/// [`Partition::clear`]), so that a stale reference is harmless: it finds a partition whose
/// bounds no longer cover its key.
pub(crate) type PartitionRef = &'static Partition;

/// The partitions one transaction holds, in partition order.
pub(crate) type HeldList = SmallVec<[PartitionRef; 4]>;

/// One key range of one group: see the module.
#[repr(align(128))]
pub(crate) struct Partition {
    state: AtomicU32,
    home: AtomicU16,
    pub id: PartitionId,
    pub group: GroupId,
    data: UnsafeCell<PartitionData>,
    queue: Mutex<VecDeque<Arc<Ticket>>>,
    /// Transactions that ended holding this partition. Written by the holder only.
    pub actions: AtomicU64,
    /// Sampled nanoseconds of those transactions (one in [`SAMPLE_EVERY`]).
    pub sampled_nanos: AtomicU64,
    /// Rows and bytes as of the last release by a writer, for the views.
    pub rows: AtomicU64,
    pub bytes: AtomicU64,
}

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
            group,
            data: UnsafeCell::new(data),
            queue: Mutex::new(VecDeque::new()),
            actions: AtomicU64::new(0),
            sampled_nanos: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }))
    }

    pub fn home(&self) -> ExecutorId {
        ExecutorId(self.home.load(Ordering::Relaxed))
    }

    /// Claims the partition if it is idle. Never waits, never overtakes queued work.
    pub fn try_claim(&self) -> bool {
        self.state.compare_exchange(0, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives the partition back. `false`: work is queued, the caller still holds the partition
    /// and must hand it to an executor.
    #[must_use]
    pub fn try_release(&self) -> bool {
        self.state.compare_exchange(HELD, 0, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Whether somebody holds the partition just now.
    pub fn is_held(&self) -> bool {
        self.state.load(Ordering::Relaxed) & HELD != 0
    }

    /// How many tickets wait.
    pub fn queue_length(&self) -> usize {
        self.queue.lock().len()
    }

    /// Enters `ticket` into the queues of all its partitions atomically: all latches are taken,
    /// in partition order, before the first ticket is pushed. Returns the partitions that were
    /// idle: the caller holds them now and must serve their queues.
    #[must_use]
    pub fn enqueue_all(ticket: &Arc<Ticket>) -> HeldList {
        let mut gained = HeldList::new();
        let mut latches: SmallVec<[_; 4]> = SmallVec::new();
        for partition in ticket.partitions() {
            latches.push(partition.queue.lock());
        }
        for (partition, latch) in ticket.partitions().iter().zip(latches.iter_mut()) {
            latch.push_back(ticket.clone());
            let before = partition.state.fetch_or(HELD | QUEUED, Ordering::AcqRel);
            if before & HELD == 0 {
                gained.push(partition);
            }
        }
        gained
    }

    /// The next ticket of the queue; the caller holds the partition. Clears the flag of queued
    /// work with the last one, under the latch, so that the flag always tells the truth.
    pub fn take_next(&self) -> Option<Arc<Ticket>> {
        debug_assert!(self.is_held(), "only the holder serves the queue");
        let mut queue = self.queue.lock();
        let next = queue.pop_front();
        if queue.is_empty() {
            self.state.fetch_and(!QUEUED, Ordering::AcqRel);
        }
        next
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
            self.queue.lock().clear();
        }
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
        write!(f, "partition {} of group {}", self.id, self.group)
    }
}
