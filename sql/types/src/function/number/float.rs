//! Floating-point arithmetic and mathematics. A finite operation that leaves the range is
//! 22003 (`value out of range: overflow`), as float.c checks it.

use super::degrees;
use super::degrees::{RADIANS_PER_DEGREE, out_of_domain};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::Eval;
use crate::function::args::*;
use crate::function::intrinsic::Operation;

/// 22003 of the float functions.
#[cold]
pub(in crate::function) fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

#[cold]
fn underflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

/// Infinity from finite operands is an overflow.
#[inline]
fn sum(result: f64, finite: bool) -> Result<f64> {
    if result.is_infinite() && finite { Err(overflow()) } else { Ok(result) }
}

/// As [`sum`], and zero from nonzero operands is an underflow.
#[inline]
fn product(result: f64, finite: bool, nonzero: bool) -> Result<f64> {
    if result == 0.0 && nonzero { Err(underflow()) } else { sum(result, finite) }
}

/// One operation over doubles: 22003 where it leaves the range, 22012 for a division by zero.
#[inline]
pub fn apply(operation: Operation, a: f64, b: f64) -> Result<f64> {
    let finite = a.is_finite() && b.is_finite();
    match operation {
        Operation::Add => sum(a + b, finite),
        Operation::Subtract => sum(a - b, finite),
        Operation::Multiply => product(a * b, finite, a != 0.0 && b != 0.0),
        Operation::Divide if b == 0.0 && !a.is_nan() => Err(division_by_zero()),
        Operation::Divide => product(a / b, !a.is_infinite(), a != 0.0 && b.is_finite()),
    }
}

/// Single precision rounds once, from the single-precision operation.
fn apply_single(operation: Operation, a: f32, b: f32) -> Result<f32> {
    let (result, finite) = (
        match operation {
            Operation::Add => a + b,
            Operation::Subtract => a - b,
            Operation::Multiply => a * b,
            Operation::Divide if b == 0.0 && !a.is_nan() => return Err(division_by_zero()),
            Operation::Divide => a / b,
        },
        a.is_finite() && b.is_finite(),
    );
    if result.is_infinite() && finite {
        return Err(overflow());
    }
    let scales = matches!(operation, Operation::Multiply | Operation::Divide);
    if result == 0.0 && scales && a != 0.0 && b != 0.0 && b.is_finite() {
        return Err(underflow());
    }
    Ok(result)
}

fn wide(v: &[Datum], index: usize) -> Result<f64> {
    match v.get(index) {
        Some(Datum::Float4(x)) => Ok(f64::from(*x)),
        _ => float8(v, index),
    }
}

macro_rules! doubles {
    ($($name:literal $operation:ident;)*) => {
        &[$(($name, |_, v| Ok(Datum::Float8(apply(Operation::$operation, wide(v, 0)?, wide(v, 1)?)?))),)*]
    };
}

macro_rules! singles {
    ($($name:literal $operation:ident;)*) => {
        &[$(($name, |_, v| Ok(Datum::Float4(apply_single(Operation::$operation, float4(v, 0)?, float4(v, 1)?)?))),)*]
    };
}

pub(in crate::function) const DOUBLES: &[(&str, Eval)] = doubles! {
    "float8pl" Add; "float8mi" Subtract; "float8mul" Multiply; "float8div" Divide;
    "float48pl" Add; "float48mi" Subtract; "float48mul" Multiply; "float48div" Divide;
    "float84pl" Add; "float84mi" Subtract; "float84mul" Multiply; "float84div" Divide;
};

pub(in crate::function) const SINGLES: &[(&str, Eval)] = singles! {
    "float4pl" Add; "float4mi" Subtract; "float4mul" Multiply; "float4div" Divide;
};

/// A function of one double.
macro_rules! unary {
    ($($name:literal = |$x:ident| $result:expr;)*) => {
        &[$(($name, |_, v| { let $x = float8(v, 0)?; let result: Result<f64> = $result; Ok(Datum::Float8(result?)) }),)*]
    };
}

fn logarithm(x: f64, f: fn(f64) -> f64) -> Result<f64> {
    if x == 0.0 {
        return Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, "cannot take logarithm of zero"));
    }
    if x < 0.0 {
        return Err(SqlError::new(
            SqlState::INVALID_ARGUMENT_FOR_LOGARITHM,
            "cannot take logarithm of a negative number",
        ));
    }
    sum(f(x), x.is_finite())
}

fn trigonometric(x: f64, f: fn(f64) -> f64) -> Result<f64> {
    if x.is_infinite() { Err(out_of_domain()) } else { sum(f(x), true) }
}

fn within_one(x: f64, f: fn(f64) -> f64) -> Result<f64> {
    if x.is_nan() {
        return Ok(x);
    }
    if (-1.0..=1.0).contains(&x) { Ok(f(x)) } else { Err(out_of_domain()) }
}

pub(in crate::function) const MATHEMATICS: &[(&str, Eval)] = unary! {
    "float8um" = |x| Ok(-x);
    "float8up" = |x| Ok(x);
    "float8abs" = |x| Ok(x.abs());
    "dround" = |x| Ok(x.round_ties_even());
    "dtrunc" = |x| Ok(x.trunc());
    "dceil" = |x| Ok(x.ceil());
    "dfloor" = |x| Ok(x.floor());
    "dsign" = |x| Ok(if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { 0.0 });
    "dsqrt" = |x| if x < 0.0 { Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION, "cannot take square root of a negative number")) } else { Ok(x.sqrt()) };
    "dcbrt" = |x| Ok(x.cbrt());
    "dexp" = |x| { let y = x.exp(); if y == 0.0 && x.is_finite() { Err(underflow()) } else { sum(y, x.is_finite()) } };
    "dlog1" = |x| logarithm(x, f64::ln);
    "dlog10" = |x| logarithm(x, f64::log10);
    "dsin" = |x| trigonometric(x, f64::sin);
    "dcos" = |x| trigonometric(x, f64::cos);
    "dtan" = |x| trigonometric(x, f64::tan);
    "dcot" = |x| if x.is_infinite() { Err(out_of_domain()) } else { Ok(1.0 / x.tan()) };
    "dasin" = |x| within_one(x, f64::asin);
    "dacos" = |x| within_one(x, f64::acos);
    "datan" = |x| Ok(x.atan());
    "dsind" = |x| degrees::sine(x);
    "dcosd" = |x| degrees::cosine(x);
    "dtand" = |x| degrees::tangent(x);
    "dcotd" = |x| degrees::cotangent(x);
    "dasind" = |x| within_one(x, degrees::arc_sine);
    "dacosd" = |x| within_one(x, degrees::arc_cosine);
    "datand" = |x| Ok(degrees::degrees_of_tangent(x.atan()));
    "dsinh" = |x| Ok(x.sinh());
    "dcosh" = |x| Ok(x.cosh());
    "dtanh" = |x| Ok(x.tanh());
    "dasinh" = |x| Ok(x.asinh());
    "dacosh" = |x| if x < 1.0 { Err(out_of_domain()) } else { Ok(x.acosh()) };
    "datanh" = |x| within_one(x, f64::atanh);
    "degrees" = |x| sum(x / RADIANS_PER_DEGREE, x.is_finite());
    "radians" = |x| Ok(x * RADIANS_PER_DEGREE);
};

fn power(x: f64, y: f64) -> Result<f64> {
    // POSIX: 1^NaN and NaN^0 are 1.
    if x == 1.0 || y == 0.0 {
        return Ok(1.0);
    }
    if x.is_nan() || y.is_nan() {
        return Ok(f64::NAN);
    }
    if x == 0.0 && y < 0.0 {
        return Err(SqlError::new(
            SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "zero raised to a negative power is undefined",
        ));
    }
    if x < 0.0 && y.is_finite() && y.floor() != y {
        return Err(SqlError::new(
            SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    product(x.powf(y), x.is_finite() && y.is_finite(), x != 0.0 && x.is_finite() && y.is_finite())
}

pub(in crate::function) const OTHERS: &[(&str, Eval)] = &[
    ("float4um", |_, v| Ok(Datum::Float4(-float4(v, 0)?))),
    ("float4up", |_, v| Ok(Datum::Float4(float4(v, 0)?))),
    ("float4abs", |_, v| Ok(Datum::Float4(float4(v, 0)?.abs()))),
    ("dpow", |_, v| Ok(Datum::Float8(power(float8(v, 0)?, float8(v, 1)?)?))),
    ("datan2", |_, v| Ok(Datum::Float8(float8(v, 0)?.atan2(float8(v, 1)?)))),
    ("datan2d", |_, v| Ok(Datum::Float8(degrees::degrees_of_tangent(float8(v, 0)?.atan2(float8(v, 1)?))))),
    ("dpi", |_, _| Ok(Datum::Float8(std::f64::consts::PI))),
    ("drandom", |c, _| Ok(Datum::Float8(c.session.random()))),
    ("setseed", |c, v| c.session.call("setseed", v)),
    ("width_bucket_float8", |_, v| {
        let (operand, low, high, count) = (float8(v, 0)?, float8(v, 1)?, float8(v, 2)?, int4(v, 3)?);
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
        if low == high {
            return bad("lower bound cannot equal upper bound");
        }
        let share = (operand - low) / (high - low);
        Ok(Datum::Int4(if share < 0.0 {
            0
        } else if share >= 1.0 {
            if low < high || operand < high {
                count.checked_add(1).ok_or_else(|| out_of_range("integer"))?
            } else {
                count + 1
            }
        } else {
            (share * f64::from(count)) as i32 + 1
        }))
    }),
];
