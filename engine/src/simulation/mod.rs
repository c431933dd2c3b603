//! The engine under a seeded scheduler, on one thread.
//!
//! Virtual executors, clients, the log writer, repartitioning, memory that follows partitions, cores
//! that come and go, checkpoints, snapshots, long reads, faults and crashes are steps; the scheduler
//! draws the next one from the seed. At every point where a thread may be preempted — inside a
//! program, before its commit, before its release, between entering the queues and serving them,
//! between slices of a checkpoint, between pages of a long read, in the middle of a slow sync — it
//! may take other steps in between, so that claim holders are interrupted, tickets are
//! lent partitions one by one, ranges move under both, and work queues behind them.
//!
//! Checked on every seed, with the numbers of the invariants in ARCHITECTURE.md:
//!
//! 1. no partition has two holders;
//! 2. nothing waits for ever: when all have stopped, no queue holds work and no submission is lost;
//! 3. the epochs of what was recovered are a prefix;
//! 4. what was acknowledged is there after a crash at any point;
//! 5. a crash leaves the state of whole transfers, and balances and indexes to match;
//! 6. readers find every account once, whatever was split, merged or moved meanwhile, and no
//!    transfer runs twice or vanishes (the engine itself asserts the routing table's cover);
//!    in the order of the log transactions meet what they and readers say they have read ([`order`]);
//! 7. readers and snapshots see all or nothing of every transfer, readers in pages just those up to
//!    their snapshot ([`readers`]); and one serial order, in agreement with real time, explains
//!    what everybody saw ([`history`]).
//!
//! `ARCHIPEL_SEEDS=from..to` runs other seeds. A seed that fails prints the steps that led there,
//! and runs through them again exactly.

mod clients;
#[path = "../../tests/common/mod.rs"]
pub(crate) mod common;
mod cores;
mod definitions;
mod faults;
mod history;
mod order;
mod programs;
mod readers;
mod tests;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use crate::cell::{Cell, ColumnKind};
use crate::clock::Clock;
use crate::id::{Epoch, ExecutorId, GroupId, PartitionId, TreeId, TxnId};
use crate::log::memory::{Faults, Survivors};
use crate::log::{LogLimits, MemoryStore};
use crate::random::{RandomStream, SeededEntropy};
use crate::schema::{Placement, TableDef};
use crate::spawn::NoSpawn;
use crate::storage::KeyBuf;
use crate::storage::key::encode_cell;
use crate::topology::{Invented, Topology};
use crate::{
    ColumnSource, DdlOp, Direction, Engine, EngineConfig, ExecutorHandle, Inserted, Interactive, Interleave,
    KeyRange, Point, REFERENCE_GROUP, Repartition, Repartitioning, Seams, SliceBudget, Snapshot, Stop,
    Submission, SubmitOptions, Txn, planted,
};
use clients::eager_monitor;
use common::*;
use faults::{FaultyStore, LeapingClock, Quiet};
use history::{History, Whole};
use order::{LogOrder, Pipeline, Sighting};
use programs::*;
use readers::Reader;

const ACCOUNTS_COUNT: i64 = 24;
const TOTAL: i64 = ACCOUNTS_COUNT * 100;
const HISTORY: TreeId = TreeId(120);
const LISTS: TreeId = TreeId(121);
/// An account that mirrors a reference row, below all others.
const MIRROR: i64 = -1;
const EXECUTORS: u16 = 4;
const DEPTH_MAX: usize = 5;
/// Transactions of a seed, and of one life between crashes.
const TRANSACTIONS: usize = 2_000;
const TRANSACTIONS_OF_A_LIFE: usize = 600;
/// Whatever is still on its way after so many slices of every executor is lost.
const ROUNDS_MAX: usize = 10_000;
/// A queue is drained every few steps.
const STEPS_WITHOUT_PROGRESS_MAX: usize = 20_000;
/// The last steps, as printed when a seed fails.
const TRACE_MAX: usize = 300;

thread_local! {
    /// The running simulation; programs, points and the store reach it from inside the engine.
    static SIMULATION: RefCell<Option<Rc<Simulation>>> = const { RefCell::new(None) };
}

fn simulation() -> Option<Rc<Simulation>> {
    SIMULATION.with(|simulation| simulation.borrow().clone())
}

/// Counts something that the engine has done, if it is simulated.
pub(crate) fn happened(what: &'static str) {
    if let Some(simulation) = simulation() {
        simulation.count(what);
    }
}

/// Notes a step of the engine's own in the trace.
pub(crate) fn trace(what: &'static str, one: u64, other: usize) {
    if let Some(simulation) = simulation() {
        simulation.note(what, one as i64, other as i64);
    }
}

struct Points;

impl Interleave for Points {
    fn at(&self, point: Point) {
        if let Some(simulation) = simulation() {
            if *simulation.checkpointing.borrow() {
                if point == Point::BeforeRelease {
                    simulation.beside_checkpoint();
                }
                return;
            }
            match point {
                Point::BeforePage => simulation.between_pages(),
                Point::AwaitsPage => simulation.while_a_page_is_awaited(),
                _ => simulation.come_between(),
            }
        }
    }
}

/// One step of the trace: how deep, what, and two numbers that say more.
type Trace = (usize, &'static str, i64, i64);

struct Simulation {
    random: RefCell<RandomStream>,
    clock: Arc<LeapingClock>,
    store: RefCell<MemoryStore>,
    engine: RefCell<Option<Engine>>,
    /// The cores there are just now.
    cores: Arc<Invented>,
    /// Somebody, further down the stack, follows the topology.
    looking: RefCell<bool>,
    /// By executor; `None`: its thread has ended.
    handles: RefCell<Vec<Option<Rc<ExecutorHandle>>>>,
    depth: RefCell<usize>,
    /// How many log operations are in progress further down the stack.
    in_log: RefCell<usize>,
    checkpointing: RefCell<bool>,
    /// No faults while the world is being made and checked.
    sheltered: RefCell<bool>,
    /// The log has failed: this life ends soon.
    failed: RefCell<bool>,
    /// Steps since a transaction ended, and how many had.
    idle: RefCell<(usize, usize)>,
    /// What was found wrong, first. Nothing happens any more.
    broken: RefCell<Option<String>>,
    /// The process has died: this is what the disk has.
    doomed: RefCell<Option<MemoryStore>>,
    /// What every program now running holds, innermost last.
    holders: RefCell<Vec<BTreeSet<PartitionId>>>,
    transfers: RefCell<Vec<PendingTransfer>>,
    looks: RefCell<Vec<PendingLook>>,
    /// Clients of some transfers and looks.
    pipelines: RefCell<Vec<Pipeline>>,
    order: RefCell<LogOrder>,
    reads: RefCell<Vec<(u64, Submission<Script<Whole>>)>>,
    others: RefCell<Vec<Submission<Script<()>>>>,
    changes: RefCell<Vec<(&'static str, Submission<Repartitioning>)>>,
    /// An index that is filled in slices, and whether those that were so have been completed.
    build: RefCell<Option<definitions::Build>>,
    completed: RefCell<Vec<bool>>,
    sessions: RefCell<Vec<Session>>,
    snapshots: RefCell<Vec<Rc<Snapshot>>>,
    /// Who reads in pages just now, the one highest on the stack last.
    readers: RefCell<Vec<Reader>>,
    /// What readers in pages saw in this life: as of which epoch, and which transfers.
    sights: RefCell<Vec<(Epoch, BTreeSet<i64>)>>,
    history: RefCell<History>,
    /// Committed transfers and the epochs their replies depend on.
    committed: RefCell<BTreeMap<i64, Epoch>>,
    acknowledged: RefCell<BTreeSet<i64>>,
    next_transfer: RefCell<i64>,
    /// Moves with every event that a client could tell apart.
    moment: RefCell<u64>,
    done: RefCell<BTreeMap<&'static str, usize>>,
    trace: RefCell<VecDeque<Trace>>,
    /// Everything that was ever traced, in one number: a replay comes to the same.
    fingerprint: RefCell<u64>,
}

/// Its number, when it was submitted, whose it is, and what becomes of it.
type PendingTransfer = (i64, u64, Option<usize>, Submission<Script<Seen>>);

/// Whose it is, when it was submitted, and what becomes of it.
type PendingLook = (Option<usize>, u64, Submission<Script<Seen>>);

struct Session {
    transaction: Interactive,
    statement: Option<(i64, Submission<Script<Seen>>)>,
    transfers: Vec<i64>,
    lists: Vec<(i64, Vec<i64>)>,
    start: u64,
}

impl Simulation {
    fn new(seed: u64) -> Rc<Self> {
        let simulation = Rc::new(Self {
            random: RefCell::new(RandomStream::new(seed)),
            clock: Arc::default(),
            store: RefCell::new(MemoryStore::new()),
            engine: RefCell::new(None),
            cores: Arc::new(cores::cores()),
            looking: RefCell::new(false),
            handles: RefCell::default(),
            depth: RefCell::new(0),
            in_log: RefCell::new(0),
            checkpointing: RefCell::new(false),
            sheltered: RefCell::new(true),
            failed: RefCell::new(false),
            idle: RefCell::default(),
            broken: RefCell::new(None),
            doomed: RefCell::new(None),
            holders: RefCell::default(),
            transfers: RefCell::default(),
            looks: RefCell::default(),
            pipelines: RefCell::default(),
            order: RefCell::default(),
            reads: RefCell::default(),
            others: RefCell::default(),
            changes: RefCell::default(),
            build: RefCell::default(),
            completed: RefCell::default(),
            sessions: RefCell::default(),
            snapshots: RefCell::default(),
            readers: RefCell::default(),
            sights: RefCell::default(),
            history: RefCell::default(),
            committed: RefCell::default(),
            acknowledged: RefCell::default(),
            next_transfer: RefCell::new(1),
            moment: RefCell::new(0),
            done: RefCell::default(),
            trace: RefCell::default(),
            fingerprint: RefCell::new(0),
        });
        simulation.open(seed);
        simulation
    }

    fn open(&self, seed: u64) {
        let config = EngineConfig {
            executors: self.cores.read().expect("one core stays").executors(),
            executors_max: EXECUTORS.into(),
            background: false,
            abort_on_log_failure: false,
            pin_threads: false,
            recovery_threads: 1,
            // Many slices a partition.
            checkpoint_slice_bytes: 256,
            // Some transfers have parts, and some of these several.
            log: LogLimits { part_bytes: 160 + 160 * (seed % 4) as usize, ..LogLimits::default() },
            // Many pages a read.
            page_rows_max: 1 + (seed % 4) as usize,
            // Most transactions end in slices.
            ended_at_once: (seed % 3) as usize,
            slice_changes_max: 1 + (seed % 5) as usize,
            monitor: eager_monitor(),
            ..EngineConfig::default()
        };
        let seams = Seams {
            clock: self.clock.clone(),
            entropy: Arc::new(SeededEntropy::new(seed)),
            spawn: Arc::new(NoSpawn),
            interleave: Some(Arc::new(Points)),
            topology: Some(self.cores.clone()),
        };
        let store = Arc::new(FaultyStore(self.store.borrow().clone()));
        let sheltered = self.sheltered.replace(true);
        let engine = Engine::open_with(config, store, seams, &|_| {}).expect("the engine opens");
        self.sheltered.replace(sheltered);
        self.attach(&engine);
        *self.engine.borrow_mut() = Some(engine);
    }

    fn engine(&self) -> Engine {
        self.engine.borrow().clone().expect("open")
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.borrow_mut().below(bound)
    }

    fn account(&self) -> i64 {
        self.below(ACCOUNTS_COUNT as u64) as i64
    }

    fn now(&self) -> u64 {
        *self.moment.borrow_mut() += 1;
        *self.moment.borrow()
    }

    fn count(&self, what: &'static str) {
        *self.done.borrow_mut().entry(what).or_default() += 1;
    }

    fn counted(&self, what: &str) -> usize {
        self.done.borrow().get(what).copied().unwrap_or(0)
    }

    fn note(&self, what: &'static str, one: i64, other: i64) {
        let depth = *self.depth.borrow();
        let mut fingerprint = self.fingerprint.borrow_mut();
        for number in [depth as i64, what.len() as i64, one, other] {
            *fingerprint = (fingerprint.rotate_left(5) ^ number as u64).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        let mut trace = self.trace.borrow_mut();
        if trace.len() == TRACE_MAX {
            trace.pop_front();
        }
        trace.push_back((depth, what, one, other));
    }

    /// A check of what clients saw, or of what was recovered.
    fn expect(&self, checked: Result<(), String>) {
        if let Err(violation) = checked {
            self.broken.borrow_mut().get_or_insert(violation);
        }
    }

    /// Whether this life is over: something was found wrong, or the process has died.
    fn is_over(&self) -> bool {
        self.broken.borrow().is_some() || self.doomed.borrow().is_some()
    }

    /// Steps on top of somebody's stack. A panic there is a finding, and must not unwind
    /// through the engine, which ends the process over it.
    fn guarded(&self, body: impl FnOnce()) {
        if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
            self.expect(Err(tests::message(&*panic)));
        }
    }

    fn expect_nothing_missing(&self, id: i64, seen: &Seen) {
        self.expect(match seen.missing {
            None => Ok(()),
            Some(what) => Err(format!("transfer {id} did not find {what}")),
        });
    }

    /// Other threads' steps, while the caller stands still.
    fn come_between(&self) {
        // Rarer the deeper, or the steps of steps would have no end.
        let depth = *self.depth.borrow();
        if depth >= DEPTH_MAX || self.below(4 << depth) != 0 {
            return;
        }
        *self.depth.borrow_mut() += 1;
        self.guarded(|| {
            for _ in 0..=self.below(2) {
                self.step();
            }
        });
        *self.depth.borrow_mut() = depth;
    }

    fn step(&self) {
        if self.is_over() {
            return;
        }
        // The virtual client sits on some executor's thread, or on none.
        let seat = self.below(u64::from(EXECUTORS) + 1) as usize;
        let handle = self.handles.borrow().get(seat).cloned().flatten();
        if let Some(handle) = handle {
            handle.seat();
        }
        // Clients wait for replies: what is open has a bound.
        if self.open_submissions() > 24 {
            self.drain();
            // They may all wait for rows that sessions have locked.
            self.step_session();
            self.collect();
            return;
        }
        match self.below(1_000) {
            0..300 => self.submit_transfer(),
            300..350 => self.submit_look(),
            350..565 => self.drain(),
            565..575 => self.submit_number(),
            575..588 => self.build_index(),
            588..600 => self.read_in_pages(),
            600..620 => self.follow_memory(),
            620..690 => self.submit_read(),
            690..715 => self.submit_price(),
            715..720 => self.submit_number(),
            720..800 => self.step_session(),
            800..850 => self.step_log(),
            850..900 => self.repartition(),
            900..930 => self.step_snapshot(),
            930..955 => self.cancel_or_vanish(),
            955..960 => self.change_definitions(),
            960..962 => self.look_at_a_crash(),
            962..968 => self.checkpoint(),
            968..975 => self.jump_clock(),
            975..982 => self.change_cores(),
            982..997 => self.step_monitor(),
            _ => self.collect(),
        }
    }

    fn open_submissions(&self) -> usize {
        self.transfers.borrow().len()
            + self.looks.borrow().len()
            + self.reads.borrow().len()
            + self.others.borrow().len()
            + self.changes.borrow().len()
    }

    fn drain(&self) {
        let at = self.below(u64::from(EXECUTORS)) as usize;
        let handle = self.handles.borrow().get(at).cloned().flatten();
        let actions = 1 + self.below(3) as u32;
        if let Some(handle) = handle {
            handle.drain(SliceBudget { actions, micros: 1_000_000 });
        }
    }

    /// A full slice of every executor; how much they served.
    fn drain_all(&self) -> u32 {
        let handles: Vec<_> = self.handles.borrow().iter().flatten().cloned().collect();
        handles.iter().map(|handle| handle.drain(SliceBudget::default()).served).sum()
    }

    /// Calls something that waits on this thread: nobody drives the executors meanwhile, so
    /// that the waiting thread does.
    fn alone(&self, body: impl FnOnce(&Engine)) {
        let depth = self.depth.replace(DEPTH_MAX);
        self.handles.borrow_mut().clear();
        let engine = self.engine();
        body(&engine);
        self.attach(&engine);
        *self.depth.borrow_mut() = depth;
    }

    fn attach(&self, engine: &Engine) {
        let used = engine.executors().len();
        // Those that never had a core have no thread.
        let attach = |id| engine.attach_executor(ExecutorId(id)).expect("nobody drives it");
        *self.handles.borrow_mut() =
            (0..EXECUTORS).map(|id| (usize::from(id) < used).then(|| Rc::new(attach(id)))).collect();
    }

    /// Serves everything that is queued, with nothing in between.
    fn settle(&self) {
        let depth = self.depth.replace(DEPTH_MAX);
        // Work moves between islands, so one idle executor does not end it.
        let mut rounds = 0;
        while self.drain_all() > 0 {
            rounds += 1;
            if rounds > ROUNDS_MAX {
                self.expect(Err("queued work runs in a circle".into()));
                break;
            }
        }
        let queued: Vec<_> =
            self.engine().partitions().into_iter().filter(|partition| partition.queued > 0).collect();
        self.expect(if queued.is_empty() {
            Ok(())
        } else {
            Err(format!("work is queued and nobody serves it: {queued:?}"))
        });
        *self.depth.borrow_mut() = depth;
    }

    /// Takes in what has finished.
    fn collect(&self) {
        if self.is_over() {
            return;
        }
        let mut goes_on = Vec::new();
        let transfers = std::mem::take(&mut *self.transfers.borrow_mut());
        for (id, start, client, mut submission) in transfers {
            let Some(done) = submission.try_take() else {
                self.transfers.borrow_mut().push((id, start, client, submission));
                continue;
            };
            self.transfer_ended(client, done.outcome.result.is_ok().then_some(id));
            goes_on.extend(client);
            self.count("transaction");
            match done.outcome.result {
                Ok(()) => {
                    let seen = done.program.value.expect("a finished script has a value");
                    self.expect_nothing_missing(id, &seen);
                    let end = self.now();
                    self.committed.borrow_mut().insert(id, done.outcome.depends_on);
                    let checked = self.history.borrow_mut().committed(start, end, &[id], &seen.lists);
                    self.expect(checked);
                    self.order.borrow_mut().committed(id, &seen.lists);
                    self.count(if done.outcome.inline { "inline" } else { "queued" });
                }
                Err(stop) => {
                    self.history.borrow_mut().undone(id);
                    self.count(match stop {
                        Stop::Abort => "aborted",
                        Stop::Cancelled => "cancelled",
                        Stop::DiskFull => "disk full met",
                        // The definitions changed between the look at them and the claim.
                        Stop::Recompile => "recompile",
                        Stop::LogFailed if *self.failed.borrow() => "log failed",
                        other => {
                            self.expect(Err(format!("transfer {id}: {other:?}")));
                            "failed"
                        }
                    });
                }
            }
        }
        self.collect_looks();
        let reads = std::mem::take(&mut *self.reads.borrow_mut());
        for (start, mut submission) in reads {
            let Some(done) = submission.try_take() else {
                self.reads.borrow_mut().push((start, submission));
                continue;
            };
            self.count("transaction");
            if done.outcome.result == Err(Stop::Recompile) {
                self.count("recompile");
                continue;
            }
            let Ok(()) = done.outcome.result else {
                self.expect(Err(format!("a read failed: {:?}", done.outcome.result)));
                continue;
            };
            let seen = done.program.value.expect("a finished script has a value");
            let end = self.now();
            let checked = self.history.borrow_mut().read(start, end, &seen);
            self.expect(checked);
            self.order.borrow_mut().saw(Sighting::of(done.outcome.depends_on, &seen));
            self.count("read");
        }
        self.others.borrow_mut().retain_mut(|submission| match submission.try_take() {
            None => true,
            Some(done) => {
                self.expect(match done.outcome.result {
                    Ok(()) | Err(Stop::DiskFull | Stop::Recompile | Stop::LogFailed) => Ok(()),
                    Err(Stop::Abort) => Err("a number that was drawn was there".to_owned()),
                    other => Err(format!("a program ended with {other:?}")),
                });
                self.count("transaction");
                false
            }
        });
        self.changes.borrow_mut().retain_mut(|(kind, submission)| match submission.try_take() {
            None => true,
            Some(done) => {
                if done.outcome.result == Err(Stop::Abort) {
                    // Its claim did not hold what the routing table says: only a planted bug.
                    self.count("refused");
                    return false;
                }
                let result = done.outcome.result.map_err(|stop| format!("{kind} ended with {stop:?}"));
                self.expect(result);
                // Two that contradict are refused.
                self.count(if done.program.result.is_ok() { kind } else { "refused" });
                false
            }
        });
        goes_on.into_iter().for_each(|client| self.go_on(client));
    }

    /// Drops everything that lives in the engine.
    fn forget(&self) {
        let _quiet = Quiet::new();
        self.transfers.borrow_mut().clear();
        self.looks.borrow_mut().clear();
        self.reads.borrow_mut().clear();
        self.others.borrow_mut().clear();
        self.changes.borrow_mut().clear();
        *self.build.borrow_mut() = None;
        self.sessions.borrow_mut().clear();
        self.snapshots.borrow_mut().clear();
        self.handles.borrow_mut().clear();
        *self.engine.borrow_mut() = None;
    }

    /// Runs everything down: no submission may be left.
    fn finish(&self) {
        let sheltered = self.sheltered.replace(true);
        *self.depth.borrow_mut() = DEPTH_MAX;
        let sessions = std::mem::take(&mut *self.sessions.borrow_mut());
        for session in &sessions {
            for id in &session.transfers {
                self.history.borrow_mut().undone(*id);
            }
        }
        drop(sessions);
        self.snapshots.borrow_mut().clear();
        self.alone(|_| {});
        self.settle();
        self.settle_homes();
        self.settle_memory();
        self.collect();
        if self.broken.borrow().is_some() {
            return;
        }
        let left = self.open_submissions();
        if left > 0 {
            self.expect(Err(format!("{left} submissions are lost")));
            return;
        }
        self.alone(|engine| {
            for walk in [Walk::Up, Walk::Down, Walk::FanOut] {
                let seen = unpredicted(engine, move |txn| whole(txn, walk)).0.expect("scanned");
                let moment = self.now();
                let checked = self.history.borrow_mut().read(moment, moment, &seen);
                self.expect(checked);
            }
            check_indexes(engine);
        });
        self.expect(self.history.borrow().check_order());
        self.expect(self.check_sights());
        self.step_log();
        *self.depth.borrow_mut() = 0;
        self.sheltered.replace(sheltered);
    }

    /// Work that is queued is served some day, or the run would have no end.
    fn expect_progress(&self) {
        let mut idle = self.idle.borrow_mut();
        let transactions = self.counted("transaction");
        *idle = if idle.1 == transactions { (idle.0 + 1, transactions) } else { (0, transactions) };
        if idle.0 > STEPS_WITHOUT_PROGRESS_MAX {
            let engine = self.engine();
            let queued: Vec<_> = engine
                .partitions()
                .into_iter()
                .filter(|partition| partition.queued > 0)
                .map(|partition| (partition.id, partition.home, partition.queued))
                .collect();
            let transfers = self.transfers.borrow();
            let cancellers = transfers.iter().filter_map(|(.., submission)| submission.canceller());
            let waiting: Vec<_> = cancellers.filter_map(|canceller| canceller.row_wait()).collect();
            let open: Vec<_> =
                self.sessions.borrow().iter().map(|session| session.transaction.id()).collect();
            self.expect(Err(format!(
                "nothing ends any more: queued {queued:?}, executors {:?}, transactions {open:?}, waits {waiting:?}",
                engine.executors()
            )));
        }
    }

    /// Lives and dies until the transactions are done.
    fn run(&self, seed: u64) {
        self.alone(fill);
        planted::arm();
        self.sheltered.replace(false);
        let mut life = 0;
        while (self.counted("transaction") < TRANSACTIONS || life < 2) && self.broken.borrow().is_none() {
            let before = self.counted("transaction");
            let ends_quietly = self.below(2) == 0;
            while self.counted("transaction") < before + TRANSACTIONS_OF_A_LIFE
                && !self.is_over()
                && !*self.failed.borrow()
            {
                self.step();
                self.expect_progress();
            }
            if ends_quietly && !self.is_over() && !*self.failed.borrow() {
                self.finish();
            }
            // After a failed sync clients go on for a while; nothing may be acknowledged.
            for _ in 0..12 {
                self.step();
            }
            life += 1;
            if self.broken.borrow().is_some() {
                return;
            }
            self.crash(seed.wrapping_mul(31).wrapping_add(life));
        }
        if self.broken.borrow().is_none() {
            self.finish();
        }
    }
}
