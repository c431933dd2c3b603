//! Row locks and uncommitted images of interactive transactions.
//!
//! Both live beside the tree, in the partition that holds the row, keyed by key: the tree
//! itself holds committed rows only, so everybody else reads beneath uncommitted writes
//! without noticing them. A writer that meets somebody else's lock enqueues there, is undone,
//! gives its partitions back and runs again when woken: nobody waits while holding a partition.
//!
//! A statement that had to wait three times keeps the rows it got past locked while it waits,
//! so that it gets further each time. A starved one-shot does so, too, under a transaction id
//! of its own, and whoever comes after it and would be in its way waits behind it; at most one
//! does at a time, so that starved one-shots never wait for each other.
//!
//! Of many who wait for a row that becomes free the next is woken, with those that can go beside it; the
//! others wait behind it: in the row's list again once it has the row, or meets somebody else there. If it
//! ends otherwise, or waits elsewhere, the next of them is woken. So a thousand who wait for one row run once
//! each, and not each of them whenever one has ended.
//!
//! Invariant: an image belongs to the one holder of a mode that excludes other writers.
//! Invariant: who waits is in the list of a lock that somebody holds, or behind one that is about to run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::limits::{NewImage, Weight};
use super::{InteractiveState, LockWait, OverlayUndo, Place, Txn, Undo, WaitEdge, WaitGraph};
use crate::client::WaitOn;
use crate::engine::Shared;
use crate::id::{TreeId, TxnId};
use crate::locks::{LockTag, ObjectLock, ObjectMode};
use crate::partition::{Image, Job, PartitionRef, RowLock};
use crate::program::Stop;
use crate::storage::Row;
use crate::storage::versions::Departure;
use crate::table::TableMeta;

/// PostgreSQL's four row lock modes, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

impl LockMode {
    /// PostgreSQL's table 13.3.
    pub fn conflicts(self, other: Self) -> bool {
        match self {
            Self::KeyShare => other == Self::Update,
            Self::Share => other >= Self::NoKeyUpdate,
            Self::NoKeyUpdate => other >= Self::Share,
            Self::Update => true,
        }
    }
}

/// A program that waits for a row lock, holding no partition.
pub(crate) struct RowWaiter {
    /// Under which id it holds locks, if it holds any.
    pub who: Option<TxnId>,
    pub mode: LockMode,
    pub tree: TreeId,
    pub key: Box<[u8]>,
    /// It waited often: whoever comes later and would be in its way waits, too.
    insists: bool,
    /// Monotonic nanoseconds since when it waits for this row, earlier rounds included.
    since: AtomicU64,
    blockers: Mutex<Vec<TxnId>>,
    /// Whether it will keep the row locked beyond its run.
    keeps: bool,
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
        Arc::new(Self {
            who,
            mode: LockMode::Update,
            tree,
            key: Box::default(),
            insists: false,
            since: AtomicU64::new(since_nanos),
            blockers: Mutex::new(blockers),
            keeps: false,
            behind: Mutex::default(),
            object: Some(object),
            state: Mutex::new(WaiterState::Enqueued),
        })
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
    fn also_behind(&self, blocker: TxnId, waits: &WaitGraph) {
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
    fn take_behind(&self) -> Vec<Arc<RowWaiter>> {
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

impl Txn<'_> {
    /// Locks a row for the rest of the interactive transaction; a one-shot, which holds the
    /// partition, only makes sure that nobody else's lock is in the way. Returns whether the
    /// row exists.
    pub fn lock_row(
        &mut self,
        table: &TableMeta,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<bool, Stop> {
        let place = Place::of(table);
        let partition = self.partition_for(place.group, key)?;
        // SELECT … FOR UPDATE reads, as far as the whole table goes.
        self.check_lock_under(partition, place, key, mode, wait, ObjectMode::RowShare)?;
        if self.interactive.is_some() {
            self.check_lockable(partition, table, key, mode)?;
        }
        let exists = self.read(place, key)?.is_some();
        if exists && self.interactive.is_some() {
            self.take_lock(partition, place, key, mode)?;
        }
        Ok(exists)
    }

    /// Stops with a conflict if the interactive transaction has not kept others from changing a row so
    /// far. Others have done nothing while a one-shot runs.
    pub fn require_locked(&mut self, table: &TableMeta, key: &[u8]) -> Result<(), Stop> {
        let Some(me) = self.transaction_id() else { return Ok(()) };
        let place = Place::of(table);
        let partition = self.partition_for(place.group, key)?;
        let lock = self.root(partition, place)?.overlay.get(key);
        let is_kept = |&(holder, mode): &(TxnId, LockMode)| holder == me && mode >= LockMode::NoKeyUpdate;
        match lock.is_some_and(|lock| lock.holders.iter().any(is_kept)) {
            true => Ok(()),
            false => Err(Stop::ConcurrentUpdate),
        }
    }

    /// Whether some interactive transaction deletes a row of a reference table, or changes its
    /// key. Who asks holds the partition of the row that refers to it, and who deletes looks
    /// there after it has locked: one of them sees the other.
    pub fn reference_keys_locked(&self) -> bool {
        self.shared.reference_keys_locked.load(Ordering::SeqCst) > 0
    }

    /// Stops if somebody else holds a conflicting lock on a row that is to be written.
    #[inline]
    pub(super) fn check_lock(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<(), Stop> {
        self.check_lock_under(partition, place, key, mode, wait, ObjectMode::RowExclusive)
    }

    /// The same, for who builds an index of the table, whatever locks there are on that.
    pub(super) fn check_lock_beside(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        mode: LockMode,
    ) -> Result<(), Stop> {
        let root = self.root(partition, place)?;
        self.check_conflict(root.overlay.get_mut(key), place, key, mode, LockWait::Wait)
    }

    /// The same, under a lock on the table in `table_mode`.
    #[inline]
    fn check_lock_under(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
        table_mode: ObjectMode,
    ) -> Result<(), Stop> {
        if self.touched.is_some() {
            self.check_lock_and_remember(partition, place, key, mode, wait)?;
        }
        let root = self.root(partition, place)?;
        self.admit(root, place, table_mode)?;
        if root.overlay.is_empty() {
            return Ok(());
        }
        self.check_conflict(root.overlay.get_mut(key), place, key, mode, wait)
    }

    #[cold]
    fn check_lock_and_remember(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<(), Stop> {
        let root = self.root(partition, place)?;
        self.check_conflict(root.overlay.get_mut(key), place, key, mode, wait)?;
        if let Some(touched) = &mut self.touched {
            touched.push((partition, place, Box::from(key), mode));
        }
        Ok(())
    }

    #[cold]
    fn check_conflict(
        &mut self,
        lock: Option<&mut RowLock>,
        place: Place,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<(), Stop> {
        let Some(lock) = lock else { return Ok(()) };
        let me = self.transaction_id().or(self.finishing).or(self.waits_as());
        let mut blockers: Vec<TxnId> = lock
            .holders
            .iter()
            .filter(|&&(holder, held)| Some(holder) != me && held.conflicts(mode))
            .map(|&(holder, _)| holder)
            .collect();
        let holds = lock.holders.iter().any(|&(holder, _)| Some(holder) == me);
        if blockers.is_empty() && !holds {
            // Nobody overtakes the starved, but who holds the row already is waited for.
            let insisting = lock.waiters.iter().filter(|waiter| {
                waiter.insists && waiter.who != me && waiter.mode.conflicts(mode) && waiter.is_waiting()
            });
            blockers.extend(insisting.filter_map(|waiter| waiter.who));
        }
        if blockers.is_empty() {
            return Ok(());
        }
        if wait == LockWait::NoWait || self.lock_wait() == LockWait::NoWait {
            return Err(Stop::LockNotAvailable);
        }
        if self.stops_at_locks() {
            self.refuse(WaitOn::Row(self.table_of(place.id)), blockers);
            return Err(Stop::LockNotAvailable);
        }
        let waiter = Arc::new(RowWaiter {
            who: me,
            mode,
            tree: place.id,
            key: Box::from(key),
            insists: self.locker.is_some(),
            since: AtomicU64::new(self.shared.clock.monotonic_nanos()),
            blockers: Mutex::new(blockers),
            keeps: self.interactive.is_some() || self.locker.is_some(),
            behind: Mutex::default(),
            object: None,
            state: Mutex::new(WaiterState::Enqueued),
        });
        self.publish_wait(WaitOn::Row(place.id), &waiter);
        match self.behind_at(place, key) {
            behind if behind.is_empty() => push_waiter(&mut lock.waiters, waiter.clone()),
            behind => {
                // They have waited longer than those who have come since.
                join(lock, behind, &self.shared.waits);
                lock.waiters.insert(0, waiter.clone());
            }
        }
        self.waiting = Some(waiter);
        Err(Stop::Wait)
    }

    /// Before the partitions of a run that must wait are released: locks the rows it got past,
    /// for `owner`.
    pub(super) fn leave_locks(&mut self, owner: &InteractiveState) {
        let mut notes = Vec::new();
        let touched = self.touched.take().unwrap_or_default();
        for (partition, place, key, mode) in &touched {
            let Ok(root) = self.root(partition, *place) else { continue };
            let lock = root.overlay.entry(key.clone()).or_default();
            let before = hold(self.shared, *place, lock, owner.id, *mode);
            let Err(mode_before) = before else { continue };
            notes.push(OverlayUndo {
                place: *place,
                key: key.clone(),
                mode_before,
                image_before: None,
                weight: Weight::default(),
            });
            if mode_before.is_none() {
                // SAFETY: held by this transaction; nothing else refers to its data here.
                unsafe { partition.data_mut() }.locks += 1;
            }
        }
        if !owner.keep_notes(&mut notes) {
            for (partition, place, key, _) in touched {
                self.drop_lock(partition, place, &key, owner.id);
            }
        }
    }

    /// Adds this transaction to the holders of a row lock, or strengthens its mode; whether it was
    /// none of them.
    pub(super) fn take_lock(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        mode: LockMode,
    ) -> Result<bool, Stop> {
        let Some(me) = self.transaction_id() else { return Ok(false) };
        let root = self.root(partition, place)?;
        let lock = root.overlay.entry(Box::from(key)).or_default();
        let held = hold(self.shared, place, lock, me, mode);
        join(lock, self.behind_at(place, key), &self.shared.waits);
        let Err(before) = held else { return Ok(false) };
        self.note_overlay(partition, place, key, before, None);
        if before.is_none() {
            // SAFETY: held by this transaction; nothing else refers to its data here.
            unsafe { partition.data_mut() }.locks += 1;
        }
        Ok(before.is_none())
    }

    /// Those who wait behind this run for a row that it was woken for, if this is that row.
    fn behind_at(&self, place: Place, key: &[u8]) -> Vec<Arc<RowWaiter>> {
        let woken_at = self.woken_at.as_ref().filter(|woken| woken.tree == place.id && *woken.key == *key);
        woken_at.map(|woken| woken.take_behind()).unwrap_or_default()
    }

    /// Writes an uncommitted image. The caller checked for conflicts.
    pub(super) fn write_image(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        image: NewImage,
        mode: LockMode,
    ) -> Result<(), Stop> {
        let locked_now = self.take_lock(partition, place, key, mode)?;
        self.added_bytes += super::write::entry_bytes(key, image.row.as_deref().unwrap_or(&[]));
        let mut weight = Weight::default();
        let root = self.root(partition, place)?;
        if let Some(lock) = root.overlay.get_mut(key)
            && let Some(me) = self.transaction_id()
        {
            let before = lock.image.take().map(|image| (image.row, image.departure));
            let known = before.as_ref().map(|(_, departure)| *departure).unwrap_or_default();
            let departure = match &image.row {
                Some(_) => Departure::None,
                None => self.leaving,
            };
            let length = |row: &Option<Row>| row.as_deref().map_or(0, <[u8]>::len);
            weight = image.weight(key, before.as_ref().map(|(row, _)| length(row)));
            lock.image = Some(Image { writer: me, row: image.row, departure: known.max(departure) });
            // Whoever takes a new lock back takes the image along.
            if !locked_now {
                self.note_overlay(partition, place, key, Some(mode), Some(before));
            }
            if let Some(noted) = self.worker.scratch.overlay_undo.last_mut() {
                noted.weight = weight;
            }
        }
        if place.is_reference()
            && let Some(interactive) = &self.interactive
        {
            interactive.set_wrote_references();
        }
        self.weigh(weight)
    }

    /// Remembers how to undo a change of the overlay, here and for savepoints of the
    /// interactive transaction.
    fn note_overlay(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        mode_before: Option<LockMode>,
        image_before: Option<Option<(Option<Row>, Departure)>>,
    ) {
        let scratch = &mut self.worker.scratch;
        let weight = Weight::default();
        scratch.overlay_undo.push(OverlayUndo {
            place,
            key: Box::from(key),
            mode_before,
            image_before,
            weight,
        });
        scratch.undo.push(Undo::overlay(partition, place));
    }

    /// Takes back one change of the overlay.
    pub(super) fn undo_overlay(&mut self, partition: PartitionRef, me: TxnId, change: OverlayUndo) {
        let OverlayUndo { place, key, mode_before, image_before, .. } = change;
        let Ok(root) = self.root(partition, place) else { return };
        let Some(lock) = root.overlay.get_mut(&key) else { return };
        if let Some(image) = image_before {
            lock.image = image.map(|(row, departure)| Image { writer: me, row, departure });
            return;
        }
        match mode_before {
            Some(mode) => {
                if let Some(held) = lock.holders.iter_mut().find(|(holder, _)| *holder == me) {
                    count_reference_key(self.shared, place, Some(held.1), Some(mode));
                    held.1 = mode;
                }
                self.woken.append(&mut lock.waiters);
            }
            None => self.drop_lock(partition, place, &key, me),
        }
    }

    /// Ends a transaction's lock on a row, with its image, and wakes who waits.
    pub(super) fn drop_lock(&mut self, partition: PartitionRef, place: Place, key: &[u8], me: TxnId) {
        // SAFETY: held by this transaction; `root` is the only reference into its data here.
        let data = unsafe { partition.data_mut() };
        // The definition may be another one by now: the lock is the same.
        let root = data.roots.get_mut(place.root as usize).filter(|root| root.id == Some(place.id));
        let Some(root) = root else { return };
        let Some(lock) = root.overlay.get_mut(key) else { return };
        let before = lock.holders.len();
        if let Some(&(_, mode)) = lock.holders.iter().find(|(holder, _)| *holder == me) {
            count_reference_key(self.shared, place, Some(mode), None);
        }
        lock.holders.retain(|(holder, _)| *holder != me);
        let dropped = before - lock.holders.len();
        if lock.image.as_ref().is_some_and(|image| image.writer == me) {
            lock.image = None;
        }
        if !lock.holders.is_empty() {
            // Others keep it: who waits looks whether that is in its way, and waits no longer than so often.
            self.woken.append(&mut lock.waiters);
        } else if let Some(free) = root.overlay.remove(key) {
            next_of(free.waiters, &mut self.woken);
        }
        // SAFETY: held by this transaction; `root` is not used any more.
        unsafe { partition.data_mut() }.locks -= dropped;
    }
}

/// Keeps count of the locks that forbid to refer to a row of a reference table: one-shots read
/// such rows without a claim, and look for the locks only if there are any.
fn count_reference_key(shared: &Shared, place: Place, before: Option<LockMode>, after: Option<LockMode>) {
    if !place.is_reference() {
        return;
    }
    match (before == Some(LockMode::Update), after == Some(LockMode::Update)) {
        (false, true) => shared.reference_keys_locked.fetch_add(1, Ordering::SeqCst),
        (true, false) => shared.reference_keys_locked.fetch_sub(1, Ordering::SeqCst),
        _ => 0,
    };
}

/// Makes `me` a holder, or strengthens its mode. `Err` tells what it held before, `Ok` that it
/// held enough.
fn hold(
    shared: &Shared,
    place: Place,
    lock: &mut RowLock,
    me: TxnId,
    mode: LockMode,
) -> Result<(), Option<LockMode>> {
    let before = lock.holders.iter().find(|(holder, _)| *holder == me).map(|&(_, mode)| mode);
    match lock.holders.iter_mut().find(|(holder, _)| *holder == me) {
        Some((_, held)) if *held >= mode => return Ok(()),
        Some((_, held)) => *held = mode,
        None => lock.holders.push((me, mode)),
    }
    count_reference_key(shared, place, before, Some(mode));
    // Who waits already may have to wait for this one now, too.
    for waiter in lock.waiters.iter().filter(|waiter| waiter.who != Some(me) && waiter.mode.conflicts(mode)) {
        waiter.also_behind(me, &shared.waits);
    }
    Err(before)
}

/// Puts some who wait for a row before those in its list, and says whom they wait for.
fn join(lock: &mut RowLock, mut waiting: Vec<Arc<RowWaiter>>, waits: &WaitGraph) {
    for waiter in &waiting {
        let in_the_way =
            |&&(who, held): &&(TxnId, LockMode)| Some(who) != waiter.who && held.conflicts(waiter.mode);
        waiter.now_behind(lock.holders.iter().filter(in_the_way).map(|(who, _)| *who).collect(), waits);
    }
    waiting.append(&mut lock.waiters);
    lock.waiters = waiting;
}

/// Chooses, of those who wait for a row that nobody locks now, who is woken: all in the order in which they came
/// that can go beside one another. The others wait behind the first of those that keep the row locked.
fn next_of(waiters: Vec<Arc<RowWaiter>>, woken: &mut Vec<Arc<RowWaiter>>) {
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
