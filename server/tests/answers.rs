//! When answers leave: errors and notices at once, rows when they are asked for; and that they are
//! described as what ran answers them.

mod common;

use common::{Messages, Raw, Server, field, framed, kinds, parse, state, told, wait_for_waiters};
use std::io::Write;

/// Bind and Execute of the unnamed statement.
fn run() -> Vec<u8> {
    [framed(b'B', b"\0\0\0\0\0\0\0\0"), framed(b'E', b"\0\0\0\0\0")].concat()
}

fn flush() -> Vec<u8> {
    framed(b'H', b"")
}

fn sync(raw: &mut Raw) -> Messages {
    raw.send(b'S', b"");
    raw.until(b'Z')
}

#[test]
fn errors_leave_before_sync_and_flush_is_heard_after_one() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let describe = framed(b'D', b"S\0");
    let bad = parse("SELECT nothing");
    // With Flush, without it, with more behind it that is skipped.
    for messages in [[bad.clone(), flush()].concat(), bad.clone(), [bad.clone(), describe, flush()].concat()]
    {
        raw.stream.write_all(&messages).unwrap();
        assert_eq!(state(&raw.until(b'E')).as_deref(), Some("42703"));
        assert_eq!(kinds(&sync(&mut raw)), "Z");
    }
    // What was answered before it comes with it.
    let fails = parse("SELECT current_user::text::int");
    raw.stream.write_all(&[fails, run(), flush()].concat()).unwrap();
    assert_eq!(kinds(&raw.until(b'E')), "12E");
    raw.stream.write_all(&[parse("SELECT 1"), run(), flush()].concat()).unwrap();
    assert_eq!(kinds(&sync(&mut raw)), "Z", "a message before Sync is skipped");
    raw.stream.write_all(&[parse("SELECT 1"), run(), flush()].concat()).unwrap();
    assert_eq!(kinds(&raw.until(b'C')), "12DC");
    assert_eq!(kinds(&sync(&mut raw)), "Z");
    // So are malformed messages.
    raw.stream.write_all(&framed(b'B', b"\0\0\0")).unwrap();
    assert_eq!(state(&raw.until(b'E')).as_deref(), Some("08P01"));
    assert_eq!(kinds(&sync(&mut raw)), "Z");
}

#[test]
fn notices_leave_before_what_comes_after_them() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let mut holder = server.raw();
    let mut other = server.raw();
    raw.query("CREATE TABLE t (id int PRIMARY KEY, n int)");
    raw.query("INSERT INTO t VALUES (1, 0)");
    let say = "DO $$ BEGIN RAISE NOTICE 'said'; END $$";
    // In a text of several statements, in a pipeline, and where a procedure has ended a transaction.
    let update = "UPDATE t SET n = n + 1 WHERE id = 1";
    let text = format!("{say}; {update}");
    let committing = format!("DO $$ BEGIN RAISE NOTICE 'said'; COMMIT; {update}; END $$");
    let pipeline = [parse(say), run(), parse(update), run(), framed(b'S', b"")].concat();
    let query = |text: &str| framed(b'Q', &[text.as_bytes(), b"\0"].concat());
    for messages in [query(&text), pipeline, query(&committing)] {
        holder.query("BEGIN");
        holder.query("SELECT * FROM t FOR UPDATE");
        raw.stream.write_all(&messages).unwrap();
        assert!(raw.until(b'N').iter().any(|(kind, _)| *kind == b'N'));
        wait_for_waiters(&mut other, 1);
        holder.query("COMMIT");
        assert!(!kinds(&raw.until(b'Z')).contains('E'));
    }
    assert!(raw.query("SELECT n FROM t").iter().any(|(kind, body)| *kind == b'D' && body.ends_with(b"3")));
}

#[test]
fn messages_are_sent_by_the_settings_of_the_function_that_says_them() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let mut heard = |own: &str, of_session: &str| {
        raw.query(&format!("SET client_min_messages = {of_session}"));
        raw.query(&format!(
            "CREATE OR REPLACE FUNCTION says() RETURNS int LANGUAGE plpgsql {own} AS $$ BEGIN
             RAISE DEBUG 'd'; RAISE LOG 'l'; RAISE INFO 'i'; RAISE NOTICE 'n'; RAISE WARNING 'w'; RETURN 1; END $$"
        ));
        raw.query("SELECT says()").iter().filter(|(kind, _)| *kind == b'N').count()
    };
    assert_eq!(heard("", "notice"), 3);
    assert_eq!(heard("SET client_min_messages = debug1", "notice"), 5);
    assert_eq!(heard("SET client_min_messages = log", "error"), 4);
    assert_eq!(heard("SET client_min_messages = info", "debug1"), 3);
    assert_eq!(heard("SET client_min_messages = error", "debug1"), 1);
    assert_eq!(heard("SET search_path = public", "warning"), 2);
}

#[test]
fn rows_are_described_as_the_plan_that_ran_answers_them() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let mut holder = server.raw();
    let mut other = server.raw();
    let width = |messages: &Messages, of: u8| {
        let (_, body) = messages.iter().find(|(kind, _)| *kind == of).expect("such a message");
        u16::from_be_bytes([body[0], body[1]])
    };
    for statement in
        ["SELECT * FROM t", "UPDATE t SET a = a RETURNING *", "SELECT * FROM t WHERE a = 1 FOR UPDATE"]
    {
        holder.query("DROP TABLE IF EXISTS t");
        holder.query("CREATE TABLE t (a int PRIMARY KEY, b text)");
        holder.query("INSERT INTO t VALUES (1, 'x')");
        // It is known before.
        raw.query(statement);
        raw.stream.write_all(&[parse(statement), flush()].concat()).unwrap();
        raw.until(b'1');
        sync(&mut raw);
        holder.query("BEGIN");
        holder.query("ALTER TABLE t ADD COLUMN c int DEFAULT 7");
        raw.send(b'Q', &[statement.as_bytes(), b"\0"].concat());
        wait_for_waiters(&mut other, 1);
        holder.query("COMMIT");
        let answer = raw.until(b'Z');
        assert_eq!(kinds(&answer), "TDCZ", "{statement}");
        assert_eq!((width(&answer, b'T'), width(&answer, b'D')), (3, 3), "{statement}");
        // A client that has been told the columns is told that they changed.
        raw.stream.write_all(&[parse(statement), framed(b'D', b"S\0"), flush()].concat()).unwrap();
        raw.until(b'T');
        holder.query("BEGIN");
        holder.query("ALTER TABLE t DROP COLUMN c");
        raw.stream.write_all(&[run(), framed(b'S', b"")].concat()).unwrap();
        wait_for_waiters(&mut other, 1);
        holder.query("COMMIT");
        let answer = raw.until(b'Z');
        assert_eq!(state(&answer).as_deref(), Some("0A000"), "{statement}");
        assert_eq!(field(&answer, b'M').as_deref(), Some("cached plan must not change result type"));
        assert_eq!(field(&answer, b'R').as_deref(), Some("RevalidateCachedQuery"));
        assert!(!kinds(&answer).contains('D'), "{statement}");
    }
}

#[test]
fn definitions_of_a_session_bear_those_that_others_commit_meanwhile() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let mut holder = server.raw();
    let mut other = server.raw();
    let width = |messages: &Messages| {
        let (_, body) = messages.iter().find(|(kind, _)| *kind == b'T').expect("a description of rows");
        u16::from_be_bytes([body[0], body[1]])
    };
    for (change, wanted) in [("ADD COLUMN c int DEFAULT 7", 3), ("DROP COLUMN b", 1)] {
        for (begins, waits) in [
            ("CREATE TABLE made (a int)", "SELECT * FROM t"),
            ("CREATE TEMP TABLE made (a int)", "UPDATE t SET a = a RETURNING *"),
            ("", "CREATE TABLE made AS SELECT * FROM t"),
            ("", "SELECT * INTO TEMP made FROM t"),
        ] {
            holder.query("DROP TABLE IF EXISTS t");
            holder.query("CREATE TABLE t (a int PRIMARY KEY, b text)");
            holder.query("INSERT INTO t VALUES (1, 'x')");
            holder.query("BEGIN");
            holder.query(&format!("ALTER TABLE t {change}"));
            if !begins.is_empty() {
                raw.query("BEGIN");
                raw.query(begins);
            }
            raw.send(b'Q', &[waits.as_bytes(), b"\0"].concat());
            wait_for_waiters(&mut other, 1);
            holder.query("COMMIT");
            let answer = raw.until(b'Z');
            assert_eq!(state(&answer), None, "{waits}");
            if begins.is_empty() {
                assert_eq!(width(&raw.query("SELECT * FROM made")), wanted, "{waits}");
            } else {
                assert_eq!(width(&answer), wanted, "{waits}");
                assert_eq!(width(&raw.query("SELECT * FROM made, t")), wanted + 1, "{waits}");
                assert_eq!(state(&raw.query("COMMIT")), None, "{waits}");
            }
            raw.query("DROP TABLE made");
        }
    }
}

#[test]
fn what_a_wait_for_a_lock_ends_with_can_be_caught() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let mut holder = server.raw();
    raw.query("CREATE TABLE t (id int PRIMARY KEY, n int)");
    raw.query("INSERT INTO t VALUES (1, 0), (2, 0)");
    raw.query(
        "CREATE FUNCTION try(wanted int) RETURNS text LANGUAGE plpgsql AS $$ DECLARE told text; BEGIN \
         UPDATE t SET n = n + 10 WHERE id = 2; \
         BEGIN UPDATE t SET n = n + 1 WHERE id = wanted; told := 'changed'; \
         EXCEPTION WHEN lock_not_available THEN told := SQLSTATE || ' ' || SQLERRM; END; \
         RETURN told; END $$",
    );
    let told = |messages: &Messages| {
        let (_, body) = messages.iter().find(|(kind, _)| *kind == b'D').expect("a row");
        String::from_utf8_lossy(&body[6..]).into_owned()
    };
    raw.query("SET lock_timeout = '50ms'");
    holder.query("BEGIN");
    holder.query("UPDATE t SET n = 5 WHERE id = 1");
    assert_eq!(told(&raw.query("SELECT try(1)")), "55P03 canceling statement due to lock timeout");
    raw.query("BEGIN");
    assert_eq!(told(&raw.query("SELECT try(1)")), "55P03 canceling statement due to lock timeout");
    raw.query("COMMIT");
    // Nobody catches this one.
    assert_eq!(state(&raw.query("UPDATE t SET n = 1 WHERE id = 1")).as_deref(), Some("55P03"));
    holder.query("COMMIT");
    assert_eq!(told(&raw.query("SELECT try(1)")), "changed");
    let rows = raw.query("SELECT string_agg(n::text, ' ' ORDER BY id) FROM t");
    assert_eq!(told(&rows), "6 30", "what a block did before its handler is undone, and no more");
}

#[test]
fn a_statement_timeout_is_for_each_statement_of_a_text() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    // Together they take longer than that, and each much less, on a busy machine too.
    raw.query("SET statement_timeout = '10s'");
    let answer = raw.query(&["SELECT pg_sleep(2.1)"; 5].join("; "));
    assert_eq!(kinds(&answer), format!("{}Z", "TDC".repeat(5)));
}

#[test]
fn a_call_may_commit_anywhere_in_a_pipeline() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (id int PRIMARY KEY)");
    raw.query(
        "CREATE PROCEDURE add(id int) LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO t VALUES (id); COMMIT; INSERT INTO t VALUES (id + 1); END $$",
    );
    let step = |text: &str| [parse(text), run()].concat();
    let count = |raw: &mut Raw| {
        let rows = raw.query("SELECT count(*) FROM t");
        let (_, body) = rows.into_iter().find(|(kind, _)| *kind == b'D').expect("a row");
        String::from_utf8_lossy(&body[6..]).into_owned()
    };
    raw.stream.write_all(&[step("CALL add(1)"), step("SELECT 1"), framed(b'S', b"")].concat()).unwrap();
    assert_eq!(kinds(&raw.until(b'Z')), "12C12DCZ");
    assert_eq!(count(&mut raw), "2");
    // What came before it is committed with it; what comes after it, and itself behind its COMMIT, is not.
    let steps = [step("INSERT INTO t VALUES (100)"), step("CALL add(10)"), step("SELECT 1/0")].concat();
    raw.stream.write_all(&[steps, framed(b'S', b"")].concat()).unwrap();
    let answer = raw.until(b'Z');
    assert_eq!(state(&answer).as_deref(), Some("22012"));
    assert_eq!(count(&mut raw), "4");
    let answer = raw.query("SELECT 1; CALL add(20)");
    assert_eq!(state(&answer).as_deref(), Some("2D000"));
    assert_eq!(count(&mut raw), "4");
}

/// As PostgreSQL does for a SELECT, and not for rows of RETURNING, which it gathers first.
#[test]
fn rows_before_an_error_are_answered() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query(
        "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 2), (2, 1), (3, 0), (4, 1)",
    );
    let read = "SELECT 1 / v FROM t WHERE id BETWEEN 1 AND 9 ORDER BY id";
    for text in [read, "SELECT 2 / (3 - g) FROM generate_series(1, 9) g"] {
        let answer = raw.query(text);
        assert_eq!((kinds(&answer).as_str(), state(&answer).as_deref()), ("TDDEZ", Some("22012")), "{text}");
        raw.stream.write_all(&[parse(text), run(), framed(b'S', b"")].concat()).unwrap();
        assert_eq!(kinds(&raw.until(b'Z')), "12DDEZ", "{text}");
    }
    let answer = raw.query("UPDATE t SET v = v RETURNING 1 / v");
    assert_eq!((kinds(&answer).contains('D'), state(&answer).as_deref()), (false, Some("22012")));
    assert_eq!(kinds(&raw.query("SELECT 1; SELECT 1 / v FROM t WHERE id = 3")), "TDCTEZ");
}

/// What PostgreSQL runs to its end before it tells a row says what it noticed, and neither rows nor their columns,
/// if it fails.
#[test]
fn what_gathers_its_rows_describes_none_before_an_error() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let made = raw.query(
        "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 2), (2, 1), (3, 0), (4, 1); \
         CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'told'; RETURN new; END $$; \
         CREATE TABLE checked (k int CHECK (k > 0)); \
         CREATE TRIGGER tell BEFORE INSERT ON checked FOR EACH ROW EXECUTE FUNCTION tell(); \
         CREATE PROCEDURE divide(INOUT n int) LANGUAGE plpgsql AS $$ BEGIN n := 1 / n; END $$",
    );
    assert_eq!(state(&made), None);
    for (text, expected) in [
        ("INSERT INTO t VALUES (1, 1) RETURNING id", "EZ"),
        ("UPDATE t SET v = v RETURNING 1 / v", "EZ"),
        ("WITH x AS (UPDATE t SET v = 1 / v RETURNING id) SELECT * FROM x", "EZ"),
        ("INSERT INTO checked VALUES (1), (-1) RETURNING k", "NNEZ"),
        ("INSERT INTO t VALUES (9, 1) RETURNING id; INSERT INTO t VALUES (1, 1) RETURNING id", "TDCEZ"),
        ("PREPARE p AS SELECT 1 / v FROM t ORDER BY id", "CZ"),
        ("EXECUTE p", "EZ"),
        ("EXPLAIN ANALYZE SELECT 1 / v FROM t", "EZ"),
        ("CALL divide(0)", "EZ"),
        ("BEGIN; DECLARE c CURSOR FOR SELECT 1 / v FROM t ORDER BY id; FETCH ALL FROM c", "CCEZ"),
        ("ROLLBACK", "CZ"),
        // As it was; and a query is described before it is run.
        ("UPDATE t SET v = v WHERE id = 1 RETURNING 1 / v", "TDCZ"),
        ("SELECT 1 / v FROM t WHERE v = 0", "TEZ"),
    ] {
        assert_eq!(kinds(&raw.query(text)), expected, "{text}");
    }
}

#[test]
fn an_application_name_that_is_cut_is_told() {
    let server = Server::start(&[]);
    let long = "a".repeat(64);
    let greeted = |more: &[(&str, &str)]| {
        let mut raw = server.unopened();
        raw.greet(&[&[("user", "archipel"), ("database", "archipel")], more].concat());
        let messages = raw.until(b'Z');
        (raw, kinds(&messages).replace('S', ""))
    };
    let (_, told) = greeted(&[("application_name", &long[1..])]);
    assert_eq!(told, "RKZ");
    let (_, told) = greeted(&[("application_name", &long), ("options", "-c client_min_messages=warning")]);
    assert_eq!(told, "RKZ");
    let (_, told) = greeted(&[("options", &format!("-c application_name={long}"))]);
    assert_eq!(told, "RNKZ");
    let (mut raw, told) = greeted(&[("application_name", &long)]);
    assert_eq!(told, "RNKZ");
    let answer = raw.query(&format!("SET application_name TO '{}'", "b".repeat(64)));
    assert_eq!(kinds(&answer), "NCSZ");
    let notice = String::from_utf8_lossy(&answer[0].1).into_owned();
    assert!(notice.contains("C42622\0"), "{notice:?}");
    assert!(
        notice.contains(&format!("identifier \"{}\" will be truncated to", "b".repeat(64))),
        "{notice:?}"
    );
    let short = "c".repeat(63);
    assert_eq!(kinds(&raw.query(&format!("SET application_name TO '{short}'"))), "CSZ");
}

/// Parse, Bind with one binary parameter, and Execute.
fn with_parameter(raw: &mut Raw, text: &str, bytes: &[u8]) -> Messages {
    let length = (bytes.len() as u32).to_be_bytes();
    let bind = [&b"\0\0\0\x01\0\x01\0\x01"[..], &length, bytes, b"\0\0"].concat();
    raw.pipeline(&[parse(text), framed(b'B', &bind), framed(b'E', b"\0\0\0\0\0")])
}

#[test]
fn an_error_in_a_parameter_tells_where_in_it_and_in_which() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let answer = with_parameter(&mut raw, "SELECT $1::json", b"{");
    assert_eq!(state(&answer).as_deref(), Some("22P02"));
    let places = "JSON data, line 1: {\nunnamed portal parameter $1";
    assert_eq!(field(&answer, b'W').as_deref(), Some(places));
}

#[test]
fn a_vector_has_one_dimension_from_0_and_no_null() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let words = |words: &[i32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let right = words(&[1, 0, 26, 2, 0, 4, 7, 4, 8]);
    assert_eq!(kinds(&with_parameter(&mut raw, "SELECT $1::oidvector", &right)), "12DCZ");
    let from_1 = [1, 0, 26, 2, 1, 4, 7, 4, 8];
    let two_dimensions = [2, 0, 26, 1, 0, 1, 0, 4, 7];
    let with_null = [1, 1, 26, 1, 0, -1];
    for wrong in [&from_1[..], &two_dimensions, &with_null, &[0, 0, 26]] {
        let answer = with_parameter(&mut raw, "SELECT $1::oidvector", &words(wrong));
        assert_eq!(state(&answer).as_deref(), Some("22P03"), "{wrong:?}");
        assert_eq!(field(&answer, b'M').as_deref(), Some("invalid oidvector data"), "{wrong:?}");
    }
}

#[test]
fn notices_come_between_the_rows_that_raise_them() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query(
        "CREATE TABLE t (a int PRIMARY KEY); CREATE FUNCTION says(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', a; RETURN a; END $$",
    );
    raw.query("CREATE FUNCTION tells() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', new.a; RETURN new; END $$; CREATE TRIGGER t BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION tells()");
    // Of what changes rows, and of what is not planned, they come before all that it answers.
    assert_eq!(kinds(&raw.query("INSERT INTO t VALUES (1), (2), (3) RETURNING says(a)")), "NNNNNNTDDDCZ");
    assert_eq!(kinds(&raw.query("SELECT says(a) FROM t")), "TNDNDNDCZ");
    assert_eq!(kinds(&raw.query("SELECT says(a), 1 / (a - 3) FROM t")), "TNDNDNEZ");
    assert_eq!(kinds(&raw.query("SELECT count(says(a)) FROM t")), "TNNNDCZ");
    assert_eq!(kinds(&raw.query("COPY (SELECT says(a) FROM t) TO STDOUT")), "HNdNdNdcCZ");
    raw.query("PREPARE p AS SELECT says(a) FROM t");
    assert_eq!(kinds(&raw.query("EXECUTE p")), "NNNTDDDCZ");
    let describe = framed(b'D', b"P\0");
    let bind = framed(b'B', b"\0\0\0\0\0\0\0\0");
    let execute = framed(b'E', b"\0\0\0\0\0");
    let text = parse("SELECT says(a) FROM t");
    assert_eq!(kinds(&raw.pipeline(&[text, bind, describe, execute])), "12TNDNDNDCZ");
}

#[test]
fn routines_read_what_was_prepared_as_it_was_read_then() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("SET standard_conforming_strings = off");
    let prepared = raw.pipeline(&[framed(b'P', b"p\0SELECT 'a\\'b' || ''\0\0\0")]);
    assert_eq!(kinds(&prepared), "N1Z");
    let made = raw.query(
        "CREATE FUNCTION runs() RETURNS text LANGUAGE plpgsql AS \
         $$ DECLARE r text; BEGIN EXECUTE 'EXECUTE p' INTO r; RETURN r; END $$",
    );
    assert_eq!(state(&made), None);
    assert_eq!(told(&raw.query("SELECT runs()")), ["a'b", "SELECT 1"]);
    raw.query("SET standard_conforming_strings = on");
    assert_eq!(told(&raw.query("SELECT runs()")), ["a'b", "SELECT 1"]);
}

/// PostgreSQL sends each row of a COPY before it computes the next: what was sent before an error stays sent. (Here
/// that is so of what is run natively; DataFusion answers none of the rows of a batch in which one fails.)
#[test]
fn rows_of_a_copy_before_its_error_are_told() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE FUNCTION says(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', i; RETURN i; END $$");
    raw.query("CREATE TABLE t (a int PRIMARY KEY, b text)");
    raw.query("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, E'\\u0100')");
    for (copy, answered) in [
        ("COPY (SELECT 1 / (says(a) - 3) FROM t) TO STDOUT", "HNdNdNE"),
        ("COPY (SELECT 1 / (says(a) - 3) FROM t) TO STDOUT (FORMAT csv, HEADER)", "HdNdNdNE"),
        ("COPY (SELECT 1 / (says(a) - 3) FROM t) TO STDOUT (FORMAT binary)", "HNdNdNE"),
        ("COPY (SELECT 1 / (says(a) - 1) FROM t) TO STDOUT (FORMAT binary)", "HNE"),
        ("COPY (SELECT says(a), 1 / (a - 3) FROM t) TO STDOUT", "HNdNdNE"),
        ("COPY (INSERT INTO t VALUES (4), (5), (6) RETURNING says(a), 1 / (a - 6)) TO STDOUT", "HNdNdNE"),
        ("COPY t TO STDOUT (ENCODING latin1)", "HddE"),
        ("COPY (SELECT none FROM t) TO STDOUT", "E"),
    ] {
        assert_eq!(kinds(&raw.query(copy)), format!("{answered}Z"), "{copy}");
        let bind = framed(b'B', b"\0\0\0\0\0\0\0\0");
        let execute = framed(b'E', b"\0\0\0\0\0");
        let answers = raw.pipeline(&[parse(copy), bind, execute]);
        assert_eq!(kinds(&answers), format!("12{answered}Z"), "{copy}");
    }
    raw.query("BEGIN");
    assert_eq!(kinds(&raw.query("COPY (SELECT 1 / (says(a) - 3) FROM t) TO STDOUT")), "HNdNdNEZ");
    raw.query("ROLLBACK");
    // Nothing was changed, and the session goes on.
    assert_eq!(kinds(&raw.query("COPY (SELECT b FROM t WHERE a > 3) TO STDOUT")), "HcCZ");
}
