//! Deferred constraints: SET CONSTRAINTS, and the checks that COMMIT makes.

use std::collections::VecDeque;

use archipel_planner::ddl::{named_for_truncate, truncated_tables};
use archipel_planner::native::DeferredWork;
use archipel_sql::ast::{AlterTable, AlterTableAction, ObjectWord, QualifiedName, SetConstraints, Statement};
use archipel_sql::catalog::{Catalog, ForeignKey, TableRef, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;
use rustc_hash::FxHashSet;

use crate::session::Session;
use crate::wire::output::Severity;

impl Session {
    /// SET CONSTRAINTS. What becomes immediate is checked at once.
    pub(in crate::session) async fn set_constraints(&mut self, set: &SetConstraints) -> Result<()> {
        if !self.transaction.is_block() {
            let warning = SqlError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET CONSTRAINTS can only be used in transaction blocks",
            );
            self.notice(Severity::Warning, &warning);
        }
        if !self.transaction.is_open() {
            // There is nothing it could be about, but names must be.
            for name in set.names.iter().flatten() {
                self.deferrable_constraint(name)?;
            }
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
        let path = self.search_path();
        let catalog = self.catalog_state().catalog.clone();
        let schemas: Vec<&str> = match &name.schema {
            Some(schema) => vec![schema],
            None => catalog.effective_path(&path),
        };
        // Foreign keys and constraint triggers: the number, and whether it can be deferred.
        let found: Option<(Oid, bool)> = schemas.into_iter().find_map(|schema| {
            catalog.tables().filter(|table| table.schema == schema).find_map(|table| {
                let key = table.foreign_keys.iter().find(|key| key.name == name.name);
                let key = key.map(|key| (key.oid, key.deferrable));
                key.or_else(|| {
                    let trigger = table.trigger(&name.name)?;
                    Some((trigger.oid, trigger.constraint?.deferrable))
                })
            })
        });
        match found {
            Some((constraint, true)) => Ok(constraint),
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

    /// Refuses to change, empty or drop a table while rows of it wait to be checked (`CheckTableNotInUse`):
    /// what is to be checked could change meanwhile.
    pub(in crate::session) fn require_nothing_pending(&mut self, statement: &Statement) -> Result<()> {
        let path = self.search_path();
        let catalog = self.catalog_state().catalog.clone();
        // That there are such tables is seen by those that look for them.
        let found = |names: &[QualifiedName]| -> Vec<TableRef> {
            names.iter().filter_map(|name| catalog.require_table(name, &path).ok()).collect()
        };
        let (command, concerned) = match statement {
            Statement::AlterTable(alter) if !alter.actions.iter().all(is_name_alone) => {
                ("ALTER TABLE", concerned_by(alter, &catalog, found(std::slice::from_ref(&alter.name))))
            }
            Statement::Truncate(truncate) => {
                let found = found(&truncate.tables);
                let named = named_for_truncate(&catalog, found, &truncate.only)?;
                // What it lacks is told behind this.
                let reached = truncated_tables(&catalog, &named, truncate.cascade).unwrap_or(named);
                ("TRUNCATE", reached)
            }
            Statement::Drop(drop) if drop.kind == ObjectWord::Table => {
                let named = found(&drop.names);
                let depended_on = |table: &TableRef| {
                    let pointing = |key: &ForeignKey| key.references == table.oid && key.parent.is_none();
                    let others = catalog.tables().filter(|other| !named.iter().any(|it| it.oid == other.oid));
                    others.flat_map(|other| &other.foreign_keys).any(pointing)
                };
                // Without CASCADE, such a one stays.
                let goes = |table: &TableRef| drop.cascade || !depended_on(table);
                ("DROP TABLE", named.iter().filter(|table| goes(table)).cloned().collect())
            }
            _ => return Ok(()),
        };
        match concerned.iter().find(|table| self.transaction.has_pending(table.oid)) {
            Some(table) => Err(SqlError::new(
                SqlState::OBJECT_IN_USE,
                format!("cannot {command} \"{}\" because it has pending trigger events", table.name),
            )),
            None => Ok(()),
        }
    }

    /// Checks what was deferred: all of it, or that of some constraints.
    pub(in crate::session) async fn check_deferred(&mut self, only: Option<&[Oid]>) -> Result<()> {
        let (now, mut seen_to) = self.transaction.take_due(0, only);
        let mut now = VecDeque::from(now);
        let mut seen = FxHashSet::default();
        while let Some(check) = now.pop_front() {
            match check.work {
                DeferredWork::Key { query, error, .. } => {
                    if seen.insert(query.clone()) && !Box::pin(self.rows_of(&query, false)).await?.is_empty()
                    {
                        return Err(error);
                    }
                }
                DeferredWork::Trigger { table, event, rows, .. } => {
                    Box::pin(self.fire_deferred(check.constraint, table, event, rows)).await?;
                    // It may have deferred more, and keys are to be looked at again.
                    seen.clear();
                    let (more, end) = self.transaction.take_due(seen_to, only);
                    now.extend(more);
                    seen_to = end;
                }
            }
        }
        Ok(())
    }

    /// Fires a constraint trigger, if it is still there.
    async fn fire_deferred(
        &mut self,
        trigger: Oid,
        table: Oid,
        event: TriggerEvent,
        rows: [Datum; 2],
    ) -> Result<()> {
        let catalog = self.catalog_state().catalog.clone();
        let Some(table) = catalog.table_by_oid(table) else { return Ok(()) };
        let Some(trigger) = table.triggers.iter().find(|known| known.oid == trigger) else { return Ok(()) };
        // WHEN was asked when the row was written.
        self.fire(&table, trigger.oid, event, rows, false).await
    }
}

/// Whether nothing but a name changes.
fn is_name_alone(action: &AlterTableAction) -> bool {
    matches!(
        action,
        AlterTableAction::RenameTo(_)
            | AlterTableAction::RenameColumn { .. }
            | AlterTableAction::RenameConstraint { .. }
            | AlterTableAction::SetSchema(_)
    )
}

/// The tables that ALTER TABLE is about. A foreign key that goes is about the referenced one, too.
fn concerned_by(alter: &AlterTable, catalog: &Catalog, mut concerned: Vec<TableRef>) -> Vec<TableRef> {
    let Some(table) = concerned.first().cloned() else { return concerned };
    if !alter.only {
        concerned.extend(catalog.descendants(table.oid));
    }
    for action in &alter.actions {
        if let AlterTableAction::DropConstraint { name, .. } = action
            && let Some(key) = table.foreign_keys.iter().find(|key| key.name == *name)
        {
            concerned.extend(catalog.table_by_oid(key.references));
        }
    }
    concerned
}
