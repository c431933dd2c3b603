//! SQLx as an application uses it: its queries, its pool, its listener and its migrations.

mod failures;
mod session;
mod values;

use checks::{Outcome, equal, failure};
use futures_util::TryStreamExt;
use futures_util::future::{join, try_join_all};
use session::{all, connect, one, refused, usable};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::types::Json;
use sqlx::{Column, Connection, Executor, QueryBuilder, Row, SqlSafeStr, Statement, TypeInfo};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

async fn migrates() -> Outcome {
    let mut connection = connect().await?;
    connection.execute(sqlx::raw_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")).await?;
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'";
    MIGRATIONS.run(&mut connection).await?;
    equal(one::<i64>(&mut connection, tables).await?, 4);
    MIGRATIONS.undo(&mut connection, 0).await?;
    equal(one::<i64>(&mut connection, tables).await?, 1);
    MIGRATIONS.run_to(20_240_101_000_000, &mut connection).await?;
    // Two at once: the second waits for the first one's advisory lock, and finds all done.
    let mut second = connect().await?;
    let once = |on| MIGRATIONS.run_to(20_240_102_000_000, on);
    let (first, other) = join(once(&mut connection), once(&mut second)).await;
    first?;
    other?;
    // An index made concurrently would wait for who waits for the lock.
    MIGRATIONS.run(&mut connection).await?;
    let versions = "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";
    equal(all::<i64>(&mut connection, versions).await?.len(), 3);
    equal(one::<bool>(&mut connection, "SELECT to_regclass('item_label') IS NOT NULL").await?, true);

    connection
        .execute("UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 20240102000000")
        .await?;
    let error = failure(MIGRATIONS.run(&mut connection).await);
    equal(matches!(error, MigrateError::VersionMismatch(20_240_102_000_000)), true);
    Ok(())
}

#[derive(sqlx::FromRow)]
struct Account {
    id: i32,
    balance: rust_decimal::Decimal,
    mood: values::Mood,
    tags: Vec<String>,
    detail: Option<Json<serde_json::Value>>,
    opened: time::OffsetDateTime,
}

async fn work() -> Outcome {
    let mut connection = connect().await?;
    let owner: i64 = sqlx::query_scalar("INSERT INTO owner (name) VALUES ($1) RETURNING id")
        .bind("ann")
        .fetch_one(&mut connection)
        .await?;
    let text =
        "INSERT INTO account (owner_id, balance, tags, detail, mood) VALUES ($1, $2, $3, $4, $5) RETURNING *";
    let account: Account = sqlx::query_as(text)
        .bind(owner)
        .bind(rust_decimal::Decimal::new(1050, 2))
        .bind(vec!["x"])
        .bind(Json(serde_json::json!({"k": 1})))
        .bind(values::Mood::Happy)
        .fetch_one(&mut connection)
        .await?;
    equal((account.balance.to_string(), account.mood), ("10.50".to_owned(), values::Mood::Happy));
    equal(
        (account.tags, account.detail.map(|detail| detail.0)),
        (vec!["x".to_owned()], Some(serde_json::json!({"k": 1}))),
    );
    equal((time::OffsetDateTime::now_utc() - account.opened).abs() < time::Duration::MINUTE, true);
    let changed = sqlx::query("UPDATE account SET balance = balance * 2 WHERE id = ANY ($1)")
        .bind([account.id, -1])
        .execute(&mut connection)
        .await?;
    equal(changed.rows_affected(), 1);
    let none: Option<Account> = sqlx::query_as("SELECT * FROM account WHERE id = $1")
        .bind(-1)
        .fetch_optional(&mut connection)
        .await?;
    equal(none.is_none(), true);
    let row = sqlx::query("SELECT id, balance FROM account").fetch_one(&mut connection).await?;
    let columns: Vec<_> =
        row.columns().iter().map(|column| (column.name(), column.type_info().name())).collect();
    equal(columns, vec![("id", "INT4"), ("balance", "NUMERIC")]);
    connection.execute("DELETE FROM account").await?;
    connection.execute("DELETE FROM owner").await?;
    Ok(())
}

async fn transactions() -> Outcome {
    let mut connection = connect().await?;
    let mut outer = connection.begin().await?;
    outer.execute("INSERT INTO item VALUES (1, 'kept')").await?;
    let mut inner = outer.begin().await?;
    inner.execute("INSERT INTO item VALUES (2, 'gone')").await?;
    refused("23505", inner.execute("INSERT INTO item VALUES (1, 'again')").await);
    refused("25P02", inner.execute("SELECT 1").await);
    // Dropping it rolls back to its savepoint.
    drop(inner);
    let mut third = outer.begin().await?;
    third.execute("INSERT INTO item VALUES (3, 'kept')").await?;
    third.commit().await?;
    outer.commit().await?;
    equal(all::<i32>(&mut connection, "SELECT id FROM item ORDER BY id").await?, vec![1, 3]);

    let begin = "BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE";
    let mut limited = connection.begin_with(begin).await?;
    equal(one::<String>(&mut *limited, "SHOW transaction_isolation").await?, "serializable");
    refused("25006", limited.execute("DELETE FROM item").await);
    limited.rollback().await?;
    let mut failed = connection.begin().await?;
    failed.execute("DELETE FROM item").await?;
    refused("22012", failed.execute("SELECT 1 / 0").await);
    // PostgreSQL answers COMMIT with ROLLBACK, of which the driver says nothing.
    failed.commit().await?;
    equal(connection.execute("DELETE FROM item").await?.rows_affected(), 2);
    Ok(())
}

async fn prepared() -> Outcome {
    let mut connection = connect().await?;
    let statement =
        (&mut connection).prepare("SELECT label, id FROM item WHERE id = $1".into_sql_str()).await?;
    let told = statement.parameters().map(|either| match either {
        sqlx::Either::Left(kinds) => kinds.iter().map(|kind| kind.name().to_owned()).collect(),
        sqlx::Either::Right(count) => vec![count.to_string()],
    });
    equal(told, Some(vec!["INT4".to_owned()]));
    equal(statement.columns().iter().map(|column| column.name()).collect::<Vec<_>>(), vec!["label", "id"]);
    equal(statement.query().bind(1).fetch_all(&mut connection).await?.len(), 0);
    refused("42601", (&mut connection).prepare("SELEC $1".into_sql_str()).await.map(|_| ()));
    usable(&mut connection).await?;

    connection.execute("INSERT INTO item VALUES (1, 'a')").await?;
    let every = || sqlx::query("SELECT * FROM item WHERE id = $1").bind(1);
    equal(every().fetch_one(&mut connection).await?.len(), 2);
    let mut other = connect().await?;
    other.execute("ALTER TABLE item ADD COLUMN more int").await?;
    let said = refused("0A000", every().fetch_one(&mut connection).await.map(|_| ()));
    equal(said.message(), "cached plan must not change result type");
    equal(connection.cached_statements_size() > 0, true);
    connection.clear_cached_statements().await?;
    equal(connection.cached_statements_size(), 0);
    equal(every().fetch_one(&mut connection).await?.len(), 3);
    other.execute("ALTER TABLE item DROP COLUMN more").await?;
    // One that is not kept has the new columns at once.
    equal(every().persistent(false).fetch_one(&mut other).await?.len(), 2);
    other.execute("DELETE FROM item").await?;
    Ok(())
}

async fn batches() -> Outcome {
    let mut connection = connect().await?;
    let mut insert = QueryBuilder::<sqlx::Postgres>::new("INSERT INTO item (id, label) ");
    insert.push_values(0..1000, |mut row, n| {
        row.push_bind(n).push_bind(format!("l{n}"));
    });
    equal(insert.build().execute(&mut connection).await?.rows_affected(), 1000);
    let text = "INSERT INTO item SELECT * FROM unnest($1::int[], $2::text[])";
    let more = sqlx::query(text).bind([1000, 1001]).bind([Some("x"), None]).execute(&mut connection).await?;
    equal(more.rows_affected(), 2);
    let mut among = QueryBuilder::<sqlx::Postgres>::new("SELECT count(*) FROM item WHERE (id, label) IN ");
    among.push_tuples([(1, "l1"), (2, "other"), (3, "l3")], |mut row, (id, label)| {
        row.push_bind(id).push_bind(label);
    });
    equal(among.build_query_scalar::<i64>().fetch_one(&mut connection).await?, 2);
    // One transaction of its own: what came before the failure is undone with it.
    refused("22012", connection.execute(sqlx::raw_sql("DELETE FROM item; SELECT 1 / 0; SELECT 2")).await);
    let several = sqlx::raw_sql("DELETE FROM item WHERE id < 2; DELETE FROM item WHERE id < 5; SELECT 1");
    equal(connection.execute(several).await?.rows_affected(), 6);
    equal(connection.execute("DELETE FROM item").await?.rows_affected(), 997);
    Ok(())
}

async fn copies() -> Outcome {
    let mut connection = connect().await?;
    let mut copy = connection.copy_in_raw("COPY item FROM STDIN").await?;
    equal((copy.is_textual(), copy.num_columns()), (true, 2));
    for n in 0..3000 {
        copy.send(format!("{n}\tlabel {n}\n").into_bytes()).await?;
    }
    equal(copy.finish().await?, 3000);
    let out = "COPY (SELECT * FROM item WHERE id < 2 ORDER BY id) TO STDOUT (FORMAT csv, HEADER)";
    let parts: Vec<_> = connection.copy_out_raw(out).await?.try_collect().await?;
    equal(String::from_utf8_lossy(&parts.concat()), "id,label\n0,label 0\n1,label 1\n");
    let packed: Vec<_> = connection.copy_out_raw("COPY item TO STDOUT BINARY").await?.try_collect().await?;
    let before: String = one(&mut connection, session::CONTENT).await?;
    connection.execute("DELETE FROM item").await?;
    let mut copy = connection.copy_in_raw("COPY item FROM STDIN BINARY").await?;
    equal((copy.is_textual(), copy.column_is_textual(1)), (false, false));
    for part in packed {
        copy.send(part).await?;
    }
    equal(copy.finish().await?, 3000);
    equal(one::<String>(&mut connection, session::CONTENT).await?, before);

    let mut copy = connection.copy_in_raw("COPY item FROM STDIN").await?;
    copy.send(&b"x\ty\n"[..]).await?;
    refused("22P02", copy.finish().await);
    let mut copy = connection.copy_in_raw("COPY item FROM STDIN").await?;
    copy.send(&b"9999\tlost\n"[..]).await?;
    copy.abort("enough").await?;
    refused("42P01", connection.copy_in_raw("COPY nowhere FROM STDIN").await.map(|_| ()));
    equal(connection.execute("DELETE FROM item").await?.rows_affected(), 3000);
    usable(&mut connection).await
}

async fn cursors() -> Outcome {
    let mut connection = connect().await?;
    let mut within = connection.begin().await?;
    within.execute("DECLARE c SCROLL CURSOR FOR SELECT n FROM generate_series(1, 100) AS n").await?;
    equal(all::<i32>(&mut *within, "FETCH 3 FROM c").await?, vec![1, 2, 3]);
    equal(within.execute("MOVE 10 IN c").await?.rows_affected(), 10);
    equal(all::<i32>(&mut *within, "FETCH BACKWARD 2 FROM c").await?, vec![12, 11]);
    equal(all::<i32>(&mut *within, "FETCH ABSOLUTE 50 FROM c").await?, vec![50]);
    within.execute("CLOSE c").await?;
    within.rollback().await?;
    // Rows that are left unread do not harm what follows.
    {
        let mut rows = sqlx::query("SELECT n FROM generate_series(1, 100000) AS n").fetch(&mut connection);
        equal(rows.try_next().await?.map(|row| row.get::<i32, _>(0)), Some(1));
    }
    usable(&mut connection).await
}

async fn notifications() -> Outcome {
    let mut listener = PgListener::connect(&checks::url()).await?;
    let mut sender = connect().await?;
    listener.listen_all(["news", "Other \"one\""]).await?;
    let mut within = sender.begin().await?;
    sqlx::query("SELECT pg_notify($1, $2)").bind("news").bind("first").execute(&mut *within).await?;
    sqlx::query("SELECT pg_notify($1, '')").bind("Other \"one\"").execute(&mut *within).await?;
    within.commit().await?;
    let pid: i32 = one(&mut sender, "SELECT pg_backend_pid()").await?;
    let got = listener.recv().await?;
    equal((got.process_id(), got.channel(), got.payload()), (pid.unsigned_abs(), "news", "first"));
    equal(listener.recv().await?.channel(), "Other \"one\"");
    // Ended from outside, it says so once, and listens again on another connection.
    let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    equal(one::<bool>(&mut sender, ended).await?, true);
    equal(listener.try_recv().await?.is_none(), true);
    listener.unlisten("news").await?;
    sender.execute(sqlx::raw_sql("NOTIFY news; NOTIFY \"Other \"\"one\"\"\", 'again'")).await?;
    equal(listener.recv().await?.payload(), "again");
    Ok(())
}

async fn notices() -> Outcome {
    let heard = session::hear_notices();
    let mut connection = connect().await?;
    connection.execute("DO $$ BEGIN RAISE NOTICE 'hello %', 1; RAISE WARNING 'beware'; END $$").await?;
    let said: Vec<String> = heard.lock().expect("nobody panics").drain(..).collect();
    equal(said.iter().any(|one| one.contains("hello 1")), true);
    equal(said.iter().any(|one| one.contains("beware")), true);
    Ok(())
}

async fn routines() -> Outcome {
    let mut connection = connect().await?;
    let owner: i64 = one(&mut connection, "INSERT INTO owner (name) VALUES ('bob') RETURNING id").await?;
    let account: i32 =
        one(&mut connection, "INSERT INTO account (owner_id) SELECT id FROM owner RETURNING id").await?;
    let deposit = |id: i32| {
        sqlx::query_scalar::<_, rust_decimal::Decimal>("SELECT deposit($1, $2)")
            .bind(id)
            .bind(rust_decimal::Decimal::new(25, 1))
    };
    let balance = deposit(account).fetch_one(&mut connection).await?;
    equal(balance.to_string(), "2.50");
    let call = sqlx::query_scalar::<_, String>("CALL rename($1, $2)").bind(owner).bind("bert");
    equal(call.fetch_one(&mut connection).await?, "BERT");
    let said = refused("P0002", deposit(-1).fetch_one(&mut connection).await);
    equal(
        (said.message(), said.r#where()),
        ("no account -1", Some("PL/pgSQL function deposit(integer,numeric) line 5 at RAISE")),
    );
    connection.execute(sqlx::raw_sql("DELETE FROM account; DELETE FROM owner")).await?;

    let mut within = connection.begin().await?;
    let row = sqlx::query("CALL split($1, NULL, 'c')").bind("abc").fetch_one(&mut *within).await?;
    equal(row.get::<String, _>("p_first"), "a");
    equal(row.try_get_unchecked::<String, _>("p_rest")?, "c");
    equal(all::<String>(&mut *within, "FETCH ALL FROM c").await?, vec!["bc"]);
    within.commit().await?;
    Ok(())
}

async fn pools() -> Outcome {
    let pool = PgPoolOptions::new()
        .max_connections(4)
        .after_release(|connection, _| {
            Box::pin(async move { connection.execute(sqlx::raw_sql("DISCARD ALL")).await.map(|_| true) })
        })
        .connect(&checks::url())
        .await?;
    let got = try_join_all((0..40).map(|n: i32| {
        let pool = pool.clone();
        async move {
            sqlx::query_scalar::<_, i32>("SELECT $1 FROM pg_sleep(0.01)")
                .persistent(false)
                .bind(n)
                .fetch_one(&pool)
                .await
        }
    }))
    .await?;
    equal(got, (0..40).collect::<Vec<i32>>());
    equal(pool.size() <= 4, true);

    // Whoever gets the session next finds nothing of this.
    let alone = PgPoolOptions::new()
        .max_connections(1)
        .after_release(|connection, _| {
            Box::pin(async move {
                connection.clear_cached_statements().await?;
                connection.execute(sqlx::raw_sql("DISCARD ALL")).await.map(|_| true)
            })
        })
        .connect(&checks::url())
        .await?;
    let mut dirty = alone.acquire().await?;
    dirty
        .execute(sqlx::raw_sql(
            "SET statement_timeout = 1234; CREATE TEMP TABLE mine (a int); LISTEN news; SELECT pg_advisory_lock(7);
             DECLARE c CURSOR WITH HOLD FOR SELECT 1; PREPARE p AS SELECT 1",
        ))
        .await?;
    let session: i32 = one(&mut *dirty, "SELECT pg_backend_pid()").await?;
    drop(dirty);
    let mut clean = alone.acquire().await?;
    equal(one::<i32>(&mut *clean, "SELECT pg_backend_pid()").await?, session);
    equal(one::<String>(&mut *clean, "SHOW statement_timeout").await?, "0");
    refused("42P01", clean.execute("SELECT * FROM mine").await);
    refused("34000", clean.execute(sqlx::raw_sql("FETCH 1 FROM c")).await);
    refused("26000", clean.execute(sqlx::raw_sql("EXECUTE p")).await);
    equal(one::<i64>(&mut *clean, "SELECT count(*) FROM pg_listening_channels()").await?, 0);
    drop(clean);
    // A transaction that is dropped with its connection is rolled back.
    let mut within = alone.begin().await?;
    within.execute("INSERT INTO item VALUES (1, 'lost')").await?;
    drop(within);
    equal(sqlx::query_scalar::<_, i64>("SELECT count(*) FROM item").fetch_one(&alone).await?, 0);
    alone.close().await;
    Ok(())
}

fn main() {
    let mut checks = checks::asynchronous! {
        "migrates up, down and up again": migrates,
        "values come back as they went, in binary": values::binary,
        "values come back as text": values::text,
        "enums, composites, domains and their arrays are known": values::own_types,
        "rows are written, read, changed and deleted": work,
        "transactions and savepoints nest": transactions,
        "statements are prepared, and what becomes of them when a table changes": prepared,
        "many rows and many statements": batches,
        "copy goes both ways, as text and in binary": copies,
        "SQL cursors are fetched and moved": cursors,
        "notifications arrive, over a lost connection too": notifications,
        "notices arrive": notices,
        "functions and procedures are called": routines,
        "a syntax error leaves the connection usable": failures::mistakes,
        "a violation names its constraint": failures::violations,
        "a running query is cancelled and times out": failures::cancelling,
        "waiting for a lock times out": failures::locks,
        "serializable transactions that cannot both be": failures::serializable,
        "a pool serves many and hands sessions on clean": pools,
    };
    if checks::secured() {
        checks.extend(
            checks::asynchronous! { "a connection is encrypted and its user known": failures::encrypted },
        );
    }
    checks::run_all(&checks)
}
