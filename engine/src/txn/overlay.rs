//! Row locks and uncommitted images of interactive transactions.
//!
//! Both live beside the tree, in the partition that holds the row, keyed by key: the tree
//! itself holds committed rows only, so everybody else reads beneath uncommitted writes
//! without noticing them. A writer that meets somebody else's lock enqueues there, is undone,
//! gives its partitions back and runs again when woken: nobody waits while holding a partition.
//!
//! Invariant: an image belongs to the one holder of a mode that excludes other writers.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{LockWait, OverlayUndo, Place, Txn, Undo};
use crate::client::WaitOn;
use crate::id::TxnId;
use crate::partition::{Job, PartitionRef, RowLock};
use crate::program::Stop;
use crate::storage::Row;
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

/// A program that waits for a row lock, holding nothing.
pub(crate) struct RowWaiter {
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
    fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(WaiterState::Enqueued) })
    }

    /// Parks the program; it comes back if the lock was dropped meanwhile.
    pub fn park(&self, job: Box<dyn Job>) -> Option<Box<dyn Job>> {
        let mut state = self.state.lock();
        match *state {
            WaiterState::Woken => Some(job),
            WaiterState::Enqueued | WaiterState::Parked(_) => {
                *state = WaiterState::Parked(job);
                None
            }
        }
    }

    /// The program, if it is parked: to run again, or to cancel.
    pub fn wake(&self) -> Option<Box<dyn Job>> {
        match std::mem::replace(&mut *self.state.lock(), WaiterState::Woken) {
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
        self.check_lock(partition, place, key, mode, wait)?;
        let exists = self.read(place, key)?.is_some();
        if exists && self.interactive.is_some() {
            self.take_lock(partition, place, key, mode)?;
        }
        Ok(exists)
    }

    /// Stops if somebody else holds a conflicting lock on the row.
    #[inline]
    pub(super) fn check_lock(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<(), Stop> {
        let root = self.root(partition, place)?;
        if root.overlay.is_empty() {
            return Ok(());
        }
        let me = self.transaction_id().or(self.finishing);
        let Some(lock) = root.overlay.get_mut(key) else { return Ok(()) };
        self.check_conflict(place, lock, me, mode, wait)
    }

    #[cold]
    fn check_conflict(
        &mut self,
        place: Place,
        lock: &mut RowLock,
        me: Option<TxnId>,
        mode: LockMode,
        wait: LockWait,
    ) -> Result<(), Stop> {
        let blockers: Vec<TxnId> = lock
            .holders
            .iter()
            .filter(|&&(holder, held)| Some(holder) != me && held.conflicts(mode))
            .map(|&(holder, _)| holder)
            .collect();
        if blockers.is_empty() {
            return Ok(());
        }
        if wait == LockWait::NoWait || self.lock_wait == LockWait::NoWait {
            return Err(Stop::LockNotAvailable);
        }
        if let Some(me) = me
            && !self.shared.waits.add(me, blockers.clone())
        {
            return Err(Stop::Deadlock);
        }
        self.publish_wait(WaitOn::Row(place.id), blockers);
        let waiter = RowWaiter::new();
        lock.waiters.push(waiter.clone());
        self.waiting = Some(waiter);
        Err(Stop::Wait)
    }

    /// Adds this transaction to the holders of a row lock, or strengthens its mode.
    pub(super) fn take_lock(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        mode: LockMode,
    ) -> Result<(), Stop> {
        let Some(me) = self.transaction_id() else { return Ok(()) };
        let root = self.root(partition, place)?;
        let lock = root.overlay.entry(Box::from(key)).or_default();
        let before = lock.holders.iter().find(|(holder, _)| *holder == me).map(|&(_, mode)| mode);
        match lock.holders.iter_mut().find(|(holder, _)| *holder == me) {
            Some((_, held)) if *held >= mode => return Ok(()),
            Some((_, held)) => *held = mode,
            None => lock.holders.push((me, mode)),
        }
        self.note_overlay(partition, place, key, before, None);
        if before.is_none() {
            // SAFETY: held by this transaction; nothing else refers to its data here.
            unsafe { partition.data_mut() }.locks += 1;
        }
        Ok(())
    }

    /// Writes an uncommitted image; `None` deletes. The caller checked for conflicts.
    pub(super) fn write_image(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        image: Option<Row>,
        mode: LockMode,
    ) -> Result<(), Stop> {
        self.take_lock(partition, place, key, mode)?;
        let root = self.root(partition, place)?;
        if let Some(lock) = root.overlay.get_mut(key) {
            let before = lock.image.replace(image);
            let held = lock.holders.first().map(|&(_, mode)| mode);
            self.note_overlay(partition, place, key, held, Some(before));
        }
        if place.is_reference()
            && let Some(interactive) = &self.interactive
        {
            interactive.set_wrote_references();
        }
        Ok(())
    }

    /// Remembers how to undo a change of the overlay, here and for savepoints of the
    /// interactive transaction.
    fn note_overlay(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        mode_before: Option<LockMode>,
        image_before: Option<Option<Option<Row>>>,
    ) {
        let scratch = &mut self.worker.scratch;
        scratch.overlay_undo.push(OverlayUndo { place, key: Box::from(key), mode_before, image_before });
        scratch.undo.push(Undo::overlay(partition, place));
    }

    /// Takes back one change of the overlay.
    pub(super) fn undo_overlay(&mut self, partition: PartitionRef, me: TxnId, change: OverlayUndo) {
        let OverlayUndo { place, key, mode_before, image_before } = change;
        let Ok(root) = self.root(partition, place) else { return };
        let Some(lock) = root.overlay.get_mut(&key) else { return };
        if let Some(image) = image_before {
            lock.image = image;
            return;
        }
        match mode_before {
            Some(mode) => {
                if let Some(held) = lock.holders.iter_mut().find(|(holder, _)| *holder == me) {
                    held.1 = mode;
                }
                self.woken.append(&mut lock.waiters);
            }
            None => self.drop_lock(partition, place, &key, me),
        }
    }

    /// Ends a transaction's lock on a row, with its image, and wakes who waits.
    pub(super) fn drop_lock(&mut self, partition: PartitionRef, place: Place, key: &[u8], me: TxnId) {
        let Ok(root) = self.root(partition, place) else { return };
        let Some(lock) = root.overlay.get_mut(key) else { return };
        let before = lock.holders.len();
        lock.holders.retain(|(holder, _)| *holder != me);
        let dropped = before - lock.holders.len();
        if lock.holders.is_empty() {
            lock.image = None;
        }
        self.woken.append(&mut lock.waiters);
        if lock.holders.is_empty() {
            root.overlay.remove(key);
        }
        // SAFETY: held by this transaction; `root` is not used any more.
        unsafe { partition.data_mut() }.locks -= dropped;
    }
}
