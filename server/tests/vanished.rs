//! A client that goes away while its statement runs.

mod common;

use std::time::{Duration, Instant};

use common::Server;

/// How long what must come may take, on however slow a machine; the statements take longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with one row, and a client of it.
async fn with_one_row() -> (Server, tokio_postgres::Client) {
    let server = Server::start(&[]);
    let client = server.client().await;
    client
        .batch_execute("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)")
        .await
        .unwrap();
    (server, client)
}

async fn sleepers(client: &tokio_postgres::Client) -> i64 {
    let count = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%gone%' AND pid <> pg_backend_pid()";
    client.query_one(count, &[]).await.expect("it answers").get(0)
}

async fn until(client: &tokio_postgres::Client, count: i64) {
    let begun = Instant::now();
    while sleepers(client).await != count {
        assert!(begun.elapsed() < PATIENCE, "not {count} sessions are left");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_ends_when_its_client_has_gone() {
    let (server, client) = with_one_row().await;
    let lasting = [
        "SELECT pg_sleep(1000) /* gone */",
        "DO $$ BEGIN LOOP NULL; END LOOP; END $$ /* gone */",
        "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b /* gone */",
        "BEGIN; UPDATE t SET v = 2; SELECT pg_sleep(1000) /* gone */",
    ];
    for text in lasting {
        let mut raw = server.raw();
        let mut body = text.as_bytes().to_vec();
        body.push(0);
        raw.send(b'Q', &body);
        // What it has sent behind that does not run any more.
        raw.send(b'Q', b"UPDATE t SET v = 3 /* gone */\0");
        until(&client, 1).await;
        drop(raw);
        until(&client, 0).await;
    }
    // Locks went with their transactions, and so did the changes.
    let value: i32 = client.query_one("UPDATE t SET k = k RETURNING v", &[]).await.unwrap().get(0);
    assert_eq!(value, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_lock_and_goes_waits_no_more() {
    let (server, client) = with_one_row().await;
    client.batch_execute("BEGIN; UPDATE t SET v = 2").await.unwrap();
    let watching = server.client().await;
    let mut raw = server.raw();
    raw.send(b'Q', b"UPDATE t SET v = 3 /* gone */\0");
    until(&watching, 1).await;
    drop(raw);
    until(&watching, 0).await;
    client.batch_execute("COMMIT").await.unwrap();
    let value: i32 = client.query_one("SELECT v FROM t", &[]).await.unwrap().get(0);
    assert_eq!(value, 2);
}
