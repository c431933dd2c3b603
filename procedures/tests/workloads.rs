//! The workloads' procedures compile, classify well and run.

mod common;

use archipel_procedures::{Class, explain, flow, unrouted};
use common::Database;

fn load(name: &str) -> Database {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/workloads/");
    let read = |file: &str| {
        let path = format!("{root}{name}/{file}.sql");
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
    };
    let mut db = Database::with(&read("schema"));
    db.distribute(&read("distribution"));
    db.script(&read("procedures"));
    db
}

#[track_caller]
fn class(db: &Database, routine: &str, class: Class, routing: &str) {
    let c = db.classification(routine);
    let plan = explain(&db.program(routine)).join("\n");
    assert_eq!((c.class, c.routing.as_str()), (class, routing), "{plan}");
    assert_eq!(db.program(routine).failures, [], "{routine}");
}

#[test]
fn tpcc_is_routed_by_warehouse() {
    let db = load("tpcc");
    class(
        &db,
        "new_order",
        Class::MultiPartition,
        "p_w_id, each of p_supply_w_ids[1:array_length(p_item_ids, 1)]",
    );
    class(&db, "payment", Class::MultiPartition, "p_w_id, p_c_w_id");
    class(&db, "order_status", Class::SinglePartition, "p_w_id");
    class(&db, "delivery", Class::SinglePartition, "p_w_id");
    class(&db, "stock_level", Class::SinglePartition, "p_w_id");
    for routine in ["new_order", "payment", "order_status", "delivery", "stock_level"] {
        assert_eq!(unrouted(&db.program(routine)), None, "{routine}");
    }
}

#[test]
fn an_order_foresees_its_rows() {
    let db = load("tpcc");
    let plan = explain(&db.program("new_order")).join("\n");
    let line = "  Fetched ahead: for each i: item, stock; warehouse, district, customer\n";
    assert!(plan.contains(line), "{plan}");
    // One row at once: there is nothing to wait for together.
    assert!(!explain(&load("tatp").program("get_subscriber_data")).join("\n").contains("Fetched ahead"));
}

#[test]
fn tatp_is_routed_by_subscriber() {
    let db = load("tatp");
    for routine in ["get_subscriber_data", "get_new_destination", "get_access_data", "update_subscriber_data"]
    {
        class(&db, routine, Class::SinglePartition, "p_s_id");
    }
    for routine in ["update_location", "insert_call_forwarding", "delete_call_forwarding"] {
        let c = db.classification(routine);
        assert_eq!(c.class, Class::MultiPartition, "{routine}");
        assert!(c.routing.contains("p_sub_nbr"), "{routine}: {}", c.routing);
    }
}

#[test]
fn stock_level_joins_by_key() {
    let db = load("tpcc");
    let plan = db
        .plan(
            "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = 1 AND s_i_id = ol_i_id
              WHERE ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id >= 10 AND ol_o_id < 30 AND s_quantity < 15",
        )
        .expect("a plan")
        .join("\n");
    assert!(!plan.contains("Hash"), "{plan}");
    assert!(plan.contains("stock_pkey"), "{plan}");
}

/// Actions of a routine: what they do to which table, and what they wait for.
fn graph(db: &Database, routine: &str) -> Vec<String> {
    flow::rows(&db.program(routine))
        .iter()
        .map(|row| format!("{} {} {} after {:?}", row.number, row.kind, row.table, row.depends_on))
        .collect()
}

#[test]
fn flow_graphs_say_what_waits_for_what() {
    let db = load("tpcc");
    assert_eq!(
        graph(&db, "new_order"),
        [
            "1 read warehouse after []",
            "2 write district after []",
            "3 read customer after []",
            "4 write orders after [2]",
            "5 write new_order after [2]",
            "6 read item after []",
            "7 write stock after []",
            "8 write order_line after [2, 6, 7]",
        ]
    );
    let rows = flow::rows(&db.program("new_order"));
    assert_eq!(rows[6].size.as_deref(), Some("array_length(p_item_ids, 1)"));
    assert_eq!((rows[6].loops.len(), rows[0].loops.len()), (1, 0));
    assert_eq!(rows.iter().map(|row| row.point).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 0, 0, 1]);
    let drawing = flow::dot(&db.program("new_order")).join("\n");
    assert!(drawing.contains("a2 -> a8;") && !drawing.contains("a1 -> a2"), "{drawing}");
}

#[test]
fn flow_graphs_follow_values_through_variables_branches_and_rounds() {
    let mut db = Database::with(
        "CREATE TABLE a (id int PRIMARY KEY, n int); CREATE TABLE b (id int PRIMARY KEY, n int);",
    );
    db.script(
        "CREATE PROCEDURE chain(k int) LANGUAGE plpgsql AS $$
         DECLARE x int; y int := 1; z int;
         BEGIN
             SELECT n INTO x FROM a WHERE id = k;
             y := x + 1;
             IF y > 3 THEN
                 UPDATE b SET n = 0 WHERE id = k;
             END IF;
             FOR i IN 1 .. 3 LOOP
                 UPDATE a SET n = z WHERE id = k + 1;
                 SELECT n INTO z FROM b WHERE id = k + i;
             END LOOP;
         END $$",
    );
    let expected = [
        "1 read a after []",
        // By the condition.
        "2 write b after [1]",
        // The same table as the first, and what the last round has read.
        "3 write a after [1, 4]",
        "4 read b after [2]",
    ];
    assert_eq!(graph(&db, "chain"), expected);
}

#[test]
fn the_other_workloads_are_routed_by_their_keys() {
    let db = load("smallbank");
    for routine in ["balance", "deposit_checking", "transact_savings", "write_check"] {
        class(&db, routine, Class::SinglePartition, "p_custid");
    }
    class(&db, "send_payment", Class::MultiPartition, "p_to, p_from");
    let db = load("voter");
    class(&db, "vote", Class::SinglePartition, "p_phone_number");
    class(&db, "votes_of", Class::SinglePartition, "p_phone_number");
    let db = load("ycsb");
    for routine in ["ycsb_read", "ycsb_update", "ycsb_insert", "ycsb_read_modify_write"] {
        class(&db, routine, Class::SinglePartition, "p_key");
    }
    let db = load("reservation");
    class(&db, "find_open_seats", Class::SinglePartition, "p_flight");
    for routine in ["new_reservation", "delete_reservation"] {
        class(&db, routine, Class::MultiPartition, "p_flight, p_customer");
    }
}
