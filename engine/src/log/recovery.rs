//! From checkpoint and log back to trees.
//!
//! ```text
//! 1. read the log from the checkpoint's mark; every batch must check and follow the one
//!    before; a bad one at the very end is a torn tail and is cut, anywhere else it is damage
//! 2. cut the key space (table, key) into parts; deal the records out to them, in parallel
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
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashSet;

use super::batch::{self, BatchNumber};
use super::by_key::{self, Entry, Groups, Segment, Tagged};
use super::checkpoint::{self, CheckpointMark};
use super::redo::{self, META_TREE, Operation, Tag};
use super::store::{CheckpointKey, LogStore, StoreError};
use super::writer::IndexEntry;
use crate::clock::Clock;
use crate::id::{Epoch, TreeId};
use crate::parallel::in_parallel;
use crate::storage::tree::{Finger, Tree};

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
    let segments = by_key::segments(&log.batches)?;
    let cuts = choose_cuts(store, &segments, threads)?;
    let dealt = by_key::deal(&segments, &cuts, threads)?;
    let dropped_tree_max = dealt.dropped.iter().max().copied();
    let sequence_max = mark.sequence_max.max(dealt.sequence_max);
    let log_records = dealt.records;
    let read = watch.nanos();
    let build = PartBuild {
        store,
        segments: &segments,
        cuts: &cuts,
        dropped: &dealt.dropped,
        progress,
        log_records,
        rows: AtomicU64::new(0),
    };
    let built = build_parts(&build, dealt.shares, threads)?;

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

/// Keys that cut the work into parts of similar size.
fn choose_cuts(
    store: &dyn LogStore,
    segments: &[Segment<'_>],
    threads: usize,
) -> Result<Vec<CheckpointKey>, StoreError> {
    if threads <= 1 {
        return Ok(Vec::new());
    }
    let parts = threads * PARTS_PER_THREAD;
    let mut keys = store.checkpoint_cuts()?;
    if keys.len() < parts {
        keys.extend(by_key::sample(segments));
    }
    keys.sort();
    keys.dedup();
    let count = keys.len();
    if count < parts {
        return Ok(keys);
    }
    Ok((1..parts).map(|part| keys[part * count / parts].clone()).collect())
}

/// A part's records: what each stretch of the log has for it.
type Share = Vec<Vec<Entry>>;

#[derive(Default)]
struct BuiltPart {
    trees: BTreeMap<TreeId, Tree>,
    /// The tree that rows are being added to, and where.
    open: Option<(TreeId, Tree, Finger)>,
    checkpoint_rows: u64,
    rows: u64,
}

impl BuiltPart {
    fn close(&mut self) {
        if let Some((id, tree, _)) = self.open.take() {
            self.trees.insert(id, tree);
        }
    }
}

struct PartBuild<'s> {
    store: &'s dyn LogStore,
    segments: &'s [Segment<'s>],
    cuts: &'s [CheckpointKey],
    dropped: &'s FxHashSet<TreeId>,
    progress: &'s (dyn Fn(Progress) + Sync),
    log_records: u64,
    rows: AtomicU64,
}

fn build_parts(
    build: &PartBuild<'_>,
    parts: Vec<Share>,
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
    fn part(&self, number: usize, share: Share) -> Result<BuiltPart, StoreError> {
        let mut log = Groups::new(self.segments, share);
        let low = number.checked_sub(1).map(|before| &self.cuts[before]);
        let high = self.cuts.get(number);
        let mut built = BuiltPart::default();
        let mut failure = None;
        self.store.checkpoint_scan(low, high, &mut |tree, key, value| {
            let step = (|| {
                while log.key().is_some_and(|next| next < (tree, key)) {
                    self.replay(log.take(), State::Absent, Tag::ZERO, &mut built)?;
                }
                if self.dropped.contains(&tree) {
                    return Ok(());
                }
                built.checkpoint_rows += 1;
                let (tag, row) = checkpoint::decode_row(value)?;
                if log.key() == Some((tree, key)) {
                    self.replay(log.take(), State::Row(row.to_vec()), tag, &mut built)?;
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
        while log.key().is_some() {
            self.replay(log.take(), State::Absent, Tag::ZERO, &mut built)?;
        }
        built.close();
        Ok(built)
    }

    /// Applies the records of one key.
    fn replay(
        &self,
        records: &[Tagged<'_>],
        mut state: State,
        row_tag: Tag,
        built: &mut BuiltPart,
    ) -> Result<(), StoreError> {
        let Some((_, first)) = records.first() else { return Ok(()) };
        let mut stamp = 0;
        for (tag, record) in records {
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
        Ok(())
    }

    fn add(&self, built: &mut BuiltPart, tree: TreeId, key: &[u8], row: Box<[u8]>, stamp: u64) {
        // Rows come in order, so mostly for the tree of the one before.
        if built.open.as_ref().is_none_or(|(id, ..)| *id != tree) {
            built.close();
            built.open = Some((tree, built.trees.remove(&tree).unwrap_or_default(), Finger::default()));
        }
        if let Some((_, open, finger)) = &mut built.open {
            let added = open.insert_new_with(key, row, stamp, finger);
            debug_assert!(added.is_ok(), "a key comes once");
        }
        built.rows += 1;
        if built.rows.is_multiple_of(PROGRESS_ROWS) {
            let rows = self.rows.fetch_add(PROGRESS_ROWS, Ordering::Relaxed) + PROGRESS_ROWS;
            (self.progress)(Progress::Rows { rows, log_records: self.log_records });
        }
    }
}
