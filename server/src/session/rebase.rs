//! Definitions of a transaction on a catalog to which others have added meanwhile.
//!
//! They were planned on the catalog that was in force when the transaction began to define. If that
//! is not in force any more at its COMMIT, they stand nevertheless where both sides only added to it,
//! and not the same names: then neither knows anything that the other has changed. That is what
//! scripts of several clients do which make tables of their own. Numbers are drawn from one place
//! ([`crate::catalog::CatalogHandle::drawing`]), so those of two sides differ.

use std::sync::Arc;

use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::catalog::{Catalog, CatalogChange, Numbers, Object, Table};
use archipel_sql::types::Oid;

/// The catalog that changes which led from `base` to `own` lead to from `current`, the changes being
/// adapted to it; `None` where the two sides may not stand together.
pub(super) fn rebased(
    base: &Catalog,
    own: &Catalog,
    current: &Catalog,
    changes: &mut [CatalogChange],
) -> Option<Catalog> {
    if !adds_to(base, own) || !adds_to(base, current) {
        return None;
    }
    for change in changes.iter_mut() {
        let CatalogChange::Put(object) = change else { continue };
        if is_taken(object, base, current) {
            return None;
        }
        match object {
            Object::Numbers(numbers) => {
                let known = current.numbers();
                *numbers = Numbers {
                    oid: numbers.oid.max(known.oid),
                    tree: numbers.tree.max(known.tree),
                    group: numbers.group.max(known.group),
                };
            }
            // Both sides point at it.
            Object::Table(table) => {
                if let Some(known) = current.table_by_oid(table.oid).filter(|k| k.version >= table.version) {
                    *table = Arc::new(Table { version: known.version + 1, ..(**table).clone() });
                }
            }
            _ => {}
        }
    }
    Some(current.apply(changes))
}

/// Whether all that was there is as it was, but for what sessions have for themselves. A table to
/// which a foreign key points has got another version, and is the same.
fn adds_to(before: &Catalog, after: &Catalog) -> bool {
    let is_own = |oid: Oid| {
        let schema = before.relation_by_oid(oid).map(|relation| relation.schema().to_owned());
        schema.is_some_and(|schema| is_temporary_schema(&schema))
    };
    let mut tables = before.tables().filter(|table| !is_temporary_schema(&table.schema));
    let mut sequences = before.sequences().filter(|sequence| !is_temporary_schema(&sequence.schema));
    let mut schemas = before.schemas().filter(|schema| !is_temporary_schema(&schema.name));
    tables.all(|old| {
        after.table_by_oid(old.oid).is_some_and(|new| {
            Arc::ptr_eq(old, &new) || Table { version: new.version, ..(**old).clone() } == *new
        })
    }) && sequences.all(|old| after.sequence_by_oid(old.oid).is_some_and(|new| *old == new))
        && before
            .routines_all()
            .all(|old| after.routine_by_oid(old.oid).is_some_and(|new| Arc::ptr_eq(old, &new)))
        && before
            .user_types()
            .all(|old| after.user_type_by_oid(old.oid).is_some_and(|new| Arc::ptr_eq(old, &new)))
        && schemas.all(|old| after.schema(&old.name).is_some_and(|new| Arc::ptr_eq(old, &new)))
        && before.roles().all(|old| after.role(&old.name).is_some_and(|new| Arc::ptr_eq(old, &new)))
        && before
            .access_all()
            .filter(|old| !is_own(old.object))
            .all(|old| after.access(old.object).is_some_and(|new| Arc::ptr_eq(old, new)))
        && before
            .comments_all()
            .filter(|old| !is_own(old.object))
            .all(|old| after.comments(old.object).is_some_and(|new| Arc::ptr_eq(old, &new)))
}

/// Whether others have given a name of an object to something else.
fn is_taken(object: &Object, base: &Catalog, current: &Catalog) -> bool {
    let relation = |schema: &str, name: &str| {
        let held = |catalog: &Catalog| catalog.relation_in(schema, name).map(|relation| relation.oid());
        held(base) != held(current)
    };
    let ty = |schema: &str, name: &str| {
        let held = |catalog: &Catalog| {
            let mut types = catalog.user_types();
            types.find(|ty| ty.schema == schema && ty.name == name).map(|ty| ty.oid)
        };
        held(base) != held(current)
    };
    match object {
        Object::Table(table) => {
            let keys = table.primary_key.iter().map(|key| &key.name);
            let mut names =
                std::iter::once(&table.name).chain(keys).chain(table.indexes.iter().map(|index| &index.name));
            names.any(|name| relation(&table.schema, name)) || ty(&table.schema, &table.name)
        }
        Object::Sequence(sequence) => relation(&sequence.schema, &sequence.name),
        Object::Type(known) => ty(&known.schema, &known.name) || relation(&known.schema, &known.name),
        Object::Routine(routine) => {
            let held = |catalog: &Catalog| {
                let found = catalog.routine_in(&routine.schema, &routine.name, &routine.input_types());
                found.map(|found| found.oid)
            };
            held(base) != held(current)
        }
        Object::Schema(schema) => {
            let held = |catalog: &Catalog| catalog.schema(&schema.name).map(|schema| schema.oid);
            held(base) != held(current)
        }
        Object::Role(role) => {
            let held = |catalog: &Catalog| catalog.role(&role.name).map(|role| role.oid);
            held(base) != held(current)
        }
        Object::Numbers(_) | Object::Comments(_) | Object::Migration(_) | Object::Access(_) => false,
    }
}
