//! The catalogs of an engine just opened: read, compared with what the engine has, brought to this version, rid of
//! what nobody committed.
//!
//! A table of the engine that no catalog knows is dropped: all catalogs are read first, and a row that cannot be
//! read ends the start.

use std::collections::BTreeMap;
use std::ops::Range;

use archipel_engine::id::{SequenceId, TreeId};
use archipel_engine::{DdlOp, Engine, FIRST_FREE_TREE, Stop, SubmitOptions};
use archipel_migrations::Change;
use archipel_planner::ddl::{
    Copies, DdlEnv, DdlPlan, plan_ids, plan_large_objects, plan_migration, plan_rewritten_rows,
};
use archipel_sql::ast::{AlterRole, RoleAction, RoleName, RoleOption, Statement};
use archipel_sql::catalog::first_databases::first_databases;
use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::catalog::{
    Catalog, CatalogChange, DATABASE, Numbers, Object, ObjectKind, ObjectNumbers, SUPERUSER,
};
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;
use archipel_sql::types::Oid;
use rustc_hash::{FxHashMap, FxHashSet};

use super::CatalogError;
use crate::run::catalog_rows::{CatalogScan, FirstRows};
use crate::run::definition::DefinitionRun;
use crate::session::definition::temporary::drop_schema_statement;

/// Reads the catalogs of an engine as they are: one for each database, in the order of their numbers.
pub fn read(engine: &Engine) -> Result<Vec<Catalog>, CatalogError> {
    catalogs_of(rows(engine)?.rows)
}

fn rows(engine: &Engine) -> Result<CatalogScan, CatalogError> {
    let options = SubmitOptions { read_only: true, ..SubmitOptions::default() };
    let scan = engine.submit(CatalogScan::default(), options).wait();
    match scan.outcome.result {
        Ok(()) => Ok(scan.program),
        Err(stop) => Err(CatalogError::Damaged(error_of(scan.program.error, stop))),
    }
}

fn is_database(object: &Object) -> bool {
    object.kind() == ObjectKind::Database
}

/// The catalogs that rows say, each with the number of its database.
fn catalogs_of(rows: Vec<(Oid, Object)>) -> Result<Vec<Catalog>, CatalogError> {
    let mut of_all: Vec<CatalogChange> = Vec::new();
    let mut own: BTreeMap<Oid, Vec<CatalogChange>> = BTreeMap::new();
    if rows.iter().any(|(_, object)| is_database(object)) {
        // It may have been dropped.
        of_all.push(CatalogChange::Drop(ObjectKind::Database, DATABASE));
    }
    for (database, object) in rows {
        let changes = if database == Oid(0) { &mut of_all } else { own.entry(database).or_default() };
        changes.push(CatalogChange::Put(object));
    }
    // What none of them changes all of them share.
    let shared = Catalog::new(crate::system::tables()).apply(&of_all);
    let of_database = |database: &archipel_sql::catalog::Database| {
        let own = own.remove(&database.oid).unwrap_or_default();
        let empty = shared.of_database(database.oid, &database.name);
        empty.apply(&own).with_row_types_renumbered()
    };
    let catalogs = shared.databases().map(|database| &**database).map(of_database).collect();
    match own.first_key_value() {
        Some((unknown, _)) => Err(CatalogError::Contradicts(format!(
            "there are objects of database {unknown}, which is not there"
        ))),
        None => Ok(catalogs),
    }
}

/// Reads the catalogs of an engine just opened, and runs the migration steps that they still need; those of a
/// new data directory need them all. Answers also where new objects get their numbers from.
pub fn load(engine: &Engine) -> Result<(Vec<Catalog>, ObjectNumbers), CatalogError> {
    let mut scan = rows(engine)?;
    let begins = scan.earlier || !scan.rows.iter().any(|(_, object)| is_database(object));
    if begins {
        complete(&mut scan);
    }
    let first = begins.then(|| FirstRows { rows: scan.rows.clone(), error: None });
    let mut catalogs = catalogs_of(scan.rows)?;
    let contradictions = contradictions(engine, &catalogs);
    if !contradictions.is_empty() {
        return Err(CatalogError::Contradicts(contradictions.join("; ")));
    }
    // Nothing is changed before it is known that all of them can be brought to this version.
    let mut renews = begins;
    for catalog in &catalogs {
        renews |= !archipel_migrations::pending(catalog.migration())?.is_empty();
    }
    if let Some(first) = first {
        write(engine, first).map_err(CatalogError::Migration)?;
    }
    let numbers = ObjectNumbers::new(first_numbers(engine, &catalogs));
    for catalog in &catalogs {
        // Who made it may have chosen its number.
        numbers.choose(catalog.database_oid().0, None);
    }
    // Those that steps draw are given once in any case.
    let named: Vec<Range<u32>> = catalogs.iter().flat_map(Catalog::oids_in_use).collect();
    numbers.used_by(move || named.clone());
    for catalog in &mut catalogs {
        for step in archipel_migrations::pending(catalog.migration())? {
            *catalog = migrate(engine, catalog, &numbers, step).map_err(CatalogError::Migration)?;
            let of = catalog.database_name();
            tracing::info!("system catalog of database {of}: step {} ({})", step.version, step.name);
        }
    }
    if renews {
        // Before anybody is served.
        engine.flush();
    }
    drop_unknown(engine, &catalogs).map_err(CatalogError::Migration)?;
    let catalogs = catalogs.into_iter().map(|catalog| drop_temporary(engine, catalog, &numbers));
    let catalogs = catalogs.collect::<Result<Vec<Catalog>, SqlError>>().map_err(CatalogError::Migration)?;
    Ok((catalogs, numbers))
}

/// Adds the databases that a data directory begins with, where they are not there.
fn complete(scan: &mut CatalogScan) {
    let known: FxHashSet<(ObjectKind, Oid)> =
        scan.rows.iter().map(|(_, object)| (object.kind(), object.oid())).collect();
    let missing = first_databases().into_iter();
    let missing = missing.filter(|object| !known.contains(&(object.kind(), object.oid())));
    scan.rows.extend(missing.map(|object| (Oid(0), object)));
    if scan.earlier {
        tracing::info!(
            "the data directory may have several databases from now on; what was made by way of the names \
             postgres and template1 lies in database archipel"
        );
    }
}

/// Writes the first rows, or those of an earlier version in their new place.
fn write(engine: &Engine, first: FirstRows) -> Result<(), SqlError> {
    let done = engine.submit(first, SubmitOptions::default()).wait();
    done.outcome.result.map_err(|stop| error_of(done.program.error, stop))
}

/// The numbers that new objects begin with: behind those that were written, and behind the engine's, since
/// transactions that came to nothing have drawn numbers, too.
fn first_numbers(engine: &Engine, catalogs: &[Catalog]) -> Numbers {
    let written = catalogs.iter().map(Catalog::numbers).fold(Numbers::FIRST, Numbers::max);
    let known = catalogs.iter().flat_map(Catalog::sequences).map(|sequence| sequence.file);
    let sequences = engine.sequences().into_iter().map(|id| id.0).chain(known);
    let behind = sequences.max().map_or(0, |last| last.saturating_add(1));
    let tree = engine.first_unused_tree().0;
    Numbers { tree: written.tree.max(tree), sequence: written.sequence.max(behind), ..written }
}

/// What catalogs say of tables and indexes and the engine does not know, and what two of them say of the same
/// one. Nothing that a crash leaves: catalog and engine commit at once.
pub(crate) fn contradictions(engine: &Engine, catalogs: &[Catalog]) -> Vec<String> {
    let mut found: Vec<String> =
        catalogs.iter().flat_map(|catalog| contradictions_of(engine, catalog)).collect();
    found.extend(numbers_of_several(catalogs));
    found
}

fn contradictions_of(engine: &Engine, catalog: &Catalog) -> Vec<String> {
    let mut found = Vec::new();
    for table in catalog.tables().filter(|table| table.is_stored()) {
        let name = format!("{}.{}.{}", catalog.database_name(), table.schema, table.name);
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

/// The engine's numbers that two databases give to something of theirs.
fn numbers_of_several(catalogs: &[Catalog]) -> Vec<String> {
    let mut owners: FxHashMap<(&str, u32), &Catalog> = FxHashMap::default();
    let mut found = Vec::new();
    for catalog in catalogs {
        let tables = catalog.tables().filter(|table| table.is_stored());
        let of_table = |table: &archipel_sql::catalog::TableRef| {
            let indexes = table.indexes.iter();
            let groups = indexes.clone().filter_map(|index| index.global_group).chain(table.group());
            let trees = indexes.map(|index| index.tree).chain([table.tree]);
            let trees = trees.map(|tree| ("tree", tree));
            groups.map(|group| ("group", group)).chain(trees).collect::<Vec<_>>()
        };
        let files = catalog.sequences().map(|sequence| ("sequence", sequence.file));
        for (what, number) in tables.flat_map(of_table).chain(files) {
            let first = *owners.entry((what, number)).or_insert(catalog);
            if first.database_oid() != catalog.database_oid() {
                let (one, other) = (first.database_name(), catalog.database_name());
                found.push(format!("databases {one} and {other} both have {what} {number}"));
            }
        }
    }
    found
}

/// The tables and sequences that the engine has and no catalog does: a transaction had made them and not
/// committed when the server went down, or when a backup was taken.
pub(crate) fn unknown(engine: &Engine, catalogs: &[Catalog]) -> (Vec<TreeId>, Vec<SequenceId>) {
    let known: FxHashSet<u32> = catalogs.iter().flat_map(Catalog::tables).map(|table| table.tree).collect();
    let tables = engine.tables().into_iter().map(|table| table.def.id);
    let tables = tables.filter(|id| *id >= FIRST_FREE_TREE && !known.contains(&id.0)).collect();
    let sequences = catalogs.iter().flat_map(Catalog::sequences);
    let known: FxHashSet<u32> = sequences.map(|sequence| sequence.file).collect();
    let sequences = engine.sequences().into_iter().filter(|id| !known.contains(&id.0)).collect();
    (tables, sequences)
}

/// Drops what a transaction had made and not committed when the server went down.
fn drop_unknown(engine: &Engine, catalogs: &[Catalog]) -> Result<(), SqlError> {
    let (tables, sequences) = unknown(engine, catalogs);
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
    let run = DefinitionRun::of_operations(Oid(0), operations, Vec::new());
    let done = engine.submit(run, SubmitOptions::default()).wait();
    done.outcome.result.map_err(|stop| error_of(done.program.error, stop))
}

/// What the server's own definitions are planned in, before anybody is served.
fn environment_of<'e>(
    catalog: &'e Catalog,
    (temporary_schema, copies): (&'e str, &'e Copies),
    context: &'e FunctionContext<'e>,
    numbers: &'e ObjectNumbers,
) -> DdlEnv<'e> {
    DdlEnv {
        catalog,
        search_path: &[],
        context,
        system: true,
        temporary_schema,
        copies,
        numbers,
        roles: Default::default(),
        others: &[],
    }
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
        let (context, copies) = (FunctionContext::detached(), Copies::default());
        let environment = environment_of(&catalog, (&schema, &copies), &context, numbers);
        let plan = archipel_planner::ddl::plan(&drop_schema_statement(&schema), &environment)?;
        catalog = run_plan(engine, &catalog, plan)?;
    }
    Ok(catalog)
}

/// Gives the superuser a password if it has none.
pub fn set_first_password(
    engine: &Engine,
    catalogs: Vec<Catalog>,
    numbers: &ObjectNumbers,
    password: &str,
) -> Result<Vec<Catalog>, CatalogError> {
    // All have the same roles.
    let Some(catalog) = catalogs.first() else { return Ok(catalogs) };
    let Some(role) = catalog.role_by_oid(SUPERUSER).filter(|role| role.password.is_none()) else {
        return Ok(catalogs);
    };
    let options = vec![RoleOption::Password(Some(password.to_owned()))];
    let statement = Statement::AlterRole(AlterRole {
        role: RoleName::Name(role.name.clone()),
        action: RoleAction::Options(options),
    });
    let (context, copies) = (FunctionContext::detached(), Copies::default());
    let environment = environment_of(catalog, ("pg_temp_0", &copies), &context, numbers);
    let planned = archipel_planner::ddl::plan(&statement, &environment);
    let after = planned.and_then(|plan| run_plan(engine, catalog, plan)).map_err(CatalogError::Migration)?;
    tracing::info!("the superuser \"{}\" has got its first password", role.name);
    Ok(catalogs.iter().map(|catalog| catalog.with_shared(&after.shared())).collect())
}

fn migrate(
    engine: &Engine,
    catalog: &Catalog,
    numbers: &ObjectNumbers,
    step: &archipel_migrations::Step,
) -> Result<Catalog, SqlError> {
    let (context, copies) = (FunctionContext::detached(), Copies::default());
    let environment = environment_of(catalog, ("pg_temp_0", &copies), &context, numbers);
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
        Change::LargeObjects => plan_large_objects(step.version, step.name, &environment)?,
    };
    run_plan(engine, catalog, plan)
}

fn run_plan(engine: &Engine, catalog: &Catalog, plan: DdlPlan) -> Result<Catalog, SqlError> {
    let after = catalog.apply(&plan.changes);
    let run = DefinitionRun::of_operations(catalog.database_oid(), plan.operations, plan.changes);
    let done = engine.submit(run, SubmitOptions::default()).wait();
    match done.outcome.result {
        Ok(()) => Ok(after),
        Err(stop) => Err(error_of(done.program.error, stop)),
    }
}

fn error_of(error: Option<SqlError>, stop: Stop) -> SqlError {
    error.unwrap_or_else(|| SqlError::internal(format!("the engine stopped the program: {stop:?}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archipel_engine::cell::{Cell, ColumnKind};
    use archipel_engine::log::MemoryStore;
    use archipel_engine::schema::{KeyColumn, Placement, TableDef};
    use archipel_engine::storage::KeyBuf;
    use archipel_engine::{
        ClaimSet, EARLIER_CATALOG_TREE, EngineConfig, Inserted, Program, RoutingTable, Txn,
    };
    use archipel_sql::catalog::database::POSTGRES;
    use archipel_sql::catalog::{Migration, Role, Schema, Table, TableKind};

    use super::*;

    const ALICE: Oid = Oid(20_000);
    const OWN: Oid = Oid(20_001);

    fn engine() -> Engine {
        Engine::open(EngineConfig::with_executors(1), Arc::new(MemoryStore::new())).expect("memory opens")
    }

    /// The catalog of before there could be several databases.
    struct Earlier(Vec<Object>);

    impl Earlier {
        fn table() -> TableDef {
            let part = |column| KeyColumn {
                column,
                descending: false,
                nulls_first: false,
                nullable: false,
                form: Default::default(),
            };
            TableDef {
                id: EARLIER_CATALOG_TREE,
                name: "pg_catalog".to_owned(),
                columns: vec![ColumnKind::Bytes, ColumnKind::Int4, ColumnKind::Bytes],
                key: vec![part(0), part(1)],
                placement: Placement::Reference,
                indexes: Vec::new(),
            }
        }
    }

    impl Program for Earlier {
        fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
            claims.everything();
        }

        fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
            assert_eq!(txn.ddl(DdlOp::CreateTable(Earlier::table()))?, Inserted::Ok);
            let catalog = txn.table(EARLIER_CATALOG_TREE).expect("it was just made");
            for object in &self.0 {
                let payload = object.to_payload().expect("it can be written");
                let kind = object.kind().as_str().as_bytes();
                let cells = [Cell::Bytes(kind), Cell::Int4(object.oid().0 as i32), Cell::Bytes(&payload)];
                let (mut row, mut key) = (Vec::new(), KeyBuf::new());
                catalog.layout.encode(&cells, &mut row);
                catalog.storage_key(&row, &mut key);
                assert_eq!(txn.insert(&catalog, &key, &row)?, Inserted::Ok);
            }
            Ok(())
        }
    }

    fn numbers_of(catalogs: &[Catalog]) -> Vec<u32> {
        catalogs.iter().map(|catalog| catalog.database_oid().0).collect()
    }

    #[test]
    fn rows_of_the_only_database_move_once() {
        let engine = engine();
        let rows = vec![
            Object::Schema(Schema { oid: OWN, name: "own".to_owned() }),
            Object::Role(Role::new(ALICE, "alice")),
            Object::Numbers(Numbers { oid: 30_000, ..Numbers::FIRST }),
            Object::Migration(Migration {
                version: archipel_migrations::CURRENT_VERSION,
                name: "as now".to_owned(),
            }),
        ];
        let done = engine.submit(Earlier(rows), SubmitOptions::default()).wait();
        assert_eq!(done.outcome.result, Ok(()));
        assert_eq!(numbers_of(&read(&engine).expect("it can be read")), [5], "a look changes nothing");
        for _ in 0..2 {
            let (catalogs, numbers) = load(&engine).expect("it can be loaded");
            assert!(engine.table(EARLIER_CATALOG_TREE).is_none());
            assert_eq!(numbers_of(&catalogs), [1, 4, 5, 6]);
            for catalog in &catalogs {
                assert_eq!(catalog.schema_exists("own"), catalog.database_oid() == DATABASE);
                assert!(catalog.role("alice").is_some());
                assert_eq!(catalog.migration(), archipel_migrations::CURRENT_VERSION);
            }
            assert!(numbers.draw(archipel_sql::catalog::Numbered::Oid, 1) >= Some(30_000));
        }
        assert_eq!(numbers_of(&read(&engine).expect("it can be read")), [1, 4, 5, 6]);
    }

    fn refused(rows: Vec<(Oid, Object)>) -> String {
        let engine = engine();
        load(&engine).expect("it can be loaded");
        write(&engine, FirstRows { rows, error: None }).expect("rows can be written");
        load(&engine).map(|_| ()).expect_err("they say too much").to_string()
    }

    #[test]
    fn databases_that_have_the_same_tree_are_refused() {
        let table = |name| {
            let table = Table { tree: 1_000, ..Table::new(OWN, "public", name, TableKind::Table) };
            Object::Table(Arc::new(table))
        };
        let told = refused(vec![(DATABASE, table("a")), (POSTGRES, table("b"))]);
        assert!(told.contains("databases archipel and postgres both have tree 1000"), "{told}");
    }

    #[test]
    fn rows_of_a_database_that_is_not_there_are_refused() {
        let schema = Object::Schema(Schema { oid: OWN, name: "own".to_owned() });
        let told = refused(vec![(Oid(99), schema)]);
        assert!(told.contains("there are objects of database 99, which is not there"), "{told}");
    }
}
