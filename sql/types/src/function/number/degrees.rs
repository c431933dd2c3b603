//! The trigonometric functions in degrees.
//!
//! As float.c computes them: in the first quadrant, from the function whose values are small there, scaled
//! by a value that is known exactly. So the multiples of 30 and 45 degrees are exact, and all others have
//! PostgreSQL's last digits.

use crate::error::{Result, SqlError, SqlState};

fn sine_to_30(x: f64) -> f64 {
    ((x * RADIANS_PER_DEGREE).sin() / (30.0 * RADIANS_PER_DEGREE).sin()) / 2.0
}

fn cosine_to_60(x: f64) -> f64 {
    let lacks = |x: f64| 1.0 - (x * RADIANS_PER_DEGREE).cos();
    1.0 - (lacks(x) / lacks(60.0)) / 2.0
}

/// In the first quadrant.
fn sine_of_first(x: f64) -> f64 {
    if x <= 30.0 { sine_to_30(x) } else { cosine_to_60(90.0 - x) }
}

fn cosine_of_first(x: f64) -> f64 {
    if x <= 60.0 { cosine_to_60(x) } else { sine_to_30(90.0 - x) }
}

fn tangent_of_first(x: f64) -> f64 {
    sine_of_first(x) / cosine_of_first(x)
}

fn cotangent_of_first(x: f64) -> f64 {
    cosine_of_first(x) / sine_of_first(x)
}

/// An angle in the first quadrant, and whether the given one is left of zero, below it, and beyond 90
/// degrees from it.
struct Folded {
    angle: f64,
    negative: bool,
    below: bool,
    beyond: bool,
}

impl Folded {
    fn of(x: f64) -> Result<Folded> {
        if x.is_infinite() {
            return Err(out_of_domain());
        }
        let turned = x % 360.0;
        let (negative, mut angle) = (turned < 0.0, turned.abs());
        let below = angle > 180.0;
        if below {
            angle = 360.0 - angle;
        }
        let beyond = angle > 90.0;
        if beyond {
            angle = 180.0 - angle;
        }
        Ok(Folded { angle, negative, below, beyond })
    }
}

fn signed(value: f64, negative: bool) -> f64 {
    if negative { -value } else { value }
}

pub(super) fn sine(x: f64) -> Result<f64> {
    let folded = Folded::of(x)?;
    Ok(signed(sine_of_first(folded.angle), folded.negative != folded.below))
}

pub(super) fn cosine(x: f64) -> Result<f64> {
    let folded = Folded::of(x)?;
    Ok(signed(cosine_of_first(folded.angle), folded.beyond))
}

pub(super) fn tangent(x: f64) -> Result<f64> {
    ratio(x, tangent_of_first)
}

pub(super) fn cotangent(x: f64) -> Result<f64> {
    ratio(x, cotangent_of_first)
}

/// A ratio of the two, exact at 45 degrees and never a negative zero.
fn ratio(x: f64, of_first: fn(f64) -> f64) -> Result<f64> {
    let folded = Folded::of(x)?;
    let negative = (folded.negative != folded.below) != folded.beyond;
    let value = signed(of_first(folded.angle) / of_first(45.0), negative);
    Ok(if value == 0.0 { 0.0 } else { value })
}

fn arc_sine_of_first(x: f64) -> f64 {
    if x <= 0.5 { (x.asin() / 0.5f64.asin()) * 30.0 } else { 90.0 - (x.acos() / 0.5f64.acos()) * 60.0 }
}

fn arc_cosine_of_first(x: f64) -> f64 {
    if x <= 0.5 { 90.0 - (x.asin() / 0.5f64.asin()) * 30.0 } else { (x.acos() / 0.5f64.acos()) * 60.0 }
}

pub(super) fn arc_sine(x: f64) -> f64 {
    if x >= 0.0 { arc_sine_of_first(x) } else { -arc_sine_of_first(-x) }
}

pub(super) fn arc_cosine(x: f64) -> f64 {
    if x >= 0.0 { arc_cosine_of_first(x) } else { 90.0 + arc_sine_of_first(-x) }
}

/// An angle that an arc tangent has answered, in degrees.
pub(super) fn degrees_of_tangent(radians: f64) -> f64 {
    (radians / 1.0f64.atan()) * 45.0
}

fn domain(message: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

pub(super) const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

pub(super) fn out_of_domain() -> SqlError {
    domain("input is out of range")
}
