//! Routing: what a routine's plan says of the partitions a call reaches. Every expectation is
//! also run, so that a wrong prediction would show as a restart and a wrong answer as a failure.

mod common;

use archipel_procedures::{Class, explain, unrouted};
use archipel_sql::datum::Datum;
use common::{Database, integers};

fn database() -> Database {
    let mut db = Database::with(
        "CREATE TABLE wh (w integer PRIMARY KEY, n integer NOT NULL DEFAULT 0);
         CREATE TABLE stock (w integer, i integer, q integer NOT NULL, PRIMARY KEY (w, i), FOREIGN KEY (w) REFERENCES wh (w));
         CREATE TABLE region (name text PRIMARY KEY, w integer NOT NULL);
         CREATE TABLE other (o integer PRIMARY KEY, n integer);",
    );
    db.distribute("SELECT create_reference_table('region');");
    db.script(
        "INSERT INTO wh SELECT g, 0 FROM generate_series(1, 40) g;
         INSERT INTO stock SELECT g, 1, 100 FROM generate_series(1, 40) g;
         INSERT INTO other SELECT g, 0 FROM generate_series(1, 40) g;
         INSERT INTO region VALUES ('north', 3), ('south', 37);",
    );
    db.split("wh", &[11, 21, 31]);
    db.split("other", &[11, 21, 31]);
    db
}

/// Deploys a procedure and answers class and routing.
#[track_caller]
fn deploy(db: &mut Database, definition: &str) -> (Class, String, String) {
    db.script(definition);
    let name = definition.split("PROCEDURE ").nth(1).and_then(|rest| rest.split('(').next()).expect("a name");
    let c = db.classification(name.trim());
    (c.class, c.routing, c.reason)
}

#[test]
fn the_argument_that_routes_may_stand_anywhere() {
    let mut db = database();
    let (class, routing, _) = deploy(
        &mut db,
        "CREATE PROCEDURE bump(note text, amount integer, warehouse integer) LANGUAGE plpgsql AS $$
         DECLARE key integer := warehouse;
         BEGIN
           UPDATE wh SET n = n + amount WHERE w = key;
           UPDATE stock SET q = q - amount WHERE w = warehouse AND i = 1;
         END $$;",
    );
    assert_eq!((class, routing.as_str()), (Class::SinglePartition, "warehouse"));
    let answer = db.call("bump", vec![Datum::text("x"), Datum::Int4(5), Datum::Int4(7)]).unwrap();
    assert_eq!((answer.outcome.partitions, answer.outcome.restarts), (1, 0));
    assert_eq!(db.lines("SELECT w FROM wh WHERE n = 5"), ["7"]);
}

#[test]
fn keys_are_computed() {
    let mut db = database();
    let (class, routing, _) = deploy(
        &mut db,
        "CREATE PROCEDURE computed(a integer, b integer) LANGUAGE plpgsql AS $$
         DECLARE k integer;
         BEGIN
           k := a * 10 + b;
           UPDATE wh SET n = n + 1 WHERE w = k + 1;
         END $$;",
    );
    assert_eq!((class, routing.as_str()), (Class::SinglePartition, "((a * 10) + b) + 1"));
    let answer = db.call("computed", vec![Datum::Int4(2), Datum::Int4(3)]).unwrap();
    assert_eq!(answer.outcome.restarts, 0);
    assert_eq!(db.lines("SELECT w FROM wh WHERE n = 1"), ["24"]);
}

#[test]
fn branches_give_alternatives_and_a_reassigned_argument_is_followed() {
    let mut db = database();
    let (class, routing, _) = deploy(
        &mut db,
        "CREATE PROCEDURE choose(a integer, b integer) LANGUAGE plpgsql AS $$
         DECLARE k integer;
         BEGIN
           IF a > 10 THEN k := b; ELSE k := a; END IF;
           UPDATE wh SET n = n + 1 WHERE w = k;
           a := b;
           UPDATE wh SET n = n + 1 WHERE w = a;
         END $$;",
    );
    assert_eq!((class, routing.as_str()), (Class::MultiPartition, "one of (b, a), b"));
    db.call("choose", vec![Datum::Int4(2), Datum::Int4(30)]).unwrap();
    assert_eq!(db.lines("SELECT w, n FROM wh WHERE n > 0 ORDER BY w"), ["2|1", "30|1"]);
}

#[test]
fn elements_of_arrays_route_by_the_array() {
    let mut db = database();
    let (class, routing, _) = deploy(
        &mut db,
        "CREATE PROCEDURE order_lines(ws integer[], amount integer) LANGUAGE plpgsql AS $$
         DECLARE x integer;
         BEGIN
           FOR i IN 1 .. array_length(ws, 1) LOOP
             x := ws[i];
             UPDATE stock SET q = q - amount WHERE w = x AND stock.i = 1;
           END LOOP;
         END $$;",
    );
    assert_eq!((class, routing.as_str()), (Class::MultiPartition, "each of ws"));
    let answer = db.call("order_lines", vec![integers(&[3, 33, 3]), Datum::Int4(1)]).unwrap();
    assert_eq!(answer.outcome.restarts, 0);
    assert_eq!(db.lines("SELECT w, q FROM stock WHERE q < 100 ORDER BY w"), ["3|98", "33|99"]);
    let (_, routing, _) = deploy(
        &mut db,
        "CREATE PROCEDURE some_lines(ws integer[], c integer) LANGUAGE plpgsql AS $$
         DECLARE x integer;
         BEGIN
           FOR j IN 2 .. c LOOP UPDATE stock SET q = 0 WHERE w = ws[j] AND i = 1; END LOOP;
           FOREACH x IN ARRAY ws LOOP UPDATE wh SET n = n + 1 WHERE w = x; END LOOP;
           FOR x IN 1 .. 2 LOOP UPDATE wh SET n = n + 1 WHERE w = x; END LOOP;
         END $$;",
    );
    assert_eq!(routing, "each of ws[2:c], each of ws, 1 .. 2");
    let answer = db.call("some_lines", vec![integers(&[5, 35, 36]), Datum::Int4(2)]).unwrap();
    assert_eq!(answer.outcome.restarts, 0);
    assert_eq!(db.lines("SELECT w FROM stock WHERE q = 0"), ["35"]);
}

#[test]
fn a_key_read_from_a_reference_table_is_read_before() {
    let mut db = database();
    let (class, routing, _) = deploy(
        &mut db,
        "CREATE PROCEDURE by_region(r text) LANGUAGE plpgsql AS $$
         DECLARE k integer;
         BEGIN
           SELECT region.w INTO k FROM region WHERE name = r;
           UPDATE wh SET n = n + 1 WHERE w = k;
         END $$;",
    );
    assert_eq!(class, Class::SinglePartition);
    assert_eq!(routing, "(SELECT region.w FROM region WHERE name = r)");
    let answer = db.call("by_region", vec![Datum::text("south")]).unwrap();
    assert_eq!(answer.outcome.restarts, 0);
    assert_eq!(db.lines("SELECT w FROM wh WHERE n = 1"), ["37"]);
    // A region nobody knows touches nothing.
    db.call("by_region", vec![Datum::text("east")]).unwrap();
    assert_eq!(db.lines("SELECT sum(n) FROM wh"), ["1"]);
}

#[test]
fn a_key_read_from_a_distributed_table_is_found_while_it_runs() {
    let mut db = database();
    db.script("UPDATE other SET n = 39 WHERE o = 4");
    let (class, _, reason) = deploy(
        &mut db,
        "CREATE PROCEDURE follow(k integer) LANGUAGE plpgsql AS $$
         DECLARE x integer;
         BEGIN
           SELECT n INTO x FROM other WHERE o = k;
           UPDATE wh SET n = n + 1 WHERE w = x;
         END $$;",
    );
    assert_eq!(class, Class::MultiPartition);
    assert!(reason.contains("read from a table"), "{reason}");
    assert!(unrouted(&db.program("follow")).is_some());
    db.call("follow", vec![Datum::Int4(4)]).unwrap();
    assert_eq!(db.lines("SELECT w FROM wh WHERE n = 1"), ["39"]);
}

#[test]
fn what_a_loop_changes_is_not_guessed() {
    let mut db = database();
    let (class, _, reason) = deploy(
        &mut db,
        "CREATE PROCEDURE walk(k integer) LANGUAGE plpgsql AS $$
         BEGIN
           WHILE k < 40 LOOP
             UPDATE wh SET n = n + 1 WHERE w = k;
             k := k + 13;
           END LOOP;
         END $$;",
    );
    assert_eq!(class, Class::MultiPartition);
    assert!(reason.contains("assigned in a loop"), "{reason}");
    db.call("walk", vec![Datum::Int4(1)]).unwrap();
    assert_eq!(db.lines("SELECT w FROM wh WHERE n = 1 ORDER BY w"), ["1", "14", "27"]);
}

#[test]
fn whole_tables_are_all_partitions() {
    let mut db = database();
    let (class, _, reason) = deploy(
        &mut db,
        "CREATE PROCEDURE all_of() LANGUAGE plpgsql AS $$ BEGIN UPDATE wh SET n = n + 1 WHERE n >= 0; END $$;",
    );
    assert_eq!((class, reason.as_str()), (Class::AllPartitions, "wh: all rows"));
    db.call("all_of", Vec::new()).unwrap();
    assert_eq!(db.lines("SELECT sum(n) FROM wh"), ["40"]);
}

#[test]
fn nested_calls_route_by_the_outer_arguments() {
    let mut db = database();
    deploy(
        &mut db,
        "CREATE PROCEDURE leaf(x integer, y integer) LANGUAGE plpgsql AS $$
         BEGIN UPDATE wh SET n = n + x WHERE w = y; END $$;",
    );
    let (class, routing, _) = deploy(
        &mut db,
        "CREATE PROCEDURE root(p integer, q integer) LANGUAGE plpgsql AS $$
         BEGIN CALL leaf(q, p + 1); END $$;",
    );
    assert_eq!((class, routing.as_str()), (Class::SinglePartition, "p + 1"));
    let answer = db.call("root", vec![Datum::Int4(8), Datum::Int4(2)]).unwrap();
    assert_eq!(answer.outcome.restarts, 0);
    assert_eq!(db.lines("SELECT w FROM wh WHERE n = 2"), ["9"]);
}

#[test]
fn explain_names_class_routing_and_accesses() {
    let mut db = database();
    deploy(
        &mut db,
        "CREATE PROCEDURE one(x integer) LANGUAGE plpgsql AS $$
         BEGIN UPDATE wh SET n = 0 WHERE w = x; PERFORM 1 FROM region; END $$;",
    );
    assert_eq!(
        explain(&db.program("one")),
        [
            "Call one(integer)  (single-partition)",
            "  Routing: x",
            "  ->  Write wh  (w = x)",
            "  ->  Read region  (reference table)",
        ]
    );
}
