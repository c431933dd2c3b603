//! Composite values as text: `(1,"a b",)`.

use std::fmt::Write;
use std::sync::Arc;

use compact_str::CompactString;

use super::room::check_doubled;
use super::{natural_type, no_input, text_in, text_out};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::FunctionContext;
use crate::record::{Record, RecordDescriptor, RowType};
use crate::type_kind::Held;
use crate::types::{Oid, Type};

/// The relation whose columns are a composite type's fields; `None` for `record`, and where no catalog
/// is at hand.
pub(super) fn relation_of(ty: Oid, ctx: &FunctionContext<'_>) -> Option<Arc<dyn RowType>> {
    if ty.held() == Some(Held::Fields) { ctx.session.row_type(ty) } else { None }
}

/// Reads the text of a row of a composite type.
pub(super) fn row_in(text: &str, ty: Type, ctx: &FunctionContext<'_>) -> Result<Datum> {
    match field_types(ty.oid, ctx) {
        Some(fields) => record_in(text, &fields, ctx),
        None => Err(no_input(ty, ctx)),
    }
}

/// The names and types of a composite type's fields, as far as they are known.
pub fn fields_of(ty: Oid, ctx: &FunctionContext<'_>) -> Option<Vec<(CompactString, Type)>> {
    let relation = relation_of(ty, ctx)?;
    (0..relation.width())
        .map(|place| Some((CompactString::new(relation.name(place)?), relation.ty(place)?)))
        .collect()
}

/// As [`fields_of`], the types alone.
pub fn field_types(ty: Oid, ctx: &FunctionContext<'_>) -> Option<Vec<Type>> {
    let relation = relation_of(ty, ctx)?;
    (0..relation.width()).map(|place| relation.ty(place)).collect()
}

/// What a record's fields are: by the named type that it is of, else by what it says itself.
pub enum Fields<'r> {
    Of(Arc<dyn RowType>),
    Told(&'r [(CompactString, Type)]),
    /// As many as there are, of the types they show.
    Shown(&'r [Datum]),
}

impl<'r> Fields<'r> {
    /// The fields of a value that the plan takes for one of this type.
    pub fn of(record: &'r Record, ty: Oid, ctx: &FunctionContext<'_>) -> Fields<'r> {
        if let Some(relation) = relation_of(ty, ctx) {
            return Fields::Of(relation);
        }
        match record.descriptor().map(|descriptor| &**descriptor) {
            Some(RecordDescriptor::Fields(fields)) => Fields::Told(fields),
            Some(RecordDescriptor::Named(ty)) => match relation_of(*ty, ctx) {
                Some(relation) => Fields::Of(relation),
                None => Fields::Shown(record),
            },
            None => Fields::Shown(record),
        }
    }

    /// How many there are. Those that a type got after a value was made are NULL.
    pub fn width(&self) -> usize {
        match self {
            Fields::Of(relation) => relation.width(),
            Fields::Told(fields) => fields.len(),
            Fields::Shown(fields) => fields.len(),
        }
    }

    /// The type of the field at a place, if that is known.
    pub fn known(&self, place: usize) -> Option<Type> {
        match self {
            Fields::Of(relation) => relation.ty(place),
            // What is declared as polymorphic is what comes.
            Fields::Told(fields) => {
                fields.get(place).map(|(_, ty)| *ty).filter(|ty| ty.oid != Oid::ANYELEMENT)
            }
            Fields::Shown(_) => None,
        }
    }

    /// The same, or what the value there shows of its own.
    pub fn ty(&self, place: usize, value: &Datum) -> Type {
        self.known(place).unwrap_or_else(|| natural_type(value))
    }

    /// The type it was declared to have: a domain, where it is of one.
    pub fn declared(&self, place: usize, value: &Datum) -> Type {
        match self {
            Fields::Of(relation) => relation.declared(place).unwrap_or_else(|| natural_type(value)),
            _ => self.ty(place, value),
        }
    }

    /// The name of the field at a place, if that is known.
    pub fn name(&self, place: usize) -> Option<&str> {
        match self {
            Fields::Of(relation) => relation.name(place),
            Fields::Told(fields) => fields.get(place).map(|(name, _)| name.as_str()),
            Fields::Shown(_) => None,
        }
    }

    /// All names and types, if they are known. A literal without a type is text.
    pub fn named(&self) -> Option<Vec<(String, Type)>> {
        match self {
            Fields::Of(relation) => (0..relation.width())
                .map(|place| Some((relation.name(place)?.to_owned(), relation.ty(place)?)))
                .collect(),
            Fields::Told(fields) => {
                let ty = |ty: Type| if ty.oid == Oid::UNKNOWN { Type::TEXT } else { ty };
                Some(fields.iter().map(|(name, own)| (name.to_string(), ty(*own))).collect())
            }
            Fields::Shown(_) => None,
        }
    }
}

/// Writes a row. NULL fields are empty, empty strings are quoted.
pub fn record_out(
    record: &Record,
    ty: Oid,
    ctx: &FunctionContext<'_>,
    out: &mut dyn Write,
) -> std::fmt::Result {
    let fields = Fields::of(record, ty, ctx);
    let mut scratch = String::new();
    out.write_str("(")?;
    for place in 0..fields.width() {
        if place > 0 {
            out.write_str(",")?;
        }
        let Some(field) = record.get(place).filter(|field| !field.is_null()) else { continue };
        let ty = fields.ty(place, field);
        match field {
            // What never needs quotes.
            Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Bool(_) | Datum::Numeric(_) => {
                text_out(field, ty, ctx, out)?;
            }
            Datum::Float4(_) | Datum::Float8(_) | Datum::Time(_) | Datum::Uuid(_) | Datum::Inet(_) => {
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
