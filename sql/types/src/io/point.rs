//! `point` as text: two doubles.

use std::fmt::Write;

use super::{invalid_syntax, parse_f64, show_f64};
use crate::datum::Datum;
use crate::error::{Result, SqlState};

/// A value.
pub fn point_value(x: f64, y: f64) -> Datum {
    Datum::Record([Datum::Float8(x), Datum::Float8(y)].into())
}

/// The coordinates of a value.
pub fn point_of(value: &Datum) -> Option<(f64, f64)> {
    match value {
        Datum::Record(fields) => match fields[..] {
            [Datum::Float8(x), Datum::Float8(y)] => Some((x, y)),
            _ => None,
        },
        _ => None,
    }
}

/// Reads `(x,y)` or `x,y`.
pub fn parse_point(text: &str) -> Result<Datum> {
    let invalid = || invalid_syntax("point", text);
    let trimmed = text.trim();
    let inner = match trimmed.strip_prefix('(') {
        Some(opened) => opened.strip_suffix(')').ok_or_else(invalid)?,
        None => trimmed,
    };
    let (x, y) = inner.split_once(',').ok_or_else(invalid)?;
    let coordinate = |part: &str| {
        let part = part.trim();
        if part.is_empty() {
            return Err(invalid());
        }
        parse_f64(part).map_err(|error| match error.state() {
            SqlState::INVALID_TEXT_REPRESENTATION => invalid(),
            _ => error,
        })
    };
    Ok(point_value(coordinate(x)?, coordinate(y)?))
}

/// Shows a value.
pub fn show_point((x, y): (f64, f64), digits: i32, out: &mut dyn Write) -> std::fmt::Result {
    out.write_str("(")?;
    show_f64(x, digits, out)?;
    out.write_str(",")?;
    show_f64(y, digits, out)?;
    out.write_str(")")
}
