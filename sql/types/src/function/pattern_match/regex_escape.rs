//! The escapes of PostgreSQL's advanced regular expressions, and the flags that they are read under.

use std::iter::Peekable;
use std::str::Chars;

use crate::error::{Result, SqlError, SqlState};

/// What the flag letters of the regexp functions ask for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::function) struct Flags {
    pub global: bool,
    pub ignore_case: bool,
    pub expanded: bool,
    pub literal: bool,
    /// `.` and bracket complements stop at newlines.
    pub newline_stops: bool,
    /// `^` and `$` match at newlines.
    pub newline_anchors: bool,
}

impl Flags {
    /// Heeds a letter; false if there is no such flag.
    pub(super) fn set(&mut self, letter: char) -> bool {
        match letter {
            'i' => self.ignore_case = true,
            'c' => self.ignore_case = false,
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.literal = true,
            's' => (self.newline_stops, self.newline_anchors) = (false, false),
            'n' | 'm' => (self.newline_stops, self.newline_anchors) = (true, true),
            'p' => (self.newline_stops, self.newline_anchors) = (true, false),
            'w' => (self.newline_stops, self.newline_anchors) = (false, true),
            'e' | 'b' => {}
            _ => return false,
        }
        true
    }
}

/// That an expression is wrong, in PostgreSQL's words.
pub(in crate::function) fn invalid(reason: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {reason}"))
}

/// What a backslash and what follows it stand for.
pub(in crate::function) enum Escaped {
    Character(char),
    /// A bracket expression.
    Class(&'static str),
    /// An assertion, in the crate's syntax.
    Constraint(&'static str),
    /// What a group has matched.
    Reference(u32),
}

pub(super) const WORD_START: &str = "(?-u:\\b{start})";

pub(super) const WORD_END: &str = "(?-u:\\b{end})";

/// What a backslash, which has been read, and what follows it stand for, where so many groups have begun. Words
/// are made of the letters of ASCII, as under the C locale.
pub(in crate::function) fn escape(chars: &mut Peekable<Chars<'_>>, groups: u32) -> Result<Escaped> {
    let named = chars.next().ok_or_else(unknown_escape)?;
    let character = match named {
        'w' => return Ok(Escaped::Class("[A-Za-z0-9_]")),
        'W' => return Ok(Escaped::Class("[^A-Za-z0-9_]")),
        'd' => return Ok(Escaped::Class("[0-9]")),
        'D' => return Ok(Escaped::Class("[^0-9]")),
        's' => return Ok(Escaped::Class("[[:space:]]")),
        'S' => return Ok(Escaped::Class("[^[:space:]]")),
        'm' => return Ok(Escaped::Constraint(WORD_START)),
        'M' => return Ok(Escaped::Constraint(WORD_END)),
        'y' => return Ok(Escaped::Constraint("(?-u:\\b)")),
        'Y' => return Ok(Escaped::Constraint("(?-u:\\B)")),
        'A' => return Ok(Escaped::Constraint("\\A")),
        'Z' => return Ok(Escaped::Constraint("\\z")),
        '0'..='9' => return number(named, chars, groups),
        'a' => '\u{7}',
        'b' => '\u{8}',
        'B' => '\\',
        'c' => char::from(chars.next().ok_or_else(unknown_escape)? as u8 & 0x1f),
        'e' => '\u{1b}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        'u' => digits(chars, 16, 4, 4)?,
        'U' => digits(chars, 16, 8, 8)?,
        'x' => digits(chars, 16, 1, 255)?,
        _ if named.is_ascii_alphanumeric() => return Err(unknown_escape()),
        _ => named,
    };
    Ok(Escaped::Character(character))
}

fn unknown_escape() -> SqlError {
    invalid("invalid escape \\ sequence")
}

/// What a backslash and digits stand for: the number of a group, if this is one digit or there are that many
/// groups, or else a character, of which the octal digits are said, as far as they are those of a byte.
fn number(first: char, chars: &mut Peekable<Chars<'_>>, groups: u32) -> Result<Escaped> {
    if let Some(mut group) = first.to_digit(10).filter(|digit| *digit > 0) {
        let (mut behind, mut more) = (chars.clone(), 0_usize);
        while let Some(digit) = behind.next().and_then(|c| c.to_digit(10)) {
            group = group.saturating_mul(10).saturating_add(digit);
            more += 1;
        }
        if more == 0 || group <= groups {
            for _ in 0..more {
                chars.next();
            }
            return Ok(Escaped::Reference(group));
        }
    }
    let mut value = first.to_digit(8).ok_or_else(unknown_escape)?;
    for _ in 0..2 {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) else { break };
        let longer = value * 8 + digit;
        if longer > 0xff {
            break;
        }
        value = longer;
        chars.next();
    }
    char::from_u32(value).map(Escaped::Character).ok_or_else(unknown_escape)
}

/// The character that so many digits say.
fn digits(chars: &mut Peekable<Chars<'_>>, radix: u32, least: usize, most: usize) -> Result<char> {
    let (mut value, mut count) = (0_u32, 0);
    while count < most
        && let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix))
    {
        value = value.saturating_mul(radix).saturating_add(digit);
        count += 1;
        chars.next();
    }
    let said = char::from_u32(value).filter(|_| count >= least);
    said.ok_or_else(unknown_escape)
}

/// A character that stands for itself, inside of brackets or not.
pub(in crate::function) fn literal(c: char, out: &mut String) {
    if regex_syntax::is_meta_character(c) {
        out.push('\\');
    }
    out.push(c);
}
