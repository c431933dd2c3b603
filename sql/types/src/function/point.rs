//! `point`: two doubles. Comparisons hold within PostgreSQL's tolerance of a millionth (geo_ops.c).

use super::Eval;
use super::args::*;
use super::number::float::overflow;
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::io::point::{point_of, point_value};

/// How far apart two numbers are that count as one.
const TOLERANCE: f64 = 1.0e-6;

fn point(v: &[Datum], at: usize) -> Result<(f64, f64)> {
    point_of(any(v, at)?).ok_or_else(|| SqlError::internal("an argument is no point"))
}

fn same(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= TOLERANCE
}

fn less(a: f64, b: f64) -> bool {
    b - a > TOLERANCE
}

fn equal((x, y): (f64, f64), (u, v): (f64, f64)) -> bool {
    if [x, y, u, v].iter().any(|number| number.is_nan()) {
        let exactly = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
        return exactly(x, u) && exactly(y, v);
    }
    same(x, u) && same(y, v)
}

fn test(v: &[Datum], holds: impl FnOnce((f64, f64), (f64, f64)) -> bool) -> Result<Datum> {
    Ok(Datum::Bool(holds(point(v, 0)?, point(v, 1)?)))
}

/// What was made of finite numbers is finite.
fn checked(value: f64, from: &[f64]) -> Result<f64> {
    match value.is_infinite() && !from.iter().any(|number| number.is_infinite()) {
        true => Err(overflow()),
        false => Ok(value),
    }
}

fn made(v: &[Datum], make: impl FnOnce((f64, f64), (f64, f64)) -> (f64, f64)) -> Result<Datum> {
    let (a, b) = (point(v, 0)?, point(v, 1)?);
    let (x, y) = make(a, b);
    let from = [a.0, a.1, b.0, b.1];
    Ok(point_value(checked(x, &from)?, checked(y, &from)?))
}

fn quotient(v: &[Datum]) -> Result<Datum> {
    let (u, w) = point(v, 1)?;
    let square = u * u + w * w;
    if square == 0.0 {
        return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
    }
    made(v, |(x, y), _| ((x * u + y * w) / square, (u * y - x * w) / square))
}

fn slope(v: &[Datum]) -> Result<Datum> {
    let ((x, y), (u, w)) = (point(v, 0)?, point(v, 1)?);
    Ok(Datum::Float8(if same(x, u) {
        f64::INFINITY
    } else if same(y, w) {
        0.0
    } else {
        checked((y - w) / (x - u), &[x, y, u, w])?
    }))
}

/// `point[0]` and `point[1]`; there is nothing at other places.
fn coordinate(v: &[Datum]) -> Result<Datum> {
    let (x, y) = point(v, 0)?;
    Ok(match int4(v, 1)? {
        0 => Datum::Float8(x),
        1 => Datum::Float8(y),
        _ => Datum::Null,
    })
}

/// A point with a coordinate replaced (array_set_element, of arrays of fixed length): a NULL changes
/// nothing, and no NULL is changed.
fn assigned(v: &[Datum]) -> Result<Datum> {
    let (old, new) = (any(v, 0)?, any(v, 1)?);
    if any(v, 2)?.is_null() {
        return Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "array subscript in assignment must not be null",
        ));
    }
    if old.is_null() || new.is_null() {
        return Ok(old.clone());
    }
    let ((x, y), new) = (point(v, 0)?, float8(v, 1)?);
    match int4(v, 2)? {
        0 => Ok(point_value(new, y)),
        1 => Ok(point_value(x, new)),
        _ => Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "array subscript out of range")),
    }
}

pub(super) const FUNCTIONS: &[(&str, Eval)] = &[
    ("construct_point", |_, v| Ok(point_value(float8(v, 0)?, float8(v, 1)?))),
    ("archipel_point_coordinate", |_, v| coordinate(v)),
    ("archipel_point_assign", |_, v| assigned(v)),
    ("point_eq", |_, v| test(v, equal)),
    ("point_ne", |_, v| test(v, |a, b| !equal(a, b))),
    ("point_left", |_, v| test(v, |a, b| less(a.0, b.0))),
    ("point_right", |_, v| test(v, |a, b| less(b.0, a.0))),
    ("point_above", |_, v| test(v, |a, b| less(b.1, a.1))),
    ("point_below", |_, v| test(v, |a, b| less(a.1, b.1))),
    ("point_vert", |_, v| test(v, |a, b| same(a.0, b.0))),
    ("point_horiz", |_, v| test(v, |a, b| same(a.1, b.1))),
    ("point_distance", |_, v| {
        let ((x, y), (u, w)) = (point(v, 0)?, point(v, 1)?);
        Ok(Datum::Float8(checked((x - u).hypot(y - w), &[x, y, u, w])?))
    }),
    ("point_slope", |_, v| slope(v)),
    ("point_add", |_, v| made(v, |(x, y), (u, w)| (x + u, y + w))),
    ("point_sub", |_, v| made(v, |(x, y), (u, w)| (x - u, y - w))),
    ("point_mul", |_, v| made(v, |(x, y), (u, w)| (x * u - y * w, x * w + y * u))),
    ("point_div", |_, v| quotient(v)),
];
