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
