//! The databases of a server.

use std::sync::Arc;

use archipel_sql::catalog::{Catalog, ObjectNumbers};
use archipel_sql::types::Oid;

use super::{Database, SharedNumbers};
use crate::catalog::{CatalogState, SharedCatalogHandle};

/// The databases of a server. There is one so far.
pub struct Databases {
    first: Arc<Database>,
}

impl Databases {
    /// What a data directory holds.
    pub fn new(catalog: Catalog, numbers: ObjectNumbers) -> Databases {
        let (shared, numbers) = (SharedCatalogHandle::of(&catalog), SharedNumbers::of(numbers));
        let first = Database::new(catalog, &shared, &numbers);
        Databases { first: Arc::new(first) }
    }

    /// All of them, by their numbers.
    pub fn all(&self) -> Vec<Arc<Database>> {
        vec![self.first.clone()]
    }

    /// The database that a name leads to: its own, or one of those that tools expect every server of
    /// PostgreSQL's to have.
    pub fn named(&self, name: &str) -> Option<Arc<Database>> {
        let leads = matches!(name, "postgres" | "template1") || *name == *self.first.name();
        leads.then(|| self.first.clone())
    }

    /// The database of a number.
    pub fn numbered(&self, oid: Oid) -> Option<Arc<Database>> {
        (oid == self.first.oid).then(|| self.first.clone())
    }

    /// A catalog to look roles up in, before it is known which database somebody asks for: all have
    /// the same.
    pub fn catalog_of_roles(&self) -> Arc<CatalogState> {
        self.first.catalog.current()
    }
}
