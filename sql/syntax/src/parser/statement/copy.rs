//! COPY, in the syntax since 9.0 (`WITH (option value, …)`) and in the one before it.

use sqlparser::tokenizer::Token;

use crate::ast::{
    Copy, CopyColumns, CopyDirection, CopyHeader, CopyKind, CopyOptions, CopyTarget, Statement,
};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

impl Cursor<'_> {
    pub(in crate::parser) fn copy(&mut self) -> Result<Statement> {
        self.skip(1);
        let mut options = CopyOptions::default();
        if self.take("binary") {
            options.format = CopyKind::Binary;
        }
        let target = if self.take_token(&Token::LParen) {
            if matches!(self.word_at(0).as_str(), "select" | "with") && self.find_into().is_some() {
                let message = "COPY (SELECT INTO) is not supported";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).placeless());
            }
            let statement = Box::new(self.nested_statement()?);
            self.expect_token(&Token::RParen)?;
            CopyTarget::Query(statement)
        } else {
            let name = self.name()?;
            let columns = if *self.peek() == Token::LParen { self.columns()? } else { Vec::new() };
            CopyTarget::Table { name, columns }
        };
        let direction = self.copy_direction(&target)?;
        let from = matches!(
            direction,
            CopyDirection::FromStdin | CopyDirection::FromFile(_) | CopyDirection::FromProgram(_)
        );
        if self.take("using") {
            self.expect("delimiters")?;
            options.delimiter = Some(self.string()?);
        } else if self.take("delimiters") {
            options.delimiter = Some(self.string()?);
        }
        self.take("with");
        if *self.peek() == Token::LParen {
            let mut seen = Vec::new();
            self.parenthesized(|cursor| cursor.copy_option(&mut options, &mut seen))?;
        } else {
            while !self.at_end() && !self.at("where") && !self.at_closing() {
                self.old_copy_option(&mut options)?;
            }
        }
        let filter = if from && self.take("where") { Some(self.expression()?) } else { None };
        Ok(Statement::Copy(Box::new(Copy { target, direction, options, filter })))
    }

    fn at_closing(&self) -> bool {
        *self.peek() == Token::RParen
    }

    fn copy_direction(&mut self, target: &CopyTarget) -> Result<CopyDirection> {
        let from = if matches!(target, CopyTarget::Table { .. }) && self.take("from") {
            true
        } else {
            self.expect("to")?;
            false
        };
        if self.take("program") {
            let command = self.string()?;
            return Ok(if from {
                CopyDirection::FromProgram(command)
            } else {
                CopyDirection::ToProgram(command)
            });
        }
        // PostgreSQL takes STDIN and STDOUT for either direction.
        if self.take("stdin") || self.take("stdout") {
            return Ok(if from { CopyDirection::FromStdin } else { CopyDirection::ToStdout });
        }
        let file = self.string()?;
        Ok(if from { CopyDirection::FromFile(file) } else { CopyDirection::ToFile(file) })
    }

    /// One option of the parenthesized list.
    fn copy_option(&mut self, options: &mut CopyOptions, seen: &mut Vec<String>) -> Result<()> {
        let position = self.position();
        let name = self.label()?;
        if seen.contains(&name) {
            return Err(
                SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options").at(Some(position))
            );
        }
        match name.as_str() {
            "format" => {
                let format = self.word_or_string()?;
                options.format = match format.as_str() {
                    "text" => CopyKind::Text,
                    "csv" => CopyKind::Csv,
                    "binary" => CopyKind::Binary,
                    _ => {
                        return Err(SqlError::new(
                            SqlState::INVALID_PARAMETER_VALUE,
                            format!("COPY format \"{format}\" not recognized"),
                        )
                        .at(Some(position)));
                    }
                };
            }
            "freeze" => options.freeze = self.option_boolean("freeze")?,
            "delimiter" => options.delimiter = Some(self.word_or_string()?),
            "null" => options.null = Some(self.word_or_string()?),
            "header" => {
                options.header = if self.take("match") {
                    Some(CopyHeader::Match)
                } else {
                    self.option_boolean("header")?.then_some(CopyHeader::Skip)
                };
            }
            "quote" => options.quote = Some(self.word_or_string()?),
            "escape" => options.escape = Some(self.word_or_string()?),
            "encoding" => options.encoding = Some(self.word_or_string()?),
            "force_quote" => {
                options.force_quote = Some(if self.take_token(&Token::Mul) {
                    CopyColumns::All
                } else {
                    CopyColumns::Some(self.columns()?)
                });
            }
            "force_not_null" => options.force_not_null = self.columns()?,
            "force_null" => options.force_null = self.columns()?,
            _ => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("option \"{name}\" not recognized"),
                )
                .at(Some(position)));
            }
        }
        seen.push(name);
        Ok(())
    }

    fn word_or_string(&mut self) -> Result<String> {
        if matches!(self.peek(), Token::Word(_)) { self.label() } else { self.string() }
    }

    /// A boolean as options take it: nothing, a word, 0 or 1, or a string.
    pub(super) fn option_boolean(&mut self, option: &str) -> Result<bool> {
        let text = match self.peek() {
            Token::Comma | Token::RParen | Token::EOF | Token::SemiColon => return Ok(true),
            Token::Number(digits, _) => {
                let digits = digits.clone();
                self.skip(1);
                digits
            }
            _ => self.word_or_string()?.to_lowercase(),
        };
        match text.as_str() {
            "true" | "on" | "1" => Ok(true),
            "false" | "off" | "0" => Ok(false),
            _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("{option} requires a Boolean value"))),
        }
    }

    /// One option of the older syntax.
    fn old_copy_option(&mut self, options: &mut CopyOptions) -> Result<()> {
        let word = self.word_at(0);
        let start = self.unexpected();
        self.skip(1);
        match word.as_str() {
            "binary" => options.format = CopyKind::Binary,
            "csv" => options.format = CopyKind::Csv,
            "freeze" => options.freeze = true,
            "header" => options.header = Some(CopyHeader::Skip),
            "delimiter" => {
                self.take("as");
                options.delimiter = Some(self.string()?);
            }
            "null" => {
                self.take("as");
                options.null = Some(self.string()?);
            }
            "quote" => {
                self.take("as");
                options.quote = Some(self.string()?);
            }
            "escape" => {
                self.take("as");
                options.escape = Some(self.string()?);
            }
            "encoding" => options.encoding = Some(self.string()?),
            "force" if self.take("quote") => {
                options.force_quote = Some(if self.take_token(&Token::Mul) {
                    CopyColumns::All
                } else {
                    CopyColumns::Some(self.list(Self::identifier)?)
                });
            }
            "force" if self.take_words(&["not", "null"]) => {
                options.force_not_null = self.list(Self::identifier)?
            }
            "force" if self.take("null") => options.force_null = self.list(Self::identifier)?,
            _ => return Err(start),
        }
        Ok(())
    }
}
