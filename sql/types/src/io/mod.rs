//! Values as text and as the wire's binary form, for every type.
//!
//! - this file  which type has which form
//! - [`binary`]  the wire's, read with what is in [`message`]
//! - [`array`], [`record`], [`label`], [`json`], [`float`], [`byte`] (`"char"`), [`point`], [`lsn`], [`snapshot`],
//!   [`network`] forms of one kind of values each
//! - [`room`]    whether there is room for a text; [`syntax_error`] what is none of a type's
//!
//! [`text_in`] and [`text_out`] are the types' input and output functions; [`binary_in`] and
//! [`binary_out`] their receive and send functions. The reg* types need names only the session
//! knows, and ask it through [`SessionHost::call`](crate::function::SessionHost::call).

mod array;
mod binary;
mod byte;
mod float;
mod json;
mod label;
pub(crate) mod lsn;
mod message;
mod network;
pub(crate) mod point;
pub mod record;
mod room;
pub(crate) mod snapshot;
mod syntax_error;

pub use array::{array_in, array_out};
pub use binary::{binary_in, binary_out};
pub use byte::{byte_in, byte_of, byte_out, byte_value};
pub use float::{general_text, parse_f32, parse_f64, show_f32, show_f64, write_f32, write_f64};
pub use json::{jsonb_text, validate_json};
pub use message::placed;
pub(crate) use message::{too_long, too_short};
pub use record::{record_in, record_out};
pub use room::text_too_long;
pub use syntax_error::invalid_syntax;

use std::fmt::Write;
use std::sync::Arc;

use crate::bit_string::BitString;
use crate::datetime;
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::FunctionContext;
use crate::interrupt;
use crate::network::{Inet, MacAddress, MacAddress8};
use crate::type_kind::TypeKind;
use crate::type_table::{TypeNames, element_of, fixed_length};
use crate::types::{Oid, Type};

/// Integers as int4in reads them: blanks around, a sign, digits.
fn parse_integer(text: &str, type_name: &str, low: i64, high: i64) -> Result<i64> {
    match plain_integer(text.as_bytes()) {
        Some(value) if (low..=high).contains(&value) => Ok(value),
        _ => parse_any_integer(text, type_name, low, high),
    }
}

/// The integer that a sign and so few digits make that they cannot overflow; else `None`.
fn plain_integer(text: &[u8]) -> Option<i64> {
    const DIGITS_MAX: usize = 18;
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    let mut value = 0_i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// Reads what [`plain_integer`] does not, and says what is wrong with the rest.
#[cold]
fn parse_any_integer(text: &str, type_name: &str, low: i64, high: i64) -> Result<i64> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    let (negative, digits) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(invalid_syntax(type_name, text));
    }
    // Accumulates below zero, where there is room for the smallest value.
    let value = digits
        .bytes()
        .try_fold(0i64, |value, digit| value.checked_mul(10)?.checked_sub(i64::from(digit - b'0')));
    value
        .and_then(|value| if negative { Some(value) } else { value.checked_neg() })
        .filter(|value| (low..=high).contains(value))
        .ok_or_else(|| {
            SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("value \"{text}\" is out of range for type {type_name}"),
            )
        })
}

/// Booleans: any unambiguous prefix of true, false, yes, no, on, off; 1 and 0.
pub fn parse_bool(text: &str) -> Option<bool> {
    let word = text.trim_matches(|c: char| c.is_ascii_whitespace()).to_ascii_lowercase();
    let prefix_of = |full: &str, least: usize| word.len() >= least && full.starts_with(&word);
    if prefix_of("true", 1) || prefix_of("yes", 1) || word == "on" || word == "1" {
        Some(true)
    } else if prefix_of("false", 1) || prefix_of("no", 1) || prefix_of("off", 2) || word == "0" {
        Some(false)
    } else {
        None
    }
}

/// Cuts a name to PostgreSQL's 63 bytes.
pub fn truncate_name(text: &str) -> &str {
    if text.len() <= 63 {
        return text;
    }
    let mut end = 63;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Reads a value of type `ty` from its text form. The type's modifier is applied as an
/// explicit cast applies it (an input function with a typmod, as COPY and literals use it,
/// refuses over-long strings instead: pass the result of `ty` without modifier to
/// [`crate::typmod::coerce_typmod`] for that).
pub fn text_in(text: &str, ty: Type, ctx: &FunctionContext<'_>) -> Result<Datum> {
    if text.len() >= interrupt::PIECE {
        interrupt::check()?;
    }
    let style = ctx.style();
    Ok(match ty.oid {
        Oid::INT4 => {
            Datum::Int4(parse_integer(text, "integer", i64::from(i32::MIN), i64::from(i32::MAX))? as i32)
        }
        Oid::INT8 => Datum::Int8(parse_integer(text, "bigint", i64::MIN, i64::MAX)?),
        Oid::INT2 => {
            Datum::Int2(parse_integer(text, "smallint", i64::from(i16::MIN), i64::from(i16::MAX))? as i16)
        }
        Oid::TEXT | Oid::UNKNOWN | Oid::CSTRING | Oid::REFCURSOR | Oid::PG_NODE_TREE | Oid::ACLITEM => {
            Datum::text(text)
        }
        Oid::VARCHAR | Oid::BPCHAR => crate::typmod::coerce_typmod(Datum::text(text), ty, false)?,
        Oid::NUMERIC => Datum::Numeric(text.parse::<crate::numeric::Numeric>()?.with_typmod(ty.typmod)?),
        Oid::BOOL => Datum::Bool(parse_bool(text).ok_or_else(|| invalid_syntax("boolean", text))?),
        Oid::FLOAT8 => Datum::Float8(parse_f64(text)?),
        Oid::FLOAT4 => Datum::Float4(parse_f32(text)?),
        Oid::NAME => Datum::text(truncate_name(text)),
        Oid::CHAR => byte_in(text),
        Oid::BYTEA => Datum::Bytea(parse_bytea(text)?.into()),
        Oid::BIT | Oid::VARBIT => Datum::Bits(BitString::parse(text, ty)?),
        Oid::DATE => Datum::Date(datetime::parse_date(text, style, ctx.now)?),
        Oid::TIME => {
            crate::typmod::coerce_typmod(Datum::Time(datetime::parse_time(text, style, ctx.now)?), ty, false)?
        }
        Oid::TIMETZ => crate::typmod::coerce_typmod(
            Datum::TimeTz(datetime::parse_timetz(text, style, ctx.now)?),
            ty,
            false,
        )?,
        Oid::TIMESTAMP => crate::typmod::coerce_typmod(
            Datum::Timestamp(datetime::parse_timestamp(text, style, ctx.now)?),
            ty,
            false,
        )?,
        Oid::TIMESTAMPTZ => crate::typmod::coerce_typmod(
            Datum::TimestampTz(datetime::parse_timestamptz(text, style, ctx.now)?),
            ty,
            false,
        )?,
        Oid::INTERVAL => {
            let fields = if ty.typmod >= 0 { (ty.typmod >> 16) & 0x7fff } else { 0 };
            let value = Datum::Interval(Arc::new(datetime::parse_interval(
                text,
                if fields == 0x7fff { 0 } else { fields },
                style.interval,
            )?));
            crate::typmod::coerce_typmod(value, ty, false)?
        }
        Oid::UUID => Datum::Uuid(Box::new(parse_uuid(text).ok_or_else(|| invalid_syntax("uuid", text))?)),
        Oid::INET | Oid::CIDR => Datum::Inet(Inet::parse(text, ty.oid == Oid::CIDR)?),
        Oid::MACADDR => Datum::MacAddress(MacAddress::parse(text)?),
        Oid::MACADDR8 => Datum::MacAddress8(MacAddress8::parse(text)?),
        Oid::OID | Oid::XID | Oid::CID => Datum::Oid(parse_oid(text)?),
        Oid::XID8 => Datum::Int8(crate::function::parse_transaction_id(text)),
        Oid::PG_LSN => Datum::Int8(crate::function::parse_lsn(text)?),
        Oid::TID => Datum::Int8(crate::function::parse_tid(text)?),
        Oid::POINT => crate::function::parse_point(text)?,
        Oid::PG_SNAPSHOT | Oid::TXID_SNAPSHOT => {
            Datum::text(&crate::function::Snapshot::parse(text)?.to_string())
        }
        Oid::REGTYPE => match crate::type_table::type_by_name(&text.to_ascii_lowercase()) {
            Some(info) => Datum::Oid(info.oid),
            None => registered(ty.oid, text, ctx)?,
        },
        Oid::REGCLASS
        | Oid::REGPROC
        | Oid::REGPROCEDURE
        | Oid::REGOPER
        | Oid::REGOPERATOR
        | Oid::REGNAMESPACE
        | Oid::REGROLE => registered(ty.oid, text, ctx)?,
        Oid::JSON => {
            validate_json(text)?;
            Datum::text(text)
        }
        Oid::JSONB => Datum::Jsonb(jsonb_text(text)?.into()),
        Oid::JSONPATH => Datum::Text(crate::json::path::JsonPath::parse(text)?.text().into()),
        Oid::VOID => Datum::text(""),
        Oid::INT2VECTOR | Oid::OIDVECTOR => array::vector_in(text, ty.oid, ctx)?,
        _ => match ty.oid.kind() {
            Some(TypeKind::Enum) => label::label_in(text, ty, ctx)?,
            Some(TypeKind::Composite) => record::row_in(text, ty, ctx)?,
            None if element_of(ty.oid).is_some() => array_in(text, ty, ctx)?,
            None if ty.oid == Oid::RECORD => return Err(record::anonymous_input()),
            None => return Err(no_input(ty, ctx)),
        },
    })
}

/// A type whose values nothing reads here.
fn no_input(ty: Type, ctx: &FunctionContext<'_>) -> SqlError {
    SqlError::unsupported(format_args!("input of type {}", ctx.format_type(ty)))
}

/// A reg* value: a number stands for itself, a name is the session's to look up.
fn registered(ty: Oid, text: &str, ctx: &FunctionContext<'_>) -> Result<Datum> {
    // Of operators it is one's name.
    let of_operators = matches!(ty, Oid::REGOPER | Oid::REGOPERATOR);
    if text == "-" && !of_operators {
        return Ok(Datum::Oid(Oid(0)));
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return parse_oid(text).map(Datum::Oid);
    }
    let function = match ty {
        Oid::REGCLASS => "regclassin",
        Oid::REGPROC => "regprocin",
        Oid::REGPROCEDURE => "regprocedurein",
        Oid::REGOPER => "regoperin",
        Oid::REGOPERATOR => "regoperatorin",
        Oid::REGNAMESPACE => "regnamespacein",
        Oid::REGROLE => "regrolein",
        _ => "regtypein",
    };
    ctx.session.call(function, &[Datum::text(text)])
}

/// The name behind a reg* value, or its number where there is none.
fn registered_name(ty: Oid, oid: Oid, ctx: &FunctionContext<'_>, out: &mut dyn Write) -> std::fmt::Result {
    if oid.0 == 0 {
        let of_operators = matches!(ty, Oid::REGOPER | Oid::REGOPERATOR);
        return out.write_str(if of_operators { "0" } else { "-" });
    }
    if ty == Oid::REGTYPE && crate::type_table::type_info(oid).is_some() {
        return out.write_str(&ctx.type_name(oid));
    }
    let function = match ty {
        Oid::REGCLASS => "regclassout",
        Oid::REGPROC => "regprocout",
        Oid::REGPROCEDURE => "regprocedureout",
        Oid::REGOPER => "regoperout",
        Oid::REGOPERATOR => "regoperatorout",
        Oid::REGNAMESPACE => "regnamespaceout",
        Oid::REGROLE => "regroleout",
        _ => "regtypeout",
    };
    match ctx.session.call(function, &[Datum::Oid(oid)]) {
        // A type that is not there.
        Ok(Datum::Text(name)) if name != "???" => out.write_str(&name),
        _ => write!(out, "{oid}"),
    }
}

/// A number of an object from its text.
pub fn parse_oid(text: &str) -> Result<Oid> {
    // oidin takes what strtoul takes: negative numbers wrap.
    let value = parse_integer(text, "oid", i64::from(i32::MIN), i64::from(u32::MAX))?;
    Ok(Oid(value as u32))
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let inner = text.strip_prefix('{').map_or(Some(text), |rest| rest.strip_suffix('}'))?;
    let mut bytes = [0u8; 16];
    let mut nibbles = 0;
    for c in inner.bytes() {
        if c == b'-' {
            // Hyphens may stand after any group of four digits.
            if nibbles == 0 || nibbles % 4 != 0 {
                return None;
            }
            continue;
        }
        let value = (c as char).to_digit(16)? as u8;
        *bytes.get_mut(nibbles / 2)? |= if nibbles % 2 == 0 { value << 4 } else { value };
        nibbles += 1;
    }
    (nibbles == 32).then_some(bytes)
}

/// Bytes from hex (`\x0aff`) or escape (`a\\b\000`) form.
pub fn parse_bytea(text: &str) -> Result<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let mut bytes = Vec::with_capacity(hex.len() / 2);
        let mut high: Option<u8> = None;
        for c in hex.bytes() {
            interrupt::step()?;
            if c.is_ascii_whitespace() && high.is_none() {
                continue;
            }
            let digit = (c as char).to_digit(16).ok_or_else(|| {
                SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid hexadecimal digit: \"{}\"", c as char),
                )
            })? as u8;
            match high.take() {
                Some(high) => bytes.push(high << 4 | digit),
                None => high = Some(digit),
            }
        }
        if high.is_some() {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "invalid hexadecimal data: odd number of digits",
            ));
        }
        return Ok(bytes);
    }
    let raw = text.as_bytes();
    let mut bytes = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        interrupt::step()?;
        if raw[at] != b'\\' {
            bytes.push(raw[at]);
            at += 1;
        } else if raw.get(at + 1) == Some(&b'\\') {
            bytes.push(b'\\');
            at += 2;
        } else {
            let octal = raw.get(at + 1..at + 4).filter(|d| {
                (b'0'..=b'3').contains(&d[0]) && d[1..].iter().all(|c| (b'0'..=b'7').contains(c))
            });
            let digits = octal.ok_or_else(|| {
                SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea")
            })?;
            bytes.push((digits[0] - b'0') << 6 | (digits[1] - b'0') << 3 | (digits[2] - b'0'));
            at += 4;
        }
    }
    Ok(bytes)
}

/// So many bytes are written together.
const HEX_AT_ONCE: usize = 64;

fn write_bytea(bytes: &[u8], escape: bool, out: &mut dyn Write) -> std::fmt::Result {
    if escape {
        for &b in bytes {
            interrupt::step().map_err(|_| std::fmt::Error)?;
            match b {
                b'\\' => out.write_str("\\\\")?,
                0x20..=0x7e => out.write_char(b as char)?,
                _ => write!(out, "\\{b:03o}")?,
            }
        }
        return Ok(());
    }
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.write_str("\\x")?;
    let mut digits = [0; 2 * HEX_AT_ONCE];
    for piece in bytes.chunks(HEX_AT_ONCE) {
        interrupt::steps(piece.len()).map_err(|_| std::fmt::Error)?;
        for (b, pair) in piece.iter().zip(digits.chunks_exact_mut(2)) {
            pair[0] = HEX[usize::from(b >> 4)];
            pair[1] = HEX[usize::from(b & 15)];
        }
        let written = std::str::from_utf8(&digits[..2 * piece.len()]).map_err(|_| std::fmt::Error)?;
        out.write_str(written)?;
    }
    Ok(())
}

fn write_uuid(bytes: &[u8; 16], out: &mut dyn Write) -> std::fmt::Result {
    for (i, b) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.write_str("-")?;
        }
        write!(out, "{b:02x}")?;
    }
    Ok(())
}

/// Writes a value's text form. NULL writes nothing: its marker is the caller's. Where `out` takes
/// everything it fails for one reason, [`text_too_long`].
pub fn text_out(value: &Datum, ty: Type, ctx: &FunctionContext<'_>, out: &mut dyn Write) -> std::fmt::Result {
    let mut buffer = itoa::Buffer::new();
    match value {
        Datum::Null => Ok(()),
        Datum::Int4(n) => out.write_str(buffer.format(*n)),
        Datum::Int8(n) if ty.oid == Oid::PG_LSN => crate::function::show_lsn(*n, out),
        Datum::Int8(n) if ty.oid == Oid::TID => crate::function::show_tid(*n, out),
        Datum::Int8(n) => out.write_str(buffer.format(*n)),
        Datum::Int2(n) => out.write_str(buffer.format(*n)),
        Datum::Text(text) if ty.oid == Oid::CHAR => byte_out(text, out),
        Datum::Text(text) | Datum::Bpchar(text) => {
            out.write_str(text)?;
            // What was stored of a `char(n)` within another value may lack its blanks.
            if let Some(length) = crate::typmod::padded_length(ty) {
                for _ in text.chars().count()..length {
                    out.write_str(" ")?;
                }
            }
            Ok(())
        }
        Datum::Jsonb(text) => out.write_str(text),
        Datum::Numeric(n) => write!(out, "{n}"),
        Datum::Bool(b) => out.write_str(if *b { "t" } else { "f" }),
        Datum::Float4(x) => show_f32(*x, ctx.style().extra_float_digits, out),
        Datum::Float8(x) => show_f64(*x, ctx.style().extra_float_digits, out),
        Datum::Bytea(bytes) => write_bytea(bytes, ctx.style().bytea_escape, out),
        Datum::Bits(bits) => {
            room::room_for_text(bits.len())?;
            bits.write(out)
        }
        Datum::Date(days) => datetime::show_date(*days, ctx.style(), out),
        Datum::Time(t) => datetime::format_time(*t, out),
        Datum::TimeTz(t) => datetime::format_timetz(*t, out),
        Datum::Timestamp(t) => datetime::show_timestamp(*t, ctx.style(), out),
        Datum::TimestampTz(t) => datetime::show_timestamptz(*t, ctx.style(), out),
        Datum::Interval(i) => datetime::format_interval(i, ctx.style().interval, out),
        Datum::Uuid(bytes) => write_uuid(bytes, out),
        Datum::Inet(inet) => inet.write(ty.oid == Oid::CIDR, out),
        Datum::MacAddress(address) => write!(out, "{address}"),
        Datum::MacAddress8(address) => write!(out, "{address}"),
        Datum::Oid(oid) => match ty.oid {
            Oid::REGCLASS
            | Oid::REGPROC
            | Oid::REGPROCEDURE
            | Oid::REGOPER
            | Oid::REGOPERATOR
            | Oid::REGNAMESPACE
            | Oid::REGROLE
            | Oid::REGTYPE => registered_name(ty.oid, *oid, ctx, out),
            of if of.has_labels() => label::label_out(*oid, ctx, out),
            _ => out.write_str(buffer.format(oid.0)),
        },
        Datum::Array(array) => {
            room::room_for(value)?;
            array_out(array, ty, ctx, out)
        }
        Datum::Record(_) if ty.oid == Oid::POINT => match crate::function::point_of(value) {
            Some(point) => crate::function::show_point(point, ctx.style().extra_float_digits, out),
            None => Ok(()),
        },
        Datum::Record(fields) => {
            room::room_for(value)?;
            record_out(fields, ty.oid, ctx, out)
        }
    }
}

/// The text form as a string; 54000 where it is too long to be one.
pub fn text_of(value: &Datum, ty: Type, ctx: &FunctionContext<'_>) -> Result<String> {
    let mut out = String::new();
    match text_out(value, ty, ctx, &mut out) {
        Ok(()) => Ok(out),
        Err(_) => Err(text_too_long()),
    }
}

/// The text form as a string, of a value that has one: for messages, and what no record is in.
pub fn to_text(value: &Datum, ty: Type, ctx: &FunctionContext<'_>) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail; what is too long may end anywhere in a message.
    if text_out(value, ty, ctx, &mut out).is_err() {
        room::forget_why();
    }
    out
}

/// Whether a value may be one of a type, by what it shows of its own: string types are not told apart,
/// nor what an oid names.
pub fn may_be(value: &Datum, ty: Oid) -> bool {
    match value {
        Datum::Null => true,
        Datum::Bpchar(_) => ty == Oid::BPCHAR,
        Datum::Text(_) => {
            let shown = [Oid::BOOL, Oid::BYTEA, Oid::BIT, Oid::VARBIT, Oid::JSONB, Oid::UUID, Oid::RECORD];
            let addresses = [Oid::INET, Oid::CIDR, Oid::MACADDR, Oid::MACADDR8];
            let category = crate::type_table::type_info(ty).map(|info| info.category);
            !shown.contains(&ty)
                && !addresses.contains(&ty)
                && category.is_some_and(|category| !matches!(category, b'N' | b'D' | b'T' | b'A'))
        }
        Datum::Oid(_) => fixed_length(ty) == Some(4),
        Datum::Bits(_) => matches!(ty, Oid::BIT | Oid::VARBIT),
        Datum::Inet(_) => matches!(ty, Oid::INET | Oid::CIDR),
        Datum::Int8(_) => matches!(ty, Oid::INT8 | Oid::XID8 | Oid::PG_LSN | Oid::TID),
        Datum::Array(array) => {
            let element = element_of(ty);
            element == Some(array.element)
                || element.is_some_and(|element| array.values.iter().all(|value| may_be(value, element)))
        }
        Datum::Record(_) => ty.has_fields(),
        other => natural_type(other).oid == ty,
    }
}

/// The type a value shows by itself, where the plan's type is not at hand (`concat`, record
/// fields): exact but for the string, bit string, network and oid families.
pub fn natural_type(value: &Datum) -> Type {
    match value {
        Datum::Null => Type::UNKNOWN,
        Datum::Bool(_) => Type::BOOL,
        Datum::Int2(_) => Type::INT2,
        Datum::Int4(_) => Type::INT4,
        Datum::Int8(_) => Type::INT8,
        Datum::Float4(_) => Type::FLOAT4,
        Datum::Float8(_) => Type::FLOAT8,
        Datum::Numeric(_) => Type::NUMERIC,
        Datum::Text(_) => Type::TEXT,
        Datum::Bpchar(_) => Type::BPCHAR,
        Datum::Jsonb(_) => Type::JSONB,
        Datum::Bytea(_) => Type::BYTEA,
        Datum::Bits(_) => Type::VARBIT,
        Datum::Date(_) => Type::DATE,
        Datum::Time(_) => Type::TIME,
        Datum::TimeTz(_) => Type::TIMETZ,
        Datum::Timestamp(_) => Type::TIMESTAMP,
        Datum::TimestampTz(_) => Type::TIMESTAMPTZ,
        Datum::Interval(_) => Type::INTERVAL,
        Datum::Uuid(_) => Type::UUID,
        Datum::Inet(_) => Type::INET,
        Datum::MacAddress(_) => Type::MACADDR,
        Datum::MacAddress8(_) => Type::MACADDR8,
        // An oid of pg_enum cannot be told from a label here, and labels are what fields hold.
        Datum::Oid(oid) if oid.is_enum_label() => Type::of(Oid::ANYENUM),
        Datum::Oid(_) => Type::OID,
        Datum::Array(array) => {
            Type::of(crate::type_table::array_of(array.element).unwrap_or(Oid::TEXT_ARRAY))
        }
        Datum::Record(_) => Type::RECORD,
    }
}
