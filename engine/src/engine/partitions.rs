//! All partitions there are, and the shells of those that were.
//!
//! Whoever makes a partition takes a shell if there is an idle one (see [`crate::partition`] for
//! why that is safe), so there are never more of both together than there once were partitions,
//! but for shells that somebody came for by an old routing table at that moment.
//!
//! Invariant: what a partition is, is not known here; only its number and its home.

use std::collections::BTreeMap;

use crate::id::{ExecutorId, PartitionId};

/// See the module. `P` leads to a partition.
pub(crate) struct Partitions<P> {
    live: BTreeMap<PartitionId, P>,
    /// Of no group that there is; the last one is used first.
    shells: Vec<P>,
    next: u32,
    homes: Homes,
}

/// Where a shell is busy, others mostly are not: so many are tried.
const SHELLS_TRIED: usize = 8;

impl<P: Copy> Partitions<P> {
    /// None yet; `next` is the first number that is free.
    pub fn new(next: u32) -> Self {
        Self { live: BTreeMap::new(), shells: Vec::new(), next, homes: Homes::default() }
    }

    /// Where a new partition of a group should be at home, whose others are at home at `of_group`:
    /// at whichever of `active` has the fewest of the group, then of all.
    pub fn fewest(&self, active: &[ExecutorId], of_group: impl Iterator<Item = ExecutorId>) -> ExecutorId {
        self.homes.fewest(active, of_group)
    }

    /// A shell that is to be a partition again: one that `claim` gets hold of, which says that
    /// nobody holds it and nobody waits for it.
    pub fn take_shell(&mut self, claim: impl Fn(P) -> bool) -> Option<P> {
        let first = self.shells.len().saturating_sub(SHELLS_TRIED);
        let idle = self.shells[first..].iter().rposition(|shell| claim(*shell))?;
        Some(self.shells.swap_remove(first + idle))
    }

    /// A number that no partition and no shell has.
    pub fn next_number(&mut self) -> PartitionId {
        self.next += 1;
        PartitionId(self.next - 1)
    }

    /// Lists a partition that is new.
    pub fn insert(&mut self, id: PartitionId, home: ExecutorId, partition: P) {
        self.homes.add(home);
        self.live.insert(id, partition);
    }

    /// Makes a partition one of the shells, which it is from now on.
    pub fn retire(&mut self, id: PartitionId, home: ExecutorId) {
        if let Some(partition) = self.live.remove(&id) {
            self.homes.remove(home);
            self.shells.push(partition);
        }
    }

    /// A partition has another home.
    pub fn moved(&mut self, id: PartitionId, from: ExecutorId, to: ExecutorId) {
        if self.live.contains_key(&id) {
            self.homes.remove(from);
            self.homes.add(to);
        }
    }

    /// Those in use, in the order of their numbers.
    pub fn live(&self) -> impl Iterator<Item = P> {
        self.live.values().copied()
    }

    /// The shells.
    pub fn shells(&self) -> &[P] {
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
    /// Counts a partition.
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

    const ACTIVE: [ExecutorId; 2] = [ExecutorId(0), ExecutorId(1)];

    /// Adds a partition of a group of its own; its home.
    fn add(partitions: &mut Partitions<u32>) -> (PartitionId, ExecutorId) {
        let home = partitions.fewest(&ACTIVE, std::iter::empty());
        let id = partitions.next_number();
        partitions.insert(id, home, id.0);
        (id, home)
    }

    #[test]
    fn a_shell_is_taken_when_it_can_be_claimed() {
        let mut partitions = Partitions::new(5);
        let (one, home) = add(&mut partitions);
        let (two, _) = add(&mut partitions);
        assert_eq!((one, two), (PartitionId(5), PartitionId(6)));
        assert_eq!(partitions.take_shell(|_| true), None);
        partitions.retire(one, home);
        partitions.retire(one, home);
        assert_eq!((partitions.counts(), partitions.shells()), ((1, 1), &[5][..]), "it is counted once");
        assert_eq!(partitions.take_shell(|_| false), None, "somebody holds it");
        assert_eq!(partitions.counts(), (1, 1));
        assert_eq!(partitions.take_shell(|shell| shell == 5), Some(5));
        partitions.insert(one, home, 5);
        assert_eq!((partitions.counts(), partitions.live().collect::<Vec<_>>()), ((2, 0), vec![5, 6]));
    }

    #[test]
    fn so_many_shells_are_tried_and_no_more() {
        let mut partitions = Partitions::new(0);
        for _ in 0..100 {
            let (id, home) = add(&mut partitions);
            partitions.retire(id, home);
        }
        assert_eq!(partitions.take_shell(|shell| shell < 90), None);
        assert_eq!(partitions.take_shell(|shell| shell < 99), Some(98), "the last one first");
        assert_eq!(partitions.counts(), (0, 99));
    }

    #[test]
    fn homes_are_counted_where_they_are() {
        let mut partitions = Partitions::new(0);
        let ((one, first), (two, second)) = (add(&mut partitions), add(&mut partitions));
        assert_eq!((first, second), (ACTIVE[0], ACTIVE[1]));
        partitions.moved(two, second, first);
        assert_eq!(add(&mut partitions).1, second);
        assert_eq!(add(&mut partitions).1, second);
        partitions.retire(one, first);
        partitions.retire(two, first);
        assert_eq!(add(&mut partitions).1, first);
        // What a group has itself counts first.
        assert_eq!(partitions.fewest(&ACTIVE, [first].into_iter()), second);
    }
}
