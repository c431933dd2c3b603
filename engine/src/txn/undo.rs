//! The undo list, and savepoints inside one program.
//!
//! Keys and old images are copied into one arena per thread, so undo costs no allocation per
//! write. The list also tells the commit point which before-images snapshots may need. Offsets in the
//! arena have 32 bits, which keeps entries small: what would not fit is refused before it is written
//! ([`super::limits`]).

use std::ops::Range;

use super::limits::ImageWeight;
use super::{LockMode, Place, Txn};
use crate::executor::Scratch;
use crate::monitor::looked_at;
use crate::partition::PartitionRef;
use crate::storage::row::entry_bytes;
use crate::storage::versions::Departure;
use crate::storage::{Row, StoredImage};
use crate::table::TableMeta;

/// How to take back one write.
pub(crate) struct Undo {
    pub kind: UndoKind,
    pub partition: PartitionRef,
    pub place: Place,
    /// In the arena.
    pub key: Range<u32>,
    /// In the arena: the row or entry as it was. Empty for an insertion.
    pub image: Range<u32>,
    /// A row of a table, which snapshots read; not an index entry.
    pub row: bool,
    /// What became of the row by it.
    pub departure: Departure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UndoKind {
    Inserted,
    Updated,
    Removed,
    /// The newest of the overlay's own list.
    Overlay,
}

impl Undo {
    pub fn overlay(partition: PartitionRef, place: Place) -> Self {
        Self {
            kind: UndoKind::Overlay,
            partition,
            place,
            key: 0..0,
            image: 0..0,
            row: false,
            departure: Departure::None,
        }
    }
}

/// How to take back one change of the overlay: of a row's lock or image.
pub(crate) struct OverlayUndo {
    pub place: Place,
    pub key: Box<[u8]>,
    pub change: OverlayChange,
    /// What the image that came with it has added to its transaction.
    pub weight: ImageWeight,
}

/// What was changed of a row's lock and image.
pub(crate) enum OverlayChange {
    /// It was not locked, and had no image: whatever has come since goes with the lock.
    Locked,
    /// It was locked in this weaker mode.
    Strengthened(LockMode),
    /// It was locked and had no image.
    FirstImage,
    /// It had this image.
    Image(StoredImage),
}

impl OverlayChange {
    /// That of a lock that was held so before.
    pub fn of_lock(before: Option<LockMode>) -> Self {
        before.map_or(Self::Locked, Self::Strengthened)
    }
}

/// A point to return to inside one program: an EXCEPTION block's beginning.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
    undo: usize,
    redo: usize,
}

impl Txn<'_> {
    /// Marks a point to return to.
    pub fn savepoint(&mut self) -> Savepoint {
        let scratch = &self.worker.scratch;
        Savepoint { undo: scratch.undo.len(), redo: scratch.redo.len() }
    }

    /// Takes back every write since `savepoint`. Definitions changed by
    /// [`Txn::ddl`] since then are not: a program that changes definitions aborts as a whole.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        while self.worker.scratch.undo.len() > savepoint.undo {
            let Some(entry) = self.worker.scratch.undo.pop() else { break };
            self.take_back(entry);
        }
        self.look_beneath_again();
        self.worker.scratch.redo.truncate(savepoint.redo);
    }

    /// Whether the program has written anything since `savepoint`, or locked a row.
    pub fn has_worked_since(&self, savepoint: Savepoint) -> bool {
        self.worker.scratch.undo.len() > savepoint.undo
    }

    /// Whether the program has written the row with this storage key since `savepoint`.
    pub fn has_written_since(&self, savepoint: Savepoint, table: &TableMeta, key: &[u8]) -> bool {
        self.written_since(savepoint, table).any(|written| written == key)
    }

    /// The storage keys of the rows of a table that the program has written since `savepoint`, some of
    /// them more than once.
    pub fn written_since(&self, savepoint: Savepoint, table: &TableMeta) -> impl Iterator<Item = &[u8]> {
        let scratch = &self.worker.scratch;
        let place = Place::of(table);
        let since = scratch.undo.get(savepoint.undo..).unwrap_or_default();
        let rows = since.iter().filter(move |undo| undo.kind != UndoKind::Overlay && undo.place == place);
        let rows = rows.map(|undo| &scratch.arena[undo.key.start as usize..undo.key.end as usize]);
        let beside = since.iter().filter(|undo| undo.kind == UndoKind::Overlay);
        let noted = scratch.overlay_undo.len().saturating_sub(beside.clone().count());
        // A new lock's note stands for the image that came with it, if one did.
        let images = beside.zip(&scratch.overlay_undo[noted..]).filter(move |(undo, note)| {
            note.place == place
                && match note.change {
                    OverlayChange::Locked => self.has_image(undo.partition, place, &note.key),
                    OverlayChange::Strengthened(_) => false,
                    OverlayChange::FirstImage | OverlayChange::Image(_) => true,
                }
        });
        rows.chain(images.map(|(_, note)| &note.key[..]))
    }

    /// Whether the transaction has an uncommitted image of a row.
    fn has_image(&self, partition: PartitionRef, place: Place, key: &[u8]) -> bool {
        let image = |me| Some(self.root(partition, place).ok()?.image_of(key, me).is_some());
        self.transaction_id().and_then(image).unwrap_or(false)
    }

    /// Notes where the run has written, before the commit point forgets how to take it back.
    pub(super) fn note_written(&mut self) {
        let Scratch { undo, overlay_undo, arena, footprint, .. } = &mut self.worker.scratch;
        for at in looked_at(undo.len()) {
            let entry = &undo[at];
            // Of the overlay's the list beside it knows the keys.
            if entry.kind != UndoKind::Overlay {
                let key = &arena[entry.key.start as usize..entry.key.end as usize];
                footprint.note_write(entry.place.group, key);
            }
        }
        for at in looked_at(overlay_undo.len()) {
            let note = &overlay_undo[at];
            footprint.note_write(note.place.group, &note.key);
        }
    }

    /// Takes back everything.
    pub(super) fn undo_all(&mut self) {
        self.reads_newest = false;
        self.rollback_to(Savepoint { undo: 0, redo: 0 });
        // What a large one needed is given back, as after a commit: it counts until then.
        self.worker.scratch.clear_writes();
        self.undo_ddl();
        self.reference_writes.clear();
        if std::mem::take(&mut self.decides) {
            self.worker.name_parts(None);
        }
    }

    fn take_back(&mut self, entry: Undo) {
        let Undo { kind, partition, place, key, image, .. } = entry;
        if kind == UndoKind::Overlay {
            if let Some(change) = self.worker.scratch.overlay_undo.pop()
                && let Some(me) = self.transaction_id()
            {
                self.images -= change.weight.into();
                self.undo_overlay(partition, me, change);
            }
            return;
        }
        let arena = std::mem::take(&mut self.worker.scratch.arena);
        let key_bytes = &arena[key.start as usize..key.end as usize];
        let image_bytes = &arena[image.start as usize..image.end as usize];
        // SAFETY: held by this transaction; the reference ends with the statement.
        let stamp = unsafe { partition.data_mut() }.sequence;
        let mut bytes = 0;
        match self.tree_for_write(partition, place) {
            Ok(mut tree) => match kind {
                UndoKind::Inserted => {
                    let size = tree.remove(key_bytes, stamp).map_or(0, |row| entry_bytes(key_bytes, &row));
                    bytes = -size;
                }
                UndoKind::Updated => {
                    let new = tree.insert(key_bytes, Row::from(image_bytes), stamp);
                    bytes = image_bytes.len() as i64 - new.map_or(0, |row| row.len() as i64);
                }
                UndoKind::Removed => {
                    tree.insert(key_bytes, Row::from(image_bytes), stamp);
                    bytes = entry_bytes(key_bytes, image_bytes);
                }
                UndoKind::Overlay => {}
            },
            Err(_) => debug_assert!(self.ddl.is_some(), "a root goes only with its table"),
        }
        self.account(partition, bytes);
        // The arena shrinks with the list: entries were appended in the same order.
        self.worker.scratch.arena = arena;
        self.worker.scratch.arena.truncate(key.start as usize);
    }
}
