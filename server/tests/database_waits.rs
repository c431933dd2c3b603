//! Waits for databases: who copies one, who drops one that others are busy in, who drops a role meanwhile; and
//! that what comes and goes leaves nothing behind.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::Server;
use common::clients::{answer, client, run, told, until};
use futures::SinkExt;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

/// Rows of a template that takes a while to be copied.
const MANY_ROWS: u32 = 1_500_000;

/// A statement on its way, and when it ended.
async fn begun(server: &Server, database: &str, text: &'static str) -> JoinHandle<(String, Instant)> {
    let client = client(server, database).await;
    tokio::spawn(async move {
        let answered = answer(&client, text).await;
        (answered, Instant::now())
    })
}

/// A server with a database `big` that nobody is in.
async fn with_big_template() -> (Server, Client) {
    let server = Server::start(&[]);
    let first = client(&server, "archipel").await;
    run(&first, &["CREATE DATABASE big"]).await;
    let inside = client(&server, "big").await;
    run(&inside, &["CREATE TABLE t (a int PRIMARY KEY, b text)"]).await;
    let filled = format!("INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, {MANY_ROWS}) i");
    run(&inside, &[&filled]).await;
    (server, first)
}

const ACTIVE: &str = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE ";

#[tokio::test]
async fn roles_come_while_one_that_goes_waits_for_a_template() {
    let (server, first) = with_big_template().await;
    run(&first, &["CREATE ROLE leaving"]).await;
    let copying = begun(&server, "archipel", "CREATE DATABASE copy TEMPLATE big").await;
    until(&first, &format!("{ACTIVE}'CREATE DATABASE copy%'"), "1").await;
    let dropping = begun(&server, "archipel", "DROP ROLE leaving").await;
    until(&first, &format!("{ACTIVE}'DROP ROLE%'"), "1").await;
    run(&first, &["CREATE ROLE coming", "GRANT CREATE ON DATABASE archipel TO coming"]).await;
    let come = Instant::now();
    let (copied, copied_at) = copying.await.expect("it answers");
    assert_eq!(copied, "");
    assert!(come < copied_at, "a role had to wait for a template: {:?}", come - copied_at);
    assert_eq!(dropping.await.expect("it answers").0, "");
    let roles = "SELECT count(*) FROM pg_roles WHERE rolname IN ('leaving', 'coming')";
    assert_eq!(answer(&first, roles).await, "1");
    let rows = answer(&client(&server, "copy").await, "SELECT count(*) FROM t").await;
    assert_eq!(rows, MANY_ROWS.to_string());
}

#[tokio::test]
async fn waits_for_a_template_end_when_they_are_told_to() {
    let (server, first) = with_big_template().await;
    run(&first, &["CREATE ROLE one", "CREATE ROLE other", "CREATE ROLE third"]).await;
    let copying = begun(&server, "archipel", "CREATE DATABASE copy TEMPLATE big").await;
    until(&first, &format!("{ACTIVE}'CREATE DATABASE copy%'"), "1").await;
    let told_to = client(&server, "archipel").await;
    run(&told_to, &["SET lock_timeout = '20ms'"]).await;
    assert_eq!(answer(&told_to, "DROP ROLE one").await, "55P03 canceling statement due to lock timeout");
    // The door is shut, too.
    assert_eq!(answer(&told_to, "DROP DATABASE big").await, "55P03 canceling statement due to lock timeout");
    run(&told_to, &["RESET lock_timeout", "SET statement_timeout = '20ms'"]).await;
    assert_eq!(
        answer(&told_to, "DROP ROLE other").await,
        "57014 canceling statement due to statement timeout"
    );
    run(&told_to, &["RESET statement_timeout"]).await;
    let token = told_to.cancel_token();
    let waiting = tokio::spawn(async move { answer(&told_to, "DROP ROLE third").await });
    until(&first, &format!("{ACTIVE}'DROP ROLE third%'"), "1").await;
    token.cancel_query(NoTls).await.expect("it can be asked");
    assert_eq!(waiting.await.expect("it answers"), "57014 canceling statement due to user request");
    assert!(!copying.is_finished(), "the template was copied before anybody had to wait for it");
    // And so does the copying itself: nothing of it stays.
    let cancelled =
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'CREATE DATABASE copy%'";
    assert_eq!(answer(&first, cancelled).await, "1");
    assert_eq!(copying.await.expect("it answers").0, "57014 canceling statement due to user request");
    run(&first, &["DROP ROLE one, other, third", "DROP DATABASE big"]).await;
    let left = "SELECT count(*) FROM pg_database WHERE datname IN ('big', 'copy')";
    assert_eq!(answer(&first, left).await, "0");
}

#[tokio::test]
async fn force_ends_long_statements_copies_and_definitions() {
    let (server, first) = with_big_template().await;
    let busy = [
        "SELECT count(*) FROM t a JOIN t b ON a.b > b.b",
        "DO $$ BEGIN LOOP PERFORM 1; END LOOP; END $$",
        "ALTER TABLE t ALTER a TYPE numeric USING a + (random() * 0)::int",
        "SELECT pg_advisory_lock(1), pg_sleep(1000)",
    ];
    let loading = client(&server, "big").await;
    // Before the others: one definition of a database waits for another.
    run(&loading, &["CREATE TABLE loaded (a int)"]).await;
    let mut tasks = Vec::new();
    for text in busy {
        tasks.push(begun(&server, "big", text).await);
    }
    let mut sink = Box::pin(loading.copy_in("COPY loaded FROM STDIN").await.expect("it takes rows"));
    sink.send(bytes::Bytes::from_static(b"1\n2\n")).await.expect("it reads");
    let counted = "SELECT count(*) > 3 FROM pg_stat_activity WHERE datname = 'big' AND state = 'active'";
    until(&first, counted, "t").await;
    let asked = Instant::now();
    run(&first, &["DROP DATABASE big WITH (FORCE)"]).await;
    assert!(asked.elapsed() < Duration::from_secs(20), "it took {:?}", asked.elapsed());
    for (task, text) in tasks.into_iter().zip(busy) {
        let (told, _) = task.await.expect("it answers");
        let is_ended = told.starts_with("57P01") || told.starts_with("no answer");
        assert!(is_ended, "{text}: {told}");
    }
    assert!(sink.close().await.is_err(), "rows went into a database that is gone");
    run(&first, &["CREATE DATABASE big"]).await;
    assert!(answer(&client(&server, "big").await, "SELECT * FROM t").await.starts_with("42P01"));
}

#[tokio::test]
async fn nobody_comes_into_a_database_that_a_block_gives_another_name() {
    let server = Server::start(&[]);
    let first = client(&server, "archipel").await;
    run(&first, &["CREATE DATABASE d", "CREATE DATABASE other"]).await;
    for (end, by_old_name) in [("ROLLBACK", true), ("COMMIT", false)] {
        run(&first, &["BEGIN", "ALTER DATABASE d RENAME TO renamed"]).await;
        let config = format!("host=127.0.0.1 port={} user=archipel dbname=d", server.port);
        let coming = tokio::spawn(async move { tokio_postgres::connect(&config, NoTls).await.map(drop) });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!coming.is_finished(), "somebody came in before {end}");
        run(&first, &[end]).await;
        let come = coming.await.expect("it answers");
        match by_old_name {
            true => come.expect("it has its name still"),
            false => {
                let error = come.expect_err("it has another name");
                assert_eq!(told(&error), "3D000 database \"d\" does not exist");
            }
        }
        until(&first, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'd'", "0").await;
    }
    assert_eq!(answer(&client(&server, "renamed").await, "SELECT current_database()").await, "renamed");
    // Two blocks that wait for each other's databases.
    let second = client(&server, "archipel").await;
    for client in [&first, &second] {
        run(client, &["SET deadlock_timeout = '100ms'", "BEGIN"]).await;
    }
    until(&first, "SELECT count(*) FROM pg_stat_activity WHERE datname IN ('renamed', 'other')", "0").await;
    run(&first, &["ALTER DATABASE renamed RENAME TO one"]).await;
    run(&second, &["ALTER DATABASE other RENAME TO two"]).await;
    let crossing = tokio::spawn(async move {
        let told = answer(&second, "ALTER DATABASE renamed RENAME TO three").await;
        run(&second, &["ROLLBACK"]).await;
        told
    });
    let told =
        [answer(&first, "ALTER DATABASE other RENAME TO four").await, crossing.await.expect("it answers")];
    assert!(told.iter().any(|told| told.starts_with("40P01")), "{told:?}");
}

#[tokio::test]
async fn temporary_tables_go_although_their_client_has() {
    let (server, first) = with_big_template().await;
    let vanishing = client(&server, "big").await;
    run(&vanishing, &["CREATE TEMPORARY TABLE tmp (a int)"]).await;
    // The latch of its database is held meanwhile.
    let defining = begun(&server, "big", "ALTER TABLE t ADD COLUMN c text DEFAULT gen_random_uuid()").await;
    until(&first, &format!("{ACTIVE}'ALTER TABLE t%'"), "1").await;
    drop(vanishing);
    assert_eq!(defining.await.expect("it answers").0, "");
    let inside = client(&server, "big").await;
    until(&inside, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pg_temp_%'", "0").await;
}

/// The memory of a process that is resident, in kB.
fn resident_kb(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// What the files below a directory take, in bytes.
fn bytes_below(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(known) if known.is_dir() => bytes_below(&entry.path()),
        Ok(known) => known.len(),
        // It has gone meanwhile.
        Err(_) => 0,
    });
    bytes.sum()
}

/// Makes databases of a template with rows, all of them at once, and drops them again; the server's memory
/// after that, in kB.
async fn make_and_drop(first: &Client, server: &Server, count: u32) -> u64 {
    for at in 0..count {
        run(first, &[&format!("CREATE DATABASE d{at} TEMPLATE shop")]).await;
    }
    for at in 0..count {
        run(first, &[&format!("DROP DATABASE d{at}")]).await;
    }
    // What the log keeps in memory until it is written is not what is asked about.
    run(first, &["CHECKPOINT"]).await;
    resident_kb(server.process_id())
}

#[tokio::test]
async fn databases_come_and_go_and_leave_memory_and_log_as_they_were() {
    /// At once; so many times as they are made again while it is measured, the log would grow to a hundred and
    /// fifty megabytes if nothing were cut from it.
    const MANY: u32 = 100;
    /// Memory is compared by the least of so many rounds with the least of so many others: what allocators
    /// keep for the next rises and falls by tens of megabytes from one round to another.
    const ROUNDS: u32 = 5;
    /// What one may leave behind: a hundredth of what it takes.
    const LEFT_MAX_KB: u64 = 60;
    let server = Server::start(&[]);
    let first = client(&server, "archipel").await;
    run(&first, &["CREATE DATABASE shop"]).await;
    let inside = client(&server, "shop").await;
    for at in 0..5 {
        let (table, rows) = (
            format!("CREATE TABLE t{at} (a int PRIMARY KEY, b text UNIQUE, c serial)"),
            format!("INSERT INTO t{at} SELECT i, repeat('x', 100) || i FROM generate_series(1, 100) i"),
        );
        run(&inside, &[&table, &rows]).await;
    }
    run(&inside, &["CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1 + 1; END'"])
        .await;
    drop(inside);
    until(&first, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'shop'", "0").await;
    // What is allocated once, or kept for the next, is there then.
    for _ in 0..3 {
        make_and_drop(&first, &server, MANY).await;
    }
    let data = server.directory.path().join("data");
    let bytes = bytes_below(&data);
    let facts =
        "SELECT (SELECT count(*) FROM pg_database) || ' ' || (SELECT count(*) FROM archipel.partitions)";
    let before = answer(&first, facts).await;
    let mut memory_kb = Vec::new();
    for _ in 0..2 * ROUNDS {
        memory_kb.push(make_and_drop(&first, &server, MANY).await);
    }
    assert_eq!(answer(&first, facts).await, before);
    let (earlier, later) = memory_kb.split_at(ROUNDS as usize);
    let least = |rounds: &[u64]| rounds.iter().copied().min().expect("there are rounds");
    let grown_kb = least(later).saturating_sub(least(earlier));
    assert!(grown_kb < u64::from(ROUNDS * MANY) * LEFT_MAX_KB, "memory grew: {memory_kb:?} kB");
    let grown_bytes = bytes_below(&data).saturating_sub(bytes);
    assert!(grown_bytes < 64 << 20, "the data directory grew by {grown_bytes} bytes");
}
