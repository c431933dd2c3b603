//! The workloads' procedures compile, classify well and run.

mod common;

use archipel_procedures::{Class, explain, unrouted};
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
