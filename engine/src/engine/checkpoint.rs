//! Checkpoints: slices of changed leaves, each read under its partition's claim.
//!
//! A slice is a program like any other, so a checkpoint never stops anybody for longer than
//! one slice takes. It holds no snapshot: every row carries the tag of its partition's newest
//! commit, and is written only after that commit is durable.
//!
//! Tables come one after another, each in key order over its partitions: the store then gets
//! long sorted runs that overlap little, and has little to merge.
//!
//! What a checkpoint wrote before a crash cut it short carries its tags, so the next recovery
//! takes those rows as they are; the first checkpoint after a start writes every leaf anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::history::{CheckpointReason, CheckpointState};
use super::pace::Pace;
use super::{Shared, SubmitOptions, submit_on};
use crate::id::{GroupId, TreeId};
use crate::log::checkpoint::{Slice, SliceRoom};
use crate::log::{CheckpointDone, Checkpointer, SliceBuilder, StoreError};
use crate::partition::{ClaimSet, RoutingTable};
use crate::program::{Program, Stop};
use crate::storage::KeyBuf;
use crate::table::REFERENCE_GROUP;
use crate::txn::{SettledTo, Txn};

/// Takes one checkpoint; `None` if it was given up because the engine ends.
pub(super) fn run(
    shared: &Arc<Shared>,
    checkpointer: &mut Checkpointer,
    stop: &AtomicBool,
    reason: CheckpointReason,
) -> Result<Option<CheckpointDone>, StoreError> {
    let clock = &shared.clock;
    let log_bytes = shared.log.counters().bytes_since_checkpoint;
    shared.checkpoints.begin(reason, clock.wall_micros(), clock.monotonic_nanos(), log_bytes);
    let log_max = shared.restart.log_bytes_max(shared.rows());
    let mut pace = Pace::new(log_bytes, log_max, clock.monotonic_nanos(), expected(shared));
    if reason != CheckpointReason::Log || !shared.config.background {
        pace.hurry();
    }
    let mut walk = Walk { shared, checkpointer, stop, pace };
    let result = walk.run();
    let (state, done) = match &result {
        Ok(Some(done)) => {
            shared.checkpoint_entries.store(walk.pace.looked_at(), Ordering::Relaxed);
            shared.checkpoint_rows.store(shared.rows(), Ordering::Relaxed);
            (CheckpointState::Done, Some(*done))
        }
        Ok(None) => (CheckpointState::GivenUp("the server is being stopped".to_owned()), None),
        Err(error) => (CheckpointState::GivenUp(error.to_string()), None),
    };
    shared.checkpoints.end(state, clock.monotonic_nanos(), done);
    result
}

/// Entries a checkpoint will look at: what the last one did, grown as the rows have since.
/// (The rows are counted with index entries, which no checkpoint looks at.)
fn expected(shared: &Shared) -> u64 {
    let rows = shared.rows();
    let looked_at = shared.checkpoint_entries.load(Ordering::Relaxed);
    match shared.checkpoint_rows.load(Ordering::Relaxed) {
        0 => rows,
        then => (u128::from(rows) * u128::from(looked_at) / u128::from(then)) as u64,
    }
}

/// One checkpoint on its way through tables and partitions.
struct Walk<'c> {
    shared: &'c Arc<Shared>,
    checkpointer: &'c mut Checkpointer,
    stop: &'c AtomicBool,
    pace: Pace,
}

impl Walk<'_> {
    /// `None` if it was given up because the engine ends.
    fn run(&mut self) -> Result<Option<CheckpointDone>, StoreError> {
        let shared = self.shared;
        let whole = self.checkpointer.begin(shared.epochs.current());
        // Definitions committed in an epoch before that one may not be published yet; whoever
        // commits them holds the reference partition until they are.
        let _ = submit_on(shared, Barrier, SubmitOptions::default()).wait();
        let mut trees: Vec<TreeId> =
            shared.load_schema().tables_sorted().iter().map(|table| table.def.id).collect();
        trees.sort_unstable();
        for tree in trees {
            // A table that went to another group meanwhile was perhaps not where it was looked for.
            let mut visited = None;
            while let Some(place) = self.place_of(tree).filter(|now| visited != Some(*now)) {
                visited = Some(place);
                let mut low = Some(KeyBuf::new());
                // By key, not by partition: splits in between are followed, not missed.
                while let Some(from) = low.take() {
                    low = self.partition(place, tree, from, whole)?;
                    if self.stopping() {
                        return Ok(None);
                    }
                }
            }
        }
        loop {
            if let Some(done) = self.checkpointer.finish()? {
                return Ok(Some(done));
            }
            if shared.log_failed() {
                return Err(StoreError::Failed("the log has failed".into()));
            }
            // Once the log's writer has ended nothing becomes durable any more.
            if self.stopping() {
                return Ok(None);
            }
            if !shared.config.background {
                return Err(StoreError::Failed("a checkpoint needs its commits durable first".into()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Where a table is now, and the version of its definition that says so; `None` if it was
    /// dropped.
    fn place_of(&self, tree: TreeId) -> Option<(GroupId, u32)> {
        self.shared.load_schema().tables.get(&tree).map(|table| (table.group(), table.version))
    }

    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire) && self.shared.config.background
    }

    /// Writes a table's changed leaves in the partition that starts at `low`; where the next
    /// one starts.
    fn partition(
        &mut self,
        place: (GroupId, u32),
        tree: TreeId,
        low: KeyBuf,
        whole: bool,
    ) -> Result<Option<KeyBuf>, StoreError> {
        let mut from = None;
        let mut upto = None;
        let (mut range, mut settled) = (None, None);
        loop {
            let program = TakeSlice {
                group: place.0,
                tree,
                whole,
                low: low.clone(),
                bytes_max: self.shared.config.checkpoint_slice_bytes,
                from: from.take(),
                upto,
                settled: settled.take(),
                range: range.take(),
                room: self.checkpointer.room(),
                slice: None,
                resume: None,
                next: None,
            };
            let options = SubmitOptions { read_only: true, ..SubmitOptions::default() };
            let completed = submit_on(self.shared, program, options).wait();
            let TakeSlice { slice, resume, next, upto: seen, range: now, settled: come, .. } =
                completed.program;
            (upto, range, settled) = (seen, now, come);
            let Some(slice) = slice else {
                // Dropped since, or elsewhere by now; anything else must not pass for written.
                return match self.place_of(tree) == Some(place) {
                    false => Ok(None),
                    true => Err(StoreError::Failed(format!(
                        "a partition of table {tree} could not be read: {:?}",
                        completed.outcome.result
                    ))),
                };
            };
            self.take(slice)?;
            match resume {
                Some(resume) => from = Some(resume),
                None => return Ok(next),
            }
        }
    }

    /// Hands a slice to the store, and rests as the pace allows.
    fn take(&mut self, slice: Slice) -> Result<(), StoreError> {
        let shared = self.shared;
        self.pace.advance(slice.visited());
        self.pace.expect(expected(shared));
        let mut room = self.checkpointer.write(slice)?;
        while !room && shared.config.background && !self.stopping() && !shared.log_failed() {
            std::thread::sleep(Duration::from_millis(1));
            room = self.checkpointer.write_durable()?;
        }
        shared.checkpoints.progress(self.pace.progress(), self.checkpointer.so_far());
        while let Some(rest) =
            self.pace.rest(shared.log.counters().bytes_since_checkpoint, shared.clock.monotonic_nanos())
        {
            if self.stopping() || shared.checkpoint_hurry.load(Ordering::Relaxed) > 0 {
                break;
            }
            std::thread::sleep(rest);
        }
        Ok(())
    }
}

/// Runs once whoever commits definitions has published them.
struct Barrier;

impl Program for Barrier {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.add_point(REFERENCE_GROUP, &[]);
    }

    fn run(&mut self, _txn: &mut Txn<'_>) -> Result<(), Stop> {
        Ok(())
    }
}

/// One slice of one table in one partition.
struct TakeSlice {
    group: GroupId,
    tree: TreeId,
    /// Write every leaf, whatever the last checkpoint has.
    whole: bool,
    low: KeyBuf,
    bytes_max: usize,
    /// The key to go on from.
    from: Option<Vec<u8>>,
    /// The sequence as of the first slice: leaves changed later belong to the next checkpoint
    /// too.
    upto: Option<u64>,
    /// How far from there on it is settled, if not all of it is.
    settled: Option<SettledTo>,
    /// The partition's range as of the first slice. If it has grown since, by a merge, its new
    /// part has not been seen, and stamps mean something else: the partition starts again.
    range: Option<(KeyBuf, Option<KeyBuf>)>,
    /// For the slice.
    room: SliceRoom,
    /// `None` if the group has gone.
    slice: Option<Slice>,
    resume: Option<Vec<u8>>,
    next: Option<KeyBuf>,
}

impl Program for TakeSlice {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.add_point(self.group, &self.low);
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.resume = None;
        let references = (self.group == REFERENCE_GROUP).then(|| txn.published_references());
        let data = txn.partition_data(self.group, &self.low)?;
        self.next = data.high.clone();
        if self.range.as_ref().is_some_and(|range| !data.lies_in(range)) {
            (self.from, self.upto, self.settled) = (None, None, None);
        }
        self.range = Some((data.low.clone(), data.high.clone()));
        let of = (self.group, &self.low[..]);
        let is_settled = txn.settle_table(of, self.tree, self.from.as_deref(), &mut self.settled)?;
        let data = txn.partition_data(self.group, &self.low)?;
        // A run that came before may have filled it.
        let room = match self.slice.take() {
            Some(slice) => slice.into_room(),
            None => std::mem::take(&mut self.room),
        };
        let mut builder = SliceBuilder::new(data.newest_tag(), self.bytes_max, room);
        let upto = *self.upto.get_or_insert(data.sequence);
        // A table that has gone since has no root here.
        if !is_settled {
            // What it writes is to be what is committed: it goes on from here.
            self.resume = Some(self.from.clone().unwrap_or_default());
        } else if let Some(root) = data.roots.iter_mut().find(|root| root.id == Some(self.tree)) {
            let since = if self.whole { 0 } else { root.checkpointed };
            let low = self.from.as_deref();
            self.resume = match &references {
                Some(vector) => match vector.tables.get(&self.tree) {
                    Some(table) => builder.add(self.tree, &table.tree, low, since),
                    None => None,
                },
                None => builder.add(self.tree, root.rows(), low, since),
            };
            if self.resume.is_none() {
                // If the checkpoint is given up after this, its rows are written all the same:
                // a leaf needs no second writing before it changes again.
                root.checkpointed = upto;
            }
        }
        self.slice = Some(builder.build());
        Ok(())
    }
}
