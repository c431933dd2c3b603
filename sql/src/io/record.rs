//! Composite values as text: `(1,"a b",)`.

use std::fmt::Write;

use compact_str::CompactString;

use super::{natural_type, text_in, text_out};
use crate::catalog::{Column, TableRef};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::FunctionContext;
use crate::function::length::{ALLOCATION_MAX, buffer_too_large};
use crate::types::{Oid, Type};

/// The relation whose columns are a composite type's fields; `None` for `record`, and where no catalog
/// is at hand.
pub(super) fn relation_of(ty: Oid, ctx: &FunctionContext<'_>) -> Option<TableRef> {
    if ty.is_composite() { ctx.session.row_type(ty) } else { None }
}

/// The names and types of a composite type's fields, as far as they are known.
pub fn fields_of(ty: Oid, ctx: &FunctionContext<'_>) -> Option<Vec<(CompactString, Type)>> {
    let relation = relation_of(ty, ctx)?;
    Some(relation.columns.iter().map(|column| (CompactString::new(&column.name), column.ty)).collect())
}

/// As [`fields_of`], the types alone.
pub fn field_types(ty: Oid, ctx: &FunctionContext<'_>) -> Option<Vec<Type>> {
    Some(relation_of(ty, ctx)?.columns.iter().map(|column| column.ty).collect())
}

/// Writes a row. NULL fields are empty, empty strings are quoted. Fields that the type got after the
/// value was made are NULL.
pub fn record_out(
    fields: &[Datum],
    ty: Oid,
    ctx: &FunctionContext<'_>,
    out: &mut dyn Write,
) -> std::fmt::Result {
    let relation = relation_of(ty, ctx);
    let columns = relation.as_ref().map(|relation| &relation.columns[..]);
    let width = columns.map_or(fields.len(), <[Column]>::len);
    let mut scratch = String::new();
    out.write_str("(")?;
    for place in 0..width {
        if place > 0 {
            out.write_str(",")?;
        }
        let Some(field) = fields.get(place).filter(|field| !field.is_null()) else { continue };
        let known = columns.and_then(|columns| columns.get(place)).map(|column| column.ty);
        let ty = known.unwrap_or_else(|| natural_type(field));
        match field {
            // What never needs quotes.
            Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Bool(_) | Datum::Numeric(_) => {
                text_out(field, ty, ctx, out)?;
            }
            Datum::Float4(_) | Datum::Float8(_) | Datum::Time(_) | Datum::Uuid(_) => {
                text_out(field, ty, ctx, out)?;
            }
            Datum::Text(text) if ty.oid != Oid::BPCHAR => field_out(text, out)?,
            Datum::Jsonb(text) => field_out(text, out)?,
            _ => {
                scratch.clear();
                text_out(field, ty, ctx, &mut scratch)?;
                field_out(&scratch, out)?;
            }
        }
    }
    out.write_str(")")
}

/// 54000: the text of a value is too long, the one reason for which writing it fails.
#[cold]
pub fn text_too_long() -> SqlError {
    buffer_too_large(ALLOCATION_MAX, 1)
}

/// Fails if a text is too long with its quotes doubled. Each level doubles what the one below has
/// quoted: a few dozen would fill any memory.
pub(super) fn check_doubled(text: &str) -> std::fmt::Result {
    let doubled = text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
    if text.len() + doubled > ALLOCATION_MAX { Err(std::fmt::Error) } else { Ok(()) }
}

/// A field's text between commas: in quotes where it must be.
fn field_out(text: &str, out: &mut dyn Write) -> std::fmt::Result {
    let is_special = |b: u8| matches!(b, b'"' | b'\\' | b'(' | b')' | b',' | 0x0b) || b.is_ascii_whitespace();
    if !text.is_empty() && !text.bytes().any(is_special) {
        return out.write_str(text);
    }
    check_doubled(text)?;
    out.write_str("\"")?;
    // record_out doubles what array_out escapes.
    for piece in text.split_inclusive(['"', '\\']) {
        out.write_str(piece)?;
        if piece.ends_with('"') {
            out.write_str("\"")?;
        } else if piece.ends_with('\\') {
            out.write_str("\\")?;
        }
    }
    out.write_str("\"")
}

/// 0A000: `record` says nothing of its fields.
pub(super) fn anonymous_input() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "input of anonymous composite types is not implemented")
}

/// Reads a row whose field types are known.
pub fn record_in(text: &str, fields: &[Type], ctx: &FunctionContext<'_>) -> Result<Datum> {
    let malformed = |detail: &str| {
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, format!("malformed record literal: \"{text}\""))
            .with_detail(detail)
    };
    let body = text.trim_start_matches(is_space);
    let mut rest = body.strip_prefix('(').ok_or_else(|| malformed("Missing left parenthesis."))?;
    let mut values = Vec::with_capacity(fields.len());
    for (place, ty) in fields.iter().enumerate() {
        if place > 0 {
            rest = rest.strip_prefix(',').ok_or_else(|| malformed("Too few columns."))?;
        }
        if rest.starts_with([',', ')']) {
            values.push(Datum::Null);
            continue;
        }
        let (raw, after) = field_text(rest).ok_or_else(|| malformed("Unexpected end of input."))?;
        rest = after;
        values.push(text_in(&raw, *ty, ctx)?);
    }
    let after = rest.strip_prefix(')').ok_or_else(|| malformed("Too many columns."))?;
    if !after.chars().all(is_space) {
        return Err(malformed("Junk after right parenthesis."));
    }
    Ok(Datum::Record(values.into()))
}

/// What isspace() holds for.
fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

/// One field as it is between its commas, and what follows it. Quotes may open and close anywhere in
/// it; inside of them a doubled one stands for itself.
fn field_text(text: &str) -> Option<(String, &str)> {
    let (mut raw, mut quoted) = (String::new(), false);
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            ',' | ')' if !quoted => return Some((raw, &text[at..])),
            '\\' => raw.push(characters.next()?.1),
            '"' if !quoted => quoted = true,
            '"' if characters.peek().is_some_and(|&(_, next)| next == '"') => {
                characters.next();
                raw.push('"');
            }
            '"' => quoted = false,
            other => raw.push(other),
        }
    }
    None
}
