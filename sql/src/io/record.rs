//! Composite values as text: `(1,"a b",)`.

use std::fmt::Write;

use super::{natural_type, text_in, text_out};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::FunctionContext;
use crate::types::Type;

/// Writes a row. NULL fields are empty, empty strings are quoted.
pub fn record_out(fields: &[Datum], ctx: &FunctionContext<'_>, out: &mut dyn Write) -> std::fmt::Result {
    out.write_str("(")?;
    let mut scratch = String::new();
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            out.write_str(",")?;
        }
        if field.is_null() {
            continue;
        }
        scratch.clear();
        text_out(field, natural_type(field), ctx, &mut scratch)?;
        let quote = scratch.is_empty()
            || scratch.bytes().any(|b| {
                matches!(b, b'"' | b'\\' | b'(' | b')' | b',') || b.is_ascii_whitespace() || b == 0x0b
            });
        if !quote {
            out.write_str(&scratch)?;
            continue;
        }
        out.write_str("\"")?;
        for c in scratch.chars() {
            // record_out doubles what array_out escapes.
            if matches!(c, '"' | '\\') {
                out.write_char(c)?;
            }
            out.write_char(c)?;
        }
        out.write_str("\"")?;
    }
    out.write_str(")")
}

/// Reads a row whose field types are known.
pub fn record_in(text: &str, fields: &[Type], ctx: &FunctionContext<'_>) -> Result<Datum> {
    let malformed = |detail: &str| {
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, format!("malformed record literal: \"{text}\""))
            .with_detail(detail)
    };
    let body = text.trim().strip_prefix('(').ok_or_else(|| malformed("Missing left parenthesis."))?;
    let mut values = Vec::with_capacity(fields.len());
    let mut chars = body.chars().peekable();
    loop {
        let (mut raw, mut quoted, mut inside) = (String::new(), false, false);
        let end = loop {
            match chars.next() {
                None => return Err(malformed("Unexpected end of input.")),
                Some('\\') => raw.push(chars.next().ok_or_else(|| malformed("Unexpected end of input."))?),
                Some('"') if inside && chars.peek() == Some(&'"') => {
                    chars.next();
                    raw.push('"');
                }
                Some('"') => {
                    inside = !inside;
                    quoted = true;
                }
                Some(end @ (',' | ')')) if !inside => break end,
                Some(other) => raw.push(other),
            }
        };
        let ty = fields.get(values.len());
        match ty {
            Some(_) if raw.is_empty() && !quoted => values.push(Datum::Null),
            Some(ty) => values.push(text_in(&raw, *ty, ctx)?),
            None if fields.is_empty() && raw.is_empty() => {}
            None => return Err(malformed("Too many columns.")),
        }
        if end == ')' {
            break;
        }
    }
    if values.len() < fields.len() {
        return Err(malformed("Too few columns."));
    }
    if chars.any(|c| !c.is_ascii_whitespace()) {
        return Err(malformed("Junk after right parenthesis."));
    }
    Ok(Datum::Record(values.into()))
}
