//! The catalog of an engine just opened: read, compared with what the engine has, brought to this version, rid of
//! what nobody committed.

use archipel_engine::id::{SequenceId, TreeId};
use archipel_engine::{DdlOp, Engine, FIRST_FREE_TREE, Stop, SubmitOptions};
use archipel_migrations::Change;
use archipel_planner::ddl::{Copies, DdlEnv, DdlPlan, plan_ids, plan_migration, plan_rewritten_rows};
use archipel_sql::ast::{AlterRole, RoleAction, RoleName, RoleOption, Statement};
use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::catalog::{Catalog, CatalogChange, Numbers, ObjectNumbers, SUPERUSER, earlier_form};
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;
use rustc_hash::FxHashSet;

use super::CatalogError;
use crate::run::definition::{CatalogScan, DefinitionRun};
use crate::session::definition::temporary::drop_schema_statement;

/// Reads the catalog of an engine as it is.
pub fn read(engine: &Engine) -> Result<Catalog, CatalogError> {
    let options = SubmitOptions { read_only: true, ..SubmitOptions::default() };
    let scan = engine.submit(CatalogScan::default(), options).wait();
    if let Err(stop) = scan.outcome.result {
        return Err(CatalogError::Damaged(error_of(scan.program.error, stop)));
    }
    let objects = earlier_form::in_place(scan.program.objects);
    let changes: Vec<CatalogChange> = objects.into_iter().map(CatalogChange::Put).collect();
    Ok(Catalog::new(crate::system::tables()).apply(&changes).with_row_types_renumbered())
}

/// Reads the catalog of an engine just opened, and runs the migration steps it still needs; a
/// new data directory needs them all. Answers also where new objects get their numbers from.
pub fn load(engine: &Engine) -> Result<(Catalog, ObjectNumbers), CatalogError> {
    let mut catalog = read(engine)?;
    let contradictions = contradictions(engine, &catalog);
    if !contradictions.is_empty() {
        return Err(CatalogError::Contradicts(contradictions.join("; ")));
    }
    let numbers = ObjectNumbers::new(first_numbers(engine, &catalog));
    for step in archipel_migrations::pending(catalog.migration())? {
        catalog = migrate(engine, &catalog, &numbers, step).map_err(CatalogError::Migration)?;
        tracing::info!("system catalog: step {} ({})", step.version, step.name);
    }
    drop_unknown(engine, &catalog).map_err(CatalogError::Migration)?;
    let catalog = drop_temporary(engine, catalog, &numbers).map_err(CatalogError::Migration)?;
    Ok((catalog, numbers))
}

/// The numbers that new objects begin with: behind those that were written, and behind the engine's, since
/// transactions that came to nothing have drawn numbers, too.
fn first_numbers(engine: &Engine, catalog: &Catalog) -> Numbers {
    let written = catalog.numbers();
    let known = catalog.sequences().map(|sequence| sequence.file);
    let sequences = engine.sequences().into_iter().map(|id| id.0).chain(known);
    let behind = sequences.max().map_or(0, |last| last.saturating_add(1));
    let tree = engine.first_unused_tree().0;
    Numbers { tree: written.tree.max(tree), sequence: written.sequence.max(behind), ..written }
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
    let known: FxHashSet<u32> = catalog.sequences().map(|sequence| sequence.file).collect();
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
fn drop_temporary(
    engine: &Engine,
    mut catalog: Catalog,
    numbers: &ObjectNumbers,
) -> Result<Catalog, SqlError> {
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
            numbers,
            roles: Default::default(),
        };
        let plan = archipel_planner::ddl::plan(&drop_schema_statement(&schema), &environment)?;
        catalog = run_plan(engine, &catalog, plan)?;
    }
    Ok(catalog)
}

/// Gives the superuser a password if it has none.
pub fn set_first_password(
    engine: &Engine,
    catalog: Catalog,
    numbers: &ObjectNumbers,
    password: &str,
) -> Result<Catalog, CatalogError> {
    let Some(role) = catalog.role_by_oid(SUPERUSER).filter(|role| role.password.is_none()) else {
        return Ok(catalog);
    };
    let options = vec![RoleOption::Password(Some(password.to_owned()))];
    let statement = Statement::AlterRole(AlterRole {
        role: RoleName::Name(role.name.clone()),
        action: RoleAction::Options(options),
    });
    let context = FunctionContext::detached();
    let environment = DdlEnv {
        catalog: &catalog,
        search_path: &[],
        context: &context,
        system: true,
        temporary_schema: "pg_temp_0",
        copies: &Copies::default(),
        numbers,
        roles: Default::default(),
    };
    let planned = archipel_planner::ddl::plan(&statement, &environment);
    let after = planned.and_then(|plan| run_plan(engine, &catalog, plan)).map_err(CatalogError::Migration)?;
    tracing::info!("the superuser \"{}\" has got its first password", role.name);
    Ok(after)
}

fn migrate(
    engine: &Engine,
    catalog: &Catalog,
    numbers: &ObjectNumbers,
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
        numbers,
        roles: Default::default(),
    };
    let plan = match step.change {
        Change::Script(script) => plan_migration(step.version, step.name, script, &environment)?,
        Change::NamesToIds => {
            let (plan, left) = plan_ids(step.version, step.name, &environment)?;
            for text in left {
                tracing::warn!("system catalog: a definition means nothing: {text}");
            }
            plan
        }
        Change::RewrittenRows => plan_rewritten_rows(step.version, step.name, &environment)?,
    };
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
