//! The gate of a partition: its state word and its queue.
//!
//! See the parent module for the protocol. Written over `super::sync`, so that the model checker
//! can run the same lines over its own atomics (`crate::models`).

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::sync::{Arc, Ordering};
use super::ticket::{SplitRanges, Ticket};
use super::{HeldList, Partition, PartitionRef};

pub(super) const HELD: u32 = 1;
const QUEUED: u32 = 2;

/// The tickets that wait, oldest first.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) tickets: VecDeque<Arc<Ticket>>,
    /// The age of the youngest ticket that ever stood here.
    age: u64,
}

impl Queue {
    /// Puts tickets of several queues where their ages belong, each once.
    fn put_in_order(&mut self) {
        let mut tickets: Vec<Arc<Ticket>> = self.tickets.drain(..).collect();
        tickets.sort_by_key(|ticket| ticket.order());
        tickets.dedup_by(|a, b| Arc::ptr_eq(a, b));
        self.tickets = tickets.into();
    }
}

impl Partition {
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
        self.queue.lock().tickets.len()
    }

    /// Enters `ticket` into the queues of all its partitions atomically: all latches are taken,
    /// in partition order, before the first ticket is pushed. Returns the partitions that were
    /// idle: the caller holds them now and must serve their queues.
    #[must_use]
    pub fn enqueue_all(ticket: &Arc<Ticket>, partitions: &[PartitionRef]) -> HeldList {
        let mut gained = HeldList::new();
        let mut latches: SmallVec<[_; 4]> = SmallVec::new();
        for partition in partitions {
            latches.push(partition.queue.lock());
        }
        let age = latches.iter().map(|queue| queue.age).max().unwrap_or(0) + 1;
        ticket.set_age(age);
        for (&partition, latch) in partitions.iter().zip(latches.iter_mut()) {
            latch.age = age;
            latch.tickets.push_back(ticket.clone());
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
        let next = queue.tickets.pop_front();
        self.show(&queue);
        next
    }

    /// Makes the state word tell whether work is queued; the caller holds the partition and the
    /// latch of its queue.
    fn show(&self, queue: &Queue) {
        if queue.tickets.is_empty() {
            self.state.fetch_and(!QUEUED, Ordering::AcqRel);
        } else {
            self.state.fetch_or(QUEUED, Ordering::AcqRel);
        }
    }

    /// Divides the queue of a partition that was split: each ticket goes where its keys are, to
    /// both if need be, and keeps its place. The caller holds both. No routing table leads to
    /// `upper` for these keys yet; but it may have been another partition, for which tickets come
    /// by old ones: they stay, each at the place its age gives it.
    pub fn divide_queue(&'static self, upper: PartitionRef, ranges: &SplitRanges<'_>) {
        let (first, second) = if self.id < upper.id { (self, upper) } else { (upper, self) };
        let first_latch = first.queue.lock();
        let second_latch = second.queue.lock();
        let (mut queue, mut above) =
            if self.id < upper.id { (first_latch, second_latch) } else { (second_latch, first_latch) };
        let late = !above.tickets.is_empty();
        #[cfg(test)]
        let late = late && !crate::planted::has(crate::planted::Bug::LateDivision);
        above.age = above.age.max(queue.age);
        queue.tickets.retain(|ticket| {
            let (stays, goes) = ticket.split(self, upper, ranges);
            #[cfg(test)]
            let goes = goes && (stays || !crate::planted::is(crate::planted::Bug::DropForwarded));
            if goes {
                above.tickets.push_back(ticket.clone());
            }
            stays
        });
        if late {
            above.put_in_order();
        }
        self.show(&queue);
        upper.show(&above);
    }

    /// Unites the queues of two partitions that were merged: what waited for `from` waits here,
    /// at the place its age gives it. The caller holds both.
    pub fn unite_queues(&'static self, from: PartitionRef) {
        let (first, second) = if self.id < from.id { (self, from) } else { (from, self) };
        let first_latch = first.queue.lock();
        let second_latch = second.queue.lock();
        let (mut queue, mut gone) =
            if self.id < from.id { (first_latch, second_latch) } else { (second_latch, first_latch) };
        #[cfg(test)]
        if !gone.tickets.is_empty() && crate::planted::is(crate::planted::Bug::DropForwarded) {
            gone.tickets.clear();
        }
        for ticket in &gone.tickets {
            ticket.merge(self, from);
        }
        queue.tickets.append(&mut gone.tickets);
        queue.put_in_order();
        queue.age = queue.age.max(gone.age);
        self.show(&queue);
        from.show(&gone);
    }
}
