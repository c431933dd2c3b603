//! Niced threads for long texts ([`super::planning`]).

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::threads::Threads;

/// No more texts than this are planned apart at a time, on however large a machine.
const PLACES_MAX: usize = 16;

/// The threads.
#[derive(Clone)]
pub struct PlanningThreads {
    pub(super) threads: Threads,
    pub(super) places: Arc<Semaphore>,
}

impl PlanningThreads {
    /// For a server of so many executors.
    pub fn new(executors: usize, threads: Threads) -> PlanningThreads {
        PlanningThreads { threads, places: Arc::new(Semaphore::new(executors.clamp(2, PLACES_MAX))) }
    }
}
