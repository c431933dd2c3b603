//! How a program connects with SeaORM, and what all its checks use.

use checks::{Outcome, equal, failure, refusal, url};
use sea_orm::sqlx::postgres::PgDatabaseError;
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, DbErr, RuntimeErr, Statement,
    TryGetable, Value,
};

/// A pool of so many sessions.
pub async fn connect_with(url: &str, most: u32) -> Result<DatabaseConnection, DbErr> {
    let mut options = ConnectOptions::new(url);
    options.max_connections(most).sqlx_logging(false);
    Database::connect(options).await
}

/// One session.
pub async fn connect() -> Outcome<DatabaseConnection> {
    Ok(connect_with(&url(), 1).await?)
}

/// What the server said, where it was the server.
pub fn told(error: &DbErr) -> Option<&PgDatabaseError> {
    let (DbErr::Exec(RuntimeErr::SqlxError(error))
    | DbErr::Query(RuntimeErr::SqlxError(error))
    | DbErr::Conn(RuntimeErr::SqlxError(error))) = error
    else {
        return None;
    };
    error.as_database_error()?.try_downcast_ref()
}

/// Fails unless the server refused with this SQLSTATE.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(sqlstate: &str, outcome: Result<T, DbErr>) -> DbErr {
    let error = failure(outcome);
    refusal(sqlstate, told(&error).map(|said| said.code()), &error);
    error
}

/// A statement with its parameters.
pub fn statement(text: &str, parameters: impl IntoIterator<Item = Value>) -> Statement {
    Statement::from_sql_and_values(DbBackend::Postgres, text, parameters)
}

/// The first value of the first row.
pub async fn one<T: TryGetable>(
    on: &impl ConnectionTrait,
    text: &str,
    parameters: impl IntoIterator<Item = Value>,
) -> Outcome<T> {
    let row = on.query_one_raw(statement(text, parameters)).await?;
    Ok(row.ok_or(DbErr::RecordNotFound(text.to_owned()))?.try_get_by_index(0)?)
}

/// The first column of all rows.
pub async fn all<T: TryGetable>(on: &impl ConnectionTrait, text: &str) -> Outcome<Vec<T>> {
    let rows = on.query_all_raw(statement(text, [])).await?;
    rows.iter().map(|row| Ok(row.try_get_by_index(0)?)).collect()
}

pub async fn usable(on: &impl ConnectionTrait) -> Outcome {
    equal(one::<i32>(on, "SELECT 40 + $1", [2.into()]).await?, 42);
    Ok(())
}
