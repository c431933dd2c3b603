//! Indexes that would be better off elsewhere: how that is found out, and what others do while one is moved.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{Raw, Server, kinds, state, told, wait_for_waiters};

/// How long what must come may take, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);
const TENANTS: u32 = 100;
const ORDERS_OF_EACH: u32 = 60;

/// The columns of the first row, as texts.
fn row(raw: &mut Raw, text: &str) -> Vec<String> {
    let answer = raw.query(text);
    assert_eq!(state(&answer), None, "{text}: {:?}", told(&answer));
    let Some((_, body)) = answer.iter().find(|(kind, _)| *kind == b'D') else { return Vec::new() };
    let mut rest = &body[2..];
    let mut values = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = i32::from_be_bytes(*length).max(0) as usize;
        values.push(String::from_utf8_lossy(&after[..length]).into_owned());
        rest = &after[length..];
    }
    values
}

fn one(raw: &mut Raw, text: &str) -> String {
    row(raw, text).first().cloned().unwrap_or_default()
}

fn ok(raw: &mut Raw, text: &str) {
    row(raw, text);
}

/// Orders of many tenants in several partitions, with an index by itself on when they were.
fn orders(settings: &[&str]) -> (Server, Raw) {
    let server = Server::start(&[&["archipel.executors=2", "deadlock_timeout=100ms"][..], settings].concat());
    let mut raw = server.raw();
    ok(
        &mut raw,
        "CREATE TABLE orders (tenant int, id int, at int NOT NULL, note text, PRIMARY KEY (tenant, id))",
    );
    ok(&mut raw, "CREATE INDEX orders_at ON orders (at)");
    ok(
        &mut raw,
        &format!(
            "INSERT INTO orders SELECT t, o, o * 7 % 1000, 'note ' || o
             FROM generate_series(1, {TENANTS}) t, generate_series(1, {ORDERS_OF_EACH}) o"
        ),
    );
    ok(&mut raw, "SELECT archipel.split_partition('orders', '50')");
    (server, raw)
}

const PLACED: &str = "SELECT placement FROM archipel.indexes WHERE indexname = 'orders_at'";
const ADVICE: &str = "SELECT statements, applied, claims_saved_per_hour > 10000, tables
     FROM archipel.design_advice WHERE kind = 'placement'";
const NEWEST: &str = "SELECT id FROM orders WHERE tenant = 7 AND at > 300 ORDER BY at, id";
const COUNTED: &str = "SELECT bound_uses > 0, unbound_uses, missed_uses > 0 FROM archipel.indexes
     WHERE indexname = 'orders_at'";

/// What EXPLAIN says of partitions.
fn partitions(raw: &mut Raw, sql: &str) -> String {
    let answer = raw.query(&format!("EXPLAIN {sql}"));
    let lines = answer.iter().filter(|(kind, _)| *kind == b'D');
    let lines = lines.map(|(_, row)| String::from_utf8_lossy(&row[6..]).into_owned());
    lines.filter(|line| line.contains("Partitions:")).collect()
}

/// Uses that name the tenant, and no others.
fn use_bound(raw: &mut Raw) {
    ok(
        raw,
        "DO $$ BEGIN FOR n IN 1 .. 12000 LOOP
             PERFORM id FROM orders WHERE tenant = 1 + n % 100 AND at = n % 1000;
         END LOOP; END $$",
    );
}

fn assert_whole(raw: &mut Raw) {
    for (low, high) in [(0, 1_000_000), (100, 200), (5_000, 6_000)] {
        for tenant in ["tenant = 7", "tenant = 70", "tenant > 0"] {
            let by_index = format!("{tenant} AND at >= {low} AND at < {high}");
            let by_rows = format!("{tenant} AND at + 0 >= {low} AND at + 0 < {high}");
            let count = |condition: &str| {
                format!("(SELECT (count(*), sum(id), sum(at))::text FROM orders WHERE {condition})")
            };
            let same = one(raw, &format!("SELECT {} = {}", count(&by_index), count(&by_rows)));
            assert_eq!(same, "t", "{by_index}");
        }
    }
}

#[test]
fn what_names_the_tenant_brings_advice_and_that_saves_partitions() {
    let (_server, mut raw) = orders(&[]);
    assert_eq!(row(&mut raw, PLACED), ["global"]);
    assert!(row(&mut raw, ADVICE).is_empty(), "loading a table shows nothing");
    let insert = "INSERT INTO orders VALUES (7, 100000, 1, '')";
    assert!(!partitions(&mut raw, insert).contains("single-partition"));
    let newest = told(&raw.query(NEWEST));
    assert!(newest.len() > 5, "{newest:?}");
    use_bound(&mut raw);
    assert_eq!(row(&mut raw, COUNTED), ["t", "0", "t"]);
    let advised = row(&mut raw, ADVICE);
    let statement = "ALTER INDEX public.orders_at SET (placement = prefixed);";
    assert_eq!(advised, [statement, "f", "t", "{orders(tenant)}"]);
    ok(&mut raw, statement);
    assert_eq!(row(&mut raw, PLACED), ["prefixed"]);
    assert!(partitions(&mut raw, insert).contains("single-partition, routed by tenant = 7"));
    assert!(row(&mut raw, ADVICE).is_empty(), "it is done");
    assert_eq!(told(&raw.query(NEWEST)), newest);
    assert_whole(&mut raw);
    // What asks all tenants wants it by itself again.
    ok(
        &mut raw,
        "DO $$ BEGIN FOR n IN 1 .. 3000 LOOP
             PERFORM id FROM orders WHERE at = 7 LIMIT 1;
         END LOOP; END $$",
    );
    let statement = "ALTER INDEX public.orders_at SET (placement = global);";
    assert_eq!(row(&mut raw, ADVICE), [statement, "f", "t", "{orders(tenant)}"]);
    ok(&mut raw, statement);
    assert_eq!(row(&mut raw, PLACED), ["global"]);
    assert_whole(&mut raw);
}

#[test]
fn a_routine_that_asks_all_tenants_keeps_the_index_by_itself() {
    // Where tables are is nobody's business here.
    let (_server, mut raw) = orders(&["archipel.colocate=off"]);
    ok(
        &mut raw,
        "CREATE FUNCTION at_once(moment int) RETURNS bigint LANGUAGE plpgsql AS
         $$ BEGIN RETURN (SELECT count(*) FROM orders WHERE at = moment); END $$",
    );
    use_bound(&mut raw);
    assert_eq!(row(&mut raw, COUNTED), ["t", "0", "t"]);
    assert!(row(&mut raw, ADVICE).is_empty());
    ok(&mut raw, "DROP FUNCTION at_once");
    assert!(!row(&mut raw, ADVICE).is_empty());
    // A child whose rows are looked for by their parent's key is asked without the tenant, too.
    ok(&mut raw, "CREATE TABLE moments (at int PRIMARY KEY)");
    ok(&mut raw, "INSERT INTO moments SELECT DISTINCT at FROM orders");
    ok(&mut raw, "ALTER TABLE orders ADD FOREIGN KEY (at) REFERENCES moments");
    assert!(row(&mut raw, ADVICE).is_empty());
}

/// Ends what runs beside, however this ends.
struct Ends<'s>(&'s AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn an_index_is_moved_while_its_table_is_read_and_written() {
    let (server, mut raw) = orders(&[]);
    let (moving, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let beside = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = server.raw();
            for n in 0.. {
                let began = moving.load(Ordering::SeqCst);
                let tenant = 1 + n % TENANTS;
                ok(&mut writer, &format!("INSERT INTO orders VALUES ({tenant}, {}, 5500, '')", 1_000 + n));
                ok(&mut writer, &format!("UPDATE orders SET at = at + 1 WHERE tenant = {tenant} AND id < 3"));
                ok(
                    &mut writer,
                    &format!("BEGIN; DELETE FROM orders WHERE tenant = {tenant} AND id = 4; COMMIT"),
                );
                if began && moving.load(Ordering::SeqCst) {
                    beside.fetch_add(1, Ordering::SeqCst);
                }
                if stop.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        scope.spawn(|| {
            let mut reader = server.raw();
            while !stop.load(Ordering::SeqCst) {
                assert_whole(&mut reader);
            }
        });
        let (begun, _ends) = (Instant::now(), Ends(&stop));
        for placement in ["prefixed", "global"].iter().cycle() {
            moving.store(true, Ordering::SeqCst);
            ok(&mut raw, &format!("ALTER INDEX orders_at SET (placement = {placement})"));
            moving.store(false, Ordering::SeqCst);
            assert_eq!(row(&mut raw, PLACED), [*placement]);
            let done = beside.load(Ordering::SeqCst);
            if done > 3 && *placement == "global" {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{done} writes have come between its beginning and its end");
        }
    });
    assert_whole(&mut raw);
}

#[test]
fn the_index_that_is_there_serves_until_open_transactions_have_ended() {
    let (server, mut raw) = orders(&[]);
    let (mut open, mut other) = (server.raw(), server.raw());
    ok(&mut open, "BEGIN");
    let before = told(&open.query(NEWEST));
    let in_between = "SELECT count(*) FROM orders WHERE tenant = 7 AND at = 5500";
    raw.send(b'Q', b"ALTER INDEX orders_at SET (placement = prefixed)\0");
    wait_for_waiters(&mut other, 1);
    // Who is in a transaction goes on with what is there.
    assert_eq!(told(&open.query(NEWEST)), before);
    assert_eq!(row(&mut open, PLACED), ["global"]);
    other.send(b'Q', b"INSERT INTO orders VALUES (7, 5000, 5500, '')\0");
    ok(&mut open, "COMMIT");
    assert_eq!(kinds(&raw.until(b'Z')), "CZ");
    assert_eq!(kinds(&other.until(b'Z')), "CZ");
    assert_eq!(row(&mut raw, PLACED), ["prefixed"]);
    assert_eq!(row(&mut raw, in_between), ["1"]);
    assert_whole(&mut raw);
}

#[test]
fn who_has_read_may_write_while_a_unique_index_waits_to_be_moved() {
    let (server, mut raw) = orders(&[]);
    let (mut open, mut other) = (server.raw(), server.raw());
    ok(&mut raw, "CREATE UNIQUE INDEX orders_unique ON orders (at, id, tenant)");
    ok(&mut open, "BEGIN");
    ok(&mut open, NEWEST);
    raw.send(b'Q', b"ALTER INDEX orders_unique SET (placement = prefixed)\0");
    wait_for_waiters(&mut other, 1);
    ok(&mut open, "INSERT INTO orders VALUES (7, 5000, 5500, '')");
    ok(&mut open, "COMMIT");
    assert_eq!(kinds(&raw.until(b'Z')), "CZ");
    assert_eq!(one(&mut raw, "SELECT tenant FROM orders WHERE at = 5500 AND id = 5000"), "7");
}

#[test]
fn what_was_read_by_an_index_that_is_elsewhere_now_is_no_longer_known_to_hold() {
    let (server, mut raw) = orders(&[]);
    let mut open = server.raw();
    // Who rolls back to before it has read has no lock any more.
    ok(&mut open, "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT FROM pg_class LIMIT 1; SAVEPOINT s");
    ok(&mut open, "SELECT count(*) FROM orders WHERE at = 5500");
    ok(&mut open, "ROLLBACK TO s");
    ok(&mut raw, "ALTER INDEX orders_at SET (placement = prefixed)");
    ok(&mut raw, "INSERT INTO orders VALUES (7, 5000, 5500, '')");
    ok(&mut open, "INSERT INTO orders VALUES (8, 5000, 7, '')");
    assert_eq!(state(&open.query("COMMIT")).as_deref(), Some("40001"));
}

#[test]
fn a_move_that_is_cancelled_leaves_the_index_where_it_was() {
    let (mut server, mut raw) = orders(&[]);
    let (mut open, mut other) = (server.raw(), server.raw());
    let pid = one(&mut raw, "SELECT pg_backend_pid()");
    ok(&mut open, &format!("BEGIN; {NEWEST}"));
    raw.send(b'Q', b"ALTER INDEX orders_at SET (placement = prefixed)\0");
    wait_for_waiters(&mut other, 1);
    ok(&mut other, &format!("SELECT pg_cancel_backend({pid})"));
    assert_eq!(state(&raw.until(b'Z')).as_deref(), Some("57014"));
    ok(&mut open, "UPDATE orders SET at = 5500 WHERE tenant = 7 AND id < 9; COMMIT");
    assert_eq!(row(&mut raw, PLACED), ["global"]);
    assert_whole(&mut raw);
    ok(&mut raw, "ALTER INDEX orders_at SET (placement = prefixed)");
    ok(&mut raw, "UPDATE orders SET at = 5501 WHERE tenant = 70 AND id < 9");
    drop((raw, open, other));
    server.kill();
    server.launch(&["archipel.executors=2"]);
    let mut raw = server.raw();
    assert_eq!(row(&mut raw, PLACED), ["prefixed"]);
    assert_whole(&mut raw);
    ok(&mut raw, "ALTER INDEX orders_at RESET (placement)");
    assert_eq!(row(&mut raw, PLACED), ["global"]);
    assert_whole(&mut raw);
}

#[test]
fn unique_ones_and_those_of_partitioned_tables_move_too() {
    let server = Server::start(&["archipel.executors=2"]);
    let mut raw = server.raw();
    ok(&mut raw, "CREATE TABLE u (tenant int, id int, code int, PRIMARY KEY (tenant, id))");
    ok(&mut raw, "INSERT INTO u SELECT n % 10, n, n FROM generate_series(1, 10000) n");
    ok(&mut raw, "CREATE UNIQUE INDEX u_code ON u (code, tenant)");
    ok(&mut raw, "ALTER INDEX u_code SET (placement = prefixed)");
    assert_eq!(state(&raw.query("INSERT INTO u VALUES (3, -1, 13)")).as_deref(), Some("23505"));
    ok(&mut raw, "INSERT INTO u VALUES (4, -1, 13)");
    assert_eq!(one(&mut raw, "SELECT id FROM u WHERE tenant = 4 AND code = 13"), "-1");
    ok(
        &mut raw,
        "CREATE TABLE p (tenant int, id int, at int, PRIMARY KEY (tenant, id)) PARTITION BY RANGE (tenant)",
    );
    ok(&mut raw, "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (5)");
    ok(&mut raw, "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (5) TO (10)");
    ok(&mut raw, "CREATE INDEX p_at ON p (at)");
    ok(&mut raw, "INSERT INTO p SELECT n % 10, n, n % 100 FROM generate_series(1, 12000) n");
    ok(&mut raw, "ALTER INDEX p_at SET (placement = prefixed)");
    let placed =
        "SELECT string_agg(DISTINCT placement, ',') FROM archipel.indexes WHERE tablename IN ('p1', 'p2')";
    assert_eq!(one(&mut raw, placed), "prefixed");
    assert_eq!(one(&mut raw, "SELECT count(*) FROM p WHERE tenant = 7 AND at = 57"), "120");
    assert_eq!(one(&mut raw, "SELECT count(*) FROM p WHERE at = 57"), "120");
}
