//! All catalog objects at one moment. A `Catalog` never changes; DDL makes the next one from it
//! with [`Catalog::apply`]. Objects are shared between the two, and so is most of what finds them
//! (`state`).

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use crate::types::Oid;

use super::invalidation::lookup_recorder::{LookupRecorder, Lookups};
use super::operator_class::{OperatorClassRef, OperatorFamilyRef};
use super::relation::Relation;
use super::state::{RelationOid, State};
use super::{
    ARCHIPEL, Access, CatalogChange, Comments, Database, DefaultAccess, INFORMATION_SCHEMA, Numbers, Object,
    ObjectKind, PG_CATALOG, PUBLIC, Parameters, Role, RoutineRef, SUPERUSER, SUPERUSER_NAME, Schema,
    SequenceRef, SharedCatalog, Table, TableRef, UserTypeRef,
};

/// A version of the catalog; cheap to clone. A handle may write down what is looked up through it.
#[derive(Clone, Debug)]
pub struct Catalog(Arc<State>, Option<Arc<LookupRecorder>>);

/// Tells one version of the catalog from all others, and keeps nothing of it.
#[derive(Clone, Debug)]
pub struct CatalogMark(Weak<State>);

impl CatalogMark {
    /// Whether it is that of this very version.
    pub fn is_of(&self, catalog: &Catalog) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&catalog.0))
    }
}

impl Catalog {
    /// The catalog of an empty data directory: the schemas of the system with their views. It is that of the
    /// database which such a directory has; see [`Catalog::of_database`].
    pub fn new(system: Vec<Table>) -> Catalog {
        let mut state = State::empty();
        for (oid, name) in
            [(PG_CATALOG, "pg_catalog"), (INFORMATION_SCHEMA, "information_schema"), (ARCHIPEL, "archipel")]
        {
            state.put(&Object::Schema(Schema { oid, name: name.to_string() }));
        }
        state.put(&Object::Database(Database::initial()));
        state.put(&Object::Role(Role::superuser(SUPERUSER, SUPERUSER_NAME)));
        for role in super::access::role::predefined() {
            state.put(&Object::Role(role));
        }
        for table in system {
            state.put(&Object::Table(Arc::new(table)));
        }
        Catalog(Arc::new(state), None)
    }

    /// [`Catalog::new`] with schema `public`, as after the first start.
    pub fn initial(system: Vec<Table>) -> Catalog {
        Catalog::new(system)
            .apply(&[CatalogChange::Put(Object::Schema(Schema { oid: PUBLIC, name: "public".to_string() }))])
    }

    /// The next version, as one of another database.
    #[must_use]
    pub fn of_database(&self, oid: Oid, name: &str) -> Catalog {
        let mut state = State::clone(&self.0);
        state.version += 1;
        (state.database, state.database_name) = (oid, name.into());
        Catalog(Arc::new(state), None)
    }

    /// The database that it is of.
    pub fn database_oid(&self) -> Oid {
        self.0.database
    }

    /// What that is called.
    pub fn database_name(&self) -> &str {
        self.note_all(ObjectKind::Database);
        let known = self.0.shared.databases.get(&self.0.database);
        known.map_or(&*self.0.database_name, |database| &database.name)
    }

    /// What it has in common with the catalogs of other databases.
    pub fn shared(&self) -> SharedCatalog {
        SharedCatalog(self.0.shared.clone())
    }

    /// The next version, with what others have made of the shared part; this one if that is the same.
    #[must_use]
    pub fn with_shared(&self, shared: &SharedCatalog) -> Catalog {
        if Arc::ptr_eq(&self.0.shared, &shared.0) {
            return self.clone();
        }
        let mut state = (*self.0).clone();
        state.version += 1;
        state.shared = shared.0.clone();
        Catalog::of_state(state)
    }

    /// The next version.
    #[must_use]
    pub fn apply(&self, changes: &[CatalogChange]) -> Catalog {
        let mut state = State::clone(&self.0);
        state.version += 1;
        for change in changes {
            match change {
                CatalogChange::Put(object) => state.put(object),
                CatalogChange::Drop(kind, oid) => state.drop(*kind, *oid),
            }
        }
        Catalog(Arc::new(state), None)
    }

    /// Makes this the next version, as [`Catalog::apply`] does: what no other handle has is changed where it is,
    /// so that a thousand changes cost no thousand copies.
    pub fn advance(&mut self, change: &CatalogChange) {
        let state = Arc::make_mut(&mut self.0);
        state.version += 1;
        match change {
            CatalogChange::Put(object) => state.put(object),
            CatalogChange::Drop(kind, oid) => state.drop(*kind, *oid),
        }
        self.1 = None;
    }

    /// A catalog of this, with nothing written down.
    pub(super) fn of_state(state: State) -> Catalog {
        Catalog(Arc::new(state), None)
    }

    pub(super) fn state(&self) -> &State {
        &self.0
    }

    /// Grows with every [`Catalog::apply`].
    pub fn version(&self) -> u64 {
        self.0.version
    }

    /// The version of the newest migration that ran; 0 before the first.
    pub fn migration(&self) -> u32 {
        self.0.migration
    }

    /// What new objects are numbered from, by the row that was written last.
    pub fn numbers(&self) -> Numbers {
        self.0.numbers
    }

    /// Whether both are the very same version.
    pub fn same_as(&self, other: &Catalog) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// What tells this version from all others.
    pub fn mark(&self) -> CatalogMark {
        CatalogMark(Arc::downgrade(&self.0))
    }

    /// The mark of all objects of a kind: another one once one of them has changed.
    pub(super) fn mark_of(&self, kind: ObjectKind) -> &Arc<()> {
        self.0.shared.mark_of(kind).unwrap_or(&self.0.marks[kind as usize])
    }

    // -- what is looked up

    /// The same version, with what is looked up in it from now on written down.
    pub fn noting(&self) -> (Catalog, Arc<LookupRecorder>) {
        let recorder = Arc::new(LookupRecorder::default());
        (Catalog(self.0.clone(), Some(recorder.clone())), recorder)
    }

    /// The same version, with nothing written down.
    pub fn without_notes(&self) -> Catalog {
        Catalog(self.0.clone(), None)
    }

    /// Every look-up goes through this.
    pub(super) fn note(&self, write: impl FnOnce(&mut Lookups)) {
        if let Some(recorder) = &self.1 {
            recorder.note(write);
        }
    }

    /// Somebody goes through all objects of a kind.
    pub(super) fn note_all(&self, kind: ObjectKind) {
        self.note(|lookups| drop(lookups.all.insert(kind, self.mark_of(kind).clone())));
    }

    // -- by oid

    pub fn table_by_oid(&self, oid: Oid) -> Option<TableRef> {
        let table = self.0.tables.get(&oid).cloned();
        self.note(|lookups| drop(lookups.tables.insert(oid, table.clone())));
        table
    }

    /// A table that lives as long as this borrow of the catalog.
    pub fn table_in_place(&self, oid: Oid) -> Option<&Table> {
        let table = self.0.tables.get(&oid);
        self.note(|lookups| drop(lookups.tables.insert(oid, table.cloned())));
        table.map(|table| &**table)
    }

    /// The tables that inherit from one, by oid.
    pub(super) fn heir_oids(&self, parent: Oid) -> &[Oid] {
        let heirs: &[Oid] = self.0.heirs.get(&parent).map_or(&[], |heirs| heirs);
        self.note(|lookups| drop(lookups.heirs.insert(parent, heirs.to_vec())));
        heirs
    }

    /// The tables that have foreign keys to one, itself perhaps among them, in the order of their oids.
    pub fn referrers(&self, table: Oid) -> Vec<TableRef> {
        let oids = self.0.referencing.get(&table).into_iter().flat_map(|oids| oids.iter());
        let found: Vec<TableRef> = oids.filter_map(|oid| self.0.tables.get(oid).cloned()).collect();
        self.note(|lookups| lookups.note_referencing(table, &found));
        found
    }

    /// Whether a table has foreign keys to one, itself perhaps.
    pub fn is_referenced(&self, table: Oid) -> bool {
        self.note_all(ObjectKind::Table);
        self.0.referencing.get(&table).is_some()
    }

    /// The table whose rows the engine keeps under this number.
    pub fn table_by_tree(&self, tree: u32) -> Option<TableRef> {
        self.note_all(ObjectKind::Table);
        self.table_by_oid(*self.0.trees.get(&tree)?)
    }

    /// Whether a table of the schema has a constraint of this name.
    pub fn has_constraint(&self, schema: &str, name: &str) -> bool {
        self.note_all(ObjectKind::Table);
        self.0.constraint_names.get_by(|known| known.order(schema, name)).is_some()
    }

    /// The tables and views that are not what they were in another version, as they were and as they are.
    pub fn changed_tables(&self, before: &Catalog) -> Vec<(Option<TableRef>, Option<TableRef>)> {
        self.note_all(ObjectKind::Table);
        let changes = self.0.tables.changes(&before.0.tables).into_iter();
        let changes = changes.filter(|(old, new)| !same_object(*old, *new));
        changes.map(|(old, new)| (old.cloned(), new.cloned())).collect()
    }

    /// As [`Catalog::changed_tables`], of routines.
    pub fn changed_routines(&self, before: &Catalog) -> Vec<(Option<RoutineRef>, Option<RoutineRef>)> {
        self.note_all(ObjectKind::Routine);
        let changes = self.0.routines.changes(&before.0.routines).into_iter();
        let changes = changes.filter(|(old, new)| !same_object(*old, *new));
        changes.map(|(old, new)| (old.cloned(), new.cloned())).collect()
    }

    pub fn sequence_by_oid(&self, oid: Oid) -> Option<SequenceRef> {
        let sequence = self.0.sequences.get(&oid).cloned();
        self.note(|lookups| drop(lookups.sequences.insert(oid, sequence.clone())));
        sequence
    }

    /// The engine's number of a sequence.
    pub fn sequence_file(&self, oid: Oid) -> Option<u32> {
        self.sequence_by_oid(oid).map(|sequence| sequence.file)
    }

    /// The sequence that has this number in the engine.
    pub fn sequence_by_file(&self, file: u32) -> Option<SequenceRef> {
        self.note_all(ObjectKind::Sequence);
        self.sequence_by_oid(*self.0.sequence_files.get(&file)?)
    }

    pub fn operator_class_by_oid(&self, oid: Oid) -> Option<OperatorClassRef> {
        let found = self.0.operator_classes.get(&oid).cloned();
        self.note(|lookups| drop(lookups.classes.insert(oid, found.clone())));
        found
    }

    pub fn routine_by_oid(&self, oid: Oid) -> Option<RoutineRef> {
        let found = self.0.routines.get(&oid).cloned();
        self.note(|lookups| drop(lookups.routines.insert(oid, found.clone())));
        found
    }

    pub fn user_type_by_oid(&self, oid: Oid) -> Option<UserTypeRef> {
        let found = self.0.types.get(&oid).cloned();
        self.note(|lookups| drop(lookups.types.insert(oid, found.clone())));
        found
    }

    /// The name of an enum's label.
    pub fn enum_label(&self, label: Oid) -> Option<Arc<str>> {
        let name = self.0.labels.get(&label).cloned();
        self.note(|lookups| drop(lookups.labels.insert(label, name.clone())));
        name
    }

    pub fn user_types(&self) -> impl Iterator<Item = &UserTypeRef> {
        self.note_all(ObjectKind::Type);
        self.0.types.values()
    }

    pub fn schema_by_oid(&self, oid: Oid) -> Option<Arc<Schema>> {
        let found = self.0.schemas.get(&oid).cloned();
        self.note(|lookups| drop(lookups.schemas.insert(oid, found.clone())));
        found
    }

    pub fn role_by_oid(&self, oid: Oid) -> Option<Arc<Role>> {
        let found = self.0.shared.roles.get(&oid).cloned();
        self.note(|lookups| drop(lookups.roles.insert(oid, found.clone())));
        found
    }

    /// The relation whose rows have this composite type: a table, a view, or what stands for a type
    /// that was made by CREATE TYPE.
    pub fn table_of_row_type(&self, row_type: Oid) -> Option<TableRef> {
        let relation = row_type.relation_of_row_type()?;
        self.table_by_oid(relation).or_else(|| self.composite_by_oid(relation))
    }

    /// What stands for a composite type that was made by CREATE TYPE.
    pub(super) fn composite_by_oid(&self, relation: Oid) -> Option<TableRef> {
        let composite = self.0.composites.get(&relation).cloned();
        self.note(|lookups| drop(lookups.composites.insert(relation, composite.clone())));
        composite
    }

    /// What stands for composite types that were made by CREATE TYPE.
    pub fn composites(&self) -> impl Iterator<Item = &TableRef> {
        self.note_all(ObjectKind::Type);
        self.0.composites.values()
    }

    /// Any relation by oid: table, sequence or index.
    pub fn relation_by_oid(&self, oid: Oid) -> Option<Relation> {
        if let Some(table) = self.table_by_oid(oid) {
            return Some(Relation::Table(table));
        }
        if let Some(sequence) = self.sequence_by_oid(oid) {
            return Some(Relation::Sequence(sequence));
        }
        let table = self.table_of_index(oid)?;
        let relation = self.0.relation(RelationOid::Index(table, oid))?;
        self.note(|lookups| lookups.note_object(&relation));
        Some(relation)
    }

    /// The table that an index is of.
    pub(super) fn table_of_index(&self, index: Oid) -> Option<Oid> {
        let table = self.0.index_tables.get(&index).copied();
        self.note(|lookups| {
            lookups.index_tables.insert(index, table);
        });
        table
    }

    // -- by exact name

    pub fn schema(&self, name: &str) -> Option<Arc<Schema>> {
        let schema = self.0.schema_named(name).cloned();
        self.note(|lookups| lookups.note_schema(name, schema.as_ref()));
        schema
    }

    pub fn schema_exists(&self, name: &str) -> bool {
        self.schema(name).is_some()
    }

    pub fn role(&self, name: &str) -> Option<Arc<Role>> {
        let role = self.0.shared.role_named(name).cloned();
        self.note(|lookups| lookups.note_role(name, role.as_ref()));
        role
    }

    /// The relation of this schema and name.
    pub fn relation_in(&self, schema: &str, name: &str) -> Option<Relation> {
        let oid = self.0.relation_named(schema, name);
        let relation = oid.and_then(|oid| self.0.relation(oid));
        self.note(|lookups| lookups.note_relation((schema, name), relation.as_ref()));
        relation
    }

    /// The type of this schema and name.
    pub fn user_type_in(&self, schema: &str, name: &str) -> Option<UserTypeRef> {
        let ty = self.0.type_named(schema, name).cloned();
        self.note(|lookups| lookups.note_type((schema, name), ty.as_ref()));
        ty
    }

    /// The overloads of this schema and name.
    pub fn routines_in(&self, schema: &str, name: &str) -> Vec<RoutineRef> {
        let oids = self.0.routines_named(schema, name).iter();
        let routines: Vec<RoutineRef> = oids.filter_map(|oid| self.0.routines.get(oid).cloned()).collect();
        self.note(|lookups| lookups.note_routines((schema, name), &routines));
        routines
    }

    /// The overload with exactly these input types.
    pub fn routine_in(&self, schema: &str, name: &str, inputs: &[Oid]) -> Option<RoutineRef> {
        self.routines_in(schema, name).into_iter().find(|routine| routine.input_types() == inputs)
    }

    // -- all of them, by oid

    pub fn schemas(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.note_all(ObjectKind::Schema);
        self.0.schemas.values()
    }

    pub fn tables(&self) -> impl Iterator<Item = &TableRef> {
        self.note_all(ObjectKind::Table);
        self.0.tables.values()
    }

    pub fn sequences(&self) -> impl Iterator<Item = &SequenceRef> {
        self.note_all(ObjectKind::Sequence);
        self.0.sequences.values()
    }

    pub fn routines_all(&self) -> impl Iterator<Item = &RoutineRef> {
        self.note_all(ObjectKind::Routine);
        self.0.routines.values()
    }

    pub fn operator_classes(&self) -> impl Iterator<Item = &OperatorClassRef> {
        self.note_all(ObjectKind::OperatorClass);
        self.0.operator_classes.values()
    }

    /// All families that users made.
    pub fn operator_families(&self) -> impl Iterator<Item = &OperatorFamilyRef> {
        self.note_all(ObjectKind::OperatorFamily);
        self.0.operator_families.values()
    }

    pub fn roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.note_all(ObjectKind::Role);
        self.0.shared.roles.values()
    }

    /// The databases of the server, this one among them.
    pub fn databases(&self) -> impl Iterator<Item = &Arc<Database>> {
        self.note_all(ObjectKind::Database);
        self.0.shared.databases.values()
    }

    /// A database of the server by its name.
    pub fn database_named(&self, name: &str) -> Option<Arc<Database>> {
        self.databases().find(|database| database.name == name).cloned()
    }

    /// A database of the server by its oid.
    pub fn database(&self, oid: Oid) -> Option<Arc<Database>> {
        self.note_all(ObjectKind::Database);
        self.0.shared.databases.get(&oid).cloned()
    }

    /// What new objects in this database begin with, whoever makes them.
    pub fn default_access_all(&self) -> impl Iterator<Item = &Arc<DefaultAccess>> {
        self.note_all(ObjectKind::DefaultAccess);
        self.0.default_access.values()
    }

    /// What a role's new objects begin with.
    pub fn default_access_of(&self, role: Oid) -> impl Iterator<Item = &Arc<DefaultAccess>> {
        self.default_access_all().filter(move |entry| entry.role == role)
    }

    /// The owner and the rights of an object, where they differ from what every object has.
    pub fn access(&self, object: Oid) -> Option<&Arc<Access>> {
        let access = self.0.access.get(&object).or_else(|| self.0.shared.access.get(&object));
        self.note(|lookups| drop(lookups.access.insert(object, access.cloned())));
        access
    }

    pub fn access_all(&self) -> impl Iterator<Item = &Arc<Access>> {
        self.note_all(ObjectKind::Access);
        self.note_all(ObjectKind::Database);
        self.note_all(ObjectKind::Parameters);
        self.0.access.values().chain(self.0.shared.access.values())
    }

    /// What is said of configuration parameters.
    pub fn parameters(&self) -> &Parameters {
        self.note_all(ObjectKind::Parameters);
        &self.0.shared.parameters
    }

    /// The comments on roles and databases.
    pub fn shared_comments_all(&self) -> impl Iterator<Item = &Arc<Comments>> {
        self.note_all(ObjectKind::SharedComments);
        self.0.shared.comments.values()
    }

    /// The comments on a role or a database.
    pub fn shared_comments(&self, object: Oid) -> Option<Arc<Comments>> {
        self.note_all(ObjectKind::SharedComments);
        self.0.shared.comments.get(&object).cloned()
    }

    pub fn comments_all(&self) -> impl Iterator<Item = &Arc<Comments>> {
        self.note_all(ObjectKind::Comments);
        self.0.comments.values()
    }

    /// The comments on an object and its columns.
    pub fn comments(&self, object: Oid) -> Option<Arc<Comments>> {
        self.note_all(ObjectKind::Comments);
        self.0.comments.get(&object).cloned()
    }

    /// The comment on an object (0) or one of its columns (one-based).
    pub fn comment(&self, object: Oid, column: u16) -> Option<String> {
        self.comments(object)?.text(column).map(str::to_owned)
    }
}

/// Whether an object is the very same one as before.
fn same_object<T>(before: Option<&Arc<T>>, after: Option<&Arc<T>>) -> bool {
    matches!((before, after), (Some(before), Some(after)) if Arc::ptr_eq(before, after))
}

impl Catalog {
    /// Whether a table or a type says one of these numbers.
    pub fn is_said(&self, oids: &[Oid]) -> bool {
        self.tables_saying(oids).next().is_some() || self.types_saying(oids).next().is_some()
    }

    /// Who says one of these numbers.
    fn who_says(&self, oids: &[Oid]) -> BTreeSet<Oid> {
        let said_by = oids.iter().filter_map(|oid| self.state().said_by.get(oid));
        said_by.flat_map(|objects| objects.iter().copied()).collect()
    }

    /// The tables and views that say one of these numbers, in the order of their oids.
    pub fn tables_saying<'c>(&'c self, oids: &[Oid]) -> impl Iterator<Item = &'c TableRef> + use<'c> {
        self.note_all(ObjectKind::Table);
        self.who_says(oids).into_iter().filter_map(|oid| self.state().tables.get(&oid))
    }

    /// The types that say one of these numbers, in the order of their oids.
    pub fn types_saying<'c>(&'c self, oids: &[Oid]) -> impl Iterator<Item = &'c UserTypeRef> + use<'c> {
        self.note_all(ObjectKind::Type);
        self.who_says(oids).into_iter().filter_map(|oid| self.state().types.get(&oid))
    }

    /// The routines that say one of these numbers, in the order of their oids.
    pub fn routines_saying<'c>(&'c self, oids: &[Oid]) -> impl Iterator<Item = &'c RoutineRef> + use<'c> {
        self.note_all(ObjectKind::Routine);
        self.who_says(oids).into_iter().filter_map(|oid| self.state().routines.get(&oid))
    }
}
