//! Split, merge and move: partitions change their shape while everybody else goes on.
//!
//! Each is an action in the queues of the partitions concerned and of no others. Its program
//! claims them like any other program; what it changes, it changes by pointers:
//!
//! ```text
//! split   [a ········ z)  →  [a ··· m) [m ··· z)    trees and side tables are cut at m
//! merge   [a ··· m) [m ··· z)  →  [a ········ z)    and joined; the right one becomes a shell
//! move    the home executor becomes another one
//! ```
//!
//! What belongs to a range goes with it: rows, index entries, row locks and uncommitted images,
//! waiters for rows, old versions, the stamps that checkpoints and durability go by, counters,
//! and the tickets in the queue, each at its place (`partition::ticket`). Scan cursors and the
//! write sets of interactive transactions are keys, so they need not know. The new routing
//! table is published and logged before the claim ends, and a crash recovers to the table
//! before or after, never to something between.
//!
//! Invariant: every key of a group belongs to exactly one partition in every version of the
//! routing table; asserted with every change ([`RoutingTable::assert_covers`], and the bounds of
//! the partitions that changed). A split, merge or move changes nothing a program can see, so
//! it is complete when it returns and is never undone.

mod merge;
mod record;
mod split;

use std::collections::VecDeque;

use parking_lot::Mutex;

pub use merge::{Cut, Mark, Repartition, RepartitionRefused, Repartitioning};
pub(crate) use record::{GroupPlaces, LoggedPlace, recovered_places};
pub use split::{PreSplit, SplitPartition};

use super::Txn;
use crate::engine::Point;
use crate::id::{ExecutorId, GroupId, PartitionId, TreeId};
use crate::log::redo;
use crate::partition::{PartitionRef, RoutingTable};
use crate::program::Stop;
use crate::storage::KeyBuf;
use crate::table::REFERENCE_GROUP;

/// What was done to partitions: a row of `archipel.repartitions`.
#[derive(Clone, Debug)]
pub struct RepartitionView {
    /// Microseconds since 2000-01-01 UTC.
    pub at: i64,
    pub kind: RepartitionKind,
    pub group: GroupId,
    /// The partition that was split, that took the other one in, or that moved.
    pub partition: PartitionId,
    /// The partition that came from a split, or went in a merge.
    pub other: Option<PartitionId>,
    /// Where it was split or merged.
    pub key: Option<Vec<u8>>,
    /// The table that changed its group.
    pub table: Option<TreeId>,
    /// The home of the partition that is new, of the one that stays, or of the moved one.
    pub home: ExecutorId,
    pub reason: &'static str,
    /// The monitor's decision that it carried out; 0: none.
    pub decision: u64,
    /// How long the partitions were held for it.
    pub duration_nanos: u64,
}

/// Which of the actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepartitionKind {
    Split,
    Merge,
    Move,
    /// A table went to another co-location group: no action of one partition, but a definition.
    Regroup,
}

impl RepartitionKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Merge => "merge",
            Self::Move => "move",
            Self::Regroup => "regroup",
        }
    }
}

/// The last repartitionings, oldest first. Latched: they are rare.
#[derive(Default)]
pub(crate) struct History(Mutex<VecDeque<RepartitionView>>);

const HISTORY_MAX: usize = 1_000;

impl History {
    pub fn add(&self, view: RepartitionView) {
        let mut history = self.0.lock();
        if history.len() >= HISTORY_MAX {
            history.pop_front();
        }
        history.push_back(view);
    }

    pub fn last(&self) -> Option<RepartitionView> {
        self.0.lock().back().cloned()
    }

    pub fn list(&self) -> Vec<RepartitionView> {
        self.0.lock().iter().cloned().collect()
    }
}

/// One action on its way: what it does and since when.
struct Action {
    kind: RepartitionKind,
    reason: &'static str,
    decision: u64,
    began_nanos: u64,
}

impl Txn<'_> {
    fn begin_action(&self, kind: RepartitionKind, reason: &'static str, decision: u64) -> Action {
        Action { kind, reason, decision, began_nanos: self.shared.clock.monotonic_nanos() }
    }

    fn end_action(
        &self,
        action: &Action,
        partition: PartitionRef,
        other: Option<PartitionRef>,
        key: Option<&[u8]>,
    ) {
        let home = match action.kind {
            RepartitionKind::Split => other.unwrap_or(partition).home(),
            RepartitionKind::Merge | RepartitionKind::Move | RepartitionKind::Regroup => partition.home(),
        };
        let now = self.shared.clock.monotonic_nanos();
        self.shared.repartitions.add(RepartitionView {
            at: self.shared.clock.wall_micros(),
            kind: action.kind,
            group: partition.group(),
            partition: partition.id,
            other: other.map(|other| other.id),
            key: key.map(<[u8]>::to_vec),
            table: None,
            home,
            reason: action.reason,
            decision: action.decision,
            duration_nanos: now.saturating_sub(action.began_nanos),
        });
    }

    /// What the history says of a table that went to the group of a partition.
    pub(super) fn repartition_view(
        &self,
        kind: RepartitionKind,
        partition: PartitionRef,
        began_nanos: u64,
        table: TreeId,
    ) -> RepartitionView {
        RepartitionView {
            at: self.shared.clock.wall_micros(),
            kind,
            group: partition.group(),
            partition: partition.id,
            other: None,
            key: None,
            table: Some(table),
            home: partition.home(),
            reason: "co-location",
            decision: 0,
            duration_nanos: self.shared.clock.monotonic_nanos().saturating_sub(began_nanos),
        }
    }

    /// Whether this transaction may change partitions of the group now: nothing is written yet
    /// that an undo would look for where it was.
    fn may_repartition(&mut self, partition: PartitionRef) -> Result<(), Stop> {
        let group = partition.group();
        if group == REFERENCE_GROUP || !self.worker.scratch.undo.is_empty() || self.ddl.is_some() {
            return Err(Stop::Abort);
        }
        // SAFETY: held by this transaction; the reference ends with the statement.
        let low = unsafe { partition.data_mut() }.low.clone();
        let route = self.current_routing().routes(group).beginning(&low).map(|route| route.partition.id);
        if route != Some(partition.id) {
            // Its group went while this waited: what is claimed is nobody's any more.
            self.worker.scratch.missing.add_group(group);
            return Err(Stop::Restart);
        }
        Ok(())
    }

    /// Publishes and logs a change of a group's routes: of the one that begins with `low`, or did. One
    /// change after another, so that the records of a group are numbered, and stand in epochs, in the
    /// order of its changes.
    fn publish_routes(&mut self, group: GroupId, low: &[u8], change: impl FnOnce(&mut RoutingTable)) {
        let shared = self.shared;
        let worker = &mut *self.worker;
        let mut entered = crate::id::Epoch(0);
        shared.change_routing(|routing| {
            change(routing);
            routing.assert_covers(group, low);
            let mut records = Vec::new();
            for (key, record) in shared.group_places.changed(group, low, routing.routes(group)) {
                let sequence = shared.next_meta_sequence();
                redo::meta(&mut records, sequence, key.as_bytes(), record.as_deref());
            }
            entered = shared.epochs.enter(&worker.slot);
            if !records.is_empty() {
                worker.log_system(entered, 0, &records);
            }
            shared.epochs.leave(&worker.slot);
        });
        worker.refresh(shared);
        self.depend(entered);
        shared.point(Point::RoutesPublished);
    }

    /// The bounds of a held partition are those of its route, and numbers for the views.
    ///
    /// # Panics
    /// If they are not: see the module.
    fn settle_shape(&mut self, partition: PartitionRef) {
        let routes = self.worker.routing.routes(partition.group());
        // SAFETY: held by this transaction; the reference ends with the function.
        let data = unsafe { partition.data_mut() };
        let mut from = routes.from(&data.low);
        match from.next().filter(|route| route.partition() == partition.id) {
            Some(route) => {
                let high = from.next().map(|next| &next.low);
                assert!(
                    route.low == data.low && high == data.high.as_ref(),
                    "the routing table knows another range of partition {}",
                    partition.id
                );
            }
            None => assert!(data.high.as_ref() == Some(&data.low), "a partition without a route is empty"),
        }
        partition.note_size(data);
    }

    /// Cuts a key to its distribution value.
    fn cut(&self, group: GroupId, key: &[u8]) -> KeyBuf {
        let distribution = self.worker.schema.groups.get(&group).and_then(|meta| meta.distribution);
        let len = distribution
            .map_or(key.len(), |(column, kind)| crate::table::distribution_prefix(key, &column, kind));
        KeyBuf::from_slice(&key[..len])
    }
}
