//! SQL values as JSON. A value does not know its type, so the binder passes a shape
//! along: a short text that says how to read the value.
//!
//! `n` number, `b` boolean, `j` JSON, `d` date, `t` timestamp, `z` timestamptz, `p<length>;` text with
//! blanks up to a length, `s<oid>;` any other type by its text, `a` and a shape: an array of it, `r` and `<length>:<name>` with a shape
//! for each field, then `)`: a row. `g` is a value nothing is known of.

use std::fmt::Write;

use crate::datum::{Array, Datum};
use crate::error::{Result, SqlError};
use crate::function::FunctionContext;
use crate::io::{natural_type, text_out};
use crate::type_table::element_of;
use crate::types::{Oid, Type};

use super::write::string;

/// The shape of a type without fields.
pub fn of_type(ty: Type) -> String {
    match ty.oid {
        Oid::INT2 | Oid::INT4 | Oid::INT8 | Oid::FLOAT4 | Oid::FLOAT8 | Oid::NUMERIC => "n".to_owned(),
        Oid::BOOL => "b".to_owned(),
        Oid::JSON | Oid::JSONB => "j".to_owned(),
        Oid::DATE => "d".to_owned(),
        Oid::TIMESTAMP => "t".to_owned(),
        Oid::TIMESTAMPTZ => "z".to_owned(),
        Oid::RECORD => "g".to_owned(),
        Oid::BPCHAR if ty.typmod >= 4 => format!("p{};", ty.typmod - 4),
        other => match element_of(other) {
            Some(element) if !matches!(other, Oid::INT2VECTOR | Oid::OIDVECTOR) => {
                format!("a{}", of_type(Type { oid: element, typmod: ty.typmod }))
            }
            _ => format!("s{};", other.0),
        },
    }
}

/// The shape of a row.
pub fn of_row<'n>(fields: impl Iterator<Item = (&'n str, String)>) -> String {
    let mut shape = String::from("r");
    for (name, field) in fields {
        let _ = write!(shape, "{}:{name}{field}", name.len());
    }
    shape.push(')');
    shape
}

pub(super) fn damaged() -> SqlError {
    SqlError::internal("a shape of JSON cannot be read")
}

/// The shape after this one.
fn skip(shape: &str) -> Result<&str> {
    match shape.as_bytes().first() {
        Some(b's' | b'p') => shape.find(';').map(|end| &shape[end + 1..]).ok_or_else(damaged),
        Some(b'a') => skip(&shape[1..]),
        Some(b'r') => {
            let mut rest = &shape[1..];
            while !rest.starts_with(')') {
                rest = skip(field(rest)?.1)?;
            }
            Ok(&rest[1..])
        }
        Some(_) => Ok(&shape[1..]),
        None => Err(damaged()),
    }
}

/// A field's name, and what follows it.
pub(super) fn field(shape: &str) -> Result<(&str, &str)> {
    let (length, rest) = shape.split_once(':').ok_or_else(damaged)?;
    let length: usize = length.parse().map_err(|_| damaged())?;
    Ok((rest.get(..length).ok_or_else(damaged)?, &rest[length..]))
}

/// Appends a value as JSON.
pub fn value_out(value: &Datum, shape: &str, ctx: &FunctionContext<'_>, out: &mut String) -> Result<()> {
    if value.is_null() {
        out.push_str("null");
        return Ok(());
    }
    let write = |value: &Datum, ty: Type| {
        let mut text = String::new();
        text_out(value, ty, ctx, &mut text)
            .map(|()| text)
            .map_err(|_| SqlError::internal("a value without text"))
    };
    match (shape.as_bytes().first(), value) {
        (Some(b'b'), Datum::Bool(value)) => out.push_str(if *value { "true" } else { "false" }),
        (Some(b'j'), Datum::Text(text) | Datum::Jsonb(text)) => out.push_str(text),
        (Some(b'n'), value) => {
            let text = write(value, natural_type(value))?;
            // NaN and infinities are no JSON numbers.
            if text.starts_with(|c: char| c.is_ascii_digit())
                || text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            {
                out.push_str(&text);
            } else {
                string(&text, out);
            }
        }
        (Some(b'd' | b't' | b'z'), value) => string(&iso(value, ctx)?, out),
        (Some(b'a'), Datum::Array(array)) => array_out(array, 0, &mut 0, &shape[1..], ctx, out)?,
        (Some(b'r'), Datum::Record(values)) => {
            out.push('{');
            let mut rest = &shape[1..];
            for (place, value) in values.iter().enumerate() {
                if rest.starts_with(')') {
                    break;
                }
                if place > 0 {
                    out.push(',');
                }
                let (name, shape) = field(rest)?;
                string(name, out);
                out.push(':');
                value_out(value, shape, ctx, out)?;
                rest = skip(shape)?;
            }
            out.push('}');
        }
        (kind, Datum::Record(values)) if kind != Some(&b's') => {
            out.push('{');
            for (place, value) in values.iter().enumerate() {
                let _ = write!(out, "{}\"f{}\":", if place > 0 { "," } else { "" }, place + 1);
                value_out(value, "g", ctx, out)?;
            }
            out.push('}');
        }
        (Some(b'g'), Datum::Array(array)) => array_out(array, 0, &mut 0, "g", ctx, out)?,
        (Some(b'g'), value) => {
            let shape = of_type(natural_type(value));
            value_out(value, &shape, ctx, out)?;
        }
        (Some(b'p'), value) => {
            let length: Option<i32> = shape[1..].split(';').next().and_then(|length| length.parse().ok());
            let typmod = length.ok_or_else(damaged)? + 4;
            string(&write(value, Type { oid: Oid::BPCHAR, typmod })?, out);
        }
        (Some(b's'), value) => {
            let oid = shape[1..].split(';').next().and_then(|oid| oid.parse().ok()).ok_or_else(damaged)?;
            string(&write(value, Type::of(Oid(oid)))?, out);
        }
        (_, value) => string(&write(value, natural_type(value))?, out),
    }
    Ok(())
}

fn array_out(
    array: &Array,
    dimension: usize,
    next: &mut usize,
    shape: &str,
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
            array_out(array, dimension + 1, next, shape, ctx, out)?;
        } else {
            value_out(&array.values[*next], shape, ctx, out)?;
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
    let mut text = text.replacen(' ', "T", 1);
    // Offsets show their minutes.
    if matches!(value, Datum::TimestampTz(_))
        && let Some(sign) = text.rfind(['+', '-']).filter(|at| *at > 10)
        && text.len() - sign == 3
    {
        text.push_str(":00");
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
        let _ = write!(text, "{}:{name}{},{};", name.len(), ty.oid.0, ty.typmod);
    }
    text
}
