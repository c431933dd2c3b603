//! String constants with backslash escapes: `E'…'`, and plain ones where `standard_conforming_strings`
//! is off (chapters 4.1.2.2 and 20.13).
//!
//! The library's tokeniser does not know all escapes, and nothing of settings. So such constants are found
//! here before it reads a text. It gets a text of the same length where they are hidden
//! ([`EscapedStrings::hidden`]), and its tokens get their values back. A text that was written for the other
//! reading is written anew for ours ([`standard_strings`]): a plain constant never becomes longer, so all
//! that follows stays in its place.

use std::borrow::Cow;
use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::position::Positions;
use super::unicode::escape_error;
use crate::encoding::invalid_utf8;
use crate::error::{Result, SqlError, SqlState};

/// How the session reads string constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StringSyntax {
    /// `standard_conforming_strings`: backslashes in plain constants are characters.
    pub standard: bool,
    /// Whether `\'` may stand for a quote: `backslash_quote`, and what the client's encoding makes of it.
    pub backslash_quote: bool,
    /// `escape_string_warning`: escapes in plain constants are told.
    pub warns: bool,
}

impl Default for StringSyntax {
    fn default() -> StringSyntax {
        StringSyntax { standard: true, backslash_quote: true, warns: true }
    }
}

impl StringSyntax {
    /// Whether texts are read as they always are.
    pub fn is_usual(self) -> bool {
        self.standard && self.backslash_quote
    }
}

/// What keeps its place in a text that is written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Every character: errors tell where they are.
    Characters,
    /// Every line: bodies of routines are told by lines. A character may be one further on.
    Lines,
}

/// A text whose constants are read as they always are.
#[derive(Debug)]
pub struct StandardText<'t> {
    /// The text, or what is wrong with a constant.
    pub text: Result<Cow<'t, str>>,
    /// Warnings (22P06) of the constants before that.
    pub warnings: Vec<SqlError>,
}

/// A constant with escapes, in bytes of the text.
struct Constant {
    /// From its prefix or quote to behind the last quote.
    range: Range<usize>,
    /// What stands between the quotes of each of its parts.
    parts: Vec<Range<usize>>,
    /// Of an `E'…'`.
    prefixed: bool,
    /// The character behind its first backslash.
    first: Option<u8>,
}

/// Writes a text for standard strings that was written for `syntax`.
pub fn standard_strings(text: &str, syntax: StringSyntax, keeps: Keeps) -> StandardText<'_> {
    let mut warnings = Vec::new();
    let text = match syntax.is_usual() {
        true => Ok(Cow::Borrowed(text)),
        false => written(text, syntax, keeps, &mut warnings),
    };
    StandardText { text, warnings }
}

fn written<'t>(
    text: &'t str,
    syntax: StringSyntax,
    keeps: Keeps,
    warnings: &mut Vec<SqlError>,
) -> Result<Cow<'t, str>> {
    let mut scanner = Scanner { text, syntax, at: 0, escaped: None };
    let mut positions = None;
    let (mut out, mut copied) = (String::new(), 0);
    loop {
        let found = scanner.next_constant();
        // It is told of before anything is wrong with the constant.
        if let Some((start, first)) = scanner.escaped.take().filter(|_| syntax.warns) {
            let positions = positions.get_or_insert_with(|| Positions::new(text));
            warnings.push(warning(first).at(Some(positions.character_of_byte(start))));
        }
        let Some(constant) = found? else { break };
        if constant.prefixed || constant.first.is_none() {
            continue;
        }
        let value = constant.value(text)?;
        out.push_str(&text[copied..constant.range.start]);
        copied = constant.range.end;
        let old = &text[constant.range];
        if keeps == Keeps::Lines && (value.contains('\n') || old.contains('\n')) {
            // Behind a word it would be part of it.
            out.push_str(if out.ends_with(|last: char| last.is_alphanumeric() || last == '_') {
                " E"
            } else {
                "E"
            });
            out.push_str(old);
            continue;
        }
        let begins = out.len();
        out.push('\'');
        out.push_str(&value.replace('\'', "''"));
        out.push('\'');
        let blanks = old.chars().count().saturating_sub(out[begins..].chars().count());
        out.extend(std::iter::repeat_n(' ', blanks));
    }
    if copied == 0 {
        return Ok(Cow::Borrowed(text));
    }
    out.push_str(&text[copied..]);
    Ok(Cow::Owned(out))
}

fn warning(first: u8) -> SqlError {
    let (what, hint) = match first {
        b'\'' => ("\\'", "Use '' to write quotes in strings, or use the escape string syntax (E'...')."),
        b'\\' => ("\\\\", "Use the escape string syntax for backslashes, e.g., E'\\\\'."),
        _ => ("escape", "Use the escape string syntax for escapes, e.g., E'\\r\\n'."),
    };
    let message = format!("nonstandard use of {what} in a string literal");
    SqlError::new(SqlState::NONSTANDARD_USE_OF_ESCAPE_CHARACTER, message).with_hint(hint)
}

/// The `E'…'` of a text, with their values.
pub(in crate::parser) struct EscapedStrings<'t> {
    text: &'t str,
    /// Where each stands, and its value.
    found: Vec<(Range<usize>, String)>,
}

impl<'t> EscapedStrings<'t> {
    /// Those of a text that has a backslash anywhere: in others the tokeniser reads them as well.
    pub fn of(text: &'t str) -> Result<EscapedStrings<'t>> {
        let mut found = Vec::new();
        if memchr::memchr(b'\\', text.as_bytes()).is_some() {
            let mut scanner = Scanner { text, syntax: StringSyntax::default(), at: 0, escaped: None };
            while let Some(constant) = scanner.next_constant()? {
                let value = constant.value(text)?;
                found.push((constant.range, value));
            }
        }
        Ok(EscapedStrings { text, found })
    }

    /// The text with constants of the same lengths and lines in their places, which have no escapes. They keep
    /// their prefix: behind another quote a plain constant would go on with what that one ends.
    pub fn hidden(&self) -> Cow<'t, str> {
        if self.found.is_empty() {
            return Cow::Borrowed(self.text);
        }
        let mut out = String::with_capacity(self.text.len());
        let mut copied = 0;
        for (range, _) in &self.found {
            let begins = range.start + "E'".len();
            out.push_str(&self.text[copied..begins]);
            let inner = &self.text[begins..range.end - 1];
            out.extend(inner.chars().map(|character| if character == '\n' { '\n' } else { '.' }));
            out.push('\'');
            copied = range.end;
        }
        out.push_str(&self.text[copied..]);
        Cow::Owned(out)
    }

    /// Gives the tokens of the hidden text their values.
    pub fn restore(self, tokens: &mut [TokenWithSpan], positions: &Positions<'_>) {
        let mut found = self.found.into_iter().peekable();
        for token in tokens {
            if found.peek().is_none() {
                return;
            }
            if !matches!(token.token, Token::EscapedStringLiteral(_)) {
                continue;
            }
            let start = positions.byte(token.span.start);
            // One that is none to the tokeniser keeps no other from its value.
            while found.next_if(|(range, _)| range.start < start).is_some() {}
            if let Some((_, value)) = found.next_if(|(range, _)| range.start == start) {
                token.token = Token::EscapedStringLiteral(value);
            }
        }
    }
}

impl Constant {
    fn value(&self, text: &str) -> Result<String> {
        let mut bytes = Vec::with_capacity(self.range.len());
        for part in &self.parts {
            unescape_into(&text[part.clone()], &mut bytes).map_err(|()| {
                let start = Positions::new(text).character_of_byte(self.range.start);
                escape_error(&text[self.range.clone()], start).unwrap_or_else(wrong_escape)
            })?;
        }
        as_text(bytes)
    }
}

fn wrong_escape() -> SqlError {
    SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid Unicode escape")
        .with_hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX.")
}

/// Escapes may make bytes that are no characters.
fn as_text(bytes: Vec<u8>) -> Result<String> {
    if bytes.contains(&0) {
        return Err(invalid_utf8(&bytes));
    }
    String::from_utf8(bytes).map_err(|error| invalid_utf8(error.as_bytes()))
}

/// The value of what stands between the quotes of an `E'…'`.
pub fn unescape(written: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(written.len());
    unescape_into(written, &mut bytes)
        .map_err(|()| escape_error(&format!("'{written}'"), 1).unwrap_or_else(wrong_escape))?;
    as_text(bytes)
}

/// Fails where a Unicode escape is none.
fn unescape_into(written: &str, out: &mut Vec<u8>) -> std::result::Result<(), ()> {
    let bytes = written.as_bytes();
    let digits = |from: usize, most: usize, radix: u32| {
        let rest = bytes[from.min(bytes.len())..].iter().take(most);
        rest.take_while(|byte| char::from(**byte).is_digit(radix)).count()
    };
    let number =
        |range: Range<usize>, radix: u32| u32::from_str_radix(&written[range], radix).map_err(|_| ());
    let mut high: Option<u32> = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        let is_unicode = byte == b'\\' && matches!(next, Some(b'u' | b'U'));
        if high.is_some() && !is_unicode {
            return Err(());
        }
        match (byte, next) {
            (b'\'', _) => {
                out.push(b'\'');
                at += 2;
            }
            (b'\\', Some(b'u' | b'U')) => {
                let length = if next == Some(b'u') { 4 } else { 8 };
                if digits(at + 2, length, 16) < length {
                    return Err(());
                }
                let code = number(at + 2..at + 2 + length, 16)?;
                at += 2 + length;
                let code = match (high.take(), code) {
                    (Some(high), 0xdc00..=0xdfff) => 0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00),
                    (None, 0xd800..=0xdbff) => {
                        high = Some(code);
                        continue;
                    }
                    (None, 1..) => code,
                    _ => return Err(()),
                };
                let character = char::from_u32(code).ok_or(())?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            (b'\\', Some(b'x')) if digits(at + 2, 2, 16) > 0 => {
                let length = digits(at + 2, 2, 16);
                out.push(number(at + 2..at + 2 + length, 16)? as u8);
                at += 2 + length;
            }
            (b'\\', Some(b'0'..=b'7')) => {
                let length = digits(at + 1, 3, 8);
                // As a byte holds of it.
                out.push(number(at + 1..at + 1 + length, 8)? as u8);
                at += 1 + length;
            }
            (b'\\', Some(escaped)) => {
                out.push(match escaped {
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => other,
                });
                at += 2;
            }
            (other, _) => {
                out.push(other);
                at += 1;
            }
        }
    }
    if high.is_some() { Err(()) } else { Ok(()) }
}

/// Finds constants with escapes in a text. What does not end ends the search: the tokeniser tells of it.
struct Scanner<'t> {
    text: &'t str,
    syntax: StringSyntax,
    at: usize,
    /// Where the plain constant begins that was read last, and what its first backslash escapes.
    escaped: Option<(usize, u8)>,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn next_constant(&mut self) -> Result<Option<Constant>> {
        while let Some(byte) = self.peek(0) {
            let start = self.at;
            match byte {
                b'\'' if self.syntax.standard => self.skip_quoted(b'\''),
                b'\'' => return self.constant(start).map(Some),
                b'"' => self.skip_quoted(b'"'),
                b'-' if self.peek(1) == Some(b'-') => self.skip_line(),
                b'/' if self.peek(1) == Some(b'*') => self.skip_comment(),
                b'$' => self.skip_dollar(),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9' | 0x80.. => {
                    self.skip_word();
                    let word = &self.text[start..self.at];
                    match (self.peek(0), self.peek(1)) {
                        (Some(b'\''), _) if word.eq_ignore_ascii_case("e") => {
                            return self.constant(start).map(Some);
                        }
                        (Some(b'\''), _)
                            if word.eq_ignore_ascii_case("b") || word.eq_ignore_ascii_case("x") =>
                        {
                            self.skip_bits();
                        }
                        (Some(b'&'), Some(b'\'')) if word.eq_ignore_ascii_case("u") => {
                            if !self.syntax.standard {
                                return Err(self.unsafe_unicode(start));
                            }
                            self.at += 1;
                            self.skip_quoted(b'\'');
                        }
                        _ => {}
                    }
                }
                _ => self.at += 1,
            }
        }
        Ok(None)
    }

    fn word_goes_on(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
    }

    fn skip_word(&mut self) {
        while self.peek(0).is_some_and(Self::word_goes_on) {
            self.at += 1;
        }
    }

    /// Behind the quote that ends what begins here; two of them are one that does not.
    fn skip_quoted(&mut self, quote: u8) {
        let bytes = self.text.as_bytes();
        self.at += 1;
        while let Some(length) = memchr::memchr(quote, &bytes[self.at..]) {
            self.at += length + 1;
            if self.peek(0) != Some(quote) {
                return;
            }
            self.at += 1;
        }
        self.at = bytes.len();
    }

    /// A bit string, which knows no escapes on the lines that it goes on in either.
    fn skip_bits(&mut self) {
        loop {
            self.skip_quoted(b'\'');
            let end = self.at;
            if !self.goes_on() {
                self.at = end;
                return;
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
    }

    fn skip_comment(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek(0) {
            match (byte, self.peek(1)) {
                (b'/', Some(b'*')) => (depth, self.at) = (depth + 1, self.at + 2),
                (b'*', Some(b'/')) => {
                    (depth, self.at) = (depth - 1, self.at + 2);
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// A string in dollars, or a parameter or lone sign.
    fn skip_dollar(&mut self) {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        while bytes.get(end).is_some_and(|byte| *byte != b'$' && Self::word_goes_on(*byte)) {
            end += 1;
        }
        let numbered = bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit);
        if numbered || bytes.get(end) != Some(&b'$') {
            self.at += 1;
            return;
        }
        let tag = &self.text[self.at..=end];
        let body = end + 1;
        let length = self.text[body..].find(tag).map(|length| length + tag.len());
        self.at = length.map_or(bytes.len(), |length| body + length);
    }

    /// The constant that begins here, or whose prefix began at `start`.
    fn constant(&mut self, start: usize) -> Result<Constant> {
        let mut constant =
            Constant { range: start..start, parts: Vec::new(), prefixed: self.at > start, first: None };
        loop {
            let part = self.part(start, &mut constant.first)?;
            constant.parts.push(part);
            constant.range.end = self.at;
            if !self.goes_on() {
                self.at = constant.range.end;
                return Ok(constant);
            }
        }
    }

    /// What stands between this quote and the next one that ends it.
    fn part(&mut self, start: usize, first: &mut Option<u8>) -> Result<Range<usize>> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        let from = self.at;
        loop {
            let Some(length) = memchr::memchr2(b'\'', b'\\', &bytes[self.at..]) else {
                return Err(self.unterminated(start));
            };
            self.at += length;
            match (bytes[self.at], self.peek(1)) {
                (b'\'', Some(b'\'')) => self.at += 2,
                (b'\'', _) => {
                    self.at += 1;
                    return Ok(from..self.at - 1);
                }
                (_, Some(b'\'')) if !self.syntax.backslash_quote => return Err(self.unsafe_quote(start)),
                (_, Some(escaped)) => {
                    first.get_or_insert(escaped);
                    if self.text.as_bytes()[start] == b'\'' {
                        self.escaped.get_or_insert((start, escaped));
                    }
                    self.at += 2;
                }
                (_, None) => return Err(self.unterminated(start)),
            }
        }
    }

    /// Whether blanks with a line break among them, and then another quote, follow: it is at that then.
    fn goes_on(&mut self) -> bool {
        let mut line_break = false;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\n' | b'\r' => (line_break, self.at) = (true, self.at + 1),
                b' ' | b'\t' | 0x0c => self.at += 1,
                b'-' if self.peek(1) == Some(b'-') => self.skip_line(),
                _ => return line_break && byte == b'\'',
            }
        }
        false
    }

    fn error(&self, state: SqlState, message: impl Into<String>, start: usize) -> SqlError {
        let position = Positions::new(self.text).character_of_byte(start);
        SqlError::new(state, message).at(Some(position))
    }

    fn unterminated(&self, start: usize) -> SqlError {
        let message = format!("unterminated quoted string at or near \"{}\"", &self.text[start..]);
        self.error(SqlState::SYNTAX_ERROR, message, start)
    }

    fn unsafe_quote(&self, start: usize) -> SqlError {
        let message = "unsafe use of \\' in a string literal";
        self.error(SqlState::NONSTANDARD_USE_OF_ESCAPE_CHARACTER, message, start)
            .with_hint("Use '' to write quotes in strings. \\' is insecure in client-only encodings.")
    }

    fn unsafe_unicode(&self, start: usize) -> SqlError {
        let message = "unsafe use of string constant with Unicode escapes";
        self.error(SqlState::FEATURE_NOT_SUPPORTED, message, start).with_detail(
            "String constants with Unicode escapes cannot be used when standard_conforming_strings is off.",
        )
    }
}

#[cfg(test)]
mod tests;
