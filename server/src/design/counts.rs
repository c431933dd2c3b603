//! Calls of routines, as they went: what `archipel.routines` shows of each.
//!
//! Every executor counts on cache lines of its own; who asks adds them up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use archipel_planner::native::{Usage, Used};
use archipel_sql::catalog::Catalog;
use archipel_sql::types::Oid;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

/// How the calls of one routine went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Statements that were calls of it, and ended well.
    pub calls: u64,
    /// Rows they answered.
    pub rows: u64,
    /// How long they took, from the session's point of view.
    pub nanos: u64,
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

/// A call, as far as one transaction of the engine has run it.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Whether the call has begun in it.
    pub begins: bool,
    pub rows: u64,
    pub nanos: u64,
    /// Those it held in the end.
    pub partitions: u32,
    pub restarts: u32,
    /// Whether it went on as an interactive transaction.
    pub interactive: bool,
}

#[derive(Default)]
#[repr(align(128))]
struct Cell {
    calls: AtomicU64,
    rows: AtomicU64,
    nanos: AtomicU64,
    mispredicted: AtomicU64,
    restarts: AtomicU64,
    multi_partition: AtomicU64,
    partitions: AtomicU64,
    interactive: AtomicU64,
}

/// One routine's.
pub struct RoutineCounts {
    /// The monitor's number of it: 0 is that of all that is no call.
    pub class: u32,
    cells: Box<[Cell]>,
}

impl RoutineCounts {
    /// For calls that come from up to so many executors.
    pub fn new(executors: usize, class: u32) -> RoutineCounts {
        RoutineCounts { class, cells: (0..executors.max(1)).map(|_| Cell::default()).collect() }
    }

    /// Counts a call, or what came of it after it had ended a transaction.
    pub fn add(&self, executor: u16, call: &Counted) {
        let cell = &self.cells[usize::from(executor) % self.cells.len()];
        // One thread writes a cell, but while a session moves: a lost count is no harm.
        let add = |counter: &AtomicU64, more: u64| {
            counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        };
        add(&cell.calls, u64::from(call.begins));
        add(&cell.rows, call.rows);
        add(&cell.nanos, call.nanos);
        add(&cell.partitions, u64::from(call.partitions));
        if call.partitions > 1 {
            add(&cell.multi_partition, 1);
        }
        if call.restarts > 0 {
            add(&cell.mispredicted, 1);
            add(&cell.restarts, u64::from(call.restarts));
        }
        if call.interactive {
            add(&cell.interactive, 1);
        }
    }

    /// All executors' together.
    pub fn sum(&self) -> CallCounts {
        let mut sum = CallCounts::default();
        for cell in &self.cells {
            let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            sum.calls += of(&cell.calls);
            sum.rows += of(&cell.rows);
            sum.nanos += of(&cell.nanos);
            sum.mispredicted += of(&cell.mispredicted);
            sum.restarts += of(&cell.restarts);
            sum.multi_partition += of(&cell.multi_partition);
            sum.partitions += of(&cell.partitions);
            sum.interactive += of(&cell.interactive);
        }
        sum
    }
}

/// Where the monitor's numbers of routines come from: no two of a server have the same, of whichever
/// database.
#[derive(Default)]
pub struct Classes(AtomicU32);

impl Classes {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Those of all routines of a database that were called since the start.
pub struct AllCounts {
    classes: Arc<Classes>,
    calls: RwLock<FxHashMap<Oid, Arc<RoutineCounts>>>,
    /// What `track_functions` has asked for, nested calls included.
    used: Mutex<FxHashMap<Oid, Used>>,
}

impl AllCounts {
    /// Of no routine so far.
    pub fn new(classes: Arc<Classes>) -> AllCounts {
        AllCounts { classes, calls: RwLock::default(), used: Mutex::default() }
    }

    /// The routine of the monitor's number.
    pub fn routine_of(&self, class: u32) -> Option<Oid> {
        let calls = self.calls.read();
        calls.iter().find(|(_, counts)| counts.class == class).map(|(routine, _)| *routine)
    }

    /// The counters of a routine, which last beyond the plan of one statement.
    /// A new one is the occasion to forget those of routines that are not in `catalog` any more.
    pub fn of(&self, routine: Oid, executors: usize, catalog: &Catalog) -> Arc<RoutineCounts> {
        if let Some(known) = self.calls.read().get(&routine) {
            return known.clone();
        }
        let mut all = self.calls.write();
        if !all.contains_key(&routine) {
            all.retain(|oid, _| catalog.routine_by_oid(*oid).is_some());
        }
        let new = || Arc::new(RoutineCounts::new(executors, self.classes.next()));
        all.entry(routine).or_insert_with(new).clone()
    }

    /// How often each routine was called.
    pub fn calls(&self) -> BTreeMap<Oid, u64> {
        self.calls.read().iter().map(|(routine, counts)| (*routine, counts.sum().calls)).collect()
    }

    /// How the calls of a routine went.
    pub fn sum(&self, routine: Oid) -> CallCounts {
        self.calls.read().get(&routine).map(|counts| counts.sum()).unwrap_or_default()
    }

    /// Adds what the routines of a run took.
    pub fn add_usage(&self, usage: &Usage, catalog: &Catalog) {
        let mut all = self.used.lock();
        for (routine, more) in usage.routines.iter().filter(|(_, used)| *used != Used::default()) {
            if !all.contains_key(routine) {
                all.retain(|oid, _| catalog.routine_by_oid(*oid).is_some());
            }
            let used = all.entry(*routine).or_default();
            used.calls += more.calls;
            used.total_nanos += more.total_nanos;
            used.self_nanos += more.self_nanos;
        }
    }

    /// What calls of a routine took; `None` if none was tracked.
    pub fn used(&self, routine: Oid) -> Option<Used> {
        self.used.lock().get(&routine).copied()
    }
}
