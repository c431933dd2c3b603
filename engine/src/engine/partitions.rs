//! All partitions there are, and the shells of those that were.
//!
//! Whoever makes a partition takes a shell if there is an idle one (see [`crate::partition`] for
//! why that is safe), so there are never more of both together than there once were partitions,
//! but for shells that somebody came for by an old routing table at that moment.
//!
//! Invariant: what a partition is, is not known here; only its number, its group and its home.

use std::collections::BTreeMap;

use crate::id::{ExecutorId, GroupId, PartitionId};

/// See the module. `P` leads to a partition.
pub(crate) struct Partitions<P> {
    live: BTreeMap<PartitionId, Live<P>>,
    /// Of no group that there is; the last one is used first.
    shells: Vec<P>,
    next: u32,
    /// Of all, and of those of each group.
    homes: Homes,
    of_groups: BTreeMap<GroupId, Homes>,
}

struct Live<P> {
    partition: P,
    group: GroupId,
    home: ExecutorId,
}

/// Where a shell is busy, others mostly are not: so many are tried.
const SHELLS_TRIED: usize = 8;

impl<P: Copy> Partitions<P> {
    /// None yet; `next` is the first number that is free.
    pub fn new(next: u32) -> Self {
        let (homes, of_groups) = (Homes::default(), BTreeMap::new());
        Self { live: BTreeMap::new(), shells: Vec::new(), next, homes, of_groups }
    }

    /// Where a new partition of a group should be at home: at whichever of `active` has the fewest of
    /// the group, then of all.
    pub fn fewest(&self, active: &[ExecutorId], group: GroupId) -> ExecutorId {
        match self.of_groups.get(&group) {
            Some(of_group) => self.homes.fewest(active, of_group),
            None => self.homes.fewest(active, &Homes::default()),
        }
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
    pub fn insert(&mut self, id: PartitionId, group: GroupId, home: ExecutorId, partition: P) {
        self.homes.add(home);
        self.of_groups.entry(group).or_default().add(home);
        self.live.insert(id, Live { partition, group, home });
    }

    /// Makes a partition one of the shells, which it is from now on.
    pub fn retire(&mut self, id: PartitionId) {
        let Some(Live { partition, group, home }) = self.live.remove(&id) else { return };
        self.homes.remove(home);
        if let Some(of_group) = self.of_groups.get_mut(&group) {
            of_group.remove(home);
            if of_group.is_empty() {
                self.of_groups.remove(&group);
            }
        }
        self.shells.push(partition);
    }

    /// A partition has another home.
    pub fn moved(&mut self, id: PartitionId, to: ExecutorId) {
        let Some(live) = self.live.get_mut(&id) else { return };
        let from = std::mem::replace(&mut live.home, to);
        for homes in [Some(&mut self.homes), self.of_groups.get_mut(&live.group)].into_iter().flatten() {
            homes.remove(from);
            homes.add(to);
        }
    }

    /// Those in use, in the order of their numbers.
    pub fn live(&self) -> impl Iterator<Item = P> {
        self.live.values().map(|live| live.partition)
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

    fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    /// Of the `active` executors, the one with the fewest partitions of a group, which are counted in
    /// `of_group`, then of all.
    pub fn fewest(&self, active: &[ExecutorId], of_group: &Homes) -> ExecutorId {
        let count = |of: &Homes, id: ExecutorId| of.0.get(usize::from(id.0)).copied().unwrap_or(0);
        let best = active.iter().min_by_key(|id| (count(of_group, **id), count(self, **id)));
        best.copied().unwrap_or(ExecutorId(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIVE: [ExecutorId; 2] = [ExecutorId(0), ExecutorId(1)];
    const GROUP: GroupId = GroupId(1);

    /// Adds a partition of a group of its own; its home.
    fn add(partitions: &mut Partitions<u32>) -> (PartitionId, ExecutorId) {
        let id = partitions.next_number();
        let group = GroupId(100 + id.0);
        let home = partitions.fewest(&ACTIVE, group);
        partitions.insert(id, group, home, id.0);
        (id, home)
    }

    #[test]
    fn a_shell_is_taken_when_it_can_be_claimed() {
        let mut partitions = Partitions::new(5);
        let (one, home) = add(&mut partitions);
        let (two, _) = add(&mut partitions);
        assert_eq!((one, two), (PartitionId(5), PartitionId(6)));
        assert_eq!(partitions.take_shell(|_| true), None);
        partitions.retire(one);
        partitions.retire(one);
        assert_eq!((partitions.counts(), partitions.shells()), ((1, 1), &[5][..]), "it is counted once");
        assert_eq!(partitions.take_shell(|_| false), None, "somebody holds it");
        assert_eq!(partitions.counts(), (1, 1));
        assert_eq!(partitions.take_shell(|shell| shell == 5), Some(5));
        partitions.insert(one, GROUP, home, 5);
        assert_eq!((partitions.counts(), partitions.live().collect::<Vec<_>>()), ((2, 0), vec![5, 6]));
    }

    #[test]
    fn so_many_shells_are_tried_and_no_more() {
        let mut partitions = Partitions::new(0);
        for _ in 0..100 {
            let (id, _) = add(&mut partitions);
            partitions.retire(id);
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
        partitions.moved(two, first);
        assert_eq!(add(&mut partitions).1, second);
        assert_eq!(add(&mut partitions).1, second);
        partitions.retire(one);
        partitions.retire(two);
        assert_eq!(add(&mut partitions).1, first);
        // What a group has itself counts first.
        partitions.insert(PartitionId(90), GROUP, first, 90);
        assert_eq!(partitions.fewest(&ACTIVE, GROUP), second);
        partitions.moved(PartitionId(90), second);
        assert_eq!(partitions.fewest(&ACTIVE, GROUP), first);
        partitions.retire(PartitionId(90));
        assert!(!partitions.of_groups.contains_key(&GROUP), "nothing is kept of a group that is gone");
    }
}
