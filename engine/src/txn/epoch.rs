//! Epochs: the unit of group commit and of snapshots.
//!
//! A thread is inside an epoch only for the nanoseconds of its commit point. It stores the
//! global epoch in its own slot, fences, and re-reads the global epoch until both agree; then
//! whoever advances the epoch afterwards sees the slot. An epoch is closed when the global
//! epoch is beyond it and no slot holds it, so no further commit can join it.
//!
//! Beside its epoch a slot has a number: the greatest that the thread has given to a transaction
//! ([`crate::log::transaction`]), or has met where it has read reference tables. Who reads those claims
//! nothing, so nothing else would tell their next writer whose numbers are to be below its own. The fence
//! of the epoch serves this, too:
//!
//! ```text
//! T, which has read a version       number into its slot │ fence │ is there a mark?
//! U, which puts another in place    mark │ fence │ the greatest number of all slots, and one more
//! ```
//!
//! So T sees the mark and runs again, or U sees T's number. Numbers stay in slots: what a thread gave before
//! makes U's number greater than need be, and harms nobody.

use crossbeam::utils::CachePadded;

use super::sync::{Arc, AtomicU64, Backoff, Mutex, Ordering, fence, yield_now};
use crate::id::Epoch;

/// One thread's place inside an epoch, and the number beside it, which the thread alone writes.
pub(crate) type EpochSlot = CachePadded<Slot>;

/// See [`EpochSlot`].
#[derive(Debug)]
pub(crate) struct Slot {
    /// Zero is outside.
    epoch: AtomicU64,
    /// Never gets less.
    number: AtomicU64,
}

impl Slot {
    /// Whether the number was news, which a fence has to follow.
    fn note(&self, number: u64) -> bool {
        let is_news = self.number.load(Ordering::Relaxed) < number;
        if is_news {
            self.number.store(number, Ordering::Relaxed);
        }
        is_news
    }
}

/// The slots of all threads.
struct Slots {
    all: Vec<Arc<EpochSlot>>,
    /// The greatest number beside one that was taken back.
    number_gone: u64,
}

/// The global epoch and the threads that may be inside one.
pub struct EpochClock {
    global: CachePadded<AtomicU64>,
    slots: Mutex<Slots>,
    /// The newest closed epoch; advancing is serialised by this lock.
    closed: Mutex<u64>,
}

impl EpochClock {
    /// Starts with `first` open; everything before it counts as closed.
    pub fn new(first: Epoch) -> Self {
        assert!(first.0 > 0, "epoch 0 means: outside, and: depends on nothing");
        Self {
            global: CachePadded::new(AtomicU64::new(first.0)),
            slots: Mutex::new(Slots { all: Vec::new(), number_gone: 0 }),
            closed: Mutex::new(first.0 - 1),
        }
    }

    /// The epoch that a commit would enter now.
    pub fn current(&self) -> Epoch {
        Epoch(self.global.load(Ordering::Acquire))
    }

    pub(crate) fn register(&self) -> Arc<EpochSlot> {
        let slot = Slot { epoch: AtomicU64::new(0), number: AtomicU64::new(0) };
        let slot = Arc::new(CachePadded::new(slot));
        self.slots.lock().all.push(slot.clone());
        slot
    }

    /// Takes back the slot of a thread that will enter no epoch any more, and is in none.
    pub(crate) fn unregister(&self, slot: &Arc<EpochSlot>) {
        debug_assert!(slot.epoch.load(Ordering::Relaxed) == 0, "nobody ends inside an epoch");
        let mut slots = self.slots.lock();
        slots.number_gone = slots.number_gone.max(slot.number.load(Ordering::Relaxed));
        slots.all.retain(|other| !Arc::ptr_eq(other, slot));
    }

    /// How many threads may enter an epoch.
    #[cfg(test)]
    pub(crate) fn registered(&self) -> usize {
        self.slots.lock().all.len()
    }

    /// Enters the current epoch with a transaction of this number, or with none that reference tables
    /// concern. Sequentially consistent: a thread that read the global epoch and one that advances it
    /// agree on who was first; and a mark that is looked for from here on, and not found, is set by
    /// somebody who will see the number.
    pub(crate) fn enter_with(&self, slot: &EpochSlot, number: u64) -> Epoch {
        slot.note(number);
        self.enter(slot)
    }

    /// As [`EpochClock::enter_with`], with no number.
    pub(crate) fn enter(&self, slot: &EpochSlot) -> Epoch {
        loop {
            let epoch = self.global.load(Ordering::Acquire);
            // Release: who sees this entry sees what was done in the epochs before it.
            slot.epoch.store(epoch, Ordering::Release);
            fence(Ordering::SeqCst);
            if self.global.load(Ordering::Acquire) == epoch {
                return Epoch(epoch);
            }
        }
    }

    pub(crate) fn leave(&self, slot: &EpochSlot) {
        slot.epoch.store(0, Ordering::Release);
    }

    /// Says, before a mark is looked for, that whoever sets it later is to come behind this number: for who
    /// has only read, and enters no epoch. What was said before was fenced then.
    pub(crate) fn note_met(&self, slot: &EpochSlot, number: u64) {
        if slot.note(number) {
            fence(Ordering::SeqCst);
        }
    }

    /// The greatest number beside any slot; the caller has set a mark before. Who has not seen it, has its
    /// number there by now.
    pub(crate) fn greatest_number(&self) -> u64 {
        fence(Ordering::SeqCst);
        let slots = self.slots.lock();
        let numbers = slots.all.iter().map(|slot| slot.number.load(Ordering::Acquire));
        numbers.fold(slots.number_gone, u64::max)
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
        let slots: Vec<Arc<EpochSlot>> = self.slots.lock().all.clone();
        for slot in &slots {
            let backoff = Backoff::new();
            loop {
                let inside = slot.epoch.load(Ordering::Acquire);
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
