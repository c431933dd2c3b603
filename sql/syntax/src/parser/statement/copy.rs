//! COPY, in the syntax since 9.0 (`WITH (option value, …)`) and in the one before it.

use sqlparser::tokenizer::Token;

use crate::ast::{Copy, CopyArgument, CopyDirection, CopyOption, CopyTarget, Statement};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

/// What a statement begins with whose rows may be copied (PreparableStmt).
const QUERIES: [&str; 8] = ["select", "with", "values", "table", "insert", "update", "delete", "merge"];

impl Cursor<'_> {
    pub(in crate::parser) fn copy(&mut self) -> Result<Statement> {
        self.skip(1);
        let mut options = Vec::new();
        if self.at("binary") {
            options.push(self.copy_word_option("format", "binary"));
        }
        let target = if self.take_token(&Token::LParen) {
            if matches!(self.word_at(0).as_str(), "select" | "with") && self.find_into().is_some() {
                let message = "COPY (SELECT INTO) is not supported";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).placeless());
            }
            if *self.peek() != Token::LParen && !QUERIES.contains(&self.word_at(0).as_str()) {
                return Err(self.unexpected());
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
        let using = self.take("using");
        let position = self.position();
        if using {
            self.expect("delimiters")?;
        }
        if using || self.take("delimiters") {
            let argument = CopyArgument::Text(self.string()?);
            options.push(CopyOption { name: "delimiter".to_owned(), argument, position });
        }
        self.take("with");
        if *self.peek() == Token::LParen {
            options.extend(self.parenthesized(Self::copy_option)?);
        } else {
            while !self.at_end() && !self.at("where") && !self.at_closing() {
                options.push(self.old_copy_option()?);
            }
        }
        let filter = match target {
            CopyTarget::Table { .. } if self.at("where") => {
                let position = self.position();
                self.skip(1);
                let filter = self.expression()?;
                if !from {
                    let message = "WHERE clause not allowed with COPY TO";
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(Some(position)));
                }
                Some(filter)
            }
            _ => None,
        };
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
            if self.at("stdin") || self.at("stdout") {
                let message = "STDIN/STDOUT not allowed with PROGRAM";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(Some(self.position())));
            }
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

    /// One option of the parenthesized list: which there are, and what they may be given, is found out when
    /// the statement runs.
    fn copy_option(&mut self) -> Result<CopyOption> {
        let position = self.position();
        let name = self.label()?;
        let argument = match self.peek() {
            Token::Comma | Token::RParen => CopyArgument::None,
            Token::LParen => CopyArgument::List(self.parenthesized(Self::word_or_string)?),
            Token::Mul => {
                self.skip(1);
                CopyArgument::Star
            }
            Token::Number(..) | Token::Minus | Token::Plus => CopyArgument::Number(self.copy_number()?),
            _ => CopyArgument::Text(self.word_or_string()?),
        };
        Ok(CopyOption { name, argument, position })
    }

    /// A number as it is written (NumericOnly).
    fn copy_number(&mut self) -> Result<String> {
        let negative = self.take_token(&Token::Minus);
        if !negative {
            self.take_token(&Token::Plus);
        }
        let Token::Number(digits, _) = self.peek() else { return Err(self.unexpected()) };
        let text = if negative { format!("-{digits}") } else { digits.clone() };
        self.skip(1);
        Ok(text)
    }

    /// An option that is one word of the older syntax, which is next.
    fn copy_word_option(&mut self, name: &str, word: &str) -> CopyOption {
        let (name, argument) = (name.to_owned(), CopyArgument::Text(word.to_owned()));
        let option = CopyOption { name, argument, position: self.position() };
        self.skip(1);
        option
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
    fn old_copy_option(&mut self) -> Result<CopyOption> {
        let (word, position) = (self.word_at(0), self.position());
        Ok(match word.as_str() {
            "binary" | "csv" => self.copy_word_option("format", &word),
            "freeze" | "header" => self.copy_word_option(&word, "true"),
            "delimiter" | "null" | "quote" | "escape" | "encoding" => {
                self.skip(1);
                if word != "encoding" {
                    self.take("as");
                }
                CopyOption { name: word, argument: CopyArgument::Text(self.string()?), position }
            }
            "force" => {
                self.skip(1);
                let (name, argument) = self.forced_columns()?;
                CopyOption { name: name.to_owned(), argument, position }
            }
            _ => return Err(self.unexpected()),
        })
    }

    /// What is behind FORCE.
    fn forced_columns(&mut self) -> Result<(&'static str, CopyArgument)> {
        let name = if self.take("quote") {
            if self.take_token(&Token::Mul) {
                return Ok(("force_quote", CopyArgument::Star));
            }
            "force_quote"
        } else if self.take("not") {
            self.expect("null")?;
            "force_not_null"
        } else {
            self.expect("null")?;
            "force_null"
        };
        Ok((name, CopyArgument::List(self.list(Self::identifier)?)))
    }
}
