//! PostgreSQL's advanced regular expressions, written as the `regex` crate reads them.
//!
//! The two agree about most of the syntax. What they do not: the escapes behind a backslash (`\b` is a
//! backspace, `\y` the word boundary), options in front of an expression, comments, braces that count nothing,
//! blanks in brackets, and what a complement is where newlines end lines.

use std::iter::Peekable;
use std::str::Chars;

use super::args::invalid_parameter;
use crate::error::{Result, SqlError, SqlState};

/// What the flag letters of the regexp functions ask for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flags {
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
    fn set(&mut self, letter: char) -> bool {
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

/// The flags that the last argument of a function says.
pub(super) fn parse_flags(letters: &str) -> Result<Flags> {
    let mut flags = Flags::default();
    for letter in letters.chars() {
        if letter == 'g' {
            flags.global = true;
        } else if !flags.set(letter) {
            return Err(invalid_parameter(format!("invalid regular expression option: \"{letter}\"")));
        }
    }
    Ok(flags)
}

fn invalid(reason: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {reason}"))
}

/// What the word escapes and brackets take for letters: those of ASCII, as under the C locale.
const WORD: &str = "A-Za-z0-9_";

/// What a quantifier would be about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing: the begin of a branch, or a constraint.
    Nothing,
    Atom,
    Quantified,
}

/// What an escape outside of brackets leaves before a quantifier; of a back-reference, that there is a group
/// so far to which it can refer.
fn before_of_escape(named: Option<char>, groups: u32) -> Result<Before> {
    match named {
        Some('m' | 'M' | 'y' | 'Y' | 'A' | 'Z') => Ok(Before::Nothing),
        Some(digit @ '1'..='9') if digit.to_digit(10).is_some_and(|number| number > groups) => {
            Err(invalid("invalid backreference number"))
        }
        _ => Ok(Before::Atom),
    }
}

/// A quantifier, of which the first character has been read, with what makes it match little.
fn quantifier(first: char, chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    out.push(first);
    if first == '{' {
        for inner in chars.by_ref() {
            out.push(inner);
            if inner == '}' {
                break;
            }
        }
    }
    if chars.next_if_eq(&'?').is_some() {
        out.push('?');
    }
}

/// An expression in the crate's syntax, and the flags with those that it says itself.
pub(super) fn translate(pattern: &str, mut flags: Flags) -> Result<(String, Flags)> {
    let mut body = pattern;
    if !flags.literal {
        if let Some(literal) = pattern.strip_prefix("***=") {
            return Ok((regex::escape(literal), flags));
        }
        body = pattern.strip_prefix("***:").unwrap_or(pattern);
        body = options(body, &mut flags)?;
    }
    if flags.literal {
        return Ok((regex::escape(body), flags));
    }
    let mut out = String::with_capacity(body.len() + 8);
    let mut chars = body.chars().peekable();
    let mut in_class = false;
    let (mut before, mut groups) = (Before::Nothing, 0);
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                if !in_class {
                    before = before_of_escape(chars.peek().copied(), groups)?;
                }
                escape(&mut chars, in_class, &mut out)?;
            }
            '[' if in_class => {
                // `[:alpha:]` stays; a lone bracket inside a class is literal in POSIX.
                if chars.peek() == Some(&':') {
                    out.push('[');
                    for inner in chars.by_ref() {
                        out.push(inner);
                        if inner == ']' {
                            break;
                        }
                    }
                } else {
                    out.push_str("\\[");
                }
            }
            '[' => {
                let rest: String = chars.clone().take(6).collect();
                if rest.starts_with("[:<:]]") || rest.starts_with("[:>:]]") {
                    out.push_str(if rest.starts_with("[:<") { WORD_START } else { WORD_END });
                    chars.nth(5);
                    before = Before::Nothing;
                    continue;
                }
                in_class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                    if flags.newline_stops {
                        out.push_str("\\n");
                    }
                }
                // A closing bracket that comes first is literal.
                if chars.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            ']' if in_class => {
                in_class = false;
                before = Before::Atom;
                out.push(']');
            }
            // The crate reads && and ~~ in a class as set operations, and leaves out blanks and comments there
            // where it does outside.
            '&' | '~' | '#' if in_class => literal(c, &mut out),
            blank if in_class && blank.is_whitespace() => literal(blank, &mut out),
            other if in_class => out.push(other),
            '#' if flags.expanded => {
                let _ = chars.find(|c| *c == '\n');
            }
            '(' if chars.peek() == Some(&'?') => {
                // A comment leaves what is before it.
                let written = out.len();
                group(&mut chars, &mut out)?;
                if out.len() > written {
                    before = Before::Nothing;
                    for kind in chars.by_ref() {
                        out.push(kind);
                        if matches!(kind, ':' | '=' | '!') {
                            break;
                        }
                    }
                }
            }
            '{' if !chars.peek().is_some_and(char::is_ascii_digit) => {
                before = Before::Atom;
                out.push_str("\\{");
            }
            '*' | '+' | '?' | '{' if before != Before::Atom => {
                return Err(invalid("quantifier operand invalid"));
            }
            '*' | '+' | '?' | '{' => {
                before = Before::Quantified;
                quantifier(c, &mut chars, &mut out);
            }
            '(' | '|' | '^' | '$' => {
                before = Before::Nothing;
                groups += u32::from(c == '(');
                out.push(c);
            }
            blank if flags.expanded && blank.is_whitespace() => out.push(blank),
            other => {
                before = Before::Atom;
                out.push(other);
            }
        }
    }
    Ok((out, flags))
}

/// What stands behind the options in front of an expression.
fn options<'p>(body: &'p str, flags: &mut Flags) -> Result<&'p str> {
    let Some(rest) =
        body.strip_prefix("(?").filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    else {
        return Ok(body);
    };
    let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    if !rest[..letters].chars().all(|letter| flags.set(letter)) {
        return Err(invalid("invalid embedded option"));
    }
    rest[letters..].strip_prefix(')').ok_or_else(|| invalid("invalid embedded option"))
}

/// What begins with `(?`, of which the bracket has been read.
fn group(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<()> {
    let behind: String = chars.clone().take(3).collect();
    match behind.as_bytes() {
        [b'?', b'#', ..] => {
            let _ = chars.find(|c| *c == ')');
        }
        [b'?', b':' | b'=' | b'!', ..] | [b'?', b'<', b'=' | b'!'] => out.push('('),
        _ => return Err(invalid("quantifier operand invalid")),
    }
    Ok(())
}

const WORD_START: &str = "(?-u:\\b{start})";
const WORD_END: &str = "(?-u:\\b{end})";

/// What a backslash, which has been read, and what follows it stand for.
fn escape(chars: &mut Peekable<Chars<'_>>, in_class: bool, out: &mut String) -> Result<()> {
    let unknown = || invalid("invalid escape \\ sequence");
    let named = chars.next().ok_or_else(unknown)?;
    match named {
        'w' if in_class => out.push_str(WORD),
        'w' => out.push_str(&format!("[{WORD}]")),
        'W' => out.push_str(&format!("[^{WORD}]")),
        'd' => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
        'D' => out.push_str("[^0-9]"),
        's' => out.push_str("[[:space:]]"),
        'S' => out.push_str("[^[:space:]]"),
        'a' | 'f' | 'n' | 'r' | 't' | 'v' => out.extend(['\\', named]),
        'b' => literal('\u{8}', out),
        'B' => literal('\\', out),
        'e' => literal('\u{1b}', out),
        'c' => {
            let control = chars.next().ok_or_else(unknown)?;
            literal(char::from(control as u8 & 0x1f), out);
        }
        'u' => literal(digits(chars, 16, 4, 4)?, out),
        'U' => literal(digits(chars, 16, 8, 8)?, out),
        'x' => literal(digits(chars, 16, 1, 255)?, out),
        '0' => literal(digits(chars, 8, 0, 2)?, out),
        _ if in_class && named.is_ascii_alphanumeric() => return Err(unknown()),
        'm' => out.push_str(WORD_START),
        'M' => out.push_str(WORD_END),
        'y' => out.push_str("(?-u:\\b)"),
        'Y' => out.push_str("\\B"),
        'A' => out.push_str("\\A"),
        'Z' => out.push_str("\\z"),
        '1'..='9' => {
            return Err(SqlError::unsupported(format_args!(
                "back-reference \\{named} in a regular expression"
            )));
        }
        _ if named.is_ascii_alphanumeric() => return Err(unknown()),
        _ => literal(named, out),
    }
    Ok(())
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
    said.ok_or_else(|| invalid("invalid escape \\ sequence"))
}

/// A character that stands for itself, inside of brackets or not.
fn literal(c: char, out: &mut String) {
    if c.is_whitespace() || c.is_control() {
        // The crate passes blanks by in an expanded expression.
        out.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
    } else {
        out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }
}
