//! Databases of one server: what does not cross between them and what does, how they come and go, and who
//! stands in the way.

mod common;

use std::time::Duration;

use common::clients::{answer, client, connect, run, told, until};
use common::{PATIENCE, Server};
use futures::StreamExt;
use tokio_postgres::{AsyncMessage, NoTls};

#[tokio::test]
async fn one_text_means_what_it_says_in_each_database() {
    // All sessions share what one executor keeps prepared.
    let server = Server::start(&["archipel.executors=1"]);
    let first = client(&server, "archipel").await;
    run(&first, &["CREATE DATABASE one", "CREATE DATABASE other"]).await;
    let (one, other) = (client(&server, "one").await, client(&server, "other").await);
    run(
        &one,
        &[
            "CREATE TYPE mood AS ENUM ('sad', 'glad')",
            "CREATE TABLE t (a int PRIMARY KEY, b text, m mood)",
            "INSERT INTO t VALUES (1, 'one', 'glad')",
            "CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN $1 + 1; END $$",
            "CREATE PROCEDURE p(int) LANGUAGE plpgsql AS $$ BEGIN UPDATE t SET b = 'called' WHERE a = $1; END $$",
        ],
    )
    .await;
    run(
        &other,
        &[
            "CREATE TYPE mood AS ENUM ('glad', 'sad', 'so so')",
            "CREATE TABLE t (a text, b int, a2 int, m mood)",
            "INSERT INTO t VALUES ('1', 2, 3, 'sad'), ('x', 4, 5, 'so so')",
            "CREATE FUNCTION f(int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'other ' || $1; END $$",
            "CREATE PROCEDURE p(int) LANGUAGE plpgsql AS $$ BEGIN DELETE FROM t WHERE a = $1::text; END $$",
        ],
    )
    .await;
    for _ in 0..3 {
        // By text, by shape, and named.
        for (text, in_one, in_other) in [
            ("SELECT * FROM t ORDER BY a", "1/one/glad", "1/2/3/sad;x/4/5/so so"),
            ("SELECT f(1)", "2", "other 1"),
            ("SELECT f(2)", "3", "other 2"),
            ("SELECT m FROM t ORDER BY m", "glad", "sad;so so"),
            ("SELECT count(*) FROM t WHERE a = '1'", "1", "1"),
            ("SELECT count(*) FROM t WHERE a = '3'", "0", "0"),
        ] {
            assert_eq!(answer(&one, text).await, in_one, "{text}");
            assert_eq!(answer(&other, text).await, in_other, "{text}");
        }
        let text = "SELECT b FROM t WHERE m = 'sad'";
        assert_eq!(one.query(text, &[]).await.unwrap().len(), 0);
        assert_eq!(other.query(text, &[]).await.unwrap()[0].get::<_, i32>(0), 2);
        let named =
            [one.prepare("SELECT a FROM t").await.unwrap(), other.prepare("SELECT a FROM t").await.unwrap()];
        assert_eq!(one.query(&named[0], &[]).await.unwrap()[0].get::<_, i32>(0), 1);
        assert_eq!(other.query(&named[1], &[]).await.unwrap().len(), 2);
    }
    run(&one, &["CALL p(1)"]).await;
    run(&other, &["CALL p(1)"]).await;
    assert_eq!(answer(&one, "SELECT b FROM t").await, "called");
    assert_eq!(answer(&other, "SELECT a FROM t").await, "x");
    // Nothing of it is in the first, and none reads another's.
    assert!(answer(&first, "SELECT f(1)").await.starts_with("42883"));
    assert!(
        answer(&first, "SELECT * FROM one.public.t").await.starts_with("0A000 cross-database references")
    );
}

#[tokio::test]
async fn locks_notifications_and_temporary_tables_stay_in_their_database() {
    let server = Server::start(&[]);
    let one = client(&server, "archipel").await;
    run(&one, &["CREATE DATABASE other"]).await;
    let config = format!("host=127.0.0.1 port={} user=archipel dbname=other", server.port);
    let (other, mut connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    let (sender, mut heard) = futures::channel::mpsc::unbounded();
    let messages = futures::stream::poll_fn(move |context| connection.poll_message(context));
    tokio::spawn(messages.for_each(move |message| {
        if let Ok(AsyncMessage::Notification(told)) = message {
            let _ = sender.unbounded_send(told.payload().to_owned());
        }
        futures::future::ready(())
    }));
    assert_eq!(answer(&one, "SELECT pg_try_advisory_lock(7)").await, "t");
    assert_eq!(answer(&other, "SELECT pg_try_advisory_lock(7)").await, "t");
    run(&other, &["LISTEN c"]).await;
    run(&one, &["NOTIFY c, 'of one'"]).await;
    run(&other, &["NOTIFY c, 'of other'"]).await;
    let first = tokio::time::timeout(PATIENCE, heard.next()).await.expect("it is told");
    assert_eq!(first.as_deref(), Some("of other"));
    run(&one, &["CREATE TEMPORARY TABLE tmp (a int)", "CREATE SCHEMA s", "COMMENT ON SCHEMA s IS 'x'"]).await;
    assert!(answer(&other, "SELECT * FROM tmp").await.starts_with("42P01"));
    assert_eq!(answer(&other, "SELECT count(*) FROM pg_namespace WHERE nspname = 's'").await, "0");
    // Roles are everybody's.
    run(&other, &["CREATE ROLE r LOGIN", "CREATE TABLE owned (a int)", "ALTER TABLE owned OWNER TO r"]).await;
    assert_eq!(answer(&one, "SELECT rolname FROM pg_roles WHERE rolname = 'r'").await, "r");
    assert!(answer(&one, "DROP ROLE r").await.starts_with("2BP01"));
    run(&other, &["DROP TABLE owned"]).await;
    run(&one, &["DROP ROLE r"]).await;
}

#[tokio::test]
async fn a_template_is_copied_with_its_rows() {
    let server = Server::start(&[]);
    let first = client(&server, "archipel").await;
    run(&first, &["CREATE DATABASE template"]).await;
    {
        let template = client(&server, "template").await;
        run(
            &template,
            &[
                "CREATE TYPE mood AS ENUM ('sad', 'glad')",
                "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, b text UNIQUE, m mood)",
                "INSERT INTO t (b, m) SELECT 'b' || g, 'glad' FROM generate_series(1, 5000) g",
                "CREATE TABLE keyless (a int)",
                "INSERT INTO keyless SELECT g % 3 FROM generate_series(1, 1000) g",
                "CREATE INDEX ON keyless (a)",
                "CREATE TABLE refers (id int PRIMARY KEY, t int REFERENCES t)",
                "CREATE TABLE parted (a int PRIMARY KEY) PARTITION BY RANGE (a)",
                "CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (100)",
                "INSERT INTO parted VALUES (1), (99)",
                "CREATE SEQUENCE s",
                "CREATE VIEW v AS SELECT count(*) AS n FROM t",
                "COMMENT ON TABLE t IS 'a comment'",
            ],
        )
        .await;
        assert_eq!(answer(&template, "SELECT setval('s', 41)").await, "41");
    }
    run(&first, &["CREATE DATABASE copy TEMPLATE template"]).await;
    let copy = client(&server, "copy").await;
    for (text, wanted) in [
        ("SELECT count(*), min(b) FROM t WHERE m = 'glad'", "5000/b1"),
        ("SELECT id FROM t WHERE b = 'b4321'", "4321"),
        (
            "INSERT INTO t (b) VALUES ('b7')",
            "23505 duplicate key value violates unique constraint \"t_b_key\"",
        ),
        (
            "INSERT INTO refers VALUES (1, 6000)",
            "23503 insert or update on table \"refers\" violates foreign key constraint \"refers_t_fkey\"",
        ),
        ("INSERT INTO t (b) VALUES ('new') RETURNING id > 5000", "t"),
        ("SELECT a, count(*) FROM keyless GROUP BY a ORDER BY a", "0/333;1/334;2/333"),
        ("SELECT a FROM parted ORDER BY a", "1;99"),
        ("SELECT nextval('s')", "42"),
        ("SELECT n FROM v", "5001"),
        ("SELECT obj_description('t'::regclass)", "a comment"),
    ] {
        assert_eq!(answer(&copy, text).await, wanted, "{text}");
    }
    let template = client(&server, "template").await;
    assert_eq!(answer(&template, "SELECT count(*) FROM t").await, "5000");
    assert_eq!(answer(&template, "SELECT nextval('s')").await, "42");
    // Neither is the other's.
    run(&template, &["DROP TABLE t CASCADE"]).await;
    assert_eq!(answer(&copy, "SELECT count(*) FROM t").await, "5001");
    drop(copy);
    run(&first, &["DROP DATABASE copy WITH (FORCE)"]).await;
    assert_eq!(answer(&template, "SELECT count(*) FROM keyless").await, "1000");
}

#[tokio::test]
async fn who_is_in_a_database_stands_in_the_way() {
    let server = Server::start(&[]);
    let first = client(&server, "archipel").await;
    run(&first, &["CREATE DATABASE d"]).await;
    let inside = client(&server, "d").await;
    for (text, wanted) in [
        ("DROP DATABASE d", "55006 database \"d\" is being accessed by other users"),
        ("CREATE DATABASE e TEMPLATE d", "55006 source database \"d\" is being accessed by other users"),
        ("ALTER DATABASE d RENAME TO e", "55006 database \"d\" is being accessed by other users"),
    ] {
        let error = first.batch_execute(text).await.unwrap_err();
        assert_eq!(told(&error), wanted);
        let detail = error.as_db_error().and_then(|error| error.detail());
        assert_eq!(detail, Some("There is 1 other session using the database."));
    }
    // Whoever is in its own may copy it.
    run(&inside, &["CREATE DATABASE e TEMPLATE d"]).await;
    assert_eq!(answer(&inside, "DROP DATABASE d").await, "55006 cannot drop the currently open database");
    // Who leaves meanwhile does not.
    let leaving = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(inside);
    });
    run(&first, &["ALTER DATABASE d RENAME TO renamed"]).await;
    leaving.await.unwrap();
    let gone = connect(&server, "d", "archipel").await.expect_err("it is gone");
    assert_eq!(told(&gone), "3D000 database \"d\" does not exist");
    let inside = client(&server, "renamed").await;
    assert_eq!(answer(&inside, "SELECT current_database()").await, "renamed");
    drop(inside);
    run(&first, &["DROP DATABASE renamed", "DROP DATABASE e"]).await;
    assert_eq!(
        answer(&first, "SELECT count(*) FROM pg_database WHERE datname IN ('d', 'e', 'renamed')").await,
        "0"
    );
}

#[tokio::test]
async fn force_sends_everybody_away_whatever_they_do() {
    let server = Server::start(&[]);
    let first = client(&server, "archipel").await;
    run(&first, &["CREATE DATABASE d"]).await;
    let idle = client(&server, "d").await;
    let busy = client(&server, "d").await;
    let in_block = client(&server, "d").await;
    run(&idle, &["CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t VALUES (1)"]).await;
    run(&in_block, &["CREATE TEMPORARY TABLE tmp (a int)", "BEGIN", "UPDATE t SET a = 2"]).await;
    let ended = tokio::spawn(async move { answer(&busy, "SELECT pg_sleep(100)").await });
    let counted = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'd' AND state = 'active'";
    until(&first, counted, "1").await;
    run(&first, &["DROP DATABASE d WITH (FORCE)"]).await;
    assert!(ended.await.unwrap().starts_with("57P01"));
    for client in [&idle, &in_block] {
        let error = client.simple_query("SELECT 1").await.expect_err("it was ended");
        assert!(error.is_closed() || told(&error).starts_with("57P01"), "{error}");
    }
    assert_eq!(answer(&first, "DROP DATABASE d").await, "3D000 database \"d\" does not exist");
    run(&first, &["CREATE DATABASE d"]).await;
    assert!(answer(&client(&server, "d").await, "SELECT * FROM t").await.starts_with("42P01"));
}

#[tokio::test]
async fn who_connects_while_a_database_is_dropped_is_in_none_or_refused() {
    let server = Server::start(&[]);
    let first = client(&server, "archipel").await;
    for _ in 0..5 {
        run(&first, &["CREATE DATABASE d"]).await;
        let coming: Vec<_> = (0..8)
            .map(|at| {
                let config = format!("host=127.0.0.1 port={} user=archipel dbname=d", server.port);
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(at)).await;
                    match tokio_postgres::connect(&config, NoTls).await {
                        Ok((client, connection)) => {
                            tokio::spawn(connection);
                            // It may be sent away at any moment.
                            let _ = client.simple_query("CREATE TABLE t (a int)").await;
                            "in".to_owned()
                        }
                        Err(error) => told(&error),
                    }
                })
            })
            .collect();
        run(&first, &["DROP DATABASE d WITH (FORCE)"]).await;
        for one in coming {
            let found = one.await.unwrap();
            let ended = found.starts_with("57P01") || found.starts_with("no answer");
            assert!(found == "in" || found.starts_with("3D000") || ended, "{found}");
        }
    }
}

#[tokio::test]
async fn limits_and_rights_decide_who_comes_in() {
    let server = Server::start(&[]);
    let first = client(&server, "archipel").await;
    run(
        &first,
        &[
            "CREATE DATABASE d CONNECTION LIMIT 1",
            "CREATE ROLE r LOGIN",
            "CREATE ROLE few LOGIN CONNECTION LIMIT 1",
        ],
    )
    .await;
    let refused = async |database: &str, user: &str| {
        connect(&server, database, user).await.err().map(|error| told(&error)).unwrap_or_default()
    };
    let one = connect(&server, "d", "r").await.unwrap();
    assert_eq!(refused("d", "r").await, "53300 too many connections for database \"d\"");
    let few = connect(&server, "archipel", "few").await.unwrap();
    assert_eq!(refused("archipel", "few").await, "53300 too many connections for role \"few\"");
    // No limit is a superuser's.
    assert_eq!(refused("d", "archipel").await, "");
    drop((one, few));
    run(&first, &["ALTER DATABASE d CONNECTION LIMIT -1 ALLOW_CONNECTIONS false"]).await;
    let closed = "55000 database \"d\" is not currently accepting connections";
    assert_eq!(refused("d", "archipel").await, closed);
    run(&first, &["ALTER DATABASE d ALLOW_CONNECTIONS true", "REVOKE CONNECT ON DATABASE d FROM PUBLIC"])
        .await;
    assert_eq!(refused("d", "r").await, "42501 permission denied for database \"d\"");
    run(&first, &["GRANT CONNECT ON DATABASE d TO r"]).await;
    assert_eq!(refused("d", "r").await, "");
    assert_eq!(refused("nosuch", "r").await, "3D000 database \"nosuch\" does not exist");
}

#[tokio::test]
async fn settings_of_a_role_in_a_database_come_last() {
    let server = Server::start(&[]);
    let first = client(&server, "archipel").await;
    run(
        &first,
        &[
            "CREATE DATABASE d",
            "CREATE ROLE r LOGIN",
            "ALTER DATABASE d SET work_mem = '5MB'",
            "ALTER DATABASE d SET statement_timeout = '1min'",
            "ALTER DATABASE d SET lock_timeout = '1min'",
            "ALTER ROLE r SET statement_timeout = '2min'",
            "ALTER ROLE r SET lock_timeout = '2min'",
            "ALTER ROLE r IN DATABASE d SET lock_timeout = '3min'",
        ],
    )
    .await;
    let shown = "SELECT current_setting('work_mem'), current_setting('statement_timeout'), \
                 current_setting('lock_timeout')";
    let settings = async |database: &str| {
        let client = connect(&server, database, "r").await.unwrap();
        answer(&client, shown).await
    };
    assert_eq!(settings("d").await, "5MB/2min/3min");
    let usual = answer(&first, "SHOW work_mem").await;
    assert_eq!(settings("archipel").await, format!("{usual}/2min/2min"));
    run(&first, &["ALTER ROLE r IN DATABASE d RESET ALL", "ALTER DATABASE d RESET work_mem"]).await;
    assert_eq!(settings("d").await, format!("{usual}/2min/2min"));
    run(&first, &["ALTER ROLE r IN DATABASE d SET work_mem = '6MB'"]).await;
    let counted = "SELECT count(*) FROM pg_db_role_setting WHERE setdatabase <> 0 AND setrole <> 0";
    assert_eq!(answer(&first, counted).await, "1");
    // What is said of all comes first; and what only a superuser may set, a superuser may give.
    run(&first, &["ALTER ROLE ALL SET work_mem = '3MB'", "ALTER ROLE r SET log_statement = 'ddl'"]).await;
    assert_eq!(settings("d").await, "6MB/2min/2min");
    assert_eq!(settings("archipel").await, "3MB/2min/2min");
    let as_r = connect(&server, "archipel", "r").await.unwrap();
    assert_eq!(answer(&as_r, "SHOW log_statement").await, "ddl");
    assert_eq!(
        answer(&as_r, "SET log_statement = 'all'").await,
        "42501 permission denied to set parameter \"log_statement\""
    );
    run(&first, &["GRANT SET ON PARAMETER log_statement TO r"]).await;
    run(&as_r, &["SET log_statement = 'all'"]).await;
    run(&first, &["ALTER ROLE ALL RESET ALL", "REVOKE SET ON PARAMETER log_statement FROM r"]).await;
    assert_eq!(settings("archipel").await, format!("{usual}/2min/2min"));
    run(&first, &["DROP ROLE r"]).await;
    assert_eq!(answer(&first, counted).await, "0");
}

#[tokio::test]
async fn databases_come_and_go_and_leave_nothing() {
    let server = Server::start(&[]);
    let first = client(&server, "archipel").await;
    let facts = "SELECT (SELECT count(*) FROM pg_database), (SELECT count(*) FROM archipel.partitions)";
    run(&first, &["CREATE DATABASE d", "DROP DATABASE d"]).await;
    let before = answer(&first, facts).await;
    for _ in 0..300 {
        run(&first, &["CREATE DATABASE d", "DROP DATABASE d"]).await;
    }
    assert_eq!(answer(&first, facts).await, before);
}

#[tokio::test]
async fn databases_are_there_after_a_crash_as_they_were() {
    let mut server = Server::start(&[]);
    {
        let first = client(&server, "archipel").await;
        run(&first, &["CREATE DATABASE kept", "CREATE DATABASE gone", "CREATE TABLE t (a int)"]).await;
        let kept = client(&server, "kept").await;
        run(&kept, &["CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t VALUES (1)"]).await;
        run(&first, &["ALTER DATABASE kept SET work_mem = '5MB'", "DROP DATABASE gone"]).await;
    }
    server.kill();
    server.launch(&[]);
    let kept = client(&server, "kept").await;
    assert_eq!(answer(&kept, "SELECT a, current_setting('work_mem') FROM t").await, "1/5MB");
    let first = client(&server, "archipel").await;
    assert_eq!(answer(&first, "SELECT count(*) FROM t").await, "0");
    assert!(connect(&server, "gone", "archipel").await.is_err());
    run(&first, &["DROP DATABASE kept WITH (FORCE)", "CREATE DATABASE gone TEMPLATE template0"]).await;
}
