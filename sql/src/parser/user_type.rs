//! CREATE and ALTER TYPE.

use sqlparser::tokenizer::Token;

use crate::ast::{AlterType, CreateType, Statement, TypeAction};
use crate::error::Result;

use super::cursor::Cursor;

impl Cursor<'_> {
    /// At TYPE.
    pub(super) fn create_type(&mut self) -> Result<Statement> {
        self.expect("type")?;
        let name = self.name()?;
        if !self.at_words(&["as", "enum"]) {
            let what = match (self.word_at(0).as_str(), self.word_at(1).as_str()) {
                ("as", "range") => "CREATE TYPE … AS RANGE",
                ("as", _) => "CREATE TYPE of a composite type",
                _ => "CREATE TYPE of a base type",
            };
            return Ok(self.refuse(what));
        }
        self.skip(2);
        self.expect_token(&Token::LParen)?;
        let labels = if *self.peek() == Token::RParen { Vec::new() } else { self.list(Self::string)? };
        self.expect_token(&Token::RParen)?;
        Ok(Statement::CreateType(CreateType { name, labels }))
    }

    /// At TYPE, after ALTER.
    pub(super) fn alter_type(&mut self) -> Result<Statement> {
        self.expect("type")?;
        let name = self.name()?;
        let action = if self.take_words(&["add", "value"]) {
            let if_not_exists = self.take_if_not_exists();
            let label = self.string()?;
            let place = if self.take("before") {
                Some((false, self.string()?))
            } else if self.take("after") {
                Some((true, self.string()?))
            } else {
                None
            };
            TypeAction::AddValue { label, if_not_exists, place }
        } else if self.take_words(&["rename", "value"]) {
            let from = self.string()?;
            self.expect("to")?;
            TypeAction::RenameValue { from, to: self.string()? }
        } else if self.take_words(&["rename", "to"]) {
            TypeAction::RenameTo(self.identifier()?)
        } else if self.take_words(&["set", "schema"]) {
            TypeAction::SetSchema(self.identifier()?)
        } else if self.take_words(&["owner", "to"]) {
            TypeAction::OwnerTo(self.role()?)
        } else if matches!(self.word_at(0).as_str(), "add" | "drop" | "alter" | "rename" | "set") {
            return Ok(self.refuse("ALTER TYPE of a composite type"));
        } else {
            return Err(self.unexpected());
        };
        Ok(Statement::AlterType(AlterType { name, action }))
    }
}
