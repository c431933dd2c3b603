//! What the catalogs of all databases have in common, in force: roles, databases, and what was said of them.
//!
//! A definition publishes its database's catalog, on the newest version of the shared part. One that changes
//! the shared part makes that newer in every database.

use std::sync::{Arc, Weak};

use archipel_sql::catalog::{Catalog, CatalogChange, SharedCatalog};
use parking_lot::Mutex;

use super::{CatalogHandle, Versions};

/// The shared part in force, and the databases whose catalogs have it.
pub struct SharedCatalogHandle {
    /// One definition of shared objects at a time. Whoever needs this and the latches of databases takes this
    /// one first.
    pub definitions: Arc<tokio::sync::Mutex<()>>,
    pub(super) versions: Versions,
    newest: Mutex<Newest>,
}

struct Newest {
    shared: SharedCatalog,
    databases: Vec<Weak<CatalogHandle>>,
}

impl SharedCatalogHandle {
    /// What the catalogs of the first databases have in common.
    pub fn of(shared: SharedCatalog) -> Arc<SharedCatalogHandle> {
        Arc::new(SharedCatalogHandle {
            definitions: Arc::default(),
            versions: Versions::default(),
            newest: Mutex::new(Newest { shared, databases: Vec::new() }),
        })
    }

    /// Brings a database's catalog up to date, now and whenever the shared part changes.
    pub(super) fn keep(&self, database: &Arc<CatalogHandle>) {
        let mut newest = self.newest.lock();
        newest.databases.retain(|database| database.strong_count() > 0);
        newest.databases.push(Arc::downgrade(database));
        let current = database.current();
        let renewed = current.catalog.with_shared(&newest.shared);
        if !renewed.same_as(&current.catalog) {
            database.put_in_force(renewed);
        }
    }

    /// Publishes in a database what was planned there, and in all of them what it changes of the shared part.
    pub(super) fn publish(&self, database: &CatalogHandle, planned: &Catalog, changes: &[CatalogChange]) {
        // No catalog is put in force without this lock.
        let mut newest = self.newest.lock();
        let shared = newest.shared.after(changes);
        let is_newer = !shared.same_as(&newest.shared);
        newest.shared = shared;
        database.put_in_force(planned.with_shared(&newest.shared));
        if !is_newer {
            return;
        }
        let others = newest.databases.iter().filter_map(Weak::upgrade);
        for other in others.filter(|other| !std::ptr::eq(&**other, database)) {
            let renewed = other.current().catalog.with_shared(&newest.shared);
            other.put_in_force(renewed);
        }
    }
}

#[cfg(test)]
mod tests {
    use archipel_sql::catalog::{Object, ObjectNumbers, Role, Schema};
    use archipel_sql::types::Oid;

    use super::*;

    fn schema(name: &str) -> CatalogChange {
        CatalogChange::Put(Object::Schema(Schema { oid: Oid(20_000), name: name.to_owned() }))
    }

    fn handle(catalog: &Catalog, shared: &Arc<SharedCatalogHandle>) -> Arc<CatalogHandle> {
        let numbers = Arc::new(ObjectNumbers::new(catalog.numbers()));
        CatalogHandle::new(catalog.clone(), shared, numbers)
    }

    #[test]
    fn a_role_is_published_in_every_database_and_a_schema_in_its_own() {
        let catalog = Catalog::initial(Vec::new());
        let shared = SharedCatalogHandle::of(catalog.shared());
        let one = handle(&catalog, &shared);
        let other = handle(&catalog, &shared);
        let (planned_one, planned_other) = (one.current(), other.current());
        assert_ne!(planned_one.version, planned_other.version);

        let role = [CatalogChange::Put(Object::Role(Role::new(Oid(20_001), "alice")))];
        other.publish(planned_other.catalog.apply(&role), &role);
        assert!(one.current().catalog.role("alice").is_some());
        assert_ne!(one.version(), planned_one.version, "plans look again");

        // Planned before the role was made.
        let own = [schema("own")];
        let before = other.version();
        one.publish(planned_one.catalog.apply(&own), &own);
        let (one, other_now) = (one.current(), other.current());
        assert!(one.catalog.role("alice").is_some() && one.catalog.schema_exists("own"));
        assert!(!other_now.catalog.schema_exists("own"));
        assert_eq!(other.version(), before, "nothing of it has changed");
    }

    #[test]
    fn a_database_that_comes_later_has_the_roles_of_all() {
        let catalog = Catalog::initial(Vec::new());
        let shared = SharedCatalogHandle::of(catalog.shared());
        let one = handle(&catalog, &shared);
        let role = [CatalogChange::Put(Object::Role(Role::new(Oid(20_001), "alice")))];
        one.publish(catalog.apply(&role), &role);
        let later = handle(&catalog, &shared);
        assert!(later.current().catalog.role("alice").is_some());
    }
}
