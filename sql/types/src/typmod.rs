//! Coercion of a value to its type's modifier: `varchar(n)`, `char(n)`, `numeric(p,s)`,
//! `timestamp(p)`, `bit(n)`.
//!
//! An assignment refuses what an explicit cast cuts off (SQL:2016 6.13 and 9.2): too long a
//! string is 22001 on assignment unless only blanks are lost, and is truncated by a cast.

use std::sync::Arc;

use compact_str::CompactString;

use crate::datum::{Datum, Interval};
use crate::error::{Result, SqlError, SqlState};
use crate::types::{Oid, Type};

/// Byte index after `count` characters, or `None` if the text has no more than that.
fn cut_at(text: &str, count: usize) -> Option<usize> {
    if text.len() <= count { None } else { text.char_indices().nth(count).map(|(at, _)| at) }
}

/// A text without the blanks at its end: what of a value of `bpchar` is compared, and becomes a text.
#[inline]
pub fn without_blanks(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// A text with as many blanks at its end as it lacks characters.
#[inline]
pub fn padded(mut text: CompactString, length: usize) -> CompactString {
    let held = if text.is_ascii() { text.len() } else { text.chars().count() };
    let missing = length.saturating_sub(held);
    if missing > 0 {
        text.reserve(missing);
        (0..missing).for_each(|_| text.push(' '));
    }
    text
}

/// How many characters a value of `char(n)` has; `None` for `bpchar` without a length, and other types.
#[inline]
pub fn padded_length(ty: Type) -> Option<usize> {
    if ty.oid == Oid::BPCHAR && ty.typmod >= 4 { Some((ty.typmod - 4) as usize) } else { None }
}

/// A field of a row, of a type: NULL of what is none. `char(n)` and `bpchar` were stored there as texts
/// once, without their blanks, and are given them back, as elements of arrays are.
pub fn field(record: &Datum, index: usize, ty: Type) -> Datum {
    let Datum::Record(fields) = record else { return Datum::Null };
    let field = fields.get(index).cloned().unwrap_or(Datum::Null);
    match ty.oid {
        Oid::BPCHAR => match (padded_length(ty), field) {
            (Some(length), Datum::Text(text) | Datum::Bpchar(text)) => Datum::Bpchar(padded(text, length)),
            (None, Datum::Text(text)) => Datum::Bpchar(text),
            (_, field) => field,
        },
        Oid::BPCHAR_ARRAY => match padded_length(Type { oid: Oid::BPCHAR, ..ty }) {
            Some(length) => padded_elements(field, length),
            None => field,
        },
        _ => field,
    }
}

/// An array whose elements are of `char(n)`, each with its blanks.
pub fn padded_elements(mut array: Datum, length: usize) -> Datum {
    let is_short = |element: &Datum| matches!(element, Datum::Bpchar(text) if text.chars().count() < length);
    if let Datum::Array(array) = &mut array
        && array.values.iter().any(is_short)
    {
        for element in &mut Arc::make_mut(array).values {
            if let Datum::Bpchar(text) = element {
                *text = padded(std::mem::take(text), length);
            }
        }
    }
    array
}

/// Whether a value of this type can need [`coerce_typmod`] at all.
pub fn has_typmod(ty: Type) -> bool {
    ty.typmod >= 0
}

/// Fits `value`, already of type `ty.oid`, to `ty.typmod`.
pub fn coerce_typmod(value: Datum, ty: Type, explicit: bool) -> Result<Datum> {
    if ty.typmod < 0 && ty.oid != Oid::BPCHAR {
        return Ok(value);
    }
    match value {
        Datum::Text(text) if ty.oid == Oid::VARCHAR => coerce_text(text, ty, explicit).map(Datum::Text),
        Datum::Text(text) | Datum::Bpchar(text) if ty.oid == Oid::BPCHAR => {
            let text = coerce_text(text, ty, explicit)?;
            Ok(Datum::Bpchar(match padded_length(ty) {
                Some(length) => padded(text, length),
                None => text,
            }))
        }
        Datum::Bits(bits) => bits.fitted(ty, explicit).map(Datum::Bits),
        Datum::Numeric(number) if ty.oid == Oid::NUMERIC => number.with_typmod(ty.typmod).map(Datum::Numeric),
        Datum::Timestamp(at) => Ok(Datum::Timestamp(round_timestamp(at, ty.typmod))),
        Datum::TimestampTz(at) => Ok(Datum::TimestampTz(round_timestamp(at, ty.typmod))),
        Datum::Time(at) => Ok(Datum::Time(round_microseconds(at, ty.typmod))),
        Datum::TimeTz(at) => {
            let clock = round_microseconds(at.microseconds(), ty.typmod);
            crate::datetime::TimeTz::new(clock, at.west()).map(Datum::TimeTz)
        }
        Datum::Interval(interval) => {
            Ok(Datum::Interval(std::sync::Arc::new(coerce_interval(&interval, ty.typmod))))
        }
        Datum::Array(array) => {
            let Some(element) = crate::type_table::element_of(ty.oid) else { return Ok(Datum::Array(array)) };
            let mut array = std::sync::Arc::unwrap_or_clone(array);
            for value in &mut array.values {
                *value = coerce_typmod(
                    std::mem::replace(value, Datum::Null),
                    Type { oid: element, typmod: ty.typmod },
                    explicit,
                )?;
            }
            Ok(Datum::Array(std::sync::Arc::new(array)))
        }
        other => Ok(other),
    }
}

fn coerce_text(mut text: CompactString, ty: Type, explicit: bool) -> Result<CompactString> {
    if ty.typmod >= 4 {
        let limit = (ty.typmod - 4) as usize;
        if let Some(at) = cut_at(&text, limit) {
            // SQL: blanks alone may be lost in silence.
            if !explicit && !text[at..].bytes().all(|b| b == b' ') {
                let name = if ty.oid == Oid::BPCHAR { "character" } else { "character varying" };
                return Err(SqlError::new(
                    SqlState::STRING_DATA_RIGHT_TRUNCATION,
                    format!("value too long for type {name}({limit})"),
                ));
            }
            text.truncate(at);
        }
    }
    Ok(text)
}

/// Rounds microseconds to `precision` decimals of a second, halves away from zero.
fn round_microseconds(value: i64, precision: i32) -> i64 {
    if !(0..6).contains(&precision) {
        return value;
    }
    let unit = 10i64.pow(6 - precision as u32);
    let half = unit / 2;
    if value >= 0 {
        value.saturating_add(half) / unit * unit
    } else {
        -((-value).saturating_add(half) / unit * unit)
    }
}

fn round_timestamp(value: i64, precision: i32) -> i64 {
    if value == i64::MAX || value == i64::MIN { value } else { round_microseconds(value, precision) }
}

/// Interval fields and precision (INTERVAL_TYPMOD): lesser fields are cut off.
fn coerce_interval(interval: &Interval, typmod: i32) -> Interval {
    const HOUR: i64 = 3_600_000_000;
    const MINUTE: i64 = 60_000_000;
    let mut value = *interval;
    let range = (typmod >> 16) & 0x7fff;
    match range {
        0x4 => value = Interval { months: value.months / 12 * 12, days: 0, microseconds: 0 },
        0x2 | 0x6 => value = Interval { days: 0, microseconds: 0, ..value },
        0x8 => value.microseconds = 0,
        0x400 | 0x408 => value.microseconds = value.microseconds / HOUR * HOUR,
        0x800 | 0xc00 | 0xc08 => value.microseconds = value.microseconds / MINUTE * MINUTE,
        _ => {}
    }
    let precision = typmod & 0xffff;
    if precision <= 6 {
        value.microseconds = round_microseconds(value.microseconds, precision);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::{Array, Dimension};

    #[test]
    fn strings_fit_or_are_cut() {
        let varchar3 = Type { oid: Oid::VARCHAR, typmod: 7 };
        let fit = |text: &str, explicit| coerce_typmod(Datum::text(text), varchar3, explicit);
        assert_eq!(fit("abc", false), Ok(Datum::text("abc")));
        assert_eq!(fit("abc  ", false), Ok(Datum::text("abc")));
        assert_eq!(fit("äöüß", true), Ok(Datum::text("äöü")));
        let error = fit("abcd", false).unwrap_err();
        assert_eq!(
            (error.state(), error.message()),
            (SqlState::STRING_DATA_RIGHT_TRUNCATION, "value too long for type character varying(3)")
        );
    }

    #[test]
    fn padded_strings_keep_their_blanks() {
        let fit = |text: &str, typmod, explicit| {
            coerce_typmod(Datum::text(text), Type { oid: Oid::BPCHAR, typmod }, explicit)
        };
        assert_eq!(fit("ab ", -1, false), Ok(Datum::bpchar("ab ")));
        assert_eq!(fit("ab ", 9, false), Ok(Datum::bpchar("ab   ")));
        assert_eq!(fit("äb", 7, false), Ok(Datum::bpchar("äb ")));
        assert_eq!(fit("ab   ", 7, false), Ok(Datum::bpchar("ab ")));
        assert_eq!(fit("abcd", 7, true), Ok(Datum::bpchar("abc")));
        let shorter = coerce_typmod(Datum::bpchar("ab   "), Type { oid: Oid::BPCHAR, typmod: 6 }, false);
        assert_eq!(shorter, Ok(Datum::bpchar("ab")));
        assert_eq!(without_blanks("a b  "), "a b");
    }

    #[test]
    fn fields_without_blanks_get_them_back() {
        let dimensions = vec![Dimension { length: 1, lower_bound: 1 }];
        let array = |text: &str| {
            let values = vec![Datum::bpchar(text)];
            Datum::Array(Arc::new(Array { element: Oid::BPCHAR, dimensions: dimensions.clone(), values }))
        };
        let row = Datum::Record([Datum::text("a"), array("b"), Datum::text("c "), Datum::Null].into());
        let of = |oid, typmod| Type { oid, typmod };
        assert_eq!(field(&row, 0, of(Oid::BPCHAR, 7)), Datum::bpchar("a  "));
        assert_eq!(field(&row, 1, of(Oid::BPCHAR_ARRAY, 7)), array("b  "));
        assert_eq!(field(&row, 2, of(Oid::BPCHAR, -1)), Datum::bpchar("c "));
        assert_eq!(field(&row, 2, of(Oid::TEXT, -1)), Datum::text("c "));
        assert_eq!(field(&row, 3, of(Oid::BPCHAR, 7)), Datum::Null);
        assert_eq!(field(&row, 4, of(Oid::BPCHAR, 7)), Datum::Null);
        assert_eq!(field(&Datum::Null, 0, of(Oid::BPCHAR, 7)), Datum::Null);
    }
}
