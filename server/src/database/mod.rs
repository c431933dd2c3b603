//! Databases: what each has of its own, beside what all of a server share
//! ([`crate::server::Server`]).
//!
//! - [`Database`]  its catalog, its routines, who listens to what in it, and what is known of its tables
//! - [`Databases`] those of a server, by name and number
//! - [`door`]      who comes in, and who has a database for himself
//!
//! The engine knows nothing of them: its tables, sequences and locks have numbers that no two
//! databases share. Invariant: whatever is found again by a number of a catalog or by a text is
//! kept in a database, or has the database in its key; a copy of a database has the numbers of its
//! template.

mod databases;
pub mod door;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archipel_procedures::Registry;
use archipel_sql::catalog::{Catalog, ObjectNumbers};
use archipel_sql::types::Oid;
use parking_lot::Mutex;

use crate::catalog::{CatalogHandle, SharedCatalogHandle};
use crate::design::counts::{AllCounts, Classes};
use crate::design::recent_uses::RecentUses;
use crate::design::{Designer, OpenBlocks};
use crate::notifications::Hub;
use crate::system::sizes::Sizes;
use crate::transaction_ids::TransactionIds;
pub use databases::Databases;
use door::Door;

/// What the databases of a server draw numbers from that are not stored.
pub struct SharedNumbers {
    objects: Arc<ObjectNumbers>,
    classes: Arc<Classes>,
}

impl SharedNumbers {
    /// Those of a server whose objects are numbered from this source.
    pub fn of(objects: ObjectNumbers) -> SharedNumbers {
        SharedNumbers { objects: Arc::new(objects), classes: Arc::default() }
    }

    /// Says whose catalogs name what objects are numbered by.
    pub fn used_in(&self, databases: &Arc<SharedCatalogHandle>) {
        let databases = databases.clone();
        self.objects.used_by(move || databases.oids_in_use());
    }
}

/// One database. See the module's head.
pub struct Database {
    pub oid: Oid,
    name: Mutex<Arc<str>>,
    pub catalog: Arc<CatalogHandle>,
    pub routines: Arc<Registry>,
    pub notifications: Arc<Hub>,
    /// One definition at a time: each is planned on the catalog its predecessor left.
    pub definitions: Arc<tokio::sync::Mutex<()>>,
    pub open_blocks: OpenBlocks,
    /// How large tables were when they were counted.
    pub sizes: Sizes,
    pub designer: Designer,
    /// How calls of routines went.
    pub calls: AllCounts,
    /// What indexes were used for of late.
    pub recent_uses: RecentUses,
    pub door: Door,
    /// There is no such database any more.
    ended: AtomicBool,
    /// The version of the catalog that somebody asked about last, and the transaction id it was given.
    catalog_xid: Mutex<Option<(u64, i64)>>,
}

impl Database {
    /// A database as its catalog says.
    pub fn new(catalog: Catalog, shared: &Arc<SharedCatalogHandle>, numbers: &SharedNumbers) -> Database {
        Database {
            oid: catalog.database_oid(),
            name: Mutex::new(catalog.database_name().into()),
            catalog: CatalogHandle::new(catalog, shared, numbers.objects.clone()),
            routines: Registry::new(),
            notifications: Arc::default(),
            definitions: Arc::default(),
            open_blocks: OpenBlocks::default(),
            sizes: Sizes::default(),
            designer: Designer::default(),
            calls: AllCounts::new(numbers.classes.clone()),
            recent_uses: RecentUses::default(),
            door: Door::default(),
            ended: AtomicBool::default(),
            catalog_xid: Mutex::default(),
        }
    }

    fn set_name(&self, name: &str) {
        *self.name.lock() = name.into();
    }

    /// Nobody comes here any more: whoever follows what is defined in it stops.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.catalog.note_change();
    }

    /// Whether it was dropped.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// What it is called now.
    pub fn name(&self) -> Arc<str> {
        self.name.lock().clone()
    }

    /// The transaction id that stands for the catalog in force: a later one than all that were given
    /// out before somebody first saw it.
    pub fn catalog_xid(&self, ids: &TransactionIds) -> i64 {
        let mut seen = self.catalog_xid.lock();
        let version = self.catalog.version();
        match *seen {
            Some((known, id)) if known == version => id,
            _ => {
                let id = ids.assign_completed();
                *seen = Some((version, id));
                id
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> [Database; 2] {
        let catalog = Catalog::new(Vec::new());
        let numbers = SharedNumbers::of(ObjectNumbers::new(catalog.numbers()));
        let shared = SharedCatalogHandle::of(catalog.shared());
        [(Oid(5), "one"), (Oid(6), "other")]
            .map(|(oid, name)| Database::new(catalog.of_database(oid, name), &shared, &numbers))
    }

    #[test]
    fn no_two_catalogs_have_one_version() {
        let [one, other] = two();
        let private = one.catalog.private(Catalog::new(Vec::new()), Vec::new()).version;
        let first = [one.catalog.version(), other.catalog.version(), private];
        other.catalog.publish(Catalog::new(Vec::new()), &[]);
        one.catalog.publish(Catalog::new(Vec::new()), &[]);
        let mut all = first.to_vec();
        all.extend([one.catalog.version(), other.catalog.version()]);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn databases_asked_in_turns_keep_the_ids_of_their_catalogs() {
        let [one, other] = two();
        let ids = TransactionIds::of_start(0);
        let ask = || (one.catalog_xid(&ids), other.catalog_xid(&ids));
        let (of_one, of_other) = ask();
        assert_eq!(ask(), (of_one, of_other));
        one.catalog.publish(Catalog::new(Vec::new()), &[]);
        let (newer, as_before) = ask();
        assert!(newer > of_other && as_before == of_other);
    }

    #[test]
    fn routines_of_one_number_are_two_to_the_monitor() {
        let [one, other] = two();
        let catalog = Catalog::new(Vec::new());
        let [of_one, of_other] = [&one, &other].map(|database| database.calls.of(Oid(16_384), 1, &catalog));
        assert_ne!(of_one.class, of_other.class);
        assert_eq!(one.calls.routine_of(of_one.class), Some(Oid(16_384)));
        assert_eq!(one.calls.routine_of(of_other.class), None);
        assert_eq!(one.calls.of(Oid(16_384), 1, &catalog).class, of_one.class);
    }
}
