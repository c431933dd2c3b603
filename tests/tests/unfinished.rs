//! Transaction blocks that never come to their COMMIT: a server that is killed, a client that
//! goes. Nothing of them stays, tables they made included.

use archipel_tests::server::{Server, connect};
use tokio_postgres::{Client, SimpleQueryMessage};

async fn ids(client: &Client, sql: &str) -> Vec<String> {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    messages
        .into_iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
        .collect()
}

/// Nothing is there that no transaction committed.
fn require_nothing_left(server: &mut Server) {
    server.stop();
    let output = Server::archipel(&["check", "--data-dir", server.data_directory().to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

const BLOCK: &str = "BEGIN;
     CREATE TABLE made (id int PRIMARY KEY, value int);
     INSERT INTO made SELECT g, g FROM generate_series(1, 1000) g;
     CREATE INDEX ON made (value);
     INSERT INTO made VALUES (0, 0);
     UPDATE kept SET id = 2 WHERE id = 1";

async fn nothing_is_left(url: &str) {
    let client = connect(url).await;
    assert_eq!(ids(&client, "SELECT id FROM kept ORDER BY id").await, ["1", "5"]);
    let missing = client.simple_query("SELECT * FROM made").await.expect_err("it was never committed");
    assert_eq!(missing.code().map(|code| code.code()), Some("42P01"));
    client.batch_execute("CREATE TABLE made (id int PRIMARY KEY)").await.expect("the name is free");
    assert_eq!(ids(&client, "SELECT count(*) FROM made").await, ["0"]);
    client.batch_execute("INSERT INTO made VALUES (7)").await.expect("it takes rows");
}

#[tokio::test]
async fn a_kill_undoes_open_blocks_with_the_tables_they_made() {
    let mut server = Server::start(&[]);
    let (client, other) = (server.connect().await, server.connect().await);
    client
        .batch_execute("CREATE TABLE kept (id int PRIMARY KEY); INSERT INTO kept VALUES (1)")
        .await
        .expect("a table can be made");
    client.batch_execute(BLOCK).await.expect("the block goes well");
    // What the block has logged is durable with this.
    other.batch_execute("INSERT INTO kept VALUES (5)").await.expect("others go on");
    server.kill();
    server.restart();
    nothing_is_left(&server.url()).await;
    server.kill();
    server.restart();
    let client = server.connect().await;
    assert_eq!(ids(&client, "SELECT id FROM made").await, ["7"], "what is committed stays");
}

/// What a block had made and not committed is no damage, in the directory of a server that was killed
/// and in a backup that was taken meanwhile.
#[tokio::test]
async fn a_check_finds_nothing_wrong_with_what_an_open_block_had_made() {
    let mut server = Server::start(&[]);
    let (client, other) = (server.connect().await, server.connect().await);
    client
        .batch_execute(
            "CREATE TABLE kept (id int PRIMARY KEY); INSERT INTO kept VALUES (1);
             CREATE TABLE counted (id serial PRIMARY KEY)",
        )
        .await
        .expect("tables can be made");
    client.batch_execute(BLOCK).await.expect("the block goes well");
    let more = "CREATE SEQUENCE drawn; SELECT nextval('drawn'); TRUNCATE counted RESTART IDENTITY;
                ALTER TABLE counted ADD COLUMN extra int DEFAULT 3; CREATE INDEX ON kept (id)";
    client.batch_execute(more).await.expect("the block goes on well");
    other.batch_execute("CREATE TEMP TABLE passing AS SELECT 1 AS one").await.expect("others go on");
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let backup = place.path().join("backup");
    let path = backup.to_str().expect("temporary paths are UTF-8");
    let output = Server::archipel(&["backup", "--url", &server.url(), "--to", path]);
    assert!(output.status.success(), "{output:?}");
    server.kill();
    let data = server.data_directory();
    for directory in [path, data.to_str().expect("temporary paths are UTF-8")] {
        let output = Server::archipel(&["check", "--data-dir", directory]);
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
        assert!(told.contains("of transactions that did not commit"), "{told}");
    }
    for directory in [data.as_path(), backup.as_path()] {
        server.move_to(directory);
        server.restart();
        nothing_is_left_of_more(&server.url()).await;
        server.kill();
    }
}

async fn nothing_is_left_of_more(url: &str) {
    let client = connect(url).await;
    for missing in ["SELECT * FROM made", "SELECT nextval('drawn')", "SELECT extra FROM counted"] {
        client.simple_query(missing).await.expect_err("it was never committed");
    }
    assert_eq!(ids(&client, "SELECT id FROM kept").await, ["1"]);
}

/// A table in its new form is a copy until the COMMIT. What a start drops of the first block
/// must not be dropped again when the log is replayed once more: the second block may not draw
/// the same numbers.
#[tokio::test]
async fn a_kill_undoes_a_changed_definition_with_the_rows_written_after_it() {
    const CHANGE: &str = "BEGIN;
         UPDATE kept SET value = 'before' WHERE id = 1;
         ALTER TABLE kept ADD COLUMN extra int DEFAULT 3;
         UPDATE kept SET value = 'after', extra = id WHERE id > 1;
         ALTER TABLE kept ALTER COLUMN extra SET NOT NULL";
    let mut server = Server::start(&[]);
    let (client, other) = (server.connect().await, server.connect().await);
    client
        .batch_execute(
            "CREATE TABLE kept (id int PRIMARY KEY, value text); CREATE INDEX ON kept (value);
             INSERT INTO kept SELECT g, 'old' FROM generate_series(1, 1000) g; CREATE TABLE other (id int)",
        )
        .await
        .expect("a table can be made");
    client.batch_execute(CHANGE).await.expect("the block goes well");
    // What the block has logged is durable with this.
    other.batch_execute("INSERT INTO other VALUES (5)").await.expect("others go on");
    server.kill();
    server.restart();
    let client = server.connect().await;
    assert_eq!(ids(&client, "SELECT count(*) FROM kept WHERE value = 'old'").await, ["1000"]);
    let missing = client.simple_query("SELECT extra FROM kept").await.expect_err("it was never committed");
    assert_eq!(missing.code().map(|code| code.code()), Some("42703"));
    client.batch_execute(CHANGE).await.expect("the block goes well again");
    client.batch_execute("COMMIT").await.expect("committed");
    server.kill();
    server.restart();
    let client = server.connect().await;
    let counts = "SELECT concat_ws(' ', value, count(*), sum(extra)) FROM kept GROUP BY value ORDER BY value";
    assert_eq!(ids(&client, counts).await, ["after 999 500499", "before 1 3"]);
    require_nothing_left(&mut server);
}

/// A sequence that a block restarts is another one there; which of the two goes on is up to COMMIT.
#[tokio::test]
async fn a_kill_leaves_sequences_as_the_last_commit_left_them() {
    const RESTART: &str = "TRUNCATE counted RESTART IDENTITY; INSERT INTO counted DEFAULT VALUES";
    let mut server = Server::start(&[]);
    let (client, other) = (server.connect().await, server.connect().await);
    client
        .batch_execute(
            "CREATE TABLE counted (id serial PRIMARY KEY); CREATE TABLE other (id int);
             INSERT INTO counted SELECT FROM generate_series(1, 100)",
        )
        .await
        .expect("a table can be made");
    client.batch_execute(&format!("BEGIN; {RESTART}")).await.expect("the block goes well");
    other.batch_execute("INSERT INTO other VALUES (5)").await.expect("others go on");
    server.kill();
    server.restart();
    let client = server.connect().await;
    let next = ids(&client, "INSERT INTO counted DEFAULT VALUES RETURNING id > 100").await;
    assert_eq!(next, ["t"], "numbers that were given are given no more");
    client.batch_execute(&format!("BEGIN; {RESTART}; COMMIT")).await.expect("the block goes well");
    server.kill();
    server.restart();
    let client = server.connect().await;
    assert_eq!(ids(&client, "SELECT id FROM counted").await, ["1"]);
    let next = ids(&client, "INSERT INTO counted DEFAULT VALUES RETURNING id BETWEEN 2 AND 50").await;
    assert_eq!(next, ["t"], "the new sequence goes on");
    require_nothing_left(&mut server);
}

/// Rows that others insert while a table is emptied again and again get numbers that nobody else gets.
#[tokio::test]
async fn restarted_sequences_give_no_number_twice() {
    const ROUNDS: usize = 30;
    let server = Server::start(&[]);
    let client = server.connect().await;
    client
        .batch_execute("CREATE TABLE counted (id serial PRIMARY KEY, name text)")
        .await
        .expect("a table can be made");
    let inserters: Vec<_> = (0..2)
        .map(|_| {
            let url = server.url();
            tokio::spawn(async move {
                let client = connect(&url).await;
                for _ in 0..ROUNDS * 10 {
                    client.batch_execute("INSERT INTO counted (name) VALUES ('x')").await?;
                }
                Ok::<(), tokio_postgres::Error>(())
            })
        })
        .collect();
    for _ in 0..ROUNDS {
        let restart = "BEGIN; TRUNCATE counted RESTART IDENTITY; COMMIT";
        client.batch_execute(restart).await.expect("the table is emptied");
    }
    for inserter in inserters {
        inserter.await.expect("no panic").expect("every number is new");
    }
    // Whoever comes between waits for the block's end.
    client.batch_execute("BEGIN; TRUNCATE counted").await.expect("the table is emptied");
    let other = server.connect().await;
    other.batch_execute("SET lock_timeout = '50ms'").await.expect("a setting");
    let refused = other.batch_execute("INSERT INTO counted (name) VALUES ('y')").await.expect_err("locked");
    assert_eq!(refused.code().map(|code| code.code()), Some("55P03"));
    client.batch_execute("ROLLBACK").await.expect("the block ends");
    other.batch_execute("INSERT INTO counted (name) VALUES ('y')").await.expect("nobody is in the way");
}

/// What a block makes must not name what others have dropped when it commits: it fails, whole.
#[tokio::test]
async fn definitions_over_what_others_dropped_are_refused_at_commit() {
    let server = Server::start(&[]);
    let (client, other) = (server.connect().await, server.connect().await);
    let cases = [
        (
            "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS 'SELECT 2 * n'",
            "CREATE TABLE made (a int DEFAULT twice(1))",
            "DROP FUNCTION twice(int)",
        ),
        ("CREATE SCHEMA place", "CREATE TABLE place.made (a int)", "DROP SCHEMA place"),
        ("CREATE TYPE mood AS ENUM ('good')", "CREATE TABLE made (a int, m mood)", "DROP TYPE mood"),
    ];
    for (before, inside, dropping) in cases {
        client.batch_execute(before).await.expect("made");
        client.batch_execute("BEGIN; CREATE TABLE beside (a int)").await.expect("a block begins");
        client.batch_execute(inside).await.expect("defined");
        other.batch_execute(dropping).await.expect("nobody uses it yet");
        let refused = client.batch_execute("COMMIT").await.expect_err(inside);
        assert_eq!(refused.code().map(|code| code.code()), Some("40001"), "{inside}");
        let made = "SELECT count(*) FROM pg_class WHERE relname IN ('made', 'beside')";
        let left: i64 = other.query_one(made, &[]).await.expect("counted").get(0);
        assert_eq!(left, 0, "{inside}");
    }
}

#[tokio::test]
async fn a_client_that_goes_takes_its_block_along() {
    let server = Server::start(&[]);
    let other = server.connect().await;
    other
        .batch_execute("CREATE TABLE kept (id int PRIMARY KEY); INSERT INTO kept VALUES (1), (5)")
        .await
        .expect("a table can be made");
    let client = server.connect().await;
    client.batch_execute(BLOCK).await.expect("the block goes well");
    drop(client);
    // The update waits until the server has noticed.
    other.batch_execute("UPDATE kept SET id = id WHERE id = 1").await.expect("the row is free again");
    nothing_is_left(&server.url()).await;
}

/// What users define of aggregates and operator classes is there after a kill if it was committed,
/// and is not if it was not.
#[tokio::test]
async fn a_kill_leaves_committed_aggregates_and_operator_classes() {
    let mut server = Server::start(&[]);
    let (client, other) = (server.connect().await, server.connect().await);
    client
        .batch_execute(
            "CREATE FUNCTION longer(text, text) RETURNS text LANGUAGE plpgsql STRICT
                 AS $$BEGIN RETURN $1 || '-' || $2; END$$;
             CREATE AGGREGATE chain (text) (SFUNC = longer, STYPE = text, INITCOND = 'begin');
             CREATE FUNCTION plus_seed(int4, int8) RETURNS int8 LANGUAGE sql AS 'SELECT $1 + $2';
             CREATE OPERATOR CLASS by_seed FOR TYPE int4 USING hash AS OPERATOR 1 =, FUNCTION 2 plus_seed(int4, int8);
             CREATE TABLE kept (a int) PARTITION BY HASH (a by_seed);
             CREATE TABLE kept_0 PARTITION OF kept FOR VALUES WITH (MODULUS 2, REMAINDER 0);
             CREATE TABLE kept_1 PARTITION OF kept FOR VALUES WITH (MODULUS 2, REMAINDER 1);
             CREATE TABLE other (a int)",
        )
        .await
        .expect("all of it can be defined");
    client
        .batch_execute(
            "BEGIN;
             CREATE AGGREGATE fleeting (int4) (SFUNC = int4pl, STYPE = int4);
             CREATE OPERATOR CLASS fleeting FOR TYPE int4 USING hash AS OPERATOR 1 =",
        )
        .await
        .expect("the block goes well");
    // What the block has logged is durable with this.
    other.batch_execute("INSERT INTO other VALUES (5)").await.expect("others go on");
    server.kill();
    server.restart();
    let client = server.connect().await;
    assert_eq!(ids(&client, "SELECT chain(x) FROM unnest(ARRAY['a', NULL, 'b']) x").await, ["begin-a-b"]);
    client.batch_execute("INSERT INTO kept SELECT generate_series(1, 4)").await.expect("rows go their way");
    assert_eq!(ids(&client, "SELECT array_agg(a ORDER BY a) FROM kept_0").await, ["{2,4}"]);
    assert_eq!(ids(&client, "SELECT oid FROM pg_proc WHERE proname = 'fleeting'").await, [""; 0]);
    assert_eq!(ids(&client, "SELECT oid FROM pg_opclass WHERE opcname = 'fleeting'").await, [""; 0]);
    let refused = client.simple_query("DROP FUNCTION longer(text, text)").await.expect_err("it is used");
    assert_eq!(refused.code().map(|code| code.code()), Some("2BP01"));
}
