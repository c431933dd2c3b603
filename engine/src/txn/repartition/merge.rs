//! Merging neighbours, moving a partition to another executor, and asking for either, or for a
//! split at a given key, by hand or from the monitor.

use super::{RepartitionKind, Txn};
use crate::id::{ExecutorId, GroupId, PartitionId};
use crate::panics::NoUnwind;
use crate::partition::{ClaimSet, FROZEN, PINNED, PartitionRef, RoutingTable};
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
    /// As [`Repartition::Split`], at a key or behind all rows with its value; the upper part's
    /// home is given.
    Cut { group: GroupId, at: Cut, home: ExecutorId },
    /// Sets or lifts a mark that keeps the monitor, and others, from changing a partition.
    Mark { partition: PartitionId, mark: Mark, set: bool },
}

/// Where a partition is cut.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    /// A new partition begins with the key's distribution value.
    At(KeyBuf),
    /// A new partition begins with the next distribution value that there is.
    Behind(KeyBuf),
}

/// See [`Repartition::Mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It keeps its home.
    Pinned,
    /// It keeps its bounds.
    Frozen,
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
    #[error("executor {0} is retired")]
    Retired(ExecutorId),
    #[error("partition {0} begins at this key already")]
    BoundaryExists(PartitionId),
    #[error("partition {0} has no rows behind this key")]
    NothingBehind(PartitionId),
    #[error("partition {0} is pinned")]
    Pinned(PartitionId),
    #[error("partition {0} is frozen")]
    Frozen(PartitionId),
    #[error("partitions {0} and {1} are not neighbours of one group")]
    NotNeighbours(PartitionId, PartitionId),
    #[error("the partition of reference tables cannot be split, merged or moved")]
    Reference,
}

/// The action behind [`Repartition`].
pub struct Repartitioning {
    pub change: Repartition,
    pub reason: &'static str,
    /// The monitor's decision that it carries out; 0: none.
    pub decision: u64,
    /// Set by the run: whether it was done.
    pub result: Result<(), RepartitionRefused>,
}

impl Repartitioning {
    pub(crate) fn new(change: Repartition, reason: &'static str) -> Self {
        Self { change, reason, decision: 0, result: Ok(()) }
    }

    /// The partitions concerned, by a routing table that may be old: their group, and the first
    /// keys of the one and, for a merge, of the one to the right.
    fn locate(
        &self,
        routing: &RoutingTable,
    ) -> Result<(GroupId, KeyBuf, Option<KeyBuf>), RepartitionRefused> {
        let find = |id: PartitionId| routing.range_of(id).ok_or(RepartitionRefused::NoPartition(id));
        let (group, low, right) = match &self.change {
            Repartition::Split { group, at }
            | Repartition::Cut { group, at: Cut::At(at) | Cut::Behind(at), .. } => {
                if routing.routes(*group).is_empty() {
                    return Err(RepartitionRefused::NoGroup(*group));
                }
                (*group, at.clone(), None)
            }
            Repartition::Merge(one, other) => {
                let ((group, left), (other_group, right)) = (find(*one)?, find(*other)?);
                let (left, right) = (left.clone().min(right.clone()), left.max(right));
                let behind = routing.routes(group).from(&left).nth(1);
                if group != other_group || behind.is_none_or(|behind| behind.low != right) {
                    return Err(RepartitionRefused::NotNeighbours(*one, *other));
                }
                (group, left, Some(right))
            }
            Repartition::Move { partition, .. } | Repartition::Mark { partition, .. } => {
                let (group, low) = find(*partition)?;
                (group, low, None)
            }
        };
        if group == REFERENCE_GROUP {
            return Err(RepartitionRefused::Reference);
        }
        Ok((group, low, right))
    }
}

impl Program for Repartitioning {
    fn counts(&self) -> bool {
        false
    }

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
            (Repartition::Split { .. }, _) => self.split_at(txn, partition, txn.cut(group, &low), None)?,
            (Repartition::Cut { at, home, .. }, _) => {
                let at = match at {
                    Cut::At(_) => Some(txn.cut(group, &low)),
                    Cut::Behind(_) => txn.value_behind(partition, &low),
                };
                match at {
                    Some(at) => self.split_at(txn, partition, at, Some(*home))?,
                    None => Err(RepartitionRefused::NothingBehind(partition.id)),
                }
            }
            (Repartition::Mark { partition: id, mark, set }, _) => {
                if partition.id != *id {
                    return Err(txn.look_again(group));
                }
                txn.mark(partition, *mark, *set)?;
                Ok(())
            }
            (Repartition::Merge(one, other), Some(right)) => {
                let right = txn.partition_for(group, &right)?;
                if (one.min(other), one.max(other))
                    != (&partition.id.min(right.id), &partition.id.max(right.id))
                {
                    // Both changed between the look and the claim.
                    return Err(txn.look_again(group));
                }
                match [partition, right].iter().find(|partition| partition.is_frozen()) {
                    Some(frozen) => Err(RepartitionRefused::Frozen(frozen.id)),
                    None => {
                        txn.merge(partition, right, self.reason, self.decision)?;
                        Ok(())
                    }
                }
            }
            (Repartition::Move { partition: id, to }, _) => {
                if partition.id != *id {
                    return Err(txn.look_again(group));
                }
                txn.move_home(partition, *to, self.reason, self.decision)?
            }
            (Repartition::Merge(one, other), None) => Err(RepartitionRefused::NotNeighbours(*one, *other)),
        };
        Ok(())
    }
}

impl Repartitioning {
    /// Splits a held partition at the beginning of a distribution value.
    fn split_at(
        &self,
        txn: &mut Txn<'_>,
        partition: PartitionRef,
        at: KeyBuf,
        home: Option<ExecutorId>,
    ) -> Result<Result<(), RepartitionRefused>, Stop> {
        // SAFETY: held by the transaction; the reference ends with the statement.
        if unsafe { partition.data_mut() }.low[..] == at[..] {
            return Ok(Err(RepartitionRefused::BoundaryExists(partition.id)));
        }
        if partition.is_frozen() {
            return Ok(Err(RepartitionRefused::Frozen(partition.id)));
        }
        if let Some(Err(refused)) = home.map(|home| txn.has_core(home)) {
            return Ok(Err(refused));
        }
        txn.split(partition, &at, self.reason, home, self.decision)?;
        Ok(Ok(()))
    }
}

impl Txn<'_> {
    /// Whether partitions can be at home at this executor.
    fn has_core(&self, id: ExecutorId) -> Result<(), RepartitionRefused> {
        match self.shared.executors().get(usize::from(id.0)) {
            None => Err(RepartitionRefused::NoExecutor(id)),
            Some(executor) if !executor.is_active() => Err(RepartitionRefused::Retired(id)),
            Some(_) => Ok(()),
        }
    }

    /// The first distribution value behind that of `key` in a held partition.
    fn value_behind(&self, partition: PartitionRef, key: &[u8]) -> Option<KeyBuf> {
        let value = self.cut(partition.group(), key);
        // SAFETY: held by this transaction; the reference ends with the function.
        let data = unsafe { partition.data_mut() };
        // No encoded value is a prefix of another one, so what is greater than all keys with this
        // value is its encoding counted up by one.
        let mut above = value.clone();
        while let Some(last) = above.pop() {
            if last < u8::MAX {
                above.push(last + 1);
                break;
            }
        }
        if above.is_empty() {
            return None;
        }
        let found = data.roots.iter().filter_map(|root| {
            let (key, _) = root.rows().seek(std::ops::Bound::Included(&above[..]))?;
            Some(self.cut(partition.group(), key))
        });
        found.min()
    }

    /// Sets or lifts a mark of a held partition, and logs it.
    fn mark(&mut self, partition: PartitionRef, mark: Mark, set: bool) -> Result<(), Stop> {
        self.may_repartition(partition)?;
        let bit = match mark {
            Mark::Pinned => PINNED,
            Mark::Frozen => FROZEN,
        };
        let flags = if set { partition.flags() | bit } else { partition.flags() & !bit };
        if flags != partition.flags() {
            partition.set_flags(flags);
            self.publish_place(partition);
        }
        Ok(())
    }

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
    fn merge(
        &mut self,
        left: PartitionRef,
        right: PartitionRef,
        reason: &'static str,
        decision: u64,
    ) -> Result<(), Stop> {
        self.may_repartition(left)?;
        let action = self.begin_action(RepartitionKind::Merge, reason, decision);
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
        left.mix_memory(right);
        self.publish_routes(left.group(), &at, |routing| routing.remove_merged(left.group(), &at));
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

    /// Logs the home and the marks of a held partition, whose range stays.
    fn publish_place(&mut self, partition: PartitionRef) {
        // SAFETY: held by this transaction; the reference ends with the statement.
        let low = unsafe { partition.data_mut() }.low.clone();
        self.publish_routes(partition.group(), &low, |_| {});
    }

    /// Gives a held partition another home.
    fn move_home(
        &mut self,
        partition: PartitionRef,
        to: ExecutorId,
        reason: &'static str,
        decision: u64,
    ) -> Result<Result<(), RepartitionRefused>, Stop> {
        if let Err(refused) = self.has_core(to) {
            return Ok(Err(refused));
        }
        self.may_repartition(partition)?;
        if partition.home() == to {
            return Ok(Ok(()));
        }
        // Unless its home is gone.
        if partition.is_pinned() && self.shared.is_served(partition.home()) {
            return Ok(Err(RepartitionRefused::Pinned(partition.id)));
        }
        let action = self.begin_action(RepartitionKind::Move, reason, decision);
        self.shared.set_home(partition, to);
        // The table is the same but for the home, which the record has.
        self.publish_place(partition);
        self.end_action(&action, partition, None, None);
        Ok(Ok(()))
    }
}
