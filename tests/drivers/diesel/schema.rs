//! The tables as diesel's command line prints them (`diesel print-schema`), and with them its types.

use std::io::Write;

use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgValue};
use diesel::serialize::{self, IsNull, Output, ToSql, WriteTuple};
use diesel::sql_types::{Integer, Nullable, Record, Text};

#[derive(diesel::query_builder::QueryId, diesel::sql_types::SqlType)]
#[diesel(postgres_type(name = "mood"))]
pub struct MoodType;

#[derive(diesel::query_builder::QueryId, diesel::sql_types::SqlType)]
#[diesel(postgres_type(name = "place"))]
pub struct PlaceType;

diesel::table! {
    use diesel::sql_types::*;
    use super::MoodType;

    account (id) {
        id -> Int4,
        owner_id -> Int8,
        key -> Uuid,
        balance -> Numeric,
        mood -> MoodType,
        tags -> Array<Text>,
        detail -> Nullable<Jsonb>,
        opened -> Timestamptz,
    }
}

diesel::table! {
    item (id) {
        id -> Int4,
        label -> Nullable<Text>,
    }
}

diesel::table! {
    owner (id) {
        id -> Int8,
        name -> Text,
    }
}

diesel::joinable!(account -> owner (owner_id));

diesel::allow_tables_to_appear_in_same_query!(account, item, owner);

#[derive(Clone, Copy, Debug, PartialEq, AsExpression, FromSqlRow)]
#[diesel(sql_type = MoodType)]
pub enum Mood {
    Sad,
    Ok,
    Happy,
}

const MOODS: [(Mood, &[u8]); 3] = [(Mood::Sad, b"sad"), (Mood::Ok, b"ok"), (Mood::Happy, b"happy")];

impl ToSql<MoodType, Pg> for Mood {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        let label = MOODS.iter().find(|(mood, _)| mood == self).map_or(&b""[..], |(_, label)| label);
        out.write_all(label)?;
        Ok(IsNull::No)
    }
}

impl FromSql<MoodType, Pg> for Mood {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        let found = MOODS.iter().find(|(_, label)| *label == value.as_bytes());
        found.map(|(mood, _)| *mood).ok_or_else(|| "no mood is called so".into())
    }
}

#[derive(Clone, Debug, PartialEq, AsExpression, FromSqlRow)]
#[diesel(sql_type = PlaceType)]
pub struct Place {
    pub street: String,
    pub number: Option<i32>,
}

impl ToSql<PlaceType, Pg> for Place {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        WriteTuple::<(Text, Nullable<Integer>)>::write_tuple(
            &(self.street.as_str(), self.number),
            &mut out.reborrow(),
        )
    }
}

impl FromSql<PlaceType, Pg> for Place {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        let (street, number) = FromSql::<Record<(Text, Nullable<Integer>)>, Pg>::from_sql(value)?;
        Ok(Place { street, number })
    }
}
