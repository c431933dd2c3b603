//! `pg_lsn`: places in a log. A value is the unsigned number of a byte, kept as a signed one with the
//! same order.

use std::fmt::Write;

use super::Eval;
use super::args::*;
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::numeric::Numeric;

const OFFSET: u64 = 1 << 63;

/// The value of a place.
pub fn lsn_value(place: u64) -> i64 {
    (place ^ OFFSET) as i64
}

/// The place that a value is.
pub fn lsn_place(value: i64) -> u64 {
    value as u64 ^ OFFSET
}

/// Reads `16/B374D848`: two hexadecimal numbers of up to eight digits.
pub fn parse_lsn(text: &str) -> Result<i64> {
    let half = |text: &str| {
        let digits = (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
    };
    let halves = text.split_once('/').and_then(|(high, low)| half(high).zip(half(low)));
    halves
        .map(|(high, low)| lsn_value(high << 32 | low))
        .ok_or_else(|| crate::io::invalid_syntax("pg_lsn", text))
}

/// Shows a value.
pub fn show_lsn(value: i64, out: &mut dyn Write) -> std::fmt::Result {
    let place = lsn_place(value);
    write!(out, "{:X}/{:X}", place >> 32, place & 0xFFFF_FFFF)
}

fn unsigned(place: u64) -> Numeric {
    Numeric::from_scaled_i128(i128::from(place), 0)
}

/// The place that is so many bytes from the first.
fn from_numeric(number: &Numeric) -> Result<Datum> {
    let special = if number.is_nan() { Some("NaN") } else { number.is_infinite().then_some("infinity") };
    if let Some(special) = special {
        let message = format!("cannot convert {special} to pg_lsn");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let place = number
        .round(0)?
        .to_string()
        .parse::<u64>()
        .map_err(|_| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "pg_lsn out of range"))?;
    Ok(Datum::Int8(lsn_value(place)))
}

fn moved(
    v: &[Datum],
    verb: &str,
    change: impl FnOnce(&Numeric, &Numeric) -> Result<Numeric>,
) -> Result<Datum> {
    let bytes = numeric(v, 1)?;
    if bytes.is_nan() {
        let message = format!("cannot {verb} NaN {} pg_lsn", if verb == "add" { "to" } else { "from" });
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    from_numeric(&change(&unsigned(lsn_place(int8(v, 0)?)), bytes)?)
}

fn difference(v: &[Datum]) -> Result<Datum> {
    let (a, b) = (unsigned(lsn_place(int8(v, 0)?)), unsigned(lsn_place(int8(v, 1)?)));
    Ok(Datum::Numeric(a.sub(&b)?))
}

pub(super) const FUNCTIONS: &[(&str, Eval)] = &[
    ("pg_lsn_mi", |_, v| difference(v)),
    ("pg_wal_lsn_diff", |_, v| difference(v)),
    ("pg_lsn_pli", |_, v| moved(v, "add", |place, bytes| place.add(bytes))),
    ("sql_5023", |_, v| {
        moved(&[any(v, 1)?.clone(), any(v, 0)?.clone()], "add", |place, bytes| place.add(bytes))
    }),
    ("pg_lsn_mii", |_, v| moved(v, "subtract", |place, bytes| place.sub(bytes))),
    ("numeric_pg_lsn", |_, v| from_numeric(numeric(v, 0)?)),
];
