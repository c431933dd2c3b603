//! The test house: real servers, started and stopped by tests, and the ways to compare them.
//!
//! - [`server`]   an Archipel process on a data directory of its own
//! - [`postgres`] a PostgreSQL 15 cluster, the oracle
//! - [`slt`]      one sqllogictest file against either
//! - [`history`]  what clients did and saw, for the checker
//! - [`isolation`] PostgreSQL's isolation tester against either
//! - [`differential`] statements made up at random
//! - [`dialogue`] several sessions in turn, against either
//! - [`protocol`] messages of the protocol as text, and a client that sends any bytes
//! - [`regression`] PostgreSQL's regression files, statement by statement
//! - [`language`] routines with their calls, case by case, against either
//! - [`port`]     free loopback ports
//! - [`secured`]  certificates and rules of servers that take nobody without TLS and a password
//! - [`cores`]    cores taken from a running process and given back
//! - [`power`]    a disk that loses power under a server
//! - [`browser`]  a headless Chromium, for pages
//! - [`waits`]    whether a session waits for another
//!
//! Workloads (`workloads/`), SQL suites (`slt/`) and benchmarks (`bench/`) lie beside it; the
//! tests that use this house are in `tests/tests`.

pub mod browser;
pub mod cores;
pub mod dialogue;
pub mod differential;
pub mod history;
pub mod isolation;
pub mod language;
pub mod port;
pub mod postgres;
pub mod power;
pub mod protocol;
pub mod regression;
pub mod secured;
pub mod server;
pub mod slt;
pub mod waits;

use std::path::PathBuf;

/// Whether `tests/run --long` asked for the long form of a test.
pub fn long() -> bool {
    std::env::var_os("ARCHIPEL_TEST_LONG").is_some_and(|value| value == "1")
}

/// The `archipel` binary of the same build as this test.
pub fn archipel_binary() -> PathBuf {
    let mut path = std::env::current_exe().expect("a running test has a path");
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    let binary = path.join("archipel");
    assert!(binary.exists(), "{} is missing: build the workspace first (tests/run does)", binary.display());
    binary
}

/// A file of the `tests` folder.
pub fn file(relative: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// Says that a test proves nothing here, where the test harness does not swallow it.
pub fn skipped(reason: &str) {
    use std::io::Write;
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Whoever reads the output of a run without an error stream does without it.
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED: {name}: {reason}");
}
