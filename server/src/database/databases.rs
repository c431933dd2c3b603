//! The databases of a server, by number and name.

use std::collections::BTreeMap;
use std::sync::Arc;

use archipel_sql::catalog::{Catalog, CatalogChange, Object, ObjectNumbers};
use archipel_sql::types::Oid;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::{Database, SharedNumbers};
use crate::catalog::{CatalogState, SharedCatalogHandle};

/// See the module's head.
pub struct Databases {
    shared: Arc<SharedCatalogHandle>,
    numbers: SharedNumbers,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    by_number: BTreeMap<Oid, Arc<Database>>,
    by_name: FxHashMap<Arc<str>, Oid>,
}

impl Databases {
    /// What a data directory holds: the catalogs of its databases, one at least.
    pub fn new(catalogs: Vec<Catalog>, numbers: ObjectNumbers) -> Databases {
        let shared = catalogs.first().map_or_else(|| Catalog::new(Vec::new()).shared(), Catalog::shared);
        let databases = Databases {
            shared: SharedCatalogHandle::of(shared),
            numbers: SharedNumbers::of(numbers),
            known: RwLock::default(),
        };
        databases.numbers.used_in(&databases.shared);
        for catalog in catalogs {
            databases.add(catalog);
        }
        databases
    }

    /// Opens the database that a catalog is of; what is there under its number and its name is replaced.
    pub fn add(&self, catalog: Catalog) -> Arc<Database> {
        let database = Arc::new(Database::new(catalog, &self.shared, &self.numbers));
        let mut known = self.known.write();
        known.by_name.insert(database.name(), database.oid);
        known.by_number.insert(database.oid, database.clone());
        database
    }

    /// Takes a database out, so that nobody finds it any more.
    pub fn remove(&self, oid: Oid) -> Option<Arc<Database>> {
        let mut known = self.known.write();
        let removed = known.by_number.remove(&oid)?;
        known.by_name.retain(|_, number| *number != oid);
        removed.end();
        Some(removed)
    }

    /// Gives a database another name.
    pub fn rename(&self, oid: Oid, name: &str) {
        let mut known = self.known.write();
        let Some(database) = known.by_number.get(&oid).cloned() else { return };
        known.by_name.retain(|_, number| *number != oid);
        known.by_name.insert(name.into(), oid);
        database.set_name(name);
    }

    /// Gives databases the names that committed changes say.
    pub fn take_up_names(&self, changes: &[CatalogChange]) {
        for change in changes {
            let CatalogChange::Put(Object::Database(row)) = change else { continue };
            if self.numbered(row.oid).is_some_and(|known| *known.name() != *row.name) {
                self.rename(row.oid, &row.name);
            }
        }
    }

    /// All of them, in the order of their numbers.
    pub fn all(&self) -> Vec<Arc<Database>> {
        self.known.read().by_number.values().cloned().collect()
    }

    /// The database of a name.
    pub fn named(&self, name: &str) -> Option<Arc<Database>> {
        let known = self.known.read();
        known.by_number.get(known.by_name.get(name)?).cloned()
    }

    /// The database of a number.
    pub fn numbered(&self, oid: Oid) -> Option<Arc<Database>> {
        self.known.read().by_number.get(&oid).cloned()
    }

    /// What the catalogs of all of them have in common.
    pub fn shared(&self) -> &Arc<SharedCatalogHandle> {
        &self.shared
    }

    /// A catalog to look roles up in, before it is known which database somebody asks for: all have
    /// the same.
    pub fn catalog_of_roles(&self) -> Option<Arc<CatalogState>> {
        self.known.read().by_number.values().next().map(|first| first.catalog.current())
    }
}
