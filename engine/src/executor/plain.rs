//! The driver of an executor without a runtime: drain, spin shortly, park.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

use super::{ExecutorHandle, SliceBudget};
use crate::log::Wake;

/// How often an idle executor looks before it parks.
const SPINS: u32 = 2_000;
/// A parked executor looks up this often anyway: for work of its island it may steal.
const PARK_MAX: Duration = Duration::from_millis(2);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// Drains until `stop`.
pub fn run_plain(handle: &ExecutorHandle, stop: &AtomicBool) {
    handle.seat();
    handle.set_waker(Arc::new(Unpark(std::thread::current())));
    let mut idle = 0;
    while !stop.load(Ordering::Relaxed) {
        let drained = handle.drain(SliceBudget::default());
        if drained.served > 0 || drained.more {
            idle = 0;
        } else if idle < SPINS {
            idle += 1;
            std::hint::spin_loop();
        } else {
            std::thread::park_timeout(PARK_MAX);
            idle = 0;
        }
    }
}
