//! The catalog in force: an immutable snapshot with a number, replaced as a whole by DDL.
//!
//! The truth is the engine's catalog table; this is its decoded form, rebuilt after each DDL
//! commit and at the start. Executors compare the number (one relaxed load of a line nobody
//! writes between two DDL statements) and fetch the snapshot only when it has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archipel_engine::id::{SequenceId, TreeId};
use archipel_engine::{DdlOp, Engine, FIRST_FREE_TREE, Stop, SubmitOptions};
use archipel_planner::ddl::{Copies, DdlEnv, DdlPlan, plan_migration};
use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::catalog::{Catalog, CatalogChange, Numbers, Object};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::types::Oid;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use crate::run::definition::{CatalogScan, DefinitionRun};
use crate::session::temporary::drop_schema_statement;

/// One snapshot.
pub struct CatalogState {
    pub catalog: Catalog,
    /// Grows with every change; plans and cache entries compare it.
    pub version: u64,
    /// Labels that the one transaction which sees this catalog gave to enums.
    pub added_labels: Vec<Oid>,
}

impl CatalogState {
    fn of(catalog: Catalog, version: u64) -> Arc<CatalogState> {
        Arc::new(CatalogState { catalog, version, added_labels: Vec::new() })
    }

    /// Fails on a label that is not committed: a value of it could stay when the label does not
    /// (check_safe_enum_use).
    pub fn check_labels<'v>(&self, values: impl IntoIterator<Item = &'v Datum>) -> Result<(), SqlError> {
        for value in values {
            let Datum::Oid(label) = value else { continue };
            if !self.added_labels.contains(label) {
                continue;
            }
            let mut types = self.catalog.user_types();
            let of = types.find(|ty| ty.labels.iter().any(|known| known.oid == *label));
            let enumeration = of.map_or("", |ty| ty.name.as_str());
            let name = self.catalog.enum_label(*label).unwrap_or_default();
            let message = format!("unsafe use of new value \"{name}\" of enum type {enumeration}");
            return Err(SqlError::new(SqlState::UNSAFE_NEW_ENUM_VALUE_USAGE, message)
                .with_hint("New enum values must be committed before they can be used."));
        }
        Ok(())
    }
}

/// The snapshot in force.
pub struct CatalogHandle {
    current: Mutex<Arc<CatalogState>>,
    version: AtomicU64,
    /// The first numbers nobody has drawn, whether or not what drew them is committed.
    numbers: Mutex<Numbers>,
    private_versions: AtomicU64,
    changed: tokio::sync::Notify,
}

/// Versions of catalogs that only one transaction sees: never equal to a published one.
const FIRST_PRIVATE_VERSION: u64 = 1 << 63;

impl CatalogHandle {
    pub fn new(catalog: Catalog) -> CatalogHandle {
        CatalogHandle {
            numbers: Mutex::new(catalog.numbers()),
            current: Mutex::new(CatalogState::of(catalog, 1)),
            version: AtomicU64::new(1),
            private_versions: AtomicU64::new(FIRST_PRIVATE_VERSION),
            changed: tokio::sync::Notify::new(),
        }
    }

    /// A catalog that only one transaction sees, and the labels it gave to enums.
    pub fn private(&self, catalog: Catalog, added_labels: Vec<Oid>) -> Arc<CatalogState> {
        let version = self.private_versions.fetch_add(1, Ordering::Relaxed);
        Arc::new(CatalogState { catalog, version, added_labels })
    }

    /// Calls `plan` with `catalog`, whose next numbers are ones that nobody has drawn, and keeps
    /// what the plan draws from others: plans may commit in any order, or not at all.
    pub fn drawing<R>(
        &self,
        catalog: &Catalog,
        plan: impl FnOnce(&Catalog) -> R,
        changes_of: impl Fn(&R) -> Option<&[CatalogChange]>,
    ) -> R {
        let mut numbers = self.numbers.lock();
        let own = catalog.numbers();
        let lifted = Numbers {
            oid: numbers.oid.max(own.oid),
            tree: numbers.tree.max(own.tree),
            group: numbers.group.max(own.group),
        };
        let planned = if lifted == own {
            plan(catalog)
        } else {
            plan(&catalog.apply(&[CatalogChange::Put(Object::Numbers(lifted))]))
        };
        *numbers = lifted;
        for change in changes_of(&planned).unwrap_or_default() {
            if let CatalogChange::Put(Object::Numbers(drawn)) = change {
                *numbers = *drawn;
            }
        }
        planned
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub fn current(&self) -> Arc<CatalogState> {
        self.current.lock().clone()
    }

    /// Publishes the catalog a committed DDL statement leads to.
    pub fn publish(&self, catalog: Catalog) {
        let mut current = self.current.lock();
        let version = current.version + 1;
        *current = CatalogState::of(catalog, version);
        self.version.store(version, Ordering::Release);
        drop(current);
        self.note_change();
    }

    /// Whoever waits for [`CatalogHandle::changed`] looks again.
    pub fn note_change(&self) {
        self.changed.notify_one();
    }

    /// Waits for a change since this was last waited for. For one waiter.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Why the catalog of a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("the system catalog cannot be read: {0}")]
    Damaged(SqlError),
    #[error(transparent)]
    Newer(#[from] archipel_migrations::NewerCatalog),
    #[error("the system catalog does not fit what there is: {0}")]
    Contradicts(String),
    #[error("the system catalog cannot be brought to this version: {0}")]
    Migration(SqlError),
}

/// Reads the catalog of an engine as it is.
pub fn read(engine: &Engine) -> Result<Catalog, CatalogError> {
    let options = SubmitOptions { read_only: true, ..SubmitOptions::default() };
    let scan = engine.submit(CatalogScan::default(), options).wait();
    if let Err(stop) = scan.outcome.result {
        return Err(CatalogError::Damaged(error_of(scan.program.error, stop)));
    }
    let changes: Vec<CatalogChange> = scan.program.objects.into_iter().map(CatalogChange::Put).collect();
    Ok(Catalog::new(crate::system::tables()).apply(&changes).with_row_types_renumbered())
}

/// Reads the catalog of an engine just opened, and runs the migration steps it still needs; a
/// new data directory needs them all.
pub fn load(engine: &Engine) -> Result<Catalog, CatalogError> {
    let mut catalog = read(engine)?;
    let contradictions = contradictions(engine, &catalog);
    if !contradictions.is_empty() {
        return Err(CatalogError::Contradicts(contradictions.join("; ")));
    }
    // Transactions that came to nothing have drawn numbers, too.
    let numbers = catalog.numbers();
    let tree = numbers.tree.max(engine.first_unused_tree().0);
    catalog = catalog.apply(&[CatalogChange::Put(Object::Numbers(Numbers { tree, ..numbers }))]);
    for step in archipel_migrations::pending(catalog.migration())? {
        catalog = migrate(engine, &catalog, step).map_err(CatalogError::Migration)?;
        tracing::info!("system catalog: step {} ({})", step.version, step.name);
    }
    drop_unknown(engine, &catalog).map_err(CatalogError::Migration)?;
    drop_temporary(engine, catalog).map_err(CatalogError::Migration)
}

/// What the catalog says of tables and indexes and the engine does not know. Nothing that a crash
/// leaves: both commit at once.
pub(crate) fn contradictions(engine: &Engine, catalog: &Catalog) -> Vec<String> {
    let mut found = Vec::new();
    for table in catalog.tables().filter(|table| table.is_stored()) {
        let name = format!("{}.{}", table.schema, table.name);
        let Some(meta) = engine.table(TreeId(table.tree)) else {
            found.push(format!("table {name} is in the catalog, but its rows are not there"));
            continue;
        };
        if meta.indexes.len() != table.indexes.len() {
            found.push(format!(
                "table {name} has {} indexes by the catalog and {} by the engine",
                table.indexes.len(),
                meta.indexes.len()
            ));
        }
        for index in &table.indexes {
            if !meta.indexes.iter().any(|known| known.def.id == TreeId(index.tree)) {
                found.push(format!("index {} of table {name} is not there", index.name));
            }
        }
    }
    found
}

/// The tables and sequences that the engine has and the catalog does not: a transaction had made them
/// and not committed when the server went down, or when a backup was taken.
pub(crate) fn unknown(engine: &Engine, catalog: &Catalog) -> (Vec<TreeId>, Vec<SequenceId>) {
    let known: FxHashSet<u32> = catalog.tables().map(|table| table.tree).collect();
    let tables = engine.tables().into_iter().map(|table| table.def.id);
    let tables = tables.filter(|id| *id >= FIRST_FREE_TREE && !known.contains(&id.0)).collect();
    let known: FxHashSet<u32> = catalog.sequences().map(|sequence| sequence.file()).collect();
    let sequences = engine.sequences().into_iter().filter(|id| !known.contains(&id.0)).collect();
    (tables, sequences)
}

/// Drops what a transaction had made and not committed when the server went down.
fn drop_unknown(engine: &Engine, catalog: &Catalog) -> Result<(), SqlError> {
    let (tables, sequences) = unknown(engine, catalog);
    if tables.is_empty() && sequences.is_empty() {
        return Ok(());
    }
    tracing::info!(
        "dropping {} tables and {} sequences of transactions that did not commit",
        tables.len(),
        sequences.len()
    );
    let tables = tables.into_iter().map(DdlOp::DropTable);
    let operations = tables.chain(sequences.into_iter().map(DdlOp::DropSequence)).collect();
    let run = DefinitionRun::of_operations(operations, Vec::new());
    let done = engine.submit(run, SubmitOptions::default()).wait();
    done.outcome.result.map_err(|stop| error_of(done.program.error, stop))
}

/// Drops what sessions left that had no end: their temporary relations.
fn drop_temporary(engine: &Engine, catalog: Catalog) -> Result<Catalog, SqlError> {
    let mut catalog = catalog;
    let left: Vec<String> = catalog
        .schemas()
        .map(|schema| schema.name.clone())
        .filter(|name| is_temporary_schema(name))
        .collect();
    for schema in left {
        let context = FunctionContext::detached();
        let environment = DdlEnv {
            catalog: &catalog,
            search_path: &[],
            context: &context,
            system: true,
            temporary_schema: &schema,
            copies: &Copies::default(),
            roles: Default::default(),
        };
        let plan = archipel_planner::ddl::plan(&drop_schema_statement(&schema), &environment)?;
        catalog = run_plan(engine, &catalog, plan)?;
    }
    Ok(catalog)
}

fn migrate(
    engine: &Engine,
    catalog: &Catalog,
    step: &archipel_migrations::Step,
) -> Result<Catalog, SqlError> {
    let context = FunctionContext::detached();
    let environment = DdlEnv {
        catalog,
        search_path: &[],
        context: &context,
        system: true,
        temporary_schema: "pg_temp_0",
        copies: &Copies::default(),
        roles: Default::default(),
    };
    let plan = plan_migration(step.version, step.name, step.sql, &environment)?;
    run_plan(engine, catalog, plan)
}

fn run_plan(engine: &Engine, catalog: &Catalog, plan: DdlPlan) -> Result<Catalog, SqlError> {
    let after = catalog.apply(&plan.changes);
    let run = DefinitionRun::of_operations(plan.operations, plan.changes);
    let done = engine.submit(run, SubmitOptions::default()).wait();
    match done.outcome.result {
        Ok(()) => {
            engine.wait_durable(done.outcome.depends_on);
            Ok(after)
        }
        Err(stop) => Err(error_of(done.program.error, stop)),
    }
}

fn error_of(error: Option<SqlError>, stop: Stop) -> SqlError {
    error.unwrap_or_else(|| SqlError::internal(format!("the engine stopped the program: {stop:?}")))
}
