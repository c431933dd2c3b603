//! What stands on names in the texts the catalog keeps: defaults and conditions, generated columns,
//! what indexes are over, views. A routine or a type that such a text names does not go without it.

use archipel_sql::catalog::dependency::Dependent;
use archipel_sql::catalog::{Object, ObjectKind, Table, TableKind, TableRef, UserType};
use archipel_sql::error::Result;
use archipel_sql::types::Oid;

use super::relation;
use crate::alter::{alter_inheritance, drop_column};
use crate::data_type::{composite, domain_form};
use crate::function::{create_operator_class, operator_family, routine_drop};
use crate::relation::{index, view_query};
use crate::work::{Work, change};

/// Drops a column, if it is still there, and the views that show it.
fn drop_column_and_views(table: &TableRef, place: u16, work: &mut Work<'_>) -> Result<()> {
    let name = &table.columns[usize::from(place)].name;
    let Some(table) = work.catalog.table_by_oid(table.oid) else { return Ok(()) };
    let Some(place) = table.column_index(name) else { return Ok(()) };
    if table.partitioned_by.as_ref().is_some_and(|key| alter_inheritance::key_uses(key, &table, place)) {
        return relation::drop_tables(&[table], true, work);
    }
    for view in view_query::users_of_column(&table, place, work) {
        work.drop(ObjectKind::Table, view.oid);
    }
    // Policies of its own may have gone with the views.
    let Some(table) = work.catalog.table_by_oid(table.oid) else { return Ok(()) };
    drop_column::drop_column_of(&table, name, work)
}

/// Drops what [`dependency::users`](super::dependency::users) has found, as far as it is still there.
fn drop_users(users: &[Dependent], work: &mut Work<'_>) -> Result<()> {
    for user in users {
        match user {
            Dependent::Generated(table, place) => drop_column_and_views(table, *place, work)?,
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
            Dependent::Policy(table, place) => {
                work.drop_policy(table.oid, table.row_security.policies[*place].oid);
            }
            Dependent::DomainCheck(ty, place) => drop_domain_check(ty, *place, work),
            Dependent::PartitionKey(table) => {
                if let Some(table) = work.catalog.table_by_oid(table.oid) {
                    relation::drop_tables(&[table], true, work)?;
                }
            }
            Dependent::Domain(ty) => {
                if let Some(ty) = work.catalog.user_type_by_oid(ty.oid) {
                    work.drop_type(&ty, true)?;
                }
            }
            Dependent::Column(table, place) => drop_column_and_views(table, *place, work)?,
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
                    create_operator_class::drop_one(&class, work)?;
                }
            }
            Dependent::OperatorFamily(family) => {
                if let Some(family) = work.catalog.operator_family_by_oid(family.oid) {
                    operator_family::drop_one(&family, work)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn drop_domain_check(ty: &UserType, place: usize, work: &mut Work<'_>) {
    let oid = ty.domain.as_ref().and_then(|domain| domain.checks.get(place)).map(|check| check.oid);
    let Some(known) = work.catalog.user_type_by_oid(ty.oid) else { return };
    let mut changed: UserType = (*known).clone();
    if let Some(domain) = &mut changed.domain {
        domain.checks.retain(|check| Some(check.oid) != oid);
    }
    work.put(Object::Type(changed.into()));
    domain_form::compile_anew(&known, work);
}

fn change_table(oid: Oid, work: &mut Work<'_>, change: impl FnOnce(&mut Table)) {
    if let Some(table) = work.catalog.table_by_oid(oid) {
        let mut changed = (*table).clone();
        change(&mut changed);
        match changed.kind {
            TableKind::View => drop(work.put_table(changed)),
            _ => change::finish(changed, work),
        }
    }
}

impl Work<'_> {
    /// Drops what was found to stand on something, as far as it is still there.
    pub(crate) fn drop_users(&mut self, users: &[Dependent]) -> Result<()> {
        drop_users(users, self)
    }
}
