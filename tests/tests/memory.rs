//! The budget of memory in a server: whatever asks for more than there is gets 53200, the process stays
//! near its limit, everybody is served afterwards, and what was freed goes back to the system.

use std::time::Duration;

use archipel_tests::server::{Server, one};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

const LIMIT_MB: u64 = 256;

/// The process at its largest: half of the limit for what is copied while it grows, and code, stacks
/// and the log store's buffers.
const LARGEST_MB: u64 = LIMIT_MB + LIMIT_MB / 2 + 512;

/// What takes more than the limit wherever it is computed.
const REFUSED: &[&str] = &[
    "INSERT INTO kept SELECT g, repeat('x', 200) FROM generate_series(1, 20000000) g",
    "SELECT length(string_agg(repeat('x', 1000), '')) FROM generate_series(1, 900000)",
    "SELECT cardinality(array_agg(repeat('x', 1000))) FROM generate_series(1, 900000)",
    "SELECT length(repeat('x', 1000000000))",
    "SELECT length(lpad('x', 260000000, 'y') || lpad('x', 260000000, 'z'))",
    "SELECT cardinality(array_fill(1, array[100000000]))",
    "DO $$ DECLARE t text := 'x'; BEGIN LOOP t := t || t; END LOOP; END $$",
    // What stands in few bytes and is read into many.
    "SELECT count(*) FROM jsonb_array_elements(('[' || repeat('1,', 20000000) || '1]')::jsonb)",
    "SELECT count(*) FROM json_array_elements(('[' || repeat('1,', 20000000) || '1]')::json)",
    "SELECT count(*) FROM regexp_matches(repeat('a,', 20000000), 'a', 'g')",
    "SELECT count(*) FROM regexp_split_to_table(repeat('a,', 20000000), ',')",
    "DO $$ DECLARE j jsonb := '[]'; BEGIN LOOP j := jsonb_insert(j, '{0}', j); END LOOP; END $$",
    "DO $$ DECLARE j jsonb := '[]'; BEGIN LOOP j := j || j || '[1]'; END LOOP; END $$",
    "DO $$ DECLARE t text := 'x'; a text[]; BEGIN LOOP a := array_append(a, repeat('y', 10000)); END LOOP; END $$",
    "DO $$ DECLARE a int[]; BEGIN a[1] := 1; a[100000000] := 2; END $$",
    "DO $$ DECLARE a int[]; BEGIN a[1] := 1; a[-100000000] := 2; END $$",
    "DO $$ BEGIN LOOP RAISE NOTICE '%', repeat('x', 100000); END LOOP; END $$",
    "DO $$ BEGIN FOR i IN 1 .. 10000000 LOOP INSERT INTO kept VALUES (i, repeat('y', 1000)); END LOOP; END $$",
];

/// What may be done in less, in pieces or on disk.
const BOUNDED: &[&str] = &[
    "SELECT count(*) FROM (SELECT g, repeat('y', 200) AS r FROM generate_series(1, 2000000) g ORDER BY 2, 1 OFFSET 5) q",
    "SELECT count(*) FROM (SELECT repeat('y', 200) || g FROM generate_series(1, 2000000) g GROUP BY 1) q",
    "WITH m AS MATERIALIZED (SELECT g, repeat('y', 200) AS r FROM generate_series(1, 2000000) g) \
     SELECT count(*) FROM m a JOIN m b ON a.g = b.g",
    "SELECT g, repeat('z', 1000) FROM generate_series(1, 300000) g",
];

fn status_mb(server: &Server, field: &str) -> u64 {
    let path = format!("/proc/{}/status", server.process_id());
    let text = std::fs::read_to_string(path).expect("the server runs");
    let line = text.lines().find(|line| line.starts_with(field)).expect("Linux says so");
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    kilobytes.expect("a number") >> 10
}

/// Whether it was refused, in PostgreSQL's words.
async fn is_refused(client: &Client, sql: &str) -> bool {
    let Err(error) = client.simple_query(sql).await else { return false };
    let named: String = sql.chars().take(80).collect();
    let error = error.as_db_error().unwrap_or_else(|| panic!("{named}: {error}"));
    assert_eq!((error.code(), error.message()), (&SqlState::OUT_OF_MEMORY, "out of memory"), "{named}");
    assert!(error.detail().is_some(), "{named}: {error:?}");
    true
}

/// Whether a small write is taken, at once or when what a statement before it took has gone back to the
/// system: the server looks for that ten times a second.
async fn goes_on(client: &Client) -> bool {
    for _ in 0..100 {
        if !is_refused(client, "UPDATE kept SET value = value || 'x'").await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}

#[tokio::test]
async fn the_process_stays_near_its_limit_and_serves_everybody() {
    let server = Server::start(&[&format!("max_memory={LIMIT_MB}MB")]);
    let client = server.connect().await;
    let definition =
        "CREATE TABLE kept (id int PRIMARY KEY, value text); INSERT INTO kept VALUES (-1, 'first')";
    client.batch_execute(definition).await.expect("made");
    // A statement's text that is as long as the limit allows at most, and then a tree of it.
    let long = format!("SELECT length('{}')", "x".repeat(200_000_000));
    let statements = REFUSED.iter().map(|sql| (*sql, true)).chain(BOUNDED.iter().map(|sql| (*sql, false)));
    for (sql, always) in statements.chain([(long.as_str(), true)]) {
        let named: String = sql.chars().take(80).collect();
        let refused = is_refused(&client, sql).await;
        assert!(refused || !always, "{named} was not refused");
        let largest = status_mb(&server, "VmHWM:");
        assert!(largest < LARGEST_MB, "{largest} MB after {named}");
        // This session, another one, and writes.
        assert_eq!(one(&client, "SELECT count(*) FROM kept").await, "1", "{named}");
        let other = server.connect().await;
        assert!(goes_on(&other).await, "small writes are refused for seconds after {named}");
    }
    let caught = "DO $$ BEGIN INSERT INTO kept SELECT g, repeat('x', 200) FROM generate_series(1, 20000000) g; \
                  EXCEPTION WHEN out_of_memory THEN INSERT INTO kept VALUES (0, SQLERRM); END $$";
    client.batch_execute(caught).await.expect("a handler takes it");
    assert_eq!(one(&client, "SELECT value FROM kept WHERE id = 0").await, "out of memory");
}

#[tokio::test]
async fn rows_that_no_table_has_leave_while_they_are_computed() {
    let server = Server::start(&[&format!("max_memory={LIMIT_MB}MB")]);
    let client = server.connect().await;
    for round in 0..2 {
        let sql = "SELECT repeat('x', 1000000) FROM generate_series(1, 300)";
        assert!(!is_refused(&client, sql).await, "in round {round}");
        let largest = status_mb(&server, "VmHWM:");
        assert!(largest < LIMIT_MB + LIMIT_MB / 2, "{largest} MB in round {round}");
    }
}

#[tokio::test]
async fn wide_rows_are_computed_and_read_a_few_at_a_time() {
    let server = Server::start(&[&format!("max_memory={LIMIT_MB}MB")]);
    let client = server.connect().await;
    let sql = "CREATE TABLE narrow (id int PRIMARY KEY, d text);
        INSERT INTO narrow SELECT g, 'x' FROM generate_series(1, 600) g;
        CREATE TABLE wide (id int PRIMARY KEY, d text);
        INSERT INTO wide SELECT g, repeat('y', 100000) FROM generate_series(1, 300) g";
    client.batch_execute(sql).await.expect("there is room");
    for sql in [
        "SELECT repeat(d, 500000) FROM narrow",
        "SELECT repeat('x', 500000) FROM narrow",
        "SELECT length(r) FROM (SELECT repeat(d, 1000000) AS r FROM narrow OFFSET 0) s",
        "SELECT d || 'x' FROM wide WHERE d LIKE '%y'",
        "SELECT a.d, b.d FROM wide a JOIN narrow b ON b.id = a.id",
        "SELECT d, d, d, d, d, d FROM wide",
    ] {
        assert!(!is_refused(&client, sql).await, "{sql}");
        let largest = status_mb(&server, "VmHWM:");
        assert!(largest < 2 * LIMIT_MB, "{largest} MB after {sql}");
    }
}

#[tokio::test]
async fn a_block_is_refused_at_a_write_and_its_rollback_gives_everything_back() {
    let server = Server::start(&[&format!("max_memory={LIMIT_MB}MB")]);
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE kept (id int PRIMARY KEY, value text)").await.expect("made");
    for round in 0..2 {
        client.batch_execute("BEGIN").await.expect("begun");
        let mut written = 0;
        loop {
            let from = written * 10_000;
            let sql = format!(
                "INSERT INTO kept SELECT g, repeat('x', 500) FROM generate_series({}, {}) g",
                from + 1,
                from + 10_000
            );
            if is_refused(&client, &sql).await {
                break;
            }
            written += 1;
            assert!(written < 200, "a gigabyte was written");
        }
        assert!(written > 1, "in round {round} {written} statements fit");
        client.batch_execute("ROLLBACK").await.expect("undone");
    }
    assert_eq!(one(&client, "SELECT count(*) FROM kept").await, "0");
    let largest = status_mb(&server, "VmHWM:");
    assert!(largest < LARGEST_MB, "{largest} MB");
    // Freed memory goes back when it was not taken again for some seconds.
    let mut left = 0;
    for _ in 0..240 {
        left = status_mb(&server, "RssAnon:");
        if left < LIMIT_MB {
            return;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    panic!("{left} MB are left");
}

/// An array of rows that are one row: a megabyte in memory, and any number of them written down.
#[tokio::test]
async fn a_value_that_shares_its_parts_is_refused_where_it_is_written_down() {
    let server = Server::start(&[&format!("max_memory={LIMIT_MB}MB")]);
    let client = server.connect().await;
    let definition =
        "CREATE TYPE part AS (a text, b int); CREATE TABLE kept (id int PRIMARY KEY, value text);
                      CREATE TABLE parts (x part[]); INSERT INTO kept VALUES (1, 'first')";
    client.batch_execute(definition).await.expect("made");
    let shared = "(SELECT array_agg(r) AS x FROM (SELECT row(repeat('x', 1000000), 1)::part AS r) q, \
                  generate_series(1, 800)) z";
    assert_eq!(one(&client, &format!("SELECT cardinality(x) FROM {shared}")).await, "800");
    for sql in [
        "SELECT x FROM",
        "SELECT length(x::text) FROM",
        "INSERT INTO parts SELECT x FROM",
        "SELECT length(to_jsonb(x)::text) FROM",
        "SELECT length(json_agg(x)::text) FROM",
        "SELECT length(format('%s', x)) FROM",
        "SELECT length(concat(x, x)) FROM",
        "CREATE TABLE made AS SELECT x FROM",
    ] {
        let sql = format!("{sql} {shared}");
        assert!(is_refused(&client, &sql).await, "{sql}");
        let largest = status_mb(&server, "VmHWM:");
        assert!(largest < LARGEST_MB, "{largest} MB after {sql}");
    }
    let raised =
        format!("DO $$ DECLARE a part[]; BEGIN SELECT x INTO a FROM {shared}; RAISE NOTICE '%', a; END $$");
    assert!(is_refused(&client, &raised).await);
    // It does not become more where it is told why a row is refused.
    client.batch_execute("CREATE TABLE checked (x part[], CHECK (x IS NULL))").await.expect("made");
    assert!(client.batch_execute(&format!("INSERT INTO checked SELECT x FROM {shared}")).await.is_err());
    let largest = status_mb(&server, "VmHWM:");
    assert!(largest < LARGEST_MB, "{largest} MB");
    assert!(goes_on(&client).await);
}

/// Its values are gathered before a row is written.
#[tokio::test]
async fn a_new_columns_values_are_refused_while_they_are_computed() {
    let server = Server::start(&[&format!("max_memory={LIMIT_MB}MB")]);
    let client = server.connect().await;
    let definition = "CREATE TABLE kept (id int PRIMARY KEY, value text);
                      INSERT INTO kept SELECT g, 'x' FROM generate_series(1, 60000) g";
    client.batch_execute(definition).await.expect("made");
    for sql in [
        "ALTER TABLE kept ADD COLUMN more text GENERATED ALWAYS AS (repeat(value, 10000)) STORED",
        "ALTER TABLE kept ALTER COLUMN value TYPE text USING repeat(value, 10000)",
    ] {
        assert!(is_refused(&client, sql).await, "{sql}");
        let largest = status_mb(&server, "VmHWM:");
        assert!(largest < LARGEST_MB, "{largest} MB after {sql}");
        assert_eq!(one(&client, "SELECT count(*), max(length(value)) FROM kept").await, "60000");
    }
}

#[tokio::test]
async fn a_full_database_can_be_made_smaller() {
    let server = Server::start(&["max_memory=64MB"]);
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE kept (id int PRIMARY KEY, value text)").await.expect("made");
    let mut rows = 0;
    loop {
        let sql = format!(
            "INSERT INTO kept SELECT g, repeat('x', 500) FROM generate_series({}, {}) g",
            rows + 1,
            rows + 1_000
        );
        if is_refused(&client, &sql).await {
            break;
        }
        rows += 1_000;
        assert!(rows < 1_000_000, "half a gigabyte was written");
    }
    assert_eq!(one(&client, "SELECT count(*) FROM kept").await, rows.to_string());
    client.batch_execute(&format!("DELETE FROM kept WHERE id <= {}", rows / 10)).await.expect("rows can go");
    client.batch_execute("INSERT INTO kept VALUES (0, 'again')").await.expect("there is room again");
    client.batch_execute("TRUNCATE kept").await.expect("all can go");
    assert_eq!(one(&client, "SELECT count(*) FROM kept").await, "0");
}
