//! Cursors and portals over what native execution reads: rows come as they are fetched, all of them as of
//! the moment the cursor was opened, and nothing is left of one that is closed.

mod common;

use std::time::Duration;

use common::{Raw, Server, framed, parse, state, told, wait_for_waiters};

/// How long a test waits for what must not take long, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the server may take; the rows of [`LARGE`] as values are more.
const LIMIT: &str = "max_memory=256MB";

/// A query that reads a range of keys, which native execution does, and answers 350 MB.
const LARGE: &str = "SELECT t.v, t.id, repeat('x', 700) FROM t, generate_series(1, 100) n \
                     WHERE t.id BETWEEN 1 AND 5000";
const LARGE_ROWS: usize = 500_000;

/// A query that native execution reads; its result is more than is read when a cursor is opened.
const NUMBERS: &str = "SELECT id FROM numbers WHERE id BETWEEN 1 AND 60000";

fn started() -> (Server, Raw, Raw) {
    started_with(LIMIT)
}

fn started_with(limit: &str) -> (Server, Raw, Raw) {
    let server = Server::start(&[limit]);
    let (mut raw, other) = (server.raw(), server.raw());
    for statement in [
        "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "INSERT INTO t SELECT g, 1 FROM generate_series(1, 5000) g",
        "CREATE TABLE numbers (id int PRIMARY KEY, n int)",
        "INSERT INTO numbers SELECT g, 1 FROM generate_series(1, 60000) g",
    ] {
        done(&mut raw, statement);
    }
    other.stream.set_read_timeout(Some(PATIENCE)).expect("a socket has timeouts");
    raw.stream.set_read_timeout(Some(PATIENCE)).expect("a socket has timeouts");
    (server, raw, other)
}

/// Runs a statement that succeeds.
fn done(raw: &mut Raw, statement: &str) {
    assert_eq!(state(&raw.query(statement)), None, "{statement}");
}

/// The rows of an answer.
fn rows(raw: &mut Raw, statement: &str) -> Vec<String> {
    let answer = raw.query(statement);
    assert_eq!(state(&answer), None, "{statement}");
    let rows: Vec<_> = answer.into_iter().filter(|(kind, _)| *kind == b'D').collect();
    told(&rows)
}

/// The rows of a large answer, as they come: how many there were, each of which is looked at.
fn count_rows(raw: &mut Raw, statement: &str, check: impl Fn(&[u8])) -> usize {
    raw.send(b'Q', &[statement.as_bytes(), b"\0"].concat());
    let mut count = 0;
    loop {
        let (kind, body) = raw.receive().expect("the server goes on talking");
        match kind {
            b'D' => {
                check(&body);
                count += 1;
            }
            b'E' => panic!("{statement}: {}", String::from_utf8_lossy(&body)),
            b'Z' => return count,
            _ => {}
        }
    }
}

/// Whether the first column of a DataRow is this.
fn begins_with(body: &[u8], value: &[u8]) -> bool {
    let length = u32::from_be_bytes([body[2], body[3], body[4], body[5]]) as usize;
    &body[6..6 + length] == value
}

/// Waits until nobody reads as of a snapshot.
fn until_nobody_reads(other: &mut Raw) {
    for turn in 0.. {
        if rows(other, "SELECT count(*) FROM archipel.snapshots") == ["0"] {
            return;
        }
        assert!(turn < 6_000, "somebody still reads");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn snapshots(other: &mut Raw) -> String {
    rows(other, "SELECT count(*) FROM archipel.snapshots").concat()
}

fn bind(portal: &str) -> Vec<u8> {
    framed(b'B', &[portal.as_bytes(), b"\0\0\0\0\0\0\0\0"].concat())
}

fn execute(portal: &str, rows_max: u32) -> Vec<u8> {
    framed(b'E', &[portal.as_bytes(), b"\0", &rows_max.to_be_bytes()[..]].concat())
}

#[test]
fn memory_is_bounded_by_what_is_fetched() {
    let (_server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN");
    done(&mut raw, &format!("DECLARE cu NO SCROLL CURSOR FOR {LARGE}"));
    let is_old = |body: &[u8]| assert!(begins_with(body, b"1"), "as of one moment");
    for _ in 0..3 {
        assert_eq!(count_rows(&mut raw, "FETCH 10 FROM cu", is_old), 10);
    }
    for statement in [
        "UPDATE t SET v = 2",
        "DELETE FROM t WHERE id > 4000",
        "INSERT INTO t SELECT g, 3 FROM generate_series(4001, 4100) g",
    ] {
        done(&mut other, statement);
    }
    assert_eq!(told(&raw.query("MOVE 1000 FROM cu")), ["MOVE 1000"]);
    assert_eq!(count_rows(&mut raw, "FETCH ALL FROM cu", is_old), LARGE_ROWS - 1_030);
    done(&mut raw, "COMMIT");
    until_nobody_reads(&mut other);
}

/// Of rows that are wide few are kept, by a cursor that may move back to them, too.
#[test]
fn wide_rows_pass_one_by_one() {
    let (_server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN");
    let wide = "SELECT id, repeat('x', 1000000) FROM t WHERE id BETWEEN 1 AND 5000";
    done(&mut raw, &format!("DECLARE cu CURSOR FOR {wide}"));
    assert_eq!(count_rows(&mut raw, "FETCH 300 FROM cu", |_| ()), 300);
    assert_eq!(count_rows(&mut raw, "FETCH 1 FROM cu", |row| assert!(begins_with(row, b"301"))), 1);
    assert_eq!(count_rows(&mut raw, "FETCH FIRST FROM cu", |row| assert!(begins_with(row, b"1"))), 1);
    done(&mut raw, "COMMIT");
    until_nobody_reads(&mut other);
}

#[test]
fn a_portal_takes_portions_over_many_messages() {
    let (_server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN");
    let first = raw.pipeline(&[parse(NUMBERS), bind("p"), execute("p", 1000)]);
    assert_eq!(state(&first), None);
    let mut all = told(&first);
    assert_eq!(all.pop().as_deref(), Some("s"));
    done(&mut other, "DELETE FROM numbers WHERE id % 2 = 0");
    loop {
        let mut next = told(&raw.pipeline(&[execute("p", 7000)]));
        let end = next.pop();
        all.append(&mut next);
        if end.as_deref() != Some("s") {
            assert_eq!(end.as_deref(), Some("SELECT 3000"));
            break;
        }
    }
    let expected: Vec<String> = (1..=60_000).map(|id: i32| id.to_string()).collect();
    assert!(all == expected, "{} rows", all.len());
    done(&mut raw, "COMMIT");
    until_nobody_reads(&mut other);
}

/// Outside of a transaction nobody can come back for the rest, and it goes with Sync.
#[test]
fn a_portal_that_ends_with_its_sync_leaves_nothing() {
    let (_server, mut raw, mut other) = started();
    for rows_max in [3, 2_000] {
        let answer = told(&raw.pipeline(&[parse(NUMBERS), bind(""), execute("", rows_max)]));
        assert_eq!(answer.len(), rows_max as usize + 1);
        assert_eq!(answer.last().map(String::as_str), Some("s"));
        let again = told(&raw.pipeline(&[execute("", 1)]));
        assert_eq!(again, ["34000"]);
        until_nobody_reads(&mut other);
    }
}

#[test]
fn a_cursor_shows_nothing_of_what_comes_later() {
    let (_server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN");
    done(&mut raw, "DECLARE c CURSOR FOR SELECT n, id FROM numbers WHERE id BETWEEN 1 AND 60000");
    assert_eq!(rows(&mut raw, "FETCH 2 FROM c"), ["1|1", "1|2"]);
    assert_eq!(rows(&mut raw, "UPDATE numbers SET n = 7 WHERE CURRENT OF c RETURNING id"), ["2"]);
    done(&mut raw, "UPDATE numbers SET n = 2 WHERE id > 2");
    done(&mut raw, "DELETE FROM numbers WHERE id > 50000");
    done(&mut raw, "INSERT INTO numbers VALUES (0, 9), (60001, 9)");
    assert_eq!(rows(&mut raw, "FETCH 1 FROM c"), ["1|3"]);
    assert_eq!(count_rows(&mut raw, "FETCH ALL FROM c", |body| assert!(begins_with(body, b"1"))), 59_997);
    assert_eq!(rows(&mut raw, "FETCH ABSOLUTE 55000 FROM c"), ["1|55000"]);
    // One that is opened now shows all of that.
    done(&mut raw, "DECLARE d CURSOR FOR SELECT n, id FROM numbers WHERE id BETWEEN 0 AND 60000 ORDER BY id");
    assert_eq!(rows(&mut raw, "FETCH 4 FROM d"), ["9|0", "1|1", "7|2", "2|3"]);
    done(&mut raw, "COMMIT");
    assert_eq!(rows(&mut other, "SELECT count(*), sum(n) FROM numbers"), ["50002|100022"]);
    until_nobody_reads(&mut other);
}

#[test]
fn a_repeatable_transaction_has_one_moment_for_all_cursors() {
    let (_server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(rows(&mut raw, "SELECT n FROM numbers WHERE id = 1"), ["1"]);
    done(&mut other, "UPDATE numbers SET n = 2");
    done(&mut raw, "DECLARE c CURSOR FOR SELECT n, id FROM numbers WHERE id BETWEEN 1 AND 60000");
    assert_eq!(count_rows(&mut raw, "FETCH 30000 FROM c", |body| assert!(begins_with(body, b"1"))), 30_000);
    done(&mut other, "UPDATE numbers SET n = 3");
    assert_eq!(count_rows(&mut raw, "FETCH ALL FROM c", |body| assert!(begins_with(body, b"1"))), 30_000);
    assert_eq!(rows(&mut raw, "SELECT n FROM numbers WHERE id = 60000"), ["1"]);
    done(&mut raw, "COMMIT");
    until_nobody_reads(&mut other);
}

#[test]
fn a_cursor_goes_back() {
    let (_server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN");
    done(&mut raw, &format!("DECLARE cu SCROLL CURSOR FOR {NUMBERS}"));
    assert_eq!(rows(&mut raw, "FETCH 3 FROM cu"), ["1", "2", "3"]);
    done(&mut other, "DELETE FROM numbers WHERE id % 2 = 0");
    done(&mut raw, "MOVE 50000 FROM cu");
    assert_eq!(rows(&mut raw, "FETCH 2 FROM cu"), ["50004", "50005"]);
    assert_eq!(rows(&mut raw, "FETCH BACKWARD 2 FROM cu"), ["50004", "50003"]);
    assert_eq!(rows(&mut raw, "FETCH FIRST FROM cu"), ["1"]);
    assert_eq!(rows(&mut raw, "FETCH LAST FROM cu"), ["60000"]);
    assert_eq!(rows(&mut raw, "FETCH NEXT FROM cu"), [""; 0]);
    assert_eq!(rows(&mut raw, "FETCH PRIOR FROM cu"), ["60000"]);
    assert_eq!(rows(&mut raw, "FETCH ABSOLUTE 20000 FROM cu"), ["20000"]);
    assert_eq!(rows(&mut raw, "FETCH RELATIVE -19998 FROM cu"), ["2"]);
    done(&mut raw, "ROLLBACK");
    until_nobody_reads(&mut other);
}

/// Its query runs again then, and knows its tables as they were.
#[test]
fn a_cursor_goes_back_beside_definitions() {
    let (_server, mut raw, mut other) = started();
    done(&mut other, "CREATE INDEX numbers_n ON numbers (n)");
    done(&mut raw, "BEGIN");
    let queries = [NUMBERS.to_owned(), NUMBERS.replace("id BETWEEN", "n = 1 AND id BETWEEN")];
    for (number, query) in queries.iter().enumerate() {
        done(&mut raw, &format!("DECLARE c{number} SCROLL CURSOR FOR {query} ORDER BY id"));
        done(&mut raw, &format!("MOVE 50000 FROM c{number}"));
    }
    done(&mut other, "CREATE INDEX numbers_too ON numbers (n, id)");
    done(&mut other, "UPDATE numbers SET n = n + 1 WHERE id % 2 = 0");
    done(&mut other, "CREATE INDEX numbers_three ON numbers (n) WHERE id > 5");
    for number in 0..queries.len() {
        assert_eq!(rows(&mut raw, &format!("FETCH ABSOLUTE 2 FROM c{number}")), ["2"]);
        assert_eq!(rows(&mut raw, &format!("FETCH LAST FROM c{number}")), ["60000"]);
        assert_eq!(rows(&mut raw, &format!("FETCH ABSOLUTE 7000 FROM c{number}")), ["7000"]);
    }
    done(&mut raw, "COMMIT");
    until_nobody_reads(&mut other);
}

/// More than may have a thread: no row is another for it.
#[test]
fn many_cursors_are_open_at_a_time() {
    const CURSORS: usize = 100;
    let (_server, mut raw, mut other) = started();
    for _ in 0..2 {
        done(&mut raw, "BEGIN");
        for cursor in 0..CURSORS {
            let query = "SELECT id FROM t WHERE id BETWEEN 1 AND 5000";
            done(&mut raw, &format!("DECLARE c{cursor} NO SCROLL CURSOR FOR {query}"));
        }
        for first in ["1", "2", "3"] {
            for cursor in 0..CURSORS {
                assert_eq!(rows(&mut raw, &format!("FETCH 1 FROM c{cursor}")), [first]);
            }
        }
        for cursor in 0..CURSORS {
            assert_eq!(told(&raw.query(&format!("MOVE ALL FROM c{cursor}"))), ["MOVE 4997"]);
        }
        done(&mut raw, "CLOSE ALL");
        done(&mut raw, "COMMIT");
        until_nobody_reads(&mut other);
    }
}

/// Those that have no thread begin again, behind the rows that have been fetched; none is gathered.
#[test]
fn many_cursors_go_on_from_where_they_are() {
    const CURSORS: usize = 80;
    const STEP: usize = 1_500;
    // Each of 64 threads keeps some memory for itself; what is gathered would be 28 GB.
    let (_server, mut raw, mut other) = started_with("max_memory=1GB");
    done(&mut raw, "BEGIN");
    for cursor in 0..CURSORS {
        let kind = if cursor % 2 == 0 { "NO SCROLL" } else { "SCROLL" };
        done(&mut raw, &format!("DECLARE c{cursor} {kind} CURSOR FOR {NUMBERS} ORDER BY id"));
        done(&mut raw, &format!("DECLARE l{cursor} NO SCROLL CURSOR FOR {LARGE}"));
    }
    done(&mut other, "DELETE FROM numbers WHERE id % 2 = 0");
    done(&mut other, "UPDATE t SET v = 2");
    let is_old = |body: &[u8]| assert!(begins_with(body, b"1"), "as of one moment");
    for round in 0..3 {
        let expected: Vec<String> = (1..=STEP).map(|row| (round * STEP + row).to_string()).collect();
        for cursor in 0..CURSORS {
            let step = rows(&mut raw, &format!("FETCH {STEP} FROM c{cursor}"));
            assert!(step == expected, "cursor {cursor} in round {round}");
            assert_eq!(count_rows(&mut raw, &format!("FETCH 20 FROM l{cursor}"), is_old), 20);
        }
    }
    // What goes to its end keeps its rows, for which those of the large ones leave room.
    (0..CURSORS).for_each(|cursor| done(&mut raw, &format!("CLOSE l{cursor}")));
    for cursor in (1..CURSORS).step_by(16) {
        assert_eq!(rows(&mut raw, &format!("FETCH FIRST FROM c{cursor}")), ["1"]);
        assert_eq!(rows(&mut raw, &format!("FETCH LAST FROM c{cursor}")), ["60000"]);
        assert_eq!(rows(&mut raw, &format!("FETCH PRIOR FROM c{cursor}")), ["59999"]);
    }
    done(&mut raw, "COMMIT");
    until_nobody_reads(&mut other);
}

#[test]
fn what_is_closed_is_not_read_on() {
    let (server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN");
    for end in ["CLOSE cu", "ROLLBACK TO before", "MOVE ALL FROM cu"] {
        done(&mut raw, "SAVEPOINT before");
        done(&mut raw, &format!("DECLARE cu CURSOR FOR {NUMBERS}"));
        assert_eq!(rows(&mut raw, "FETCH 1 FROM cu"), ["1"]);
        assert_eq!(snapshots(&mut other), "1");
        done(&mut raw, end);
        if end.starts_with("MOVE") {
            // It may come back to its rows.
            assert_eq!(rows(&mut raw, "FETCH PRIOR FROM cu"), ["60000"]);
            done(&mut raw, "CLOSE cu");
        }
        until_nobody_reads(&mut other);
    }
    done(&mut raw, "ROLLBACK");
    // And what its client leaves.
    let mut gone = server.raw();
    done(&mut gone, "BEGIN");
    done(&mut gone, &format!("DECLARE cu CURSOR FOR {NUMBERS}"));
    assert_eq!(snapshots(&mut other), "1");
    drop(gone);
    until_nobody_reads(&mut other);
}

/// Few rows are read at once.
#[test]
fn a_short_result_keeps_nothing() {
    let (_server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN");
    done(&mut raw, "DECLARE cu CURSOR FOR SELECT id FROM numbers WHERE id BETWEEN 1 AND 500");
    assert_eq!(rows(&mut raw, "FETCH 1 FROM cu"), ["1"]);
    assert_eq!(snapshots(&mut other), "0");
    assert_eq!(told(&raw.query("MOVE ALL FROM cu")), ["MOVE 499"]);
    done(&mut raw, "COMMIT");
}

/// As in PostgreSQL: the rows before it are there, and what comes after it is not.
#[test]
fn a_row_that_fails_does_so_where_it_is() {
    let (_server, mut raw, _other) = started();
    for failing in [3, 40_000] {
        done(&mut raw, "BEGIN");
        let query = NUMBERS.replacen("SELECT id", &format!("SELECT 100000 / ({failing} - id)"), 1);
        done(&mut raw, &format!("DECLARE cu CURSOR FOR {query}"));
        assert_eq!(rows(&mut raw, "FETCH 1 FROM cu").len(), 1);
        assert_eq!(
            told(&raw.query(&format!("MOVE {} FROM cu", failing - 2))),
            [format!("MOVE {}", failing - 2)]
        );
        assert_eq!(state(&raw.query("FETCH 1 FROM cu")).as_deref(), Some("22012"));
        done(&mut raw, "ROLLBACK");
    }
}

#[test]
fn a_fetch_can_be_stopped() {
    let (_server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN");
    let endless = "SELECT t.id FROM t, generate_series(1, 100000) n WHERE t.id BETWEEN 1 AND 5000";
    done(&mut raw, &format!("DECLARE cu NO SCROLL CURSOR FOR {endless}"));
    assert_eq!(rows(&mut raw, "FETCH 1 FROM cu"), ["1"]);
    done(&mut raw, "SAVEPOINT s");
    done(&mut raw, "SET LOCAL statement_timeout = '200ms'");
    assert_eq!(state(&raw.query("MOVE ALL FROM cu")).as_deref(), Some("57014"));
    done(&mut raw, "ROLLBACK TO s");
    assert_eq!(state(&raw.query("FETCH 1 FROM cu")).as_deref(), Some("55000"));
    done(&mut raw, "ROLLBACK");
    until_nobody_reads(&mut other);
}

/// Who waits to change a table waits for the transaction that has a cursor over it, which meanwhile
/// fetches on, and opens another.
#[test]
fn a_definition_that_waits_is_not_waited_for() {
    let (_server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN");
    done(&mut raw, &format!("DECLARE c CURSOR FOR {NUMBERS}"));
    assert_eq!(rows(&mut raw, "FETCH 1 FROM c"), ["1"]);
    other.send(b'Q', b"ALTER TABLE numbers ADD COLUMN added int\0");
    wait_for_waiters(&mut raw, 1);
    assert_eq!(rows(&mut raw, "FETCH ABSOLUTE 30000 FROM c"), ["30000"]);
    done(&mut raw, &format!("DECLARE d CURSOR FOR {NUMBERS}"));
    assert_eq!(rows(&mut raw, "FETCH 1 FROM d"), ["1"]);
    assert_eq!(rows(&mut raw, "FETCH ABSOLUTE 59000 FROM d"), ["59000"]);
    done(&mut raw, "COMMIT");
    assert_eq!(state(&other.until(b'Z')), None);
    until_nobody_reads(&mut other);
}

/// What is defined beside a cursor without a word against readers leaves it all its ways, those back to rows
/// that have gone among them.
#[test]
fn a_cursor_goes_back_over_what_is_defined_beside_it() {
    let (_server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN");
    let joined =
        "SELECT a.id FROM numbers a JOIN numbers b ON b.id = a.id - 1 WHERE a.id BETWEEN 2 AND 60000";
    done(&mut raw, &format!("DECLARE c SCROLL CURSOR FOR {NUMBERS}"));
    done(&mut raw, &format!("DECLARE j SCROLL CURSOR FOR {joined}"));
    assert_eq!(rows(&mut raw, "FETCH 2 FROM c"), ["1", "2"]);
    let first = rows(&mut raw, "FETCH 3 FROM j");
    for definition in [
        "CREATE INDEX numbers_n ON numbers (n)",
        "CREATE TABLE refers (id int REFERENCES numbers)",
        "CREATE UNIQUE INDEX numbers_both ON numbers (n, id)",
    ] {
        done(&mut other, definition);
        assert_eq!(rows(&mut raw, "FETCH ABSOLUTE 59000 FROM c"), ["59000"], "{definition}");
        assert_eq!(rows(&mut raw, "FETCH FIRST FROM c"), ["1"], "{definition}");
        done(&mut raw, "MOVE ABSOLUTE 59000 FROM j");
        done(&mut raw, "MOVE ABSOLUTE 0 FROM j");
        assert_eq!(rows(&mut raw, "FETCH 3 FROM j"), first, "{definition}");
    }
    done(&mut other, "DELETE FROM numbers WHERE id < 30");
    assert_eq!(rows(&mut raw, "FETCH ABSOLUTE 59000 FROM c"), ["59000"]);
    assert_eq!(rows(&mut raw, "FETCH FIRST FROM c"), ["1"]);
    done(&mut raw, "COMMIT");
    until_nobody_reads(&mut other);
}

/// WITH HOLD is gathered at COMMIT, and no sooner.
#[test]
fn a_held_cursor_comes_as_it_is_fetched_until_commit() {
    let (_server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN");
    done(&mut raw, "INSERT INTO numbers VALUES (0, 0)");
    done(&mut raw, &format!("DECLARE cu NO SCROLL CURSOR WITH HOLD FOR {LARGE}"));
    let is_old = |body: &[u8]| assert!(begins_with(body, b"1"), "as of one moment");
    assert_eq!(count_rows(&mut raw, "FETCH 10 FROM cu", is_old), 10);
    done(&mut other, "UPDATE t SET v = 2");
    assert_eq!(count_rows(&mut raw, "FETCH 2000 FROM cu", is_old), 2_000);
    // All of them are more than there is memory for.
    assert_eq!(state(&raw.query("COMMIT")).as_deref(), Some("53200"));
    assert_eq!(state(&raw.query("FETCH 1 FROM cu")).as_deref(), Some("34000"));
    assert_eq!(rows(&mut raw, "SELECT count(*) FROM numbers WHERE id = 0"), ["0"]);
    until_nobody_reads(&mut other);
}

#[test]
fn a_held_cursor_shows_what_it_showed_before_commit() {
    let (_server, mut raw, mut other) = started();
    let query = "SELECT n, id FROM numbers WHERE id BETWEEN 1 AND 60000 ORDER BY id";
    for (n, kind) in ["NO SCROLL", "SCROLL", ""].into_iter().enumerate() {
        let n = n + 1;
        done(&mut raw, "BEGIN");
        done(&mut raw, &format!("DECLARE cu {kind} CURSOR WITH HOLD FOR {query}"));
        assert_eq!(rows(&mut raw, "FETCH 2 FROM cu"), [format!("{n}|1"), format!("{n}|2")]);
        assert_eq!(snapshots(&mut other), "1");
        done(&mut raw, "MOVE 30000 FROM cu");
        done(&mut raw, "UPDATE numbers SET n = n + 1");
        done(&mut raw, "COMMIT");
        until_nobody_reads(&mut other);
        assert_eq!(rows(&mut raw, "FETCH 1 FROM cu"), [format!("{n}|30003")]);
        let is_old = |body: &[u8]| assert!(begins_with(body, n.to_string().as_bytes()));
        assert_eq!(count_rows(&mut raw, "FETCH ALL FROM cu", is_old), 29_997);
        if kind == "NO SCROLL" {
            assert_eq!(state(&raw.query("FETCH PRIOR FROM cu")).as_deref(), Some("55000"));
        } else {
            assert_eq!(rows(&mut raw, "FETCH PRIOR FROM cu"), [format!("{n}|60000")]);
            assert_eq!(rows(&mut raw, "FETCH FIRST FROM cu"), [format!("{n}|1")]);
        }
        done(&mut raw, "CLOSE cu");
    }
    // One of a transaction that is undone goes with it, and one before stays.
    done(&mut raw, &format!("DECLARE before CURSOR WITH HOLD FOR {query}"));
    done(&mut raw, "BEGIN");
    done(&mut raw, &format!("DECLARE cu CURSOR WITH HOLD FOR {query}"));
    done(&mut raw, "ROLLBACK");
    assert_eq!(state(&raw.query("FETCH 1 FROM cu")).as_deref(), Some("34000"));
    assert_eq!(rows(&mut raw, "FETCH 1 FROM before"), ["4|1"]);
    until_nobody_reads(&mut other);
}

/// What its rows fail with COMMIT fails with, unless a FETCH has before.
#[test]
fn a_held_cursor_fails_where_its_row_is_needed() {
    let (_server, mut raw, mut other) = started();
    let query = NUMBERS.replacen("SELECT id", "SELECT 100000 / (40000 - id)", 1);
    let declare = format!("DECLARE cu CURSOR WITH HOLD FOR {query}");
    for statement in ["BEGIN", "INSERT INTO numbers VALUES (0, 0)", declare.as_str()] {
        done(&mut raw, statement);
    }
    assert_eq!(rows(&mut raw, "FETCH 1 FROM cu"), ["2"]);
    assert_eq!(state(&raw.query("COMMIT")).as_deref(), Some("22012"));
    assert_eq!(state(&raw.query("FETCH 1 FROM cu")).as_deref(), Some("34000"));
    assert_eq!(rows(&mut raw, "SELECT count(*) FROM numbers WHERE id = 0"), ["0"]);
    for statement in ["BEGIN", declare.as_str(), "SAVEPOINT s"] {
        done(&mut raw, statement);
    }
    assert_eq!(state(&raw.query("MOVE ALL FROM cu")).as_deref(), Some("22012"));
    done(&mut raw, "ROLLBACK TO s");
    done(&mut raw, "COMMIT");
    assert_eq!(state(&raw.query("FETCH 1 FROM cu")).as_deref(), Some("34000"));
    until_nobody_reads(&mut other);
}

/// A cursor shows what its transaction has written before, and nothing that it writes or undoes later.
#[test]
fn a_cursor_shows_what_was_written_before_it() {
    let (_server, mut raw, mut other) = started();
    done(&mut other, "CREATE INDEX numbers_n ON numbers (n)");
    for isolation in ["READ COMMITTED", "REPEATABLE READ"] {
        done(&mut raw, &format!("BEGIN ISOLATION LEVEL {isolation}"));
        done(&mut raw, "UPDATE numbers SET n = 5 WHERE id <= 3");
        done(&mut raw, "DELETE FROM numbers WHERE id = 4");
        done(&mut raw, "INSERT INTO numbers VALUES (0, 9), (60001, 9)");
        done(&mut raw, "SAVEPOINT s");
        done(&mut raw, "UPDATE numbers SET n = 6 WHERE id = 5");
        let query = "SELECT n, id FROM numbers WHERE id BETWEEN 0 AND 60001 ORDER BY id";
        done(&mut raw, &format!("DECLARE inside CURSOR FOR {query}"));
        assert_eq!(rows(&mut raw, "FETCH 6 FROM inside"), ["9|0", "5|1", "5|2", "5|3", "6|5", "1|6"]);
        done(&mut raw, "ROLLBACK TO s");
        assert_eq!(state(&raw.query("FETCH 1 FROM inside")).as_deref(), Some("34000"));
        done(&mut raw, "ROLLBACK TO s");
        done(&mut raw, &format!("DECLARE c SCROLL CURSOR FOR {query}"));
        let by_n = "SELECT n, id FROM numbers WHERE n BETWEEN 1 AND 5 ORDER BY n DESC, id DESC";
        done(&mut raw, &format!("DECLARE d SCROLL CURSOR FOR {by_n}"));
        done(&mut raw, "SAVEPOINT t");
        done(&mut raw, "UPDATE numbers SET n = 7 WHERE id < 40000");
        done(&mut raw, "DELETE FROM numbers WHERE id IN (1, 6, 60001)");
        done(&mut raw, "INSERT INTO numbers VALUES (4, 8)");
        done(&mut other, "UPDATE numbers SET n = 3 WHERE id > 50000 AND id < 60001");
        assert_eq!(rows(&mut raw, "FETCH 6 FROM c"), ["9|0", "5|1", "5|2", "5|3", "1|5", "1|6"]);
        assert_ne!(snapshots(&mut other), "0", "they are not gathered");
        done(&mut raw, "MOVE 20000 FROM c");
        done(&mut raw, "ROLLBACK TO t");
        done(&mut raw, "UPDATE numbers SET n = 2 WHERE id BETWEEN 30000 AND 31000");
        assert_eq!(rows(&mut raw, "FETCH 2 FROM c"), ["1|20007", "1|20008"]);
        done(&mut raw, "MOVE 29990 FROM c");
        assert_eq!(rows(&mut raw, "FETCH LAST FROM c"), ["9|60001"]);
        assert_eq!(rows(&mut raw, "FETCH PRIOR FROM c"), ["1|60000"]);
        assert_eq!(rows(&mut raw, "FETCH FIRST FROM c"), ["9|0"]);
        assert_eq!(count_rows(&mut raw, "FETCH ALL FROM c", |_| ()), 60_000);
        assert_eq!(rows(&mut raw, "FETCH 4 FROM d"), ["5|3", "5|2", "5|1", "1|60000"]);
        assert_eq!(rows(&mut raw, "FETCH LAST FROM d"), ["1|5"]);
        assert_eq!(rows(&mut raw, "FETCH ABSOLUTE 59999 FROM d"), ["1|5"]);
        done(&mut raw, "ROLLBACK");
        done(&mut other, "UPDATE numbers SET n = 1");
        until_nobody_reads(&mut other);
    }
}

/// Memory is bounded where the transaction has written, too; and so is that of a portal.
#[test]
fn a_transaction_that_has_written_gathers_nothing() {
    let (_server, mut raw, mut other) = started();
    done(&mut raw, "BEGIN");
    done(&mut raw, "UPDATE t SET v = 1 WHERE id < 3");
    done(&mut raw, "DELETE FROM t WHERE id = 3");
    let is_old = |body: &[u8]| assert!(begins_with(body, b"1"), "as of one moment");
    done(&mut raw, &format!("DECLARE cu NO SCROLL CURSOR FOR {LARGE}"));
    assert_eq!(count_rows(&mut raw, "FETCH 10 FROM cu", is_old), 10);
    let portal = raw.pipeline(&[parse(LARGE), bind("p"), execute("p", 10)]);
    assert_eq!(state(&portal), None);
    done(&mut raw, "UPDATE t SET v = 2");
    assert_eq!(told(&raw.query("MOVE ALL FROM cu")), [format!("MOVE {}", LARGE_ROWS - 110)]);
    let more = raw.pipeline(&[execute("p", 1000)]);
    assert_eq!(told(&more).len(), 1001);
    assert!(told(&more)[..1000].iter().all(|row| row.starts_with("1|")));
    done(&mut raw, "COMMIT");
    until_nobody_reads(&mut other);
}
