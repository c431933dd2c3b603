//! EXPLAIN's documents, as tools read them: every kind of statement answers one document in PostgreSQL's
//! structure.

mod common;

use common::Server;
use serde_json::Value;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

/// The only row of an answer.
async fn only(client: &Client, text: &str) -> String {
    let told = client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let rows: Vec<String> = told
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
        .collect();
    assert_eq!(rows.len(), 1, "{text} answers {rows:?}");
    rows.concat()
}

async fn document(client: &Client, options: &str, statement: &str) -> Value {
    let text = only(client, &format!("EXPLAIN (FORMAT JSON{options}) {statement}")).await;
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Checks what every node has, and answers how many there are.
fn checked(plan: &Value, top: bool) -> usize {
    assert!(plan["Node Type"].is_string(), "{plan:#}");
    assert_eq!((&plan["Parallel Aware"], &plan["Async Capable"]), (&Value::Bool(false), &Value::Bool(false)));
    let relationship = plan["Parent Relationship"].as_str();
    match relationship {
        None => assert!(top, "{plan:#}"),
        Some(known) => {
            assert!(["Outer", "Inner", "Member", "InitPlan", "SubPlan"].contains(&known), "{plan:#}")
        }
    }
    assert_eq!(plan["Subplan Name"].is_string(), matches!(relationship, Some("InitPlan" | "SubPlan")));
    assert!(!plan["Relation Name"].is_string() || plan["Alias"].is_string(), "{plan:#}");
    let below = plan["Plans"].as_array().map_or(&[][..], |plans| &plans[..]);
    1 + below.iter().map(|plan| checked(plan, false)).sum::<usize>()
}

const STATEMENTS: [&str; 17] = [
    "SELECT 1",
    "SELECT b, count(*) FROM one x GROUP BY b ORDER BY 2 DESC LIMIT 3",
    "SELECT * FROM one x JOIN two y ON y.one_id = x.id JOIN three z ON z.two_id = y.id WHERE x.b > 1",
    "SELECT * FROM one x LEFT JOIN two y ON y.one_id = x.id AND y.b = x.b",
    "SELECT * FROM one x FULL JOIN two y ON y.b = x.b",
    "SELECT (SELECT max(b) FROM two y WHERE y.one_id = x.id), (SELECT 1) FROM one x WHERE EXISTS (SELECT 1 FROM two)",
    "WITH c AS MATERIALIZED (SELECT * FROM one), d AS (DELETE FROM two RETURNING *) SELECT * FROM c, d",
    "WITH RECURSIVE r AS (SELECT 1 AS a UNION SELECT a + 1 FROM r WHERE a < 9) SELECT * FROM r",
    "SELECT id FROM one UNION SELECT b FROM two EXCEPT ALL SELECT 3",
    "SELECT row_number() OVER (ORDER BY b), generate_series(1, b) FROM one",
    "SELECT * FROM parted p WHERE p.b = 1",
    "INSERT INTO one VALUES (1, 2), (3, 4) ON CONFLICT (id) DO UPDATE SET b = excluded.b WHERE one.b > 1 RETURNING *",
    "UPDATE one x SET b = y.b FROM two y WHERE y.one_id = x.id RETURNING x.id, y.id",
    "DELETE FROM parted p USING one x WHERE x.id = p.id",
    "MERGE INTO one x USING two y ON x.id = y.one_id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (9, 9)",
    "DECLARE told CURSOR FOR SELECT * FROM one",
    "CREATE TABLE made AS SELECT * FROM one",
];

async fn tables(client: &Client) {
    client
        .batch_execute(
            "CREATE TABLE one (id int PRIMARY KEY, b int);
             CREATE TABLE two (id int PRIMARY KEY, one_id int, b int);
             CREATE INDEX two_one ON two (one_id);
             CREATE TABLE three (id int PRIMARY KEY, two_id int, c text);
             CREATE TABLE parted (id int, b int) PARTITION BY RANGE (id);
             CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
             CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (20)",
        )
        .await
        .unwrap();
}

#[tokio::test]
async fn every_statement_is_told_as_one_document() {
    let server = Server::start(&[]);
    let client = server.client().await;
    tables(&client).await;
    for statement in STATEMENTS {
        for options in ["", ", VERBOSE", ", COSTS OFF", ", BUFFERS, SETTINGS, SUMMARY"] {
            let told = document(&client, options, statement).await;
            let whole = &told[0];
            let nodes = checked(&whole["Plan"], true);
            assert!(nodes > 0);
            assert_eq!(whole["Plan"]["Total Cost"].is_number(), options != ", COSTS OFF", "{statement}");
            assert_eq!(whole["Planning Time"].is_number(), options.contains("SUMMARY"), "{statement}");
            assert_eq!(whole["Settings"].is_object(), options.contains("SETTINGS"), "{statement}");
        }
        let xml = only(&client, &format!("EXPLAIN (VERBOSE, FORMAT XML) {statement}")).await;
        assert!(xml.starts_with(
            "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n    <Plan>\n"
        ));
        assert!(xml.ends_with("  </Query>\n</explain>"), "{xml}");
        assert_eq!(xml.matches("<Plan>").count(), xml.matches("</Plan>").count(), "{xml}");
        let yaml = only(&client, &format!("EXPLAIN (VERBOSE, FORMAT YAML) {statement}")).await;
        assert!(yaml.starts_with("- Plan: \n    Node Type: \""), "{yaml}");
        client.batch_execute(&format!("EXPLAIN VERBOSE {statement}")).await.unwrap();
    }
}

#[tokio::test]
async fn joins_are_told_two_by_two() {
    let server = Server::start(&[]);
    let client = server.client().await;
    tables(&client).await;
    let sql = "SELECT y.b, z.c FROM one x JOIN two y ON y.b = x.b JOIN three z ON z.two_id = y.b";
    let told = document(&client, ", VERBOSE", sql).await;
    let plan = &told[0]["Plan"];
    assert_eq!((&plan["Node Type"], &plan["Join Type"]), (&"Hash Join".into(), &"Inner".into()), "{plan:#}");
    assert!(plan["Hash Cond"].is_string(), "{plan:#}");
    assert_eq!(plan["Output"], Value::from(vec!["y.b", "z.c"]), "{plan:#}");
    let sides = plan["Plans"].as_array().unwrap();
    let relationships: Vec<_> = sides.iter().map(|side| side["Parent Relationship"].as_str()).collect();
    assert_eq!(relationships, [Some("Outer"), Some("Inner")]);
    assert_eq!(sides[1]["Node Type"], "Hash", "{plan:#}");
    assert_eq!(sides[0]["Plans"].as_array().map(Vec::len), Some(2), "{plan:#}");
}

#[tokio::test]
async fn a_change_of_partitions_names_them() {
    let server = Server::start(&[]);
    let client = server.client().await;
    tables(&client).await;
    let told = document(&client, ", VERBOSE, COSTS OFF", "UPDATE parted x SET b = 1 WHERE b > 2").await;
    let plan = &told[0]["Plan"];
    assert_eq!((&plan["Relation Name"], &plan["Alias"]), (&"parted".into(), &"x".into()), "{plan:#}");
    let targets = plan["Target Tables"].as_array().unwrap();
    let names: Vec<_> = targets.iter().map(|table| table["Relation Name"].as_str().unwrap()).collect();
    assert_eq!(names, ["parted_1", "parted_2"], "{plan:#}");
    assert_eq!(plan["Plans"][0]["Node Type"], "Append", "{plan:#}");
    assert_eq!(plan["Plans"][0]["Plans"][1]["Parent Relationship"], "Member", "{plan:#}");
}

#[tokio::test]
async fn verbose_text_has_output_and_schemas() {
    let server = Server::start(&[]);
    let client = server.client().await;
    tables(&client).await;
    let told = client.simple_query("EXPLAIN VERBOSE SELECT x.b + 1 FROM one x WHERE x.id = 3").await.unwrap();
    let lines: Vec<&str> = told
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        })
        .collect();
    let expected =
        ["Index Scan using one_pkey on public.one x", "  Output: (b + 1)", "  Index Cond: (x.id = 3)"];
    assert_eq!(lines[..3], expected, "{lines:?}");
}

#[tokio::test]
async fn a_run_and_settings_are_told() {
    let server = Server::start(&[]);
    let client = server.client().await;
    tables(&client).await;
    client.batch_execute("INSERT INTO one VALUES (1, 1), (2, 2); SET work_mem = '9MB'").await.unwrap();
    let told = document(&client, ", ANALYZE, SETTINGS", "SELECT * FROM one").await;
    let whole = &told[0];
    assert_eq!((&whole["Plan"]["Actual Rows"], &whole["Plan"]["Actual Loops"]), (&2.into(), &1.into()));
    assert!(whole["Execution Time"].is_number() && whole["Triggers"].is_array(), "{whole:#}");
    assert_eq!(whole["Settings"]["work_mem"], "9MB", "{whole:#}");
    let told = document(&client, ", ANALYZE", "CREATE TABLE made AS SELECT * FROM one").await;
    assert_eq!(told[0]["Plan"]["Actual Rows"], 2);
    assert_eq!(only(&client, "SELECT count(*) FROM made").await, "2");
}

#[tokio::test]
async fn what_has_no_plan_says_so_in_each_format() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client
        .batch_execute("CREATE PROCEDURE called(n int) LANGUAGE plpgsql AS $$ BEGIN PERFORM n; END $$")
        .await
        .unwrap();
    for (options, told) in [
        ("COSTS OFF", "Utility statements have no plan structure"),
        ("FORMAT JSON", "[\n  \"Utility Statement\"\n]"),
        ("FORMAT YAML", "- \"Utility Statement\""),
        (
            "FORMAT XML",
            "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Utility-Statement />\n</explain>",
        ),
    ] {
        assert_eq!(only(&client, &format!("EXPLAIN ({options}) CREATE TABLE made (i int)")).await, told);
    }
    let called = document(&client, ", ANALYZE", "CALL called(1)").await;
    assert!(
        called[0]["Call"]["Routine"].is_string() && called[0]["Execution Time"].is_number(),
        "{called:#}"
    );
    let yaml = only(&client, "EXPLAIN (FORMAT YAML) CALL called(1)").await;
    assert!(yaml.starts_with("- Call: "), "{yaml}");
    let error = client.batch_execute("EXPLAIN (FORMAT DOT) SELECT 1").await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED));
    assert_eq!(error.as_db_error().unwrap().message(), "EXPLAIN (FORMAT DOT) of a query is not supported");
}

/// What the nodes of a plan did, from the top: what they are, what they are on, rows and loops.
fn counted(plan: &Value, found: &mut Vec<(String, u64, u64)>) {
    let what = plan["Node Type"].as_str().unwrap();
    let on = plan["Alias"].as_str().map_or(String::new(), |alias| format!(" {alias}"));
    let figure = |name: &str| plan[name].as_u64().unwrap_or_else(|| panic!("{name}: {plan:#}"));
    found.push((format!("{what}{on}"), figure("Actual Rows"), figure("Actual Loops")));
    for below in plan["Plans"].as_array().map_or(&[][..], |plans| &plans[..]) {
        counted(below, found);
    }
}

async fn nodes(client: &Client, statement: &str) -> Vec<(String, u64, u64)> {
    let told = document(client, ", ANALYZE", statement).await;
    let mut found = Vec::new();
    counted(&told[0]["Plan"], &mut found);
    found
}

fn node<'n>(nodes: &'n [(String, u64, u64)], name: &str) -> &'n (String, u64, u64) {
    nodes.iter().find(|(what, ..)| what.contains(name)).unwrap_or_else(|| panic!("{name}: {nodes:?}"))
}

/// Ten groups of ten rows; three rows of `two` for each of `one`.
async fn filled(client: &Client) {
    tables(client).await;
    client
        .batch_execute(
            "INSERT INTO one SELECT g, g % 10 FROM generate_series(1, 100) g;
             INSERT INTO two SELECT g, (g + 2) / 3, g % 5 FROM generate_series(1, 300) g;
             INSERT INTO parted SELECT g, g FROM generate_series(1, 15) g",
        )
        .await
        .unwrap();
}

#[tokio::test]
async fn analyze_counts_what_each_node_does() {
    let server = Server::start(&[]);
    let client = server.client().await;
    filled(&client).await;

    let scan = nodes(&client, "SELECT * FROM one x WHERE b > 5").await;
    assert_eq!(scan, [("Seq Scan x".to_owned(), 40, 1)]);

    let grouped =
        nodes(&client, "SELECT b, count(*) FROM one x WHERE id <= 40 GROUP BY b ORDER BY b LIMIT 3").await;
    let told: Vec<_> = grouped.iter().map(|(what, rows, loops)| (what.as_str(), *rows, *loops)).collect();
    let expected = [("Limit", 3, 1), ("Sort", 3, 1), ("Aggregate", 10, 1), ("Index Scan x", 40, 1)];
    assert_eq!(told, expected);

    let having = nodes(&client, "SELECT b FROM one x GROUP BY b HAVING min(id) > 7").await;
    assert_eq!(node(&having, "Aggregate").1, 3, "{having:?}");
    assert_eq!(node(&having, "Scan x").1, 100, "{having:?}");

    let limited = nodes(&client, "SELECT * FROM one x LIMIT 4").await;
    assert_eq!(node(&limited, "Scan x").1, 4, "{limited:?}");

    let joined = nodes(&client, "SELECT * FROM one x JOIN two y ON y.one_id = x.id WHERE x.id <= 5").await;
    assert_eq!(joined[0].1, 15, "{joined:?}");
    assert_eq!((node(&joined, "Scan x").1, node(&joined, "Scan x").2), (5, 1), "{joined:?}");
    match node(&joined, "Scan y") {
        (_, rows, 1) => assert!([15, 300].contains(rows), "{joined:?}"),
        (_, rows, loops) => assert_eq!((*rows, *loops), (3, 5), "{joined:?}"),
    }

    let three = "SELECT * FROM one x JOIN two y ON y.one_id = x.id JOIN one z ON z.id = y.b WHERE x.id <= 5";
    let three = nodes(&client, three).await;
    let joins: Vec<u64> = three
        .iter()
        .filter(|(what, ..)| what.ends_with("Loop") || what.ends_with("Join"))
        .map(|(_, rows, loops)| rows * loops)
        .collect();
    assert_eq!(joins, [12, 15], "{three:?}");

    let nothing =
        nodes(&client, "SELECT * FROM one x LEFT JOIN two y ON y.one_id = x.id WHERE x.id < 0").await;
    assert_eq!((nothing[0].1, nothing[0].2), (0, 1), "{nothing:?}");

    let asked = "SELECT (SELECT count(*) FROM two y WHERE y.one_id = x.id) FROM one x WHERE x.id <= 4";
    let asked = nodes(&client, asked).await;
    assert_eq!((node(&asked, "Aggregate").1, node(&asked, "Aggregate").2), (1, 4), "{asked:?}");
    assert_eq!((node(&asked, "Scan y").1, node(&asked, "Scan y").2), (3, 4), "{asked:?}");

    let with = "WITH c AS MATERIALIZED (SELECT * FROM one x WHERE b = 1) SELECT * FROM c WHERE id > 50";
    let with = nodes(&client, with).await;
    assert_eq!(node(&with, "CTE Scan").1, 5, "{with:?}");
    assert_eq!(node(&with, "Seq Scan x").1, 10, "{with:?}");

    let members = nodes(&client, "SELECT * FROM parted p WHERE b > 7").await;
    assert_eq!(node(&members, "Append").1, 8, "{members:?}");
    let of_members: Vec<u64> =
        members.iter().filter(|(what, ..)| what.contains("Scan")).map(|found| found.1).collect();
    assert_eq!(of_members, [2, 6], "{members:?}");

    let changed = nodes(&client, "UPDATE one x SET b = b + 1 WHERE id <= 7").await;
    assert_eq!((changed[0].1, node(&changed, "Scan x").1), (0, 7), "{changed:?}");
    let changed =
        nodes(&client, "DELETE FROM two y USING one x WHERE x.id = y.one_id AND x.id <= 2 RETURNING y.id")
            .await;
    assert_eq!((changed[0].1, node(&changed, "Scan x").1), (6, 2), "{changed:?}");
}

#[tokio::test]
async fn analyze_tells_what_nodes_do_in_text() {
    let server = Server::start(&[]);
    let client = server.client().await;
    filled(&client).await;
    let told = async |options: &str, statement: &str| -> Vec<String> {
        let told = client.simple_query(&format!("EXPLAIN ({options}) {statement}")).await.unwrap();
        let line = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        told.iter().filter_map(line).collect()
    };
    let lines = told("ANALYZE, TIMING OFF", "SELECT * FROM one x WHERE b > 5").await;
    assert!(lines.iter().any(|line| line == "Seq Scan on one x (actual rows=40 loops=1)"), "{lines:?}");
    for name in ["Planning Time: ", "Execution Time: "] {
        assert!(lines.iter().any(|line| line.starts_with(name)), "{lines:?}");
    }
    let lines = told("ANALYZE", "SELECT * FROM one x WHERE id = 3").await;
    let scan = lines.iter().find(|line| line.starts_with("Index Scan using one_pkey on one x (actual time="));
    assert!(scan.is_some_and(|line| line.ends_with(" rows=1 loops=1)")), "{lines:?}");
    let lines = told("ANALYZE, TIMING OFF", "UPDATE one x SET b = 0 WHERE id <= 3").await;
    assert!(
        lines.iter().any(|line| line.starts_with("Update on one x (actual rows=0 loops=1)")),
        "{lines:?}"
    );
    // What is not run is not counted.
    let lines = told("COSTS OFF", "SELECT * FROM one x WHERE b > 5").await;
    assert!(lines.iter().all(|line| !line.contains("actual")), "{lines:?}");
}
