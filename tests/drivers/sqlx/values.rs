//! Values come back as they went: in binary by default, and as text from simple queries.

use std::fmt::Debug;

use checks::{Outcome, equal};
use rust_decimal::Decimal;
use serde_json::json;
use sqlx::postgres::types::{Oid, PgInterval};
use sqlx::types::Json;
use sqlx::{
    AssertSqlSafe, Column, Decode, Encode, Executor, PgConnection, Postgres, Row, Type, TypeInfo, ValueRef,
};
use time::{Date, Month, PrimitiveDateTime, Time};
use uuid::Uuid;

use crate::session::{connect, one};

#[derive(Clone, Copy, Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "mood", rename_all = "lowercase")]
pub enum Mood {
    Sad,
    Ok,
    Happy,
}

#[derive(Clone, Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "place")]
pub struct Place {
    street: String,
    number: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "small")]
pub struct Small(i32);

async fn comes_back<T>(on: &mut PgConnection, kind: &str, value: T) -> Outcome
where
    T: for<'q> Encode<'q, Postgres> + for<'r> Decode<'r, Postgres> + Type<Postgres>,
    T: Clone + Debug + PartialEq + Send + Unpin + 'static,
{
    let text = format!("SELECT $1::{kind}, $2::{kind}");
    let row = sqlx::query(AssertSqlSafe(text)).bind(value.clone()).bind(None::<T>).fetch_one(on).await?;
    equal(row.try_get::<T, _>(0)?, value);
    equal(row.try_get::<Option<T>, _>(1)?, None);
    Ok(())
}

pub async fn binary() -> Outcome {
    let mut connection = connect().await?;
    let on = &mut connection;
    comes_back(on, "bool", true).await?;
    comes_back(on, "\"char\"", 7_i8).await?;
    comes_back(on, "smallint", i16::MIN).await?;
    comes_back(on, "int", i32::MIN).await?;
    comes_back(on, "bigint", i64::MIN).await?;
    comes_back(on, "oid", Oid(u32::MAX)).await?;
    comes_back(on, "real", 0.1_f32).await?;
    comes_back(on, "float8", f64::MIN_POSITIVE).await?;
    for number in ["0", "12345678.90123", "-0.00000001", "79228162514264337593543950335"] {
        comes_back(on, "numeric", number.parse::<Decimal>()?).await?;
    }
    comes_back(on, "text", "žluťoučký \n'\\".to_owned()).await?;
    comes_back(on, "varchar", "x".repeat(100_000)).await?;
    comes_back(on, "char(4)", "ab  ".to_owned()).await?;
    comes_back(on, "name", "n".to_owned()).await?;
    comes_back(on, "bytea", vec![0_u8, 255, 1]).await?;
    let day = Date::from_calendar_date(2024, Month::February, 29)?;
    let noon = Time::from_hms_micro(12, 0, 1, 5)?;
    comes_back(on, "date", day).await?;
    comes_back(on, "time", noon).await?;
    comes_back(on, "timestamp", PrimitiveDateTime::new(day, noon)).await?;
    comes_back(on, "timestamptz", PrimitiveDateTime::new(day, noon).assume_utc()).await?;
    comes_back(on, "interval", PgInterval { months: 1, days: -2, microseconds: 3 }).await?;
    comes_back(on, "uuid", Uuid::from_u128(1 << 120 | 16)).await?;
    comes_back(on, "jsonb", json!({"a": [1.5, null, {"b": "ž"}]})).await?;
    comes_back(on, "json", Json(vec![true])).await?;
    comes_back(on, "int[]", vec![Some(1), None, Some(3)]).await?;
    comes_back(on, "text[]", ["a", "b,c", "\"", "NULL"].map(str::to_owned).to_vec()).await?;
    comes_back(on, "numeric[]", vec![Decimal::new(15, 1)]).await?;
    comes_back(on, "timestamptz[]", vec![PrimitiveDateTime::new(day, noon).assume_utc()]).await?;
    equal(one::<Vec<i32>>(&mut *on, "SELECT '{}'::int[]").await?, Vec::<i32>::new());
    let (number, label): (i32, String) = one::<(i32, String)>(&mut *on, "SELECT ROW(1, 'x y'::text)").await?;
    equal((number, label.as_str()), (1, "x y"));
    Ok(())
}

pub async fn text() -> Outcome {
    let mut connection = connect().await?;
    let text = "SELECT true, (-7)::smallint, 1e100::float8, 1.10 * 1.10, '\\x00ff'::bytea, '{1,NULL}'::int[], '{\"a\":1}'::jsonb,
        '2024-02-29'::date, '12:00:01.5'::time, '2024-02-29 12:00:01.000005'::timestamp, 'x'::text, NULL,
        'c56a4180-65aa-42ec-a945-5fd21dec0538'::uuid, ARRAY['a b', 'c']";
    let row = connection.fetch_one(sqlx::raw_sql(text)).await?;
    equal(row.columns().iter().all(|column| column.name() != "nothing"), true);
    equal(row.try_get_raw(0)?.as_bytes().ok(), Some(&b"t"[..]));
    equal(
        (row.try_get::<bool, _>(0)?, row.try_get::<i16, _>(1)?, row.try_get::<f64, _>(2)?),
        (true, -7, 1e100),
    );
    equal(
        (row.try_get::<Decimal, _>(3)?, row.try_get::<Vec<u8>, _>(4)?),
        (Decimal::new(12100, 4), vec![0, 255]),
    );
    equal(row.try_get::<Vec<Option<i32>>, _>(5)?, vec![Some(1), None]);
    equal(row.try_get::<serde_json::Value, _>(6)?, json!({"a": 1}));
    let day = Date::from_calendar_date(2024, Month::February, 29)?;
    equal(
        (row.try_get::<Date, _>(7)?, row.try_get::<Time, _>(8)?),
        (day, Time::from_hms_milli(12, 0, 1, 500)?),
    );
    equal(
        row.try_get::<PrimitiveDateTime, _>(9)?,
        PrimitiveDateTime::new(day, Time::from_hms_micro(12, 0, 1, 5)?),
    );
    equal((row.try_get::<&str, _>(10)?, row.try_get_raw(11)?.is_null()), ("x", true));
    equal(row.try_get::<Uuid, _>(12)?, Uuid::from_u128(0xc56a4180_65aa_42ec_a945_5fd21dec0538));
    equal(row.try_get::<Vec<String>, _>(13)?, vec!["a b", "c"]);
    Ok(())
}

pub async fn own_types() -> Outcome {
    let mut connection = connect().await?;
    let on = &mut connection;
    comes_back(on, "mood", Mood::Happy).await?;
    // What is of a domain comes as its plain type.
    let nine = sqlx::query_scalar::<_, i32>("SELECT $1").bind(Small(9)).fetch_one(&mut *on).await?;
    equal(nine, 9);
    let place = Place { street: "Main".to_owned(), number: Some(5) };
    comes_back(on, "place", place.clone()).await?;
    comes_back(on, "place", Place { street: String::new(), number: None }).await?;
    let row =
        sqlx::query("SELECT $1::mood, ($2::place).street, ARRAY['sad', $1]::mood[], ARRAY[$2]::place[]")
            .bind(Mood::Ok)
            .bind(place.clone())
            .fetch_one(&mut *on)
            .await?;
    let kinds: Vec<_> = row.columns().iter().map(|column| column.type_info().name()).collect();
    equal(kinds, vec!["mood", "TEXT", "mood[]", "place[]"]);
    equal(row.try_get::<&str, _>(1)?, "Main");
    equal(row.try_get_unchecked::<Vec<Mood>, _>(2)?, vec![Mood::Sad, Mood::Ok]);
    equal(row.try_get_unchecked::<Vec<Place>, _>(3)?, vec![place]);
    Ok(())
}
