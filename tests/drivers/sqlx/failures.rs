//! What the server refuses, what is broken off, and who is let in.

use std::time::Duration;

use checks::{Outcome, equal, failure, url};
use futures_util::future::join;
use sqlx::error::ErrorKind;
use sqlx::postgres::{PgConnectOptions, PgErrorPosition};
use sqlx::{ConnectOptions, Connection, Executor, PgConnection, PgTransaction};

use crate::session::{all, connect, one, options, refused, usable};

pub async fn mistakes() -> Outcome {
    let mut connection = connect().await?;
    let said = refused("42601", sqlx::query("SELEC $1").bind(1).execute(&mut connection).await);
    equal(said.message(), "syntax error at or near \"SELEC\"");
    equal(said.position(), Some(PgErrorPosition::Original(1)));
    refused("42601", connection.execute(sqlx::raw_sql("SELEC 1")).await);
    refused("42P01", connection.execute("SELECT * FROM nowhere").await);
    let said = refused("42703", connection.execute("SELECT lable FROM item").await);
    equal(said.hint(), Some("Perhaps you meant to reference the column \"item.label\"."));
    refused("42883", sqlx::query("SELECT nothing($1)").bind(1).execute(&mut connection).await);
    refused("22012", sqlx::query("SELECT 1 / $1").bind(0).execute(&mut connection).await);
    refused("22P02", sqlx::query("SELECT $1::int").bind("x").execute(&mut connection).await);
    refused("22021", sqlx::query("SELECT $1").bind("a\0b").execute(&mut connection).await);
    usable(&mut connection).await
}

pub async fn violations() -> Outcome {
    let mut connection = connect().await?;
    connection.execute("INSERT INTO owner (name) VALUES ('cid')").await?;
    let again =
        sqlx::query("INSERT INTO owner (name) VALUES ($1)").bind("cid").execute(&mut connection).await;
    let said = refused("23505", again);
    equal(
        (said.schema(), said.table(), said.constraint()),
        (Some("public"), Some("owner"), Some("owner_name_once")),
    );
    equal(said.detail(), Some("Key (name)=(cid) already exists."));
    let error = failure(connection.execute("INSERT INTO account (owner_id) VALUES (-1)").await);
    let said = error.as_database_error().expect("the server refused");
    equal((said.kind(), said.constraint()), (ErrorKind::ForeignKeyViolation, Some("account_owner_id_fkey")));
    let nothing =
        sqlx::query("INSERT INTO owner (name) VALUES ($1)").bind(None::<&str>).execute(&mut connection).await;
    let said = refused("23502", nothing);
    equal((said.table(), said.column()), (Some("owner"), Some("name")));
    let said = refused("23514", sqlx::query("SELECT $1::int::small").bind(10).execute(&mut connection).await);
    equal((said.data_type(), said.constraint()), (Some("small"), Some("small_check")));
    connection.execute("DELETE FROM owner").await?;
    Ok(())
}

pub async fn cancelling() -> Outcome {
    let (mut connection, mut other) = (connect().await?, connect().await?);
    let session: i32 = one(&mut connection, "SELECT pg_backend_pid()").await?;
    let cancelled = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        sqlx::query("SELECT pg_cancel_backend($1)").bind(session).execute(&mut other).await
    };
    let (outcome, sent) = join(connection.execute("SELECT pg_sleep(20)"), cancelled).await;
    sent?;
    equal(refused("57014", outcome).message(), "canceling statement due to user request");
    usable(&mut connection).await?;

    let mut limited = options()?.options([("statement_timeout", "200")]).connect().await?;
    let sleep = || sqlx::query("SELECT pg_sleep($1)").bind(20_f64);
    let said = refused("57014", sleep().execute(&mut limited).await);
    equal(said.message(), "canceling statement due to statement timeout");
    usable(&mut limited).await?;
    // A future that is dropped leaves its statement running, and the next one gets its answer first.
    let short = tokio::time::timeout(Duration::from_millis(50), sleep().execute(&mut limited)).await;
    equal(short.is_err(), true);
    refused("57014", limited.execute("SELECT 1").await);
    usable(&mut limited).await
}

pub async fn locks() -> Outcome {
    let (mut first, mut second) = (connect().await?, connect().await?);
    first.execute("INSERT INTO item VALUES (5, 'five')").await?;
    let mut within = first.begin().await?;
    within.execute("UPDATE item SET label = 'six' WHERE id = 5").await?;
    second.execute("SET lock_timeout = '200ms'").await?;
    refused("55P03", second.execute("UPDATE item SET label = 'seven' WHERE id = 5").await);
    refused("55P03", second.execute("SELECT * FROM item WHERE id = 5 FOR UPDATE NOWAIT").await);
    let free: Vec<String> =
        all(&mut second, "SELECT label FROM item WHERE id = 5 FOR UPDATE SKIP LOCKED").await?;
    equal(free.len(), 0);
    within.commit().await?;
    equal(one::<String>(&mut second, "DELETE FROM item WHERE id = 5 RETURNING label").await?, "six");
    Ok(())
}

async fn begin(connection: &mut PgConnection) -> Outcome<PgTransaction<'_>> {
    let mut within = connection.begin_with("BEGIN ISOLATION LEVEL SERIALIZABLE").await?;
    all::<String>(&mut *within, "SELECT label FROM item").await?;
    Ok(within)
}

async fn finish(mut within: PgTransaction<'_>, id: i32) -> String {
    let write = sqlx::query("UPDATE item SET label = 'c' WHERE id = $1").bind(id).execute(&mut *within).await;
    let outcome = match write {
        Ok(_) => within.commit().await,
        Err(error) => within.rollback().await.and(Err(error)),
    };
    match outcome {
        Ok(()) => "done".to_owned(),
        Err(error) => match error.as_database_error().and_then(|error| error.code()) {
            Some(code) => code.into_owned(),
            None => error.to_string(),
        },
    }
}

pub async fn serializable() -> Outcome {
    let (mut first, mut second) = (connect().await?, connect().await?);
    first.execute("INSERT INTO item VALUES (1, 'a'), (2, 'b')").await?;
    let (one, two) = (begin(&mut first).await?, begin(&mut second).await?);
    let (got, other) = join(finish(one, 1), finish(two, 2)).await;
    let mut outcomes = [got, other].map(|said| if said == "40P01" { "40001".to_owned() } else { said });
    outcomes.sort();
    equal(outcomes, ["40001", "done"]);
    usable(&mut first).await?;
    usable(&mut second).await?;
    first.execute("DELETE FROM item").await?;
    Ok(())
}

/// Connections to a secured server, and those that it does not take.
pub async fn encrypted() -> Outcome {
    let mut connection = connect().await?;
    let version = "SELECT version FROM pg_stat_ssl WHERE ssl AND pid = pg_backend_pid()";
    equal(one::<String>(&mut connection, version).await?, "TLSv1.3");
    refused("28P01", options()?.password("wrong").connect().await.map(|_| ()));
    let plain: PgConnectOptions = url().replace("verify-full", "disable").parse()?;
    refused("28000", plain.connect().await.map(|_| ()));
    let other: PgConnectOptions = url().replace("root.crt", "other.crt").parse()?;
    equal(
        matches!(failure(other.connect().await.map(|_| ())), sqlx::Error::Tls(_) | sqlx::Error::Io(_)),
        true,
    );
    Ok(())
}
