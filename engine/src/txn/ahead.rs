//! Rows that a transaction will ask for soon ([`crate::storage::tree`], fetching ahead).

use super::{Place, Txn};
use crate::storage::KeyBuf;
use crate::storage::tree::{AHEAD_MAX, Tree, fetch_rows};
use crate::table::TableMeta;

impl Txn<'_> {
    /// Whether [`Txn::fetch_ahead`] does anything for this transaction.
    pub fn fetches_ahead(&self) -> bool {
        self.interactive.is_none()
    }

    /// Tells which rows will be asked for soon, [`AHEAD_MAX`] at a time. It claims nothing and
    /// counts as no access: a key outside of what is held, or without a row, is passed over.
    pub fn fetch_ahead(&mut self, table: &TableMeta, keys: &[KeyBuf]) {
        if self.interactive.is_some() {
            return;
        }
        let place = Place::of(table);
        for keys in keys.chunks(AHEAD_MAX) {
            if place.is_reference() {
                if let Some(table) = self.reference_vector().tables.get(&place.id)
                    && table.version == place.version
                {
                    fetch_rows(keys.iter().map(|key| (&table.tree, &key[..])));
                }
            } else {
                fetch_rows(keys.iter().filter_map(|key| Some((self.held_tree(place, key)?, &key[..]))));
            }
        }
    }

    /// The tree of a held partition that covers the key.
    fn held_tree(&self, place: Place, key: &[u8]) -> Option<&Tree> {
        for &partition in &self.held {
            // SAFETY: held by this transaction, and the reference ends with the expression.
            if partition.group == place.group && unsafe { partition.data_mut() }.covers(key) {
                return self.root(partition, place).ok().map(|root| &root.tree);
            }
        }
        None
    }
}
