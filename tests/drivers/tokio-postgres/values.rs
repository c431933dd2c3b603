//! Values come back as they went: tokio-postgres sends and takes every one in binary, and text by
//! simple queries alone.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use checks::{Outcome, equal, failure};
use serde_json::json;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};
use tokio_postgres::types::{Field, FromSql, FromSqlOwned, IsNull, Kind, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, SimpleQueryMessage};
use uuid::Uuid;

use crate::client::{connect, one};

async fn comes_back<T: ToSql + FromSqlOwned + PartialEq + Debug + Sync>(
    client: &Client,
    kind: &str,
    value: T,
) -> Outcome {
    equal(one::<Option<T>>(client, &format!("SELECT $1::{kind}"), &[&None::<T>]).await?, None);
    equal(one::<T>(client, &format!("SELECT $1::{kind}"), &[&value]).await?, value);
    Ok(())
}

pub async fn binary() -> Outcome {
    let client = connect().await?;
    comes_back(&client, "bool", true).await?;
    comes_back(&client, "\"char\"", 7_i8).await?;
    comes_back(&client, "smallint", i16::MIN).await?;
    comes_back(&client, "int", i32::MIN).await?;
    comes_back(&client, "bigint", i64::MIN).await?;
    comes_back(&client, "oid", u32::MAX).await?;
    comes_back(&client, "real", 0.1_f32).await?;
    comes_back(&client, "float8", f64::MIN_POSITIVE).await?;
    equal(one::<f64>(&client, "SELECT $1::float8", &[&f64::NAN]).await?.is_nan(), true);
    comes_back(&client, "text", "žluťoučký \n'\\".to_owned()).await?;
    comes_back(&client, "varchar", "x".repeat(100_000)).await?;
    comes_back(&client, "char(4)", "ab  ".to_owned()).await?;
    comes_back(&client, "name", "n".to_owned()).await?;
    comes_back(&client, "bytea", vec![0_u8, 255, 1]).await?;
    let day = Date::from_calendar_date(2024, Month::February, 29)?;
    let noon = Time::from_hms_micro(12, 0, 1, 5)?;
    comes_back(&client, "date", day).await?;
    comes_back(&client, "time", noon).await?;
    comes_back(&client, "timestamp", PrimitiveDateTime::new(day, noon)).await?;
    comes_back(&client, "timestamptz", PrimitiveDateTime::new(day, noon).assume_utc()).await?;
    comes_back(&client, "timestamptz", SystemTime::UNIX_EPOCH + Duration::from_micros(1)).await?;
    comes_back(&client, "uuid", Uuid::from_u128(1 << 120 | 16)).await?;
    comes_back(&client, "jsonb", json!({"a": [1.5, null, {"b": "ž"}]})).await?;
    comes_back(&client, "json", json!([true])).await?;
    comes_back(&client, "int[]", vec![Some(1), None, Some(3)]).await?;
    comes_back(&client, "text[]", ["a", "b,c", "\"", "NULL"].map(str::to_owned).to_vec()).await?;
    comes_back(&client, "timestamptz[]", vec![OffsetDateTime::UNIX_EPOCH]).await?;
    comes_back(&client, "bytea[]", vec![Vec::<u8>::new(), vec![0]]).await?;
    equal(one::<Vec<i32>>(&client, "SELECT '{}'::int[]", &[]).await?, Vec::<i32>::new());
    let row =
        client.query_one("SELECT 1.25::numeric, '1 day'::interval, 'x'::unknown, NULL, now()", &[]).await?;
    let kinds: Vec<_> = row.columns().iter().map(|column| column.type_().name()).collect();
    equal(kinds, ["numeric", "interval", "text", "text", "timestamptz"].to_vec());
    // What is no value of the type is said on this side.
    let wrong = failure(client.query("SELECT $1::int", &[&"x"]).await);
    equal(wrong.to_string(), "error serializing parameter 0");
    Ok(())
}

/// What a simple query says: its rows as text, and how many each statement had.
async fn told(client: &Client, text: &str) -> Outcome<Vec<String>> {
    let messages = client.simple_query(text).await?;
    Ok(messages
        .iter()
        .map(|message| match message {
            SimpleQueryMessage::RowDescription(columns) => {
                columns.iter().map(|column| column.name()).collect::<Vec<_>>().join(",")
            }
            SimpleQueryMessage::Row(row) => {
                (0..row.len()).map(|n| row.get(n).unwrap_or("-")).collect::<Vec<_>>().join(",")
            }
            SimpleQueryMessage::CommandComplete(rows) => rows.to_string(),
            _ => "?".to_owned(),
        })
        .collect())
}

pub async fn text() -> Outcome {
    let client = connect().await?;
    equal(
        told(&client, "SELECT 1 AS a, NULL AS b, 1.10 * 1.10 AS c; CREATE TEMP TABLE t (a int); INSERT INTO t VALUES (1), (2);").await?,
        vec!["a,b,c", "1,-,1.2100", "1", "0", "2"],
    );
    let numbers = "SELECT true, -7::smallint, 1e100::float8, 0.1::real, 'NaN'::numeric, '-Infinity'::float8";
    equal(told(&client, numbers).await?[1].as_str(), "t,-7,1e+100,0.1,NaN,-Infinity");
    let others = r#"SELECT '\x00ff'::bytea, '{1,NULL}'::int[], ARRAY['a b','c'], '{"a":1}'::jsonb, ROW('x y', 1)::place"#;
    equal(told(&client, others).await?[1].as_str(), r#"\x00ff,{1,NULL},{"a b",c},{"a": 1},("x y",1)"#);
    client.batch_execute("SET TIME ZONE 'Europe/Prague'; SET intervalstyle = 'postgres'").await?;
    let times = "SELECT '2024-02-29'::date, '12:00:01.5'::time, '2024-02-29 12:00+00'::timestamptz, '1 year 2 days 3 hours'::interval";
    equal(
        told(&client, times).await?[1].as_str(),
        "2024-02-29,12:00:01.5,2024-02-29 13:00:00+01,1 year 2 days 03:00:00",
    );
    equal(told(&client, "").await?, vec!["0"]);
    Ok(())
}

/// The name of a cursor that a routine opened.
#[derive(Debug, PartialEq)]
pub struct CursorName(pub String);

impl FromSql<'_> for CursorName {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(CursorName(String::from_utf8(raw.to_vec())?))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::REFCURSOR
    }
}

/// A value of a type of the user's own, in its binary form.
#[derive(Debug, PartialEq)]
pub struct Raw(pub Vec<u8>);

impl FromSql<'_> for Raw {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

pub async fn own_types() -> Outcome {
    let client = connect().await?;
    let statement = client
        .prepare("SELECT $1::mood, $2::place, $3::small, ARRAY[$1]::mood[], ARRAY[$2]::place[]")
        .await?;
    let [mood, place, small] = statement.params() else { panic!("{:?}", statement.params()) };
    equal((mood.name(), mood.schema()), ("mood", "public"));
    equal(mood.kind(), &Kind::Enum(["sad", "ok", "happy"].map(str::to_owned).to_vec()));
    let Kind::Composite(fields) = place.kind() else { panic!("{place:?}") };
    let parts: HashMap<&str, &Type> =
        fields.iter().map(|field: &Field| (field.name(), field.type_())).collect();
    equal(parts, HashMap::from([("street", &Type::TEXT), ("number", &Type::INT4)]));
    equal(small.kind(), &Kind::Domain(Type::INT4));
    let column = statement.columns()[3].type_();
    equal((column.name(), column.kind()), ("_mood", &Kind::Array(mood.clone())));
    equal(statement.columns()[4].type_().kind(), &Kind::Array(place.clone()));

    // Two fields: a type, a length and the bytes of each.
    let mut street = vec![0, 0, 0, 2, 0, 0, 0, 25, 0, 0, 0, 4];
    street.extend_from_slice(b"Main");
    street.extend_from_slice(&[0, 0, 0, 23, 0, 0, 0, 4, 0, 0, 0, 5]);
    let (happy, main, nine) = (Raw(b"happy".to_vec()), Raw(street), Raw(vec![0, 0, 0, 9]));
    let row = client.query_one(&statement, &[&happy, &main, &nine]).await?;
    equal((row.get::<_, Raw>(0), row.get::<_, Raw>(1), row.get::<_, Raw>(2)), (happy, main, nine));
    equal(row.get::<_, Vec<Raw>>(3), vec![Raw(b"happy".to_vec())]);
    Ok(())
}
