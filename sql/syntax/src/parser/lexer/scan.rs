//! From text to tokens as PostgreSQL's scanner cuts them (scan.l), blanks and comments among them.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::backslash::EscapedStrings;
use super::keywords::is_foreign_keyword;
use super::lexeme::{Lexeme, LexemeKind, string_value};
use super::operators::cut_operators;
use super::position::Positions;
use super::tokenizer;
use super::trailing_junk::refuse_junk;
use super::truncation::truncate_identifier;
use super::unicode::decode_unicode;
use crate::encoding::invalid_utf8;
use crate::error::{Result, SqlError, SqlState};
use crate::{interrupt, memory};

/// Tokens that there is room for before there are any.
const ROOM_AT_FIRST: usize = 1 << 16;

/// What a token comes to in a statement's tree, or less.
const TREE_BYTES_PER_TOKEN: usize = 256;

pub(super) fn raw_tokens(positions: &Positions<'_>) -> Result<Vec<TokenWithSpan>> {
    let text = positions.text();
    if let Some(offset) = text.find('\0') {
        let zero = invalid_utf8(&text.as_bytes()[offset..]);
        return Err(zero.at(Some(positions.character_of_byte(offset))));
    }
    memory::check(text.len())?;
    let mut tokens = Vec::with_capacity((text.len() / 4 + 4).min(ROOM_AT_FIRST));
    let strings = EscapedStrings::of(text)?;
    if let Err(error) = tokenizer::read(&strings.hidden(), &mut tokens)? {
        return Err(lexical_error(positions, &tokens, &error.message));
    }
    strings.restore(&mut tokens, positions);
    interrupt::check()?;
    // What is made of them is not seen until it is made.
    memory::check(tokens.len().saturating_mul(TREE_BYTES_PER_TOKEN))?;
    refuse_junk(&tokens, positions)?;
    let mut tokens = cut_operators(decode_unicode(tokens, positions)?, positions);
    for token in &mut tokens {
        match &mut token.token {
            Token::Word(word) if word.quote_style.is_some() && word.value.is_empty() => {
                let near = &text[positions.byte(token.span.start)..positions.byte(token.span.end)];
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("zero-length delimited identifier at or near \"{near}\""),
                )
                .at(positions.character(token.span.start)));
            }
            Token::Word(word) => {
                truncate_identifier(&mut word.value);
                if word.keyword != Keyword::NoKeyword && is_foreign_keyword(&word.value.to_lowercase()) {
                    word.keyword = Keyword::NoKeyword;
                }
            }
            _ => {}
        }
    }
    Ok(tokens)
}

/// What the tokeniser could not end, told as PostgreSQL's scanner tells it.
fn lexical_error(positions: &Positions<'_>, before: &[TokenWithSpan], message: &str) -> SqlError {
    let text = positions.text();
    // The tokeniser reports where it gave up, often the end; the culprit begins where the last
    // good token ended.
    let start = before.last().map_or(0, |token| positions.byte(token.span.end));
    let rest = &text[start..];
    let rest_trimmed = rest.trim_start();
    let at = start + rest.len() - rest_trimmed.len();
    let what = if rest_trimmed.starts_with("/*") {
        "unterminated /* comment"
    } else if rest_trimmed.starts_with('"') {
        "unterminated quoted identifier"
    } else if rest_trimmed.starts_with('$') {
        "unterminated dollar-quoted string"
    } else if message.contains("nterminated") || rest_trimmed.contains('\'') {
        "unterminated quoted string"
    } else {
        "syntax error"
    };
    SqlError::new(SqlState::SYNTAX_ERROR, format!("{what} at or near \"{rest_trimmed}\""))
        .at(Some(positions.character_of_byte(at)))
}

/// Tokens of a text, without blanks and comments, for scanners beside this crate.
pub fn lexemes(text: &str) -> Result<Vec<Lexeme>> {
    let positions = Positions::new(text);
    let tokens = raw_tokens(&positions)?;
    Ok(tokens
        .into_iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)))
        .map(|token| {
            let range = positions.byte(token.span.start)..positions.byte(token.span.end);
            let kind = match token.token {
                Token::Word(word) if word.quote_style.is_some() => {
                    LexemeKind::Word { value: word.value, quoted: true }
                }
                Token::Word(word) => LexemeKind::Word { value: word.value.to_lowercase(), quoted: false },
                Token::Number(..) => LexemeKind::Number,
                Token::Placeholder(_) => LexemeKind::Parameter,
                token => match string_value(&token) {
                    Some(value) => LexemeKind::String(value.to_string()),
                    None => LexemeKind::Symbol,
                },
            };
            Lexeme { kind, range }
        })
        .collect())
}

/// 42P02 for the first parameter of a statement that brings values for `given` of them.
pub fn missing_parameter(text: &str, given: usize) -> SqlError {
    let parameters = lexemes(text).unwrap_or_default();
    let mut parameters = parameters.into_iter().filter(|lexeme| lexeme.kind == LexemeKind::Parameter);
    let is_missing = |name: &str| name.get(1..).and_then(|number| number.parse().ok()) > Some(given);
    let found = parameters.find(|lexeme| is_missing(&text[lexeme.range.clone()]));
    let name = found.as_ref().map_or("$1", |lexeme| &text[lexeme.range.clone()]);
    let position = found.as_ref().map(|found| Positions::new(text).character_of_byte(found.range.start));
    SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter {name}")).at(position)
}
