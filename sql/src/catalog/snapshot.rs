//! All catalog objects at one moment. A `Catalog` never changes; DDL makes the next one from it
//! with [`Catalog::apply`]. Objects are shared between the two, so a version costs its index of
//! names and oids.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;

use crate::types::Oid;

use super::lookups::{LookupRecorder, Lookups};
use super::operator_class::OperatorClassRef;
use super::{
    ARCHIPEL, Access, CatalogChange, Comments, FIRST_GROUP, FIRST_OID, FIRST_TREE, INFORMATION_SCHEMA,
    Numbers, Object, ObjectKind, PG_CATALOG, PUBLIC, Role, RoutineRef, SUPERUSER, SUPERUSER_NAME, Schema,
    SequenceRef, Table, TableRef, UserTypeRef,
};

/// A relation: what shares PostgreSQL's pg_class namespace.
#[derive(Clone, Debug)]
pub enum Relation {
    Table(TableRef),
    Sequence(SequenceRef),
    /// A secondary index, by its place in [`Table::indexes`].
    Index(TableRef, usize),
    /// The index of a primary key.
    PrimaryKey(TableRef),
}

impl Relation {
    pub fn oid(&self) -> Oid {
        match self {
            Relation::Table(table) => table.oid,
            Relation::Sequence(sequence) => sequence.oid,
            Relation::Index(table, index) => table.indexes[*index].oid,
            Relation::PrimaryKey(table) => table.primary_key.as_ref().map_or(Oid(0), |key| key.oid),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Relation::Table(table) => &table.name,
            Relation::Sequence(sequence) => &sequence.name,
            Relation::Index(table, index) => &table.indexes[*index].name,
            Relation::PrimaryKey(table) => table.primary_key.as_ref().map_or("", |key| &key.name),
        }
    }

    pub fn schema(&self) -> &str {
        match self {
            Relation::Table(table) | Relation::Index(table, _) | Relation::PrimaryKey(table) => &table.schema,
            Relation::Sequence(sequence) => &sequence.schema,
        }
    }
}

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

/// Maps are behind `Arc`s of their own: a version copies only those its changes touch.
#[derive(Clone, Debug)]
struct State {
    version: u64,
    /// The newest [`super::Migration`]; 0 for a new data directory.
    migration: u32,
    numbers: Numbers,
    schemas: Arc<BTreeMap<Oid, Arc<Schema>>>,
    tables: Arc<BTreeMap<Oid, TableRef>>,
    sequences: Arc<BTreeMap<Oid, SequenceRef>>,
    routines: Arc<BTreeMap<Oid, RoutineRef>>,
    roles: Arc<BTreeMap<Oid, Arc<Role>>>,
    /// Owners and rights, by the objects they are of.
    access: Arc<BTreeMap<Oid, Arc<Access>>>,
    comments: Arc<BTreeMap<Oid, Arc<Comments>>>,
    types: Arc<BTreeMap<Oid, UserTypeRef>>,
    operator_classes: Arc<BTreeMap<Oid, OperatorClassRef>>,
    /// Names of enums' labels.
    labels: Arc<FxHashMap<Oid, Arc<str>>>,
    /// The relations of composite types, by their oids.
    composites: Arc<BTreeMap<Oid, TableRef>>,
    /// Schema, then name: oids of relations.
    relation_names: Arc<Names<RelationOid>>,
    routine_names: Arc<Names<Vec<Oid>>>,
    /// Oids of indexes to their tables'.
    index_tables: Arc<FxHashMap<Oid, Oid>>,
    /// Tables to those that inherit from them, by oid.
    heirs: Arc<FxHashMap<Oid, Vec<Oid>>>,
    /// Of each kind of object: another one after every change of such an object.
    marks: [Arc<()>; ObjectKind::COUNT],
}

type Names<T> = FxHashMap<String, FxHashMap<String, T>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RelationOid {
    Table(Oid),
    Sequence(Oid),
    /// An index of this table with this oid of its own.
    Index(Oid, Oid),
}

impl Catalog {
    /// The catalog of an empty data directory: the schemas of the system with their views.
    pub fn new(system: Vec<Table>) -> Catalog {
        let mut state = State {
            version: 1,
            migration: 0,
            numbers: Numbers { oid: FIRST_OID, tree: FIRST_TREE, group: FIRST_GROUP },
            schemas: Arc::default(),
            tables: Arc::default(),
            sequences: Arc::default(),
            routines: Arc::default(),
            roles: Arc::default(),
            access: Arc::default(),
            comments: Arc::default(),
            types: Arc::default(),
            operator_classes: Arc::default(),
            labels: Arc::default(),
            composites: Arc::default(),
            relation_names: Arc::default(),
            routine_names: Arc::default(),
            index_tables: Arc::default(),
            heirs: Arc::default(),
            marks: Default::default(),
        };
        for (oid, name) in
            [(PG_CATALOG, "pg_catalog"), (INFORMATION_SCHEMA, "information_schema"), (ARCHIPEL, "archipel")]
        {
            state.put(&Object::Schema(Schema { oid, name: name.to_string() }));
        }
        state.put(&Object::Role(Role::superuser(SUPERUSER, SUPERUSER_NAME)));
        for role in super::role::predefined() {
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

    /// Grows with every [`Catalog::apply`].
    pub fn version(&self) -> u64 {
        self.0.version
    }

    /// The version of the newest migration that ran; 0 before the first.
    pub fn migration(&self) -> u32 {
        self.0.migration
    }

    /// What new objects are numbered from.
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
        &self.0.marks[kind as usize]
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
    fn note_all(&self, kind: ObjectKind) {
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
    pub fn referencing(&self, table: Oid) -> Vec<TableRef> {
        let refers = |other: &&TableRef| other.foreign_keys.iter().any(|key| key.references == table);
        let found: Vec<TableRef> = self.0.tables.values().filter(refers).cloned().collect();
        self.note(|lookups| lookups.note_referencing(table, &found));
        found
    }

    pub fn sequence_by_oid(&self, oid: Oid) -> Option<SequenceRef> {
        let sequence = self.0.sequences.get(&oid).cloned();
        self.note(|lookups| drop(lookups.sequences.insert(oid, sequence.clone())));
        sequence
    }

    /// The engine's number of a sequence.
    pub fn sequence_file(&self, oid: Oid) -> u32 {
        self.sequence_by_oid(oid).map_or(oid.0, |sequence| sequence.file())
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
        let found = self.0.roles.get(&oid).cloned();
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
        let schema = self.0.schemas.values().find(|schema| schema.name == name).cloned();
        self.note(|lookups| lookups.note_schema(name, schema.as_ref()));
        schema
    }

    pub fn schema_exists(&self, name: &str) -> bool {
        self.schema(name).is_some()
    }

    pub fn role(&self, name: &str) -> Option<Arc<Role>> {
        let role = self.0.roles.values().find(|role| role.name == name).cloned();
        self.note(|lookups| lookups.note_role(name, role.as_ref()));
        role
    }

    /// The relation of this schema and name.
    pub fn relation_in(&self, schema: &str, name: &str) -> Option<Relation> {
        let oid = self.0.relation_names.get(schema).and_then(|names| names.get(name));
        let relation = oid.and_then(|oid| self.0.relation(*oid));
        self.note(|lookups| lookups.note_relation((schema, name), relation.as_ref()));
        relation
    }

    /// The type of this schema and name.
    pub fn user_type_in(&self, schema: &str, name: &str) -> Option<UserTypeRef> {
        let ty = self.0.types.values().find(|ty| ty.schema == schema && ty.name == name).cloned();
        self.note(|lookups| lookups.note_type((schema, name), ty.as_ref()));
        ty
    }

    /// The overloads of this schema and name.
    pub fn routines_in(&self, schema: &str, name: &str) -> Vec<RoutineRef> {
        let oids = self.0.routine_names.get(schema).and_then(|names| names.get(name));
        let routine = |oid: &Oid| self.0.routines.get(oid).cloned();
        let routines: Vec<RoutineRef> = oids.into_iter().flatten().filter_map(routine).collect();
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

    pub fn roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.note_all(ObjectKind::Role);
        self.0.roles.values()
    }

    /// The owner and the rights of an object, where they differ from what every object has.
    pub fn access(&self, object: Oid) -> Option<&Arc<Access>> {
        let access = self.0.access.get(&object);
        self.note(|lookups| drop(lookups.access.insert(object, access.cloned())));
        access
    }

    pub fn access_all(&self) -> impl Iterator<Item = &Arc<Access>> {
        self.note_all(ObjectKind::Access);
        self.0.access.values()
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
        let comments = self.comments(object)?;
        comments.texts.iter().find(|(at, _)| *at == column).map(|(_, text)| text.clone())
    }
}

impl State {
    fn relation(&self, oid: RelationOid) -> Option<Relation> {
        match oid {
            RelationOid::Table(table) => self.tables.get(&table).cloned().map(Relation::Table),
            RelationOid::Sequence(sequence) => self.sequences.get(&sequence).cloned().map(Relation::Sequence),
            RelationOid::Index(table, index) => {
                let table = self.tables.get(&table)?.clone();
                if table.primary_key.as_ref().is_some_and(|key| key.oid == index) {
                    return Some(Relation::PrimaryKey(table));
                }
                let place = table.indexes.iter().position(|candidate| candidate.oid == index)?;
                Some(Relation::Index(table, place))
            }
        }
    }

    fn put(&mut self, object: &Object) {
        self.drop(object.kind(), object.oid());
        match object {
            Object::Numbers(numbers) => self.numbers = *numbers,
            Object::Migration(migration) => self.migration = self.migration.max(migration.version),
            Object::Schema(schema) => {
                Arc::make_mut(&mut self.schemas).insert(schema.oid, Arc::new(schema.clone()));
            }
            Object::Role(role) => {
                Arc::make_mut(&mut self.roles).insert(role.oid, Arc::new(role.clone()));
            }
            Object::Access(access) => {
                Arc::make_mut(&mut self.access).insert(access.object, Arc::new(access.clone()));
            }
            Object::Comments(comments) => {
                if !comments.texts.is_empty() {
                    Arc::make_mut(&mut self.comments).insert(comments.object, Arc::new(comments.clone()));
                }
            }
            Object::Table(table) => {
                Arc::make_mut(&mut self.tables).insert(table.oid, table.clone());
                for parent in &table.inherits {
                    let heirs = Arc::make_mut(&mut self.heirs).entry(*parent).or_default();
                    if let Err(place) = heirs.binary_search(&table.oid) {
                        heirs.insert(place, table.oid);
                    }
                }
                let names = Arc::make_mut(&mut self.relation_names).entry(table.schema.clone()).or_default();
                names.insert(table.name.clone(), RelationOid::Table(table.oid));
                let indexes = Arc::make_mut(&mut self.index_tables);
                for (name, oid) in index_names(table) {
                    names.insert(name.to_string(), RelationOid::Index(table.oid, oid));
                    indexes.insert(oid, table.oid);
                }
            }
            Object::Sequence(sequence) => {
                Arc::make_mut(&mut self.sequences).insert(sequence.oid, sequence.clone());
                let names =
                    Arc::make_mut(&mut self.relation_names).entry(sequence.schema.clone()).or_default();
                names.insert(sequence.name.clone(), RelationOid::Sequence(sequence.oid));
            }
            Object::Type(ty) => {
                Arc::make_mut(&mut self.types).insert(ty.oid, ty.clone());
                let labels = Arc::make_mut(&mut self.labels);
                labels.extend(ty.labels.iter().map(|label| (label.oid, Arc::from(label.name.as_str()))));
                if let Some(relation) = ty.relation() {
                    Arc::make_mut(&mut self.composites).insert(relation.oid, Arc::new(relation));
                }
            }
            Object::OperatorClass(class) => {
                Arc::make_mut(&mut self.operator_classes).insert(class.oid, class.clone());
            }
            Object::Routine(routine) => {
                Arc::make_mut(&mut self.routines).insert(routine.oid, routine.clone());
                let names = Arc::make_mut(&mut self.routine_names).entry(routine.schema.clone()).or_default();
                names.entry(routine.name.clone()).or_default().push(routine.oid);
            }
        }
    }

    fn drop(&mut self, kind: ObjectKind, oid: Oid) {
        self.marks[kind as usize] = Arc::default();
        match kind {
            ObjectKind::Numbers | ObjectKind::Migration => {}
            ObjectKind::Schema => {
                if self.schemas.contains_key(&oid) {
                    Arc::make_mut(&mut self.schemas).remove(&oid);
                }
            }
            ObjectKind::Role => {
                if self.roles.contains_key(&oid) {
                    Arc::make_mut(&mut self.roles).remove(&oid);
                }
            }
            ObjectKind::Access => {
                if self.access.contains_key(&oid) {
                    Arc::make_mut(&mut self.access).remove(&oid);
                }
            }
            ObjectKind::OperatorClass => {
                if self.operator_classes.contains_key(&oid) {
                    Arc::make_mut(&mut self.operator_classes).remove(&oid);
                }
            }
            ObjectKind::Comments => {
                if self.comments.contains_key(&oid) {
                    Arc::make_mut(&mut self.comments).remove(&oid);
                }
            }
            ObjectKind::Table => {
                if !self.tables.contains_key(&oid) {
                    return;
                }
                if let Some(table) = Arc::make_mut(&mut self.tables).remove(&oid) {
                    for parent in &table.inherits {
                        let heirs = Arc::make_mut(&mut self.heirs);
                        if let Some(of_parent) = heirs.get_mut(parent) {
                            of_parent.retain(|heir| *heir != oid);
                            if of_parent.is_empty() {
                                heirs.remove(parent);
                            }
                        }
                    }
                    self.forget_relation(&table.schema, &table.name);
                    for (name, index) in index_names(&table) {
                        self.forget_relation(&table.schema, name);
                        Arc::make_mut(&mut self.index_tables).remove(&index);
                    }
                }
            }
            ObjectKind::Sequence => {
                if !self.sequences.contains_key(&oid) {
                    return;
                }
                if let Some(sequence) = Arc::make_mut(&mut self.sequences).remove(&oid) {
                    self.forget_relation(&sequence.schema, &sequence.name);
                }
            }
            ObjectKind::Type => {
                if !self.types.contains_key(&oid) {
                    return;
                }
                if let Some(ty) = Arc::make_mut(&mut self.types).remove(&oid) {
                    let labels = Arc::make_mut(&mut self.labels);
                    for label in &ty.labels {
                        labels.remove(&label.oid);
                    }
                    if let Some(relation) = oid.relation_of_row_type() {
                        Arc::make_mut(&mut self.composites).remove(&relation);
                    }
                }
            }
            ObjectKind::Routine => {
                if !self.routines.contains_key(&oid) {
                    return;
                }
                if let Some(routine) = Arc::make_mut(&mut self.routines).remove(&oid)
                    && let Some(names) = Arc::make_mut(&mut self.routine_names).get_mut(&routine.schema)
                    && let Some(overloads) = names.get_mut(&routine.name)
                {
                    overloads.retain(|&overload| overload != oid);
                }
            }
        }
    }

    fn forget_relation(&mut self, schema: &str, name: &str) {
        if let Some(names) = Arc::make_mut(&mut self.relation_names).get_mut(schema) {
            names.remove(name);
        }
    }
}

/// Names and oids of a table's indexes, the primary key's included.
fn index_names(table: &Table) -> impl Iterator<Item = (&str, Oid)> {
    table
        .primary_key
        .iter()
        .map(|key| (key.name.as_str(), key.oid))
        .chain(table.indexes.iter().map(|index| (index.name.as_str(), index.oid)))
}
