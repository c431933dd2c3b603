//! ALTER TABLE … ALTER COLUMN.

use sqlparser::tokenizer::Token;

use crate::ast::{AlterTableAction, ColumnConstraintKind, ColumnOption, IdentityChange};
use crate::error::Result;
use crate::parser::cursor::Cursor;

impl Cursor<'_> {
    /// After ALTER in ALTER TABLE.
    pub(super) fn alter_column(&mut self) -> Result<AlterTableAction> {
        if self.at("constraint") {
            return self.alter_constraint();
        }
        self.take("column");
        if matches!(self.peek(), Token::Number(..)) {
            // ALTER INDEX names columns by number.
            self.skip(1);
            return Ok(AlterTableAction::Unsupported(self.action_words()));
        }
        let column = self.identifier()?;
        if self.take_words(&["set", "default"]) {
            return Ok(AlterTableAction::SetDefault { column, default: Some(self.expression()?) });
        }
        if self.take_words(&["drop", "default"]) {
            return Ok(AlterTableAction::SetDefault { column, default: None });
        }
        if self.take_words(&["set", "not", "null"]) {
            return Ok(AlterTableAction::SetNotNull { column, not_null: true });
        }
        if self.take_words(&["drop", "not", "null"]) {
            return Ok(AlterTableAction::SetNotNull { column, not_null: false });
        }
        if self.take("type") || self.take_words(&["set", "data", "type"]) {
            let ty = self.type_name()?;
            let position = self.position();
            let mut collation = if self.take("collate") { Some(self.name()?) } else { None };
            if let Some(collation) = &mut collation {
                // Errors tell of the clause.
                collation.position = position;
            }
            let using = if self.take("using") { Some(self.expression()?) } else { None };
            return Ok(AlterTableAction::SetType { column, ty, collation, using });
        }
        if self.at_words(&["add", "generated"]) {
            self.skip(1);
            let ColumnConstraintKind::Identity { always, options } = self.generated()? else {
                return Err(self.unexpected());
            };
            return Ok(AlterTableAction::Identity {
                column,
                change: IdentityChange::Add { always, options },
            });
        }
        if self.take_words(&["drop", "identity"]) {
            let if_exists = self.take_if_exists();
            return Ok(AlterTableAction::Identity { column, change: IdentityChange::Drop { if_exists } });
        }
        if self.take_words(&["drop", "expression"]) {
            let if_exists = self.take_if_exists();
            return Ok(AlterTableAction::DropExpression { column, if_exists });
        }
        if let Some(change) = self.identity_change()? {
            return Ok(AlterTableAction::Identity { column, change });
        }
        if let Some(option) = self.column_option()? {
            return Ok(AlterTableAction::SetColumnOption { column, option });
        }
        match self.word_at(0).as_str() {
            "set" | "reset" | "add" | "drop" | "restart" => {
                let words = self.action_words();
                Ok(AlterTableAction::Unsupported(
                    words.replace("ALTER TABLE …", "ALTER TABLE … ALTER COLUMN …"),
                ))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// What is said of how a column is stored and sampled.
    fn column_option(&mut self) -> Result<Option<ColumnOption>> {
        if self.take_words(&["set", "statistics"]) {
            return Ok(Some(ColumnOption::Statistics(self.integer()?)));
        }
        if self.take_words(&["set", "storage"]) {
            return Ok(Some(ColumnOption::Storage(self.identifier()?)));
        }
        if self.take_words(&["set", "compression"]) {
            return Ok(Some(ColumnOption::Compression(self.compression()?)));
        }
        if matches!(self.word_at(0).as_str(), "set" | "reset") && *self.peek_at(1) == Token::LParen {
            self.skip_action();
            return Ok(Some(ColumnOption::Estimates));
        }
        Ok(None)
    }

    /// The name behind COMPRESSION.
    pub(super) fn compression(&mut self) -> Result<String> {
        if self.take("default") { Ok("default".to_owned()) } else { self.identifier() }
    }

    /// `SET GENERATED …`, `SET sequence_option`, `RESTART`, in a row.
    fn identity_change(&mut self) -> Result<Option<IdentityChange>> {
        let (mut always, mut options) = (None, Vec::new());
        loop {
            if self.take_words(&["set", "generated"]) {
                always = Some(self.take("always"));
                if always == Some(false) {
                    self.expect("by")?;
                    self.expect("default")?;
                }
            } else if self.at("restart") {
                options.extend(self.sequence_options()?);
            } else if self.at("set")
                && matches!(
                    self.word_at(1).as_str(),
                    "increment" | "minvalue" | "maxvalue" | "no" | "start" | "cache" | "cycle"
                )
            {
                self.skip(1);
                options.extend(self.sequence_options()?);
            } else if always.is_some() || !options.is_empty() {
                return Ok(Some(IdentityChange::Set { always, options }));
            } else {
                return Ok(None);
            }
        }
    }
}
