//! Numbers of objects that come to their end begin anew: nothing that is there loses its own, or gets what another
//! one had.

mod common;

use common::Server;
use tokio_postgres::{Client, SimpleQueryMessage};

/// Behind it there are 900 numbers: a database may choose its own, and a start goes on behind it.
const NEAR_THE_END: u32 = (1 << 27) - 901;

/// What a text answers: rows by semicolons and columns by slashes.
async fn answer(client: &Client, text: &str) -> String {
    let messages = client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|at| row.get(at).unwrap_or("NULL")).collect::<Vec<_>>().join("/"))
        }
        _ => None,
    });
    rows.collect::<Vec<_>>().join(";")
}

async fn run(client: &Client, texts: &[&str]) {
    for text in texts {
        assert_eq!(answer(client, text).await, "", "{text}");
    }
}

/// Makes tables until one has a number below all that were drawn near the end; answers how many it took.
async fn pass_the_end(client: &Client, prefix: &str) -> usize {
    for number in 0..400 {
        let name = format!("{prefix}{number}");
        run(client, &[&format!("CREATE TEMP TABLE {name} (a int PRIMARY KEY, b text UNIQUE)")]).await;
        let oid: u32 =
            answer(client, &format!("SELECT '{name}'::regclass::oid")).await.parse().expect("a number");
        if number % 3 != 0 {
            run(client, &[&format!("DROP TABLE {name}")]).await;
        }
        if oid < NEAR_THE_END {
            return number + 1;
        }
    }
    panic!("the numbers do not begin anew");
}

/// Everything has a number of its own, and what it had.
async fn verify(client: &Client) {
    let twice = "SELECT oid FROM (SELECT oid FROM pg_class UNION ALL SELECT oid FROM pg_constraint \
                 UNION ALL SELECT oid FROM pg_proc UNION ALL SELECT oid FROM pg_trigger UNION ALL \
                 SELECT oid FROM pg_namespace UNION ALL SELECT oid FROM pg_roles UNION ALL \
                 SELECT oid FROM pg_database) every WHERE oid >= 16384 GROUP BY oid HAVING count(*) > 1";
    assert_eq!(answer(client, twice).await, "");
    let labels = "SELECT oid FROM pg_enum GROUP BY oid HAVING count(*) > 1";
    assert_eq!(answer(client, labels).await, "");
    assert_eq!(answer(client, "SELECT a, b, m FROM kept ORDER BY m").await, "1/x/low;2/y/high");
    let said = "SELECT relname FROM pg_class WHERE oid >= 16384 AND (obj_description(oid) IS NOT NULL OR \
                relacl IS NOT NULL) ORDER BY 1";
    assert_eq!(answer(client, said).await, "kept");
    assert_eq!(answer(client, "SELECT kept_count()").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_begin_anew_behind_what_is_in_use() {
    let mut server = Server::start(&[]);
    let client = server.client().await;
    run(
        &client,
        &[
            "CREATE TYPE level AS ENUM ('low', 'high')",
            "CREATE TABLE kept (a serial PRIMARY KEY, b text UNIQUE, m level)",
            "INSERT INTO kept (b, m) VALUES ('y', 'high')",
            "UPDATE kept SET a = 2",
            "INSERT INTO kept (a, b, m) VALUES (1, 'x', 'low')",
            "COMMENT ON TABLE kept IS 'there from the beginning'",
            "CREATE ROLE reader",
            "GRANT SELECT ON kept TO reader",
            "CREATE FUNCTION kept_count() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM kept'",
            "CREATE DATABASE other",
            &format!("CREATE DATABASE far OID {NEAR_THE_END}"),
        ],
    )
    .await;
    drop(client);
    assert_eq!(server.stop(), Some(0));
    server.launch(&[]);

    let (open, client) = (server.client().await, server.client().await);
    run(&client, &["CREATE TYPE late AS ENUM ('first', 'second')"]).await;
    run(
        &client,
        &["CREATE TABLE lates (l late PRIMARY KEY)", "INSERT INTO lates VALUES ('second'), ('first')"],
    )
    .await;
    let drawn = "SELECT min(oid) >= 134216827 FROM pg_class WHERE relname = 'lates'";
    assert_eq!(answer(&client, drawn).await, "t", "the numbers are near their end");
    // What is not committed keeps its numbers, too.
    run(&open, &["BEGIN", "CREATE TABLE opened (a int PRIMARY KEY, b int UNIQUE)"]).await;
    assert!(pass_the_end(&client, "early").await > 10);
    verify(&client).await;
    run(
        &open,
        &["CREATE TABLE opened_too (a int PRIMARY KEY)", "INSERT INTO opened VALUES (1, 1)", "COMMIT"],
    )
    .await;
    verify(&client).await;
    assert_eq!(answer(&client, "SELECT * FROM opened").await, "1/1");

    // Labels sort as they are declared, wherever their numbers come from.
    run(&client, &["ALTER TYPE level ADD VALUE 'higher'", "ALTER TYPE late ADD VALUE 'third'"]).await;
    run(&client, &["ALTER TYPE level ADD VALUE 'middle' BEFORE 'high'"]).await;
    run(&client, &["INSERT INTO lates VALUES ('third')"]).await;
    let sorted = "SELECT l FROM unnest('{higher,low,middle,high}'::level[]) l ORDER BY l";
    assert_eq!(answer(&client, sorted).await, "low;middle;high;higher");
    assert_eq!(answer(&client, "SELECT l FROM lates ORDER BY l").await, "first;second;third");
    assert_eq!(answer(&client, "SELECT l FROM lates WHERE l > 'first'").await, "second;third");

    // Numbers are those of all databases.
    let config = format!("host=127.0.0.1 port={} user=archipel dbname=other", server.port);
    let connected = tokio_postgres::connect(&config, tokio_postgres::NoTls).await;
    let (other, connection) = connected.expect("the database takes sessions");
    tokio::spawn(connection);
    run(&other, &["CREATE TABLE elsewhere (a int PRIMARY KEY)"]).await;
    let elsewhere =
        answer(&other, "SELECT string_agg(oid::text, ',') FROM pg_class WHERE relname LIKE 'elsewhere%'")
            .await;
    let here = format!("SELECT relname FROM pg_class WHERE oid IN ({elsewhere})");
    assert_eq!(answer(&client, &here).await, "");

    server.kill();
    server.launch(&[]);
    let client = server.client().await;
    verify(&client).await;
    run(&client, &["CREATE TABLE again (a int PRIMARY KEY)", "DROP TABLE again"]).await;
    assert!(pass_the_end(&client, "later").await > 0);
    verify(&client).await;
    assert_eq!(answer(&client, "SELECT l FROM lates ORDER BY l").await, "first;second;third");
}
