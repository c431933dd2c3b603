//! What a new database has of its template's catalog.
//!
//! The rows are the same, oids too: values that name objects, and the rows of tables, stay right. What the
//! engine numbers is new: no two databases share a tree, a group or a sequence. Tables that were in one group
//! are in one group again. What is temporary stays behind with its session.
//!
//! Roles, databases and what is said of them are nobody's copy: all databases have the same.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Result, SqlError, SqlState};
use crate::types::Oid;

use super::names::is_temporary_schema;
use super::{
    ARCHIPEL, Catalog, CatalogChange, Distribution, INFORMATION_SCHEMA, Numbered, Numbers, Object,
    ObjectKind, ObjectNumbers, PG_CATALOG, SequenceRef, Table, TableKind, TableRef,
};

/// A database to be, of its template. See the module's head.
#[derive(Debug)]
pub struct DatabaseCopy {
    pub catalog: Catalog,
    /// The rows of that catalog, but for the row that says which migrations it needs no more; and the
    /// numbers behind those that were drawn for it.
    pub changes: Vec<CatalogChange>,
    /// Tables that have rows, as the template has them and as the copy does.
    pub tables: Vec<(TableRef, TableRef)>,
    /// The same of sequences.
    pub sequences: Vec<(SequenceRef, SequenceRef)>,
}

/// Numbers of the engine, each drawn once for what it stands for.
struct Renumbered<'n> {
    source: &'n ObjectNumbers,
    groups: FxHashMap<u32, u32>,
    /// Behind the last that were drawn.
    behind: Numbers,
}

impl Renumbered<'_> {
    fn draw(&mut self, of: Numbered) -> Result<u32> {
        let Some(drawn) = self.source.draw(of, 1) else {
            let message = "there are no numbers left for new objects";
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        };
        let behind = match of {
            Numbered::Oid => &mut self.behind.oid,
            Numbered::Tree => &mut self.behind.tree,
            Numbered::Group => &mut self.behind.group,
            Numbered::Sequence => &mut self.behind.sequence,
        };
        *behind = drawn + 1;
        Ok(drawn)
    }

    fn group(&mut self, group: u32) -> Result<u32> {
        if let Some(known) = self.groups.get(&group) {
            return Ok(*known);
        }
        let drawn = self.draw(Numbered::Group)?;
        self.groups.insert(group, drawn);
        Ok(drawn)
    }

    fn table(&mut self, table: &Table) -> Result<Table> {
        let mut copy = table.clone();
        copy.tree = self.draw(Numbered::Tree)?;
        copy.distribution = match table.distribution {
            Distribution::Column { column, group } => {
                Distribution::Column { column, group: self.group(group)? }
            }
            Distribution::HiddenId { group } => Distribution::HiddenId { group: self.group(group)? },
            other @ (Distribution::Reference | Distribution::None) => other,
        };
        for index in &mut copy.indexes {
            index.tree = self.draw(Numbered::Tree)?;
            index.global_group = index.global_group.map(|group| self.group(group)).transpose()?;
        }
        Ok(copy)
    }
}

impl Catalog {
    /// A copy of this catalog for a new database. Draws what the engine numbers.
    pub fn copied(&self, oid: Oid, name: &str, numbers: &ObjectNumbers) -> Result<DatabaseCopy> {
        let nothing = Numbers { oid: 0, tree: 0, group: 0, sequence: 0 };
        let behind = Numbers { oid: oid.0 + 1, ..nothing };
        let mut renumbered = Renumbered { source: numbers, groups: FxHashMap::default(), behind };
        let (left, dropped) = self.temporary();
        let mut changes = Vec::new();
        let (mut tables, mut sequences) = (Vec::new(), Vec::new());
        for object in self.own_objects().filter(|object| !left.contains(&object.oid())) {
            let object = match object {
                Object::Table(table) if table.is_stored() => {
                    let copy = TableRef::new(renumbered.table(&table)?);
                    tables.push((table, copy.clone()));
                    Object::Table(copy)
                }
                Object::Sequence(sequence) => {
                    let mut copy = (*sequence).clone();
                    copy.file = renumbered.draw(Numbered::Sequence)?;
                    let copy = SequenceRef::new(copy);
                    sequences.push((sequence, copy.clone()));
                    Object::Sequence(copy)
                }
                other => other,
            };
            changes.push(CatalogChange::Put(object));
        }
        // The template's maps are shared but for what differs.
        let differs = |change: &&CatalogChange| match change {
            CatalogChange::Put(Object::Table(table)) => table.is_stored(),
            CatalogChange::Put(object) => object.kind() == ObjectKind::Sequence,
            CatalogChange::Drop(..) => false,
        };
        let differing: Vec<CatalogChange> =
            dropped.into_iter().chain(changes.iter().filter(differs).cloned()).collect();
        let catalog = self.of_database(oid, name).apply(&differing);
        changes.push(CatalogChange::Put(Object::Numbers(renumbered.behind)));
        Ok(DatabaseCopy { catalog, changes, tables, sequences })
    }

    /// Every object that has a row of this database.
    fn own_objects(&self) -> impl Iterator<Item = Object> {
        let state = self.state();
        let schemas = state.schemas.values().filter(|schema| {
            let of_system = [PG_CATALOG, INFORMATION_SCHEMA, ARCHIPEL];
            !of_system.contains(&schema.oid)
        });
        let tables = state.tables.values().filter(|table| table.kind != TableKind::System);
        schemas
            .map(|schema| Object::Schema((**schema).clone()))
            .chain(state.types.values().cloned().map(Object::Type))
            .chain(tables.cloned().map(Object::Table))
            .chain(state.sequences.values().cloned().map(Object::Sequence))
            .chain(state.routines.values().cloned().map(Object::Routine))
            .chain(state.operator_families.values().cloned().map(Object::OperatorFamily))
            .chain(state.operator_classes.values().cloned().map(Object::OperatorClass))
            .chain(state.access.values().map(|access| Object::Access((**access).clone())))
            .chain(state.default_access.values().map(|entry| Object::DefaultAccess((**entry).clone())))
            .chain(state.comments.values().map(|comments| Object::Comments((**comments).clone())))
    }

    /// The oids of all that is temporary, and what drops it from a catalog.
    fn temporary(&self) -> (FxHashSet<Oid>, Vec<CatalogChange>) {
        let mut oids = FxHashSet::default();
        let mut changes = Vec::new();
        for object in self.own_objects() {
            let schema = match &object {
                Object::Schema(schema) => &schema.name,
                Object::Table(table) => &table.schema,
                Object::Sequence(sequence) => &sequence.schema,
                Object::Routine(routine) => &routine.schema,
                Object::Type(ty) => &ty.schema,
                _ => continue,
            };
            if !is_temporary_schema(schema) {
                continue;
            }
            if let Object::Table(table) = &object {
                oids.extend(table.primary_key.iter().flat_map(|key| [key.oid, key.constraint_oid()]));
                oids.extend(table.indexes.iter().map(|index| index.oid));
                oids.extend(table.indexes.iter().filter_map(|index| index.constraint_oid()));
            }
            oids.insert(object.oid());
            changes.push(CatalogChange::Drop(object.kind(), object.oid()));
        }
        let said = self.own_objects().filter(|object| {
            let is_said = matches!(object.kind(), ObjectKind::Access | ObjectKind::Comments);
            is_said && oids.contains(&object.oid())
        });
        changes.extend(said.map(|object| CatalogChange::Drop(object.kind(), object.oid())));
        (oids, changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Column, Comments, Relation, Schema};
    use crate::types::Type;

    fn table(oid: u32, schema: &str, name: &str, tree: u32, group: u32) -> CatalogChange {
        let mut table = Table::new(Oid(oid), schema, name, TableKind::Table);
        table.columns.push(Column::new("a", Type::INT4));
        table.distribution = Distribution::Column { column: 0, group };
        table.tree = tree;
        CatalogChange::Put(Object::Table(TableRef::new(table)))
    }

    fn template() -> Catalog {
        let comment = |object| Comments { object: Oid(object), texts: vec![(0, "said".to_owned())] };
        Catalog::initial(Vec::new()).apply(&[
            CatalogChange::Put(Object::Schema(Schema { oid: Oid(20_000), name: "pg_temp_7".to_owned() })),
            table(20_001, "public", "a", 30, 7),
            table(20_002, "public", "b", 31, 7),
            table(20_003, "public", "c", 32, 8),
            table(20_004, "pg_temp_7", "d", 33, 9),
            CatalogChange::Put(Object::Comments(comment(20_001))),
            CatalogChange::Put(Object::Comments(comment(20_004))),
        ])
    }

    #[test]
    fn a_copy_keeps_oids_and_has_numbers_of_its_own() {
        let numbers = ObjectNumbers::new(Numbers { oid: 30_000, tree: 100, group: 200, sequence: 300 });
        let copy = template().copied(Oid(29_999), "copy", &numbers).unwrap();
        let placed = |name: &str| match copy.catalog.relation_in("public", name)? {
            Relation::Table(table) => Some((table.oid, table.tree, table.distribution)),
            _ => None,
        };
        let at = |group| Distribution::Column { column: 0, group };
        assert_eq!(placed("a"), Some((Oid(20_001), 100, at(200))));
        assert_eq!(placed("b"), Some((Oid(20_002), 101, at(200))));
        assert_eq!(placed("c"), Some((Oid(20_003), 102, at(201))));
        assert_eq!((copy.catalog.database_oid(), copy.catalog.database_name()), (Oid(29_999), "copy"));
        let behind = Numbers { oid: 30_000, tree: 103, group: 202, sequence: 0 };
        assert!(copy.changes.contains(&CatalogChange::Put(Object::Numbers(behind))));
        assert_eq!(copy.tables.len(), 3);
    }

    #[test]
    fn what_is_temporary_is_not_copied() {
        let numbers = ObjectNumbers::new(Numbers::FIRST);
        let copy = template().copied(Oid(29_999), "copy", &numbers).unwrap();
        assert!(!copy.catalog.schema_exists("pg_temp_7"));
        assert!(copy.catalog.table_by_oid(Oid(20_004)).is_none());
        assert!(copy.catalog.comments(Oid(20_004)).is_none() && copy.catalog.comments(Oid(20_001)).is_some());
        assert!(copy.changes.iter().all(|change| match change {
            CatalogChange::Put(object) => ![Oid(20_000), Oid(20_004)].contains(&object.oid()),
            CatalogChange::Drop(..) => false,
        }));
    }

    #[test]
    fn the_rows_of_a_copy_make_the_catalog_of_it() {
        let numbers = ObjectNumbers::new(Numbers::FIRST);
        let copy = template().copied(Oid(29_999), "copy", &numbers).unwrap();
        let read = Catalog::new(Vec::new()).of_database(Oid(29_999), "copy").apply(&copy.changes);
        let tables = |catalog: &Catalog| catalog.tables().cloned().collect::<Vec<_>>();
        assert_eq!(tables(&read), tables(&copy.catalog));
        let schemas = |catalog: &Catalog| catalog.schemas().cloned().collect::<Vec<_>>();
        assert_eq!(schemas(&read), schemas(&copy.catalog));
    }
}
