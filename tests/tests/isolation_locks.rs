//! LOCK TABLE, advisory locks and what shows them, on PostgreSQL 15 and on Archipel: every mode
//! against every mode and statement, alone and in a block, must answer the same.

use std::time::{Duration, Instant};

use archipel_tests::postgres::Postgres;
use archipel_tests::server::{Server, connect};
use tokio_postgres::{Client, SimpleQueryMessage};

/// How long to wait for what must come, on however slow a machine.
const HANGS: Duration = Duration::from_secs(120);

const MODES: [&str; 8] = [
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
];

const STATEMENTS: [&str; 8] = [
    "SELECT count(*) FROM t",
    "SELECT b FROM t WHERE a = 1",
    "SELECT b FROM t WHERE a = 1 FOR UPDATE",
    "SELECT b FROM t WHERE a = 1 FOR KEY SHARE",
    "INSERT INTO t VALUES (3, 30)",
    "UPDATE t SET b = b + 1 WHERE a = 1",
    "DELETE FROM t WHERE a = 2",
    "SELECT change(1)",
];

const SCHEMA: &str = "
DROP TABLE IF EXISTS t, u CASCADE;
CREATE TABLE t (a integer PRIMARY KEY, b integer);
CREATE TABLE u (a integer PRIMARY KEY);
INSERT INTO t VALUES (1, 10), (2, 20);
CREATE OR REPLACE FUNCTION change(id integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE t SET b = b + 1 WHERE a = id;
    RETURN 1;
END $$;
CREATE OR REPLACE FUNCTION add_locked(id integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(77);
    UPDATE t SET b = b + 1 WHERE a = id;
    RETURN 1;
END $$;
";

/// Rows by semicolons, columns by commas, errors by state and message.
async fn answer(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Err(error) => match error.as_db_error() {
            Some(error) => format!("{} {}", error.code().code(), error.message()),
            None => format!("{error}"),
        },
        Ok(messages) => {
            let rows = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => {
                    let cells = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL"));
                    Some(cells.collect::<Vec<_>>().join(","))
                }
                _ => None,
            });
            rows.collect::<Vec<_>>().join(";")
        }
    }
}

async fn modes_and_statements(url: &str) -> Vec<String> {
    let (holder, other) = (connect(url).await, connect(url).await);
    holder.batch_execute(SCHEMA).await.expect("the schema can be made");
    other.batch_execute("SET lock_timeout = '40ms'").await.expect("a setting");
    let mut answers = Vec::new();
    for held in MODES {
        holder
            .batch_execute(&format!("BEGIN; LOCK TABLE t IN {held} MODE"))
            .await
            .expect("nobody is in the way");
        for wanted in MODES {
            let sql = format!("BEGIN; LOCK TABLE u, t IN {wanted} MODE NOWAIT");
            answers.push(format!("{held}, {wanted}: {}", answer(&other, &sql).await));
            answer(&other, "ROLLBACK").await;
        }
        for statement in STATEMENTS {
            answers.push(format!("{held}, {statement}: {}", answer(&other, statement).await));
            answer(&other, "BEGIN").await;
            answers.push(format!("{held}, in a block {statement}: {}", answer(&other, statement).await));
            answer(&other, "ROLLBACK").await;
        }
        holder.batch_execute("ROLLBACK").await.expect("a block can be left");
        answers.push(answer(&other, "UPDATE t SET b = 10 * a").await);
        answer(&other, "INSERT INTO t VALUES (2, 20) ON CONFLICT DO NOTHING; DELETE FROM t WHERE a = 3")
            .await;
    }
    // And the other way: what a block has done is in the way of LOCK TABLE.
    for statement in STATEMENTS {
        holder.batch_execute("BEGIN").await.expect("a block begins");
        answers.push(answer(&holder, statement).await);
        for wanted in MODES {
            let sql = format!("BEGIN; LOCK TABLE t IN {wanted} MODE NOWAIT");
            answers.push(format!("after {statement}, {wanted}: {}", answer(&other, &sql).await));
            answer(&other, "ROLLBACK").await;
        }
        holder.batch_execute("ROLLBACK").await.expect("a block can be left");
    }
    for sql in ["LOCK TABLE t", "LOCK TABLE nothing", "BEGIN; LOCK nothing", "ROLLBACK"] {
        answers.push(format!("{sql}: {}", answer(&other, sql).await));
    }
    answers
}

fn compare(ours: Vec<String>, expected: Vec<String>) {
    let different: Vec<String> = ours
        .iter()
        .zip(&expected)
        .filter(|(ours, expected)| ours != expected)
        .map(|(ours, expected)| format!("Archipel:   {ours}\nPostgreSQL: {expected}"))
        .collect();
    assert_eq!(ours.len(), expected.len());
    assert!(different.is_empty(), "{} of {} differ\n{}", different.len(), ours.len(), different.join("\n"));
}

#[tokio::test]
async fn table_locks_stand_in_the_way_of_what_they_do_on_postgresql() {
    let (postgres, server) = (Postgres::start(), Server::start(&[]));
    let (expected, ours) = (postgres.url(), server.url());
    let (expected, ours) = tokio::join!(modes_and_statements(&expected), modes_and_statements(&ours));
    compare(ours, expected);
}

/// Two sessions, turn by turn: `1` and `2` say whose turn it is.
const ADVISORY: &[(usize, &str)] = &[
    (1, "SELECT pg_advisory_lock(1)"),
    (1, "SELECT pg_advisory_lock(1)"),
    (2, "SELECT pg_try_advisory_lock(1), pg_try_advisory_lock_shared(1)"),
    (2, "SELECT pg_advisory_lock(1)"),
    (1, "SELECT pg_advisory_unlock(1)"),
    (2, "SELECT pg_try_advisory_lock(1)"),
    (1, "SELECT pg_advisory_unlock(1), pg_advisory_unlock(1)"),
    (2, "SELECT pg_try_advisory_lock(1)"),
    (1, "SELECT pg_try_advisory_lock(1, 2), pg_try_advisory_lock(4294967298)"),
    (2, "SELECT pg_try_advisory_lock(1, 2), pg_try_advisory_lock(4294967298)"),
    (1, "SELECT pg_advisory_lock_shared(5), pg_advisory_lock_shared(6, 7)"),
    (2, "SELECT pg_try_advisory_lock_shared(5), pg_try_advisory_lock(5), pg_try_advisory_lock_shared(6, 7)"),
    (
        1,
        "SELECT locktype, classid, objid, objsubid, mode, granted FROM pg_locks WHERE locktype = 'advisory' \
         ORDER BY classid, objid, objsubid, mode, pid = pg_backend_pid()",
    ),
    (1, "SELECT pg_advisory_unlock(5), pg_advisory_unlock_shared(5), pg_advisory_unlock_shared(6, 7)"),
    (1, "SELECT pg_advisory_unlock_all()"),
    (2, "SELECT pg_advisory_unlock_all()"),
    (1, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"),
    // Of a transaction: gone with it. Of a session: not.
    (1, "BEGIN"),
    (1, "SELECT pg_advisory_xact_lock(8), pg_advisory_lock(9), pg_try_advisory_xact_lock_shared(10)"),
    (2, "SELECT pg_try_advisory_xact_lock(8), pg_try_advisory_lock(9), pg_try_advisory_xact_lock(10)"),
    (1, "SELECT pg_advisory_unlock(8)"),
    (1, "ROLLBACK"),
    (2, "SELECT pg_try_advisory_xact_lock(8), pg_try_advisory_lock(9), pg_try_advisory_xact_lock(10)"),
    (2, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"),
    // A statement that fails keeps what it took for the session.
    (1, "SELECT pg_advisory_lock(11) IS NULL, 1 / (a - a) FROM t WHERE a = 1"),
    (2, "SELECT pg_try_advisory_lock(11)"),
    (1, "SELECT pg_advisory_unlock_all()"),
    (2, "SELECT pg_try_advisory_lock(11), pg_advisory_unlock(11)"),
    // A routine that finds its lock taken waits, and goes on when it is free.
    (1, "SELECT pg_advisory_lock(77)"),
    (2, "SELECT add_locked(1)"),
    (2, "SELECT b FROM t WHERE a = 1"),
    (1, "SELECT pg_advisory_unlock(77)"),
    (2, "SELECT add_locked(1)"),
    (2, "SELECT b FROM t WHERE a = 1"),
    (1, "SELECT pg_try_advisory_lock(77)"),
    (1, "SELECT pg_advisory_lock(NULL::bigint), pg_try_advisory_lock(NULL, 1)"),
];

async fn advisory(url: &str) -> Vec<String> {
    let sessions = [connect(url).await, connect(url).await];
    sessions[0].batch_execute(SCHEMA).await.expect("the schema can be made");
    let mut answers = Vec::new();
    for session in &sessions {
        session.batch_execute("SET lock_timeout = '40ms'").await.expect("a setting");
    }
    for (number, sql) in ADVISORY {
        answers.push(format!("{number} {sql}: {}", answer(&sessions[number - 1], sql).await));
    }
    // Whoever leaves gives everything back.
    let [first, second] = sessions;
    answer(&first, "SELECT pg_advisory_lock(12)").await;
    drop(first);
    answer(&second, "SET lock_timeout = '60s'").await;
    answers.push(answer(&second, "SELECT pg_advisory_lock(12)").await);
    answers
}

#[tokio::test]
async fn advisory_locks_answer_as_postgresqls() {
    let (postgres, server) = (Postgres::start(), Server::start(&[]));
    let (expected, ours) = (postgres.url(), server.url());
    let (expected, ours) = tokio::join!(advisory(&expected), advisory(&ours));
    compare(ours, expected);
}

/// One session waits for each kind of thing; what a third one sees of it, and how it is ended.
async fn waits(url: &str) -> Vec<String> {
    let watch = connect(url).await;
    watch.batch_execute(SCHEMA).await.expect("the schema can be made");
    let mut answers = Vec::new();
    for (held, wanted, ended) in [
        ("UPDATE t SET b = 11 WHERE a = 1", "UPDATE t SET b = 12 WHERE a = 1", "pg_cancel_backend"),
        ("UPDATE t SET b = 11 WHERE a = 1", "UPDATE t SET b = 12 WHERE a = 1", "pg_terminate_backend"),
        ("LOCK TABLE t", "SELECT b FROM t WHERE a = 1", "pg_cancel_backend"),
        ("SELECT b FROM t WHERE a = 1", "BEGIN; LOCK TABLE t", "pg_cancel_backend"),
        ("SELECT pg_advisory_xact_lock(1, 2)", "SELECT pg_advisory_lock(1, 2)", "pg_terminate_backend"),
        (
            "SELECT pg_advisory_xact_lock(3)",
            "SELECT add_locked(1) FROM pg_advisory_lock(3)",
            "pg_cancel_backend",
        ),
    ] {
        let (holder, waiter) = (connect(url).await, connect(url).await);
        holder.batch_execute("BEGIN").await.expect("a block begins");
        answer(&holder, held).await;
        let holder_pid = answer(&holder, "SELECT pg_backend_pid()").await;
        let pid = answer(&waiter, "SELECT pg_backend_pid()").await;
        let running = tokio::spawn(async move { answer(&waiter, wanted).await });
        let begun = Instant::now();
        // A session of PostgreSQL that has answered takes a moment to say that it waits for its client.
        let is_waiting = format!(
            "SELECT count(*) = 2 FROM pg_stat_activity WHERE (pid = {pid} AND state = 'active' AND wait_event_type = 'Lock') OR (pid = {holder_pid} AND wait_event = 'ClientRead')"
        );
        while answer(&watch, &is_waiting).await != "t" {
            assert!(begun.elapsed() < HANGS, "`{wanted}` does not wait");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for sql in [
            "SELECT wait_event, state, query, backend_type, xact_start IS NOT NULL FROM pg_stat_activity WHERE pid = {pid}",
            "SELECT wait_event_type, wait_event, state, backend_xid IS NOT NULL AND {written} FROM pg_stat_activity WHERE pid = {holder}",
            "SELECT pg_blocking_pids({pid}) = ARRAY[{holder}], pg_blocking_pids({holder}) = '{}'::integer[]",
            "SELECT pg_isolation_test_session_is_blocked({pid}, '{{holder}}')",
            "SELECT locktype, mode, relation::regclass, classid, objid, objsubid, waitstart IS NOT NULL FROM pg_locks WHERE pid = {pid} AND NOT granted",
            // What writes a table has read it, here; there it only writes. And there a table
            // locked for oneself alone makes a transaction a writer.
            "SELECT locktype, mode, relation::regclass, classid, objid, objsubid FROM pg_locks WHERE pid = {holder} AND locktype IN ('relation', 'advisory', 'transactionid') AND granted AND relation::regclass::text IS DISTINCT FROM 't_pkey' AND (locktype <> 'transactionid' OR {written}) AND (mode <> 'AccessShareLock' OR NOT {written}) ORDER BY 1, 2",
        ] {
            let written = if held.starts_with("UPDATE") { "true" } else { "false" };
            let asked =
                sql.replace("{pid}", &pid).replace("{holder}", &holder_pid).replace("{written}", written);
            answers.push(format!("{held}, {wanted}: {sql}: {}", answer(&watch, &asked).await));
        }
        answers.push(answer(&watch, &format!("SELECT {ended}({pid})")).await);
        let told = tokio::time::timeout(HANGS, running).await.expect("who is ended ends");
        answers.push(format!("{ended}: {}", told.expect("no session panics")));
        holder.batch_execute("ROLLBACK").await.expect("a block can be left");
    }
    answers.push(answer(&watch, "SELECT pg_cancel_backend(-1), pg_terminate_backend(-1)").await);
    answers
}

#[tokio::test]
async fn waits_are_shown_and_ended_as_on_postgresql() {
    let (postgres, server) = (Postgres::start(), Server::start(&[]));
    let (expected, ours) = (postgres.url(), server.url());
    let (expected, ours) = tokio::join!(waits(&expected), waits(&ours));
    compare(ours, expected);
}

/// Timeouts of a session: what it is told, and that its locks go.
async fn timeouts(url: &str) -> Vec<String> {
    let watch = connect(url).await;
    watch.batch_execute(SCHEMA).await.expect("the schema can be made");
    let mut answers = Vec::new();
    for (setting, before) in [
        ("idle_in_transaction_session_timeout", "BEGIN; LOCK TABLE t; SELECT 1"),
        ("idle_session_timeout", "SELECT pg_advisory_lock(1)"),
    ] {
        let idle = connect(url).await;
        let begun = Instant::now();
        answer(&idle, &format!("SET {setting} = '100ms'; {before}")).await;
        while !idle.is_closed() {
            assert!(begun.elapsed() < HANGS, "{setting} ends no session");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(begun.elapsed() > Duration::from_millis(90), "{setting} ends a session at once");
        answers.push(answer(&watch, "SET lock_timeout = '60s'; SELECT b FROM t WHERE a = 1").await);
        answers.push(answer(&watch, "SELECT pg_try_advisory_lock(1), pg_advisory_unlock_all()").await);
    }
    let (holder, waiter) = (connect(url).await, connect(url).await);
    holder.batch_execute("BEGIN; LOCK TABLE t; UPDATE t SET b = 1").await.expect("nobody is in the way");
    for setting in ["lock_timeout", "statement_timeout"] {
        // What waits for nobody is done by then, on a busy machine, too.
        answer(&waiter, &format!("SET {setting} = '300ms'")).await;
        for sql in [
            "SELECT b FROM t WHERE a = 1",
            "UPDATE t SET b = 2 WHERE a = 1",
            "SELECT change(1)",
            "BEGIN; UPDATE t SET b = 2 WHERE a = 1",
            "ROLLBACK; BEGIN; LOCK TABLE t",
            "ROLLBACK",
        ] {
            answers.push(format!("{setting} {sql}: {}", answer(&waiter, sql).await));
        }
        answer(&waiter, &format!("RESET {setting}")).await;
    }
    answers
}

#[tokio::test]
async fn timeouts_end_waits_and_sessions_as_on_postgresql() {
    let (postgres, server) = (Postgres::start(), Server::start(&[]));
    let (expected, ours) = (postgres.url(), server.url());
    let (expected, ours) = tokio::join!(timeouts(&expected), timeouts(&ours));
    compare(ours, expected);
}
