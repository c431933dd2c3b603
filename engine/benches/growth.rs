//! How the cost of one of each grows with how many there are: snapshots that are open at a time, threads that
//! take them, statements beside sessions that wait, sequences, reference tables, groups, transactions that wait
//! for one row or for one advisory lock, locks that a session gives back.
//!
//! `cargo bench -p archipel-engine --bench growth [MANY]` doubles them up to MANY and prints what one costs;
//! the exponent is that of all of them together: 1 where the cost of one stays the same.

mod keys;

use std::sync::Arc;
use std::time::Instant;

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{GroupId, SequenceId, TreeId, TxnId};
use archipel_engine::log::MemoryStore;
use archipel_engine::schema::{Placement, TableDef};
use archipel_engine::txn::LockMode;
use archipel_engine::{
    ClaimSet, DdlOp, Engine, EngineConfig, LockScope, LockTag, LockWait, ObjectMode, Program, Repartition,
    RoutingTable, SequenceDef, Stop, SubmitOptions, Txn,
};
use keys::{key, key_column};

/// Distributed tables have these numbers and higher ones.
const TABLES: u32 = 1_000_000;
/// Reference tables have these.
const REFERENCES: u32 = 2_000_000;
/// Of things that are measured one by one.
const SAMPLE: usize = 2_000;

fn run(engine: &Engine, body: impl FnMut(&mut Txn<'_>) -> Result<(), Stop> + Send + 'static) {
    let done = engine.submit(Script(Box::new(body)), SubmitOptions::default()).wait();
    done.outcome.result.expect("it runs");
}

type Body = Box<dyn FnMut(&mut Txn<'_>) -> Result<(), Stop> + Send>;

/// A program that finds out as it goes what it claims.
struct Script(Body);

impl Program for Script {
    fn predict(&mut self, _routing: &RoutingTable, _claims: &mut ClaimSet) {}

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        (self.0)(txn)
    }
}

/// An engine with so many tables, reference tables and sequences.
fn engine_with(many: usize) -> Engine {
    let config = EngineConfig { pin_threads: false, ..EngineConfig::with_executors(2) };
    let engine = Engine::open(config, Arc::new(MemoryStore::new())).expect("the engine opens");
    run(&engine, move |txn| {
        for number in 0..many as u32 {
            let mut def = TableDef {
                id: TreeId(TABLES + number),
                name: format!("table_{number}"),
                columns: vec![ColumnKind::Int8],
                key: vec![key_column()],
                placement: Placement::Distributed { group: GroupId(TABLES + number) },
                indexes: Vec::new(),
            };
            let _ = txn.ddl(DdlOp::CreateTable(def.clone()))?;
            def.id = TreeId(REFERENCES + number);
            def.placement = Placement::Reference;
            let _ = txn.ddl(DdlOp::CreateTable(def))?;
            let (id, max) = (SequenceId(number), i64::MAX);
            let sequence = SequenceDef { id, start: 1, increment: 1, min: 1, max, cycle: false };
            let _ = txn.ddl(DdlOp::CreateSequence(sequence))?;
        }
        Ok(())
    });
    engine
}

/// Microseconds for one of so many.
fn each(many: usize, body: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    body();
    begin.elapsed().as_nanos() as f64 / 1e3 / many as f64
}

/// Opens so many snapshots at a time, and lets them go, the oldest first.
fn snapshots(engine: &Engine, many: usize) -> f64 {
    each(many, || {
        let open: Vec<_> = (0..many).map(|_| engine.snapshot()).collect();
        open.into_iter().for_each(drop);
    })
}

/// Snapshots that so many threads take, twenty each.
fn snapshots_of_threads(engine: &Engine, threads: usize) -> f64 {
    each(threads * 20, || {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..20).for_each(|_| drop(engine.snapshot())));
            }
        });
    })
}

/// Empty transactions beside so many that wait.
fn beside_waiters(engine: &Engine, many: usize) -> f64 {
    // Their numbers are not given to others.
    let waiter = |number: usize| TxnId(u64::MAX - number as u64);
    for number in 0..many {
        engine.waits().publish(waiter(number), vec![waiter(many)]);
    }
    let micros = each(SAMPLE, || (0..SAMPLE).for_each(|_| drop(engine.begin())));
    (0..many).for_each(|number| engine.waits().forget(waiter(number)));
    micros
}

fn numbers(engine: &Engine, many: usize) -> f64 {
    each(many, || {
        for number in 0..many as u32 {
            engine.next_value(SequenceId(number)).expect("the sequence is there");
        }
    })
}

/// Commits to some of so many reference tables.
fn reference_commits(engine: &Engine, many: usize) -> f64 {
    each(SAMPLE, || {
        for number in 0..SAMPLE {
            let id = TreeId(REFERENCES + (number * 7_919 % many) as u32);
            run(engine, move |txn| {
                let table = txn.table(id).ok_or(Stop::Recompile)?;
                let row = table.layout.encode_row(&[Cell::Int8(number as i64)]);
                txn.insert(&table, &key(number), &row).map(drop)
            });
        }
    })
}

/// Splits of some of so many groups.
fn splits(engine: &Engine, many: usize) -> f64 {
    each(SAMPLE, || {
        for number in 0..SAMPLE {
            let group = GroupId(TABLES + (number * 7_919 % many) as u32);
            let change = Repartition::Split { group, at: key(number + 1) };
            engine.repartition(change, "bench").wait().program.result.expect("it is split");
        }
    })
}

/// One row of the first reference table is locked, or one advisory lock taken, by so many transactions, which
/// wait for one another.
fn in_turn(engine: &Engine, many: usize, take: fn(&mut Txn<'_>) -> Result<(), Stop>) -> f64 {
    let transactions: Vec<_> = (0..=many).map(|_| engine.begin()).collect();
    each(many, || {
        let statements: Vec<_> = transactions
            .iter()
            .map(|transaction| {
                let options = SubmitOptions { transaction: Some(transaction), ..SubmitOptions::default() };
                engine.submit(Script(Box::new(take)), options)
            })
            .collect();
        for (transaction, statement) in transactions.iter().zip(statements) {
            statement.wait().outcome.result.expect("its turn");
            engine.commit(transaction).wait().outcome.result.expect("committed");
        }
    })
}

fn lock_a_row(txn: &mut Txn<'_>) -> Result<(), Stop> {
    let table = txn.table(TreeId(REFERENCES)).ok_or(Stop::Recompile)?;
    let exists = txn.lock_row(&table, &key(0), LockMode::Update, LockWait::Wait)?;
    assert!(exists, "it was inserted before");
    Ok(())
}

fn advisory(number: usize) -> LockTag {
    LockTag::Advisory { database: 1, first: 0, second: number as u32, two: false }
}

fn take_a_lock(txn: &mut Txn<'_>) -> Result<(), Stop> {
    txn.lock_object(advisory(0), ObjectMode::Exclusive, LockScope::Transaction, LockWait::Wait)
}

/// Advisory locks that a session takes, and gives back in the same order.
fn session_locks(engine: &Engine, many: usize) -> f64 {
    let client = engine.client(1);
    let as_client = |body: Body| {
        let options = SubmitOptions { client: Some(&client), ..SubmitOptions::default() };
        engine.submit(Script(body), options).wait().outcome.result.expect("it runs");
    };
    each(many, || {
        as_client(Box::new(move |txn| {
            (0..many).try_for_each(|number| {
                txn.lock_object(advisory(number), ObjectMode::Exclusive, LockScope::Session, LockWait::Wait)
            })
        }));
        as_client(Box::new(move |txn| {
            assert!((0..many).all(|number| txn.unlock_object(advisory(number), ObjectMode::Exclusive)));
            Ok(())
        }));
    })
}

fn main() {
    let largest = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(4_000);
    let heads = [
        "snapshot",
        "of threads",
        "beside waiters",
        "nextval",
        "reference commit",
        "split",
        "for one row",
        "for one lock",
        "session lock",
    ];
    println!("{:>8} {}  (microseconds)", "many", heads.map(|head| format!("{head:>18}")).concat());
    let mut rows: Vec<(usize, [f64; 9])> = Vec::new();
    let mut many = 500.min(largest);
    loop {
        let engine = engine_with(many);
        let row = [
            snapshots(&engine, many),
            snapshots_of_threads(&engine, many / 125),
            beside_waiters(&engine, many),
            numbers(&engine, many),
            reference_commits(&engine, many),
            splits(&engine, many),
            in_turn(&engine, many, lock_a_row),
            in_turn(&engine, many, take_a_lock),
            session_locks(&engine, many),
        ];
        println!("{many:>8} {}", row.map(|micros| format!("{micros:>18.2}")).concat());
        rows.push((many, row));
        if many >= largest {
            break;
        }
        many = (many * 2).min(largest);
    }
    if let (Some(first), Some(last)) = (rows.first(), rows.last())
        && first.0 < last.0
    {
        let doubled = (last.0 as f64 / first.0 as f64).log2();
        let of = |at: usize| format!("{:>18.2}", 1.0 + (last.1[at] / first.1[at]).log2() / doubled);
        println!("{:>8} {}", "exponent", [0, 1, 2, 3, 4, 5, 6, 7, 8].map(of).concat());
    }
}
