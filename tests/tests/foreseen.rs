//! What is foreseen of TPC-C's five transactions: EXPLAIN CALL in its formats, and how often the
//! partitions that a call was predicted to touch were those it touched. The same of statements over
//! arrays.

use std::collections::BTreeSet;

use archipel_tests::server::{Server, ask, connect, workload};
use serde_json::Value;
use tokio_postgres::Client;

/// A call of each, and how it is routed.
const CALLS: [(&str, &str, &str); 5] = [
    (
        "new_order(1, 1, 1, '{1,2}', '{1,1}', '{1,1}')",
        "multi-partition",
        "p_w_id, each of p_supply_w_ids[1:array_length(p_item_ids, 1)]",
    ),
    ("payment(1, 1, 1, 1, 1, NULL, 1.00)", "multi-partition", "p_w_id, p_c_w_id"),
    ("order_status(1, 1, 1, NULL)", "single-partition", "p_w_id"),
    ("delivery(1, 1)", "single-partition", "p_w_id"),
    ("stock_level(1, 1, 10)", "single-partition", "p_w_id"),
];
/// Of each, so that a share says something; and runs to come to them on a slow machine.
const CALLS_MIN: f64 = 200.0;
const RUNS_MAX: usize = 10;

async fn explained(client: &Client, format: &str, call: &str) -> String {
    let rows = ask(client, &format!("EXPLAIN (FORMAT {format}) CALL {call}")).await;
    rows.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Edges between actions, as `from -> to`.
fn edges_of_drawing(drawing: &str) -> BTreeSet<String> {
    let actions = |line: &&str| line.starts_with('a') && line.contains(" -> a");
    let edge = |line: &str| line.split([';', '[']).next().unwrap_or_default().trim().to_owned();
    drawing.lines().map(str::trim).filter(actions).map(edge).collect()
}

fn edges_of_document(actions: &[Value]) -> BTreeSet<String> {
    let mut edges = BTreeSet::new();
    for action in actions {
        for before in action["Depends On"].as_array().expect("a list") {
            edges.insert(format!("a{before} -> a{}", action["Action"]));
        }
    }
    edges
}

#[tokio::test]
async fn calls_of_tpcc_touch_the_partitions_they_were_predicted_to() {
    let server = Server::start(&["archipel.executors=2"]);
    let url = server.url();
    workload(&["load", "tpcc", "--scale", "2", "--url", &url], false);
    let client = connect(&url).await;
    for (call, class, routing) in CALLS {
        let name = call.split('(').next().unwrap_or_default();
        let text = explained(&client, "TEXT", call).await;
        assert!(text.contains(&format!("Routing: {routing}\n")), "{text}");
        assert!(text.ends_with("Partitions with these arguments: 1"), "{text}");
        let document: Value = serde_json::from_str(&explained(&client, "JSON", call).await).expect("JSON");
        let plan = &document[0]["Call"];
        assert_eq!((plan["Class"].as_str(), plan["Routing"].as_str()), (Some(class), Some(routing)));
        let signature = plan["Routine"].as_str().expect("its signature");
        assert!(signature.starts_with(&format!("{name}(")), "{signature}");
        let actions = plan["Actions"].as_array().expect("a list");
        let drawing = explained(&client, "DOT", call).await;
        assert!(drawing.starts_with("digraph"), "{drawing}");
        for action in actions {
            let table = action["Table"].as_str().expect("a name");
            assert!(text.contains(table) && drawing.contains(table), "{name} touches {table}:\n{drawing}");
        }
        assert!(actions.len() > 1, "{name}: {document:#}");
        assert_eq!(edges_of_drawing(&drawing), edges_of_document(actions), "{name}:\n{drawing}");
    }
    let counts = "SELECT name, calls, mispredicted FROM archipel.routines WHERE calls > 0";
    let mut shares = Vec::new();
    for _ in 0..RUNS_MAX {
        workload(&["run", "tpcc", "--scale", "2", "--url", &url, "--duration", "3", "--quiet"], false);
        let number = |text: &String| text.parse::<f64>().expect("a number");
        let rows = ask(&client, counts).await;
        shares = rows.iter().map(|row| (row[0].clone(), number(&row[1]), number(&row[2]))).collect();
        if shares.len() == CALLS.len() && shares.iter().all(|(_, calls, _)| *calls >= CALLS_MIN) {
            break;
        }
    }
    assert_eq!(shares.len(), CALLS.len(), "{shares:?}");
    for (name, calls, mispredicted) in &shares {
        assert!(*calls >= CALLS_MIN, "only {calls} calls of {name}");
        assert!(mispredicted / calls <= 0.01, "{name}: {mispredicted} of {calls} were not foreseen");
    }
}

/// Changes of many rows at once, as applications send them: an array for each column.
const BULK: &str = "
    CREATE FUNCTION put(ids int[], names text[]) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE n bigint;
    BEGIN
      INSERT INTO item SELECT * FROM unnest(ids, names);
      GET DIAGNOSTICS n = ROW_COUNT;
      RETURN n;
    END $$;
    CREATE FUNCTION rename(ids int[], names text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
    BEGIN
      RETURN QUERY UPDATE item SET name = u.name FROM unnest(ids, names) AS u(id, name)
        WHERE item.id = u.id RETURNING item.name;
    END $$;
    CREATE FUNCTION drop_all(ids int[]) RETURNS int LANGUAGE sql AS $$
      WITH gone AS (DELETE FROM item USING unnest(ids) AS u(id) WHERE item.id = u.id RETURNING 1)
      SELECT count(*)::int FROM gone
    $$";

#[tokio::test]
async fn statements_over_arrays_touch_the_partitions_of_their_elements() {
    let server = Server::start(&["archipel.executors=2"]);
    let client = connect(&server.url()).await;
    ask(&client, "CREATE TABLE item (id int PRIMARY KEY, name text)").await;
    ask(&client, "INSERT INTO item SELECT g, 'old' FROM generate_series(0, 999) g").await;
    for key in [250, 500, 750] {
        ask(&client, &format!("SELECT archipel.split_partition('item', '{key}')")).await;
    }
    client.batch_execute(BULK).await.expect("deployed");
    let routing = "SELECT name, routing FROM archipel.routines ORDER BY name";
    let each = |name: &str| [name.to_owned(), "each of ids".to_owned()];
    assert_eq!(ask(&client, routing).await, ["drop_all", "put", "rename"].map(each));
    for round in 0..20 {
        // Two of the four partitions, others each time.
        let (one, other) = (round * 7 % 250, 250 + round * 37 % 750);
        let (new, newer) = (1_000 + 2 * round, 1_001 + 2 * round);
        let rows =
            ask(&client, &format!("SELECT rename('{{{one},{other}}}', '{{x{round},y{round}}}')")).await;
        assert_eq!(rows, [[format!("x{round}")], [format!("y{round}")]]);
        let put = format!("SELECT put('{{{new},{newer},-{new}}}', '{{a,b}}')");
        assert_eq!(ask(&client, &put).await, [["3"]]);
        assert_eq!(ask(&client, &format!("SELECT drop_all('{{{new},-{new}}}')")).await, [["2"]]);
    }
    let counts = "SELECT name, mispredicted FROM archipel.routines WHERE calls > 0 ORDER BY name";
    assert_eq!(ask(&client, counts).await, [["drop_all", "0"], ["put", "0"], ["rename", "0"]]);
    assert_eq!(ask(&client, "SELECT count(*) FROM item WHERE id < 1000").await, [["1000"]]);
    assert_eq!(ask(&client, "SELECT count(*) FROM item WHERE name = 'b'").await, [["20"]]);
}
