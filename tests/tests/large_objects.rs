//! Large objects between sessions, databases and lives of the server: who sees what of one that is open, who waits
//! for whom, what a new database has of its template's, and what kill -9 leaves.

use std::time::Duration;

use archipel_tests::server::{Server, ask, connect, one};
use tokio_postgres::error::SqlState;

fn url_of(server: &Server, database: &str) -> String {
    format!("postgresql://archipel@127.0.0.1:{}/{database}", server.port())
}

async fn run(client: &tokio_postgres::Client, text: &str) {
    client.batch_execute(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
}

#[tokio::test]
async fn what_is_open_for_reading_shows_what_was_there() {
    let server = Server::start(&[]);
    let (reader, writer) = (server.connect().await, server.connect().await);
    run(&writer, "SELECT lo_from_bytea(1, 'before')").await;
    run(&reader, "BEGIN; SELECT lo_open(1, 262144); SELECT lo_open(1, 393216)").await;
    run(&writer, "SELECT lo_put(1, 0, 'AFTER')").await;
    let read = |descriptor: u32| format!("SELECT convert_from(loread({descriptor}, 100), 'utf8')");
    assert_eq!(one(&reader, &read(0)).await, "before");
    assert_eq!(one(&reader, &read(1)).await, "AFTERe");
    assert_eq!(one(&reader, "SELECT convert_from(lo_get(1), 'utf8')").await, "AFTERe");
    run(&writer, "SELECT lo_unlink(1)").await;
    assert_eq!(one(&reader, "SELECT lo_lseek(0, 0, 0)").await, "0");
    assert_eq!(one(&reader, &read(0)).await, "before");
    run(&reader, "COMMIT").await;
    let gone = reader.simple_query("SELECT lo_get(1)").await.expect_err("it was dropped");
    assert_eq!(gone.code(), Some(&SqlState::UNDEFINED_OBJECT));
}

#[tokio::test]
async fn writers_of_a_page_wait_for_each_other_and_lose_nothing() {
    let server = Server::start(&[]);
    let (first, second) = (server.connect().await, server.connect().await);
    run(&first, "SELECT lo_from_bytea(1, 'aaaaaaaa')").await;
    run(&first, "BEGIN; SELECT lo_put(1, 0, 'bb')").await;
    let waiting = tokio::spawn(async move {
        run(&second, "SELECT lo_put(1, 6, 'cc')").await;
        second
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "the page is somebody else's");
    run(&first, "COMMIT").await;
    let second = waiting.await.expect("it ends");
    assert_eq!(one(&second, "SELECT convert_from(lo_get(1), 'utf8')").await, "bbaaaacc");
    // Nobody writes to what is being dropped, and leaves pages behind.
    run(&first, "BEGIN; SELECT lo_unlink(1)").await;
    let waiting = tokio::spawn(async move {
        let refused = second.simple_query("SELECT lo_put(1, 0, 'dd')").await.expect_err("it is gone");
        assert_eq!(refused.code(), Some(&SqlState::UNDEFINED_OBJECT));
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    run(&first, "COMMIT").await;
    waiting.await.expect("it ends");
    assert_eq!(one(&first, "SELECT count(*) FROM pg_largeobject").await, "0");
}

#[tokio::test]
async fn a_database_has_its_own_and_a_copy_has_the_templates() {
    let server = Server::start(&[]);
    let first = server.connect().await;
    run(&first, "SELECT lo_from_bytea(1, 'first'); CREATE ROLE clerk").await;
    run(&first, "CREATE DATABASE template").await;
    let template = connect(&url_of(&server, "template")).await;
    assert_eq!(one(&template, "SELECT count(*) FROM pg_largeobject_metadata").await, "0");
    run(
        &template,
        "SELECT lo_from_bytea(1, repeat('template', 10000)::bytea); COMMENT ON LARGE OBJECT 1 IS 'said';
         GRANT SELECT ON LARGE OBJECT 1 TO clerk",
    )
    .await;
    drop(template);
    let copied = async {
        loop {
            match first.simple_query("CREATE DATABASE copy TEMPLATE template").await {
                Err(error) if error.code() == Some(&SqlState::OBJECT_IN_USE) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                made => break made.expect("it is made"),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), copied).await.expect("the template is left at last");
    let copy = connect(&url_of(&server, "copy")).await;
    let seen =
        "SELECT length(lo_get(1)), obj_description(1, 'pg_largeobject'), lomacl FROM pg_largeobject_metadata";
    assert_eq!(ask(&copy, seen).await, [["80000", "said", "{archipel=rw/archipel,clerk=r/archipel}"]]);
    run(&copy, "SELECT lo_put(1, 0, 'changed')").await;
    assert_eq!(one(&first, "SELECT convert_from(lo_get(1), 'utf8')").await, "first");
    let refused = first.simple_query("DROP ROLE clerk").await.expect_err("it has rights elsewhere");
    let error = refused.as_db_error().expect("the server says so");
    assert_eq!(error.code(), &SqlState::DEPENDENT_OBJECTS_STILL_EXIST);
    assert_eq!(error.detail(), Some("1 object in database template\n1 object in database copy"));
    drop(copy);
    for text in ["DROP DATABASE copy WITH (FORCE)", "DROP DATABASE template WITH (FORCE)", "DROP ROLE clerk"]
    {
        run(&first, text).await;
    }
}

#[tokio::test]
async fn what_was_committed_is_there_after_kill_9() {
    let mut server = Server::start(&[]);
    let client = server.connect().await;
    run(
        &client,
        "SELECT lo_from_bytea(1, repeat('kept', 5000)::bytea); SELECT lo_create(2); SELECT lo_create(3)",
    )
    .await;
    run(&client, "COMMENT ON LARGE OBJECT 1 IS 'said'; SELECT lo_unlink(3); CHECKPOINT").await;
    run(&client, "SELECT lo_put(1, 0, 'KEPT'), lo_put(2, 10000, 'end')").await;
    run(&client, "BEGIN; SELECT lo_put(1, 4, 'LOST'), lo_create(4)").await;
    server.kill();
    server.restart();
    let client = server.connect().await;
    let objects = "SELECT oid, length(lo_get(oid)), obj_description(oid, 'pg_largeobject')
                   FROM pg_largeobject_metadata ORDER BY oid";
    assert_eq!(ask(&client, objects).await, [["1", "20000", "said"], ["2", "10003", ""]]);
    assert_eq!(one(&client, "SELECT convert_from(lo_get(1, 0, 12), 'utf8')").await, "KEPTkeptkept");
    assert_eq!(one(&client, "SELECT count(*) FROM pg_largeobject WHERE loid = 3").await, "0");
    // A new number is one that nobody has.
    assert_eq!(one(&client, "SELECT lo_create(0) > 4").await, "t");
}
