//! Epochs: the unit of group commit and of snapshots.
//!
//! A thread is inside an epoch only for the nanoseconds of its commit point. It stores the
//! global epoch in its own slot, fences, and re-reads the global epoch until both agree; then
//! whoever advances the epoch afterwards sees the slot. An epoch is closed when the global
//! epoch is beyond it and no slot holds it, so no further commit can join it.

use crossbeam::utils::CachePadded;

use super::sync::{Arc, AtomicU64, Backoff, Mutex, Ordering, fence, yield_now};
use crate::id::Epoch;

/// One thread's place inside an epoch; zero is outside.
pub(crate) type EpochSlot = CachePadded<AtomicU64>;

/// The global epoch and the threads that may be inside one.
pub struct EpochClock {
    global: CachePadded<AtomicU64>,
    slots: Mutex<Vec<Arc<EpochSlot>>>,
    /// The newest closed epoch; advancing is serialised by this lock.
    closed: Mutex<u64>,
}

impl EpochClock {
    /// Starts with `first` open; everything before it counts as closed.
    pub fn new(first: Epoch) -> Self {
        assert!(first.0 > 0, "epoch 0 means: outside, and: depends on nothing");
        Self {
            global: CachePadded::new(AtomicU64::new(first.0)),
            slots: Mutex::new(Vec::new()),
            closed: Mutex::new(first.0 - 1),
        }
    }

    /// The epoch that a commit would enter now.
    pub fn current(&self) -> Epoch {
        Epoch(self.global.load(Ordering::Acquire))
    }

    pub(crate) fn register(&self) -> Arc<EpochSlot> {
        let slot = Arc::new(CachePadded::new(AtomicU64::new(0)));
        self.slots.lock().push(slot.clone());
        slot
    }

    /// Takes back the slot of a thread that will enter no epoch any more, and is in none.
    pub(crate) fn unregister(&self, slot: &Arc<EpochSlot>) {
        debug_assert!(slot.load(Ordering::Relaxed) == 0, "nobody ends inside an epoch");
        self.slots.lock().retain(|other| !Arc::ptr_eq(other, slot));
    }

    /// How many threads may enter an epoch.
    #[cfg(test)]
    pub(crate) fn registered(&self) -> usize {
        self.slots.lock().len()
    }

    /// Enters the current epoch. Sequentially consistent: a thread that read the global epoch
    /// and one that advances it agree on who was first.
    pub(crate) fn enter(&self, slot: &EpochSlot) -> Epoch {
        loop {
            let epoch = self.global.load(Ordering::Acquire);
            // Release: who sees this entry sees what was done in the epochs before it.
            slot.store(epoch, Ordering::Release);
            fence(Ordering::SeqCst);
            if self.global.load(Ordering::Acquire) == epoch {
                return Epoch(epoch);
            }
        }
    }

    pub(crate) fn leave(&self, slot: &EpochSlot) {
        slot.store(0, Ordering::Release);
    }

    /// Opens the next epoch, waits until the old one is closed, and returns it. The wait is for
    /// commit points in progress: nanoseconds, unless such a thread is preempted.
    pub fn advance(&self) -> Epoch {
        self.close(&mut self.closed.lock())
    }

    /// As [`EpochClock::advance`], but whoever asks while another one advances shares the next advance with
    /// all who do.
    ///
    /// What the caller did before is done before the advance whose epoch it gets: it has seen an epoch open,
    /// so whoever closes that one, or a later one, opens the next after the look. A commit that enters a
    /// later epoch has seen it opened, and therefore (both sides have a fence between) sees what the caller
    /// did. An advance that was under way already closes an older epoch, and does not count.
    pub fn advance_since(&self) -> Epoch {
        fence(Ordering::SeqCst);
        let open = self.global.load(Ordering::SeqCst);
        let mut closed = self.closed.lock();
        match *closed >= open {
            true => Epoch(*closed),
            false => self.close(&mut closed),
        }
    }

    /// Advances; the caller has the lock.
    fn close(&self, closed: &mut u64) -> Epoch {
        let old = self.global.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let slots: Vec<Arc<EpochSlot>> = self.slots.lock().clone();
        for slot in &slots {
            let backoff = Backoff::new();
            loop {
                let inside = slot.load(Ordering::Acquire);
                if inside == 0 || inside > old {
                    break;
                }
                if backoff.is_completed() {
                    yield_now();
                } else {
                    backoff.snooze();
                }
            }
        }
        *closed = (*closed).max(old);
        Epoch(old)
    }
}
