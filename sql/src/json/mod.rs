//! JSON: `json` and `jsonb` values are their texts. A [`Node`] is a parsed value that remembers
//! the text it came from, so that what is taken out of a value is a slice of it: for `json` as it
//! was written, for `jsonb`, whose texts are canonical, canonical again.
//!
//! - this file  the tree and its parser
//! - [`write`]  canonical and pretty text, string literals
//! - [`change`] values made from others: set, insert, delete, concatenate
//! - [`shape`]  SQL values as JSON
//! - [`aggregate`] json_agg and relatives

pub mod aggregate;
pub mod change;
pub mod shape;
pub mod write;

use std::borrow::Cow;

use crate::error::{Result, SqlError, SqlState};

/// Values may nest this deep.
const DEPTH_MAX: u32 = 1_000;

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
        let mut parser = Parser { text, at: 0, depth: 0 };
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

    /// An element of an array, from the end if negative.
    pub fn element(&self, index: i64) -> Option<&Node<'t>> {
        let Kind::Array(items) = &self.kind else { return None };
        items.get(position(index, items.len())?)
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

/// The place an index means, counted from the end if negative.
pub fn position(index: i64, length: usize) -> Option<usize> {
    let place = if index < 0 { index.checked_add(length as i64)? } else { index };
    usize::try_from(place).ok().filter(|place| *place < length)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: u32,
}

fn invalid(detail: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json")
        .with_detail(detail.into())
}

impl<'t> Parser<'t> {
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
            return invalid("The input string ended unexpectedly.");
        }
        let word = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '-')));
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let token = &rest[..word.unwrap_or(rest.len()).max(first)];
        let known = matches!(token, "true" | "false" | "null")
            || token.starts_with(['"', '{', '[', '}', ']', ',', ':'])
            || Parser { text: token, at: 0, depth: 0 }.number().is_ok_and(|node| node.text == token);
        if known {
            let token = if token == "\"" { string_token(rest) } else { token };
            return invalid(match wanted {
                "JSON value" => format!("Expected JSON value, but found \"{token}\"."),
                "end of input" => format!("Expected end of input, but found \"{token}\"."),
                wanted => format!("Expected {wanted}, but found \"{token}\"."),
            });
        }
        invalid(format!("Token \"{token}\" is invalid."))
    }

    fn value(&mut self) -> Result<Node<'t>> {
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
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        let kind = read(self);
        self.depth -= 1;
        kind
    }

    fn word(&mut self, word: &str, kind: Kind<'t>) -> Result<Kind<'t>> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if &rest[..end] != word {
            return Err(invalid(format!("Token \"{}\" is invalid.", &rest[..end])));
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
        let glued = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if !good || glued > 0 {
            return Err(invalid(format!("Token \"{}\" is invalid.", &self.text[start..self.at + glued])));
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
            items.push(self.value()?);
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
        let mut fields = Vec::new();
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Kind::Object(fields));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected(if fields.is_empty() { "string or \"}\"" } else { "string" }));
            }
            let key = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("\":\""));
            }
            self.at += 1;
            fields.push((key, self.value()?));
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
                    return Err(invalid(format!("Token \"{}\" is invalid.", &self.text[start..])));
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
                    let text = owned.get_or_insert_with(String::new);
                    text.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    let character = self.escape()?;
                    if let Some(text) = &mut owned {
                        text.push(character);
                    }
                    plain = self.at;
                }
                Some(control) if control < 0x20 => {
                    return Err(invalid(format!("Character with value 0x{control:02x} must be escaped.")));
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// After a backslash.
    fn escape(&mut self) -> Result<char> {
        let Some(letter) = self.peek() else {
            return Err(invalid("The input string ended unexpectedly."));
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
            b'u' => return self.unicode(),
            _ => {
                self.at -= 1;
                let character = self.text[self.at..].chars().next().unwrap_or(' ');
                return Err(invalid(format!("Escape sequence \"\\{character}\" is invalid.")));
            }
        })
    }

    fn hexadecimal(&mut self) -> Result<u32> {
        // A number may have a sign, four digits may not.
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let digits = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
        let value = digits.ok_or_else(|| invalid("\"\\u\" must be followed by four hexadecimal digits."))?;
        self.at += 4;
        Ok(value)
    }

    fn unicode(&mut self) -> Result<char> {
        let first = self.hexadecimal()?;
        let value = match first {
            0xd800..=0xdbff => {
                let pair = self.text[self.at..].starts_with("\\u");
                if !pair {
                    return Err(invalid("Unicode low surrogate must follow a high surrogate."));
                }
                self.at += 2;
                let second = self.hexadecimal()?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(invalid("Unicode low surrogate must follow a high surrogate."));
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            0xdc00..=0xdfff => return Err(invalid("Unicode low surrogate must follow a high surrogate.")),
            other => other,
        };
        // Zero stays in the text of a `json`; who wants its value refuses it.
        char::from_u32(value).ok_or_else(|| invalid("Unicode escape values cannot be used."))
    }
}

/// A string literal with its quotes, for messages.
fn string_token(rest: &str) -> &str {
    let end = rest[1..].find('"').map_or(rest.len(), |end| end + 2);
    &rest[..end]
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
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        assert_eq!(Node::parse(&deep).unwrap_err().state(), SqlState::STATEMENT_TOO_COMPLEX);
    }
}
