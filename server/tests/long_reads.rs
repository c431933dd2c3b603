//! Statements that read for longer than a one-shot may: others read and write the same rows meanwhile,
//! and what the statement answers is as of one moment.

mod common;

use std::future::Future;
use std::time::Duration;

use common::Server;
use tokio_postgres::{Client, SimpleQueryMessage};

/// How long a test waits for what must not take long, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);

async fn patiently<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} took too long"))
}

async fn one(client: &Client, sql: &str) -> String {
    let asked = client.simple_query(sql);
    let messages = patiently(sql, asked).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let value = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("null").to_owned()),
        _ => None,
    });
    value.unwrap_or_default()
}

/// A table of 5,000 rows; `waits()` reads all of them and then sleeps for an hour, `twice()` reads them
/// before and after it has got an advisory lock.
async fn opened() -> (Server, Client) {
    let server = Server::start(&[]);
    let client = server.client().await;
    client
        .batch_execute(
            "CREATE TABLE t (id int PRIMARY KEY, v int); \
             CREATE TABLE other (id int PRIMARY KEY, v int); \
             INSERT INTO t SELECT g, 1 FROM generate_series(1, 5000) g; \
             INSERT INTO other VALUES (1, 1); \
             CREATE FUNCTION total() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ \
             DECLARE r record; n bigint := 0; \
             BEGIN FOR r IN SELECT v FROM t LOOP n := n + r.v; END LOOP; RETURN n; END $$; \
             CREATE FUNCTION waits() RETURNS bigint LANGUAGE plpgsql AS $$ \
             BEGIN PERFORM total(); PERFORM pg_sleep(3600); RETURN total(); END $$; \
             CREATE FUNCTION twice() RETURNS text LANGUAGE plpgsql AS $$ \
             DECLARE before bigint := total(); \
             BEGIN \
             WHILE NOT pg_try_advisory_lock(1) LOOP PERFORM pg_sleep(0.01); END LOOP; \
             RETURN before || ' ' || total(); END $$",
        )
        .await
        .expect("tables and functions can be made");
    (server, client)
}

/// Waits until a statement of another session reads as of a snapshot.
async fn until_it_reads(client: &Client) {
    let read = async {
        while one(client, "SELECT count(*) FROM archipel.snapshots").await == "0" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    patiently("the snapshot", read).await;
}

/// While `sql` reads, and then sleeps, others read and write what it has read.
async fn nobody_waits_for(before: &str, sql: &'static str) {
    let (server, client) = opened().await;
    let long = server.client().await;
    long.batch_execute(before).await.expect("it begins");
    let running = tokio::spawn(async move { long.simple_query(sql).await.map(drop) });
    until_it_reads(&client).await;
    for id in 1..=20 {
        one(&client, &format!("UPDATE t SET v = v + 1 WHERE id = {id}")).await;
        assert_eq!(one(&client, &format!("SELECT v FROM t WHERE id = {id}")).await, "2");
    }
    one(&client, "DELETE FROM t WHERE id > 4000").await;
    assert_eq!(one(&client, "SELECT count(*) FROM t WHERE id BETWEEN 1 AND 4500").await, "4000");
    let cancel = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity \
                  WHERE state = 'active' AND pid <> pg_backend_pid()";
    assert_eq!(one(&client, cancel).await, "1", "it still runs");
    let ended = patiently("the cancelled statement", running).await.expect("the task ends");
    let error = ended.expect_err("it was cancelled");
    assert_eq!(error.code().map(|code| code.code()), Some("57014"), "{error:?}");
}

#[tokio::test]
async fn nobody_waits_for_a_function_that_reads() {
    nobody_waits_for("", "SELECT waits()").await;
}

#[tokio::test]
async fn nobody_waits_for_a_block_of_code_that_reads() {
    nobody_waits_for("", "DO $$ BEGIN PERFORM waits(); END $$").await;
}

#[tokio::test]
async fn nobody_waits_for_a_reader_in_a_transaction() {
    nobody_waits_for("BEGIN", "SELECT waits()").await;
}

#[tokio::test]
async fn nobody_waits_for_a_reader_at_a_snapshot() {
    nobody_waits_for("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT waits()").await;
}

#[tokio::test]
async fn nobody_waits_for_a_reader_that_has_written_elsewhere() {
    nobody_waits_for("BEGIN; UPDATE other SET v = 2", "SELECT waits()").await;
}

#[tokio::test]
async fn a_long_reader_sees_one_moment() {
    let (server, client) = opened().await;
    one(&client, "SELECT pg_advisory_lock(1)").await;
    let long = server.client().await;
    let running = tokio::spawn(async move { one(&long, "SELECT twice()").await });
    until_it_reads(&client).await;
    one(&client, "UPDATE t SET v = 2 WHERE id <= 1000").await;
    one(&client, "DELETE FROM t WHERE id > 4990").await;
    one(&client, "INSERT INTO t SELECT g, 5 FROM generate_series(6001, 6100) g").await;
    assert_eq!(one(&client, "SELECT total()").await, "6490");
    one(&client, "SELECT pg_advisory_unlock(1)").await;
    assert_eq!(patiently("the reader", running).await.expect("it ends"), "5000 5000");
}

/// What a transaction has written itself is there to read, whatever others have committed since.
#[tokio::test]
async fn a_long_reader_sees_what_its_transaction_has_written() {
    let (server, client) = opened().await;
    one(&client, "SELECT pg_advisory_lock(1)").await;
    let long = server.client().await;
    long.batch_execute("BEGIN; UPDATE t SET v = 11 WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (7000, 100)")
        .await
        .expect("it writes");
    let running = tokio::spawn(async move { one(&long, "SELECT twice()").await });
    until_it_reads(&client).await;
    one(&client, "UPDATE t SET v = 2 WHERE id BETWEEN 1001 AND 2000").await;
    one(&client, "SELECT pg_advisory_unlock(1)").await;
    assert_eq!(patiently("the reader", running).await.expect("it ends"), "5109 5109");
}

/// What writes in the end has read under claims by then, and what it read still holds.
#[tokio::test]
async fn a_long_reader_that_writes_in_the_end_does_so_once() {
    let (_server, client) = opened().await;
    let body = "DO $$ DECLARE n bigint := 0; \
                BEGIN \
                WHILE clock_timestamp() < statement_timestamp() + interval '100 milliseconds' LOOP \
                n := total(); END LOOP; \
                UPDATE other SET v = v + 1; \
                END $$";
    for _ in 0..3 {
        patiently("the block", client.batch_execute(body)).await.expect("it runs");
    }
    assert_eq!(one(&client, "SELECT v FROM other").await, "4");
}
