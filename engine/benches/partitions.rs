//! How the cost of a split, a move and a merge grows with the partitions that a group has: time, and bytes
//! of log; and that of one transaction over all of them, for each: it was predicted to touch them all, or
//! claims one after the other, reads a key of each in no order, and then walks down through all.
//!
//! `cargo bench -p archipel-engine --bench partitions [PARTITIONS]` doubles the partitions of a table up to
//! PARTITIONS, and prints what one of each cost on the way; the exponent is that of the whole: 1 where the
//! cost of one stays the same.

mod keys;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use archipel_engine::cell::ColumnKind;
use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::log::MemoryStore;
use archipel_engine::schema::{Placement, TableDef};
use archipel_engine::{
    ClaimSet, DdlOp, Direction, Engine, EngineConfig, KeyRange, Program, Repartition, RoutingTable, Stop,
    SubmitOptions, TableMeta, Txn,
};
use keys::{key, key_column};

const TABLE: TreeId = TreeId(100);
const GROUP: GroupId = GroupId(100);
/// Of moves and merges: so many are enough to measure.
const SAMPLE: usize = 500;

struct Make;

impl Program for Make {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.everything();
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        let def = TableDef {
            id: TABLE,
            name: "counters".to_owned(),
            columns: vec![ColumnKind::Int8],
            key: vec![key_column()],
            placement: Placement::Distributed { group: GROUP },
            indexes: Vec::new(),
        };
        let _ = txn.ddl(DdlOp::CreateTable(def))?;
        Ok(())
    }
}

/// Reads a key of each of so many partitions, and all of them backwards.
struct Touch {
    table: Arc<TableMeta>,
    partitions: usize,
    is_predicted: bool,
}

impl Program for Touch {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        if self.is_predicted {
            claims.add_group(GROUP);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        for number in 0..self.partitions {
            let _ = txn.get(&self.table, &key(number.wrapping_mul(7_919) % self.partitions))?;
        }
        let mut visit = |_: &[u8], _: &[u8]| ControlFlow::Continue(());
        txn.scan(&self.table, KeyRange::ALL, Direction::Descending, &mut visit)
    }
}

/// Microseconds for each partition.
fn touch(engine: &Engine, partitions: usize, is_predicted: bool) -> f64 {
    let table = engine.table(TABLE).expect("made before");
    let begin = Instant::now();
    let program = Touch { table, partitions, is_predicted };
    engine.submit(program, SubmitOptions::default()).wait().outcome.result.expect("it runs");
    begin.elapsed().as_nanos() as f64 / 1e3 / partitions as f64
}

/// Does all of it; microseconds and bytes of log for each.
fn measure(engine: &Engine, changes: impl Iterator<Item = Repartition>) -> (f64, f64) {
    let (bytes, begin) = (engine.log().counters.bytes, Instant::now());
    let mut count = 0_u32;
    for change in changes {
        let done = engine.repartition(change, "bench").wait();
        done.outcome.result.expect("it runs");
        done.program.result.expect("it is done");
        count += 1;
    }
    let nanos = begin.elapsed().as_nanos() as f64;
    engine.wait_durable(engine.log().epoch);
    let count = f64::from(count.max(1));
    (nanos / 1e3 / count, (engine.log().counters.bytes - bytes) as f64 / count)
}

fn exponent(sizes: (usize, usize), each: (f64, f64)) -> f64 {
    1.0 + (each.1 / each.0).log2() / (sizes.1 as f64 / sizes.0 as f64).log2()
}

fn main() {
    let largest = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(16_000);
    let config = EngineConfig { pin_threads: false, ..EngineConfig::with_executors(2) };
    let engine = Engine::open(config, Arc::new(MemoryStore::new())).expect("the engine opens");
    engine.submit(Make, SubmitOptions::default()).wait().outcome.result.expect("the table is made");
    let heads = ["split", "move", "merge", "touched, predicted", "touched, claimed late"];
    println!("{:>10} {}", "partitions", heads.map(|head| format!("{head:>22}")).concat());
    let mut rows: Vec<(usize, [(f64, f64); 5])> = Vec::new();
    let mut has = 1;
    let mut wanted = 1_000.min(largest);
    while has < largest {
        let split =
            measure(&engine, (has..wanted).map(|at| Repartition::Split { group: GROUP, at: key(at) }));
        has = wanted;
        let routing = engine.routing();
        let routes = routing.routes(GROUP);
        let some: Vec<usize> =
            (0..SAMPLE.min(has / 2)).map(|number| 2 * number * (has / 2) / SAMPLE.min(has / 2)).collect();
        let of = |at: usize| routes[at].partition();
        let there = |at: usize| archipel_engine::id::ExecutorId(1 - routes[at].home().0);
        let moved =
            measure(&engine, some.iter().map(|&at| Repartition::Move { partition: of(at), to: there(at) }));
        let merged = measure(&engine, some.iter().map(|&at| Repartition::Merge(of(at), of(at + 1))));
        // As many as before, for the next size.
        measure(
            &engine,
            some.iter().map(|&at| Repartition::Split { group: GROUP, at: routes[at + 1].low.clone() }),
        );
        let touched = [true, false].map(|is_predicted| (touch(&engine, has, is_predicted), 0.0));
        let all = [split, moved, merged, touched[0], touched[1]];
        let cells = all.map(|(micros, bytes)| format!("{:>22}", format!("{micros:.2} us {bytes:.0} bytes")));
        println!("{has:>10} {}", cells.concat());
        rows.push((has, all));
        wanted = (has * 2).min(largest);
    }
    if let (Some(first), Some(last)) = (rows.first(), rows.last())
        && first.0 < last.0
    {
        let sizes = (first.0, last.0);
        let of = |at: usize| {
            let (time, log) = ((first.1[at].0, last.1[at].0), (first.1[at].1, last.1[at].1));
            let time = format!("{:.2}", exponent(sizes, time));
            let log = if log.0 > 0.0 { format!(" and {:.2}", exponent(sizes, log)) } else { String::new() };
            format!("{:>22}", time + &log)
        };
        println!("{:>10} {}", "exponents", [0, 1, 2, 3, 4].map(of).concat());
    }
}
