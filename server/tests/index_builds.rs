//! CREATE INDEX on a table with many rows: what others do meanwhile, and how it ends.

mod common;

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use common::{Raw, Server, kinds, state};

/// How long what must come may take, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// A table is made larger until filling an index of it takes longer than somebody else's answer.
const ROUNDS: u32 = 6;
const ROWS_MIN: u32 = 20_000;

/// The first column of the first row.
fn value(messages: &[(u8, Vec<u8>)]) -> Option<String> {
    let (_, row) = messages.iter().find(|(kind, _)| *kind == b'D')?;
    let length = i32::from_be_bytes([row[2], row[3], row[4], row[5]]);
    Some(String::from_utf8_lossy(&row[6..6 + length as usize]).into_owned())
}

fn ok(raw: &mut Raw, text: &str) {
    let answer = raw.query(text);
    assert_eq!(state(&answer), None, "{text}: {}", fields(&answer));
}

/// What an error says.
fn fields(messages: &[(u8, Vec<u8>)]) -> String {
    let error = messages.iter().find(|(kind, _)| *kind == b'E');
    error.map(|(_, body)| String::from_utf8_lossy(body).replace('\0', " | ")).unwrap_or_default()
}

/// Whether something has come that nobody has read.
fn has_answered(raw: &Raw) -> bool {
    raw.stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout can be set");
    let seen = raw.stream.peek(&mut [0]);
    raw.stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    match seen {
        Ok(count) => count > 0,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
            false
        }
    }
}

/// An index that is being filled, and has come to a row that an open transaction deletes.
struct Blocked {
    builder: Raw,
    pid: String,
    writer: Raw,
    other: Raw,
}

/// The locks of the builder: the one that stays, and no SHARE, held or waited for.
fn is_filling(other: &mut Raw, pid: &str) -> bool {
    let has = |mode: &str| {
        format!(
            "EXISTS (SELECT FROM pg_locks WHERE pid = {pid} AND relation = 'many'::regclass AND mode = '{mode}')"
        )
    };
    let (stays, share) = (has("ShareUpdateExclusiveLock"), has("ShareLock"));
    value(&other.query(&format!("SELECT 1 WHERE {stays} AND NOT {share}"))).is_some()
}

fn blocked(server: &Server) -> Blocked {
    let (mut builder, mut writer, mut other) = (server.raw(), server.raw(), server.raw());
    let pid = value(&builder.query("SELECT pg_backend_pid()")).expect("it has a number");
    ok(&mut other, "CREATE TABLE many (k int PRIMARY KEY, v int)");
    ok(
        &mut other,
        "CREATE FUNCTION put(a int, b int) RETURNS void LANGUAGE plpgsql AS
         $$ BEGIN INSERT INTO many VALUES (a, b); END $$",
    );
    ok(&mut other, "SELECT put(-100, 0)");
    for round in 0..ROUNDS {
        let (from, to) =
            if round == 0 { (1, ROWS_MIN) } else { (ROWS_MIN << (round - 1), ROWS_MIN << round) };
        let fill =
            format!("INSERT INTO many SELECT n, n * 7 % 1000 FROM generate_series({from} + 1, {to}) n");
        ok(&mut other, &fill);
        builder.send(b'Q', b"CREATE INDEX many_v ON many (v)\0");
        while !is_filling(&mut other, &pid) && !has_answered(&builder) {}
        ok(&mut writer, &format!("BEGIN; DELETE FROM many WHERE k = {to}"));
        let waits = format!("SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'");
        let begun = Instant::now();
        while !has_answered(&builder) {
            assert!(begun.elapsed() < PATIENCE, "it neither waits nor ends");
            if value(&other.query(&waits)).is_some() {
                if is_filling(&mut other, &pid) {
                    return Blocked { builder, pid, writer, other };
                }
                // The row was deleted too early: before SHARE was had.
                break;
            }
        }
        ok(&mut writer, "ROLLBACK");
        assert_eq!(kinds(&builder.until(b'Z')), "CZ");
        ok(&mut other, "DROP INDEX many_v");
    }
    panic!("no index is filled for long enough");
}

fn server() -> Server {
    Server::start(&["archipel.executors=2", "deadlock_timeout=100ms"])
}

/// The index has the rows that there are.
fn assert_whole(raw: &mut Raw) {
    let plan = raw.query("EXPLAIN SELECT count(*), sum(k) FROM many WHERE v = 7");
    let lines = plan.iter().filter(|(kind, _)| *kind == b'D');
    let lines: Vec<String> = lines.map(|(_, row)| String::from_utf8_lossy(row).into_owned()).collect();
    assert!(lines.iter().any(|line| line.contains("many_v")), "{lines:?}");
    for v in [7, 500, 2_000] {
        let count = |condition: String| {
            format!("SELECT (count(*), coalesce(sum(k), 0))::text FROM many WHERE {condition}")
        };
        let by_index = value(&raw.query(&count(format!("v = {v}"))));
        assert!(by_index.is_some());
        assert_eq!(by_index, value(&raw.query(&count(format!("v + 0 = {v}")))), "of {v}");
    }
}

#[test]
fn a_table_is_read_and_written_while_an_index_of_it_is_filled() {
    let server = server();
    let Blocked { mut builder, mut writer, mut other, .. } = blocked(&server);
    ok(&mut other, "INSERT INTO many VALUES (-1, 7), (-2, 2000), (100000000, 7), (100000001, 2000)");
    ok(&mut other, "UPDATE many SET v = 7 WHERE k IN (10, 11, 12)");
    ok(&mut other, "SELECT put(-101, 7)");
    ok(&mut other, "DELETE FROM many WHERE k BETWEEN 20 AND 40");
    ok(&mut other, "BEGIN; UPDATE many SET v = 2000 WHERE k IN (50, 51); COMMIT");
    ok(&mut other, "GRANT SELECT ON many TO PUBLIC; CREATE TABLE beside (a int); CREATE INDEX ON beside (a)");
    // Nobody sees it.
    let known = "SELECT count(*) FROM pg_class WHERE relname = 'many_v'";
    assert_eq!(value(&other.query(known)).as_deref(), Some("0"));
    assert_eq!(value(&other.query("SELECT count(*) FROM many WHERE v = 2000")).as_deref(), Some("4"));
    assert!(!has_answered(&builder));
    ok(&mut writer, "COMMIT");
    assert_eq!(kinds(&builder.until(b'Z')), "CZ");
    assert_whole(&mut other);
    assert_eq!(value(&other.query(known)).as_deref(), Some("1"));
    let granted = "SELECT has_table_privilege('pg_monitor', 'many', 'SELECT')";
    assert_eq!(value(&other.query(granted)).as_deref(), Some("t"));
    ok(&mut other, "UPDATE many SET v = 7 WHERE k = 100; DROP INDEX many_v");
}

#[test]
fn a_build_that_is_cancelled_leaves_nothing_behind() {
    let server = server();
    let Blocked { mut builder, pid, mut writer, mut other } = blocked(&server);
    // It may have written what the index would have held.
    ok(&mut writer, "UPDATE many SET v = 2000 WHERE k = 3");
    ok(&mut other, &format!("SELECT pg_cancel_backend({pid})"));
    assert_eq!(state(&builder.until(b'Z')).as_deref(), Some("57014"));
    ok(&mut writer, "UPDATE many SET v = 2000 WHERE k = 4; COMMIT");
    ok(&mut other, "UPDATE many SET v = 2000 WHERE k = 5");
    ok(&mut other, "SELECT put(-102, 7)");
    ok(&mut other, "CREATE INDEX many_v ON many (v)");
    assert_whole(&mut other);
    assert_eq!(value(&other.query("SELECT count(*) FROM many WHERE v = 2000")).as_deref(), Some("3"));
}

#[test]
fn a_build_ends_with_its_timeout() {
    let server = server();
    let Blocked { mut builder, pid: _, mut writer, .. } = blocked(&server);
    ok(&mut writer, "ROLLBACK");
    assert_eq!(kinds(&builder.until(b'Z')), "CZ");
    ok(&mut builder, "DROP INDEX many_v; SET statement_timeout = '1ms'");
    assert_eq!(state(&builder.query("CREATE INDEX many_v ON many (v)")).as_deref(), Some("57014"));
    while state(&builder.query("SET statement_timeout = 0")).is_some() {}
    ok(&mut builder, "CREATE INDEX many_v ON many (v)");
    assert_whole(&mut builder);
}

#[test]
fn a_build_and_who_waits_for_its_table_are_no_deadlock_for_ever() {
    let server = server();
    let Blocked { mut builder, mut writer, mut other, .. } = blocked(&server);
    writer.send(b'Q', b"ALTER TABLE many ADD COLUMN w int\0");
    let begun = Instant::now();
    while !has_answered(&builder) && !has_answered(&writer) {
        assert!(begun.elapsed() < PATIENCE, "they wait for each other");
    }
    // Whoever is not the victim goes on at once, and may have answered as well by now.
    let written = has_answered(&writer).then(|| state(&writer.until(b'Z')));
    let states = match written {
        Some(Some(refused)) => {
            ok(&mut writer, "ROLLBACK");
            (state(&builder.until(b'Z')), Some(refused))
        }
        written => {
            let refused = state(&builder.until(b'Z'));
            let altered = written.unwrap_or_else(|| state(&writer.until(b'Z')));
            ok(&mut writer, "COMMIT");
            (altered, refused)
        }
    };
    assert_eq!(states, (None, Some("40P01".to_owned())));
    ok(&mut other, "UPDATE many SET v = 7 WHERE k = 3");
}

#[test]
fn a_name_that_is_taken_meanwhile_is_told() {
    let server = server();
    let Blocked { mut builder, mut writer, mut other, .. } = blocked(&server);
    ok(&mut other, "CREATE TABLE beside (a int); CREATE INDEX many_v ON beside (a)");
    ok(&mut writer, "COMMIT");
    assert_eq!(state(&builder.until(b'Z')).as_deref(), Some("42P07"));
    ok(&mut other, "UPDATE many SET v = 7 WHERE k = 3; DROP TABLE beside");
    ok(&mut other, "CREATE INDEX many_v ON many (v)");
    assert_whole(&mut other);
}

#[test]
fn a_table_is_not_dropped_under_a_build() {
    let server = server();
    let Blocked { mut builder, mut writer, mut other, .. } = blocked(&server);
    other.send(b'Q', b"DROP TABLE many\0");
    std::thread::sleep(Duration::from_millis(50));
    assert!(!has_answered(&other));
    ok(&mut writer, "COMMIT");
    assert_eq!(kinds(&builder.until(b'Z')), "CZ");
    assert_eq!(kinds(&other.until(b'Z')), "CZ");
    assert_eq!(state(&other.query("SELECT 1 FROM many")).as_deref(), Some("42P01"));
}

#[test]
fn two_rows_of_one_key_are_told_of() {
    let server = server();
    let mut raw = server.raw();
    ok(&mut raw, "CREATE TABLE many (k int PRIMARY KEY, v int)");
    ok(&mut raw, "INSERT INTO many SELECT n, n FROM generate_series(1, 20000) n");
    ok(&mut raw, "UPDATE many SET v = 7 WHERE k = 19999");
    let answer = raw.query("CREATE UNIQUE INDEX many_v ON many (v)");
    assert_eq!(state(&answer).as_deref(), Some("23505"));
    let told = fields(&answer);
    assert!(told.contains("could not create unique index \"many_v\""), "{told}");
    assert!(told.contains("Key (v)=(7) is duplicated."), "{told}");
    // Nothing keeps keys apart.
    ok(&mut raw, "INSERT INTO many VALUES (0, 8)");
    ok(&mut raw, "DELETE FROM many WHERE k IN (0, 7); CREATE UNIQUE INDEX many_v ON many (v)");
    assert_eq!(state(&raw.query("INSERT INTO many VALUES (0, 8)")).as_deref(), Some("23505"));
    assert_whole(&mut raw);
}

#[test]
fn a_server_that_goes_down_meanwhile_starts_without_the_index() {
    let mut server = server();
    {
        let Blocked { builder: _builder, writer: _writer, mut other, .. } = blocked(&server);
        ok(&mut other, "UPDATE many SET v = 2000 WHERE k = 5");
        server.kill();
    }
    server.launch(&["archipel.executors=2"]);
    let mut raw = server.raw();
    assert_eq!(
        value(&raw.query("SELECT count(*) FROM pg_class WHERE relname = 'many_v'")).as_deref(),
        Some("0")
    );
    ok(&mut raw, "UPDATE many SET v = 2000 WHERE k = 6; CREATE INDEX many_v ON many (v)");
    assert_whole(&mut raw);
    assert_eq!(value(&raw.query("SELECT count(*) FROM many WHERE v = 2000")).as_deref(), Some("2"));
}
