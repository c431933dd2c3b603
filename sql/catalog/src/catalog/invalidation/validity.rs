//! Until when something is good that was made of a catalog: as long as the catalog answers what was asked
//! of it as it did ([`super::lookups`]).
//!
//! Compiled routines and triggers, texts that routines bind as they run, and what was read off routines
//! for advice keep a [`Validity`]. Plans keep the [`Lookups`] themselves, beside the version that they
//! compare on each run.

use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashSet;

use super::lookup_recorder::Lookups;
use crate::catalog::snapshot::{Catalog, CatalogMark};

/// What was asked of a catalog, and the version that was last found to answer the same.
#[derive(Debug)]
pub struct Validity {
    lookups: Arc<Lookups>,
    seen: RwLock<CatalogMark>,
}

impl Validity {
    /// Of what was made of `catalog`.
    pub fn of(lookups: Arc<Lookups>, catalog: &Catalog) -> Validity {
        Validity { lookups, seen: RwLock::new(catalog.mark()) }
    }

    /// Whether making it of `catalog` would come to the same.
    pub fn holds(&self, catalog: &Catalog) -> bool {
        self.holds_beside(catalog, &mut FxHashSet::default())
    }

    /// Those of several that do not hold any more. What they have in common is looked at once.
    pub fn outdated<'v, K>(all: impl Iterator<Item = (K, &'v Validity)>, catalog: &Catalog) -> Vec<K> {
        let mut held = FxHashSet::default();
        all.filter(|(_, validity)| !validity.holds_beside(catalog, &mut held)).map(|(key, _)| key).collect()
    }

    /// As [`Self::holds`], where the parts are known that hold.
    fn holds_beside(&self, catalog: &Catalog, held: &mut FxHashSet<*const Lookups>) -> bool {
        if self.seen.read().unwrap_or_else(PoisonError::into_inner).is_of(catalog) {
            return true;
        }
        let holds = self.lookups.agree(catalog, true, held);
        if holds {
            *self.seen.write().unwrap_or_else(PoisonError::into_inner) = catalog.mark();
        }
        holds
    }

    /// What was asked.
    pub fn lookups(&self) -> &Arc<Lookups> {
        &self.lookups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{CatalogChange, Object, Table, TableKind};
    use crate::types::Oid;

    fn put(catalog: &Catalog, oid: u32, name: &str) -> Catalog {
        let table = Table::new(Oid(oid), "public".to_owned(), name.to_owned(), TableKind::Table);
        catalog.apply(&[CatalogChange::Put(Object::Table(Arc::new(table)))])
    }

    /// What was made of a table, and of a part.
    fn made(catalog: &Catalog, oid: u32, part: Option<&Validity>) -> Validity {
        let (noting, recorder) = catalog.noting();
        assert!(noting.table_by_oid(Oid(oid)).is_some());
        if let Some(part) = part {
            noting.note_part(part.lookups());
        }
        Validity::of(recorder.finish(), catalog)
    }

    #[test]
    fn what_is_made_of_an_outdated_part_is_outdated_with_it() {
        let catalog = put(&put(&put(&Catalog::initial(Vec::new()), 20_000, "a"), 20_010, "b"), 20_020, "c");
        let part = made(&catalog, 20_000, None);
        let all = [made(&catalog, 20_010, Some(&part)), made(&catalog, 20_020, Some(&part)), part];
        let outdated = |catalog: &Catalog| Validity::outdated(all.iter().enumerate(), catalog);
        assert!(outdated(&put(&catalog, 20_030, "d")).is_empty());
        assert_eq!(outdated(&put(&catalog, 20_020, "renamed")), [1]);
        assert_eq!(outdated(&put(&catalog, 20_000, "renamed")), [0, 1, 2]);
        assert!(outdated(&catalog).is_empty());
    }
}
