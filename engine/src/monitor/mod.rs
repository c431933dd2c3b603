//! The monitor: what is measured, when it is evaluated, what is decided and how it is carried out.
//!
//! After ATraPos (D. Porobic, *High Performance Transaction Processing on Non-Uniform Hardware
//! Topologies*, EPFL thesis 7023, chapter 4), completed where it is silent. In the order of the
//! flow:
//!
//! - [`counters`]    what threads and partitions count, by the [`footprint`] of runs, and [`sketch`]
//!   of hot keys
//! - [`gather`]      from counters to a trace
//! - [`trigger`]     when to evaluate: pure
//! - [`model`]       the costs RU and TS: pure
//! - [`thesis`]      both searches as the thesis writes them: pure, the yardstick
//! - [`balance`], [`synchronize`]  both searches as they are used: pure
//! - [`crossings`]   what runs cost by how far they are from their data: pure
//! - [`islands`]     the size of the islands, as a decision
//! - [`speed`]       how fast the cores are, measured
//! - [`decide`]      forecast, hysteresis and the cost of moving: pure
//! - [`compare`]     whether two windows show one load: pure
//! - [`plan`]        from a layout to splits, merges and moves
//! - [`watch`]       the thread that does all this, a step at a time
//! - [`decision`]    what is told of it, and [`report`] of a trace
//!
//! Invariant: the monitor changes nothing but through [`crate::Repartition`], whose actions run in
//! the queues of the partitions concerned and keep the routing table whole. A wrong decision costs
//! time, never an answer.
//!
//! The thesis's gaps, and what is done about each:
//!
//! 1. *A steady start is never evaluated.* The first full trace is evaluated (`trigger`).
//! 2. *"Changed" and "stable".* A deviation begins a watch; two windows in a row must agree on
//!    where the load lies before anything is decided (`watch`). Imbalance and a shift of the mix
//!    trigger too. Throughput is compared once there are two intervals.
//! 3. *Shape of the synchronization counters.* Sparse: class, sub-partitions, bytes (`counters`).
//! 4. *Contiguity.* Layouts are ranges; a core has several (`balance`).
//! 5. *Swap safety.* Balance is checked after every switch (`synchronize`); cores differ in speed,
//!    which is measured (`speed`), and may be fewer than tables (`model`).
//! 6. *Noise.* Forecasts are judged by a window that the search has not seen. Hysteresis: a least
//!    gain, what chance shows in so many samples and between two windows, the cost of the actions
//!    (`decide`), what a core is faster or slower by for a moment (`model`), a longer look at what may be chance, and a hold-off after repartitionings that
//!    brought little (`watch`).
//! 7. *Hot keys.* Found by a sketch and given a slice of their own (`gather`), so that the first
//!    search gives them a partition; what is still too hot is told as advice (`decision`).
//! 8. *Loose prose.* No number of the thesis is built in; forecasts are measured afterwards and
//!    both are shown.
//! 9. *The log.* Not centralised: threads write redo of their own ([`crate::log`]).
//! 10. *Locks, isolation, aborts, recovery of partition metadata.* The claim is the lock
//!     ([`crate::partition`]); bounds, homes and marks are logged ([`crate::txn`]).
//! 11. *Known classes.* A class is a deployed routine ([`crate::Program::class`]); statements share
//!     class 0. Any program may meet any partition: what met is counted, not declared.
//! 12. *Shape in code.* Numbers stand in the partition and in the thread; the monitor reads them
//!     behind latches that their owners only try.
//!
//! Unlike the thesis's, a repartitioning is no pause: each action holds the partitions it changes,
//! for microseconds, and everybody else goes on.

pub mod balance;
mod compare;
pub(crate) mod counters;
pub mod crossings;
pub mod decide;
mod decision;
pub(crate) mod footprint;
mod gather;
mod islands;
pub mod model;
mod plan;
mod report;
mod settings;
pub(crate) mod sketch;
mod speed;
pub mod synchronize;
pub mod thesis;
#[cfg(test)]
mod trials;
mod trigger;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

pub(crate) use counters::{
    MEASURE_EVERY, PartitionStatistics, Rate, Run, Tally, ThreadStatistics, is_one_in, measure,
};
pub use decision::{Advice, Decision, PartitionLoad, SyncPointView, Told};
pub(crate) use footprint::{Footprint, looked_at};
pub use settings::MonitorSettings;
pub use trigger::Reason;
pub(crate) use watch::tick;

use decision::Decisions;
use gather::Gathered;
use watch::Watch;

/// The monitor's part of the engine's shared state.
pub(crate) struct Monitor {
    /// Copied out of the settings: read by every run that may be measured.
    measures: AtomicBool,
    settings: Mutex<MonitorSettings>,
    threads: Mutex<Vec<Arc<Mutex<ThreadStatistics>>>>,
    /// What threads counted that have ended.
    ended: Mutex<RunCounts>,
    watch: Mutex<Watch>,
    pub decisions: Decisions,
    shown: Mutex<Shown>,
}

/// The last trace, for the views.
#[derive(Default)]
struct Shown {
    loads: Vec<PartitionLoad>,
    sync_points: Vec<SyncPointView>,
}

/// Exact counts over all threads, for the views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// As of each thread's last measured run.
    pub runs: u64,
    /// Runs that held several partitions.
    pub multi_partition: u64,
    pub restarts: u64,
    pub queued: u64,
    /// Estimated nanoseconds that queued runs waited.
    pub queue_wait_nanos: u64,
    /// Measured meetings that no thread had room to tell apart.
    pub meetings_lost: u64,
}

impl Monitor {
    pub fn new(settings: MonitorSettings) -> Self {
        Self {
            measures: AtomicBool::new(settings.measures),
            settings: Mutex::new(settings),
            threads: Mutex::default(),
            ended: Mutex::default(),
            watch: Mutex::default(),
            decisions: Decisions::default(),
            shown: Mutex::default(),
        }
    }

    /// Whether runs are measured.
    #[inline]
    pub fn measures(&self) -> bool {
        self.measures.load(Ordering::Relaxed)
    }

    pub fn settings(&self) -> MonitorSettings {
        *self.settings.lock()
    }

    pub fn set(&self, settings: MonitorSettings) {
        self.measures.store(settings.measures, Ordering::Relaxed);
        *self.settings.lock() = settings;
    }

    /// The counters of a new thread.
    pub fn register_thread(&self) -> Arc<Mutex<ThreadStatistics>> {
        let thread = Arc::<Mutex<ThreadStatistics>>::default();
        self.threads.lock().push(thread.clone());
        thread
    }

    /// A thread has ended; it counts on.
    pub fn end_thread(&self, thread: &Arc<Mutex<ThreadStatistics>>) {
        let mut threads = self.threads.lock();
        threads.retain(|other| !Arc::ptr_eq(other, thread));
        self.ended.lock().add(&thread.lock());
    }

    fn threads(&self) -> Vec<Arc<Mutex<ThreadStatistics>>> {
        self.threads.lock().clone()
    }

    fn show(&self, gathered: &Gathered) {
        let (loads, sync_points) = report::views(gathered);
        *self.shown.lock() = Shown { loads, sync_points };
    }

    pub fn loads(&self) -> Vec<PartitionLoad> {
        self.shown.lock().loads.clone()
    }

    pub fn sync_points(&self) -> Vec<SyncPointView> {
        self.shown.lock().sync_points.clone()
    }

    pub fn run_counts(&self) -> RunCounts {
        // Under one latch: whoever ends meanwhile is counted once.
        let threads = self.threads.lock();
        let mut counts = *self.ended.lock();
        for thread in &*threads {
            counts.add(&thread.lock());
        }
        counts
    }
}

impl RunCounts {
    fn add(&mut self, thread: &ThreadStatistics) {
        let tally = thread.tally;
        self.runs += tally.runs;
        self.multi_partition += tally.multi;
        self.restarts += tally.restarts;
        self.queued += tally.queued;
        self.queue_wait_nanos += tally.waited_nanos * MEASURE_EVERY;
        self.meetings_lost += thread.lost;
    }
}
