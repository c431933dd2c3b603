//! What the server refuses, what is broken off, and who is let in.

use std::time::Duration;

use checks::{Outcome, equal, failure, url};
use futures_util::future::join;
use tokio_postgres::config::{ChannelBinding, SslMode};
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::{Client, Error, IsolationLevel, NoTls, Transaction};

use crate::client::{all, config, connect, connect_as, encryption, one, refused, root, tls, usable};

pub async fn mistakes() -> Outcome {
    let client = connect().await?;
    let said = refused("42601", client.query("SELEC $1::int", &[&1]).await);
    equal((said.severity(), said.message()), ("ERROR", "syntax error at or near \"SELEC\""));
    equal(said.position(), Some(&ErrorPosition::Original(1)));
    refused("42601", client.simple_query("SELEC 1").await.map(|_| ()));
    refused("42P01", client.query("SELECT * FROM nowhere WHERE a = $1::int", &[&1]).await);
    let said = refused("42703", client.query("SELECT lable FROM item", &[]).await);
    equal(said.hint(), Some("Perhaps you meant to reference the column \"item.label\"."));
    refused("42883", client.query("SELECT nothing($1::int)", &[&1]).await);
    refused("22012", client.query("SELECT 1 / $1::int", &[&0]).await);
    refused("22P02", client.query("SELECT $1::text::int", &[&"x"]).await);
    refused("22021", client.query("SELECT $1::text", &[&"a\0b"]).await);
    usable(&client).await
}

pub async fn violations() -> Outcome {
    let client = connect().await?;
    client.execute("INSERT INTO owner (name) VALUES ('cid')", &[]).await?;
    let said = refused("23505", client.execute("INSERT INTO owner (name) VALUES ($1)", &[&"cid"]).await);
    equal(
        (said.schema(), said.table(), said.constraint()),
        (Some("public"), Some("owner"), Some("owner_name_once")),
    );
    equal(said.detail(), Some("Key (name)=(cid) already exists."));
    let said =
        refused("23503", client.execute("INSERT INTO account (owner_id) VALUES ($1)", &[&-1_i64]).await);
    equal(said.constraint(), Some("account_owner_id_fkey"));
    let said =
        refused("23502", client.execute("INSERT INTO owner (name) VALUES ($1)", &[&None::<&str>]).await);
    equal((said.table(), said.column()), (Some("owner"), Some("name")));
    let said = refused("23514", client.query("SELECT $1::int::small", &[&10]).await);
    equal((said.datatype(), said.constraint()), (Some("small"), Some("small_check")));
    client.execute("DELETE FROM owner", &[]).await?;
    Ok(())
}

pub async fn cancelling() -> Outcome {
    let client = connect().await?;
    let token = client.cancel_token();
    let cancelled = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        if checks::secured() {
            token.cancel_query(tls()?).await?
        } else {
            token.cancel_query(NoTls).await?
        }
        Outcome::Ok(())
    };
    let (outcome, sent) = join(client.query("SELECT pg_sleep(20)", &[]), cancelled).await;
    sent?;
    equal(refused("57014", outcome).message(), "canceling statement due to user request");
    usable(&client).await?;

    let (limited, _) = connect_as(config()?.options("-c statement_timeout=200")).await?;
    let said = refused("57014", limited.query("SELECT pg_sleep($1)", &[&20.0]).await);
    equal(said.message(), "canceling statement due to statement timeout");
    usable(&limited).await?;
    // A future that is dropped leaves its statement running, and the next one waits for it.
    let short =
        tokio::time::timeout(Duration::from_millis(50), limited.query("SELECT pg_sleep(20)", &[])).await;
    equal(short.is_err(), true);
    usable(&limited).await
}

pub async fn locks() -> Outcome {
    let (mut first, second) = (connect().await?, connect().await?);
    first.execute("INSERT INTO item VALUES (5, 'five')", &[]).await?;
    let within = first.transaction().await?;
    within.execute("UPDATE item SET label = 'six' WHERE id = $1", &[&5]).await?;
    second.batch_execute("SET lock_timeout = '200ms'").await?;
    refused("55P03", second.execute("UPDATE item SET label = 'seven' WHERE id = $1", &[&5]).await);
    refused("55P03", second.query("SELECT * FROM item WHERE id = $1 FOR UPDATE NOWAIT", &[&5]).await);
    equal(second.query("SELECT label FROM item WHERE id = $1 FOR UPDATE SKIP LOCKED", &[&5]).await?.len(), 0);
    within.commit().await?;
    equal(one::<String>(&second, "DELETE FROM item WHERE id = $1 RETURNING label", &[&5]).await?, "six");
    Ok(())
}

async fn begin(client: &mut Client) -> Outcome<Transaction<'_>> {
    let within = client.build_transaction().isolation_level(IsolationLevel::Serializable).start().await?;
    all::<String>(&within, "SELECT label FROM item", &[]).await?;
    Ok(within)
}

async fn finish(within: Transaction<'_>, id: i32) -> String {
    let write = async {
        within.execute("UPDATE item SET label = 'c' WHERE id = $1", &[&id]).await?;
        within.commit().await
    };
    match write.await {
        Ok(()) => "done".to_owned(),
        Err(error) => told(&error),
    }
}

fn told(error: &Error) -> String {
    error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned())
}

pub async fn serializable() -> Outcome {
    let (mut first, mut second) = (connect().await?, connect().await?);
    first.batch_execute("INSERT INTO item VALUES (1, 'a'), (2, 'b')").await?;
    let (one, two) = (begin(&mut first).await?, begin(&mut second).await?);
    let (got, other) = join(finish(one, 1), finish(two, 2)).await;
    let mut outcomes = [got, other].map(|said| if said == "40P01" { "40001".to_owned() } else { said });
    outcomes.sort();
    equal(outcomes, ["40001", "done"]);
    usable(&first).await?;
    usable(&second).await?;
    first.execute("DELETE FROM item", &[]).await?;
    Ok(())
}

/// Connections to a secured server, and those that it does not take.
pub async fn encrypted() -> Outcome {
    let (client, _) = connect_as(config()?.channel_binding(ChannelBinding::Require)).await?;
    let version = "SELECT version FROM pg_stat_ssl WHERE ssl AND pid = pg_backend_pid()";
    equal(one::<String>(&client, version, &[]).await?, "TLSv1.3");
    let (unbound, _) = connect_as(config()?.channel_binding(ChannelBinding::Disable)).await?;
    usable(&unbound).await?;
    refused("28P01", config()?.password("wrong").connect(tls()?).await.map(|_| ()));
    refused("28000", config()?.ssl_mode(SslMode::Disable).connect(NoTls).await.map(|_| ()));
    let root = root().expect("the URL names it");
    let other = encryption(Some(&root.replace("root.crt", "other.crt")))?;
    let error = failure(config()?.connect(other).await.map(|_| ()));
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    equal((cause.contains("UnknownIssuer"), url().contains("localhost")), (true, true));
    Ok(())
}
