//! Routines are replaced under full load: nobody gets an error, and no call runs half of one version
//! and half of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use archipel_tests::server::{Server, ask, connect};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio_postgres::Client;

/// How long to wait for what must come, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);
const CALLERS: i32 = 6;
const CALLS_MIN: usize = 600;
const VERSIONS_MIN: usize = 40;

/// What a call writes: a row here for each look at which version it is.
const TABLES: &str = "CREATE TABLE first (id integer PRIMARY KEY, made integer NOT NULL);
     CREATE TABLE second (id integer PRIMARY KEY, made integer NOT NULL);
     CREATE TABLE looks (id integer, look integer, made integer NOT NULL, PRIMARY KEY (id, look))";

/// A version of the routines: they call each other, so that all of one number belong together. Each
/// looks at its number before and after it has written and called.
fn version(number: usize) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION number() RETURNS integer LANGUAGE sql AS 'SELECT {number}';
         CREATE OR REPLACE PROCEDURE note(called integer, INOUT seen integer) LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO looks VALUES (called, 2, {number});
             IF seen <> {number} THEN
                 RAISE EXCEPTION 'the caller is of version %, this is of {number}', seen;
             END IF;
             seen := number();
         END $$;
         CREATE OR REPLACE PROCEDURE mark(called integer) LANGUAGE plpgsql AS $$
         DECLARE
             seen integer := {number};
         BEGIN
             INSERT INTO first (id, made) VALUES (called, {number});
             INSERT INTO looks VALUES (called, 1, number());
             CALL note(called, seen);
             INSERT INTO looks SELECT called, 3, seen;
             FOR look IN 4 .. 6 LOOP
                 INSERT INTO looks VALUES (called, look, number());
             END LOOP;
             INSERT INTO second (id, made) VALUES (called, {number});
         END $$;
         CREATE OR REPLACE FUNCTION marked(called integer) RETURNS integer LANGUAGE plpgsql AS $$
         BEGIN
             CALL mark(called);
             RETURN {number} - number();
         END $$"
    )
}

/// Calls until it is stopped, in one form or another; answers how often.
async fn call(url: String, seed: u64, from: i32, stop: Arc<AtomicBool>) -> usize {
    let client = connect(&url).await;
    let procedure = client.prepare("CALL mark($1)").await.expect("it is there");
    let function = client.prepare("SELECT marked($1)").await.expect("it is there");
    let mut random = StdRng::seed_from_u64(seed);
    let mut calls = 0;
    while !stop.load(Ordering::Relaxed) {
        let called = from + calls;
        let form = random.random_range(0..4);
        let done = match form {
            0 => client.execute(&procedure, &[&called]).await.map(drop),
            1 => client.simple_query(&format!("CALL mark({called})")).await.map(drop),
            2 => client.query_one(&function, &[&called]).await.map(|row| {
                assert_eq!(row.get::<_, i32>(0), 0, "call {called} mixes versions");
            }),
            _ => {
                client
                    .batch_execute(&format!(
                        "BEGIN; CALL mark({called}); SELECT marked(-{called} - 1); COMMIT"
                    ))
                    .await
            }
        };
        if let Err(error) = done {
            panic!("seed {seed}, call {calls} in form {form}: {error:?}");
        }
        calls += 1;
    }
    calls as usize
}

async fn number(client: &Client, query: &str) -> usize {
    ask(client, query).await[0][0].parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_mixes_versions_of_a_routine() {
    let server = Server::start(&[]);
    let url = server.url();
    let client = connect(&url).await;
    ask(&client, TABLES).await;
    ask(&client, &version(0)).await;
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| tokio::spawn(call(url.clone(), caller as u64, caller * 10_000_000, stop.clone())))
        .collect();
    let begin = Instant::now();
    let mut versions = 0;
    // A slow machine takes longer.
    while !callers.iter().any(tokio::task::JoinHandle::is_finished)
        && begin.elapsed() < PATIENCE
        && (begin.elapsed() < Duration::from_secs(3)
            || versions <= VERSIONS_MIN
            || number(&client, "SELECT count(*) FROM first").await < CALLS_MIN)
    {
        versions += 1;
        // Together with what they call; every other time a table that they use changes as well.
        let alter = match versions % 4 {
            0 => "ALTER TABLE first ADD COLUMN more integer DEFAULT 7;",
            2 if versions > 2 => "ALTER TABLE first DROP COLUMN more;",
            _ => "",
        };
        client
            .batch_execute(&format!("BEGIN; {alter} {}; COMMIT", version(versions)))
            .await
            .unwrap_or_else(|error| panic!("version {versions}: {error:?}"));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut calls = 0;
    for caller in callers {
        calls += caller.await.expect("no call failed");
    }
    let rows = number(&client, "SELECT count(*) FROM first").await;
    assert_eq!(number(&client, "SELECT count(*) FROM second").await, rows);
    assert_eq!(number(&client, "SELECT count(*) FROM looks").await, 6 * rows);
    let mixed = "SELECT count(*) FROM first JOIN second USING (id) JOIN looks USING (id)
                 WHERE first.made <> second.made OR first.made <> looks.made";
    assert_eq!(number(&client, mixed).await, 0);
    let seen = number(&client, "SELECT count(DISTINCT made) FROM first").await;
    assert!(
        calls >= CALLS_MIN && versions >= VERSIONS_MIN && seen > versions / 4,
        "{calls} calls saw {seen} of {versions} versions"
    );
}
