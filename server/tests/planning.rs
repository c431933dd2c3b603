//! While a long text is planned, or a definition goes over many rows, others are answered: sessions of
//! the same executor, and clients that want to begin.

mod common;

use std::io::ErrorKind;
use std::time::Duration;

use common::{Raw, Server, framed, kinds, state};

/// A text is made longer until planning it takes longer than somebody else's answer.
const ROUNDS: u32 = 5;
const NUMBERS_MIN: u32 = 20_000;

/// How long to wait for what must come, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn numbers(count: u32) -> String {
    (0..count).map(|number| (number * 7).to_string()).collect::<Vec<_>>().join(", ")
}

/// The first column of the first row.
fn value(messages: &[(u8, Vec<u8>)]) -> Option<String> {
    let (_, body) = messages.iter().find(|(kind, _)| *kind == b'D')?;
    Some(String::from_utf8_lossy(body.get(6..)?).into_owned())
}

fn pid(raw: &mut Raw) -> String {
    value(&raw.query("SELECT pg_backend_pid()")).expect("it has a number")
}

/// Whether the session runs something, asked until it does or has answered.
fn is_at_work(other: &mut Raw, busy: &Raw, pid: &str) -> bool {
    let active = format!("SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND state = 'active'");
    for _ in 0..6000 {
        if value(&other.query(&active)).is_some() {
            return true;
        }
        if has_answered(busy) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the session never begins");
}

/// Whether something has come that nobody has read.
fn has_answered(raw: &Raw) -> bool {
    // The sender of a long text has the same socket: only reading may not wait.
    let within = |limit| raw.stream.set_read_timeout(Some(limit)).expect("a timeout can be set");
    within(Duration::from_millis(1));
    let seen = raw.stream.peek(&mut [0]);
    within(PATIENCE);
    match seen {
        Ok(count) => count > 0,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
            false
        }
    }
}

fn query(text: &str) -> Vec<u8> {
    framed(b'Q', &[text.as_bytes(), b"\0"].concat())
}

/// Parse of the unnamed statement, and Sync.
fn parse(text: &str) -> Vec<u8> {
    let parse = framed(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"].concat());
    [parse, framed(b'S', b"")].concat()
}

/// Sends messages made of ever longer lists while `meanwhile` says that it came too late; the answer to
/// the last.
fn beside(
    server: &Server,
    message: impl Fn(&str) -> Vec<u8>,
    mut meanwhile: impl FnMut(&mut Raw, &Raw, &str) -> bool,
) -> Vec<(u8, Vec<u8>)> {
    let (mut busy, mut other) = (server.raw(), server.raw());
    let pid = pid(&mut busy);
    for round in 0..ROUNDS {
        let message = message(&numbers(NUMBERS_MIN << round));
        let mut stream = busy.stream.try_clone().expect("a socket can be shared");
        let sending = std::thread::spawn(move || std::io::Write::write_all(&mut stream, &message));
        let in_time = is_at_work(&mut other, &busy, &pid) && meanwhile(&mut other, &busy, &pid);
        sending.join().expect("it does not panic").expect("the server reads");
        let answer = busy.until(b'Z');
        if in_time {
            return answer;
        }
    }
    panic!("nobody is answered before a long text is planned");
}

/// Another session's statement and a new client are answered before the text is.
fn assert_others_are_answered(server: &Server, message: impl Fn(&str) -> Vec<u8>) {
    let answer = beside(server, message, |other, busy, _| {
        let begins = kinds(&server.raw().query("SELECT k FROM few")) == "TDCZ";
        let goes_on = kinds(&other.query("UPDATE few SET k = 1")) == "CZ";
        assert!(begins && goes_on);
        !has_answered(busy)
    });
    assert_eq!(state(&answer), None);
}

fn server() -> Server {
    let server = Server::start(&["archipel.executors=1"]);
    let mut raw = server.raw();
    assert_eq!(state(&raw.query("CREATE TABLE few (k int); INSERT INTO few VALUES (1)")), None);
    server
}

#[test]
fn others_are_answered_while_a_simple_query_is_planned() {
    let server = server();
    assert_others_are_answered(&server, |list| query(&format!("SELECT k FROM few WHERE k + 0 IN ({list})")));
}

#[test]
fn others_are_answered_while_parse_plans() {
    let server = server();
    assert_others_are_answered(&server, |list| parse(&format!("SELECT k FROM few WHERE k + 0 IN ({list})")));
}

#[test]
fn others_are_answered_while_a_utility_plans_its_query() {
    let server = server();
    // Every round makes something of another name.
    for before in ["EXPLAIN", "DECLARE c# CURSOR WITH HOLD FOR", "CREATE TEMP TABLE t# AS", "PREPARE p# AS"] {
        assert_others_are_answered(&server, |list| {
            let before = before.replace('#', &list.len().to_string());
            query(&format!("{before} SELECT k FROM few WHERE k + 0 IN ({list})"))
        });
    }
}

#[test]
fn planning_ends_for_its_client_when_it_is_cancelled() {
    let server = server();
    let messages: [fn(&str) -> Vec<u8>; 2] = [
        |list| query(&format!("SELECT k FROM few WHERE k + 0 IN ({list})")),
        |list| parse(&format!("SELECT k FROM few WHERE k + 0 IN ({list})")),
    ];
    for message in messages {
        let answer = beside(&server, message, |other, busy, pid| {
            let in_time = !has_answered(busy);
            other.query(&format!("SELECT pg_cancel_backend({pid})"));
            in_time && {
                // What comes is the error, if it was not the answer all the same.
                let mut kind = [0];
                busy.stream.peek(&mut kind).is_ok() && kind == *b"E"
            }
        });
        assert_eq!(state(&answer).as_deref(), Some("57014"));
    }
}

#[test]
fn what_is_revoked_while_a_text_is_planned_is_refused() {
    let server = server();
    let grant = "GRANT SELECT ON few TO reader";
    assert_eq!(state(&server.raw().query(&format!("CREATE ROLE reader; {grant}"))), None);
    let message = |list: &str| query(&format!("SET ROLE reader; SELECT k FROM few WHERE k + 0 IN ({list})"));
    let answer = beside(&server, message, |other, busy, _| {
        assert_eq!(kinds(&other.query("REVOKE SELECT ON few FROM reader")), "CZ");
        let in_time = !has_answered(busy);
        if !in_time {
            assert_eq!(kinds(&other.query(grant)), "CZ");
        }
        in_time
    });
    assert_eq!(state(&answer).as_deref(), Some("42501"));
}

#[test]
fn others_are_answered_while_an_index_is_filled() {
    let server = server();
    let (mut busy, mut other) = (server.raw(), server.raw());
    let pid = pid(&mut busy);
    assert_eq!(state(&busy.query("CREATE TABLE many (k int PRIMARY KEY, v int)")), None);
    for round in 0..ROUNDS {
        let (from, to) = ((NUMBERS_MIN << round) + 1, NUMBERS_MIN << (round + 1));
        let fill = format!("INSERT INTO many SELECT n, n * 7 % 1000 FROM generate_series({from}, {to}) n");
        assert_eq!(state(&busy.query(&fill)), None);
        busy.send(b'Q', format!("CREATE INDEX many_{round} ON many (v)\0").as_bytes());
        let in_time = is_at_work(&mut other, &busy, &pid) && {
            let begins = kinds(&server.raw().query("SELECT k FROM few")) == "TDCZ";
            let goes_on = kinds(&other.query("UPDATE few SET k = 1")) == "CZ";
            assert!(begins && goes_on);
            !has_answered(&busy)
        };
        assert_eq!(kinds(&busy.until(b'Z')), "CZ");
        if in_time {
            return;
        }
    }
    panic!("nobody is answered before an index is filled");
}

#[test]
fn execute_takes_more_arguments_than_a_select_has_columns() {
    let server = server();
    let mut raw = server.raw();
    let list = |form: &dyn Fn(u32) -> String| (1..=2500).map(form).collect::<Vec<_>>().join(", ");
    let marks = list(&|number| format!("${number}"));
    assert_eq!(state(&raw.query(&format!("PREPARE many AS SELECT 2500 IN ({marks})"))), None);
    let answer = raw.query(&format!("EXECUTE many({})", list(&|number| number.to_string())));
    assert_eq!(value(&answer).as_deref(), Some("t"), "{:?}", state(&answer));
}

#[test]
fn what_cannot_be_planned_is_told_before_rows_are_described() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (a int)");
    for text in ["SELECT 1/0", "SELECT 1/0 WHERE false", "SELECT a FROM t WHERE a = 1/0", "VALUES (1/0)"] {
        let answer = raw.query(text);
        assert_eq!((kinds(&answer).as_str(), state(&answer).as_deref()), ("EZ", Some("22012")), "{text}");
        let bind = framed(b'B', b"\0\0\0\0\0\0\0\0");
        let execute = framed(b'E', b"\0\0\0\0\0");
        let answer = raw.pipeline(&[common::parse(text), bind, framed(b'D', b"P\0"), execute]);
        assert_eq!(kinds(&answer), "1EZ", "{text}");
    }
    // What no constant is, or what a constant before it decides, is computed when rows are.
    assert_eq!(kinds(&raw.query("SELECT CASE WHEN true THEN 1 ELSE 1/0 END")), "TDCZ");
    assert_eq!(kinds(&raw.query("SELECT current_user::text::int")), "TEZ");
    assert_eq!(kinds(&raw.query("SELECT 1; SELECT 1/0; SELECT 2")), "TDCEZ");
}
