//! Identifiers that are too long: PostgreSQL cuts them, and says so.

use sqlparser::tokenizer::{Token, Tokenizer};

use super::backslash::EscapedStrings;
use super::lexeme::{MARK, MAX_IDENTIFIER_BYTES};
use super::position::Positions;
use super::unicode::decode_unicode;
use crate::error::{SqlError, SqlState};
use crate::parser::dialect::ArchipelDialect;

/// Cuts an identifier at 63 bytes, at a character boundary.
pub fn truncate_identifier(value: &mut String) {
    // Names that the catalog keeps hold more than was written.
    if value.len() > MAX_IDENTIFIER_BYTES && !value.starts_with(MARK) {
        let mut end = MAX_IDENTIFIER_BYTES;
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        value.truncate(end);
    }
}

/// The notice (42622) of an identifier that is cut; `None`: it is short enough.
pub fn truncation_notice(written: &str) -> Option<SqlError> {
    let mut cut = written.to_owned();
    truncate_identifier(&mut cut);
    let message = format!("identifier \"{written}\" will be truncated to \"{cut}\"");
    (cut.len() < written.len()).then(|| SqlError::new(SqlState::NAME_TOO_LONG, message))
}

/// The notices (42622) of the identifiers of a text that are cut, in their order. Of a text that
/// cannot be read there are none: the error tells.
pub fn truncation_notices(text: &str) -> Vec<SqlError> {
    if !may_be_cut(text) {
        return Vec::new();
    }
    let Ok(strings) = EscapedStrings::of(text) else { return Vec::new() };
    let text = &*strings.hidden();
    let mut tokens = Vec::new();
    if Tokenizer::new(&ArchipelDialect, text).tokenize_with_location_into_buf(&mut tokens).is_err() {
        return Vec::new();
    }
    let Ok(tokens) = decode_unicode(tokens, &Positions::new(text)) else { return Vec::new() };
    let words = tokens.into_iter().filter_map(|token| match token.token {
        Token::Word(word) if word.value.len() > MAX_IDENTIFIER_BYTES => Some(word),
        _ => None,
    });
    let written =
        words.map(|word| if word.quote_style.is_some() { word.value } else { word.value.to_lowercase() });
    written.filter_map(|written| truncation_notice(&written)).collect()
}

/// Whether a text may hold such an identifier. Every statement is asked, so this reads one byte in 63
/// of most texts.
fn may_be_cut(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(*byte, b'_' | b'$') || *byte >= 0x80;
    let plain = (MAX_IDENTIFIER_BYTES..bytes.len()).step_by(MAX_IDENTIFIER_BYTES).any(|at| {
        let before = bytes[..at].iter().rev().take_while(|byte| is_name(byte)).count();
        before + bytes[at..].iter().take_while(|byte| is_name(byte)).count() > MAX_IDENTIFIER_BYTES
    });
    // What stands between two quotes may be anything.
    plain
        || bytes.len() > MAX_IDENTIFIER_BYTES
            && text.split('"').skip(1).step_by(2).any(|quoted| quoted.len() > MAX_IDENTIFIER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::truncation_notices;

    fn cut(text: &str) -> Vec<String> {
        truncation_notices(text).iter().map(|notice| notice.message().to_owned()).collect()
    }

    #[test]
    fn what_is_cut_is_told() {
        let (name, kept) = ("n".repeat(64), "n".repeat(63));
        let told = vec![format!("identifier \"{name}\" will be truncated to \"{kept}\"")];
        assert_eq!(cut(&format!("select 1 as {name}")), told);
        assert_eq!(cut(&format!("select {}1 as {}", " ".repeat(70), name.to_uppercase())), told);
        assert_eq!(cut(&format!("select 1 as \"{name}\"")), told);
        assert!(cut(&format!("select 1 as {kept}")).is_empty());
        assert!(cut(&format!("select '{name}'")).is_empty(), "a string is no identifier");
    }

    #[test]
    fn characters_stay_whole() {
        let told = cut(&format!("select 1 as {}", "é".repeat(40)));
        let expected = "é".repeat(31);
        assert_eq!(told.len(), 1);
        assert!(told[0].ends_with(&format!("to \"{expected}\"")), "{told:?}");
    }
}
