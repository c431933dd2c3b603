//! Isolation of interactive transactions beyond READ COMMITTED.
//!
//! REPEATABLE READ and SERIALIZABLE read at a snapshot: a closed epoch `S`, registered with the
//! first statement. While it is registered every later commit leaves the images it replaced —
//! of rows and of index entries — beside the trees, tagged with its own epoch, so that
//!
//! - a read takes the image as of `S` where there is one, the tree's row otherwise;
//! - a row was changed by somebody since exactly if it has an image superseded after `S`: a
//!   write or a lock of it fails (first updater wins, PostgreSQL 15, 13.2.2);
//! - a key or range that a SERIALIZABLE transaction read holds as read exactly if no key in it
//!   has such an image, absent keys (phantoms) included. COMMIT claims everything read and
//!   written, looks, and commits while nobody else can move: the transaction then stands in
//!   the serial order at its commit. One that wrote nothing stands there at `S`, unchecked.
//!
//! Checks of constraints and unique keys read what is committed now, whatever the snapshot.

use std::ops::{Bound, RangeBounds};

use super::{KeyRange, LockMode, Place, Txn};
use crate::id::Epoch;
use crate::partition::{ClaimSet, PartitionRef, Root};
use crate::program::Stop;
use crate::storage::KeyBuf;
use crate::storage::versions::Departure;
use crate::table::TableMeta;

/// How an interactive transaction sees what others commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isolation {
    /// Every statement sees the newest committed state.
    #[default]
    ReadCommitted,
    /// Every statement sees the state as of the first one.
    RepeatableRead,
    /// As before, and what was read must still hold at the commit.
    Serializable,
}

/// Something a SERIALIZABLE transaction read.
#[derive(Clone, Debug)]
pub(crate) enum ReadNote {
    Point(Place, Box<[u8]>),
    Range { place: Place, low: Bound<Box<[u8]>>, high: Bound<Box<[u8]>> },
}

/// Beyond this many notes a transaction counts as having read whole trees.
const NOTES_MAX: usize = 50_000;

/// Up to so many notes are looked through after every statement that wrote.
const NOTES_CHECKED_EARLY: usize = 500;

/// What a SERIALIZABLE transaction read so far.
#[derive(Default)]
pub(crate) struct ReadSet {
    notes: Vec<ReadNote>,
}

impl ReadSet {
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    pub fn notes(&self) -> &[ReadNote] {
        &self.notes
    }

    /// Whether a key of a tree was read.
    fn covers(&self, place: Place, key: &[u8]) -> bool {
        self.notes.iter().any(|note| match note {
            ReadNote::Point(other, read) => *other == place && read[..] == *key,
            ReadNote::Range { place: other, low, high } => {
                *other == place && (borrowed(low), borrowed(high)).contains(key)
            }
        })
    }

    fn add_point(&mut self, place: Place, key: &[u8]) {
        let known = self.notes.iter().rev().take(8).any(
            |note| matches!(note, ReadNote::Point(other, known) if *other == place && known[..] == *key),
        );
        if !known {
            self.add(ReadNote::Point(place, Box::from(key)));
        }
    }

    fn add_range(&mut self, place: Place, range: KeyRange<'_>) {
        let (low, high) = (range.low.map(Box::from), range.high.map(Box::from));
        self.add(ReadNote::Range { place, low, high });
    }

    fn add(&mut self, note: ReadNote) {
        self.notes.push(note);
        if self.notes.len() > NOTES_MAX {
            self.coarsen();
        }
    }

    /// Takes over what a statement read.
    pub fn append(&mut self, other: &mut ReadSet) {
        self.notes.append(&mut other.notes);
        if self.notes.len() > NOTES_MAX {
            self.coarsen();
        }
    }

    /// Exchanges the notes for whole trees.
    fn coarsen(&mut self) {
        let mut places: Vec<Place> = Vec::new();
        for note in self.notes.drain(..) {
            let (ReadNote::Point(place, _) | ReadNote::Range { place, .. }) = note;
            if !places.contains(&place) {
                places.push(place);
            }
        }
        self.notes.extend(places.into_iter().map(|place| ReadNote::Range {
            place,
            low: Bound::Unbounded,
            high: Bound::Unbounded,
        }));
    }

    /// Predicts the partitions of what was read. Reference tables are checked without a claim.
    pub fn claim_all(&self, claims: &mut ClaimSet) {
        for note in &self.notes {
            match note {
                ReadNote::Point(place, key) if !place.is_reference() => claims.add_point(place.group, key),
                ReadNote::Range { place, low, high } if !place.is_reference() => {
                    let range = KeyRange { low: borrowed(low), high: borrowed(high) };
                    claims.add_range(place.group, range.start(), range.end().as_deref());
                }
                _ => {}
            }
        }
    }
}

impl Txn<'_> {
    /// The epoch at which a tree is read; `None`: its newest committed state.
    #[inline]
    pub(super) fn reads_at(&self, place: Place) -> Option<Epoch> {
        self.snapshot.or_else(|| self.view_epoch()).filter(|_| !self.reads_newest && !self.is_own(place))
    }

    /// Whether a tree was made by this very transaction, so that nobody else knows it.
    pub(super) fn is_own(&self, place: Place) -> bool {
        self.own_trees.as_ref().is_some_and(|own| own.contains(&place.id))
    }

    /// From now on reads see what is committed now, whatever the transaction's snapshot:
    /// checks of constraints must not miss what others committed since. Answers what was so
    /// before, for the way back.
    pub fn read_newest_from_now(&mut self, newest: bool) -> bool {
        std::mem::replace(&mut self.reads_newest, newest)
    }

    /// From now on reads see what was committed in this epoch or before, which a registered snapshot keeps, and
    /// what the transaction has written. Answers what they saw before, for the way back; until then nothing is
    /// written.
    pub fn read_at(&mut self, epoch: Option<Epoch>) -> Option<Epoch> {
        std::mem::replace(&mut self.snapshot, epoch)
    }

    /// Stops with a conflict if somebody changed this row since the transaction's snapshot.
    pub fn require_unchanged(&mut self, table: &TableMeta, key: &[u8]) -> Result<(), Stop> {
        if self.snapshot.is_none() {
            return Ok(());
        }
        let place = Place::of(table);
        let partition = self.partition_for(place.group, key)?;
        self.check_unchanged(partition, place, key)
    }

    /// Remembers a read key, if this transaction must answer for it.
    #[inline]
    pub(super) fn note_read(&mut self, place: Place, key: &[u8]) {
        if self.notes_reads(place)
            && let Some(reads) = &mut self.reads
        {
            reads.add_point(place, key);
        }
    }

    /// Remembers a read range.
    pub(super) fn note_read_range(&mut self, place: Place, range: KeyRange<'_>) {
        if self.notes_reads(place)
            && let Some(reads) = &mut self.reads
        {
            reads.add_range(place, range);
        }
    }

    /// Whether reads of a tree are to be remembered now.
    pub(super) fn notes_reads(&self, place: Place) -> bool {
        self.reads.is_some() && !self.reads_newest && !self.is_own(place)
    }

    /// Stops if somebody committed a change of this row since the snapshot: what this
    /// transaction would write or lock is not what it sees.
    #[inline]
    pub(super) fn check_unchanged(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
    ) -> Result<(), Stop> {
        match (self.snapshot, self.view_epoch()) {
            (None, None) => Ok(()),
            _ if self.is_own(place) => Ok(()),
            (Some(snapshot), _) => self.check_unchanged_since(partition, place, key, snapshot),
            (None, Some(_)) if self.reads_newest => Ok(()),
            (None, Some(view)) => self.check_viewed(partition, place, key, view),
        }
    }

    /// What became of a row since `snapshot`.
    pub(super) fn departure_since(
        &self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        snapshot: Epoch,
    ) -> Result<Departure, Stop> {
        match place.is_reference() {
            true => Ok(Departure::None),
            false => Ok(self.root(partition, place)?.versions.departure_since(key, snapshot)),
        }
    }

    #[cold]
    pub(super) fn check_unchanged_since(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        snapshot: Epoch,
    ) -> Result<(), Stop> {
        if self.root(partition, place)?.has_unsettled() {
            self.settle_key(partition, place, key);
        }
        let root = self.root(partition, place)?;
        let me = self.transaction_id();
        if me.is_some_and(|me| root.image_of(key, me).is_some()) {
            // Written before: it was looked at then, and is locked since.
            return Ok(());
        }
        let (changed, is_there) = if place.is_reference() {
            let before = self.reference_at(place, snapshot)?.tree.get(key).cloned();
            let now = self.reference_tree(place)?.get(key);
            (now != before.as_ref(), now.is_some())
        } else {
            let changed = root.since > snapshot || root.changed_since(key, snapshot);
            let is_there = changed
                && match root.versions.departure_since(key, snapshot) {
                    Departure::None => root.row(key).row.is_some(),
                    // What is there now, if anything is, is another row.
                    Departure::Deleted => false,
                    // Elsewhere, and not gone.
                    Departure::Moved | Departure::MovedAway => true,
                };
            (changed, is_there)
        };
        match (changed, is_there) {
            (false, _) => Ok(()),
            (true, true) => Err(Stop::ConcurrentUpdate),
            (true, false) => Err(Stop::ConcurrentDelete),
        }
    }

    /// At COMMIT, with everything claimed: whether all that was read is as it was at the
    /// snapshot.
    pub(super) fn reads_hold(&mut self, notes: &[ReadNote], snapshot: Epoch) -> Result<(), Stop> {
        // A tree of a group of its own goes with that: an index that was dropped, or put elsewhere.
        let gone = |stop: Stop| if stop == Stop::Recompile { Stop::NotSerializable } else { stop };
        for note in notes {
            let holds = match note {
                ReadNote::Point(place, key) if place.is_reference() => {
                    self.reference_holds(*place, KeyRange::point(key), snapshot)?
                }
                ReadNote::Range { place, low, high } if place.is_reference() => {
                    let range = KeyRange { low: borrowed(low), high: borrowed(high) };
                    self.reference_holds(*place, range, snapshot)?
                }
                ReadNote::Point(place, key) => {
                    let partition = self.partition_for(place.group, key).map_err(gone)?;
                    let root = self.root(partition, *place).map_err(|_| Stop::NotSerializable)?;
                    root.since <= snapshot && !root.changed_since(key, snapshot)
                }
                ReadNote::Range { place, low, high } => {
                    let range = KeyRange { low: borrowed(low), high: borrowed(high) };
                    let mut holds = true;
                    for partition in self.claim_range(*place, range).map_err(gone)? {
                        let root: &Root = self.root(partition, *place).map_err(|_| Stop::NotSerializable)?;
                        holds &= root.since <= snapshot
                            && !root.range_changed_since(range.low, range.high, snapshot);
                    }
                    holds
                }
            };
            if !holds {
                return Err(Stop::NotSerializable);
            }
        }
        Ok(())
    }

    /// At the end of a statement that wrote: whether what was read is as it was, as far as the
    /// partitions held tell. A transaction that cannot commit need not go on to its COMMIT.
    pub(super) fn reads_hold_here(&mut self) -> bool {
        let (Some(snapshot), Some(interactive)) = (self.snapshot, self.interactive.clone()) else {
            return true;
        };
        let Some(reads) = &self.reads else { return true };
        let before = interactive.reads();
        if reads.notes.len() + before.notes.len() > NOTES_CHECKED_EARLY {
            return true;
        }
        reads.notes.iter().chain(&before.notes).all(|note| {
            let (ReadNote::Point(place, _) | ReadNote::Range { place, .. }) = note;
            let held = self.held().iter().filter(|held| held.group() == place.group && !place.is_reference());
            held.copied().all(|partition| {
                let Ok(root) = self.root(partition, *place) else { return true };
                !match note {
                    ReadNote::Point(_, key) => root.changed_since(key, snapshot),
                    ReadNote::Range { low, high, .. } => {
                        root.range_changed_since(borrowed(low), borrowed(high), snapshot)
                    }
                }
            })
        })
    }

    /// A key that is taken: if a concurrent transaction took it and this one has seen it free,
    /// there is no order of the two in which both are right.
    pub(super) fn check_duplicate(
        &mut self,
        table: &TableMeta,
        place: Place,
        key: &[u8],
    ) -> Result<(), Stop> {
        let (Some(snapshot), Some(interactive)) = (self.snapshot, self.interactive.clone()) else {
            return Ok(());
        };
        if self.reads.is_none() || place.is_reference() {
            return Ok(());
        }
        let partition = self.partition_for(place.group, key)?;
        let root = self.root(partition, place)?;
        if !root.changed_since(key, snapshot) {
            return Ok(());
        }
        let storage_key = root.row(key).row.cloned();
        let read = |reads: &ReadSet| {
            reads.covers(place, key)
                || storage_key.as_deref().is_some_and(|key| reads.covers(Place::of(table), key))
        };
        if self.reads.as_ref().is_some_and(read) || read(&interactive.reads()) {
            return Err(Stop::NotSerializable);
        }
        Ok(())
    }

    /// Whether somebody changed what [`LockMode::KeyShare`] protects of a row since the
    /// snapshot: its presence, and its unique keys.
    fn keys_changed_since(
        &mut self,
        partition: PartitionRef,
        table: &TableMeta,
        key: &[u8],
        snapshot: Epoch,
    ) -> Result<bool, Stop> {
        let place = Place::of(table);
        let root = self.root(partition, place)?;
        let (Some(before), Some(now)) = (root.row_at(key, snapshot), root.row(key).row) else {
            return Ok(true);
        };
        Ok(table.indexes.iter().filter(|index| index.def.unique).any(|index| {
            let (mut old, mut new) = (KeyBuf::new(), KeyBuf::new());
            table.index_key(index, before, key, &mut old);
            table.index_key(index, now, key, &mut new);
            old != new
        }))
    }

    /// As [`Txn::check_unchanged`], for a lock of a row: one that protects only the row's key
    /// does not mind other changes.
    pub(super) fn check_lockable(
        &mut self,
        partition: PartitionRef,
        table: &TableMeta,
        key: &[u8],
        mode: LockMode,
    ) -> Result<(), Stop> {
        let place = Place::of(table);
        if mode == LockMode::KeyShare
            && !place.is_reference()
            && let Some(epoch) = self.snapshot.or_else(|| self.view_epoch()).filter(|_| !self.is_own(place))
            && self.check_unchanged_since(partition, place, key, epoch) == Err(Stop::ConcurrentUpdate)
            && !self.keys_changed_since(partition, table, key, epoch)?
        {
            return Ok(());
        }
        self.check_unchanged(partition, place, key)
    }

    /// A reference table has one version vector for all its rows, so the rows are compared. The
    /// commit point checks that the table compared with is still the current one.
    fn reference_holds(&mut self, place: Place, range: KeyRange<'_>, snapshot: Epoch) -> Result<bool, Stop> {
        let before = self.reference_at(place, snapshot).map_err(|_| Stop::NotSerializable)?;
        let now = self.reference_tree(place).map_err(|_| Stop::NotSerializable)?;
        let rows = |tree: &super::SharedTree| {
            let mut rows = Vec::new();
            tree.scan(range.low, range.high, |key, row| {
                rows.push((Box::<[u8]>::from(key), row.clone()));
                std::ops::ControlFlow::Continue(())
            });
            rows
        };
        Ok(rows(&before.tree) == rows(now))
    }
}

fn borrowed(bound: &Bound<Box<[u8]>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(&key[..]),
        Bound::Excluded(key) => Bound::Excluded(&key[..]),
        Bound::Unbounded => Bound::Unbounded,
    }
}
