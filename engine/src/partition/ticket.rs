//! A place in the queues of one or several partitions.
//!
//! Partitions are lent to a ticket as its turns come; the thread that lends the last one runs
//! the job. The ticket moves from waiting to running or cancelled exactly once, under its own
//! lock; whoever wins gives back, or runs with, what was lent.
//!
//! **Age.** A ticket's age is one more than that of the youngest ticket in any queue it enters,
//! taken under the latches of all of them: within every queue ages grow, and of two tickets
//! that meet in several queues the same one is older everywhere. Ages, and the
//! first partition entered where they are equal (two such tickets entered no queue together),
//! are therefore one order that all queues agree with, and it stays so when queues are divided by a split or united by a merge: a ticket whose range moved
//! is forwarded to its new queue at its old place, and nobody waits in a circle.

use super::sync::{Arc, AtomicU64, Mutex, Ordering};
use super::{HeldList, Job, PartitionRef};
use crate::id::PartitionId;

enum Phase {
    Waiting {
        job: Box<dyn Job>,
        /// In partition order, without duplicates.
        partitions: HeldList,
        lent: HeldList,
    },
    Running,
    Cancelled,
}

/// See the module.
pub(crate) struct Ticket {
    age: AtomicU64,
    /// The first partition it entered.
    first: PartitionId,
    phase: Mutex<Phase>,
}

/// What a split makes of one range: `[low, at)` and `[at, high)`.
pub(crate) struct SplitRanges<'k> {
    pub low: &'k [u8],
    pub at: &'k [u8],
    pub high: Option<&'k [u8]>,
}

/// What became of a lent partition.
pub(crate) enum Lend {
    /// The ticket keeps it and waits for others.
    Kept,
    /// It was the last one: run the job with these.
    Run(Box<dyn Job>, HeldList),
    /// The ticket was cancelled: the partition stays with the lender.
    Refused,
}

impl Ticket {
    pub fn new(partitions: HeldList, job: Box<dyn Job>) -> Arc<Self> {
        debug_assert!(!partitions.is_empty() && partitions.windows(2).all(|pair| pair[0].id < pair[1].id));
        let first = partitions[0].id;
        let phase = Phase::Waiting { job, partitions, lent: HeldList::new() };
        Arc::new(Self { age: AtomicU64::new(0), first, phase: Mutex::new(phase) })
    }

    /// Set once, under the latches of all queues it enters.
    pub(super) fn set_age(&self, age: u64) {
        self.age.store(age, Ordering::Relaxed);
    }

    /// Where the ticket stands among all others: see the module.
    pub(super) fn order(&self) -> (u64, PartitionId) {
        (self.age.load(Ordering::Relaxed), self.first)
    }

    /// Lends one partition, held by the caller until now.
    pub fn lend(&self, partition: PartitionRef) -> Lend {
        let mut phase = self.phase.lock();
        match &mut *phase {
            Phase::Waiting { lent, partitions, .. } => {
                debug_assert!(place_of(partitions, partition.id).is_ok());
                lent.push(partition);
                if lent.len() < partitions.len() {
                    return Lend::Kept;
                }
            }
            Phase::Running | Phase::Cancelled => return Lend::Refused,
        }
        match std::mem::replace(&mut *phase, Phase::Running) {
            Phase::Waiting { job, partitions, .. } => Lend::Run(job, partitions),
            Phase::Running | Phase::Cancelled => unreachable!("the phase was waiting, under the same lock"),
        }
    }

    /// Withdraws a waiting ticket: its job, and the partitions it was lent, which the caller
    /// holds now and must release. `None`: it runs or ran already, or was cancelled before.
    pub fn cancel(&self) -> Option<(Box<dyn Job>, HeldList)> {
        let mut phase = self.phase.lock();
        if !matches!(*phase, Phase::Waiting { .. }) {
            return None;
        }
        match std::mem::replace(&mut *phase, Phase::Cancelled) {
            Phase::Waiting { job, lent, .. } => Some((job, lent)),
            Phase::Running | Phase::Cancelled => None,
        }
    }

    /// `lower` was split, and `upper` cut off. Whether the ticket now belongs into the
    /// queue of the one and of the other. The caller has the latches of both.
    pub(super) fn split(
        &self,
        lower: PartitionRef,
        upper: PartitionRef,
        ranges: &SplitRanges<'_>,
    ) -> (bool, bool) {
        let mut phase = self.phase.lock();
        let Phase::Waiting { job, partitions, .. } = &mut *phase else { return (true, false) };
        let claims = job.claims();
        let above = claims.means(lower.group(), ranges.at, ranges.high);
        // Only what lies wholly above goes: whatever else brought it here keeps it here.
        let below = !above || claims.means(lower.group(), ranges.low, Some(ranges.at));
        // It may stand there already: by an old routing table, for what the upper part was before.
        let place = place_of(partitions, upper.id);
        #[cfg(test)]
        let place = match place {
            Ok(at) if crate::planted::has(crate::planted::Bug::LateDivision) => Err(at),
            place => place,
        };
        if let (true, Err(at)) = (above, place) {
            partitions.insert(at, upper);
        }
        if let (false, Ok(at)) = (below, place_of(partitions, lower.id)) {
            partitions.remove(at);
        }
        (below, above)
    }

    /// `from` was merged into `into`. The caller has the latches of both.
    pub(super) fn merge(&self, into: PartitionRef, from: PartitionRef) {
        let mut phase = self.phase.lock();
        let Phase::Waiting { partitions, lent, .. } = &mut *phase else { return };
        debug_assert!(lent.iter().all(|lent| lent.id != into.id && lent.id != from.id));
        if let Ok(at) = place_of(partitions, from.id) {
            partitions.remove(at);
        }
        if let Err(at) = place_of(partitions, into.id) {
            partitions.insert(at, into);
        }
    }
}

/// Where a partition is among those in partition order, or would be.
fn place_of(partitions: &[PartitionRef], id: PartitionId) -> Result<usize, usize> {
    partitions.binary_search_by_key(&id, |partition| partition.id)
}
