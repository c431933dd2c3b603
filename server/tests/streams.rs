//! Large results leave as they come, and as their client reads them: memory is bounded by a portion,
//! and nobody waits for who does not read.

mod common;

use std::time::Duration;

use common::{Raw, Server, state};

/// How long a test waits for what must not take long, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the server may take; the results below are larger.
const LIMIT: &str = "max_memory=256MB";

const ROWS: usize = 40_000;

/// A query that reads a range of keys, and answers 400 MB.
const LARGE: &str = "SELECT t.v, t.id, repeat('x', 10000) FROM t, generate_series(1, 8) n \
                     WHERE t.id BETWEEN 1 AND 5000";

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

fn is_streamed(begin: &[&str], query: &str) {
    let (_server, mut raw, mut other) = started();
    for statement in begin {
        raw.query(statement);
    }
    ask(&mut raw, query);
    assert_eq!(first_value(&first(&mut raw, b'D')), b"1");
    others_write(&mut other);
    let (rows, last) = rest(&mut raw, b'D', |row| assert_eq!(first_value(row), b"1", "as of one moment"));
    assert_eq!((rows + 1, last), (ROWS, (b'C', b"SELECT 40000\0".to_vec())));
}

#[test]
fn a_result_is_streamed() {
    is_streamed(&[], LARGE);
}

#[test]
fn a_result_is_streamed_in_a_transaction() {
    is_streamed(&["BEGIN"], LARGE);
}

#[test]
fn a_result_is_streamed_in_a_transaction_that_has_written() {
    is_streamed(
        &["BEGIN", "CREATE TEMP TABLE mine (a int)", "COMMIT", "BEGIN", "INSERT INTO mine VALUES (1)"],
        LARGE,
    );
}

#[test]
fn a_result_of_a_whole_table_is_streamed() {
    is_streamed(&[], "SELECT t.v, t.id, repeat('x', 10000) FROM t, generate_series(1, 8) n");
}

#[test]
fn a_copy_is_streamed() {
    let (_server, mut raw, mut other) = started();
    ask(&mut raw, &format!("COPY ({LARGE}) TO STDOUT"));
    assert!(first(&mut raw, b'd').starts_with(b"1\t"));
    others_write(&mut other);
    let (rows, last) = rest(&mut raw, b'd', |row| assert!(row.starts_with(b"1\t"), "as of one moment"));
    assert_eq!((rows + 1, last), (ROWS, (b'C', b"COPY 40000\0".to_vec())));
}

/// As PostgreSQL: rows before it, and then the error.
#[test]
fn what_fails_later_is_told_behind_the_rows() {
    let (_server, mut raw, _other) = started();
    ask(&mut raw, &LARGE.replacen("t.v", "1 / (4999 - t.id)", 1));
    let (rows, (kind, error)) = rest(&mut raw, b'D', |_| ());
    assert_eq!((kind, state(&[(kind, error)]).as_deref()), (b'E', Some("22012")));
    assert!(rows > 0 && rows < ROWS, "{rows} rows before the error");
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
    assert!(rows < ROWS);
}
