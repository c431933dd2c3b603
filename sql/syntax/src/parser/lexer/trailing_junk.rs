//! What stands behind a number or a parameter without a blank and is none of it: PostgreSQL's scanner takes
//! `123abc` for one token that is wrong, where sqlparser's sees a number and its alias.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::position::Positions;
use crate::error::{Result, SqlError, SqlState};

/// 42601 for the first of such.
pub(super) fn refuse_junk(tokens: &[TokenWithSpan], positions: &Positions<'_>) -> Result<()> {
    for token in tokens {
        // Digits of another base are a number and its junk, too.
        if !matches!(token.token, Token::Number(..) | Token::HexStringLiteral(_) | Token::Placeholder(_)) {
            continue;
        }
        let Some(rest) = positions.text().get(positions.byte(token.span.start)..) else { continue };
        let (what, near) = match rest.strip_prefix('$') {
            Some(number) => match digits(number) {
                0 => continue,
                end => ("parameter", junk(rest, 1 + end)),
            },
            None if rest.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
                ("numeric literal", junk_of_number(rest))
            }
            None => continue,
        };
        if let Some(near) = near {
            let message = format!("trailing junk after {what} at or near \"{near}\"");
            let position = positions.character(token.span.start);
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position));
        }
    }
    Ok(())
}

/// How many digits a text begins with.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// A number with what makes it wrong, if that follows: the beginning of a name, or of an exponent that says
/// none.
fn junk_of_number(text: &str) -> Option<&str> {
    let mut end = digits(text);
    if text[end..].starts_with('.') && !text[end..].starts_with("..") {
        end += 1 + digits(&text[end + 1..]);
    }
    if text[end..].starts_with(['e', 'E']) {
        let signed = text[end + 1..].starts_with(['+', '-']);
        let exponent = end + 1 + usize::from(signed);
        match digits(&text[exponent..]) {
            0 if signed => return Some(&text[..exponent]),
            0 => {}
            count => end = exponent + count,
        }
    }
    junk(text, end)
}

/// The first `end` bytes of a text, with the name that follows them.
fn junk(text: &str, end: usize) -> Option<&str> {
    let begins = |first: char| first.is_ascii_alphabetic() || first == '_' || !first.is_ascii();
    let rest = &text[end..];
    if !rest.starts_with(begins) {
        return None;
    }
    let goes_on = |next: char| begins(next) || next.is_ascii_digit() || next == '$';
    let length = rest.find(|next| !goes_on(next)).unwrap_or(rest.len());
    Some(&text[..end + length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_ends_before_anything_but_a_name() {
        for text in ["1", "1.5,", "1e5+2", "1E-5)", ".5 a", "1..2", "12$3", "1::int", "0.e1"] {
            assert_eq!(junk_of_number(text), None, "{text}");
        }
        for (text, near) in [
            ("123abc;", "123abc"),
            ("1e", "1e"),
            ("1e+x", "1e+"),
            ("1.5e,", "1.5e"),
            ("0x1g ", "0x1g"),
            ("1._5", "1._5"),
            ("1_000", "1_000"),
            ("1e5x", "1e5x"),
            (".5x$1 ", ".5x$1"),
            ("1é", "1é"),
        ] {
            assert_eq!(junk_of_number(text), Some(near), "{text}");
        }
    }
}
