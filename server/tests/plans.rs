//! Statements that were prepared before something changed; and the types that messages declare.

mod common;

use common::{Raw, Server, framed, kinds, state};
use std::io::Write;

use tokio_postgres::{Client, SimpleQueryMessage};

/// The first value of the first row that a text answers.
async fn value(client: &Client, text: &str) -> String {
    let messages = client.simple_query(text).await.expect(text);
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    row.unwrap_or("nothing").to_owned()
}

async fn two_tenants(client: &Client) {
    let text = "CREATE SCHEMA a; CREATE SCHEMA b;
        CREATE TABLE a.t (w text); INSERT INTO a.t VALUES ('of a');
        CREATE TABLE b.t (w text); INSERT INTO b.t VALUES ('of b');
        CREATE FUNCTION told() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT w FROM t); END $$";
    client.batch_execute(text).await.expect("two tenants");
}

#[tokio::test]
async fn a_prepared_statement_reads_the_tables_of_the_path_in_force() {
    let server = Server::start(&[]);
    let client = server.client().await;
    two_tenants(&client).await;
    client.batch_execute("SET search_path = a, public").await.unwrap();
    let named = client.prepare("SELECT w, told() FROM t").await.unwrap();
    for (path, rows) in [("a, public", "of a"), ("b, public", "of b"), ("a, public", "of a")] {
        client.batch_execute(&format!("SET search_path = {path}")).await.unwrap();
        let row = client.query_one(&named, &[]).await.unwrap();
        assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), (rows, rows), "{path}");
        assert_eq!(value(&client, "SELECT w FROM t").await, rows, "{path}");
    }
    // As far as a transaction goes.
    client.batch_execute("BEGIN; SET LOCAL search_path = b, public").await.unwrap();
    assert_eq!(client.query_one(&named, &[]).await.unwrap().get::<_, &str>(0), "of b");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(client.query_one(&named, &[]).await.unwrap().get::<_, &str>(0), "of a");
}

#[tokio::test]
async fn definitions_of_others_change_nothing_that_was_prepared() {
    let server = Server::start(&[]);
    let (client, other) = (server.client().await, server.client().await);
    client.batch_execute("CREATE TABLE kept (x int); INSERT INTO kept VALUES (1)").await.unwrap();
    client.batch_execute("SET timezone = 'UTC'").await.unwrap();
    let instant = "SELECT extract(epoch FROM timestamptz '2000-01-01 00:00')::bigint, x FROM kept";
    let named = client.prepare(instant).await.unwrap();
    client
        .batch_execute(&format!("PREPARE q AS {instant}; SET timezone = 'America/New_York'"))
        .await
        .unwrap();
    for text in [
        "CREATE TABLE others (y int)",
        "CREATE TEMP TABLE others_own (y int)",
        "CREATE FUNCTION theirs() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE INDEX ON others (y)",
        "DROP TABLE others",
    ] {
        other.batch_execute(text).await.expect(text);
        let row = client.query_one(&named, &[]).await.unwrap();
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i32>(1)), (946_684_800, 1), "{text}");
        assert_eq!(value(&client, "EXECUTE q").await, "946684800", "{text}");
    }
    // Of the table that it reads, a definition has it read anew.
    other.batch_execute("ALTER TABLE kept ADD COLUMN z int").await.unwrap();
    assert_eq!(client.query_one(&named, &[]).await.unwrap().get::<_, i64>(0), 946_702_800);
}

#[tokio::test]
async fn texts_are_found_again_after_definitions_that_have_nothing_to_do_with_them() {
    let server = Server::start(&[]);
    let (client, other) = (server.client().await, server.client().await);
    two_tenants(&client).await;
    client.batch_execute("SET search_path = b, public").await.unwrap();
    let found = "SELECT sum(found_by_text + found_by_shape)::bigint FROM archipel.statement_cache";
    let text = "SELECT w || ' ' || told() FROM t";
    assert_eq!(value(&client, text).await, "of b of b");
    let mut before = value(&client, found).await.parse::<i64>().unwrap();
    for round in 0..5 {
        let definition =
            format!("CREATE TABLE unrelated_{round} (x int); CREATE TEMP TABLE own_{round} (x int)");
        other.batch_execute(&definition).await.unwrap();
        assert_eq!(value(&client, text).await, "of b of b");
        let now = value(&client, found).await.parse::<i64>().unwrap();
        // It and the question itself.
        assert!(now >= before + 2, "round {round}: {now} after {before}");
        before = now;
    }
    // And not after those that have.
    other.batch_execute("DROP TABLE b.t; CREATE TABLE public.t AS SELECT 'of all' AS w").await.unwrap();
    assert_eq!(value(&client, text).await, "of all of all");
    other.batch_execute("CREATE TABLE b.t AS SELECT 'of b again' AS w").await.unwrap();
    assert_eq!(value(&client, text).await, "of b again of b again");
}

/// Parse with declared types, Bind of texts (`None`: NULL), Describe of the portal, Execute.
fn declared(raw: &mut Raw, text: &str, types: &[u32], params: &[Option<&str>]) -> Vec<(u8, Vec<u8>)> {
    let mut parse = [b"\0", text.as_bytes(), b"\0"].concat();
    parse.extend_from_slice(&(types.len() as u16).to_be_bytes());
    types.iter().for_each(|ty| parse.extend_from_slice(&ty.to_be_bytes()));
    let mut bind = b"\0\0\0\0".to_vec();
    bind.extend_from_slice(&(params.len() as u16).to_be_bytes());
    for param in params {
        match param {
            None => bind.extend_from_slice(&(-1i32).to_be_bytes()),
            Some(text) => {
                bind.extend_from_slice(&(text.len() as u32).to_be_bytes());
                bind.extend_from_slice(text.as_bytes());
            }
        }
    }
    bind.extend_from_slice(&[0, 0]);
    let messages = [
        framed(b'P', &parse),
        framed(b'D', b"S\0"),
        framed(b'B', &bind),
        framed(b'E', b"\0\0\0\0\0"),
        framed(b'S', b""),
    ];
    raw.stream.write_all(&messages.concat()).unwrap();
    raw.until(b'Z')
}

/// The types of ParameterDescription.
fn described(messages: &[(u8, Vec<u8>)]) -> Vec<u32> {
    let (_, body) = messages.iter().find(|(kind, _)| *kind == b't').expect("a description");
    let types = body[2..].chunks_exact(4);
    types.map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect()
}

#[test]
fn parameters_of_type_void_are_what_jdbc_passes_for_answers() {
    const VOID: u32 = 2278;
    const INT4: u32 = 23;
    const TEXT: u32 = 25;
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query(
        "CREATE FUNCTION doubled(n int) RETURNS int LANGUAGE sql AS 'SELECT 2 * n';
         CREATE FUNCTION nothing() RETURNS text LANGUAGE sql AS $$ SELECT 'none' $$;
         CREATE FUNCTION two(n int, OUT a int, OUT b text) LANGUAGE sql AS $$ SELECT n, 'b' $$;
         CREATE PROCEDURE answers(n int, OUT a int, OUT b text) LANGUAGE plpgsql
         AS $$ BEGIN a := n + 1; b := 'answer'; END $$",
    );
    let answer = |row: &[u8], messages: &[(u8, Vec<u8>)]| {
        messages.iter().any(|(kind, body)| *kind == b'D' && body.ends_with(row))
    };
    // {? = call doubled(?)}, with and without a value in the place of what it answers.
    for given in [None, Some("null")] {
        let text = "select * from doubled($1,$2) as result";
        let messages = declared(&mut raw, text, &[VOID, INT4], &[given, Some("21")]);
        assert_eq!((kinds(&messages).as_str(), described(&messages)), ("1tT2DCZ", vec![VOID, INT4]));
        assert!(answer(b"\0\0\0\x0242", &messages));
    }
    let messages = declared(&mut raw, "select doubled($2,$1)", &[VOID, 0], &[None, Some("4")]);
    assert!(answer(b"\0\0\0\x018", &messages));
    assert_eq!(described(&messages), [VOID, INT4]);
    let messages = declared(&mut raw, "select * from nothing($1) as result", &[VOID], &[None]);
    assert!(answer(b"none", &messages));
    let text = "select * from two($1,$2,$3) as result";
    let messages = declared(&mut raw, text, &[INT4, VOID, VOID], &[Some("5"), None, None]);
    assert!(answer(b"\0\0\0\x015\0\0\0\x01b", &messages));
    // Of a procedure they are arguments, of the types that it says.
    let messages =
        declared(&mut raw, "call answers($1,$2,$3)", &[INT4, VOID, VOID], &[Some("5"), None, None]);
    assert!(answer(b"answer", &messages));
    assert_eq!(described(&messages), [INT4, INT4, TEXT]);
    // Anywhere else void is a type like others.
    let messages = declared(&mut raw, "select doubled(n => $1)", &[VOID], &[None]);
    assert_eq!(state(&messages).as_deref(), Some("42883"));
}

#[test]
fn parameters_in_rows_have_the_types_of_what_they_are_compared_with() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE stock (w int, i bigint, n int, PRIMARY KEY (w, i))");
    raw.query("INSERT INTO stock VALUES (1, 10, 7), (1, 11, 8), (2, 10, 9)");
    let four = [Some("1"), Some("11"), Some("2"), Some("10")];
    let text = "SELECT n FROM stock WHERE (w, i) IN (($1, $2), ($3, $4)) ORDER BY n";
    let messages = declared(&mut raw, text, &[], &four);
    assert_eq!(described(&messages), [23, 20, 23, 20]);
    assert_eq!(kinds(&messages), "1tT2DDCZ");
    let text = "SELECT n FROM stock WHERE (w, i) > ($1, $2) ORDER BY w, i LIMIT $3";
    let messages = declared(&mut raw, text, &[], &[Some("1"), Some("10"), Some("5")]);
    assert_eq!(described(&messages), [23, 20, 20]);
    assert_eq!(kinds(&messages), "1tT2DDCZ");
    for (text, code) in [("SELECT pg_typeof($1)", "42P18"), ("SELECT ROW($1)", "42P18")] {
        let messages = declared(&mut raw, text, &[], &[Some("1")]);
        assert_eq!(state(&messages).as_deref(), Some(code), "{text}");
    }
}
