//! In-process cost of a transaction: submit, claim, read or update a row, commit, release.
//!
//! `cargo bench -p archipel-engine --bench engine` prints transactions a second for one and
//! two executors; each thread works on partitions of its own, as routed connections do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{ExecutorId, GroupId, TreeId};
use archipel_engine::log::MemoryStore;
use archipel_engine::random::RandomStream;
use archipel_engine::schema::{KeyColumn, Placement, TableDef};
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::encode_cell;
use archipel_engine::{
    ClaimSet, DdlOp, Engine, EngineConfig, Program, RoutingTable, SliceBudget, Stop, SubmitOptions,
    TableMeta, Txn,
};

const TABLE: TreeId = TreeId(100);
const GROUP: GroupId = GroupId(100);
const ROWS: i64 = 200_000;
const RUN: Duration = Duration::from_millis(1_500);

fn key_column() -> KeyColumn {
    KeyColumn { column: 0, descending: false, nulls_first: false, nullable: false, form: Default::default() }
}

fn key(id: i64) -> KeyBuf {
    let mut key = KeyBuf::new();
    encode_cell(&mut key, Cell::Int8(id), &key_column(), ColumnKind::Int8);
    key
}

fn int8(table: &TableMeta, row: &[u8], column: usize) -> i64 {
    match table.layout.get(row, column) {
        Cell::Int8(value) => value,
        _ => 0,
    }
}

struct Make;

impl Program for Make {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.everything();
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        let def = TableDef {
            id: TABLE,
            name: "counters".to_owned(),
            columns: vec![ColumnKind::Int8, ColumnKind::Int8, ColumnKind::Bytes],
            key: vec![key_column()],
            placement: Placement::Distributed { group: GROUP },
            indexes: Vec::new(),
        };
        let _ = txn.ddl(DdlOp::CreateTable(def))?;
        let Some(table) = txn.table(TABLE) else { return Err(Stop::Recompile) };
        for id in 0..ROWS {
            let row = table.layout.encode_row(&[Cell::Int8(id), Cell::Int8(0), Cell::Bytes(&[b'x'; 60])]);
            let _ = txn.insert(&table, &key(id), &row)?;
        }
        Ok(())
    }
}

#[derive(Clone)]
enum Kind {
    Nothing,
    Read,
    Update,
}

struct One {
    table: Arc<TableMeta>,
    key: KeyBuf,
    kind: Kind,
    seen: i64,
}

impl Program for One {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.add_point(GROUP, &self.key);
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        match self.kind {
            Kind::Nothing => {}
            Kind::Read => {
                self.seen = txn.get(&self.table, &self.key)?.map_or(0, |row| int8(&self.table, row, 1))
            }
            Kind::Update => {
                let seen = txn.get(&self.table, &self.key)?.map_or(0, |row| int8(&self.table, row, 1));
                let _ = txn.update(&self.table, &self.key, &[(1, Cell::Int8(seen + 1))])?;
            }
        }
        Ok(())
    }
}

/// CPU time of this thread: a figure that other load on the machine disturbs little.
fn thread_cpu_nanos() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on Linux, and `time` outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Transactions a second over all threads, and CPU nanoseconds each.
fn measure(engine: &Engine, threads: u16, kind: &Kind) -> (f64, f64) {
    let stop = Arc::new(AtomicBool::new(false));
    let table = engine.table(TABLE).expect("made before");
    let share = ROWS / i64::from(threads);
    let runs: Vec<_> = (0..threads)
        .map(|thread| {
            let (engine, stop, table, kind) = (engine.clone(), stop.clone(), table.clone(), kind.clone());
            let (send, receive) = std::sync::mpsc::channel();
            let inner = engine.clone();
            let body = Box::new(move |handle: archipel_engine::ExecutorHandle| {
                let mut random = RandomStream::new(u64::from(thread));
                let mut count = 0u64;
                let (begin, begin_cpu) = (Instant::now(), thread_cpu_nanos());
                while !stop.load(Ordering::Relaxed) {
                    // As a server's executors do between programs: a split may be queued.
                    handle.drain(SliceBudget::default());
                    for _ in 0..64 {
                        let id = i64::from(thread) * share + random.below(share as u64) as i64;
                        let program = One { table: table.clone(), key: key(id), kind: kind.clone(), seen: 0 };
                        let mut done = inner.submit(program, SubmitOptions::default());
                        if done.try_take().is_some() {
                            count += 1;
                        }
                    }
                }
                let cpu = (thread_cpu_nanos() - begin_cpu) as f64 / count as f64;
                let _ = send.send((count as f64 / begin.elapsed().as_secs_f64(), cpu));
            });
            (engine.start_executor(ExecutorId(thread), body).expect("an executor starts"), receive)
        })
        .collect();
    std::thread::sleep(RUN);
    stop.store(true, Ordering::Relaxed);
    runs.into_iter()
        .map(|(thread, receive)| {
            let measured = receive.recv().unwrap_or((0.0, 0.0));
            let _ = thread.join();
            measured
        })
        .fold((0.0, 0.0), |sum, (rate, cpu)| (sum.0 + rate, sum.1 + cpu / f64::from(threads)))
}

fn main() {
    let config = EngineConfig { pin_threads: false, ..EngineConfig::with_executors(2) };
    let engine = Engine::open(config, Arc::new(MemoryStore::new())).expect("the engine opens");
    engine.submit(Make, SubmitOptions::default()).wait().outcome.result.expect("the table is made");
    engine
        .pre_split(GROUP, (1..8).map(|part| key(part * ROWS / 8)).collect())
        .wait()
        .outcome
        .result
        .expect("splits");
    println!("{:<10} {:>9} {:>16} {:>12}", "program", "executors", "transactions/s", "CPU ns each");
    for (name, kind) in [("nothing", Kind::Nothing), ("read", Kind::Read), ("update", Kind::Update)] {
        for threads in [1, 2] {
            let (rate, cpu) = measure(&engine, threads, &kind);
            println!("{name:<10} {threads:>9} {rate:>16.0} {cpu:>12.0}");
        }
    }
}
