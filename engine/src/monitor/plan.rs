//! From a layout to the actions that lead there: splits first, then moves, then merges.
//!
//! Actions are told by keys, because partitions have no numbers before they exist, and are looked
//! up one by one when their turn comes: what somebody else changed meanwhile is left as it is.

use super::gather::Gathered;
use super::model::Layout;
use crate::id::{ExecutorId, GroupId};
use crate::partition::RoutingTable;
use crate::storage::KeyBuf;
use crate::txn::{Cut, Repartition, RepartitionKind};

/// One action of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Cut {
        group: GroupId,
        at: Cut,
        home: ExecutorId,
    },
    /// The partition that begins there.
    Move {
        group: GroupId,
        at: Cut,
        to: ExecutorId,
    },
    /// The partition that begins there, with its left neighbour.
    Merge {
        group: GroupId,
        at: KeyBuf,
    },
}

impl Action {
    pub fn kind(&self) -> RepartitionKind {
        match self {
            Self::Cut { .. } => RepartitionKind::Split,
            Self::Move { .. } => RepartitionKind::Move,
            Self::Merge { .. } => RepartitionKind::Merge,
        }
    }

    /// The change by the routing table of now; `None` if there is nothing to do any more.
    pub fn resolve(&self, routing: &RoutingTable) -> Option<Repartition> {
        let find = |group: GroupId, at: &Cut| {
            let routes = routing.routes(group);
            match at {
                Cut::At(low) => routes.position(low),
                Cut::Behind(key) => {
                    let behind = routes.partition_point(|route| route.low <= *key);
                    (behind < routes.len()).then_some(behind)
                }
            }
        };
        Some(match self {
            Self::Cut { group, at, home } => Repartition::Cut { group: *group, at: at.clone(), home: *home },
            Self::Move { group, at, to } => {
                let route = &routing.routes(*group)[find(*group, at)?];
                (route.home() != *to).then_some(())?;
                Repartition::Move { partition: route.partition(), to: *to }
            }
            Self::Merge { group, at } => {
                let right = find(*group, &Cut::At(at.clone()))?;
                let left = right.checked_sub(1)?;
                let routes = routing.routes(*group);
                Repartition::Merge(routes[left].partition(), routes[right].partition())
            }
        })
    }
}

/// What leads from the partitions as they were gathered to a layout of the same slices.
pub(crate) fn plan(gathered: &Gathered, after: &Layout) -> Vec<Action> {
    let had: Vec<usize> = gathered.layout.parts.iter().map(|part| part.slices.start).collect();
    let mut actions = Vec::new();
    let mut moves = Vec::new();
    for part in &after.parts {
        let (start, group) = (part.slices.start, gathered.groups[part.table]);
        let (at, to) = (gathered.starts[start].clone(), gathered.cores[part.core]);
        match had.binary_search(&start) {
            Ok(before) if gathered.partitions[before].1 != to => moves.push(Action::Move { group, at, to }),
            Ok(_) => {}
            Err(_) => actions.push(Action::Cut { group, at, home: to }),
        }
    }
    actions.extend(moves);
    for part in &gathered.layout.parts {
        let stays = after.parts.iter().any(|now| now.slices.start == part.slices.start);
        if let (false, Cut::At(at)) = (stays, &gathered.starts[part.slices.start]) {
            actions.push(Action::Merge { group: gathered.groups[part.table], at: at.clone() });
        }
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::PartitionId;
    use crate::monitor::model::{Part, Slice, Trace};

    fn key(byte: u8) -> KeyBuf {
        KeyBuf::from_slice(&[byte])
    }

    fn part(slices: std::ops::Range<usize>, core: usize) -> Part {
        Part { table: 0, slices, core, pinned: false, frozen: false, joins: true }
    }

    #[test]
    fn a_layout_is_reached_by_splits_then_moves_then_merges() {
        let layout = Layout { parts: vec![part(0..3, 0), part(3..5, 0), part(5..6, 0)] };
        let slices = vec![Slice { table: 0, load: 1.0, runs: 1.0 }; 6];
        let gathered = Gathered {
            cores: vec![ExecutorId(0), ExecutorId(1)],
            groups: vec![GroupId(7)],
            starts: (0..6).map(|at| Cut::At(key(at))).collect(),
            trace: Trace { slices, meetings: Vec::new() },
            layout,
            partitions: (0..3).map(|id| (PartitionId(id), ExecutorId(0))).collect(),
            ..Gathered::default()
        };
        let after = Layout { parts: vec![part(0..2, 1), part(2..3, 0), part(3..6, 0)] };
        let group = GroupId(7);
        assert_eq!(
            plan(&gathered, &after),
            [
                Action::Cut { group, at: Cut::At(key(2)), home: ExecutorId(0) },
                Action::Move { group, at: Cut::At(key(0)), to: ExecutorId(1) },
                Action::Merge { group, at: key(5) },
            ]
        );
        assert_eq!(plan(&gathered, &gathered.layout), []);
    }
}
