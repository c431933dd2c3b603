//! A definition as an engine program: it claims the groups of its tables, checks the rows that are there
//! and those that it is to write, changes the engine's tables and the catalog's rows, and so has both in
//! one redo group.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::computed_value::ComputedRun;
use archipel_engine::id::TreeId;
use archipel_engine::txn::{BuildStep, Commit};
use archipel_engine::{
    CATALOG_TREE, ClaimSet, DdlOp, Engine, Inserted, Program, REFERENCE_GROUP, Refused, RoutingTable, Stop,
    Txn,
};
use archipel_planner::ddl::{FaultyKey, WrittenPart};
use archipel_planner::native::{CompiledStatement, ExecContext, ExecResult, Notice, RowSink, RunOf};
use archipel_sql::catalog::{CatalogChange, DrawnOids};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;
use archipel_sql::interrupt::Watch;
use archipel_sql::stack::Depth;
use archipel_sql::types::{Oid, Type};
use parking_lot::Mutex;

use super::catalog_rows::{apply, drop_rows};
use super::{budget_of, if_in_time, panic_error, require_silence, stop_with};
use crate::session::host::Host;

/// Over as many rows, a definition takes no longer than making a thread for it is worth.
const ROWS_ON_THE_SPOT: u64 = 4_000;

/// A query that must answer no row, and the error if it does.
pub struct ValidationRun {
    pub query: CompiledStatement,
    pub error: SqlError,
    pub key: Option<FaultyKey>,
    /// The relations of rows that are to be written which it names, in the order of its registers.
    pub written: Vec<WrittenRows>,
    /// Whether it is about each of those rows by itself.
    pub each: bool,
    /// The rows of each relation, once they are computed, as an array.
    pub rows: Mutex<Vec<Datum>>,
}

/// Some columns of rows that are to be written.
pub struct WrittenRows {
    pub types: Vec<Type>,
    pub parts: Vec<WrittenPart>,
}

/// How much of a definition a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// It computes values and looks at rows, and keeps what it has computed.
    Foresight,
    /// It looks at rows, those that were computed before among them.
    Look,
}

/// An operation of the engine, and what belongs to it.
pub struct Described {
    pub operation: DdlOp,
    /// The errors if it meets two rows of one key: in the table's rows, the first, and in each of
    /// its indexes.
    pub duplicates: Vec<(TreeId, SqlError)>,
    /// What tells such a key, in some of them.
    pub duplicated: Vec<(TreeId, Arc<ValidationRun>)>,
    /// The columns to compute before it.
    pub computed: Vec<ComputedRun>,
}

impl From<DdlOp> for Described {
    fn from(operation: DdlOp) -> Described {
        Described { operation, duplicates: Vec::new(), duplicated: Vec::new(), computed: Vec::new() }
    }
}

/// See the module's head.
pub struct DefinitionRun {
    pub validations: Vec<Arc<ValidationRun>>,
    pub operations: Vec<Described>,
    /// The database whose changes these are, but for those of what all databases share.
    pub database: Oid,
    /// Whether all rows of that database go before the changes are made.
    pub drops_database: bool,
    pub changes: Vec<CatalogChange>,
    /// The oids of what it makes; nobody else draws them before the changes are published.
    pub drawn: Vec<DrawnOids>,
    /// For the validations; a first start has none.
    pub host: Option<Arc<Host>>,
    pub error: Option<SqlError>,
    /// Where two rows of one key were met.
    pub met: Option<TreeId>,
    /// Whether it ends where somebody has locked what it reads or locks, instead of waiting.
    pub stops_at_locks: bool,
    /// What it has ended at so.
    pub refused: Option<Refused>,
    pub extent: Extent,
    /// The operations with what has been computed for them, of a run that only does that.
    pub foreseen: Option<Vec<DdlOp>>,
    /// What functions said that it called; for the client.
    pub notices: Vec<Notice>,
    /// Whether it stops where it keeps its thread for too long: who has submitted it begins it anew
    /// apart.
    pub begins_anew: bool,
}

impl ValidationRun {
    /// Runs the query: its error, if it answers a row.
    fn run(&self, host: &Host, txn: &mut Txn<'_>, notices: &mut Vec<Notice>) -> ExecResult<()> {
        let functions = FunctionContext { now: txn.started_at(), session: host };
        let mut context = ExecContext::new(txn, functions, host);
        context.run_of = RunOf::Bulk;
        let looked = self.run_in(&mut context).and_then(|()| require_silence(&context));
        notices.append(&mut context.notices);
        looked
    }

    /// The same in a context that is there. Rows that were never computed are not looked at.
    pub(super) fn run_in(&self, context: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        let rows = self.rows.lock().clone();
        if rows.len() < self.written.len() { Ok(()) } else { self.run_over(context, rows) }
    }

    /// The same over these rows.
    pub(super) fn run_over(&self, context: &mut ExecContext<'_, '_>, rows: Vec<Datum>) -> ExecResult<()> {
        context.variables = rows;
        let mut found = FoundRow(None);
        self.query.run(context, &mut found)?;
        let Some(row) = found.0 else { return Ok(()) };
        let error = self.error.clone();
        Err(match &self.key {
            Some(key) => error.with_detail(key.detail(&row)),
            None => error,
        }
        .into())
    }
}

struct FoundRow(Option<Vec<Datum>>);

impl RowSink for FoundRow {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.0 = Some(row.to_vec());
        Ok(ControlFlow::Break(()))
    }
}

impl DefinitionRun {
    /// A run that only writes catalog rows, of this database and of what all share.
    pub fn of_changes(database: Oid, changes: Vec<CatalogChange>) -> DefinitionRun {
        DefinitionRun {
            validations: Vec::new(),
            operations: Vec::new(),
            database,
            drops_database: false,
            changes,
            drawn: Vec::new(),
            host: None,
            error: None,
            met: None,
            stops_at_locks: false,
            refused: None,
            extent: Extent::Whole,
            foreseen: None,
            notices: Vec::new(),
            begins_anew: false,
        }
    }

    /// A run of operations that say all there is to say, and of catalog rows.
    pub fn of_operations(
        database: Oid,
        operations: Vec<DdlOp>,
        changes: Vec<CatalogChange>,
    ) -> DefinitionRun {
        let operations = operations.into_iter().map(Described::from).collect();
        DefinitionRun { operations, ..DefinitionRun::of_changes(database, changes) }
    }

    /// A run that does nothing yet, of the same database and session.
    pub fn beside(&self) -> DefinitionRun {
        DefinitionRun { host: self.host.clone(), ..DefinitionRun::of_changes(self.database, Vec::new()) }
    }

    /// A run that looks whether the rows which are there allow for this one; `None` if all do.
    pub fn validated(&self) -> Option<DefinitionRun> {
        let queries = self.validations.iter().chain(self.duplicated().map(|(_, query)| query));
        self.of_queries(queries.cloned().collect())
    }

    /// A run that looks for keys that this one would meet twice; `None` if it cannot.
    pub fn looking_for_duplicates(&self) -> Option<DefinitionRun> {
        self.of_queries(self.duplicated().map(|(_, query)| query.clone()).collect())
    }

    /// A run that tells which key this one has met twice; `None` if it has met none, or cannot tell.
    pub fn telling(&self) -> Option<DefinitionRun> {
        self.telling_of(self.met?)
    }

    /// The same of a tree that has met one.
    pub fn telling_of(&self, met: TreeId) -> Option<DefinitionRun> {
        let of_met = self.duplicated().filter(|(tree, _)| *tree == met);
        self.of_queries(of_met.map(|(_, query)| query.clone()).collect())
    }

    fn duplicated(&self) -> impl Iterator<Item = &(TreeId, Arc<ValidationRun>)> {
        self.operations.iter().flat_map(|described| &described.duplicated)
    }

    fn of_queries(&self, validations: Vec<Arc<ValidationRun>>) -> Option<DefinitionRun> {
        let run = DefinitionRun { extent: Extent::Look, ..self.beside() };
        (!validations.is_empty()).then_some(DefinitionRun { validations, ..run })
    }

    /// Whether it goes over many rows or lets them go: then it runs on a thread of its own, and an
    /// executor's goes on with its sessions.
    pub fn goes_far(&self, engine: &Engine) -> bool {
        let of_operations = self.ddl().filter_map(|operation| match operation {
            DdlOp::DropTable(table)
            | DdlOp::Truncate(table)
            | DdlOp::CreateIndex { table, .. }
            | DdlOp::BuildIndex { table, step: BuildStep::GiveUp(_) }
            | DdlOp::DropIndex { table, .. } => Some(*table),
            DdlOp::AlterTable { def, .. } => Some(def.id),
            DdlOp::CopyTable { from, .. } | DdlOp::CatchUp { from, .. } => Some(*from),
            DdlOp::CreateTable(_)
            | DdlOp::BuildIndex { .. }
            | DdlOp::CreateSequence(_)
            | DdlOp::AlterSequence { .. }
            | DdlOp::DropSequence(_) => None,
        });
        let of_queries = self.validations.iter().flat_map(|validation| &validation.query.tables);
        let mut tables = of_operations.chain(of_queries.map(|(table, _)| *table));
        tables.any(|table| engine.rows_at_most(table) > ROWS_ON_THE_SPOT)
    }

    /// The operations alone.
    pub fn ddl(&self) -> impl Iterator<Item = &DdlOp> {
        self.operations.iter().map(|described| &described.operation)
    }

    /// What is left to do after a run that has only computed and looked.
    pub fn after_foresight(mut self) -> DefinitionRun {
        let operations = self.foreseen.take().unwrap_or_default();
        for (described, operation) in self.operations.iter_mut().zip(operations) {
            described.operation = operation;
            described.computed.clear();
            described.duplicated.retain(|(_, query)| query.written.is_empty());
        }
        self.validations.clear();
        self.extent = Extent::Whole;
        self
    }

    /// Claims what the operations are about, and what is looked at for them: before anything is done, which
    /// a restart would undo.
    fn claim(&self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        if self.extent != Extent::Whole || self.operations.is_empty() {
            return Ok(());
        }
        let looked_at = self.validations.iter().flat_map(|validation| &validation.query.tables);
        txn.claim_for(self.ddl(), looked_at.map(|(table, _)| *table))
    }

    /// Runs the validations over rows as they are.
    fn look(&mut self, txn: &mut Txn<'_>) -> ExecResult<()> {
        let Some(host) = &self.host else { return Ok(()) };
        let all = self.extent == Extent::Look;
        let mut validations = self.validations.iter().filter(|of| all || of.written.is_empty());
        validations.try_for_each(|validation| validation.run(host, txn, &mut self.notices))
    }

    /// Runs the validations, computes values, then runs the operations, then writes the catalog rows.
    pub(super) fn define(&mut self, txn: &mut Txn<'_>) -> ExecResult<()> {
        self.look(txn)?;
        if self.extent == Extent::Look {
            return Ok(());
        }
        let operations = self.foresee(txn)?;
        if self.extent == Extent::Foresight {
            self.foreseen = Some(operations);
            return Ok(());
        }
        for (described, operation) in self.operations.iter().zip(operations) {
            match txn.ddl(operation)? {
                Inserted::Ok => {}
                Inserted::DuplicateKey(tree) => {
                    let known = &described.duplicates;
                    let met = known.iter().find(|(of, _)| Some(*of) == tree).or(known.first());
                    self.met = met.map(|(tree, _)| *tree);
                    return Err(match met {
                        Some((_, error)) => error.clone(),
                        None => SqlError::internal("two rows have the same key"),
                    }
                    .into());
                }
                Inserted::Missing => return Err(SqlError::internal("a definition met no table").into()),
            }
        }
        let catalog =
            txn.table(CATALOG_TREE).ok_or_else(|| SqlError::internal("there is no system catalog"))?;
        if self.drops_database {
            drop_rows(txn, &catalog, self.database)?;
        }
        for change in &self.changes {
            apply(txn, &catalog, self.database, change)?;
        }
        Ok(())
    }
}

impl Program for DefinitionRun {
    /// Whoever changes definitions is nobody's load.
    fn counts(&self) -> bool {
        self.extent != Extent::Whole || self.operations.is_empty()
    }

    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        // Otherwise it claims what it reads as it comes to it, as a statement of its transaction.
        if self.extent == Extent::Whole && !(self.operations.is_empty() && self.changes.is_empty()) {
            claims.add_group(REFERENCE_GROUP);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.claim(txn)?;
        let _depth = self.host.as_ref().map(|host| Depth::of(host.settings.stack_depth_kb));
        let _watch = self.host.as_ref().map(|host| Watch::of(host.clone()));
        (self.error, self.foreseen, self.met) = (None, None, None);
        self.notices.clear();
        if self.stops_at_locks {
            txn.stop_at_locks();
        }
        let most = self.host.as_ref().filter(|_| self.begins_anew);
        let most = most.map(|host| host.server.engine.one_shot_budget());
        let budget = most.and_then(|most| budget_of(txn, most));
        let result = catch_unwind(AssertUnwindSafe(|| self.define(txn)));
        let result = match result.map(|ran| if_in_time(budget.as_ref(), ran)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(stop_with(error, &mut self.error)),
            Err(payload) => {
                self.error = Some(panic_error(&*payload));
                Err(Stop::Abort)
            }
        };
        let refused = matches!(result, Err(Stop::LockNotAvailable));
        self.refused = txn.refused().filter(|_| refused).cloned();
        result
    }
}

/// COMMIT of a transaction that wrote rows and changed definitions: all of it in one commit.
pub struct CommitWithDefinitions {
    /// The rows, if a statement wrote or locked any.
    pub commit: Option<Commit>,
    pub definitions: DefinitionRun,
}

impl Program for CommitWithDefinitions {
    fn counts(&self) -> bool {
        self.definitions.counts()
    }

    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        if let Some(commit) = &mut self.commit {
            commit.predict(routing, claims);
        }
        self.definitions.predict(routing, claims);
    }

    fn ended(&mut self) {
        if let Some(commit) = &mut self.commit {
            commit.ended();
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.definitions.claim(txn)?;
        if let Some(commit) = &mut self.commit {
            commit.run(txn)?;
        }
        let ran = self.definitions.run(txn);
        if ran.is_err() {
            // It may have to wait, and the client may go meanwhile.
            self.ended();
        }
        ran
    }
}

#[cfg(test)]
mod tests {
    use archipel_engine::log::MemoryStore;
    use archipel_engine::{EngineConfig, SubmitOptions};

    use super::*;
    use archipel_sql::catalog::{Numbers, Object};

    use crate::run::catalog_rows::CatalogScan;

    fn written(engine: &Engine) -> Option<Numbers> {
        let scan = engine.submit(CatalogScan::default(), SubmitOptions::default()).wait();
        scan.program.rows.iter().find_map(|(_, object)| match object {
            Object::Numbers(numbers) => Some(*numbers),
            _ => None,
        })
    }

    #[test]
    fn numbers_stay_the_larger_ones_in_whatever_order_definitions_commit() {
        let early = Numbers { oid: 20_000, tree: 30, group: 0, sequence: 0 };
        let late = Numbers { oid: 20_010, tree: 0, group: 17, sequence: 0 };
        for order in [[early, late], [late, early]] {
            let config = EngineConfig::with_executors(1);
            let engine = Engine::open(config, Arc::new(MemoryStore::new())).expect("memory opens");
            assert_eq!(written(&engine), None);
            for numbers in order {
                let changes = vec![CatalogChange::Put(Object::Numbers(numbers))];
                let run = DefinitionRun::of_changes(Oid(5), changes);
                let done = engine.submit(run, SubmitOptions::default()).wait();
                assert!(done.outcome.result.is_ok(), "{:?}", done.program.error);
            }
            let sequence = Numbers::FIRST.sequence;
            let larger = Numbers { oid: 20_010, tree: 30, group: 17, sequence };
            assert_eq!(written(&engine), Some(larger));
        }
    }
}
