//! Statements over many partitions whose bodies may run side by side.
//!
//! Acquiring is that of any transaction over several partitions; then the bodies are shared
//! with other executors that come by and meet at a rendezvous. One commit, one release.

use std::ops::Bound;

use parking_lot::Mutex;

use super::read::{merged_scan, pass, patches};
use super::{Direction, KeyRange, Place, Txn, Visit};
use crate::executor::FanOut;
use crate::locks::ObjectMode;
use crate::partition::PartitionRef;
use crate::program::Stop;
use crate::storage::key::{KeyBuf, reaches};
use crate::table::TableMeta;

/// The rows of a range inside one partition, lent to one thread.
pub struct PartRows<'p> {
    scan: &'p dyn Fn(&mut Visit<'_>),
}

impl PartRows<'_> {
    /// Visits the rows in key order: storage key and row.
    pub fn scan(&self, visit: &mut Visit<'_>) {
        (self.scan)(visit);
    }
}

impl Txn<'_> {
    /// Calls `body` for each partition of a range of storage keys, possibly on several threads
    /// at once, and returns what the calls returned, in key order. The bodies only read; they see all
    /// that the program has written, so it is not for a statement that reads beneath that.
    pub fn fan_out<R: Send>(
        &mut self,
        table: &TableMeta,
        range: KeyRange<'_>,
        body: &(dyn Fn(PartRows<'_>) -> R + Sync),
    ) -> Result<Vec<R>, Stop> {
        debug_assert!(!self.is_beneath(), "a statement that calls routines is not shared out");
        let place = Place::of(table);
        self.note_read_range(place, range);
        let (me, snapshot) = (self.transaction_id(), self.reads_at(place));
        if place.is_reference() {
            self.admit_reference(place)?;
            let past = snapshot.map(|snapshot| self.reference_at(place, snapshot)).transpose()?;
            let tree = match &past {
                Some(table) => &table.tree,
                None => self.reference_tree(place)?,
            };
            let scan = |visit: &mut Visit<'_>| {
                let _ = merged_scan(tree, range, Direction::Ascending, None, visit, &mut pass);
            };
            return Ok(vec![body(PartRows { scan: &scan })]);
        }
        let partitions = self.claim_range(place, range)?;
        for &partition in &partitions {
            // Whether the root still is what the plan was compiled for is asked here, once.
            let root = self.root(partition, place)?;
            self.admit(root, place, ObjectMode::AccessShare)?;
            if snapshot.is_some_and(|snapshot| root.since > snapshot) {
                return Err(self.past_is_gone());
            }
            self.settle_range(partition, place, range)?;
        }
        let results: Vec<Mutex<Option<(R, u64)>>> = partitions.iter().map(|_| Mutex::new(None)).collect();
        let run = |index: usize| {
            // SAFETY: this transaction holds the partition and stands still in `FanOut::run`;
            // each index, so each partition, is taken by one thread.
            let data = unsafe { partitions[index].data_mut() };
            let Some(root) = data.root(place.root, place.id, place.version) else { return };
            let stamp = std::cell::Cell::new(0);
            let scan = |visit: &mut Visit<'_>| {
                let own = patches(Some(root), range, Direction::Ascending, me, snapshot, None);
                let seen = merged_scan(root.rows(), range, Direction::Ascending, own, visit, &mut pass);
                stamp.set(seen.1);
            };
            let result = body(PartRows { scan: &scan });
            *results[index].lock() = Some((result, stamp.get()));
        };
        let shared = self.shared;
        if !FanOut::run(partitions.len(), &run, |work| shared.offer(work, partitions.len() - 1)) {
            return Err(Stop::Panicked);
        }
        let mut answers = Vec::with_capacity(results.len());
        for (partition, result) in partitions.iter().zip(results) {
            let (answer, stamp) = result.into_inner().ok_or(Stop::Recompile)?;
            // SAFETY: held by this transaction; the reference ends with the statement.
            let epoch = unsafe { partition.data_mut() }.epoch_of(stamp);
            self.depend(snapshot.map_or(epoch, |snapshot| epoch.min(snapshot)));
            answers.push(answer);
        }
        Ok(answers)
    }

    /// Makes sure that every partition of a group is held; in key order.
    pub(crate) fn claim_group(&mut self, group: crate::id::GroupId) -> Result<Vec<PartitionRef>, Stop> {
        let place = Place { group, root: 0, id: crate::id::TreeId(0), version: 0 };
        self.claim_range(place, KeyRange::ALL)
    }

    /// Makes sure that every partition of a range is held; in key order.
    pub(super) fn claim_range(
        &mut self,
        place: Place,
        range: KeyRange<'_>,
    ) -> Result<Vec<PartitionRef>, Stop> {
        let mut at: KeyBuf = match range.low {
            Bound::Included(low) | Bound::Excluded(low) => KeyBuf::from_slice(low),
            Bound::Unbounded => KeyBuf::new(),
        };
        let mut partitions = Vec::new();
        loop {
            let partition = match self.partition_for(place.group, &at) {
                Ok(partition) => partition,
                Err(stop) => return Err(self.miss_range(place, &at, range, stop)),
            };
            partitions.push(partition);
            // SAFETY: held by this transaction; read for the length of the match.
            match &unsafe { partition.data_mut() }.high {
                Some(high) if reaches(range.high, high) => at = high.clone(),
                _ => return Ok(partitions),
            }
        }
    }
}
