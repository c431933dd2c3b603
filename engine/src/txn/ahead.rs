//! Rows that a transaction will ask for soon ([`crate::storage::tree`], fetching ahead).

use smallvec::SmallVec;

use super::{Place, Txn};
use crate::storage::KeyBuf;
use crate::storage::tree::{AHEAD_MAX, fetch_rows_noted};
use crate::table::TableMeta;

impl Txn<'_> {
    /// Whether [`Txn::fetch_ahead`] does anything for this transaction.
    pub fn fetches_ahead(&self) -> bool {
        self.interactive.is_none()
    }

    /// Whether an index entry that a scan meets says all about its row's presence: whoever runs
    /// alone on what is committed sees entries and rows change together.
    #[inline]
    pub fn entries_are_rows(&self) -> bool {
        self.interactive.is_none() && self.view.is_none()
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
                let mut ahead = std::mem::take(&mut self.worker.scratch.ahead);
                if let Some(table) = self.reference_vector().tables.get(&place.id)
                    && table.version == place.version
                {
                    fetch_rows_noted(keys.iter().map(|key| (&table.tree, &key[..])), &mut ahead.1);
                    ahead.0 = Some(place.id);
                }
                self.worker.scratch.ahead = ahead;
                continue;
            }
            for &partition in &self.held {
                if partition.group != place.group {
                    continue;
                }
                // SAFETY: held by this transaction; nothing else refers to the partition until
                // the end of the iteration, and held partitions are all different.
                let data = unsafe { partition.data_mut() };
                let covered: SmallVec<[&KeyBuf; AHEAD_MAX]> =
                    keys.iter().filter(|key| data.covers(key)).collect();
                if covered.is_empty() {
                    continue;
                }
                if let Some(root) = data.root(place.root, place.id, place.version) {
                    let keys = covered.iter().map(|key| (&root.tree, &key[..]));
                    fetch_rows_noted(keys, &mut root.finger.ahead);
                }
            }
        }
    }
}
