//! Strings and identifiers with Unicode escapes (`U&'d\0061t'`, `U&"…" UESCAPE '!'`), and what is
//! wrong with the escapes of an `E'…'`.

use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::lexeme::is_word;
use super::position::Positions;
use crate::error::{Result, SqlError, SqlState};

fn syntax(message: impl Into<String>, position: Option<u32>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(position)
}

/// Reads the escapes: tokens come with blanks and comments.
pub(super) fn decode_unicode(
    tokens: Vec<TokenWithSpan>,
    positions: &Positions<'_>,
) -> Result<Vec<TokenWithSpan>> {
    let begins = |at: usize| {
        let quoted = match tokens.get(at + 2).map(|token| &token.token) {
            Some(Token::SingleQuotedString(_)) => true,
            Some(Token::Word(word)) => word.quote_style == Some('"'),
            _ => false,
        };
        quoted
            && is_word(tokens.get(at), "u")
            && tokens[at + 1].token == Token::Ampersand
            && tokens[at].span.end == tokens[at + 1].span.start
            && tokens[at + 1].span.end == tokens[at + 2].span.start
    };
    if !(0..tokens.len()).any(begins) {
        return Ok(tokens);
    }
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if !begins(at) {
            out.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let mut span = tokens[at].span;
        let content = &tokens[at + 2];
        span.end = content.span.end;
        at += 3;
        let mut escape = '\\';
        let word = after_blanks(&tokens, at);
        if is_word(tokens.get(word), "uescape") {
            let literal = after_blanks(&tokens, word + 1);
            escape = escape_character(tokens.get(literal), positions)?;
            span.end = tokens[literal].span.end;
            at = literal + 1;
        }
        let start = positions.character(span.start);
        let token = match &content.token {
            Token::SingleQuotedString(text) => Token::SingleQuotedString(decode(text, escape, start)?),
            Token::Word(word) => {
                Token::Word(Word { value: decode(&word.value, escape, start)?, ..word.clone() })
            }
            other => other.clone(),
        };
        out.push(TokenWithSpan { token, span });
    }
    Ok(out)
}

/// The next token that is no blank and no comment.
fn after_blanks(tokens: &[TokenWithSpan], mut at: usize) -> usize {
    while matches!(tokens.get(at).map(|token| &token.token), Some(Token::Whitespace(_))) {
        at += 1;
    }
    at
}

fn escape_character(token: Option<&TokenWithSpan>, positions: &Positions<'_>) -> Result<char> {
    let end = positions.text().len();
    let (near, position) = match token {
        Some(token) if token.token != Token::EOF => {
            let range = positions.byte(token.span.start)..positions.byte(token.span.end);
            (positions.text().get(range).unwrap_or_default(), positions.character(token.span.start))
        }
        _ => ("", Some(positions.character_of_byte(end))),
    };
    let Some(Token::SingleQuotedString(text)) = token.map(|token| &token.token) else {
        let message = format!("UESCAPE must be followed by a simple string literal at or near \"{near}\"");
        return Err(syntax(message, position));
    };
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(escape), None)
            if !escape.is_ascii_hexdigit()
                && !matches!(escape, '+' | '\'' | '"')
                && !escape.is_ascii_whitespace() =>
        {
            Ok(escape)
        }
        _ => {
            let message = format!("invalid Unicode escape character at or near \"{near}\"");
            Err(syntax(message, position))
        }
    }
}

/// str_udeescape; `start` is where the literal begins.
fn decode(text: &str, escape: char, start: Option<u32>) -> Result<String> {
    let characters: Vec<char> = text.chars().collect();
    // Behind `U&'`.
    let position = |at: usize| start.map(|start| start + 3 + at as u32);
    let lone = |at: usize| syntax("invalid Unicode surrogate pair", position(at));
    let mut out = String::with_capacity(text.len());
    let mut high: Option<u32> = None;
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        if character != escape {
            if high.is_some() {
                return Err(lone(at));
            }
            out.push(character);
            at += 1;
            continue;
        }
        if characters.get(at + 1) == Some(&escape) {
            if high.is_some() {
                return Err(lone(at));
            }
            out.push(escape);
            at += 2;
            continue;
        }
        let (digits, from) = if characters.get(at + 1) == Some(&'+') { (6, at + 2) } else { (4, at + 1) };
        let code = characters
            .get(from..from + digits)
            .filter(|digits| digits.iter().all(char::is_ascii_hexdigit))
            .and_then(|digits| u32::from_str_radix(&digits.iter().collect::<String>(), 16).ok());
        let Some(code) = code else {
            return Err(syntax("invalid Unicode escape", position(at))
                .with_hint("Unicode escapes must be \\XXXX or \\+XXXXXX."));
        };
        if code == 0 || code > 0x10_ffff {
            return Err(syntax("invalid Unicode escape value", position(at)));
        }
        match (high.take(), code) {
            (Some(high), 0xdc00..=0xdfff) => {
                out.extend(char::from_u32(0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00)));
            }
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(lone(at)),
            (None, 0xd800..=0xdbff) => high = Some(code),
            (None, code) => out.extend(char::from_u32(code)),
        }
        at = from + digits;
    }
    match high {
        Some(_) => Err(lone(at)),
        None => Ok(out),
    }
}

/// What is wrong with the escapes of an `E'…'` at the beginning of a text, whose place is given; of a plain
/// constant that is read so, too.
pub(super) fn escape_error(text: &str, start: u32) -> Option<SqlError> {
    let prefixed = text.strip_prefix(['e', 'E']);
    let body = prefixed.unwrap_or(text).strip_prefix('\'')?;
    let characters: Vec<char> = body.chars().collect();
    let before = if prefixed.is_some() { 2 } else { 1 };
    let position = |at: usize| Some(start + before + at as u32);
    let near = |from: usize, to: usize| characters[from..to.min(characters.len())].iter().collect::<String>();
    let pair = |from: usize, to: usize| {
        let message = format!("invalid Unicode surrogate pair at or near \"{}\"", near(from, to));
        Some(syntax(message, position(from)))
    };
    let mut high = false;
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        let next = characters.get(at + 1).copied();
        let digits = match (character, next) {
            ('\\', Some('u')) => 4,
            ('\\', Some('U')) => 8,
            _ if high => return pair(at, at + 1),
            ('\\', _) => {
                at += 2;
                continue;
            }
            ('\'', Some('\'')) => {
                at += 2;
                continue;
            }
            ('\'', _) => return None,
            _ => {
                at += 1;
                continue;
            }
        };
        let code = characters
            .get(at + 2..at + 2 + digits)
            .filter(|digits| digits.iter().all(char::is_ascii_hexdigit))
            .and_then(|digits| u32::from_str_radix(&digits.iter().collect::<String>(), 16).ok());
        let end = at + 2 + digits;
        let Some(code) = code else {
            return Some(
                SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid Unicode escape")
                    .at(position(at))
                    .with_hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX."),
            );
        };
        match code {
            0 | 0x11_0000.. => {
                let message = format!("invalid Unicode escape value at or near \"{}\"", near(at, end));
                return Some(syntax(message, position(at)));
            }
            0xdc00..=0xdfff if high => high = false,
            0xdc00..=0xdfff => return pair(at, end),
            _ if high => return pair(at, end),
            0xd800..=0xdbff => high = true,
            _ => {}
        }
        at = end;
    }
    None
}
