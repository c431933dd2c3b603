//! How much one transaction may write.
//!
//! Whatever a program can make grow is held against a bound before it grows, with lengths that are
//! at hand; what does not fit is refused at that write, which leaves nothing behind, and the program,
//! its statement or its EXCEPTION block is undone like after any other error.
//!
//! - **Rows and keys.** The formats of rows, versions, checkpoints and redo have lengths of 32 bits,
//!   and RocksDB's keys and values, too. PostgreSQL allocates no more than a gigabyte for one value.
//! - **Undo**: keys and before-images lie in one arena whose offsets have 32 bits ([`super::undo`]),
//!   so that an entry of the list stays small.
//! - **Redo** is kept until the commit, which cuts what is long into parts of a megabyte ([`crate::log::parts`]).
//! - **Images** of an interactive transaction become undo and redo at its COMMIT, all at once and too
//!   late to refuse a single write. So each is weighed when it is written, as what it will be there,
//!   against these bounds and against the memory that is left ([`crate::heap`]).

use std::ops::{AddAssign, SubAssign};
use std::sync::atomic::{AtomicI64, Ordering};

use super::Txn;
use crate::heap;
use crate::log::redo::RECORD_OVERHEAD_MAX;
use crate::program::Stop;
use crate::storage::row::ROW_BYTES_MAX;

/// Offsets into the undo arena have 32 bits.
pub(super) const UNDO_BYTES_MAX: usize = u32::MAX as usize;

/// The log takes the redo of one commit in parts, so no format bounds it. But all of it is in memory until then, and
/// copied to the log with all claims held: some gigabytes.
const REDO_BYTES_MAX: usize = 4 << 30;

/// What RocksDB recommends as the longest key. PostgreSQL's longest is a third of a page, after
/// compression.
const KEY_BYTES_MAX: usize = 8 << 20;

/// Bounds of what one transaction may write. None can be above its default, which is what the
/// formats hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionLimits {
    /// Bytes of one encoded row: beyond it [`Stop::RowTooLarge`].
    pub row_bytes_max: usize,
    /// Bytes of the key of a row, or of an index entry: beyond it [`Stop::KeyTooLarge`].
    pub key_bytes_max: usize,
    /// Bytes of the keys and before-images of all writes: beyond it [`Stop::TransactionTooLarge`].
    pub undo_bytes_max: usize,
    /// Bytes of redo: a transaction that has more writes no more, and is
    /// [`Stop::TransactionTooLarge`].
    pub redo_bytes_max: usize,
}

impl Default for TransactionLimits {
    fn default() -> Self {
        Self {
            row_bytes_max: ROW_BYTES_MAX,
            key_bytes_max: KEY_BYTES_MAX,
            undo_bytes_max: UNDO_BYTES_MAX,
            redo_bytes_max: REDO_BYTES_MAX,
        }
    }
}

impl TransactionLimits {
    /// The same, as far as the formats allow.
    pub(crate) fn within_formats(self) -> Self {
        let most = Self::default();
        Self {
            row_bytes_max: self.row_bytes_max.min(most.row_bytes_max),
            key_bytes_max: self.key_bytes_max.min(most.key_bytes_max),
            undo_bytes_max: self.undo_bytes_max.min(most.undo_bytes_max),
            redo_bytes_max: self.redo_bytes_max.min(most.redo_bytes_max),
        }
    }

    fn are_exceeded_by(&self, weight: Weight) -> bool {
        weight.undo > self.undo_bytes_max as i64 || weight.redo > self.redo_bytes_max as i64
    }
}

/// An uncommitted image that is to be written.
pub(super) struct NewImage<'i> {
    /// `None` deletes.
    pub row: Option<&'i [u8]>,
    /// Bytes of what is there, if that is committed.
    pub replaces: usize,
    /// A row of a table, whose redo is captured; not an index entry.
    pub logged: bool,
}

impl NewImage<'_> {
    /// What it adds to its transaction. `before`: the length of the image that the transaction has
    /// there already.
    pub fn weight(&self, key: &[u8], before: Option<usize>) -> ImageWeight {
        let length = |bytes: usize| bytes as i64;
        let new = length(self.row.map_or(0, <[u8]>::len));
        let (undo, redo) = match before {
            Some(before) => (0, new - length(before)),
            None => (length(key.len() + self.replaces), new + length(key.len() + RECORD_OVERHEAD_MAX)),
        };
        // Rows and keys are bounded far below: see [`TransactionLimits`].
        let bounded = |bytes: i64| i32::try_from(bytes).unwrap_or(i32::MAX);
        ImageWeight { undo: bounded(undo), redo: if self.logged { bounded(redo) } else { 0 } }
    }
}

/// What one image adds, in bytes: one lies beside each image until its transaction ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImageWeight {
    undo: i32,
    redo: i32,
}

impl From<ImageWeight> for Weight {
    fn from(ImageWeight { undo, redo }: ImageWeight) -> Self {
        Self { undo: undo.into(), redo: redo.into() }
    }
}

/// The undo and redo that uncommitted images will be when they are put in place, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    undo: i64,
    redo: i64,
}

impl Weight {
    /// About what COMMIT takes beside the images, at most: rows and entries as long as their redo and
    /// their keys, lists of undo and redo that may have twice the room they need, and redo once more
    /// on its way to the log.
    fn commit_bytes(self) -> usize {
        usize::try_from(3 * self.undo + 4 * self.redo).unwrap_or(0)
    }
}

impl Weight {
    /// Bytes of redo.
    pub(super) fn redo_bytes(self) -> usize {
        usize::try_from(self.redo).unwrap_or(0)
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.undo += other.undo;
        self.redo += other.redo;
    }
}

impl SubAssign for Weight {
    fn sub_assign(&mut self, other: Self) {
        self.undo -= other.undo;
        self.redo -= other.redo;
    }
}

/// The weight of what the statements of an interactive transaction have left; changed under the latch
/// of its notes.
#[derive(Default)]
pub(super) struct KeptWeight {
    undo: AtomicI64,
    redo: AtomicI64,
}

impl KeptWeight {
    pub fn get(&self) -> Weight {
        Weight { undo: self.undo.load(Ordering::Relaxed), redo: self.redo.load(Ordering::Relaxed) }
    }

    pub fn add(&self, weight: Weight) {
        self.undo.fetch_add(weight.undo, Ordering::Relaxed);
        self.redo.fetch_add(weight.redo, Ordering::Relaxed);
    }

    pub fn subtract(&self, weight: Weight) {
        self.undo.fetch_sub(weight.undo, Ordering::Relaxed);
        self.redo.fetch_sub(weight.redo, Ordering::Relaxed);
    }
}

impl Txn<'_> {
    /// Refuses a row, or an index entry, that is too large by itself.
    #[inline]
    pub(super) fn check_size(&self, key: &[u8], value_bytes: usize) -> Result<(), Stop> {
        let limits = &self.worker.limits;
        if value_bytes > limits.row_bytes_max {
            return Err(Stop::RowTooLarge);
        }
        if key.len() > limits.key_bytes_max {
            return Err(Stop::KeyTooLarge);
        }
        Ok(())
    }

    /// Refuses a write for which there is no room. Answers what the list of undo can take of the image
    /// it replaces.
    #[inline]
    pub(super) fn check_room(&self, key: &[u8]) -> Result<usize, Stop> {
        let (limits, scratch) = (&self.worker.limits, &self.worker.scratch);
        match limits.undo_bytes_max.checked_sub(scratch.arena.len() + key.len()) {
            Some(room) if scratch.redo.len() <= limits.redo_bytes_max => Ok(room),
            _ => Err(Stop::TransactionTooLarge),
        }
    }

    /// Counts an image of this statement in; it is written and noted already, so whoever is refused
    /// takes it back.
    pub(super) fn weigh(&mut self, weight: Weight) -> Result<(), Stop> {
        self.images += weight;
        let mut all = self.images;
        if let Some(interactive) = &self.interactive {
            all += interactive.weight();
        }
        if self.worker.limits.are_exceeded_by(all) {
            return Err(Stop::TransactionTooLarge);
        }
        // Now there are the images; at COMMIT there will be rows, undo and redo beside them.
        if heap::work_exceeds(all.commit_bytes()) { Err(Stop::OutOfMemory) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_one_key_weigh_what_the_last_of_them_will_be() {
        let image = |row| NewImage { row, replaces: 50, logged: true };
        let mut sum = Weight::from(image(Some(&[1; 70])).weight(b"key", None));
        sum += image(Some(&[1; 20])).weight(b"key", Some(70)).into();
        let alone = Weight::from(image(Some(&[1; 20])).weight(b"key", None));
        assert_eq!(sum, alone);
        assert_eq!(alone.undo, 53);
        sum += image(None).weight(b"key", Some(20)).into();
        assert_eq!(sum, image(None).weight(b"key", None).into());
        sum -= image(None).weight(b"key", None).into();
        assert_eq!(sum, Weight::default());
    }

    #[test]
    fn limits_stay_within_the_formats() {
        let asked = TransactionLimits { undo_bytes_max: usize::MAX, key_bytes_max: 10, ..Default::default() };
        let limits = asked.within_formats();
        assert_eq!((limits.undo_bytes_max, limits.key_bytes_max), (UNDO_BYTES_MAX, 10));
    }
}
