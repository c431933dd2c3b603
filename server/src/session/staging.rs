//! Definitions inside BEGIN … COMMIT: planned one after the other on a catalog that already
//! shows the earlier ones, and run as one program at COMMIT, so all of them happen or none.
//!
//! A block holds either definitions or changed rows. Rows of a table defined in the same block,
//! and definitions after rows have changed, are refused: nothing is committed behind the
//! client's back.

use archipel_sql::catalog::{Catalog, CatalogChange};
use archipel_sql::error::{Result, SqlError, SqlState};

use super::Session;
use super::definition::Source;
use crate::run::definition::DefinitionRun;

/// The definitions of a block so far.
pub(super) struct Staged {
    /// The catalog the block began on, and its number.
    base: Catalog,
    base_version: u64,
    /// With the definitions so far.
    catalog: Catalog,
    steps: Vec<DefinitionRun>,
}

impl Staged {
    /// How many definitions there are, for savepoints.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Forgets all definitions after the first `count`.
    pub fn truncate(&mut self, count: usize) {
        self.steps.truncate(count);
        let changes: Vec<CatalogChange> =
            self.steps.iter().flat_map(|step| step.changes.iter().cloned()).collect();
        self.catalog = if changes.is_empty() { self.base.clone() } else { self.base.apply(&changes) };
    }

    fn into_run(self) -> DefinitionRun {
        let mut run = DefinitionRun::of_changes(Vec::new());
        for step in self.steps {
            run.validations.extend(step.validations);
            run.operations.extend(step.operations);
            run.duplicates.extend(step.duplicates);
            run.changes.extend(step.changes);
            run.host = step.host;
        }
        run
    }
}

/// The error of reading or writing rows after definitions in one block.
fn rows_after_definitions() -> SqlError {
    SqlError::unsupported("reading or writing tables after definitions in one transaction block")
        .with_hint("Commit the definitions first.")
}

impl Session {
    /// Adds a definition to the block's.
    pub(super) fn stage_definition(&mut self, source: &Source, tag: &str) -> Result<String> {
        if self.transaction.interactive().is_some_and(|open| !open.is_empty()) {
            return Err(SqlError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                format!("{tag} cannot follow changed or locked rows in a transaction block"),
            )
            .with_hint("Commit them first, or run the definition outside BEGIN … COMMIT."));
        }
        let (catalog, first) = match self.transaction.staged() {
            Some(staged) => (staged.catalog.clone(), false),
            None => (self.server.catalog.current().catalog.clone(), true),
        };
        let version = self.server.catalog.version();
        let plan = self.plan_definition(source, &catalog)?;
        self.definition_notices(&plan);
        let tag = plan.tag.to_owned();
        if plan.is_empty() {
            return Ok(tag);
        }
        let after = catalog.apply(&plan.changes);
        let tables_changed = self
            .transaction
            .staged()
            .is_some_and(|staged| staged.steps.iter().any(|step| !step.operations.is_empty()));
        if !tables_changed {
            // Bodies over tables of the same block are compiled at their first call.
            self.check_routines(&plan, &after, source)?;
        }
        let run = self.definition_run(plan)?;
        if first {
            let staged = Staged { base: catalog, base_version: version, catalog: after, steps: vec![run] };
            self.transaction.set_staged(staged);
        } else if let Some(staged) = self.transaction.staged_mut() {
            staged.catalog = after;
            staged.steps.push(run);
        }
        Ok(tag)
    }

    /// Runs the definitions of a block that commits.
    pub(super) async fn commit_staged(&mut self, staged: Staged) -> Result<()> {
        if staged.steps.is_empty() {
            return Ok(());
        }
        let server = self.server.clone();
        let operations = staged.steps.iter().flat_map(|step| &step.operations);
        let _locks = self.lock_for_definitions(operations).await?;
        let _one_at_a_time = server.definitions.lock().await;
        if server.catalog.version() != staged.base_version {
            return Err(SqlError::new(
                SqlState::SERIALIZATION_FAILURE,
                "could not serialize access: other definitions were committed since this transaction began its own",
            ));
        }
        let after = staged.catalog.clone();
        self.run_and_publish(staged.into_run(), after).await
    }

    /// Refuses rows in a block with definitions.
    pub(crate) fn no_definitions_staged(&self) -> Result<()> {
        match self.transaction.staged() {
            Some(staged) if staged.len() > 0 => Err(rows_after_definitions()),
            _ => Ok(()),
        }
    }
}
