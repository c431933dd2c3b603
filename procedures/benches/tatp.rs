//! The TATP mix in-process, on one thread: no wire, no sync. Prints transactions a second.
//!
//! `cargo bench -p archipel-procedures --bench tatp -- [subscribers] [seconds]`

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipel_engine::SubmitOptions;
use archipel_procedures::CallProgram;
use archipel_sql::datum::Datum;
use common::{Database, Host};

/// A small generator: the mix must be the same each time.
struct Random(u64);

impl Random {
    /// Uniform in `low ..= high`.
    fn between(&mut self, low: i32, high: i32) -> i32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + (self.0 % (high - low + 1) as u64) as i32
    }
}

/// Routines and their shares of the mix (TATP 1.0, section 3).
const MIX: [(&str, i32); 7] = [
    ("get_subscriber_data", 35),
    ("get_new_destination", 10),
    ("get_access_data", 35),
    ("update_subscriber_data", 2),
    ("update_location", 14),
    ("insert_call_forwarding", 2),
    ("delete_call_forwarding", 2),
];

fn load(subscribers: i32) -> Database {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/workloads/tatp/");
    let read = |file: &str| std::fs::read_to_string(format!("{root}{file}.sql")).expect("the workload");
    let mut db = Database::with(&read("schema"));
    db.distribute(&read("distribution"));
    db.script(&read("procedures"));
    let began = Instant::now();
    let small = |modulus: i32| (1..=10).map(|n| format!(", (s * {n}) % {modulus}")).collect::<String>();
    // In slices: one statement must not outgrow what a one-shot may keep.
    for first in (1..=subscribers).step_by(10_000) {
        let last = (first + 9_999).min(subscribers);
        let all = format!("FROM generate_series({first}, {last}) s");
        db.script(&format!(
            "INSERT INTO subscriber SELECT s, lpad(s::text, 15, '0'){}{}{}, s, s {all};
             INSERT INTO access_info SELECT s, t, s % 256, t, 'ABC', 'ABCDE' {all}, generate_series(1, 4) t WHERE t <= s % 4 + 1;
             INSERT INTO special_facility SELECT s, t, CASE WHEN s % 7 = 0 THEN 0 ELSE 1 END, 0, 0, 'ABCDE' {all}, generate_series(1, 4) t WHERE t <= s % 4 + 1;
             INSERT INTO call_forwarding SELECT s, t, 8 * (s % 3), 8 * (s % 3) + 4, lpad(s::text, 15, '0') {all}, generate_series(1, 4) t WHERE t <= s % 4 + 1 AND s % 2 = 0;",
            small(2),
            small(16),
            small(256),
        ));
    }
    println!("loaded {subscribers} subscribers in {:.1} s", began.elapsed().as_secs_f64());
    db
}

fn arguments(random: &mut Random, which: usize, subscribers: i32) -> Vec<Datum> {
    let s_id = (random.between(0, 65_535) | random.between(1, subscribers)) % subscribers + 1;
    let number = Datum::text(&format!("{s_id:015}"));
    let mut small = |low, high| Datum::Int2(random.between(low, high) as i16);
    match which {
        0 => vec![Datum::Int4(s_id)],
        1 => vec![Datum::Int4(s_id), small(1, 4), small(0, 16), small(1, 24)],
        2 => vec![Datum::Int4(s_id), small(1, 4)],
        3 => vec![Datum::Int4(s_id), small(0, 1), small(1, 4), small(0, 255), Datum::Null],
        4 => vec![number, Datum::Int4(s_id ^ 0x55), Datum::Null],
        5 => vec![number.clone(), small(1, 4), small(0, 16), small(17, 24), number],
        _ => vec![number, small(1, 4), small(0, 16), Datum::Null],
    }
}

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let subscribers = args.first().copied().unwrap_or(100_000) as i32;
    let seconds = args.get(1).copied().unwrap_or(3);
    let db = load(subscribers);
    let routines: Vec<_> = MIX.iter().map(|(name, _)| db.program(name)).collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut call = CallProgram::new(routines[0].clone(), Vec::new(), Arc::new(Host), db.engine.clone());
    let mut done = [0u64; MIX.len()];
    let mut spent = [Duration::ZERO; MIX.len()];
    let mut rejected = 0u64;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        let mut ticket = random.between(1, 100);
        let which = MIX
            .iter()
            .position(|(_, share)| {
                ticket -= share;
                ticket <= 0
            })
            .expect("the shares add up to a hundred");
        call.routine = routines[which].clone();
        call.args = arguments(&mut random, which, subscribers);
        let start = Instant::now();
        let completed = db.engine.submit(call, SubmitOptions::default()).wait();
        spent[which] += start.elapsed();
        call = completed.program;
        match (completed.outcome.result, &call.error) {
            (Ok(()), _) => done[which] += 1,
            // The specification provides for rows that are there already, or have no facility.
            (Err(_), Some(error)) if matches!(error.state().as_str(), "23503" | "23505") => rejected += 1,
            (Err(stop), error) => panic!("{}: {stop:?} {error:?}", MIX[which].0),
        }
    }
    let total: u64 = done.iter().sum();
    let elapsed: Duration = spent.iter().sum();
    println!(
        "{total} committed, {rejected} rejected: {:.0} tx/s of time in calls",
        total as f64 / elapsed.as_secs_f64()
    );
    for (((name, _), done), spent) in MIX.iter().zip(done).zip(spent) {
        if done > 0 {
            println!("  {name:24} {done:8}  {:7.2} us", spent.as_secs_f64() * 1e6 / done as f64);
        }
    }
    std::process::exit(0);
}
