//! Merging neighbours, moving a partition to another executor, and asking for either, or for a
//! split at a given key, by hand or from the monitor.

use super::{RepartitionKind, Txn};
use crate::id::{ExecutorId, GroupId, PartitionId};
use crate::panics::NoUnwind;
use crate::partition::{ClaimSet, PartitionRef, RoutingTable};
use crate::program::{Program, Stop};
use crate::storage::KeyBuf;
use crate::table::REFERENCE_GROUP;

/// A change of partitions that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repartition {
    /// The partition that holds a key ends below the key's distribution value; a new one begins
    /// with it.
    Split { group: GroupId, at: KeyBuf },
    /// Two neighbours of one group, in either order, become the left one of them.
    Merge(PartitionId, PartitionId),
    /// A partition gets another home.
    Move { partition: PartitionId, to: ExecutorId },
}

/// Why a change of partitions contradicts what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepartitionRefused {
    #[error("partition {0} does not exist")]
    NoPartition(PartitionId),
    #[error("group {0} does not exist")]
    NoGroup(GroupId),
    #[error("executor {0} does not exist")]
    NoExecutor(ExecutorId),
    #[error("partition {0} begins at this key already")]
    BoundaryExists(PartitionId),
    #[error("partitions {0} and {1} are not neighbours of one group")]
    NotNeighbours(PartitionId, PartitionId),
    #[error("the partition of reference tables cannot be split, merged or moved")]
    Reference,
}

/// The action behind [`Repartition`].
pub struct Repartitioning {
    pub change: Repartition,
    pub reason: &'static str,
    /// Set by the run: whether it was done.
    pub result: Result<(), RepartitionRefused>,
}

impl Repartitioning {
    pub(crate) fn new(change: Repartition, reason: &'static str) -> Self {
        Self { change, reason, result: Ok(()) }
    }

    /// The partitions concerned, by a routing table that may be old: their group, and the first
    /// keys of the one and, for a merge, of the one to the right.
    fn locate(
        &self,
        routing: &RoutingTable,
    ) -> Result<(GroupId, KeyBuf, Option<KeyBuf>), RepartitionRefused> {
        let find = |id: PartitionId| routing.position_of(id).ok_or(RepartitionRefused::NoPartition(id));
        let (group, low, right) = match &self.change {
            Repartition::Split { group, at } => {
                if routing.routes(*group).is_empty() {
                    return Err(RepartitionRefused::NoGroup(*group));
                }
                (*group, at.clone(), None)
            }
            Repartition::Merge(one, other) => {
                let ((group, left), (other_group, right)) = (find(*one)?, find(*other)?);
                let (left, right) = (left.min(right), left.max(right));
                if group != other_group || right - left != 1 {
                    return Err(RepartitionRefused::NotNeighbours(*one, *other));
                }
                let routes = routing.routes(group);
                (group, routes[left].low.clone(), Some(routes[right].low.clone()))
            }
            Repartition::Move { partition, .. } => {
                let (group, at) = find(*partition)?;
                (group, routing.routes(group)[at].low.clone(), None)
            }
        };
        if group == REFERENCE_GROUP {
            return Err(RepartitionRefused::Reference);
        }
        Ok((group, low, right))
    }
}

impl Program for Repartitioning {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        if let Ok((group, low, right)) = self.locate(routing) {
            claims.add_point(group, &low);
            if let Some(right) = right {
                claims.add_point(group, &right);
            }
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        // A refusal is an answer about the routing table of now, and of no claim.
        let (group, low, right) = match self.locate(&txn.current_routing()) {
            Ok(found) => found,
            Err(refused) => {
                self.result = Err(refused);
                return Ok(());
            }
        };
        let partition = txn.partition_for(group, &low)?;
        self.result = match (&self.change, right) {
            (Repartition::Split { .. }, _) => {
                let at = txn.cut(group, &low);
                // SAFETY: held by the transaction; the reference ends with the statement.
                if unsafe { partition.data_mut() }.low[..] == at[..] {
                    Err(RepartitionRefused::BoundaryExists(partition.id))
                } else {
                    txn.split(partition, &at, self.reason)?;
                    Ok(())
                }
            }
            (Repartition::Merge(one, other), Some(right)) => {
                let right = txn.partition_for(group, &right)?;
                if (one.min(other), one.max(other))
                    != (&partition.id.min(right.id), &partition.id.max(right.id))
                {
                    // Both changed between the look and the claim.
                    return Err(txn.look_again(group));
                }
                txn.merge(partition, right, self.reason)?;
                Ok(())
            }
            (Repartition::Move { partition: id, to }, _) => {
                if partition.id != *id {
                    return Err(txn.look_again(group));
                }
                txn.move_home(partition, *to, self.reason)?
            }
            (Repartition::Merge(one, other), None) => Err(RepartitionRefused::NotNeighbours(*one, *other)),
        };
        Ok(())
    }
}

impl Txn<'_> {
    /// The routing table of now. What it says of partitions that this transaction holds stays
    /// true while it holds them.
    pub(super) fn current_routing(&mut self) -> std::sync::Arc<RoutingTable> {
        self.worker.refresh(self.shared);
        self.worker.routing.clone()
    }

    /// Runs the action again, with the whole group claimed.
    fn look_again(&mut self, group: GroupId) -> Stop {
        self.worker.scratch.missing.add_group(group);
        Stop::Restart
    }

    /// Joins a held partition with its held neighbour to the right.
    fn merge(&mut self, left: PartitionRef, right: PartitionRef, reason: &'static str) -> Result<(), Stop> {
        self.may_repartition(left.group)?;
        let action = self.begin_action(RepartitionKind::Merge, reason);
        // SAFETY: both are held by this transaction and differ; the references end before the
        // next access.
        let (left_data, right_data) = unsafe { (left.data_mut(), right.data_mut()) };
        if left_data.high.as_ref() != Some(&right_data.low) {
            return Err(Stop::Abort);
        }
        let whole = NoUnwind::new("in the middle of a merge");
        let at = right_data.low.clone();
        left_data.append(right_data);
        left.take_counters(right);
        self.publish_routes(left.group, |routing| routing.remove_merged(left.group, &at));
        left.unite_queues(right);
        self.shared.retire(right);
        self.settle_shape(left);
        self.settle_shape(right);
        // SAFETY: held by this transaction; the reference ends with the expression.
        if unsafe { left.data_mut() }.has_versions() {
            self.shared.snapshots.note_versions(left);
        }
        whole.pass();
        self.end_action(&action, left, Some(right), Some(&at));
        Ok(())
    }

    /// Gives a held partition another home.
    fn move_home(
        &mut self,
        partition: PartitionRef,
        to: ExecutorId,
        reason: &'static str,
    ) -> Result<Result<(), RepartitionRefused>, Stop> {
        if usize::from(to.0) >= self.shared.executors.len() {
            return Ok(Err(RepartitionRefused::NoExecutor(to)));
        }
        self.may_repartition(partition.group)?;
        if partition.home() == to {
            return Ok(Ok(()));
        }
        let action = self.begin_action(RepartitionKind::Move, reason);
        partition.set_home(to);
        // The table is the same but for the home, which the record has.
        self.publish_routes(partition.group, |_| {});
        self.end_action(&action, partition, None, None);
        Ok(Ok(()))
    }
}
