//! CREATE INDEX and DROP INDEX.

use archipel_engine::id::TreeId;
use archipel_engine::txn::DdlOp;
use archipel_sql::ast::{CreateIndex, IndexKey, QualifiedName};
use archipel_sql::catalog::{Index, IndexColumn, Relation, Table, TableKind};
use archipel_sql::error::{Result, SqlError, SqlState};

use super::constraint::{check_key_types, included};
use super::expression::check_index_condition;
use super::work::Work;
use super::{distribution, table::check_storage_options};
use crate::row::index_def;

pub(super) fn create_index(create: &CreateIndex, work: &mut Work<'_>) -> Result<()> {
    let table = work.catalog.require_table(&create.table, work.search_path())?;
    if table.kind == TableKind::View {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("cannot create index on relation \"{}\"", table.name),
        )
        .with_detail("This operation is not supported for views."));
    }
    work.check_changeable(&table)?;
    if let Some(name) = &create.name
        && work.catalog.relation_in(&table.schema, name).is_some()
    {
        let message = format!("relation \"{name}\" already exists");
        if create.if_not_exists {
            work.notice_as(SqlState::DUPLICATE_TABLE, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    if create.name.is_none() && create.if_not_exists {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "IF NOT EXISTS requires that you name the index"));
    }
    match create.method.as_deref() {
        // Every index is an ordered tree; hash indexes only promise less.
        None | Some("btree") => {}
        Some("hash" | "gin" | "gist" | "spgist" | "brin") => {
            let method = create.method.as_deref().unwrap_or_default();
            return Err(SqlError::unsupported(format_args!("index access method {method}")));
        }
        Some(method) => {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("access method \"{method}\" does not exist"),
            ));
        }
    }
    if create.predicate.is_some() && create.unique {
        return Err(SqlError::unsupported("a partial unique index"));
    }
    if create.nulls_not_distinct {
        return Err(SqlError::unsupported("NULLS NOT DISTINCT"));
    }
    let include = included(&table, &create.include)?;
    let predicate = match &create.predicate {
        Some(predicate) => {
            check_index_condition(predicate, &table)?;
            Some(predicate.text.clone())
        }
        None => None,
    };
    check_storage_options(&create.options)?;
    let columns = index_columns(create, &table)?;
    let numbers: Vec<u16> = columns.iter().map(|column| column.column).collect();
    check_key_types(&table, &numbers)?;
    let name = match &create.name {
        Some(name) => name.clone(),
        None => {
            let names: Vec<&str> = numbers
                .iter()
                .chain(&include)
                .map(|&column| table.columns[usize::from(column)].name.as_str())
                .collect();
            work.free_relation_name(&table.schema, [&table.name, &names.join("_"), "idx"], &[])
        }
    };
    let index = Index {
        oid: work.oids(2),
        name: name.clone(),
        columns,
        unique: create.unique,
        constraint: false,
        tree: work.tree(),
        global_group: None,
        include,
        predicate,
    };
    work.name_unique(index.tree, &name);
    let mut changed = (*table).clone();
    changed.indexes.push(index);
    distribution::place_indexes(&mut changed, work);
    let table = work.put_table(changed);
    let index = table.indexes.last().expect("pushed above");
    work.operation(DdlOp::CreateIndex { table: TreeId(table.tree), index: index_def(&table, index) });
    Ok(())
}

fn index_columns(create: &CreateIndex, table: &Table) -> Result<Vec<IndexColumn>> {
    let mut columns = Vec::with_capacity(create.elements.len());
    for element in &create.elements {
        let IndexKey::Column(name) = &element.key else {
            return Err(SqlError::unsupported("an index on an expression").at(Some(element.position)));
        };
        let column = table.column_index(name).ok_or_else(|| {
            SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
                .at(Some(element.position))
        })?;
        if let Some(collation) = &element.collation
            && !matches!(collation.name.as_str(), "default" | "C" | "POSIX" | "ucs_basic")
        {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("collation \"{}\" for encoding \"UTF8\" does not exist", collation.name),
            ));
        }
        // Text compares byte by byte here, so the pattern classes are the plain ones.
        if let Some(class) = &element.operator_class {
            let known = class.name.ends_with("_ops") && !class.name.starts_with("jsonb");
            if !known {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("operator class \"{}\" does not exist for access method \"btree\"", class.name),
                ));
            }
        }
        let nulls_first = element.nulls_first.unwrap_or(element.descending);
        columns.push(IndexColumn { column, descending: element.descending, nulls_first });
    }
    Ok(columns)
}

/// One name of DROP INDEX.
pub(super) fn drop_index(name: &QualifiedName, relation: &Relation, work: &mut Work<'_>) -> Result<()> {
    let table = match relation {
        Relation::PrimaryKey(table) => {
            return Err(needed_by_constraint(relation.name(), &table.name));
        }
        Relation::Index(table, place) if table.indexes[*place].constraint => {
            return Err(needed_by_constraint(relation.name(), &table.name));
        }
        Relation::Index(table, _) => table,
        other => {
            let what = if matches!(other, Relation::Table(_)) { "TABLE" } else { "SEQUENCE" };
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not an index", name.name),
            )
            .with_hint(format!("Use DROP {what} to remove a {}.", what.to_lowercase())));
        }
    };
    let Some(place) = table.indexes.iter().position(|index| index.name == relation.name()) else {
        return Ok(());
    };
    let index = &table.indexes[place];
    let columns: Vec<u16> = index.columns.iter().map(|column| column.column).collect();
    if index.unique && is_referenced_key(table, &columns, work) {
        return Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot drop index {} because other objects depend on it", index.name),
        )
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    work.operation(DdlOp::DropIndex { table: TreeId(table.tree), index: TreeId(index.tree) });
    let mut changed = (**table).clone();
    changed.indexes.remove(place);
    work.put_table(changed);
    Ok(())
}

/// Whether a foreign key points at exactly these columns and no other key of the table serves.
pub(super) fn is_referenced_key(table: &Table, columns: &[u16], work: &Work<'_>) -> bool {
    let sorted = |columns: &[u16]| {
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        columns
    };
    let wanted = sorted(columns);
    let keys =
        table
            .primary_key
            .iter()
            .map(|key| sorted(&key.columns))
            .chain(
                table.indexes.iter().filter(|index| index.unique).map(|index| {
                    sorted(&index.columns.iter().map(|column| column.column).collect::<Vec<_>>())
                }),
            )
            .filter(|key| *key == wanted)
            .count();
    let referenced = work.catalog.tables().any(|other| {
        other
            .foreign_keys
            .iter()
            .any(|key| key.references == table.oid && sorted(&key.referenced_columns) == wanted)
    });
    referenced && keys <= 1
}

fn needed_by_constraint(index: &str, table: &str) -> SqlError {
    SqlError::new(
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot drop index {index} because constraint {index} on table {table} requires it"),
    )
    .with_hint(format!("You can drop constraint {index} on table {table} instead."))
}
