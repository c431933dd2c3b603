//! Where errors say that they are: of queries inside of statements, in the statement as it was sent.

mod common;

use common::Server;
use tokio_postgres::error::ErrorPosition;

/// As [`STATEMENTS`], of expressions and keys in definitions.
const DEFINITIONS: &[&str] = &[
    "CREATE TABLE u (a int DEFAULT ^'abc')",
    "CREATE TABLE u (a int DEFAULT 1 + ^'q')",
    "CREATE TABLE u (a date DEFAULT ^'2020-13-01')",
    "CREATE TABLE u (a int DEFAULT 1 + ^count(*))",
    "CREATE TABLE u (a int DEFAULT ^sum(1) OVER ())",
    "CREATE TABLE u (a int DEFAULT ^generate_series(1, 2))",
    "CREATE TABLE u (a int DEFAULT ^nofunc(1))",
    "CREATE TABLE u (a int DEFAULT 1 ^+ true)",
    "CREATE TABLE u (a int DEFAULT 1 + ^(SELECT 1))",
    "CREATE TABLE u (a int DEFAULT ^ARRAY(SELECT 1))",
    "CREATE TABLE u (a int CHECK (a > ^'q'))",
    "CREATE TABLE u (a int CHECK (a + 1 > ^(SELECT 1)))",
    "CREATE TABLE u (a int CHECK (a ^IN (SELECT 1)))",
    "CREATE TABLE u (a int CHECK (a ^= ANY (SELECT 1)))",
    "CREATE TABLE u (a int CHECK (NOT ^EXISTS (SELECT 1)))",
    "CREATE TABLE u (a int CHECK (a > 1 AND ^count(a) > 1))",
    "CREATE TABLE u (a int CHECK (1 < ^row_number() OVER ()))",
    "CREATE TABLE u (a int CHECK (1 < ^generate_series(1, 2)))",
    "CREATE TABLE u (a text CHECK (a::^nope > 'x'))",
    "CREATE TABLE u (a int, b int GENERATED ALWAYS AS (1 + ^b) STORED)",
    "CREATE TABLE u (a int, b int GENERATED ALWAYS AS (a + ^(SELECT 1)) STORED)",
    "CREATE TABLE u (a int, b int GENERATED ALWAYS AS (a + ^sum(a)) STORED)",
    "CREATE TABLE u (a int ^COLLATE \"C\")",
    "CREATE TABLE u (b int, a text ^COLLATE nope)",
    "ALTER TABLE t ADD c int NOT NULL ^COLLATE \"C\"",
    "CREATE TABLE u (a int PRIMARY KEY, b int ^PRIMARY KEY)",
    "CREATE TABLE u (a int PRIMARY KEY, ^PRIMARY KEY (a))",
    "CREATE TABLE u (a int, ^PRIMARY KEY (a, nope))",
    "CREATE TABLE u (a int, ^CONSTRAINT k UNIQUE (a, a))",
    "ALTER TABLE t ADD ^UNIQUE (a, a)",
    "ALTER TABLE t ADD ^CONSTRAINT k UNIQUE USING INDEX nope",
    "ALTER TABLE loose ALTER a TYPE text USING ^nope",
    "ALTER TABLE loose ALTER a TYPE text USING a || ^(SELECT 'a')",
    "ALTER TABLE loose ALTER a TYPE text USING ^count(*)",
    "ALTER TABLE loose ALTER a TYPE int USING 1 + ^generate_series(1, 2)",
    "ALTER TABLE loose ALTER a TYPE text USING a ^+ true",
    "CREATE INDEX ON t ((a + ^'x'))",
    "CREATE INDEX ON t ((a + ^(SELECT 1)))",
    "CREATE INDEX ON t ((1 + ^count(a)))",
    "CREATE INDEX ON t (a) WHERE a > ^(SELECT 1)",
    "CREATE INDEX ON t (a) WHERE 1 < ^count(*)",
    "CREATE INDEX ON t (a) WHERE a > ^'x'",
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW WHEN (new.a > ^'x') EXECUTE FUNCTION noted()",
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW WHEN (^new.a) EXECUTE FUNCTION noted()",
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW WHEN (true AND ^a > 1) EXECUTE FUNCTION noted()",
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW WHEN (true AND ^nope > 1) EXECUTE FUNCTION noted()",
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW WHEN (1 < ^count(*)) EXECUTE FUNCTION noted()",
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW WHEN (new.a > ^(SELECT 1)) EXECUTE FUNCTION noted()",
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW WHEN (^nofunc(new.a)) EXECUTE FUNCTION noted()",
    "CREATE FUNCTION f(x int DEFAULT 1 + ^'abc') RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f(x int DEFAULT 1 + ^nofunc()) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f(x int DEFAULT 1 ^+ true) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f(x int DEFAULT 1 + ^count(*)) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f(x int DEFAULT ^generate_series(1, 2)) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f(x int DEFAULT 'a'::^nope) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f(x int DEFAULT ^'1'::text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f(x int DEFAULT 1 + ^(SELECT 2)) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE PROCEDURE p(x int DEFAULT ^nofunc()) LANGUAGE sql AS 'SELECT 1'",
];

/// Where PostgreSQL does not say where.
const PLACELESS: &[&str] = &[
    "ALTER TABLE t ADD COLUMN z int DEFAULT nope",
    "ALTER TABLE t ADD COLUMN z int DEFAULT (SELECT 1)",
    "ALTER TABLE t ADD COLUMN z int CHECK (nope > 1)",
    "ALTER TABLE t ADD CHECK (nope > 1)",
    "ALTER TABLE t ADD CHECK (a > (SELECT 1))",
    "ALTER TABLE t ALTER a SET DEFAULT nope",
    "ALTER TABLE t ALTER a SET DEFAULT (SELECT 1)",
    "CREATE DOMAIN d AS int DEFAULT nope",
    "CREATE DOMAIN d AS int DEFAULT (SELECT 1)",
];

/// Statements with `^` before the place that their error tells; as PostgreSQL 15 does.
const STATEMENTS: &[&str] = &[
    "COPY (SELECT ^nope FROM t) TO STDOUT",
    "COPY (SELECT é.a FROM t é WHERE ^nope) TO STDOUT",
    "COPY (INSERT INTO t VALUES (^'x', 'y') RETURNING *) TO STDOUT",
    "COPY (SELECT a FROM t WHERE b ^= 1) TO STDOUT",
    "CREATE TABLE u AS SELECT ^nope FROM t",
    "CREATE TABLE IF NOT EXISTS u (x) AS\n  SELECT a\n  FROM ^nope",
    "CREATE TEMP TABLE u AS VALUES (1, ^nope)",
    "SELECT ^nope INTO u FROM t",
    "SELECT a INTO TEMP TABLE u FROM ^nope",
    "CREATE VIEW v AS SELECT ^nope FROM t",
    "CREATE VIEW v (x) AS SELECT a FROM ^nope",
    "CREATE OR REPLACE VIEW v AS SELECT a, ^'x'::int FROM t",
    "CREATE VIEW v AS SELECT ^nofunc(a) FROM t",
    "CREATE RECURSIVE VIEW v (n) AS SELECT ^nope FROM t",
    "DECLARE c CURSOR WITH HOLD FOR SELECT ^nope FROM t",
    "DECLARE c CURSOR WITH HOLD FOR SELECT b ^+ 1 FROM t",
    "EXPLAIN SELECT ^nope FROM t",
    "EXPLAIN CREATE TABLE u AS SELECT ^nope FROM t",
    "EXPLAIN DECLARE c CURSOR FOR SELECT ^nope FROM t",
    "PREPARE p AS SELECT ^nope FROM t",
    "EXECUTE known(1, ^nope)",
    "EXECUTE known('é', 1 + ^'x')",
    "SELECT 1; CREATE TABLE u AS SELECT ^nope FROM t",
    "INSERT INTO t SELECT ^b, a FROM t",
    "INSERT INTO t (b, a) SELECT 'x', ^b FROM t UNION ALL SELECT 'x', b FROM t",
    "INSERT INTO t (b, a) WITH z AS (SELECT 1, 'x'::text) SELECT ^* FROM z",
    "INSERT INTO t SELECT a, b, ^a + 1 FROM t",
    "INSERT INTO t SELECT *, ^1 FROM t",
    "INSERT INTO t VALUES (1, 'x', ^3, 4)",
    "INSERT INTO t VALUES (1, 'x') ON CONFLICT ^(a, nope) DO NOTHING",
    "CREATE TABLE u (a int, CHECK (a > 1 AND ^nope > 1))",
    "CREATE TABLE u (a int, b int CHECK (b + ^nope > 1))",
    "CREATE TABLE u (a int, b int GENERATED ALWAYS AS (a + ^nope) STORED)",
    "CREATE TABLE u (a int DEFAULT 1 + ^nope)",
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW WHEN (new.a > 1 AND ^new.nope) EXECUTE FUNCTION noted()",
    "CREATE INDEX ON t ((a + 1), (1 + ^nope))",
    "CREATE INDEX ON t (a) WHERE a > 1 AND ^nope",
    "CREATE FUNCTION f(x int, y int DEFAULT 1 + ^nope) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql RETURN 1 + ^nope",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT ^nope FROM t; END",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; SELECT b ^+ 1 FROM t $$",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; INSERT INTO t SELECT ^b, a FROM t; SELECT 1 $$",
    "SELECT 1::^nope",
    "SELECT 1, CAST(2 AS ^nope[])",
    "SELECT 'a'::^nowhere.nope",
    "SELECT * FROM json_to_record('{}') AS x (a int, b ^nope)",
    "SELECT coalesce(b, ^1) FROM t",
    "SELECT CASE WHEN true THEN ^b ELSE 1 END FROM t",
    "SELECT CASE WHEN true THEN 1 WHEN false THEN ^b END FROM t",
    "SELECT greatest(b, ^1) FROM t",
    "SELECT ARRAY[b, ^1] FROM t",
    "SELECT ^nullif(b, 1) FROM t",
    "CREATE TABLE u (a int, CHECK (a ^+ true))",
    "CREATE TABLE u (a int, CHECK (^a))",
    "CREATE TABLE u (a int CHECK (a ^+ true > 1))",
    "CREATE TABLE u (a int, g int GENERATED ALWAYS AS (a ^+ true) STORED)",
    "CREATE INDEX ON t ((a ^+ true))",
    "CREATE INDEX ON t (a) WHERE ^a + 1",
    "CREATE INDEX ON t (a) WHERE (b ^> 1)",
    "SELECT ^extract(year FROM 1)",
    "SELECT ^substring(1 FROM 2)",
    "SELECT ^trim(BOTH 1 FROM 'x')",
    "SELECT ^trim(1)",
    "SELECT ^overlay(1 PLACING 2 FROM 3)",
    "SELECT ^position(1 IN 'x')",
    "SELECT ^$1",
    "SELECT 1, ^$1 + 1",
    "SELECT ^123abc",
];

#[tokio::test]
async fn errors_of_queries_inside_of_statements_tell_their_places_in_these() {
    let server = Server::start(&[]);
    let client = server.client().await;
    let known = "CREATE TABLE t (a int PRIMARY KEY, b text); CREATE TABLE loose (a int); PREPARE known(text, int) AS SELECT $1, $2;
        CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'";
    client.batch_execute(known).await.unwrap();
    for written in STATEMENTS.iter().chain(DEFINITIONS) {
        let (before, after) = written.split_once('^').expect("a place");
        let place = before.chars().count() as u32 + 1;
        let error = client.simple_query(&format!("{before}{after}")).await.expect_err(written);
        let told = error.as_db_error().expect("an answer").position();
        assert_eq!(told, Some(&ErrorPosition::Original(place)), "{written}: {error}");
    }
    for written in PLACELESS {
        let error = client.simple_query(written).await.expect_err(written);
        let told = error.as_db_error().expect("an answer").position();
        assert_eq!(told, None, "{written}: {error}");
    }
}

#[tokio::test]
async fn a_body_that_means_nothing_at_a_call_is_told_of_as_the_bodys_own_text() {
    let server = Server::start(&[]);
    let client = server.client().await;
    let definitions = "CREATE TABLE t (a int);
        CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'select a from t';
        ALTER TABLE t RENAME a TO c";
    client.batch_execute(definitions).await.unwrap();
    let error = client.simple_query("SELECT 1 + f()").await.expect_err("no such column");
    let error = error.as_db_error().expect("an answer");
    let position = ErrorPosition::Internal { position: 8, query: "select a from t".to_owned() };
    assert_eq!(error.position(), Some(&position));
    assert_eq!(error.where_(), Some("SQL function \"f\" during inlining"));
}
