//! Reading arguments: each answers the value, or an internal error if the binder passed a
//! value of another type.

use std::sync::Arc;

use crate::bit_string::BitString;
use crate::datetime::TimeTz;
use crate::datum::{Array, Datum, Interval};
use crate::error::{Result, SqlError, SqlState};
use crate::network::{Inet, MacAddress, MacAddress8};
use crate::numeric::Numeric;
use crate::types::Oid;

#[cold]
fn mismatch(wanted: &str, args: &[Datum], index: usize) -> SqlError {
    SqlError::internal(format!("argument {} is no {wanted}: {:?}", index + 1, args.get(index)))
}

macro_rules! readers {
    ($($name:ident $variant:ident $ty:ty;)*) => {
        $(
            #[inline]
            pub(crate) fn $name(args: &[Datum], index: usize) -> Result<$ty> {
                match args.get(index) {
                    Some(Datum::$variant(value)) => Ok(*value),
                    _ => Err(mismatch(stringify!($variant), args, index)),
                }
            }
        )*
    };
}

readers! {
    boolean Bool bool;
    int2 Int2 i16;
    int4 Int4 i32;
    int8 Int8 i64;
    float4 Float4 f32;
    float8 Float8 f64;
    date Date i32;
    time Time i64;
    timestamp Timestamp i64;
    timestamptz TimestampTz i64;
    timetz TimeTz TimeTz;
    oid Oid Oid;
    inet Inet Inet;
    mac_address MacAddress MacAddress;
    mac_address8 MacAddress8 MacAddress8;
}

#[inline]
pub(crate) fn text(args: &[Datum], index: usize) -> Result<&str> {
    match args.get(index) {
        Some(Datum::Text(value) | Datum::Jsonb(value) | Datum::Bpchar(value)) => Ok(value),
        _ => Err(mismatch("Text", args, index)),
    }
}

#[inline]
pub(crate) fn numeric(args: &[Datum], index: usize) -> Result<&Numeric> {
    match args.get(index) {
        Some(Datum::Numeric(value)) => Ok(value),
        _ => Err(mismatch("Numeric", args, index)),
    }
}

#[inline]
pub(crate) fn bytea(args: &[Datum], index: usize) -> Result<&[u8]> {
    match args.get(index) {
        Some(Datum::Bytea(value)) => Ok(value),
        _ => Err(mismatch("Bytea", args, index)),
    }
}

#[inline]
pub(crate) fn bits(args: &[Datum], index: usize) -> Result<&BitString> {
    match args.get(index) {
        Some(Datum::Bits(value)) => Ok(value),
        _ => Err(mismatch("Bits", args, index)),
    }
}

#[inline]
pub(crate) fn interval(args: &[Datum], index: usize) -> Result<Interval> {
    match args.get(index) {
        Some(Datum::Interval(value)) => Ok(**value),
        _ => Err(mismatch("Interval", args, index)),
    }
}

#[inline]
pub(crate) fn array(args: &[Datum], index: usize) -> Result<&Arc<Array>> {
    match args.get(index) {
        Some(Datum::Array(value)) => Ok(value),
        _ => Err(mismatch("Array", args, index)),
    }
}

/// The argument itself, for functions of any type.
#[inline]
pub(crate) fn any(args: &[Datum], index: usize) -> Result<&Datum> {
    args.get(index).ok_or_else(|| mismatch("argument", args, index))
}

pub(crate) fn text_datum(value: impl AsRef<str>) -> Datum {
    Datum::text(value.as_ref())
}

/// A text that was made and is handed over: it may be long, and is not copied.
pub(crate) fn made_text(value: String) -> Datum {
    Datum::Text(value.into())
}

pub(crate) fn interval_datum(value: Interval) -> Datum {
    Datum::Interval(Arc::new(value))
}

/// 22003 with PostgreSQL's wording: `integer out of range`.
#[cold]
pub(crate) fn out_of_range(type_name: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{type_name} out of range"))
}

#[cold]
pub(crate) fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// 22023.
#[cold]
pub(crate) fn invalid_parameter(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}
