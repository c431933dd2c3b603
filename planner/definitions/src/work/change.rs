//! Changed tables on their way into the plan, and what has to be compiled anew after them.

use std::sync::Arc;

use archipel_sql::ast::QualifiedName;
use archipel_sql::catalog::names::{quote_identifier, undefined_column};
use archipel_sql::catalog::{
    Catalog, Column, Object, PartitionBound, Persistence, Routine, Table, TableKind, TableRef,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::{Work, validation};

/// 42P16 for SET LOGGED and SET UNLOGGED of what is temporary; PostgreSQL calls a sequence a table here.
pub(crate) fn check_persistent(name: &str, persistence: Persistence) -> Result<()> {
    if persistence != Persistence::Temporary {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::INVALID_TABLE_DEFINITION,
        format!("cannot change logged status of table \"{name}\" because it is temporary"),
    ))
}

pub(crate) fn already_exists(name: &str) -> SqlError {
    SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists"))
}

/// The table that a part of it is dropped from; with IF EXISTS a word for one that is missing, and `None`.
pub(crate) fn found_table(
    name: &QualifiedName,
    if_exists: bool,
    work: &mut Work<'_>,
) -> Result<Option<TableRef>> {
    match work.catalog.require_table(name, work.search_path()) {
        Err(error) if if_exists && error.state() == SqlState::UNDEFINED_TABLE => {
            work.notice(format!("relation \"{name}\" does not exist, skipping"));
            Ok(None)
        }
        Err(error) if if_exists && error.state() == SqlState::INVALID_SCHEMA_NAME => {
            work.notice(format!("{}, skipping", error.message()));
            Ok(None)
        }
        found => found.map(Some),
    }
}

/// Puts the changed table, and a new layout version for it.
pub(crate) fn finish(table: Table, work: &mut Work<'_>) {
    work.finish_table(table);
}

/// See [`Work::touch`].
pub(crate) fn touch(oid: Oid, work: &mut Work<'_>) {
    work.touch(oid);
}

/// As [`touch`], where a table has gained or lost a partition and nothing else of it has changed. Of the
/// partitions that stay, the default ones get another condition; and one that was there speaks for all to
/// statements over the whole of it, and of each table that this is part of: they are compiled over it, too,
/// and every partition of many would cost as much as all of them.
pub(crate) fn reshape(oid: Oid, work: &mut Work<'_>) {
    let Some(table) = work.catalog.table_by_oid(oid).filter(|table| !table.is_stored()) else {
        return touch(oid, work);
    };
    let mut changed: Vec<TableRef> = vec![table];
    changed.extend(work.catalog.partition_ancestors(oid));
    for whole in changed.clone() {
        // What is just being attached is in no plan yet.
        let was_there = |leaf: &TableRef| work.env.catalog.inherits_from(leaf.oid, whole.oid);
        changed.extend(work.catalog.leaves(whole.oid).into_iter().find(was_there));
    }
    for heir in work.catalog.heirs(oid) {
        if matches!(heir.bound, Some(PartitionBound::Default)) {
            changed.extend(work.catalog.leaves(heir.oid));
            changed.push(heir);
        }
    }
    let mut oids: Vec<Oid> = Vec::with_capacity(changed.len());
    for table in changed {
        if !oids.contains(&table.oid) {
            oids.push(table.oid);
            finish((*table).clone(), work);
        }
    }
}

pub(crate) fn column_place(table: &Table, column: &str) -> Result<u16> {
    table.column_index(column).ok_or_else(|| undefined_column(column, &table.name))
}

pub(crate) fn validate_not_null(table: &Table, place: usize, work: &mut Work<'_>) {
    if !table.is_stored() {
        return;
    }
    let column = &table.columns[place].name;
    let target = validation::named_rows(table, &[place as u16], work);
    let query = format!("SELECT 1 FROM {target} WHERE {} IS NULL LIMIT 1", quote_identifier(column));
    work.validate_each(query, validation::null_values(column, table));
}

/// Gives the tables that have such columns, and the routines that are such, a new version: their
/// plans hold what a type was.
pub(crate) fn compile_users_anew(
    work: &mut Work<'_>,
    column: impl Fn(&Catalog, &Column) -> bool,
    routine: impl Fn(&Catalog, &Routine) -> bool,
) {
    let tables: Vec<Oid> = work
        .catalog
        .tables()
        .filter(|table| table.kind == TableKind::Table)
        .filter(|table| table.columns.iter().any(|known| column(&work.catalog, known)))
        .map(|table| table.oid)
        .collect();
    for table in tables {
        touch(table, work);
    }
    let routines: Vec<Arc<Routine>> =
        work.catalog.routines_all().filter(|known| routine(&work.catalog, known)).cloned().collect();
    for routine in routines {
        let routine = Routine { version: routine.version + 1, ..(*routine).clone() };
        work.put(Object::Routine(Arc::new(routine)));
    }
}

/// Drops what was cloned from triggers that are gone, all the way down.
pub(crate) fn drop_cloned_triggers(of: &TableRef, gone: &[Oid], work: &mut Work<'_>) {
    if gone.is_empty() {
        return;
    }
    for heir in work.catalog.heirs(of.oid) {
        let is_clone = |trigger: &&archipel_sql::catalog::Trigger| {
            trigger.parent.is_some_and(|parent| gone.contains(&parent))
        };
        let below: Vec<Oid> = heir.triggers.iter().filter(is_clone).map(|trigger| trigger.oid).collect();
        if below.is_empty() {
            continue;
        }
        let mut changed = (*heir).clone();
        changed.triggers.retain(|trigger| !below.contains(&trigger.oid));
        finish(changed, work);
        drop_cloned_triggers(&heir, &below, work);
    }
}
