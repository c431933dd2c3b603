//! Every file of `tests/slt` against PostgreSQL 15 and against Archipel: the first run proves
//! that a file's expectations are PostgreSQL's, the second that we meet them.
//!
//! `tests/run --record` writes the expectations anew from PostgreSQL; `ARCHIPEL_SLT=integers` runs one
//! file alone. `tests/slt/topics` says how many statements each file holds, and how many that differ in
//! more than literals.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use archipel_tests::language::shape;
use archipel_tests::postgres::Postgres;
use archipel_tests::server::{Server, connect};
use archipel_tests::slt::{Engine, record_file, run_file, statements};

fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(archipel_tests::file("slt"))
        .expect("the suites are there")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no suite found");
    files
}

/// How many distinct statements the suites promise, whatever else changes.
const STATEMENTS_MIN: usize = 5_000;

/// The report by topic; that all statements agree is the other test's.
#[test]
fn there_are_five_thousand_distinct_statements() {
    let (mut told, mut all, mut run) = (String::new(), BTreeSet::new(), 0);
    for path in files() {
        let statements = statements(&path);
        let shapes: BTreeSet<String> = statements.iter().map(|sql| shape(sql)).collect();
        let topic = path.file_stem().unwrap_or_default().to_string_lossy();
        let _ = writeln!(told, "{topic}: {} statements, {} distinct", statements.len(), shapes.len());
        run += statements.len();
        all.extend(shapes);
    }
    let _ = writeln!(told, "all topics: {run} statements, {} distinct", all.len());
    let report = archipel_tests::file("slt/topics");
    if recording() {
        std::fs::write(&report, &told).expect("the report can be written");
    }
    let said = std::fs::read_to_string(report).unwrap_or_default();
    assert_eq!(said, told, "tests/slt/topics says otherwise; ARCHIPEL_TEST_RECORD=1 writes it");
    assert!(all.len() >= STATEMENTS_MIN, "{told}");
}

/// Whether expectations are written instead of compared.
fn recording() -> bool {
    std::env::var_os("ARCHIPEL_TEST_RECORD").is_some_and(|value| value == "1")
}

/// Each file starts in an empty `public` schema.
async fn clean(url: &str, script: &str) {
    let client = connect(url).await;
    client.batch_execute(script).await.expect("the schema can be emptied");
}

#[tokio::test]
async fn suites_agree_with_postgresql_and_archipel() {
    let postgres = Postgres::start();
    let recording = recording();
    let only = std::env::var_os("ARCHIPEL_SLT");
    let chosen = |path: &PathBuf| only.as_deref().is_none_or(|only| path.file_stem() == Some(only));
    let files: Vec<PathBuf> = files().into_iter().filter(chosen).collect();
    assert!(!files.is_empty(), "no suite is called {only:?}");
    let mut failures = Vec::new();
    for path in files {
        clean(&postgres.url(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public").await;
        let outcome = if recording {
            record_file(&postgres.url(), &path).await
        } else {
            run_file(Engine::PostgreSql, &postgres.url(), &path).await
        };
        if let Err(error) = outcome {
            failures.push(format!("PostgreSQL differs from {}:\n{error}", path.display()));
        }
        if recording {
            continue;
        }
        let server = Server::start(&[]);
        if let Err(error) = run_file(Engine::Archipel, &server.url(), &path).await {
            failures.push(format!("Archipel differs from {}:\n{error}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
