//! Databases: what each has of its own, beside what all of a server share
//! ([`crate::server::Server`]).
//!
//! - [`Database`]  its catalog, its routines, who listens to what in it, and what is known of its tables
//! - [`Databases`] those of a server, by name and number
//!
//! The engine knows nothing of them: its tables, sequences and locks have numbers that no two
//! databases share. Invariant: whatever is found again by a number of a catalog or by a text is
//! kept in a database, or has the database in its key; a copy of a database has the numbers of its
//! template.

mod databases;

use std::sync::Arc;

use archipel_procedures::Registry;
use archipel_sql::catalog::Catalog;
use archipel_sql::types::Oid;
use parking_lot::Mutex;

use crate::catalog::{CatalogHandle, Versions};
use crate::design::counts::AllCounts;
use crate::design::{Designer, OpenBlocks};
use crate::notifications::Hub;
use crate::system::sizes::Sizes;
use crate::transaction_ids::TransactionIds;
pub use databases::Databases;

/// One database. See the module's head.
pub struct Database {
    pub oid: Oid,
    name: Mutex<Arc<str>>,
    pub catalog: CatalogHandle,
    pub routines: Arc<Registry>,
    pub notifications: Arc<Hub>,
    /// One definition at a time: each is planned on the catalog its predecessor left.
    pub definitions: tokio::sync::Mutex<()>,
    pub open_blocks: OpenBlocks,
    /// How large tables were when they were counted.
    pub sizes: Sizes,
    pub designer: Designer,
    /// How calls of routines went.
    pub calls: AllCounts,
    /// The version of the catalog that somebody asked about last, and the transaction id it was given.
    catalog_xid: Mutex<Option<(u64, i64)>>,
}

impl Database {
    /// A database as its catalog says.
    pub fn new(oid: Oid, name: &str, catalog: Catalog, versions: Arc<Versions>) -> Database {
        Database {
            oid,
            name: Mutex::new(name.into()),
            catalog: CatalogHandle::new(catalog, versions),
            routines: Registry::new(),
            notifications: Arc::default(),
            definitions: tokio::sync::Mutex::new(()),
            open_blocks: OpenBlocks::default(),
            sizes: Sizes::default(),
            designer: Designer::default(),
            calls: AllCounts::default(),
            catalog_xid: Mutex::default(),
        }
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
