//! The functions behind casts.

use super::args::*;
use super::{Eval, FunctionContext};
use crate::datetime::{self, MICROS_PER_DAY, TimeTz, zone};
use crate::datum::{Datum, Interval};
use crate::error::{Result, SqlError, SqlState};
use crate::numeric::Numeric;
use crate::types::{Oid, Type};
use crate::typmod::{coerce_typmod, without_blanks};

fn narrow<T, U: TryFrom<T>>(value: T, name: &str) -> Result<U> {
    U::try_from(value).map_err(|_| out_of_range(name))
}

/// A float rounded to the nearest even integer within `low..high` (high excluded).
fn rounded(x: f64, low: f64, high: f64, name: &str) -> Result<i64> {
    let nearest = x.round_ties_even();
    if nearest.is_nan() || nearest < low || nearest >= high {
        Err(out_of_range(name))
    } else {
        Ok(nearest as i64)
    }
}

fn to_int2(x: f64) -> Result<Datum> {
    Ok(Datum::Int2(rounded(x, -32_768.0, 32_768.0, "smallint")? as i16))
}

fn to_int4(x: f64) -> Result<Datum> {
    Ok(Datum::Int4(rounded(x, -2_147_483_648.0, 2_147_483_648.0, "integer")? as i32))
}

fn to_int8(x: f64) -> Result<Datum> {
    Ok(Datum::Int8(rounded(x, -9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0, "bigint")?))
}

fn to_float4(x: f64) -> Result<Datum> {
    let single = x as f32;
    if single.is_infinite() && x.is_finite() {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
    }
    if single == 0.0 && x != 0.0 {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow"));
    }
    Ok(Datum::Float4(single))
}

fn numeric_to_float8(n: &Numeric) -> Result<f64> {
    let x = n.to_f64();
    // Neither too large nor so small that nothing is left of it.
    if n.is_finite() && (x.is_infinite() || (x == 0.0 && !n.is_zero())) {
        let shown = n.to_string();
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{shown}\" is out of range for type double precision"),
        ));
    }
    Ok(x)
}

/// A length coercion function: `f(value, typmod[, explicit])`.
fn coerce(oid: Oid, v: &[Datum]) -> Result<Datum> {
    let explicit = matches!(v.get(2), Some(Datum::Bool(true)));
    let precision = int4(v, 1)?;
    if matches!(oid, Oid::TIMESTAMP | Oid::TIMESTAMPTZ) && precision != -1 && !(0..=6).contains(&precision) {
        return Err(invalid_parameter(format!("timestamp({precision}) precision must be between 0 and 6")));
    }
    coerce_typmod(any(v, 0)?.clone(), Type { oid, typmod: int4(v, 1)? }, explicit)
}

fn timestamp_to_date(at: i64) -> i32 {
    match at {
        i64::MAX => i32::MAX,
        i64::MIN => i32::MIN,
        at => at.div_euclid(MICROS_PER_DAY) as i32,
    }
}

fn local(ctx: &FunctionContext<'_>, v: &[Datum]) -> Result<i64> {
    Ok(zone::to_local(&ctx.style().time_zone, timestamptz(v, 0)?))
}

/// The instant of a local time in the session's zone.
pub(super) fn instant(ctx: &FunctionContext<'_>, local: i64) -> Result<i64> {
    let at = zone::to_instant(&ctx.style().time_zone, local);
    if datetime::is_infinite(at) || datetime::in_range(at) {
        Ok(at)
    } else {
        Err(datetime::timestamp_out_of_range())
    }
}

fn time_of(at: i64) -> Datum {
    if datetime::is_infinite(at) { Datum::Null } else { Datum::Time(at.rem_euclid(MICROS_PER_DAY)) }
}

/// `"char"` as a text: what it is shown as.
fn char_text(value: &str) -> compact_str::CompactString {
    let mut shown = String::new();
    // Writing to a String cannot fail.
    let _ = crate::io::byte_out(value, &mut shown);
    shown.into()
}

pub(super) const FUNCTIONS: &[(&str, Eval)] = &[
    ("i2toi4", |_, v| Ok(Datum::Int4(i32::from(int2(v, 0)?)))),
    ("i4toi2", |_, v| Ok(Datum::Int2(narrow(int4(v, 0)?, "smallint")?))),
    ("int28", |_, v| Ok(Datum::Int8(i64::from(int2(v, 0)?)))),
    ("int82", |_, v| Ok(Datum::Int2(narrow(int8(v, 0)?, "smallint")?))),
    ("int48", |_, v| Ok(Datum::Int8(i64::from(int4(v, 0)?)))),
    ("int84", |_, v| Ok(Datum::Int4(narrow(int8(v, 0)?, "integer")?))),
    ("i2tof", |_, v| Ok(Datum::Float4(f32::from(int2(v, 0)?)))),
    ("i4tof", |_, v| Ok(Datum::Float4(int4(v, 0)? as f32))),
    ("i8tof", |_, v| Ok(Datum::Float4(int8(v, 0)? as f32))),
    ("i2tod", |_, v| Ok(Datum::Float8(f64::from(int2(v, 0)?)))),
    ("i4tod", |_, v| Ok(Datum::Float8(f64::from(int4(v, 0)?)))),
    ("i8tod", |_, v| Ok(Datum::Float8(int8(v, 0)? as f64))),
    ("dtoi2", |_, v| to_int2(float8(v, 0)?)),
    ("dtoi4", |_, v| to_int4(float8(v, 0)?)),
    ("dtoi8", |_, v| to_int8(float8(v, 0)?)),
    ("ftoi2", |_, v| to_int2(f64::from(float4(v, 0)?))),
    ("ftoi4", |_, v| to_int4(f64::from(float4(v, 0)?))),
    ("ftoi8", |_, v| to_int8(f64::from(float4(v, 0)?))),
    ("dtof", |_, v| to_float4(float8(v, 0)?)),
    ("ftod", |_, v| Ok(Datum::Float8(f64::from(float4(v, 0)?)))),
    ("int2_numeric", |_, v| Ok(Datum::Numeric(Numeric::from(i32::from(int2(v, 0)?))))),
    ("int4_numeric", |_, v| Ok(Datum::Numeric(Numeric::from(int4(v, 0)?)))),
    ("int8_numeric", |_, v| Ok(Datum::Numeric(Numeric::from(int8(v, 0)?)))),
    ("float4_numeric", |_, v| Ok(Datum::Numeric(Numeric::from_f32(float4(v, 0)?)))),
    ("float8_numeric", |_, v| Ok(Datum::Numeric(Numeric::from_f64(float8(v, 0)?)))),
    ("numeric_int2", |_, v| Ok(Datum::Int2(numeric(v, 0)?.to_i16()?))),
    ("numeric_int4", |_, v| Ok(Datum::Int4(numeric(v, 0)?.to_i32()?))),
    ("numeric_int8", |_, v| Ok(Datum::Int8(numeric(v, 0)?.to_i64()?))),
    ("numeric_float8", |_, v| Ok(Datum::Float8(numeric_to_float8(numeric(v, 0)?)?))),
    ("numeric_float4", |_, v| {
        let text = numeric(v, 0)?.to_string();
        Ok(Datum::Float4(crate::io::parse_f32(&text)?))
    }),
    ("int4_bool", |_, v| Ok(Datum::Bool(int4(v, 0)? != 0))),
    ("bool_int4", |_, v| Ok(Datum::Int4(i32::from(boolean(v, 0)?)))),
    ("i8tooid", |_, v| {
        Ok(Datum::Oid(Oid(u32::try_from(int8(v, 0)?)
            .map_err(|_| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "OID out of range"))?)))
    }),
    ("oidtoi8", |_, v| Ok(Datum::Int8(i64::from(oid(v, 0)?.0)))),
    ("chartoi4", |_, v| Ok(Datum::Int4(i32::from(crate::io::byte_of(text(v, 0)?) as i8)))),
    ("i4tochar", |_, v| {
        let code = int4(v, 0)?;
        let byte = i8::try_from(code)
            .map_err(|_| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "\"char\" out of range"))?;
        Ok(crate::io::byte_value(byte as u8))
    }),
    ("booltext", |_, v| Ok(text_datum(if boolean(v, 0)? { "true" } else { "false" }))),
    ("rtrim1", |_, v| Ok(text_datum(without_blanks(text(v, 0)?)))),
    ("char_text", |_, v| Ok(Datum::Text(char_text(text(v, 0)?)))),
    ("char_bpchar", |_, v| Ok(Datum::Bpchar(char_text(text(v, 0)?)))),
    ("text_char", |_, v| Ok(crate::io::byte_in(text(v, 0)?))),
    ("text_name", |_, v| Ok(text_datum(crate::io::truncate_name(text(v, 0)?)))),
    ("bpchar_name", |_, v| Ok(text_datum(crate::io::truncate_name(without_blanks(text(v, 0)?))))),
    ("name_text", |_, v| Ok(any(v, 0)?.clone())),
    ("name_bpchar", |_, v| Ok(Datum::bpchar(text(v, 0)?))),
    ("varchar", |_, v| coerce(Oid::VARCHAR, v)),
    ("bpchar", |_, v| coerce(Oid::BPCHAR, v)),
    ("numeric", |_, v| coerce(Oid::NUMERIC, v)),
    ("timestamp_scale", |_, v| coerce(Oid::TIMESTAMP, v)),
    ("timestamptz_scale", |_, v| coerce(Oid::TIMESTAMPTZ, v)),
    ("time_scale", |_, v| coerce(Oid::TIME, v)),
    ("timetz_scale", |_, v| coerce(Oid::TIMETZ, v)),
    ("interval_scale", |_, v| coerce(Oid::INTERVAL, v)),
    ("date_timestamp", |_, v| Ok(Datum::Timestamp(datetime::date_to_timestamp(date(v, 0)?)?))),
    ("date_timestamptz", |c, v| {
        Ok(Datum::TimestampTz(instant(c, datetime::date_to_timestamp(date(v, 0)?)?)?))
    }),
    ("timestamp_date", |_, v| Ok(Datum::Date(timestamp_to_date(timestamp(v, 0)?)))),
    ("timestamptz_date", |c, v| Ok(Datum::Date(timestamp_to_date(local(c, v)?)))),
    ("timestamp_time", |_, v| Ok(time_of(timestamp(v, 0)?))),
    ("timestamptz_time", |c, v| Ok(time_of(local(c, v)?))),
    ("timetz_time", |_, v| Ok(Datum::Time(timetz(v, 0)?.microseconds()))),
    ("time_timetz", |c, v| Ok(Datum::TimeTz(TimeTz::of_today(time(v, 0)?, c.style(), c.now)?))),
    ("timestamptz_timetz", |c, v| {
        let found = TimeTz::of_instant(timestamptz(v, 0)?, &c.style().time_zone)?;
        Ok(found.map_or(Datum::Null, Datum::TimeTz))
    }),
    ("sql_1176", |c, v| {
        let start = datetime::date_to_timestamp(date(v, 0)?)?;
        let local = if datetime::is_infinite(start) { start } else { start + time(v, 1)? };
        Ok(Datum::TimestampTz(instant(c, local)?))
    }),
    ("datetimetz_timestamptz", |_, v| {
        Ok(Datum::TimestampTz(timetz(v, 1)?.on(datetime::date_to_timestamp(date(v, 0)?)?)?))
    }),
    ("timestamp_timestamptz", |c, v| Ok(Datum::TimestampTz(instant(c, timestamp(v, 0)?)?))),
    ("timestamptz_timestamp", |c, v| Ok(Datum::Timestamp(local(c, v)?))),
    ("time_interval", |_, v| Ok(interval_datum(Interval { months: 0, days: 0, microseconds: time(v, 0)? }))),
    ("interval_time", |_, v| Ok(Datum::Time(interval(v, 0)?.microseconds.rem_euclid(MICROS_PER_DAY)))),
    ("datetime_timestamp", |_, v| {
        let start = datetime::date_to_timestamp(date(v, 0)?)?;
        Ok(Datum::Timestamp(if datetime::is_infinite(start) { start } else { start + time(v, 1)? }))
    }),
    ("text_regclass", |c, v| c.session.call("regclassin", v)),
];
