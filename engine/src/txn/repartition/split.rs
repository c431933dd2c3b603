//! Splitting: at a given key, in the middle, or before a bulk load.
//!
//! The trees and side tables are cut at a key in O(height) each; the upper part becomes a
//! partition of its own, at home where the fewest of its group are.

use super::{RepartitionKind, Txn};
use crate::id::{ExecutorId, GroupId};
use crate::panics::NoUnwind;
use crate::partition::{ClaimSet, PartitionData, PartitionRef, RoutingTable, SplitRanges};
use crate::program::{Program, Stop};
use crate::storage::KeyBuf;

/// Splits the partition that holds a key in two halves of its largest tree, if its keys allow.
pub struct SplitPartition {
    pub group: GroupId,
    /// Any key of the partition.
    pub key: KeyBuf,
    /// Do nothing unless the partition has at least this many rows.
    pub rows_min: u64,
    /// Do nothing if the group has this many partitions by now.
    pub partitions_max: usize,
    pub reason: &'static str,
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
    fn counts(&self) -> bool {
        false
    }

    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.add_point(self.group, &self.key);
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.split_at = None;
        let partition = txn.partition_for(self.group, &self.key)?;
        // SAFETY: held by the transaction; the reference ends before the split below.
        let data = unsafe { partition.data_mut() };
        let partitions = txn.current_routing().routes(self.group).len();
        if data.rows() < self.rows_min.max(2) || partitions >= self.partitions_max || partition.is_frozen() {
            return Ok(());
        }
        let Some(largest) = data.roots.iter().max_by_key(|root| root.rows().len()) else { return Ok(()) };
        let middle = largest.rows().len() / 2;
        // The middle row's distribution value; if the lower half consists of that value alone,
        // the first greater one.
        let mut at = largest.rows().nth(middle).map(|(key, _)| txn.cut(self.group, key));
        if at.as_ref().is_some_and(|at| at[..] <= data.low[..] || !starts_below(data, at)) {
            at = largest.rows().last().map(|(key, _)| txn.cut(self.group, key));
        }
        let Some(at) = at.filter(|at| at[..] > data.low[..] && starts_below(data, at)) else { return Ok(()) };
        txn.split(partition, &at, self.reason, None, 0)?;
        self.split_at = Some(at);
        Ok(())
    }
}

/// Whether anything is below `at`, so that the lower half is not empty.
fn starts_below(data: &PartitionData, at: &[u8]) -> bool {
    data.roots.iter().any(|root| root.rows().first().is_some_and(|(key, _)| key < at))
}

impl Program for PreSplit {
    fn counts(&self) -> bool {
        false
    }

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
                txn.split(partition, &at, "bulk load", None, 0)?;
                self.added += 1;
            }
        }
        Ok(())
    }
}

impl Txn<'_> {
    /// Splits a held partition at `at`, a key of its range above the first. The upper part is at
    /// home where the lower one is if that is pinned; else at `home`, or where the fewest are.
    pub(super) fn split(
        &mut self,
        partition: PartitionRef,
        at: &[u8],
        reason: &'static str,
        home: Option<ExecutorId>,
        decision: u64,
    ) -> Result<(), Stop> {
        self.may_repartition(partition)?;
        let action = self.begin_action(RepartitionKind::Split, reason, decision);
        // SAFETY: held by this transaction; the reference ends before the next access.
        let data = unsafe { partition.data_mut() };
        if at <= &data.low[..] || !data.covers(at) {
            return Err(Stop::Abort);
        }
        let whole = NoUnwind::new("in the middle of a split");
        let (low, high) = (data.low.clone(), data.high.clone());
        let upper = data.split_off(at);
        let versions = upper.has_versions();
        let upper = self.shared.new_partition(partition.group(), upper);
        upper.set_flags(partition.flags());
        // Pointers have changed hands; the memory is where it was.
        upper.set_memory_node(partition.memory_node());
        if let Some(home) = if partition.is_pinned() { Some(partition.home()) } else { home } {
            self.shared.set_home(upper, home);
        }
        self.held.push(upper);
        partition.share_counters(upper);
        let ranges = SplitRanges { low: &low, at, high: high.as_deref() };
        // Before anybody knows the upper part: a ticket that comes by the new routes would stand in both
        // queues already, and those that stand in both are to be few.
        #[cfg(not(test))]
        let late = false;
        #[cfg(test)]
        let late = crate::planted::is(crate::planted::Bug::LateDivision);
        if !late {
            partition.divide_queue(upper, &ranges);
        }
        self.publish_routes(partition.group(), at, |routing| {
            routing.add_split(partition.group(), KeyBuf::from_slice(at), upper);
        });
        if late {
            partition.divide_queue(upper, &ranges);
        }
        // Now that it has routes: a collection that finds none has nothing to do, and forgets it.
        if versions {
            self.shared.snapshots.note_versions(upper);
        }
        self.settle_shape(partition);
        self.settle_shape(upper);
        // Either half may still be too large.
        self.look = true;
        whole.pass();
        self.end_action(&action, partition, Some(upper), Some(at));
        Ok(())
    }
}
