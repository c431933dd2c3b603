//! Values come back as they went: diesel sends and takes every one in binary.

use std::fmt::Debug;

use bigdecimal::BigDecimal;
use checks::{Outcome, equal};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use diesel::data_types::PgInterval;
use diesel::dsl::select;
use diesel::prelude::*;
use diesel::sql_types as sql;
use uuid::Uuid;

use crate::connect;
use crate::schema::{Mood, MoodType, Place, PlaceType};

/// Of one SQL type.
macro_rules! come_back {
    ($connection:expr, $($kind:ty: $value:expr),* $(,)?) => {
        $({
            let value = $value;
            let expression = value.clone().into_sql::<$kind>();
            same(one($connection, select(expression))?, value);
        })*
    };
}

fn one<'q, T, Q>(connection: &mut PgConnection, query: Q) -> Outcome<T>
where
    Q: diesel::query_dsl::LoadQuery<'q, PgConnection, T>,
    T: Debug,
{
    Ok(query.get_result(connection)?)
}

/// As [`equal`], of one type.
fn same<T: Debug + PartialEq>(got: T, expected: T) {
    equal(got, expected);
}

pub fn binary() -> Outcome {
    let connection = &mut connect()?;
    let day = NaiveDate::from_ymd_opt(2024, 2, 29).expect("2024 is a leap year");
    let noon = NaiveTime::from_hms_micro_opt(12, 0, 1, 5).expect("it is a time");
    let numbers: Vec<BigDecimal> = ["0", "12345678.90123", "-0.00000001", "1e40"]
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    come_back! { connection,
        sql::Bool: true,
        sql::SmallInt: i16::MIN,
        sql::Integer: i32::MIN,
        sql::BigInt: i64::MIN,
        sql::Oid: u32::MAX,
        sql::Float: 0.1_f32,
        sql::Double: f64::MIN_POSITIVE,
        sql::Array<sql::Numeric>: numbers,
        sql::Text: "žluťoučký \n'\\".to_owned(),
        sql::VarChar: "x".repeat(100_000),
        sql::Binary: vec![0_u8, 255, 1],
        sql::Date: day,
        sql::Time: noon,
        sql::Timestamp: day.and_time(noon),
        sql::Timestamptz: day.and_time(noon).and_utc(),
        sql::Interval: PgInterval::new(3, -2, 1),
        sql::Uuid: Uuid::from_u128(1 << 120 | 16),
        sql::Jsonb: serde_json::json!({"a": [1.5, null, {"b": "ž"}]}),
        sql::Json: serde_json::json!([true]),
        sql::Array<sql::Integer>: vec![1, 2, 3],
        sql::Array<sql::Nullable<sql::Text>>: vec![Some("a,b".to_owned()), None, Some("NULL".to_owned())],
        sql::Array<sql::Timestamptz>: vec![DateTime::<Utc>::UNIX_EPOCH],
        sql::Nullable<sql::Text>: None::<String>,
        sql::Record<(sql::Integer, sql::Text)>: (1, "x".to_owned()),
    }
    Ok(())
}

pub fn own_types() -> Outcome {
    let connection = &mut connect()?;
    let place = Place { street: "Main".to_owned(), number: Some(5) };
    come_back! { connection,
        MoodType: Mood::Happy,
        PlaceType: place,
        PlaceType: Place { street: String::new(), number: None },
        sql::Array<MoodType>: vec![Mood::Sad, Mood::Ok],
        sql::Nullable<MoodType>: None::<Mood>,
    }
    Ok(())
}
