//! Small models of the lock-free parts, run through every interleaving by loom.
//!
//! The files under test are those of the engine, compiled a second time over the checker's own
//! atomics and locks: they name them through their parent's `sync`. What the models leave out is
//! said where it is.
//!
//! - [`gate`]   the state word, queues, and lending of partitions to tickets
//! - [`epoch`]  entering, leaving and advancing epochs, and advances that several share; numbers beside slots
//! - [`assist`] the rendezvous of a fan-out
//! - [`ready`]  what waits for an executor that ends or begins

mod assist;
mod epoch;
mod gate;
mod ready;

/// What the engine's `sync` is, as loom has it.
pub(crate) mod sync {
    // Tickets are counted by the standard library: their counts are not under test.
    pub(crate) use std::sync::Arc;

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use loom::thread::yield_now;

    /// The engine's locks do not poison.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no model panics under a lock")
        }
    }

    /// A spinning thread lets others run: the checker knows no time.
    pub(crate) struct Backoff;

    impl Backoff {
        pub fn new() -> Self {
            Self
        }

        pub fn snooze(&self) {
            yield_now();
        }

        pub fn is_completed(&self) -> bool {
            false
        }
    }
}

/// Every interleaving with at most so many preemptions; a bug in a protocol of this size shows
/// with two or three of them.
pub(crate) fn explore(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}
