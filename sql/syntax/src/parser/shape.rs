//! The shape of a statement: its text with the literals taken out.
//!
//! Two statements of one shape differ in their literals' values alone, so that what was found out
//! about one (its plan, with parameters in the place of the literals) may serve the other. Taking
//! the literals out has to cost much less than reading the statement, so this reads bytes, not
//! tokens, and gives up on whatever a byte or two do not settle: comments, dollar quotes, strings
//! with a prefix, names that would be cut. What it gives up on is read in full, as ever.

use std::ops::Range;

use crate::datum::Datum;
use crate::types::Oid;

use super::lexer::lexeme::MAX_IDENTIFIER_BYTES;

/// What a literal is by its spelling (chapter 4.1.2): its type before anything is known of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    /// Digits that fit an int4.
    Int4,
    /// Digits that fit an int8 only.
    Int8,
    /// Any other number.
    Numeric,
    /// Between quotes: of a type that its place decides.
    String,
}

impl LiteralKind {
    /// Stands in a shape for a literal: a byte that no shape holds otherwise.
    fn mark(self) -> char {
        match self {
            LiteralKind::Int4 => '\u{2}',
            LiteralKind::Int8 => '\u{3}',
            LiteralKind::Numeric => '\u{4}',
            LiteralKind::String => '\u{5}',
        }
    }

    /// The type of a parameter in its place; [`Oid::UNKNOWN`] where the place decides.
    pub fn declared(self) -> Oid {
        match self {
            LiteralKind::Int4 => Oid::INT4,
            LiteralKind::Int8 => Oid::INT8,
            LiteralKind::Numeric => Oid::NUMERIC,
            LiteralKind::String => Oid::UNKNOWN,
        }
    }
}

/// A literal and where it stands in its text, quotes included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    pub kind: LiteralKind,
    pub range: Range<usize>,
}

impl Literal {
    /// The literal as a type's input function takes it.
    pub fn value<'t>(&self, text: &'t str) -> std::borrow::Cow<'t, str> {
        let spelled = &text[self.range.clone()];
        if self.kind != LiteralKind::String {
            return spelled.into();
        }
        let inner = &spelled[1..spelled.len() - 1];
        if memchr::memchr(b'\'', inner.as_bytes()).is_none() {
            return inner.into();
        }
        inner.replace("''", "'").into()
    }

    /// The value of an integer literal.
    pub fn integer(&self, text: &str) -> Option<Datum> {
        let digits = &text[self.range.clone()];
        match self.kind {
            LiteralKind::Int4 => digits.parse().ok().map(Datum::Int4),
            LiteralKind::Int8 => digits.parse().ok().map(Datum::Int8),
            LiteralKind::Numeric | LiteralKind::String => None,
        }
    }
}

/// A statement's text without its literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The text with a mark in the place of every literal, and without the semicolon at its end.
    pub text: String,
    /// In the order of the text; at least one.
    pub literals: Vec<Literal>,
}

/// A statement with more literals is a load, whose shape will hardly come again.
const LITERALS_MAX: usize = 1_000;

/// The shape of a text that is one statement over rows with literals in it; `None` for every other
/// text, and for those that this does not read.
pub fn shape_of(text: &str) -> Option<Shape> {
    let bytes = text.as_bytes();
    if !begins_with_command(bytes) {
        return None;
    }
    let mut shape = Shape { text: String::with_capacity(text.len()), literals: Vec::new() };
    // What has been copied ends here.
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 128.. => {
                at = end_of(bytes, at, is_word);
                // A name that is cut is told at every time; a quote makes the word a prefix.
                if at - start > MAX_IDENTIFIER_BYTES || matches!(bytes.get(at), Some(b'\'' | b'&')) {
                    return None;
                }
                continue;
            }
            b'"' => {
                at = end_of_quoted(bytes, at)?;
                // A name may hold what marks a literal.
                if at - start > MAX_IDENTIFIER_BYTES || bytes[start..at].iter().any(u8::is_ascii_control) {
                    return None;
                }
                continue;
            }
            b'0'..=b'9' => {}
            b'.' if matches!(bytes.get(at + 1), Some(b'0'..=b'9')) && !follows_name(bytes, at) => {}
            b'\'' => {}
            b'-' if bytes.get(at + 1) == Some(&b'-') => return None,
            b'/' if bytes.get(at + 1) == Some(&b'*') => return None,
            b';' => {
                if !bytes[at + 1..].iter().all(u8::is_ascii_whitespace) {
                    return None;
                }
                break;
            }
            // Dollar quotes and parameters; control characters, of which some are marks.
            b'$' | 127 => return None,
            b'\t' | b'\n' | b'\r' | b' '..=b'~' => {
                at += 1;
                continue;
            }
            _ => return None,
        }
        let kind;
        (kind, at) = if bytes[at] == b'\'' { string(bytes, at)? } else { number(text, at)? };
        shape.text.push_str(&text[copied..start]);
        shape.text.push(kind.mark());
        copied = at;
        if shape.literals.len() == LITERALS_MAX {
            return None;
        }
        shape.literals.push(Literal { kind, range: start..at });
    }
    if shape.literals.is_empty() {
        return None;
    }
    shape.text.push_str(&text[copied..at]);
    Some(shape)
}

impl Shape {
    /// The statement with `$1`, `$2`, … in the place of its literals.
    pub fn parameterized(&self) -> String {
        let mut out = String::with_capacity(self.text.len() + 3 * self.literals.len());
        let mut number = 0;
        for c in self.text.chars() {
            if matches!(c, '\u{2}'..='\u{5}') {
                number += 1;
                out.push('$');
                out.push_str(itoa::Buffer::new().format(number));
            } else {
                out.push(c);
            }
        }
        out
    }

    /// The types its parameters are declared with.
    pub fn declared(&self) -> Vec<Oid> {
        self.literals.iter().map(|literal| literal.kind.declared()).collect()
    }
}

/// Whether the text begins with the name of a statement that reads or writes rows.
fn begins_with_command(bytes: &[u8]) -> bool {
    let bytes = bytes.trim_ascii_start();
    let word = &bytes[..end_of(bytes, 0, is_word)];
    [&b"select"[..], b"insert", b"update", b"delete", b"call", b"with"]
        .iter()
        .any(|command| word.eq_ignore_ascii_case(command))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 128..)
}

/// Whether what stands before `at` is a name or a value, so that a point selects from it.
fn follows_name(bytes: &[u8], at: usize) -> bool {
    at.checked_sub(1)
        .is_some_and(|before| is_word(bytes[before]) || matches!(bytes[before], b'"' | b')' | b']' | b'.'))
}

fn end_of(bytes: &[u8], start: usize, belongs: fn(u8) -> bool) -> usize {
    start + bytes[start..].iter().take_while(|&&byte| belongs(byte)).count()
}

/// Behind the quote that ends what begins with the quote at `start`; doubled ones belong to it.
fn end_of_quoted(bytes: &[u8], start: usize) -> Option<usize> {
    let quote = bytes[start];
    let mut at = start + 1;
    loop {
        at += memchr::memchr(quote, &bytes[at..])? + 1;
        if bytes.get(at) != Some(&quote) {
            return Some(at);
        }
        at += 1;
    }
}

fn string(bytes: &[u8], start: usize) -> Option<(LiteralKind, usize)> {
    let end = end_of_quoted(bytes, start)?;
    // Another one on a later line would belong to it.
    let next = bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace());
    let holds_nul = memchr::memchr(0, &bytes[start..end]).is_some();
    (next != Some(&b'\'') && !holds_nul).then_some((LiteralKind::String, end))
}

fn number(text: &str, start: usize) -> Option<(LiteralKind, usize)> {
    let bytes = text.as_bytes();
    let digits = |at| end_of(bytes, at, |byte| byte.is_ascii_digit());
    let mut end = digits(start);
    let mut whole = true;
    if bytes.get(end) == Some(&b'.') {
        whole = false;
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        whole = false;
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = end + 1 + sign;
        end = digits(exponent);
        if end == exponent {
            return None;
        }
    }
    // `1a`, `1..2`, `0x1F`.
    if bytes.get(end).is_some_and(|&byte| is_word(byte) || byte == b'.') {
        return None;
    }
    let spelled = &text[start..end];
    // Behind a minus these are the least of a type, without it the first ones beyond.
    if matches!(spelled.trim_start_matches('0'), "2147483648" | "9223372036854775808") {
        return None;
    }
    let kind = if !whole {
        LiteralKind::Numeric
    } else if spelled.parse::<i32>().is_ok() {
        LiteralKind::Int4
    } else if spelled.parse::<i64>().is_ok() {
        LiteralKind::Int8
    } else {
        LiteralKind::Numeric
    };
    Some((kind, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameterized(text: &str) -> Option<(String, Vec<(LiteralKind, String)>)> {
        let shape = shape_of(text)?;
        let literals =
            shape.literals.iter().map(|literal| (literal.kind, literal.value(text).into_owned())).collect();
        Some((shape.parameterized(), literals))
    }

    #[test]
    fn literals_are_taken_out_by_kind() {
        use LiteralKind::*;
        let (text, literals) = parameterized(
            "SELECT a1, \"b 2\", 'it''s', -3, 4.5e-1, .5, 6000000000, 7. FROM t1 WHERE x[8] = ''; ",
        )
        .unwrap();
        assert_eq!(text, "SELECT a1, \"b 2\", $1, -$2, $3, $4, $5, $6 FROM t1 WHERE x[$7] = $8");
        let wanted = [
            (String, "it's"),
            (Int4, "3"),
            (Numeric, "4.5e-1"),
            (Numeric, ".5"),
            (Int8, "6000000000"),
            (Numeric, "7."),
            (Int4, "8"),
            (String, ""),
        ];
        assert_eq!(literals, wanted.map(|(kind, value)| (kind, value.to_owned())));
    }

    #[test]
    fn literals_of_other_types_make_other_shapes() {
        let shape = |text| shape_of(text).unwrap().text;
        assert_eq!(shape("select 1"), shape("select 2147483647;"));
        assert_ne!(shape("select 1"), shape("select 2147483649"));
        assert_ne!(shape("select 1"), shape("select 1.0"));
        assert_ne!(shape("select 1"), shape("select '1'"));
        assert_ne!(shape("select 1"), shape("select -1"));
        assert_ne!(shape("select 99999999999999999999"), shape("select 9999999999"));
    }

    #[test]
    fn what_a_byte_does_not_settle_is_left_alone() {
        for text in [
            "select a from t",
            "create table t (a int default 1)",
            "select 1; select 2",
            "select 1 -- one",
            "select /* one */ 1",
            "select e'1'",
            "select U&'1'",
            "select x'1'",
            "select $$1$$",
            "select $1, 2",
            "select 1a",
            "select 0x1",
            "select 1..2",
            "select 1e",
            "select -2147483648",
            "select 9223372036854775808",
            "select 'a'\n'b'",
            "select 'a",
            "select \"a, 1",
            "select '\0', 1",
            "select '1'\u{2}",
            "select \"\u{2}\", 1",
            "",
        ] {
            assert_eq!(shape_of(text), None, "{text}");
        }
        let long = "a".repeat(MAX_IDENTIFIER_BYTES + 1);
        assert_eq!(shape_of(&format!("select 1 as {long}")), None);
    }
}
