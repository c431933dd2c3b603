//! What tokens are: words, strings, the lexemes that scanners beside this crate read.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What names that nobody may write begin with: the relations of views' stored queries, values of
/// routines without a name, constructions on their way through a grammar that lacks them.
pub const MARK: char = '\u{1}';
/// PostgreSQL cuts identifiers at this many bytes (NAMEDATALEN - 1).
pub const MAX_IDENTIFIER_BYTES: usize = 63;

pub(in crate::parser) fn is_word(token: Option<&TokenWithSpan>, word: &str) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(found)) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

pub(in crate::parser) fn keyword(token: Option<&TokenWithSpan>) -> Option<Keyword> {
    match token.map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// A token with its place, for scanners beside this crate (PL/pgSQL bodies).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lexeme {
    pub kind: LexemeKind,
    /// Bytes of the text.
    pub range: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LexemeKind {
    /// An identifier or keyword, folded unless quoted.
    Word { value: String, quoted: bool },
    /// A number, as written.
    Number,
    /// A string literal's value.
    String(String),
    /// `$1`, as written.
    Parameter,
    /// An operator or punctuation, as written.
    Symbol,
}

/// The value of a string literal of any quoting.
pub(in crate::parser) fn string_value(token: &Token) -> Option<&str> {
    match token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text)
        | Token::NationalStringLiteral(text) => Some(text),
        Token::DollarQuotedString(text) => Some(&text.value),
        _ => None,
    }
}
