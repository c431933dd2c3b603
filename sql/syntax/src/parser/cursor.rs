//! A cursor over the tokens of a script: our productions read words and symbols through it and
//! hand expressions, queries and data changes to sqlparser's parser underneath.

use std::ops::Range;

use sqlparser::ast as sp;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::ast::{Expression, QualifiedName};
use crate::error::{Result, SqlError, SqlState};
use crate::interrupt;

use super::dialect::ArchipelDialect;
use super::lexer::keywords::{is_reserved, may_name_routine};
use super::lexer::lexeme::string_value;
use super::lexer::position::{Positions, syntax_error, too_deep};
use super::lexer::tokens::tokenize;
use super::rewrite::unsupported::missing_construction;

/// sqlparser counts one for most nested constructs.
const RECURSION_LIMIT: usize = 200;

static DIALECT: ArchipelDialect = ArchipelDialect;

pub(super) struct Cursor<'t> {
    pub(super) parser: Parser<'static>,
    pub(super) positions: Positions<'t>,
    /// How many statements deep: EXPLAIN, PREPARE and COPY hold others.
    pub(super) depth: u32,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Result<Self> {
        let positions = Positions::new(text);
        let tokens = tokenize(&positions)?;
        let parser =
            Parser::new(&DIALECT).with_recursion_limit(RECURSION_LIMIT).with_tokens_with_locations(tokens);
        Ok(Cursor { parser, positions, depth: 0 })
    }

    // -- looking ahead

    pub(super) fn peek(&self) -> &Token {
        &self.parser.peek_token_ref().token
    }

    pub(super) fn peek_at(&self, n: usize) -> &Token {
        &self.parser.peek_nth_token_ref(n).token
    }

    pub(super) fn at_end(&self) -> bool {
        matches!(self.peek(), Token::EOF | Token::SemiColon)
    }

    fn is_word(token: &Token, word: &str) -> bool {
        matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    }

    /// Whether the next token is this unquoted word.
    pub(super) fn at(&self, word: &str) -> bool {
        Self::is_word(self.peek(), word)
    }

    /// Whether the next tokens are these unquoted words.
    pub(super) fn at_words(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| Self::is_word(self.peek_at(n), word))
    }

    /// The n-th word ahead in lower case; empty if it is no unquoted word.
    pub(super) fn word_at(&self, n: usize) -> String {
        match self.peek_at(n) {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
            _ => String::new(),
        }
    }

    // -- consuming

    pub(super) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.parser.advance_token();
        }
    }

    /// Consumes this word if it is next.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.at(word);
        if found {
            self.parser.advance_token();
        }
        found
    }

    /// Consumes these words if they are next.
    pub(super) fn take_words(&mut self, words: &[&str]) -> bool {
        let found = self.at_words(words);
        if found {
            self.skip(words.len());
        }
        found
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<()> {
        if self.take(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(super) fn take_token(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.parser.advance_token();
        }
        found
    }

    pub(super) fn expect_token(&mut self, token: &Token) -> Result<()> {
        if self.take_token(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// IF EXISTS.
    pub(super) fn take_if_exists(&mut self) -> bool {
        self.take_words(&["if", "exists"])
    }

    /// IF NOT EXISTS.
    pub(super) fn take_if_not_exists(&mut self) -> bool {
        self.take_words(&["if", "not", "exists"])
    }

    /// CASCADE or RESTRICT at the end of a DROP: whether CASCADE.
    pub(super) fn take_behavior(&mut self) -> bool {
        let cascade = self.take("cascade");
        if !cascade {
            self.take("restrict");
        }
        cascade
    }

    /// Skips what is left of the statement. Semicolons inside parentheses (rules) do not end it.
    pub(super) fn skip_statement(&mut self) {
        let mut depth = 0_u32;
        loop {
            match self.peek() {
                Token::EOF => return,
                Token::SemiColon if depth == 0 => return,
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.parser.advance_token();
        }
    }

    // -- names and literals

    /// A column, table or other name: an identifier or a word that is not reserved.
    pub(super) fn identifier(&mut self) -> Result<String> {
        match self.peek() {
            Token::Word(word) if word.quote_style.is_some() => {
                let value = word.value.clone();
                self.parser.advance_token();
                Ok(value)
            }
            Token::Word(word) => {
                let value = word.value.to_lowercase();
                if is_reserved(&value) {
                    return Err(self.unexpected());
                }
                self.parser.advance_token();
                Ok(value)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Any word, reserved or not.
    pub(super) fn label(&mut self) -> Result<String> {
        match self.peek() {
            Token::Word(word) => {
                let value =
                    if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
                self.parser.advance_token();
                Ok(value)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// `[[catalog.]schema.]name`.
    pub(super) fn name(&mut self) -> Result<QualifiedName> {
        let position = self.position();
        let first = self.identifier()?;
        self.rest_of_name(first, position)
    }

    /// The same of a routine: a single name may be one of the words that are reserved but for that.
    pub(super) fn routine_name(&mut self) -> Result<QualifiedName> {
        let position = self.position();
        let own = match (self.peek(), self.peek_at(1)) {
            (Token::Word(word), Token::LParen) if word.quote_style.is_none() => {
                may_name_routine(&word.value.to_lowercase())
            }
            _ => false,
        };
        let first = if own { self.label()? } else { self.identifier()? };
        self.rest_of_name(first, position)
    }

    fn rest_of_name(&mut self, first: String, position: u32) -> Result<QualifiedName> {
        let mut parts = vec![first];
        while self.take_token(&Token::Period) {
            parts.push(self.label()?);
        }
        if parts.len() > 3 {
            return Err(too_many_dots(&parts.join(".")).at(Some(position)));
        }
        let mut parts = parts.into_iter().rev();
        let name = parts.next().expect("one part at least");
        let (schema, catalog) = (parts.next(), parts.next());
        Ok(QualifiedName { catalog, schema, name, position })
    }

    pub(super) fn string(&mut self) -> Result<String> {
        match string_value(self.peek()) {
            Some(value) => {
                let value = value.to_string();
                self.parser.advance_token();
                Ok(value)
            }
            None => Err(self.unexpected()),
        }
    }

    /// A signed integer of eight bytes.
    pub(super) fn integer(&mut self) -> Result<i64> {
        let negative = self.take_token(&Token::Minus);
        if !negative {
            self.take_token(&Token::Plus);
        }
        let Token::Number(digits, _) = self.peek() else {
            return Err(self.unexpected());
        };
        let text = if negative { format!("-{digits}") } else { digits.clone() };
        match text.parse::<i64>() {
            Ok(value) => {
                self.parser.advance_token();
                Ok(value)
            }
            Err(_) if text.bytes().all(|b| b.is_ascii_digit() || b == b'-') => Err(SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("value \"{text}\" is out of range for type bigint"),
            )
            .at(Some(self.position()))),
            Err(_) => Err(self.unexpected()),
        }
    }

    /// `item, item, …`, at least one.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.take_token(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `(item, item, …)`, at least one.
    pub(super) fn parenthesized<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect_token(&Token::LParen)?;
        let items = self.list(item)?;
        self.expect_token(&Token::RParen)?;
        Ok(items)
    }

    /// `(name, …)`.
    pub(super) fn columns(&mut self) -> Result<Vec<String>> {
        self.parenthesized(Self::identifier)
    }

    // -- through sqlparser

    /// Runs a production of sqlparser's. Where it fails over a construction that PostgreSQL
    /// knows, the error is 0A000 with its name.
    pub(super) fn delegate<T>(
        &mut self,
        production: impl FnOnce(&mut Parser<'static>) -> Result<T, ParserError>,
    ) -> Result<T> {
        let start = self.index();
        production(&mut self.parser).map_err(|error| match interrupt::check() {
            Err(ended) => ended,
            Ok(()) => self.translate(error, start),
        })
    }

    /// Index of the next token.
    pub(super) fn index(&self) -> usize {
        let current = self.parser.get_current_index();
        // At the very start there is no current token.
        if std::ptr::eq(self.parser.peek_token_ref(), self.parser.token_at(current)) {
            current
        } else {
            current + 1
        }
    }

    pub(super) fn expression(&mut self) -> Result<Expression> {
        let (start, position) = (self.byte(), self.position());
        let expr = self.delegate(Parser::parse_expr)?;
        Ok(Expression { expr, text: self.since(start).to_string(), position })
    }

    /// An expression without the operators of the lowest kind: DEFAULT's b_expr, which must not
    /// swallow the NOT NULL that follows.
    pub(super) fn default_expression(&mut self) -> Result<Expression> {
        use sqlparser::dialect::{Dialect, Precedence};
        let (start, position) = (self.byte(), self.position());
        let floor = DIALECT.prec_value(Precedence::Is);
        let expr = self.delegate(|parser| parser.parse_subexpr(floor))?;
        Ok(Expression { expr, text: self.since(start).to_string(), position })
    }

    pub(super) fn query(&mut self) -> Result<Box<sp::Query>> {
        self.delegate(Parser::parse_query)
    }

    // -- places

    fn token_here(&self) -> &TokenWithSpan {
        self.parser.peek_token_ref()
    }

    /// Byte offset of the next token.
    pub(super) fn byte(&self) -> usize {
        self.positions.byte(self.token_here().span.start)
    }

    /// One-based character position of the next token.
    pub(super) fn position(&self) -> u32 {
        let token = self.token_here();
        self.positions
            .character(token.span.start)
            .unwrap_or_else(|| self.positions.character_of_byte(self.positions.text().len()))
    }

    /// How many characters stand before the next token.
    pub(super) fn characters_before(&self) -> i64 {
        i64::from(self.position()) - 1
    }

    /// End of the token consumed last.
    pub(super) fn end_byte(&self) -> usize {
        self.positions.byte(self.parser.get_current_token().span.end)
    }

    /// The text from a byte offset to the end of the token consumed last.
    pub(super) fn since(&self, start: usize) -> &'t str {
        let end = self.end_byte();
        self.positions.text().get(start..end.max(start)).unwrap_or("").trim()
    }

    pub(super) fn text(&self, range: Range<usize>) -> &'t str {
        self.positions.text().get(range).unwrap_or("")
    }

    // -- errors

    /// The syntax error at the next token.
    pub(super) fn unexpected(&self) -> SqlError {
        self.error_at(self.token_here())
    }

    /// A syntax error at a token.
    pub(super) fn error_at(&self, token: &TokenWithSpan) -> SqlError {
        let end = self.positions.text().len();
        if token.token == Token::EOF {
            return syntax_error("", self.positions.character_of_byte(end));
        }
        let (from, to) = (self.positions.byte(token.span.start), self.positions.byte(token.span.end));
        let near = self.positions.text().get(from..to).unwrap_or("");
        syntax_error(near, self.positions.character_of_byte(from))
    }

    /// sqlparser's error as PostgreSQL would say it; `start` is where its production began.
    fn translate(&self, error: ParserError, start: usize) -> SqlError {
        let message = match error {
            ParserError::RecursionLimitExceeded => return too_deep(),
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
        };
        let failed = match error_location(&message) {
            Some((line, column)) => self.token_starting(line, column),
            None => None,
        };
        let end = self.statement_end(start);
        let at = failed
            .unwrap_or_else(|| if message.contains("found: EOF") { end } else { self.index().min(end) });
        self.refused_or_error(start, at)
    }

    /// Index of the semicolon, or of the end of the script, after `start`.
    fn statement_end(&self, start: usize) -> usize {
        let ends =
            |index: &usize| matches!(self.parser.token_at(*index).token, Token::EOF | Token::SemiColon);
        (start..).find(ends).unwrap_or(start)
    }

    /// The error of a statement that began at `start` and whose token `at` could not be taken.
    fn refused_or_error(&self, start: usize, at: usize) -> SqlError {
        let tokens: Vec<TokenWithSpan> =
            (start..self.statement_end(start)).map(|index| self.parser.token_at(index).clone()).collect();
        let token = self.parser.token_at(at);
        match missing_construction(&tokens, at.saturating_sub(start)) {
            Some(what) => SqlError::unsupported(what).at(self.positions.character(token.span.start)),
            None => self.error_at(token),
        }
    }

    /// The error of a statement that began at token `start` and goes on where it should end.
    pub(super) fn unexpected_in(&self, start: usize) -> SqlError {
        self.refused_or_error(start, self.index())
    }

    /// Index of the token that starts at a line and column, near where parsing stopped.
    fn token_starting(&self, line: u64, column: u64) -> Option<usize> {
        let here = self.parser.get_current_index();
        (0..here.saturating_add(64)).rev().find(|&index| {
            let token = self.parser.token_at(index);
            token.token != Token::EOF && token.span.start.line == line && token.span.start.column == column
        })
    }
}

/// The ` at Line: L, Column: C` at the end of sqlparser's messages.
fn error_location(message: &str) -> Option<(u64, u64)> {
    let (_, place) = message.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some((line.parse().ok()?, column.trim().parse().ok()?))
}

/// 42601 for a name of more parts than a database, a schema and what is in it.
pub fn too_many_dots(name: &str) -> SqlError {
    let message = format!("improper qualified name (too many dotted names): {name}");
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}
