//! Tokens of a PL/pgSQL body, by the rules of PostgreSQL's core scanner (manual, 4.1).
//!
//! The whole body is scanned once, up front: bodies are small, and the parser may then look
//! ahead as far as the grammar asks. SQL inside the body is never rebuilt from tokens; it is
//! cut out of the source by the offsets kept here.

use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::unescape;

/// What a token is. Words are folded to lower case unless quoted.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenKind {
    Word {
        text: String,
        quoted: bool,
    },
    /// A string constant of any kind, with its value.
    Text(String),
    /// An unsigned number as written.
    Number(String),
    /// `$n`.
    Parameter(u16),
    /// `:=`
    ColonEquals,
    /// `..`
    DotDot,
    /// `<<`
    LabelOpen,
    /// `>>`
    LabelClose,
    /// One of `( ) [ ] , ; . : %` and `=`, `#`.
    Symbol(char),
    /// Any other operator.
    Operator(String),
    End,
}

/// A token and where it stands: byte offsets into the body, line from one.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
    pub line: u32,
}

impl Token {
    /// Whether it is this unquoted word (lower case).
    pub fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, TokenKind::Word { text, quoted: false } if text == word)
    }

    /// Whether it is this symbol.
    pub fn is_symbol(&self, symbol: char) -> bool {
        self.kind == TokenKind::Symbol(symbol)
    }

    /// The word's text, quoted or not.
    pub fn word(&self) -> Option<&str> {
        match &self.kind {
            TokenKind::Word { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// One-based character position of a byte offset: what an error field carries.
pub fn position(source: &str, offset: usize) -> u32 {
    source[..offset.min(source.len())].chars().count() as u32 + 1
}

/// Scans a body. The last token is always [`TokenKind::End`].
pub fn scan(source: &str) -> Result<Vec<Token>> {
    let mut scanner = Scanner { source, bytes: source.as_bytes(), at: 0, line: 1, tokens: Vec::new() };
    scanner.run()?;
    Ok(scanner.tokens)
}

/// How many bytes of a name count.
const NAME_MAX: usize = 63;

/// A name as far as it counts.
fn cut(mut name: String) -> String {
    name.truncate(name.floor_char_boundary(NAME_MAX));
    name
}

/// What is said of names that are longer than names are, in the body of a routine of this name.
pub fn long_names(source: &str, routine: &str) -> Vec<SqlError> {
    let Ok(tokens) = scan(source) else { return Vec::new() };
    let longer = |token: &Token| {
        let written = &source[token.start..token.end];
        let name = token.word()?;
        let whole = match &token.kind {
            TokenKind::Word { quoted: true, .. } => written.trim_matches('"').replace("\"\"", "\""),
            _ => written.to_ascii_lowercase(),
        };
        (whole.len() > name.len()).then(|| {
            let message = format!("identifier \"{whole}\" will be truncated to \"{name}\"");
            let mut error = SqlError::new(SqlState(*b"42622"), message);
            let line = token.line;
            error.fields_mut().context =
                Some(format!("compilation of PL/pgSQL function \"{routine}\" near line {line}"));
            error
        })
    };
    tokens.iter().filter_map(longer).collect()
}

struct Scanner<'s> {
    source: &'s str,
    bytes: &'s [u8],
    at: usize,
    line: u32,
    tokens: Vec<Token>,
}

impl Scanner<'_> {
    fn run(&mut self) -> Result<()> {
        loop {
            self.skip_blanks()?;
            let start = self.at;
            let line = self.line;
            if self.at >= self.bytes.len() {
                self.tokens.push(Token { kind: TokenKind::End, start, end: start, line });
                return Ok(());
            }
            let kind = self.token()?;
            self.line += self.bytes[start..self.at].iter().filter(|b| **b == b'\n').count() as u32;
            self.tokens.push(Token { kind, start, end: self.at, line });
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn error_at(&self, message: &str, start: usize) -> SqlError {
        let rest = &self.source[start..];
        SqlError::new(SqlState::SYNTAX_ERROR, format!("{message} at or near \"{rest}\""))
            .at(Some(position(self.source, start)))
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            match self.peek(0) {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'-' if self.peek(1) == b'-' => {
                    while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
                        self.at += 1;
                    }
                }
                b'/' if self.peek(1) == b'*' => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    /// Comments nest.
    fn skip_comment(&mut self) -> Result<()> {
        let start = self.at;
        let mut depth = 0;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                (b'\n', _) => {
                    self.line += 1;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        Err(self.error_at("unterminated /* comment", start))
    }

    fn token(&mut self) -> Result<TokenKind> {
        let first = self.peek(0);
        match first {
            b'e' | b'E' if self.peek(1) == b'\'' => {
                self.at += 1;
                self.string(true)
            }
            b'b' | b'B' | b'x' | b'X' | b'n' | b'N' if self.peek(1) == b'\'' => {
                self.at += 1;
                self.string(false)
            }
            b'u' | b'U' if self.peek(1) == b'&' && self.peek(2) == b'\'' => {
                self.at += 2;
                self.string(false)
            }
            b'u' | b'U' if self.peek(1) == b'&' && self.peek(2) == b'"' => {
                self.at += 2;
                self.quoted_word()
            }
            b'\'' => self.string(false),
            b'"' => self.quoted_word(),
            b'$' => self.dollar(),
            b'0'..=b'9' => Ok(self.number()),
            b'.' if self.peek(1).is_ascii_digit() => Ok(self.number()),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => Ok(self.word()),
            _ => Ok(self.symbol()),
        }
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        while matches!(self.peek(0), b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9' | b'$' | 0x80..) {
            self.at += 1;
        }
        let text = cut(self.source[start..self.at].to_ascii_lowercase());
        TokenKind::Word { text, quoted: false }
    }

    fn quoted_word(&mut self) -> Result<TokenKind> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        let mut from = self.at;
        loop {
            match self.peek(0) {
                b'"' if self.peek(1) == b'"' => {
                    text.push_str(&self.source[from..=self.at]);
                    self.at += 2;
                    from = self.at;
                }
                b'"' => {
                    text.push_str(&self.source[from..self.at]);
                    self.at += 1;
                    break;
                }
                0 if self.at >= self.bytes.len() => {
                    return Err(self.error_at("unterminated quoted identifier", start));
                }
                _ => self.at += 1,
            }
        }
        if text.is_empty() {
            return Err(self.error_at("zero-length delimited identifier", start));
        }
        Ok(TokenKind::Word { text, quoted: true })
    }

    fn string(&mut self, escapes: bool) -> Result<TokenKind> {
        let start = self.at;
        self.at += 1;
        let body = self.at;
        let mut text = String::new();
        loop {
            let Some(character) = self.source[self.at..].chars().next() else {
                return Err(self.error_at("unterminated quoted string", start));
            };
            match character {
                '\'' if self.peek(1) == b'\'' => {
                    text.push('\'');
                    self.at += 2;
                }
                '\'' => {
                    let written = &self.source[body..self.at];
                    self.at += 1;
                    return Ok(TokenKind::Text(if escapes { unescape(written)? } else { text }));
                }
                '\\' if escapes => {
                    self.at += 1;
                    let Some(next) = self.source[self.at..].chars().next() else {
                        return Err(self.error_at("unterminated quoted string", start));
                    };
                    self.at += next.len_utf8();
                }
                other => {
                    text.push(other);
                    self.at += other.len_utf8();
                }
            }
        }
    }

    /// `$1`, or a dollar-quoted string.
    fn dollar(&mut self) -> Result<TokenKind> {
        let start = self.at;
        if self.peek(1).is_ascii_digit() {
            self.at += 1;
            let digits = self.at;
            while self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
            let number = self.source[digits..self.at].parse::<u16>();
            return number
                .map(TokenKind::Parameter)
                .map_err(|_| self.error_at("parameter number too large", start));
        }
        let mut end = self.at + 1;
        while matches!(self.bytes.get(end), Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9' | 0x80..)) {
            end += 1;
        }
        if self.bytes.get(end) != Some(&b'$') {
            self.at += 1;
            return Ok(TokenKind::Operator("$".into()));
        }
        let tag = &self.source[start..=end];
        let body = end + 1;
        match self.source[body..].find(tag) {
            Some(length) => {
                self.at = body + length + tag.len();
                Ok(TokenKind::Text(self.source[body..body + length].to_string()))
            }
            None => Err(self.error_at("unterminated dollar-quoted string", start)),
        }
    }

    /// A number; `1..10` is `1`, `..`, `10`.
    fn number(&mut self) -> TokenKind {
        let start = self.at;
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        if self.peek(0) == b'.' && self.peek(1) != b'.' {
            self.at += 1;
            while self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                while self.peek(0).is_ascii_digit() {
                    self.at += 1;
                }
            }
        }
        TokenKind::Number(self.source[start..self.at].to_string())
    }

    fn symbol(&mut self) -> TokenKind {
        let two = (self.peek(0), self.peek(1));
        let pair = match two {
            (b':', b'=') => Some(TokenKind::ColonEquals),
            (b'.', b'.') => Some(TokenKind::DotDot),
            (b':', b':') => Some(TokenKind::Operator("::".into())),
            _ => None,
        };
        if let Some(kind) = pair {
            self.at += 2;
            return kind;
        }
        let first = self.peek(0);
        if matches!(first, b'(' | b')' | b'[' | b']' | b',' | b';' | b'.' | b':') {
            self.at += 1;
            return TokenKind::Symbol(first as char);
        }
        const OPERATOR: &[u8] = b"~!@#^&|`?+-*/%<>=";
        if !OPERATOR.contains(&first) {
            // A character no rule knows stands for itself; the grammar will refuse it.
            let width = self.source[self.at..].chars().next().map_or(1, char::len_utf8);
            self.at += width;
            return TokenKind::Operator(self.source[self.at - width..self.at].to_string());
        }
        let start = self.at;
        while OPERATOR.contains(&self.peek(0)) {
            // A comment ends an operator.
            let pair = (self.peek(0), self.peek(1));
            if self.at > start && (pair == (b'-', b'-') || pair == (b'/', b'*')) {
                break;
            }
            self.at += 1;
        }
        // Several characters end in + or - only if one of these is among them (4.1.3).
        while self.at - start > 1
            && matches!(self.bytes[self.at - 1], b'+' | b'-')
            && !self.bytes[start..self.at - 1].iter().any(|b| b"~!@#%^&|`?".contains(b))
        {
            self.at -= 1;
        }
        match &self.source[start..self.at] {
            "<<" => TokenKind::LabelOpen,
            ">>" => TokenKind::LabelClose,
            "=" => TokenKind::Symbol('='),
            "%" => TokenKind::Symbol('%'),
            "#" => TokenKind::Symbol('#'),
            other => TokenKind::Operator(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<TokenKind> {
        scan(source).unwrap().into_iter().map(|t| t.kind).collect()
    }

    fn word(text: &str) -> TokenKind {
        TokenKind::Word { text: text.into(), quoted: false }
    }

    #[test]
    fn ranges_of_integers_are_three_tokens() {
        let number = |n: &str| TokenKind::Number(n.into());
        assert_eq!(kinds("1..10"), [number("1"), TokenKind::DotDot, number("10"), TokenKind::End]);
        assert_eq!(kinds("1.5e3"), [number("1.5e3"), TokenKind::End]);
    }

    #[test]
    fn words_fold_and_comments_vanish() {
        assert_eq!(
            kinds("Foo /* a /* b */ c */ \"Bar\" -- x\n:= $1"),
            [
                word("foo"),
                TokenKind::Word { text: "Bar".into(), quoted: true },
                TokenKind::ColonEquals,
                TokenKind::Parameter(1),
                TokenKind::End
            ]
        );
    }

    #[test]
    fn strings_of_every_kind() {
        let text = |t: &str| TokenKind::Text(t.into());
        assert_eq!(
            kinds(r"'it''s' E'a\'b' $x$ ; ' $x$"),
            [text("it's"), text("a'b"), text(" ; ' "), TokenKind::End]
        );
        assert_eq!(scan("'abc").unwrap_err().message(), "unterminated quoted string at or near \"'abc\"");
    }

    #[test]
    fn lines_count_from_one_and_through_strings() {
        let tokens = scan("\na 'x\ny' b").unwrap();
        assert_eq!(tokens.iter().map(|t| t.line).collect::<Vec<_>>(), [2, 2, 3, 3]);
    }

    #[test]
    fn operators_end_before_a_sign() {
        let op = |t: &str| TokenKind::Operator(t.into());
        assert_eq!(
            kinds("a=-1"),
            [word("a"), TokenKind::Symbol('='), op("-"), TokenKind::Number("1".into()), TokenKind::End]
        );
        assert_eq!(kinds("@-"), [op("@-"), TokenKind::End]);
    }
}
