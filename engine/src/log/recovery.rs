//! From checkpoint and log back to trees.
//!
//! ```text
//! 0. the checkpoint must be no older than the log says
//! 1. read the log from the checkpoint's mark, in parallel, and sort each run of it by (table,
//!    key); every batch must check and follow the one before, up to the watermark at least; a bad
//!    one at the very end is a torn tail and is cut, anywhere else it is damage; so it is if a part is missing
//!    that a transaction names, and all parts that none names are dropped once the rest is good
//! 2. cut the key space into parts of about as many records and rows
//! 3. each part, in parallel: merge the runs' records, walk them by (table, key, tag) beside
//!    the part's checkpoint rows, and build trees in ascending order
//! 4. join the parts' trees, O(height) each
//! ```
//!
//! For each key the records above the row's own tag are applied in tag order. A patch may find
//! no row, or one from before the checkpoint that it does not fit: the row it was made for is older
//! than the log, and the checkpoint has not seen it, because a later delete had taken it out by then.
//! That delete must follow, or the data directory is damaged.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashSet;

use super::batch::BatchNumber;
use super::by_key::{self, Runs, Tagged};
use super::checkpoint::{self, CheckpointMark};
use super::reader;
use super::redo::{self, META_TREE, Operation, Tag};
use super::stamp;
use super::store::{CheckpointKey, LogStore, StoreError};
use super::transaction::WithParts;
use super::watermark::Watermark;
use super::writer::IndexEntry;
use crate::clock::Clock;
use crate::id::{Epoch, TreeId, TxnId};
use crate::parallel::in_parallel;
use crate::storage::tree::{Builder, Tree};

/// What recovery found.
pub struct Recovered {
    /// The rows of each table, whole; leaves that differ from the checkpoint are stamped with
    /// the number of the record that changed them, the others with 0.
    pub trees: BTreeMap<TreeId, Tree>,
    /// Engine state ([`redo::meta`]).
    pub meta: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The newest whole epoch; the next one to open is above it. No record, no checkpoint row and no
    /// watermark has a newer one.
    pub epoch: Epoch,
    /// No tag, of a record or a checkpoint row, has a greater number; partitions and threads go on from here.
    pub number_max: u64,
    /// No transaction whose parts are known, or were at a checkpoint, has a greater id.
    pub transaction_max: TxnId,
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
    /// How far the log was known to go; at least as far as it goes now.
    pub(super) watermark: Watermark,
    /// When the epochs of the last batch were closed; the least there is, if no batch says.
    pub(super) closed_micros: i64,
    pub(super) index: VecDeque<IndexEntry>,
}

/// What a recovery read, and how long its two halves took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryCost {
    /// Bytes of log read, parts among them.
    pub log_bytes: u64,
    /// Records in them.
    pub log_records: u64,
    /// Rows taken from the checkpoint.
    pub checkpoint_rows: u64,
    /// Reading, decoding and sorting the log.
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
const PARTS_PER_THREAD: usize = 8;

/// Where parts may be cut: before every so many records of the log (fewer in a short one), and,
/// with the weight of so many such places, at what cuts the checkpoint: its pieces are files of
/// many rows.
const CUT_RECORDS_MAX: u64 = 1 << 12;
const CHECKPOINT_CUT_WEIGHT: usize = 64;

const PROGRESS_ROWS: u64 = 1 << 16;

/// Epochs and numbers go on above those of the log, and never come so far.
const COUNTED_MAX: u64 = 1 << 62;

/// A clock that may be missing.
#[derive(Clone, Copy)]
struct StopWatch<'c>(Option<&'c dyn Clock>);

impl StopWatch<'_> {
    fn nanos(self) -> u64 {
        self.0.map_or(0, Clock::monotonic_nanos)
    }
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
    let watermark = store.watermark()?.unwrap_or_default();
    if let Some(missing) = stamp::missing(store)? {
        return Err(StoreError::Damaged(missing));
    }
    let log = reader::read(store, (&mark, &watermark), at_once(threads), progress)?;
    let runs = Runs::new(&log.runs);
    let cuts = choose_cuts(store, &runs, threads)?;
    let dropped_tree_max = runs.dropped.iter().max().copied();
    let mut number_max = mark.number_max.max(runs.number_max);
    let log_records = runs.records;
    let read = watch.nanos();
    let build = PartBuild { store, runs: &runs, cuts: &cuts, progress, rows: AtomicU64::new(0) };
    let built = build.all(threads)?;

    let mut trees: BTreeMap<TreeId, Tree> = BTreeMap::new();
    let mut checkpoint_rows = 0;
    let mut rows_epoch = Epoch(0);
    for part in built {
        checkpoint_rows += part.checkpoint_rows;
        rows_epoch = rows_epoch.max(part.newest.epoch);
        number_max = number_max.max(part.newest.number);
        for (id, tree) in part.trees {
            trees.entry(id).or_default().append(tree);
        }
    }
    watermark.require_rows(rows_epoch, log.epoch)?;
    let epoch = log.epoch.max(watermark.epoch);
    let unnamed = Unnamed::find(store, &log.with_parts)?;
    let transaction_max = mark.transaction_max.max(unnamed.transaction_max);
    if number_max.max(epoch.0).max(transaction_max.0) > COUNTED_MAX {
        return Err(StoreError::Damaged(format!(
            "the log has come to epoch {epoch}, number {number_max} and transaction {transaction_max}, and nothing \
             can go on behind them"
        )));
    }
    unnamed.drop_all(store)?;
    let meta = trees.remove(&META_TREE).map(|tree| state_of(&tree)).unwrap_or_default();
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
        epoch,
        number_max,
        transaction_max,
        dropped_tree_max,
        next_batch: log.next,
        checkpoint_rows,
        log_records,
        torn_bytes: log.torn_bytes,
        cost,
        watermark: watermark.raised_to(Watermark {
            batch: BatchNumber(log.next.0.saturating_sub(1)),
            epoch,
            replay_from: mark.replay_from,
        }),
        closed_micros: log.closed_micros,
        index: log.index,
    })
}

/// Engine state by its keys.
fn state_of(tree: &Tree) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let rows = tree.cursor(std::ops::Bound::Unbounded);
    rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Parts that no transaction in the log names: nobody has committed them, or a checkpoint has what they held.
struct Unnamed {
    ids: Vec<TxnId>,
    /// No transaction that has parts, named or not, has a greater id.
    transaction_max: TxnId,
}

impl Unnamed {
    fn find(store: &dyn LogStore, with_parts: &[WithParts]) -> Result<Unnamed, StoreError> {
        let named: FxHashSet<TxnId> = with_parts.iter().map(|of| of.parts.id).collect();
        let mut ids = store.part_ids()?;
        let transaction_max = ids.iter().chain(&named).copied().fold(TxnId(0), TxnId::max);
        ids.retain(|id| !named.contains(id));
        Ok(Unnamed { ids, transaction_max })
    }

    fn drop_all(&self, store: &dyn LogStore) -> Result<(), StoreError> {
        store.drop_parts(&self.ids)
    }
}

/// Whoever reads waits for the disk part of the time, and another one has the core meanwhile.
fn at_once(threads: usize) -> usize {
    if threads > 1 { threads * 2 } else { 1 }
}

/// Keys that cut the work into parts of similar size.
fn choose_cuts(
    store: &dyn LogStore,
    runs: &Runs<'_>,
    threads: usize,
) -> Result<Vec<CheckpointKey>, StoreError> {
    if threads <= 1 {
        return Ok(Vec::new());
    }
    let parts = threads * PARTS_PER_THREAD;
    let mut keys = Vec::new();
    for cut in store.checkpoint_cuts()? {
        keys.extend(std::iter::repeat_n(cut, CHECKPOINT_CUT_WEIGHT));
    }
    let every = (runs.records / (16 * parts as u64)).clamp(1, CUT_RECORDS_MAX);
    keys.extend(runs.cuts(every as usize));
    keys.iter_mut().for_each(by_key::shorten);
    keys.sort();
    let mut cuts: Vec<_> =
        (1..parts).filter_map(|part| keys.get(part * keys.len() / parts).cloned()).collect();
    cuts.dedup();
    Ok(cuts)
}

struct BuiltPart {
    trees: BTreeMap<TreeId, Tree>,
    /// The tree that rows are being added to, and where.
    open: Option<(TreeId, Builder)>,
    checkpoint_rows: u64,
    /// No checkpoint row has a newer epoch or a greater number.
    newest: Tag,
    rows: u64,
}

impl BuiltPart {
    fn new() -> BuiltPart {
        BuiltPart { trees: BTreeMap::new(), open: None, checkpoint_rows: 0, newest: Tag::ZERO, rows: 0 }
    }

    fn close(&mut self) {
        if let Some((id, tree)) = self.open.take() {
            self.trees.insert(id, tree.finish());
        }
    }
}

struct PartBuild<'s> {
    store: &'s dyn LogStore,
    runs: &'s Runs<'s>,
    cuts: &'s [CheckpointKey],
    progress: &'s (dyn Fn(Progress) + Sync),
    rows: AtomicU64,
}

/// A key while its records are applied.
enum State {
    Absent,
    Row(Vec<u8>),
    /// Patched without the row: a delete must follow.
    Orphan(Missed),
}

/// What a patch found in place of its row.
#[derive(Clone, Copy)]
enum Missed {
    Nothing,
    Another,
}

impl PartBuild<'_> {
    fn all(&self, threads: usize) -> Result<Vec<BuiltPart>, StoreError> {
        let parts = (0..=self.cuts.len()).collect();
        in_parallel(parts, at_once(threads), |number| self.part(number)).into_iter().collect()
    }

    fn part(&self, number: usize) -> Result<BuiltPart, StoreError> {
        let low = number.checked_sub(1).map(|before| &self.cuts[before]);
        let high = self.cuts.get(number);
        let mut log = self.runs.groups(low, high);
        let mut built = BuiltPart::new();
        let mut failure = None;
        self.store.checkpoint_scan(low, high, &mut |tree, key, value| {
            let step = (|| {
                while log.key().is_some_and(|next| next < (tree, key)) {
                    self.replay(log.take(), State::Absent, Tag::ZERO, &mut built)?;
                }
                if self.runs.dropped.contains(&tree) || stamp::is_stamp(tree, key) {
                    return Ok(());
                }
                built.checkpoint_rows += 1;
                let (tag, row) = checkpoint::decode_row(value)?;
                built.newest.epoch = built.newest.epoch.max(tag.epoch);
                built.newest.number = built.newest.number.max(tag.number);
                if log.key() == Some((tree, key)) {
                    self.replay(log.take(), State::Row(row.to_vec()), tag, &mut built)?;
                } else {
                    self.add(&mut built, tree, key, row.into(), 0)?;
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
            stamp = tag.number.max(1);
            state = match (record.operation, state) {
                (Operation::Put(row), _) => State::Row(row.to_vec()),
                (Operation::Patch(patch), State::Row(mut row)) => match redo::apply_patch(&mut row, patch) {
                    Ok(()) => State::Row(row),
                    Err(_) => State::Orphan(Missed::Another),
                },
                (Operation::Patch(_), State::Absent) => State::Orphan(Missed::Nothing),
                (Operation::Patch(_), orphan) => orphan,
                (Operation::Delete, _) => State::Absent,
                (Operation::DropTree, state) => state,
            };
        }
        match state {
            State::Row(row) if !self.runs.dropped.contains(&first.tree) => {
                self.add(built, first.tree, first.key, row.into_boxed_slice(), stamp)?;
            }
            State::Orphan(missed) if !self.runs.dropped.contains(&first.tree) => {
                let what = match missed {
                    Missed::Nothing => "that is not there",
                    Missed::Another => "that is another one",
                };
                let table = first.tree;
                return Err(StoreError::Damaged(format!("the log updates a row of table {table} {what}")));
            }
            _ => {}
        }
        Ok(())
    }

    fn add(
        &self,
        built: &mut BuiltPart,
        tree: TreeId,
        key: &[u8],
        row: Box<[u8]>,
        stamp: u64,
    ) -> Result<(), StoreError> {
        // Rows come in order, so mostly for the tree of the one before.
        if built.open.as_ref().is_none_or(|(id, _)| *id != tree) {
            built.close();
        }
        let (_, open) = built.open.get_or_insert_with(|| (tree, Builder::new()));
        if open.push(key, row, stamp).is_err() {
            return Err(StoreError::Damaged(format!("the rows of table {tree} are out of order")));
        }
        built.rows += 1;
        if built.rows.is_multiple_of(PROGRESS_ROWS) {
            let rows = self.rows.fetch_add(PROGRESS_ROWS, Ordering::Relaxed) + PROGRESS_ROWS;
            (self.progress)(Progress::Rows { rows, log_records: self.runs.records });
        }
        Ok(())
    }
}
