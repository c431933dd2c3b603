//! Functions of binary strings, their text encodings and digests.

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::Eval;
use super::args::*;
use super::length::{VALUE_MAX, check_value};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
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

fn trim_bytes(mut bytes: &[u8], set: &[u8], start: bool, end: bool) -> Result<Datum> {
    while start && bytes.first().is_some_and(|b| set.contains(b)) {
        interrupt::steps(1 + set.len())?;
        bytes = &bytes[1..];
    }
    while end && bytes.last().is_some_and(|b| set.contains(b)) {
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
    let mut digest = md5::Context::new();
    interrupt::in_pieces(bytes, |piece| digest.consume(piece))?;
    Ok(text_datum(format!("{:x}", digest.finalize())))
}

fn digest_of<D: Digest>(bytes: &[u8]) -> Result<Datum> {
    let mut digest = D::new();
    interrupt::in_pieces(bytes, |piece| digest.update(piece))?;
    Ok(bytes_datum(digest.finalize().as_slice()))
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

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64_encode(bytes: &[u8]) -> Result<String> {
    let mut out = String::new();
    let mut column = 0;
    for chunk in bytes.chunks(3) {
        interrupt::steps(8)?;
        let word = u32::from(chunk[0]) << 16
            | u32::from(*chunk.get(1).unwrap_or(&0)) << 8
            | u32::from(*chunk.get(2).unwrap_or(&0));
        for i in 0..4 {
            out.push(if i <= chunk.len() {
                BASE64[(word >> (18 - 6 * i)) as usize & 63] as char
            } else {
                '='
            });
        }
        column += 4;
        // RFC 2045 lines of 76 characters.
        if column == 76 {
            out.push('\n');
            column = 0;
        }
    }
    if out.ends_with('\n') {
        out.pop();
    }
    Ok(out)
}

fn base64_decode(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let (mut word, mut count) = (0u32, 0);
    let mut symbols = 0;
    interrupt::in_pieces(text.as_bytes(), |piece| {
        symbols += piece.iter().filter(|b| !b.is_ascii_whitespace()).count();
    })?;
    if symbols % 4 != 0 {
        return Err(invalid_parameter("invalid base64 end sequence")
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    for c in text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'=') {
        interrupt::steps(8)?;
        let value = BASE64.iter().position(|b| *b == c).ok_or_else(|| {
            invalid_parameter(format!(
                "invalid symbol \"{}\" found while decoding base64 sequence",
                c as char
            ))
        })?;
        word = word << 6 | value as u32;
        count += 1;
        if count == 4 {
            out.extend_from_slice(&word.to_be_bytes()[1..]);
            (word, count) = (0, 0);
        }
    }
    match count {
        2 => out.push((word >> 4) as u8),
        3 => out.extend_from_slice(&((word >> 2) as u16).to_be_bytes()),
        _ => {}
    }
    Ok(out)
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

pub(super) const FUNCTIONS: &[(&str, Eval)] = &[
    ("byteacat", |_, v| {
        let (a, b) = (bytea(v, 0)?, bytea(v, 1)?);
        check_value(a.len() + b.len())?;
        Ok(Datum::Bytea([a, b].concat().into()))
    }),
    ("byteaoctetlen", |_, v| Ok(Datum::Int4(bytea(v, 0)?.len() as i32))),
    ("sql_1810", |_, v| super::string::bit_length(bytea(v, 0)?.len())),
    ("bytea_substr", |_, v| Ok(bytes_datum(bytes_substring(bytea(v, 0)?, int4(v, 1)?, Some(int4(v, 2)?))?))),
    ("bytea_substr_no_len", |_, v| Ok(bytes_datum(bytes_substring(bytea(v, 0)?, int4(v, 1)?, None)?))),
    ("byteapos", |_, v| {
        let at = position(bytea(v, 0)?, bytea(v, 1)?)?;
        Ok(Datum::Int4(at.map_or(0, |at| at as i32 + 1)))
    }),
    ("byteatrim", |_, v| trim_bytes(bytea(v, 0)?, bytea(v, 1)?, true, true)),
    ("bytealtrim", |_, v| trim_bytes(bytea(v, 0)?, bytea(v, 1)?, true, false)),
    ("byteartrim", |_, v| trim_bytes(bytea(v, 0)?, bytea(v, 1)?, false, true)),
    ("md5_text", |_, v| md5_hex(text(v, 0)?.as_bytes())),
    ("md5_bytea", |_, v| md5_hex(bytea(v, 0)?)),
    ("sha224_bytea", |_, v| digest_of::<Sha224>(bytea(v, 0)?)),
    ("sha256_bytea", |_, v| digest_of::<Sha256>(bytea(v, 0)?)),
    ("sha384_bytea", |_, v| digest_of::<Sha384>(bytea(v, 0)?)),
    ("sha512_bytea", |_, v| digest_of::<Sha512>(bytea(v, 0)?)),
    ("binary_encode", |_, v| Ok(text_datum(encode(bytea(v, 0)?, text(v, 1)?)?))),
    ("binary_decode", |_, v| Ok(Datum::Bytea(decode(text(v, 0)?, text(v, 1)?)?.into()))),
    ("pg_convert_to", |_, v| Ok(bytes_datum(text(v, 0)?.as_bytes()))),
    ("pg_convert_from", |_, v| {
        let bytes = bytea(v, 0)?;
        std::str::from_utf8(bytes).map(text_datum).map_err(|_| {
            SqlError::new(
                SqlState::CHARACTER_NOT_IN_REPERTOIRE,
                "invalid byte sequence for encoding \"UTF8\"",
            )
        })
    }),
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
