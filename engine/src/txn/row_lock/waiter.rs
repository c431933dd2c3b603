//! Who waits for a row that somebody locks, or for a table or an advisory lock, and who of many is next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::LockMode;
use crate::id::{TreeId, TxnId};
use crate::locks::{LockTag, ObjectLock};
use crate::partition::Job;
use crate::txn::{WaitEdge, WaitGraph};

/// A program that waits for a row lock, holding no partition.
pub(crate) struct RowWaiter {
    /// Under which id it holds locks, if it holds any.
    pub who: Option<TxnId>,
    pub mode: LockMode,
    pub tree: TreeId,
    pub key: Box<[u8]>,
    /// It waited often: whoever comes later and would be in its way waits, too.
    pub(super) insists: bool,
    /// Monotonic nanoseconds since when it waits for this row, earlier rounds included.
    since: AtomicU64,
    blockers: Mutex<Vec<TxnId>>,
    /// Whether it will keep the row locked beyond its run.
    pub(super) keeps: bool,
    /// Those who wait for the same row and run once it has ended, or has the row; changed under `state`.
    behind: Mutex<Vec<Arc<RowWaiter>>>,
    /// It is no row, but this.
    pub object: Option<ObjectLock>,
    state: Mutex<WaiterState>,
}

enum WaiterState {
    /// Enqueued; the program is still being undone.
    Enqueued,
    /// The program is parked here.
    Parked(Box<dyn Job>),
    /// The lock was dropped: run again.
    Woken,
}

impl RowWaiter {
    /// A program that waits for a row.
    pub(super) fn for_row(
        who: Option<TxnId>,
        (tree, key): (TreeId, &[u8]),
        mode: LockMode,
        since_nanos: u64,
        blockers: Vec<TxnId>,
    ) -> Self {
        Self {
            who,
            mode,
            tree,
            key: Box::from(key),
            insists: false,
            since: AtomicU64::new(since_nanos),
            blockers: Mutex::new(blockers),
            keeps: false,
            behind: Mutex::default(),
            object: None,
            state: Mutex::new(WaiterState::Enqueued),
        }
    }

    /// A program that waits for a table or an advisory lock.
    pub fn for_object(
        who: Option<TxnId>,
        object: ObjectLock,
        since_nanos: u64,
        blockers: Vec<TxnId>,
    ) -> Arc<Self> {
        let tree = match object.tag {
            LockTag::Table(tree) => tree,
            LockTag::Sequence(_) | LockTag::Advisory { .. } => TreeId(0),
        };
        let waiter = Self::for_row(who, (tree, &[]), LockMode::Update, since_nanos, blockers);
        Arc::new(Self { object: Some(object), ..waiter })
    }

    /// Others are in its way now, or nobody. One that was woken may be waiting elsewhere by now,
    /// and what the graph says of that wait stays.
    pub fn now_behind(&self, blockers: Vec<TxnId>, waits: &WaitGraph) {
        let state = self.state.lock();
        *self.blockers.lock() = blockers.clone();
        if let (Some(who), WaiterState::Parked(_)) = (self.who, &*state) {
            if blockers.is_empty() {
                waits.forget(who);
            } else {
                waits.publish(who, blockers);
            }
        }
    }

    /// Somebody else is in its way, too, if it still waits.
    pub(super) fn also_behind(&self, blocker: TxnId, waits: &WaitGraph) {
        let state = self.state.lock();
        if matches!(*state, WaiterState::Woken) {
            return;
        }
        let mut blockers = self.blockers.lock();
        if !blockers.contains(&blocker) {
            blockers.push(blocker);
        }
        if let (Some(who), WaiterState::Parked(_)) = (self.who, &*state) {
            waits.add_blocker(who, blocker);
        }
    }

    /// The cycle of waits that this one closes, as long as it waits; it leaves the graph as the
    /// victim. While it is latched, what the graph says of its owner is said of this wait.
    pub fn break_cycle(&self, waits: &WaitGraph) -> Option<Vec<WaitEdge>> {
        let state = self.state.lock();
        match &*state {
            WaiterState::Parked(_) => waits.break_cycle(self.who?),
            WaiterState::Enqueued | WaiterState::Woken => None,
        }
    }

    /// Comes back into the graph that it left as a victim; whether it still waits.
    pub fn publish_again(&self, waits: &WaitGraph) -> bool {
        let state = self.state.lock();
        if let (Some(who), WaiterState::Parked(_)) = (self.who, &*state) {
            waits.publish(who, self.blockers());
        }
        !matches!(*state, WaiterState::Woken)
    }

    /// Leaves the graph, if it still waits.
    pub fn leave(&self, waits: &WaitGraph) {
        let state = self.state.lock();
        if let (Some(who), WaiterState::Parked(_)) = (self.who, &*state) {
            waits.forget(who);
        }
    }

    pub fn since(&self) -> u64 {
        self.since.load(Ordering::Relaxed)
    }

    /// Counts an earlier wait for the same row in.
    pub fn waits_since(&self, before: &RowWaiter) {
        if before.tree == self.tree && before.key == self.key && before.object == self.object {
            self.since.store(before.since(), Ordering::Relaxed);
        }
    }

    /// Whose locks were in its way when it was enqueued, or have come in its way since.
    pub fn blockers(&self) -> Vec<TxnId> {
        self.blockers.lock().clone()
    }

    /// Whether it still waits here.
    pub fn is_waiting(&self) -> bool {
        !matches!(*self.state.lock(), WaiterState::Woken)
    }

    /// Puts others behind it, which is about to be woken; whether it still waits.
    fn take_along(&self, others: &mut Vec<Arc<RowWaiter>>) -> bool {
        let state = self.state.lock();
        let waits = !matches!(*state, WaiterState::Woken);
        if waits {
            self.behind.lock().append(others);
        }
        waits
    }

    /// Those behind it, who wait there no more.
    pub(super) fn take_behind(&self) -> Vec<Arc<RowWaiter>> {
        let _state = self.state.lock();
        std::mem::take(&mut *self.behind.lock())
    }

    /// It will not have the row that it was woken for, or has done with it: who of those behind it is next.
    pub fn pass_on(&self) -> Vec<Arc<RowWaiter>> {
        let mut woken = Vec::new();
        next_of(self.take_behind(), &mut woken);
        woken
    }

    /// Parks the program; it comes back if the lock was dropped meanwhile. From here until it is
    /// woken, and no longer, the graph says whom it waits for.
    pub fn park(&self, job: Box<dyn Job>, waits: &WaitGraph) -> Option<Box<dyn Job>> {
        let mut state = self.state.lock();
        match *state {
            WaiterState::Woken => Some(job),
            WaiterState::Enqueued | WaiterState::Parked(_) => {
                if let Some(who) = self.who {
                    // Latched, so that nobody's coming in its way is lost in between.
                    let blockers = self.blockers.lock();
                    waits.publish(who, blockers.clone());
                }
                *state = WaiterState::Parked(job);
                None
            }
        }
    }

    /// The program, if it is parked: to run again, or to cancel. One that was woken before may be
    /// waiting elsewhere by now, and what the graph says of that wait stays.
    pub fn wake(&self, waits: &WaitGraph) -> Option<Box<dyn Job>> {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut *state, WaiterState::Woken);
        if let (Some(who), WaiterState::Parked(_)) = (self.who, &before) {
            // It waits nowhere else before it has come past `park`, which needs the latch.
            waits.forget(who);
        }
        match before {
            WaiterState::Parked(job) => Some(job),
            WaiterState::Enqueued | WaiterState::Woken => None,
        }
    }
}

/// Chooses, of those who wait for a row that nobody locks now, who is woken: all in the order in which they came
/// that can go beside one another. The others wait behind the first of those that keep the row locked.
pub(super) fn next_of(waiters: Vec<Arc<RowWaiter>>, woken: &mut Vec<Arc<RowWaiter>>) {
    let (begin, mut left) = (woken.len(), Vec::new());
    let mut kept: SmallVec<[LockMode; 4]> = SmallVec::new();
    for waiter in waiters {
        // Nobody goes beside an update; whether they still wait is asked when their turn comes.
        if kept.contains(&LockMode::Update) || kept.iter().any(|mode| mode.conflicts(waiter.mode)) {
            left.push(waiter);
        } else if waiter.is_waiting() {
            if waiter.keeps && !kept.contains(&waiter.mode) {
                kept.push(waiter.mode);
            }
            woken.push(waiter);
        }
    }
    if !woken[begin..].iter().any(|waiter| waiter.keeps && waiter.take_along(&mut left)) {
        // Whoever was chosen has given up meanwhile.
        woken.append(&mut left);
    }
}

/// One more waits. Those whose wait was given up are only known by looking, which is done where
/// the list would have to grow: so it stays within twice the number of those who wait.
pub(crate) fn push_waiter(waiters: &mut Vec<Arc<RowWaiter>>, waiter: Arc<RowWaiter>) {
    if waiters.len() == waiters.capacity() {
        waiters.retain(|waiter| waiter.is_waiting());
    }
    waiters.push(waiter);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::ObjectMode;

    fn waiter() -> Arc<RowWaiter> {
        let object = ObjectLock { tag: LockTag::Table(TreeId(20)), mode: ObjectMode::AccessShare };
        RowWaiter::for_object(Some(TxnId(1)), object, 0, vec![TxnId(2)])
    }

    #[test]
    fn waits_that_were_given_up_do_not_pile_up() {
        let waits = WaitGraph::default();
        let mut waiters = Vec::new();
        let patient: Vec<_> = (0..10).map(|_| waiter()).collect();
        for waiter in &patient {
            push_waiter(&mut waiters, waiter.clone());
        }
        for _ in 0..1_000 {
            let waiter = waiter();
            push_waiter(&mut waiters, waiter.clone());
            assert!(waiter.wake(&waits).is_none());
        }
        assert!(waiters.len() <= 32, "{} for ten who wait", waiters.len());
        assert!(patient.iter().all(|one| waiters.iter().any(|other| Arc::ptr_eq(one, other))));
    }
}
