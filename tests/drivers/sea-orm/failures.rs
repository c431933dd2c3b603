//! What the server refuses, what is broken off, and who is let in.

use std::time::Duration;

use checks::{Outcome, equal, failure, url};
use futures_util::future::join;
use sea_orm::ActiveValue::Set;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{LockBehavior, LockType};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, IsolationLevel, QuerySelect, SqlErr,
    TransactionTrait,
};

use crate::entities::{account, item, owner};
use crate::session::{connect, connect_with, one, refused, statement, told, usable};

pub async fn mistakes() -> Outcome {
    let db = connect().await?;
    refused("42601", db.execute_unprepared("SELEC 1").await);
    refused("42601", db.query_one_raw(statement("SELEC $1", [1.into()])).await.map(|_| ()));
    refused("42P01", db.execute_unprepared("SELECT * FROM nowhere").await);
    refused("22012", db.query_one_raw(statement("SELECT 1 / $1", [0.into()])).await.map(|_| ()));
    refused("22021", db.query_one_raw(statement("SELECT $1", ["a\0b".into()])).await.map(|_| ()));
    usable(&db).await
}

pub async fn violations() -> Outcome {
    let db = connect().await?;
    let cid = || owner::ActiveModel { name: Set("cid".to_owned()), ..Default::default() };
    cid().insert(&db).await?;
    let error = refused("23505", cid().insert(&db).await);
    let said = told(&error).expect("the server refused");
    equal((said.table(), said.constraint()), (Some("owner"), Some("owner_name_once")));
    equal(said.detail(), Some("Key (name)=(cid) already exists."));
    let text = "duplicate key value violates unique constraint \"owner_name_once\"";
    equal(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(text.to_owned())));
    let orphan = account::ActiveModel { owner_id: Set(-1), ..Default::default() };
    let error = refused("23503", orphan.insert(&db).await);
    equal(matches!(error.sql_err(), Some(SqlErr::ForeignKeyConstraintViolation(_))), true);
    let id: i64 = one(&db, "SELECT id FROM owner", []).await?;
    let poor =
        account::ActiveModel { owner_id: Set(id), balance: Set(Decimal::NEGATIVE_ONE), ..Default::default() };
    let error = refused("23514", poor.insert(&db).await);
    equal(told(&error).and_then(|said| said.constraint()), Some("account_balance_check"));
    equal(owner::Entity::delete_many().exec(&db).await?.rows_affected, 1);
    Ok(())
}

pub async fn cancelling() -> Outcome {
    let (db, other) = (connect().await?, connect().await?);
    let session: i32 = one(&db, "SELECT pg_backend_pid()", []).await?;
    let cancelled = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        one::<bool>(&other, "SELECT pg_cancel_backend($1)", [session.into()]).await
    };
    let (outcome, sent) = join(db.execute_raw(statement("SELECT pg_sleep(20)", [])), cancelled).await;
    equal(sent?, true);
    refused("57014", outcome);
    usable(&db).await?;
    let limited = connect_with(&format!("{}&options=-c%20statement_timeout=200", url()), 1).await?;
    refused("57014", limited.execute_raw(statement("SELECT pg_sleep(20)", [])).await);
    usable(&limited).await
}

pub async fn locks() -> Outcome {
    let (first, second) = (connect().await?, connect().await?);
    let five = item::ActiveModel { id: Set(5), label: Set(Some("five".to_owned())) }.insert(&first).await?;
    let within = first.begin().await?;
    let mut six: item::ActiveModel = five.into();
    six.label = Set(Some("six".to_owned()));
    six.update(&within).await?;
    second.execute_unprepared("SET lock_timeout = '200ms'").await?;
    let seven = item::ActiveModel { id: Set(5), label: Set(Some("seven".to_owned())) };
    refused("55P03", seven.update(&second).await);
    let find = || item::Entity::find_by_id(5);
    refused("55P03", find().lock_with_behavior(LockType::Update, LockBehavior::Nowait).one(&second).await);
    equal(find().lock_with_behavior(LockType::Update, LockBehavior::SkipLocked).one(&second).await?, None);
    within.commit().await?;
    equal(find().one(&second).await?.and_then(|item| item.label).as_deref(), Some("six"));
    equal(item::Entity::delete_by_id(5).exec(&second).await?.rows_affected, 1);
    Ok(())
}

async fn begin(db: &DatabaseConnection) -> Outcome<DatabaseTransaction> {
    let within = db.begin_with_config(Some(IsolationLevel::Serializable), None).await?;
    item::Entity::find().all(&within).await?;
    Ok(within)
}

async fn finish(within: DatabaseTransaction, id: i32) -> String {
    let write = item::ActiveModel { id: Set(id), label: Set(Some("c".to_owned())) }.update(&within).await;
    let outcome = match write {
        Ok(_) => within.commit().await,
        Err(error) => within.rollback().await.and(Err(error)),
    };
    match outcome {
        Ok(()) => "done".to_owned(),
        Err(error) => told(&error).map_or_else(|| error.to_string(), |said| said.code().to_owned()),
    }
}

pub async fn serializable() -> Outcome {
    let (first, second) = (connect().await?, connect().await?);
    first.execute_unprepared("INSERT INTO item VALUES (1, 'a'), (2, 'b')").await?;
    let (one, two) = (begin(&first).await?, begin(&second).await?);
    let (got, other) = join(finish(one, 1), finish(two, 2)).await;
    let mut outcomes = [got, other].map(|said| if said == "40P01" { "40001".to_owned() } else { said });
    outcomes.sort();
    equal(outcomes, ["40001", "done"]);
    usable(&first).await?;
    usable(&second).await?;
    equal(item::Entity::delete_many().exec(&first).await?.rows_affected, 2);
    Ok(())
}

/// Connections to a secured server, and those that it does not take.
pub async fn encrypted() -> Outcome {
    let db = connect().await?;
    let version = "SELECT version FROM pg_stat_ssl WHERE ssl AND pid = pg_backend_pid()";
    equal(one::<String>(&db, version, []).await?, "TLSv1.3");
    for (word, other, said) in [
        (":secret@", ":wrong@", "password authentication failed"),
        ("verify-full", "disable", "no pg_hba.conf entry"),
        ("root.crt", "other.crt", "UnknownIssuer"),
    ] {
        let error = failure(connect_with(&url().replace(word, other), 1).await.map(|_| ()));
        equal((said, error.to_string().contains(said)), (said, true));
    }
    Ok(())
}
