//! Waiting for rows as applications meet it: a queue of jobs under SKIP LOCKED, and a deadlock
//! that is noticed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use archipel_tests::postgres::Postgres;
use archipel_tests::server::{Server, connect};
use rand::RngExt;
use tokio_postgres::{Client, SimpleQueryMessage};

const WORKERS: usize = 16;
const JOBS: usize = 600;

async fn one(client: &Client, sql: &str) -> Option<String> {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
}

/// Takes jobs until none is left, giving every fourth back by ROLLBACK; answers those it did.
async fn work(url: String, next: &str, done: &str, given_back: Arc<AtomicUsize>) -> Vec<usize> {
    let client = connect(&url).await;
    let mut mine = Vec::new();
    loop {
        client.batch_execute("BEGIN").await.expect("a block begins");
        let Some(job) = one(&client, next).await else {
            client.batch_execute("COMMIT").await.expect("an empty block ends");
            // Somebody may still give the last ones back.
            if one(&client, "SELECT count(*) FROM jobs WHERE NOT done").await.as_deref() == Some("0") {
                return mine;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
            continue;
        };
        client.batch_execute(&done.replace("{job}", &job)).await.expect("a locked job can be written");
        if rand::rng().random_bool(0.25) {
            client.batch_execute("ROLLBACK").await.expect("a job can be given back");
            given_back.fetch_add(1, Ordering::Relaxed);
        } else {
            client.batch_execute("COMMIT").await.expect("a job's end commits");
            mine.push(job.parse().expect("jobs are numbers"));
        }
    }
}

async fn queue(next: &'static str, done: &'static str) {
    let server = Server::start(&[]);
    connect(&server.url())
        .await
        .batch_execute(&format!(
            "CREATE TABLE jobs (id integer PRIMARY KEY, done boolean NOT NULL DEFAULT false);
             INSERT INTO jobs SELECT id FROM generate_series(1, {JOBS}) AS id"
        ))
        .await
        .expect("jobs can be queued");
    let given_back = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> =
        (0..WORKERS).map(|_| tokio::spawn(work(server.url(), next, done, given_back.clone()))).collect();
    let (mut count, mut jobs) = (0, BTreeSet::new());
    for worker in workers {
        let mine = worker.await.expect("no worker fails");
        count += mine.len();
        jobs.extend(mine);
    }
    assert_eq!(jobs.len(), JOBS, "every job is done");
    assert_eq!(count, JOBS, "no job is done twice");
    assert!(given_back.load(Ordering::Relaxed) > JOBS / 10, "jobs were given back in between");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_workers_lose_no_job_and_double_none() {
    queue(
        "SELECT id FROM jobs WHERE NOT done ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1",
        "UPDATE jobs SET done = true WHERE id = {job}",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_marked_in_one_statement_are_done_once() {
    queue(
        "UPDATE jobs SET done = true WHERE id = \
         (SELECT id FROM jobs WHERE NOT done ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id",
        "SELECT 1",
    )
    .await;
}

/// Two sessions, each with a row the other one wants; what the victim is told, and after how long.
async fn deadlock(url: &str) -> (String, Duration) {
    let (one, two) = (connect(url).await, connect(url).await);
    one.batch_execute(
        "DROP TABLE IF EXISTS account; CREATE TABLE account (id integer PRIMARY KEY, balance integer);
         INSERT INTO account VALUES (1, 10), (2, 20)",
    )
    .await
    .expect("accounts can be made");
    one.batch_execute("BEGIN; UPDATE account SET balance = 11 WHERE id = 1")
        .await
        .expect("nobody is in the way");
    two.batch_execute("BEGIN; UPDATE account SET balance = 22 WHERE id = 2")
        .await
        .expect("nobody is in the way");
    let begun = Instant::now();
    let (first, second) = tokio::join!(
        one.batch_execute("UPDATE account SET balance = 12 WHERE id = 2"),
        two.batch_execute("UPDATE account SET balance = 21 WHERE id = 1")
    );
    let waited = begun.elapsed();
    let victim = match (first, second) {
        (Err(error), Ok(())) | (Ok(()), Err(error)) => error,
        other => panic!("one of the two goes on: {other:?}"),
    };
    let error = victim.as_db_error().expect("the server says so");
    let numbers = |text: &str| -> String {
        let mut out = String::new();
        for character in text.chars() {
            match character {
                digit if digit.is_ascii_digit() => {
                    if !out.ends_with('N') {
                        out.push('N');
                    }
                }
                other => out.push(other),
            }
        }
        out
    };
    let told = format!(
        "{} {} {} / {} / {}",
        error.severity(),
        error.code().code(),
        error.message(),
        numbers(error.detail().unwrap_or_default()),
        error.hint().unwrap_or_default()
    );
    for client in [one, two] {
        client.batch_execute("ROLLBACK").await.expect("a block can be left");
    }
    (told, waited)
}

#[tokio::test]
async fn a_deadlock_is_noticed_after_its_timeout_in_postgresqls_words() {
    let (postgres, server) = (Postgres::start(), Server::start(&[]));
    let (expected, _) = deadlock(&postgres.url()).await;
    let (told, waited) = deadlock(&server.url()).await;
    assert_eq!(told, expected);
    assert!(
        waited > Duration::from_millis(900) && waited < Duration::from_secs(30),
        "deadlock_timeout is a second, and it took {waited:?}"
    );
}
