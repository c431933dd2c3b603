//! How a program connects with SQLx, and what all its checks use.

use std::sync::{Arc, Mutex, OnceLock};

use checks::{Outcome, equal, failure, refusal, url};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgDatabaseError};
use sqlx::{ConnectOptions, Decode, PgExecutor, Postgres, Type};

/// All of table item, as one value.
pub const CONTENT: &str = "SELECT md5(string_agg(item::text, '|' ORDER BY id)) FROM item";

/// What SQLx makes of the URL, its certificates too.
pub fn options() -> Outcome<PgConnectOptions> {
    Ok(url().parse()?)
}

pub async fn connect() -> Outcome<PgConnection> {
    Ok(options()?.connect().await?)
}

/// Fails unless the server refused with this SQLSTATE; all that it said.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(sqlstate: &str, outcome: Result<T, sqlx::Error>) -> Box<PgDatabaseError> {
    let error = failure(outcome);
    let said = error.as_database_error().and_then(|error| error.code()).map(|code| code.into_owned());
    refusal(sqlstate, said.as_deref(), &error);
    let sqlx::Error::Database(error) = error else { panic!("{error}: not by the server") };
    error.downcast()
}

/// The first column of all rows.
pub async fn all<T>(on: impl PgExecutor<'_>, text: &'static str) -> Outcome<Vec<T>>
where
    T: for<'r> Decode<'r, Postgres> + Type<Postgres> + Send + Unpin,
{
    Ok(sqlx::query_scalar(text).fetch_all(on).await?)
}

/// The first value of the first row.
pub async fn one<T>(on: impl PgExecutor<'_>, text: &'static str) -> Outcome<T>
where
    T: for<'r> Decode<'r, Postgres> + Type<Postgres> + Send + Unpin,
{
    Ok(sqlx::query_scalar(text).fetch_one(on).await?)
}

pub async fn usable(on: impl PgExecutor<'_>) -> Outcome {
    let sum: i32 = sqlx::query_scalar("SELECT 40 + $1").bind(2).fetch_one(on).await?;
    equal(sum, 42);
    Ok(())
}

type Heard = Arc<Mutex<Vec<String>>>;

/// SQLx hands notices to the log, and to nobody else.
struct Notices(Heard);

impl log::Log for Notices {
    fn enabled(&self, of: &log::Metadata<'_>) -> bool {
        of.target() == "sqlx::postgres::notice"
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.lock().expect("nobody panics").push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// What notices say from now on.
pub fn hear_notices() -> Heard {
    static NOTICES: OnceLock<Notices> = OnceLock::new();
    let notices = NOTICES.get_or_init(|| Notices(Heard::default()));
    log::set_max_level(log::LevelFilter::Info);
    // A logger that is there already is this one.
    let _ = log::set_logger(notices);
    notices.0.clone()
}
