//! Finding, or claiming, the partition of a key: the check behind every access.

use super::{Claimed, Place, Txn};
use crate::id::GroupId;
use crate::partition::{PartitionRef, Root};
use crate::program::Stop;

/// So many held partitions are looked through for a key sooner than the routing table is asked.
const LOOKED_THROUGH: usize = 8;

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
        if self.held.len() > LOOKED_THROUGH
            && let Some(at) = self.held_by_route(group, key)
        {
            self.recent = at;
            return Ok(self.held[at]);
        }
        for (at, &partition) in self.held.iter().enumerate() {
            // SAFETY: held by this transaction, and the reference ends with the expression.
            if partition.group() == group && unsafe { partition.data_mut() }.covers(key) {
                self.recent = at;
                return Ok(partition);
            }
            #[cfg(test)]
            // SAFETY: as above.
            if partition.group() == group
                && unsafe { partition.data_mut() }.covered(key)
                && crate::planted::is(crate::planted::Bug::StaleRouting)
            {
                return Ok(partition);
            }
        }
        self.claim_missing(group, key)
    }

    /// Where the partition is among many held ones that the routing table at hand names for a key, if it
    /// covers the key. The table may be old, and what was claimed late stands in no order: whoever is not
    /// found so is looked for.
    fn held_by_route(&self, group: GroupId, key: &[u8]) -> Option<usize> {
        let named = self.worker.routing.find(group, key)?;
        let at = self.held.binary_search_by_key(&named.id, |held| held.id).ok()?;
        // SAFETY: held by this transaction, and the reference ends with the expression.
        (named.group() == group && unsafe { named.data_mut() }.covers(key)).then_some(at)
    }

    /// The held partition that holds the greatest keys below `high` (`None`: of the group).
    pub(super) fn partition_below(
        &mut self,
        group: GroupId,
        high: Option<&[u8]>,
    ) -> Result<PartitionRef, Stop> {
        for &partition in &self.held {
            if partition.group() != group {
                continue;
            }
            // SAFETY: held by this transaction, and the reference ends in this iteration.
            let data = unsafe { partition.data_mut() };
            let found = match (high, &data.high) {
                (None, None) => true,
                (None, Some(_)) => false,
                (Some(high), None) => data.low[..] < *high,
                (Some(high), Some(own)) => data.low[..] < *high && *high <= own[..],
            };
            if found {
                return Ok(partition);
            }
        }
        if let Some(stop) = self.claims_no_more() {
            return Err(stop);
        }
        self.worker.refresh(self.shared);
        let routes = self.worker.routing.routes(group);
        let at = match high {
            None => routes.len(),
            Some(high) => routes.partition_point(|route| route.low[..] < *high),
        };
        let Some(route) = at.checked_sub(1).and_then(|at| routes.get(at)) else {
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
            if covers && !self.holds_too_late() {
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
            if is_here && !self.holds_too_late() {
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
