//! All catalog objects at one moment. A `Catalog` never changes; DDL makes the next one from it
//! with [`Catalog::apply`]. Objects are shared between the two, and so is most of what finds them
//! ([`SharedMap`]).

use std::cmp::Ordering;
use std::sync::Arc;

use crate::types::Oid;

use super::operator_class::OperatorClassRef;
use super::shared_map::SharedMap;
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

/// A version of the catalog; cheap to clone.
#[derive(Clone, Debug)]
pub struct Catalog(Arc<State>);

#[derive(Clone, Debug)]
struct State {
    version: u64,
    /// The newest [`super::Migration`]; 0 for a new data directory.
    migration: u32,
    numbers: Numbers,
    schemas: SharedMap<Oid, Arc<Schema>>,
    tables: SharedMap<Oid, TableRef>,
    sequences: SharedMap<Oid, SequenceRef>,
    routines: SharedMap<Oid, RoutineRef>,
    roles: SharedMap<Oid, Arc<Role>>,
    /// Owners and rights, by the objects they are of.
    access: SharedMap<Oid, Arc<Access>>,
    comments: SharedMap<Oid, Arc<Comments>>,
    types: SharedMap<Oid, UserTypeRef>,
    operator_classes: SharedMap<Oid, OperatorClassRef>,
    /// Names of enums' labels.
    labels: SharedMap<Oid, Arc<str>>,
    /// The relations of composite types, by their oids.
    composites: SharedMap<Oid, TableRef>,
    schema_names: SharedMap<Arc<str>, Oid>,
    role_names: SharedMap<Arc<str>, Oid>,
    relation_names: SharedMap<Name, RelationOid>,
    routine_names: SharedMap<Name, Arc<[Oid]>>,
    type_names: SharedMap<Name, Oid>,
    /// Which tables of a schema have a constraint of a name.
    constraint_names: SharedMap<Name, Arc<[Oid]>>,
    /// Oids of indexes to their tables'.
    index_tables: SharedMap<Oid, Oid>,
    /// Tables that store rows, by the engine's numbers.
    trees: SharedMap<u32, Oid>,
    /// Tables to those that inherit from them, by oid.
    heirs: SharedMap<Oid, Arc<[Oid]>>,
    /// Tables to those that have foreign keys to them, by oid.
    referencing: SharedMap<Oid, Arc<[Oid]>>,
}

/// What an object is called, and in which schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    name: Arc<str>,
    schema: Arc<str>,
}

impl Name {
    fn new(schema: &str, name: &str) -> Name {
        Name { name: name.into(), schema: schema.into() }
    }

    /// How it compares with another one: the order of [`Name`]s.
    fn order(&self, schema: &str, name: &str) -> Ordering {
        (*self.name).cmp(name).then_with(|| (*self.schema).cmp(schema))
    }
}

/// Adds an oid to those that a key stands for, which are in the order of their numbers.
fn add<K: Ord + Clone>(map: &mut SharedMap<K, Arc<[Oid]>>, key: K, oid: Oid) {
    let mut oids = map.get(&key).map_or_else(Vec::new, |known| known.to_vec());
    if let Err(place) = oids.binary_search(&oid) {
        oids.insert(place, oid);
        map.insert(key, oids.into());
    }
}

/// Takes an oid from those that a key stands for.
fn take<K: Ord + Clone>(map: &mut SharedMap<K, Arc<[Oid]>>, key: &K, oid: Oid) {
    let Some(known) = map.get(key) else { return };
    let left: Vec<Oid> = known.iter().copied().filter(|known| *known != oid).collect();
    match left.is_empty() {
        true => drop(map.remove(key)),
        false => map.insert(key.clone(), left.into()),
    }
}

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
            schemas: SharedMap::default(),
            tables: SharedMap::default(),
            sequences: SharedMap::default(),
            routines: SharedMap::default(),
            roles: SharedMap::default(),
            access: SharedMap::default(),
            comments: SharedMap::default(),
            types: SharedMap::default(),
            operator_classes: SharedMap::default(),
            labels: SharedMap::default(),
            composites: SharedMap::default(),
            schema_names: SharedMap::default(),
            role_names: SharedMap::default(),
            relation_names: SharedMap::default(),
            routine_names: SharedMap::default(),
            type_names: SharedMap::default(),
            constraint_names: SharedMap::default(),
            index_tables: SharedMap::default(),
            trees: SharedMap::default(),
            heirs: SharedMap::default(),
            referencing: SharedMap::default(),
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
        Catalog(Arc::new(state))
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
        Catalog(Arc::new(state))
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

    // -- by oid

    pub fn table_by_oid(&self, oid: Oid) -> Option<TableRef> {
        self.0.tables.get(&oid).cloned()
    }

    /// A table that lives as long as this borrow of the catalog.
    pub fn table_in_place(&self, oid: Oid) -> Option<&Table> {
        self.0.tables.get(&oid).map(|table| &**table)
    }

    /// The tables that inherit from one, by oid.
    pub(super) fn heir_oids(&self, parent: Oid) -> &[Oid] {
        self.0.heirs.get(&parent).map_or(&[], |heirs| heirs)
    }

    /// The tables that have foreign keys to one, itself perhaps among them, in the order of their oids.
    pub fn referrers(&self, table: Oid) -> Vec<TableRef> {
        let oids = self.0.referencing.get(&table).into_iter().flat_map(|oids| oids.iter());
        oids.filter_map(|oid| self.table_by_oid(*oid)).collect()
    }

    /// The table whose rows the engine keeps under this number.
    pub fn table_by_tree(&self, tree: u32) -> Option<TableRef> {
        self.table_by_oid(*self.0.trees.get(&tree)?)
    }

    /// Whether a table of the schema has a constraint of this name.
    pub fn has_constraint(&self, schema: &str, name: &str) -> bool {
        self.0.constraint_names.get_by(|known| known.order(schema, name)).is_some()
    }

    /// The tables and views that are not what they were in another version, as they were and as they are.
    pub fn changed_tables(&self, before: &Catalog) -> Vec<(Option<TableRef>, Option<TableRef>)> {
        let changes = self.0.tables.changes(&before.0.tables).into_iter();
        let changes = changes.filter(|(old, new)| !same_object(*old, *new));
        changes.map(|(old, new)| (old.cloned(), new.cloned())).collect()
    }

    /// As [`Catalog::changed_tables`], of routines.
    pub fn changed_routines(&self, before: &Catalog) -> Vec<(Option<RoutineRef>, Option<RoutineRef>)> {
        let changes = self.0.routines.changes(&before.0.routines).into_iter();
        let changes = changes.filter(|(old, new)| !same_object(*old, *new));
        changes.map(|(old, new)| (old.cloned(), new.cloned())).collect()
    }

    pub fn sequence_by_oid(&self, oid: Oid) -> Option<SequenceRef> {
        self.0.sequences.get(&oid).cloned()
    }

    /// The engine's number of a sequence.
    pub fn sequence_file(&self, oid: Oid) -> u32 {
        self.0.sequences.get(&oid).map_or(oid.0, |sequence| sequence.file())
    }

    pub fn operator_class_by_oid(&self, oid: Oid) -> Option<OperatorClassRef> {
        self.0.operator_classes.get(&oid).cloned()
    }

    pub fn routine_by_oid(&self, oid: Oid) -> Option<RoutineRef> {
        self.0.routines.get(&oid).cloned()
    }

    pub fn user_type_by_oid(&self, oid: Oid) -> Option<UserTypeRef> {
        self.0.types.get(&oid).cloned()
    }

    /// The name of an enum's label.
    pub fn enum_label(&self, label: Oid) -> Option<Arc<str>> {
        self.0.labels.get(&label).cloned()
    }

    pub fn user_types(&self) -> impl Iterator<Item = &UserTypeRef> {
        self.0.types.values()
    }

    pub fn schema_by_oid(&self, oid: Oid) -> Option<Arc<Schema>> {
        self.0.schemas.get(&oid).cloned()
    }

    pub fn role_by_oid(&self, oid: Oid) -> Option<Arc<Role>> {
        self.0.roles.get(&oid).cloned()
    }

    /// The relation whose rows have this composite type: a table, a view, or what stands for a type
    /// that was made by CREATE TYPE.
    pub fn table_of_row_type(&self, row_type: Oid) -> Option<TableRef> {
        let relation = row_type.relation_of_row_type()?;
        self.0.tables.get(&relation).or_else(|| self.0.composites.get(&relation)).cloned()
    }

    /// What stands for composite types that were made by CREATE TYPE.
    pub fn composites(&self) -> impl Iterator<Item = &TableRef> {
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
        let table = self.0.index_tables.get(&oid)?;
        self.0.relation(RelationOid::Index(*table, oid))
    }

    // -- by exact name

    pub fn schema(&self, name: &str) -> Option<Arc<Schema>> {
        self.0.schema_named(name).cloned()
    }

    pub fn schema_exists(&self, name: &str) -> bool {
        self.schema(name).is_some()
    }

    pub fn role(&self, name: &str) -> Option<Arc<Role>> {
        self.0.role_named(name).cloned()
    }

    /// The relation of this schema and name.
    pub fn relation_in(&self, schema: &str, name: &str) -> Option<Relation> {
        let oid = self.0.relation_named(schema, name)?;
        self.0.relation(oid)
    }

    /// The type of this schema and name.
    pub fn user_type_in(&self, schema: &str, name: &str) -> Option<UserTypeRef> {
        self.0.type_named(schema, name).cloned()
    }

    /// The overloads of this schema and name.
    pub fn routines_in(&self, schema: &str, name: &str) -> Vec<RoutineRef> {
        let oids = self.0.routines_named(schema, name).iter();
        oids.filter_map(|oid| self.routine_by_oid(*oid)).collect()
    }

    /// The overload with exactly these input types.
    pub fn routine_in(&self, schema: &str, name: &str, inputs: &[Oid]) -> Option<RoutineRef> {
        self.routines_in(schema, name).into_iter().find(|routine| routine.input_types() == inputs)
    }

    // -- all of them, by oid

    pub fn schemas(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.0.schemas.values()
    }

    pub fn tables(&self) -> impl Iterator<Item = &TableRef> {
        self.0.tables.values()
    }

    pub fn sequences(&self) -> impl Iterator<Item = &SequenceRef> {
        self.0.sequences.values()
    }

    pub fn routines_all(&self) -> impl Iterator<Item = &RoutineRef> {
        self.0.routines.values()
    }

    pub fn operator_classes(&self) -> impl Iterator<Item = &OperatorClassRef> {
        self.0.operator_classes.values()
    }

    pub fn roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.0.roles.values()
    }

    /// The owner and the rights of an object, where they differ from what every object has.
    pub fn access(&self, object: Oid) -> Option<&Arc<Access>> {
        self.0.access.get(&object)
    }

    pub fn access_all(&self) -> impl Iterator<Item = &Arc<Access>> {
        self.0.access.values()
    }

    pub fn comments_all(&self) -> impl Iterator<Item = &Arc<Comments>> {
        self.0.comments.values()
    }

    /// The comments on an object and its columns.
    pub fn comments(&self, object: Oid) -> Option<Arc<Comments>> {
        self.0.comments.get(&object).cloned()
    }

    /// The comment on an object (0) or one of its columns (one-based).
    pub fn comment(&self, object: Oid, column: u16) -> Option<String> {
        let comments = self.0.comments.get(&object)?;
        comments.texts.iter().find(|(at, _)| *at == column).map(|(_, text)| text.clone())
    }
}

/// By exact name.
impl State {
    fn schema_named(&self, name: &str) -> Option<&Arc<Schema>> {
        self.schemas.get(self.schema_names.get_by(|known| (**known).cmp(name))?)
    }

    fn role_named(&self, name: &str) -> Option<&Arc<Role>> {
        self.roles.get(self.role_names.get_by(|known| (**known).cmp(name))?)
    }

    fn relation_named(&self, schema: &str, name: &str) -> Option<RelationOid> {
        self.relation_names.get_by(|known| known.order(schema, name)).copied()
    }

    fn type_named(&self, schema: &str, name: &str) -> Option<&UserTypeRef> {
        self.types.get(self.type_names.get_by(|known| known.order(schema, name))?)
    }

    fn routines_named(&self, schema: &str, name: &str) -> &[Oid] {
        self.routine_names.get_by(|known| known.order(schema, name)).map_or(&[], |oids| oids)
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
                self.schema_names.insert(schema.name.as_str().into(), schema.oid);
                self.schemas.insert(schema.oid, Arc::new(schema.clone()));
            }
            Object::Role(role) => {
                self.role_names.insert(role.name.as_str().into(), role.oid);
                self.roles.insert(role.oid, Arc::new(role.clone()));
            }
            Object::Access(access) => self.access.insert(access.object, Arc::new(access.clone())),
            Object::Comments(comments) => {
                if !comments.texts.is_empty() {
                    self.comments.insert(comments.object, Arc::new(comments.clone()));
                }
            }
            Object::Table(table) => self.put_table(table),
            Object::Sequence(sequence) => {
                self.sequences.insert(sequence.oid, sequence.clone());
                let name = Name::new(&sequence.schema, &sequence.name);
                self.relation_names.insert(name, RelationOid::Sequence(sequence.oid));
            }
            Object::Type(ty) => {
                self.types.insert(ty.oid, ty.clone());
                self.type_names.insert(Name::new(&ty.schema, &ty.name), ty.oid);
                for label in &ty.labels {
                    self.labels.insert(label.oid, Arc::from(label.name.as_str()));
                }
                if let Some(relation) = ty.relation() {
                    self.composites.insert(relation.oid, Arc::new(relation));
                }
            }
            Object::OperatorClass(class) => self.operator_classes.insert(class.oid, class.clone()),
            Object::Routine(routine) => {
                self.routines.insert(routine.oid, routine.clone());
                add(&mut self.routine_names, Name::new(&routine.schema, &routine.name), routine.oid);
            }
        }
    }

    fn put_table(&mut self, table: &TableRef) {
        self.tables.insert(table.oid, table.clone());
        if table.is_stored() {
            self.trees.insert(table.tree, table.oid);
        }
        for parent in &table.inherits {
            add(&mut self.heirs, *parent, table.oid);
        }
        for key in &table.foreign_keys {
            add(&mut self.referencing, key.references, table.oid);
        }
        for name in constraint_names(table) {
            add(&mut self.constraint_names, Name::new(&table.schema, name), table.oid);
        }
        self.relation_names.insert(Name::new(&table.schema, &table.name), RelationOid::Table(table.oid));
        for (name, oid) in index_names(table) {
            self.relation_names.insert(Name::new(&table.schema, name), RelationOid::Index(table.oid, oid));
            self.index_tables.insert(oid, table.oid);
        }
    }

    fn drop(&mut self, kind: ObjectKind, oid: Oid) {
        match kind {
            ObjectKind::Numbers | ObjectKind::Migration => {}
            ObjectKind::Schema => {
                if let Some(schema) = self.schemas.remove(&oid) {
                    self.schema_names.remove(&Arc::from(schema.name.as_str()));
                }
            }
            ObjectKind::Role => {
                if let Some(role) = self.roles.remove(&oid) {
                    self.role_names.remove(&Arc::from(role.name.as_str()));
                }
            }
            ObjectKind::Access => {
                self.access.remove(&oid);
            }
            ObjectKind::OperatorClass => {
                self.operator_classes.remove(&oid);
            }
            ObjectKind::Comments => {
                self.comments.remove(&oid);
            }
            ObjectKind::Table => {
                if let Some(table) = self.tables.remove(&oid) {
                    self.forget_table(&table);
                }
            }
            ObjectKind::Sequence => {
                if let Some(sequence) = self.sequences.remove(&oid) {
                    self.relation_names.remove(&Name::new(&sequence.schema, &sequence.name));
                }
            }
            ObjectKind::Type => {
                if let Some(ty) = self.types.remove(&oid) {
                    self.type_names.remove(&Name::new(&ty.schema, &ty.name));
                    for label in &ty.labels {
                        self.labels.remove(&label.oid);
                    }
                    if let Some(relation) = oid.relation_of_row_type() {
                        self.composites.remove(&relation);
                    }
                }
            }
            ObjectKind::Routine => {
                if let Some(routine) = self.routines.remove(&oid) {
                    take(&mut self.routine_names, &Name::new(&routine.schema, &routine.name), oid);
                }
            }
        }
    }

    fn forget_table(&mut self, table: &Table) {
        let oid = table.oid;
        if self.trees.get(&table.tree) == Some(&oid) {
            self.trees.remove(&table.tree);
        }
        for parent in &table.inherits {
            take(&mut self.heirs, parent, oid);
        }
        for key in &table.foreign_keys {
            take(&mut self.referencing, &key.references, oid);
        }
        for name in constraint_names(table) {
            take(&mut self.constraint_names, &Name::new(&table.schema, name), oid);
        }
        self.relation_names.remove(&Name::new(&table.schema, &table.name));
        for (name, index) in index_names(table) {
            self.relation_names.remove(&Name::new(&table.schema, name));
            self.index_tables.remove(&index);
        }
    }
}

/// Whether an object is the very same one as before.
fn same_object<T>(before: Option<&Arc<T>>, after: Option<&Arc<T>>) -> bool {
    matches!((before, after), (Some(before), Some(after)) if Arc::ptr_eq(before, after))
}

/// Names of a table's constraints; one that has become an index is named like that.
fn constraint_names(table: &Table) -> impl Iterator<Item = &str> {
    let keys = table.primary_key.iter().map(|key| key.name.as_str());
    let checks = table.checks.iter().map(|check| check.name.as_str());
    let foreign = table.foreign_keys.iter().map(|key| key.name.as_str());
    let unique = table.indexes.iter().filter(|index| index.constraint).map(|index| index.name.as_str());
    keys.chain(checks).chain(foreign).chain(unique)
}

/// Names and oids of a table's indexes, the primary key's included.
fn index_names(table: &Table) -> impl Iterator<Item = (&str, Oid)> {
    table
        .primary_key
        .iter()
        .map(|key| (key.name.as_str(), key.oid))
        .chain(table.indexes.iter().map(|index| (index.name.as_str(), index.oid)))
}
