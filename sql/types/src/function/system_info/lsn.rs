//! `pg_lsn`: places in a log. A value is the unsigned number of a byte, kept as a signed one with the
//! same order.

use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::Eval;
use crate::function::args::*;
use crate::io::lsn::{lsn_place, lsn_value};
use crate::numeric::Numeric;

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

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("pg_lsn_mi", |_, v| difference(v)),
    ("pg_wal_lsn_diff", |_, v| difference(v)),
    ("pg_lsn_pli", |_, v| moved(v, "add", |place, bytes| place.add(bytes))),
    ("sql_5023", |_, v| {
        moved(&[any(v, 1)?.clone(), any(v, 0)?.clone()], "add", |place, bytes| place.add(bytes))
    }),
    ("pg_lsn_mii", |_, v| moved(v, "subtract", |place, bytes| place.sub(bytes))),
    ("numeric_pg_lsn", |_, v| from_numeric(numeric(v, 0)?)),
];
