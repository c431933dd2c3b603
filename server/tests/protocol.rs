//! The wire, byte by byte: what is malformed is answered and survived.

mod common;

use common::{Server, framed, kinds, state};
use std::io::Write;

#[test]
fn malformed_messages_are_08p01_and_the_session_goes_on() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    // Truncated Parse, Bind, Execute and Describe: each skipped to Sync.
    for (kind, body) in
        [(b'P', &b"name"[..]), (b'B', b"\0\0\0"), (b'E', b"\0\0"), (b'D', b"X\0"), (b'B', b"\0\0\0\x05")]
    {
        raw.send(kind, body);
        raw.send(b'S', b"");
        let messages = raw.until(b'Z');
        assert_eq!(state(&messages).as_deref(), Some("08P01"), "{}", kind as char);
        assert_eq!(kinds(&messages), "EZ");
    }
    assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ");
    // A query without its terminator, and one with invalid UTF-8.
    raw.send(b'Q', b"SELECT 1");
    assert_eq!(state(&raw.until(b'Z')).as_deref(), Some("08P01"));
    raw.send(b'Q', b"SELECT '\xff'\0");
    assert_eq!(state(&raw.until(b'Z')).as_deref(), Some("22021"));
    assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ");
}

#[test]
fn what_cannot_be_framed_ends_the_connection_and_nothing_else() {
    let server = Server::start(&[]);
    for bytes in
        [&[b'z', 0, 0, 0, 4][..], &[b'Q', 0, 0, 0, 1], &[b'Q', 0x7f, 255, 255, 255], &[b'S', 0, 1, 0, 0]]
    {
        let mut raw = server.raw();
        raw.stream.write_all(bytes).unwrap();
        let (kind, body) = raw.receive().expect("an error");
        assert_eq!(kind, b'E');
        assert!(String::from_utf8_lossy(&body).contains("FATAL"));
        assert!(raw.receive().is_none(), "the connection should be closed");
    }
    for body in [&b"\0\x03\0\0user\0archipel"[..], b"\0\x02\0\0user\0a\0\0", b""] {
        let mut raw = server.unopened();
        raw.send_untyped(body);
        assert_eq!(raw.receive().expect("an error").0, b'E');
    }
    assert_eq!(kinds(&server.raw().query("SELECT 1")), "TDCZ");
}

#[test]
fn unknown_roles_and_databases_are_refused() {
    let server = Server::start(&[]);
    for (parameters, code) in [
        (&b"user\0nobody\0database\0archipel\0\0"[..], "28000"),
        (b"user\0archipel\0database\0nothing\0\0", "3D000"),
        (b"database\0archipel\0\0", "28000"),
    ] {
        let mut raw = server.unopened();
        raw.send_untyped(&[&[0, 3, 0, 0], parameters].concat());
        let message = raw.receive().expect("an error");
        assert_eq!(state(&[message]).as_deref(), Some(code));
    }
}

#[test]
fn encryption_requests_are_declined_and_the_client_may_go_on() {
    use std::io::Read;
    let server = Server::start(&[]);
    let mut raw = server.unopened();
    for code in [80_877_103u32, 80_877_104] {
        raw.send_untyped(&code.to_be_bytes());
        let mut answer = [0];
        raw.stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"N");
    }
    raw.send_untyped(b"\0\x03\0\0user\0archipel\0database\0archipel\0\0");
    assert_eq!(raw.until(b'Z')[0].0, b'R');
}

#[test]
fn pipelined_messages_are_one_transaction_up_to_sync() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (id int PRIMARY KEY)");
    let step = |text: &str| {
        let mut bytes = framed(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"].concat());
        bytes.extend(framed(b'B', b"\0\0\0\0\0\0\0\0"));
        bytes.extend(framed(b'E', b"\0\0\0\0\0"));
        bytes
    };
    let mut pipeline = step("INSERT INTO t VALUES (1)");
    pipeline.extend(step("INSERT INTO t VALUES (1)"));
    pipeline.extend(step("INSERT INTO t VALUES (2)"));
    pipeline.extend(framed(b'S', b""));
    raw.stream.write_all(&pipeline).unwrap();
    let messages = raw.until(b'Z');
    assert_eq!(kinds(&messages), "12C12EZ");
    assert_eq!(state(&messages).as_deref(), Some("23505"));
    let count = raw.query("SELECT count(*) FROM t");
    assert!(
        count.iter().any(|(kind, body)| *kind == b'D' && body.ends_with(b"0")),
        "the first insert stayed"
    );
}

#[test]
fn portals_answer_in_portions() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let text = "SELECT g FROM generate_series(1, 5) AS g";
    let mut bytes = framed(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"].concat());
    bytes.extend(framed(b'B', b"\0\0\0\0\0\0\0\0"));
    for _ in 0..3 {
        bytes.extend(framed(b'E', b"\0\0\0\0\x02"));
    }
    bytes.extend(framed(b'S', b""));
    raw.stream.write_all(&bytes).unwrap();
    assert_eq!(kinds(&raw.until(b'Z')), "12DDsDDsDCZ");
}

#[test]
fn a_cancel_request_stops_a_running_statement() {
    let server = Server::start(&[]);
    let mut raw = server.unopened();
    raw.send_untyped(b"\0\x03\0\0user\0archipel\0database\0archipel\0\0");
    let greeting = raw.until(b'Z');
    let key = greeting.iter().find(|(kind, _)| *kind == b'K').expect("a key").1.clone();
    raw.send(b'Q', b"DO $$ BEGIN LOOP END LOOP; END $$\0");
    // A request that comes before the statement cancels nothing.
    let mut other = server.raw();
    let running = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()";
    while !kinds(&other.query(running)).contains('D') {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut canceller = server.unopened();
    canceller.send_untyped(&[&80_877_102u32.to_be_bytes(), &key[..]].concat());
    assert_eq!(state(&raw.until(b'Z')).as_deref(), Some("57014"));
    assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ");
}
