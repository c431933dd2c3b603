//! CREATE and ALTER DOMAIN.

use crate::ast::{AlterDomain, ColumnConstraintKind, CreateDomain, DomainAction, Statement};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

impl Cursor<'_> {
    /// At DOMAIN.
    pub(super) fn create_domain(&mut self) -> Result<Statement> {
        self.expect("domain")?;
        let name = self.name()?;
        self.take("as");
        let ty = self.type_name()?;
        let mut collation = None;
        let mut constraints = Vec::new();
        while !self.at_end() {
            if self.take("collate") {
                if collation.is_some() {
                    let message = "multiple COLLATE clauses not allowed";
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
                }
                collation = Some(self.name()?);
                continue;
            }
            let Some(constraint) = self.column_constraint()? else { return Err(self.unexpected()) };
            let what = match &constraint.kind {
                ColumnConstraintKind::NotNull
                | ColumnConstraintKind::Null
                | ColumnConstraintKind::Default(_)
                | ColumnConstraintKind::Check(_) => None,
                ColumnConstraintKind::PrimaryKey => Some("primary key constraints"),
                ColumnConstraintKind::Unique { .. } => Some("unique constraints"),
                ColumnConstraintKind::References(_) => Some("foreign key constraints"),
                ColumnConstraintKind::Identity { .. } | ColumnConstraintKind::Generated(_) => {
                    return Err(self.unexpected_in(0));
                }
            };
            if let Some(what) = what {
                let message = format!("{what} not possible for domains");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            constraints.push(constraint);
        }
        Ok(Statement::CreateDomain(Box::new(CreateDomain { name, ty, collation, constraints })))
    }

    /// At DOMAIN, after ALTER.
    pub(super) fn alter_domain(&mut self) -> Result<Statement> {
        self.expect("domain")?;
        let name = self.name()?;
        let action = if self.take_words(&["set", "default"]) {
            DomainAction::SetDefault(Some(self.default_expression()?))
        } else if self.take_words(&["drop", "default"]) {
            DomainAction::SetDefault(None)
        } else if self.take_words(&["set", "not", "null"]) {
            DomainAction::SetNotNull(true)
        } else if self.take_words(&["drop", "not", "null"]) {
            DomainAction::SetNotNull(false)
        } else if self.take("add") {
            let name = if self.take("constraint") { Some(self.identifier()?) } else { None };
            self.expect("check")?;
            let condition = self.parenthesized_expression()?;
            DomainAction::AddCheck { name, condition, not_valid: self.take_words(&["not", "valid"]) }
        } else if self.take_words(&["drop", "constraint"]) {
            let if_exists = self.take_if_exists();
            let name = self.identifier()?;
            self.take_behavior();
            DomainAction::DropConstraint { name, if_exists }
        } else if self.take_words(&["rename", "constraint"]) {
            let from = self.identifier()?;
            self.expect("to")?;
            DomainAction::RenameConstraint { from, to: self.identifier()? }
        } else if self.take_words(&["validate", "constraint"]) {
            DomainAction::ValidateConstraint(self.identifier()?)
        } else if self.take_words(&["rename", "to"]) {
            DomainAction::RenameTo(self.identifier()?)
        } else if self.take_words(&["set", "schema"]) {
            DomainAction::SetSchema(self.identifier()?)
        } else if self.take_words(&["owner", "to"]) {
            DomainAction::OwnerTo(self.role()?)
        } else {
            return Err(self.unexpected());
        };
        Ok(Statement::AlterDomain(Box::new(AlterDomain { name, action })))
    }
}
