//! Definitions inside BEGIN … COMMIT.
//!
//! Each is planned on a catalog that already shows the earlier ones, which only this session
//! sees; COMMIT writes the catalog rows and the transaction's own rows in one commit.
//!
//! Tables made in the block are made in the engine at once. Nobody else can name them, so
//! nobody else sees them: rows may be written and read, and the tables may be changed again,
//! which puts their rows in place early (the engine's `early`). ROLLBACK drops them, and so
//! does the next start if the server goes down before COMMIT.
//!
//! A definition that changes how the rows of a table are stored that was there before gives the
//! block a copy of the table in its new form, as PostgreSQL gives a rewritten table a new file.
//! The block locks the table against everybody else, and then the copy is a table made in the
//! block like any other: its rows may be read, written and changed again. COMMIT drops the
//! original, ROLLBACK the copy.
//!
//! A sequence that is changed is another one in the block, too.
//!
//! What leaves the rows alone (a name, a default, an index, a constraint) waits for COMMIT.

use std::sync::Arc;

use archipel_engine::id::{Epoch, TreeId};
use archipel_engine::txn::{Commit, SettleEarly};
use archipel_engine::{DdlOp, Interactive, LockTables, LockWait, ObjectMode, Start, Stop, SubmitOptions};
use archipel_planner::ddl::Copies;
use archipel_planner::native::CompiledRoutine;
use archipel_sql::catalog::{Catalog, CatalogChange, Table, TableRef};
use archipel_sql::error::{Result, SqlError, SqlState};

use super::latch::Scope;
use super::lock::weaker_mode;
use super::operations::{Made, changes_something, keeps_rows, made_by, tables_of, trees_of_made};
use super::rebase::{Apart, rebased};
use super::source::Source;
use super::staged::{Staged, Step, rows_after_definition, split, take_copies};
use crate::run::definition::{CommitWithDefinitions, DefinitionRun};
use crate::session::Session;
use crate::statement::{Code, RowPlan};

pub(super) fn other_definitions() -> SqlError {
    SqlError::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access: other definitions were committed since this transaction began its own",
    )
}

impl Session {
    /// Begins a block's definitions on the newest catalog; also anew, if there are none yet.
    async fn begin_staging(&mut self) {
        if let Some(staged) = self.transaction.staged_mut() {
            let current = self.database.catalog.current();
            if staged.steps().is_empty() && staged.base_version != current.version {
                staged.base = current.catalog.clone();
                staged.base_version = current.version;
                staged.state = current;
                self.host = None;
            }
            return;
        }
        let open = self.database.open_blocks.enter().await;
        let current = self.database.catalog.current();
        self.transaction.set_staged(Staged::on(current, open));
    }

    /// Takes the locks of a definition for the rest of the block; what it is about may be another
    /// thing when they are granted.
    async fn lock_for_staging(&mut self, source: &Source, weaker: Option<ObjectMode>) -> Result<()> {
        let catalog = self.catalog_state().catalog.clone();
        let plan = self.plan_definition(source, &catalog, &Copies::default())?;
        let named = self.named_table(source);
        let Some(staged) = self.transaction.staged() else { return Ok(()) };
        let private = staged.private(&plan.operations);
        let others = plan.operations.iter().zip(private).filter(|(_, private)| !private);
        let wanted = self.locks_of(others.map(|(operation, _)| (operation, weaker)), named);
        self.lock_in_block(wanted).await
    }

    /// Adds a definition to the block's.
    pub(in crate::session) async fn stage_definition(&mut self, source: &Source) -> Result<String> {
        let weaker = weaker_mode(source);
        self.begin_staging().await;
        self.lock_for_staging(source, weaker).await?;
        self.begin_staging().await;
        let catalog = self.catalog_state().catalog.clone();
        let mut plan = self.plan_definition(source, &catalog, &Copies::default())?;
        let copied = self.to_be_copied(&plan.operations);
        if !copied.tables.is_empty() {
            self.lock_for_copies(&copied.tables).await?;
        }
        if !copied.is_empty() {
            plan = self.plan_definition(source, &catalog, &copied)?;
        }
        self.definition_notices(&plan);
        let tag = plan.tag.to_owned();
        if plan.is_empty() {
            return Ok(tag);
        }
        let after = catalog.apply(&plan.changes);
        let Some(staged) = self.transaction.staged() else { return Ok(tag) };
        let (private, added_before) = (staged.private(&plan.operations), staged.added_labels());
        let waits = staged.steps().iter().any(|step| !step.changing.is_empty())
            || copied.tables.is_empty()
                && private.contains(&false)
                && !tables_of(plan.operations.iter(), &catalog, &self.server.engine).is_empty();
        if !waits {
            // Bodies over tables whose definition waits are compiled at their first call.
            self.check_routines(&plan, &after, source)?;
        }
        let mut added_labels = std::mem::take(&mut plan.added_labels);
        let moved = plan.relabelled.iter().filter(|(from, _)| added_before.contains(from));
        added_labels.extend(moved.map(|(_, to)| *to));
        let (now, later) = split(self.definition_run(plan)?, &private);
        // What COMMIT would find is told now, to who can still catch it; and which key is met twice,
        // before the rows are held.
        let early = now.as_ref().map_or_else(|| later.validated(), DefinitionRun::looking_for_duplicates);
        if let Some(early) = early {
            self.make_early(early).await?;
        }
        let mut step = Step {
            made: Vec::new(),
            dropped: Vec::new(),
            changing: tables_of(later.ddl(), &catalog, &self.server.engine),
            copied: copied.tables,
            added_labels,
            weaker,
            run: later,
        };
        step.changing.retain(|(tree, _)| !step.copied.contains(tree));
        if let Some(now) = now {
            (step.made, step.dropped) = made_by(now.ddl());
            self.make_early(now).await?;
        }
        let database = self.database.clone();
        self.host = None;
        // A transaction that begins later begins with all of them.
        if let Some(open) = self.transaction.interactive() {
            open.own(trees_of_made(&step.made));
        }
        if let Some(staged) = self.transaction.staged_mut() {
            let mut labels = staged.added_labels();
            labels.extend(&step.added_labels);
            staged.add(step, database.catalog.private(after, labels));
        }
        Ok(tag)
    }

    /// The tables that were there before and whose rows these operations rewrite, and the sequences
    /// that they change.
    fn to_be_copied(&self, operations: &[DdlOp]) -> Copies {
        let mut copied = Copies::default();
        let Some(staged) = self.transaction.staged() else { return copied };
        let private = staged.private(operations);
        for (operation, private) in operations.iter().zip(private) {
            match operation {
                DdlOp::AlterTable { def, .. }
                    if !private
                        && !copied.tables.contains(&def.id)
                        && !keeps_rows(operation, &self.server.engine) =>
                {
                    copied.tables.push(def.id);
                }
                // What the block has drawn before comes back with a savepoint.
                DdlOp::AlterSequence { def, .. } => copied.sequences.push(def.id),
                _ => {}
            }
        }
        copied
    }

    /// Locks tables against everybody else, to the end of the block.
    async fn lock_for_copies(&mut self, tables: &[TreeId]) -> Result<()> {
        self.enter_transaction(false);
        for &table in tables {
            let program = LockTables::new(vec![table], ObjectMode::AccessExclusive, LockWait::Wait);
            let client = self.entry().engine.clone();
            let options = SubmitOptions {
                transaction: self.transaction.interactive(),
                client: Some(&client),
                ..SubmitOptions::default()
            };
            let submission = self.server.engine.submit(program, options);
            match self.cancellable(submission).await.outcome.result {
                Ok(()) => {}
                Err(Stop::Recompile) => return Err(other_definitions()),
                Err(stop) => return Err(self.stop_error(stop)),
            }
        }
        // What was planned on must be what is copied.
        let Some(staged) = self.transaction.staged() else { return Ok(()) };
        let current = self.database.catalog.current();
        let is_current = |table: &TableRef| {
            let now = current.catalog.table_by_oid(table.oid);
            now.is_some_and(|now| Arc::ptr_eq(table, &now) || *table == now)
        };
        let mut planned_on = staged.base.tables().filter(|table| tables.contains(&TreeId(table.tree)));
        if planned_on.all(is_current) { Ok(()) } else { Err(other_definitions()) }
    }

    /// Runs operations on what the block made, with the block's rows of it in place.
    async fn make_early(&mut self, mut run: DefinitionRun) -> Result<()> {
        let changes_something = changes_something(run.ddl());
        let trees = self.transaction.staged().map(|staged| staged.own_trees().clone()).unwrap_or_default();
        // What is yet to be written is looked at when it is computed.
        let (foreseen, validations): (Vec<_>, Vec<_>) =
            std::mem::take(&mut run.validations).into_iter().partition(|of| !of.written.is_empty());
        run.validations = foreseen;
        let open = self.transaction.take_interactive();
        self.beside.set(open.as_ref().map(Interactive::id));
        for described in &mut run.operations {
            if let DdlOp::CopyTable { reader, .. } = &mut described.operation {
                *reader = open.as_ref().map(Interactive::copies);
            }
        }
        let done = async {
            if let Some(open) = &open
                && changes_something
                && !trees.is_empty()
            {
                let settle = SettleEarly::new(open, trees);
                let start = Start::apart_if(open.ends_apart());
                let options = SubmitOptions { start, ..SubmitOptions::default() };
                let settled = self.server.engine.submit(settle, options).await;
                settled.outcome.result.map_err(|stop| self.stop_error(stop))?;
            }
            if !validations.is_empty() {
                // They read rows that the block wrote elsewhere, too.
                let validating = DefinitionRun { validations, ..run.beside() };
                self.run_definitions(validating, open.as_ref()).await?;
            }
            let Some(copies) = take_copies(&mut run) else {
                if run.operations.is_empty() && run.changes.is_empty() {
                    return Ok(());
                }
                let run = self.foresee_definitions(run, open.as_ref()).await?;
                return self.run_definitions(run, None).await;
            };
            let made = made_by(copies.ddl()).0;
            let drop = |made: &Made| match made {
                Made::Table { id, .. } => Some(DdlOp::DropTable(*id)),
                _ => None,
            };
            let operations: Vec<DdlOp> = made.iter().filter_map(drop).collect();
            self.run_definitions(copies, None).await?;
            if let Some(open) = &open {
                open.own(trees_of_made(&made));
            }
            let ran = match self.foresee_definitions(run, open.as_ref()).await {
                Ok(run) => self.run_definitions(run, None).await,
                Err(error) => Err(error),
            };
            if ran.is_err() {
                let drop = DefinitionRun::of_operations(self.database.oid, operations, Vec::new());
                // What an error leaves is dropped at the next start.
                let start = Start::apart_if(drop.goes_far(&self.server.engine));
                let options = SubmitOptions { start, ..SubmitOptions::default() };
                let _ = self.server.engine.submit(drop, options).await;
            }
            ran
        }
        .await;
        self.beside.set(None);
        self.transaction.put_interactive(open);
        if changes_something {
            self.freeze_savepoints();
        }
        done
    }

    /// ROLLBACK TO: takes back all definitions after the first `count`.
    pub(in crate::session) async fn take_back_definitions(&mut self, count: usize) -> Result<()> {
        let Some(staged) = self.transaction.staged() else { return Ok(()) };
        if staged.len() <= count {
            return Ok(());
        }
        let operations = staged.drops(count);
        if !operations.is_empty() {
            let run = DefinitionRun::of_operations(self.database.oid, operations, Vec::new());
            self.run_definitions(run, None).await?;
        }
        let database = self.database.clone();
        self.host = None;
        if let Some(staged) = self.transaction.staged_mut() {
            staged.keep(count);
            let changes: Vec<CatalogChange> =
                staged.steps().iter().flat_map(|step| step.run.changes.iter().cloned()).collect();
            staged.state = database.catalog.private(staged.base.apply(&changes), staged.added_labels());
        }
        Ok(())
    }

    /// Takes back what a block made in the engine. Nobody knows it, so nobody waits for this;
    /// what an error leaves is dropped at the next start.
    pub(in crate::session) async fn drop_made(&mut self, staged: Staged) {
        let operations = staged.drops(0);
        if operations.is_empty() {
            return;
        }
        let run = DefinitionRun::of_operations(self.database.oid, operations, Vec::new());
        let start = Start::apart_if(run.goes_far(&self.server.engine));
        let options = SubmitOptions { start, ..SubmitOptions::default() };
        let done = self.server.engine.submit(run, options).await;
        if let Err(stop) = done.outcome.result {
            tracing::warn!("tables of a transaction that was rolled back could not be dropped: {stop:?}");
        }
    }

    /// COMMIT of a block with definitions: its rows and its definitions, or nothing. Answers when.
    pub(in crate::session) async fn commit_staged(
        &mut self,
        staged: Staged,
        open: Option<Interactive>,
    ) -> Result<Epoch> {
        let server = self.server.clone();
        let undo = staged.drops(0);
        let committed = self.commit_latched(staged, open.as_ref()).await;
        if committed.is_err() {
            if let Some(open) = &open {
                server.engine.rollback(open).await;
            }
            if !undo.is_empty() {
                let run = DefinitionRun::of_operations(self.database.oid, undo, Vec::new());
                let start = Start::apart_if(run.goes_far(&server.engine));
                let options = SubmitOptions { start, ..SubmitOptions::default() };
                let _ = server.engine.submit(run, options).await;
            }
        }
        committed
    }

    /// Takes the locks and the latch of definitions, and commits.
    async fn commit_latched(&mut self, mut staged: Staged, open: Option<&Interactive>) -> Result<Epoch> {
        let database = self.database.clone();
        // Nobody comes in before it is known by its new name.
        let _doors = std::mem::take(&mut staged.doors);
        let operations = staged.steps().iter().flat_map(|step| {
            let weaker = step.weaker;
            step.run.ddl().map(move |operation| (operation, weaker))
        });
        let wanted = self.locks_of(operations, None);
        let _locks = self.lock_for_definitions(wanted).await?;
        let scope = Scope::of_changes(staged.steps().iter().flat_map(|step| &step.run.changes));
        let _latches = self.latch_definitions(scope).await?;
        if scope == Scope::All {
            // Nobody was kept from giving them something since they were looked for.
            let changes = staged.steps().iter().flat_map(|step| &step.run.changes);
            archipel_planner::ddl::require_unused_roles(changes, &staged.base, &self.other_catalogs())?;
        }
        let current = database.catalog.current();
        let (base, own) = (staged.base.clone(), staged.state.catalog.clone());
        let unchanged = current.version == staged.base_version;
        let mut run = staged.into_run();
        let after = match unchanged {
            true => own,
            false => {
                let mut changes = std::mem::take(&mut run.changes);
                let after = rebased(&base, &own, &current.catalog, &mut changes, run.ddl());
                run.changes = changes;
                after.map_err(|apart| match apart {
                    Apart::SameName(error) => *error,
                    Apart::Changed => other_definitions(),
                })?
            }
        };
        self.commit_all(run, open, after).await
    }

    async fn commit_all(
        &mut self,
        definitions: DefinitionRun,
        open: Option<&Interactive>,
        after: Catalog,
    ) -> Result<Epoch> {
        let server = self.server.clone();
        let changes = definitions.changes.clone();
        let program = CommitWithDefinitions { commit: open.map(Commit::of), definitions };
        let client = self.entry().engine.clone();
        // What a transaction has written may be much, too.
        let start = Start::apart_if(
            open.is_some_and(Interactive::ends_apart) || program.definitions.goes_far(&server.engine),
        );
        let options = SubmitOptions { client: Some(&client), start, ..SubmitOptions::default() };
        let mut completed = self.cancellable(server.engine.submit(program, options)).await;
        self.depend_on(completed.outcome.depends_on);
        self.tell_notices(std::mem::take(&mut completed.program.definitions.notices));
        if let Err(stop) = completed.outcome.result {
            return Err(completed.program.definitions.error.unwrap_or_else(|| self.stop_error(stop)));
        }
        self.database.catalog.publish(after, &changes);
        self.database.routines.forget_changed(&changes);
        self.server.databases.take_up_names(&changes);
        self.host = None;
        Ok(completed.outcome.depends_on)
    }

    /// Refuses rows of tables whose new definition waits for COMMIT.
    pub(in crate::session) fn require_settled(&self, plan: &RowPlan) -> Result<()> {
        let Some(staged) = self.transaction.staged() else { return Ok(()) };
        for (tree, name) in staged.steps().iter().flat_map(|step| &step.changing) {
            let (tables, accesses) = match &plan.code {
                Code::Native(compiled) => (&compiled.tables[..], &compiled.accesses[..]),
                Code::Call(call) => (&[][..], call.program.accesses()),
                Code::Trigger(trigger) => (&[][..], trigger.function.accesses()),
            };
            // Another table may have the name by now, made in the same transaction.
            let renewed = || {
                let mut tables = staged.state.catalog.tables();
                tables.any(|table| table.name == *name && staged.own_trees().contains(&TreeId(table.tree)))
            };
            let touched = tables.iter().any(|(table, _)| table == tree)
                || accesses.iter().any(|access| access.table == *name) && !renewed();
            if touched {
                return Err(rows_after_definition(name));
            }
        }
        Ok(())
    }

    /// As [`Session::require_settled`], for a table.
    pub(in crate::session) fn require_settled_table(&self, table: &Table) -> Result<()> {
        let Some(staged) = self.transaction.staged() else { return Ok(()) };
        let mut changing = staged.steps().iter().flat_map(|step| &step.changing);
        match changing.find(|(tree, _)| tree.0 == table.tree) {
            Some((_, name)) => Err(rows_after_definition(name)),
            None => Ok(()),
        }
    }
}

impl Session {
    /// Lets a block see what others have defined meanwhile, if its own definitions bear that.
    pub(in crate::session) fn see_definitions(&mut self) {
        if self.transaction.staged().is_none() {
            return;
        }
        let database = self.database.clone();
        if self.transaction.staged_mut().is_some_and(|staged| staged.rebase(&database)) {
            self.host = None;
        }
    }
}
