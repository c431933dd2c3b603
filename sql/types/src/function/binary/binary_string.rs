//! Functions of binary strings, their text encodings and digests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha2::digest::Output;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::Eval;
use crate::function::args::*;
use crate::function::length::{VALUE_MAX, check_value};
use crate::function::text::trim_side::TrimAt;
use crate::interrupt;

/// Same over bytes.
fn bytes_substring(bytes: &[u8], start: i32, length: Option<i32>) -> Result<&[u8]> {
    let start = i64::from(start);
    let end = match length {
        None => i64::MAX,
        Some(length) if length < 0 => {
            return Err(SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed"));
        }
        Some(length) => start + i64::from(length),
    };
    let first = (start.max(1) - 1).min(bytes.len() as i64) as usize;
    let last = (end.max(1) - 1).min(bytes.len() as i64) as usize;
    Ok(if last <= first { &[] } else { &bytes[first..last] })
}

fn trim_bytes(mut bytes: &[u8], set: &[u8], at: TrimAt) -> Result<Datum> {
    while at != TrimAt::End && bytes.first().is_some_and(|b| set.contains(b)) {
        interrupt::steps(1 + set.len())?;
        bytes = &bytes[1..];
    }
    while at != TrimAt::Start && bytes.last().is_some_and(|b| set.contains(b)) {
        interrupt::steps(1 + set.len())?;
        bytes = &bytes[..bytes.len() - 1];
    }
    Ok(bytes_datum(bytes))
}

/// Where some bytes begin in others.
fn position(haystack: &[u8], needle: &[u8]) -> Result<Option<usize>> {
    if needle.is_empty() {
        return Ok(Some(0));
    }
    let steps_each = 1 + needle.len() / 16;
    for (at, window) in haystack.windows(needle.len()).enumerate() {
        interrupt::steps(steps_each)?;
        if window == needle {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn md5_hex(bytes: &[u8]) -> Result<Datum> {
    Ok(made_text(hexadecimal(&digest_of::<Md5>(bytes)?)?))
}

/// A digest of some bytes; it hears interrupts.
pub(super) fn digest_of<D: Digest>(bytes: &[u8]) -> Result<Output<D>> {
    let mut digest = D::new();
    interrupt::in_pieces(bytes, |piece| digest.update(piece))?;
    Ok(digest.finalize())
}

fn hexadecimal(bytes: &[u8]) -> Result<String> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    interrupt::in_pieces(bytes, |piece| {
        for byte in piece {
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    })?;
    Ok(out)
}

fn encode(bytes: &[u8], name: &str) -> Result<String> {
    let fits = |length: usize| match length <= VALUE_MAX {
        true => Ok(()),
        false => {
            Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "result of encoding conversion is too large"))
        }
    };
    Ok(match name.to_ascii_lowercase().as_str() {
        "hex" => {
            fits(bytes.len() * 2)?;
            hexadecimal(bytes)?
        }
        "base64" => {
            // With the ends of the lines.
            fits(bytes.len().div_ceil(3) * 4 + bytes.len() / 57)?;
            base64_encode(bytes)?
        }
        "escape" => {
            let mut out = String::new();
            for &b in bytes {
                interrupt::step()?;
                fits(out.len())?;
                match b {
                    b'\\' => out.push_str("\\\\"),
                    0 | 0x80.. => out.push_str(&format!("\\{b:03o}")),
                    _ => out.push(b as char),
                }
            }
            out
        }
        _ => return Err(invalid_parameter(format!("unrecognized encoding: \"{name}\""))),
    })
}

fn decode(text: &str, name: &str) -> Result<Vec<u8>> {
    match name.to_ascii_lowercase().as_str() {
        "hex" => crate::io::parse_bytea(&format!("\\x{text}")),
        "base64" => base64_decode(text),
        "escape" => crate::io::parse_bytea(text),
        _ => Err(invalid_parameter(format!("unrecognized encoding: \"{name}\""))),
    }
}

/// Base64 in the lines of RFC 2045; a full one ends, also where nothing follows.
fn base64_encode(bytes: &[u8]) -> Result<String> {
    const LINE: usize = 57;
    let mut out = String::new();
    for line in bytes.chunks(LINE) {
        interrupt::steps(line.len())?;
        STANDARD.encode_string(line, &mut out);
        if line.len() == LINE {
            out.push('\n');
        }
    }
    Ok(out)
}

/// As PostgreSQL reads base64 (its encode.c): blanks are passed over, and what an end leaves open is
/// taken from what follows it, which no library does.
fn base64_decode(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let (mut group, mut count, mut end) = (0_u32, 0, 3);
    for symbol in text.chars() {
        interrupt::steps(8)?;
        let value = match (symbol, count) {
            (' ' | '\t' | '\n' | '\r', _) => continue,
            ('=', _) if end < 3 => 0,
            ('=', 2 | 3) => {
                end = count - 1;
                0
            }
            ('=', _) => {
                return Err(invalid_parameter("unexpected \"=\" while decoding base64 sequence"));
            }
            _ => base64_value(symbol).ok_or_else(|| {
                invalid_parameter(format!("invalid symbol \"{symbol}\" found while decoding base64 sequence"))
            })?,
        };
        group = group << 6 | value;
        count += 1;
        if count == 4 {
            out.extend_from_slice(&group.to_be_bytes()[1..1 + end]);
            (group, count) = (0, 0);
        }
    }
    if count != 0 {
        return Err(invalid_parameter("invalid base64 end sequence")
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}

fn base64_value(symbol: char) -> Option<u32> {
    let value = match symbol {
        'A'..='Z' => u32::from(symbol) - u32::from('A'),
        'a'..='z' => u32::from(symbol) - u32::from('a') + 26,
        '0'..='9' => u32::from(symbol) - u32::from('0') + 52,
        '+' => 62,
        '/' => 63,
        _ => return None,
    };
    Some(value)
}

fn bytes_datum(bytes: &[u8]) -> Datum {
    Datum::Bytea(bytes.into())
}

/// An index of a byte or a bit.
fn place(at: i64, length: usize) -> Result<usize> {
    usize::try_from(at).ok().filter(|at| *at < length).ok_or_else(|| {
        SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            format!("index {at} out of valid range, 0..{}", length as i64 - 1),
        )
    })
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("byteacat", |_, v| {
        let (a, b) = (bytea(v, 0)?, bytea(v, 1)?);
        check_value(a.len() + b.len())?;
        Ok(Datum::Bytea([a, b].concat().into()))
    }),
    ("byteaoctetlen", |_, v| Ok(Datum::Int4(bytea(v, 0)?.len() as i32))),
    ("sql_1810", |_, v| crate::function::text::string::bit_length(bytea(v, 0)?.len())),
    ("bytea_substr", |_, v| Ok(bytes_datum(bytes_substring(bytea(v, 0)?, int4(v, 1)?, Some(int4(v, 2)?))?))),
    ("bytea_substr_no_len", |_, v| Ok(bytes_datum(bytes_substring(bytea(v, 0)?, int4(v, 1)?, None)?))),
    ("byteapos", |_, v| {
        let at = position(bytea(v, 0)?, bytea(v, 1)?)?;
        Ok(Datum::Int4(at.map_or(0, |at| at as i32 + 1)))
    }),
    ("byteatrim", |_, v| trim_bytes(bytea(v, 0)?, bytea(v, 1)?, TrimAt::Both)),
    ("bytealtrim", |_, v| trim_bytes(bytea(v, 0)?, bytea(v, 1)?, TrimAt::Start)),
    ("byteartrim", |_, v| trim_bytes(bytea(v, 0)?, bytea(v, 1)?, TrimAt::End)),
    ("md5_text", |_, v| md5_hex(text(v, 0)?.as_bytes())),
    ("md5_bytea", |_, v| md5_hex(bytea(v, 0)?)),
    ("sha224_bytea", |_, v| Ok(bytes_datum(&digest_of::<Sha224>(bytea(v, 0)?)?))),
    ("sha256_bytea", |_, v| Ok(bytes_datum(&digest_of::<Sha256>(bytea(v, 0)?)?))),
    ("sha384_bytea", |_, v| Ok(bytes_datum(&digest_of::<Sha384>(bytea(v, 0)?)?))),
    ("sha512_bytea", |_, v| Ok(bytes_datum(&digest_of::<Sha512>(bytea(v, 0)?)?))),
    ("binary_encode", |_, v| Ok(made_text(encode(bytea(v, 0)?, text(v, 1)?)?))),
    ("binary_decode", |_, v| Ok(Datum::Bytea(decode(text(v, 0)?, text(v, 1)?)?.into()))),
    ("byteaGetByte", |_, v| {
        let bytes = bytea(v, 0)?;
        Ok(Datum::Int4(i32::from(bytes[place(i64::from(int4(v, 1)?), bytes.len())?])))
    }),
    ("byteaSetByte", |_, v| {
        let mut bytes = bytea(v, 0)?.to_vec();
        let at = place(i64::from(int4(v, 1)?), bytes.len())?;
        bytes[at] = int4(v, 2)? as u8;
        Ok(Datum::Bytea(bytes.into()))
    }),
    ("byteaGetBit", |_, v| {
        let bytes = bytea(v, 0)?;
        let at = place(int8(v, 1)?, bytes.len() * 8)?;
        Ok(Datum::Int4(i32::from(bytes[at / 8] >> (at % 8) & 1)))
    }),
    ("byteaSetBit", |_, v| {
        let mut bytes = bytea(v, 0)?.to_vec();
        let at = place(int8(v, 1)?, bytes.len() * 8)?;
        let bit = 1 << (at % 8);
        match int4(v, 2)? {
            0 => bytes[at / 8] &= !bit,
            1 => bytes[at / 8] |= bit,
            _ => return Err(invalid_parameter("new bit must be 0 or 1")),
        }
        Ok(Datum::Bytea(bytes.into()))
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_round_trips() {
        for text in
            ["", "a", "ab", "abc", "hello world, this is long enough to need a second line of output, really"]
        {
            assert_eq!(base64_decode(&base64_encode(text.as_bytes()).unwrap()), Ok(text.as_bytes().to_vec()));
        }
    }
}
