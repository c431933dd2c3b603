//! Whose the engine's tables and sequences are: the database that has them, and what they are there.
//!
//! The engine's numbers are one database's each, and those of a catalog are not: what is shown of
//! the engine is looked up in all catalogs.

use std::cell::OnceCell;
use std::sync::Arc;

use archipel_engine::LockTag;
use archipel_engine::id::{SequenceId, TreeId};
use archipel_sql::catalog::{RoutineRef, TableRef};
use archipel_sql::types::Oid;
use rustc_hash::FxHashMap;

use crate::catalog::CatalogState;
use crate::database::Database;
use crate::server::Server;
use crate::session::host::Host;

/// The relations of all databases, as they were when this was made.
pub(crate) struct Relations {
    databases: Vec<(Arc<Database>, Arc<CatalogState>)>,
    /// Where the database of each stored table stands, by tree.
    tables: OnceCell<FxHashMap<u32, (usize, TableRef)>>,
    /// The same of sequences, by the engine's number.
    sequences: OnceCell<FxHashMap<u32, (usize, Oid)>>,
}

impl Relations {
    /// As their catalogs in force have them.
    pub fn of(server: &Server) -> Relations {
        Relations::seen_first(None, server)
    }

    /// As a session sees those of its own database, with what it has dropped and not committed yet, and
    /// as the others' catalogs in force have them.
    pub fn seen_by(host: &Host) -> Relations {
        Relations::seen_first(Some((host.database.clone(), host.catalog.clone())), &host.server)
    }

    fn seen_first(first: Option<(Arc<Database>, Arc<CatalogState>)>, server: &Server) -> Relations {
        let in_force = server.databases.all().into_iter().map(|database| {
            let state = database.catalog.current();
            (database, state)
        });
        let databases = first.into_iter().chain(in_force).collect();
        Relations { databases, tables: OnceCell::new(), sequences: OnceCell::new() }
    }

    /// The table of a tree, and its database.
    pub fn table(&self, tree: TreeId) -> Option<(&Database, &TableRef)> {
        let tables = self.tables.get_or_init(|| {
            // Of two that know it the first counts.
            let all = self.databases.iter().enumerate().rev().flat_map(|(at, (_, state))| {
                let stored = state.catalog.tables().filter(|table| table.is_stored());
                stored.map(move |table| (table.tree, (at, table.clone())))
            });
            all.collect()
        });
        let (at, table) = tables.get(&tree.0)?;
        Some((&*self.databases[*at].0, table))
    }

    /// The number of a sequence in its catalog, and its database.
    pub fn sequence(&self, id: SequenceId) -> Option<(&Database, Oid)> {
        let sequences = self.sequences.get_or_init(|| {
            let all = self.databases.iter().enumerate().rev().flat_map(|(at, (_, state))| {
                state.catalog.sequences().map(move |sequence| (sequence.file, (at, sequence.oid)))
            });
            all.collect()
        });
        let (at, oid) = sequences.get(&id.0)?;
        Some((&*self.databases[*at].0, *oid))
    }

    /// The routine of the monitor's number, and its database.
    pub fn routine(&self, class: u32) -> Option<(&Database, RoutineRef)> {
        self.databases.iter().find_map(|(database, state)| {
            let routine = state.catalog.routine_by_oid(database.calls.routine_of(class)?)?;
            Some((&**database, routine))
        })
    }

    /// The relation that a lock is on, and its database; `None` if it is on none that is known.
    pub fn locked(&self, tag: LockTag) -> Option<(&Database, Oid)> {
        match tag {
            LockTag::Table(tree) => self.table(tree).map(|(database, table)| (database, table.oid)),
            LockTag::Sequence(id) => self.sequence(id),
            LockTag::Advisory { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archipel_sql::catalog::{Catalog, CatalogChange, Object, ObjectNumbers, Sequence, Table, TableKind};
    use archipel_sql::types::Type;

    use crate::catalog::SharedCatalogHandle;
    use crate::database::SharedNumbers;

    /// A database whose one table and one sequence have the numbers that a copy of it keeps, and the
    /// engine's of their own.
    fn database(oid: u32, tree: u32, file: u32, numbers: &SharedNumbers) -> Arc<Database> {
        let table = Table { tree, ..Table::new(Oid(16_384), "public", "t", TableKind::Table) };
        let sequence = Sequence {
            oid: Oid(16_390),
            schema: "public".into(),
            name: "s".into(),
            ty: Type::INT8,
            start: 1,
            increment: 1,
            min_value: 1,
            max_value: i64::MAX,
            cycle: false,
            cache: 1,
            owned_by: None,
            persistence: Default::default(),
            file,
        };
        let changes = [Object::Table(Arc::new(table)), Object::Sequence(Arc::new(sequence))];
        let catalog = Catalog::new(Vec::new()).apply(&changes.map(CatalogChange::Put));
        let shared = SharedCatalogHandle::of(catalog.shared());
        Arc::new(Database::new(catalog.of_database(Oid(oid), "d"), &shared, numbers))
    }

    #[test]
    fn the_engines_numbers_say_whose_a_relation_is() {
        let numbers = SharedNumbers::of(ObjectNumbers::new(Catalog::new(Vec::new()).numbers()));
        let both = [database(5, 20, 100, &numbers), database(6, 30, 101, &numbers)];
        let databases = both.map(|database| (database.clone(), database.catalog.current())).into();
        let relations = Relations { databases, tables: OnceCell::new(), sequences: OnceCell::new() };
        let locked = |tag| relations.locked(tag).map(|(database, relation)| (database.oid.0, relation.0));
        assert_eq!(locked(LockTag::Table(TreeId(20))), Some((5, 16_384)));
        assert_eq!(locked(LockTag::Table(TreeId(30))), Some((6, 16_384)));
        assert_eq!(locked(LockTag::Table(TreeId(40))), None);
        assert_eq!(locked(LockTag::Sequence(SequenceId(100))), Some((5, 16_390)));
        assert_eq!(locked(LockTag::Sequence(SequenceId(101))), Some((6, 16_390)));
    }
}
