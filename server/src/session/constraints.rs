//! Deferred constraints: SET CONSTRAINTS, and the checks that COMMIT makes.

use archipel_planner::native::DeferredCheck;
use archipel_sql::ast::{QualifiedName, SetConstraints};
use archipel_sql::catalog::ForeignKey;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;
use rustc_hash::FxHashSet;

use super::Session;
use crate::wire::output::Severity;

impl Session {
    /// SET CONSTRAINTS. What becomes immediate is checked at once.
    pub(super) async fn set_constraints(&mut self, set: &SetConstraints) -> Result<()> {
        if !self.transaction.is_block() {
            let warning = SqlError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET CONSTRAINTS can only be used in transaction blocks",
            );
            self.notice(Severity::Warning, &warning);
        }
        if !self.transaction.is_open() {
            // There is nothing it could be about.
            return Ok(());
        }
        match &set.names {
            None => {
                self.transaction.constraints_mut().set_all(set.deferred);
                if !set.deferred {
                    self.check_deferred(None).await?;
                }
            }
            Some(names) => {
                let mut found = Vec::with_capacity(names.len());
                for name in names {
                    found.push(self.deferrable_constraint(name)?);
                }
                for oid in &found {
                    self.transaction.constraints_mut().set(*oid, set.deferred);
                }
                if !set.deferred {
                    self.check_deferred(Some(&found)).await?;
                }
            }
        }
        Ok(())
    }

    fn deferrable_constraint(&mut self, name: &QualifiedName) -> Result<Oid> {
        let path = self.settings.effective().search_path.clone();
        let catalog = self.catalog_state().catalog.clone();
        let schemas: Vec<&str> = match &name.schema {
            Some(schema) => vec![schema],
            None => catalog.effective_path(&path),
        };
        let found: Option<ForeignKey> = schemas.into_iter().find_map(|schema| {
            let tables = catalog.tables().filter(|table| table.schema == schema);
            tables.flat_map(|table| &table.foreign_keys).find(|key| key.name == name.name).cloned()
        });
        match found {
            Some(key) if key.deferrable => Ok(key.oid),
            Some(_) => Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("constraint \"{}\" is not deferrable", name.name),
            )),
            None => Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("constraint \"{}\" does not exist", name.name),
            )),
        }
    }

    /// Checks what was deferred: all of it, or that of some constraints.
    pub(super) async fn check_deferred(&mut self, only: Option<&[Oid]>) -> Result<()> {
        let (now, later): (Vec<DeferredCheck>, Vec<DeferredCheck>) = self
            .transaction
            .take_deferred()
            .into_iter()
            .partition(|check| only.is_none_or(|only| only.contains(&check.constraint)));
        self.transaction.add_deferred(later);
        let mut seen = FxHashSet::default();
        for check in now {
            if !seen.insert(check.query.clone()) {
                continue;
            }
            if !Box::pin(self.rows_of(&check.query, false)).await?.is_empty() {
                return Err(check.error);
            }
        }
        Ok(())
    }
}
