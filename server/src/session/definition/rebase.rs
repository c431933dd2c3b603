//! Definitions of a transaction on a catalog that others have changed meanwhile.
//!
//! They were planned on the catalog that was in force when the transaction began to define. If that
//! is not in force any more at its COMMIT, they stand nevertheless where the two sides have nothing to
//! do with each other: neither has given a name that the other gave, changed or dropped what the other
//! changed or dropped, nor built on what the other did that to. Numbers are drawn from one place
//! ([`archipel_sql::catalog::ObjectNumbers`]), so those of two sides differ.
//!
//! Who depends on a table, a sequence or a schema is known exactly. Whoever drops a routine, a type, an
//! operator class or a role stands only beside a side that made nothing that could name them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use archipel_engine::DdlOp;
use archipel_engine::id::TreeId;
use archipel_sql::catalog::operator_class::{OperatorClassRef, access_method};
use archipel_sql::catalog::{Catalog, CatalogChange, Object, ObjectKind, Relation, Table};
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::types::Oid;

/// Why two sides may not stand together.
pub(in crate::session) enum Apart {
    /// Both have given one name to something of their own.
    SameName(Box<SqlError>),
    /// One has to do with what the other has changed.
    Changed,
}

/// The catalog that changes which led from `base` to `own` lead to from `current`, the changes being
/// adapted to it. `operations` is what they do to tables.
pub(super) fn rebased<'o>(
    base: &Catalog,
    own: &Catalog,
    current: &Catalog,
    changes: &mut [CatalogChange],
    operations: impl Iterator<Item = &'o DdlOp>,
) -> Result<Catalog, Apart> {
    let mut objects = changes.iter().filter_map(|change| match change {
        CatalogChange::Put(object) => Some(object),
        _ => None,
    });
    if let Some(error) = objects.find_map(|object| taken(object, base, current)) {
        return Err(Apart::SameName(Box::new(error)));
    }
    let before = objects_of(base);
    let (mine, theirs) = (Side::of(own, &before), Side::of(current, &before));
    if !mine.changed.is_disjoint(&theirs.changed)
        || mine.disturbs(&theirs, &before)
        || theirs.disturbs(&mine, &before)
        || works_on(operations, base, &theirs)
    {
        return Err(Apart::Changed);
    }
    for change in changes.iter_mut() {
        let CatalogChange::Put(object) = change else { continue };
        let known = theirs.objects.get(&(object.kind(), object.oid()));
        if known.is_none() && before.contains_key(&(object.kind(), object.oid())) {
            return Err(Apart::Changed);
        }
        if let (Object::Table(table), Some(Object::Table(known))) = (object, known) {
            let version = table.version.max(known.version + 1);
            // Both sides point at it, and that is all this one has to say of it.
            let pointed_at = !mine.changed.contains(&(ObjectKind::Table, table.oid));
            let table_now = if pointed_at { &**known } else { &**table };
            *table = Arc::new(Table { version, ..table_now.clone() });
        }
    }
    Ok(current.apply(changes))
}

type Key = (ObjectKind, Oid);
type Objects = BTreeMap<Key, Object>;

fn objects_of(catalog: &Catalog) -> Objects {
    let schemas = catalog.schemas().map(|schema| Object::Schema((**schema).clone()));
    let shared = catalog
        .roles()
        .map(|role| Object::Role((**role).clone()))
        .chain(catalog.databases().map(|database| Object::Database((**database).clone())))
        .chain(catalog.shared_comments_all().map(|comments| Object::SharedComments((**comments).clone())))
        .chain(
            std::iter::once(catalog.parameters())
                .filter(|known| !known.is_empty())
                .cloned()
                .map(Object::Parameters),
        );
    let objects = schemas
        .chain(catalog.tables().cloned().map(Object::Table))
        .chain(catalog.sequences().cloned().map(Object::Sequence))
        .chain(catalog.routines_all().cloned().map(Object::Routine))
        .chain(catalog.user_types().cloned().map(Object::Type))
        .chain(catalog.operator_classes().cloned().map(Object::OperatorClass))
        .chain(catalog.operator_families().cloned().map(Object::OperatorFamily))
        .chain(shared)
        .chain(catalog.default_access_all().map(|entry| Object::DefaultAccess((**entry).clone())))
        .chain(catalog.access_all().map(|access| Object::Access((**access).clone())))
        .chain(catalog.comments_all().map(|comments| Object::Comments((**comments).clone())));
    objects.map(|object| ((object.kind(), object.oid()), object)).collect()
}

/// Whether an object is as it was. A table to which a foreign key points has got another version, and is
/// the same.
fn is_as_before(old: &Object, new: &Object) -> bool {
    match (old, new) {
        (Object::Table(old), Object::Table(new)) => {
            Arc::ptr_eq(old, new) || Table { version: new.version, ..(**old).clone() } == **new
        }
        (Object::Routine(old), Object::Routine(new)) => Arc::ptr_eq(old, new) || old == new,
        (Object::Type(old), Object::Type(new)) => Arc::ptr_eq(old, new) || old == new,
        (old, new) => old == new,
    }
}

/// What one side made of the catalog.
struct Side<'c> {
    catalog: &'c Catalog,
    objects: Objects,
    /// What was there before and is not as it was, or gone.
    changed: BTreeSet<Key>,
}

impl<'c> Side<'c> {
    fn of(catalog: &'c Catalog, before: &Objects) -> Side<'c> {
        let objects = objects_of(catalog);
        let changed = before
            .iter()
            .filter(|(key, old)| objects.get(key).is_none_or(|new| !is_as_before(old, new)))
            .map(|(key, _)| *key)
            .collect();
        Side { catalog, objects, changed }
    }

    /// What it made, or made anew.
    fn made<'s>(&'s self, before: &Objects) -> impl Iterator<Item = &'s Key> {
        self.objects.keys().filter(|key| !before.contains_key(key) || self.changed.contains(key))
    }

    /// Whether the other side builds on what this one has changed or dropped.
    fn disturbs(&self, other: &Side<'_>, before: &Objects) -> bool {
        let made: BTreeSet<Key> = other.made(before).copied().collect();
        let could_name = |kind: &ObjectKind| {
            use ObjectKind::{OperatorClass, OperatorFamily, Routine, Table, Type};
            matches!(kind, Table | Routine | Type | OperatorClass | OperatorFamily)
        };
        let dropped = |key: &Key| !self.objects.contains_key(key);
        self.changed.iter().any(|key| {
            let dependents = match before.get(key) {
                Some(Object::Table(table)) => other.catalog.dependents_of_table(table),
                Some(Object::Sequence(sequence)) => other.catalog.dependents_of_sequence(sequence),
                Some(Object::Schema(schema)) => other.catalog.dependents_of_schema(&schema.name),
                Some(Object::Routine(routine)) if is_called_as_before(routine.oid, self, before) => {
                    Vec::new()
                }
                Some(
                    Object::Routine(_)
                    | Object::Type(_)
                    | Object::OperatorClass(_)
                    | Object::OperatorFamily(_),
                ) => {
                    return made.iter().any(|(kind, _)| could_name(kind));
                }
                Some(Object::Role(_)) => return dropped(key) && !made.is_empty(),
                _ => Vec::new(),
            };
            let of_dropped = [ObjectKind::Access, ObjectKind::Comments, ObjectKind::SharedComments];
            let of_dropped = of_dropped.map(|kind| (kind, key.1));
            dependents.iter().any(|dependent| made.contains(&dependent.object()))
                || dropped(key) && of_dropped.iter().any(|of| made.contains(of))
                || key.0 == ObjectKind::Schema && dropped(key) && is_begun_in(key.1, other.catalog, &made)
        })
    }
}

/// Whether something was said of what new objects in a schema begin with.
fn is_begun_in(schema: Oid, catalog: &Catalog, made: &BTreeSet<Key>) -> bool {
    let mut entries = catalog.default_access_all().filter(|entry| entry.schema == Some(schema));
    entries.any(|entry| made.contains(&(ObjectKind::DefaultAccess, entry.oid)))
}

/// Whether a routine that was replaced takes and gives what it did.
fn is_called_as_before(routine: Oid, side: &Side<'_>, before: &Objects) -> bool {
    let key = (ObjectKind::Routine, routine);
    let (Some(Object::Routine(old)), Some(Object::Routine(new))) = (before.get(&key), side.objects.get(&key))
    else {
        return false;
    };
    (&old.schema, &old.name, old.kind, &old.args, &old.result)
        == (&new.schema, &new.name, new.kind, &new.args, &new.result)
}

/// Whether operations were planned on tables that have changed in this side.
fn works_on<'o>(mut operations: impl Iterator<Item = &'o DdlOp>, base: &Catalog, side: &Side<'_>) -> bool {
    let changed: Vec<TreeId> = base
        .tables()
        .filter(|table| side.changed.contains(&(ObjectKind::Table, table.oid)))
        .map(|table| TreeId(table.tree))
        .collect();
    operations.any(|operation| match operation {
        DdlOp::AlterTable { def, .. } | DdlOp::CreateTable(def) | DdlOp::CopyTable { def, .. } => {
            changed.contains(&def.id)
        }
        DdlOp::CreateIndex { table, .. } | DdlOp::DropIndex { table, .. } => changed.contains(table),
        DdlOp::DropTable(table) | DdlOp::Truncate(table) => changed.contains(table),
        _ => false,
    })
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
        Object::OperatorFamily(family) => {
            let (schema, name, method) = (&family.schema, &family.name, &family.method);
            let held = |catalog: &Catalog| {
                catalog.operator_family(Some(schema), name, method, &[]).map(|known| known.oid)
            };
            let key = format!(
                "(opfmethod, opfname, opfnamespace)=({}, {name}, {})",
                access_method(method).0,
                place(schema)
            );
            is_new(&held).then(|| duplicate("pg_opfamily", "pg_opfamily_am_name_nsp_index", &key))
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
        Object::DefaultAccess(entry) => {
            let held = |catalog: &Catalog| {
                let mut known = catalog.default_access_of(entry.role);
                let known = known.find(|known| (known.schema, known.class) == (entry.schema, entry.class));
                known.map(|known| known.oid)
            };
            let place = entry.schema.map_or(0, |schema| schema.0);
            let values = format!("{}, {place}, {}", entry.role, entry.letter());
            let key = format!("(defaclrole, defaclnamespace, defaclobjtype)=({values})");
            is_new(&held).then(|| duplicate("pg_default_acl", "pg_default_acl_role_nsp_obj_index", &key))
        }
        Object::Database(database) => {
            let held = |catalog: &Catalog| {
                let mut known = catalog.databases();
                known.find(|known| known.name == database.name).map(|known| known.oid)
            };
            let key = format!("(datname)=({})", database.name);
            is_new(&held).then(|| duplicate("pg_database", "pg_database_datname_index", &key))
        }
        Object::Numbers(_)
        | Object::Comments(_)
        | Object::SharedComments(_)
        | Object::Parameters(_)
        | Object::Migration(_)
        | Object::Access(_) => None,
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
