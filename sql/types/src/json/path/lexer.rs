//! The words of a path.

use crate::error::{Result, SqlError, SqlState};
use crate::{interrupt, memory};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A word without quotes; keywords are words.
    Word(String),
    String(String),
    /// `$name`.
    Variable(String),
    /// Digits only.
    Integer(String),
    Number(String),
    Symbol(&'static str),
    End,
}

/// A token and where it begins and ends.
#[derive(Clone, Debug)]
pub(super) struct Lexeme {
    pub token: Token,
    pub start: usize,
    pub end: usize,
}

const SYMBOLS: [&str; 31] = [
    "**", "==", "!=", "<>", "<=", ">=", "&&", "||", "?", "%", "$", ".", "[", "]", "{", "}", "(", ")", "|",
    "&", "!", "=", "<", ">", "@", "#", ",", "*", ":", "-", "+",
];

pub(super) fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

/// An error at the text from one place to another.
pub(super) fn error_near(what: &str, text: &str, start: usize, end: usize) -> SqlError {
    match text.get(start..end).filter(|near| !near.is_empty()) {
        Some(near) => syntax(format!("{what} at or near \"{near}\" of jsonpath input")),
        None => syntax(format!("{what} at end of jsonpath input")),
    }
}

fn is_special(character: char) -> bool {
    matches!(
        character,
        '?' | '%'
            | '$'
            | '.'
            | '['
            | ']'
            | '{'
            | '}'
            | '('
            | ')'
            | '|'
            | '&'
            | '!'
            | '='
            | '<'
            | '>'
            | '@'
            | '#'
            | ','
            | '*'
            | ':'
            | '-'
            | '+'
            | '/'
    )
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

fn is_word(character: char) -> bool {
    !is_special(character) && !is_blank(character) && !matches!(character, '"' | '\\')
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

pub(super) fn lexemes(text: &str) -> Result<Vec<Lexeme>> {
    let mut lexer = Lexer { text, at: 0 };
    let mut found = Vec::new();
    loop {
        lexer.blanks()?;
        let start = lexer.at;
        let token = lexer.token()?;
        let end = token == Token::End;
        interrupt::step()?;
        memory::push(&mut found, Lexeme { token, start, end: lexer.at })?;
        if end {
            return Ok(found);
        }
    }
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn blanks(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(is_blank);
            self.at += rest.len() - trimmed.len();
            if !self.rest().starts_with("/*") {
                return Ok(());
            }
            match self.rest().find("*/") {
                Some(end) => self.at += end + 2,
                None => return Err(syntax("unexpected end of comment at end of jsonpath input")),
            }
        }
    }

    fn token(&mut self) -> Result<Token> {
        let Some(first) = self.peek() else { return Ok(Token::End) };
        let digit_after =
            |lexer: &Self| lexer.rest()[1..].starts_with(|character: char| character.is_ascii_digit());
        if first.is_ascii_digit() || first == '.' && digit_after(self) {
            return self.number();
        }
        if first == '"' {
            return self.string().map(Token::String);
        }
        if first == '$' {
            let next = self.rest()[1..].chars().next();
            if next == Some('"') {
                self.at += 1;
                return self.string().map(Token::Variable);
            }
            if next.is_some_and(|next| is_word(next) || next == '\\') {
                self.at += 1;
                return self.word().map(Token::Variable);
            }
        }
        if first == '/' {
            self.at += 1;
            return Ok(Token::Symbol("/"));
        }
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| self.rest().starts_with(**symbol)) {
            self.at += symbol.len();
            return Ok(Token::Symbol(if *symbol == "<>" { "!=" } else { symbol }));
        }
        self.word().map(Token::Word)
    }

    fn number(&mut self) -> Result<Token> {
        let start = self.at;
        let digits = |lexer: &mut Self| {
            let from = lexer.at;
            lexer.at += lexer.rest().bytes().take_while(u8::is_ascii_digit).count();
            lexer.at > from
        };
        let mut plain = true;
        // A leading zero stands alone.
        if self.peek() == Some('0') {
            self.at += 1;
        } else {
            digits(self);
        }
        if self.peek() == Some('.') {
            self.at += 1;
            digits(self);
            plain = false;
        }
        let mut good = true;
        if matches!(self.peek(), Some('e' | 'E')) {
            let signed = matches!(self.rest()[1..].chars().next(), Some('+' | '-'));
            let from = self.at + 1 + usize::from(signed);
            if self.text[from..].starts_with(|character: char| character.is_ascii_digit()) {
                self.at = from;
                digits(self);
                plain = false;
            } else {
                good = false;
            }
        }
        if let Some(next) = self.peek().filter(|next| is_word(*next) || *next == '\\' || !good) {
            let end = self.at + next.len_utf8();
            return Err(error_near("trailing junk after numeric literal", self.text, start, end));
        }
        let text = self.text[start..self.at].to_owned();
        Ok(if plain { Token::Integer(text) } else { Token::Number(text) })
    }

    fn word(&mut self) -> Result<String> {
        let mut word = String::new();
        while let Some(next) = self.peek() {
            interrupt::step()?;
            if next == '\\' {
                self.at += 1;
                word.extend(self.escape()?);
            } else if is_word(next) && !self.rest().starts_with("/*") {
                word.push(next);
                self.at += next.len_utf8();
            } else {
                break;
            }
        }
        Ok(word)
    }

    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(next) = self.peek() else {
                return Err(syntax("unexpected end of quoted string at end of jsonpath input"));
            };
            self.at += next.len_utf8();
            interrupt::step()?;
            match next {
                '"' => return Ok(text),
                '\\' => text.extend(self.escape()?),
                other => text.push(other),
            }
        }
    }

    /// After a backslash; a pair of surrogates is two escapes.
    fn escape(&mut self) -> Result<Option<char>> {
        let start = self.at - 1;
        let Some(letter) = self.peek() else {
            return Err(error_near("unexpected end after backslash", self.text, start, self.at));
        };
        self.at += letter.len_utf8();
        Ok(Some(match letter {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => {
                let rest = self.rest();
                let digits = rest.bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
                let code = u32::from_str_radix(&rest[..digits], 16).ok().filter(|_| digits == 2);
                self.at += digits;
                let Some(code) = code else {
                    return Err(error_near("invalid hex character sequence", self.text, start, self.at));
                };
                return self.character(code).map(Some);
            }
            'u' => {
                let code = self.unicode(start)?;
                let code = match code {
                    0xd800..=0xdbff => {
                        const LOW: &str = "Unicode low surrogate must follow a high surrogate.";
                        if !self.rest().starts_with("\\u") {
                            return Err(invalid_json(LOW));
                        }
                        self.at += 2;
                        match self.unicode(start)? {
                            low @ 0xdc00..=0xdfff => 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00),
                            0xd800..=0xdbff => {
                                return Err(invalid_json(
                                    "Unicode high surrogate must not follow a high surrogate.",
                                ));
                            }
                            _ => return Err(invalid_json(LOW)),
                        }
                    }
                    0xdc00..=0xdfff => {
                        return Err(invalid_json("Unicode low surrogate must follow a high surrogate."));
                    }
                    code => code,
                };
                return self.character(code).map(Some);
            }
            other => other,
        }))
    }

    fn character(&self, code: u32) -> Result<char> {
        if code == 0 {
            return Err(SqlError::new(
                SqlState::UNTRANSLATABLE_CHARACTER,
                "unsupported Unicode escape sequence",
            )
            .with_detail("\\u0000 cannot be converted to text."));
        }
        char::from_u32(code).ok_or_else(|| syntax("invalid Unicode code point"))
    }

    fn unicode(&mut self, start: usize) -> Result<u32> {
        let rest = self.rest();
        let braces = rest.starts_with('{');
        let body = &rest[usize::from(braces)..];
        let digits = body.bytes().take(if braces { 6 } else { 4 }).take_while(u8::is_ascii_hexdigit).count();
        let closed = !braces || body[digits..].starts_with('}');
        let code =
            u32::from_str_radix(&body[..digits], 16).ok().filter(|_| closed && (braces || digits == 4));
        let Some(code) = code else {
            return Err(error_near(
                "invalid unicode sequence",
                self.text,
                start,
                self.at + usize::from(braces) + digits,
            ));
        };
        self.at += digits + if braces { 2 } else { 0 };
        Ok(code)
    }
}

fn invalid_json(detail: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type jsonpath")
        .with_detail(detail)
}
