//! Definitions of a transaction on a catalog to which others have added meanwhile.
//!
//! They were planned on the catalog that was in force when the transaction began to define. If that
//! is not in force any more at its COMMIT, they stand nevertheless where both sides only added to it,
//! and not the same names: then neither knows anything that the other has changed. That is what
//! scripts of several clients do which make tables of their own. Numbers are drawn from one place
//! ([`crate::catalog::CatalogHandle::drawing`]), so those of two sides differ.

use std::sync::Arc;

use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::catalog::operator_class::{OperatorClassRef, access_method};
use archipel_sql::catalog::{Catalog, CatalogChange, Numbers, Object, Relation, Table};
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::types::Oid;

/// Why two sides may not stand together.
pub(super) enum Apart {
    /// Both have given one name to something of their own.
    SameName(Box<SqlError>),
    /// One of them has changed what was there.
    Changed,
}

/// The catalog that changes which led from `base` to `own` lead to from `current`, the changes being
/// adapted to it.
pub(super) fn rebased(
    base: &Catalog,
    own: &Catalog,
    current: &Catalog,
    changes: &mut [CatalogChange],
) -> Result<Catalog, Apart> {
    let mut objects = changes.iter().filter_map(|change| match change {
        CatalogChange::Put(object) => Some(object),
        _ => None,
    });
    if let Some(error) = objects.find_map(|object| taken(object, base, current)) {
        return Err(Apart::SameName(Box::new(error)));
    }
    if !adds_to(base, own) || !adds_to(base, current) {
        return Err(Apart::Changed);
    }
    for change in changes.iter_mut() {
        let CatalogChange::Put(object) = change else { continue };
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
    Ok(current.apply(changes))
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
        && before
            .operator_classes()
            .all(|old| after.operator_class_by_oid(old.oid).is_some_and(|new| Arc::ptr_eq(old, &new)))
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

/// The error of an object whose name others have given to one of theirs: PostgreSQL finds two rows with
/// one key in its catalogs.
fn taken(object: &Object, base: &Catalog, current: &Catalog) -> Option<SqlError> {
    // What had the name before is not theirs.
    let is_new = |held: &dyn Fn(&Catalog) -> Option<Oid>| held(base).is_none() && held(current).is_some();
    let place = |schema: &str| current.schema(schema).map_or(0, |schema| schema.oid.0);
    let relation = |schema: &str, name: &str| {
        // Composite types are relations, too.
        let is_taken = is_new(&|catalog| {
            let composite = || catalog.user_type_in(schema, name).filter(|ty| ty.attributes.is_some());
            let relation = catalog.relation_in(schema, name).map(|relation| relation.oid());
            relation.or_else(|| composite().map(|ty| ty.oid))
        });
        is_taken.then(|| {
            let key = format!("(relname, relnamespace)=({name}, {})", place(schema));
            duplicate("pg_class", "pg_class_relname_nsp_index", &key)
        })
    };
    let ty = |schema: &str, name: &str| {
        let is_taken = is_new(&|catalog| {
            // Tables have types of their names.
            catalog.user_type_in(schema, name).map(|ty| ty.oid).or_else(|| {
                match catalog.relation_in(schema, name)? {
                    Relation::Table(table) => Some(table.oid),
                    _ => None,
                }
            })
        });
        is_taken.then(|| {
            let key = format!("(typname, typnamespace)=({name}, {})", place(schema));
            duplicate("pg_type", "pg_type_typname_nsp_index", &key)
        })
    };
    match object {
        Object::Table(table) => {
            let keys = table.primary_key.iter().map(|key| &key.name);
            let mut names = keys.chain(table.indexes.iter().map(|index| &index.name));
            ty(&table.schema, &table.name)
                .or_else(|| relation(&table.schema, &table.name))
                .or_else(|| names.find_map(|name| relation(&table.schema, name)))
        }
        Object::Sequence(sequence) => relation(&sequence.schema, &sequence.name),
        Object::Type(known) if known.attributes.is_some() => {
            ty(&known.schema, &known.name).or_else(|| relation(&known.schema, &known.name))
        }
        Object::Type(known) => ty(&known.schema, &known.name),
        Object::Routine(routine) => {
            let types = routine.input_types();
            let held = |catalog: &Catalog| {
                catalog.routine_in(&routine.schema, &routine.name, &types).map(|found| found.oid)
            };
            is_new(&held).then(|| {
                let types: Vec<String> = types.iter().map(|ty| ty.0.to_string()).collect();
                let (name, types) = (&routine.name, types.join(" "));
                let key = format!(
                    "(proname, proargtypes, pronamespace)=({name}, {types}, {})",
                    place(&routine.schema)
                );
                duplicate("pg_proc", "pg_proc_proname_args_nsp_index", &key)
            })
        }
        Object::OperatorClass(class) => {
            let is_it = |known: &&OperatorClassRef| {
                known.schema == class.schema && known.name == class.name && known.method == class.method
            };
            let is_taken = is_new(&|catalog| catalog.operator_classes().find(is_it).map(|known| known.oid));
            let key = format!(
                "(opcmethod, opcname, opcnamespace)=({}, {}, {})",
                access_method(&class.method).0,
                class.name,
                place(&class.schema)
            );
            is_taken.then(|| duplicate("pg_opclass", "pg_opclass_am_name_nsp_index", &key))
        }
        Object::Schema(schema) => {
            let is_taken = is_new(&|catalog| catalog.schema(&schema.name).map(|schema| schema.oid));
            let key = format!("(nspname)=({})", schema.name);
            is_taken.then(|| duplicate("pg_namespace", "pg_namespace_nspname_index", &key))
        }
        Object::Role(role) => {
            let is_taken = is_new(&|catalog| catalog.role(&role.name).map(|role| role.oid));
            let key = format!("(rolname)=({})", role.name);
            is_taken.then(|| duplicate("pg_authid", "pg_authid_rolname_index", &key))
        }
        Object::Numbers(_) | Object::Comments(_) | Object::Migration(_) | Object::Access(_) => None,
    }
}

/// 23505 of a system catalog.
fn duplicate(table: &str, index: &str, key: &str) -> SqlError {
    let message = format!("duplicate key value violates unique constraint \"{index}\"");
    let mut error =
        SqlError::new(SqlState::UNIQUE_VIOLATION, message).with_detail(format!("Key {key} already exists."));
    let fields = error.fields_mut();
    fields.schema = Some("pg_catalog".to_owned());
    fields.table = Some(table.to_owned());
    fields.constraint = Some(index.to_owned());
    error
}
