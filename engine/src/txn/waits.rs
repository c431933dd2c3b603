//! Who waits for whom: the graph the deadlock search reads.
//!
//! Entered only by transactions that hold locks and wait for another one, and by whoever has a place in the
//! queue of a table or an advisory lock, so never on a hot path. A one-shot that waits for a row holds nothing
//! and cannot be part of a cycle. The search runs when somebody has waited for `deadlock_timeout` and asks; who
//! asks is the victim, and leaves the graph in the same step, so that one cycle has one victim.
//!
//! Every statement and the end of every transaction asks the graph to forget it, and hardly any of them is
//! there. So beside the graph it is counted how many of its waiters fall to each of some slots, and whoever
//! finds its slot empty is through: it reads a line that changes when somebody waits, and takes no lock.
//!
//! Nothing is lost by that. A count is changed under the graph's lock together with what it counts, so
//! whoever sees it as it is at some moment and finds zero was not in the graph at that moment, and need not
//! be taken out: the same as if the lock had been taken then. The moment is not before anything that the
//! asker knows of: what happened before the look, publications of its own wait above all, is seen by it.
//! A publication that nothing orders with the look may come after it, as it might after the lock.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::id::TxnId;

/// Of so many slots most are empty even while hundreds wait. A power of two.
const SLOTS: usize = 4_096;

/// One step of a cycle: who waits, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitEdge {
    pub waiter: TxnId,
    pub blocker: TxnId,
}

/// See the module.
pub struct WaitGraph {
    blockers: Mutex<FxHashMap<TxnId, Vec<TxnId>>>,
    /// How many waiters of the graph fall to each slot; changed under its lock.
    waiters: Box<[AtomicU32]>,
    searching: Mutex<()>,
}

impl Default for WaitGraph {
    fn default() -> Self {
        let waiters = (0..SLOTS).map(|_| AtomicU32::new(0)).collect();
        Self { blockers: Mutex::default(), waiters, searching: Mutex::default() }
    }
}

type Graph<'g> = MutexGuard<'g, FxHashMap<TxnId, Vec<TxnId>>>;

impl WaitGraph {
    fn slot(&self, waiter: TxnId) -> &AtomicU32 {
        &self.waiters[waiter.0 as usize % SLOTS]
    }

    fn take_out(&self, graph: &mut Graph<'_>, waiter: TxnId) {
        if graph.remove(&waiter).is_some() {
            self.slot(waiter).fetch_sub(1, Ordering::Release);
        }
    }

    /// Publishes what `waiter` waits for, in place of what it waited for before.
    pub fn publish(&self, waiter: TxnId, blockers: Vec<TxnId>) {
        let mut graph = self.blockers.lock();
        if graph.insert(waiter, blockers).is_none() {
            self.slot(waiter).fetch_add(1, Ordering::Release);
        }
    }

    /// Keeps out other searches until the value is dropped. A victim that may not have to be one
    /// comes back into the graph for a while; who looked then would be a second victim.
    pub fn search(&self) -> MutexGuard<'_, ()> {
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
    #[inline]
    pub fn forget(&self, waiter: TxnId) {
        if self.slot(waiter).load(Ordering::Acquire) > 0 {
            self.take_out(&mut self.blockers.lock(), waiter);
        }
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
        let mut visited = FxHashSet::from_iter([waiter]);
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
                self.take_out(&mut graph, waiter);
                return Some(path);
            }
            if visited.insert(blocker) {
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
    use crate::random::RandomStream;

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

    #[test]
    fn slots_count_who_is_in_the_graph() {
        let mut random = RandomStream::new(30);
        let graph = WaitGraph::default();
        let mut model: std::collections::BTreeMap<TxnId, Vec<TxnId>> = Default::default();
        // Few slots, so that several share one.
        let some = |random: &mut RandomStream| TxnId(random.below(4) + SLOTS as u64 * random.below(4));
        for _ in 0..5_000 {
            let waiter = some(&mut random);
            match random.below(4) {
                0 | 1 => {
                    let blockers = vec![some(&mut random)];
                    graph.publish(waiter, blockers.clone());
                    model.insert(waiter, blockers);
                }
                2 => {
                    graph.forget(waiter);
                    model.remove(&waiter);
                }
                _ => {
                    if graph.break_cycle(waiter).is_some() {
                        model.remove(&waiter);
                    }
                }
            }
            let asked = some(&mut random);
            assert_eq!(graph.blockers_of(asked), model.get(&asked).cloned().unwrap_or_default());
            let counted: u32 = graph.waiters.iter().map(|slot| slot.load(Ordering::Relaxed)).sum();
            assert_eq!(counted as usize, model.len());
        }
    }

    #[test]
    fn whoever_was_published_by_another_thread_is_forgotten() {
        let graph = WaitGraph::default();
        let (sent, received) = std::sync::mpsc::sync_channel::<TxnId>(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..10_000 {
                    graph.publish(TxnId(number), vec![TxnId(number + 1)]);
                    sent.send(TxnId(number)).expect("somebody receives");
                }
                drop(sent);
            });
            for waiter in received {
                graph.forget(waiter);
            }
        });
        assert!(graph.blockers.lock().is_empty());
    }
}
