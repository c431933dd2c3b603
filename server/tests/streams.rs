//! Large results leave as they come, and as their client reads them: memory is bounded by a portion,
//! and nobody waits for who does not read.

mod common;

use std::time::Duration;

use common::{Raw, Server, state};

/// How long a test waits for what must not take long, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the server may take; the results below are larger.
const LIMIT: &str = "max_memory=256MB";

/// A query that reads a range of keys, which native execution does, and answers 300 MB.
const LARGE: &str = "SELECT t.v, t.id, repeat('x', 10000) FROM t, generate_series(1, 6) n \
                     WHERE t.id BETWEEN 1 AND 5000";
const LARGE_ROWS: usize = 30_000;

/// A query that reads a table whole, over a snapshot; its rows as values are more than the server may take.
const WHOLE: &str = "SELECT t.v, t.id, repeat('x', 700) FROM t, generate_series(1, 80) n";
const WHOLE_ROWS: usize = 400_000;

fn started() -> (Server, Raw, Raw) {
    let server = Server::start(&[LIMIT]);
    let (mut raw, other) = (server.raw(), server.raw());
    raw.query("CREATE TABLE t (id int PRIMARY KEY, v int)");
    raw.query("INSERT INTO t SELECT g, 1 FROM generate_series(1, 5000) g");
    other.stream.set_read_timeout(Some(PATIENCE)).expect("a socket has timeouts");
    raw.stream.set_read_timeout(Some(PATIENCE)).expect("a socket has timeouts");
    (server, raw, other)
}

fn ask(raw: &mut Raw, text: &str) {
    raw.send(b'Q', &[text.as_bytes(), b"\0"].concat());
}

/// Reads up to the first message of a kind.
fn first(raw: &mut Raw, kind: u8) -> Vec<u8> {
    loop {
        let (found, body) = raw.receive().expect("the server goes on talking");
        assert_ne!(found, b'E', "{}", String::from_utf8_lossy(&body));
        if found == kind {
            return body;
        }
    }
}

/// Reads up to ReadyForQuery: how many messages of a kind there were, and the last other one.
fn rest(raw: &mut Raw, kind: u8, check: impl Fn(&[u8])) -> (usize, (u8, Vec<u8>)) {
    let (mut count, mut last) = (0, (0, Vec::new()));
    loop {
        let (found, body) = raw.receive().expect("the server goes on talking");
        match found {
            b'Z' => return (count, last),
            _ if found == kind => {
                check(&body);
                count += 1;
            }
            _ => last = (found, body),
        }
    }
}

/// The first column of a DataRow.
fn first_value(body: &[u8]) -> &[u8] {
    let length = u32::from_be_bytes([body[2], body[3], body[4], body[5]]) as usize;
    &body[6..6 + length]
}

/// While a client does not read on, others write what it has asked for.
fn others_write(other: &mut Raw) {
    for statement in [
        "UPDATE t SET v = 2",
        "DELETE FROM t WHERE id > 4000",
        "INSERT INTO t SELECT g, 3 FROM generate_series(4001, 4100) g",
    ] {
        let answer = other.query(statement);
        assert_eq!(state(&answer), None, "{statement}");
    }
}

fn is_streamed(begin: &[&str], query: &str, count: usize) {
    let (_server, mut raw, mut other) = started();
    for statement in begin {
        raw.query(statement);
    }
    ask(&mut raw, query);
    assert_eq!(first_value(&first(&mut raw, b'D')), b"1");
    others_write(&mut other);
    let (rows, last) = rest(&mut raw, b'D', |row| assert_eq!(first_value(row), b"1", "as of one moment"));
    assert_eq!((rows + 1, last), (count, (b'C', format!("SELECT {count}\0").into_bytes())));
}

#[test]
fn a_result_is_streamed() {
    is_streamed(&[], LARGE, LARGE_ROWS);
}

#[test]
fn a_result_is_streamed_in_a_transaction() {
    is_streamed(&["BEGIN"], LARGE, LARGE_ROWS);
}

#[test]
fn a_result_is_streamed_in_a_transaction_that_has_written() {
    is_streamed(
        &["BEGIN", "CREATE TEMP TABLE mine (a int)", "COMMIT", "BEGIN", "INSERT INTO mine VALUES (1)"],
        LARGE,
        LARGE_ROWS,
    );
}

#[test]
fn a_result_of_a_whole_table_is_streamed() {
    is_streamed(&[], WHOLE, WHOLE_ROWS);
}

#[test]
fn a_copy_is_streamed() {
    let (_server, mut raw, mut other) = started();
    ask(&mut raw, &format!("COPY ({LARGE}) TO STDOUT"));
    assert!(first(&mut raw, b'd').starts_with(b"1\t"));
    others_write(&mut other);
    let (rows, last) = rest(&mut raw, b'd', |row| assert!(row.starts_with(b"1\t"), "as of one moment"));
    assert_eq!((rows + 1, last), (LARGE_ROWS, (b'C', format!("COPY {LARGE_ROWS}\0").into_bytes())));
}

/// What a transaction has written into reference tables is there for each row, where it is looked for after
/// others could have left, too.
#[test]
fn a_result_shows_what_was_written_into_reference_tables() {
    const ROWS: usize = 40_000;
    let server = Server::start(&["archipel.one_shot_budget=1"]);
    let mut raw = server.raw();
    for statement in [
        "CREATE TABLE t (id int PRIMARY KEY)",
        "INSERT INTO t SELECT generate_series(1, 40000)",
        "CREATE TABLE names (id int PRIMARY KEY, name text)",
        "SELECT create_reference_table('names')",
        "INSERT INTO names VALUES (1, 'before')",
        "BEGIN",
        "UPDATE names SET name = 'after'",
    ] {
        assert_eq!(state(&raw.query(statement)), None, "{statement}");
    }
    ask(
        &mut raw,
        "SELECT CASE WHEN t.id > 39000 THEN (SELECT name FROM names WHERE names.id = t.id / t.id) ELSE '' END, \
         repeat('x', 500) FROM t WHERE t.id BETWEEN 1 AND 40000",
    );
    let named = std::cell::Cell::new(0);
    let (rows, last) = rest(&mut raw, b'D', |row| match first_value(row) {
        b"" => {}
        name => {
            assert_eq!(name, b"after");
            named.set(named.get() + 1);
        }
    });
    assert_eq!((rows, last.0, named.get()), (ROWS, b'C', 1_000));
}

/// Who waits begins anew, so its rows have not left by then.
#[test]
fn a_query_that_waits_between_two_rows_answers_all() {
    let server = Server::start(&["archipel.one_shot_budget=1"]);
    let (mut raw, mut other) = (server.raw(), server.raw());
    raw.query("CREATE TABLE t (id int PRIMARY KEY)");
    raw.query("INSERT INTO t SELECT generate_series(1, 20000)");
    other.query("SELECT pg_advisory_lock(15000)");
    ask(
        &mut raw,
        "SELECT 'row', repeat('x', 500), CASE WHEN id = 15000 THEN pg_advisory_lock(id) END FROM t \
         WHERE id BETWEEN 1 AND 20000",
    );
    let waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory'";
    for turn in 0.. {
        if !values(&mut other, waits).is_empty() {
            break;
        }
        assert!(turn < 6_000, "nobody waits");
        std::thread::sleep(Duration::from_millis(10));
    }
    other.query("SELECT pg_advisory_unlock(15000)");
    assert_eq!(rest(&mut raw, b'D', |_| ()), (20_000, (b'C', b"SELECT 20000\0".to_vec())));
}

/// As PostgreSQL: rows before it, and then the error.
#[test]
fn what_fails_later_is_told_behind_the_rows() {
    let (_server, mut raw, _other) = started();
    // So late that the rows before it have no room, and have left.
    ask(&mut raw, &LARGE.replacen("t.v", "1 / (n * t.id - 29994)", 1));
    let (rows, (kind, error)) = rest(&mut raw, b'D', |_| ());
    assert_eq!((kind, state(&[(kind, error)]).as_deref()), (b'E', Some("22012")));
    assert!(rows > 0 && rows < LARGE_ROWS, "{rows} rows before the error");
    assert_eq!(state(&raw.query("SELECT 1")), None);
}

#[test]
fn who_does_not_read_can_be_cancelled() {
    let (_server, mut raw, mut other) = started();
    ask(&mut raw, LARGE);
    first(&mut raw, b'D');
    let cancelled = other.query(
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()",
    );
    assert_eq!(state(&cancelled), None);
    let (rows, (kind, error)) = rest(&mut raw, b'D', |_| ());
    assert_eq!((kind, state(&[(kind, error)]).as_deref()), (b'E', Some("57014")));
    assert!(rows < LARGE_ROWS);
}

fn extended(raw: &mut Raw, messages: &[(u8, Vec<u8>)]) {
    for (kind, body) in messages {
        raw.send(*kind, body);
    }
}

fn execute(rows_max: u32) -> (u8, Vec<u8>) {
    (b'E', [b"\0", &rows_max.to_be_bytes()[..]].concat())
}

#[test]
fn a_portal_is_streamed() {
    let (_server, mut raw, mut other) = started();
    raw.query("BEGIN");
    let parse = (b'P', [b"\0", WHOLE.as_bytes(), b"\0\0\0"].concat());
    let bind = (b'B', vec![0; 8]);
    extended(&mut raw, &[parse, bind, execute(10), (b'H', Vec::new())]);
    let mut rows = 0;
    loop {
        let (kind, body) = raw.receive().expect("the server goes on talking");
        match kind {
            b'1' | b'2' => {}
            b'D' => {
                assert_eq!(first_value(&body), b"1", "as of one moment");
                rows += 1;
            }
            b's' => {
                if rows == 10 {
                    others_write(&mut other);
                }
                extended(&mut raw, &[execute(20_000), (b'H', Vec::new())]);
            }
            b'C' => break,
            other => panic!("{}: {}", other as char, String::from_utf8_lossy(&body)),
        }
    }
    assert_eq!(rows, WHOLE_ROWS);
    extended(&mut raw, &[(b'S', Vec::new())]);
    assert_eq!(rest(&mut raw, b'D', |_| ()).0, 0);
}

#[test]
fn a_cursor_is_streamed() {
    let (_server, mut raw, mut other) = started();
    raw.query("BEGIN");
    assert_eq!(state(&raw.query(&format!("DECLARE cu CURSOR FOR {WHOLE}"))), None);
    for _ in 0..3 {
        ask(&mut raw, "FETCH 10 FROM cu");
        assert_eq!(rest(&mut raw, b'D', |row| assert_eq!(first_value(row), b"1")).0, 10);
    }
    others_write(&mut other);
    ask(&mut raw, "MOVE 1000 FROM cu");
    assert_eq!(rest(&mut raw, b'D', |_| ()), (0, (b'C', b"MOVE 1000\0".to_vec())));
    ask(&mut raw, "FETCH ALL FROM cu");
    let (rows, last) = rest(&mut raw, b'D', |row| assert_eq!(first_value(row), b"1", "as of one moment"));
    assert_eq!(
        (rows, last),
        (WHOLE_ROWS - 1_030, (b'C', format!("FETCH {}\0", WHOLE_ROWS - 1_030).into_bytes()))
    );
    assert_eq!(state(&raw.query("COMMIT")), None);
}

/// The rows of an answer, by their first column.
fn values(raw: &mut Raw, statement: &str) -> Vec<String> {
    let answer = raw.query(statement);
    assert_eq!(state(&answer), None, "{statement}");
    let rows = answer.iter().filter(|(kind, _)| *kind == b'D');
    rows.map(|(_, body)| String::from_utf8_lossy(first_value(body)).into_owned()).collect()
}

#[test]
fn a_cursor_goes_back_to_rows_that_it_has_let_go() {
    let (_server, mut raw, mut other) = started();
    raw.query("CREATE TABLE numbers (id int PRIMARY KEY)");
    raw.query("INSERT INTO numbers SELECT generate_series(1, 60000)");
    raw.query("BEGIN");
    raw.query("DECLARE cu SCROLL CURSOR FOR SELECT id FROM numbers");
    assert_eq!(values(&mut raw, "FETCH 3 FROM cu"), ["1", "2", "3"]);
    assert_eq!(state(&other.query("DELETE FROM numbers WHERE id % 2 = 0")), None);
    raw.query("MOVE 50000 FROM cu");
    assert_eq!(values(&mut raw, "FETCH 2 FROM cu"), ["50004", "50005"]);
    assert_eq!(values(&mut raw, "FETCH BACKWARD 2 FROM cu"), ["50004", "50003"]);
    assert_eq!(values(&mut raw, "FETCH FIRST FROM cu"), ["1"]);
    assert_eq!(values(&mut raw, "FETCH LAST FROM cu"), ["60000"]);
    assert_eq!(values(&mut raw, "FETCH NEXT FROM cu"), [""; 0]);
    assert_eq!(values(&mut raw, "FETCH PRIOR FROM cu"), ["60000"]);
    assert_eq!(values(&mut raw, "FETCH ABSOLUTE 20000 FROM cu"), ["20000"]);
    assert_eq!(values(&mut raw, "FETCH RELATIVE 0 FROM cu"), ["20000"]);
    assert_eq!(values(&mut raw, "FETCH RELATIVE -19998 FROM cu"), ["2"]);
}

/// Rows that a query answers otherwise, or in another order, the next time.
#[test]
fn a_cursor_goes_back_to_the_same_rows() {
    let (_server, mut raw, _other) = started();
    raw.query("CREATE TABLE numbers (id int PRIMARY KEY)");
    raw.query("INSERT INTO numbers SELECT generate_series(1, 60000)");
    for query in ["SELECT random() FROM numbers", "SELECT id FROM numbers UNION ALL SELECT -id FROM numbers"]
    {
        raw.query("BEGIN");
        raw.query(&format!("DECLARE cu SCROLL CURSOR FOR {query}"));
        let before = values(&mut raw, "FETCH 55000 FROM cu");
        raw.query("MOVE ABSOLUTE 0 FROM cu");
        assert!(values(&mut raw, "FETCH 55000 FROM cu") == before, "{query}");
        raw.query("ROLLBACK");
    }
}

/// As in PostgreSQL: rows have got lost on their way.
#[test]
fn a_cursor_that_was_stopped_is_not_moved_again() {
    let (_server, mut raw, _other) = started();
    raw.query("BEGIN");
    raw.query("DECLARE cu CURSOR FOR SELECT t.id FROM t, generate_series(1, 100000) n");
    assert_eq!(values(&mut raw, "FETCH 1 FROM cu").len(), 1);
    raw.query("SAVEPOINT s");
    raw.query("SET LOCAL statement_timeout = '200ms'");
    assert_eq!(state(&raw.query("SELECT pg_sleep(600)")).as_deref(), Some("57014"));
    raw.query("ROLLBACK TO s");
    assert_eq!(values(&mut raw, "FETCH 1 FROM cu").len(), 1, "it was another statement");
    raw.query("SET LOCAL statement_timeout = '200ms'");
    assert_eq!(state(&raw.query("MOVE ALL FROM cu")).as_deref(), Some("57014"));
    raw.query("ROLLBACK TO s");
    assert_eq!(state(&raw.query("FETCH 1 FROM cu")).as_deref(), Some("55000"));
}

#[test]
fn a_routine_moves_a_cursor_whose_rows_have_not_come() {
    let (_server, mut raw, _other) = started();
    raw.query("CREATE TABLE numbers (id int PRIMARY KEY)");
    raw.query("INSERT INTO numbers SELECT generate_series(1, 60000)");
    raw.query(
        "CREATE FUNCTION further(c refcursor, n int) RETURNS int LANGUAGE plpgsql AS $$ \
         DECLARE r record; \
         BEGIN \
         BEGIN MOVE FORWARD n FROM c; EXCEPTION WHEN OTHERS THEN RETURN -1; END; \
         FETCH c INTO r; RETURN r.id; END $$",
    );
    raw.query("BEGIN");
    raw.query("DECLARE cu CURSOR FOR SELECT id FROM numbers");
    assert_eq!(values(&mut raw, "FETCH 3 FROM cu"), ["1", "2", "3"]);
    assert_eq!(values(&mut raw, "SELECT further('cu', 55000)"), ["55004"]);
    assert_eq!(values(&mut raw, "FETCH 2 FROM cu"), ["55005", "55006"]);
    assert_eq!(values(&mut raw, "SELECT further('cu', 1)"), ["55008"]);
}

#[test]
fn what_a_cursor_fails_with_comes_where_its_row_would_be() {
    let (_server, mut raw, _other) = started();
    raw.query("CREATE TABLE numbers (id int PRIMARY KEY)");
    raw.query("INSERT INTO numbers SELECT generate_series(1, 60000)");
    raw.query("BEGIN");
    raw.query("DECLARE cu CURSOR FOR SELECT 100000 / (59999 - id) FROM numbers");
    assert_eq!(values(&mut raw, "FETCH 2 FROM cu"), ["1", "1"]);
    assert_eq!(state(&raw.query("FETCH ALL FROM cu")).as_deref(), Some("22012"));
    raw.query("ROLLBACK");
    // What is closed lets go of its query.
    for _ in 0..100 {
        raw.query("BEGIN");
        raw.query("DECLARE cu CURSOR FOR SELECT id FROM numbers");
        assert_eq!(values(&mut raw, "FETCH 1 FROM cu"), ["1"]);
        raw.query("COMMIT");
    }
}
