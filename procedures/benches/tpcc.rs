//! The TPC-C mix in-process, on one executor and on more: no wire, no sync.
//!
//! Each executor's thread has its share of the warehouses as its own and goes to others as the
//! specification says: one order line in a hundred, 15 payments in a hundred.
//!
//! `cargo bench -p archipel-procedures --bench tpcc -- [warehouses] [seconds] [only=new_order]`

#[path = "../tests/common/mod.rs"]
mod common;

mod by_hand;
mod executors;
#[path = "by_hand/tpcc.rs"]
mod written;

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipel_sql::datum::Datum;
use archipel_sql::numeric::Numeric;
use by_hand::ByHand;
use common::{Database, integers};
use executors::{Mix, Random};
use written::TpcCByHand;

const LAST_NAMES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

fn last_name(number: i32) -> String {
    [number / 100, number / 10 % 10, number % 10].iter().map(|d| LAST_NAMES[*d as usize]).collect()
}

fn load(TpcC { warehouses, threads }: TpcC) -> Database {
    let mut db = Database::on(threads as u16);
    // In the program: it can be carried to another machine.
    db.script(include_str!("../../tests/workloads/tpcc/schema.sql"));
    db.distribute(include_str!("../../tests/workloads/tpcc/distribution.sql"));
    db.script(include_str!("../../tests/workloads/tpcc/procedures.sql"));
    db.split("warehouse", &(2..=warehouses).collect::<Vec<_>>());
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

/// The mix over warehouses `1 ..= warehouses`, which the threads have in turn as their own.
#[derive(Clone, Copy)]
struct TpcC {
    warehouses: i32,
    threads: i32,
}

/// NURand of clause 2.1.6, with C = 0.
fn skewed(random: &mut Random, a: i32, low: i32, high: i32) -> i32 {
    ((random.between(0, a) | random.between(low, high)) % (high - low + 1)) + low
}

fn chance(random: &mut Random, percent: i32) -> bool {
    random.between(1, 100) <= percent
}

impl TpcC {
    /// Another warehouse than `home`, if there is one.
    fn remote(&self, random: &mut Random, home: i32) -> i32 {
        match random.between(1, (self.warehouses - 1).max(1)) {
            _ if self.warehouses == 1 => home,
            other if other >= home => other + 1,
            other => other,
        }
    }
}

impl Mix for TpcC {
    const CALLS: &'static [(&'static str, i32)] =
        &[("new_order", 45), ("payment", 43), ("order_status", 4), ("delivery", 4), ("stock_level", 4)];

    fn load(&self) -> Database {
        load(*self)
    }

    fn alone(&self) -> TpcC {
        TpcC { warehouses: self.warehouses / self.threads, threads: 1 }
    }

    fn arguments(&self, which: usize, random: &mut Random, thread: u16) -> Vec<Datum> {
        let int = Datum::Int4;
        let w = random.between(0, self.warehouses / self.threads - 1) * self.threads + 1 + i32::from(thread);
        let d = random.between(1, 10);
        let by_name = |random: &mut Random| {
            if chance(random, 60) {
                (Datum::Null, Datum::text(&last_name(skewed(random, 255, 0, 999))))
            } else {
                (Datum::Int4(skewed(random, 1023, 1, 3000)), Datum::Null)
            }
        };
        match which {
            0 => {
                let lines = random.between(5, 15);
                let mut items: Vec<i32> = (0..lines).map(|_| skewed(random, 8191, 1, 100_000)).collect();
                if chance(random, 1)
                    && let Some(last) = items.last_mut()
                {
                    *last = 200_000;
                }
                let supply: Vec<i32> =
                    (0..lines).map(|_| if chance(random, 1) { self.remote(random, w) } else { w }).collect();
                let quantities: Vec<i32> = (0..lines).map(|_| random.between(1, 10)).collect();
                let customer = int(skewed(random, 1023, 1, 3000));
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
                let cw = if chance(random, 15) { self.remote(random, w) } else { w };
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

    fn by_hand(&self, db: &Database) -> Arc<dyn ByHand> {
        Arc::new(TpcCByHand::of(db))
    }

    fn expects(&self, _state: &str, message: &str) -> bool {
        message == "Item number is not valid"
    }
}

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let threads = executors::executors_max();
    let warehouses = args.first().copied().unwrap_or(8).next_multiple_of(threads.into()) as i32;
    let seconds = args.get(1).copied().unwrap_or(3);
    executors::measure(TpcC { warehouses, threads: threads.into() }, Duration::from_secs(seconds));
    std::process::exit(0);
}
