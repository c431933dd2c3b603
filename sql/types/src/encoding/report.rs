//! The errors of bytes that are no text, and of text that another character set does not have.

use super::name::Encoding;
use super::verify::Form;
use crate::error::{Result, SqlError, SqlState};

/// Bytes as text of the server.
///
/// Errors: 22021, telling the first bytes that are none.
pub fn utf8(bytes: &[u8]) -> Result<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !bytes.contains(&0) => Ok(text),
        _ => Err(invalid_utf8(bytes)),
    }
}

/// The error of bytes that are not text: about the first that is none, a zero included. It may lie in what
/// follows them.
pub fn invalid_utf8(bytes: &[u8]) -> SqlError {
    let valid = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    let zero = bytes[..valid].iter().position(|byte| *byte == 0);
    invalid(Encoding::UTF8, &bytes[zero.unwrap_or(valid)..])
}

/// As many bytes as are told at most.
const TOLD_BYTES_MAX: usize = 8;

/// 22021: `rest` does not begin with a character (report_invalid_encoding).
pub(super) fn invalid(encoding: Encoding, rest: &[u8]) -> SqlError {
    let length = if rest.is_empty() { 0 } else { Form::of(encoding).length(rest).unwrap_or(rest.len()) };
    let (name, bytes) = (encoding.name(), told(&rest[..length.min(rest.len())]));
    SqlError::new(
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        format!("invalid byte sequence for encoding \"{name}\": {bytes}"),
    )
}

/// 22P05: a character of one character set that another does not have (report_untranslatable_char).
pub(super) fn untranslatable(from: Encoding, to: Encoding, character: &[u8]) -> SqlError {
    let (from, to, bytes) = (from.name(), to.name(), told(character));
    SqlError::new(
        SqlState::UNTRANSLATABLE_CHARACTER,
        format!(
            "character with byte sequence {bytes} in encoding \"{from}\" has no equivalent in encoding \"{to}\""
        ),
    )
}

fn told(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().take(TOLD_BYTES_MAX).map(|byte| format!("0x{byte:02x}")).collect();
    bytes.join(" ")
}

/// 42883: text is not converted between these.
pub fn no_conversion(from: Encoding, to: Encoding) -> SqlError {
    let (from, to) = (from.name(), to.name());
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("default conversion function for encoding \"{from}\" to \"{to}\" does not exist"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_told_as_far_as_the_first_says() {
        let told = |bytes: &[u8]| utf8(bytes).unwrap_err().message().to_owned();
        let message = |bytes: &str| format!("invalid byte sequence for encoding \"UTF8\": {bytes}");
        assert_eq!(told(b"a\xff"), message("0xff"));
        assert_eq!(told(b"a\xe2\x82b"), message("0xe2 0x82 0x62"));
        assert_eq!(told(b"a\xe2\x82"), message("0xe2 0x82"));
        assert_eq!(told(b"a\0\xff"), message("0x00"));
    }
}
