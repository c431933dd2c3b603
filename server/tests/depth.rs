//! Whatever nests (statements, values, routines, definitions) is answered or refused with 54001,
//! however deep it is, and the server lives.

mod common;

use common::Server;
use tokio_postgres::{Client, SimpleQueryMessage};

/// The last value of what a script answers, or the state of its error.
async fn answer(client: &Client, script: &str) -> Result<String, String> {
    let shown = script.chars().take(60).collect::<String>();
    match client.simple_query(script).await {
        Ok(messages) => {
            let value = messages.iter().rev().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            });
            Ok(value.unwrap_or_default())
        }
        Err(error) => match error.code() {
            Some(state) => Err(state.code().to_owned()),
            None => panic!("the server did not answer {shown}…: {error}"),
        },
    }
}

/// The answer to a script in which nothing is too deep.
async fn right(client: &Client, script: &str) -> String {
    match answer(client, script).await {
        Ok(value) => value,
        Err(state) => panic!("{state}: {}…", script.chars().take(200).collect::<String>()),
    }
}

async fn refused(client: &Client, script: &str) {
    let answer = answer(client, script).await;
    assert_eq!(answer, Err("54001".to_owned()), "{}…", script.chars().take(200).collect::<String>());
}

/// An answer, or 54001; of the parser's own limits PostgreSQL says 42601, of the lengths of values and
/// of regular expressions 54000 and 2201B.
async fn answered(client: &Client, script: &str) {
    if let Err(state) = answer(client, script).await {
        let known = ["54001", "54000", "42601", "2201B"];
        assert!(known.contains(&state.as_str()), "{state}: {}…", script.chars().take(60).collect::<String>());
    }
}

/// `of` for each number up to `count`, joined.
fn each(count: usize, of: impl Fn(usize) -> String) -> String {
    (0..count).map(of).collect::<Vec<_>>().join(";\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_of_any_depth_are_answered_or_refused() {
    let server = Server::start(&[]);
    let client = server.client().await;
    let around = |open: &str, core: &str, close: &str, n: usize| {
        format!("SELECT {}{core}{}", open.repeat(n), close.repeat(n))
    };
    for n in [30, 150, 1_000, 10_000] {
        for script in [
            format!("SELECT 1{}", " + 1".repeat(n)),
            format!("SELECT 'a'{}", " || 'a'".repeat(n)),
            format!("SELECT true{}", " AND true".repeat(n)),
            format!("SELECT 1{}", "::text::int".repeat(n)),
            format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(n)),
            format!("SELECT {}true", "NOT ".repeat(n)),
            format!("SELECT {}1", "- ".repeat(n)),
            around("(", "1", ")", n),
            around("abs(", "1", ")", n),
            format!("{} IS NULL", around("ROW(", "1", ")", n)),
            around("ARRAY[", "1", "]", n),
            around("CASE WHEN true THEN ", "1", " END", n),
            around("(SELECT ", "1", ")", n),
            around("coalesce(NULL, ", "1", ")", n),
            format!("SELECT * FROM {}(SELECT 1) a{}", "(SELECT * FROM ".repeat(n), ") a".repeat(n)),
            format!("SELECT '{}{}'::json", "[".repeat(n), "]".repeat(n)),
            format!("SELECT '{}1{}'::jsonb = '{{}}'", "{\"a\":".repeat(n), "}".repeat(n)),
            format!("SELECT '{}{}'::int[]", "{".repeat(n), "}".repeat(n)),
            format!("SELECT jsonb_path_query('1', '{}1{}')", "(".repeat(n), ")".repeat(n)),
            format!("SELECT 'a' ~ '{}a{}'", "(".repeat(n), ")".repeat(n)),
            format!("DO $$ {} NULL; {} $$", "BEGIN ".repeat(n), "END; ".repeat(n)),
            format!("DO $$ BEGIN {} NULL; {} END $$", "IF true THEN ".repeat(n), "END IF; ".repeat(n)),
            format!("DO $$ BEGIN IF false THEN NULL; {} END IF; END $$", "ELSIF false THEN NULL; ".repeat(n)),
            format!("{}SELECT 1", "EXPLAIN ".repeat(n)),
        ] {
            answered(&client, &script).await;
        }
    }
    assert_eq!(right(&client, "SELECT 1 + 1").await, "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_nest_so_deep_and_no_deeper() {
    let server = Server::start(&[]);
    let client = server.client().await;
    let nested = |rounds: usize, then: &str| {
        format!(
            "DO $$ DECLARE r record; BEGIN r := ROW(1); \
             FOR i IN 1..{rounds} LOOP r := ROW(r, i); END LOOP; {then} END $$"
        )
    };
    right(&client, &nested(1_000, "ASSERT r = r;")).await;
    refused(&client, &nested(50_000, "")).await;
    refused(&client, &nested(1_000_000, "")).await;
    let recursive = "WITH RECURSIVE t(n, r) AS (SELECT 1, ROW(1) UNION ALL SELECT n + 1, ROW(r) FROM t \
                     WHERE n < 50000) SELECT count(*) FROM t";
    answered(&client, recursive).await;
    // What is one value twice is no two in memory.
    let twice = "DO $$ DECLARE r record; BEGIN r := ROW(1); \
                 FOR i IN 1..1000 LOOP r := ROW(r, r); END LOOP; END $$";
    assert_eq!(answer(&client, twice).await, Err("54000".to_owned()));
    // Quotes double at each level.
    assert_eq!(right(&client, "SELECT length(ROW(ROW(ROW(1)))::text)").await, "13");
    let state = answer(&client, &nested(60, "PERFORM length(r::text);")).await.expect_err("too long");
    assert!(["54000", "53200"].contains(&state.as_str()), "{state}");
    for build in ["jsonb_build_array(j)", "jsonb_build_object('a', j)", "jsonb_set('[0]', '{0}', j)"] {
        let script = format!(
            "DO $$ DECLARE j jsonb := '1'; BEGIN FOR i IN 1..5000 LOOP j := {build}; END LOOP; \
             ASSERT j = j; END $$"
        );
        answered(&client, &script).await;
    }
    assert_eq!(right(&client, "SELECT 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routines_that_call_each_other_without_end_are_refused() {
    let mut server = Server::start(&[]);
    let client = server.client().await;
    right(
        &client,
        "CREATE TABLE t (a int);
         CREATE FUNCTION f(n int) RETURNS int LANGUAGE plpgsql AS $$
         BEGIN IF n = 0 THEN RETURN 0; END IF; RETURN 1 + f(n - 1); END $$;
         CREATE FUNCTION g(n int) RETURNS int LANGUAGE sql AS
         'SELECT CASE WHEN n = 0 THEN 0 ELSE 1 + g(n - 1) END';
         CREATE FUNCTION caught(n int) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN RETURN f(n); EXCEPTION WHEN statement_too_complex THEN RETURN SQLSTATE; END $$;
         CREATE PROCEDURE ends(n int) LANGUAGE plpgsql AS $$
         BEGIN IF n > 0 THEN COMMIT; CALL ends(n - 1); END IF; END $$;
         CREATE PROCEDURE leaves(n int) LANGUAGE plpgsql AS $$
         BEGIN SET LOCAL work_mem = '1MB'; IF n > 0 THEN EXECUTE 'CALL leaves(' || n - 1 || ')'; END IF; END $$;
         CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN EXECUTE 'INSERT INTO t VALUES ($1)' USING NEW.a + 1; RETURN NEW; END $$;
         CREATE TRIGGER fires BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION fired()",
    )
    .await;
    assert_eq!(right(&client, "SELECT f(450)").await, "450");
    assert_eq!(right(&client, "SELECT g(450)").await, "450");
    right(&client, "CALL ends(100)").await;
    right(&client, "CALL leaves(50)").await;
    for script in [
        "SELECT f(1000000)",
        "SELECT g(1000000)",
        "CALL ends(1000000)",
        "CALL leaves(1000000)",
        "INSERT INTO t VALUES (1)",
    ] {
        refused(&client, script).await;
    }
    assert_eq!(right(&client, "SELECT caught(1000000)").await, "54001");
    assert_eq!(right(&client, "SELECT count(*) FROM t").await, "0");

    // Less where less is asked for.
    let deepest = "DO $$ DECLARE n int := 1; BEGIN LOOP PERFORM f(n); n := n * 2; END LOOP; \
                   EXCEPTION WHEN statement_too_complex THEN \
                   PERFORM set_config('test.deepest', n::text, false); END $$";
    right(&client, deepest).await;
    let by_default: i64 = right(&client, "SHOW test.deepest").await.parse().expect("a number");
    right(&client, "SET max_stack_depth = '200kB'").await;
    right(&client, deepest).await;
    let by_less: i64 = right(&client, "SHOW test.deepest").await.parse().expect("a number");
    assert!(by_less < by_default, "{by_less} {by_default}");
    assert_eq!(answer(&client, "SET max_stack_depth = '1GB'").await, Err("22023".to_owned()));

    let chain = |language: &str| {
        each(150, |n| {
            let (first, call) = (n == 0, format!("chain_{language}_{}(a) + 1", n.saturating_sub(1)));
            let value = if first { "a" } else { &call };
            let body = match language {
                "sql" => format!("SELECT {value}"),
                _ => format!("BEGIN RETURN {value}; END"),
            };
            format!("CREATE FUNCTION chain_{language}_{n}(a int) RETURNS int LANGUAGE {language} AS '{body}'")
        })
    };
    for language in ["sql", "plpgsql"] {
        right(&client, &chain(language)).await;
        assert_eq!(right(&client, &format!("SELECT chain_{language}_149(1)")).await, "150");
    }
    assert_eq!(server.stop(), Some(0));
    server.launch(&[]);
    let client = server.client().await;
    assert_eq!(right(&client, "SELECT chain_plpgsql_149(1)").await, "150");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_over_definitions_come_and_go() {
    let mut server = Server::start(&[]);
    let client = server.client().await;
    let over = |first: &str, next: &dyn Fn(usize) -> String, count: usize| {
        format!("{first};\n{}", each(count - 1, |n| next(n + 1)))
    };
    let domains = over("CREATE DOMAIN d0 AS int", &|n| format!("CREATE DOMAIN d{n} AS d{}", n - 1), 1_000);
    right(&client, &domains).await;
    assert_eq!(right(&client, "SELECT 5::d999").await, "5");
    let views = over(
        "CREATE VIEW v0 AS SELECT 1 AS a",
        &|n| format!("CREATE VIEW v{n} AS SELECT a FROM v{}", n - 1),
        100,
    );
    right(&client, &views).await;
    answered(&client, "SELECT * FROM v99").await;
    let types = over("CREATE TYPE c0 AS (a int)", &|n| format!("CREATE TYPE c{n} AS (a c{})", n - 1), 200);
    right(&client, &types).await;
    right(&client, "CREATE TABLE ct (x c199); INSERT INTO ct VALUES (NULL)").await;
    let heirs =
        over("CREATE TABLE i0 (a int)", &|n| format!("CREATE TABLE i{n} () INHERITS (i{})", n - 1), 100);
    right(&client, &heirs).await;
    right(&client, "INSERT INTO i99 VALUES (1); ALTER TABLE i0 ADD COLUMN b int").await;
    assert_eq!(right(&client, "SELECT count(*) FROM i0").await, "1");
    let keys = over(
        "CREATE TABLE k0 (a int PRIMARY KEY); INSERT INTO k0 VALUES (1)",
        &|n| {
            let above = n - 1;
            format!(
                "CREATE TABLE k{n} (a int PRIMARY KEY REFERENCES k{above} ON DELETE CASCADE); \
                 INSERT INTO k{n} VALUES (1)"
            )
        },
        100,
    );
    right(&client, &keys).await;
    answered(&client, "DELETE FROM k0").await;

    assert_eq!(server.stop(), Some(0));
    server.launch(&[]);
    let client = server.client().await;
    for script in [
        "DROP DOMAIN d0 CASCADE",
        "DROP VIEW v0 CASCADE",
        "DROP TYPE c0 CASCADE",
        "DROP TABLE i0 CASCADE",
        "DROP TABLE k0 CASCADE",
    ] {
        right(&client, script).await;
    }
    let left = "SELECT count(*) FROM pg_type WHERE typtype = 'd' AND typname ~ '^d[0-9]+$'";
    assert_eq!(right(&client, left).await, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_on_a_thread_of_its_own_goes_as_deep_as_its_session_may() {
    let server = Server::start(&[]);
    let client = server.client().await;
    let deep = "CREATE FUNCTION deep(n int) RETURNS int LANGUAGE plpgsql AS
                $$ BEGIN IF n = 0 THEN RETURN 0; END IF; RETURN deep(n - 1); END $$";
    right(&client, deep).await;
    right(&client, "CREATE TABLE many (a int)").await;
    right(&client, "INSERT INTO many SELECT generate_series(1, 10000)").await;
    right(&client, "SET max_stack_depth = '200kB'").await;
    let mut levels = 64;
    while answer(&client, &format!("SELECT deep({levels})")).await.is_ok() {
        levels *= 2;
        assert!(levels < 1 << 20, "no bound of 200 kB");
    }
    let first = format!("CASE WHEN a = 1 THEN deep({levels}) ELSE 0 END");
    let change = format!("ALTER TABLE many ALTER a TYPE bigint USING a + {first}");
    refused(&client, &change).await;
    right(&client, "RESET max_stack_depth").await;
    right(&client, &change).await;
}
