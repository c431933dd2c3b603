//! What the log needs of a disk.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::batch::BatchNumber;
use super::watermark::Watermark;
use crate::id::{TreeId, TxnId};

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk is full. Nothing of the batch counts; the same call may succeed later.
    #[error("no space left for the log: {0}")]
    Full(String),
    /// A write or sync failed in a way after which the state of the disk is unknown; or something could not
    /// be read, or not even opened.
    #[error("the data directory could not be read or written: {0}")]
    Failed(String),
    /// What is on the disk contradicts itself.
    #[error("the data directory is damaged: {0}")]
    Damaged(String),
    /// Written by a newer version.
    #[error("the data directory has format {found}, this version reads up to {supported}")]
    NewerFormat { found: u32, supported: u32 },
    /// Rows of the checkpoint under way went before they were flushed.
    #[error("rows of the checkpoint went with a full disk")]
    RowsLost,
    /// Others than its owner may read or change it, and that cannot be mended here.
    #[error("{0}")]
    Permissions(String),
    /// Another server has it open.
    #[error("the data directory {path} is in use by another server{}", owner.as_ref().map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    InUse { path: PathBuf, owner: Option<u32> },
}

/// How often a store has lost the checkpoint rows that were not flushed yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses(pub u64);

/// What a disk has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Those of them that can be written before the store is [nearly full](LogStore::nearly_full).
    pub room_bytes: u64,
}

/// A row of the checkpoint to write or, without a value, to remove.
#[derive(Clone)]
pub struct CheckpointChange {
    /// The tree of the row.
    pub tree: TreeId,
    /// Its key.
    pub key: Box<[u8]>,
    /// The tagged row (see [`super::checkpoint`]).
    pub value: Option<Vec<u8>>,
}

/// Sees log batches in order: number and bytes.
pub type BatchVisitor<'v> = dyn FnMut(BatchNumber, &[u8]) -> ControlFlow<()> + 'v;

/// Sees checkpoint rows in order of (tree, key): tree, key, tagged row.
pub type RowVisitor<'v> = dyn FnMut(TreeId, &[u8], &[u8]) -> ControlFlow<()> + 'v;

/// Sees parts of a transaction in order: number and value.
pub type PartVisitor<'v> = dyn FnMut(u32, &[u8]) -> ControlFlow<()> + 'v;

/// A place in the checkpoint's order of (tree, key).
pub type CheckpointKey = (TreeId, Vec<u8>);

/// A durable place for the log, the checkpoint and a few words about them. All methods may be
/// called from any thread; the log writer is the only one that appends.
pub trait LogStore: Send + Sync {
    /// Appends batch `number`; with `sync`, it and all before it are durable on return. A
    /// batch of a number that is there already replaces it (a retry after [`StoreError::Full`]).
    fn append(&self, number: BatchNumber, batch: &[u8], sync: bool) -> Result<(), StoreError>;

    /// So little space is left that no new commits should be taken, while those on their way
    /// still fit: nobody's reply then hangs on a batch that the disk has no room for.
    fn nearly_full(&self) -> bool {
        false
    }

    /// What its disk has left; `None` if nobody knows.
    fn space(&self) -> Option<Space> {
        None
    }

    /// Appends a part of a transaction that has still to commit ([`super::parts`]). The next sync makes it durable,
    /// with all that was appended before; a crash leaves a prefix of parts and batches together. A part of the
    /// same id and number is replaced (a retry after [`StoreError::Full`]).
    fn append_part(&self, id: TxnId, part: u32, value: &[u8]) -> Result<(), StoreError>;

    /// Visits the parts of a transaction from one on, ascending.
    fn read_parts(&self, id: TxnId, from: u32, visit: &mut PartVisitor<'_>) -> Result<(), StoreError>;

    /// The transactions of which there are parts, ascending.
    fn part_ids(&self) -> Result<Vec<TxnId>, StoreError>;

    /// All parts of these transactions go, and what they take returns, on a full disk too. Some may come back after
    /// a crash.
    fn drop_parts(&self, ids: &[TxnId]) -> Result<(), StoreError>;

    /// Makes everything written so far durable.
    fn sync(&self) -> Result<(), StoreError>;

    /// Visits the batches from `from` on, ascending.
    fn read_log(&self, from: BatchNumber, visit: &mut BatchVisitor<'_>) -> Result<(), StoreError>;

    /// The newest batch, if the store can tell without reading the log, which several threads can
    /// then share out.
    fn last_batch(&self) -> Result<Option<BatchNumber>, StoreError> {
        Ok(None)
    }

    /// The batches below `below` may go: a checkpoint has their rows. Some may stay for a while
    /// and be visited by a [`Self::read_log`] from before them.
    fn truncate(&self, below: BatchNumber) -> Result<(), StoreError>;

    /// Forgets the batches from `from` on: a torn tail.
    fn truncate_tail(&self, from: BatchNumber) -> Result<(), StoreError>;

    /// How often checkpoint rows have been lost before they were flushed.
    fn checkpoint_losses(&self) -> Losses;

    /// Writes checkpoint rows; durable only after [`Self::checkpoint_flush`]. Refused with
    /// [`StoreError::RowsLost`] if the losses are not what they were at the first of the rows.
    fn checkpoint_write(&self, since: Losses, changes: &[CheckpointChange]) -> Result<(), StoreError>;

    /// Makes the checkpoint rows written so far durable, unless some were lost in between.
    fn checkpoint_flush(&self, since: Losses) -> Result<(), StoreError>;

    /// One checkpoint row.
    fn checkpoint_get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Visits the checkpoint rows from `low` (inclusive) to `high` (exclusive), ascending.
    fn checkpoint_scan(
        &self,
        low: Option<&CheckpointKey>,
        high: Option<&CheckpointKey>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), StoreError>;

    /// Removes all checkpoint rows of a tree.
    fn checkpoint_drop(&self, tree: TreeId) -> Result<(), StoreError>;

    /// Some keys that cut the checkpoint into parts of similar size, for parallel reading;
    /// ascending, possibly none.
    fn checkpoint_cuts(&self) -> Result<Vec<CheckpointKey>, StoreError>;

    /// A word about the store itself.
    fn meta_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Writes such a word, durably.
    fn meta_put(&self, key: &str, value: &[u8]) -> Result<(), StoreError>;

    /// What [`Self::put_watermark`] said last, or an earlier one if the power went since; `None` if
    /// there never was one.
    fn watermark(&self) -> Result<Option<Watermark>, StoreError>;

    /// Notes, in a place that does not go with the log, how far the log has come; with `sync`
    /// durable on return. Never to be called with what is not durable itself.
    fn put_watermark(&self, watermark: Watermark, sync: bool) -> Result<(), StoreError>;

    /// Copies the store, while it is in use, into a directory that does not exist yet; the copy
    /// opens as a store of its own. It holds every batch appended before the call. The caller
    /// sees to it that no checkpoint runs meanwhile.
    fn copy_to(&self, _directory: &Path) -> Result<(), StoreError> {
        Err(StoreError::Failed("a store in memory cannot be copied".into()))
    }
}

/// The format of batches and checkpoint rows that this version writes; it reads all below. How a store keeps
/// them in files is its own affair.
///
/// | format | |
/// |---|---|
/// | 1 | batches of records, each with a sequence |
/// | 2 | batches of transactions ([`super::batch`]), before which older ones may lie |
/// | 3 | transactions may have parts ([`super::parts`]) |
pub const FORMAT: u32 = 3;
const FORMAT_KEY: &str = "format";

/// Refuses a store written by a newer version or marked with a format that never was, and marks a
/// new one with this version's.
pub fn check_format(store: &dyn LogStore) -> Result<(), StoreError> {
    match store.meta_get(FORMAT_KEY)? {
        None => store.meta_put(FORMAT_KEY, &FORMAT.to_le_bytes()),
        Some(bytes) => {
            let found = bytes
                .try_into()
                .map(u32::from_le_bytes)
                .map_err(|_| StoreError::Damaged("the format mark is no number".into()))?;
            match found {
                1..=FORMAT => Ok(()),
                0 => Err(StoreError::Damaged("the format mark is 0, which no version has written".into())),
                _ => Err(StoreError::NewerFormat { found, supported: FORMAT }),
            }
        }
    }
}

/// Marks a store that [`check_format`] takes with this version's format: before anything is written into it that
/// older versions do not know, and once all else has found it good.
pub(crate) fn raise_format(store: &dyn LogStore) -> Result<(), StoreError> {
    let mark = FORMAT.to_le_bytes();
    if store.meta_get(FORMAT_KEY)?.as_deref() == Some(&mark) {
        Ok(())
    } else {
        store.meta_put(FORMAT_KEY, &mark)
    }
}
