//! The adaptive server over the wire: a skewed load ends spread over the executors, the views say
//! why, and a steady load is left alone. Counted, not timed.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use archipel_tests::server::{Server, ask, connect};
use tokio_postgres::Client;

/// How long the monitor may take on a machine that others use, too.
const PATIENCE: Duration = Duration::from_secs(60);
/// A steady load is left alone for so long: the longest interval of the monitor.
const REST: Duration = Duration::from_secs(8);
/// Reads that are on their way at a time.
const PIPELINED: usize = 64;

async fn refused(client: &Client, query: &str) -> String {
    let error = client.simple_query(query).await.expect_err("refused");
    let error = error.as_db_error().expect("the server says why");
    format!("{} {}", error.code().code(), error.message())
}

fn number(rows: &[Vec<String>]) -> f64 {
    rows[0][0].parse().unwrap_or_else(|_| panic!("{rows:?} is no number"))
}

/// A thousand rows in four partitions, all of them at home on the first executor.
async fn ledger(client: &Client) -> Vec<i32> {
    ask(client, "CREATE TABLE ledger (id integer PRIMARY KEY, amount integer NOT NULL)").await;
    ask(client, "INSERT INTO ledger SELECT g, g FROM generate_series(0, 999) g").await;
    for key in [250, 500, 750] {
        ask(client, &format!("SELECT archipel.split_partition('ledger', '{key}')")).await;
    }
    let partitions = partitions(client).await;
    for partition in &partitions {
        ask(client, &format!("SELECT archipel.move_partition({partition}, 0)")).await;
    }
    partitions
}

async fn partitions(client: &Client) -> Vec<i32> {
    let rows = ask(client, "SELECT partition FROM archipel.partitions WHERE tables = 'ledger'").await;
    rows.into_iter().map(|row| row[0].parse().expect("a number")).collect()
}

/// Reads rows below `keys`, many at a time, until it is told to stop.
fn read_until(url: &str, keys: i32, stop: &Arc<AtomicBool>) -> tokio::task::JoinHandle<()> {
    let (url, stop) = (url.to_owned(), stop.clone());
    tokio::spawn(async move {
        let client = connect(&url).await;
        let read = client.prepare("SELECT amount FROM ledger WHERE id = $1").await.expect("prepared");
        let mut state = 1_u32;
        while !stop.load(Ordering::Relaxed) {
            let ids: Vec<i32> = (0..PIPELINED)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    ((u64::from(state) * keys as u64) >> 32) as i32
                })
                .collect();
            let (client, read) = (&client, &read);
            let reads = ids.iter().map(|id| async move {
                let row = client.query_one(read, &[id]).await.expect("the row is there");
                assert_eq!(row.get::<_, i32>(0), *id);
            });
            futures::future::join_all(reads).await;
        }
    })
}

/// Waits until a count is positive.
async fn until_positive(client: &Client, query: &str) {
    let began = Instant::now();
    while number(&ask(client, query).await) <= 0.0 {
        if began.elapsed() > PATIENCE {
            let told = ask(client, "SELECT * FROM archipel.monitor_decisions").await;
            panic!("{query} stays 0: {told:?}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

const ACTED: &str = "SELECT count(*) FROM archipel.monitor_decisions WHERE outcome = 'repartitioned'";

#[tokio::test]
async fn a_skewed_load_ends_spread_and_stays_so() {
    let server = Server::start(&["archipel.executors=2", "archipel.adaptive_samples_min=15"]);
    let client = connect(&server.url()).await;
    ledger(&client).await;
    let stop = Arc::<AtomicBool>::default();
    let readers: Vec<_> = (0..3).map(|_| read_until(&server.url(), 1_000, &stop)).collect();

    let measured = format!("{ACTED} AND measured_gain IS NOT NULL");
    until_positive(&client, &measured).await;
    let share = |executor: i32| {
        format!(
            "SELECT coalesce(sum(load), 0) FROM archipel.partitions WHERE tables = 'ledger' AND executor = {executor}"
        )
    };
    for executor in 0..2 {
        let share = number(&ask(&client, &share(executor)).await);
        assert!((0.3..0.7).contains(&share), "executor {executor} has {share}");
    }
    let why = ask(
        &client,
        "SELECT decision, reason, imbalance > 0.9, imbalance_predicted < 0.2, predicted_gain > 0.3, moves + splits > 0, samples >= 15
         FROM archipel.monitor_decisions WHERE outcome = 'repartitioned' ORDER BY decision LIMIT 1",
    )
    .await;
    assert!(["first trace", "imbalance"].contains(&why[0][1].as_str()), "{why:?}");
    assert_eq!(why[0][2..], ["t", "t", "t", "t", "t"], "{why:?}");
    let done = "SELECT count(*) FROM archipel.repartitions WHERE decision = ";
    assert!(number(&ask(&client, &format!("{done}{}", why[0][0])).await) > 0.0);

    // The same load goes on: it comes to rest. What was placed by its first trace, of a second, may
    // be placed better by what the next one shows; that is no reason to go on for ever.
    let acted = number(&ask(&client, ACTED).await);
    for stretch in 1.. {
        let version = "SELECT count(*) FROM archipel.repartitions";
        let before = ask(&client, version).await;
        tokio::time::sleep(REST).await;
        if ask(&client, version).await == before {
            break;
        }
        let told = ask(&client, "SELECT * FROM archipel.monitor_decisions").await;
        assert!(stretch < 3, "nothing comes to rest: {told:?}");
    }
    let refined = number(&ask(&client, ACTED).await) - acted;
    assert!(refined <= 2.0, "a steady load is repartitioned {refined} times");
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.expect("a reader ends");
    }
    let counts = ask(&client, "SELECT runs > 1000 FROM archipel.actions").await;
    assert_eq!(counts, [["t"]]);
    assert_eq!(ask(&client, "SELECT sum(amount) FROM ledger").await, [["499500"]]);
}

#[tokio::test]
async fn a_static_server_tells_and_does_nothing() {
    let server =
        Server::start(&["archipel.executors=2", "archipel.adaptive=off", "archipel.adaptive_samples_min=15"]);
    let client = connect(&server.url()).await;
    assert_eq!(ask(&client, "SHOW archipel.adaptive").await, [["off"]]);
    assert_eq!(ask(&client, "SHOW archipel.adaptive_interval_max").await, [["8s"]]);
    ledger(&client).await;
    let stop = Arc::<AtomicBool>::default();
    let reader = read_until(&server.url(), 1_000, &stop);
    until_positive(
        &client,
        "SELECT count(*) FROM archipel.monitor_decisions WHERE outcome = 'adaptive is off'",
    )
    .await;
    stop.store(true, Ordering::Relaxed);
    reader.await.expect("a reader ends");
    assert_eq!(
        ask(&client, "SELECT count(*) FROM archipel.repartitions WHERE decision IS NOT NULL").await,
        [["0"]]
    );
}

#[tokio::test]
async fn marks_are_kept_by_everybody_and_over_a_crash() {
    let mut server = Server::start(&["archipel.executors=2"]);
    let client = connect(&server.url()).await;
    let partitions = ledger(&client).await;
    let first = partitions[0];
    ask(&client, &format!("SELECT archipel.pin_partition({first}), archipel.freeze_partition({first})"))
        .await;
    let marked = "SELECT count(*) FROM archipel.partitions WHERE pinned AND frozen";
    assert_eq!(ask(&client, marked).await, [["1"]]);
    assert_eq!(
        refused(&client, &format!("SELECT archipel.move_partition({first}, 1)")).await,
        format!("55000 partition {first} is pinned")
    );
    assert_eq!(
        refused(&client, "SELECT archipel.split_partition('ledger', '100')").await,
        format!("55000 partition {first} is frozen")
    );
    assert_eq!(
        refused(&client, "SELECT archipel.pin_partition(4711)").await,
        "42704 partition 4711 does not exist"
    );

    drop(client);
    server.kill();
    server.restart();
    let client = connect(&server.url()).await;
    assert_eq!(ask(&client, marked).await, [["1"]]);
    let first = self::partitions(&client).await[0];
    ask(&client, &format!("SELECT archipel.unpin_partition({first}), archipel.unfreeze_partition({first})"))
        .await;
    ask(&client, &format!("SELECT archipel.move_partition({first}, 1)")).await;
    ask(&client, "SELECT archipel.split_partition('ledger', '100')").await;
    assert_eq!(ask(&client, marked).await, [["0"]]);
}

#[tokio::test]
async fn islands_are_as_large_as_the_load_asks_for() {
    let two = "archipel.topology=synthetic:pack:2 core:1 pu:1";
    let server = Server::start(&[two, "archipel.adaptive_samples_min=15"]);
    let client = connect(&server.url()).await;
    let islands = "SELECT count(*) FROM archipel.islands WHERE state = 'active'";
    assert_eq!(ask(&client, islands).await, [["2"]]);
    assert_eq!(
        ask(&client, "SELECT DISTINCT source FROM archipel.island_distances").await,
        [["assumed"]],
        "its cores are invented"
    );
    // Half of what anybody reads is at home on the other island.
    for partition in ledger(&client).await.iter().skip(2) {
        ask(&client, &format!("SELECT archipel.move_partition({partition}, 1)")).await;
    }
    let stop = Arc::<AtomicBool>::default();
    let readers: Vec<_> = (0..4).map(|_| read_until(&server.url(), 1_000, &stop)).collect();
    until_positive(
        &client,
        "SELECT count(*) FROM archipel.monitor_decisions
         WHERE reason = 'communication' AND outcome = 'an island is the machine' AND throughput_after > 0",
    )
    .await;
    let again = "SELECT count(*) FROM archipel.monitor_decisions WHERE outcome LIKE '%again'";
    if ask(&client, again).await == [["0"]] {
        assert_eq!(ask(&client, islands).await, [["1"]]);
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.expect("a reader ends");
    }
    assert_eq!(ask(&client, "SELECT sum(amount) FROM ledger").await, [["499500"]]);
}

#[tokio::test]
async fn settings_change_while_the_server_runs() {
    let mut server = Server::start(&["archipel.executors=2"]);
    let client = connect(&server.url()).await;
    let shown = "SHOW archipel.adaptive";
    assert_eq!(
        refused(&client, "SET archipel.adaptive = off").await,
        "55P02 parameter \"archipel.adaptive\" cannot be changed now"
    );
    assert_eq!(
        refused(&client, "ALTER SYSTEM SET archipel.adaptive_gain_min = 11").await,
        "22023 11 is outside the valid range for parameter \"archipel.adaptive_gain_min\" (0 .. 10)"
    );
    assert_eq!(
        refused(&client, "ALTER SYSTEM SET archipel.nonsense = 1").await,
        "42704 unrecognized configuration parameter \"archipel.nonsense\""
    );
    assert_eq!(
        refused(&client, "ALTER SYSTEM SET server_version = '9'").await,
        "55P02 parameter \"server_version\" cannot be changed"
    );
    ask(&client, "BEGIN").await;
    assert_eq!(
        refused(&client, "ALTER SYSTEM SET archipel.adaptive = off").await,
        "25001 ALTER SYSTEM cannot run inside a transaction block"
    );
    ask(&client, "ROLLBACK").await;

    ask(&client, "ALTER SYSTEM SET archipel.adaptive = off").await;
    ask(&client, "ALTER SYSTEM SET work_mem = '8MB'").await;
    assert_eq!(ask(&client, shown).await, [["on"]], "not before the reload");
    assert_eq!(ask(&client, "SELECT pg_reload_conf()").await, [["t"]]);
    assert_eq!(ask(&client, shown).await, [["off"]]);
    assert_eq!(
        ask(&client, "SELECT setting, context FROM pg_settings WHERE name = 'archipel.adaptive'").await,
        [["off", "sighup"]]
    );
    assert_eq!(ask(&connect(&server.url()).await, "SHOW work_mem").await, [["8MB"]]);
    assert_eq!(ask(&client, "SHOW work_mem").await, [["8MB"]], "in sessions that there were, too");

    // A session's own choice stays, and is taken back to the newest value.
    ask(&client, "SET work_mem = '5MB'").await;
    ask(&client, "ALTER SYSTEM SET work_mem = '9MB'").await;
    ask(&client, "SELECT pg_reload_conf()").await;
    assert_eq!(ask(&client, "SHOW work_mem").await, [["5MB"]]);
    ask(&client, "RESET work_mem").await;
    assert_eq!(ask(&client, "SHOW work_mem").await, [["9MB"]]);
    // A transaction keeps what it began with.
    ask(&client, "BEGIN").await;
    assert_eq!(ask(&client, "SHOW work_mem").await, [["9MB"]]);
    let other = connect(&server.url()).await;
    ask(&other, "ALTER SYSTEM RESET work_mem").await;
    ask(&other, "SELECT pg_reload_conf()").await;
    assert_eq!(ask(&client, "SHOW work_mem").await, [["9MB"]]);
    ask(&client, "COMMIT").await;
    assert_eq!(ask(&client, "SHOW work_mem").await, ask(&other, "SELECT '64MB'").await);

    // What needs a restart waits for it, and says so.
    let pending = "SELECT name FROM pg_settings WHERE pending_restart";
    ask(&client, "ALTER SYSTEM SET max_connections = 50").await;
    assert!(ask(&client, pending).await.is_empty());
    ask(&client, "SELECT pg_reload_conf()").await;
    assert_eq!(ask(&client, pending).await, [["max_connections"]]);
    assert_eq!(ask(&client, "SHOW max_connections").await, [["1000"]]);
    // Intervals that contradict are not written; if they are there all the same, the reload that
    // was asked for leaves everything as it is.
    let refusal = refused(&client, "ALTER SYSTEM SET archipel.adaptive_interval_min = '1h'").await;
    assert!(refusal.starts_with("22023 "), "{refusal}");
    let file = server.data_directory().join("archipel.auto.toml");
    let written = std::fs::read_to_string(&file).expect("ALTER SYSTEM wrote it");
    let contradicts = format!("{written}\n\"archipel.adaptive_interval_min\" = \"1h\"\n");
    std::fs::write(&file, contradicts).expect("the test may write there");
    assert_eq!(ask(&client, "SELECT pg_reload_conf()").await, [["t"]]);
    assert_eq!(ask(&client, "SHOW archipel.adaptive_interval_min").await, [["1s"]]);
    ask(&client, "ALTER SYSTEM RESET archipel.adaptive_interval_min").await;

    // SIGHUP is a reload, too.
    ask(&client, "ALTER SYSTEM SET archipel.adaptive_gain_min = 0.5").await;
    server.hang_up();
    let began = std::time::Instant::now();
    while ask(&client, "SHOW archipel.adaptive_gain_min").await != [["0.5"]] {
        assert!(began.elapsed() < PATIENCE, "the server reads its configuration");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    drop(client);
    server.kill();
    server.restart();
    let client = connect(&server.url()).await;
    assert_eq!(ask(&client, shown).await, [["off"]], "it outlives the process");
    assert_eq!(ask(&client, "SHOW max_connections").await, [["50"]]);
    assert!(ask(&client, pending).await.is_empty());
    ask(&client, "ALTER SYSTEM RESET ALL").await;
    ask(&client, "SELECT pg_reload_conf()").await;
    assert_eq!(ask(&client, shown).await, [["on"]]);
}

#[test]
fn thresholds_out_of_range_are_named() {
    let start = |setting: &str| {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let done = Command::new(archipel_tests::archipel_binary())
            .args(["serve", "--http", "off", "--listen", "127.0.0.1:0", "--set", setting, "--data-dir"])
            .arg(directory.path())
            .output()
            .expect("the binary can be run");
        assert!(!done.status.success(), "{setting} was taken");
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let told = start("archipel.adaptive_imbalance=1000");
    assert!(
        told.contains(
            "1000 is outside the valid range for parameter \"archipel.adaptive_imbalance\" (0.01 .. 100)"
        ),
        "{told}"
    );
    let told = start("archipel.adaptive_interval_max=20ms");
    assert!(told.contains("20 ms is outside the valid range"), "{told}");
    let told = start("archipel.adaptive_interval_min=10s");
    assert!(told.contains("must not be greater than archipel.adaptive_interval_max"), "{told}");
    let told = start("archipel.adaptive=perhaps");
    assert!(told.contains("parameter \"archipel.adaptive\" requires a Boolean value"), "{told}");
}
