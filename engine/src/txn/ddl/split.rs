//! Splitting a partition: one action in its own queue.
//!
//! The trees and side tables are cut at a key in O(height) each; the upper part becomes a
//! partition of its own with a home of its own, and a new routing table is published. Tickets
//! that queue at the lower part run there when their turn comes: the bounds check of every
//! access sends what belongs to the upper part on.

use super::{GroupRecord, group_key};
use crate::id::GroupId;
use crate::log::redo;
use crate::partition::{ClaimSet, PartitionRef, RoutingTable};
use crate::program::{Program, Stop};
use crate::storage::KeyBuf;
use crate::table::{REFERENCE_GROUP, distribution_prefix};
use crate::txn::Txn;

/// Splits the partition that holds a key in two halves of its largest tree, if its keys allow.
pub struct SplitPartition {
    pub group: GroupId,
    /// Any key of the partition.
    pub key: KeyBuf,
    /// Do nothing unless the partition has at least this many rows.
    pub rows_min: u64,
    /// Set by the run: where it was split.
    pub split_at: Option<KeyBuf>,
}

/// Splits a group at the given keys, before a bulk load.
pub struct PreSplit {
    pub group: GroupId,
    /// Keys of the group (storage keys of any of its tables); cut to distribution values.
    pub keys: Vec<KeyBuf>,
    /// Set by the run: how many partitions it added.
    pub added: usize,
}

impl Program for SplitPartition {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.add_point(self.group, &self.key);
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.split_at = None;
        let partition = txn.partition_for(self.group, &self.key)?;
        // SAFETY: held by the transaction; the reference ends before the split below.
        let data = unsafe { partition.data_mut() };
        if data.rows() < self.rows_min.max(2) {
            return Ok(());
        }
        let Some(largest) = data.roots.iter().max_by_key(|root| root.tree.len()) else { return Ok(()) };
        let middle = largest.tree.len() / 2;
        // The middle row's distribution value; if the lower half consists of that value alone,
        // the first greater one.
        let mut at = largest.tree.nth(middle).map(|(key, _)| txn.cut(self.group, key));
        if at.as_ref().is_some_and(|at| at[..] <= data.low[..] || !starts_below(data, at)) {
            at = largest.tree.last().map(|(key, _)| txn.cut(self.group, key));
        }
        let Some(at) = at.filter(|at| at[..] > data.low[..] && starts_below(data, at)) else { return Ok(()) };
        txn.split(partition, &at)?;
        self.split_at = Some(at);
        Ok(())
    }
}

/// Whether anything is below `at`, so that the lower half is not empty.
fn starts_below(data: &crate::partition::PartitionData, at: &[u8]) -> bool {
    data.roots.iter().any(|root| root.tree.first().is_some_and(|(key, _)| key < at))
}

impl Program for PreSplit {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.add_group(self.group);
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.added = 0;
        for key in &self.keys {
            let at = txn.cut(self.group, key);
            let partition = txn.partition_for(self.group, &at)?;
            // SAFETY: held by the transaction; the reference ends with the statement.
            if !at.is_empty() && unsafe { partition.data_mut() }.low[..] < at[..] {
                txn.split(partition, &at)?;
                self.added += 1;
            }
        }
        Ok(())
    }
}

impl Txn<'_> {
    /// Cuts a key to its distribution value.
    fn cut(&self, group: GroupId, key: &[u8]) -> KeyBuf {
        let distribution = self.worker.schema.groups.get(&group).and_then(|meta| meta.distribution);
        let len = distribution.map_or(key.len(), |(column, kind)| distribution_prefix(key, &column, kind));
        KeyBuf::from_slice(&key[..len])
    }

    /// Splits a held partition at `at`. Not undone: a split changes nothing a program can see,
    /// so it is complete when this returns, whatever becomes of the transaction.
    fn split(&mut self, partition: PartitionRef, at: &[u8]) -> Result<(), Stop> {
        if partition.group == REFERENCE_GROUP || !self.worker.scratch.undo.is_empty() {
            return Err(Stop::Abort);
        }
        // SAFETY: held by this transaction; the reference ends with the statement.
        let upper = unsafe { partition.data_mut() }.split_off(at);
        let versions = upper.has_versions();
        let upper = self.shared.new_partition(partition.group, upper);
        if versions {
            self.shared.snapshots.note_versions(upper);
        }
        self.held.push(upper);
        let mut logged = None;
        self.shared.change_routing(|routing| {
            routing.add_split(partition.group, KeyBuf::from_slice(at), upper);
            let lows = routing.routes(partition.group).iter().map(|route| route.low.to_vec()).collect();
            // Inside the routing latch, so that records of one group are numbered in the order
            // of its changes.
            logged = Some((GroupRecord { lows }, self.shared.next_meta_sequence()));
        });
        if let Some((record, sequence)) = logged {
            let bytes = serde_json::to_vec(&record).unwrap_or_default();
            let mut records = Vec::new();
            redo::meta(&mut records, sequence, group_key(partition.group).as_bytes(), Some(&bytes));
            let epoch = self.shared.epochs.enter(&self.worker.slot);
            self.worker.log_bytes(epoch, &records);
            self.shared.epochs.leave(&self.worker.slot);
        }
        self.worker.refresh(self.shared);
        Ok(())
    }
}
