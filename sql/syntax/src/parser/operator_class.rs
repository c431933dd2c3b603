//! CREATE, ALTER and DROP OPERATOR CLASS.

use sqlparser::tokenizer::Token;

use crate::ast::{
    AlterOperatorClass, ClassItem, CreateOperatorClass, DropOperatorClass, QualifiedName, RenameAction,
    Statement, TypeName,
};
use crate::error::Result;

use super::cursor::Cursor;

impl Cursor<'_> {
    /// At OPERATOR CLASS.
    pub(super) fn create_operator_class(&mut self) -> Result<Statement> {
        self.skip(2);
        let name = self.name()?;
        let default = self.take("default");
        self.expect("for")?;
        self.expect("type")?;
        let ty = self.type_name()?;
        self.expect("using")?;
        let method = self.identifier()?;
        let family = if self.take("family") { Some(self.name()?) } else { None };
        self.expect("as")?;
        let items = self.list(Self::class_item)?;
        let create = CreateOperatorClass { name, default, ty, method, family, items };
        Ok(Statement::CreateOperatorClass(Box::new(create)))
    }

    fn class_item(&mut self) -> Result<ClassItem> {
        if self.take("operator") {
            let number = self.integer()?;
            let name = self.operator_name()?;
            let types = self.types_in_parentheses()?;
            if self.take_words(&["for", "search"]) {
                return Ok(ClassItem::Operator { number, name, types });
            }
            if self.at("for") {
                return Err(crate::error::SqlError::unsupported("FOR ORDER BY in an operator class"));
            }
            return Ok(ClassItem::Operator { number, name, types });
        }
        if self.take("function") {
            let number = self.integer()?;
            let types = self.types_in_parentheses()?;
            let function = self.routine_signature()?;
            return Ok(ClassItem::Function { number, types, function });
        }
        self.expect("storage")?;
        Ok(ClassItem::Storage(self.type_name()?))
    }

    /// `[schema.]operator`.
    fn operator_name(&mut self) -> Result<QualifiedName> {
        let mut name = QualifiedName::bare("");
        name.position = self.position();
        if matches!(self.peek(), Token::Word(_)) {
            name.schema = Some(self.identifier()?);
            self.expect_token(&Token::Period)?;
        }
        name.name = self.operator_symbol()?;
        Ok(name)
    }

    fn types_in_parentheses(&mut self) -> Result<Vec<TypeName>> {
        if *self.peek() == Token::LParen { self.parenthesized(Self::type_name) } else { Ok(Vec::new()) }
    }

    /// After ALTER, at OPERATOR CLASS.
    pub(super) fn alter_operator_class(&mut self) -> Result<Statement> {
        self.skip(2);
        let name = self.name()?;
        self.expect("using")?;
        let method = self.identifier()?;
        let action = if self.take_words(&["rename", "to"]) {
            RenameAction::RenameTo(self.identifier()?)
        } else if self.take_words(&["set", "schema"]) {
            RenameAction::SetSchema(self.identifier()?)
        } else {
            self.expect("owner")?;
            self.expect("to")?;
            RenameAction::OwnerTo(self.role()?)
        };
        Ok(Statement::AlterOperatorClass(AlterOperatorClass { name, method, action }))
    }

    /// After DROP, at OPERATOR CLASS.
    pub(super) fn drop_operator_class(&mut self) -> Result<Statement> {
        self.skip(2);
        let if_exists = self.take_if_exists();
        let name = self.name()?;
        self.expect("using")?;
        let method = self.identifier()?;
        let cascade = self.take_behavior();
        Ok(Statement::DropOperatorClass(DropOperatorClass { name, method, if_exists, cascade }))
    }
}
