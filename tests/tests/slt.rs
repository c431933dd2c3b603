//! Every file of `tests/slt` against PostgreSQL 15 and against Archipel: the first run proves
//! that a file's expectations are PostgreSQL's, the second that we meet them.
//!
//! `tests/run --record` writes the expectations anew from PostgreSQL.

use std::path::PathBuf;

use archipel_tests::postgres::Postgres;
use archipel_tests::server::{Server, connect};
use archipel_tests::slt::{Engine, record_file, run_file};

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

/// Each file starts in an empty `public` schema.
async fn clean(url: &str, script: &str) {
    let client = connect(url).await;
    client.batch_execute(script).await.expect("the schema can be emptied");
}

#[tokio::test]
async fn suites_agree_with_postgresql_and_archipel() {
    let postgres = Postgres::start();
    let recording = std::env::var_os("ARCHIPEL_TEST_RECORD").is_some_and(|value| value == "1");
    let mut failures = Vec::new();
    for path in files() {
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
