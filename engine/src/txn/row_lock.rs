//! Row locks and uncommitted images of interactive transactions.
//!
//! Both live beside the rows, in the partition that holds them, keyed by key ([`crate::partition::Root`]): the
//! rows' tree itself holds committed rows only, so everybody else reads beneath uncommitted writes
//! without noticing them. A writer that meets somebody else's lock enqueues there, is undone,
//! gives its partitions back and runs again when woken: nobody waits while holding a partition.
//!
//! ```text
//!   FOR UPDATE      lock in the map ──┐ the row is written                 taken back to before that:
//!   a row written                     └──► image, which is the lock        image gone, lock in the map
//!   UPDATE at once  ─────────────────────► image                           taken back: nothing
//! ```
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
//! - [`mode`]    the four modes    - [`waiter`] who waits, and who is next
//! - [`writer`]  a transaction as those know it who meet its images
//!
//! Invariant: an image belongs to the one holder of a mode that excludes other writers.
//! Invariant: who waits is in the list of a row that somebody locks, or behind one that is about to run.

mod mode;
mod waiter;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use self::mode::LockMode;
use self::waiter::next_of;
pub(crate) use self::waiter::{RowWaiter, push_waiter};
pub(crate) use self::writer::{Outcome as WriterOutcome, Writer};
use super::limits::{ImageWeight, NewImage};
use super::{InteractiveState, LockWait, OverlayChange, OverlayUndo, Place, Txn, Undo, WaitGraph};
use crate::client::WaitOn;
use crate::engine::Shared;
use crate::id::TxnId;
use crate::locks::ObjectMode;
use crate::partition::{LetGo, PartitionRef, Root, Written};
use crate::program::Stop;
use crate::storage::StoredImage;
use crate::storage::row::entry_bytes;
use crate::storage::versions::Departure;
use crate::table::TableMeta;

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
        let held = self.root(partition, place)?.lock_of(key, me);
        match held.is_some_and(|mode| mode >= LockMode::NoKeyUpdate) {
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
        if !self.root(partition, place)?.has_row_locks() {
            return Ok(());
        }
        self.check_conflict(partition, place, key, mode, LockWait::Wait)
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
        if !root.has_row_locks() {
            return Ok(());
        }
        self.check_conflict(partition, place, key, mode, wait)
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
        self.check_conflict(partition, place, key, mode, wait)?;
        if let Some(touched) = &mut self.touched {
            touched.push((partition, place, Box::from(key), mode));
        }
        Ok(())
    }

    #[cold]
    fn check_conflict(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<(), Stop> {
        #[cfg(test)]
        if self.root(partition, place)?.ended_at(key).is_some() {
            crate::simulation::happened("settled for a writer");
        }
        self.settle_key(partition, place, key);
        let root = self.root(partition, place)?;
        let holders = root.holders(key);
        if holders.is_empty() {
            return Ok(());
        }
        let me = self.transaction_id().or(self.finishing).or(self.waits_as());
        let mut blockers: Vec<TxnId> = holders
            .iter()
            .filter(|&&(holder, held)| Some(holder) != me && held.conflicts(mode))
            .map(|&(holder, _)| holder)
            .collect();
        let holds = holders.iter().any(|&(holder, _)| Some(holder) == me);
        if blockers.is_empty() && !holds {
            // Nobody overtakes the starved, but who holds the row already is waited for.
            let insisting = root.waiters(key).iter().filter(|waiter| {
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
        let since = self.shared.clock.monotonic_nanos();
        let mut waiter = RowWaiter::for_row(me, (place.id, key), mode, since, blockers);
        waiter.insists = self.locker.is_some();
        waiter.keeps = self.interactive.is_some() || self.locker.is_some();
        let waiter = Arc::new(waiter);
        self.publish_wait(WaitOn::Row(place.id), &waiter);
        match self.behind_at(place, key) {
            behind if behind.is_empty() => {
                root.change_waiters(key, |waiters| push_waiter(waiters, waiter.clone()));
            }
            behind => {
                // They have waited longer than those who have come since.
                join(root, key, behind, &self.shared.waits);
                root.change_waiters(key, |waiters| waiters.insert(0, waiter.clone()));
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
            let (before, is_enough) = root.hold(key, owner.id, *mode);
            if is_enough {
                continue;
            }
            note_holder(self.shared, *place, root, key, owner.id, (before, *mode));
            let change = OverlayChange::of_lock(before);
            notes.push(OverlayUndo {
                place: *place,
                key: key.clone(),
                change,
                weight: ImageWeight::default(),
            });
        }
        if !owner.keep_notes(&mut notes) {
            for (partition, place, key, _) in touched {
                self.drop_lock(partition, place, &key, owner.id);
            }
        }
    }

    /// Has this transaction lock a row, or lock it in a stronger mode.
    pub(super) fn take_lock(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        mode: LockMode,
    ) -> Result<(), Stop> {
        let Some(me) = self.transaction_id() else { return Ok(()) };
        let root = self.root(partition, place)?;
        let (before, is_enough) = root.hold(key, me, mode);
        if !is_enough {
            note_holder(self.shared, place, root, key, me, (before, mode));
        }
        join(root, key, self.behind_at(place, key), &self.shared.waits);
        if !is_enough {
            self.note_overlay(partition, place, key, OverlayChange::of_lock(before), ImageWeight::default());
        }
        Ok(())
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
        image: NewImage<'_>,
        mode: LockMode,
    ) -> Result<(), Stop> {
        let root = self.root(partition, place)?;
        let Some(interactive) = &self.interactive else { return Ok(()) };
        if place.is_reference() {
            interactive.set_wrote_references();
        }
        let departure = match image.row {
            Some(_) => Departure::None,
            None => self.leaving,
        };
        let me = interactive.id;
        let written = root.write_image(key, &interactive.writer, mode, image.row, departure);
        let Written { mode_before, mode, image_before } = written;
        if mode_before != Some(mode) {
            note_holder(self.shared, place, root, key, me, (mode_before, mode));
        }
        join(root, key, self.behind_at(place, key), &self.shared.waits);
        self.added_bytes += entry_bytes(key, image.row.unwrap_or(&[]));
        let length = |image: &StoredImage| image.image().row.map_or(0, <[u8]>::len);
        let weight = image.weight(key, image_before.as_ref().map(length));
        // Whoever takes a new lock back takes the image along.
        let change = match (mode_before, image_before) {
            (None, _) => OverlayChange::Locked,
            (Some(before), image_before) => {
                if before != mode {
                    let stronger = OverlayChange::of_lock(Some(before));
                    self.note_overlay(partition, place, key, stronger, ImageWeight::default());
                }
                image_before.map_or(OverlayChange::FirstImage, OverlayChange::Image)
            }
        };
        self.note_overlay(partition, place, key, change, weight);
        self.weigh(weight.into())
    }

    /// Remembers how to undo a change of the overlay, here and for savepoints of the
    /// interactive transaction.
    fn note_overlay(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        change: OverlayChange,
        weight: ImageWeight,
    ) {
        let scratch = &mut self.worker.scratch;
        scratch.overlay_undo.push(OverlayUndo { place, key: Box::from(key), change, weight });
        scratch.undo.push(Undo::overlay(partition, place));
    }

    /// Takes back one change of the overlay.
    pub(super) fn undo_overlay(&mut self, partition: PartitionRef, me: TxnId, undo: OverlayUndo) {
        let OverlayUndo { place, key, change, .. } = undo;
        let Ok(root) = self.root(partition, place) else { return };
        match change {
            OverlayChange::Locked => self.drop_lock(partition, place, &key, me),
            OverlayChange::Strengthened(mode) => {
                let Some(held) = root.lock_of(&key, me) else { return };
                count_reference_key(self.shared, place, Some(held), Some(mode));
                root.set_lock(&key, me, mode);
                root.change_waiters(&key, |waiters| self.woken.append(waiters));
            }
            OverlayChange::FirstImage => root.take_image_back(&key, me),
            OverlayChange::Image(before) => root.put_image_back(&key, before),
        }
    }

    /// Ends a transaction's lock on a row, with its image, and wakes who waits.
    pub(super) fn drop_lock(&mut self, partition: PartitionRef, place: Place, key: &[u8], me: TxnId) {
        let Some(root) = self.root_whatever(partition, place) else { return };
        let Some((mode, let_go)) = root.let_go(key, me) else { return };
        count_reference_key(self.shared, place, Some(mode), None);
        match let_go {
            // Who waits looks whether that is in its way, and waits no longer than so often.
            LetGo::Kept(mut waiters) => self.woken.append(&mut waiters),
            LetGo::Free(waiters) => next_of(waiters, &mut self.woken),
        }
    }

    /// The root of a tree in a held partition, whose definition may be another one by now.
    pub(super) fn root_whatever(&self, partition: PartitionRef, place: Place) -> Option<&'static mut Root> {
        // SAFETY: held by this transaction. Callers keep the reference only until their next access to the
        // same partition.
        let data = unsafe { partition.data_mut() };
        data.roots.get_mut(place.root as usize).filter(|root| root.id == Some(place.id))
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

/// A transaction locks a row, or locks it in a stronger mode than before: from one mode to another.
fn note_holder(
    shared: &Shared,
    place: Place,
    root: &Root,
    key: &[u8],
    who: TxnId,
    (before, mode): (Option<LockMode>, LockMode),
) {
    count_reference_key(shared, place, before, Some(mode));
    // Who waits already may have to wait for this one now, too.
    let waiters = root.waiters(key).iter();
    for waiter in waiters.filter(|waiter| waiter.who != Some(who) && waiter.mode.conflicts(mode)) {
        waiter.also_behind(who, &shared.waits);
    }
}

/// Puts some who wait for a row before those in its list, and says whom they wait for.
fn join(root: &mut Root, key: &[u8], mut waiting: Vec<Arc<RowWaiter>>, waits: &WaitGraph) {
    if waiting.is_empty() {
        return;
    }
    let holders = root.holders(key);
    for waiter in &waiting {
        let in_the_way =
            |&&(who, held): &&(TxnId, LockMode)| Some(who) != waiter.who && held.conflicts(waiter.mode);
        waiter.now_behind(holders.iter().filter(in_the_way).map(|(who, _)| *who).collect(), waits);
    }
    root.change_waiters(key, |waiters| {
        waiting.append(waiters);
        *waiters = waiting;
    });
}
