//! LIKE over binary strings, their overlay and bits; and `unistr`.

use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::Eval;
use crate::function::args::*;
use crate::function::pattern_match::pattern::matches_like;

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("bytealike", |_, v| Ok(Datum::Bool(like(bytea(v, 0)?, bytea(v, 1)?)?))),
    ("byteanlike", |_, v| Ok(Datum::Bool(!like(bytea(v, 0)?, bytea(v, 1)?)?))),
    ("like_escape_bytea", |_, v| Ok(Datum::Bytea(escaped(bytea(v, 0)?, bytea(v, 1)?)?.into()))),
    ("byteaoverlay", |_, v| overlay(v, Some(int4(v, 3)?))),
    ("byteaoverlay_no_len", |_, v| overlay(v, None)),
    ("bytea_bit_count", |_, v| {
        Ok(Datum::Int8(bytea(v, 0)?.iter().map(|byte| i64::from(byte.count_ones())).sum()))
    }),
    ("unistr", |_, v| unistr(text(v, 0)?).map(text_datum)),
];

/// Whether bytes match a LIKE pattern: each is a character.
fn like(value: &[u8], pattern: &[u8]) -> Result<bool> {
    matches_like(value, pattern, |a, b| a == b, |at| at + 1)
}

/// A pattern with another escape character, with the backslash.
fn escaped(pattern: &[u8], escape: &[u8]) -> Result<Vec<u8>> {
    if escape.len() > 1 {
        return Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let escape = escape.first().copied();
    if escape == Some(b'\\') {
        return Ok(pattern.to_vec());
    }
    let mut out = Vec::with_capacity(pattern.len() + 4);
    let mut bytes = pattern.iter().copied();
    while let Some(byte) = bytes.next() {
        if Some(byte) == escape {
            out.push(b'\\');
            out.extend(bytes.next());
        } else if byte == b'\\' {
            out.extend([b'\\', b'\\']);
        } else {
            out.push(byte);
        }
    }
    Ok(out)
}

fn overlay(v: &[Datum], length: Option<i32>) -> Result<Datum> {
    let (value, new, start) = (bytea(v, 0)?, bytea(v, 1)?, int4(v, 2)?);
    if start <= 0 {
        return Err(SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let length = length.unwrap_or(new.len() as i32);
    let end = start.checked_add(length).ok_or_else(|| out_of_range("integer"))?;
    let before = (start as usize - 1).min(value.len());
    let after = (i64::from(end) - 1).clamp(0, value.len() as i64) as usize;
    crate::function::length::check_value(before + new.len() + (value.len() - after))?;
    Ok(Datum::Bytea([&value[..before], new, &value[after..]].concat().into()))
}

/// Reads `\0061`, `\+000061`, `\u0061` and `\U00000061`.
fn unistr(text: &str) -> Result<String> {
    let pair = || SqlError::new(SqlState::SYNTAX_ERROR, "invalid Unicode surrogate pair");
    let mut out = String::with_capacity(text.len());
    let mut high: Option<u32> = None;
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if next != '\\' || rest.starts_with("\\\\") {
            if high.is_some() {
                return Err(pair());
            }
            out.push(next);
            rest = &rest[next.len_utf8() * if next == '\\' { 2 } else { 1 }..];
            continue;
        }
        let body = &rest[1..];
        let (skip, digits) = match body.bytes().next() {
            Some(b'+') => (1, 6),
            Some(b'u') => (1, 4),
            Some(b'U') => (1, 8),
            _ => (0, 4),
        };
        let code = body.get(skip..skip + digits).filter(|d| d.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(code) = code.and_then(|code| u32::from_str_radix(code, 16).ok()) else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "invalid Unicode escape")
                .with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX."));
        };
        if code == 0 || code > 0x10_ffff {
            let message = format!("invalid Unicode code point: {code:04X}");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        match (high.take(), code) {
            (Some(high), 0xdc00..=0xdfff) => {
                out.extend(char::from_u32(0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00)));
            }
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(pair()),
            (None, 0xd800..=0xdbff) => high = Some(code),
            (None, code) => out.extend(char::from_u32(code)),
        }
        rest = &body[skip + digits..];
    }
    if high.is_some() { Err(pair()) } else { Ok(out) }
}
