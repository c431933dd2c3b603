//! Portals of the protocol and cursors of SQL are one: whoever opened one, either may describe, fetch,
//! move and close it; and every statement that answers rows answers them in portions.

mod common;

use common::{Raw, Server, framed, kinds, parse, state, told};

/// Bind of the unnamed statement; `formats` are those of the result, with their number before them.
fn bind(portal: &str, formats: &[u8]) -> Vec<u8> {
    framed(b'B', &[portal.as_bytes(), b"\0\0\0\0\0\0", formats].concat())
}

fn describe(portal: &str) -> Vec<u8> {
    framed(b'D', &[b"P", portal.as_bytes(), b"\0"].concat())
}

fn execute(portal: &str, rows_max: u32) -> Vec<u8> {
    framed(b'E', &[portal.as_bytes(), b"\0", &rows_max.to_be_bytes()[..]].concat())
}

fn close(portal: &str) -> Vec<u8> {
    framed(b'C', &[b"P", portal.as_bytes(), b"\0"].concat())
}

fn started() -> (Server, Raw) {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (a int PRIMARY KEY, b text)");
    raw.query("INSERT INTO t SELECT g, 'r' || g FROM generate_series(1, 6) g");
    (server, raw)
}

#[test]
fn a_declared_cursor_is_a_portal() {
    let (_server, mut raw) = started();
    raw.query("BEGIN");
    raw.query("DECLARE cu CURSOR FOR SELECT a, b FROM t ORDER BY a");
    let messages = [describe("cu"), execute("cu", 2), execute("cu", 0), execute("cu", 1), close("cu")];
    let answer = raw.pipeline(&messages);
    assert_eq!(kinds(&answer), "TDDsDDDDCC3Z");
    assert_eq!(told(&answer), ["1|r1", "2|r2", "s", "3|r3", "4|r4", "5|r5", "6|r6", "SELECT 4", "SELECT 0"]);
    assert_eq!(told(&raw.pipeline(&[execute("cu", 1)])), ["34000"]);
    raw.query("ROLLBACK");
    // What is closed need not be there, a name is used once.
    assert_eq!(kinds(&raw.pipeline(&[close("cu")])), "3Z");
    raw.query("BEGIN");
    raw.query("DECLARE cu CURSOR FOR SELECT 1");
    assert_eq!(told(&raw.pipeline(&[parse("SELECT 2"), bind("cu", b"\0\0")])), ["42P03"]);
    raw.query("ROLLBACK");
}

#[test]
fn a_portal_is_a_cursor_and_each_fetch_has_formats_of_its_own() {
    let (_server, mut raw) = started();
    raw.query("BEGIN");
    let query = parse("SELECT a, b FROM t ORDER BY a");
    let answer = raw.pipeline(&[query.clone(), bind("p", b"\0\x01\0\x01"), execute("p", 1)]);
    assert_eq!(told(&answer), ["\0\0\0\x01|r1", "s"]);
    assert_eq!(told(&raw.query("FETCH 2 FROM p")), ["2|r2", "3|r3", "FETCH 2"]);
    assert_eq!(told(&raw.query("MOVE 1 IN p")), ["MOVE 1"]);
    assert_eq!(told(&raw.pipeline(&[execute("p", 1)])), ["\0\0\0\x05|r5", "s"]);
    // One that has not run yet, too; the row it stands on can be changed.
    raw.pipeline(&[query.clone(), bind("q", b"\0\0")]);
    assert_eq!(told(&raw.query("MOVE FORWARD 2 IN q")), ["MOVE 2"]);
    assert_eq!(told(&raw.query("UPDATE t SET b = 'new' WHERE CURRENT OF q RETURNING a")), ["2", "UPDATE 1"]);
    assert_eq!(told(&raw.pipeline(&[execute("q", 1)])), ["3|r3", "s"]);
    let shown = raw.query("SELECT name, statement, is_scrollable FROM pg_cursors ORDER BY name");
    assert_eq!(told(&shown)[..2], ["p|SELECT a, b FROM t ORDER BY a|f", "q|SELECT a, b FROM t ORDER BY a|f"]);
    // And where its rows are locked.
    let locked = parse("SELECT a FROM t ORDER BY a FOR UPDATE");
    raw.pipeline(&[locked, bind("l", b"\0\0"), execute("l", 2)]);
    let changed = raw.query("UPDATE t SET b = 'held' WHERE CURRENT OF l RETURNING a");
    assert_eq!(told(&changed), ["2", "UPDATE 1"]);
    assert_eq!(told(&raw.pipeline(&[execute("l", 1)])), ["3", "s"]);
    assert_eq!(told(&raw.query("CLOSE q")), ["CLOSE CURSOR"]);
    assert_eq!(told(&raw.pipeline(&[execute("q", 1)])), ["34000"]);
    raw.query("ROLLBACK");
    raw.query("BEGIN");
    raw.pipeline(&[query, bind("p", b"\0\0"), execute("p", 2)]);
    assert_eq!(told(&raw.query("FETCH BACKWARD 1 FROM p")), ["55000"]);
    raw.query("ROLLBACK");
    assert_eq!(told(&raw.pipeline(&[execute("p", 1)])), ["34000"]);
}

#[test]
fn every_statement_that_answers_rows_answers_them_in_portions() {
    let (_server, mut raw) = started();
    raw.query("CREATE PROCEDURE half(a int, INOUT b int) LANGUAGE plpgsql AS $$ BEGIN b := a / 2; END $$");
    raw.query("PREPARE ps AS SELECT g FROM generate_series(1, 4) g");
    raw.query("PREPARE ins AS INSERT INTO t VALUES (70, 'x'), (71, 'y'), (72, 'z') RETURNING a");
    let mut portions = |text: &str| {
        let messages = [parse(text), bind("", b"\0\0"), execute("", 2), execute("", 2), execute("", 2)];
        told(&raw.pipeline(&messages))
    };
    assert_eq!(portions("SHOW search_path"), ["\"$user\", public", "SHOW", "SHOW", "SHOW"]);
    assert_eq!(portions("VALUES (1), (2), (3)"), ["1", "2", "s", "3", "SELECT 1", "SELECT 0"]);
    assert_eq!(portions("EXECUTE ps"), ["1", "2", "s", "3", "4", "s", "SELECT 0"]);
    assert_eq!(portions("EXECUTE ins"), ["70", "71", "s", "72", "INSERT 0 1", "INSERT 0 0"]);
    let inserted = portions("INSERT INTO t VALUES (7, 'a'), (8, 'b'), (9, 'c') RETURNING a");
    assert_eq!(inserted, ["7", "8", "s", "9", "INSERT 0 1", "INSERT 0 0"]);
    assert_eq!(portions("CALL half(8, NULL)"), ["4", "CALL", "CALL", "CALL"]);
    assert_eq!(portions("SELECT 1 WHERE false"), ["SELECT 0", "SELECT 0", "SELECT 0"]);
    let explained = portions("EXPLAIN SELECT 1");
    assert_eq!(explained.last().map(String::as_str), Some("EXPLAIN"));
    raw.query("BEGIN");
    raw.query("DECLARE c CURSOR FOR SELECT a FROM t WHERE a < 4 ORDER BY a");
    let fetch = parse("FETCH ALL FROM c");
    let answer = raw.pipeline(&[fetch, bind("", b"\0\0"), execute("", 2), execute("", 2)]);
    assert_eq!(told(&answer), ["1", "2", "s", "3", "FETCH 1"]);
    raw.query("ROLLBACK");
}

#[test]
fn what_is_still_to_come_is_described_as_answering_nothing() {
    let (_server, mut raw) = started();
    let statement = framed(b'D', b"S\0");
    for (text, code) in [("FETCH 1 FROM missing", "34000"), ("EXECUTE missing", "26000")] {
        let messages = [parse(text), statement.clone(), bind("", b"\0\0"), describe(""), execute("", 0)];
        let answer = raw.pipeline(&messages);
        assert_eq!(kinds(&answer), "1tn2nEZ", "{text}");
        assert_eq!(state(&answer).as_deref(), Some(code));
    }
    // It may come in the same pipeline.
    raw.query(
        "CREATE FUNCTION f() RETURNS refcursor LANGUAGE plpgsql AS \
         $$ DECLARE c refcursor; BEGIN OPEN c FOR SELECT a FROM t ORDER BY a; RETURN c; END $$",
    );
    raw.query("BEGIN");
    let (opens, fetches) = (parse("SELECT f()"), parse("FETCH ALL FROM \"<unnamed portal 1>\""));
    let messages = [
        opens,
        bind("", b"\0\0"),
        execute("", 0),
        fetches,
        bind("", b"\0\x01\0\x01"),
        describe(""),
        execute("", 2),
    ];
    let answer = raw.pipeline(&messages);
    assert_eq!(kinds(&answer), "12DC12TDDsZ");
    assert_eq!(told(&answer)[2..], ["\0\0\0\x01", "\0\0\0\x02", "s"]);
    raw.query("ROLLBACK");
}

#[test]
fn declare_and_explain_take_parameters() {
    let (_server, mut raw) = started();
    raw.query("BEGIN");
    let given = framed(b'B', b"\0\0\0\0\0\x01\0\0\0\x014\0\0");
    let declare = parse("DECLARE d CURSOR FOR SELECT a FROM t WHERE a > $1 ORDER BY a");
    let answer = raw.pipeline(&[declare, framed(b'D', b"S\0"), given.clone(), execute("", 0), describe("d")]);
    assert_eq!(kinds(&answer), "1tn2CTZ");
    let (_, parameters) = answer.iter().find(|(kind, _)| *kind == b't').unwrap();
    assert_eq!(parameters[..], [0, 1, 0, 0, 0, 23], "its type is found out");
    assert_eq!(told(&raw.query("FETCH ALL FROM d")), ["5", "6", "FETCH 2"]);
    raw.query("COMMIT");
    let explain = parse("EXPLAIN SELECT a FROM t WHERE a > $1");
    let answer = raw.pipeline(&[explain, given, execute("", 0)]);
    assert_eq!(told(&answer).last().map(String::as_str), Some("EXPLAIN"));
    assert_eq!(told(&raw.query("BEGIN; DECLARE d CURSOR FOR SELECT $1")), ["BEGIN", "42P02"]);
    raw.query("ROLLBACK");
}

#[test]
fn portals_go_with_their_transaction_and_their_savepoint() {
    let (_server, mut raw) = started();
    let query = parse("SELECT a FROM t ORDER BY a");
    raw.query("BEGIN");
    raw.pipeline(&[query.clone(), bind("before", b"\0\0"), execute("before", 1)]);
    raw.query("SAVEPOINT s");
    raw.pipeline(&[query.clone(), bind("after", b"\0\0"), execute("after", 1)]);
    raw.pipeline(&[query, bind("unrun", b"\0\0")]);
    raw.query("ROLLBACK TO s");
    assert_eq!(told(&raw.pipeline(&[execute("before", 1)])), ["2", "s"]);
    raw.query("SAVEPOINT s");
    for name in ["after", "unrun"] {
        assert_eq!(told(&raw.pipeline(&[execute(name, 1)])), ["34000"]);
        raw.query("ROLLBACK TO s");
    }
    raw.query("COMMIT AND CHAIN");
    assert_eq!(told(&raw.pipeline(&[execute("before", 1)])), ["34000"]);
    raw.query("ROLLBACK");
}

/// PostgreSQL computes what is volatile anew, or not, as its plan goes backwards, and warns of it. Here a row that
/// was fetched stays what it was, and what it has done is done once.
#[test]
fn rows_fetched_again_are_the_same_and_computed_once() {
    let (_server, mut raw) = started();
    raw.query("CREATE SEQUENCE s");
    raw.query(
        "CREATE FUNCTION draws() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('s'); END $$",
    );
    let once = "a, nextval('s'), random(), clock_timestamp() FROM t";
    for query in [
        format!("SELECT {once}"),
        format!("SELECT {once} ORDER BY a DESC"),
        format!("SELECT {once} UNION ALL SELECT 0, 0, random(), now()"),
        "SELECT a, draws() FROM t".to_owned(),
        "SELECT a FROM t WHERE nextval('s') > 0".to_owned(),
    ] {
        raw.query("SELECT setval('s', 1, false)");
        raw.query("BEGIN");
        assert_eq!(state(&raw.query(&format!("DECLARE c SCROLL CURSOR FOR {query}"))), None, "{query}");
        let mut rows = |text: &str| {
            let mut rows = told(&raw.query(text));
            rows.pop();
            rows
        };
        let forth = rows("FETCH ALL FROM c");
        assert!(forth.len() >= 6, "{query}");
        let mut back = rows("FETCH BACKWARD ALL FROM c");
        back.reverse();
        assert_eq!(forth, back, "{query}");
        assert_eq!(rows("FETCH ABSOLUTE 3 FROM c"), forth[2..3], "{query}");
        assert_eq!(rows("FETCH PRIOR FROM c"), forth[1..2], "{query}");
        assert_eq!(rows("SELECT nextval('s')"), ["7"], "{query}");
        raw.query("ROLLBACK");
    }
}
