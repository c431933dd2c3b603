//! Composite values as text: `(1,"a b",)`.

use std::fmt::Write;

use std::sync::Arc;

use compact_str::CompactString;

use super::{natural_type, text_in, text_out};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::FunctionContext;
use crate::types::{Oid, Type};

/// The names and types of a composite type's fields; `None` for `record`, and where no catalog is at
/// hand.
pub fn fields_of(ty: Oid, ctx: &FunctionContext<'_>) -> Option<Vec<(CompactString, Type)>> {
    if !ty.is_composite() {
        return None;
    }
    let Ok(Datum::Record(cells)) = ctx.session.call(FIELDS_FUNCTION, &[Datum::Oid(ty)]) else { return None };
    let fields = cells.chunks_exact(3).map(|cell| match cell {
        [Datum::Text(name), Datum::Oid(oid), Datum::Int4(typmod)] => {
            Some((name.clone(), Type { oid: *oid, typmod: *typmod }))
        }
        _ => None,
    });
    fields.collect()
}

/// As [`fields_of`], the types alone.
pub fn field_types(ty: Oid, ctx: &FunctionContext<'_>) -> Option<Vec<Type>> {
    Some(fields_of(ty, ctx)?.into_iter().map(|(_, ty)| ty).collect())
}

/// What a session answers the fields of a composite type by: each one's name, type and modifier.
pub const FIELDS_FUNCTION: &str = "archipel_fields_of";

/// The answer of [`FIELDS_FUNCTION`].
pub fn fields_answer<'n>(fields: impl Iterator<Item = (&'n str, Type)>) -> Datum {
    let cells = fields.flat_map(|(name, ty)| [Datum::text(name), Datum::Oid(ty.oid), Datum::Int4(ty.typmod)]);
    Datum::Record(cells.collect::<Arc<[Datum]>>())
}

/// Writes a row. NULL fields are empty, empty strings are quoted. Fields that the type got after the
/// value was made are NULL.
pub fn record_out(
    fields: &[Datum],
    ty: Oid,
    ctx: &FunctionContext<'_>,
    out: &mut dyn Write,
) -> std::fmt::Result {
    out.write_str("(")?;
    let types = field_types(ty, ctx);
    let width = types.as_ref().map_or(fields.len(), Vec::len);
    let mut scratch = String::new();
    for i in 0..width {
        let field = fields.get(i).unwrap_or(&Datum::Null);
        if i > 0 {
            out.write_str(",")?;
        }
        if field.is_null() {
            continue;
        }
        scratch.clear();
        let ty =
            types.as_ref().and_then(|types| types.get(i).copied()).unwrap_or_else(|| natural_type(field));
        text_out(field, ty, ctx, &mut scratch)?;
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
