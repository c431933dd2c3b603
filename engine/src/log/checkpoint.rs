//! Fuzzy checkpoints: the rows of changed leaves, then a shorter log.
//!
//! ```text
//! begin(E)   E is the epoch now open: all commits before it are in the trees
//! slices     each partition, under its claim, a few leaves at a time: the rows of leaves
//!            written since the partition's last checkpoint, tagged with the partition's
//!            newest commit; handed to the store once that commit is durable
//! finish     once all that the slices may have seen is durable, from the part of the log that is
//!            to go, and the parts its transactions name: deletes remove older rows, dropped trees go, engine
//!            state is copied; then pair, stamp and flush, note both and the new start, in the log and
//!            aside, cut, and drop those parts
//! ```
//!
//! A slice sees deletes without a trace: leaves and trees that are no more. If they are not durable
//! and a crash takes them back, the rows must still be somewhere, so nothing is cut before.
//!
//! A row may be younger than the checkpoint's begin, and rows of one transaction may be of
//! different ages: replay continues each key from its own tag, so it does not matter. A leaf
//! does not remember what was deleted from it; the log does, which is why `finish` reads the
//! deletes there before it cuts.
//!
//! A checkpoint row is `[epoch varint][number varint][row]`: the epoch in which its partition was last written,
//! and the partition's number ([`super::transaction`]). So it has the transaction of that number whole, and
//! nothing of a later one. A delete of the very same transaction may stand before the put that made the row:
//! deletes take a row whose tag is *below* theirs.

use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;

use super::batch::{self, BatchNumber};
use super::input::{Input, put_varint};
use super::pair::Pair;
use super::parts;
use super::redo::{META_TREE, Operation, Record, Tag};
use super::stamp;
use super::store::{CheckpointChange, LogStore, Losses, StoreError};
use super::transaction::{Located, Records, WithParts};
use super::watermark::Watermark;
use super::writer::Log;
use crate::id::{Epoch, TreeId, TxnId};
use crate::storage::tree::{Pointer, Tree};

/// Splits a checkpoint row into its tag and the row.
pub fn decode_row(value: &[u8]) -> Result<(Tag, &[u8]), StoreError> {
    let damaged = || StoreError::Damaged("a checkpoint row has no tag".into());
    let mut input = Input { bytes: value };
    let epoch = Epoch(input.varint().ok_or_else(damaged)?);
    let number = input.varint().ok_or_else(damaged)?;
    Ok((Tag { epoch, number }, input.bytes))
}

pub(super) fn encode_row(tag: Tag, row: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(row.len() + 12);
    put_varint(&mut out, tag.epoch.0);
    put_varint(&mut out, tag.number);
    out.extend_from_slice(row);
    out
}

/// Memory for the rows of a slice. An executor fills it under a claim, which is no time to
/// allocate row by row, nor to have the kernel clear fresh pages: it is used again.
#[derive(Default)]
pub struct SliceRoom {
    /// Keys and rows, one behind the other.
    bytes: Vec<u8>,
    rows: Vec<SliceRow>,
}

struct SliceRow {
    tree: TreeId,
    key_bytes: usize,
    row_bytes: usize,
}

impl SliceRoom {
    fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    fn push(&mut self, tree: TreeId, key: &[u8], row: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(row);
        self.rows.push(SliceRow { tree, key_bytes: key.len(), row_bytes: row.len() });
    }

    /// What the store is to write.
    fn changes(&self, tag: Tag) -> Vec<CheckpointChange> {
        let mut rest = &self.bytes[..];
        let mut next = |length: usize| {
            let (piece, after) = rest.split_at(length);
            rest = after;
            piece
        };
        let change = |row: &SliceRow| {
            let key = next(row.key_bytes).into();
            CheckpointChange { tree: row.tree, key, value: Some(encode_row(tag, next(row.row_bytes))) }
        };
        self.rows.iter().map(change).collect()
    }
}

/// What the store remembers of the last finished checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckpointMark {
    /// Replay starts with this batch.
    pub(super) replay_from: BatchNumber,
    /// No tag in the checkpoint has a greater number.
    pub(super) number_max: u64,
    /// Everything up to this epoch was whole when the checkpoint ended, log or no log.
    pub(super) epoch: Epoch,
    /// No transaction with parts that it has taken in has a greater id. Marks of before there were any do not say.
    pub(super) transaction_max: TxnId,
}

/// The word of a store that holds the mark.
pub const MARK_KEY: &str = "checkpoint";

/// Refuses a log that has lost its end, by the mark in it and its last batch: for a store that must
/// know before it opens its files for good, which may give up those that somebody could put back.
pub fn require_whole(
    watermark: Watermark,
    mark: Option<Vec<u8>>,
    last: Option<BatchNumber>,
) -> Result<(), StoreError> {
    let replay_from = CheckpointMark::parse(mark)?.replay_from;
    let next = last.map_or(replay_from, |last| last.next().max(replay_from));
    watermark.require(replay_from, next)
}

impl CheckpointMark {
    pub(super) fn read(store: &dyn LogStore) -> Result<CheckpointMark, StoreError> {
        CheckpointMark::parse(store.meta_get(MARK_KEY)?)
    }

    fn parse(bytes: Option<Vec<u8>>) -> Result<CheckpointMark, StoreError> {
        let Some(bytes) = bytes else {
            let (replay_from, epoch, transaction_max) = (BatchNumber(1), Epoch(0), TxnId(0));
            return Ok(CheckpointMark { replay_from, number_max: 0, epoch, transaction_max });
        };
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("chunks of eight")))
            .collect();
        let (replay_from, number_max, epoch, transaction_max) = match words[..] {
            [replay_from, number_max, epoch] => (replay_from, number_max, epoch, 0),
            [replay_from, number_max, epoch, transaction] => (replay_from, number_max, epoch, transaction),
            _ => return Err(StoreError::Damaged("the checkpoint mark is malformed".into())),
        };
        let (replay_from, transaction_max) = (BatchNumber(replay_from), TxnId(transaction_max));
        Ok(CheckpointMark { replay_from, number_max, epoch: Epoch(epoch), transaction_max })
    }

    pub(super) fn write(self, store: &dyn LogStore) -> Result<(), StoreError> {
        let mut bytes = Vec::with_capacity(32);
        for word in [self.replay_from.0, self.number_max, self.epoch.0, self.transaction_max.0] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        store.meta_put(MARK_KEY, &bytes)
    }
}

/// Rows of one partition, as of `tag`.
pub struct Slice {
    tag: Tag,
    room: SliceRoom,
    visited: u64,
}

impl Slice {
    /// Entries looked at, changed or not: how far the slice brings its checkpoint.
    pub fn visited(&self) -> u64 {
        self.visited
    }

    /// Its memory, for another one.
    pub fn into_room(self) -> SliceRoom {
        self.room
    }

    fn bytes(&self) -> u64 {
        self.room.bytes.len() as u64
    }
}

/// Collects slices under a partition's claim.
pub struct SliceBuilder {
    slice: Slice,
    bytes: usize,
    bytes_max: usize,
}

impl SliceBuilder {
    /// A slice of a partition whose newest commit has this tag, in memory that may have been used
    /// before. `bytes_max` bounds the time the claim is held.
    pub fn new(tag: Tag, bytes_max: usize, mut room: SliceRoom) -> SliceBuilder {
        room.clear();
        SliceBuilder { slice: Slice { tag, room, visited: 0 }, bytes: 0, bytes_max }
    }

    /// Adds the rows of leaves stamped above `since`, from `low` on (inclusive). Returns the key to go
    /// on from if the slice is full before the tree ends. Trees hold committed rows only.
    pub fn add<P: Pointer>(
        &mut self,
        id: TreeId,
        tree: &Tree<P>,
        low: Option<&[u8]>,
        since: u64,
    ) -> Option<Vec<u8>> {
        let mut resume = None;
        // Leaves that are skipped cost time too.
        const SKIPPED_LEAF_BYTES: usize = 64;
        tree.scan_leaves(low.map_or(Bound::Unbounded, Bound::Included), Bound::Unbounded, |leaf| {
            if self.bytes >= self.bytes_max
                && let Some((key, _)) = leaf.entries().next()
            {
                resume = Some(key.to_vec());
                return ControlFlow::Break(());
            }
            self.bytes += SKIPPED_LEAF_BYTES;
            self.slice.visited += leaf.len() as u64;
            if leaf.stamp() > since {
                for (key, row) in leaf.entries() {
                    self.bytes += key.len() + row.len();
                    self.slice.room.push(id, key, row);
                }
            }
            ControlFlow::Continue(())
        });
        resume
    }

    /// Whether the slice has reached its size.
    pub fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max
    }

    /// The slice.
    pub fn build(self) -> Slice {
        self.slice
    }
}

/// Runs checkpoints, one at a time, from a background thread.
pub struct Checkpointer {
    log: Arc<Log>,
    store: Arc<dyn LogStore>,
    mark: CheckpointMark,
    running: Option<Epoch>,
    /// The newest commit that its slices may have seen, once all of them are there.
    seen: Option<Epoch>,
    /// Slices whose commits are not durable yet.
    waiting: VecDeque<Slice>,
    waiting_bytes: u64,
    /// Memory of slices that were written.
    rooms: Vec<SliceRoom>,
    number_max: u64,
    /// Transactions below the cut of a mark that is written, whose parts have still to go.
    over: Vec<TxnId>,
    rows: u64,
    bytes: u64,
    /// What the store had lost when the first of the rows that are not flushed was written;
    /// `None` if every row is.
    unflushed_since: Option<Losses>,
    /// A write has failed since the last finished checkpoint: slices may be lost.
    whole: bool,
}

/// Slices may wait for their commits up to this much; then the caller waits with them.
const WAITING_BYTES_MAX: u64 = 8 << 20;

/// Changes written at once when a checkpoint is settled.
const SETTLED_AT_ONCE: usize = 1_000;

/// What a checkpoint did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointDone {
    /// Rows written.
    pub rows: u64,
    /// Bytes of keys and rows written.
    pub bytes: u64,
    /// Rows removed because the log said so.
    pub rows_removed: u64,
    /// Bytes of log no longer needed.
    pub log_bytes_cut: u64,
}

impl Checkpointer {
    /// A checkpointer for this log.
    pub fn new(log: Arc<Log>, store: Arc<dyn LogStore>) -> Result<Checkpointer, StoreError> {
        let mark = CheckpointMark::read(&*store)?;
        Ok(Checkpointer {
            log,
            store,
            mark,
            running: None,
            seen: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            rooms: Vec::new(),
            number_max: mark.number_max,
            over: Vec::new(),
            rows: 0,
            bytes: 0,
            unflushed_since: None,
            whole: false,
        })
    }

    /// Begins. `open` is an epoch such that every commit of earlier epochs is in the trees:
    /// the global epoch read now will do, because slices claim their partitions afterwards.
    ///
    /// Returns whether slices must be whole (`since` 0): after a failed write nobody knows which
    /// rows of earlier slices the store still has.
    pub fn begin(&mut self, open: Epoch) -> bool {
        self.running = Some(open);
        self.seen = None;
        // Slices of a checkpoint that was given up stay: their partitions think them written.
        self.rows = 0;
        self.bytes = 0;
        if self.unflushed_since.is_some_and(|since| since != self.store.checkpoint_losses()) {
            self.unflushed_since = None;
            self.whole = true;
        }
        self.whole
    }

    /// Before anything is written that a flush must make durable. Rows that are flushed cannot be
    /// lost: only from the first of the others on does it matter what the store has lost.
    fn unflushed_since(&mut self) -> Losses {
        *self.unflushed_since.get_or_insert_with(|| self.store.checkpoint_losses())
    }

    /// What the checkpoint under way has written so far.
    pub fn so_far(&self) -> CheckpointDone {
        CheckpointDone { rows: self.rows, bytes: self.bytes, ..CheckpointDone::default() }
    }

    /// Memory for the next slice.
    pub fn room(&mut self) -> SliceRoom {
        self.rooms.pop().unwrap_or_default()
    }

    /// Takes a slice and writes those that have become durable. False if so much waits for its
    /// commits that the caller should wait too.
    pub fn write(&mut self, slice: Slice) -> Result<bool, StoreError> {
        self.seen = None;
        self.number_max = self.number_max.max(slice.tag.number);
        if slice.room.rows.is_empty() {
            self.rooms.push(slice.into_room());
        } else {
            self.waiting_bytes += slice.bytes();
            // A sync for every slice would slow commits down: they are asked for when much waits.
            if self.waiting_bytes > WAITING_BYTES_MAX / 2 {
                self.log.want(slice.tag.epoch);
            }
            self.waiting.push_back(slice);
        }
        self.write_durable()?;
        Ok(self.waiting_bytes <= WAITING_BYTES_MAX)
    }

    /// Writes the slices that have become durable since; true if none waits any more.
    pub fn write_durable(&mut self) -> Result<bool, StoreError> {
        while let Some(slice) = self.waiting.front() {
            if !self.log.is_durable(slice.tag.epoch) {
                return Ok(false);
            }
            let since = *self.unflushed_since.get_or_insert_with(|| self.store.checkpoint_losses());
            if let Err(error) = self.store.checkpoint_write(since, &slice.room.changes(slice.tag)) {
                self.whole = true;
                return Err(error);
            }
            self.rows += slice.room.rows.len() as u64;
            self.bytes += slice.bytes();
            self.waiting_bytes -= slice.bytes();
            self.rooms.extend(self.waiting.pop_front().map(Slice::into_room));
        }
        Ok(true)
    }

    /// Copies log and checkpoint as they are now into a directory; see [`LogStore::copy_to`].
    /// Nothing moves between the two copies that both must agree on: checkpoints run here.
    pub fn copy_to(&mut self, directory: &Path) -> Result<(), StoreError> {
        self.store.copy_to(directory)
    }

    /// Ends the checkpoint once every slice is written, and cuts the log. `Ok(None)` while
    /// commits that they have seen are not durable. After an error the checkpoint must be begun anew.
    pub fn finish(&mut self) -> Result<Option<CheckpointDone>, StoreError> {
        let Some(open) = self.running else { return Ok(None) };
        let seen = *self.seen.get_or_insert_with(|| self.log.newest_commit());
        self.log.want(seen);
        if !self.write_durable()? || !self.log.is_durable(seen) {
            return Ok(None);
        }
        let (cut, end) = {
            let index = self.log.index.lock();
            let end = index.back().map_or(self.mark.replay_from, |entry| entry.number.next());
            (index.iter().find(|entry| entry.last >= open).map_or(end, |entry| entry.number), end)
        };
        // Until the mark is written, an error leaves the rows so far in doubt.
        self.whole = true;
        let below = Below::read(&*self.store, self.mark.replay_from, cut)?;
        self.number_max = self.number_max.max(below.number_max);
        let over: Vec<TxnId> = below.with_parts.iter().map(|of| of.parts.id).collect();
        let transaction_max = over.iter().copied().fold(self.mark.transaction_max, TxnId::max);
        let rows_removed = self.settle(below)?;
        #[cfg(test)]
        if crate::planted::is(crate::planted::Bug::PartsGoEarly) {
            self.store.drop_parts(&over)?;
        }
        let since = self.unflushed_since();
        let pair = Pair::next(&*self.store, cut, self.log.durable())?;
        let last: Vec<CheckpointChange> =
            pair.map(Pair::row).into_iter().chain([stamp::stamp(cut)]).collect();
        self.store.checkpoint_write(since, &last)?;
        self.store.checkpoint_flush(since)?;
        self.unflushed_since = None;
        stamp::note(&*self.store, cut)?;
        if let Some(pair) = pair {
            pair.note(&*self.store)?;
        }
        // Epochs still open, or not in the log yet, are not whole whatever the rows hold.
        let epoch = Epoch(open.0.saturating_sub(1)).min(self.log.durable());
        let mark = CheckpointMark { replay_from: cut, number_max: self.number_max, epoch, transaction_max };
        mark.write(&*self.store)?;
        // The mark lies in the log, and would go with its end.
        let batch = BatchNumber(end.0.saturating_sub(1));
        let end = Watermark { batch, epoch: self.log.durable(), replay_from: cut };
        self.log.noted.note(&*self.store, end)?;
        self.whole = false;
        self.mark = mark;
        self.running = None;
        self.rooms = Vec::new();
        self.over.extend(over);
        self.store.truncate(cut)?;
        self.store.drop_parts(&self.over)?;
        self.over.clear();
        let mut log_bytes_cut = 0;
        {
            let mut index = self.log.index.lock();
            while index.front().is_some_and(|entry| entry.number < cut) {
                log_bytes_cut += index.pop_front().map_or(0, |entry| entry.bytes);
            }
        }
        self.log.cut_bytes(log_bytes_cut);
        Ok(Some(CheckpointDone { rows_removed, log_bytes_cut, ..self.so_far() }))
    }

    /// Brings into the checkpoint what no leaf shows of the log that is to go.
    fn settle(&mut self, below: Below) -> Result<u64, StoreError> {
        let Below { mut removals, mut state, dropped, .. } = below;
        state.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        // Of each piece of state the last word only, so that what is read below is what stands.
        state.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                std::mem::swap(next, kept);
            }
            same
        });
        let mut changes = Vec::new();
        for (key, tag, value) in state {
            if self.checkpoint_tag(META_TREE, &key)?.is_none_or(|there| there <= tag) {
                changes.push(CheckpointChange { tree: META_TREE, key, value: Some(encode_row(tag, &value)) });
            }
        }
        let since = self.unflushed_since();
        self.store.checkpoint_write(since, &changes)?;
        changes.clear();
        let mut removed = 0;
        // In key order the store's blocks are read once each.
        removals.sort_unstable();
        for (tree, key, tag) in removals {
            if self.checkpoint_tag(tree, &key)?.is_some_and(|there| there < tag) {
                changes.push(CheckpointChange { tree, key, value: None });
                removed += 1;
                if changes.len() == SETTLED_AT_ONCE {
                    self.store.checkpoint_write(since, &changes)?;
                    changes.clear();
                }
            }
        }
        self.store.checkpoint_write(since, &changes)?;
        for tree in dropped {
            self.store.checkpoint_drop(tree)?;
        }
        Ok(removed)
    }

    fn checkpoint_tag(&self, tree: TreeId, key: &[u8]) -> Result<Option<Tag>, StoreError> {
        match self.store.checkpoint_get(tree, key)? {
            Some(value) => Ok(Some(decode_row(&value)?.0)),
            None => Ok(None),
        }
    }
}

/// What no leaf shows of the log below a cut: deletes, dropped trees, engine state.
#[derive(Default)]
struct Below {
    removals: Vec<(TreeId, Box<[u8]>, Tag)>,
    state: Vec<(Box<[u8]>, Tag, Vec<u8>)>,
    dropped: Vec<TreeId>,
    /// No record has a greater number.
    number_max: u64,
    /// The transactions that have parts, which were read as well.
    with_parts: Vec<WithParts>,
}

impl Below {
    /// Reads the batches from one on and below another, then the parts that their transactions name.
    fn read(store: &dyn LogStore, from: BatchNumber, cut: BatchNumber) -> Result<Below, StoreError> {
        let mut below = Below::default();
        let mut damaged = None;
        store.read_log(from, &mut |number, bytes| {
            if number >= cut {
                return ControlFlow::Break(());
            }
            let taken = batch::each_record(bytes, |epoch, Located { transaction, record, .. }| {
                below.number_max = below.number_max.max(transaction);
                below.take(epoch, &record);
            });
            match taken {
                Ok(with_parts) => {
                    below.with_parts.extend(with_parts);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    damaged = Some(StoreError::Damaged(format!("log batch {}: {error}", number.0)));
                    ControlFlow::Break(())
                }
            }
        })?;
        damaged.map_or(Ok(()), Err)?;
        for of in below.with_parts.clone() {
            below.number_max = below.number_max.max(of.number);
            parts::read_all(store, &of, &mut |records| {
                for located in Records::of_transaction(records, of.number) {
                    let located = located.map_err(|error| {
                        StoreError::Damaged(format!("a part of transaction {}: {error}", of.parts.id))
                    })?;
                    below.take(of.epoch, &located.record);
                }
                Ok(())
            })?;
        }
        Ok(below)
    }

    fn take(&mut self, epoch: Epoch, record: &Record<'_>) {
        self.number_max = self.number_max.max(record.number);
        let tag = Tag { epoch, number: record.number };
        match record.operation {
            Operation::Delete => self.removals.push((record.tree, record.key.into(), tag)),
            Operation::DropTree => self.dropped.push(record.tree),
            Operation::Put(value) if record.tree == META_TREE => {
                self.state.push((record.key.into(), tag, value.to_vec()));
            }
            _ => {}
        }
    }
}
