//! CREATE INDEX on a table of many rows: filled in slices, while everybody goes on.
//!
//! ```text
//! SHARE UPDATE EXCLUSIVE ───────────────────────────────────────────────────────────►
//!   SHARE ──────────────────►
//!            latch │ declare │ slices, each a program of its own │ latch │ complete, publish
//! ```
//!
//! Under SHARE, which waits for those who have written, the engine comes to know the index, empty: writers
//! keep it up from then on. The catalog does not know it before it is complete, as nobody in PostgreSQL
//! sees the row of an index that is being built; so no plan uses it, and what others define meanwhile is
//! planned without it. Of a unique index SHARE stays to the end: writers wait, as they do in PostgreSQL,
//! and never hear of keys of an index that is not there. At the end it is planned once more, on the
//! catalog of then.
//!
//! An index that ALTER INDEX puts elsewhere (`placement`) is built so beside the one that is there, in a tree of
//! another number: readers go on with the old one, writers keep up both. SHARE ends once a unique one is filled,
//! for the old one keeps keys apart still: who has read the table in a transaction, and is to write, waits for nobody
//! who waits for it. Then ACCESS EXCLUSIVE is asked for, and the step that completes the new one drops the old one:
//! nobody has uncommitted entries there, or a place in it, by then. The table is locked for as long as that takes,
//! and as it takes those who use it in open transactions to end.
//!
//! It changes the layout of the table, so that plans are to be made anew, those of routines too: the catalog
//! gets the table as it is once more with the declaration, and when it is given up.
//!
//! Where this ends before that the index is given up, and if the server goes down, the next start knows
//! nothing of it, but that its numbers are taken: partitions of its group are in the log.

use std::sync::Arc;
use std::time::Duration;

use archipel_engine::id::TreeId;
use archipel_engine::schema::{IndexDef, IndexPlacement};
use archipel_engine::storage::KeyBuf;
use archipel_engine::txn::{BuildStep, FillIndex, Interactive, InteractiveSavepoint};
use archipel_engine::{DdlOp, Engine, LockTag, ObjectMode, Start, Stop, Submission, SubmitOptions};
use archipel_planner::ddl::{Copies, DdlPlan};
use archipel_sql::catalog::{Catalog, CatalogChange, Object, Table};
use archipel_sql::error::{Result, SqlError};

use super::Failed;
use super::block_definition::other_definitions;
use super::latch::Scope;
use super::source::Source;
use crate::database::Database;
use crate::run::definition::DefinitionRun;
use crate::session::Session;

/// Rows of a slice: some hundred microseconds in which the partitions concerned are held.
const SLICE_ROWS: usize = 128;
/// How often indexes are given up once more, where there is no room to say so in the log.
const GIVEN_UP_AGAIN: Duration = Duration::from_secs(1);
/// How long a client waits for that.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(10);

/// An index that a plan makes.
struct Built {
    table: TreeId,
    index: IndexDef,
    /// Its number in the plan. Where that is another it is the one of the index that goes for this one.
    planned: TreeId,
}

impl Built {
    /// Whether it comes in the place of another.
    fn replaces(&self) -> bool {
        self.planned != self.index.id
    }
}

/// The indexes that a plan makes, or makes again elsewhere, and nothing else; `None` if it does more.
fn made_indexes(plan: &DdlPlan) -> Option<Vec<Built>> {
    let moved = |id: TreeId| plan.moved_indexes.iter().find(|(from, _)| *from == id).map(|(_, to)| *to);
    let mut made = Vec::new();
    for operation in &plan.operations {
        match operation {
            DdlOp::CreateIndex { table, index } => {
                let id = moved(index.id).unwrap_or(index.id);
                let (table, planned) = (*table, index.id);
                made.push(Built { table, index: IndexDef { id, ..index.clone() }, planned });
            }
            DdlOp::DropIndex { index, .. } if moved(*index).is_some() => {}
            _ => return None,
        }
    }
    (!made.is_empty() && plan.validations.is_empty()).then_some(made)
}

/// The tables of indexes, each once.
fn tables_of(indexes: &[Built]) -> Vec<TreeId> {
    let mut tables: Vec<TreeId> = indexes.iter().map(|built| built.table).collect();
    tables.sort_unstable();
    tables.dedup();
    tables
}

/// Their tables in a catalog, defined anew as they are: what was compiled for them is made anew.
fn redefined(catalog: &Catalog, indexes: &[Built]) -> Vec<CatalogChange> {
    let tables = tables_of(indexes).into_iter().filter_map(|tree| catalog.table_by_tree(tree.0));
    let again = tables.map(|table| {
        let mut table = Table::clone(&table);
        table.version += 1;
        CatalogChange::Put(Object::Table(table.into()))
    });
    again.collect()
}

/// Indexes that are declared: given up with this, if they were not completed.
struct Declared {
    engine: Engine,
    database: Arc<Database>,
    indexes: Vec<Built>,
}

impl Declared {
    fn steps(&self, step: impl Fn(&IndexDef) -> BuildStep) -> Vec<DdlOp> {
        let steps = self.indexes.iter();
        steps.map(|built| DdlOp::BuildIndex { table: built.table, step: step(&built.index) }).collect()
    }

    /// What completes them, and drops those in whose place they come.
    fn completing(&self) -> Vec<DdlOp> {
        let mut operations = self.steps(|index| BuildStep::Complete(index.id));
        let replaced = self.indexes.iter().filter(|built| built.replaces());
        operations
            .extend(replaced.map(|built| DdlOp::DropIndex { table: built.table, index: built.planned }));
        operations
    }

    fn completed(mut self) {
        self.indexes.clear();
    }

    /// What gives them up.
    fn giving_up(&self, changes: Vec<CatalogChange>) -> Submission<DefinitionRun> {
        let operations = self.steps(|index| BuildStep::GiveUp(index.id));
        let run = DefinitionRun::of_operations(self.database.oid, operations, changes);
        let start = Start::apart_if(run.goes_far(&self.engine));
        let options = SubmitOptions { start, ..SubmitOptions::default() };
        self.engine.submit(run, options)
    }

    /// Gives them up, and lets go of the locks then: before others write again who know nothing of them.
    async fn given_up(mut self, locks: Locks) {
        while !self.try_to_give_up().await {
            tokio::time::sleep(GIVEN_UP_AGAIN).await;
        }
        self.indexes.clear();
        drop(locks);
    }

    /// Whether they are given up, or there is nobody any more to whom they matter.
    async fn try_to_give_up(&self) -> bool {
        let _latch = self.database.definitions.lock().await;
        if self.database.has_ended() {
            return true;
        }
        let catalog = self.database.catalog.current().catalog.clone();
        let changes = redefined(&catalog, &self.indexes);
        let after = catalog.apply(&changes);
        let done = self.giving_up(changes).await;
        match done.outcome.result {
            Ok(()) => self.database.catalog.publish(after, &done.program.changes),
            Err(Stop::DiskFull | Stop::OutOfMemory) => return false,
            Err(_) => {}
        }
        true
    }
}

impl Drop for Declared {
    fn drop(&mut self) {
        if !self.indexes.is_empty() {
            drop(self.giving_up(Vec::new()));
        }
    }
}

/// What keeps others from a table while an index of it is built.
struct Locks {
    guard: Option<Interactive>,
    tables: Vec<TreeId>,
    /// Before SHARE was taken.
    weaker: InteractiveSavepoint,
}

impl Session {
    /// Whether a definition makes indexes of tables with many rows and does nothing else.
    pub(super) fn fills_in_slices(&self, plan: &DdlPlan) -> bool {
        let engine = &self.server.engine;
        let is_distributed = |tree: TreeId| engine.table(tree).is_some_and(|table| !table.is_reference());
        let Some(made) = made_indexes(plan) else { return false };
        let far = DefinitionRun::of_operations(self.database.oid, plan.operations.clone(), Vec::new());
        made.iter().all(|built| is_distributed(built.table)) && far.goes_far(engine)
    }

    /// Makes indexes in slices; answers the command tag, or `None` where they are made at once by now.
    pub(super) async fn build_indexes(
        &mut self,
        source: &Source,
        (first, seen): (DdlPlan, &Catalog),
    ) -> Result<Option<String>> {
        let mut locks = self.lock_for_build(&first).await?;
        let mut first = Some(first);
        let declared = loop {
            let latches = self.latch_definitions(Scope::Own).await?;
            let catalog = self.database.catalog.current().catalog.clone();
            let plan = match first.take().filter(|_| catalog.same_as(seen)) {
                Some(first) => first,
                None => self.plan_definition(source, &catalog, &Copies::default())?,
            };
            let Some(indexes) = made_indexes(&plan).filter(|_| self.fills_in_slices(&plan)) else {
                return Ok(None);
            };
            if tables_of(&indexes) != locks.tables {
                // Another table has the name by now.
                drop(latches);
                drop(locks.guard.take());
                locks = self.lock_for_build(&plan).await?;
                continue;
            }
            let (declares, after) = self.declaring(&plan, &catalog, &indexes);
            let failed = match self.run_and_publish(declares, after).await {
                Ok(()) => {
                    let (engine, database) = (self.server.engine.clone(), self.database.clone());
                    break Declared { engine, database, indexes };
                }
                Err(failed) => failed,
            };
            drop(latches);
            match failed.refused {
                Some(refused) => self.wait_at_refused(&mut locks.guard, refused).await?,
                None => return Err(failed.error),
            }
        };
        if declared.indexes.iter().all(|built| !built.index.unique) {
            self.let_writers_in(&locks).await;
        }
        let filled = match self.fill_indexes(&declared, &mut locks).await {
            Ok(()) => self.lock_replaced(&declared, &locks).await.map_err(Unfilled::from),
            Err(unfilled) => Err(unfilled),
        };
        let ended = match filled {
            Ok(()) => self.complete_indexes(source, &declared).await.map_err(Unfilled::Failed),
            Err(unfilled) => Err(unfilled),
        };
        match ended {
            Ok(tag) => {
                declared.completed();
                Ok(Some(tag))
            }
            Err(unfilled) => {
                let given_up = tokio::task::spawn_local(declared.given_up(locks));
                let _ = tokio::time::timeout(GIVEN_UP_WITHIN, given_up).await;
                self.host = None;
                let failed = match unfilled {
                    Unfilled::Duplicate(place) => self.duplicate(source, place)?,
                    Unfilled::Failed(failed) => failed,
                };
                Err(self.told(failed).await)
            }
        }
    }

    /// What declares indexes, and the catalog behind it.
    fn declaring(
        &mut self,
        plan: &DdlPlan,
        catalog: &Catalog,
        indexes: &[Built],
    ) -> (DefinitionRun, Catalog) {
        let mut changes = redefined(catalog, indexes);
        let drawn = plan.changes.iter();
        let drawn = drawn.filter(|change| matches!(change, CatalogChange::Put(Object::Numbers(_))));
        changes.extend(drawn.cloned());
        let after = catalog.apply(&changes);
        let declares = indexes.iter().map(|Built { table, index, .. }| DdlOp::BuildIndex {
            table: *table,
            step: BuildStep::Declare(index.clone()),
        });
        let declares = declares.collect();
        let run = DefinitionRun {
            host: Some(self.host()),
            stops_at_locks: true,
            ..DefinitionRun::of_operations(self.database.oid, declares, changes)
        };
        (run, after)
    }

    /// Takes the locks: the one that stays first, so that two who build indexes of one table come one
    /// after the other.
    async fn lock_for_build(&mut self, plan: &DdlPlan) -> Result<Locks> {
        let tables = tables_of(&made_indexes(plan).unwrap_or_default());
        let locks = |mode| tables.iter().map(|table| (LockTag::Table(*table), mode)).collect();
        let guard = self.lock_for_definitions(locks(ObjectMode::ShareUpdateExclusive)).await?;
        let guard = guard.ok_or_else(|| SqlError::internal("an index of no table"))?;
        let weaker = guard.savepoint();
        self.lock_also(&guard, locks(ObjectMode::Share)).await?;
        Ok(Locks { guard: Some(guard), tables, weaker })
    }

    /// Gives SHARE back.
    async fn let_writers_in(&self, locks: &Locks) {
        if let Some(guard) = &locks.guard {
            // If it cannot be, writers wait a little longer.
            let _ = self.server.engine.rollback_to(guard, locks.weaker).await;
        }
    }

    /// Waits until nobody uses indexes in whose place others come, and keeps everybody from them.
    async fn lock_replaced(&mut self, declared: &Declared, locks: &Locks) -> Result<()> {
        let replaced = declared.indexes.iter().filter(|built| built.replaces());
        let mut wanted: Vec<(LockTag, ObjectMode)> =
            replaced.map(|built| (LockTag::Table(built.table), ObjectMode::AccessExclusive)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if !wanted.is_empty() && declared.indexes.iter().any(|built| built.index.unique) {
            self.let_writers_in(locks).await;
        }
        match &locks.guard {
            Some(guard) => self.lock_also(guard, wanted).await,
            None => Ok(()),
        }
    }

    async fn fill_indexes(
        &mut self,
        declared: &Declared,
        locks: &mut Locks,
    ) -> std::result::Result<(), Unfilled> {
        for (place, Built { table, index, .. }) in declared.indexes.iter().enumerate() {
            let mut from = KeyBuf::new();
            loop {
                match self.fill_slice((*table, index.id), &from).await {
                    Ok(Some(next)) => from = next,
                    Ok(None) => break,
                    Err(Slice::Duplicate) => return Err(Unfilled::Duplicate(place)),
                    Err(Slice::Refused(refused)) => self.wait_at_refused(&mut locks.guard, refused).await?,
                    Err(Slice::Failed(error)) => return Err(error.into()),
                }
                tokio::select! {
                    biased;
                    () = self.entry().cancel_asked() => return Err(self.entry().cancel_error().into()),
                    () = tokio::task::yield_now() => {}
                }
            }
        }
        Ok(())
    }

    /// One slice; where the next begins.
    async fn fill_slice(
        &mut self,
        (table, index): (TreeId, TreeId),
        from: &KeyBuf,
    ) -> std::result::Result<Option<KeyBuf>, Slice> {
        let engine = &self.server.engine;
        let client = self.entry().engine.clone();
        // It goes with its table alone, which is locked; or the server is being stopped.
        let gone = || Slice::Failed(other_definitions());
        let meta = engine.table(table).ok_or_else(gone)?;
        let declared = meta.declared().iter().find(|declared| declared.def.id == index);
        let slice = FillIndex::new(&meta, declared.ok_or_else(gone)?, from.clone(), SLICE_ROWS);
        let options = SubmitOptions { client: Some(&client), ..SubmitOptions::default() };
        let done = self.cancellable(engine.submit(slice, options)).await;
        match (done.outcome.result, done.program.refused) {
            (Ok(()), _) => Ok(done.program.next),
            // By the definitions of now, unless somebody has asked to stop.
            (Err(Stop::Recompile), _) => Ok(Some(from.clone())),
            (Err(Stop::Abort), _) => Err(Slice::Duplicate),
            (Err(Stop::LockNotAvailable), Some(refused)) => Err(Slice::Refused(refused)),
            (Err(stop), _) => Err(Slice::Failed(self.stop_error(stop))),
        }
    }

    /// The error of two rows of one key in one of the indexes, and what tells which: planned anew, as the
    /// table was another while the indexes were declared.
    fn duplicate(&mut self, source: &Source, place: usize) -> Result<Failed> {
        let catalog = self.database.catalog.current().catalog.clone();
        let plan = self.plan_definition(source, &catalog, &Copies::default())?;
        let made = made_indexes(&plan).unwrap_or_default();
        let planned = made.get(place).ok_or_else(other_definitions)?.planned;
        let error = plan.duplicate_key(planned);
        let telling = self.definition_run(plan)?.telling_of(planned).map(Box::new);
        Ok(Failed { error, telling, refused: None })
    }

    /// Makes the indexes known, as they are planned on the catalog of now.
    async fn complete_indexes(
        &mut self,
        source: &Source,
        declared: &Declared,
    ) -> std::result::Result<String, Failed> {
        let _latches = self.latch_definitions(Scope::Own).await?;
        let catalog = self.database.catalog.current().catalog.clone();
        let plan = self.plan_definition(source, &catalog, &Copies::default())?;
        let planned = made_indexes(&plan).filter(|planned| planned.len() == declared.indexes.len());
        let pairs: Vec<(Built, &Built)> = planned.into_iter().flatten().zip(&declared.indexes).collect();
        if pairs.is_empty() || !pairs.iter().all(|(planned, declared)| are_alike(planned, declared)) {
            return Err(other_definitions().into());
        }
        self.definition_notices(&plan);
        let tag = plan.tag.to_owned();
        let changes: Vec<CatalogChange> =
            plan.changes.iter().map(|change| with_declared(change, &pairs)).collect();
        let after = catalog.apply(&changes);
        let run = DefinitionRun {
            host: Some(self.host()),
            drawn: vec![plan.drawn],
            ..DefinitionRun::of_operations(self.database.oid, declared.completing(), changes)
        };
        self.run_and_publish(run, after).await?;
        Ok(tag)
    }
}

/// Why a slice is not the last but one.
enum Slice {
    Duplicate,
    Refused(archipel_engine::Refused),
    Failed(SqlError),
}

/// Why indexes are not filled.
enum Unfilled {
    /// Two rows have one key of the index in this place.
    Duplicate(usize),
    Failed(Failed),
}

impl From<SqlError> for Unfilled {
    fn from(error: SqlError) -> Unfilled {
        Unfilled::Failed(error.into())
    }
}

impl From<SqlError> for Failed {
    fn from(error: SqlError) -> Failed {
        Failed { error, telling: None, refused: None }
    }
}

/// Whether two are the same but for their numbers.
fn are_alike(planned: &Built, declared: &Built) -> bool {
    let is_local = |index: &IndexDef| index.placement == IndexPlacement::Local;
    let goes = |built: &Built| built.replaces().then_some(built.planned);
    let same = planned.table == declared.table && goes(planned) == goes(declared);
    let (planned, declared) = (&planned.index, &declared.index);
    same && is_local(planned) == is_local(declared)
        && *planned == IndexDef { id: planned.id, placement: planned.placement, ..declared.clone() }
}

/// A change with the numbers of the indexes that are there in the places of those that were planned.
fn with_declared(change: &CatalogChange, pairs: &[(Built, &Built)]) -> CatalogChange {
    let CatalogChange::Put(Object::Table(table)) = change else { return change.clone() };
    let mut table = Table::clone(table);
    for index in &mut table.indexes {
        let Some((_, declared)) = pairs.iter().find(|(built, _)| built.planned.0 == index.tree) else {
            continue;
        };
        let declared = &declared.index;
        index.tree = declared.id.0;
        index.global_group = match declared.placement {
            IndexPlacement::Local => None,
            IndexPlacement::Global { group } => Some(group.0),
        };
    }
    CatalogChange::Put(Object::Table(table.into()))
}
