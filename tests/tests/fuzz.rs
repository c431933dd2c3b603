//! Broken statements: those of `tests/slt` with words lost, doubled, swapped or taken from elsewhere, on
//! their way through parser, binder and compiler, in the tables that they were written for.
//!
//! Nobody knows what such a statement should answer. But it has to answer: a result, or an error that
//! has a state of its own (an XX000 is a fault of ours) and a place inside the text; the session goes
//! on, nothing panics, and the server's memory stays bounded.

use std::ops::Range;
use std::time::Duration;

use archipel_tests::server::{Server, connect};
use archipel_tests::slt::statements;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::{Client, Error};

/// How many broken statements, for CI and for `tests/run --long`. They come from the seed
/// `ARCHIPEL_TEST_SEED`, or else from [`SEED`].
const STATEMENTS: (usize, usize) = (3_000, 100_000);
const SEED: u64 = 15;
/// What a statement may compute before it is cancelled, and how long its answer may take in all.
const TIMEOUT: &str = "SET statement_timeout = '2s'";
const PATIENCE: Duration = Duration::from_secs(120);
const MEMORY_BYTES_MAX: u64 = 4 << 30;
/// What would wait for somebody else, end the session or change the server.
const SPARED: [&str; 7] =
    ["copy", "pg_sleep", "pg_terminate", "pg_cancel", "alter system", "listen", "pg_reload_conf"];
/// What PostgreSQL refuses without a state of its own (`AddRoleMems`), so that it says XX000 there, too.
const STATELESS: [&str; 2] = ["cannot have explicit members", "cannot be a member of any role"];
/// What no statement of the suites holds.
const ODD: [&str; 16] = [
    "99999999999999999999999999",
    "1e400",
    "-9223372036854775808",
    "'\\'",
    "''",
    "\"\"",
    "$1",
    "$0",
    "$99999",
    "::",
    "..",
    "U&'\\0000'",
    "E'\\x00'",
    "NULL",
    "((((((((",
    "é",
];

/// Words, numbers, quoted texts, and every other character on its own; blanks go.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |at| at + 2),
            c if c.is_alphanumeric() || c == '_' => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        let (word, tail) = rest.split_at(end);
        words.push(word);
        rest = tail.trim_start();
    }
    words
}

/// A statement with a few words changed; `other` is where words come from.
fn broken(statement: &str, other: &str, random: &mut StdRng) -> String {
    let mut words = words(statement);
    let others = crate::words(other);
    for _ in 0..random.random_range(1..=3) {
        let at = random.random_range(0..=words.len());
        let within = at.min(words.len().saturating_sub(1));
        match random.random_range(0..7) {
            0 if !words.is_empty() => drop(words.remove(within)),
            1 if !words.is_empty() => words.insert(at, words[within]),
            2 if words.len() > 1 => {
                let next = (within + 1) % words.len();
                words.swap(within, next);
            }
            3 if !words.is_empty() => words[within] = others.choose(random).unwrap_or(&","),
            4 => words.insert(at, others.choose(random).unwrap_or(&"(")),
            5 if others.len() > 2 => {
                let part = part(others.len(), random);
                words.splice(at..at, others[part].iter().copied());
            }
            _ => words.insert(at, ODD.choose(random).unwrap_or(&"?")),
        }
    }
    words.join(" ")
}

/// A few places in a row.
fn part(length: usize, random: &mut StdRng) -> Range<usize> {
    let start = random.random_range(0..length);
    start..(start + random.random_range(1..6)).min(length)
}

fn is_spared(text: &str) -> bool {
    let text = text.to_lowercase();
    SPARED.iter().any(|word| text.contains(word))
}

/// What is wrong with an answer, if something is.
fn fault(text: &str, error: &Error) -> Option<String> {
    let Some(told) = error.as_db_error() else {
        // The driver itself takes no more parameters and no zero bytes.
        return (error.is_closed()).then(|| "the connection is closed".to_owned());
    };
    let length = text.chars().count() as u32 + 1;
    match told.position() {
        _ if STATELESS.iter().any(|end| told.message().ends_with(end)) => None,
        // PostgreSQL's own words for a field of a row that nobody gave a type.
        _ if told.message().starts_with("failed to find conversion function from unknown to ") => None,
        _ if told.code().code() == "XX000" => Some(format!("an internal error: {}", told.message())),
        Some(ErrorPosition::Original(at)) if !(1..=length).contains(at) => {
            Some(format!("an error at {at} of {length}: {}", told.message()))
        }
        _ => None,
    }
}

/// Runs a text, or only prepares it.
async fn answer(client: &Client, text: &str, prepared: bool) -> Result<(), Error> {
    let answered = async {
        match prepared {
            true => client.prepare(text).await.map(|_| ()),
            false => client.simple_query(text).await.map(|_| ()),
        }
    };
    match tokio::time::timeout(PATIENCE, answered).await {
        Ok(answered) => answered,
        Err(_) => panic!("no answer within {PATIENCE:?}: {text}"),
    }
}

#[tokio::test]
async fn broken_statements_are_answered_and_nothing_breaks() {
    let seed = std::env::var("ARCHIPEL_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    let count = if archipel_tests::long() { STATEMENTS.1 } else { STATEMENTS.0 };
    let mut random = StdRng::seed_from_u64(seed);
    let mut suites: Vec<Vec<String>> = std::fs::read_dir(archipel_tests::file("slt"))
        .expect("the suites are there")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .map(|path| statements(&path))
        .collect();
    // The order of a directory is anything.
    suites.sort();
    let all: Vec<String> = suites.iter().flatten().cloned().collect();
    let mut server = Server::start(&[]);
    let (mut run, mut wrong) = (0, Vec::new());
    'all: loop {
        suites.shuffle(&mut random);
        for suite in &suites {
            let client = connect(&server.url()).await;
            // What a broken statement has left open or taken away must not spoil the others.
            client
                .batch_execute("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")
                .await
                .expect("an empty schema");
            for statement in suite.iter().filter(|statement| !is_spared(statement)) {
                let text = broken(statement, all.choose(&mut random).expect("there are some"), &mut random);
                let prepared = random.random_ratio(1, 4);
                let _ = client.simple_query(TIMEOUT).await;
                if !is_spared(&text) && !text.contains('\0') {
                    if let Err(error) = answer(&client, &text, prepared).await
                        && let Some(fault) = fault(&text, &error)
                    {
                        wrong.push(format!("{fault}\n  {text}"));
                    }
                    run += 1;
                }
                // As it was written, for the tables; in a block that has failed it fails.
                let _ = answer(&client, statement, false).await;
                if run == count {
                    break 'all;
                }
            }
            drop(client);
            assert!(server.alive(), "the server has ended:\n{}", server.log());
            assert!(wrong.len() < 20, "seed {seed}:\n{}", wrong.join("\n"));
        }
    }
    assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));
    let log = server.log();
    assert!(!log.contains("panicked"), "seed {seed}:\n{log}");
    let memory = server.memory_bytes();
    assert!(memory < MEMORY_BYTES_MAX, "{memory} bytes after {run} statements");
    let client = connect(&server.url()).await;
    client.simple_query("SELECT 1").await.expect("the server goes on");
}
