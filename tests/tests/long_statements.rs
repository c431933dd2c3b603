//! Statements that take their time, more of them than there are executors: nobody else waits,
//! and each ends when it is told to.

use std::time::Duration;

use archipel_tests::server::{Server, one};
use futures::SinkExt;
use tokio_postgres::error::SqlState;

/// More than a test's machine gives executors.
const LONG: usize = 12;

/// How long the test waits for what must not take long, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs `sql` on many connections at once, looks after the others, and cancels them all.
async fn nobody_waits_for(before: &str, sql: &'static str) {
    let server = Server::start(&[]);
    let other = server.connect().await;
    other
        .batch_execute(
            "CREATE TABLE counter (id int PRIMARY KEY, value int); INSERT INTO counter VALUES (1, 0)",
        )
        .await
        .expect("a table can be made");
    let mut running = Vec::new();
    for _ in 0..LONG {
        let client = server.connect().await;
        client.batch_execute(before).await.expect("it begins");
        running.push(tokio::spawn(async move { client.simple_query(sql).await.map(|_| ()) }));
    }
    let served = async {
        while one(&other, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active'").await
            != (LONG + 1).to_string()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Beyond their time as one-shots.
        tokio::time::sleep(Duration::from_millis(300)).await;
        for _ in 0..20 {
            let client = server.connect().await;
            client
                .batch_execute("UPDATE counter SET value = value + 1 WHERE id = 1")
                .await
                .expect("it is served");
        }
        assert_eq!(one(&other, "SELECT value FROM counter").await, "20");
        let cancelled = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity \
                         WHERE state = 'active' AND pid <> pg_backend_pid()";
        assert_eq!(one(&other, cancelled).await, LONG.to_string());
        for task in running {
            let error = task.await.expect("the task ends").expect_err("it was cancelled");
            assert_eq!(error.code().map(|code| code.code()), Some("57014"), "{error:?}");
        }
    };
    tokio::time::timeout(PATIENCE, served).await.expect("others are served while these run");
}

#[tokio::test]
async fn nobody_waits_for_loops_without_end() {
    nobody_waits_for("", "DO $$ BEGIN LOOP END LOOP; END $$").await;
}

#[tokio::test]
async fn nobody_waits_for_loops_in_blocks() {
    nobody_waits_for("BEGIN", "DO $$ DECLARE n bigint := 0; BEGIN LOOP n := n + 1; END LOOP; END $$").await;
}

#[tokio::test]
async fn nobody_waits_for_recursion_without_end() {
    nobody_waits_for(
        "",
        "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT 1 FROM t) SELECT count(*) FROM t",
    )
    .await;
}

#[tokio::test]
async fn nobody_waits_for_sleepers() {
    nobody_waits_for("", "SELECT pg_sleep(3600)").await;
}

#[tokio::test]
async fn nobody_waits_for_sleepers_over_a_table() {
    nobody_waits_for("", "SELECT pg_sleep(3600), count(*) FROM counter").await;
}

#[tokio::test]
async fn nobody_waits_for_sleepers_over_a_row_in_blocks() {
    nobody_waits_for("BEGIN", "SELECT pg_sleep(3600), value FROM counter WHERE id = 1").await;
}

/// Rows that are loaded and columns that are computed hold partitions: they are not to be slept with.
#[tokio::test]
async fn what_holds_partitions_does_not_sleep() {
    let server = Server::start(&[]);
    let client = server.connect().await;
    client
        .batch_execute("CREATE TABLE slow (id int, v text DEFAULT pg_sleep(3600)::text); CREATE TABLE t AS SELECT 1 AS id")
        .await
        .expect("tables can be made");
    for statement in [
        "ALTER TABLE t ADD COLUMN v text DEFAULT pg_sleep(3600)::text",
        "ALTER TABLE t ADD CHECK (pg_sleep(3600) IS NOT NULL)",
    ] {
        let error = client.batch_execute(statement).await.expect_err("it would sleep");
        assert_eq!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED), "{statement}: {error:?}");
    }
    let sink = client.copy_in::<_, bytes::Bytes>("COPY slow (id) FROM STDIN").await.expect("it takes rows");
    let mut sink = std::pin::pin!(sink);
    sink.send(bytes::Bytes::from_static(b"1\n")).await.expect("a row can be sent");
    let error = sink.finish().await.expect_err("it would sleep");
    assert_eq!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED), "{error:?}");
}

/// What a statement wrote before it turned out to be long is written once.
#[tokio::test]
async fn a_long_statement_of_a_block_writes_once() {
    let server = Server::start(&[]);
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE written (id int PRIMARY KEY, value int);
             BEGIN;
             INSERT INTO written VALUES (0, 0);
             DO $$ BEGIN
                 UPDATE written SET value = value + 1;
                 FOR i IN 1..20000 LOOP INSERT INTO written VALUES (i, 1); END LOOP;
                 PERFORM pg_sleep(0.1);
                 UPDATE written SET value = value + 1;
             END $$;
             INSERT INTO written VALUES (-1, 2);
             COMMIT",
        )
        .await
        .expect("the block commits");
    assert_eq!(one(&client, "SELECT count(*) || ' ' || sum(value) FROM written").await, "20002 40004");
}

/// Values that grow without end: each routine ends with an error, leaves nothing behind, and takes
/// nobody along.
#[tokio::test]
async fn values_that_grow_without_end_stop_at_a_limit() {
    let server = Server::start(&["archipel.statement_memory=64MB"]);
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE kept (id int PRIMARY KEY, value text);
             CREATE FUNCTION many() RETURNS SETOF text LANGUAGE plpgsql AS $$
             BEGIN LOOP RETURN NEXT repeat('x', 1000); END LOOP; END $$;
             CREATE FUNCTION deep(a text[]) RETURNS int LANGUAGE plpgsql AS $$
             BEGIN RETURN deep(a || repeat('x', 100000)); END $$;
             CREATE FUNCTION caught() RETURNS text LANGUAGE plpgsql AS $$
             BEGIN
               INSERT INTO kept VALUES (1, 'gone');
               PERFORM deep('{}');
             EXCEPTION WHEN out_of_memory THEN RETURN SQLERRM;
             END $$;
             CREATE FUNCTION loads(n int) RETURNS bigint LANGUAGE plpgsql AS $$
             BEGIN
               INSERT INTO kept SELECT g, repeat('y', 1000) FROM generate_series(1, n) g;
               UPDATE kept SET value = value || 'z';
               FOR i IN n + 1 .. 2 * n LOOP INSERT INTO kept VALUES (i, repeat('y', 1000)); END LOOP;
               RETURN count(*) FROM kept;
             END $$",
        )
        .await
        .expect("deployed");
    for runaway in [
        "DO $$ DECLARE a int[] := '{}'; BEGIN LOOP a := a || a || 1; END LOOP; END $$",
        "DO $$ DECLARE a text[]; BEGIN LOOP a := array_append(a, repeat('x', 100000)); END LOOP; END $$",
        "DO $$ DECLARE a text[]; i int := 0; BEGIN LOOP i := i + 1; a[i] := repeat('x', 100000); END LOOP; END $$",
        "DO $$ DECLARE j jsonb := '[1]'; BEGIN LOOP j := j || j; END LOOP; END $$",
        "DO $$ DECLARE t text := 'x'; u text[]; BEGIN LOOP t := t || t; u := u || t; END LOOP; END $$",
        "DO $$ DECLARE a text[]; BEGIN
           LOOP SELECT a || array_agg(repeat('x', 1000)) INTO a FROM generate_series(1, 10000); END LOOP; END $$",
        "SELECT count(*) FROM many()",
        "SELECT deep('{}')",
    ] {
        let error = client.simple_query(runaway).await.expect_err(runaway);
        let error = error.as_db_error().unwrap_or_else(|| panic!("{runaway}: {error}"));
        assert_eq!((error.code(), error.message()), (&SqlState::OUT_OF_MEMORY, "out of memory"), "{runaway}");
        assert!(error.where_().is_some_and(|context| context.contains("PL/pgSQL function")), "{error:?}");
    }
    assert_eq!(one(&client, "SELECT caught()").await, "out of memory");
    assert_eq!(one(&client, "SELECT count(*) FROM kept").await, "0");
    // What is written is no value of the routine: its limit is max_memory.
    assert_eq!(one(&client, "SELECT loads(60000)").await, "120000");
    client.batch_execute("BEGIN").await.expect("it begins");
    client.batch_execute("DELETE FROM kept").await.expect("they go");
    assert_eq!(one(&client, "SELECT loads(60000)").await, "120000");
    client.batch_execute("ROLLBACK").await.expect("it ends");
}
