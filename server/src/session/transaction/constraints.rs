//! Deferred constraints: SET CONSTRAINTS, and the checks that COMMIT makes.

use std::collections::VecDeque;

use archipel_planner::ddl::{named_for_truncate, truncated_tables};
use archipel_planner::native::DeferredWork;
use archipel_sql::ast::{AlterTable, AlterTableAction, ObjectWord, QualifiedName, SetConstraints, Statement};
use archipel_sql::catalog::names::is_own_temporary_schema;
use archipel_sql::catalog::{Authority, Catalog, ForeignKey, Privileges, TableRef, TriggerEvent};
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
                self.named_constraints(name, set.deferred)?;
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
                    found.extend(self.named_constraints(name, set.deferred)?);
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

    /// The constraints that a name of SET CONSTRAINTS means (`AfterTriggerSetState`): all of that name in
    /// the schema it says, or in the first schema of the search path that has one; 3F000, 42501 or 42704.
    /// Only what is to be deferred must be deferrable (42809).
    fn named_constraints(&mut self, name: &QualifiedName, deferred: bool) -> Result<Vec<Oid>> {
        let path = self.search_path();
        let state = self.catalog_state();
        let catalog = state.catalog.clone();
        let authority = Authority { catalog: &state.catalog, role: self.roles().current };
        let schemas = catalog.schemas_searched(name, &path)?;
        if name.schema.is_some() {
            for schema in schemas.iter().filter(|schema| !is_own_temporary_schema(schema, &path)) {
                authority.require_schema(schema, Privileges::USAGE)?;
            }
        }
        let mut found = schemas.into_iter().map(|schema| constraints_of(&catalog, schema, &name.name));
        let Some(found) = found.find(|found| !found.is_empty()) else {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("constraint \"{}\" does not exist", name.name),
            ));
        };
        if deferred && found.iter().any(|(_, deferrable)| !deferrable) {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("constraint \"{}\" is not deferrable", name.name),
            ));
        }
        Ok(found.into_iter().filter(|(_, deferrable)| *deferrable).map(|(oid, _)| oid).collect())
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

/// The constraints of one name in a schema: their numbers, or those of their indexes, and whether they can be
/// deferred. Those of the partitions of a table come with it, whatever they are called.
fn constraints_of(catalog: &Catalog, schema: &str, name: &str) -> Vec<(Oid, bool)> {
    let mut found = Vec::new();
    for table in catalog.tables().filter(|table| table.schema == schema) {
        let keys = table.foreign_keys.iter().filter(|key| key.name == name);
        found.extend(keys.map(|key| (key.oid, key.deferrable)));
        let triggers = table.triggers.iter().filter(|trigger| trigger.name == name);
        found.extend(triggers.filter_map(|trigger| Some((trigger.oid, trigger.constraint?.deferrable))));
        let checks = table.checks.iter().filter(|check| check.name == name);
        found.extend(checks.map(|check| (check.oid, false)));
        let unique = table.indexes.iter().filter(|index| index.constraint && index.name == name);
        found.extend(unique.map(|index| (index.oid, false)));
        let primary = table.primary_key.iter().filter(|key| key.name == name);
        found.extend(primary.map(|key| (key.oid, false)));
    }
    for ty in catalog.user_types().filter(|ty| ty.schema == schema) {
        let checks = ty.domain.iter().flat_map(|domain| &domain.checks).filter(|check| check.name == name);
        found.extend(checks.map(|check| (check.oid, false)));
    }
    // Parents come before their parts, and parts may have parts.
    let mut parents: Vec<Oid> = found.iter().map(|(oid, _)| *oid).collect();
    while !parents.is_empty() {
        let of_parents = |key: &ForeignKey| key.parent.is_some_and(|parent| parents.contains(&parent));
        let parts: Vec<(Oid, bool)> = catalog
            .tables()
            .flat_map(|table| &table.foreign_keys)
            .filter(|key| of_parents(key) && !found.iter().any(|(known, _)| *known == key.oid))
            .map(|key| (key.oid, key.deferrable))
            .collect();
        parents = parts.iter().map(|(oid, _)| *oid).collect();
        found.extend(parts);
    }
    found
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
