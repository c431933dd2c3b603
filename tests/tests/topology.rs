//! Cores are taken from a running server and given back: executors, partitions and sessions
//! follow, and nothing is lost.

use std::collections::BTreeSet;
use std::process::Child;
use std::time::{Duration, Instant};

use archipel_tests::cores::{ControlGroup, mine, taskset, taskset_all};
use archipel_tests::server::{Server, connect, spawn_workload, workload};
use archipel_tests::waits::{process_of, until_blocked};
use tokio_postgres::Client;

/// A change is noticed within two seconds on an idle machine; this one may be slow, and is busy with
/// what the tests of this file do to it.
const NOTICED_WITHIN: Duration = Duration::from_secs(60);

/// Two cores, what the tests take from and give to; and the first of them.
///
/// # Panics
/// On one core: a machine where there is none to take away proves nothing about these tests.
fn two_cores() -> (BTreeSet<usize>, BTreeSet<usize>) {
    let both: BTreeSet<usize> = mine().into_iter().take(2).collect();
    assert!(
        both.len() == 2,
        "this test takes cores away and gives them back: it needs two, and has {both:?}"
    );
    let first = both.iter().take(1).copied().collect();
    (both, first)
}

async fn number(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.unwrap_or_else(|error| panic!("{query}: {error:?}")).get(0)
}

async fn active(client: &Client) -> i64 {
    number(client, "SELECT count(*) FROM archipel.executors WHERE state = 'active'").await
}

/// Waits until a query answers a number.
async fn becomes(client: &Client, query: &str, expected: i64) {
    let begin = Instant::now();
    loop {
        let found = number(client, query).await;
        if found == expected {
            return;
        }
        assert!(begin.elapsed() < NOTICED_WITHIN, "{query}: {found}, not {expected}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Executors, homes and sessions are where the cores are.
async fn settles_on(client: &Client, executors: i64) {
    becomes(client, "SELECT count(*) FROM archipel.executors WHERE state = 'active'", executors).await;
    let stranded =
        "SELECT coalesce(sum(partitions), 0)::int8 FROM archipel.executors WHERE state = 'retired'";
    becomes(client, stranded, 0).await;
    let stranded = "SELECT coalesce(sum(sessions), 0)::int8 FROM archipel.executors WHERE state = 'retired'";
    becomes(client, stranded, 0).await;
}

/// No executor that has a core is without partitions.
async fn all_have_partitions(client: &Client) {
    let idle = "SELECT count(*) FROM archipel.executors WHERE state = 'active' AND partitions = 0";
    becomes(client, idle, 0).await;
}

/// The load goes on, if it has not ended.
async fn load_goes_on(client: &Client, load: &mut Child) {
    let done = "SELECT sum(statements)::int8 FROM archipel.executors";
    let before = number(client, done).await;
    let begin = Instant::now();
    let mut asked = 0;
    while number(client, done).await < before + asked + 50 {
        // The question is a statement itself.
        asked += 1;
        if load.try_wait().expect("a child can be asked for its status").is_some() {
            return;
        }
        assert!(begin.elapsed() < NOTICED_WITHIN, "the load stands still");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn tpcc_goes_on_while_cores_are_taken_and_given_back() {
    let (both, first) = two_cores();
    let second: BTreeSet<usize> = both.difference(&first).copied().collect();
    let server = Server::start(&[]);
    let process = server.process_id();
    taskset_all(process, &both);
    let url = server.url();
    workload(&["load", "tpcc", "--scale", "4", "--url", &url], false);
    let client = connect(&url).await;
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let log = directory.path().join("run.log");
    let run = ["run", "tpcc", "--scale", "4", "--url", &url, "--duration", "20", "--quiet"];
    let mut running = spawn_workload(&run, &log);
    let mut rounds = 0;
    settles_on(&client, 2).await;
    while running.try_wait().expect("a child can be asked for its status").is_none() {
        // By turns the one core and the other, of all threads and of the first alone.
        let left = if rounds % 2 == 0 { &first } else { &second };
        let take = if rounds % 4 < 2 { taskset_all } else { taskset };
        take(process, left);
        settles_on(&client, 1).await;
        let core = number(&client, "SELECT core::int8 FROM archipel.executors WHERE state = 'active'").await;
        assert_eq!(left.first().copied(), usize::try_from(core).ok());
        load_goes_on(&client, &mut running).await;
        take(process, &both);
        settles_on(&client, 2).await;
        all_have_partitions(&client).await;
        load_goes_on(&client, &mut running).await;
        rounds += 1;
    }
    let status = running.wait().expect("a child ends");
    assert!(status.success(), "{}", std::fs::read_to_string(&log).unwrap_or_default());
    assert!(rounds >= 1, "the load ended before the cores had changed");
    workload(&["check", "tpcc", "--url", &url], false);
    let reasons = "SELECT count(DISTINCT reason) FROM archipel.repartitions WHERE reason LIKE 'core %'";
    assert_eq!(number(&client, reasons).await, 2, "moved away and back");
}

#[tokio::test]
async fn a_server_killed_between_cores_recovers_all_it_acknowledged() {
    let (both, first) = two_cores();
    let mut server = Server::start(&[]);
    workload(&["load", "tpcc", "--scale", "2", "--url", &server.url()], false);
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    for round in 0..3u64 {
        let url = server.url();
        let client = connect(&url).await;
        let log = directory.path().join(format!("run-{round}.log"));
        let run = ["run", "tpcc", "--scale", "2", "--url", &url, "--duration", "600", "--quiet"];
        let mut running = spawn_workload(&run, &log);
        load_goes_on(&client, &mut running).await;
        taskset_all(server.process_id(), if round % 2 == 0 { &first } else { &both });
        // In the middle of what follows from it, earlier and later.
        tokio::time::sleep(Duration::from_millis(500 + 400 * round)).await;
        server.kill();
        // The driver ends with an error: its server is gone.
        let _ = running.wait();
        server.restart();
        workload(&["check", "tpcc", "--url", &server.url()], false);
        let client = connect(&server.url()).await;
        let homeless = "SELECT count(*) FROM archipel.partitions WHERE executor NOT IN \
                        (SELECT executor FROM archipel.executors WHERE state = 'active')";
        assert_eq!(number(&client, homeless).await, 0);
    }
}

#[tokio::test]
async fn a_session_keeps_what_it_has_when_its_executor_loses_its_core() {
    let (both, first) = two_cores();
    let server = Server::start(&[]);
    let process = server.process_id();
    taskset_all(process, &both);
    let watch = server.connect().await;
    becomes(&watch, "SELECT count(*) FROM archipel.executors WHERE state = 'active'", 2).await;
    watch.batch_execute("CREATE TABLE kept (id integer PRIMARY KEY)").await.expect("a table");
    // Some on either executor.
    let mut clients = Vec::new();
    for number in 0..6 {
        let client = server.connect().await;
        client.batch_execute(&format!("SET application_name = 'session {number}'")).await.expect("set");
        let add = client.prepare("INSERT INTO kept VALUES ($1)").await.expect("prepared");
        client.batch_execute("BEGIN").await.expect("begun");
        client.execute(&add, &[&number]).await.expect("inserted");
        clients.push((number, client, add));
    }
    taskset(process, &first);
    becomes(&watch, "SELECT count(*) FROM archipel.executors WHERE state = 'active'", 1).await;
    let waiting = "SELECT coalesce(sum(sessions), 0)::int8 FROM archipel.executors WHERE state = 'retired'";
    assert!(number(&watch, waiting).await > 0, "a session stays for its transaction");
    for (number, client, add) in &clients {
        client.execute(add, &[&(100 + number)]).await.expect("the transaction goes on");
        client.batch_execute("COMMIT").await.expect("and commits");
    }
    becomes(&watch, waiting, 0).await;
    for (number, client, add) in &clients {
        client.execute(add, &[&(200 + number)]).await.expect("the statement is still prepared");
        let name: String = client.query_one("SHOW application_name", &[]).await.expect("shown").get(0);
        assert_eq!(name, format!("session {number}"));
    }
    assert_eq!(number(&watch, "SELECT count(*) FROM kept").await, 18);
    // A new client meets the executor that is left; cancelling still finds a session that moved.
    let (_, moved, _) = &clients[0];
    let token = moved.cancel_token();
    watch.batch_execute("BEGIN; INSERT INTO kept VALUES (999)").await.expect("inserted");
    let waiter = process_of(moved).await;
    let (waited, cancelled) = tokio::join!(moved.batch_execute("INSERT INTO kept VALUES (999)"), async {
        until_blocked(&watch, &waiter).await;
        token.cancel_query(tokio_postgres::NoTls).await
    });
    cancelled.expect("the request is sent");
    let error = waited.expect_err("it is cancelled");
    assert_eq!(error.code().map(|code| code.code()), Some("57014"), "{error:?}");
    watch.batch_execute("ROLLBACK").await.expect("rolled back");
    taskset(process, &both);
    settles_on(&watch, 2).await;
    let unserved = "SELECT count(*) FROM archipel.executors WHERE sessions < 3";
    becomes(&watch, unserved, 0).await;
    for (_, client, _) in &clients {
        assert_eq!(number(client, "SELECT count(*) FROM kept").await, 18);
    }
}

#[tokio::test]
async fn a_server_that_began_on_one_core_uses_another_one_that_comes() {
    let (both, first) = two_cores();
    let server = {
        let mut server = Server::start(&[]);
        taskset_all(server.process_id(), &first);
        let client = server.connect().await;
        client
            .batch_execute("CREATE TABLE grown (id integer PRIMARY KEY, n integer NOT NULL)")
            .await
            .expect("a table");
        client
            .batch_execute("INSERT INTO grown SELECT n, 0 FROM generate_series(1, 30000) n")
            .await
            .expect("rows");
        drop(client);
        server.stop();
        server.restart_on(&first);
        server
    };
    let clients = [server.connect().await, server.connect().await];
    assert_eq!(active(&clients[0]).await, 1);
    taskset(server.process_id(), &both);
    settles_on(&clients[0], 2).await;
    becomes(&clients[0], "SELECT count(*) FROM archipel.executors WHERE sessions = 1", 2).await;
    let places = "SELECT count(DISTINCT executor) FROM archipel.partitions WHERE tables = 'grown'";
    becomes(&clients[0], places, 2).await;
    for client in &clients {
        assert_eq!(number(client, "SELECT count(*) FROM grown").await, 30_000);
    }
}

#[tokio::test]
async fn a_move_to_an_island_that_left_is_refused() {
    let (both, first) = two_cores();
    let server = Server::start(&["archipel.island=core"]);
    taskset_all(server.process_id(), &both);
    let client = server.connect().await;
    settles_on(&client, 2).await;
    client.batch_execute("CREATE TABLE stays (id integer PRIMARY KEY)").await.expect("a table");
    taskset(server.process_id(), &first);
    settles_on(&client, 1).await;
    let island = number(&client, "SELECT island::int8 FROM archipel.executors WHERE state = 'retired'").await;
    let partition =
        number(&client, "SELECT partition::int8 FROM archipel.partitions WHERE tables = 'stays'").await;
    let query = format!("SELECT archipel.move_partition({partition}, island => {island})");
    let error = client.batch_execute(&query).await.expect_err("nobody is there");
    let error = error.as_db_error().expect("the server says why");
    assert_eq!((error.code().code(), error.message()), ("55000", &*format!("island {island} is retired")));
}

#[tokio::test]
async fn memory_follows_a_partition_to_another_memory_node() {
    let sockets = "archipel.topology=synthetic:pack:2 [numa] core:1 pu:1";
    let server = Server::start(&[sockets, "archipel.adaptive=off"]);
    let client = server.connect().await;
    let set = async |value: &str| {
        let statement = format!("ALTER SYSTEM SET archipel.memory_follows = {value}");
        client.batch_execute(&statement).await.expect("a setting is set");
        client.batch_execute("SELECT pg_reload_conf()").await.expect("settings are read");
    };
    set("off").await;
    let nodes = "SELECT count(DISTINCT memory_node) FROM archipel.islands";
    assert_eq!(number(&client, nodes).await, 2);
    client
        .batch_execute("CREATE TABLE moves (id integer PRIMARY KEY, note text)")
        .await
        .expect("a table is made");
    client
        .batch_execute("INSERT INTO moves SELECT n, 'row ' || n FROM generate_series(1, 30000) n")
        .await
        .expect("rows are put in");
    // Islands and their nodes have the same numbers here; the rows lie where the first home was.
    let other = "SELECT 1 - max(memory_node)::int8 FROM archipel.partitions WHERE tables = 'moves'";
    let to_island = number(&client, other).await;
    let partitions = "SELECT partition FROM archipel.partitions WHERE tables = 'moves'";
    for row in client.query(partitions, &[]).await.expect("there are some") {
        let partition: i32 = row.get(0);
        let to = format!("SELECT archipel.move_partition({partition}, island => {to_island})");
        client.batch_execute(&to).await.expect("it is moved");
    }
    let away = "SELECT count(*) FROM archipel.partitions WHERE tables = 'moves' AND memory_followed < 1";
    assert!(number(&client, away).await > 0, "rows stay where they are");
    set("on").await;
    becomes(&client, away, 0).await;
    let elsewhere = format!(
        "SELECT count(*) FROM archipel.partitions \
         WHERE tables = 'moves' AND memory_node IS DISTINCT FROM {to_island}"
    );
    assert_eq!(number(&client, &elsewhere).await, 0);
    let whole = "SELECT count(*) FROM archipel.islands WHERE memory_followed < 1";
    becomes(&client, whole, 0).await;
    let sum = "SELECT sum(length(note))::int8 FROM moves";
    let expected: i64 = (1..=30_000_i64).map(|n| format!("row {n}").len() as i64).sum();
    assert_eq!(number(&client, sum).await, expected);
    let speeds = "SELECT count(*) FROM archipel.executors WHERE speed > 0";
    assert_eq!(number(&client, speeds).await, 2);
}

#[tokio::test]
async fn control_groups_are_followed() {
    let (both, first) = two_cores();
    let server = Server::start(&[]);
    let group = ControlGroup::new(&format!("archipel-test-{}", server.process_id()));
    let ready = group.and_then(|group| {
        group.set_cores(&both)?;
        group.take_in(server.process_id())?;
        Ok(group)
    });
    let group = match ready {
        Ok(group) => group,
        Err(reason) => {
            archipel_tests::skipped(&format!("no control group can be made here: {reason}"));
            return;
        }
    };
    let url = server.url();
    workload(&["load", "tpcc", "--scale", "2", "--url", &url], false);
    let client = connect(&url).await;
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let log = directory.path().join("run.log");
    let run = ["run", "tpcc", "--scale", "2", "--url", &url, "--duration", "12", "--quiet"];
    let mut running = spawn_workload(&run, &log);
    settles_on(&client, 2).await;
    group.set_cores(&first).expect("a core is taken");
    settles_on(&client, 1).await;
    load_goes_on(&client, &mut running).await;
    group.set_cores(&both).expect("it is given back");
    settles_on(&client, 2).await;
    // A quota of less than two cores is one executor; of less than one, too.
    for hundredths in [150, 60] {
        group.set_quota(Some(hundredths)).expect("a quota is set");
        settles_on(&client, 1).await;
        load_goes_on(&client, &mut running).await;
    }
    group.set_quota(None).expect("the quota is lifted");
    settles_on(&client, 2).await;
    let status = running.wait().expect("a child ends");
    assert!(status.success(), "{}", std::fs::read_to_string(&log).unwrap_or_default());
    workload(&["check", "tpcc", "--url", &url], false);
    drop(server);
}

#[tokio::test]
async fn islands_are_as_large_as_asked_for_and_wrong_settings_stop_the_start() {
    let two_sockets = "archipel.topology=synthetic:pack:2 l3:2 core:2 pu:1";
    for (island, islands, cores) in [("core", 8, 1), ("l3", 4, 2), ("socket", 2, 4), ("machine", 1, 8)] {
        let server = Server::start(&[two_sockets, &format!("archipel.island={island}")]);
        let client = server.connect().await;
        let shown: String = client.query_one("SHOW archipel.island", &[]).await.expect("shown").get(0);
        assert_eq!(shown, island);
        assert_eq!(
            number(&client, "SELECT count(*) FROM archipel.islands WHERE state = 'active'").await,
            islands
        );
        let each = "SELECT max(executors)::int8 FROM archipel.islands";
        assert_eq!(number(&client, each).await, cores);
        let error = client.batch_execute("SET archipel.island = 'auto'").await.expect_err("not now");
        assert_eq!(error.code().map(|code| code.code()), Some("55P02"));
    }
    let refused = |setting: &str, code: i32, told: &str| {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let data = directory.path().join("data");
        let data = data.to_str().expect("a name in UTF-8");
        let output = Server::archipel(&[
            "serve",
            "--http",
            "off",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            data,
            "--set",
            setting,
        ]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{setting}: {text}");
        assert!(text.contains(told), "{setting}: {text}");
    };
    refused("archipel.island=village", 2, "archipel.island");
    refused("archipel.topology=synthetic:nonsense", 1, "invalid topology \"synthetic:nonsense\"");
    refused("archipel.topology=manual", 1, "expected auto or synthetic");
    refused("archipel.executors=99999", 2, "archipel.executors");
}
