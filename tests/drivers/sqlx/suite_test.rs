//! What sqlx's tests take from its crate sqlx-test, which no registry has.

use sqlx::pool::PoolOptions;
use sqlx::{Connection, Database, Pool};

fn url() -> String {
    std::env::var("DATABASE_URL").expect("DATABASE_URL names the server")
}

/// Nothing needs to be set up here.
pub fn setup_if_needed() {}

pub async fn new<DB: Database>() -> sqlx::Result<DB::Connection> {
    DB::Connection::connect(&url()).await
}

pub async fn pool<DB: Database>() -> anyhow::Result<Pool<DB>> {
    Ok(PoolOptions::new().max_connections(5).connect(&url()).await?)
}

/// Values that go as parameters and come back, in binary, and come as text from simple queries.
#[macro_export]
macro_rules! test_type {
    ($name:ident($($rest:tt)*)) => {
        $crate::test_type!($name<$name>($($rest)*));
    };
    ($name:ident<$ty:ty>($db:ident, $($text:literal == $value:expr),+ $(,)?)) => {
        $crate::test_prepared_type!($name<$ty>($db, $($text == $value),+));
        $crate::test_unprepared_type!($name<$ty>($db, $($text == $value),+));
    };
    ($name:ident<$ty:ty>($db:ident, $sql:literal, $($text:literal == $value:expr),+ $(,)?)) => {
        $crate::test_prepared_type!($name<$ty>($db, $sql, $($text == $value),+));
        $crate::test_unprepared_type!($name<$ty>($db, $($text == $value),+));
    };
    // Geometric values, and arrays of them, have an operator of their own for being the same.
    ($name:ident<$ty:ty>($db:ident, $($text:literal ~= $value:expr),+ $(,)?)) => {
        $crate::test_prepared_type!($name<$ty>($db, "SELECT ({0} ~= $1)::int, {0}, $2", $($text == $value),+));
    };
    ($name:ident<$ty:ty>($db:ident, $($text:literal @= $value:expr),+ $(,)?)) => {
        $crate::test_prepared_type!($name<$ty>(
            $db,
            "SELECT (SELECT bool_and(a ~= b) FROM unnest({0}, $1) AS both_of(a, b))::int, {0}, $2",
            $($text == $value),+
        ));
    };
}

/// Values that go as parameters and come back: the query says whether the server takes them for the same.
#[macro_export]
macro_rules! test_prepared_type {
    ($name:ident<$ty:ty>($db:ident, $($text:literal == $value:expr),+ $(,)?)) => {
        $crate::test_prepared_type!($name<$ty>(
            $db,
            "SELECT ({0} IS NOT DISTINCT FROM $1)::int, {0}, $2",
            $($text == $value),+
        ));
    };
    ($name:ident<$ty:ty>($db:ident, $sql:literal, $($text:literal == $value:expr),+ $(,)?)) => {
        paste::item! {
            #[sqlx_macros::test]
            async fn [<test_prepared_type_ $name>]() -> anyhow::Result<()> {
                use sqlx::Row;
                let mut connection = $crate::new::<$db>().await?;
                $(
                    let query = sqlx::query(sqlx::AssertSqlSafe(format!($sql, $text))).bind($value).bind($value);
                    let row = query.fetch_one(&mut connection).await?;
                    assert_eq!(1, row.try_get::<i32, _>(0)?, "{}", $text);
                    assert_eq!($value, row.try_get::<$ty, _>(1)?, "{}", $text);
                    assert_eq!($value, row.try_get::<$ty, _>(2)?, "{}", $text);
                )+
                Ok(())
            }
        }
    };
}

/// Values that come in binary, and as text.
#[macro_export]
macro_rules! test_decode_type {
    ($name:ident<$ty:ty>($db:ident, $($text:literal == $value:expr),+ $(,)?)) => {
        paste::item! {
            #[sqlx_macros::test]
            async fn [<test_prepared_decode_type_ $name>]() -> anyhow::Result<()> {
                use sqlx::Row;
                let mut connection = $crate::new::<$db>().await?;
                $(
                    let text = sqlx::AssertSqlSafe(concat!("SELECT ", $text).to_owned());
                    let row = sqlx::query(text).fetch_one(&mut connection).await?;
                    assert_eq!($value, row.try_get::<$ty, _>(0)?, "{}", $text);
                )+
                Ok(())
            }
        }
        $crate::test_unprepared_type!($name<$ty>($db, $($text == $value),+));
    };
}

/// Values that come as text.
#[macro_export]
macro_rules! test_unprepared_type {
    ($name:ident<$ty:ty>($db:ident, $($text:literal == $value:expr),+ $(,)?)) => {
        paste::item! {
            #[sqlx_macros::test]
            async fn [<test_unprepared_type_ $name>]() -> anyhow::Result<()> {
                use sqlx::{Executor, Row};
                let mut connection = $crate::new::<$db>().await?;
                $(
                    let text = sqlx::AssertSqlSafe(concat!("SELECT ", $text).to_owned());
                    let row = connection.fetch_one(text).await?;
                    assert_eq!($value, row.try_get::<$ty, _>(0)?, "{}", $text);
                )+
                Ok(())
            }
        }
    };
}
