//! CREATE, ALTER and DROP OPERATOR CLASS and OPERATOR FAMILY.

use sqlparser::tokenizer::Token;

use crate::ast::{
    AlterOperatorClass, AlterOperatorFamily, ClassItem, CreateOperatorClass, CreateOperatorFamily,
    DropOperatorClass, FamilyAction, FamilyMember, QualifiedName, RenameAction, Statement, TypeName,
};
use crate::error::Result;

use crate::parser::cursor::Cursor;

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
        let action = self.class_change()?;
        Ok(Statement::AlterOperatorClass(AlterOperatorClass { name, method, action }))
    }

    fn class_change(&mut self) -> Result<RenameAction> {
        if self.take_words(&["rename", "to"]) {
            return Ok(RenameAction::RenameTo(self.identifier()?));
        }
        if self.take_words(&["set", "schema"]) {
            return Ok(RenameAction::SetSchema(self.identifier()?));
        }
        self.expect("owner")?;
        self.expect("to")?;
        Ok(RenameAction::OwnerTo(self.role()?))
    }

    /// At OPERATOR FAMILY.
    pub(super) fn create_operator_family(&mut self) -> Result<Statement> {
        self.skip(2);
        let name = self.name()?;
        self.expect("using")?;
        let method = self.identifier()?;
        Ok(Statement::CreateOperatorFamily(CreateOperatorFamily { name, method }))
    }

    /// After ALTER, at OPERATOR FAMILY.
    pub(super) fn alter_operator_family(&mut self) -> Result<Statement> {
        self.skip(2);
        let name = self.name()?;
        self.expect("using")?;
        let method = self.identifier()?;
        let action = if self.take("add") {
            FamilyAction::Add(self.list(Self::class_item)?)
        } else if self.take("drop") {
            FamilyAction::Drop(self.list(Self::family_member)?)
        } else {
            FamilyAction::Change(self.class_change()?)
        };
        Ok(Statement::AlterOperatorFamily(Box::new(AlterOperatorFamily { name, method, action })))
    }

    fn family_member(&mut self) -> Result<FamilyMember> {
        let function = self.take("function");
        if !function {
            self.expect("operator")?;
        }
        let number = self.integer()?;
        Ok(FamilyMember { function, number, types: self.parenthesized(Self::type_name)? })
    }

    /// After DROP, at OPERATOR CLASS or OPERATOR FAMILY.
    pub(super) fn drop_operator_class(&mut self) -> Result<Statement> {
        let family = self.word_at(1) == "family";
        self.skip(2);
        let if_exists = self.take_if_exists();
        let name = self.name()?;
        self.expect("using")?;
        let method = self.identifier()?;
        let cascade = self.take_behavior();
        let drop = DropOperatorClass { name, method, if_exists, cascade };
        Ok(if family { Statement::DropOperatorFamily(drop) } else { Statement::DropOperatorClass(drop) })
    }
}
