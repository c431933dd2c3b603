//! Histories over the wire: 32 clients append to lists, set registers and read both, by single
//! statements, routines and transaction blocks, while connections are cut; a checker nobody here
//! wrote says whether one order of all transactions explains every answer.
//!
//! - one-shots and SERIALIZABLE blocks: strictly serializable, so each transaction is one
//!   moment between its first message and its last answer;
//! - REPEATABLE READ blocks: snapshot isolation, so each is two moments: one during its first
//!   statement at which all it read held, and one during COMMIT at which what it writes had not
//!   changed since.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use archipel_tests::history::{Did, History, Operation};
use archipel_tests::server::Server;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

const CLIENTS: usize = 32;
/// Lists are keys below this, registers the same number above.
const LISTS: usize = 6;
const REGISTERS: usize = 4;

const SCHEMA: &str = "
CREATE TABLE items (id integer PRIMARY KEY, value text NOT NULL);
INSERT INTO items SELECT id, '' FROM generate_series(0, 9) AS id;
CREATE FUNCTION append(list integer, item text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE before text;
BEGIN
    SELECT value INTO before FROM items WHERE id = list;
    UPDATE items SET value = CASE value WHEN '' THEN item ELSE value || ',' || item END WHERE id = list;
    RETURN before;
END $$;
CREATE FUNCTION look_and_append(looked integer, list integer, item text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE seen text;
BEGIN
    SELECT value INTO seen FROM items WHERE id = looked;
    RETURN seen || ';' || append(list, item);
END $$;
CREATE FUNCTION put(one integer, item text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE before text;
BEGIN
    SELECT value INTO before FROM items WHERE id = one;
    UPDATE items SET value = item WHERE id = one;
    RETURN before;
END $$;
CREATE FUNCTION exchange(one integer, other integer, item text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE first text; second text;
BEGIN
    SELECT value INTO first FROM items WHERE id = one;
    UPDATE items SET value = item WHERE id = one;
    SELECT value INTO second FROM items WHERE id = other;
    UPDATE items SET value = first WHERE id = other;
    RETURN first || ';' || second;
END $$;
";

/// Whether, and how, blocks are part of a history.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blocks {
    Serializable,
    RepeatableRead,
}

/// How a transaction ended that did not commit.
enum Ended {
    /// It certainly left nothing.
    Undone,
    /// The connection went while nobody could tell.
    Unknown,
}

struct Worker {
    number: usize,
    url: String,
    client: Client,
    random: StdRng,
    /// Connections are cut.
    cut: bool,
    history: Arc<History>,
    items: Arc<AtomicU64>,
    retried: Arc<AtomicUsize>,
}

async fn connect(url: &str) -> Client {
    loop {
        if let Ok((client, connection)) = tokio_postgres::connect(url, NoTls).await {
            tokio::spawn(connection);
            return client;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn cells(client: &Client, sql: &str) -> Result<Vec<String>, Error> {
    let messages = client.simple_query(sql).await?;
    Ok(messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
            _ => None,
        })
        .collect())
}

/// What an error says about a transaction whose last message was `last`.
fn ended(error: &Error, last: bool) -> Ended {
    match error.code() {
        // The server told that it was undone.
        Some(state) if *state != SqlState::ADMIN_SHUTDOWN => Ended::Undone,
        _ if last => Ended::Unknown,
        _ => Ended::Undone,
    }
}

impl Worker {
    fn list(&mut self) -> usize {
        self.random.random_range(0..LISTS)
    }

    fn item(&self) -> String {
        self.items.fetch_add(1, Ordering::Relaxed).to_string()
    }

    fn note(&self, call: u64, did: Vec<Did>) {
        self.history.add(Operation { client: self.number, call, returned: Some(self.history.now()), did });
    }

    /// A transaction failed: what it may have written is kept if nobody can tell.
    async fn failed(&mut self, error: &Error, last: bool, call: u64, wrote: Vec<Did>) {
        if let Some(state) = error.code() {
            let expected = [
                &SqlState::T_R_SERIALIZATION_FAILURE,
                &SqlState::T_R_DEADLOCK_DETECTED,
                &SqlState::ADMIN_SHUTDOWN,
                &SqlState::IN_FAILED_SQL_TRANSACTION,
            ];
            assert!(expected.contains(&state), "{error:?}");
            self.retried.fetch_add(1, Ordering::Relaxed);
        }
        if matches!(ended(error, last), Ended::Unknown) && !wrote.is_empty() {
            self.history.add(Operation { client: self.number, call, returned: None, did: wrote });
        }
        if error.is_closed() || self.client.is_closed() || self.client.simple_query("ROLLBACK").await.is_err()
        {
            self.client = connect(&self.url).await;
        }
    }

    /// One statement on its own.
    async fn one_shot(&mut self) {
        let (list, looked, item) = (self.list(), self.list(), self.item());
        let registers = LISTS..LISTS + REGISTERS;
        let (one, other) = (self.random.random_range(registers.clone()), self.random.random_range(registers));
        // What an exchange made of a key is known only from its answer.
        let kind = self.random.random_range(0..if self.cut { 4 } else { 5 });
        let (sql, wrote) = match kind {
            0 => (format!("SELECT value FROM items WHERE id = {looked}"), Vec::new()),
            1 => (format!("SELECT value FROM items WHERE id IN ({list}, {one}) ORDER BY id"), Vec::new()),
            2 => (format!("SELECT put({one}, '{item}')"), vec![Did::Wrote(one, item.clone())]),
            3 => (
                format!("SELECT look_and_append({looked}, {list}, '{item}')"),
                vec![Did::Appended(list, item.clone())],
            ),
            _ if one == other => return,
            _ => (format!("SELECT exchange({one}, {other}, '{item}')"), Vec::new()),
        };
        let call = self.history.now();
        let seen = match cells(&self.client, &sql).await {
            Ok(seen) => seen,
            Err(error) => return self.failed(&error, true, call, wrote).await,
        };
        let mut did = match kind {
            0 => vec![Did::Read(looked, seen[0].clone())],
            1 => vec![Did::Read(list, seen[0].clone()), Did::Read(one, seen[1].clone())],
            2 => vec![Did::Read(one, seen[0].clone())],
            3 => {
                let (other, before) = seen[0].split_once(';').expect("two values are answered");
                vec![Did::Read(looked, other.to_owned()), Did::Read(list, before.to_owned())]
            }
            _ => {
                let (first, second) = seen[0].split_once(';').expect("two values are answered");
                vec![
                    Did::Read(one, first.to_owned()),
                    Did::Read(other, second.to_owned()),
                    Did::Wrote(other, first.to_owned()),
                    Did::Wrote(one, item),
                ]
            }
        };
        did.extend(wrote);
        self.note(call, did);
    }

    /// A block: reads, appends to what it read, reads more, commits.
    async fn block(&mut self, level: &str, halves: bool) {
        let (list, looked, later, item) = (self.list(), self.list(), self.list(), self.item());
        let append = format!("SELECT append({list}, '{item}')");
        let wrote = vec![Did::Appended(list, item)];
        let call = self.history.now();
        let begin = format!("BEGIN ISOLATION LEVEL {level}");
        if let Err(error) = self.client.simple_query(&begin).await {
            return self.failed(&error, false, call, Vec::new()).await;
        }
        let first = self.history.now();
        let read = format!("SELECT value FROM items WHERE id IN ({list}, {looked}) ORDER BY id");
        let seen = match cells(&self.client, &read).await {
            Ok(seen) => seen,
            Err(error) => return self.failed(&error, false, call, Vec::new()).await,
        };
        let first_answered = self.history.now();
        let mut keys = vec![list, looked];
        keys.sort_unstable();
        keys.dedup();
        let mut reads: Vec<Did> =
            keys.iter().zip(&seen).map(|(key, value)| Did::Read(*key, value.clone())).collect();
        let before = seen[keys.iter().position(|key| *key == list).expect("it was read")].clone();
        if later != list {
            match cells(&self.client, &format!("SELECT value FROM items WHERE id = {later}")).await {
                Ok(seen) => reads.push(Did::Read(later, seen[0].clone())),
                Err(error) => return self.failed(&error, false, call, Vec::new()).await,
            }
        }
        if let Err(error) = self.client.simple_query(&append).await {
            return self.failed(&error, false, call, Vec::new()).await;
        }
        let commit = self.history.now();
        if let Err(error) = self.client.simple_query("COMMIT").await {
            return self.failed(&error, true, commit, wrote).await;
        }
        if halves {
            self.history.add(Operation {
                client: self.number,
                call: first,
                returned: Some(first_answered),
                did: reads,
            });
            self.note(commit, [vec![Did::Read(list, before)], wrote].concat());
        } else {
            self.note(call, [reads, wrote].concat());
        }
    }
}

/// Ends sessions that are inside a block, or at its end, one after the other.
async fn cut_connections(url: String) {
    let client = connect(&url).await;
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE state = 'idle in transaction' OR query = 'COMMIT' ORDER BY random() LIMIT 1";
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        client.simple_query(sql).await.expect("sessions can be ended");
    }
}

async fn history(blocks: Blocks, each: usize, cut: bool) {
    let server = Server::start(&[]);
    connect(&server.url()).await.batch_execute(SCHEMA).await.expect("the schema can be made");
    let seed = rand::rng().random::<u64>();
    let history = Arc::new(History::default());
    let (items, retried) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicUsize::new(0)));
    let mut workers = Vec::new();
    for number in 0..CLIENTS {
        let mut worker = Worker {
            number,
            url: server.url(),
            client: connect(&server.url()).await,
            cut,
            random: StdRng::seed_from_u64(seed ^ number as u64),
            history: history.clone(),
            items: items.clone(),
            retried: retried.clone(),
        };
        workers.push(tokio::spawn(async move {
            for _ in 0..each {
                match blocks {
                    _ if worker.random.random_bool(0.6) => worker.one_shot().await,
                    Blocks::Serializable => worker.block("SERIALIZABLE", false).await,
                    Blocks::RepeatableRead => worker.block("REPEATABLE READ", true).await,
                }
            }
        }));
    }
    let url = server.url();
    let cutter = cut.then(|| tokio::spawn(cut_connections(url)));
    for worker in workers {
        worker.await.expect("no client fails unexpectedly");
    }
    if let Some(cutter) = cutter {
        cutter.abort();
    }
    let client = connect(&server.url()).await;
    let call = history.now();
    let last = cells(&client, "SELECT value FROM items ORDER BY id").await.expect("items can be read");
    history.resolve(&last);
    let did = last.into_iter().enumerate().map(|(key, value)| Did::Read(key, value)).collect();
    history.add(Operation { client: CLIENTS, call, returned: Some(history.now()), did });
    let said = history.check().unwrap_or_else(|said| panic!("seed {seed}: {said}"));
    println!("{}; {} transactions were undone", said.trim(), retried.load(Ordering::Relaxed));
    assert!(history.len() > CLIENTS * each / 4, "most transactions should commit: {}", history.len());
}

fn each() -> usize {
    if archipel_tests::long() { 150 } else { 40 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_shots_and_serializable_blocks_are_strictly_serializable() {
    history(Blocks::Serializable, each(), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_leave_whole_transactions_or_nothing() {
    history(Blocks::Serializable, each(), true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeatable_read_blocks_are_snapshot_isolated() {
    history(Blocks::RepeatableRead, each(), false).await;
}

#[test]
fn the_checker_refuses_what_no_order_explains() {
    let operation = |client, call, returned, did| Operation { client, call, returned: Some(returned), did };
    let appended = |item: &str| vec![Did::Appended(0, item.to_owned())];
    let read = |value: &str| vec![Did::Read(0, value.to_owned())];
    let history = History::default();
    history.add(operation(0, 1, 5, appended("1")));
    history.add(operation(1, 2, 6, appended("2")));
    history.add(operation(2, 3, 9, read("2")));
    assert!(history.check().is_ok(), "whoever is concurrent may come in any order");
    history.add(operation(0, 10, 11, read("2,1")));
    assert!(history.check().is_ok());
    history.add(operation(1, 12, 13, read("2")));
    assert!(history.check().is_err(), "an append that was seen is lost");
}
