//! `"char"`: one byte. A value is the character of that number, and zero is no character: so values
//! sort as their bytes do. Bytes that are no ASCII are read and shown as a backslash and three octal
//! digits.

use std::fmt::Write;

use crate::datum::Datum;

/// The value of a byte.
pub fn byte_value(byte: u8) -> Datum {
    match byte {
        0 => Datum::text(""),
        byte => Datum::text(char::from(byte).encode_utf8(&mut [0; 4])),
    }
}

/// The byte a value is.
pub fn byte_of(value: &str) -> u8 {
    value.chars().next().map_or(0, |c| u8::try_from(u32::from(c)).unwrap_or(0))
}

/// Reads a text (charin): a byte in octal, or the first byte of what is there.
pub fn byte_in(text: &str) -> Datum {
    byte_value(match *text.as_bytes() {
        [b'\\', a @ b'0'..=b'7', b @ b'0'..=b'7', c @ b'0'..=b'7'] => {
            ((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0')
        }
        [first, ..] => first,
        [] => 0,
    })
}

/// Shows a value (charout).
pub fn byte_out(value: &str, out: &mut dyn Write) -> std::fmt::Result {
    match byte_of(value) {
        byte @ 0x80.. => write!(out, "\\{byte:03o}"),
        _ => out.write_str(value),
    }
}
