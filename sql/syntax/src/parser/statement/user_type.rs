//! CREATE and ALTER TYPE.

use sqlparser::tokenizer::Token;

use crate::ast::{
    AlterType, AttributeAction, ColumnDefinition, CreateType, CreatedType, Statement, TypeAction,
};
use crate::error::Result;

use crate::parser::cursor::Cursor;

impl Cursor<'_> {
    /// At TYPE.
    pub(super) fn create_type(&mut self) -> Result<Statement> {
        self.expect("type")?;
        let name = self.name()?;
        if !self.at_words(&["as", "enum"]) {
            let what = match (self.word_at(0).as_str(), self.word_at(1).as_str()) {
                ("as", "range") => "CREATE TYPE … AS RANGE",
                ("as", _) => {
                    self.skip(1);
                    self.expect_token(&Token::LParen)?;
                    let empty = *self.peek() == Token::RParen;
                    let attributes =
                        if empty { Vec::new() } else { self.list(|cursor| cursor.attribute(false))? };
                    self.expect_token(&Token::RParen)?;
                    return Ok(Statement::CreateType(CreateType {
                        name,
                        kind: CreatedType::Composite(attributes),
                    }));
                }
                _ => "CREATE TYPE of a base type",
            };
            return Ok(self.refuse(what));
        }
        self.skip(2);
        self.expect_token(&Token::LParen)?;
        let labels = if *self.peek() == Token::RParen { Vec::new() } else { self.list(Self::string)? };
        self.expect_token(&Token::RParen)?;
        Ok(Statement::CreateType(CreateType { name, kind: CreatedType::Enum(labels) }))
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
        } else if self.take_words(&["rename", "attribute"]) {
            let from = self.identifier()?;
            self.expect("to")?;
            let to = self.identifier()?;
            self.take_behavior();
            TypeAction::RenameAttribute { from, to }
        } else if self.at("set") {
            return Ok(self.refuse("ALTER TYPE … SET"));
        } else {
            TypeAction::Attributes(self.list(Self::attribute_action)?)
        };
        Ok(Statement::AlterType(AlterType { name, action }))
    }

    /// What is done with one attribute. What CASCADE is about, but for dropped ones, is not there: tables
    /// made of a type.
    fn attribute_action(&mut self) -> Result<AttributeAction> {
        let action = if self.take_words(&["add", "attribute"]) {
            AttributeAction::Add(self.attribute(false)?)
        } else if self.take_words(&["drop", "attribute"]) {
            let (if_exists, name) = (self.take_if_exists(), self.identifier()?);
            return Ok(AttributeAction::Drop { name, if_exists, cascade: self.take_behavior() });
        } else if self.take_words(&["alter", "attribute"]) {
            AttributeAction::SetType(self.attribute(true)?)
        } else {
            return Err(self.unexpected());
        };
        self.take_behavior();
        Ok(action)
    }

    /// `name [[SET DATA] TYPE] type [COLLATE collation]`.
    fn attribute(&mut self, altered: bool) -> Result<ColumnDefinition> {
        let position = self.position();
        let name = self.identifier()?;
        if altered {
            self.take_words(&["set", "data"]);
            self.expect("type")?;
        }
        let ty = self.type_name()?;
        let collation = if self.take("collate") { Some(self.name()?) } else { None };
        Ok(ColumnDefinition { name, position, ty, collation, compression: None, constraints: Vec::new() })
    }
}
