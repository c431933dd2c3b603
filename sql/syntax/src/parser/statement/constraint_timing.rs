//! When an existing constraint is checked: ALTER TABLE … ALTER CONSTRAINT.

use crate::ast::{AlterTableAction, Deferrable};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

impl Cursor<'_> {
    /// After ALTER, at CONSTRAINT.
    pub(super) fn alter_constraint(&mut self) -> Result<AlterTableAction> {
        self.expect("constraint")?;
        let name = self.identifier()?;
        // What is said of each, `None` where nothing is.
        let (mut deferrable, mut deferred) = (None, None);
        loop {
            let position = self.position();
            let told = if self.take("deferrable") {
                deferrable.replace(true) == Some(false)
            } else if self.take_words(&["not", "deferrable"]) {
                deferrable.replace(false) == Some(true)
            } else if self.take_words(&["initially", "deferred"]) {
                deferred.replace(true) == Some(false)
            } else if self.take_words(&["initially", "immediate"]) {
                deferred.replace(false) == Some(true)
            } else if self.take_words(&["not", "valid"]) {
                return Err(never_marked("NOT VALID"));
            } else if self.take_words(&["no", "inherit"]) {
                return Err(never_marked("NO INHERIT"));
            } else {
                break;
            };
            let wrong = match (told, deferrable, deferred) {
                (_, Some(false), Some(true)) => "constraint declared INITIALLY DEFERRED must be DEFERRABLE",
                (true, ..) => "conflicting constraint properties",
                _ => continue,
            };
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, wrong).at(Some(position)));
        }
        let initially_deferred = deferred == Some(true);
        let deferrable = deferrable == Some(true) || initially_deferred;
        Ok(AlterTableAction::AlterConstraint { name, timing: Deferrable { deferrable, initially_deferred } })
    }
}

/// `processCASbits`: only foreign keys can be altered so.
fn never_marked(words: &str) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("FOREIGN KEY constraints cannot be marked {words}"),
    )
}
