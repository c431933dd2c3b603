//! LISTEN and NOTIFY between sessions, as a driver sees them.

mod common;

use std::time::{Duration, Instant};

use common::{Raw, Server, state};
use futures::channel::mpsc::{self, UnboundedReceiver};
use futures::{StreamExt, stream};
use tokio_postgres::{AsyncMessage, Client, NoTls};

/// How long what must come may take, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client, and what it is told besides its answers.
async fn listener(server: &Server) -> (Client, UnboundedReceiver<AsyncMessage>) {
    let config = format!("host=127.0.0.1 port={} user=archipel dbname=archipel", server.port);
    let (client, mut connection) = tokio_postgres::connect(&config, NoTls).await.expect("it connects");
    let (sender, receiver) = mpsc::unbounded();
    tokio::spawn(async move {
        let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if sender.unbounded_send(message).is_err() {
                break;
            }
        }
    });
    (client, receiver)
}

/// The next notification as `channel:payload`.
async fn next(messages: &mut UnboundedReceiver<AsyncMessage>) -> String {
    loop {
        let message = tokio::time::timeout(PATIENCE, messages.next()).await.expect("it comes");
        if let AsyncMessage::Notification(told) = message.expect("the connection lasts") {
            return format!("{}:{}", told.channel(), told.payload());
        }
    }
}

async fn several(messages: &mut UnboundedReceiver<AsyncMessage>, count: usize) -> String {
    let mut told = Vec::new();
    for _ in 0..count {
        told.push(next(messages).await);
    }
    told.join(" ")
}

/// What came until now, when this session has been told that the others are done.
async fn until_now(client: &Client, messages: &mut UnboundedReceiver<AsyncMessage>) -> String {
    client.batch_execute("LISTEN over").await.expect("it listens");
    client.batch_execute("NOTIFY over; UNLISTEN over").await.expect("it says so");
    client.batch_execute("LISTEN over").await.expect("it listens");
    client.batch_execute("NOTIFY over").await.expect("it says so");
    let mut told = Vec::new();
    loop {
        match next(messages).await.as_str() {
            "over:" => return told.join(" "),
            other => told.push(other.to_owned()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_listener_is_told_at_once_and_one_in_a_transaction_at_its_end() {
    let server = Server::start(&[]);
    let (hearing, mut told) = listener(&server).await;
    let speaking = server.client().await;
    hearing.batch_execute("LISTEN a; LISTEN b").await.unwrap();
    speaking.batch_execute("NOTIFY a, 'one'").await.unwrap();
    assert_eq!(next(&mut told).await, "a:one");

    hearing.batch_execute("BEGIN").await.unwrap();
    speaking.batch_execute("NOTIFY b, 'two'; NOTIFY c, 'for nobody'").await.unwrap();
    hearing.batch_execute("SELECT 1").await.unwrap();
    hearing.batch_execute("SELECT pg_sleep(0.2)").await.unwrap();
    assert!(told.try_recv().is_err(), "it is inside a transaction");
    hearing.batch_execute("COMMIT").await.unwrap();
    assert_eq!(next(&mut told).await, "b:two");

    // In the transaction in which it stops to listen, others speak in vain.
    hearing.batch_execute("BEGIN; UNLISTEN a").await.unwrap();
    speaking.batch_execute("NOTIFY a, 'three'; NOTIFY b, 'four'").await.unwrap();
    hearing.batch_execute("COMMIT").await.unwrap();
    assert_eq!(until_now(&hearing, &mut told).await, "b:four");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_rolled_back_was_never_said() {
    let server = Server::start(&[]);
    let (hearing, mut told) = listener(&server).await;
    let speaking = server.client().await;
    hearing.batch_execute("LISTEN a").await.unwrap();
    speaking.batch_execute("BEGIN; NOTIFY a, '1'; ROLLBACK").await.unwrap();
    speaking
        .batch_execute(
            "BEGIN; NOTIFY a, '2'; SAVEPOINT s; NOTIFY a, '3'; NOTIFY a, '2'; ROLLBACK TO s;
             NOTIFY a, '4'; NOTIFY a, '2'; COMMIT",
        )
        .await
        .unwrap();
    // One text is one transaction.
    speaking.batch_execute("NOTIFY a, '5'; SELECT 1 / 0").await.unwrap_err();
    speaking.batch_execute("SELECT pg_notify('a', '6'); SELECT 1 / 0").await.unwrap_err();
    speaking.batch_execute("BEGIN; NOTIFY a, '7'; SELECT 1 / 0").await.unwrap_err();
    speaking.batch_execute("COMMIT").await.unwrap();
    assert_eq!(until_now(&hearing, &mut told).await, "a:2 a:4");
    // The same of LISTEN.
    hearing.batch_execute("BEGIN; LISTEN b; ROLLBACK").await.unwrap();
    hearing.batch_execute("BEGIN; UNLISTEN *; SAVEPOINT s; LISTEN c; ROLLBACK TO s; ROLLBACK").await.unwrap();
    hearing.batch_execute("LISTEN d; SELECT 1 / 0").await.unwrap_err();
    hearing.batch_execute("BEGIN; SAVEPOINT s; LISTEN e; RELEASE s; LISTEN e; COMMIT").await.unwrap();
    let rows = hearing.query("SELECT pg_listening_channels()", &[]).await.unwrap();
    let channels: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(channels, ["a", "over", "e"]);
    hearing.batch_execute("DISCARD ALL").await.unwrap();
    let rows = hearing.query("SELECT * FROM pg_listening_channels()", &[]).await.unwrap();
    assert!(rows.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routines_and_triggers_speak_with_their_commit_and_once() {
    let server = Server::start(&[]);
    let (hearing, mut told) = listener(&server).await;
    let speaking = server.client().await;
    hearing.batch_execute("LISTEN a").await.unwrap();
    speaking
        .batch_execute(
            "CREATE TABLE t (k int PRIMARY KEY, v int);
             CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN PERFORM pg_notify('a', TG_OP || ' ' || NEW.k); RETURN NEW; END $$;
             CREATE TRIGGER tell AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION tell();
             CREATE PROCEDURE say(n int) LANGUAGE plpgsql AS $$
             DECLARE other int;
             BEGIN
                NOTIFY a, 'begins';
                UPDATE t SET v = v + 1 WHERE k = n;
                SELECT v INTO other FROM t WHERE k = n + 1;
                UPDATE t SET v = v + 1 WHERE k = n + other;
                BEGIN
                    NOTIFY a, 'in vain';
                    PERFORM 1 / (n - n);
                EXCEPTION WHEN division_by_zero THEN
                    EXECUTE 'NOTIFY a, ''caught''';
                END;
             END $$;
             CREATE PROCEDURE steps() LANGUAGE plpgsql AS $$
             BEGIN
                FOR i IN 1..3 LOOP
                    PERFORM pg_notify('a', 'step ' || i);
                    IF i = 2 THEN ROLLBACK; ELSE COMMIT; END IF;
                END LOOP;
             END $$",
        )
        .await
        .unwrap();
    speaking.batch_execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)").await.unwrap();
    assert_eq!(several(&mut told, 3).await, "a:INSERT 1 a:INSERT 2 a:INSERT 3");
    // What it writes second hangs on what it reads.
    speaking.batch_execute("CALL say(1)").await.unwrap();
    assert_eq!(several(&mut told, 4).await, "a:begins a:UPDATE 1 a:UPDATE 3 a:caught");
    speaking.batch_execute("CALL steps()").await.unwrap();
    speaking.batch_execute("DO $$ BEGIN NOTIFY a, 'block'; LISTEN x; END $$").await.unwrap();
    speaking.batch_execute("BEGIN READ ONLY; SELECT pg_notify('a', 'read only'); COMMIT").await.unwrap();
    assert_eq!(several(&mut told, 4).await, "a:step 1 a:step 3 a:block a:read only");
    let statement = speaking.prepare("SELECT pg_notify($1, $2)").await.unwrap();
    let once = |payload: &'static str| {
        let (speaking, statement) = (&speaking, &statement);
        async move { speaking.execute(statement, &[&"a", &payload]).await.unwrap() }
    };
    // A pipeline.
    futures::join!(once("p1"), once("p2"), once("p1"));
    assert_eq!(several(&mut told, 3).await, "a:p1 a:p2 a:p1");
    speaking.batch_execute("INSERT INTO t VALUES (4, 4), (1, 1)").await.unwrap_err();
    assert_eq!(until_now(&hearing, &mut told).await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_order_is_that_of_the_commits() {
    let server = Server::start(&[]);
    let (hearing, mut told) = listener(&server).await;
    hearing.batch_execute("LISTEN a").await.unwrap();
    hearing
        .batch_execute(
            "CREATE TABLE counter (k int PRIMARY KEY, v int);
             INSERT INTO counter VALUES (1, 0);
             CREATE FUNCTION next() RETURNS int LANGUAGE plpgsql AS $$
             DECLARE n int;
             BEGIN
                UPDATE counter SET v = v + 1 WHERE k = 1 RETURNING v INTO n;
                PERFORM pg_notify('a', n::text);
                RETURN n;
             END $$",
        )
        .await
        .unwrap();
    let calls = (0..8).map(|number| {
        let server = &server;
        async move {
            let client = server.client().await;
            for _ in 0..100 {
                // Half of them in transactions of their own.
                let text = ["SELECT next()", "BEGIN; SELECT next(); COMMIT"][number % 2];
                client.batch_execute(text).await.unwrap();
            }
        }
    });
    futures::future::join_all(calls).await;
    for number in 1..=800 {
        assert_eq!(next(&mut told).await, format!("a:{number}"));
    }
}

/// Sends NOTIFY until the queue is full; answers how many there were.
fn fill(speaking: &mut Raw) -> usize {
    let begun = Instant::now();
    for count in 0.. {
        let payload = "x".repeat(7_900);
        let sent = speaking.query(&format!(
            "DO $$ BEGIN FOR i IN 1..100 LOOP PERFORM pg_notify('a', {count} || ' ' || i || '{payload}'); END LOOP; END $$"
        ));
        if let Some(state) = state(&sent) {
            assert_eq!(state, "54000");
            return count;
        }
        assert!(begun.elapsed() < 3 * PATIENCE, "the queue never fills");
    }
    unreachable!("numbers do not end")
}

#[test]
fn a_listener_that_does_not_read_makes_notify_fail_and_not_memory_grow() {
    let server = Server::start(&[]);
    let mut deaf = server.raw();
    deaf.query("LISTEN a");
    let mut speaking = server.raw();
    let sent = fill(&mut speaking);
    assert!(sent < 400, "{sent} portions of 800 kB were taken");
    // Others may speak again when it has gone.
    drop(deaf);
    let begun = Instant::now();
    while state(&speaking.query("NOTIFY a, 'again'")).is_some() {
        assert!(begun.elapsed() < PATIENCE, "the queue stays full");
        std::thread::sleep(Duration::from_millis(20));
    }
}
