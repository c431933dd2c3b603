//! Finding, or claiming, the partition of a key: the check behind every access.

use smallvec::SmallVec;

use super::{Claimed, Place, Txn};
use crate::id::GroupId;
use crate::partition::{PartitionData, PartitionRef, Root, Route, Routes};
use crate::program::Stop;
use crate::storage::KeyBuf;

/// So many held partitions are looked through for a key sooner than the routing table is asked.
const LOOKED_THROUGH: usize = 8;
/// Among so many the tests look for what the routing table has not led to.
#[cfg(test)]
const CHECKED: usize = 64;

impl Txn<'_> {
    /// The held partition that covers `key`. A miss claims it directly if it is idle;
    /// otherwise it is noted, and the program restarts through the queues.
    #[inline]
    pub(super) fn partition_for(&mut self, group: GroupId, key: &[u8]) -> Result<PartitionRef, Stop> {
        // One that holds many mostly stays with the one it was at.
        if let Some(&partition) = self.held.get(self.recent)
            // SAFETY: held by this transaction, and the reference ends with the expression.
            && partition.group() == group && unsafe { partition.data_mut() }.covers(key)
        {
            return Ok(partition);
        }
        if let Some(at) = self.held_at(group, |routes| routes.covering(key), |data| data.covers(key)) {
            self.recent = at;
            return Ok(self.held[at]);
        }
        #[cfg(test)]
        if let Some(partition) = self.held_for_once(group, key) {
            return Ok(partition);
        }
        self.claim_missing(group, key)
    }

    /// A held partition that covered a key before it was split: for the planted bug that uses it.
    #[cfg(test)]
    fn held_for_once(&self, group: GroupId, key: &[u8]) -> Option<PartitionRef> {
        self.held.iter().copied().find(|partition| {
            // SAFETY: held by this transaction, and the reference ends with the expression.
            let covered = partition.group() == group && unsafe { partition.data_mut() }.covered(key);
            covered && crate::planted::is(crate::planted::Bug::StaleRouting)
        })
    }

    /// Where the partition of a group stands among those held that `is_here` accepts; `name` finds it
    /// among the group's ranges.
    #[inline]
    fn held_at(
        &mut self,
        group: GroupId,
        name: impl Fn(&Routes) -> Option<&Route>,
        is_here: impl Fn(&PartitionData) -> bool,
    ) -> Option<usize> {
        // SAFETY: callers pass held partitions, and the reference ends with the expression.
        let is_it = |held: &PartitionRef| held.group() == group && is_here(unsafe { held.data_mut() });
        if self.held.len() <= LOOKED_THROUGH {
            return self.held.iter().position(is_it);
        }
        self.held_among_many(group, name, is_it)
    }

    /// The same among many, which are not looked through.
    ///
    /// The routing table at hand may be old. One that was loaded since this transaction holds what it holds
    /// is not, as far as that goes: whoever changed the range of a partition has published it before the
    /// partition could be claimed, and while it is held nobody changes it. So a held partition that such a
    /// table does not name for a key does not cover it. Definitions are an exception: they make groups, and
    /// drop some, that only their own table tells of.
    #[inline(never)]
    fn held_among_many(
        &mut self,
        group: GroupId,
        name: impl Fn(&Routes) -> Option<&Route>,
        is_it: impl Fn(&PartitionRef) -> bool,
    ) -> Option<usize> {
        for is_newest in [false, true] {
            let routing = match &self.ddl {
                Some(work) => &work.routing,
                None => &self.worker.routing,
            };
            if let Some(named) = name(routing.routes(group)).map(|route| route.partition)
                && let Some(at) = self.order.find(named.id, &self.held, |held| held.id)
                && is_it(&named)
            {
                return Some(at);
            }
            if is_newest || self.worker.definitions_version() == self.shared.definitions_version() {
                break;
            }
            self.worker.refresh(self.shared);
        }
        if self.ddl.is_some() {
            return self.held.iter().position(is_it);
        }
        #[cfg(test)]
        assert!(
            self.held.len() > CHECKED || crate::planted::any() || !self.held.iter().any(is_it),
            "a held partition is not where the routing table has it"
        );
        None
    }

    /// The held partitions of a group that may cover some keys: all of them if they are few, else those of
    /// the keys.
    pub(super) fn held_near(&mut self, group: GroupId, keys: &[KeyBuf]) -> SmallVec<[PartitionRef; 8]> {
        if self.held.len() <= LOOKED_THROUGH {
            return self.held.iter().copied().filter(|partition| partition.group() == group).collect();
        }
        let mut near: SmallVec<[PartitionRef; 8]> = SmallVec::new();
        for key in keys {
            let covers = |partition: &PartitionRef| {
                // SAFETY: held by this transaction, and the reference ends with the expression.
                unsafe { partition.data_mut() }.covers(key)
            };
            if !near.iter().any(covers)
                && let Some(at) = self.held_at(group, |routes| routes.covering(key), |data| data.covers(key))
            {
                near.push(self.held[at]);
            }
        }
        near
    }

    /// The held partition that holds the greatest keys below `high` (`None`: of the group).
    pub(super) fn partition_below(
        &mut self,
        group: GroupId,
        high: Option<&[u8]>,
    ) -> Result<PartitionRef, Stop> {
        let is_here = |data: &PartitionData| match (high, &data.high) {
            (None, None) => true,
            (None, Some(_)) => false,
            (Some(high), None) => data.low[..] < *high,
            (Some(high), Some(own)) => data.low[..] < *high && *high <= own[..],
        };
        if let Some(at) = self.held_at(group, |routes| routes.below(high), is_here) {
            return Ok(self.held[at]);
        }
        if let Some(stop) = self.claims_no_more() {
            return Err(stop);
        }
        self.worker.refresh(self.shared);
        let Some(route) = self.worker.routing.routes(group).below(high) else {
            return Err(Stop::Recompile);
        };
        let (partition, low) = (route.partition, route.low.clone());
        if partition.try_claim() {
            // SAFETY: just claimed.
            let data = unsafe { partition.data_mut() };
            // Between the look and the claim it may have become a shell, and another group's.
            let covers = partition.group() == group
                && data.low == low
                && match (high, &data.high) {
                    (_, None) => true,
                    (None, Some(_)) => false,
                    (Some(high), Some(own)) => *high <= own[..],
                };
            self.held.push(partition);
            if covers {
                return Ok(partition);
            }
        }
        self.worker.scratch.missing.add_point(group, &low);
        Err(Stop::Restart)
    }

    /// What a program ends with here that may hold nothing, or no more than a page at a time.
    fn claims_no_more(&self) -> Option<Stop> {
        match (self.claimed, &self.pages) {
            (Claimed::Nothing, _) => Some(Stop::Restart),
            (_, Some(_)) => Some(Stop::Interactive),
            (_, None) => None,
        }
    }

    #[cold]
    fn claim_missing(&mut self, group: GroupId, key: &[u8]) -> Result<PartitionRef, Stop> {
        if let Some(stop) = self.claims_no_more() {
            return Err(stop);
        }
        self.worker.refresh(self.shared);
        let Some(partition) = self.worker.routing.find(group, key) else {
            // The group is gone, so the table is, too.
            return Err(Stop::Recompile);
        };
        if partition.try_claim() {
            self.held.push(partition);
            // Between the look and the claim it may have become a shell, and another group's.
            let is_here = partition.group() == group
                // SAFETY: just claimed.
                && unsafe { partition.data_mut() }.covers(key);
            if is_here {
                return Ok(partition);
            }
        }
        #[cfg(test)]
        // SAFETY: not at all: the mistake is made between two steps of one thread.
        if unsafe { partition.data_mut() }.covers(key) && crate::planted::is(crate::planted::Bug::SkipClaim) {
            return Ok(partition);
        }
        self.worker.scratch.missing.add_point(group, key);
        Err(Stop::Restart)
    }

    /// [`Txn::root`], for table locks.
    pub(crate) fn root_of(&self, partition: PartitionRef, place: Place) -> Result<&'static mut Root, Stop> {
        self.root(partition, place)
    }

    /// The root of `place` in a held partition.
    #[inline]
    pub(super) fn root(&self, partition: PartitionRef, place: Place) -> Result<&'static mut Root, Stop> {
        // SAFETY: `partition` is held by this transaction. Callers keep the reference only
        // until their next access to the same partition; none keeps two of them.
        let data = unsafe { partition.data_mut() };
        data.root(place.root, place.id, place.version).ok_or(Stop::Recompile)
    }
}
