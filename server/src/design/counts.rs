//! Calls of routines, as they went: what `archipel.routines` shows of each.
//!
//! Every executor counts on cache lines of its own; who asks adds them up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archipel_engine::Outcome;
use archipel_sql::catalog::Catalog;
use archipel_sql::types::Oid;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

/// How the calls of one routine went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// CALL statements that ended well.
    pub calls: u64,
    /// Those whose partitions were not the predicted ones: they ran more than once.
    pub mispredicted: u64,
    /// How often they began anew.
    pub restarts: u64,
    /// Those that held several partitions.
    pub multi_partition: u64,
    /// Partitions they held in the end, all together.
    pub partitions: u64,
    /// Those that went on as interactive transactions.
    pub interactive: u64,
}

#[derive(Default)]
#[repr(align(128))]
struct Cell {
    calls: AtomicU64,
    mispredicted: AtomicU64,
    restarts: AtomicU64,
    multi_partition: AtomicU64,
    partitions: AtomicU64,
    interactive: AtomicU64,
}

/// One routine's.
pub struct RoutineCounts(Box<[Cell]>);

impl RoutineCounts {
    /// For calls that come from up to so many executors.
    pub fn new(executors: usize) -> RoutineCounts {
        RoutineCounts((0..executors.max(1)).map(|_| Cell::default()).collect())
    }

    /// Counts a call; `interactive`: it went on as an interactive transaction after this outcome.
    pub fn add(&self, executor: u16, outcome: &Outcome, interactive: bool) {
        let cell = &self.0[usize::from(executor) % self.0.len()];
        // One thread writes a cell, but while a session moves: a lost count is no harm.
        let add = |counter: &AtomicU64, more: u64| {
            counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        };
        add(&cell.calls, 1);
        add(&cell.partitions, u64::from(outcome.partitions));
        if outcome.partitions > 1 {
            add(&cell.multi_partition, 1);
        }
        if outcome.restarts > 0 {
            add(&cell.mispredicted, 1);
            add(&cell.restarts, u64::from(outcome.restarts));
        }
        if interactive {
            add(&cell.interactive, 1);
        }
    }

    /// All executors' together.
    pub fn sum(&self) -> CallCounts {
        let mut sum = CallCounts::default();
        for cell in &self.0 {
            let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            sum.calls += of(&cell.calls);
            sum.mispredicted += of(&cell.mispredicted);
            sum.restarts += of(&cell.restarts);
            sum.multi_partition += of(&cell.multi_partition);
            sum.partitions += of(&cell.partitions);
            sum.interactive += of(&cell.interactive);
        }
        sum
    }
}

/// Those of all routines that were called since the start.
#[derive(Default)]
pub struct AllCounts(RwLock<FxHashMap<Oid, Arc<RoutineCounts>>>);

impl AllCounts {
    /// The counters of a routine, which last beyond the plan of one statement.
    /// A new one is the occasion to forget those of routines that are not in `catalog` any more.
    pub fn of(&self, routine: Oid, executors: usize, catalog: &Catalog) -> Arc<RoutineCounts> {
        if let Some(known) = self.0.read().get(&routine) {
            return known.clone();
        }
        let mut all = self.0.write();
        if !all.contains_key(&routine) {
            all.retain(|oid, _| catalog.routine_by_oid(*oid).is_some());
        }
        all.entry(routine).or_insert_with(|| Arc::new(RoutineCounts::new(executors))).clone()
    }

    /// How the calls of a routine went.
    pub fn sum(&self, routine: Oid) -> CallCounts {
        self.0.read().get(&routine).map(|counts| counts.sum()).unwrap_or_default()
    }
}
