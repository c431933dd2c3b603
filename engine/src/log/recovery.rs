//! From checkpoint and log back to trees.
//!
//! ```text
//! 1. read the log from the checkpoint's mark; every batch must check and follow the one
//!    before; a bad one at the very end is a torn tail and is cut, anywhere else it is damage
//! 2. decode the batches, in parallel; cut the key space (table, key) into parts; deal the
//!    records out to them, in parallel
//! 3. each part, in parallel: sort its records by (table, key, tag), walk them beside the
//!    part's checkpoint rows, and build trees in ascending order
//! 4. join the parts' trees, O(height) each
//! ```
//!
//! For each key the records above the row's own tag are applied in tag order. A patch may find
//! no row: its insert is older than the log, and a later delete, already in the checkpoint,
//! took the row out; then that delete must follow, or the data directory is damaged.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use super::batch::{self, BatchNumber};
use super::checkpoint::{self, CheckpointMark};
use super::redo::{self, META_TREE, Operation, Record, Tag};
use super::store::{CheckpointKey, LogStore, StoreError};
use super::writer::IndexEntry;
use crate::clock::Clock;
use crate::id::{Epoch, TreeId};
use crate::storage::tree::Tree;

/// What recovery found.
pub struct Recovered {
    /// The rows of each table, whole; leaves that differ from the checkpoint are stamped with
    /// the sequence of the record that changed them, the others with 0.
    pub trees: BTreeMap<TreeId, Tree>,
    /// Engine state ([`redo::meta`]).
    pub meta: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The newest whole epoch; the next one to open is above it.
    pub epoch: Epoch,
    /// No tag has a greater sequence; partitions go on from here.
    pub sequence_max: u64,
    /// The greatest number of a tree that the log drops. Its record takes every row of that
    /// number away, so as long as the log has it no new tree may get the number.
    pub dropped_tree_max: Option<TreeId>,
    /// The number of the next batch.
    pub next_batch: BatchNumber,
    /// Rows taken from the checkpoint.
    pub checkpoint_rows: u64,
    /// Records read from the log.
    pub log_records: u64,
    /// Bytes cut off as a torn tail.
    pub torn_bytes: u64,
    /// What it cost; zeros without a clock.
    pub cost: RecoveryCost,
    pub(super) index: VecDeque<IndexEntry>,
}

/// What a recovery read, and how long its two halves took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryCost {
    /// Bytes of log read.
    pub log_bytes: u64,
    /// Records in them.
    pub log_records: u64,
    /// Rows taken from the checkpoint.
    pub checkpoint_rows: u64,
    /// Reading and decoding the log.
    pub log_nanos: u64,
    /// Building the trees from checkpoint rows and records.
    pub build_nanos: u64,
}

/// How far recovery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Reading the log: bytes so far.
    Log { bytes: u64 },
    /// Rebuilding rows: so far, and records of the log to apply in all.
    Rows { rows: u64, log_records: u64 },
}

/// Parts per thread: so that one long part does not keep the others waiting.
const PARTS_PER_THREAD: usize = 4;
const PROGRESS_ROWS: u64 = 1 << 16;

/// A clock that may be missing.
#[derive(Clone, Copy)]
struct StopWatch<'c>(Option<&'c dyn Clock>);

impl StopWatch<'_> {
    fn nanos(self) -> u64 {
        self.0.map_or(0, Clock::monotonic_nanos)
    }
}

struct LogPart {
    batches: Vec<Vec<u8>>,
    index: VecDeque<IndexEntry>,
    next: BatchNumber,
    epoch: Epoch,
    torn_bytes: u64,
}

/// A record and its tag.
type Tagged<'l> = (Tag, Record<'l>);

/// Rebuilds everything. `threads` run at once; `progress` is called from any of them.
pub fn recover(
    store: &dyn LogStore,
    threads: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Recovered, StoreError> {
    recover_timed(store, threads, None, progress)
}

/// As [`recover`], with a clock to measure what it costs.
pub fn recover_timed(
    store: &dyn LogStore,
    threads: usize,
    clock: Option<&dyn Clock>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Recovered, StoreError> {
    let watch = StopWatch(clock);
    let began = watch.nanos();
    let mark = CheckpointMark::read(store)?;
    let log = read_log(store, &mark, progress)?;
    let decoded = decode(&log.batches, threads)?;
    let mut dropped = FxHashSet::default();
    let mut sequence_max = mark.sequence_max;
    let mut log_records = 0;
    for stretch in &decoded {
        dropped.extend(&stretch.dropped);
        sequence_max = sequence_max.max(stretch.sequence_max);
        log_records += stretch.records.len() as u64;
    }
    let dropped_tree_max = dropped.iter().max().copied();
    let cuts = choose_cuts(store, &decoded, log_records as usize, threads)?;
    let parts = deal(decoded, &cuts, threads);
    let read = watch.nanos();
    let build =
        PartBuild { store, cuts: &cuts, dropped: &dropped, progress, log_records, rows: AtomicU64::new(0) };
    let built = build_parts(&build, parts, threads)?;

    let mut trees: BTreeMap<TreeId, Tree> = BTreeMap::new();
    let mut checkpoint_rows = 0;
    for part in built {
        checkpoint_rows += part.checkpoint_rows;
        for (id, tree) in part.trees {
            trees.entry(id).or_default().append(tree);
        }
    }
    let mut meta = BTreeMap::new();
    if let Some(tree) = trees.remove(&META_TREE) {
        for (key, value) in tree.cursor(std::ops::Bound::Unbounded) {
            meta.insert(key.to_vec(), value.to_vec());
        }
    }
    let cost = RecoveryCost {
        log_bytes: log.index.iter().map(|entry| entry.bytes).sum(),
        log_records,
        checkpoint_rows,
        log_nanos: read.saturating_sub(began),
        build_nanos: watch.nanos().saturating_sub(read),
    };
    Ok(Recovered {
        trees,
        meta,
        epoch: log.epoch,
        sequence_max,
        dropped_tree_max,
        next_batch: log.next,
        checkpoint_rows,
        log_records,
        torn_bytes: log.torn_bytes,
        cost,
        index: log.index,
    })
}

fn read_log(
    store: &dyn LogStore,
    mark: &CheckpointMark,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<LogPart, StoreError> {
    let mut part = LogPart {
        batches: Vec::new(),
        index: VecDeque::new(),
        next: mark.replay_from,
        epoch: mark.epoch,
        torn_bytes: 0,
    };
    let mut bad: Option<BatchNumber> = None;
    let mut bytes_read = 0;
    let mut damage = None;
    store.read_log(mark.replay_from, &mut |number, bytes| {
        bytes_read += bytes.len() as u64;
        progress(Progress::Log { bytes: bytes_read });
        let header = batch::check(bytes).filter(|header| header.number == number);
        let Some(header) = header else {
            bad.get_or_insert(number);
            part.torn_bytes += bytes.len() as u64;
            return ControlFlow::Continue(());
        };
        if let Some(bad) = bad {
            damage =
                Some(format!("log batch {} is damaged, but batch {} after it is whole", bad.0, number.0));
            return ControlFlow::Break(());
        }
        if number != part.next || header.last < part.epoch {
            damage = Some(format!("log batch {} is missing", part.next.0));
            return ControlFlow::Break(());
        }
        part.next = number.next();
        part.epoch = header.last;
        part.index.push_back(IndexEntry { number, last: header.last, bytes: bytes.len() as u64 });
        part.batches.push(bytes.to_vec());
        ControlFlow::Continue(())
    })?;
    if let Some(damage) = damage {
        return Err(StoreError::Damaged(damage));
    }
    if let Some(bad) = bad {
        tracing::warn!(batch = bad.0, bytes = part.torn_bytes, "cutting off the torn end of the log");
        store.truncate_tail(part.next)?;
        store.sync()?;
    }
    Ok(part)
}

/// The records of a stretch of the log, in its order.
#[derive(Default)]
struct Decoded<'l> {
    records: Vec<Tagged<'l>>,
    dropped: Vec<TreeId>,
    sequence_max: u64,
}

/// Runs `work` on each of `items`, up to `threads` at once; the results in the items' order.
fn in_parallel<T: Send, R: Send>(items: Vec<T>, threads: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let count = items.len();
    let items: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let results: Vec<Mutex<Option<R>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let run = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number).and_then(|item| item.lock().take()) else { return };
            *results[number].lock() = Some(work(item));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            scope.spawn(run);
        }
        run();
    });
    results.into_iter().filter_map(Mutex::into_inner).collect()
}

/// Decodes the batches, a stretch of similar length for each thread.
fn decode(batches: &[Vec<u8>], threads: usize) -> Result<Vec<Decoded<'_>>, StoreError> {
    let bytes: usize = batches.iter().map(Vec::len).sum();
    let share = bytes / threads.max(1) + 1;
    let mut stretches = Vec::new();
    let mut rest = batches;
    while !rest.is_empty() {
        let mut length = 0;
        let end = rest
            .iter()
            .position(|batch| {
                length += batch.len();
                length >= share
            })
            .map_or(rest.len(), |at| at + 1);
        let (stretch, after) = rest.split_at(end);
        stretches.push(stretch);
        rest = after;
    }
    in_parallel(stretches, threads, decode_stretch).into_iter().collect()
}

fn decode_stretch(batches: &[Vec<u8>]) -> Result<Decoded<'_>, StoreError> {
    let mut decoded = Decoded::default();
    for bytes in batches {
        for segment in batch::segments(bytes) {
            let (epoch, segment) =
                segment.ok_or_else(|| StoreError::Damaged("a log batch is malformed".into()))?;
            for record in redo::records(segment) {
                let record =
                    record.map_err(|error| StoreError::Damaged(format!("{error} in epoch {epoch}")))?;
                decoded.sequence_max = decoded.sequence_max.max(record.sequence);
                if record.operation == Operation::DropTree {
                    decoded.dropped.push(record.tree);
                } else {
                    decoded.records.push((Tag { epoch, sequence: record.sequence }, record));
                }
            }
        }
    }
    Ok(decoded)
}

/// Keys that cut the work into parts of similar size.
fn choose_cuts(
    store: &dyn LogStore,
    decoded: &[Decoded<'_>],
    log_records: usize,
    threads: usize,
) -> Result<Vec<CheckpointKey>, StoreError> {
    if threads <= 1 {
        return Ok(Vec::new());
    }
    let parts = threads * PARTS_PER_THREAD;
    let mut keys = store.checkpoint_cuts()?;
    if keys.len() < parts {
        let step = (log_records / (parts * 64)).max(1);
        let samples = decoded.iter().flat_map(|stretch| stretch.records.iter().step_by(step));
        keys.extend(samples.map(|(_, record)| (record.tree, record.key.to_vec())));
    }
    keys.sort();
    keys.dedup();
    let count = keys.len();
    if count < parts {
        return Ok(keys);
    }
    Ok((1..parts).map(|part| keys[part * count / parts].clone()).collect())
}

/// A part's records: what each stretch of the log has for it, in the log's order.
type Share<'l> = Vec<Vec<Tagged<'l>>>;

fn deal<'l>(decoded: Vec<Decoded<'l>>, cuts: &[CheckpointKey], threads: usize) -> Vec<Share<'l>> {
    let dealt = in_parallel(decoded, threads, |stretch| {
        let mut parts: Vec<Vec<Tagged<'l>>> = (0..=cuts.len()).map(|_| Vec::new()).collect();
        for tagged in stretch.records {
            let place = (tagged.1.tree, tagged.1.key);
            let part = cuts.partition_point(|(tree, key)| (*tree, key.as_slice()) <= place);
            parts[part].push(tagged);
        }
        parts
    });
    let mut shares: Vec<Share<'l>> = (0..=cuts.len()).map(|_| Vec::new()).collect();
    for parts in dealt {
        for (share, part) in shares.iter_mut().zip(parts) {
            share.push(part);
        }
    }
    shares
}

/// Sorts records by (table, key, tag). Most comparisons are settled by the table and the key's
/// first bytes, kept beside each other: following every key to its batch costs several times
/// as much. Records of one transaction for one key stay in their order.
fn sorted<'l>(share: Share<'l>) -> Vec<Tagged<'l>> {
    let records: Vec<Tagged<'l>> = share.into_iter().flatten().collect();
    let prefix = |record: &Record<'_>| {
        let mut first = [0; 8];
        let length = record.key.len().min(first.len());
        first[..length].copy_from_slice(&record.key[..length]);
        u128::from(record.tree.0) << 64 | u128::from(u64::from_be_bytes(first))
    };
    let mut order: Vec<(u128, usize)> =
        records.iter().enumerate().map(|(at, (_, record))| (prefix(record), at)).collect();
    order.sort_unstable_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| {
            let ((tag_a, record_a), (tag_b, record_b)) = (&records[a.1], &records[b.1]);
            (record_a.key, tag_a, a.1).cmp(&(record_b.key, tag_b, b.1))
        })
    });
    order.into_iter().map(|(_, at)| records[at]).collect()
}

#[derive(Default)]
struct BuiltPart {
    trees: BTreeMap<TreeId, Tree>,
    /// The tree that rows are being added to.
    open: Option<(TreeId, Tree)>,
    checkpoint_rows: u64,
    rows: u64,
}

impl BuiltPart {
    fn close(&mut self) {
        if let Some((id, tree)) = self.open.take() {
            self.trees.insert(id, tree);
        }
    }
}

struct PartBuild<'s> {
    store: &'s dyn LogStore,
    cuts: &'s [CheckpointKey],
    dropped: &'s FxHashSet<TreeId>,
    progress: &'s (dyn Fn(Progress) + Sync),
    log_records: u64,
    rows: AtomicU64,
}

fn build_parts(
    build: &PartBuild<'_>,
    parts: Vec<Share<'_>>,
    threads: usize,
) -> Result<Vec<BuiltPart>, StoreError> {
    let parts = parts.into_iter().enumerate().collect();
    in_parallel(parts, threads, |(number, share)| build.part(number, share)).into_iter().collect()
}

/// A key while its records are applied.
enum State {
    Absent,
    Row(Vec<u8>),
    /// Patched without a row: a delete must follow.
    Orphan,
}

impl PartBuild<'_> {
    fn part(&self, number: usize, share: Share<'_>) -> Result<BuiltPart, StoreError> {
        let records = sorted(share);
        let low = number.checked_sub(1).map(|before| &self.cuts[before]);
        let high = self.cuts.get(number);
        let mut built = BuiltPart::default();
        let mut rest = records.as_slice();
        let mut failure = None;
        self.store.checkpoint_scan(low, high, &mut |tree, key, value| {
            let step = (|| {
                while rest.first().is_some_and(|(_, record)| (record.tree, record.key) < (tree, key)) {
                    rest = self.replay(rest, State::Absent, Tag::ZERO, &mut built)?;
                }
                if self.dropped.contains(&tree) {
                    return Ok(());
                }
                built.checkpoint_rows += 1;
                let (tag, row) = checkpoint::decode_row(value)?;
                if rest.first().is_some_and(|(_, record)| (record.tree, record.key) == (tree, key)) {
                    rest = self.replay(rest, State::Row(row.to_vec()), tag, &mut built)?;
                } else {
                    self.add(&mut built, tree, key, row.into(), 0);
                }
                Ok(())
            })();
            match step {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        while !rest.is_empty() {
            rest = self.replay(rest, State::Absent, Tag::ZERO, &mut built)?;
        }
        built.close();
        Ok(built)
    }

    /// Applies the records of the first key, and returns those of the other keys.
    fn replay<'r, 'l>(
        &self,
        records: &'r [Tagged<'l>],
        mut state: State,
        row_tag: Tag,
        built: &mut BuiltPart,
    ) -> Result<&'r [Tagged<'l>], StoreError> {
        let (_, first) = &records[0];
        let same_key = |(_, record): &Tagged<'_>| (record.tree, record.key) == (first.tree, first.key);
        let end = records.iter().position(|tagged| !same_key(tagged)).unwrap_or(records.len());
        let mut stamp = 0;
        for (tag, record) in &records[..end] {
            if *tag <= row_tag {
                continue;
            }
            stamp = tag.sequence.max(1);
            state = match (record.operation, state) {
                (Operation::Put(row), _) => State::Row(row.to_vec()),
                (Operation::Patch(patch), State::Row(mut row)) => {
                    redo::apply_patch(&mut row, patch)
                        .map_err(|_| StoreError::Damaged("an update does not fit its row".into()))?;
                    State::Row(row)
                }
                (Operation::Patch(_), _) => State::Orphan,
                (Operation::Delete, _) => State::Absent,
                (Operation::DropTree, state) => state,
            };
        }
        match state {
            State::Row(row) if !self.dropped.contains(&first.tree) => {
                self.add(built, first.tree, first.key, row.into_boxed_slice(), stamp);
            }
            State::Orphan if !self.dropped.contains(&first.tree) => {
                return Err(StoreError::Damaged(format!(
                    "the log updates a row of table {} that is not there",
                    first.tree
                )));
            }
            _ => {}
        }
        Ok(&records[end..])
    }

    fn add(&self, built: &mut BuiltPart, tree: TreeId, key: &[u8], row: Box<[u8]>, stamp: u64) {
        // Rows come in order, so mostly for the tree of the one before.
        if built.open.as_ref().is_none_or(|(id, _)| *id != tree) {
            built.close();
            built.open = Some((tree, built.trees.remove(&tree).unwrap_or_default()));
        }
        if let Some((_, open)) = &mut built.open {
            open.insert(key, row, stamp);
        }
        built.rows += 1;
        if built.rows.is_multiple_of(PROGRESS_ROWS) {
            let rows = self.rows.fetch_add(PROGRESS_ROWS, Ordering::Relaxed) + PROGRESS_ROWS;
            (self.progress)(Progress::Rows { rows, log_records: self.log_records });
        }
    }
}
