//! kill -9 in the middle of TPC-C, bank transfers and DDL, start again, and look for every
//! acknowledged order, transfer and table, and all twelve consistency conditions; on the real
//! store, on one that discards what was not synced, because a killed process leaves its page
//! cache behind and so proves no sync, and on a disk that loses power with the process: what no
//! sync made safe is lost or torn, and in some rounds the disk is full at that moment.
//! Checkpoints run all the time: their length of log is set small.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use archipel_tests::power::Lost;
use archipel_tests::server::{Server, connect, spawn_workload, workload};
use futures::SinkExt;
use rand::RngExt;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

fn rounds(disk: Disk) -> usize {
    match disk {
        _ if archipel_tests::long() => 100,
        Disk::Lasting => 5,
        // The last one with a full disk.
        Disk::LosingPower => 3,
    }
}

/// How many rounds may be added until everything has happened that a round may bring.
const ROUNDS_MORE_MAX: usize = 12;
/// How long a round may take to get under way.
const PATIENCE: Duration = Duration::from_secs(300);

const ACCOUNTS: i32 = 20;
const BALANCE: i64 = 1_000;

const BANK: &str = "
CREATE TABLE account (id int PRIMARY KEY, balance int8 NOT NULL);
CREATE TABLE entry (id int PRIMARY KEY, source int NOT NULL, target int NOT NULL, amount int NOT NULL);
CREATE PROCEDURE transfer(entry int, source int, target int, amount int) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE account SET balance = balance - amount WHERE id = source;
  INSERT INTO entry VALUES (entry, source, target, amount);
  UPDATE account SET balance = balance + amount WHERE id = target;
END $$;";

/// What the server has acknowledged beside TPC-C.
#[derive(Default)]
struct Acknowledged {
    entries: BTreeSet<i32>,
    tables: BTreeSet<i32>,
    dropped: BTreeSet<i32>,
    next: i32,
}

/// Transfers, by procedure and by transaction, until the server is gone.
async fn transfer(client: Client, acknowledged: Arc<Mutex<Acknowledged>>) {
    loop {
        let entry = {
            let mut acknowledged = acknowledged.lock().expect("no test thread panicked");
            acknowledged.next += 1;
            acknowledged.next
        };
        let (source, target, amount) = (entry % ACCOUNTS, (entry * 7 + 1) % ACCOUNTS, 1 + entry % 5);
        let done = if entry % 2 == 0 {
            client.batch_execute(&format!("CALL transfer({entry}, {source}, {target}, {amount})")).await
        } else {
            // In the order of ids, so that most transactions wait for each other in no circle.
            let mut changes = [(source, -amount), (target, amount)];
            changes.sort_unstable();
            let [(first, less), (second, more)] = changes;
            client
                .batch_execute(&format!(
                    "BEGIN; INSERT INTO entry VALUES ({entry}, {source}, {target}, {amount});
                     UPDATE account SET balance = balance + {less} WHERE id = {first};
                     UPDATE account SET balance = balance + {more} WHERE id = {second}; COMMIT"
                ))
                .await
        };
        match done {
            Ok(()) => {
                acknowledged.lock().expect("no test thread panicked").entries.insert(entry);
            }
            Err(error) if error.as_db_error().is_none() => return,
            Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {
                // If it fails the server is gone, as the next round of the loop will see.
                let _ = client.batch_execute("ROLLBACK").await;
            }
            Err(error) if error.code() == Some(&SqlState::DISK_FULL) => {
                let _ = client.batch_execute("ROLLBACK").await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => panic!("a transfer was refused: {error:?}"),
        }
    }
}

/// Creates tables with rows and an index and drops every other one, until the server is gone.
async fn define(client: Client, acknowledged: Arc<Mutex<Acknowledged>>, from: i32) {
    for number in from.. {
        let made = client
            .batch_execute(&format!(
                "CREATE TABLE made_{number} (id int PRIMARY KEY, kind int);
                 INSERT INTO made_{number} SELECT g, g % 3 FROM generate_series(1, 50) AS g;
                 CREATE INDEX ON made_{number} (kind)"
            ))
            .await;
        match made {
            Ok(()) => {
                acknowledged.lock().expect("no test thread panicked").tables.insert(number);
            }
            Err(error) if error.as_db_error().is_none() => return,
            Err(error) if error.code() == Some(&SqlState::DISK_FULL) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
            Err(error) => panic!("a table was refused: {error:?}"),
        }
        if number % 2 == 0 {
            acknowledged.lock().expect("no test thread panicked").tables.remove(&number);
            match client.batch_execute(&format!("DROP TABLE made_{number}")).await {
                Ok(()) => {}
                Err(error) if error.code() == Some(&SqlState::DISK_FULL) => continue,
                Err(_) => return,
            }
            acknowledged.lock().expect("no test thread panicked").dropped.insert(number);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Everything acknowledged is there, and nothing else is half there.
async fn verify(client: &Client, acknowledged: &Acknowledged) {
    let rows = client.query("SELECT id FROM entry", &[]).await.expect("answered");
    let there: BTreeSet<i32> = rows.iter().map(|row| row.get(0)).collect();
    let lost: Vec<_> = acknowledged.entries.difference(&there).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let query = "SELECT a.id FROM account AS a
                 WHERE a.balance <> 1000 - (SELECT coalesce(sum(amount), 0) FROM entry WHERE source = a.id)
                                         + (SELECT coalesce(sum(amount), 0) FROM entry WHERE target = a.id)";
    let torn = client.query(query, &[]).await.expect("answered");
    assert!(torn.is_empty(), "{} balances do not fit their entries", torn.len());
    let total = client.query_one("SELECT sum(balance)::int8 FROM account", &[]).await.expect("answered");
    assert_eq!(total.get::<_, i64>(0), i64::from(ACCOUNTS) * BALANCE);
    let rows = client
        .query("SELECT relname::text FROM pg_class WHERE relname LIKE 'made\\_%' AND relkind = 'r'", &[])
        .await
        .expect("answered");
    let made: BTreeSet<i32> = rows
        .iter()
        .filter_map(|row| {
            row.get::<_, String>(0).strip_prefix("made_").and_then(|number| number.parse().ok())
        })
        .collect();
    let lost: Vec<_> = acknowledged.tables.difference(&made).collect();
    assert!(lost.is_empty(), "tables acknowledged and lost: {lost:?}");
    let back: Vec<_> = acknowledged.dropped.intersection(&made).collect();
    assert!(back.is_empty(), "tables dropped and back: {back:?}");
    for number in acknowledged.tables.iter().rev().take(3) {
        let query = format!("SELECT count(*) FROM made_{number} WHERE kind = 1");
        let count = client.query_one(&query, &[]).await.expect("answered");
        assert_eq!(count.get::<_, i64>(0), 17, "rows of table made_{number}");
    }
}

/// What the server's files lie on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Disk {
    Lasting,
    LosingPower,
}

/// In which rounds the disk is full when the power goes.
fn is_full_in(round: usize) -> bool {
    round % 3 == 2
}

/// Orders and transfers are made, however slow the machine is.
async fn until_under_way(client: &Client, transferred: impl Fn() -> bool) {
    // More than the driver has connections, whose last answers may be on their way.
    let query = "SELECT coalesce(sum(calls), 0) > 50 FROM archipel.routines WHERE name = 'new_order'";
    let begin = Instant::now();
    while !(transferred() && client.query_one(query, &[]).await.expect("answered").get::<_, bool>(0)) {
        assert!(begin.elapsed() < PATIENCE, "no orders, or no transfers, in {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn acknowledged_survives(settings: &[&str], disk: Disk) {
    let settings = [settings, &["archipel.checkpoint_bytes=4MB"]].concat();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let (mut server, mut power) = match disk {
        Disk::Lasting => (Server::start(&settings), None),
        Disk::LosingPower => {
            let seed = rand::rng().random();
            println!("the disk's seed is {seed}");
            let (server, power) = Server::start_on_power(&settings, seed);
            (server, Some(power))
        }
    };
    let mut lost = Lost::default();
    workload(&["load", "tpcc", "--url", &server.url()], false);
    runtime.block_on(async {
        let client = server.connect().await;
        client.batch_execute(BANK).await.expect("the bank opens");
        let fill =
            format!("INSERT INTO account SELECT g, {BALANCE} FROM generate_series(0, {}) AS g", ACCOUNTS - 1);
        client.batch_execute(&fill).await.expect("the bank has accounts");
    });
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let beside = Arc::new(Mutex::new(Acknowledged::default()));
    let mut checkpoints = 0;
    for round in 0.. {
        // What is left to chance, and to the speed of the machine, gets more rounds to happen in.
        let enough = checkpoints > 0 && (disk == Disk::Lasting || lost.all_kinds());
        let more = if enough { 0 } else { ROUNDS_MORE_MAX };
        if round >= rounds(disk) + more {
            break;
        }
        let acknowledged = directory.path().join(format!("acknowledged-{round}"));
        let path = acknowledged.to_str().expect("temporary paths are UTF-8").to_owned();
        let url = server.url();
        let arguments =
            ["run", "tpcc", "--url", &url, "--duration", "600", "--quiet", "--acknowledged", &path];
        let log = directory.path().join("driver");
        let mut driver = spawn_workload(&arguments, &log);
        let before = beside.lock().expect("no test thread panicked").entries.len();
        let others = runtime.block_on(async {
            let first_table = i32::try_from(round).expect("few rounds") * 1_000 + 1;
            [
                tokio::spawn(transfer(connect(&url).await, Arc::clone(&beside))),
                tokio::spawn(transfer(connect(&url).await, Arc::clone(&beside))),
                tokio::spawn(define(connect(&url).await, Arc::clone(&beside), first_table)),
            ]
        });
        // Long enough for orders in every round, and never at the same moment of the epoch.
        std::thread::sleep(Duration::from_millis(1400 + 37 * (round % 50) as u64));
        checkpoints += runtime.block_on(async {
            let client = connect(&url).await;
            until_under_way(&client, || {
                beside.lock().expect("no test thread panicked").entries.len() > before
            })
            .await;
            let query = "SELECT count(*) FROM archipel.checkpoints WHERE state = 'done'";
            client.query_one(query, &[]).await.expect("answered").get::<_, i64>(0)
        });
        if let Some(power) = power.as_mut().filter(|_| is_full_in(round)) {
            power.fill(true);
            std::thread::sleep(Duration::from_millis(300));
        }
        server.kill();
        if let Some(power) = &mut power {
            lost += power.cut();
        }
        for other in others {
            runtime.block_on(other).expect("nothing was refused");
        }
        let status = driver.wait().expect("the driver ends when its connections are lost");
        let told = std::fs::read_to_string(&log).unwrap_or_default();
        assert_eq!(status.code(), Some(3), "the driver should report lost connections:\n{told}");
        let orders =
            std::fs::read_to_string(&acknowledged).expect("the driver wrote its file").lines().count();
        assert!(orders > 0, "round {round} acknowledged nothing:\n{told}");
        let acknowledged = beside.lock().expect("no test thread panicked");
        assert!(acknowledged.entries.len() > before, "round {round} acknowledged no transfer");
        server.restart();
        workload(&["check", "tpcc", "--url", &server.url(), "--acknowledged", &path], false);
        runtime.block_on(async { verify(&server.connect().await, &acknowledged).await });
    }
    assert!(checkpoints > 0, "no checkpoint ended in any round");
    if disk == Disk::LosingPower {
        println!("{lost:?}");
        assert!(lost.all_kinds(), "the disk lost too little: {lost:?}");
    }
    server.kill();
    let data = server.data_directory();
    let output =
        Server::archipel(&["check", "--data-dir", data.to_str().expect("temporary paths are UTF-8")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn everything_acknowledged_survives_kill_9() {
    acknowledged_survives(&[], Disk::Lasting);
}

#[test]
fn everything_acknowledged_survives_kill_9_on_a_store_that_discards_unsynced_bytes() {
    acknowledged_survives(&["archipel.log_store=discard-unsynced"], Disk::Lasting);
}

#[test]
fn everything_acknowledged_survives_a_loss_of_power() {
    acknowledged_survives(&[], Disk::LosingPower);
}

const COPIED: i64 = 200_000;

/// Copies 200 MB into a table, as one transaction.
async fn copy_large(client: &Client, table: &str) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in::<_, bytes::Bytes>(&format!("COPY {table} FROM STDIN")).await?;
    let mut sink = std::pin::pin!(sink);
    let note = "x".repeat(1_000);
    for first in (0..COPIED).step_by(1_000) {
        let rows: String = (first..first + 1_000).map(|id| format!("{id}\t{note}\n")).collect();
        sink.send(bytes::Bytes::from(rows)).await?;
    }
    sink.finish().await
}

/// It goes to the log in parts, while checkpoints run one after another; killed at any moment all of it is there or
/// nothing, and all that was acknowledged is.
#[test]
fn a_copy_of_200_mb_is_whole_or_not_there_after_kill_9_beside_checkpoints() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let mut server = Server::start(&["archipel.checkpoint_bytes=4MB"]);
    let counter = "CREATE TABLE counter (id int PRIMARY KEY, n int8, note text);
                   INSERT INTO counter SELECT g, 0, repeat('n', 2000) FROM generate_series(1, 500) AS g";
    runtime.block_on(async { server.connect().await.batch_execute(counter).await.expect("filled") });
    let mut took: Option<Duration> = None;
    let mut checkpoints = 0;
    // How much of the first one's time the others get: the last tenth is its commit.
    for (round, share) in [1.0, 0.5, 0.85, 0.93, 0.97, 1.0, 1.05].into_iter().enumerate() {
        let table = format!("large_{round}");
        let url = server.url();
        let copied = runtime.block_on(async {
            let client = connect(&url).await;
            let make = format!(
                "CREATE TABLE {table} (id int PRIMARY KEY, note text); SET archipel.atomic_copy = on"
            );
            client.batch_execute(&make).await.expect("made");
            let beside = connect(&url).await;
            let changes = tokio::spawn(async move {
                let change = "UPDATE counter SET n = n + 1, note = repeat(chr(97 + (n % 26)::int), 2000)";
                while beside.batch_execute(change).await.is_ok() {}
            });
            let begin = Instant::now();
            let into = table.clone();
            let copy = tokio::spawn(async move { copy_large(&client, &into).await });
            let Some(took) = took else {
                copy.await.expect("no test thread panicked").expect("nothing is in its way");
                took = Some(begin.elapsed());
                let done = "SELECT count(*) FROM archipel.checkpoints WHERE state = 'done'";
                let counted = connect(&url).await.query_one(done, &[]).await.expect("answered");
                checkpoints = counted.get::<_, i64>(0);
                server.kill();
                changes.await.expect("it ends with its connection");
                return true;
            };
            tokio::time::sleep(took.mul_f64(share)).await;
            server.kill();
            changes.await.expect("it ends with its connection");
            copy.await.expect("no test thread panicked").is_ok()
        });
        server.restart();
        let rows = runtime.block_on(async {
            let client = server.connect().await;
            let all = format!("SELECT count(*), coalesce(sum(id), 0)::int8, coalesce(sum(length(note)), 0)::int8 FROM {table}");
            let row = client.query_one(&all, &[]).await.expect("answered");
            client.batch_execute(&format!("DROP TABLE {table}")).await.expect("dropped");
            (row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2))
        });
        let whole = (COPIED, COPIED * (COPIED - 1) / 2, COPIED * 1_000);
        assert!(rows == whole || (!copied && rows == (0, 0, 0)), "round {round}: {copied}, then {rows:?}");
    }
    assert!(checkpoints > 0, "no checkpoint ended beside the first");
    server.kill();
    let data = server.data_directory();
    let output =
        Server::archipel(&["check", "--data-dir", data.to_str().expect("temporary paths are UTF-8")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
