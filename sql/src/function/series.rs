//! `generate_series` over numbers, and the sets that are empty here.

use super::args::*;
use crate::datum::Datum;
use crate::error::Result;
use crate::numeric::Numeric;

/// A series answers all its rows at once; one that could not be held is refused instead.
pub(super) const ROWS_MAX: usize = 20_000_000;

#[cold]
pub(super) fn too_many_rows() -> crate::error::SqlError {
    crate::error::SqlError::new(
        crate::error::SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("a set-returning function would return more than {ROWS_MAX} rows"),
    )
}

fn zero_step() -> crate::error::SqlError {
    invalid_parameter("step size cannot equal zero")
}

/// Integers from `from` to `to`; a step past the type's end stops the series.
fn integers(
    from: i64,
    to: i64,
    step: i64,
    low: i64,
    high: i64,
    wrap: fn(i64) -> Datum,
) -> Result<Vec<Vec<Datum>>> {
    if step == 0 {
        return Err(zero_step());
    }
    let mut rows = Vec::new();
    let mut at = from;
    while (step > 0 && at <= to) || (step < 0 && at >= to) {
        if rows.len() == ROWS_MAX {
            return Err(too_many_rows());
        }
        rows.push(vec![wrap(at)]);
        match at.checked_add(step) {
            Some(next) if (low..=high).contains(&next) => at = next,
            _ => break,
        }
    }
    Ok(rows)
}

fn int4_series(v: &[Datum], step: i32) -> Result<Vec<Vec<Datum>>> {
    integers(
        i64::from(int4(v, 0)?),
        i64::from(int4(v, 1)?),
        i64::from(step),
        i64::from(i32::MIN),
        i64::from(i32::MAX),
        |n| Datum::Int4(n as i32),
    )
}

fn numeric_series(v: &[Datum], step: &Numeric) -> Result<Vec<Vec<Datum>>> {
    let (from, to) = (numeric(v, 0)?, numeric(v, 1)?);
    for (value, name) in [(from, "start value"), (to, "stop value"), (step, "step size")] {
        if value.is_nan() {
            return Err(invalid_parameter(format!("{name} cannot be NaN")));
        }
        if value.is_infinite() {
            return Err(invalid_parameter(format!("{name} cannot be infinity")));
        }
    }
    if step.is_zero() {
        return Err(zero_step());
    }
    let mut rows = Vec::new();
    let mut at = from.clone();
    while (step.signum() > 0 && at <= *to) || (step.signum() < 0 && at >= *to) {
        if rows.len() == ROWS_MAX {
            return Err(too_many_rows());
        }
        rows.push(vec![Datum::Numeric(at.clone())]);
        at = at.add(step)?;
    }
    Ok(rows)
}

/// The elements of an array.
fn elements(value: Datum) -> impl Iterator<Item = Datum> {
    let values = match value {
        Datum::Array(array) => array.values.to_vec(),
        _ => Vec::new(),
    };
    values.into_iter()
}

pub(super) const SETS: &[(&str, super::registry::SetEval)] = &[
    ("pg_partition_ancestors", |context, args| {
        let found = context.session.call("pg_partition_ancestors", args)?;
        Ok(elements(found).map(|oid| vec![oid]).collect())
    }),
    ("pg_partition_tree", |context, args| {
        let found = context.session.call("pg_partition_tree", args)?;
        let cells = |row| match row {
            Datum::Record(cells) => cells.to_vec(),
            other => vec![other],
        };
        Ok(elements(found).map(cells).collect())
    }),
    ("generate_series_int4", |_, v| int4_series(v, 1)),
    ("generate_series_step_int4", |_, v| int4_series(v, int4(v, 2)?)),
    ("generate_series_int8", |_, v| integers(int8(v, 0)?, int8(v, 1)?, 1, i64::MIN, i64::MAX, Datum::Int8)),
    ("generate_series_step_int8", |_, v| {
        integers(int8(v, 0)?, int8(v, 1)?, int8(v, 2)?, i64::MIN, i64::MAX, Datum::Int8)
    }),
    ("generate_series_numeric", |_, v| numeric_series(v, &Numeric::ONE)),
    ("generate_series_step_numeric", |_, v| numeric_series(v, numeric(v, 2)?)),
];
