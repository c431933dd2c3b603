//! CREATE, ALTER and DROP EXTENSION.

use sqlparser::tokenizer::Token;

use crate::ast::{
    AlterExtension, AlterExtensionAction, CreateExtension, DropExtension, RoutineWord, Statement,
};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

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
        let action = if self.take("update") {
            AlterExtensionAction::Update(if self.take("to") { Some(self.version()?) } else { None })
        } else if self.take_words(&["set", "schema"]) {
            AlterExtensionAction::SetSchema(self.identifier()?)
        } else if self.at("add") || self.at("drop") {
            let adds = self.at("add");
            let word = match &*self.word_at(1) {
                "function" => RoutineWord::Function,
                "procedure" => RoutineWord::Procedure,
                "routine" => RoutineWord::Routine,
                _ => return Ok(self.refuse("ALTER EXTENSION … ADD and DROP of what is no function")),
            };
            self.skip(2);
            let signature = self.routine_signature()?;
            match adds {
                true => AlterExtensionAction::Add(word, signature),
                false => AlterExtensionAction::Drop(word, signature),
            }
        } else {
            return Err(self.unexpected());
        };
        Ok(Statement::AlterExtension(AlterExtension { name, action }))
    }

    /// After DROP, at EXTENSION.
    pub(super) fn drop_extension(&mut self) -> Result<Statement> {
        self.skip(1);
        let if_exists = self.take_if_exists();
        let names = self.list(Self::identifier)?;
        Ok(Statement::DropExtension(DropExtension { names, if_exists, cascade: self.take_behavior() }))
    }
}
