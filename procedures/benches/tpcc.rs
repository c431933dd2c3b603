//! The TPC-C mix in-process, on one thread: no wire, no sync. Prints transactions a second.
//!
//! `cargo bench -p archipel-procedures --bench tpcc -- [warehouses] [seconds] [only=new_order]`

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipel_engine::{Stop, SubmitOptions};
use archipel_procedures::{CallProgram, Program};
use archipel_sql::datum::Datum;
use archipel_sql::numeric::Numeric;
use common::{Database, Host, integers};

const LAST_NAMES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// A small generator: the mix must be the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Uniform in `low ..= high`.
    fn between(&mut self, low: i32, high: i32) -> i32 {
        low + (self.next() % (high - low + 1) as u64) as i32
    }

    /// NURand of clause 2.1.6, with C = 0.
    fn skewed(&mut self, a: i32, low: i32, high: i32) -> i32 {
        ((self.between(0, a) | self.between(low, high)) % (high - low + 1)) + low
    }

    fn chance(&mut self, percent: i32) -> bool {
        self.between(1, 100) <= percent
    }
}

fn last_name(number: i32) -> String {
    [number / 100, number / 10 % 10, number % 10].iter().map(|d| LAST_NAMES[*d as usize]).collect()
}

fn load(warehouses: i32) -> Database {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/workloads/tpcc/");
    let read = |file: &str| std::fs::read_to_string(format!("{root}{file}.sql")).expect("the workload");
    let mut db = Database::with(&read("schema"));
    db.distribute(&read("distribution"));
    db.script(&read("procedures"));
    let began = Instant::now();
    db.script(
        "INSERT INTO item SELECT i, i % 1000, 'item-' || i, (1 + i % 99)::numeric, 'data of item ' || i FROM generate_series(1, 100000) i",
    );
    let name = "(ARRAY['BAR','OUGHT','ABLE','PRI','PRES','ESE','ANTI','CALLY','ATION','EING'])";
    for w in 1..=warehouses {
        db.script(&format!(
            "INSERT INTO warehouse VALUES ({w}, 'wh{w}', 'street', 'street', 'city', 'ST', '123456789', 0.1, 300000);
             INSERT INTO district SELECT {w}, d, 'd' || d, 's1', 's2', 'city', 'ST', '123456789', 0.05, 30000, 3001 FROM generate_series(1, 10) d;
             INSERT INTO stock SELECT {w}, i, 50, repeat('a', 24), repeat('b', 24), repeat('c', 24), repeat('d', 24), repeat('e', 24), repeat('f', 24), repeat('g', 24), repeat('h', 24), repeat('i', 24), repeat('j', 24), 0, 0, 0, 'stock data of some length' FROM generate_series(1, 100000) i;"
        ));
        for d in 1..=10 {
            db.script(&format!(
                "INSERT INTO customer SELECT {w}, {d}, c, 'first' || c, 'OE',
                   {name}[(c - 1) % 1000 / 100 + 1] || {name}[(c - 1) % 1000 / 10 % 10 + 1] || {name}[(c - 1) % 10 + 1],
                   's1', 's2', 'city', 'ST', '123456789', '0123456789012345', now(),
                   CASE WHEN c % 10 = 0 THEN 'BC' ELSE 'GC' END, 50000, 0.1, -10, 10, 1, 0, repeat('x', 400) FROM generate_series(1, 3000) c;
                 INSERT INTO orders SELECT {w}, {d}, o, (o * 7919) % 3000 + 1, now(), CASE WHEN o < 2101 THEN 1 END, 10, 1 FROM generate_series(1, 3000) o;
                 INSERT INTO new_order SELECT {w}, {d}, o FROM generate_series(2101, 3000) o;
                 INSERT INTO order_line SELECT {w}, {d}, o, l, (o * 31 + l * 17) % 100000 + 1, {w}, now(), 5, 10, repeat('y', 24) FROM generate_series(1, 3000) o, generate_series(1, 10) l;"
            ));
        }
    }
    println!("loaded {warehouses} warehouses in {:.1} s", began.elapsed().as_secs_f64());
    db
}

struct Routines {
    all: Vec<(&'static str, Arc<Program>)>,
}

fn arguments(random: &mut Random, which: usize, warehouses: i32) -> Vec<Datum> {
    let int = Datum::Int4;
    let w = random.between(1, warehouses);
    let d = random.between(1, 10);
    let by_name = |random: &mut Random| {
        if random.chance(60) {
            (Datum::Null, Datum::text(&last_name(random.skewed(255, 0, 999))))
        } else {
            (Datum::Int4(random.skewed(1023, 1, 3000)), Datum::Null)
        }
    };
    match which {
        0 => {
            let lines = random.between(5, 15);
            let mut items: Vec<i32> = (0..lines).map(|_| random.skewed(8191, 1, 100_000)).collect();
            if random.chance(1)
                && let Some(last) = items.last_mut()
            {
                *last = 200_000;
            }
            let supply: Vec<i32> = (0..lines)
                .map(|_| if random.chance(1) { random.between(1, warehouses) } else { w })
                .collect();
            let quantities: Vec<i32> = (0..lines).map(|_| random.between(1, 10)).collect();
            let customer = int(random.skewed(1023, 1, 3000));
            vec![
                int(w),
                int(d),
                customer,
                integers(&items),
                integers(&supply),
                integers(&quantities),
                Datum::Null,
                Datum::Null,
            ]
        }
        1 => {
            let (c, last) = by_name(random);
            let amount = Numeric::from_scaled(i64::from(random.between(100, 500_000)), 2);
            let cw = if random.chance(15) { random.between(1, warehouses) } else { w };
            vec![int(w), int(d), int(cw), int(d), c, last, Datum::Numeric(amount), Datum::Null]
        }
        2 => {
            let (c, last) = by_name(random);
            let mut args = vec![int(w), int(d), c, last];
            args.resize(10, Datum::Null);
            args
        }
        3 => vec![int(w), int(random.between(1, 10)), Datum::Null],
        _ => vec![int(w), int(d), int(random.between(10, 20)), Datum::Null],
    }
}

/// Seconds of processor time of this thread, to a hundredth.
fn cpu_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let number = |at: usize, default: u64| args.get(at).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (warehouses, seconds) = (number(0, 1) as i32, number(1, 3));
    let only = args.iter().find_map(|a| a.strip_prefix("only="));
    let db = load(warehouses);
    let names = ["new_order", "payment", "order_status", "delivery", "stock_level"];
    let routines = Routines { all: names.iter().map(|n| (*n, db.program(n))).collect() };
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut call = CallProgram::new(routines.all[0].1.clone(), Vec::new(), Arc::new(Host), db.engine.clone());
    let mut done = [0u64; 5];
    let mut spent = [Duration::ZERO; 5];
    let (mut failed, mut restarts, mut slow) = (0u64, 0u64, 0u64);
    let (began, cpu_began) = (Instant::now(), cpu_time());
    while began.elapsed() < Duration::from_secs(seconds) {
        let which = match random.between(1, 100) {
            1..=45 => 0,
            46..=88 => 1,
            89..=92 => 2,
            93..=96 => 3,
            _ => 4,
        };
        let which = only.and_then(|o| names.iter().position(|n| *n == o)).unwrap_or(which);
        call.routine = routines.all[which].1.clone();
        call.args = arguments(&mut random, which, warehouses);
        let start = Instant::now();
        let completed = db.engine.submit(call, SubmitOptions::default()).wait();
        spent[which] += start.elapsed();
        call = completed.program;
        restarts += u64::from(completed.outcome.restarts);
        match (completed.outcome.result, &call.error) {
            (Ok(()), _) => done[which] += 1,
            (Err(_), Some(error)) if error.message() == "Item number is not valid" => failed += 1,
            // The budget is wall-clock time: a busy machine uses it up.
            (Err(Stop::Interactive), None) => slow += 1,
            (Err(stop), error) => panic!("{}: {stop:?} {error:?}", names[which]),
        }
    }
    let total: u64 = done.iter().sum();
    let elapsed: Duration = spent.iter().sum();
    let cpu = cpu_time() - cpu_began;
    println!(
        "{total} committed, {failed} rolled back, {restarts} restarts, {slow} beyond the budget: {:.0} tx/s of time in calls, {:.0} tx/s of processor time",
        total as f64 / elapsed.as_secs_f64(),
        total as f64 / cpu
    );
    for ((name, done), spent) in names.iter().zip(done).zip(spent) {
        if done > 0 {
            println!("  {name:14} {done:8}  {:7.2} us", spent.as_secs_f64() * 1e6 / done as f64);
        }
    }
    std::process::exit(0);
}
