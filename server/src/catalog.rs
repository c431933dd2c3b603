//! The catalog in force: an immutable snapshot with a number, replaced as a whole by DDL.
//!
//! The truth is the engine's catalog table; this is its decoded form, rebuilt after each DDL
//! commit and at the start. Executors compare the number (one relaxed load of a line nobody
//! writes between two DDL statements) and fetch the snapshot only when it has changed.
//!
//! What the catalogs of all databases have in common (roles, databases, what was said of them) is in force in
//! all of them: a definition publishes its database's catalog on the newest version of that, and one that
//! changes it makes it newer in every database.

pub(crate) mod startup;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use archipel_sql::catalog::{Catalog, CatalogChange, ObjectNumbers, SharedCatalog};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::types::Oid;
use parking_lot::Mutex;

pub use startup::{load, read, set_first_password};

/// One snapshot.
pub struct CatalogState {
    pub catalog: Catalog,
    /// Grows with every change; plans and cache entries compare it.
    pub version: u64,
    /// Labels that the one transaction which sees this catalog gave to enums.
    pub added_labels: Vec<Oid>,
}

impl CatalogState {
    fn of(catalog: Catalog, version: u64) -> Arc<CatalogState> {
        Arc::new(CatalogState { catalog, version, added_labels: Vec::new() })
    }

    /// Fails on a label that is not committed: a value of it could stay when the label does not
    /// (check_safe_enum_use).
    pub fn check_labels<'v>(&self, values: impl IntoIterator<Item = &'v Datum>) -> Result<(), SqlError> {
        for value in values {
            let Datum::Oid(label) = value else { continue };
            if !self.added_labels.contains(label) {
                continue;
            }
            let mut types = self.catalog.user_types();
            let of = types.find(|ty| ty.labels.iter().any(|known| known.oid == *label));
            let enumeration = of.map_or("", |ty| ty.name.as_str());
            let name = self.catalog.enum_label(*label).unwrap_or_default();
            let message = format!("unsafe use of new value \"{name}\" of enum type {enumeration}");
            return Err(SqlError::new(SqlState::UNSAFE_NEW_ENUM_VALUE_USAGE, message)
                .with_hint("New enum values must be committed before they can be used."));
        }
        Ok(())
    }
}

/// Where the numbers of snapshots come from: no two of a server have the same, of whichever database
/// and whoever sees them.
pub struct Versions(AtomicU64);

impl Default for Versions {
    /// Zero is nobody's: that of what was never prepared.
    fn default() -> Versions {
        Versions(AtomicU64::new(1))
    }
}

impl Versions {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// The snapshot in force.
pub struct CatalogHandle {
    current: Mutex<Arc<CatalogState>>,
    version: AtomicU64,
    shared: Arc<SharedCatalogHandle>,
    /// All databases share it.
    numbers: Arc<ObjectNumbers>,
    changed: tokio::sync::Notify,
}

impl CatalogHandle {
    /// That of a database, which has what all have in common, and draws numbers where they do.
    pub fn new(
        catalog: Catalog,
        shared: &Arc<SharedCatalogHandle>,
        numbers: Arc<ObjectNumbers>,
    ) -> Arc<CatalogHandle> {
        let version = shared.versions.next();
        let handle = Arc::new(CatalogHandle {
            current: Mutex::new(CatalogState::of(catalog, version)),
            version: AtomicU64::new(version),
            shared: shared.clone(),
            numbers,
            changed: tokio::sync::Notify::new(),
        });
        shared.keep(&handle);
        handle
    }

    /// What it has in common with those of other databases.
    pub fn shared(&self) -> &SharedCatalogHandle {
        &self.shared
    }

    /// A catalog that only one transaction sees, and the labels it gave to enums.
    pub fn private(&self, catalog: Catalog, added_labels: Vec<Oid>) -> Arc<CatalogState> {
        let version = self.shared.versions.next();
        Arc::new(CatalogState { catalog, version, added_labels })
    }

    /// Where what is new gets its numbers from.
    pub fn numbers(&self) -> &ObjectNumbers {
        &self.numbers
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub fn current(&self) -> Arc<CatalogState> {
        self.current.lock().clone()
    }

    /// Publishes the catalog that committed changes lead to. Of what all databases share, it gets the newest,
    /// with these changes, and so do they.
    pub fn publish(&self, catalog: Catalog, changes: &[CatalogChange]) {
        self.shared.publish(self, &catalog, changes);
    }

    fn put_in_force(&self, catalog: Catalog) {
        let mut current = self.current.lock();
        let version = self.shared.versions.next();
        *current = CatalogState::of(catalog, version);
        self.version.store(version, Ordering::Release);
        drop(current);
        self.note_change();
    }

    /// Whoever waits for [`CatalogHandle::changed`] looks again.
    pub fn note_change(&self) {
        self.changed.notify_one();
    }

    /// Waits for a change since this was last waited for. For one waiter.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// The shared part in force, and the databases whose catalogs have it.
pub struct SharedCatalogHandle {
    /// One definition of shared objects at a time. Whoever needs this and the latches of databases takes this
    /// one first.
    pub definitions: Arc<tokio::sync::Mutex<()>>,
    versions: Versions,
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
    fn keep(&self, database: &Arc<CatalogHandle>) {
        let mut newest = self.newest.lock();
        newest.databases.retain(|database| database.strong_count() > 0);
        newest.databases.push(Arc::downgrade(database));
        let current = database.current();
        let renewed = current.catalog.with_shared(&newest.shared);
        if !renewed.same_as(&current.catalog) {
            database.put_in_force(renewed);
        }
    }

    /// The oids that objects of any of the databases have ([`Catalog::oids_in_use`]).
    pub fn oids_in_use(&self) -> Vec<Range<u32>> {
        let databases: Vec<Arc<CatalogHandle>> =
            self.newest.lock().databases.iter().filter_map(Weak::upgrade).collect();
        databases.iter().flat_map(|database| database.current().catalog.oids_in_use()).collect()
    }

    /// Publishes in a database what was planned there, and in all of them what it changes of the shared part.
    fn publish(&self, database: &CatalogHandle, planned: &Catalog, changes: &[CatalogChange]) {
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

/// Why the catalog of a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("the system catalog cannot be read: {0}")]
    Damaged(SqlError),
    #[error(transparent)]
    Newer(#[from] archipel_migrations::NewerCatalog),
    #[error("the system catalog does not fit what there is: {0}")]
    Contradicts(String),
    #[error("the system catalog cannot be brought to this version: {0}")]
    Migration(SqlError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use archipel_sql::catalog::{Object, ObjectNumbers, Role, Schema};

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
