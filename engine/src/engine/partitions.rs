//! All partitions there are, and the shells of those that were.
//!
//! Whoever makes a partition takes a shell if there is an idle one (see [`crate::partition`] for
//! why that is safe), so there are never more of both together than there once were partitions,
//! but for shells that somebody came for by an old routing table at that moment.

use std::collections::BTreeMap;

use crate::id::{ExecutorId, GroupId, PartitionId};
use crate::partition::{Partition, PartitionData, PartitionRef};

/// See the module.
pub(crate) struct Partitions {
    live: BTreeMap<PartitionId, PartitionRef>,
    /// Of no group that there is; the last one is used first.
    shells: Vec<PartitionRef>,
    next: u32,
    homes: Homes,
}

/// Where a shell is busy, others mostly are not: so many are tried.
const SHELLS_TRIED: usize = 8;

impl Partitions {
    /// Those of a start; `next` is the first number that none of them has.
    pub fn new(partitions: Vec<PartitionRef>, next: u32) -> Self {
        let mut homes = Homes::default();
        partitions.iter().for_each(|partition| homes.add(partition.home()));
        let live = partitions.into_iter().map(|partition| (partition.id, partition)).collect();
        Self { live, shells: Vec::new(), next, homes }
    }

    /// A new partition, held by the caller, at home at whichever of `active` has the fewest of its
    /// group, whose partitions are at home at `of_group`, then of all.
    pub fn add(
        &mut self,
        group: GroupId,
        data: PartitionData,
        active: &[ExecutorId],
        of_group: impl Iterator<Item = ExecutorId>,
    ) -> PartitionRef {
        let home = self.homes.fewest(active, of_group);
        let partition = match self.claim_shell() {
            Some(shell) => {
                shell.begin(group, home, data);
                shell
            }
            None => {
                let id = PartitionId(self.next);
                self.next += 1;
                Partition::leak(id, group, home, data, true)
            }
        };
        self.homes.add(home);
        self.live.insert(partition.id, partition);
        partition
    }

    /// A shell that was idle until now: nobody holds it, and nobody waits for it.
    fn claim_shell(&mut self) -> Option<PartitionRef> {
        let first = self.shells.len().saturating_sub(SHELLS_TRIED);
        let idle = self.shells[first..].iter().rposition(|shell| shell.try_claim())?;
        Some(self.shells.swap_remove(first + idle))
    }

    /// Takes a partition, which is a shell from now on, off the list.
    pub fn retire(&mut self, partition: PartitionRef) {
        if self.live.remove(&partition.id).is_some() {
            self.homes.remove(partition.home());
            self.shells.push(partition);
        }
    }

    /// Gives a partition another home; the caller holds it, or it is the one of the reference tables.
    pub fn set_home(&mut self, partition: PartitionRef, home: ExecutorId) {
        if self.live.contains_key(&partition.id) {
            self.homes.remove(partition.home());
            self.homes.add(home);
        }
        partition.set_home(home);
    }

    /// Those in use, in the order of their numbers.
    pub fn live(&self) -> impl Iterator<Item = PartitionRef> {
        self.live.values().copied()
    }

    pub fn shells(&self) -> &[PartitionRef] {
        &self.shells
    }

    /// How many are in use, and how many shells there are.
    pub fn counts(&self) -> (usize, usize) {
        (self.live.len(), self.shells.len())
    }
}

/// How many partitions are at home at each executor.
#[derive(Default)]
pub(crate) struct Homes(Vec<usize>);

impl Homes {
    pub fn add(&mut self, home: ExecutorId) {
        let at = usize::from(home.0);
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += 1;
    }

    fn remove(&mut self, home: ExecutorId) {
        if let Some(count) = self.0.get_mut(usize::from(home.0)) {
            *count = count.saturating_sub(1);
        }
    }

    /// Of the `active` executors, the one with the fewest partitions of a group, which are at home at
    /// `of_group`, then of all.
    pub fn fewest(&self, active: &[ExecutorId], of_group: impl Iterator<Item = ExecutorId>) -> ExecutorId {
        let mut here = vec![0_usize; self.0.len()];
        for home in of_group {
            if let Some(count) = here.get_mut(usize::from(home.0)) {
                *count += 1;
            }
        }
        let count = |of: &[usize], id: ExecutorId| of.get(usize::from(id.0)).copied().unwrap_or(0);
        let best = active.iter().min_by_key(|id| (count(&here, **id), count(&self.0, **id)));
        best.copied().unwrap_or(ExecutorId(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::KeyBuf;

    const ACTIVE: [ExecutorId; 2] = [ExecutorId(0), ExecutorId(1)];

    fn add(partitions: &mut Partitions, group: u32) -> PartitionRef {
        let data = PartitionData::new(KeyBuf::new(), None);
        partitions.add(GroupId(group), data, &ACTIVE, std::iter::empty())
    }

    fn release(partition: PartitionRef) {
        assert!(partition.try_release(), "nothing is queued");
    }

    #[test]
    fn a_shell_is_used_again_when_nobody_holds_it() {
        let mut partitions = Partitions::new(Vec::new(), 0);
        let (one, two) = (add(&mut partitions, 7), add(&mut partitions, 8));
        assert_eq!((one.home(), two.home()), (ExecutorId(0), ExecutorId(1)));
        one.count_action(Some(5));
        one.vacate();
        partitions.retire(one);
        partitions.retire(one);
        assert_eq!(partitions.counts(), (1, 1), "it is counted once");
        let three = add(&mut partitions, 9);
        assert!(!std::ptr::eq(one, three), "whoever made it a shell holds it still");
        release(one);
        let four = add(&mut partitions, 10);
        assert!(std::ptr::eq(one, four) && four.is_held());
        assert_eq!((four.id, four.group(), four.home()), (PartitionId(0), GroupId(10), ExecutorId(0)));
        assert_eq!(four.actions.load(crate::sync::Ordering::Relaxed), 0, "nothing is left of what it was");
        assert_eq!(partitions.counts(), (3, 0));
        release(four);
        // SAFETY: claimed by this test; the reference ends with the statement.
        assert!(four.try_claim() && unsafe { four.data_mut() }.covers(b"anything"));
    }

    #[test]
    fn a_shell_covers_no_key() {
        let mut partitions = Partitions::new(Vec::new(), 0);
        let one = add(&mut partitions, 7);
        one.vacate();
        // SAFETY: held by this test; the reference ends with the statement.
        let data = unsafe { one.data_mut() };
        assert!(!data.covers(b"") && !data.covers(b"z") && data.roots.is_empty());
    }

    #[test]
    fn homes_are_counted_where_they_are() {
        let mut partitions = Partitions::new(Vec::new(), 0);
        let (one, two) = (add(&mut partitions, 7), add(&mut partitions, 8));
        partitions.set_home(two, ExecutorId(0));
        assert_eq!(add(&mut partitions, 9).home(), ExecutorId(1));
        assert_eq!(add(&mut partitions, 10).home(), ExecutorId(1));
        partitions.retire(one);
        partitions.retire(two);
        assert_eq!(add(&mut partitions, 11).home(), ExecutorId(0));
        // What a group has itself counts first.
        let data = PartitionData::new(KeyBuf::new(), None);
        let of_group = [ExecutorId(0)].into_iter();
        assert_eq!(partitions.add(GroupId(11), data, &ACTIVE, of_group).home(), ExecutorId(1));
    }
}
