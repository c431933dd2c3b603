//! Several databases of one server: what each has of its own, and what they share.

mod common;

use common::{Messages, Raw, Server, field, kinds, parse, state, told};

fn run(raw: &mut Raw, texts: &[&str]) {
    for text in texts {
        let messages = raw.query(text);
        assert_eq!(state(&messages), None, "{text}: {:?}", field(&messages, b'M'));
    }
}

/// What a query answers: its rows, and nothing of the tag.
fn rows(raw: &mut Raw, text: &str) -> Vec<String> {
    let mut answer = told(&raw.query(text));
    assert!(answer.pop().is_some_and(|tag| tag.starts_with("SELECT")), "{text}: {answer:?}");
    answer
}

/// What the server says to a client that asks for this database, up to its end.
fn refused(server: &Server, parameters: &[(&str, &str)]) -> Messages {
    let mut raw = server.unopened();
    raw.greet(parameters);
    std::iter::from_fn(|| raw.receive()).collect()
}

/// A prepared statement of a database, bound and run once more.
fn prepared(raw: &mut Raw) -> Vec<String> {
    let bind = common::framed(b'B', b"\0\0\0\0\0\0\0\0");
    let execute = common::framed(b'E', b"\0\0\0\0\0");
    told(&raw.pipeline(&[parse("SELECT * FROM t ORDER BY 1"), bind, execute]))
}

#[test]
fn two_databases_hold_the_same_names() {
    // One executor: both have their plans in one cache.
    let server = Server::start(&["archipel.executors=1"]);
    let (mut one, mut other) = (server.raw(), server.raw_in("postgres"));
    run(&mut one, &["CREATE TABLE t (x int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)"]);
    assert_eq!(state(&other.query("SELECT * FROM t")).as_deref(), Some("42P01"));
    run(&mut other, &["CREATE TABLE t (x text PRIMARY KEY, y int)", "INSERT INTO t VALUES ('a', 7)"]);
    for _ in 0..3 {
        assert_eq!(rows(&mut one, "SELECT * FROM t ORDER BY x"), ["1", "2"]);
        assert_eq!(rows(&mut other, "SELECT * FROM t ORDER BY x"), ["a|7"]);
        assert_eq!(prepared(&mut one), ["1", "2", "SELECT 2"]);
        assert_eq!(prepared(&mut other), ["a|7", "SELECT 1"]);
        // The same shape, and another literal.
        assert_eq!(rows(&mut one, "SELECT count(*) FROM t WHERE x < 2"), ["1"]);
        assert_eq!(rows(&mut other, "SELECT count(*) FROM t WHERE x < 'b'"), ["1"]);
    }
    let function =
        |result| format!("CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN {result}; END'");
    run(&mut one, &[&function(1)]);
    run(&mut other, &[&function(2)]);
    assert_eq!(
        (rows(&mut one, "SELECT f()"), rows(&mut other, "SELECT f()")),
        (vec!["1".into()], vec!["2".into()])
    );
    run(&mut one, &["DROP TABLE t", "DROP FUNCTION f"]);
    assert_eq!(rows(&mut other, "SELECT y + f() FROM t"), ["9"]);
}

#[test]
fn what_sessions_hold_and_say_stays_in_their_database() {
    let server = Server::start(&[]);
    let (mut one, mut other) = (server.raw(), server.raw_in("postgres"));
    for raw in [&mut one, &mut other] {
        assert_eq!(rows(raw, "SELECT pg_try_advisory_lock(1)"), ["t"]);
        run(raw, &["LISTEN news", "CREATE TEMP TABLE own (x int)", "INSERT INTO own VALUES (1)"]);
    }
    run(&mut one, &["NOTIFY news, 'of one'"]);
    assert_eq!(kinds(&other.query("SELECT 1")), "TDCZ", "nobody there is told");
    let current = "SELECT current_database(), current_catalog";
    assert_eq!(rows(&mut one, current), ["archipel|archipel"]);
    assert_eq!(rows(&mut other, current), ["postgres|postgres"]);
    let sessions = "SELECT datname, count(*) FROM pg_stat_activity GROUP BY 1 ORDER BY 1";
    assert_eq!(rows(&mut other, sessions), ["archipel|1", "postgres|1"]);
    let catalogs = "SELECT 1 FROM archipel.pg_catalog.pg_class LIMIT 0";
    assert_eq!(state(&other.query(catalogs)).as_deref(), Some("0A000"));
    assert_eq!(state(&one.query(catalogs)), None);
}

#[test]
fn a_start_with_several_databases_loses_nothing() {
    let mut server = Server::start(&[]);
    let databases = ["archipel", "postgres", "template1"];
    for (place, database) in databases.iter().enumerate() {
        let insert =
            format!("INSERT INTO t (note) SELECT '{database}' FROM generate_series(1, {})", place + 3);
        run(
            &mut server.raw_in(database),
            &[
                "CREATE TABLE t (id serial PRIMARY KEY, note text, at int GENERATED ALWAYS AS (1) STORED)",
                "CREATE INDEX ON t (note)",
                &insert,
                "CREATE SCHEMA s CREATE VIEW v AS SELECT count(*) FROM public.t",
            ],
        );
    }
    for start in 0..3 {
        server.kill();
        server.launch(&[]);
        for (place, database) in databases.iter().enumerate() {
            let mut raw = server.raw_in(database);
            let count = (place + 3 + start).to_string();
            assert_eq!(rows(&mut raw, "SELECT * FROM s.v"), [count.as_str()], "{database}");
            let of_index = format!("SELECT count(*) FROM t WHERE note = '{database}'");
            assert_eq!(rows(&mut raw, &of_index), [count.as_str()], "{database}");
            // A sequence goes on behind what it has given.
            run(&mut raw, &[&format!("INSERT INTO t (note) VALUES ('{database}')")]);
            assert_eq!(rows(&mut raw, "SELECT count(DISTINCT id) = count(*) FROM t"), ["t"], "{database}");
        }
        if start == 1 {
            run(&mut server.raw(), &["CHECKPOINT"]);
        }
    }
}

#[test]
fn names_that_lead_to_no_database_are_refused() {
    let server = Server::start(&[]);
    let messages = refused(&server, &[("user", "archipel"), ("database", "nosuch")]);
    assert_eq!(state(&messages).as_deref(), Some("3D000"));
    assert_eq!(field(&messages, b'M').as_deref(), Some("database \"nosuch\" does not exist"));
    let messages = refused(&server, &[("user", "archipel"), ("database", "template0")]);
    assert_eq!(state(&messages).as_deref(), Some("55000"));
    let told = "database \"template0\" is not currently accepting connections";
    assert_eq!(field(&messages, b'M').as_deref(), Some(told));
    // Who names none means the one that is called as the user.
    run(&mut server.raw(), &["CREATE ROLE alice LOGIN"]);
    let messages = refused(&server, &[("user", "alice")]);
    assert_eq!(field(&messages, b'M').as_deref(), Some("database \"alice\" does not exist"));
    let known = "SELECT oid, datname, datistemplate, datallowconn FROM pg_database ORDER BY oid";
    let expected = ["1|template1|t|t", "4|template0|t|f", "5|archipel|f|t", "6|postgres|f|t"];
    assert_eq!(rows(&mut server.raw(), known), expected);
}

#[test]
fn a_role_that_another_database_uses_is_not_dropped() {
    let server = Server::start(&[]);
    let (mut one, mut other) = (server.raw(), server.raw_in("postgres"));
    run(&mut other, &["BEGIN", "SELECT 1"]);
    run(&mut one, &["CREATE ROLE alice", "CREATE TABLE here (x int)", "ALTER TABLE here OWNER TO alice"]);
    // It is there for whoever is in a transaction elsewhere, too.
    run(
        &mut other,
        &["CREATE TABLE t (x int, y int)", "GRANT SELECT ON t TO alice", "GRANT UPDATE (y) ON t TO alice"],
    );
    run(&mut other, &["COMMIT"]);
    let messages = one.query("DROP ROLE alice");
    assert_eq!(state(&messages).as_deref(), Some("2BP01"));
    let hangs = "owner of table here\n2 objects in database postgres";
    assert_eq!(field(&messages, b'D').as_deref(), Some(hangs));
    run(&mut one, &["DROP TABLE here"]);
    let messages = one.query("DROP ROLE alice");
    assert_eq!(field(&messages, b'D').as_deref(), Some("2 objects in database postgres"));
    run(&mut other, &["REVOKE ALL ON t FROM alice"]);
    // What is given while a block drops the role keeps it there.
    run(&mut one, &["BEGIN", "DROP ROLE alice"]);
    run(&mut other, &["GRANT SELECT ON t TO alice"]);
    let messages = one.query("COMMIT");
    assert_eq!(state(&messages).as_deref(), Some("2BP01"), "{:?}", told(&messages));
    assert_eq!(field(&messages, b'D').as_deref(), Some("1 object in database postgres"));
    run(&mut other, &["REVOKE ALL ON t FROM alice"]);
    run(&mut one, &["DROP ROLE alice"]);
    assert_eq!(state(&other.query("GRANT SELECT ON t TO alice")).as_deref(), Some("42704"));
}
