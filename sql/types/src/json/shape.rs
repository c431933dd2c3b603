//! SQL values as JSON. A value does not know its type, so the binder passes it along: as
//! `<oid>,<modifier>`. What the fields of a row are is known to the catalog, or to the row itself.

use std::fmt::Write;

use crate::datum::{Array, Datum};
use crate::error::{Result, SqlError};
use crate::function::FunctionContext;
use crate::io::record::Fields;
use crate::io::{text_out, text_too_long};
use crate::record::Record;
use crate::type_table::element_of;
use crate::types::{Oid, Type};
use crate::{interrupt, written_size};

use super::STEPS_PER_VALUE;
use super::write::{quoted, string};

/// A type as an argument.
pub fn of_type(ty: Type) -> String {
    format!("{},{}", ty.oid.0, ty.typmod)
}

/// The type that [`of_type`] wrote.
pub(crate) fn type_of(shape: &str) -> Result<Type> {
    let (oid, typmod) = shape.split_once(',').ok_or_else(damaged)?;
    Ok(Type { oid: Oid(oid.parse().map_err(|_| damaged())?), typmod: typmod.parse().map_err(|_| damaged())? })
}

pub(super) fn damaged() -> SqlError {
    SqlError::internal("a shape of JSON cannot be read")
}

/// A field's name, and what follows it.
pub(super) fn field(shape: &str) -> Result<(&str, &str)> {
    let (length, rest) = shape.split_once(':').ok_or_else(damaged)?;
    let length: usize = length.parse().map_err(|_| damaged())?;
    Ok((rest.get(..length).ok_or_else(damaged)?, &rest[length..]))
}

/// Appends a value of a type as JSON.
pub fn value_out(value: &Datum, ty: Type, ctx: &FunctionContext<'_>, out: &mut String) -> Result<()> {
    written_size::check(value)?;
    match value {
        Datum::Null => out.push_str("null"),
        Datum::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Datum::Jsonb(text) => out.push_str(text),
        Datum::Text(text) if matches!(ty.oid, Oid::JSON | Oid::JSONB) => out.push_str(text),
        Datum::Int2(_)
        | Datum::Int4(_)
        | Datum::Int8(_)
        | Datum::Float4(_)
        | Datum::Float8(_)
        | Datum::Numeric(_)
            if is_number(ty.oid) =>
        {
            let text = written(value, ty, ctx)?;
            // NaN and infinities are no JSON numbers.
            if text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()) {
                out.push_str(&text);
            } else {
                string(&text, out);
            }
        }
        Datum::Date(_) | Datum::Timestamp(_) | Datum::TimestampTz(_) => string(&iso(value, ctx)?, out),
        Datum::Array(array) => {
            let element = Type { oid: element_of(ty.oid).unwrap_or(array.element), typmod: ty.typmod };
            array_out(array, 0, &mut 0, element, ctx, out)?;
        }
        Datum::Record(record) if ty.oid != Oid::POINT => row_out(record, ty.oid, ctx, out)?,
        value => quoted(&written(value, ty, ctx)?, out)?,
    }
    Ok(())
}

/// Whether JSON has numbers for a type.
fn is_number(ty: Oid) -> bool {
    matches!(ty, Oid::INT2 | Oid::INT4 | Oid::INT8 | Oid::FLOAT4 | Oid::FLOAT8 | Oid::NUMERIC)
}

fn written(value: &Datum, ty: Type, ctx: &FunctionContext<'_>) -> Result<String> {
    let mut text = String::new();
    text_out(value, ty, ctx, &mut text).map_err(|_| text_too_long())?;
    Ok(text)
}

fn row_out(record: &Record, ty: Oid, ctx: &FunctionContext<'_>, out: &mut String) -> Result<()> {
    let fields = Fields::of(record, ty, ctx);
    out.push('{');
    for place in 0..fields.width() {
        if place > 0 {
            out.push(',');
        }
        match fields.name(place) {
            Some(name) => string(name, out),
            None => {
                let _ = write!(out, "\"f{}\"", place + 1);
            }
        }
        out.push(':');
        let value = record.get(place).unwrap_or(&Datum::Null);
        value_out(value, fields.ty(place, value), ctx, out)?;
    }
    out.push('}');
    Ok(())
}

fn array_out(
    array: &Array,
    dimension: usize,
    next: &mut usize,
    element: Type,
    ctx: &FunctionContext<'_>,
    out: &mut String,
) -> Result<()> {
    let length = array.dimensions.get(dimension).map_or(0, |dimension| dimension.length);
    out.push('[');
    for place in 0..length {
        if place > 0 {
            out.push(',');
        }
        if dimension + 1 < array.dimensions.len() {
            array_out(array, dimension + 1, next, element, ctx, out)?;
        } else {
            interrupt::steps(STEPS_PER_VALUE)?;
            value_out(&array.values[*next], element, ctx, out)?;
            *next += 1;
        }
    }
    out.push(']');
    Ok(())
}

/// Dates and times in JSON are ISO 8601 whatever DateStyle says.
fn iso(value: &Datum, ctx: &FunctionContext<'_>) -> Result<String> {
    let mut text = String::new();
    let written = match value {
        Datum::Date(days) => crate::datetime::format_date(*days, &mut text),
        Datum::Timestamp(micros) => crate::datetime::format_timestamp(*micros, &mut text),
        Datum::TimestampTz(micros) => {
            crate::datetime::format_timestamptz(*micros, &ctx.style().time_zone, &mut text)
        }
        _ => return Err(damaged()),
    };
    written.map_err(|_| damaged())?;
    // A date has a blank before its era alone.
    if !matches!(value, Datum::Date(_)) {
        text = text.replacen(' ', "T", 1);
    }
    // Offsets show their minutes; the era comes after them.
    let end = text.strip_suffix(" BC").unwrap_or(&text).len();
    if matches!(value, Datum::TimestampTz(_))
        && let Some(sign) = text[..end].rfind(['+', '-']).filter(|at| *at > 10)
        && end - sign == 3
    {
        text.insert_str(end, ":00");
    }
    Ok(text)
}

/// What a target begins with that the row given does not fit.
pub const MISMATCH: char = '!';

/// A target in the place of one that the row given does not fit, and why.
pub fn mismatch(detail: &str) -> String {
    format!("{MISMATCH}{detail}")
}

/// The fields a row is to be read into: `<length>:<name><oid>,<typmod>;` each.
pub fn target<'n>(fields: impl Iterator<Item = (&'n str, Type)>) -> String {
    let mut text = String::new();
    for (name, ty) in fields {
        let _ = write!(text, "{}:{name}{};", name.len(), of_type(ty));
    }
    text
}
