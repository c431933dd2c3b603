//! What stands on names in the texts the catalog keeps: defaults and conditions, generated columns,
//! what indexes are over, views. A routine or a type that such a text names does not go without it.

use std::mem::discriminant;

use archipel_sql::catalog::dependency::Dependent;
use archipel_sql::catalog::{
    CatalogChange, Object, ObjectKind, RoutineRef, Table, TableKind, TableRef, UserType,
};
use archipel_sql::error::Result;
use archipel_sql::types::Oid;

use super::work::Work;
use super::{
    alter, alter_heirs, composite, defined_class, domain, drop, drop_column, expression, index, kept,
    routine_drop, user_type, view,
};

/// What is what it is by a routine, a type or a sequence.
pub(super) fn users(kind: ObjectKind, oid: Oid, work: &Work<'_>) -> Vec<Dependent> {
    let name = match kind {
        ObjectKind::Routine => work.catalog.routine_by_oid(oid).map(|routine| routine.name.clone()),
        ObjectKind::Type => work.catalog.user_type_by_oid(oid).map(|ty| ty.name.clone()),
        ObjectKind::Sequence => work.catalog.sequence_by_oid(oid).map(|sequence| sequence.name.clone()),
        _ => None,
    };
    let Some(name) = name else { return Vec::new() };
    let name = name.to_lowercase();
    // Who does not say its name does not mean it.
    let mut users =
        changed_by(CatalogChange::Drop(kind, oid), &|text| text.to_lowercase().contains(&name), work);
    if kind == ObjectKind::Routine {
        users.extend(aggregates_of(oid, work));
        users.extend(defined_class::users_of_function(oid, work));
    }
    users
}

/// The aggregates that are made of a function.
fn aggregates_of(function: Oid, work: &Work<'_>) -> Vec<Dependent> {
    let made_of = |routine: &&RoutineRef| {
        let mut functions = routine.aggregate.iter().flat_map(|aggregate| aggregate.functions());
        functions.any(|oid| oid == function)
    };
    let mut found: Vec<RoutineRef> = work.catalog.routines_all().filter(made_of).cloned().collect();
    found.sort_by_key(|routine| routine.oid);
    found.into_iter().map(Dependent::Routine).collect()
}

/// What would not be bound any more, or be bound to something else.
fn changed_by(change: CatalogChange, may_mean: &dyn Fn(&str) -> bool, work: &Work<'_>) -> Vec<Dependent> {
    let dropped = match &change {
        CatalogChange::Drop(kind, oid) => Some((*kind, *oid)),
        CatalogChange::Put(_) => None,
    };
    let after = work.catalog.apply(&[change]);
    let mut found: Vec<Dependent> = Vec::new();
    for text in kept::all(&work.catalog) {
        let itself = match &text.owner {
            Dependent::Routine(routine) => dropped == Some((ObjectKind::Routine, routine.oid)),
            Dependent::Domain(ty) | Dependent::DomainCheck(ty, _) => {
                dropped == Some((ObjectKind::Type, ty.oid))
            }
            _ => false,
        };
        let differs = || {
            let now = text.bind(&work.catalog);
            now.is_ok_and(|now| !text.bind(&after).is_ok_and(|then| now.is_same(&then)))
        };
        if !itself
            && may_mean(&text.text)
            && !found.iter().any(|known| is_one(known, &text.owner))
            && differs()
        {
            found.push(text.owner);
        }
    }
    for view in view::changed_by(&after, may_mean, work) {
        found.push(Dependent::View(view));
    }
    found
}

/// Whether both are the same part of the same object.
pub(super) fn is_one(one: &Dependent, other: &Dependent) -> bool {
    let place = |dependent: &Dependent| match dependent {
        Dependent::Index(table, place)
        | Dependent::Trigger(table, place)
        | Dependent::Check(table, place) => (table.oid, *place),
        Dependent::Generated(table, place) | Dependent::Default(table, place) => {
            (table.oid, usize::from(*place))
        }
        Dependent::DomainCheck(ty, place) => (ty.oid, *place),
        Dependent::Domain(ty) => (ty.oid, 0),
        Dependent::Routine(routine) => (routine.oid, 0),
        Dependent::PartitionKey(table) => (table.oid, 0),
        _ => (Oid(0), 0),
    };
    discriminant(one) == discriminant(other) && place(one) == place(other)
}

/// Whether something reads one of these columns, or is part of one.
pub(super) fn is_over(user: &Dependent, columns: &[(Oid, String)]) -> bool {
    let own = |table: &Table| {
        let oid = table.oid;
        columns.iter().filter(move |(of, _)| *of == oid).map(|(_, name)| name)
    };
    let reads = |table: &Table, text: &str| {
        own(table)
            .filter_map(|name| table.column_index(name))
            .any(|place| expression::text_uses_column(text, table, place).unwrap_or(false))
    };
    let is_one =
        |table: &Table, place: u16| own(table).any(|name| *name == table.columns[usize::from(place)].name);
    match user {
        Dependent::Generated(table, place) => {
            let text = &table.columns[usize::from(*place)].generated;
            is_one(table, *place) || text.iter().any(|text| reads(table, text))
        }
        Dependent::Default(table, place) => is_one(table, *place),
        Dependent::Check(table, place) => reads(table, &table.checks[*place].condition),
        Dependent::Index(table, place) => {
            let index = &table.indexes[*place];
            let parts = index.expressions.iter().map(|part| &part.text);
            index.predicate.iter().chain(parts).any(|text| reads(table, text))
        }
        Dependent::Trigger(table, place) => {
            own(table).any(|column| table.triggers[*place].uses_column(column))
        }
        Dependent::View(view) => columns.iter().any(|(oid, _)| *oid == view.oid),
        _ => false,
    }
}

/// Drops a column, if it is still there, and the views that show it.
fn drop_column(table: &TableRef, place: u16, work: &mut Work<'_>) -> Result<()> {
    let name = &table.columns[usize::from(place)].name;
    let Some(table) = work.catalog.table_by_oid(table.oid) else { return Ok(()) };
    let Some(place) = table.column_index(name) else { return Ok(()) };
    if table.partitioned_by.as_ref().is_some_and(|key| alter_heirs::key_uses(key, &table, place)) {
        return drop::drop_tables(&[table], true, work);
    }
    for view in view::users_of_column(&table, place, work) {
        work.drop(ObjectKind::Table, view.oid);
    }
    drop_column::drop_column_of(&table, name, work)
}

/// Drops what [`users`] has found, as far as it is still there.
pub(super) fn drop_users(users: &[Dependent], work: &mut Work<'_>) -> Result<()> {
    for user in users {
        match user {
            Dependent::Generated(table, place) => drop_column(table, *place, work)?,
            Dependent::Index(table, place) => {
                let oid = table.indexes[*place].oid;
                let Some(table) = work.catalog.table_by_oid(table.oid) else { continue };
                if let Some(place) = table.indexes.iter().position(|index| index.oid == oid) {
                    index::remove(&table, place, work);
                }
            }
            Dependent::Default(table, place) => {
                let name = &table.columns[usize::from(*place)].name;
                change_table(table.oid, work, |table| {
                    if let Some(place) = table.column_index(name) {
                        table.columns[usize::from(place)].default = None;
                    }
                });
            }
            Dependent::Check(table, place) => {
                let oid = table.checks[*place].oid;
                change_table(table.oid, work, |table| table.checks.retain(|check| check.oid != oid));
            }
            Dependent::Trigger(table, place) => {
                let oid = table.triggers[*place].oid;
                change_table(table.oid, work, |table| table.triggers.retain(|trigger| trigger.oid != oid));
            }
            Dependent::DomainCheck(ty, place) => {
                let oid = ty.domain.as_ref().and_then(|domain| domain.checks.get(*place)).map(|c| c.oid);
                let Some(known) = work.catalog.user_type_by_oid(ty.oid) else { continue };
                let mut changed: UserType = (*known).clone();
                if let Some(domain) = &mut changed.domain {
                    domain.checks.retain(|check| Some(check.oid) != oid);
                }
                work.put(Object::Type(changed.into()));
                domain::compile_anew(&known, work);
            }
            Dependent::PartitionKey(table) => {
                if let Some(table) = work.catalog.table_by_oid(table.oid) {
                    drop::drop_tables(&[table], true, work)?;
                }
            }
            Dependent::Domain(ty) => {
                if let Some(ty) = work.catalog.user_type_by_oid(ty.oid) {
                    user_type::drop_type(&ty, true, work)?;
                }
            }
            Dependent::Column(table, place) => drop_column(table, *place, work)?,
            Dependent::Attribute(ty, place) => composite::drop_attribute(ty, *place, work)?,
            Dependent::View(view) if work.catalog.table_by_oid(view.oid).is_some() => {
                work.drop(ObjectKind::Table, view.oid);
            }
            Dependent::Routine(found) => {
                if let Some(found) = work.catalog.routine_by_oid(found.oid) {
                    routine_drop::drop_one(&found, work)?;
                }
            }
            Dependent::OperatorClass(class) => {
                if let Some(class) = work.catalog.operator_class_by_oid(class.oid) {
                    defined_class::drop_one(&class, work)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn change_table(oid: Oid, work: &mut Work<'_>, change: impl FnOnce(&mut Table)) {
    if let Some(table) = work.catalog.table_by_oid(oid) {
        let mut changed = (*table).clone();
        change(&mut changed);
        match changed.kind {
            TableKind::View => drop(work.put_table(changed)),
            _ => alter::finish(changed, work),
        }
    }
}
