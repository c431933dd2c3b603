//! Fan-out: one body over many partitions, shared between a transaction's thread and the idle
//! executors, meeting at a rendezvous.
//!
//! The transaction has claimed all the partitions; helpers only borrow them. Each index is
//! taken by exactly one thread, and the transaction's thread works too, so nobody waits for a
//! helper that has not begun: it waits only for bodies that already run.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::sync::{Arc, AtomicBool, AtomicUsize, Backoff, Ordering, yield_now};

/// A body to be called once for every index below `total`.
pub(crate) struct FanOut {
    next: AtomicUsize,
    done: AtomicUsize,
    total: usize,
    panicked: AtomicBool,
    body: *const (dyn Fn(usize) + Sync),
}

// SAFETY: the body is `Sync`, and is called only between the start and the end of `run`, whose
// caller keeps it alive (see there).
unsafe impl Send for FanOut {}
// SAFETY: as above; everything else is atomic.
unsafe impl Sync for FanOut {}

impl FanOut {
    /// Calls `body` for every index below `total`, with the help of whoever gets the shared
    /// value from `offer`. False if a body panicked. Returns after the last body has ended.
    pub fn run(total: usize, body: &(dyn Fn(usize) + Sync), offer: impl FnOnce(&Arc<FanOut>)) -> bool {
        // SAFETY: only the lifetime is erased. A helper calls the body only for an index below
        // `total` that it took itself and has not yet counted as done, and this function does
        // not return before as many are done as were taken: none can be taken afterwards.
        let body: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(body) };
        let shared = Arc::new(Self {
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            total,
            panicked: AtomicBool::new(false),
            body,
        });
        offer(&shared);
        shared.help();
        let backoff = Backoff::new();
        while shared.done.load(Ordering::Acquire) < total {
            if backoff.is_completed() {
                yield_now();
            } else {
                backoff.snooze();
            }
        }
        !shared.panicked.load(Ordering::Relaxed)
    }

    /// Takes indices until there are none left.
    pub fn help(&self) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.total {
                return;
            }
            // SAFETY: `index` was taken here and is not done: `run` keeps the body alive.
            let body = unsafe { &*self.body };
            if catch_unwind(AssertUnwindSafe(|| body(index))).is_err() {
                crate::panics::survive();
                self.panicked.store(true, Ordering::Relaxed);
            }
            self.done.fetch_add(1, Ordering::Release);
        }
    }
}
