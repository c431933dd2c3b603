//! tokio-postgres as an application uses it: over rustls, with the pool deadpool.

mod client;
mod failures;
mod streams;
mod values;

use std::time::Duration;

use checks::{Outcome, equal};
use client::{all, config, connect, connect_as, one, refused, tls, usable};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use futures_util::future::{join_all, try_join_all};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{IsolationLevel, NoTls};

/// What the tables and routines are, as SQLx's and Diesel's migrations make them.
const SCHEMA: &str = concat!(
    "DROP SCHEMA public CASCADE; CREATE SCHEMA public;",
    include_str!("../sqlx/migrations/20240101000000_shop.up.sql"),
    include_str!("../sqlx/migrations/20240102000000_routines.up.sql"),
);

async fn migrates() -> Outcome {
    let client = connect().await?;
    client.batch_execute(SCHEMA).await?;
    usable(&client).await
}

async fn work() -> Outcome {
    let client = connect().await?;
    let owner: i64 = one(&client, "INSERT INTO owner (name) VALUES ($1) RETURNING id", &[&"ann"]).await?;
    let detail = serde_json::json!({"k": [1, null]});
    let id: i32 = one(
        &client,
        "INSERT INTO account (owner_id, balance, tags, detail, mood) VALUES ($1, $2::text::numeric, $3, $4, $5::text::mood)
         RETURNING id",
        &[&owner, &"10.50", &vec!["x"], &detail, &"happy"],
    )
    .await?;
    let row = client
        .query_one("SELECT id, balance::text, tags, detail, key FROM account WHERE owner_id = $1", &[&owner])
        .await?;
    equal(row.get::<_, &str>("balance"), "10.50");
    equal(row.get::<_, Vec<String>>("tags"), vec!["x"]);
    equal(row.get::<_, serde_json::Value>(3), detail);
    let column = &row.columns()[4];
    equal((column.name(), column.type_(), column.column_id()), ("key", &Type::UUID, Some(3)));
    let key: uuid::Uuid = row.get("key");
    let among = vec![id, -1];
    let changed = client
        .execute("UPDATE account SET balance = balance * 2 WHERE id = ANY ($1) AND key = $2", &[&among, &key])
        .await?;
    equal(changed, 1);
    equal(client.query_opt("SELECT id FROM account WHERE id = $1", &[&-1]).await?.is_none(), true);
    equal(client.execute("DELETE FROM account", &[]).await?, 1);
    equal(client.execute("DELETE FROM owner", &[]).await?, 1);
    Ok(())
}

async fn transactions() -> Outcome {
    let mut client = connect().await?;
    let mut outer = client.transaction().await?;
    outer.execute("INSERT INTO item VALUES (1, 'kept')", &[]).await?;
    let mut inner = outer.savepoint("before").await?;
    inner.execute("INSERT INTO item VALUES (2, 'gone')", &[]).await?;
    let innermost = inner.transaction().await?;
    refused("23505", innermost.execute("INSERT INTO item VALUES ($1, 'again')", &[&1]).await);
    refused("25P02", innermost.query("SELECT 1", &[]).await);
    // Dropping it rolls back to its savepoint.
    drop(innermost);
    equal(all::<i32>(&inner, "SELECT id FROM item ORDER BY id", &[]).await?, vec![1, 2]);
    inner.rollback().await?;
    let third = outer.transaction().await?;
    third.execute("INSERT INTO item VALUES (3, 'kept')", &[]).await?;
    third.commit().await?;
    outer.commit().await?;
    equal(all::<i32>(&client, "SELECT id FROM item ORDER BY id", &[]).await?, vec![1, 3]);

    for (level, name) in [
        (IsolationLevel::ReadUncommitted, "read uncommitted"),
        (IsolationLevel::ReadCommitted, "read committed"),
        (IsolationLevel::RepeatableRead, "repeatable read"),
        (IsolationLevel::Serializable, "serializable"),
    ] {
        let limited = client
            .build_transaction()
            .isolation_level(level)
            .read_only(true)
            .deferrable(true)
            .start()
            .await?;
        equal(one::<String>(&limited, "SHOW transaction_isolation", &[]).await?, name);
        refused("25006", limited.execute("DELETE FROM item", &[]).await);
        limited.rollback().await?;
    }
    let failed = client.transaction().await?;
    failed.execute("DELETE FROM item", &[]).await?;
    refused("22012", failed.query("SELECT 1 / $1::int", &[&0]).await);
    // PostgreSQL answers COMMIT with ROLLBACK, of which the driver says nothing.
    failed.commit().await?;
    equal(client.execute("DELETE FROM item", &[]).await?, 2);
    Ok(())
}

async fn prepared() -> Outcome {
    let client = connect().await?;
    let statement = client.prepare("SELECT label, id FROM item WHERE id = $1").await?;
    equal(statement.params(), [Type::INT4]);
    equal(statement.columns()[0].type_(), &Type::TEXT);
    equal(client.query(&statement, &[&1]).await?.len(), 0);
    refused("42601", client.prepare("SELEC $1").await.map(|_| ()));
    usable(&client).await?;
    let typed = client.prepare_typed("SELECT $1 + $2", &[Type::INT8]).await?;
    equal(typed.params(), [Type::INT8, Type::INT8]);
    equal(client.query_one(&typed, &[&1_i64, &2_i64]).await?.get::<_, i64>(0), 3);

    client.execute("INSERT INTO item VALUES (1, 'a')", &[]).await?;
    let every = client.prepare("SELECT * FROM item WHERE id = $1").await?;
    equal(client.query_one(&every, &[&1]).await?.len(), 2);
    let other = connect().await?;
    other.batch_execute("ALTER TABLE item ADD COLUMN more int").await?;
    let said = refused("0A000", client.query(&every, &[&1]).await);
    equal(said.message(), "cached plan must not change result type");
    equal(said.routine(), Some("RevalidateCachedQuery"));
    // What names its columns goes on.
    equal(client.query(&statement, &[&1]).await?.len(), 1);
    let anew = client.prepare("SELECT * FROM item WHERE id = $1").await?;
    equal(client.query_one(&anew, &[&1]).await?.len(), 3);
    drop(every);
    usable(&client).await?;
    let kept = "SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%FROM item WHERE%' AND statement !~ 'LIKE' ORDER BY 1";
    equal(
        all::<String>(&client, kept, &[]).await?,
        vec!["SELECT * FROM item WHERE id = $1", "SELECT label, id FROM item WHERE id = $1"],
    );
    other.batch_execute("ALTER TABLE item DROP COLUMN more; DELETE FROM item").await?;
    Ok(())
}

/// Calls that are under way at once go as a pipeline, and each has a Sync of its own.
async fn pipelines() -> Outcome {
    let client = connect().await?;
    let statement = client.prepare("INSERT INTO item VALUES ($1, $2) RETURNING id * 2").await?;
    let rows =
        try_join_all((0..300).map(|n| {
            let (client, statement) = (&client, &statement);
            async move {
                client.query_one(statement, &[&n, &format!("l{n}")]).await.map(|row| row.get::<_, i32>(0))
            }
        }))
        .await?;
    equal(rows, (0..300).map(|n| n * 2).collect::<Vec<i32>>());
    let division = client.prepare("SELECT 12 / $1::int").await?;
    let divisors = [1, 0, 3, 0, 5];
    let quotients = join_all(divisors.iter().map(|divisor| {
        let (client, division) = (&client, &division);
        async move {
            match client.query_one(division, &[divisor]).await {
                Ok(row) => Ok(row.get::<_, i32>(0)),
                Err(error) => Err(error.code().cloned()),
            }
        }
    }))
    .await;
    let by_zero = || Err(Some(SqlState::DIVISION_BY_ZERO));
    equal(quotients, vec![Ok(12), by_zero(), Ok(4), by_zero(), Ok(2)]);
    equal(client.execute("DELETE FROM item", &[]).await?, 300);
    Ok(())
}

async fn batches() -> Outcome {
    let client = connect().await?;
    client
        .batch_execute("INSERT INTO item VALUES (1, 'a'); INSERT INTO item VALUES (2, 'b'), (3, ';')")
        .await?;
    // One transaction of its own: what came before the failure is undone with it.
    let said = client.batch_execute("DELETE FROM item; SELECT 1 / 0; SELECT 2").await;
    refused("22012", said);
    equal(one::<i64>(&client, "SELECT count(*) FROM item", &[]).await?, 3);
    let (numbers, labels): (Vec<i32>, Vec<Option<&str>>) =
        ((4..8).collect(), vec![Some("d"), None, Some("f"), Some("")]);
    let text = "INSERT INTO item SELECT * FROM unnest($1::int[], $2::text[])";
    equal(client.execute(text, &[&numbers, &labels]).await?, 4);
    equal(client.execute("DELETE FROM item WHERE label <> ''", &[]).await?, 5);
    equal(client.execute("DELETE FROM item", &[]).await?, 2);
    Ok(())
}

async fn routines() -> Outcome {
    let mut client = connect().await?;
    let owner: i64 = one(&client, "INSERT INTO owner (name) VALUES ('bob') RETURNING id", &[]).await?;
    let account: i32 =
        one(&client, "INSERT INTO account (owner_id) VALUES ($1) RETURNING id", &[&owner]).await?;
    equal(one::<String>(&client, "SELECT deposit($1, 2.5)::text", &[&account]).await?, "2.50");
    equal(one::<String>(&client, "CALL rename($1, $2)", &[&owner, &"bert"]).await?, "BERT");
    let said = refused("P0002", client.query("SELECT deposit($1, 1)", &[&-1]).await);
    equal(said.message(), "no account -1");
    equal(said.where_(), Some("PL/pgSQL function deposit(integer,numeric) line 5 at RAISE"));
    client.batch_execute("DELETE FROM account; DELETE FROM owner").await?;

    let within = client.transaction().await?;
    let row = within.query_one("CALL split($1, NULL, 'c')", &[&"abc"]).await?;
    equal(row.columns()[1].type_(), &Type::REFCURSOR);
    equal((row.get::<_, &str>("p_first"), row.get::<_, values::CursorName>(1).0), ("a", "c".to_owned()));
    equal(all::<String>(&within, "FETCH ALL FROM c", &[]).await?, vec!["bc"]);
    within.commit().await?;
    Ok(())
}

fn pool(size: usize) -> Outcome<Pool> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Clean };
    let manager = if checks::secured() {
        Manager::from_config(config()?, tls()?, recycling)
    } else {
        Manager::from_config(config()?, NoTls, recycling)
    };
    Ok(Pool::builder(manager).max_size(size).build()?)
}

async fn pools() -> Outcome {
    let pool = pool(4)?;
    let got = try_join_all((0..40).map(|n: i32| {
        let pool = pool.clone();
        async move {
            let client = pool.get().await?;
            let statement = client.prepare_cached("SELECT $1::int FROM pg_sleep(0.01)").await?;
            Outcome::Ok(client.query_one(&statement, &[&n]).await?.get::<_, i32>(0))
        }
    }))
    .await?;
    equal(got, (0..40).collect::<Vec<i32>>());
    equal(pool.status().size, 4);

    // Whoever gets the session next finds nothing of this.
    let alone = self::pool(1)?;
    let dirty = alone.get().await?;
    dirty
        .batch_execute("SET statement_timeout = 1234; CREATE TEMP TABLE mine (a int); LISTEN news; SELECT pg_advisory_lock(7)")
        .await?;
    dirty.batch_execute("DECLARE c CURSOR WITH HOLD FOR SELECT 1").await?;
    let session: i32 = one(&**dirty, "SELECT pg_backend_pid()", &[]).await?;
    drop(dirty);
    let clean = alone.get().await?;
    equal(one::<i32>(&**clean, "SELECT pg_backend_pid()", &[]).await?, session);
    equal(one::<String>(&**clean, "SHOW statement_timeout", &[]).await?, "0");
    refused("42P01", clean.query("SELECT * FROM mine", &[]).await);
    refused("34000", clean.query("FETCH 1 FROM c", &[]).await);
    equal(one::<i64>(&**clean, "SELECT count(*) FROM pg_listening_channels()", &[]).await?, 0);
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
    equal(one::<i64>(&**clean, locks, &[]).await?, 0);
    Ok(())
}

async fn notifications() -> Outcome {
    let (listener, told) = connect_as(&config()?).await?;
    let (sender, heard) = connect_as(&config()?).await?;
    listener.batch_execute("LISTEN news").await?;
    sender.execute("SELECT pg_notify('news', $1)", &[&"first"]).await?;
    let pid: i32 = one(&sender, "SELECT pg_backend_pid()", &[]).await?;
    // The listener asks for nothing in the meantime.
    let got = loop {
        if let Some(got) = told.notifications.lock().expect("nobody panics").pop() {
            break got;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    equal((got.process_id(), got.channel(), got.payload()), (pid, "news", "first"));
    sender.batch_execute("DO $$ BEGIN RAISE NOTICE 'hello %', 1 USING HINT = 'wave'; END $$").await?;
    let notices = heard.notices.lock().expect("nobody panics");
    let said: Vec<_> = notices.iter().map(|one| (one.severity(), one.message(), one.hint())).collect();
    equal(said, vec![("NOTICE", "hello 1", Some("wave"))]);
    Ok(())
}

fn main() {
    let mut checks = checks::asynchronous! {
        "migrates with many statements at once": migrates,
        "values come back as they went, in binary": values::binary,
        "values come back as text": values::text,
        "enums, composites, domains and their arrays are known": values::own_types,
        "rows are written, read, changed and deleted": work,
        "transactions and savepoints nest": transactions,
        "statements are prepared, and what becomes of them when a table changes": prepared,
        "calls at once go as a pipeline": pipelines,
        "many rows and many statements": batches,
        "copy goes both ways": streams::copies,
        "rows are copied in binary": streams::packed,
        "portals give their rows in steps": streams::portals,
        "SQL cursors are fetched and moved": streams::cursors,
        "notifications and notices arrive": notifications,
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
