//! The TATP mix in-process, on one executor and on more: no wire, no sync.
//!
//! Each executor's thread has its share of the subscribers as its own; the specification knows no
//! call that touches two of them.
//!
//! `cargo bench -p archipel-procedures --bench tatp -- [subscribers] [seconds]`

#[path = "../tests/common/mod.rs"]
mod common;

mod by_hand;
mod executors;
#[path = "by_hand/tatp.rs"]
mod written;

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipel_sql::datum::Datum;
use by_hand::ByHand;
use common::Database;
use executors::{Mix, Random};
use written::TatpByHand;

fn load(Tatp { subscribers, threads }: Tatp) -> Database {
    let mut db = Database::on(threads as u16);
    // In the program: it can be carried to another machine.
    db.script(include_str!("../../tests/workloads/tatp/schema.sql"));
    db.distribute(include_str!("../../tests/workloads/tatp/distribution.sql"));
    db.script(include_str!("../../tests/workloads/tatp/procedures.sql"));
    let begins = |share| subscribers / threads * share + 1;
    let shares: Vec<i32> = (1..threads).map(begins).collect();
    db.split("subscriber", &shares);
    db.split_indexes("subscriber", &shares.iter().map(|first| format!("{first:015}")).collect::<Vec<_>>());
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

/// The mix over subscribers `1 ..= subscribers`, of which each thread has an equal share.
#[derive(Clone, Copy)]
struct Tatp {
    subscribers: i32,
    threads: i32,
}

impl Mix for Tatp {
    /// Routines and their shares of the mix (TATP 1.0, section 3).
    const CALLS: &'static [(&'static str, i32)] = &[
        ("get_subscriber_data", 35),
        ("get_new_destination", 10),
        ("get_access_data", 35),
        ("update_subscriber_data", 2),
        ("update_location", 14),
        ("insert_call_forwarding", 2),
        ("delete_call_forwarding", 2),
    ];

    fn load(&self) -> Database {
        load(*self)
    }

    fn alone(&self) -> Tatp {
        Tatp { subscribers: self.subscribers / self.threads, threads: 1 }
    }

    fn arguments(&self, which: usize, random: &mut Random, thread: u16) -> Vec<Datum> {
        let share = self.subscribers / self.threads;
        let s_id = (random.between(0, 65_535) | random.between(1, share)) % share + 1;
        let s_id = s_id + i32::from(thread) * share;
        let number = || Datum::text(&format!("{s_id:015}"));
        let mut small = |low, high| Datum::Int2(random.between(low, high) as i16);
        match which {
            0 => vec![Datum::Int4(s_id)],
            1 => vec![Datum::Int4(s_id), small(1, 4), small(0, 16), small(1, 24)],
            2 => vec![Datum::Int4(s_id), small(1, 4)],
            3 => vec![Datum::Int4(s_id), small(0, 1), small(1, 4), small(0, 255), Datum::Null],
            4 => vec![number(), Datum::Int4(s_id ^ 0x55), Datum::Null],
            5 => vec![number(), small(1, 4), small(0, 16), small(17, 24), number()],
            _ => vec![number(), small(1, 4), small(0, 16), Datum::Null],
        }
    }

    fn by_hand(&self, db: &Database) -> Arc<dyn ByHand> {
        Arc::new(TatpByHand::of(db))
    }

    /// Rows that are there already, or have no facility.
    fn expects(&self, state: &str, _message: &str) -> bool {
        matches!(state, "23503" | "23505")
    }
}

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let subscribers = args.first().copied().unwrap_or(100_000) as i32;
    let seconds = args.get(1).copied().unwrap_or(3);
    let threads = executors::executors_max().into();
    executors::measure(Tatp { subscribers, threads }, Duration::from_secs(seconds));
    std::process::exit(0);
}
