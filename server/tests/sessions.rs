//! Sessions through a driver: formats, errors, transactions, and clients that vanish.

mod common;

use std::time::Duration;

use common::Server;
use futures::SinkExt;
use tokio_postgres::error::SqlState;

#[tokio::test]
async fn binary_parameters_and_results_keep_their_values() {
    let server = Server::start(&[]);
    let client = server.client().await;
    let row = client
        .query_one(
            "SELECT $1::int4, $2::text, $3::float8, $4::bool, $5::int8, $6::bytea, $7::int4[]",
            &[&7i32, &"déjà", &1.5f64, &true, &(1i64 << 40), &vec![0u8, 255], &vec![1i32, 2]],
        )
        .await
        .unwrap();
    assert_eq!(row.get::<_, i32>(0), 7);
    assert_eq!(row.get::<_, &str>(1), "déjà");
    assert_eq!(row.get::<_, f64>(2), 1.5);
    assert!(row.get::<_, bool>(3));
    assert_eq!(row.get::<_, i64>(4), 1 << 40);
    assert_eq!(row.get::<_, Vec<u8>>(5), vec![0, 255]);
    assert_eq!(row.get::<_, Vec<i32>>(6), vec![1, 2]);
}

#[tokio::test]
async fn errors_carry_their_states_and_a_failed_block_takes_only_rollback() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(3) NOT NULL)").await.unwrap();
    for (text, code) in [
        ("SELECT * FROM missing", SqlState::UNDEFINED_TABLE),
        ("SELECT 1/0", SqlState::DIVISION_BY_ZERO),
        ("INSERT INTO t VALUES (1, 'abcd')", SqlState::STRING_DATA_RIGHT_TRUNCATION),
        ("INSERT INTO t VALUES (1, NULL)", SqlState::NOT_NULL_VIOLATION),
        ("SELEC 1", SqlState::SYNTAX_ERROR),
        ("SET nonsense = 1", SqlState::UNDEFINED_OBJECT),
    ] {
        let error = client.batch_execute(text).await.unwrap_err();
        assert_eq!(error.code(), Some(&code), "{text}");
    }
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1, 'a')").await.unwrap();
    client.batch_execute("SELECT 1/0").await.unwrap_err();
    let refused = client.batch_execute("SELECT 1").await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION));
    client.batch_execute("ROLLBACK").await.unwrap();
    let rows = client.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(rows.get::<_, i64>(0), 0);
}

#[tokio::test]
async fn several_statements_in_one_text_are_one_transaction() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)").await.unwrap_err();
    client.batch_execute("INSERT INTO t VALUES (2); INSERT INTO t VALUES (3)").await.unwrap();
    let rows = client.query("SELECT id FROM t ORDER BY id", &[]).await.unwrap();
    let ids: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(ids, [2, 3]);
}

#[tokio::test]
async fn a_mode_that_a_text_sets_is_that_of_its_transaction() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    for mode in ["transaction_read_only = on", "LOCAL transaction_read_only = on", "TRANSACTION READ ONLY"] {
        let error = client.batch_execute(&format!("SET {mode}; INSERT INTO t VALUES (1)")).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::READ_ONLY_SQL_TRANSACTION), "{mode}");
    }
    client.batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
}

/// How often statements were found by their shapes.
async fn found_by_shape(client: &tokio_postgres::Client) -> i64 {
    let query = "SELECT sum(found_by_shape)::int8 FROM archipel.statement_cache";
    client.query_one(query, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn texts_that_differ_in_their_literals_alone_are_prepared_twice_and_no_more() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name varchar(10), at date)").await.unwrap();
    for id in 0..20 {
        let insert = format!("INSERT INTO t VALUES ({id}, 'it''s {id}', '2020-01-{:02}')", id + 1);
        client.simple_query(&insert).await.unwrap();
    }
    assert_eq!(found_by_shape(&client).await, 18);
    for id in 0..20 {
        let update = format!("UPDATE t SET name = name || '{id}', at = at + -{id} WHERE id = {id}");
        client.simple_query(&update).await.unwrap();
    }
    assert_eq!(found_by_shape(&client).await, 36);
    let rows = client.query("SELECT id, name, at::text FROM t ORDER BY id", &[]).await.unwrap();
    assert_eq!(rows.len(), 20);
    for row in rows {
        let id: i32 = row.get(0);
        assert_eq!(row.get::<_, &str>(1), format!("it's {id}{id}"));
        assert_eq!(row.get::<_, &str>(2), "2020-01-01");
    }
    // What is no value of its type is an error that tells its place.
    let error = client.simple_query("INSERT INTO t VALUES (20, 'x', '2020-02-30')").await.unwrap_err();
    let error = error.as_db_error().expect("an answer");
    assert_eq!(error.code(), &SqlState::DATETIME_VALUE_OUT_OF_RANGE);
    assert_eq!(error.position(), Some(&tokio_postgres::error::ErrorPosition::Original(32)));
    // Statements that look at every row are read each time: their plans know the values.
    for id in 0..4 {
        let query = format!("SELECT count(*) FROM t WHERE name = 'it''s {id}{id}'");
        client.simple_query(&query).await.unwrap();
    }
    // A number that stands for a column is no value.
    for order in 1..=3 {
        let query = format!("SELECT id, name, at FROM t WHERE id > 0 ORDER BY {order}");
        client.simple_query(&query).await.unwrap();
    }
    assert_eq!(found_by_shape(&client).await, 36);
}

#[tokio::test]
async fn a_type_that_changes_between_bind_and_execute_does_not_change_the_parameters() {
    let server = Server::start(&[]);
    let (mut client, other) = (server.client().await, server.client().await);
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int)").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (1, 7), (2, 8)").await.unwrap();
    let query = client.prepare("SELECT id FROM t WHERE v = $1").await.unwrap();
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind(&query, &[&7i32]).await.unwrap();
    other.batch_execute("ALTER TABLE t ALTER COLUMN v TYPE text").await.unwrap();
    let error = transaction.query_portal(&portal, 0).await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::UNDEFINED_FUNCTION), "text = integer: {error:?}");
    transaction.rollback().await.unwrap();
}

#[tokio::test]
async fn a_client_that_vanishes_leaves_no_locks_and_no_rows() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").await.unwrap();
    {
        let mut raw = server.raw();
        raw.query("BEGIN");
        raw.query("DELETE FROM t WHERE id = 1");
        raw.query("INSERT INTO t VALUES (2)");
    }
    {
        let mut raw = server.raw();
        raw.send(b'Q', b"COPY t FROM STDIN\0");
        raw.until(b'G');
        raw.send(b'd', b"7\n8\n");
    }
    let waiting = client.execute("UPDATE t SET id = id WHERE id = 1", &[]);
    let updated =
        tokio::time::timeout(Duration::from_secs(120), waiting).await.expect("no lock stays").unwrap();
    assert_eq!(updated, 1);
    let rows = client.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(rows.get::<_, i64>(0), 1);
}

#[tokio::test]
async fn copy_takes_rows_and_names_the_line_of_an_error() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text)").await.unwrap();
    let sink = client.copy_in::<_, bytes::Bytes>("COPY t FROM STDIN WITH (FORMAT csv)").await.unwrap();
    let mut sink = std::pin::pin!(sink);
    sink.send(bytes::Bytes::from_static(b"1,\"a,b\"\n2,")).await.unwrap();
    sink.send(bytes::Bytes::from_static(b"\n3,x\n")).await.unwrap();
    assert_eq!(sink.finish().await.unwrap(), 3);
    let row = client.query_one("SELECT count(*), count(v) FROM t", &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (3, 2));
    let sink = client.copy_in::<_, bytes::Bytes>("COPY t FROM STDIN").await.unwrap();
    let mut sink = std::pin::pin!(sink);
    sink.send(bytes::Bytes::from_static(b"4\ta\nfive\tb\n")).await.unwrap();
    let error = sink.finish().await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::INVALID_TEXT_REPRESENTATION));
    let context = error.as_db_error().and_then(|error| error.where_()).unwrap_or_default().to_owned();
    assert!(context.contains("line 2") && context.contains("column id"), "{context}");
    assert_eq!(client.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get::<_, i64>(0), 3);
}

#[tokio::test]
async fn a_copy_brings_values_of_identity_columns() {
    let server = Server::start(&[]);
    let client = server.client().await;
    let table = "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY, v text)";
    client.batch_execute(table).await.unwrap();
    for (copy, data) in [("COPY t FROM STDIN", &b"100\ta\n"[..]), ("COPY t (v) FROM STDIN", b"b\n")] {
        let sink = client.copy_in::<_, bytes::Bytes>(copy).await.unwrap();
        let mut sink = std::pin::pin!(sink);
        sink.send(bytes::Bytes::from_static(data)).await.unwrap();
        assert_eq!(sink.finish().await.unwrap(), 1);
    }
    let rows = client.query("SELECT id FROM t ORDER BY v", &[]).await.unwrap();
    let ids: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(ids, [100, 1]);
}

#[tokio::test]
async fn a_copy_of_several_batches_is_all_or_nothing_if_asked_to_be() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text)").await.unwrap();
    let copy = async |rows: std::ops::Range<u32>, end: &'static str| {
        let sink = client.copy_in::<_, bytes::Bytes>("COPY t FROM STDIN").await.unwrap();
        let mut sink = std::pin::pin!(sink);
        for id in rows {
            sink.send(bytes::Bytes::from(format!("{id}\t{}\n", "x".repeat(1_000)))).await.unwrap();
        }
        sink.send(bytes::Bytes::from_static(end.as_bytes())).await.unwrap();
        sink.finish().await
    };
    let count = async || {
        let row = client.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
        row.get::<_, i64>(0)
    };
    client.batch_execute("SET archipel.atomic_copy = on").await.unwrap();
    assert!(copy(0..12_000, "no number\tx\n").await.is_err());
    assert_eq!(count().await, 0);
    assert_eq!(copy(0..12_000, "").await.unwrap(), 12_000);
    assert_eq!(count().await, 12_000);
    client.batch_execute("TRUNCATE t; RESET archipel.atomic_copy").await.unwrap();
    let error = copy(0..12_000, "no number\tx\n").await.unwrap_err();
    let left = count().await;
    assert!(left > 0);
    let detail = error.as_db_error().and_then(|error| error.detail()).unwrap_or_default();
    assert!(detail.contains(&format!("The first {left} rows were committed")), "{detail}");
}

/// A batch runs while the next one is decoded: the error of its row is the one that is told, and
/// nothing of the next one stays.
#[tokio::test]
async fn the_first_row_that_fails_ends_a_copy() {
    const DOUBLE: u32 = 10_000;
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text)").await.unwrap();
    // How far behind it the row is that cannot be decoded: in its batch, in the next one.
    for behind in [1, 100, 700] {
        let sink = client.copy_in::<_, bytes::Bytes>("COPY t FROM STDIN").await.unwrap();
        let mut sink = std::pin::pin!(sink);
        for row in 0..12_000 {
            let id = match row {
                DOUBLE => "1".to_owned(),
                row if row == DOUBLE + behind => "no number".to_owned(),
                row => row.to_string(),
            };
            sink.send(bytes::Bytes::from(format!("{id}\t{}\n", "x".repeat(1_000)))).await.unwrap();
        }
        let error = sink.finish().await.unwrap_err();
        let error = error.as_db_error().unwrap();
        let left = client.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get::<_, i64>(0);
        let detail = error.detail().unwrap_or_default().to_owned();
        if *error.code() == SqlState::UNIQUE_VIOLATION {
            assert!(
                error.where_().unwrap_or_default().contains(&format!("line {}", DOUBLE + 1)),
                "{error:?}"
            );
        } else {
            // It came before its batch was whole.
            assert_eq!(*error.code(), SqlState::INVALID_TEXT_REPRESENTATION, "{error:?}");
            assert!(behind < 700, "{error:?}");
            assert!(detail.contains(&format!("The first {left} rows were committed")), "{detail}");
        }
        assert!((1..=i64::from(DOUBLE)).contains(&left), "{left}");
        client.batch_execute("TRUNCATE t").await.unwrap();
    }
}

#[tokio::test]
async fn too_many_clients_are_53300() {
    let server = Server::start(&["max_connections=1", "superuser_reserved_connections=0"]);
    let _first = server.client().await;
    let config = format!("host=127.0.0.1 port={} user=archipel dbname=archipel", server.port);
    let error =
        tokio_postgres::connect(&config, tokio_postgres::NoTls).await.err().expect("no place is left");
    assert_eq!(error.code(), Some(&SqlState::TOO_MANY_CONNECTIONS));
}

#[tokio::test]
async fn definitions_in_a_block_happen_together_or_not_at_all() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client
        .batch_execute(
            "BEGIN; CREATE TABLE a (id int PRIMARY KEY); CREATE INDEX ON a (id);
             CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM a'; ROLLBACK",
        )
        .await
        .unwrap();
    let error = client.batch_execute("SELECT * FROM a").await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::UNDEFINED_TABLE));
    client
        .batch_execute(
            "BEGIN; CREATE TABLE a (id int PRIMARY KEY); SAVEPOINT s; CREATE TABLE b (id int PRIMARY KEY)",
        )
        .await
        .unwrap();
    client.batch_execute("ROLLBACK TO s; CREATE TABLE c (id int REFERENCES a); COMMIT").await.unwrap();
    client.batch_execute("INSERT INTO a VALUES (1); INSERT INTO c VALUES (1)").await.unwrap();
    client.batch_execute("SELECT * FROM b").await.unwrap_err();
    client
        .batch_execute(
            "BEGIN; INSERT INTO a VALUES (2); CREATE TABLE d (id int PRIMARY KEY); INSERT INTO d VALUES (2);
             ALTER TABLE a ADD COLUMN label text",
        )
        .await
        .unwrap();
    client.batch_execute("UPDATE a SET label = 'x'").await.unwrap();
    let labelled = client.query_one("SELECT count(*) FROM a WHERE label = 'x'", &[]).await.unwrap();
    assert_eq!(labelled.get::<_, i64>(0), 2);
    client.batch_execute("ROLLBACK").await.unwrap();
    let error = client.batch_execute("SELECT label FROM a").await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::UNDEFINED_COLUMN));
    let error = client.batch_execute("SELECT * FROM d").await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::UNDEFINED_TABLE));
}

#[tokio::test]
async fn a_statement_timeout_stops_a_loop() {
    let server = Server::start(&[]);
    let client = server.client().await;
    // What else is done here takes less on a busy machine, too.
    client.batch_execute("SET statement_timeout = '1s'").await.unwrap();
    let error = client.batch_execute("DO $$ BEGIN LOOP END LOOP; END $$").await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    client.batch_execute("SELECT 1").await.unwrap();
}

#[tokio::test]
async fn cursors_are_fetched_from_in_blocks() {
    let server = Server::start(&[]);
    let client = server.client().await;
    let refused = client.batch_execute("DECLARE c CURSOR FOR SELECT 1").await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::NO_ACTIVE_SQL_TRANSACTION));
    client
        .batch_execute("BEGIN; DECLARE c CURSOR FOR SELECT g FROM generate_series(1, 5) AS g")
        .await
        .unwrap();
    let rows = client.query("FETCH 2 FROM c", &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [1, 2]);
    client.batch_execute("MOVE 1 FROM c").await.unwrap();
    let rows = client.query("FETCH ALL FROM c", &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [4, 5]);
    client.batch_execute("COMMIT").await.unwrap();
    let gone = client.batch_execute("FETCH 1 FROM c").await.unwrap_err();
    assert_eq!(gone.code(), Some(&SqlState::INVALID_CURSOR_NAME));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_from_a_pipe_waits_for_its_writer_and_can_be_cancelled() {
    let server = Server::start(&[]);
    let client = server.client().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let copy = format!("COPY t FROM '{}'", path.display());
    client.batch_execute("CREATE TABLE t (a int)").await.unwrap();
    client.batch_execute("SET statement_timeout = 300").await.unwrap();
    let error = client.batch_execute(&copy).await.expect_err("nobody writes");
    assert_eq!(error.code().map(|code| code.code()), Some("57014"));
    client.batch_execute("SET statement_timeout = 0").await.unwrap();
    let writer = std::thread::spawn(move || {
        // Opening waits for the reader.
        let mut pipe = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        for line in [&b"1\n2\n"[..], b"3\n"] {
            std::io::Write::write_all(&mut pipe, line).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    });
    client.batch_execute(&copy).await.unwrap();
    writer.join().unwrap();
    let sum: i64 = client.query_one("SELECT sum(a) FROM t", &[]).await.unwrap().get(0);
    assert_eq!(sum, 6);
}

/// PostgreSQL's second one waits at its CREATE for the first to end, and then fails the same way.
#[tokio::test]
async fn of_two_that_make_one_name_the_later_finds_a_duplicate() {
    let server = Server::start(&[]);
    let (first, second) = (server.client().await, server.client().await);
    for (definition, constraint) in [
        ("CREATE TABLE twin (id int PRIMARY KEY)", "pg_type_typname_nsp_index"),
        ("CREATE SEQUENCE counted", "pg_class_relname_nsp_index"),
        ("CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'", "pg_proc_proname_args_nsp_index"),
        ("CREATE SCHEMA apart", "pg_namespace_nspname_index"),
        ("CREATE ROLE somebody", "pg_authid_rolname_index"),
    ] {
        for client in [&first, &second] {
            client.batch_execute("BEGIN").await.unwrap();
            client.batch_execute(definition).await.unwrap();
        }
        first.batch_execute("COMMIT").await.unwrap();
        let error = second.batch_execute("COMMIT").await.unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code(), &SqlState::UNIQUE_VIOLATION, "{definition}: {error}");
        assert_eq!(error.constraint(), Some(constraint), "{definition}: {error}");
    }
    second.batch_execute("CREATE TABLE IF NOT EXISTS twin (id int)").await.unwrap();
}

#[tokio::test]
async fn a_row_that_comes_while_do_update_calls_does_not_keep_its_values_silently() {
    let server = Server::start(&[]);
    let (client, other) = (server.client().await, server.client().await);
    let schema = "CREATE TABLE t (id int PRIMARY KEY, v text);
        INSERT INTO t VALUES (1, 'a');
        CREATE FUNCTION made() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
            CREATE TABLE IF NOT EXISTS made (id int);
            PERFORM pg_advisory_xact_lock(7);
            RETURN 'm';
        END $$";
    client.batch_execute(schema).await.unwrap();
    other.batch_execute("SELECT pg_advisory_lock(7)").await.unwrap();
    let upsert = "INSERT INTO t VALUES (1, 'x'), (2, 'y') ON CONFLICT (id) DO UPDATE SET v = made()";
    let upsert = client.batch_execute(upsert);
    let meanwhile = async {
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        for _ in 0..2_000 {
            if other.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        other.batch_execute("INSERT INTO t VALUES (2, 'b')").await.unwrap();
        other.batch_execute("SELECT pg_advisory_unlock(7)").await.unwrap();
    };
    let (upsert, ()) = tokio::join!(upsert, meanwhile);
    let row = other.query_one("SELECT string_agg(v, ' ' ORDER BY id) FROM t", &[]).await.unwrap();
    match upsert {
        Ok(()) => assert_eq!(row.get::<_, &str>(0), "m m"),
        Err(error) => {
            assert_eq!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));
            assert_eq!(row.get::<_, &str>(0), "a b");
        }
    }
}
