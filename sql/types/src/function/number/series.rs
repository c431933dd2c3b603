//! `generate_series` over numbers, and the sets that are empty here.
//!
//! A series is made in pages: as many rows as somebody wants of it from a value on, which is its first
//! argument. The next page begins at the last value of the one before.

use crate::datum::Datum;
use crate::error::Result;
use crate::function::args::*;
use crate::function::{FunctionContext, SetPage};
use crate::interrupt;
use crate::numeric::Numeric;

pub(in crate::function) type Rows = Vec<Vec<Datum>>;

/// Who wants all rows of a series at once gets no more than could be held.
pub(super) const ROWS_MAX: usize = 20_000_000;

/// What a row counts as ([`interrupt::steps`]).
pub(in crate::function) const STEPS_PER_ROW: usize = 16;

/// All rows of a series.
pub(in crate::function) fn whole(
    page: SetPage,
    context: &FunctionContext<'_>,
    args: &[Datum],
) -> Result<Rows> {
    let rows = page(context, args, ROWS_MAX + 1)?;
    if rows.len() > ROWS_MAX {
        return Err(crate::error::SqlError::new(
            crate::error::SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("a set-returning function would return more than {ROWS_MAX} rows"),
        ));
    }
    Ok(rows)
}

fn zero_step() -> crate::error::SqlError {
    invalid_parameter("step size cannot equal zero")
}

/// Integers from `from` to `to`; a step past the type's end stops the series.
fn integers(
    (from, to, step): (i64, i64, i64),
    (low, high): (i64, i64),
    most: usize,
    wrap: fn(i64) -> Datum,
) -> Result<Rows> {
    if step == 0 {
        return Err(zero_step());
    }
    let mut rows = Vec::new();
    let mut at = from;
    while rows.len() < most && ((step > 0 && at <= to) || (step < 0 && at >= to)) {
        interrupt::steps(STEPS_PER_ROW)?;
        rows.push(vec![wrap(at)]);
        match at.checked_add(step) {
            Some(next) if (low..=high).contains(&next) => at = next,
            _ => break,
        }
    }
    Ok(rows)
}

fn int4_series(v: &[Datum], step: i32, most: usize) -> Result<Rows> {
    let bounds = (i64::from(i32::MIN), i64::from(i32::MAX));
    let steps = (i64::from(int4(v, 0)?), i64::from(int4(v, 1)?), i64::from(step));
    integers(steps, bounds, most, |n| Datum::Int4(n as i32))
}

fn int8_series(v: &[Datum], step: i64, most: usize) -> Result<Rows> {
    integers((int8(v, 0)?, int8(v, 1)?, step), (i64::MIN, i64::MAX), most, Datum::Int8)
}

fn numeric_series(v: &[Datum], step: &Numeric, most: usize) -> Result<Rows> {
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
    while rows.len() < most && ((step.signum() > 0 && at <= *to) || (step.signum() < 0 && at >= *to)) {
        interrupt::steps(STEPS_PER_ROW)?;
        rows.push(vec![Datum::Numeric(at.clone())]);
        // What is beyond the type is beyond every end.
        let Ok(next) = at.add(step) else { break };
        at = next;
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

pub(in crate::function) const SETS: &[(&str, crate::function::SetEval)] = &[
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
    ("generate_series_int4", |c, v| whole(INT4, c, v)),
    ("generate_series_step_int4", |c, v| whole(INT4_STEP, c, v)),
    ("generate_series_int8", |c, v| whole(INT8, c, v)),
    ("generate_series_step_int8", |c, v| whole(INT8_STEP, c, v)),
    ("generate_series_numeric", |c, v| whole(NUMERIC, c, v)),
    ("generate_series_step_numeric", |c, v| whole(NUMERIC_STEP, c, v)),
];

const INT4: SetPage = |_, v, most| int4_series(v, 1, most);
const INT4_STEP: SetPage = |_, v, most| int4_series(v, int4(v, 2)?, most);
const INT8: SetPage = |_, v, most| int8_series(v, 1, most);
const INT8_STEP: SetPage = |_, v, most| int8_series(v, int8(v, 2)?, most);
const NUMERIC: SetPage = |_, v, most| numeric_series(v, &Numeric::ONE, most);
const NUMERIC_STEP: SetPage = |_, v, most| numeric_series(v, numeric(v, 2)?, most);

/// What is made in pages.
pub(in crate::function) const PAGES: &[(&str, SetPage)] = &[
    ("generate_series_int4", INT4),
    ("generate_series_step_int4", INT4_STEP),
    ("generate_series_int8", INT8),
    ("generate_series_step_int8", INT8_STEP),
    ("generate_series_numeric", NUMERIC),
    ("generate_series_step_numeric", NUMERIC_STEP),
];
