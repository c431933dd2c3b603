//! Whoever submits programs one after the other: a session of the server.
//!
//! A client carries what others may ask about, or of, its running program: a flag that asks it
//! to stop, the interactive transaction it has open, and what it waits for. The last is written
//! only by programs that wait, so a program that runs through costs nothing here, but for the number that it
//! leaves for the next one.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::engine::Shared;
use crate::id::{TreeId, TxnId};
use crate::locks::{LockTag, ObjectLock, ObjectMode};
use crate::snapshot::Snapshot;
use crate::txn::{InteractiveState, RowWaiter};

/// See the module's head.
pub struct Client {
    /// What the caller knows it by; the server's process id.
    number: i32,
    /// Under what it holds locks that outlive a transaction.
    owner: TxnId,
    cancel: AtomicBool,
    /// The greatest number of a transaction that it may have seen something of, or was: see
    /// [`Client::met`].
    met: AtomicU64,
    /// With what knows who is in the way.
    wait: Mutex<Option<(Wait, Weak<RowWaiter>)>>,
    transaction: Mutex<Weak<InteractiveState>>,
    /// Locks it holds beyond transactions.
    held: Mutex<Held>,
    /// The locks in whose queues its program has places: one that it waits for, and those whose turn had come
    /// when it met that.
    queued: Mutex<BTreeSet<LockTag>>,
    shared: Weak<Shared>,
}

/// Locks, and how often each of them is held.
#[derive(Default)]
struct Held(BTreeMap<(LockTag, ObjectMode), u32>);

impl Held {
    fn add(&mut self, tag: LockTag, mode: ObjectMode) {
        *self.0.entry((tag, mode)).or_default() += 1;
    }

    /// Takes one away, if it is there.
    fn remove(&mut self, tag: LockTag, mode: ObjectMode) {
        if let Entry::Occupied(mut times) = self.0.entry((tag, mode)) {
            *times.get_mut() -= 1;
            if *times.get() == 0 {
                times.remove();
            }
        }
    }
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
            met: AtomicU64::new(0),
            wait: Mutex::new(None),
            transaction: Mutex::new(Weak::new()),
            held: Mutex::default(),
            queued: Mutex::default(),
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

    /// The greatest number that its programs have met or got: the next one gets a greater one, on whatever
    /// thread it runs, so that the log has what one session does in its order. See [`crate::log::transaction`].
    pub(crate) fn met(&self) -> u64 {
        self.met.load(Ordering::Relaxed)
    }

    /// Says what a program has met, whose end nobody knows of yet. Its programs come one after the other, and
    /// each one is submitted by somebody who knows of the end of the one before; but for the rollback of a block
    /// whose COMMIT has failed, beside which the next one runs.
    pub(crate) fn note_met(&self, number: u64) {
        #[cfg(test)]
        if crate::planted::is(crate::planted::Bug::ClientForgets) {
            return;
        }
        if self.met() < number {
            self.met.fetch_max(number, Ordering::Relaxed);
        }
    }

    /// What its program waits for.
    pub fn wait(&self) -> Option<Wait> {
        let (mut wait, waiter) = self.wait.lock().clone()?;
        if let Some(waiter) = waiter.upgrade() {
            wait.blockers = waiter.blockers();
        }
        if let (WaitOn::Object(lock), Some(shared)) = (&wait.on, self.shared.upgrade())
            && let Some(all) = shared.locks.in_the_way(lock.tag, self)
        {
            wait.blockers = all;
        }
        Some(wait)
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
        !self.queued.lock().is_empty()
    }

    pub(crate) fn hold(&self, tag: LockTag, mode: ObjectMode) {
        let mut held = self.held.lock();
        held.add(tag, mode);
        // Whoever waits for this client waits for its open transaction.
        if let (Some(shared), Some(state)) = (self.shared.upgrade(), self.interactive()) {
            shared.waits.publish(self.owner, vec![state.id]);
        }
    }

    pub(crate) fn holds_any(&self) -> bool {
        !self.held.lock().0.is_empty()
    }

    pub(crate) fn unhold(&self, tag: LockTag, mode: ObjectMode) {
        self.held.lock().remove(tag, mode);
    }

    pub(crate) fn take_held(&self) -> Vec<(LockTag, ObjectMode)> {
        let held = std::mem::take(&mut *self.held.lock()).0;
        let times = held.into_iter().flat_map(|(lock, times)| std::iter::repeat_n(lock, times as usize));
        times.collect()
    }

    pub(crate) fn queue_at(&self, tag: LockTag) {
        self.queued.lock().insert(tag);
    }

    pub(crate) fn leave_queue(&self, tag: LockTag) {
        self.queued.lock().remove(&tag);
    }

    pub(crate) fn take_queued(&self) -> BTreeSet<LockTag> {
        std::mem::take(&mut *self.queued.lock())
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
        let since = own.as_ref().map_or(since, |(before, _)| before.since);
        *own = wait.map(|(on, blockers)| (Wait { on, blockers, since }, Weak::new()));
    }

    pub(crate) fn begin_wait(&self, wait: Wait, waiter: &Arc<RowWaiter>) {
        *self.wait.lock() = Some((wait, Arc::downgrade(waiter)));
    }

    pub(crate) fn end_wait(&self) {
        *self.wait.lock() = None;
    }
}
