//! JSON: `json` and `jsonb` values are their texts. A [`Node`] is a parsed value that remembers
//! the text it came from, so that what is taken out of a value is a slice of it: for `json` as it
//! was written, for `jsonb`, whose texts are canonical, canonical again.
//!
//! - this file  the tree and its parser
//! - [`write`]  canonical and pretty text, string literals
//! - [`change`] values made from others: set, insert, delete, concatenate
//! - [`order`]  order, equality and hash of jsonb values
//! - [`assign`] assignment to parts of values
//! - [`path`]   SQL/JSON paths
//! - [`shape`]  SQL values as JSON
//! - [`populate`] SQL values made of JSON
//! - [`aggregate`] json_agg and relatives

pub mod aggregate;
pub mod assign;
pub mod change;
mod key_order;
pub mod order;
pub mod path;
pub mod populate;
pub mod shape;
pub mod write;

use std::borrow::Cow;

use crate::error::{Result, SqlError, SqlState};
use crate::{interrupt, memory, stack};

/// Values may nest this deep: on every stack, or a text would be equal to another on one alone.
const DEPTH_MAX: u32 = 1_000;

/// What a value counts as that is read or written, beside its bytes ([`interrupt::steps`]).
pub(crate) const STEPS_PER_VALUE: usize = 16;

/// A value and its text, without the blanks around it.
#[derive(Clone, Debug)]
pub struct Node<'t> {
    pub text: &'t str,
    pub kind: Kind<'t>,
}

#[derive(Clone, Debug)]
pub enum Kind<'t> {
    Null,
    Bool(bool),
    /// The text is the number.
    Number,
    String(Cow<'t, str>),
    Array(Vec<Node<'t>>),
    /// In the order of the text; a key may stand there twice.
    Object(Vec<(Cow<'t, str>, Node<'t>)>),
}

impl<'t> Node<'t> {
    /// Parses a whole text.
    pub fn parse(text: &'t str) -> Result<Node<'t>> {
        Node::read(text, true)
    }

    /// Refuses what [`Node::parse`] does, for who keeps the text as it is: what its escapes stand for does
    /// not matter, and of the values no tree is made, which would be many times as large.
    pub fn validate(text: &'t str) -> Result<()> {
        Node::read(text, false).map(drop)
    }

    fn read(text: &'t str, keeps: bool) -> Result<Node<'t>> {
        let mut parser = Parser { text, at: 0, depth: 0, keeps };
        let node = parser.value()?;
        parser.blanks();
        if parser.at < text.len() {
            return Err(parser.unexpected("end of input"));
        }
        Ok(node)
    }

    /// json_typeof.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "boolean",
            Kind::Number => "number",
            Kind::String(_) => "string",
            Kind::Array(_) => "array",
            Kind::Object(_) => "object",
        }
    }

    /// The last value under a key of an object.
    pub fn field(&self, key: &str) -> Option<&Node<'t>> {
        match &self.kind {
            Kind::Object(fields) => fields.iter().rev().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// As [`Node::field`], of a jsonb value: its keys are in order, and none stands there twice.
    pub fn binary_field(&self, key: &str) -> Option<&Node<'t>> {
        let Kind::Object(fields) = &self.kind else { return None };
        let place = fields.binary_search_by(|(name, _)| key_order::key_order(name, key)).ok()?;
        fields.get(place).map(|(_, node)| node)
    }

    /// An element of an array, from the end if negative.
    pub fn element(&self, index: i64) -> Option<&Node<'t>> {
        let Kind::Array(items) = &self.kind else { return None };
        items.get(position(index, items.len())?)
    }

    /// As `->` of jsonb finds it, which keeps a scalar as an array of one.
    pub fn binary_element(&self, index: i64) -> Option<&Node<'t>> {
        match self.is_container() {
            true => self.element(index),
            false => position(index, 1).map(|_| self),
        }
    }

    /// One step of a path: a key of an object, or the number of an element.
    pub fn step(&self, step: &str) -> Option<&Node<'t>> {
        match &self.kind {
            Kind::Object(_) => self.field(step),
            Kind::Array(_) => self.element(step.trim().parse().ok()?),
            _ => None,
        }
    }

    /// The value as `->>` shows it: strings without quotes; `None` for null.
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Null => None,
            Kind::String(value) => Some(value),
            _ => Some(self.text),
        }
    }

    pub fn is_container(&self) -> bool {
        matches!(self.kind, Kind::Array(_) | Kind::Object(_))
    }
}

/// The text of the value under a key of a jsonb object, found without a look into the values before it: `None`
/// where there is no such key, or no object.
pub fn binary_field_text<'t>(text: &'t str, key: &str) -> Result<Option<&'t str>> {
    interrupt::steps(text.len())?;
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'{') {
        return Ok(None);
    }
    let mut at = 1;
    while bytes.get(at) == Some(&b'"') {
        let end_of_name = end_of_string(bytes, at);
        // A colon and a blank.
        let value = end_of_name + 2;
        let end = end_of_value(bytes, value);
        if text.get(at..end_of_name).is_some_and(|name| is_named(name, key)) {
            return Ok(text.get(value..end));
        }
        // A comma and a blank.
        at = end + 2;
    }
    Ok(None)
}

/// Whether a literal is this string.
fn is_named(literal: &str, key: &str) -> bool {
    if literal.contains('\\') {
        return Node::parse(literal)
            .is_ok_and(|node| matches!(&node.kind, Kind::String(name) if name == key));
    }
    literal.get(1..literal.len().saturating_sub(1)) == Some(key)
}

/// The first place behind the string that begins at one.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The first place behind the value of a field that begins at one.
fn end_of_value(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b'}' | b']' => return at,
            b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The place an index means, counted from the end if negative.
pub fn position(index: i64, length: usize) -> Option<usize> {
    let place = if index < 0 { index.checked_add(length as i64)? } else { index };
    usize::try_from(place).ok().filter(|place| *place < length)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: u32,
    /// Whether parts are kept: what strings stand for, without halves of surrogate pairs, and values of values.
    keeps: bool,
}

/// How many bytes of a line an error shows.
const EXCERPT_BYTES_MAX: usize = 50;

/// The line in which a token ends, up to there (report_json_context).
fn excerpt(text: &str, end: usize) -> String {
    let mut end = end.min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    let before = &text[..end];
    let line = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let mut start = line_start;
    while end - start >= EXCERPT_BYTES_MAX {
        start += text[start..].chars().next().map_or(1, char::len_utf8);
    }
    // An ellipsis is no shorter than three bytes.
    if start - line_start <= 3 {
        start = line_start;
    }
    let prefix = if start > line_start { "..." } else { "" };
    let suffix = match text.as_bytes().get(end) {
        None | Some(b'\n' | b'\r') => "",
        Some(_) => "...",
    };
    format!("JSON data, line {line}: {prefix}{}{suffix}", &text[start..end])
}

impl<'t> Parser<'t> {
    /// 22P02 about a token that ends at a place.
    fn invalid(&self, detail: impl Into<String>, end: usize) -> SqlError {
        let mut error =
            SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json")
                .with_detail(detail.into());
        error.fields_mut().context = Some(excerpt(self.text, end));
        error
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The error at the next token.
    fn unexpected(&self, wanted: &str) -> SqlError {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return self.invalid("The input string ended unexpectedly.", self.at);
        }
        let mut ahead = Parser { text: self.text, at: self.at, depth: 0, keeps: self.keeps };
        let length = match rest.as_bytes()[0] {
            b'"' => match ahead.string() {
                Ok(_) => ahead.at - self.at,
                Err(error) => return error,
            },
            b'-' | b'0'..=b'9' => match ahead.number() {
                Ok(_) => ahead.at - self.at,
                Err(error) => return error,
            },
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            _ => {
                let length = word_length(rest);
                let first = rest.chars().next().map_or(1, char::len_utf8);
                let token = &rest[..length.max(first)];
                if !matches!(token, "true" | "false" | "null") {
                    return self.invalid(format!("Token \"{token}\" is invalid."), self.at + token.len());
                }
                length
            }
        };
        self.invalid(format!("Expected {wanted}, but found \"{}\".", &rest[..length]), self.at + length)
    }

    fn value(&mut self) -> Result<Node<'t>> {
        interrupt::steps(STEPS_PER_VALUE)?;
        self.blanks();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => Kind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => return self.number(),
            Some(b't') => self.word("true", Kind::Bool(true))?,
            Some(b'f') => self.word("false", Kind::Bool(false))?,
            Some(b'n') => self.word("null", Kind::Null)?,
            _ => return Err(self.unexpected("JSON value")),
        };
        Ok(Node { text: &self.text[start..self.at], kind })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Kind<'t>>) -> Result<Kind<'t>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(stack::too_deep());
        }
        let kind = read(self);
        self.depth -= 1;
        kind
    }

    fn word(&mut self, word: &str, kind: Kind<'t>) -> Result<Kind<'t>> {
        let rest = &self.text[self.at..];
        let end = word_length(rest);
        if &rest[..end] != word {
            return Err(self.invalid(format!("Token \"{}\" is invalid.", &rest[..end]), self.at + end));
        }
        self.at += end;
        Ok(kind)
    }

    fn number(&mut self) -> Result<Node<'t>> {
        let start = self.at;
        let digits = |parser: &mut Self| {
            let from = parser.at;
            while matches!(parser.peek(), Some(b'0'..=b'9')) {
                parser.at += 1;
            }
            parser.at > from
        };
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let mut good = match self.peek() {
            Some(b'0') => {
                self.at += 1;
                true
            }
            _ => digits(self),
        };
        if self.peek() == Some(b'.') {
            self.at += 1;
            good &= digits(self);
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            good &= digits(self);
        }
        let rest = &self.text[self.at..];
        let glued = word_length(rest);
        if !good || glued > 0 {
            let end = self.at + glued;
            return Err(self.invalid(format!("Token \"{}\" is invalid.", &self.text[start..end]), end));
        }
        Ok(Node { text: &self.text[start..self.at], kind: Kind::Number })
    }

    fn array(&mut self) -> Result<Kind<'t>> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Kind::Array(items));
        }
        loop {
            let item = self.value()?;
            if self.keeps {
                memory::push(&mut items, item)?;
            }
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Kind::Array(items));
                }
                _ => return Err(self.unexpected("\",\" or \"]\"")),
            }
        }
    }

    fn object(&mut self) -> Result<Kind<'t>> {
        self.at += 1;
        let (mut fields, mut is_first) = (Vec::new(), true);
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Kind::Object(fields));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected(if is_first { "string or \"}\"" } else { "string" }));
            }
            let key = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("\":\""));
            }
            self.at += 1;
            let value = self.value()?;
            if self.keeps {
                memory::push(&mut fields, (key, value))?;
            }
            is_first = false;
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Kind::Object(fields));
                }
                _ => return Err(self.unexpected("\",\" or \"}\"")),
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'t, str>> {
        let start = self.at;
        self.at += 1;
        let mut owned: Option<String> = None;
        let mut plain = self.at;
        loop {
            match self.peek() {
                None => {
                    let detail = format!("Token \"{}\" is invalid.", &self.text[start..]);
                    return Err(self.invalid(detail, self.at));
                }
                Some(b'"') => {
                    let rest = &self.text[plain..self.at];
                    self.at += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(rest),
                        Some(mut text) => {
                            text.push_str(rest);
                            Cow::Owned(text)
                        }
                    });
                }
                Some(b'\\') => {
                    interrupt::steps(STEPS_PER_VALUE)?;
                    if self.keeps {
                        owned.get_or_insert_with(String::new).push_str(&self.text[plain..self.at]);
                    }
                    self.at += 1;
                    let character = self.escape(start)?;
                    if let Some(text) = &mut owned {
                        text.push(character);
                    }
                    plain = self.at;
                }
                Some(control) if control < 0x20 => {
                    let detail = format!("Character with value 0x{control:02x} must be escaped.");
                    return Err(self.invalid(detail, self.at));
                }
                Some(_) => {
                    // As far as nothing comes that means something in a string.
                    let rest = &self.text.as_bytes()[self.at..];
                    let piece = &rest[..rest.len().min(interrupt::PIECE)];
                    let means = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
                    let plain = piece.iter().position(means).unwrap_or(piece.len());
                    interrupt::steps(plain)?;
                    self.at += plain;
                }
            }
        }
    }

    /// After a backslash in the string that begins at a place.
    fn escape(&mut self, start: usize) -> Result<char> {
        let Some(letter) = self.peek() else {
            return Err(self.unended(start));
        };
        self.at += 1;
        Ok(match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(start),
            _ => {
                self.at -= 1;
                let character = self.text[self.at..].chars().next().unwrap_or(' ');
                let detail = format!("Escape sequence \"\\{character}\" is invalid.");
                return Err(self.invalid(detail, self.at + character.len_utf8()));
            }
        })
    }

    /// A string that begins at a place and does not end.
    fn unended(&self, start: usize) -> SqlError {
        self.invalid(format!("Token \"{}\" is invalid.", &self.text[start..]), self.text.len())
    }

    fn hexadecimal(&mut self, start: usize) -> Result<u32> {
        let mut value = 0;
        for _ in 0..4 {
            let Some(character) = self.text[self.at..].chars().next() else {
                return Err(self.unended(start));
            };
            self.at += character.len_utf8();
            let Some(digit) = character.to_digit(16) else {
                let detail = "\"\\u\" must be followed by four hexadecimal digits.";
                return Err(self.invalid(detail, self.at));
            };
            value = value * 16 + digit;
        }
        Ok(value)
    }

    fn unicode(&mut self, start: usize) -> Result<char> {
        let first = self.hexadecimal(start)?;
        if !self.keeps {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        const LOW: &str = "Unicode low surrogate must follow a high surrogate.";
        let value = match first {
            0xd800..=0xdbff => {
                let rest = &self.text[self.at..];
                if !rest.starts_with("\\u") {
                    let shown = if rest.starts_with('\\') { 2 } else { 1 };
                    let shown: usize = rest.chars().take(shown).map(char::len_utf8).sum();
                    return Err(self.invalid(LOW, self.at + shown));
                }
                self.at += 2;
                match self.hexadecimal(start)? {
                    second @ 0xdc00..=0xdfff => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    0xd800..=0xdbff => {
                        let high = "Unicode high surrogate must not follow a high surrogate.";
                        return Err(self.invalid(high, self.at));
                    }
                    _ => return Err(self.invalid(LOW, self.at)),
                }
            }
            0xdc00..=0xdfff => return Err(self.invalid(LOW, self.at)),
            other => other,
        };
        // Zero stays in the text of a `json`; who wants its value refuses it.
        char::from_u32(value).ok_or_else(|| self.invalid("Unicode escape values cannot be used.", self.at))
    }
}

/// The bytes of a word, as json_lex counts them for its messages.
fn word_length(text: &str) -> usize {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii());
    text.find(ends).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_slices_of_their_text() {
        let node = Node::parse(" {\"a\": [1, 2.50, {\"b\" :null}], \"c\":\"x\\n\\u00e9\"} ").unwrap();
        assert_eq!(node.field("a").unwrap().element(-1).unwrap().text, "{\"b\" :null}");
        assert_eq!(node.field("c").unwrap().as_text(), Some("x\né"));
        assert_eq!(node.step("a").unwrap().step("1").unwrap().text, "2.50");
        assert!(node.field("nosuch").is_none());
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in ["", "{", "[1,]", "{\"a\" 1}", "01", "1.", "tru", "\"a", "[1] 2", "\"\\x\"", "nul", "-"] {
            assert!(Node::parse(text).is_err(), "{text}");
        }
        for text in ["{", "[1,]", "{\"a\" 1}", "{\"a\":1,}", "{1}", "01", "\"\\x\"", "\"a\nb\"", "[\"a]"] {
            assert_eq!(Node::validate(text).unwrap_err(), Node::parse(text).unwrap_err(), "{text}");
        }
        assert!(Node::validate("[{\"a\\n\": [\"\\ud800\", 1e3]}, {}, []]").is_ok());
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        assert_eq!(Node::parse(&deep).unwrap_err().state(), SqlState::STATEMENT_TOO_COMPLEX);
    }
}
