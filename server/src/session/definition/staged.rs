//! The definitions of a block so far ([`super::block_definition`]).

use std::sync::Arc;

use archipel_engine::id::TreeId;
use archipel_engine::{DdlOp, ObjectMode};
use archipel_sql::catalog::{Catalog, CatalogChange};
use archipel_sql::error::SqlError;
use archipel_sql::types::Oid;
use rustc_hash::FxHashSet;

use super::operations::{Made, MadeObjects, changes_one_of, trees_of_made};
use super::rebase::rebased;
use crate::catalog::CatalogState;
use crate::database::Database;
use crate::database::door::Shut;
use crate::design::OpenBlock;
use crate::run::definition::DefinitionRun;

/// The definitions of a block so far.
pub(in crate::session) struct Staged {
    /// The catalog the block began on, and its number.
    pub(super) base: Catalog,
    pub(super) base_version: u64,
    /// The newest that it was tried to put the definitions on.
    pub(super) seen: u64,
    /// With the definitions so far.
    pub(super) state: Arc<CatalogState>,
    /// The definitions, in their order; [`Staged::add`] and [`Staged::keep`] alone change how many they are.
    steps: Vec<Step>,
    /// What all of them have made: every definition asks for it.
    made: MadeObjects,
    /// The doors of the databases that it gives other names, shut until it ends.
    pub(super) doors: Vec<Shut>,
    /// The server defines nothing of its own accord before it ends.
    pub(super) _open: OpenBlock,
}

/// One definition.
pub(super) struct Step {
    /// What COMMIT runs: catalog rows, and operations on tables that were there before.
    pub(super) run: DefinitionRun,
    /// What it made in the engine already.
    pub(super) made: Vec<Made>,
    /// Tables made in the block that it dropped.
    pub(super) dropped: Vec<TreeId>,
    /// Tables whose definition changes at COMMIT: tree and name.
    pub(super) changing: Vec<(TreeId, String)>,
    /// Tables that the block has a copy of from here on.
    pub(super) copied: Vec<TreeId>,
    /// The labels it gave to enums.
    pub(super) added_labels: Vec<Oid>,
    /// What it needs of a table to which it only adds, if that is less than all.
    pub(super) weaker: Option<ObjectMode>,
}

impl Staged {
    /// Without a definition yet, on a catalog and its state.
    pub(super) fn on(state: Arc<CatalogState>, open: OpenBlock) -> Staged {
        Staged {
            base: state.catalog.clone(),
            base_version: state.version,
            seen: state.version,
            state,
            steps: Vec::new(),
            made: MadeObjects::default(),
            doors: Vec::new(),
            _open: open,
        }
    }

    /// The definitions, in their order.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Adds a definition, and says what the catalog is with it.
    pub(super) fn add(&mut self, step: Step, state: Arc<CatalogState>) {
        self.made.add(&step.made);
        self.steps.push(step);
        self.state = state;
    }

    /// Takes back all definitions but the first `count`.
    pub(super) fn keep(&mut self, count: usize) {
        self.steps.truncate(count);
        self.made = MadeObjects::default();
        self.steps.iter().for_each(|step| self.made.add(&step.made));
    }

    /// How many definitions there are, for savepoints.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// The catalog with the definitions so far.
    pub fn catalog_state(&self) -> &Arc<CatalogState> {
        &self.state
    }

    pub(super) fn added_labels(&self) -> Vec<Oid> {
        self.steps.iter().flat_map(|step| step.added_labels.iter().copied()).collect()
    }

    /// The tables made in the block, with their indexes.
    pub fn own_trees(&self) -> &Arc<FxHashSet<TreeId>> {
        &self.made.trees
    }

    /// Whether one of the definitions after the first `count` has made this table.
    pub fn made_since(&self, count: usize, table: TreeId) -> bool {
        let made = self.steps.iter().skip(count).flat_map(|step| &step.made);
        trees_of_made(made).contains(&table)
    }

    /// For each operation, whether it is about what the block made, or makes.
    pub(super) fn private(&self, operations: &[DdlOp]) -> Vec<bool> {
        let mut made = MadeObjects::default();
        let is_private = |operation: &DdlOp| match operation {
            DdlOp::CreateTable(def) | DdlOp::CopyTable { def, .. } => {
                made.add(&[Made::Table { id: def.id, indexes: Vec::new() }]);
                true
            }
            DdlOp::CreateSequence(def) => {
                made.add(&[Made::Sequence(def.id)]);
                true
            }
            DdlOp::DropTable(table)
            | DdlOp::Truncate(table)
            | DdlOp::CreateIndex { table, .. }
            | DdlOp::DropIndex { table, .. } => self.made.has_tree(*table) || made.has_tree(*table),
            DdlOp::AlterTable { def, .. } => self.made.has_tree(def.id) || made.has_tree(def.id),
            DdlOp::CatchUp { .. } | DdlOp::BuildIndex { .. } => false,
            DdlOp::AlterSequence { def, .. } => self.made.has_sequence(def.id) || made.has_sequence(def.id),
            // It may come back with a savepoint.
            DdlOp::DropSequence(_) => false,
        };
        operations.iter().map(is_private).collect()
    }

    /// What takes back the tables and sequences of the steps after the first `count`.
    pub(super) fn drops(&self, count: usize) -> Vec<DdlOp> {
        let dropped: FxHashSet<TreeId> =
            self.steps.iter().flat_map(|step| step.dropped.iter().copied()).collect();
        let made = self.steps.iter().skip(count).flat_map(|step| &step.made).rev();
        made.filter_map(|made| match made {
            Made::Table { id, .. } => (!dropped.contains(id)).then_some(DdlOp::DropTable(*id)),
            Made::Sequence(id) => Some(DdlOp::DropSequence(*id)),
            // It goes with its table: savepoints between the two cannot be gone back to.
            Made::Index(_) => None,
        })
        .collect()
    }

    /// Lets the definitions stand on the newest catalog, where they have nothing to do with what others
    /// have defined meanwhile. Whether it is another catalog now.
    pub(in crate::session) fn rebase(&mut self, database: &Database) -> bool {
        let current = database.catalog.current();
        if std::mem::replace(&mut self.seen, current.version) == current.version {
            return false;
        }
        let changes = self.steps.iter().flat_map(|step| &step.run.changes);
        let mut changes: Vec<CatalogChange> = changes.cloned().collect();
        let operations = self.steps.iter().flat_map(|step| step.run.ddl());
        let own = self.state.catalog.clone();
        let Ok(after) = rebased(&self.base, &own, &current.catalog, &mut changes, operations) else {
            return false;
        };
        let mut adapted = changes.into_iter();
        for step in &mut self.steps {
            let count = step.run.changes.len();
            step.run.changes = adapted.by_ref().take(count).collect();
        }
        (self.base, self.base_version) = (current.catalog.clone(), current.version);
        self.state = database.catalog.private(after, self.added_labels());
        true
    }

    pub(super) fn into_run(self) -> DefinitionRun {
        let database = self.state.catalog.database_oid();
        let mut run = DefinitionRun::of_changes(database, Vec::new());
        let copied: FxHashSet<TreeId> =
            self.steps.iter().flat_map(|step| step.copied.iter().copied()).collect();
        for step in self.steps {
            run.validations.extend(step.run.validations);
            // The copy of a table has had what was to happen to the original.
            let operations = step.run.operations.into_iter();
            run.operations
                .extend(operations.filter(|described| !changes_one_of(&described.operation, &copied)));
            run.changes.extend(step.run.changes);
            run.drawn.extend(step.run.drawn);
            run.host = step.run.host.or(run.host);
        }
        run
    }
}

/// Takes apart what runs now, the validations with it, and what waits for COMMIT.
pub(super) fn split(run: DefinitionRun, now: &[bool]) -> (Option<DefinitionRun>, DefinitionRun) {
    if !now.contains(&true) {
        return (None, run);
    }
    let mut early = run.beside();
    let mut late = run.beside();
    let DefinitionRun { validations, operations, changes, drawn, .. } = run;
    (early.validations, late.changes, late.drawn) = (validations, changes, drawn);
    for (described, now) in operations.into_iter().zip(now) {
        let run = if *now { &mut early } else { &mut late };
        run.operations.push(described);
    }
    (Some(early), late)
}

/// Takes the copies out of a run that computes values for their rows, or looks at them: the copies must be
/// there before it begins.
pub(super) fn take_copies(run: &mut DefinitionRun) -> Option<DefinitionRun> {
    if !run.foresees() {
        return None;
    }
    let mut copies = run.beside();
    let operations = std::mem::take(&mut run.operations).into_iter();
    (copies.operations, run.operations) =
        operations.partition(|described| matches!(described.operation, DdlOp::CopyTable { .. }));
    // What looks at the rows as they will be comes after the copies.
    let queries =
        copies.operations.iter_mut().flat_map(|described| std::mem::take(&mut described.duplicated));
    let queries: Vec<_> = queries.collect();
    if let Some(first) = run.operations.first_mut() {
        first.duplicated.extend(queries);
    }
    (!copies.operations.is_empty()).then_some(copies)
}

/// The error of reading or writing rows of a table whose new definition waits for COMMIT.
pub(super) fn rows_after_definition(table: &str) -> SqlError {
    SqlError::unsupported(format_args!(
        "reading or writing table \"{table}\" after changing its definition in the same transaction"
    ))
    .with_hint("Commit the definition first.")
}
