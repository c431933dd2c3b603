//! Arithmetic and mathematics of `numeric`.

use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::Eval;
use crate::function::args::*;
use crate::numeric::Numeric;

fn of(value: Numeric) -> Result<Datum> {
    Ok(Datum::Numeric(value))
}

fn width_bucket(operand: &Numeric, low: &Numeric, high: &Numeric, count: i32) -> Result<Datum> {
    let bad = |message: &str| Err(SqlError::new(SqlState(*b"2201G"), message));
    if count <= 0 {
        return bad("count must be greater than zero");
    }
    if operand.is_nan() || low.is_nan() || high.is_nan() {
        return bad("operand, lower bound, and upper bound cannot be NaN");
    }
    if low.is_infinite() || high.is_infinite() {
        return bad("lower and upper bounds must be finite");
    }
    let past = || count.checked_add(1).map(Datum::Int4).ok_or_else(|| out_of_range("integer"));
    let (from, to) = match low.cmp(high) {
        std::cmp::Ordering::Equal => return bad("lower bound cannot equal upper bound"),
        std::cmp::Ordering::Less if operand < low => return Ok(Datum::Int4(0)),
        std::cmp::Ordering::Less if operand >= high => return past(),
        std::cmp::Ordering::Less => (operand.sub(low)?, high.sub(low)?),
        std::cmp::Ordering::Greater if operand > low => return Ok(Datum::Int4(0)),
        std::cmp::Ordering::Greater if operand <= high => return past(),
        std::cmp::Ordering::Greater => (low.sub(operand)?, low.sub(high)?),
    };
    let bucket = from.mul(&Numeric::from(count))?.div_trunc(&to)?.to_i32()?;
    Ok(Datum::Int4(bucket + 1))
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("numeric_add", |_, v| of(numeric(v, 0)?.add(numeric(v, 1)?)?)),
    ("numeric_sub", |_, v| of(numeric(v, 0)?.sub(numeric(v, 1)?)?)),
    ("numeric_mul", |_, v| of(numeric(v, 0)?.mul(numeric(v, 1)?)?)),
    ("numeric_div", |_, v| of(numeric(v, 0)?.div(numeric(v, 1)?)?)),
    ("numeric_mod", |_, v| of(numeric(v, 0)?.rem(numeric(v, 1)?)?)),
    ("numeric_div_trunc", |_, v| of(numeric(v, 0)?.div_trunc(numeric(v, 1)?)?)),
    ("numeric_uminus", |_, v| of(numeric(v, 0)?.neg())),
    ("numeric_uplus", |_, v| of(numeric(v, 0)?.clone())),
    ("numeric_abs", |_, v| of(numeric(v, 0)?.abs())),
    ("numeric_sign", |_, v| {
        let value = numeric(v, 0)?;
        of(if value.is_nan() { Numeric::NAN } else { Numeric::from(value.signum()) })
    }),
    ("numeric_ceil", |_, v| of(numeric(v, 0)?.ceil()?)),
    ("numeric_floor", |_, v| of(numeric(v, 0)?.floor()?)),
    ("numeric_round", |_, v| of(numeric(v, 0)?.round(int4(v, 1)?)?)),
    ("numeric_trunc", |_, v| of(numeric(v, 0)?.trunc(int4(v, 1)?)?)),
    ("sql_1708", |_, v| of(numeric(v, 0)?.round(0)?)),
    ("sql_1710", |_, v| of(numeric(v, 0)?.trunc(0)?)),
    ("numeric_sqrt", |_, v| of(numeric(v, 0)?.sqrt()?)),
    ("numeric_exp", |_, v| of(numeric(v, 0)?.exp()?)),
    ("numeric_ln", |_, v| of(numeric(v, 0)?.ln()?)),
    ("numeric_log", |_, v| of(numeric(v, 1)?.log(numeric(v, 0)?)?)),
    ("sql_1741", |_, v| of(numeric(v, 0)?.log(&Numeric::from(10))?)),
    ("sql_1481", |_, v| of(numeric(v, 0)?.log(&Numeric::from(10))?)),
    ("numeric_power", |_, v| of(numeric(v, 0)?.power(numeric(v, 1)?)?)),
    ("numeric_fac", |_, v| of(Numeric::factorial(int8(v, 0)?)?)),
    ("numeric_gcd", |_, v| of(numeric(v, 0)?.gcd(numeric(v, 1)?)?)),
    ("numeric_lcm", |_, v| of(numeric(v, 0)?.lcm(numeric(v, 1)?)?)),
    ("numeric_inc", |_, v| of(numeric(v, 0)?.add(&Numeric::ONE)?)),
    ("numeric_scale", |_, v| {
        let value = numeric(v, 0)?;
        Ok(if value.is_finite() { Datum::Int4(i32::from(value.scale())) } else { Datum::Null })
    }),
    ("numeric_min_scale", |_, v| {
        Ok(numeric(v, 0)?.min_scale().map_or(Datum::Null, |s| Datum::Int4(i32::from(s))))
    }),
    ("numeric_trim_scale", |_, v| of(numeric(v, 0)?.trim_scale())),
    ("width_bucket_numeric", |_, v| {
        width_bucket(numeric(v, 0)?, numeric(v, 1)?, numeric(v, 2)?, int4(v, 3)?)
    }),
];
