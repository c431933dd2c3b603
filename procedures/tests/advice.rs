//! What follows from what routines show: which columns should distribute tables whose keys begin
//! with another.

mod common;

use archipel_procedures::advice::{self, Kind, Sizes};
use archipel_procedures::evidence::Evidence;
use archipel_sql::catalog::Table;
use common::Database;

/// Every table has this many rows.
struct Rows(u64);

impl Sizes for Rows {
    fn rows(&self, _table: &Table) -> u64 {
        self.0
    }

    fn partitions(&self, _group: u32) -> usize {
        1
    }
}

/// A store room by goods first, beside tables by shop.
fn database() -> Database {
    Database::with(
        "CREATE TABLE shops (s_id integer PRIMARY KEY, n integer NOT NULL);
         CREATE TABLE orders (o_shop integer, o_id integer, PRIMARY KEY (o_shop, o_id));
         CREATE TABLE room (goods integer, shop integer, n integer NOT NULL, PRIMARY KEY (goods, shop));
         CREATE TABLE goods (g_id integer PRIMARY KEY, price integer NOT NULL);
         CREATE TABLE wanted (w_id integer PRIMARY KEY, w_goods integer NOT NULL);",
    )
}

/// The tables and columns that one routine with this body shows to belong together, each with its
/// column, and whether the room would move.
fn shown(declarations: &str, body: &str) -> (Vec<String>, bool) {
    let mut db = database();
    db.script(&format!(
        "CREATE PROCEDURE take(p integer, q integer, items integer[]) LANGUAGE plpgsql AS $$
         DECLARE {declarations}
         BEGIN
           UPDATE shops SET n = n + 1 WHERE s_id = p;
           INSERT INTO orders VALUES (p, q);
           {body}
         END $$;"
    ));
    let evidence = [Evidence::of(&db.program("take"), &db.catalog)];
    let design = advice::design(&db.catalog, &evidence, &Rows(1 << 20));
    let name = |oid, column: Option<u16>| {
        let table = db.catalog.table_by_oid(oid).expect("it is there");
        let column = column.map_or("", |column| table.columns[usize::from(column)].name.as_str());
        format!("{}.{column}", table.name)
    };
    let links = design.advice.iter().filter(|advice| advice.kind == Kind::Colocate);
    let shown = links.map(|advice| {
        let tables: Vec<String> = advice.tables.iter().map(|(oid, column)| name(*oid, *column)).collect();
        tables.join(" ")
    });
    let shown = shown.collect();
    let moves = design.moves.iter().any(|(oid, _)| name(*oid, None) == "room.");
    (shown, moves)
}

const BESIDE: &str = "shops.s_id orders.o_shop room.shop";
const APART: &str = "shops.s_id orders.o_shop";

#[track_caller]
fn goes_by_shop(declarations: &str, body: &str) {
    assert_eq!(shown(declarations, body), (vec![BESIDE.to_owned()], true), "{body}");
}

#[track_caller]
fn stays(declarations: &str, body: &str) {
    assert_eq!(shown(declarations, body), (vec![APART.to_owned()], false), "{body}");
}

#[test]
fn the_first_column_is_whatever_comes_in_a_loop() {
    goes_by_shop("", "FOR i IN 1 .. 9 LOOP UPDATE room SET n = 1 WHERE goods = i AND shop = p; END LOOP;");
    goes_by_shop("", "FOR i IN 1 .. 9 LOOP INSERT INTO room VALUES (i, p, 0); END LOOP;");
    goes_by_shop(
        "i integer;",
        "FOREACH i IN ARRAY items LOOP UPDATE room SET n = 1 WHERE goods = i AND shop = p; END LOOP;",
    );
    goes_by_shop(
        "r record;",
        "FOR r IN SELECT w_goods FROM wanted LOOP
           UPDATE room SET n = 1 WHERE goods = r.w_goods AND shop = p;
         END LOOP;",
    );
    goes_by_shop("", "UPDATE room SET n = 1 WHERE goods = ANY (items) AND shop = p;");
    goes_by_shop("", "INSERT INTO room SELECT w_goods, p, 0 FROM wanted;");
}

#[test]
fn the_argument_may_be_one_of_several_values() {
    let update = "FOR i IN 1 .. 9 LOOP UPDATE room SET n = 1 WHERE goods = i AND shop = s; END LOOP;";
    goes_by_shop(
        "s integer;",
        &format!("IF random() > 0.1 THEN s := p; ELSE s := random() * 10; END IF; {update}"),
    );
    goes_by_shop(
        "s integer := 0;",
        &format!("s := CASE WHEN random() > 0.1 THEN p ELSE (random() * 10)::int END; {update}"),
    );
    goes_by_shop(
        "s integer := 0;",
        &format!("SELECT w_goods INTO s FROM wanted WHERE w_id = q; s := coalesce(s, p); {update}"),
    );
    goes_by_shop("s integer;", &format!("FOR i IN 1 .. 2 LOOP s := p; END LOOP; {update}"));
}

#[test]
fn the_argument_may_be_an_element_of_an_array_that_the_routine_fills() {
    let fill = "FOR i IN 1 .. 9 LOOP
                  IF random() > 0.1 THEN a[i] := p; ELSE a[i] := random() * 10; END IF;
                END LOOP;";
    let each = "UPDATE room SET n = 1 FROM unnest(items, a) AS u (g, s) WHERE goods = u.g AND shop = u.s;";
    goes_by_shop("a integer[];", &format!("{fill} {each}"));
    goes_by_shop("a integer[] := '{}';", &format!("FOR i IN 1 .. 9 LOOP a := a || p; END LOOP; {each}"));
    let subscripted =
        "FOR i IN 1 .. 9 LOOP UPDATE room SET n = 1 WHERE goods = items[i] AND shop = a[i]; END LOOP;";
    goes_by_shop("a integer[];", &format!("{fill} {subscripted}"));
    goes_by_shop(
        "a integer[]; s integer;",
        &format!(
            "{fill} FOREACH s IN ARRAY a LOOP UPDATE room SET n = 1 WHERE goods = ANY (items) AND shop = s; END LOOP;"
        ),
    );
}

#[test]
fn what_shows_nothing_changes_nothing() {
    // Both columns are arguments, and no call needs another column.
    stays("", "UPDATE room SET n = 1 WHERE goods = q AND shop = p;");
    // An index on it would do as well.
    stays("", "UPDATE room SET n = 1 WHERE shop = p;");
    // Rows of any shop.
    stays(
        "s integer;",
        "FOR i IN 1 .. 9 LOOP s := random() * 10; UPDATE room SET n = 1 WHERE goods = i AND shop = s; END LOOP;",
    );
    // Two arguments are none.
    stays(
        "a integer[];",
        "a[1] := p; a[2] := q; UPDATE room SET n = 1 FROM unnest(items, a) AS u (g, s)
          WHERE goods = u.g AND shop = u.s AND random() > 2;",
    );
}

/// What a routine shows of the room alone: whether it would go by the shop.
fn alone(body: &str) -> bool {
    let mut db = database();
    db.script(&format!(
        "CREATE PROCEDURE take(p integer, items integer[]) LANGUAGE plpgsql AS $$ BEGIN {body} END $$;"
    ));
    let evidence = [Evidence::of(&db.program("take"), &db.catalog)];
    let design = advice::design(&db.catalog, &evidence, &Rows(1 << 20));
    let told: Vec<_> = design.advice.iter().map(|advice| (advice.kind, &advice.statements[..])).collect();
    match design.moves.len() {
        0 => assert!(told.is_empty(), "{body}"),
        _ => {
            let statement = "SELECT create_distributed_table('room', 'shop');".to_owned();
            assert_eq!(told, [(Kind::Route, &[statement][..])], "{body}");
        }
    }
    design.moves.len() == 1
}

#[test]
fn a_table_that_meets_no_other_goes_by_what_routes_its_calls() {
    assert!(alone("UPDATE room SET n = 1 WHERE goods = ANY (items) AND shop = p;"));
    assert!(alone("FOR i IN 1 .. 9 LOOP INSERT INTO room VALUES (i, p, 0); END LOOP;"));
    assert!(alone("DELETE FROM room USING unnest(items) AS u (g) WHERE goods = u.g AND shop = p;"));
    // It is routed as it is.
    assert!(!alone("UPDATE room SET n = 1 WHERE goods = p AND shop = ANY (items);"));
    assert!(!alone("UPDATE room SET n = 1 WHERE goods = p AND shop = p;"));
    // An index on it would do as well.
    assert!(!alone("UPDATE room SET n = 1 WHERE shop = p;"));
}

/// What would let a routine join its tables by their keys, tables having so many rows.
fn joined(rows: u64, body: &str) -> Vec<String> {
    let mut db = database();
    db.script(&format!(
        "CREATE PROCEDURE take(p integer, q integer) LANGUAGE plpgsql AS $$ BEGIN {body} END $$;"
    ));
    let evidence = [Evidence::of(&db.program("take"), &db.catalog)];
    let design = advice::design(&db.catalog, &evidence, &Rows(rows));
    let joins = design.advice.into_iter().filter(|advice| advice.kind == Kind::Join);
    joins.flat_map(|advice| advice.statements).collect()
}

const LARGE: u64 = 1 << 20;

#[test]
fn a_table_joined_by_another_column_than_its_own_is_told_of() {
    let index = ["CREATE INDEX ON wanted (w_goods);"];
    let by_shop = ["SELECT create_distributed_table('room', 'shop');"];
    let one = "goods = p AND shop = q";
    for body in [
        format!("UPDATE room SET n = w_id FROM wanted WHERE {one} AND w_goods = goods;"),
        format!("DELETE FROM room USING wanted WHERE {one} AND w_goods = goods;"),
        format!("PERFORM 1 FROM room JOIN wanted ON w_goods = goods WHERE {one};"),
        format!("PERFORM 1 FROM room LEFT JOIN wanted ON w_goods = goods WHERE {one};"),
        format!(
            "MERGE INTO wanted USING (SELECT goods FROM room WHERE {one}) AS r ON w_goods = r.goods
             WHEN MATCHED THEN UPDATE SET w_goods = 0;"
        ),
    ] {
        assert_eq!(joined(LARGE, &body), index, "{body}");
    }
    for body in [
        "UPDATE room SET n = 1 FROM shops WHERE s_id = p AND shop = s_id;",
        "DELETE FROM room USING shops WHERE s_id = p AND shop = s_id;",
        "PERFORM 1 FROM shops JOIN room ON shop = s_id WHERE s_id = p;",
    ] {
        assert_eq!(joined(LARGE, body), by_shop, "{body}");
    }
}

#[test]
fn a_small_table_that_is_joined_and_not_written_may_be_everywhere() {
    let body = "UPDATE room SET n = w_id FROM wanted WHERE goods = p AND shop = q AND w_goods = goods;";
    assert_eq!(joined(10, body), ["SELECT create_reference_table('wanted');"]);
    let written = "UPDATE wanted SET w_goods = 1 WHERE w_id = p;";
    assert_eq!(joined(10, &format!("{written} {body}")), ["CREATE INDEX ON wanted (w_goods);"]);
}

/// Which tables, each with so many rows, should be everywhere because of what one routine does beside its
/// writes.
fn everywhere(rows: u64, body: &str) -> Vec<String> {
    let mut db = database();
    db.script(&format!(
        "CREATE PROCEDURE take(p integer, q integer) LANGUAGE plpgsql AS $$
         DECLARE v integer; r record;
         BEGIN UPDATE shops SET n = n + 1 WHERE s_id = p; {body} END $$;"
    ));
    let evidence = [Evidence::of(&db.program("take"), &db.catalog)];
    let design = advice::design(&db.catalog, &evidence, &Rows(rows));
    let references = design.advice.into_iter().filter(|advice| advice.kind == Kind::Reference);
    references.filter(|advice| advice.refused.is_none()).flat_map(|advice| advice.statements).collect()
}

#[test]
fn a_small_table_that_is_only_read_goes_everywhere_whatever_names_its_rows() {
    let goods = ["SELECT create_reference_table('goods');"];
    for body in [
        "SELECT price INTO v FROM goods WHERE g_id = q;",
        "SELECT price INTO v FROM goods WHERE g_id = 1;",
        "v := trunc(random() * 9)::int + 1; SELECT price INTO v FROM goods WHERE g_id = v;",
        "SELECT n INTO v FROM shops WHERE s_id = p; SELECT price INTO v FROM goods WHERE g_id = v;",
        "FOR i IN 1 .. 9 LOOP SELECT price INTO v FROM goods WHERE g_id = i * i; END LOOP;",
        "SELECT count(*) INTO v FROM goods WHERE g_id BETWEEN 3 AND 5;",
        "SELECT count(*) INTO v FROM goods WHERE g_id IN (3, 5);",
    ] {
        assert_eq!(everywhere(10, body), goods, "{body}");
        assert!(everywhere(LARGE, body).is_empty(), "{body}");
    }
    for body in [
        "UPDATE goods SET price = 1 WHERE g_id = trunc(random() * 9)::int;",
        // Read whole, by none of its rows; what may differ from row to row looks nothing up.
        "SELECT price INTO v FROM goods WHERE g_id = trunc(random() * 9)::int;",
        "SELECT count(*) INTO v FROM goods;",
    ] {
        assert!(everywhere(10, body).is_empty(), "{body}");
    }
}

#[test]
fn a_table_joined_by_its_key_is_not_told_of() {
    for body in [
        "UPDATE room SET n = w_id FROM wanted WHERE w_id = p AND goods = w_goods AND shop = q;",
        "PERFORM 1 FROM room JOIN goods ON g_id = goods WHERE goods = p AND shop = q;",
        "PERFORM 1 FROM wanted JOIN goods ON g_id = w_goods WHERE w_id = p;",
        // Everything is read: no key would help.
        "PERFORM count(*) FROM wanted AS a JOIN wanted AS b ON a.w_goods = b.w_goods;",
        "PERFORM count(*) FROM wanted;",
    ] {
        assert!(joined(LARGE, body).is_empty(), "{body}");
    }
}
