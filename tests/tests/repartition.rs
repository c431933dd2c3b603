//! Partitions changed by hand while a server works: by SQL, with its errors, beside TPC-C.

use archipel_tests::server::{Server, ask, connect, spawn_workload, workload};
use tokio_postgres::Client;

async fn refused(client: &Client, query: &str) -> (String, String) {
    let error = client.simple_query(query).await.expect_err("the change contradicts what there is");
    let error = error.as_db_error().expect("the server says why");
    (error.code().code().to_owned(), error.message().to_owned())
}

async fn partitions_of(client: &Client, table: &str) -> Vec<(i32, String, i32)> {
    let query = format!(
        "SELECT partition, coalesce(low, ''), executor FROM archipel.partitions WHERE tables LIKE '%{table}%'"
    );
    let rows = ask(client, &query).await;
    rows.into_iter()
        .map(|row| (row[0].parse().expect("a number"), row[1].clone(), row[2].parse().expect("a number")))
        .collect()
}

#[tokio::test]
async fn partitions_are_split_merged_and_moved_by_hand_and_stay_so() {
    let mut server = Server::start(&["archipel.executors=2"]);
    let client = connect(&server.url()).await;
    ask(&client, "CREATE TABLE ledger (id integer PRIMARY KEY, amount integer NOT NULL)").await;
    ask(&client, "INSERT INTO ledger SELECT g, g FROM generate_series(1, 1000) g").await;
    for key in [250, 500, 750] {
        ask(&client, &format!("SELECT archipel.split_partition('ledger', '{key}')")).await;
    }
    let parts = partitions_of(&client, "ledger").await;
    assert_eq!(parts.iter().map(|part| part.1.as_str()).collect::<Vec<_>>(), ["", "250", "500", "750"]);
    let (first, second, third) = (parts[0].0, parts[1].0, parts[2].0);

    let state = |(state, message): (String, String)| format!("{state} {message}");
    assert_eq!(
        state(refused(&client, "SELECT archipel.split_partition('ledger', '500')").await),
        format!("22023 partition {third} begins at this key already")
    );
    assert_eq!(
        state(refused(&client, &format!("SELECT archipel.merge_partitions({first}, {third})")).await),
        format!("22023 partitions {first} and {third} are not neighbours of one group")
    );
    assert_eq!(
        state(refused(&client, &format!("SELECT archipel.merge_partitions({first}, {first})")).await),
        format!("22023 partition {first} cannot be merged with itself")
    );
    assert_eq!(
        state(refused(&client, "SELECT archipel.merge_partitions(1, 99999)").await),
        "42704 partition 99999 does not exist"
    );
    assert_eq!(
        state(refused(&client, &format!("SELECT archipel.move_partition({first}, 77)")).await),
        "42704 executor 77 does not exist"
    );
    assert_eq!(
        state(refused(&client, &format!("SELECT archipel.move_partition({first}, island => 9)")).await),
        "42704 island 9 does not exist"
    );
    assert_eq!(partitions_of(&client, "ledger").await, parts, "a refusal changes nothing");

    let other = 1 - parts[1].2;
    ask(&client, &format!("SELECT archipel.move_partition({second}, {other})")).await;
    ask(&client, &format!("SELECT archipel.merge_partitions({third}, {second})")).await;
    let shape = |parts: Vec<(i32, String, i32)>| -> Vec<(String, i32)> {
        parts.into_iter().map(|part| (part.1, part.2)).collect()
    };
    let now = partitions_of(&client, "ledger").await;
    assert_eq!((now.len(), now[1].0, now[1].2), (3, second, other));
    let total = "SELECT count(*), sum(amount), min(id), max(id) FROM ledger";
    assert_eq!(ask(&client, total).await, [["1000", "500500", "1", "1000"]]);
    let told = "SELECT action FROM archipel.repartitions WHERE tables = 'ledger' AND reason = 'asked for'";
    let told: Vec<String> = ask(&client, told).await.into_iter().flatten().collect();
    assert_eq!(told, ["split", "split", "split", "move", "merge"]);

    // Boundaries and homes are logged like data.
    drop(client);
    server.kill();
    server.restart();
    let client = connect(&server.url()).await;
    assert_eq!(shape(partitions_of(&client, "ledger").await), shape(now));
    assert_eq!(ask(&client, total).await, [["1000", "500500", "1", "1000"]]);
}

/// A key that holds now() is foreseen as it will be: nobody claims the partitions of other days.
#[tokio::test]
async fn rows_of_today_leave_the_partitions_of_other_days_alone() {
    let server = Server::start(&["archipel.executors=2", "archipel.adaptive=off"]);
    let client = connect(&server.url()).await;
    ask(
        &client,
        "CREATE TABLE visits (at timestamptz DEFAULT now(), id integer, PRIMARY KEY (at, id));
         INSERT INTO visits SELECT timestamptz '1999-01-01' + g * interval '1 day', g FROM generate_series(1, 1000) g;
         CREATE FUNCTION visit(id integer) RETURNS void LANGUAGE plpgsql AS
         'BEGIN INSERT INTO visits VALUES (now(), visit.id); END'",
    )
    .await;
    ask(&client, "SELECT archipel.split_partition('visits', '2010-01-01')").await;
    let old = "SELECT sum(actions) FROM archipel.partitions WHERE tables = 'visits' AND high IS NOT NULL";
    let before = ask(&client, old).await;
    for id in 1..=20 {
        client.execute("INSERT INTO visits (id) VALUES ($1)", &[&id]).await.expect("a row of today");
        client.execute("SELECT visit($1)", &[&(id + 20)]).await.expect("another");
    }
    assert_eq!(ask(&client, old).await, before);
    assert_eq!(ask(&client, "SELECT count(*) FROM visits WHERE at > '2010-01-01'").await, [["40"]]);
}

/// A load ends spread over the executors, and TPC-C's books balance whatever happens to the
/// ranges its transactions run in.
#[tokio::test]
async fn tpcc_goes_on_while_its_partitions_change() {
    // On a slow machine the monitor would have changed something before the load has ended.
    let server = Server::start(&["archipel.executors=2", "archipel.adaptive=off"]);
    let url = server.url();
    workload(&["load", "tpcc", "--scale", "4", "--url", &url], false);
    let client = connect(&url).await;
    let parts = partitions_of(&client, "warehouse").await;
    assert_eq!(parts.len(), 4, "one partition a warehouse: {parts:?}");
    for executor in 0..2 {
        let homes = parts.iter().filter(|part| part.2 == executor).count();
        assert_eq!(homes, 2, "executor {executor} has its share: {parts:?}");
    }

    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let log = directory.path().join("run.log");
    let run = ["run", "tpcc", "--scale", "4", "--url", &url, "--duration", "4", "--quiet"];
    let mut changes = 0;
    // A slow machine comes to fewer changes in a run, and has more runs.
    for _ in 0..10 {
        let mut running = spawn_workload(&run, &log);
        while running.try_wait().expect("a child can be asked for its status").is_none() {
            let parts = partitions_of(&client, "warehouse").await;
            let at = changes % parts.len();
            let change = match changes % 3 {
                0 if parts.len() > 1 => {
                    let at = at.min(parts.len() - 2);
                    format!("SELECT archipel.merge_partitions({}, {})", parts[at].0, parts[at + 1].0)
                }
                1 => format!("SELECT archipel.move_partition({}, {})", parts[at].0, 1 - parts[at].2),
                _ => format!("SELECT archipel.split_partition('warehouse', '{}')", 2 + changes % 3),
            };
            // A boundary that is there already is refused; nothing else is.
            if let Err(error) = client.simple_query(&change).await {
                assert_eq!(error.code().map(|code| code.code()), Some("22023"), "{change}: {error:?}");
            }
            changes += 1;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let status = running.wait().expect("a child ends");
        assert!(status.success(), "{}", std::fs::read_to_string(&log).unwrap_or_default());
        if changes > 20 {
            break;
        }
    }
    assert!(changes > 20, "only {changes} changes");
    workload(&["check", "tpcc", "--url", &url], false);
}

/// A global index is cut at its own values, and no half of what is cut says that it did what the whole has
/// done.
#[tokio::test]
async fn an_index_is_split_and_what_was_counted_is_shared() {
    let server = Server::start(&["archipel.executors=2", "archipel.adaptive=off"]);
    let client = connect(&server.url()).await;
    ask(&client, "CREATE TABLE paid (id integer PRIMARY KEY, amount integer, note text)").await;
    ask(&client, "CREATE INDEX paid_amount ON paid (amount)").await;
    ask(&client, "CREATE SEQUENCE counted").await;
    for id in 1..=40 {
        ask(&client, &format!("INSERT INTO paid VALUES ({id}, {}, 'n')", id * 10)).await;
    }
    let counted = |name: &str| {
        format!(
            "SELECT sum(actions), max(actions), count(*) FROM archipel.partitions WHERE tables = '{name}'"
        )
    };
    for (relation, group, key) in [("paid_amount", "paid_amount", "200"), ("paid_pkey", "paid", "20")] {
        let before = ask(&client, &counted(group)).await;
        ask(&client, &format!("SELECT archipel.split_partition('{relation}', '{key}')")).await;
        let after = ask(&client, &counted(group)).await;
        assert_eq!((before[0][2].as_str(), after[0][2].as_str()), ("1", "2"), "{relation}");
        assert_eq!(before[0][0], after[0][0], "{relation}: as many as before");
        let number = |text: &str| text.parse::<u64>().expect("a number");
        assert!(number(&after[0][1]) <= number(&before[0][1]).div_ceil(2), "{relation}: {after:?}");
    }
    assert_eq!(ask(&client, "SELECT count(*) FROM paid WHERE amount BETWEEN 150 AND 250").await, [["11"]]);
    let (state, message) = refused(&client, "SELECT archipel.split_partition('counted', '1')").await;
    assert_eq!((state.as_str(), message.as_str()), ("42809", "\"counted\" is not a table or index"));
}
