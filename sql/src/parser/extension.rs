//! CREATE, ALTER and DROP EXTENSION.

use sqlparser::tokenizer::Token;

use crate::ast::{AlterExtension, CreateExtension, DropExtension, Statement};
use crate::error::{Result, SqlError, SqlState};

use super::cursor::Cursor;

impl Cursor<'_> {
    /// After CREATE, at EXTENSION.
    pub(super) fn create_extension(&mut self) -> Result<Statement> {
        self.skip(1);
        let if_not_exists = self.take_if_not_exists();
        let name = self.identifier()?;
        self.take("with");
        let (mut schema, mut version, mut cascade) = (None, None, false);
        let redundant = || SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options");
        while !self.at_end() {
            let at = Some(self.position());
            let repeated = if self.take("schema") {
                schema.replace(self.identifier()?).is_some()
            } else if self.take("version") {
                version.replace(self.version()?).is_some()
            } else if self.take("cascade") {
                std::mem::replace(&mut cascade, true)
            } else {
                return Err(self.unexpected());
            };
            if repeated {
                return Err(redundant().at(at));
            }
        }
        Ok(Statement::CreateExtension(CreateExtension { name, if_not_exists, schema, version }))
    }

    fn version(&mut self) -> Result<String> {
        if matches!(self.peek(), Token::Word(_)) { self.label() } else { self.string() }
    }

    /// After ALTER, at EXTENSION.
    pub(super) fn alter_extension(&mut self) -> Result<Statement> {
        self.skip(1);
        let name = self.identifier()?;
        if !self.take("update") {
            return Ok(self.refuse("ALTER EXTENSION"));
        }
        let version = if self.take("to") { Some(self.version()?) } else { None };
        Ok(Statement::AlterExtension(AlterExtension { name, version }))
    }

    /// After DROP, at EXTENSION.
    pub(super) fn drop_extension(&mut self) -> Result<Statement> {
        self.skip(1);
        let if_exists = self.take_if_exists();
        let names = self.list(Self::identifier)?;
        Ok(Statement::DropExtension(DropExtension { names, if_exists, cascade: self.take_behavior() }))
    }
}
