//! Until when something is good that was compiled: as long as the catalog answers what was asked of it
//! as it did ([`archipel_sql::catalog::lookups`]).

use std::sync::Arc;

use archipel_sql::catalog::{Catalog, CatalogMark, Lookups};
use parking_lot::RwLock;

/// What was asked of a catalog, and the version that was last found to answer the same.
pub(crate) struct Validity {
    lookups: Arc<Lookups>,
    seen: RwLock<CatalogMark>,
}

impl Validity {
    /// Of what was compiled of `catalog`.
    pub fn of(lookups: Arc<Lookups>, catalog: &Catalog) -> Validity {
        Validity { lookups, seen: RwLock::new(catalog.mark()) }
    }

    /// Whether compiling it of `catalog` would come to the same.
    pub fn holds(&self, catalog: &Catalog) -> bool {
        if self.seen.read().is_of(catalog) {
            return true;
        }
        let holds = self.lookups.hold(catalog);
        if holds {
            *self.seen.write() = catalog.mark();
        }
        holds
    }

    /// What was asked.
    pub fn lookups(&self) -> &Arc<Lookups> {
        &self.lookups
    }
}
