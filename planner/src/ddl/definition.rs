//! What makes up a table and is kept as text: generated columns, what indexes are over, and
//! their conditions. A routine or a type that such a text names does not go without it.

use archipel_sql::catalog::dependency::Dependent;
use archipel_sql::catalog::{Catalog, CatalogChange, ObjectKind, RoutineRef, Table, TableKind, TableRef};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Oid;

use super::work::Work;
use super::{alter, expression, index, view};
use crate::bind::Clause;
use crate::bind::insert::is_same;
use crate::bind::reference::bind_definition;

/// The generated columns and indexes that are what they are by an object.
pub(super) fn users(kind: ObjectKind, oid: Oid, work: &Work<'_>) -> Vec<Dependent> {
    changed_by(CatalogChange::Drop(kind, oid), work)
}

/// Refuses to give a routine another name or place while a definition is kept that says it.
pub(super) fn check_unnamed(routine: &RoutineRef, work: &Work<'_>) -> Result<()> {
    match &users(ObjectKind::Routine, routine.oid, work)[..] {
        [] => Ok(()),
        [user, ..] => {
            Err(SqlError::unsupported(format_args!("renaming a function that {} names", user.describe())))
        }
    }
}

/// What would not be bound any more, or be bound to something else.
fn changed_by(change: CatalogChange, work: &Work<'_>) -> Vec<Dependent> {
    let after = work.catalog.apply(&[change]);
    let differs = |table: &TableRef, text: &str, clause: Clause| {
        let bound = |catalog: &Catalog| bind_definition(catalog, table, text, clause);
        bound(&work.catalog).is_ok_and(|now| !bound(&after).is_ok_and(|then| is_same(&now, &then)))
    };
    let mut tables: Vec<_> =
        work.catalog.tables().filter(|table| table.kind == TableKind::Table).cloned().collect();
    tables.sort_by_key(|table| table.oid);
    let mut found = Vec::new();
    for table in &tables {
        for (place, column) in table.columns.iter().enumerate() {
            if column.generated.as_ref().is_some_and(|text| differs(table, text, Clause::Generated)) {
                found.push(Dependent::Generated(table.clone(), place as u16));
            }
        }
        for (place, index) in table.indexes.iter().enumerate() {
            let condition = index.predicate.iter().any(|text| differs(table, text, Clause::IndexPredicate));
            let mut parts = index.expressions.iter();
            if condition || parts.any(|part| differs(table, &part.text, Clause::IndexExpression)) {
                found.push(Dependent::Index(table.clone(), place));
            }
        }
    }
    found
}

/// Whether a definition reads one of these columns, or is one.
pub(super) fn is_over(user: &Dependent, columns: &[(Oid, String)]) -> bool {
    let (table, texts): (&TableRef, Vec<&String>) = match user {
        Dependent::Generated(table, place) => {
            (table, table.columns[usize::from(*place)].generated.iter().collect())
        }
        Dependent::Index(table, place) => {
            let index = &table.indexes[*place];
            (table, index.predicate.iter().chain(index.expressions.iter().map(|part| &part.text)).collect())
        }
        _ => return false,
    };
    let own = || columns.iter().filter(|(oid, _)| *oid == table.oid);
    let reads = |text: &str| {
        own()
            .filter_map(|(_, name)| table.column_index(name))
            .any(|place| expression::text_uses_column(text, table, place).unwrap_or(false))
    };
    let is_one =
        |table: &Table, place: u16| own().any(|(_, name)| *name == table.columns[usize::from(place)].name);
    texts.into_iter().any(|text| reads(text))
        || matches!(user, Dependent::Generated(table, place) if is_one(table, *place))
}

/// Drops generated columns and indexes, as far as they are still there.
pub(super) fn drop_users(users: &[Dependent], work: &mut Work<'_>) -> Result<()> {
    for user in users {
        match user {
            Dependent::Generated(table, place) => {
                let name = &table.columns[usize::from(*place)].name;
                let Some(table) = work.catalog.table_by_oid(table.oid) else { continue };
                let Some(place) = table.column_index(name) else { continue };
                for view in view::users_of_column(&table, place, work) {
                    work.drop(ObjectKind::Table, view.oid);
                }
                alter::drop_column_of(&table, name, work)?;
            }
            Dependent::Index(table, place) => {
                let oid = table.indexes[*place].oid;
                let Some(table) = work.catalog.table_by_oid(table.oid) else { continue };
                if let Some(place) = table.indexes.iter().position(|index| index.oid == oid) {
                    index::remove(&table, place, work);
                }
            }
            _ => {}
        }
    }
    Ok(())
}
