//! The routing table: group → ordered ranges → partition.
//!
//! Immutable once published; a split publishes a new one. A program predicts with whatever
//! version its thread has at hand: a stale prediction is caught by the bounds of the claimed
//! partitions.

use std::sync::Arc;

use super::numbers::Numbers;
use super::{ClaimEntry, ClaimSet, HeldList, PartitionRef, Routes};
use crate::id::{ExecutorId, GroupId, PartitionId};
use crate::storage::{KeyBuf, SharedMap};

/// One range of a group and the partition that holds it.
#[derive(Clone)]
pub struct Route {
    /// The range starts here; it ends where the next route of the group starts.
    pub low: KeyBuf,
    pub(crate) partition: PartitionRef,
}

impl Route {
    pub fn partition(&self) -> PartitionId {
        self.partition.id
    }

    pub fn home(&self) -> ExecutorId {
        self.partition.home()
    }
}

/// See the module.
#[derive(Clone, Default)]
pub struct RoutingTable {
    pub version: u64,
    /// The first `low` of every group is empty.
    groups: SharedMap<GroupId, Routes>,
    /// Those of a group that is not there.
    none: Routes,
    numbers: Arc<Numbers<PartitionRef>>,
}

impl RoutingTable {
    /// The ranges of a group, in key order; empty for an unknown group.
    pub fn routes(&self, group: GroupId) -> &Routes {
        self.groups.get(&group).unwrap_or(&self.none)
    }

    /// The groups, in order.
    pub fn groups(&self) -> Vec<GroupId> {
        let mut groups: Vec<GroupId> = self.groups.iter().map(|(group, _)| group).collect();
        groups.sort_unstable();
        groups
    }

    /// The partition that holds `key`, and its home executor.
    pub fn route(&self, group: GroupId, key: &[u8]) -> Option<(PartitionId, ExecutorId)> {
        self.find(group, key).map(|partition| (partition.id, partition.home()))
    }

    pub(crate) fn find(&self, group: GroupId, key: &[u8]) -> Option<PartitionRef> {
        self.groups.get(&group)?.covering(key).map(|route| route.partition)
    }

    /// All partitions, in no order.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = PartitionRef> {
        self.groups.iter().flat_map(|(_, routes)| routes.iter()).map(|route| route.partition)
    }

    /// All partitions, in partition order.
    pub(crate) fn all(&self) -> HeldList {
        let mut all: HeldList = self.partitions().collect();
        // Their numbers stand beside what is counted all the time: each is read once.
        all.sort_by_cached_key(|partition| partition.id);
        all
    }

    /// The partitions a prediction means.
    pub fn partitions_of(&self, claims: &ClaimSet) -> Vec<PartitionId> {
        let mut held = HeldList::new();
        self.resolve(claims, &mut held);
        held.iter().map(|partition| partition.id).collect()
    }

    /// The partitions a prediction means, in partition order, without duplicates.
    pub(crate) fn resolve(&self, claims: &ClaimSet, held: &mut HeldList) {
        held.clear();
        if claims.everything {
            *held = self.all();
            return;
        }
        for entry in &claims.entries {
            match entry {
                ClaimEntry::Point { group, key } => held.extend(self.find(*group, key)),
                ClaimEntry::Range { group, low, high } => {
                    let Some(routes) = self.groups.get(group) else { continue };
                    for route in routes.from(low) {
                        if high.as_ref().is_some_and(|high| route.low[..] >= high[..])
                            && route.low[..] > low[..]
                        {
                            break;
                        }
                        held.push(route.partition);
                    }
                }
                ClaimEntry::Group { group } => {
                    held.extend(self.routes(*group).iter().map(|route| route.partition))
                }
            }
        }
        if held.len() > 1 {
            held.sort_unstable_by_key(|partition| partition.id);
            held.dedup_by_key(|partition| partition.id);
        }
    }

    pub(crate) fn put_group(&mut self, group: GroupId, routes: Vec<Route>) {
        debug_assert!(routes.first().is_some_and(|route| route.low.is_empty()));
        debug_assert!(routes.windows(2).all(|pair| pair[0].low < pair[1].low));
        routes.iter().for_each(|route| self.numbers.note(route.partition.id, route.partition));
        self.groups.insert(group, Routes::new(routes));
    }

    pub(crate) fn drop_group(&mut self, group: GroupId) {
        self.groups.remove(&group);
    }

    /// Takes away the route of a partition that was merged into its left neighbour.
    pub(crate) fn remove_merged(&mut self, group: GroupId, low: &[u8]) {
        if let Some(routes) = self.groups.get_mut(&group) {
            routes.remove(low);
        }
    }

    /// The group of a partition, and the first key of its range.
    ///
    /// The partition says where it began, this table whether it has it there. They differ where the
    /// partition has become another one, or is about to; by then there is, or will be in a moment, a
    /// table without the one that was asked for.
    pub(crate) fn range_of(&self, id: PartitionId) -> Option<(GroupId, KeyBuf)> {
        let (group, low) = self.numbers.get(id)?.began_at();
        let route = self.routes(group).beginning(&low)?;
        (route.partition.id == id).then_some((group, low))
    }

    /// Every key of the group belongs to exactly one partition: the first range starts at the least key,
    /// each ends where the next begins, and no partition is named twice. Looked at where a table that was
    /// right has changed: at the range that begins with a key, or does no more, and its neighbours.
    ///
    /// # Panics
    /// If that is not so: an answer from such a table could be wrong, so there must be none.
    pub(crate) fn assert_covers(&self, group: GroupId, changed: &[u8]) {
        let routes = self.routes(group);
        assert!(routes.get(0).is_some_and(|route| route.low.is_empty()), "a group begins at the least key");
        let first = routes.partition_point(|route| route.low[..] < *changed).saturating_sub(1);
        let near: Vec<&Route> = (first..first + 3).filter_map(|at| routes.get(at)).collect();
        assert!(near.windows(2).all(|pair| pair[0].low < pair[1].low), "ranges follow one another");
        let twice = near.windows(2).any(|pair| pair[0].partition() == pair[1].partition());
        assert!(!twice, "a partition has one range");
    }

    /// Adds the upper part of a split partition.
    pub(crate) fn add_split(&mut self, group: GroupId, low: KeyBuf, partition: PartitionRef) {
        self.numbers.note(partition.id, partition);
        if let Some(routes) = self.groups.get_mut(&group) {
            routes.insert(Route { low, partition });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::{Partition, PartitionData};

    fn table(lows: &[&[u8]]) -> RoutingTable {
        let mut table = RoutingTable::default();
        let routes = lows
            .iter()
            .enumerate()
            .map(|(at, low)| Route {
                low: KeyBuf::from_slice(low),
                partition: Partition::leak(
                    PartitionId(at as u32),
                    GroupId(7),
                    ExecutorId(0),
                    PartitionData::new(KeyBuf::from_slice(low), None),
                    false,
                ),
            })
            .collect();
        table.put_group(GroupId(7), routes);
        table
    }

    fn ids(table: &RoutingTable, fill: impl Fn(&mut ClaimSet)) -> Vec<u32> {
        let mut claims = ClaimSet::new();
        fill(&mut claims);
        let mut held = HeldList::new();
        table.resolve(&claims, &mut held);
        held.iter().map(|partition| partition.id.0).collect()
    }

    #[test]
    fn points_and_ranges_resolve_to_the_partitions_that_meet_them() {
        let table = table(&[b"", b"b", b"d"]);
        assert_eq!(ids(&table, |claims| claims.add_point(GroupId(7), b"a")), [0]);
        assert_eq!(ids(&table, |claims| claims.add_point(GroupId(7), b"b")), [1]);
        assert_eq!(ids(&table, |claims| claims.add_point(GroupId(7), b"zz")), [2]);
        assert_eq!(ids(&table, |claims| claims.add_range(GroupId(7), b"a", Some(b"b"))), [0]);
        assert_eq!(ids(&table, |claims| claims.add_range(GroupId(7), b"a", Some(b"ba"))), [0, 1]);
        assert_eq!(ids(&table, |claims| claims.add_range(GroupId(7), b"c", None)), [1, 2]);
        assert_eq!(ids(&table, |claims| claims.add_group(GroupId(7))), [0, 1, 2]);
        assert_eq!(ids(&table, |claims| claims.everything()), [0, 1, 2]);
        assert_eq!(ids(&table, |claims| claims.add_point(GroupId(8), b"a")), Vec::<u32>::new());
    }

    #[test]
    fn a_partition_is_found_by_its_number_in_the_tables_that_have_it() {
        let before = table(&[b"", b"b", b"d"]);
        let range = |table: &RoutingTable, id| table.range_of(PartitionId(id)).map(|(_, low)| low.to_vec());
        assert_eq!(before.range_of(PartitionId(1)), Some((GroupId(7), KeyBuf::from_slice(b"b"))));
        assert_eq!((range(&before, 0), range(&before, 3)), (Some(vec![]), None));
        let shell = before.find(GroupId(7), b"b").expect("it is there");
        let mut merged = before.clone();
        merged.remove_merged(GroupId(7), b"b");
        assert_eq!((range(&merged, 1), range(&merged, 2)), (None, Some(b"d".to_vec())));
        // The shell is used again, elsewhere.
        assert!(shell.try_claim());
        shell.vacate();
        shell.begin(GroupId(7), ExecutorId(0), PartitionData::new(KeyBuf::from_slice(b"k"), None));
        assert_eq!(range(&merged, 1), None, "not before the table says so");
        let mut split = merged.clone();
        split.add_split(GroupId(7), KeyBuf::from_slice(b"k"), shell);
        assert_eq!((range(&split, 1), range(&merged, 1)), (Some(b"k".to_vec()), None));
    }
}
