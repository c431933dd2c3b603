//! Pipelines: several statements before one Sync are one transaction, however they are run.
//!
//! A statement that has not run yet is run on its own, so every case is played twice, and the
//! answers must be the same.

mod common;

use common::{Raw, Server, framed, kinds, state, told};
use std::io::Write;

/// Rounds of a case: what is unknown in the first one is known in the others.
const ROUNDS: usize = 3;

fn prepare(raw: &mut Raw, name: &str, text: &str) {
    let body = [name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"].concat();
    raw.send(b'P', &body);
    raw.send(b'S', b"");
    assert_eq!(kinds(&raw.until(b'Z')), "1Z", "{text}");
}

fn bind(name: &str, params: &[&str]) -> Vec<u8> {
    let mut body = [b"\0", name.as_bytes(), b"\0\0\0"].concat();
    body.extend_from_slice(&(params.len() as u16).to_be_bytes());
    for param in params {
        body.extend_from_slice(&(param.len() as u32).to_be_bytes());
        body.extend_from_slice(param.as_bytes());
    }
    body.extend_from_slice(&[0, 0]);
    framed(b'B', &body)
}

/// Bind, Describe and Execute of a prepared statement.
fn step(name: &str, params: &[&str]) -> Vec<u8> {
    [bind(name, params), framed(b'D', b"P\0"), framed(b'E', b"\0\0\0\0\0")].concat()
}

fn rows(raw: &mut Raw, text: &str) -> Vec<String> {
    let mut told = told(&raw.query(text));
    told.pop();
    told
}

/// A table and statements over it.
fn with_table(server: &Server) -> Raw {
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL)");
    raw.query("CREATE TABLE log (n int, at timestamptz)");
    prepare(&mut raw, "insert", "INSERT INTO t VALUES ($1, $2)");
    prepare(&mut raw, "update", "UPDATE t SET n = n + $2 WHERE id = $1 RETURNING n");
    prepare(&mut raw, "select", "SELECT n FROM t WHERE id = $1");
    prepare(&mut raw, "log", "INSERT INTO log VALUES ($1, now())");
    raw
}

#[test]
fn statements_see_those_before_them_and_commit_together() {
    let server = Server::start(&[]);
    let mut raw = with_table(&server);
    for round in 1..=ROUNDS {
        let id = round.to_string();
        let answer = raw.pipeline(&[
            step("select", &[&id]),
            step("insert", &[&id, "1"]),
            step("log", &["1"]),
            step("update", &[&id, "5"]),
            step("select", &[&id]),
            step("log", &["2"]),
        ]);
        assert_eq!(kinds(&answer), "2TC2nC2nC2TDC2TDC2nCZ");
        assert_eq!(
            told(&answer),
            ["SELECT 0", "INSERT 0 1", "INSERT 0 1", "6", "UPDATE 1", "6", "SELECT 1", "INSERT 0 1"]
        );
        let other = &mut server.raw();
        assert_eq!(rows(other, &format!("SELECT n FROM t WHERE id = {id}")), ["6"]);
        // The time of a transaction is one.
        let times = rows(other, "SELECT count(*), count(DISTINCT at) FROM log");
        assert_eq!(times, [format!("{}|{round}", 2 * round)]);
    }
}

#[test]
fn an_error_is_told_at_its_place_and_undoes_all() {
    let server = Server::start(&[]);
    let mut raw = with_table(&server);
    raw.query("INSERT INTO t VALUES (1, 0)");
    for round in 0..ROUNDS {
        let answer = raw.pipeline(&[
            step("insert", &["2", "2"]),
            step("log", &["1"]),
            step("insert", &["1", "1"]),
            step("log", &["2"]),
        ]);
        assert_eq!(kinds(&answer), "2nC2nC2nEZ", "round {round}");
        assert_eq!(told(&answer), ["INSERT 0 1", "INSERT 0 1", "23505"]);
        assert_eq!(rows(&mut raw, "SELECT id FROM t"), ["1"]);
        assert_eq!(rows(&mut raw, "SELECT count(*) FROM log"), ["0"]);
        // One that succeeds, so that the next is tried as a whole again.
        let answer = raw.pipeline(&[step("update", &["1", "1"]), step("update", &["1", "1"])]);
        assert_eq!(told(&answer).len(), 4);
    }
}

#[test]
fn a_message_that_is_refused_comes_after_those_before_it() {
    let server = Server::start(&[]);
    let mut raw = with_table(&server);
    for _ in 0..ROUNDS {
        for refused in [bind("log", &[]), bind("missing", &[]), bind("log", &["x"]), framed(b'B', b"\0\0\0")]
        {
            let steps = [step("insert", &["1", "1"]), step("log", &["1"]), refused, step("log", &["2"])];
            let answer = raw.pipeline(&steps);
            assert_eq!(kinds(&answer), "2nC2nCEZ");
            assert_eq!(rows(&mut raw, "SELECT count(*) FROM t"), ["0"]);
            assert_eq!(rows(&mut raw, "SELECT count(*) FROM log"), ["0"]);
        }
        // The statement before the message fails: that is what is told.
        let answer = raw.pipeline(&[
            step("insert", &["1", "1"]),
            step("insert", &["1", "1"]),
            bind("missing", &[]),
            step("log", &["2"]),
        ]);
        assert_eq!(told(&answer), ["INSERT 0 1", "23505"]);
        assert_eq!(told(&raw.pipeline(&[step("log", &["0"]), step("log", &["0"])])).len(), 2);
        raw.query("DELETE FROM log");
    }
}

#[test]
fn what_cannot_wait_runs_behind_those_that_do() {
    let server = Server::start(&[]);
    let mut raw = with_table(&server);
    prepare(&mut raw, "begin", "BEGIN");
    prepare(&mut raw, "rollback", "ROLLBACK");
    prepare(&mut raw, "savepoint", "SAVEPOINT s");
    prepare(&mut raw, "commit", "COMMIT");
    for round in 0..ROUNDS {
        // BEGIN takes what came before it into its block.
        let answer = raw.pipeline(&[
            step("log", &["1"]),
            step("log", &["2"]),
            step("begin", &[]),
            step("log", &["3"]),
            step("rollback", &[]),
        ]);
        assert_eq!(kinds(&answer), "2nC2nC2nC2nC2nCZ");
        assert_eq!(rows(&mut raw, "SELECT count(*) FROM log"), ["0"], "round {round}");
        let answer = raw.pipeline(&[
            step("log", &["1"]),
            step("log", &["2"]),
            step("savepoint", &[]),
            step("log", &["3"]),
        ]);
        assert_eq!(told(&answer), ["INSERT 0 1", "INSERT 0 1", "25P01"]);
        assert_eq!(rows(&mut raw, "SELECT count(*) FROM log"), ["0"]);
        // A portal whose rows are fetched in portions.
        let limited = [bind("update", &["7", "1"]), framed(b'E', b"\0\0\0\0\x01")].concat();
        let answer = raw.pipeline(&[
            step("insert", &["7", "0"]),
            step("update", &["7", "1"]),
            limited,
            step("select", &["7"]),
        ]);
        assert_eq!(kinds(&answer), "2nC2TDC2Ds2TDCZ");
        assert_eq!(rows(&mut raw, "DELETE FROM t RETURNING n"), ["2"]);
    }
    raw.query("BEGIN");
    let answer = raw.pipeline(&[step("log", &["1"]), step("log", &["2"])]);
    assert_eq!(answer.last().map(|(_, status)| status.as_slice()), Some(&b"T"[..]));
    raw.query("ROLLBACK");
    assert_eq!(rows(&mut raw, "SELECT count(*) FROM log"), ["0"]);
}

#[test]
fn what_a_statement_leaves_to_its_session_holds_for_the_next_one() {
    let server = Server::start(&[]);
    let mut raw = with_table(&server);
    raw.query("CREATE SEQUENCE numbers");
    raw.query(
        "CREATE FUNCTION speak() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE NOTICE 'row %', NEW.n; RETURN NEW; END $$",
    );
    raw.query("CREATE TABLE spoken (n int)");
    raw.query("CREATE TRIGGER speak BEFORE INSERT ON spoken FOR EACH ROW EXECUTE FUNCTION speak()");
    raw.query("CREATE TABLE child (t int REFERENCES t DEFERRABLE INITIALLY DEFERRED)");
    prepare(&mut raw, "draw", "INSERT INTO log SELECT nextval('numbers') RETURNING n");
    prepare(&mut raw, "drawn", "SELECT currval('numbers'), lastval()");
    prepare(&mut raw, "zone", "SELECT set_config('timezone', $1, false)");
    prepare(&mut raw, "time", "SELECT '2000-01-01 12:00+00'::timestamptz::text FROM log LIMIT 1");
    prepare(&mut raw, "moment", "SELECT $1::timestamptz AT TIME ZONE 'UTC'");
    prepare(&mut raw, "speak", "INSERT INTO spoken VALUES ($1)");
    prepare(&mut raw, "child", "INSERT INTO child VALUES ($1)");
    raw.query("INSERT INTO t VALUES (0, 0)");
    for round in 1..=ROUNDS {
        let answer = raw.pipeline(&[step("log", &["0"]), step("draw", &[]), step("drawn", &[])]);
        let told_of = told(&answer);
        assert_eq!(told_of[2], "INSERT 0 1");
        assert_eq!(told_of[3], format!("{0}|{0}", told_of[1]));
        // Numbers that were drawn in vain are not drawn twice.
        let failed = raw.pipeline(&[step("log", &["0"]), step("draw", &[]), step("insert", &["0", "0"])]);
        assert_eq!(told(&failed).last().map(String::as_str), Some("23505"));
        let drawn = rows(&mut raw, "SELECT last_value FROM numbers");
        assert_eq!(drawn, [(2 * round).to_string()]);
        for zone in ["UTC", "Asia/Tokyo"] {
            // A parameter is read with the settings that the statement before it leaves.
            let moment = step("moment", &["2000-01-01 12:00"]);
            let answer = raw.pipeline(&[step("log", &["0"]), step("zone", &[zone]), moment]);
            let expected = if zone == "UTC" { "2000-01-01 12:00:00" } else { "2000-01-01 03:00:00" };
            assert_eq!(told(&answer), ["INSERT 0 1", zone, "SELECT 1", expected, "SELECT 1"]);
            let answer = raw.pipeline(&[step("log", &["0"]), step("zone", &[zone]), step("time", &[])]);
            let expected = if zone == "UTC" { "2000-01-01 12:00:00+00" } else { "2000-01-01 21:00:00+09" };
            assert_eq!(told(&answer), ["INSERT 0 1", zone, "SELECT 1", expected, "SELECT 1"]);
        }
        let answer = raw.pipeline(&[step("log", &["0"]), step("speak", &["1"]), step("speak", &["2"])]);
        assert_eq!(kinds(&answer), "2nC2nNC2nNCZ");
        // Checked at Sync, when the row it refers to is there.
        let id = round.to_string();
        let answer = raw.pipeline(&[step("child", &[&id]), step("insert", &[&id, "0"])]);
        assert_eq!(kinds(&answer), "2nC2nCZ");
        let answer = raw.pipeline(&[step("log", &["0"]), step("child", &["99"])]);
        assert_eq!(kinds(&answer), "2nC2nCEZ");
        assert_eq!(state(&answer).as_deref(), Some("23503"));
    }
    assert_eq!(rows(&mut raw, "SELECT count(*) FROM child"), [ROUNDS.to_string()]);
}

#[test]
fn rows_that_others_lock_are_waited_for() {
    let server = Server::start(&[]);
    let mut raw = with_table(&server);
    raw.query("INSERT INTO t VALUES (1, 0), (2, 0)");
    let process = rows(&mut raw, "SELECT pg_backend_pid()");
    let mut watch = server.raw();
    for round in 1..=ROUNDS {
        let mut other = server.raw();
        other.query("BEGIN");
        other.query("UPDATE t SET n = n + 100 WHERE id = 2");
        let bytes = [
            step("log", &["1"]),
            step("update", &["1", "1"]),
            step("update", &["2", "1"]),
            framed(b'S', b""),
        ];
        raw.stream.write_all(&bytes.concat()).unwrap();
        let waiting = format!("SELECT cardinality(pg_blocking_pids({})) > 0", process[0]);
        while rows(&mut watch, &waiting) != ["t"] {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        other.query("COMMIT");
        let answer = raw.until(b'Z');
        assert_eq!(
            told(&answer)[1..],
            [format!("{round}"), "UPDATE 1".into(), format!("{}", 101 * round), "UPDATE 1".into()]
        );
        let _ = raw.pipeline(&[step("log", &["1"]), step("log", &["1"])]);
    }
    raw.query("SET lock_timeout = '20ms'");
    let mut other = server.raw();
    other.query("BEGIN");
    other.query("SELECT n FROM t WHERE id = 2 FOR UPDATE");
    for _ in 0..ROUNDS {
        let answer =
            raw.pipeline(&[step("log", &["9"]), step("update", &["1", "1"]), step("update", &["2", "1"])]);
        assert_eq!(kinds(&answer), "2nC2TDC2TEZ");
        assert_eq!(state(&answer).as_deref(), Some("55P03"));
        assert_eq!(rows(&mut watch, "SELECT count(*) FROM log WHERE n = 9"), ["0"]);
        let _ = raw.pipeline(&[step("update", &["1", "1"]), step("log", &["1"])]);
    }
}

#[test]
fn settings_that_ask_for_statements_one_by_one_are_heeded() {
    let server = Server::start(&[]);
    let mut raw = with_table(&server);
    let steps = [step("log", &["1"]), step("log", &["2"])];
    for _ in 0..ROUNDS {
        assert_eq!(kinds(&raw.pipeline(&steps)), "2nC2nCZ");
    }
    raw.query("SET default_transaction_read_only = on");
    assert_eq!(state(&raw.pipeline(&steps)).as_deref(), Some("25006"));
    raw.query("SET default_transaction_read_only = off");
    raw.query("SET default_transaction_isolation = 'serializable'");
    assert_eq!(kinds(&raw.pipeline(&steps)), "2nC2nCZ");
    raw.query("RESET default_transaction_isolation");
    raw.query("SET archipel.require_route = on");
    assert_eq!(state(&raw.pipeline(&steps)).as_deref(), Some("55000"));
}

#[test]
fn what_is_set_for_the_transaction_holds_until_its_end() {
    let server = Server::start(&[]);
    let mut raw = with_table(&server);
    raw.query("INSERT INTO log VALUES (0)");
    prepare(&mut raw, "begin", "BEGIN");
    prepare(&mut raw, "commit", "COMMIT");
    prepare(&mut raw, "local", "SET LOCAL timezone = 'Asia/Tokyo'");
    prepare(&mut raw, "config", "SELECT set_config('timezone', 'Asia/Tokyo', true)");
    prepare(&mut raw, "time", "SELECT '2000-01-01 12:00+00'::timestamptz::text FROM log LIMIT 1");
    let (there, here) = ("2000-01-01 21:00:00+09", "2000-01-01 12:00:00+00");
    raw.query("SET timezone = 'UTC'");
    for round in 0..ROUNDS {
        for set in ["local", "config"] {
            // One transaction until Sync.
            let answer = raw.pipeline(&[step("log", &["0"]), step(set, &[]), step("time", &[])]);
            assert_eq!(told(&answer)[told(&answer).len() - 2..], [there, "SELECT 1"], "round {round}, {set}");
            assert_eq!(rows(&mut raw, "SHOW timezone"), ["UTC"]);
            // And one until COMMIT.
            let block = [
                step("begin", &[]),
                step("log", &["0"]),
                step(set, &[]),
                step("time", &[]),
                step("commit", &[]),
                step("time", &[]),
            ];
            let answer = told(&raw.pipeline(&block));
            assert_eq!(answer[answer.len() - 5..], [there, "SELECT 1", "COMMIT", here, "SELECT 1"], "{set}");
            // An error takes it back as well.
            let failed = [step(set, &[]), step("insert", &["0", "0"]), step("insert", &["0", "0"])];
            assert_eq!(state(&raw.pipeline(&failed)).as_deref(), Some("23505"));
            assert_eq!(rows(&mut raw, "SHOW timezone"), ["UTC"]);
        }
    }
}
