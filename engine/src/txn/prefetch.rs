//! Rows that a transaction will ask for soon ([`crate::storage::tree`], fetching ahead).

use smallvec::SmallVec;

use super::{Place, Txn};
use crate::locks::ObjectMode;
use crate::program::Stop;
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
            for partition in self.held_near(place.group, keys) {
                // SAFETY: held by this transaction; nothing else refers to the partition until
                // the end of the iteration, and held partitions are all different.
                let data = unsafe { partition.data_mut() };
                let covered: SmallVec<[&KeyBuf; AHEAD_MAX]> =
                    keys.iter().filter(|key| data.covers(key)).collect();
                if covered.is_empty() {
                    continue;
                }
                if let Some(root) = data.root(place.root, place.id, place.version) {
                    root.fetch_ahead(covered.iter().map(|key| &key[..]));
                }
            }
        }
    }

    /// Visits the rows under some storage keys, each with the number of its key, as far as what is
    /// held says whether there is one: other keys are passed over, as are all of them in an
    /// interactive transaction.
    pub fn get_each(
        &mut self,
        table: &TableMeta,
        keys: &[KeyBuf],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Stop> {
        if self.interactive.is_some() || keys.is_empty() {
            return Ok(());
        }
        let place = Place::of(table);
        if place.is_reference() {
            self.admit_reference(place)?;
            let numbered: SmallVec<[(usize, &[u8]); AHEAD_MAX]> =
                keys.iter().map(|key| &key[..]).enumerate().collect();
            self.reference_tree(place)?.lookup_each(&numbered, visit);
            return Ok(());
        }
        for partition in self.held_near(place.group, keys) {
            // SAFETY: held by this transaction; the reference ends with the statement.
            let data = unsafe { partition.data_mut() };
            let covered: SmallVec<[(usize, &[u8]); AHEAD_MAX]> =
                keys.iter().map(|key| &key[..]).enumerate().filter(|(_, key)| data.covers(key)).collect();
            if covered.is_empty() {
                continue;
            }
            let root = self.root(partition, place)?;
            self.admit(root, place, ObjectMode::AccessShare)?;
            let root = match root.has_unsettled() {
                true => {
                    covered.iter().for_each(|(_, key)| self.settle_key(partition, place, key));
                    self.root(partition, place)?
                }
                false => root,
            };
            let stamp = root.rows().lookup_each(&covered, visit);
            // SAFETY: as above.
            let epoch = unsafe { partition.data_mut() }.epoch_of(stamp);
            self.depend(epoch);
        }
        Ok(())
    }
}
