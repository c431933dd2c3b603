//! What one version of the catalog is made of: the objects by their oids, and what finds them by name
//! and by what they refer to. [`Catalog`](super::Catalog) answers from it.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::types::Oid;

use super::mentions::Mentions;
use super::operator_class::{OperatorClassRef, OperatorFamilyRef};
use super::relation::Relation;
use super::shared_map::SharedMap;
use super::shared_state::SharedState;
use super::{
    Access, Comments, DATABASE, DATABASE_NAME, DefaultAccess, Numbers, Object, ObjectKind, RoutineRef,
    Schema, SequenceRef, Table, TableRef, UserTypeRef,
};

/// All of it. Copies share most of their maps.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// The database that it is of, and what that is called.
    pub(super) database: Oid,
    pub(super) database_name: Arc<str>,
    pub(super) version: u64,
    /// The newest [`super::Migration`]; 0 for a new data directory.
    pub(super) migration: u32,
    pub(super) numbers: Numbers,
    /// What other databases have, too.
    pub(super) shared: Arc<SharedState>,
    pub(super) schemas: SharedMap<Oid, Arc<Schema>>,
    pub(super) tables: SharedMap<Oid, TableRef>,
    pub(super) sequences: SharedMap<Oid, SequenceRef>,
    pub(super) routines: SharedMap<Oid, RoutineRef>,
    /// Owners and rights, by the objects they are of.
    pub(super) access: SharedMap<Oid, Arc<Access>>,
    /// What new objects begin with.
    pub(super) default_access: SharedMap<Oid, Arc<DefaultAccess>>,
    pub(super) comments: SharedMap<Oid, Arc<Comments>>,
    pub(super) types: SharedMap<Oid, UserTypeRef>,
    pub(super) operator_classes: SharedMap<Oid, OperatorClassRef>,
    pub(super) operator_families: SharedMap<Oid, OperatorFamilyRef>,
    /// Names of enums' labels.
    pub(super) labels: SharedMap<Oid, Arc<str>>,
    /// The relations of composite types, by their oids.
    pub(super) composites: SharedMap<Oid, TableRef>,
    pub(super) schema_names: SharedMap<Arc<str>, Oid>,
    pub(super) relation_names: SharedMap<Name, RelationOid>,
    pub(super) routine_names: SharedMap<Name, Arc<[Oid]>>,
    pub(super) type_names: SharedMap<Name, Oid>,
    /// Which tables of a schema have a constraint of a name.
    pub(super) constraint_names: SharedMap<Name, Arc<[Oid]>>,
    /// Oids of indexes to their tables'.
    pub(super) index_tables: SharedMap<Oid, Oid>,
    /// Oids of other parts of tables to those: of constraints, triggers and policies.
    pub(super) part_tables: SharedMap<Oid, Oid>,
    /// Oids of constraints of domains to those.
    pub(super) part_types: SharedMap<Oid, Oid>,
    /// Tables to the sequences that columns of them own.
    pub(super) owned_sequences: SharedMap<Oid, Arc<[Oid]>>,
    /// Tables that store rows, by the engine's numbers.
    pub(super) trees: SharedMap<u32, Oid>,
    /// Sequences, by the engine's numbers.
    pub(super) sequence_files: SharedMap<u32, Oid>,
    /// Tables to those that inherit from them, by oid.
    pub(super) heirs: SharedMap<Oid, Arc<[Oid]>>,
    /// Tables to those that have foreign keys to them, by oid.
    pub(super) referencing: SharedMap<Oid, Arc<[Oid]>>,
    /// What somebody says, to those who do ([`super::mentions`]).
    pub(super) said_by: SharedMap<Oid, Arc<[Oid]>>,
    /// Of each kind of object that is not shared: another one after every change of such an object.
    pub(super) marks: [Arc<()>; ObjectKind::COUNT],
}

/// What an object is called, and in which schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    name: Arc<str>,
    schema: Arc<str>,
}

impl Name {
    fn new(schema: &str, name: &str) -> Name {
        Name { name: name.into(), schema: schema.into() }
    }

    /// What it is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How what it is called compares with another name, in whichever schema: the order of [`Name`]s but for
    /// those.
    pub(super) fn name_order(&self, name: &str) -> Ordering {
        (*self.name).cmp(name)
    }

    /// How it compares with another one: the order of [`Name`]s.
    pub(super) fn order(&self, schema: &str, name: &str) -> Ordering {
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

/// What a relation's name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelationOid {
    Table(Oid),
    Sequence(Oid),
    /// An index of this table with this oid of its own.
    Index(Oid, Oid),
}

impl State {
    /// Without any object.
    pub(super) fn empty() -> State {
        State {
            database: DATABASE,
            database_name: DATABASE_NAME.into(),
            version: 1,
            migration: 0,
            numbers: Numbers::FIRST,
            shared: Arc::default(),
            schemas: SharedMap::default(),
            tables: SharedMap::default(),
            sequences: SharedMap::default(),
            routines: SharedMap::default(),
            access: SharedMap::default(),
            default_access: SharedMap::default(),
            comments: SharedMap::default(),
            types: SharedMap::default(),
            operator_classes: SharedMap::default(),
            operator_families: SharedMap::default(),
            labels: SharedMap::default(),
            composites: SharedMap::default(),
            schema_names: SharedMap::default(),
            relation_names: SharedMap::default(),
            routine_names: SharedMap::default(),
            type_names: SharedMap::default(),
            constraint_names: SharedMap::default(),
            index_tables: SharedMap::default(),
            part_tables: SharedMap::default(),
            part_types: SharedMap::default(),
            owned_sequences: SharedMap::default(),
            trees: SharedMap::default(),
            sequence_files: SharedMap::default(),
            heirs: SharedMap::default(),
            referencing: SharedMap::default(),
            said_by: SharedMap::default(),
            marks: Default::default(),
        }
    }
}

/// What is found by exact name.
impl State {
    pub(super) fn schema_named(&self, name: &str) -> Option<&Arc<Schema>> {
        self.schemas.get(self.schema_names.get_by(|known| (**known).cmp(name))?)
    }

    pub(super) fn relation_named(&self, schema: &str, name: &str) -> Option<RelationOid> {
        self.relation_names.get_by(|known| known.order(schema, name)).copied()
    }

    pub(super) fn type_named(&self, schema: &str, name: &str) -> Option<&UserTypeRef> {
        self.types.get(self.type_names.get_by(|known| known.order(schema, name))?)
    }

    pub(super) fn routines_named(&self, schema: &str, name: &str) -> &[Oid] {
        self.routine_names.get_by(|known| known.order(schema, name)).map_or(&[], |oids| oids)
    }
}

impl State {
    pub(super) fn relation(&self, oid: RelationOid) -> Option<Relation> {
        match oid {
            RelationOid::Table(table) => self.tables.get(&table).cloned().map(Relation::Table),
            RelationOid::Sequence(sequence) => self.sequences.get(&sequence).cloned().map(Relation::Sequence),
            RelationOid::Index(table, index) => {
                let table = self.tables.get(&table)?.clone();
                if table.primary_key.as_ref().is_some_and(|key| key.oid == index) {
                    return Some(Relation::PrimaryKey(table));
                }
                if let Some(place) = table.indexes.iter().position(|candidate| candidate.oid == index) {
                    return Some(Relation::Index(table, place));
                }
                let mut nominal = table.nominal.indexes.iter();
                let place = nominal.position(|candidate| candidate.index.oid == index)?;
                Some(Relation::Nominal(table, place))
            }
        }
    }

    pub(super) fn put(&mut self, object: &Object) {
        if object.kind().is_shared() {
            Arc::make_mut(&mut self.shared).put(object);
            return;
        }
        self.drop(object.kind(), object.oid());
        match object {
            Object::Numbers(numbers) => self.numbers = self.numbers.max(*numbers),
            Object::Migration(migration) => self.migration = self.migration.max(migration.version),
            Object::Schema(schema) => {
                self.schema_names.insert(schema.name.as_str().into(), schema.oid);
                self.schemas.insert(schema.oid, Arc::new(schema.clone()));
            }
            // Put above.
            Object::Role(_) | Object::Database(_) | Object::SharedComments(_) | Object::Parameters(_) => {}
            Object::Access(access) => self.access.insert(access.object, Arc::new(access.clone())),
            Object::DefaultAccess(entry) => self.default_access.insert(entry.oid, Arc::new(entry.clone())),
            Object::Comments(comments) => {
                if !comments.texts.is_empty() {
                    self.comments.insert(comments.object, Arc::new(comments.clone()));
                }
            }
            Object::Table(table) => self.put_table(table),
            Object::Sequence(sequence) => {
                self.sequences.insert(sequence.oid, sequence.clone());
                self.sequence_files.insert(sequence.file, sequence.oid);
                if let Some((table, _)) = sequence.owned_by {
                    add(&mut self.owned_sequences, table, sequence.oid);
                }
                let name = Name::new(&sequence.schema, &sequence.name);
                self.relation_names.insert(name, RelationOid::Sequence(sequence.oid));
            }
            Object::Type(ty) => {
                self.says(ty.oid, Mentions::of_type(ty));
                self.types.insert(ty.oid, ty.clone());
                self.type_names.insert(Name::new(&ty.schema, &ty.name), ty.oid);
                for label in &ty.labels {
                    self.labels.insert(label.oid, Arc::from(label.name.as_str()));
                }
                for check in ty.domain.iter().flat_map(|domain| &domain.checks) {
                    self.part_types.insert(check.oid, ty.oid);
                }
                if let Some(relation) = ty.relation() {
                    self.composites.insert(relation.oid, Arc::new(relation));
                }
            }
            Object::OperatorClass(class) => self.operator_classes.insert(class.oid, class.clone()),
            Object::OperatorFamily(family) => self.operator_families.insert(family.oid, family.clone()),
            Object::Routine(routine) => {
                self.says(routine.oid, Mentions::of_routine(routine));
                self.routines.insert(routine.oid, routine.clone());
                add(&mut self.routine_names, Name::new(&routine.schema, &routine.name), routine.oid);
            }
        }
    }

    /// Notes what an object says.
    fn says(&mut self, object: Oid, said: BTreeSet<Oid>) {
        said.into_iter().for_each(|oid| add(&mut self.said_by, oid, object));
    }

    /// An object that says this goes, or says something else from now on.
    fn says_no_more(&mut self, object: Oid, said: BTreeSet<Oid>) {
        said.iter().for_each(|oid| take(&mut self.said_by, oid, object));
    }

    fn put_table(&mut self, table: &TableRef) {
        self.says(table.oid, Mentions::of_table(table));
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
        for part in other_parts(table) {
            self.part_tables.insert(part, table.oid);
        }
    }

    pub(super) fn drop(&mut self, kind: ObjectKind, oid: Oid) {
        if kind.is_shared() {
            Arc::make_mut(&mut self.shared).drop(kind, oid);
            return;
        }
        self.marks[kind as usize] = Arc::default();
        match kind {
            ObjectKind::Numbers | ObjectKind::Migration => {}
            // Dropped above.
            ObjectKind::Role | ObjectKind::Database | ObjectKind::SharedComments | ObjectKind::Parameters => {
            }
            ObjectKind::Schema => {
                if let Some(schema) = self.schemas.remove(&oid) {
                    self.schema_names.remove(&Arc::from(schema.name.as_str()));
                }
            }
            ObjectKind::Access => {
                self.access.remove(&oid);
            }
            ObjectKind::DefaultAccess => {
                self.default_access.remove(&oid);
            }
            ObjectKind::OperatorClass => {
                self.operator_classes.remove(&oid);
            }
            ObjectKind::OperatorFamily => {
                self.operator_families.remove(&oid);
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
                    self.sequence_files.remove(&sequence.file);
                    if let Some((table, _)) = &sequence.owned_by {
                        take(&mut self.owned_sequences, table, oid);
                    }
                    self.relation_names.remove(&Name::new(&sequence.schema, &sequence.name));
                }
            }
            ObjectKind::Type => {
                if let Some(ty) = self.types.remove(&oid) {
                    self.says_no_more(oid, Mentions::of_type(&ty));
                    self.type_names.remove(&Name::new(&ty.schema, &ty.name));
                    for label in &ty.labels {
                        self.labels.remove(&label.oid);
                    }
                    for check in ty.domain.iter().flat_map(|domain| &domain.checks) {
                        self.part_types.remove(&check.oid);
                    }
                    if let Some(relation) = oid.relation_of_row_type() {
                        self.composites.remove(&relation);
                    }
                }
            }
            ObjectKind::Routine => {
                if let Some(routine) = self.routines.remove(&oid) {
                    self.says_no_more(oid, Mentions::of_routine(&routine));
                    take(&mut self.routine_names, &Name::new(&routine.schema, &routine.name), oid);
                }
            }
        }
    }

    fn forget_table(&mut self, table: &Table) {
        let oid = table.oid;
        self.says_no_more(oid, Mentions::of_table(table));
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
        for part in other_parts(table) {
            self.part_tables.remove(&part);
        }
    }
}

/// Names of a table's constraints; one that has become an index is named like that.
fn constraint_names(table: &Table) -> impl Iterator<Item = &str> {
    let keys = table.primary_key.iter().map(|key| key.name.as_str());
    let checks = table.checks.iter().map(|check| check.name.as_str());
    let foreign = table.foreign_keys.iter().map(|key| key.name.as_str());
    let unique = table.indexes.iter().filter(|index| index.constraint).map(|index| index.name.as_str());
    let triggers = table.triggers.iter().filter(|trigger| trigger.constraint.is_some());
    let triggers = triggers.map(|trigger| trigger.name.as_str());
    keys.chain(checks).chain(foreign).chain(unique).chain(triggers)
}

/// Oids of a table's constraints, triggers and policies.
fn other_parts(table: &Table) -> impl Iterator<Item = Oid> {
    let keys = table.primary_key.iter().map(|key| key.constraint_oid());
    let unique = table.indexes.iter().filter_map(|index| index.constraint_oid());
    let checks = table.checks.iter().map(|check| check.oid);
    let foreign = table.foreign_keys.iter().map(|key| key.oid);
    let triggers = table.triggers.iter().map(|trigger| trigger.oid);
    let policies = table.row_security.policies.iter().map(|policy| policy.oid);
    keys.chain(unique).chain(checks).chain(foreign).chain(triggers).chain(policies)
}

/// Names and oids of a table's indexes, the primary key's included.
fn index_names(table: &Table) -> impl Iterator<Item = (&str, Oid)> {
    table
        .primary_key
        .iter()
        .map(|key| (key.name.as_str(), key.oid))
        .chain(table.indexes.iter().map(|index| (index.name.as_str(), index.oid)))
        .chain(table.nominal.indexes.iter().map(|nominal| (nominal.index.name.as_str(), nominal.index.oid)))
}
