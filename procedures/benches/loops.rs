//! Loops without a table, in-process: what a round takes. The functions are those that
//! `tests/bench/routines` measures beside PostgreSQL.
//!
//! `cargo bench -p archipel-procedures --bench loops -- [rounds] [only=FUNCTION]`; to count
//! instructions, the difference of two numbers of rounds:
//!
//! ```sh
//! valgrind --tool=callgrind target/release/deps/loops-… 20000 only=strings
//! ```

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::{Duration, Instant};

use common::Database;

/// The server's: values take and give back memory as they do there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Calls of each; the quickest counts, which other work on the machine disturbs least.
const CALLS: usize = 5;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rounds: u32 = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(1_000_000);
    let only = args.iter().find_map(|arg| arg.strip_prefix("only="));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/bench/routines.sql");
    let mut db = Database::with(&std::fs::read_to_string(script).expect("the functions"));
    for name in ["arithmetic", "strings", "arrays"] {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let call = format!("SELECT {name}({rounds})");
        let mut best = Duration::MAX;
        for _ in 0..if only.is_some() { 1 } else { CALLS } {
            let began = Instant::now();
            db.script(&call);
            best = best.min(began.elapsed());
        }
        println!("{name:<12} {:>8.1} ns a round", best.as_nanos() as f64 / f64::from(rounds));
    }
    std::process::exit(0);
}
