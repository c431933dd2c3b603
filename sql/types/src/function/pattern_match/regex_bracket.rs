//! The bracket expressions of PostgreSQL's regular expressions, written as the `regex` crate reads them.
//!
//! The crate would read a bracket in them as the begin of a set, and two of some characters as an operation on
//! sets; names of characters it does not know.

use std::iter::Peekable;
use std::str::Chars;

use super::regex_escape::{Escaped, Flags, escape, invalid, literal};
use crate::error::{Result, SqlError};

type Characters<'p> = Peekable<Chars<'p>>;

fn unbalanced() -> SqlError {
    invalid("brackets [] not balanced")
}

fn no_range() -> SqlError {
    invalid("invalid character range")
}

/// A bracket expression, of which the first bracket has been read, where so many groups have begun.
pub(in crate::function) fn translate(
    chars: &mut Characters<'_>,
    flags: Flags,
    groups: u32,
    out: &mut String,
) -> Result<()> {
    out.push('[');
    if chars.next_if_eq(&'^').is_some() {
        out.push('^');
        if flags.newline_stops {
            out.push_str("\\n");
        }
    }
    // A closing bracket that comes first is literal, as is a hyphen.
    let mut is_first = true;
    loop {
        let next = chars.next().ok_or_else(unbalanced)?;
        match next {
            ']' if !is_first => {
                out.push(']');
                return Ok(());
            }
            '-' if !is_first && chars.peek() != Some(&']') => return Err(no_range()),
            _ => {}
        }
        is_first = false;
        let begin = match element(next, chars, groups)? {
            Element::Character(c) => c,
            Element::Class("[:lower:]" | "[:upper:]") if flags.ignore_case => {
                out.push_str("[:alpha:]");
                continue;
            }
            Element::Class(class) => {
                out.push_str(class);
                continue;
            }
            Element::Equivalent(c) => {
                span(c, c, flags.ignore_case, out);
                continue;
            }
        };
        let mut end = begin;
        if chars.peek() == Some(&'-') && chars.clone().nth(1) != Some(']') {
            chars.next();
            let next = chars.next().ok_or_else(unbalanced)?;
            let Element::Character(said) = element(next, chars, groups)? else { return Err(no_range()) };
            end = said;
            if chars.peek().is_none() {
                return Err(unbalanced());
            }
        }
        if end < begin {
            return Err(no_range());
        }
        span(begin, end, flags.ignore_case, out);
    }
}

/// What stands at one place in brackets.
enum Element {
    /// With which a range may begin, or end.
    Character(char),
    /// What is equivalent to a character: itself.
    Equivalent(char),
    /// As it is written in brackets.
    Class(&'static str),
}

/// What begins with a character that has been read.
fn element(first: char, chars: &mut Characters<'_>, groups: u32) -> Result<Element> {
    if first == '\\' {
        return match escape(chars, groups)? {
            Escaped::Character(c) => Ok(Element::Character(c)),
            Escaped::Class(class) => Ok(Element::Class(class)),
            Escaped::Constraint(_) | Escaped::Reference(_) => Err(invalid("invalid escape \\ sequence")),
        };
    }
    if first != '[' {
        return Ok(Element::Character(first));
    }
    match chars.peek() {
        None => Err(unbalanced()),
        Some('.') => named(&enclosed(chars)?).map(Element::Character),
        Some('=') => named(&enclosed(chars)?).map(Element::Equivalent),
        Some(':') => {
            let name = enclosed(chars)?;
            let class = CLASSES.iter().find(|(known, _)| *known == name);
            class.map(|&(_, class)| Element::Class(class)).ok_or_else(|| invalid("invalid character class"))
        }
        Some(_) => Ok(Element::Character(first)),
    }
}

/// What stands between the sign that comes next and the same sign before a bracket.
fn enclosed(chars: &mut Characters<'_>) -> Result<String> {
    let sign = chars.next().ok_or_else(unbalanced)?;
    let mut name = String::new();
    loop {
        let next = chars.next().ok_or_else(unbalanced)?;
        if next == sign && chars.next_if_eq(&']').is_some() {
            break;
        }
        name.push(next);
    }
    if chars.peek().is_some() { Ok(name) } else { Err(unbalanced()) }
}

/// The character that a collating element is: one of this name, or the only one there.
fn named(name: &str) -> Result<char> {
    let mut characters = name.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return Ok(only);
    }
    let known = NAMES.iter().find(|(known, _)| *known == name);
    known.map(|&(_, c)| c).ok_or_else(|| invalid("invalid collating element"))
}

/// The characters from one to another, in brackets.
fn span(begin: char, end: char, ignore_case: bool, out: &mut String) {
    range(begin, end, out);
    if !ignore_case {
        return;
    }
    let (lower, upper) = ((begin.max('a'), end.min('z')), (begin.max('A'), end.min('Z')));
    if lower.0 <= lower.1 {
        range(lower.0.to_ascii_uppercase(), lower.1.to_ascii_uppercase(), out);
    }
    if upper.0 <= upper.1 {
        range(upper.0.to_ascii_lowercase(), upper.1.to_ascii_lowercase(), out);
    }
}

fn range(begin: char, end: char, out: &mut String) {
    literal(begin, out);
    if end != begin {
        out.push('-');
        literal(end, out);
    }
}

/// The named classes, of the C locale: all but control characters are ASCII's.
const CLASSES: &[(&str, &str)] = &[
    ("alnum", "[:alnum:]"),
    ("alpha", "[:alpha:]"),
    ("ascii", "[:ascii:]"),
    ("blank", "[:blank:]"),
    ("cntrl", r"\x00-\x1f\x7f-\x9f"),
    ("digit", "[:digit:]"),
    ("graph", "[:graph:]"),
    ("lower", "[:lower:]"),
    ("print", "[:print:]"),
    ("punct", "[:punct:]"),
    ("space", "[:space:]"),
    ("upper", "[:upper:]"),
    ("word", "[:word:]"),
    ("xdigit", "[:xdigit:]"),
];

/// What characters are called, beside letters.
const NAMES: &[(&str, char)] = &[
    ("NUL", '\u{0}'),
    ("SOH", '\u{1}'),
    ("STX", '\u{2}'),
    ("ETX", '\u{3}'),
    ("EOT", '\u{4}'),
    ("ENQ", '\u{5}'),
    ("ACK", '\u{6}'),
    ("BEL", '\u{7}'),
    ("alert", '\u{7}'),
    ("BS", '\u{8}'),
    ("backspace", '\u{8}'),
    ("HT", '\u{9}'),
    ("tab", '\u{9}'),
    ("LF", '\u{a}'),
    ("newline", '\u{a}'),
    ("VT", '\u{b}'),
    ("vertical-tab", '\u{b}'),
    ("FF", '\u{c}'),
    ("form-feed", '\u{c}'),
    ("CR", '\u{d}'),
    ("carriage-return", '\u{d}'),
    ("SO", '\u{e}'),
    ("SI", '\u{f}'),
    ("DLE", '\u{10}'),
    ("DC1", '\u{11}'),
    ("DC2", '\u{12}'),
    ("DC3", '\u{13}'),
    ("DC4", '\u{14}'),
    ("NAK", '\u{15}'),
    ("SYN", '\u{16}'),
    ("ETB", '\u{17}'),
    ("CAN", '\u{18}'),
    ("EM", '\u{19}'),
    ("SUB", '\u{1a}'),
    ("ESC", '\u{1b}'),
    ("IS4", '\u{1c}'),
    ("FS", '\u{1c}'),
    ("IS3", '\u{1d}'),
    ("GS", '\u{1d}'),
    ("IS2", '\u{1e}'),
    ("RS", '\u{1e}'),
    ("IS1", '\u{1f}'),
    ("US", '\u{1f}'),
    ("space", ' '),
    ("exclamation-mark", '!'),
    ("quotation-mark", '"'),
    ("number-sign", '#'),
    ("dollar-sign", '$'),
    ("percent-sign", '%'),
    ("ampersand", '&'),
    ("apostrophe", '\''),
    ("left-parenthesis", '('),
    ("right-parenthesis", ')'),
    ("asterisk", '*'),
    ("plus-sign", '+'),
    ("comma", ','),
    ("hyphen", '-'),
    ("hyphen-minus", '-'),
    ("period", '.'),
    ("full-stop", '.'),
    ("slash", '/'),
    ("solidus", '/'),
    ("zero", '0'),
    ("one", '1'),
    ("two", '2'),
    ("three", '3'),
    ("four", '4'),
    ("five", '5'),
    ("six", '6'),
    ("seven", '7'),
    ("eight", '8'),
    ("nine", '9'),
    ("colon", ':'),
    ("semicolon", ';'),
    ("less-than-sign", '<'),
    ("equals-sign", '='),
    ("greater-than-sign", '>'),
    ("question-mark", '?'),
    ("commercial-at", '@'),
    ("left-square-bracket", '['),
    ("backslash", '\\'),
    ("reverse-solidus", '\\'),
    ("right-square-bracket", ']'),
    ("circumflex", '^'),
    ("circumflex-accent", '^'),
    ("underscore", '_'),
    ("low-line", '_'),
    ("grave-accent", '`'),
    ("left-brace", '{'),
    ("left-curly-bracket", '{'),
    ("vertical-line", '|'),
    ("right-brace", '}'),
    ("right-curly-bracket", '}'),
    ("tilde", '~'),
    ("DEL", '\u{7f}'),
];
