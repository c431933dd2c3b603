//! A place in the queues of one or several partitions.
//!
//! Partitions are lent to a ticket as its turns come; the thread that lends the last one runs
//! the job. The ticket moves from waiting to running or cancelled exactly once, under its own
//! lock; whoever wins gives back, or runs with, what was lent.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{HeldList, PartitionRef};
use crate::engine::Shared;
use crate::executor::Worker;
use crate::program::Stop;

/// A boxed transaction that waits for its partitions.
pub(crate) trait Job: Send {
    /// Runs with all partitions of `held`, and releases them.
    fn run(self: Box<Self>, shared: &Arc<Shared>, worker: &mut Worker, held: HeldList);
    /// Enters the queues again: it waited for a row, holding nothing, and was woken.
    fn resubmit(self: Box<Self>, shared: &Arc<Shared>, worker: &mut Worker);
    /// Ends without running.
    fn end(self: Box<Self>, reason: Stop);
}

enum Phase {
    Waiting { job: Box<dyn Job>, lent: HeldList },
    Running,
    Cancelled,
}

/// See the module.
pub(crate) struct Ticket {
    /// In partition order, without duplicates.
    partitions: HeldList,
    phase: Mutex<Phase>,
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
        Arc::new(Self { partitions, phase: Mutex::new(Phase::Waiting { job, lent: HeldList::new() }) })
    }

    pub fn partitions(&self) -> &[PartitionRef] {
        &self.partitions
    }

    /// Lends one partition, held by the caller until now.
    pub fn lend(&self, partition: PartitionRef) -> Lend {
        let mut phase = self.phase.lock();
        match &mut *phase {
            Phase::Waiting { lent, .. } => {
                lent.push(partition);
                if lent.len() < self.partitions.len() {
                    return Lend::Kept;
                }
            }
            Phase::Running | Phase::Cancelled => return Lend::Refused,
        }
        match std::mem::replace(&mut *phase, Phase::Running) {
            Phase::Waiting { job, .. } => Lend::Run(job, self.partitions.clone()),
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
            Phase::Waiting { job, lent } => Some((job, lent)),
            Phase::Running | Phase::Cancelled => None,
        }
    }
}
