//! Epochs: whoever advances sees every commit of the epoch it closed, and no commit comes after. Numbers
//! beside slots: whoever sets a mark sees the number of everybody who has not found it.

use loom::cell::UnsafeCell;
use loom::thread;

use super::{explore, sync};
use crate::id::Epoch;

#[path = "../txn/epoch.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod code;

use code::EpochClock;

/// The redo of some epochs; written inside an epoch, taken when it is closed. The checker fails
/// if the two are not ordered.
struct Buffer(Vec<UnsafeCell<u32>>);

// SAFETY: what the model is to show: accesses are ordered by the epochs.
unsafe impl Sync for Buffer {}
// SAFETY: as above.
unsafe impl Send for Buffer {}

impl Buffer {
    fn append(&self, epoch: Epoch) {
        // SAFETY: checked by loom.
        self.0[epoch.0 as usize].with_mut(|count| unsafe { *count += 1 });
    }

    fn take(&self, epoch: Epoch) -> u32 {
        // SAFETY: checked by loom.
        self.0[epoch.0 as usize].with_mut(|count| unsafe { std::mem::take(&mut *count) })
    }
}

#[test]
fn a_closed_epoch_has_all_its_commits() {
    explore(3, || {
        let clock = sync::Arc::new(EpochClock::new(Epoch(1)));
        let buffer = sync::Arc::new(Buffer((0..8).map(|_| UnsafeCell::new(0)).collect()));
        let slot = clock.register();
        let committer = {
            let (clock, buffer) = (clock.clone(), buffer.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let epoch = clock.enter(&slot);
                    buffer.append(epoch);
                    clock.leave(&slot);
                }
            })
        };
        let mut taken = 0;
        for _ in 0..2 {
            taken += buffer.take(clock.advance());
        }
        committer.join().expect("it ends");
        taken += buffer.take(clock.current());
        assert_eq!(taken, 2, "a commit is missing, or was taken twice");
    });
}

#[test]
fn a_shared_advance_comes_after_what_all_did_who_share_it() {
    use sync::{AtomicBool, Ordering};
    explore(2, || {
        let clock = sync::Arc::new(EpochClock::new(Epoch(1)));
        let registered = sync::Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let slot = clock.register();
        let committer = {
            let (clock, registered) = (clock.clone(), registered.clone());
            thread::spawn(move || {
                let epoch = clock.enter(&slot);
                let seen = [0, 1].map(|who: usize| registered[who].load(Ordering::Acquire));
                clock.leave(&slot);
                (epoch, seen)
            })
        };
        let snapshot = {
            let (clock, registered) = (clock.clone(), registered.clone());
            move |who: usize| {
                registered[who].store(true, Ordering::Release);
                clock.advance_since()
            }
        };
        let other = {
            let snapshot = snapshot.clone();
            thread::spawn(move || snapshot(1))
        };
        let mine = snapshot(0);
        let closed = [mine, other.join().expect("it ends")];
        let (epoch, seen) = committer.join().expect("it ends");
        for who in [0, 1] {
            assert!(epoch <= closed[who] || seen[who], "a later commit does not know of the snapshot");
        }
    });
}

/// Who has read looks for a mark, and who replaces what was read for numbers: one of the two finds something.
/// Of the reference tables the model has the mark alone, which [`crate::txn`] sets in the same way.
#[test]
fn who_finds_no_mark_is_numbered_before_whoever_sets_it() {
    use sync::{AtomicU64, Ordering};
    // A writer commits with its number; a reader has met one; a third has met it twice, and fences once; a
    // thread that ends takes its number along.
    #[derive(Clone, Copy, PartialEq)]
    enum Reads {
        AndWrites,
        Alone,
        Twice,
        AndEnds,
    }
    for kind in [Reads::AndWrites, Reads::Alone, Reads::Twice, Reads::AndEnds] {
        explore(3, move || {
            let clock = sync::Arc::new(EpochClock::new(Epoch(1)));
            let version = sync::Arc::new(AtomicU64::new(0));
            let slot = clock.register();
            let reader = {
                let (clock, version) = (clock.clone(), version.clone());
                thread::spawn(move || {
                    match kind {
                        Reads::AndWrites => {
                            clock.enter_with(&slot, 7);
                        }
                        Reads::Alone | Reads::AndEnds => clock.note_met(&slot, 7),
                        Reads::Twice => {
                            clock.note_met(&slot, 7);
                            clock.note_met(&slot, 7);
                        }
                    }
                    let is_marked = version.load(Ordering::Acquire) & 1 == 1;
                    clock.leave(&slot);
                    if kind == Reads::AndEnds {
                        clock.unregister(&slot);
                    }
                    is_marked
                })
            };
            version.fetch_or(1, Ordering::AcqRel);
            let greatest = clock.greatest_number();
            let is_marked = reader.join().expect("it ends");
            assert!(is_marked || greatest >= 7, "neither has seen the other");
        });
    }
}
