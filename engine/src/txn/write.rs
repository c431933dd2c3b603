//! Writes: rows and the entries of their indexes, with undo and redo.
//!
//! A one-shot writes into the trees; a statement of an interactive transaction writes
//! uncommitted images beside them. Both go through [`Txn::put_new`], [`Txn::replace`] and
//! [`Txn::take_out`], so what a row means for its indexes is said once.

use smallvec::SmallVec;

use super::limits::{NewImage, UNDO_BYTES_MAX};
use super::undo::UndoKind;
use super::{Inserted, LockMode, LockWait, Place, Txn, Undo};
use crate::cell::Cell;
use crate::heap;
use crate::id::TxnId;
use crate::log::redo;
use crate::partition::PartitionRef;
use crate::program::Stop;
use crate::storage::row::entry_bytes;
use crate::storage::versions::Departure;
use crate::storage::{KeyBuf, Row};
use crate::table::{IndexMeta, TableMeta};

/// What a write may touch of a row, for the row lock it needs.
const WRITE: LockMode = LockMode::NoKeyUpdate;

impl Txn<'_> {
    /// Inserts a row, encoded by the table's layout, under its storage key, and the entries of
    /// its indexes.
    pub fn insert(&mut self, table: &TableMeta, key: &[u8], row: &[u8]) -> Result<Inserted, Stop> {
        self.before_write()?;
        let place = Place::of(table);
        let savepoint = self.savepoint();
        if !self.put_new(place, key, row, Some(table))? {
            self.check_duplicate(table, place, key)?;
            return Ok(Inserted::DuplicateKey(None));
        }
        for index in &table.indexes {
            let mut entry = KeyBuf::new();
            table.index_key(index, row, key, &mut entry);
            if !self.put_new(Place::of_index(table, index), &entry, key, None)? {
                self.check_duplicate(table, Place::of_index(table, index), &entry)?;
                self.rollback_to(savepoint);
                return Ok(Inserted::DuplicateKey(Some(index.def.id)));
            }
            self.count_writes(index, 1);
        }
        Ok(Inserted::Ok)
    }

    /// Changes columns of a row, none of them part of the storage key, and moves the entries
    /// of the indexes that contain them.
    pub fn update(
        &mut self,
        table: &TableMeta,
        key: &[u8],
        changes: &[(u16, Cell<'_>)],
    ) -> Result<Inserted, Stop> {
        debug_assert!(
            changes.iter().all(|(column, _)| table.def.key.iter().all(|part| part.column != *column))
        );
        self.before_write()?;
        let place = Place::of(table);
        let partition = self.partition_for(place.group, key)?;
        self.check_lock(partition, place, key, WRITE, LockWait::Wait)?;
        self.check_unchanged(partition, place, key)?;
        let affected: SmallVec<[&IndexMeta; 4]> = table
            .indexes
            .iter()
            .filter(|index| index.depends_on(changes.iter().map(|(column, _)| *column)))
            .collect();
        #[cfg(test)]
        let affected = match crate::planted::is(crate::planted::Bug::DeclaredUnattended) {
            true => affected.into_iter().filter(|index| table.def.indexes.contains(&index.def)).collect(),
            false => affected,
        };
        let savepoint = self.savepoint();
        if affected.is_empty() && self.interactive.is_none() {
            return self.update_in_place(partition, table, place, key, changes);
        }
        // The old and the new row are needed whole.
        let Some(old) = self.read_newest(place, key)?.map(Row::from) else { return Ok(Inserted::Missing) };
        let mut new = old.clone();
        let _ = table.layout.apply(&mut new, changes);
        // Nothing is to be read from a row that is not whole.
        self.check_size(key, new.len())?;
        let keys: SmallVec<[(&IndexMeta, KeyBuf, KeyBuf); 4]> = affected
            .into_iter()
            .map(|index| {
                let (mut before, mut after) = (KeyBuf::new(), KeyBuf::new());
                table.index_key(index, &old, key, &mut before);
                table.index_key(index, &new, key, &mut after);
                (index, before, after)
            })
            .filter(|(_, before, after)| before != after)
            .collect();
        // Others may rely on a unique key: whoever changes it excludes them.
        let mode = if keys.iter().any(|(index, ..)| index.def.unique) { LockMode::Update } else { WRITE };
        if mode != WRITE {
            self.check_lock(partition, place, key, mode, LockWait::Wait)?;
        }
        if self.interactive.is_some() {
            let image = NewImage { row: Some(&new), replaces: old.len(), logged: true };
            self.write_image(partition, place, key, image, mode)?;
        } else {
            let updated = self.update_in_place(partition, table, place, key, changes)?;
            if updated != Inserted::Ok {
                return Ok(updated);
            }
        }
        for (index, before, after) in keys {
            let place = Place::of_index(table, index);
            self.take_out(place, &before, None)?;
            if !self.put_new(place, &after, key, None)? {
                self.check_duplicate(table, place, &after)?;
                self.rollback_to(savepoint);
                return Ok(Inserted::DuplicateKey(Some(index.def.id)));
            }
            self.count_writes(index, 2);
        }
        Ok(Inserted::Ok)
    }

    /// As [`Txn::delete`], of a row that goes to another key, or to another table (`departure`).
    pub fn take_away(&mut self, table: &TableMeta, key: &[u8], departure: Departure) -> Result<bool, Stop> {
        self.leaving = departure;
        let deleted = self.delete(table, key);
        self.leaving = Departure::Deleted;
        deleted
    }

    /// Deletes a row and the entries of its indexes; whether it was there.
    pub fn delete(&mut self, table: &TableMeta, key: &[u8]) -> Result<bool, Stop> {
        self.before_removal()?;
        let place = Place::of(table);
        if table.indexes.is_empty() {
            return self.take_out(place, key, Some(table));
        }
        let partition = self.partition_for(place.group, key)?;
        self.check_lock(partition, place, key, LockMode::Update, LockWait::Wait)?;
        self.check_unchanged(partition, place, key)?;
        let Some(old) = self.read_newest(place, key)?.map(Row::from) else { return Ok(false) };
        if !self.take_out(place, key, Some(table))? {
            return Ok(false);
        }
        for index in &table.indexes {
            let mut entry = KeyBuf::new();
            table.index_key(index, &old, key, &mut entry);
            self.take_out(Place::of_index(table, index), &entry, None)?;
            self.count_writes(index, 1);
        }
        Ok(true)
    }

    /// Counts entries of an index that are put in or taken out.
    #[inline]
    fn count_writes(&self, index: &IndexMeta, writes: u64) {
        index.uses.add_writes(self.counter(), writes);
    }

    /// The row as it is now, this transaction's own image before the committed one: what a
    /// write meets, whatever the snapshot shows.
    fn read_newest(&mut self, place: Place, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        self.read_as_of(place, key, None, true)
    }

    /// What every write checks first. Rows that were accepted hold what they hold: only what adds to
    /// them asks whether there is memory for more.
    #[inline]
    fn before_write(&mut self) -> Result<(), Stop> {
        debug_assert!(!self.read_only, "a read-only submission wrote");
        self.worker.admit(self.shared)?;
        if self.worker.memory.exceeded(&self.shared.memory) || heap::rows_exceed() {
            Err(Stop::OutOfMemory)
        } else {
            Ok(())
        }
    }

    /// What a write checks first that makes the database no larger: its undo and redo are work on its
    /// way, so that a database which has taken all there is can be made smaller.
    #[inline]
    fn before_removal(&mut self) -> Result<(), Stop> {
        debug_assert!(!self.read_only, "a read-only submission wrote");
        self.worker.admit(self.shared)?;
        if heap::work_exceeds(0) { Err(Stop::OutOfMemory) } else { Ok(()) }
    }

    /// Puts an entry that must not be there yet; false if it is. `table` is set for rows, whose
    /// redo is captured; index entries are rebuilt at recovery.
    pub(super) fn put_new(
        &mut self,
        place: Place,
        key: &[u8],
        value: &[u8],
        table: Option<&TableMeta>,
    ) -> Result<bool, Stop> {
        self.check_size(key, value.len())?;
        let partition = self.partition_for(place.group, key)?;
        self.check_lock(partition, place, key, LockMode::Update, LockWait::Wait)?;
        if self.interactive.is_some() {
            if self.read_newest(place, key)?.is_some() {
                return Ok(false);
            }
            let image = NewImage { row: Some(value), replaces: 0, logged: table.is_some() };
            self.write_image(partition, place, key, image, LockMode::Update)?;
            return Ok(true);
        }
        self.check_room(key)?;
        let sequence = next_sequence(partition);
        let mut tree = self.tree_for_write(partition, place)?;
        if tree.insert_new(key, Row::from(value), sequence).is_err() {
            // The refusal depends on what is there.
            self.depend_on_leaf(partition, place, key)?;
            return Ok(false);
        }
        self.account(partition, entry_bytes(key, value));
        self.note(UndoKind::Inserted, partition, place, key, None, table.is_some());
        if table.is_some() {
            redo::put(&mut self.worker.scratch.redo, place.id, key, value);
        }
        Ok(true)
    }

    /// Takes an entry out; whether it was there.
    pub(super) fn take_out(
        &mut self,
        place: Place,
        key: &[u8],
        table: Option<&TableMeta>,
    ) -> Result<bool, Stop> {
        let partition = self.partition_for(place.group, key)?;
        self.check_lock(partition, place, key, LockMode::Update, LockWait::Wait)?;
        if self.interactive.is_some() {
            if table.is_some() {
                self.check_unchanged(partition, place, key)?;
            }
            let Some(replaces) = self.read_newest(place, key)?.map(<[u8]>::len) else { return Ok(false) };
            let image = NewImage { row: None, replaces, logged: table.is_some() };
            self.write_image(partition, place, key, image, LockMode::Update)?;
            return Ok(true);
        }
        let room = self.check_room(key)?;
        let sequence = next_sequence(partition);
        let mut tree = self.tree_for_write(partition, place)?;
        let Some(old) = tree.remove(key, sequence) else {
            self.depend_on_leaf(partition, place, key)?;
            return Ok(false);
        };
        if old.len() > room {
            tree.insert(key, old, sequence);
            return Err(Stop::TransactionTooLarge);
        }
        self.account(partition, -entry_bytes(key, &old));
        self.note(UndoKind::Removed, partition, place, key, Some(&old), table.is_some());
        if table.is_some() {
            redo::delete(&mut self.worker.scratch.redo, place.id, key);
        }
        Ok(true)
    }

    fn update_in_place(
        &mut self,
        partition: PartitionRef,
        table: &TableMeta,
        place: Place,
        key: &[u8],
        changes: &[(u16, Cell<'_>)],
    ) -> Result<Inserted, Stop> {
        let room = self.check_room(key)?;
        // The old image goes to the arena while the leaf is at hand.
        let mut arena = std::mem::take(&mut self.worker.scratch.arena);
        let mut records = std::mem::take(&mut self.worker.scratch.redo);
        let sequence = next_sequence(partition);
        let key_at = append(&mut arena, key);
        let image_start = arena.len();
        let updated = match self.tree_for_write(partition, place) {
            Ok(mut tree) => tree.update(key, sequence, |row| {
                if row.len() > room {
                    return None;
                }
                arena.extend_from_slice(row);
                let touched = table.layout.apply(row, changes);
                redo::update(&mut records, place.id, key, (&arena[image_start..], row), &touched);
                Some(row.len())
            }),
            Err(stop) => {
                arena.truncate(key_at.start as usize);
                self.worker.scratch.arena = arena;
                self.worker.scratch.redo = records;
                return Err(stop);
            }
        };
        self.worker.scratch.redo = records;
        // There was room for the image: see above.
        let image = image_start as u32..arena.len() as u32;
        let Some(Some(len)) = updated else {
            arena.truncate(key_at.start as usize);
            self.worker.scratch.arena = arena;
            if updated.is_some() {
                return Err(Stop::TransactionTooLarge);
            }
            self.depend_on_leaf(partition, place, key)?;
            return Ok(Inserted::Missing);
        };
        let grown = len as i64 - i64::from(image.end - image.start);
        self.worker.scratch.arena = arena;
        self.worker.scratch.undo.push(Undo {
            kind: UndoKind::Updated,
            partition,
            place,
            key: key_at,
            image,
            row: true,
            departure: Departure::None,
        });
        if grown != 0 {
            self.account(partition, grown);
        }
        // Written and noted already: whoever is refused takes it back.
        self.check_size(key, len)?;
        Ok(Inserted::Ok)
    }

    /// Puts the images `writer` left at these keys in place; everything is claimed.
    pub(super) fn settle_images(&mut self, writer: TxnId, keys: &[(Place, Box<[u8]>)]) -> Result<(), Stop> {
        for (place, key) in keys {
            let partition = self.partition_for(place.group, key)?;
            let image = self.root(partition, *place)?.image_of(key, writer);
            if let Some((image, departure)) = image.map(|image| (image.row.map(Row::from), image.departure)) {
                let row = self.is_table(place.id);
                self.settle(partition, *place, key, image, departure, row)?;
            }
        }
        Ok(())
    }

    /// Puts a committed image in place of whatever is there: the commit of an interactive
    /// transaction. `None` deletes.
    fn settle(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        image: Option<Row>,
        departure: Departure,
        row: bool,
    ) -> Result<(), Stop> {
        // What it takes was asked for when the image was written.
        self.before_removal()?;
        if image.is_some() && self.worker.memory.exceeded(&self.shared.memory) {
            return Err(Stop::OutOfMemory);
        }
        let size = |row: &[u8]| entry_bytes(key, row);
        let added = image.as_deref().map_or(0, size);
        let used = self.worker.scratch.arena.len() + key.len();
        let sequence = next_sequence(partition);
        let is_deleted = image.is_none();
        if row && let Some(image) = &image {
            redo::put(&mut self.worker.scratch.redo, place.id, key, image);
        }
        let mut tree = self.tree_for_write(partition, place)?;
        let old = match image {
            Some(image) => tree.insert(key, image, sequence),
            None => match tree.remove(key, sequence) {
                Some(old) => Some(old),
                // It came and went within the transaction: that is nothing to commit, and nothing to log.
                None => return Ok(()),
            },
        };
        if used + old.as_deref().map_or(0, <[u8]>::len) > UNDO_BYTES_MAX {
            // Images were weighed when they were written, so this does not happen; but if it did,
            // offsets would wrap.
            match old {
                Some(old) => drop(tree.insert(key, old, sequence)),
                None => drop(tree.remove(key, sequence)),
            }
            return Err(Stop::TransactionTooLarge);
        }
        if row && is_deleted {
            redo::delete(&mut self.worker.scratch.redo, place.id, key);
        }
        let kind = match (&old, added) {
            (Some(_), 0) => UndoKind::Removed,
            (Some(_), _) => UndoKind::Updated,
            (None, _) => UndoKind::Inserted,
        };
        self.account(partition, added - old.as_deref().map_or(0, size));
        self.note(kind, partition, place, key, old.as_deref(), row);
        if let Some(noted) = self.worker.scratch.undo.last_mut() {
            noted.departure = departure;
        }
        Ok(())
    }

    /// An answer that depends on a row's absence, or presence, depends on its leaf.
    fn depend_on_leaf(&mut self, partition: PartitionRef, place: Place, key: &[u8]) -> Result<(), Stop> {
        if !place.is_reference() {
            let stamp = self.root(partition, place)?.row(key).stamp;
            // SAFETY: held by this transaction; the reference ends with the statement.
            let epoch = unsafe { partition.data_mut() }.epoch_of(stamp);
            self.depend(epoch);
        }
        Ok(())
    }

    fn note(
        &mut self,
        kind: UndoKind,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        image: Option<&[u8]>,
        row: bool,
    ) {
        let scratch = &mut self.worker.scratch;
        let key = append(&mut scratch.arena, key);
        let image = append(&mut scratch.arena, image.unwrap_or(&[]));
        let departure = match kind {
            UndoKind::Removed => self.leaving,
            _ => Departure::None,
        };
        scratch.undo.push(Undo { kind, partition, place, key, image, row, departure });
    }

    pub(super) fn account(&mut self, partition: PartitionRef, bytes: i64) {
        self.added_bytes += bytes.max(0);
        // SAFETY: held by this transaction; the reference ends with the statement.
        unsafe { partition.data_mut() }.bytes += bytes;
        self.worker.memory.add(bytes, &self.shared.memory);
    }
}

/// Callers have looked whether there is room: offsets have 32 bits.
fn append(arena: &mut Vec<u8>, bytes: &[u8]) -> std::ops::Range<u32> {
    debug_assert!(arena.len() + bytes.len() <= UNDO_BYTES_MAX);
    let start = arena.len() as u32;
    arena.extend_from_slice(bytes);
    start..arena.len() as u32
}

fn next_sequence(partition: PartitionRef) -> u64 {
    // SAFETY: callers write to this partition, so they hold it; the reference ends here.
    unsafe { partition.data_mut() }.next_sequence()
}
