//! Reads at a snapshot's epoch.

use std::ops::Bound;

use super::{Direction, KeyRange, Place, Txn, Visit};
use crate::id::Epoch;
use crate::partition::CollectFrom;
use crate::program::Stop;
use crate::storage::KeyBuf;
use crate::table::TableMeta;

impl Txn<'_> {
    /// Visits the rows of a table as of `epoch`, in one partition: that of `low`, or the whole
    /// reference table. Returns where what it has visited ends, if the group goes on there.
    pub(crate) fn scan_at(
        &mut self,
        table: &TableMeta,
        epoch: Epoch,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<Option<KeyBuf>, Stop> {
        let place = Place::of(table);
        if place.is_reference() {
            let published = self.shared.references.at(place.id, epoch).ok_or(Stop::Recompile)?;
            if published.version != place.version {
                return Err(Stop::Recompile);
            }
            published.tree.scan(low, high, |key, row| visit(key, row));
            return Ok(None);
        }
        let start = match low {
            Bound::Included(low) | Bound::Excluded(low) => low,
            Bound::Unbounded => &[],
        };
        let partition = self.partition_for(place.group, start)?;
        if self.root(partition, place)?.since > epoch {
            // The table was made anew since: nothing here tells what it was.
            return Err(Stop::ConcurrentUpdate);
        }
        let upto = self.settle_ahead(partition, place, KeyRange { low, high }, Direction::Ascending)?;
        let high = upto.as_deref().map_or(high, Bound::Included);
        let root = self.root(partition, place)?;
        root.versions.scan(root.rows(), epoch, low, high, |key, row| visit(key, row));
        self.depend(epoch);
        if let Some(mut next) = upto {
            // The least key behind it.
            next.push(0);
            return Ok(Some(next));
        }
        // SAFETY: held by this transaction; `root` is not used any more.
        Ok(unsafe { partition.data_mut() }.high.clone())
    }

    /// Drops what no snapshot needs any more from the held partitions, looking at about `limit`
    /// keys; where to go on.
    pub(crate) fn collect_versions(
        &mut self,
        from: Option<CollectFrom>,
        limit: usize,
    ) -> Option<CollectFrom> {
        for &partition in &self.held {
            // Read under the claim: a snapshot that registers later needs nothing that is here.
            let oldest = self.shared.snapshots.oldest();
            // SAFETY: held by this transaction; the reference ends with the loop's body.
            let data = unsafe { partition.data_mut() };
            let (freed, next) = data.collect_versions(oldest, from.clone(), limit);
            self.shared.snapshots.add_bytes(-(freed as i64));
            if next.is_some() {
                return next;
            }
            if data.has_versions() {
                self.shared.snapshots.note_versions(partition);
            }
        }
        None
    }
}
