//! Places and homes, on invented machines.

use super::*;

fn place(island: u16, core: usize) -> ExecutorPlace {
    ExecutorPlace { island: IslandId(island), core: Some(core), ..ExecutorPlace::default() }
}

fn seats(places: &[(bool, u16, usize)]) -> Vec<Seat> {
    places.iter().map(|&(active, island, core)| Seat { active, place: place(island, core) }).collect()
}

fn cores(assigned: &[Option<ExecutorPlace>]) -> Vec<Option<usize>> {
    assigned.iter().map(|place| place.and_then(|place| place.core)).collect()
}

#[test]
fn who_has_its_core_keeps_it_and_the_others_retire() {
    let four = seats(&[(true, 0, 0), (true, 0, 1), (true, 1, 2), (true, 1, 3)]);
    let assigned = assign(&four, &[place(0, 1), place(1, 2)]);
    assert_eq!(cores(&assigned), [None, Some(1), Some(2), None]);
}

#[test]
fn who_lost_its_core_takes_another_one_of_its_island_first() {
    let two = seats(&[(true, 0, 0), (true, 1, 2)]);
    let assigned = assign(&two, &[place(1, 3), place(0, 1)]);
    assert_eq!(cores(&assigned), [Some(1), Some(3)]);
    let assigned = assign(&two, &[place(1, 2), place(1, 3)]);
    assert_eq!(cores(&assigned), [Some(3), Some(2)]);
}

#[test]
fn a_core_that_returns_finds_its_executor_and_new_ones_take_free_seats() {
    let left = seats(&[(true, 0, 0), (false, 0, 1), (false, 0, 2), (false, 0, 9)]);
    let assigned = assign(&left, &[place(0, 0), place(0, 2), place(0, 1)]);
    assert_eq!(cores(&assigned), [Some(0), Some(1), Some(2), None]);
    let assigned = assign(&left, &[place(0, 0), place(0, 7)]);
    assert_eq!(cores(&assigned), [Some(0), Some(7), None, None]);
}

#[test]
fn more_cores_than_seats_leave_some_unused() {
    let one = seats(&[(true, 0, 0)]);
    assert_eq!(cores(&assign(&one, &[place(0, 0), place(0, 1)])), [Some(0)]);
}

#[test]
fn unpinned_executors_keep_their_order_and_their_island() {
    let unpinned = |island| ExecutorPlace { island: IslandId(island), ..ExecutorPlace::default() };
    let four: Vec<Seat> = [0, 0, 1, 1].map(|island| Seat { active: true, place: unpinned(island) }).into();
    let assigned = assign(&four, &[unpinned(0), unpinned(0), unpinned(1), unpinned(1)]);
    assert_eq!(assigned, four.iter().map(|seat| Some(seat.place)).collect::<Vec<_>>());
    let assigned = assign(&four, &[unpinned(0), unpinned(1)]);
    let islands: Vec<_> = assigned.iter().map(|place| place.map(|place| place.island.0)).collect();
    assert_eq!(islands, [Some(0), None, Some(1), None]);
}

/// Partitions by group and home, in order.
fn homes(groups: &[&[u16]]) -> Vec<Home> {
    let mut homes = Vec::new();
    for (group, executors) in groups.iter().enumerate() {
        for executor in *executors {
            let partition = PartitionId(homes.len() as u32);
            homes.push(Home {
                group: GroupId(group as u32),
                partition,
                executor: ExecutorId(*executor),
                pinned: false,
            });
        }
    }
    homes
}

/// The homes after the moves, by group.
fn after(groups: &[&[u16]], active: &[(u16, u16)], new: &[u16]) -> Vec<Vec<u16>> {
    let mut homes = homes(groups);
    let active: BTreeMap<_, _> =
        active.iter().map(|(id, island)| (ExecutorId(*id), IslandId(*island))).collect();
    let new: Vec<_> = new.iter().map(|id| ExecutorId(*id)).collect();
    // Two executors an island.
    let island_of = |id: ExecutorId| Some(IslandId(id.0 / 2));
    let due = moves(&homes, &active, &new, &island_of);
    for (home, to) in due {
        let moved = homes.iter_mut().find(|other| other.partition == home.partition).expect("there");
        assert_eq!(moved.executor, home.executor, "a partition moves once");
        moved.executor = to;
    }
    assert!(moves(&homes, &active, &new, &island_of).is_empty(), "then nothing is due any more");
    let mut out = vec![Vec::new(); groups.len()];
    homes.iter().for_each(|home| out[home.group.0 as usize].push(home.executor.0));
    out
}

#[test]
fn partitions_of_lost_cores_are_spread_over_the_others() {
    assert_eq!(after(&[&[0, 1, 0, 1]], &[(0, 0)], &[]), [[0, 0, 0, 0]]);
    let spread = after(&[&[0, 1, 2, 3, 0, 1, 2, 3]], &[(0, 0), (2, 1), (3, 1)], &[]);
    let count = |of: u16| spread[0].iter().filter(|home| **home == of).count();
    assert_eq!((count(0), count(1), count(2) + count(3)), (3, 0, 5));
}

#[test]
fn an_executor_that_comes_gets_its_share_of_every_group_and_the_others_stay() {
    assert_eq!(after(&[&[0, 0, 0, 0], &[0, 0]], &[(0, 0), (1, 0)], &[1]), [vec![0, 0, 1, 1], vec![0, 1]]);
    // A share below one is none: a lone partition stays where it is.
    assert_eq!(after(&[&[0]], &[(0, 0), (1, 0)], &[1]), [[0]]);
    // What the load made uneven is nobody's business here.
    assert_eq!(after(&[&[0, 0, 0, 1]], &[(0, 0), (1, 0)], &[]), [[0, 0, 0, 1]]);
}

#[test]
fn a_partition_prefers_an_executor_of_its_island() {
    assert_eq!(after(&[&[3]], &[(0, 0), (2, 1)], &[]), [[2]]);
    assert_eq!(after(&[&[1]], &[(0, 0), (2, 1)], &[]), [[0]]);
}

#[test]
fn a_pinned_partition_moves_only_when_its_home_is_gone() {
    let mut pinned = homes(&[&[0, 0, 1]]);
    pinned.iter_mut().for_each(|home| home.pinned = true);
    let active = BTreeMap::from([(ExecutorId(0), IslandId(0)), (ExecutorId(2), IslandId(0))]);
    let due = moves(&pinned, &active, &[ExecutorId(2)], &|_| None);
    let due: Vec<_> = due.into_iter().map(|(home, to)| (home.partition.0, to.0)).collect();
    assert_eq!(due, [(2, 2)]);
}
