//! Functions, operators and aggregates of bit strings (varbit.c).

use super::args::*;
use super::signature::{AggregateState, Factory};
use super::{Eval, FunctionContext};
use crate::bit_string::{BITS_MAX, BitString};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{Oid, Type};

fn made(bits: BitString) -> Result<Datum> {
    Ok(Datum::Bits(bits))
}

/// An operator over strings of one length, which `verb` names in the message for others (22026).
fn combine(v: &[Datum], verb: &str, combine: fn(u8, u8) -> u8) -> Result<Datum> {
    match bits(v, 0)?.combined(bits(v, 1)?, combine)? {
        Some(combined) => made(combined),
        None => Err(SqlError::new(
            SqlState::STRING_DATA_LENGTH_MISMATCH,
            format!("cannot {verb} bit strings of different sizes"),
        )),
    }
}

fn and(v: &[Datum]) -> Result<Datum> {
    combine(v, "AND", |a, b| a & b)
}

fn or(v: &[Datum]) -> Result<Datum> {
    combine(v, "OR", |a, b| a | b)
}

fn xor(v: &[Datum]) -> Result<Datum> {
    combine(v, "XOR", |a, b| a ^ b)
}

#[cold]
fn negative_length() -> SqlError {
    SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed")
}

/// Bits from a place on, which counts from 1 and may lie before the first one (bitsubstring).
fn substring(whole: &BitString, start: i32, length: Option<i32>) -> Result<BitString> {
    let start = i64::from(start);
    let beyond = whole.len() as i64 + 1;
    let end = match length {
        None => beyond,
        Some(length) if length < 0 => return Err(negative_length()),
        Some(length) => beyond.min(start + i64::from(length)),
    };
    let first = start.max(1);
    match end > first {
        true => whole.part(first as usize - 1, (end - first) as usize),
        false => whole.part(0, 0),
    }
}

/// A string with another in the place of `length` bits (bit_overlay).
fn overlay(whole: &BitString, with: &BitString, start: i32, length: i32) -> Result<Datum> {
    if start <= 0 {
        return Err(negative_length());
    }
    let rest = start.checked_add(length).ok_or_else(|| out_of_range("integer"))?;
    let before = substring(whole, 1, Some(start - 1))?;
    made(before.joined(with)?.joined(&substring(whole, rest, None)?)?)
}

/// A place in a string, from 0 on (2202E for others).
fn place(whole: &BitString, at: i32) -> Result<usize> {
    usize::try_from(at).ok().filter(|at| *at < whole.len()).ok_or_else(|| {
        let last = whole.len() as i64 - 1;
        let message = format!("bit index {at} out of valid range (0..{last})");
        SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
    })
}

/// An integer as `bit(n)`; the modifier is a length, or none: one bit.
fn of_integer(value: i64, typmod: i32) -> Result<Datum> {
    let length = usize::try_from(typmod).ok().filter(|length| (1..=BITS_MAX).contains(length));
    made(BitString::of_integer(value, length.unwrap_or(1))?)
}

/// A length coercion function: `f(value, typmod, explicit)`.
fn fitted(oid: Oid, v: &[Datum]) -> Result<Datum> {
    let ty = Type { oid, typmod: int4(v, 1)? };
    made(bits(v, 0)?.clone().fitted(ty, boolean(v, 2)?)?)
}

fn length(count: usize) -> Result<Datum> {
    Ok(Datum::Int4(count as i32))
}

pub(super) const FUNCTIONS: &[(&str, Eval)] = &[
    ("bit_and", |_, v| and(v)),
    ("bit_or", |_, v| or(v)),
    ("bitxor", |_, v| xor(v)),
    ("bitnot", |_, v| made(bits(v, 0)?.inverted()?)),
    ("bitshiftleft", |_, v| made(bits(v, 0)?.shifted(int4(v, 1)?.into())?)),
    ("bitshiftright", |_, v| made(bits(v, 0)?.shifted(-i64::from(int4(v, 1)?))?)),
    ("bitcat", |_, v| made(bits(v, 0)?.joined(bits(v, 1)?)?)),
    ("bitsubstr", |_, v| made(substring(bits(v, 0)?, int4(v, 1)?, Some(int4(v, 2)?))?)),
    ("bitsubstr_no_len", |_, v| made(substring(bits(v, 0)?, int4(v, 1)?, None)?)),
    ("bitoverlay", |_, v| overlay(bits(v, 0)?, bits(v, 1)?, int4(v, 2)?, int4(v, 3)?)),
    ("bitoverlay_no_len", |_, v| {
        let with = bits(v, 1)?;
        overlay(bits(v, 0)?, with, int4(v, 2)?, with.len() as i32)
    }),
    ("bitposition", |_, v| length(bits(v, 0)?.position(bits(v, 1)?)?.map_or(0, |at| at + 1))),
    ("bitlength", |_, v| length(bits(v, 0)?.len())),
    ("sql_1812", |_, v| length(bits(v, 0)?.len())),
    ("bitoctetlength", |_, v| length(bits(v, 0)?.bytes().len())),
    ("bit_bit_count", |_, v| Ok(Datum::Int8(bits(v, 0)?.ones() as i64))),
    ("bitgetbit", |_, v| {
        let whole = bits(v, 0)?;
        let at = place(whole, int4(v, 1)?)?;
        Ok(Datum::Int4(i32::from(whole.bit(at) == Some(true))))
    }),
    ("bitsetbit", |_, v| {
        let whole = bits(v, 0)?;
        let at = place(whole, int4(v, 1)?)?;
        match int4(v, 2)? {
            bit @ (0 | 1) => made(whole.with_bit(at, bit == 1)),
            _ => Err(invalid_parameter("new bit must be 0 or 1")),
        }
    }),
    ("bitfromint4", |_, v| of_integer(int4(v, 0)?.into(), int4(v, 1)?)),
    ("bitfromint8", |_, v| of_integer(int8(v, 0)?, int4(v, 1)?)),
    ("bittoint4", |_, v| match bits(v, 0)?.unsigned() {
        // All of 32 bits: the first one is the sign.
        Some(value) if bits(v, 0)?.len() <= 32 => Ok(Datum::Int4(value as u32 as i32)),
        _ => Err(out_of_range("integer")),
    }),
    ("bittoint8", |_, v| match bits(v, 0)?.unsigned() {
        Some(value) => Ok(Datum::Int8(value as i64)),
        None => Err(out_of_range("bigint")),
    }),
    ("bit", |_, v| fitted(Oid::BIT, v)),
    ("varbit", |_, v| fitted(Oid::VARBIT, v)),
];

/// The aggregates `bit_and`, `bit_or` and `bit_xor` of bit strings.
pub(crate) fn aggregate(name: &str) -> Option<Factory> {
    Some(match name {
        "bit_and" => |_| Box::new(Fold { value: None, combine: and }),
        "bit_or" => |_| Box::new(Fold { value: None, combine: or }),
        "bit_xor" => |_| Box::new(Fold { value: None, combine: xor }),
        _ => return None,
    })
}

struct Fold {
    value: Option<Datum>,
    combine: fn(&[Datum]) -> Result<Datum>,
}

impl AggregateState for Fold {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        let next = any(args, 0)?.clone();
        self.value = Some(match self.value.take() {
            None => next,
            Some(so_far) => (self.combine)(&[so_far, next])?,
        });
        Ok(())
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        Ok(self.value.clone().unwrap_or(Datum::Null))
    }
}
