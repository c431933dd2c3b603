//! Two tables on an engine with one executor an island, and executors that keep a number of
//! transactions on their way each, as clients would.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{ExecutorId, GroupId, IslandId, TreeId};
use archipel_engine::log::MemoryStore;
use archipel_engine::random::RandomStream;
use archipel_engine::schema::{KeyColumn, Placement, TableDef};
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::encode_cell;
use archipel_engine::topology::{CoreSeen, Granularity, Invented, Topology};
use archipel_engine::{
    ClaimSet, DdlOp, Engine, EngineConfig, ExecutorHandle, ExecutorPlace, MonitorSettings, Program,
    Repartition, RoutingTable, Seams, SliceBudget, Stop, Submission, SubmitOptions, TableMeta, Txn,
};

/// The tables, each a group of its own.
pub const TABLES: [TreeId; 2] = [TreeId(100), TreeId(101)];
pub const COLUMNS: u16 = 10;
/// Transactions of one executor's clients that are on their way at a time.
const WINDOW: usize = 128;
/// Further reads of a transaction: about ten microseconds, as a TATP transaction takes with its
/// plan.
pub const READS: usize = 100;
/// Partitions of a table for each executor.
const PARTITIONS: i64 = 4;
/// Cache lines of a row and its path that a transaction fetches from where they are at home.
const LINES: u64 = 16;

thread_local! {
    /// Whose thread this is.
    static EXECUTOR: std::cell::Cell<Option<ExecutorId>> = const { std::cell::Cell::new(None) };
}

pub fn group(table: usize) -> GroupId {
    GroupId(TABLES[table].0)
}

pub fn key(id: i64) -> KeyBuf {
    let column = KeyColumn {
        column: 0,
        descending: false,
        nulls_first: false,
        nullable: false,
        form: Default::default(),
    };
    let mut key = KeyBuf::new();
    encode_cell(&mut key, Cell::Int8(id), &column, ColumnKind::Int8);
    key
}

/// One transaction: reads or updates a row of each table that it names.
#[derive(Clone, Copy)]
pub struct Work {
    pub class: u32,
    pub rows: [Option<i64>; 2],
    pub writes: bool,
    /// What it does besides: without it, passing a transaction on would be all its cost.
    pub further_reads: usize,
}

struct Run {
    work: Work,
    tables: Arc<[Arc<TableMeta>; 2]>,
    far: Option<Far>,
    seen: i64,
}

/// An injected distance: what a line from another executor's island costs. On one socket all lines
/// cost the same, so what two sockets would show is made up from what such a machine is measured
/// to have.
#[derive(Clone)]
struct Far {
    engine: Engine,
    line_nanos: u64,
}

impl Far {
    /// Waits for the lines of a row, if they are at home elsewhere.
    fn fetch(&self, table: usize, key: &KeyBuf) {
        let routing = self.engine.routing();
        let routes = routing.routes(group(table));
        let home = routes[routes.partition_point(|route| route.low <= *key) - 1].home();
        if EXECUTOR.get().is_some_and(|own| own != home) {
            let (began, nanos) = (Instant::now(), LINES * self.line_nanos);
            while began.elapsed() < Duration::from_nanos(nanos) {
                std::hint::spin_loop();
            }
        }
    }
}

impl Program for Run {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        for (table, row) in self.work.rows.iter().enumerate() {
            if let Some(row) = row {
                claims.add_point(group(table), &key(*row));
            }
        }
    }

    fn class(&self) -> u32 {
        self.work.class
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        for (at, row) in self.work.rows.iter().enumerate() {
            let Some(row) = row else { continue };
            let (table, key) = (&self.tables[at], key(*row));
            if let Some(far) = &self.far {
                far.fetch(at, &key);
            }
            let number = |row: &[u8]| match table.layout.get(row, 1) {
                Cell::Int8(value) => value,
                _ => 0,
            };
            let seen = txn.get(table, &key)?.map_or(0, number);
            self.seen += seen;
            for _ in 0..self.work.further_reads {
                self.seen += txn.get(table, &key)?.map_or(0, number);
            }
            if self.work.writes {
                let _ = txn.update(table, &key, &[(1, Cell::Int8(seen + 1))])?;
            }
        }
        Ok(())
    }
}

struct Make {
    rows: i64,
}

impl Program for Make {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.everything();
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        for id in TABLES {
            let def = TableDef {
                id,
                name: format!("table{id}"),
                columns: vec![ColumnKind::Int8; usize::from(COLUMNS)],
                key: vec![KeyColumn {
                    column: 0,
                    descending: false,
                    nulls_first: false,
                    nullable: false,
                    form: Default::default(),
                }],
                placement: Placement::Distributed { group: GroupId(id.0) },
                indexes: Vec::new(),
            };
            let _ = txn.ddl(DdlOp::CreateTable(def))?;
            let table = txn.table(id).ok_or(Stop::Recompile)?;
            for row in 0..self.rows {
                let mut cells = [Cell::Int8(0); COLUMNS as usize];
                cells[0] = Cell::Int8(row);
                let row_bytes = table.layout.encode_row(&cells);
                let _ = txn.insert(&table, &key(row), &row_bytes)?;
            }
        }
        Ok(())
    }
}

/// Two sockets of two caches each, if there are so many executors; otherwise one cache.
fn machine(executors: usize, size: Granularity) -> Invented {
    let (caches, sockets) = if executors < 4 { (1, 1) } else { (4, 2) };
    let core = |number: usize| CoreSeen {
        threads: vec![number],
        cache: Some(number * caches / executors),
        package: number * sockets / executors,
        memory_node: number * sockets / executors,
    };
    Invented::new((0..executors).map(core).collect(), size)
}

/// What transactions come, by the executor that submits them; drawn again for each.
pub type Draw = dyn Fn(u16, &mut RandomStream) -> Work + Send + Sync;

/// An engine with a load on it.
pub struct World {
    pub engine: Engine,
    draw: Arc<parking_lot::RwLock<Arc<Draw>>>,
    done: Arc<Vec<AtomicU64>>,
    stop: Arc<AtomicBool>,
    paused: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    far: Option<Far>,
}

/// Which monitor an engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Adaptive,
    /// Measures and tells, and changes nothing.
    Static,
    /// Does not even measure.
    Unmeasured,
}

impl Kind {
    pub fn settings(self) -> MonitorSettings {
        let settings = MonitorSettings::default();
        match self {
            Self::Adaptive => settings,
            Self::Static => MonitorSettings { adapts: false, ..settings },
            Self::Unmeasured => MonitorSettings { measures: false, ..settings },
        }
    }
}

impl World {
    /// Tables of so many rows, each cut into equal partitions in turn at home on the executors,
    /// which are islands of their own.
    pub fn new(executors: u16, rows: i64, kind: Kind) -> Self {
        let places = (0..executors)
            .map(|id| ExecutorPlace { island: IslandId(id), ..ExecutorPlace::default() })
            .collect();
        Self::on(executors, rows, kind, (places, None))
    }

    /// The same with islands of a size; with `chooses`, as they begin.
    pub fn with_islands(executors: u16, rows: i64, kind: Kind, size: Granularity, chooses: bool) -> Self {
        let cores = machine(executors.into(), size);
        let cores = if chooses { cores } else { cores.with_fixed_islands() };
        let places = cores.read().expect("it is there").executors();
        Self::on(executors, rows, kind, (places, Some(Arc::new(cores))))
    }

    /// The same on two sockets, each an island with a memory node; what the second one has, came
    /// from the first.
    pub fn with_sockets(executors: u16, rows: i64, kind: Kind) -> Self {
        let cores = Invented::of_sockets(2, usize::from(executors) / 2, Granularity::Socket);
        let cores = cores.with_fixed_islands();
        let places = cores.read().expect("it is there").executors();
        Self::on(executors, rows, kind, (places, Some(Arc::new(cores))))
    }

    fn on(
        executors: u16,
        rows: i64,
        kind: Kind,
        (places, topology): (Vec<ExecutorPlace>, Option<Arc<dyn Topology>>),
    ) -> Self {
        let config = EngineConfig {
            executors: places,
            pin_threads: false,
            split_rows: u64::MAX,
            one_shot_budget_micros: 600_000_000,
            max_memory_bytes: 16 << 30,
            monitor: Kind::Unmeasured.settings(),
            ..EngineConfig::default()
        };
        let seams = Seams { topology, ..Seams::default() };
        let store = Arc::new(MemoryStore::new());
        let engine = Engine::open_with(config, store, seams, &|_| {}).expect("the engine opens");
        engine.submit(Make { rows }, SubmitOptions::default()).wait().outcome.result.expect("made");
        let parts = PARTITIONS * i64::from(executors);
        for table in 0..TABLES.len() {
            let cuts = (1..parts).map(|part| key(part * rows / parts)).collect();
            engine.pre_split(group(table), cuts).wait().outcome.result.expect("split");
        }
        let world = Self {
            draw: Arc::new(parking_lot::RwLock::new(Arc::new(|_: u16, _: &mut RandomStream| Work {
                class: 0,
                rows: [None, None],
                writes: false,
                further_reads: 0,
            }))),
            done: Arc::new((0..executors).map(|_| AtomicU64::new(0)).collect()),
            stop: Arc::default(),
            paused: Arc::default(),
            threads: Vec::new(),
            far: None,
            engine,
        };
        for table in 0..TABLES.len() {
            world.place(table, |part| (part / PARTITIONS) as u16);
        }
        world.engine.set_monitor(kind.settings());
        world
    }

    /// Gives every partition of a table a home, by its position.
    pub fn place(&self, table: usize, home: impl Fn(i64) -> u16) {
        let routing = self.engine.routing();
        for (part, route) in routing.routes(group(table)).iter().enumerate() {
            let to = ExecutorId(home(part as i64));
            let change = Repartition::Move { partition: route.partition(), to };
            let done = self.engine.repartition(change, "experiment").wait();
            done.outcome.result.expect("an action ends");
        }
    }

    /// Lines from another island cost so much more; 0: as they do.
    pub fn set_distance(&mut self, line_nanos: u64) {
        self.far = (line_nanos > 0).then(|| Far { engine: self.engine.clone(), line_nanos });
    }

    /// From now on transactions are drawn so.
    pub fn set_load(&self, draw: impl Fn(&mut RandomStream) -> Work + Send + Sync + 'static) {
        self.set_load_by_executor(move |_, random| draw(random));
    }

    /// The same, by who submits.
    pub fn set_load_by_executor(
        &self,
        draw: impl Fn(u16, &mut RandomStream) -> Work + Send + Sync + 'static,
    ) {
        *self.draw.write() = Arc::new(draw);
    }

    /// Reads single rows on this thread, as the shortest of transactions.
    pub fn read_here(&self, reads: u64) {
        let tables = Arc::new(TABLES.map(|id| self.engine.table(id).expect("made before")));
        for at in 0..reads {
            let rows = [Some((at * 7_919 % 10_000) as i64), None];
            let work = Work { class: 1, rows, writes: false, further_reads: 0 };
            let run = Run { work, tables: tables.clone(), far: None, seen: 0 };
            self.engine.submit(run, SubmitOptions::default()).wait().outcome.result.expect("read");
        }
    }

    /// Starts the executors and their clients.
    pub fn start(&mut self) {
        let tables = Arc::new(TABLES.map(|id| self.engine.table(id).expect("made before")));
        for id in 0..self.done.len() {
            let (engine, draw) = (self.engine.clone(), self.draw.clone());
            let (done, stop, tables) = (self.done.clone(), self.stop.clone(), tables.clone());
            let paused = self.paused.clone();
            let far = self.far.clone();
            let body = Box::new(move |handle: ExecutorHandle| {
                EXECUTOR.set(Some(ExecutorId(id as u16)));
                let mut clients = Clients { engine, tables, far, pending: VecDeque::new(), finished: 0 };
                let mut random = RandomStream::new(id as u64 + 1);
                while !stop.load(Ordering::Relaxed) {
                    if paused.load(Ordering::Relaxed) {
                        // What is on its way elsewhere ends.
                        let _ = handle.drain(SliceBudget::default());
                        std::thread::sleep(Duration::from_millis(1));
                        continue;
                    }
                    let drawn = draw.read().clone();
                    for _ in 0..16 {
                        let served = handle.drain(SliceBudget::default()).served;
                        let moved = clients.step(&|random| drawn(id as u16, random), &mut random);
                        if served == 0 && !moved {
                            // Everything is on its way elsewhere.
                            std::thread::yield_now();
                        }
                    }
                    done[id].store(clients.finished, Ordering::Relaxed);
                }
            });
            let thread = self.engine.start_executor(ExecutorId(id as u16), body);
            self.threads.push(thread.expect("an executor starts"));
        }
    }

    /// Whether the clients rest, so that another world has the machine.
    pub fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    pub fn finished(&self) -> u64 {
        self.done.iter().map(|done| done.load(Ordering::Relaxed)).sum()
    }

    /// Transactions a second in steps of `step`, for so long.
    pub fn watch(&self, length: Duration, step: Duration) -> Vec<f64> {
        let mut rates = Vec::new();
        let (began, mut before, mut last) = (Instant::now(), self.finished(), Instant::now());
        while began.elapsed() < length {
            std::thread::sleep(step);
            let (now, finished) = (Instant::now(), self.finished());
            rates.push((finished - before) as f64 / (now - last).as_secs_f64());
            (before, last) = (finished, now);
        }
        rates
    }

    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("an executor ends");
        }
        self.engine.close();
    }
}

/// The clients of one executor.
struct Clients {
    engine: Engine,
    tables: Arc<[Arc<TableMeta>; 2]>,
    far: Option<Far>,
    pending: VecDeque<Submission<Run>>,
    finished: u64,
}

impl Clients {
    /// Takes in what has finished, and submits as many transactions as the window has room for.
    /// Whether anything moved.
    fn step(&mut self, draw: &dyn Fn(&mut RandomStream) -> Work, random: &mut RandomStream) -> bool {
        let before = self.pending.len();
        self.pending.retain_mut(|submission| submission.try_take().is_none());
        let room = WINDOW - self.pending.len();
        self.finished += (before - self.pending.len()) as u64;
        for _ in 0..room {
            let (work, tables, far) = (draw(random), self.tables.clone(), self.far.clone());
            let run = Run { work, tables, far, seen: 0 };
            let mut submission = self.engine.submit(run, SubmitOptions::default());
            match submission.try_take() {
                Some(_) => self.finished += 1,
                None => self.pending.push_back(submission),
            }
        }
        room > 0
    }
}
