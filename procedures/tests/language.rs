//! The language, run: statements, control flow, errors, results. What is expected was answered
//! by PostgreSQL 15 for the same text.

mod common;

use common::Database;

fn bank() -> Database {
    Database::with(
        "CREATE TABLE account (id integer PRIMARY KEY, owner text NOT NULL, balance numeric(12,2) NOT NULL CHECK (balance >= 0));
         INSERT INTO account VALUES (1, 'ann', 100), (2, 'bob', 50.50);
         CREATE PROCEDURE transfer(source integer, target integer, amount numeric)
         LANGUAGE plpgsql AS $$
         DECLARE
           available numeric;
         BEGIN
           SELECT balance INTO STRICT available FROM account WHERE id = source FOR UPDATE;
           UPDATE account SET balance = balance + amount WHERE id = target;
           IF NOT FOUND THEN
             RAISE EXCEPTION 'no account %', target USING ERRCODE = 'no_data_found', HINT = 'Open one.';
           END IF;
           IF available < amount THEN
             RAISE EXCEPTION 'overdraft: % < %', available, amount;
           END IF;
           UPDATE account SET balance = balance - amount WHERE id = source;
           RAISE NOTICE 'moved %', amount;
         END $$;",
    )
}

#[test]
fn money_moves() {
    let mut db = bank();
    let answer = db.run("CALL transfer(1, 2, 30)").unwrap();
    assert_eq!(answer.notices, ["NOTICE: moved 30"]);
    assert_eq!(db.lines("SELECT id, balance FROM account ORDER BY id"), ["1|70.00", "2|80.50"]);
}

#[test]
fn an_overdraft_raises_and_leaves_nothing_behind() {
    let mut db = bank();
    let error = db.run("CALL transfer(1, 2, 130)").unwrap_err();
    assert_eq!((error.state().as_str(), error.message()), ("P0001", "overdraft: 100.00 < 130"));
    let context = error.fields().context.as_deref();
    assert_eq!(context, Some("PL/pgSQL function transfer(integer,integer,numeric) line 11 at RAISE"));
    assert_eq!(db.lines("SELECT id, balance FROM account ORDER BY id"), ["1|100.00", "2|50.50"]);
    assert_eq!(db.failure("CALL transfer(9, 2, 1)"), ("P0002".into(), "query returned no rows".into()));
    let error = db.run("CALL transfer(1, 9, 1)").unwrap_err();
    assert_eq!((error.state().as_str(), error.fields().hint.as_deref()), ("P0002", Some("Open one.")));
}

/// A function `f` of one integer, and its results or errors.
#[track_caller]
fn function(returns: &str, body: &str, calls: &[(&str, &str)]) {
    let mut db = Database::with(
        "CREATE TABLE t (k integer PRIMARY KEY, v text, n integer);
         INSERT INTO t VALUES (1, 'one', 10), (2, 'two', 20), (3, NULL, 30);",
    );
    db.script(&format!(
        "CREATE FUNCTION f(a integer) RETURNS {returns} LANGUAGE plpgsql AS $body${body}$body$;"
    ));
    for (call, expected) in calls {
        let got = match db.run(call) {
            Ok(answer) => {
                let mut lines = answer.notices.clone();
                lines.extend(answer.rows.iter().map(|row| row.join("|")));
                lines.join(" ")
            }
            Err(error) => format!("{} {}", error.state().as_str(), error.message()),
        };
        assert_eq!(got, *expected, "{call}\n{body}");
    }
}

#[test]
fn branches() {
    let body = "BEGIN
        IF a < 0 THEN RETURN 'negative'; ELSIF a = 0 THEN RETURN 'zero'; ELSE NULL; END IF;
        CASE a WHEN 1, 2 THEN RETURN 'few'; WHEN 3 THEN RETURN 'three'; ELSE NULL; END CASE;
        CASE WHEN a > 100 THEN RETURN 'many'; WHEN a > 10 THEN RETURN 'some'; END CASE;
        RETURN 'never'; END";
    function(
        "text",
        body,
        &[
            ("SELECT f(-1)", "negative"),
            ("SELECT f(0)", "zero"),
            ("SELECT f(2)", "few"),
            ("SELECT f(3)", "three"),
            ("SELECT f(11)", "some"),
            ("SELECT f(1000)", "many"),
            ("SELECT f(5)", "20000 case not found"),
        ],
    );
}

#[test]
fn loops() {
    let body = "DECLARE s integer := 0; i integer := 100; r record; x integer;
      BEGIN
        FOR i IN 1..a LOOP s := s + i; END LOOP;
        FOR i IN REVERSE 10..1 BY 4 LOOP s := s * 2 + i; END LOOP;
        WHILE s > 1000 LOOP s := s - 7; END LOOP;
        LOOP s := s + 1; EXIT WHEN s % 10 = 0; END LOOP;
        <<outer>> FOR j IN 1..3 LOOP
          FOR k IN 1..3 LOOP
            CONTINUE outer WHEN k = 2;
            EXIT outer WHEN j = 3;
            s := s + 1;
          END LOOP;
        END LOOP;
        FOR r IN SELECT k, n FROM t WHERE k <= 2 ORDER BY k DESC LOOP s := s + r.n * r.k; END LOOP;
        FOREACH x IN ARRAY ARRAY[5, 6] LOOP s := s + x; END LOOP;
        RETURN s + i;
      END";
    // 6 -> ((6*2+10)*2+6)*2+2 = 102 -> 110 -> 112 -> +40+10 -> 162 -> 173 -> +100
    function("integer", body, &[("SELECT f(3)", "273")]);
    function(
        "integer",
        "DECLARE s int := 0; BEGIN FOR i IN 1..NULL LOOP s := 1; END LOOP; RETURN s; END",
        &[("SELECT f(1)", "22004 upper bound of FOR loop cannot be null")],
    );
    function(
        "integer",
        "DECLARE s int := 0; BEGIN FOR i IN 1..3 BY a LOOP s := s + 1; END LOOP; RETURN s; END",
        &[("SELECT f(0)", "22023 BY value of FOR loop must be greater than zero"), ("SELECT f(2)", "2")],
    );
}

#[test]
fn rows_go_into_variables() {
    let body = "DECLARE v t%ROWTYPE; r record; s text; m t.n%TYPE; c integer;
      BEGIN
        SELECT * INTO v FROM t WHERE k = a;
        IF NOT FOUND THEN RETURN 'none'; END IF;
        SELECT n + 1 AS next, upper(t.v) AS up INTO r FROM t WHERE k = v.k;
        SELECT count(*) INTO c FROM t;
        UPDATE t SET n = t.n + 1 WHERE k = a RETURNING n INTO m;
        GET DIAGNOSTICS c = ROW_COUNT;
        RETURN v.v || '/' || r.next || '/' || r.up || '/' || m || '/' || c;
      END";
    function(
        "text",
        body,
        &[("SELECT f(1)", "one/11/ONE/11/1"), ("SELECT f(7)", "none"), ("SELECT f(3)", "NULL")],
    );
    function(
        "integer",
        "DECLARE x integer; BEGIN SELECT n INTO STRICT x FROM t WHERE k >= a; RETURN x; END",
        &[
            ("SELECT f(3)", "30"),
            ("SELECT f(2)", "P0003 query returned more than one row"),
            ("SELECT f(4)", "P0002 query returned no rows"),
        ],
    );
    function(
        "integer",
        "DECLARE x integer; BEGIN UPDATE t SET n = 0 WHERE k >= a RETURNING n INTO x; RETURN x; END",
        &[("SELECT f(2)", "P0003 query returned more than one row"), ("SELECT sum(n) FROM t", "60")],
    );
}

#[test]
fn errors_are_caught_and_undone() {
    let body = "DECLARE msg text; st text;
      BEGIN
        BEGIN
          INSERT INTO t VALUES (100, 'x', 1);
          IF a = 1 THEN a := 1 / (a - 1);
          ELSIF a = 2 THEN INSERT INTO t VALUES (1, 'dup', 1);
          ELSIF a = 3 THEN RAISE EXCEPTION 'mine' USING ERRCODE = 'P0042', DETAIL = 'd';
          ELSIF a = 4 THEN RAISE no_data_found;
          END IF;
        EXCEPTION
          WHEN division_by_zero OR SQLSTATE '22003' THEN RETURN 'div ' || SQLERRM;
          WHEN unique_violation THEN
            GET STACKED DIAGNOSTICS msg = MESSAGE_TEXT, st = RETURNED_SQLSTATE;
            RETURN st || ' ' || msg;
          WHEN others THEN
            GET STACKED DIAGNOSTICS msg = PG_EXCEPTION_DETAIL;
            IF a = 4 THEN RAISE; END IF;
            RETURN SQLSTATE || ' ' || SQLERRM || ' ' || msg || (SELECT count(*) FROM t);
        END;
        RETURN 'fine ' || (SELECT count(*) FROM t);
      END";
    function(
        "text",
        body,
        &[
            ("SELECT f(1)", "div division by zero"),
            ("SELECT f(2)", "23505 duplicate key value violates unique constraint \"t_pkey\""),
            ("SELECT f(3)", "P0042 mine d3"),
            ("SELECT f(4)", "P0002 no_data_found"),
            ("SELECT f(5)", "fine 4"),
            ("SELECT f(5)", "23505 duplicate key value violates unique constraint \"t_pkey\""),
        ],
    );
}

#[test]
fn results_of_every_kind() {
    function(
        "SETOF integer",
        "BEGIN FOR i IN 1..a LOOP RETURN NEXT i; END LOOP; RETURN QUERY SELECT n FROM t ORDER BY k; RETURN; END",
        &[
            ("SELECT * FROM f(2)", "1 2 10 20 30"),
            ("SELECT count(*) FROM f(0)", "3"),
            ("SELECT f(1)", "1 10 20 30"),
        ],
    );
    function(
        "TABLE (x integer, y text)",
        "BEGIN FOR x, y IN SELECT k, v FROM t ORDER BY k LOOP RETURN NEXT; END LOOP; END",
        &[("SELECT * FROM f(1)", "1|one 2|two 3|NULL")],
    );
    function(
        "SETOF t",
        "BEGIN RETURN QUERY SELECT * FROM t WHERE k = a; END",
        &[("SELECT v, n FROM f(2)", "two|20"), ("SELECT * FROM f(9)", "")],
    );
    function(
        "t",
        "DECLARE r t; BEGIN SELECT * INTO r FROM t WHERE k = a; RETURN r; END",
        &[("SELECT v FROM f(1)", "one")],
    );
    function("void", "BEGIN PERFORM 1; END", &[("SELECT f(1) IS NULL", "f")]);
    function(
        "integer",
        "BEGIN PERFORM 1; END",
        &[("SELECT f(1)", "2F005 control reached end of function without RETURN")],
    );
    function(
        "SETOF bigint",
        "BEGIN RETURN QUERY SELECT n FROM t; END",
        &[("SELECT f(1)", "42804 structure of query does not match function result type")],
    );
}

#[test]
fn out_arguments() {
    let mut db = Database::with(
        "CREATE FUNCTION g(a integer, OUT b integer, OUT c text) LANGUAGE plpgsql AS $$ BEGIN b := a + 1; c := 'c' || a; END $$;
         CREATE PROCEDURE p(INOUT a integer, b integer, INOUT c text DEFAULT NULL) LANGUAGE plpgsql AS $$ BEGIN a := a + b; c := 'sum ' || a; END $$;
         CREATE FUNCTION h(x integer) RETURNS text LANGUAGE plpgsql AS $$
         DECLARE y integer := x; z text;
         BEGIN CALL p(y, 5, z); CALL p(y, x, z); RETURN y || z; END $$;",
    );
    assert_eq!(db.lines("SELECT * FROM g(1)"), ["2|c1"]);
    assert_eq!(db.lines("SELECT (g(1)).c"), ["c1"]);
    assert_eq!(db.lines("CALL p(1, 2)"), ["3|sum 3"]);
    assert_eq!(db.lines("SELECT h(10)"), ["25sum 25"]);
}

#[test]
fn arrays() {
    let body = "DECLARE xs integer[] := '{}'; ys text[];
      BEGIN
        FOR i IN 1..a LOOP xs[i] := i * i; END LOOP;
        xs[a + 2] := 7;
        ys[2] := 'two';
        RETURN xs::text || array_length(xs, 1) || coalesce(xs[a + 1]::text, 'null') || ys::text || coalesce(array_upper(xs, 1), 0);
      END";
    function("text", body, &[("SELECT f(3)", "{1,4,9,NULL,7}5null[2:2]={two}5")]);
}

#[test]
fn assignments_cast_and_check() {
    function(
        "text",
        "DECLARE v varchar(3); n numeric(5,2); i integer NOT NULL := 1; c CONSTANT integer := 5; d date;
         BEGIN
           n := 1.005 * a; i := 2.5; d := '2024-02-30'::text::timestamp;
           v := 'abcd'; RETURN v;
         EXCEPTION WHEN string_data_right_truncation THEN RETURN n || ' ' || i || ' ' || c;
                   WHEN datetime_field_overflow THEN v := 'ab'; RETURN v || n || i;
         END",
        &[("SELECT f(3)", "ab3.023")],
    );
    function(
        "integer",
        "DECLARE i integer NOT NULL := 1; BEGIN i := nullif(a, 1); RETURN i; END",
        &[
            ("SELECT f(2)", "2"),
            ("SELECT f(1)", "22004 null value cannot be assigned to variable \"i\" declared NOT NULL"),
        ],
    );
    function(
        "integer",
        "DECLARE i smallint; BEGIN i := a; RETURN i; END",
        &[("SELECT f(40000)", "22003 smallint out of range")],
    );
    function(
        "integer",
        "DECLARE i integer; BEGIN i := 'x' || a; RETURN i; END",
        &[("SELECT f(1)", "22P02 invalid input syntax for type integer: \"x1\"")],
    );
}

#[test]
fn statements_fail_when_they_are_reached() {
    let mut db = Database::with(
        "CREATE FUNCTION f(a integer) RETURNS integer LANGUAGE plpgsql AS $$
         BEGIN IF a > 1 THEN INSERT INTO later VALUES (a); END IF; RETURN a; END $$;",
    );
    assert_eq!(db.lines("SELECT f(1)"), ["1"]);
    assert_eq!(db.failure("SELECT f(2)"), ("42P01".into(), "relation \"later\" does not exist".into()));
    db.script("CREATE TABLE later (k integer PRIMARY KEY)");
    assert_eq!(db.lines("SELECT f(2)"), ["2"]);
    assert_eq!(db.lines("SELECT k FROM later"), ["2"]);
}

#[test]
fn names_of_columns_and_variables_collide() {
    function(
        "integer",
        "DECLARE k integer := 1; BEGIN RETURN (SELECT n FROM t WHERE k = k LIMIT 1); END",
        &[("SELECT f(1)", "42702 column reference \"k\" is ambiguous")],
    );
    function(
        "integer",
        "#variable_conflict use_column\nDECLARE k integer := 2; BEGIN RETURN (SELECT n FROM t WHERE k = f.a LIMIT 1); END",
        &[("SELECT f(1)", "10")],
    );
    function(
        "integer",
        "<<b>> DECLARE k integer := 2; BEGIN RETURN (SELECT n FROM t WHERE t.k = b.k); END",
        &[("SELECT f(1)", "20")],
    );
}

#[test]
fn recursion_is_bounded() {
    function(
        "integer",
        "BEGIN IF a <= 1 THEN RETURN 1; END IF; RETURN a * f(a - 1); END",
        &[("SELECT f(10)", "3628800"), ("SELECT f(100000)", "54001 stack depth limit exceeded")],
    );
}

#[test]
fn execute_binds_when_it_runs() {
    function(
        "text",
        "DECLARE c bigint; s text; r record;
         BEGIN
           EXECUTE 'SELECT count(*) FROM t WHERE k <= $1' INTO c USING a;
           EXECUTE format('UPDATE %I SET n = n + $1 WHERE k = 1 RETURNING v', 't') INTO s USING 5;
           FOR s IN EXECUTE 'SELECT v FROM t WHERE k = 2' LOOP NULL; END LOOP;
           RETURN c || s || (SELECT n FROM t WHERE k = 1);
         END",
        &[("SELECT f(2)", "2two15")],
    );
}

#[test]
fn messages() {
    function(
        "integer",
        "BEGIN
           RAISE NOTICE 'a=% %% null=%', a, NULL::text;
           RAISE WARNING 'bool %', a > 1;
           RAISE INFO USING MESSAGE = 'plain';
           ASSERT a < 5, 'too big';
           RETURN a;
         END",
        &[
            ("SELECT f(1)", "NOTICE: a=1 % null=<NULL> WARNING: bool f INFO: plain 1"),
            ("SELECT f(5)", "P0004 too big"),
        ],
    );
}

#[test]
fn sql_functions() {
    let mut db = Database::with(
        "CREATE TABLE t (k integer PRIMARY KEY, n integer);
         INSERT INTO t VALUES (1, 10), (2, 20);
         CREATE FUNCTION twice(x integer) RETURNS integer LANGUAGE sql AS 'SELECT x * 2';
         CREATE FUNCTION nth(integer) RETURNS bigint LANGUAGE sql AS 'SELECT n FROM t WHERE k = $1';
         CREATE FUNCTION rows_of(lo integer) RETURNS SETOF t LANGUAGE sql AS 'SELECT * FROM t WHERE k >= lo ORDER BY k';
         CREATE FUNCTION pair(a integer, OUT s integer, OUT d integer) LANGUAGE sql AS 'SELECT a + 1, a - 1';
         CREATE FUNCTION bump(x integer) RETURNS integer LANGUAGE sql AS 'UPDATE t SET n = n + 1 WHERE k = x; SELECT n FROM t WHERE k = x';
         CREATE PROCEDURE add(a integer, b integer) LANGUAGE sql AS 'INSERT INTO t VALUES (a, b)';",
    );
    assert_eq!(db.lines("SELECT twice(4), nth(2), nth(9)"), ["8|20|NULL"]);
    assert_eq!(db.lines("SELECT * FROM rows_of(1)"), ["1|10", "2|20"]);
    assert_eq!(db.lines("SELECT * FROM pair(5)"), ["6|4"]);
    assert_eq!(db.lines("SELECT bump(1)"), ["11"]);
    db.run("CALL add(3, 30)").unwrap();
    assert_eq!(db.lines("SELECT nth(3)"), ["30"]);
    let (state, message) =
        db.failure("CREATE FUNCTION bad() RETURNS integer LANGUAGE sql AS 'SELECT nothing'");
    assert_eq!((state.as_str(), message.as_str()), ("42703", "column \"nothing\" does not exist"));
    let (state, _) = db.failure("CREATE FUNCTION bad() RETURNS integer LANGUAGE sql AS 'SELECT 1, 2'");
    assert_eq!(state, "42P13");
}

#[test]
fn anonymous_blocks() {
    let mut db = Database::with("CREATE TABLE t (k integer PRIMARY KEY)");
    db.run("DO $$ BEGIN FOR i IN 1..3 LOOP INSERT INTO t VALUES (i); END LOOP; END $$").unwrap();
    assert_eq!(db.lines("SELECT count(*) FROM t"), ["3"]);
    let error = db.run("DO $$ BEGIN RAISE EXCEPTION 'x'; END $$").unwrap_err();
    assert_eq!(
        error.fields().context.as_deref(),
        Some("PL/pgSQL function inline_code_block line 1 at RAISE")
    );
}

#[test]
fn context_lines_tell_the_way() {
    let mut db = Database::with(
        "CREATE TABLE t (k integer PRIMARY KEY);
         CREATE FUNCTION inner_one(x integer) RETURNS integer LANGUAGE plpgsql AS $$
         BEGIN
           INSERT INTO t VALUES (x);
           RETURN 10 / x;
         END $$;
         CREATE FUNCTION outer_one(x integer) RETURNS integer LANGUAGE plpgsql AS $$
         DECLARE y integer;
         BEGIN
           y := inner_one(x);
           RETURN y;
         END $$;",
    );
    let error = db.run("SELECT outer_one(0)").unwrap_err();
    assert_eq!(
        error.fields().context.as_deref(),
        Some(
            "PL/pgSQL function inner_one(integer) line 4 at RETURN\nPL/pgSQL function outer_one(integer) line 4 at assignment"
        )
    );
    db.run("SELECT outer_one(1)").unwrap();
    let error = db.run("SELECT inner_one(1)").unwrap_err();
    assert_eq!(
        error.fields().context.as_deref(),
        Some(
            "SQL statement \"INSERT INTO t VALUES (x)\"\nPL/pgSQL function inner_one(integer) line 3 at SQL statement"
        )
    );
}

#[test]
fn strict_functions_and_fresh_variables() {
    let mut db = Database::with(
        "CREATE FUNCTION s(a integer, b integer) RETURNS integer STRICT LANGUAGE plpgsql AS $$ BEGIN RETURN a + b; END $$;
         CREATE FUNCTION fresh() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN FOUND; END $$;
         CREATE FUNCTION again() RETURNS text LANGUAGE plpgsql AS $$
         DECLARE out text := '';
         BEGIN
           FOR i IN 1..3 LOOP
             DECLARE x integer; y integer := 5;
             BEGIN
               out := out || coalesce(x, 0) || y || ' ';
               x := i; y := i;
             END;
           END LOOP;
           RETURN out;
         END $$;
         CREATE FUNCTION chars(OUT a char, OUT b varchar) LANGUAGE plpgsql AS $$ BEGIN a := 'abc'; b := 'defg'; END $$;",
    );
    assert_eq!(db.lines("SELECT s(1, 2), s(1, NULL)"), ["3|NULL"]);
    assert_eq!(db.lines("SELECT fresh()"), ["f"]);
    assert_eq!(db.lines("SELECT again()"), ["05 05 05 "]);
    assert_eq!(db.lines("SELECT * FROM chars()"), ["abc|defg"]);
}
