//! Fan-out: one body over many partitions, shared between a transaction's thread and the idle
//! executors, meeting at a rendezvous.
//!
//! The transaction has claimed all the partitions; helpers only borrow them. Each index is
//! taken by exactly one thread, and the transaction's thread works too, so nobody waits for a
//! helper that has not begun: it waits only for bodies that already run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
        let backoff = crossbeam::utils::Backoff::new();
        while shared.done.load(Ordering::Acquire) < total {
            if backoff.is_completed() {
                std::thread::yield_now();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_called_once_also_when_a_body_panics() {
        for helpers in [0, 1, 3] {
            let counts: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            let body = |index: usize| {
                counts[index].fetch_add(1, Ordering::Relaxed);
                assert!(index != 42 || helpers != 3, "a bug in a body");
            };
            let mut threads = Vec::new();
            let fine = FanOut::run(counts.len(), &body, |shared| {
                for _ in 0..helpers {
                    let shared = shared.clone();
                    threads.push(std::thread::spawn(move || shared.help()));
                }
            });
            assert_eq!(fine, helpers != 3);
            for thread in threads {
                thread.join().expect("a helper ends");
            }
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }
}
