//! Who waits for whom: the graph the deadlock search reads.
//!
//! Entered only by transactions that hold locks and wait for another one, so never on a hot
//! path. A one-shot that waits holds nothing and cannot be part of a cycle. The search runs
//! when somebody has waited for `deadlock_timeout` and asks; who asks is the victim, and leaves
//! the graph in the same step, so that one cycle has one victim.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::id::TxnId;

/// One step of a cycle: who waits, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitEdge {
    pub waiter: TxnId,
    pub blocker: TxnId,
}

/// See the module.
#[derive(Default)]
pub struct WaitGraph {
    blockers: Mutex<FxHashMap<TxnId, Vec<TxnId>>>,
    searching: Mutex<()>,
}

impl WaitGraph {
    /// Publishes what `waiter` waits for, in place of what it waited for before.
    pub fn publish(&self, waiter: TxnId, blockers: Vec<TxnId>) {
        self.blockers.lock().insert(waiter, blockers);
    }

    /// Keeps out other searches until the value is dropped. A victim that may not have to be one
    /// comes back into the graph for a while; who looked then would be a second victim.
    pub fn search(&self) -> parking_lot::MutexGuard<'_, ()> {
        self.searching.lock()
    }

    /// Somebody else came in the way of a waiter.
    pub fn add_blocker(&self, waiter: TxnId, blocker: TxnId) {
        if let Some(blockers) = self.blockers.lock().get_mut(&waiter)
            && !blockers.contains(&blocker)
        {
            blockers.push(blocker);
        }
    }

    /// `waiter` waits no more, or is over.
    pub fn forget(&self, waiter: TxnId) {
        self.blockers.lock().remove(&waiter);
    }

    /// Whom a transaction waits for.
    pub fn blockers_of(&self, waiter: TxnId) -> Vec<TxnId> {
        self.blockers.lock().get(&waiter).cloned().unwrap_or_default()
    }

    /// The cycle that `waiter` is part of, beginning with it. It leaves the graph: it is the
    /// victim.
    pub fn break_cycle(&self, waiter: TxnId) -> Option<Vec<WaitEdge>> {
        let mut graph = self.blockers.lock();
        // Depth first; `path` holds the edges from `waiter` to where the search stands.
        let mut path: Vec<WaitEdge> = Vec::new();
        let mut left: Vec<Vec<TxnId>> = vec![graph.get(&waiter)?.clone()];
        let mut visited = vec![waiter];
        while let Some(blockers) = left.last_mut() {
            let Some(blocker) = blockers.pop() else {
                left.pop();
                path.pop();
                continue;
            };
            let from = path.last().map_or(waiter, |edge| edge.blocker);
            let edge = WaitEdge { waiter: from, blocker };
            if blocker == waiter {
                path.push(edge);
                graph.remove(&waiter);
                return Some(path);
            }
            if !visited.contains(&blocker) {
                visited.push(blocker);
                path.push(edge);
                left.push(graph.get(&blocker).cloned().unwrap_or_default());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(waiter: u64, blocker: u64) -> WaitEdge {
        WaitEdge { waiter: TxnId(waiter), blocker: TxnId(blocker) }
    }

    #[test]
    fn a_cycle_is_found_once_and_a_chain_never() {
        let graph = WaitGraph::default();
        graph.publish(TxnId(1), vec![TxnId(5), TxnId(2)]);
        graph.publish(TxnId(2), vec![TxnId(3)]);
        assert_eq!(graph.break_cycle(TxnId(1)), None);
        graph.publish(TxnId(3), vec![TxnId(4), TxnId(1)]);
        assert_eq!(graph.break_cycle(TxnId(2)), Some(vec![edge(2, 3), edge(3, 1), edge(1, 2)]));
        assert_eq!(graph.break_cycle(TxnId(1)), None, "the victim is gone");
        graph.publish(TxnId(2), Vec::new());
        graph.add_blocker(TxnId(2), TxnId(1));
        assert_eq!(graph.break_cycle(TxnId(1)), Some(vec![edge(1, 2), edge(2, 1)]));
    }
}
