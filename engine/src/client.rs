//! Whoever submits programs one after the other: a session of the server.
//!
//! A client carries what others may ask about, or of, its running program: a flag that asks it
//! to stop, the interactive transaction it has open, and what it waits for. The last is written
//! only by programs that wait, so a program that runs through costs nothing here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::engine::Shared;
use crate::id::{TreeId, TxnId};
use crate::locks::{LockTag, ObjectLock, ObjectMode};
use crate::snapshot::Snapshot;
use crate::txn::InteractiveState;

/// See the module's head.
pub struct Client {
    /// What the caller knows it by; the server's process id.
    number: i32,
    /// Under what it holds locks that outlive a transaction.
    owner: TxnId,
    cancel: AtomicBool,
    wait: Mutex<Option<Wait>>,
    transaction: Mutex<Weak<InteractiveState>>,
    /// Locks it holds beyond transactions.
    held: Mutex<Vec<(LockTag, ObjectMode)>>,
    /// The lock in whose queue its program has a place.
    queued: Mutex<Option<LockTag>>,
    shared: Weak<Shared>,
}

/// What a program waits for, holding no partition.
#[derive(Clone, Debug)]
pub struct Wait {
    pub on: WaitOn,
    /// Who is in the way.
    pub blockers: Vec<TxnId>,
    /// Microseconds since 2000-01-01 UTC.
    pub since: i64,
}

/// What a run has ended at instead of waiting for it: see [`Txn::stop_at_locks`](crate::Txn::stop_at_locks).
#[derive(Clone, Debug)]
pub struct Refused {
    pub on: WaitOn,
    /// Who is in the way.
    pub blockers: Vec<TxnId>,
}

/// The kind of thing waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitOn {
    /// A row of this table, or an entry of this index, that a transaction locks.
    Row(TreeId),
    /// A table, or an advisory lock.
    Object(ObjectLock),
}

impl Client {
    pub(crate) fn new(number: i32, owner: TxnId, shared: Weak<Shared>) -> Arc<Self> {
        Arc::new(Self {
            number,
            owner,
            cancel: AtomicBool::new(false),
            wait: Mutex::new(None),
            transaction: Mutex::new(Weak::new()),
            held: Mutex::new(Vec::new()),
            queued: Mutex::new(None),
            shared,
        })
    }

    /// A client of no engine, for tests of what is around one.
    pub fn detached(number: i32) -> Arc<Self> {
        Self::new(number, TxnId(0), Weak::new())
    }

    pub fn number(&self) -> i32 {
        self.number
    }

    /// The owner of what it holds beyond transactions.
    pub fn owner(&self) -> TxnId {
        self.owner
    }

    /// Asks the running program to stop, or takes that back. Scans look at it, and commits;
    /// a program that waits must be cancelled through its submission too.
    pub fn set_cancelled(&self, cancelled: bool) {
        self.cancel.store(cancelled, Ordering::Release);
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// What its program waits for.
    pub fn wait(&self) -> Option<Wait> {
        self.wait.lock().clone()
    }

    /// The id of its open interactive transaction, and whether it has written or locked rows.
    pub fn transaction(&self) -> Option<(TxnId, bool)> {
        let state = self.transaction.lock().upgrade()?;
        state.is_active().then(|| (state.id, state.has_notes()))
    }

    /// Whether what this id holds is this client's.
    pub fn holds_as(&self, id: TxnId) -> bool {
        id == self.owner || self.transaction.lock().upgrade().is_some_and(|state| state.id == id)
    }

    /// Its open interactive transaction.
    pub(crate) fn interactive(&self) -> Option<Arc<InteractiveState>> {
        self.transaction.lock().upgrade()
    }

    /// What its open transaction sees, for others to see the same; `None` if it has none.
    pub fn export_snapshot(&self) -> Option<Snapshot> {
        let (shared, state) = (self.shared.upgrade()?, self.interactive()?);
        state.is_active().then(|| state.export(&shared))
    }

    /// The tables and sequences its open transaction uses without standing in anybody's way, and how.
    pub fn weak_locks(&self) -> Vec<(LockTag, ObjectMode)> {
        let weak = self.interactive().map(|state| state.objects.weak()).unwrap_or_default();
        weak.into_iter()
            .flat_map(|(tag, bits)| ObjectMode::of_bits(bits).map(move |mode| (tag, mode)))
            .collect()
    }

    /// Whether its program has a place in the queue of a lock.
    pub fn is_queued(&self) -> bool {
        self.queued.lock().is_some()
    }

    pub(crate) fn hold(&self, tag: LockTag, mode: ObjectMode) {
        let mut held = self.held.lock();
        held.push((tag, mode));
        // Whoever waits for this client waits for its open transaction.
        if let (Some(shared), Some(state)) = (self.shared.upgrade(), self.interactive()) {
            shared.waits.publish(self.owner, vec![state.id]);
        }
    }

    pub(crate) fn holds_any(&self) -> bool {
        !self.held.lock().is_empty()
    }

    pub(crate) fn unhold(&self, tag: LockTag, mode: ObjectMode) {
        let mut held = self.held.lock();
        if let Some(at) = held.iter().rposition(|&lock| lock == (tag, mode)) {
            held.swap_remove(at);
        }
    }

    pub(crate) fn take_held(&self) -> Vec<(LockTag, ObjectMode)> {
        std::mem::take(&mut self.held.lock())
    }

    pub(crate) fn set_queued(&self, tag: Option<LockTag>) {
        *self.queued.lock() = tag;
    }

    pub(crate) fn take_queued(&self) -> Option<LockTag> {
        self.queued.lock().take()
    }

    /// Others are in the way than when the wait began.
    pub(crate) fn now_waits_for(&self, on: &WaitOn, blockers: Vec<TxnId>) {
        if let Some(wait) = &mut *self.wait.lock()
            && wait.on == *on
        {
            wait.blockers = blockers;
        }
    }

    /// Gives back what it holds beyond transactions: it is about to go, or to be as new.
    pub fn release(self: &Arc<Self>) {
        let Some(shared) = self.shared.upgrade() else { return };
        shared.withdraw(self);
        let mut woken = Vec::new();
        shared.release_client(self, &mut woken);
        shared.wake(woken);
    }

    pub(crate) fn begin(&self, state: &Arc<InteractiveState>) {
        *self.transaction.lock() = Arc::downgrade(state);
        if self.holds_any()
            && let Some(shared) = self.shared.upgrade()
        {
            shared.waits.publish(self.owner, vec![state.id]);
        }
    }

    /// Says what it waits for outside of any program, or that it does not any more.
    pub fn tell_wait(&self, wait: Option<(WaitOn, Vec<TxnId>)>) {
        let since = self.shared.upgrade().map_or(0, |shared| shared.clock.wall_micros());
        let mut own = self.wait.lock();
        let since = own.as_ref().map_or(since, |before| before.since);
        *own = wait.map(|(on, blockers)| Wait { on, blockers, since });
    }

    pub(crate) fn begin_wait(&self, wait: Wait) {
        *self.wait.lock() = Some(wait);
    }

    pub(crate) fn end_wait(&self) {
        *self.wait.lock() = None;
    }
}
