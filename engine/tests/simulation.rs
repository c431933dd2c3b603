//! The engine under a seeded scheduler, on one thread.
//!
//! Virtual executors, clients, the log writer, splits, checkpoints, snapshots and crashes are
//! steps; the scheduler draws the next one from the seed. At every point where a thread may be
//! preempted — inside a program, before its commit, before its release, between entering the
//! queues and serving them — it may take other steps in between, so that claim holders are
//! interrupted, tickets are lent partitions one by one, and work queues behind both.
//!
//! Checked on every seed: no partition has two holders; money is conserved in every read of
//! all accounts, in every snapshot and after every crash; a reference row and its mirror in a
//! partition never disagree; every commit whose epoch was durable is there after a crash, and
//! of the others a prefix; no submission is lost.
//!
//! `ARCHIPEL_SEEDS=from..to` runs other seeds.

mod common;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::clock::Clock;
use archipel_engine::id::{Epoch, ExecutorId, GroupId, PartitionId, TreeId};
use archipel_engine::log::MemoryStore;
use archipel_engine::log::memory::{Faults, Survivors};
use archipel_engine::random::{RandomStream, SeededEntropy};
use archipel_engine::schema::{Placement, TableDef};
use archipel_engine::spawn::NoSpawn;
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::encode_cell;
use archipel_engine::{
    DdlOp, Direction, Engine, EngineConfig, ExecutorHandle, ExecutorPlace, Inserted, Interactive, Interleave,
    Point, REFERENCE_GROUP, Seams, SliceBudget, Snapshot, Stop, Submission, SubmitOptions, Txn,
};
use common::*;

const ACCOUNTS_COUNT: i64 = 24;
const TOTAL: i64 = ACCOUNTS_COUNT * 100;
const HISTORY: TreeId = TreeId(120);
const EXECUTORS: u16 = 3;
const STEPS: usize = 60;
const DEPTH_MAX: usize = 5;

/// A clock that moves by one microsecond a look.
struct TickingClock(Mutex<u64>);

impl Clock for TickingClock {
    fn wall_micros(&self) -> i64 {
        self.monotonic_nanos() as i64 / 1_000
    }

    fn monotonic_nanos(&self) -> u64 {
        let mut now = self.0.lock().expect("one thread");
        *now += 1_000;
        *now
    }
}

thread_local! {
    /// The running simulation; programs and points reach it from inside the engine.
    static SIMULATION: RefCell<Option<Rc<Simulation>>> = const { RefCell::new(None) };
}

fn simulation() -> Option<Rc<Simulation>> {
    SIMULATION.with(|simulation| simulation.borrow().clone())
}

struct Points;

impl Interleave for Points {
    fn at(&self, _point: Point) {
        if let Some(simulation) = simulation() {
            simulation.come_between();
        }
    }
}

struct Simulation {
    random: RefCell<RandomStream>,
    store: RefCell<MemoryStore>,
    engine: RefCell<Option<Engine>>,
    handles: RefCell<Vec<Rc<ExecutorHandle>>>,
    depth: RefCell<usize>,
    /// What every program now running holds, innermost last.
    holders: RefCell<Vec<BTreeSet<PartitionId>>>,
    transfers: RefCell<Vec<(i64, Submission<Script<i64>>)>>,
    reads: RefCell<Vec<Submission<Script<i64>>>>,
    others: RefCell<Vec<Submission<Script<()>>>>,
    sessions: RefCell<Vec<Session>>,
    snapshots: RefCell<Vec<Rc<Snapshot>>>,
    /// Committed transfers and the epochs their replies depend on.
    committed: RefCell<BTreeMap<i64, Epoch>>,
    acknowledged: RefCell<BTreeSet<i64>>,
    next_transfer: RefCell<i64>,
    done: RefCell<BTreeMap<&'static str, usize>>,
}

struct Session {
    transaction: Interactive,
    statement: Option<(i64, Submission<Script<i64>>)>,
    transfers: Vec<i64>,
}

fn history_table() -> TableDef {
    TableDef {
        id: HISTORY,
        name: "history".to_owned(),
        columns: vec![ColumnKind::Int8, ColumnKind::Int8],
        key: vec![key_column(0), key_column(1)],
        placement: Placement::Distributed { group: GroupId(ACCOUNTS.0) },
        indexes: Vec::new(),
    }
}

fn history_key(account: i64, id: i64) -> KeyBuf {
    let mut key = account_key(account);
    encode_cell(&mut key, Cell::Int8(id), &key_column(1), ColumnKind::Int8);
    key
}

/// A transfer that leaves a trace: its number, beside the paying account.
fn traced_transfer(txn: &mut Txn<'_>, id: i64, from: i64, to: i64, amount: i64) -> Result<i64, Stop> {
    between(txn);
    let have = balance(txn, from)?.ok_or(Stop::Abort)?;
    between(txn);
    assert_eq!(set_balance(txn, from, have - amount)?, Inserted::Ok);
    let have_to = balance(txn, to)?.ok_or(Stop::Abort)?;
    between(txn);
    assert_eq!(set_balance(txn, to, have_to + amount)?, Inserted::Ok);
    let table = txn.table(HISTORY).ok_or(Stop::Recompile)?;
    let row = table.layout.encode_row(&[Cell::Int8(from), Cell::Int8(id)]);
    assert_eq!(txn.insert(&table, &history_key(from, id), &row)?, Inserted::Ok, "transfer {id} ran twice");
    // Overdrafts abort after everything was written.
    if have < amount { Err(Stop::Abort) } else { Ok(id) }
}

/// Checks that nobody else holds what this program holds, and lets others run.
fn between(txn: &Txn<'_>) {
    let Some(simulation) = simulation() else { return };
    let mine: BTreeSet<PartitionId> = txn.held_partitions().into_iter().collect();
    for other in simulation.holders.borrow().iter() {
        assert!(other.is_disjoint(&mine), "two holders: {other:?} and {mine:?}");
    }
    simulation.holders.borrow_mut().push(mine);
    simulation.come_between();
    simulation.holders.borrow_mut().pop();
}

fn sum_of_accounts(txn: &mut Txn<'_>) -> Result<i64, Stop> {
    between(txn);
    let sum = all_accounts(txn, Direction::Ascending)?.iter().map(|row| row.2).sum();
    between(txn);
    Ok(sum)
}

fn mirror_price(txn: &mut Txn<'_>) -> Result<Option<i64>, Stop> {
    let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
    let price = txn.get(&table, &item_key(1))?.map(|row| int8(&table, row, 1));
    Ok(price)
}

impl Simulation {
    fn new(seed: u64) -> Rc<Self> {
        let simulation = Rc::new(Self {
            random: RefCell::new(RandomStream::new(seed)),
            store: RefCell::new(MemoryStore::new()),
            engine: RefCell::new(None),
            handles: RefCell::default(),
            depth: RefCell::new(0),
            holders: RefCell::default(),
            transfers: RefCell::default(),
            reads: RefCell::default(),
            others: RefCell::default(),
            sessions: RefCell::default(),
            snapshots: RefCell::default(),
            committed: RefCell::default(),
            acknowledged: RefCell::default(),
            next_transfer: RefCell::new(1),
            done: RefCell::default(),
        });
        simulation.open(seed);
        simulation
    }

    fn open(&self, seed: u64) {
        let place = |island| ExecutorPlace { island: archipel_engine::id::IslandId(island), core: None };
        let config = EngineConfig {
            executors: vec![place(0), place(0), place(1)],
            background: false,
            abort_on_log_failure: false,
            pin_threads: false,
            recovery_threads: 1,
            ..EngineConfig::default()
        };
        let seams = Seams {
            clock: Arc::new(TickingClock(Mutex::new(0))),
            entropy: Arc::new(SeededEntropy::new(seed)),
            spawn: Arc::new(NoSpawn),
            interleave: Some(Arc::new(Points)),
        };
        let store = Arc::new(self.store.borrow().clone());
        let engine = Engine::open_with(config, store, seams, &|_| {}).expect("the engine opens");
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

    fn count(&self, what: &'static str) {
        *self.done.borrow_mut().entry(what).or_default() += 1;
    }

    /// Other threads' steps, while the caller stands still.
    fn come_between(&self) {
        // Rarer the deeper, or the steps of steps would have no end.
        let depth = *self.depth.borrow();
        if depth >= DEPTH_MAX || self.below(4 << depth) != 0 {
            return;
        }
        *self.depth.borrow_mut() += 1;
        for _ in 0..=self.below(2) {
            self.step();
        }
        *self.depth.borrow_mut() -= 1;
    }

    fn step(&self) {
        // The virtual client sits on some executor's thread, or on none.
        let seat = self.below(u64::from(EXECUTORS) + 1) as usize;
        let handle = self.handles.borrow().get(seat).cloned();
        if let Some(handle) = handle {
            handle.seat();
        }
        // Clients wait for replies: what is open has a bound.
        if self.transfers.borrow().len() + self.reads.borrow().len() + self.others.borrow().len() > 24 {
            self.drain();
            self.collect();
            return;
        }
        match self.below(100) {
            0..30 => self.submit_transfer(),
            30..60 => self.drain(),
            60..68 => self.submit_read(),
            68..72 => self.submit_price(),
            72..80 => self.step_session(),
            80..86 => self.step_log(),
            86..89 => self.split(),
            89..92 => self.step_snapshot(),
            92..94 => self.cancel(),
            94 => self.change_definitions(),
            95 => self.look_at_a_crash(),
            96 => self.checkpoint(),
            _ => self.collect(),
        }
    }

    fn drain(&self) {
        let at = self.below(u64::from(EXECUTORS)) as usize;
        let handle = self.handles.borrow()[at].clone();
        let actions = 1 + self.below(3) as u32;
        handle.drain(SliceBudget { actions, micros: 1_000_000 });
    }

    fn submit_transfer(&self) {
        let id = self.next_transfer.replace_with(|id| *id + 1) as i64;
        let (from, to, amount) = (self.account(), self.account(), 1 + self.below(60) as i64);
        if from == to {
            return;
        }
        let prediction = self.below(5);
        let program = script(
            move |_, claims| match prediction {
                0 => {}
                1 => claims.add_point(GroupId(ACCOUNTS.0), &account_key(from)),
                2 => claims.add_point(GroupId(ACCOUNTS.0), &account_key((from + 7) % ACCOUNTS_COUNT)),
                _ => {
                    claims.add_point(GroupId(ACCOUNTS.0), &account_key(from));
                    claims.add_point(GroupId(ACCOUNTS.0), &account_key(to));
                }
            },
            move |txn| traced_transfer(txn, id, from, to, amount),
        );
        let submission = self.engine().submit(program, SubmitOptions::default());
        self.transfers.borrow_mut().push((id, submission));
        self.collect();
    }

    fn submit_read(&self) {
        let whole = self.below(2) == 0;
        let program = script(
            move |_, claims| {
                if whole {
                    claims.add_group(GroupId(ACCOUNTS.0));
                }
            },
            sum_of_accounts,
        );
        let submission = self.engine().submit(program, SubmitOptions::default());
        self.reads.borrow_mut().push(submission);
        self.collect();
    }

    /// Writes a reference row and its mirror (an account's owner), or compares the two.
    fn submit_price(&self) {
        let engine = self.engine();
        let submission = if self.below(2) == 0 {
            let price = self.below(1_000_000) as i64;
            let program = script(
                |_, claims| claims.add_group(REFERENCE_GROUP),
                move |txn| {
                    let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
                    between(txn);
                    assert_eq!(txn.update(&table, &item_key(1), &[(1, Cell::Int8(price))])?, Inserted::Ok);
                    between(txn);
                    let accounts = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
                    let owner = price.to_string();
                    let changes = [(1, Cell::Bytes(owner.as_bytes()))];
                    let _ = txn.update(&accounts, &account_key(-1), &changes)?;
                    Ok(())
                },
            );
            engine.submit(program, SubmitOptions::default())
        } else {
            let program = script(
                |_, _| {},
                |txn| {
                    let price = mirror_price(txn)?;
                    between(txn);
                    let accounts = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
                    let mirror =
                        txn.get(&accounts, &account_key(-1))?.map(|row| match accounts.layout.get(row, 1) {
                            Cell::Bytes(owner) => String::from_utf8_lossy(owner).parse().unwrap_or(-1),
                            _ => -1,
                        });
                    // A run that saw the past of one and the present of the other is thrown
                    // away at its commit point; what counts is what it commits.
                    COMPARED.with(|compared| *compared.borrow_mut() = Some((price, mirror)));
                    Ok(())
                },
            );
            COMPARED.with(|compared| *compared.borrow_mut() = None);
            let mut submission = engine.submit(program, SubmitOptions::default());
            if let Some(done) = submission.try_take() {
                let compared = COMPARED.with(|compared| compared.borrow_mut().take());
                if done.outcome.result.is_ok()
                    && let Some((price, mirror)) = compared
                    && *self.depth.borrow() == 0
                {
                    assert_eq!(price, mirror, "a reference row and its mirror");
                    self.count("compared");
                }
                return;
            }
            submission
        };
        self.others.borrow_mut().push(submission);
        self.collect();
    }

    /// One move of an interactive client.
    fn step_session(&self) {
        let engine = self.engine();
        let mut sessions = std::mem::take(&mut *self.sessions.borrow_mut());
        if sessions.len() < 3 && self.below(2) == 0 {
            sessions.push(Session { transaction: engine.begin(), statement: None, transfers: Vec::new() });
        }
        let at = if sessions.is_empty() { 0 } else { self.below(sessions.len() as u64) as usize };
        let session = (at < sessions.len()).then(|| sessions.remove(at));
        self.sessions.borrow_mut().append(&mut sessions);
        let Some(mut session) = session else { return };
        if let Some((id, mut statement)) = session.statement.take() {
            match statement.try_take() {
                None => session.statement = Some((id, statement)),
                Some(done) => match done.outcome.result {
                    Ok(()) => session.transfers.push(id),
                    Err(Stop::Abort | Stop::Recompile) => {}
                    // A deadlock: the client rolls back.
                    Err(_) => {
                        self.count("deadlock");
                        self.end_session(session, false);
                        return;
                    }
                },
            }
            self.sessions.borrow_mut().push(session);
            return;
        }
        match self.below(4) {
            0 | 1 => {
                let id = self.next_transfer.replace_with(|id| *id + 1) as i64;
                let (from, to, amount) = (self.account(), self.account(), 1 + self.below(30) as i64);
                if from != to {
                    let program = script(|_, _| {}, move |txn| traced_transfer(txn, id, from, to, amount));
                    let options =
                        SubmitOptions { transaction: Some(&session.transaction), ..SubmitOptions::default() };
                    session.statement = Some((id, engine.submit(program, options)));
                }
                self.sessions.borrow_mut().push(session);
            }
            2 => self.end_session(session, true),
            _ => self.end_session(session, false),
        }
    }

    fn end_session(&self, session: Session, commit: bool) {
        let engine = self.engine();
        if !commit {
            // Half of the clients say so, half of them disappear.
            if self.below(2) == 0 {
                drop(engine.rollback(&session.transaction));
            }
            self.count("rolled back");
            return;
        }
        let transfers = session.transfers.clone();
        let mut submission = engine.commit(&session.transaction);
        loop {
            if let Some(done) = submission.try_take() {
                if done.outcome.result == Err(Stop::DiskFull) {
                    // The transaction is still open, and goes with its client.
                    break;
                }
                done.outcome.result.expect("a commit without conflicts succeeds");
                for id in transfers {
                    self.committed.borrow_mut().insert(id, done.outcome.depends_on);
                }
                self.count("interactive");
                break;
            }
            if *self.depth.borrow() > 0 {
                // It may wait for a partition held further down the stack.
                self.transfers_of_commits(transfers, submission);
                break;
            }
            for handle in self.handles.borrow().clone() {
                handle.drain(SliceBudget::default());
            }
        }
        drop(session);
    }

    /// A commit that is still queued: its numbers count as unknown. If it survives a crash it
    /// must be whole, which the sum of money shows.
    fn transfers_of_commits(
        &self,
        _transfers: Vec<i64>,
        submission: Submission<archipel_engine::txn::Commit>,
    ) {
        drop(submission);
        self.count("commit queued");
    }

    fn step_log(&self) {
        if self.below(8) == 0 {
            self.store.borrow().set_faults(Faults { full: true, ..Faults::default() });
            let _ = self.engine().step_log();
            self.store.borrow().set_faults(Faults::default());
            self.count("full disk");
            return;
        }
        self.engine().step_log().expect("the log is written");
        self.acknowledge();
    }

    fn acknowledge(&self) {
        self.collect();
        let engine = self.engine();
        let committed = self.committed.borrow();
        let mut acknowledged = self.acknowledged.borrow_mut();
        for (id, epoch) in committed.iter() {
            if engine.is_durable(*epoch) {
                acknowledged.insert(*id);
            }
        }
    }

    fn split(&self) {
        let at = account_key(self.account());
        let submission = self.engine().pre_split(GroupId(ACCOUNTS.0), vec![at]);
        drop(submission);
        self.count("split");
    }

    /// Adds an index beside running transfers, or drops it.
    fn change_definitions(&self) {
        let program = script(
            |_, claims| claims.everything(),
            |txn| {
                between(txn);
                let there = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?.index(BY_BALANCE).is_some();
                let op = if there {
                    DdlOp::DropIndex { table: ACCOUNTS, index: BY_BALANCE }
                } else {
                    DdlOp::CreateIndex { table: ACCOUNTS, index: balance_index_def() }
                };
                assert_eq!(txn.ddl(op)?, Inserted::Ok);
                between(txn);
                Ok(())
            },
        );
        let submission = self.engine().submit(program, SubmitOptions::default());
        self.others.borrow_mut().push(submission);
        self.count("ddl");
    }

    fn checkpoint(&self) {
        // Waits for its slices, so only where nothing is held further down the stack, and with
        // every commit durable.
        if *self.depth.borrow() == 0 {
            // It waits on this thread, which nobody else could help.
            self.settle();
            self.engine().step_log().expect("the log is written");
            self.alone(|engine| drop(engine.checkpoint()));
        }
        if *self.depth.borrow() == 0 {
            self.count("checkpoint");
        }
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
        *self.handles.borrow_mut() =
            (0..EXECUTORS).map(|id| Rc::new(engine.attach_executor(ExecutorId(id)).expect("free"))).collect();
    }

    /// Serves everything that is queued, with nothing in between.
    fn settle(&self) {
        let depth = self.depth.replace(DEPTH_MAX);
        // Work moves between islands, so one idle executor does not end it.
        while self
            .handles
            .borrow()
            .clone()
            .iter()
            .map(|handle| handle.drain(SliceBudget::default()).served)
            .sum::<u32>()
            > 0
        {}
        let engine = self.engine();
        let held: Vec<_> = engine.partitions().into_iter().filter(|partition| partition.queued > 0).collect();
        assert!(held.is_empty(), "work is queued and nobody serves it: {held:?}");
        *self.depth.borrow_mut() = depth;
    }

    fn step_snapshot(&self) {
        if *self.depth.borrow() > 0 || self.snapshots.borrow().len() < 2 {
            let snapshot = self.engine().snapshot();
            self.snapshots.borrow_mut().push(Rc::new(snapshot));
            if self.snapshots.borrow().len() > 3 {
                let oldest = self.snapshots.borrow_mut().remove(0);
                drop(oldest);
            }
            return;
        }
        let at = self.below(self.snapshots.borrow().len() as u64) as usize;
        let snapshot = self.snapshots.borrow()[at].clone();
        let table = self.engine().table(ACCOUNTS).expect("there");
        let (mut low, mut sum) = (Vec::new(), 0);
        loop {
            let mut page = snapshot.scan(&table, &low, None, 5);
            let done = loop {
                match page.try_take() {
                    Some(done) => break done,
                    None => {
                        for handle in self.handles.borrow().clone() {
                            handle.drain(SliceBudget::default());
                        }
                    }
                }
            };
            if done.outcome.result == Err(Stop::Recompile) {
                // The table's layout is another one now: this snapshot cannot go on.
                self.snapshots.borrow_mut().retain(|other| !Rc::ptr_eq(other, &snapshot));
                return;
            }
            done.outcome.result.expect("the page is read");
            sum += done.program.rows.iter().map(|(_, row)| int8(&table, row, 2)).sum::<i64>();
            match done.program.next {
                Some(next) => low = next.to_vec(),
                None => break,
            }
            // Others write between the pages.
            *self.depth.borrow_mut() += 1;
            self.submit_transfer();
            self.drain();
            *self.depth.borrow_mut() -= 1;
        }
        assert_eq!(sum, TOTAL, "a snapshot sees all or nothing of every transfer");
        self.count("snapshot");
        if self.below(2) == 0 {
            self.snapshots.borrow_mut().retain(|other| !Rc::ptr_eq(other, &snapshot));
        }
    }

    fn cancel(&self) {
        let canceller = {
            let transfers = self.transfers.borrow();
            transfers.last().and_then(|(_, submission)| submission.canceller())
        };
        if let Some(canceller) = canceller {
            canceller.cancel(Stop::Cancelled);
            self.count("cancel");
        }
    }

    /// Takes in what has finished.
    fn collect(&self) {
        let transfers = std::mem::take(&mut *self.transfers.borrow_mut());
        for (id, mut submission) in transfers {
            match submission.try_take() {
                None => self.transfers.borrow_mut().push((id, submission)),
                Some(done) => match done.outcome.result {
                    Ok(()) => {
                        self.committed.borrow_mut().insert(id, done.outcome.depends_on);
                        self.count(if done.outcome.inline { "inline" } else { "queued" });
                    }
                    Err(Stop::Abort) => self.count("aborted"),
                    Err(Stop::Cancelled) => self.count("cancelled"),
                    Err(Stop::DiskFull) => self.count("disk full"),
                    // The definitions changed between the look at them and the claim.
                    Err(Stop::Recompile) => self.count("recompile"),
                    Err(other) => panic!("transfer {id}: {other:?}"),
                },
            }
        }
        let reads = std::mem::take(&mut *self.reads.borrow_mut());
        for mut submission in reads {
            match submission.try_take() {
                None => self.reads.borrow_mut().push(submission),
                Some(done) => {
                    if done.outcome.result == Err(Stop::Recompile) {
                        self.count("recompile");
                        continue;
                    }
                    done.outcome.result.expect("a read succeeds");
                    assert_eq!(done.program.value, Some(TOTAL), "money is conserved");
                    self.count("read");
                }
            }
        }
        self.others.borrow_mut().retain_mut(|submission| match submission.try_take() {
            None => true,
            Some(done) => {
                assert!(
                    matches!(done.outcome.result, Ok(()) | Err(Stop::DiskFull | Stop::Recompile)),
                    "{:?}",
                    done.outcome.result
                );
                false
            }
        });
    }

    /// What a crash at this very point would leave.
    fn look_at_a_crash(&self) {
        self.acknowledge();
        let store = self.crashed_store();
        let quiet = SIMULATION.with(|simulation| simulation.borrow_mut().take());
        let engine = reopen_stepped(&store);
        self.check_recovered(&engine);
        drop(engine);
        SIMULATION.with(|simulation| *simulation.borrow_mut() = quiet);
        self.count("looked");
    }

    fn crashed_store(&self) -> MemoryStore {
        let store = self.store.borrow();
        let unsynced = store.unsynced_writes();
        let survivors = match self.below(4) {
            0 => Survivors::Synced,
            1 => Survivors::All,
            2 => Survivors::First(self.below(unsynced as u64 + 1) as usize),
            _ => Survivors::Torn(self.below(unsynced as u64 + 1) as usize, self.below(256) as u8),
        };
        store.crash(survivors)
    }

    fn check_recovered(&self, engine: &Engine) {
        let accounts = unpredicted(engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
        assert_eq!(accounts.iter().map(|row| row.2).sum::<i64>(), TOTAL, "money is conserved by a crash");
        let there = history(engine);
        let lost: Vec<_> = self.acknowledged.borrow().difference(&there).copied().collect();
        assert!(lost.is_empty(), "acknowledged transfers are lost: {lost:?}");
        // A prefix: nothing of a later epoch without everything of an earlier one.
        let committed = self.committed.borrow();
        let newest = committed.iter().filter(|(id, _)| there.contains(id)).map(|(_, epoch)| *epoch).max();
        for (id, epoch) in committed.iter() {
            assert!(
                there.contains(id) || Some(*epoch) > newest,
                "{id} of epoch {epoch} is missing below {newest:?}"
            );
        }
        let (price, mirror) = unpredicted(engine, |txn| {
            let price = mirror_price(txn)?;
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            let mirror = txn.get(&table, &account_key(-1))?.map(|row| match table.layout.get(row, 1) {
                Cell::Bytes(owner) => String::from_utf8_lossy(owner).parse().unwrap_or(-1),
                _ => -1,
            });
            Ok((price, mirror))
        })
        .0
        .expect("read");
        assert_eq!(price, mirror);
    }

    /// Dies, and starts again from what the disk has.
    fn crash(&self, seed: u64) {
        self.acknowledge();
        let store = self.crashed_store();
        self.forget();
        *self.store.borrow_mut() = store;
        *self.depth.borrow_mut() = DEPTH_MAX;
        self.open(seed);
        let mut there = BTreeSet::new();
        self.alone(|engine| {
            self.check_recovered(engine);
            there = history(engine);
        });
        *self.depth.borrow_mut() = 0;
        // What was not durable and is gone may be gone; what survived counts from now on.
        *self.committed.borrow_mut() = there.into_iter().map(|id| (id, Epoch(0))).collect();
        self.count("crash");
    }

    /// Drops everything that lives in the engine.
    fn forget(&self) {
        let quiet = SIMULATION.with(|simulation| simulation.borrow_mut().take());
        self.transfers.borrow_mut().clear();
        self.reads.borrow_mut().clear();
        self.others.borrow_mut().clear();
        self.sessions.borrow_mut().clear();
        self.snapshots.borrow_mut().clear();
        self.handles.borrow_mut().clear();
        *self.engine.borrow_mut() = None;
        SIMULATION.with(|simulation| *simulation.borrow_mut() = quiet);
    }

    /// Runs everything down: no submission may be left.
    fn finish(&self) {
        *self.depth.borrow_mut() = DEPTH_MAX;
        let sessions = std::mem::take(&mut *self.sessions.borrow_mut());
        drop(sessions);
        self.snapshots.borrow_mut().clear();
        self.settle();
        self.collect();
        assert!(self.transfers.borrow().is_empty(), "{} transfers are lost", self.transfers.borrow().len());
        assert!(self.reads.borrow().is_empty() && self.others.borrow().is_empty(), "reads are lost");
        let engine = self.engine();
        for partition in engine.partitions() {
            assert_eq!(partition.queued, 0);
        }
        self.alone(|engine| {
            assert_eq!(unpredicted(engine, sum_of_accounts).0, Ok(TOTAL));
            check_index(engine);
        });
        engine.step_log().expect("written");
        *self.depth.borrow_mut() = 0;
    }
}

thread_local! {
    static COMPARED: RefCell<Option<(Option<i64>, Option<i64>)>> = const { RefCell::new(None) };
}

/// The index on balances, if it is there, has the entries of the rows and no others.
fn check_index(engine: &Engine) {
    let (result, _) = unpredicted(engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        let Some(index) = table.index(BY_BALANCE) else { return Ok(()) };
        let mut keys = Vec::new();
        let range = archipel_engine::KeyRange::ALL;
        txn.scan_index(&table, &index.def, range, Direction::Ascending, &mut |_, key| {
            keys.push(key.to_vec());
            std::ops::ControlFlow::Continue(())
        })?;
        assert_eq!(keys.len(), ACCOUNTS_COUNT as usize + 1);
        let mut balances = Vec::new();
        for key in &keys {
            balances.push(txn.get(&table, key)?.map(|row| int8(&table, row, 2)));
        }
        assert!(balances.is_sorted() && balances.iter().all(Option::is_some));
        Ok(())
    });
    assert_eq!(result, Ok(()));
}

/// The numbers of the transfers that left their trace.
fn history(engine: &Engine) -> BTreeSet<i64> {
    unpredicted(engine, |txn| {
        let table = txn.table(HISTORY).ok_or(Stop::Recompile)?;
        let mut ids = BTreeSet::new();
        txn.scan(&table, archipel_engine::KeyRange::ALL, Direction::Ascending, &mut |_, row| {
            ids.insert(int8(&table, row, 1));
            std::ops::ControlFlow::Continue(())
        })?;
        Ok(ids)
    })
    .0
    .expect("scanned")
}

fn fill(engine: &Engine) {
    open_bank(engine, ACCOUNTS_COUNT);
    ddl(engine, DdlOp::CreateTable(history_table())).expect("made");
    ddl(engine, DdlOp::CreateTable(items_table())).expect("made");
    run(
        engine,
        |_, claims| claims.everything(),
        |txn| {
            let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
            let row = table.layout.encode_row(&[Cell::Int4(1), Cell::Int8(0)]);
            assert_eq!(txn.insert(&table, &item_key(1), &row)?, Inserted::Ok);
            assert_eq!(insert_account(txn, -1, "0", 0)?, Inserted::Ok);
            Ok(())
        },
    )
    .0
    .expect("filled");
    let keys = vec![account_key(0), account_key(8), account_key(16)];
    engine.pre_split(GroupId(ACCOUNTS.0), keys).wait().outcome.result.expect("split");
    engine.step_log().expect("written");
}

fn simulate(seed: u64) -> BTreeMap<&'static str, usize> {
    let simulation = Simulation::new(seed);
    simulation.alone(fill);
    SIMULATION.with(|current| *current.borrow_mut() = Some(simulation.clone()));
    for life in 0..3 {
        for _ in 0..STEPS {
            simulation.step();
        }
        simulation.finish();
        for _ in 0..STEPS / 4 {
            simulation.step();
        }
        simulation.crash(seed.wrapping_mul(31).wrapping_add(life));
    }
    simulation.finish();
    simulation.forget();
    SIMULATION.with(|current| *current.borrow_mut() = None);
    simulation.done.borrow().clone()
}

#[test]
fn the_invariants_hold_on_every_seed() {
    let seeds = std::env::var("ARCHIPEL_SEEDS").ok();
    let range = seeds
        .as_deref()
        .and_then(|seeds| seeds.split_once(".."))
        .and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?))
        .unwrap_or(0..200u64);
    let mut total: BTreeMap<&'static str, usize> = BTreeMap::new();
    for seed in range {
        let done = std::panic::catch_unwind(|| simulate(seed)).unwrap_or_else(|panic| {
            // What is left of it is in no state to be dropped.
            std::mem::forget(SIMULATION.with(|current| current.borrow_mut().take()));
            eprintln!("seed {seed} fails; ARCHIPEL_SEEDS={seed}..{} runs it alone", seed + 1);
            std::panic::resume_unwind(panic)
        });
        for (what, count) in done {
            *total.entry(what).or_default() += count;
        }
    }
    println!("{total:?}");
    if seeds.is_some() {
        return;
    }
    for what in
        ["inline", "queued", "aborted", "cancelled", "read", "interactive", "snapshot", "checkpoint", "crash"]
    {
        assert!(total.get(what).is_some_and(|count| *count > 20), "{what} was hardly exercised: {total:?}");
    }
}
