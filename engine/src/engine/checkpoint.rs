//! Checkpoints: slices of changed leaves, each read under its partition's claim.
//!
//! A slice is a program like any other, so a checkpoint never stops anybody for longer than
//! one slice takes. It holds no snapshot: every row carries the tag of its partition's newest
//! commit, and is written only after that commit is durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Shared, SubmitOptions, submit_on};
use crate::id::{GroupId, TreeId};
use crate::log::checkpoint::Slice;
use crate::log::{Checkpointer, SliceBuilder, StoreError};
use crate::partition::{ClaimSet, RoutingTable};
use crate::program::{Program, Stop};
use crate::storage::KeyBuf;
use crate::table::REFERENCE_GROUP;
use crate::txn::Txn;

/// Pause between slices, so that a checkpoint stays in the background.
const PAUSE: Duration = Duration::from_micros(500);

/// Takes one checkpoint.
pub(super) fn run(
    shared: &Arc<Shared>,
    checkpointer: &mut Checkpointer,
    stop: &AtomicBool,
) -> Result<(), StoreError> {
    let whole = checkpointer.begin(shared.epochs.current());
    let routing = shared.load_routing();
    for group in routing.groups() {
        let mut low = Some(KeyBuf::new());
        // By key, not by partition: splits in between are followed, not missed.
        while let Some(from) = low.take() {
            low = partition(shared, checkpointer, group, from, whole, stop)?;
            if stop.load(Ordering::Acquire) && shared.config.background {
                return Ok(());
            }
        }
    }
    while checkpointer.finish()?.is_none() {
        if shared.log_failed() {
            return Ok(());
        }
        if shared.config.background {
            std::thread::sleep(Duration::from_millis(1));
        } else {
            return Err(StoreError::Failed("a checkpoint needs its commits durable first".into()));
        }
    }
    Ok(())
}

/// Writes the changed leaves of the partition that starts at `low`; where the next one starts.
fn partition(
    shared: &Arc<Shared>,
    checkpointer: &mut Checkpointer,
    group: GroupId,
    low: KeyBuf,
    whole: bool,
    stop: &AtomicBool,
) -> Result<Option<KeyBuf>, StoreError> {
    let mut at = None;
    let mut upto = None;
    loop {
        let program = TakeSlice {
            group,
            whole,
            low: low.clone(),
            bytes_max: shared.config.checkpoint_slice_bytes,
            from: at.take(),
            upto,
            slice: None,
            resume: None,
            next: None,
        };
        let completed =
            submit_on(shared, program, SubmitOptions { read_only: true, ..SubmitOptions::default() }).wait();
        let TakeSlice { slice, resume, next, upto: seen, .. } = completed.program;
        upto = seen;
        let Some(slice) = slice else { return Ok(None) };
        let mut settled = checkpointer.write(slice)?;
        while !settled && shared.config.background && !stop.load(Ordering::Acquire) && !shared.log_failed() {
            std::thread::sleep(Duration::from_millis(1));
            settled = checkpointer.write_durable()?;
        }
        match resume {
            Some(resume) => at = Some(resume),
            None => return Ok(next),
        }
        if shared.config.background {
            std::thread::sleep(PAUSE);
        }
    }
}

/// One slice of one partition.
struct TakeSlice {
    group: GroupId,
    /// Write every leaf, whatever the last checkpoint has.
    whole: bool,
    low: KeyBuf,
    bytes_max: usize,
    /// The tree and key to go on from.
    from: Option<(TreeId, Vec<u8>)>,
    /// The sequence as of the first slice: leaves changed later belong to the next checkpoint
    /// too.
    upto: Option<u64>,
    slice: Option<Slice>,
    resume: Option<(TreeId, Vec<u8>)>,
    next: Option<KeyBuf>,
}

impl Program for TakeSlice {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.add_point(self.group, &self.low);
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.resume = None;
        let tables = txn.table_ids();
        let references = (self.group == REFERENCE_GROUP).then(|| txn.published_references());
        let data = txn.partition_data(self.group, &self.low)?;
        let upto = *self.upto.get_or_insert(data.sequence);
        let since = if self.whole { 0 } else { data.checkpointed };
        let mut builder = SliceBuilder::new(data.newest_tag(), self.bytes_max);
        let mut ids: Vec<TreeId> =
            data.roots.iter().filter_map(|root| root.id).filter(|id| tables.contains(id)).collect();
        ids.sort_unstable();
        for id in ids {
            let low = match &self.from {
                Some((tree, _)) if *tree > id => continue,
                Some((tree, key)) if *tree == id => Some(&key[..]),
                _ => None,
            };
            let resume = match &references {
                Some(vector) => match vector.tables.get(&id) {
                    Some(table) => builder.add(id, &table.tree, low, since),
                    None => None,
                },
                None => match data.roots.iter().find(|root| root.id == Some(id)) {
                    Some(root) => builder.add(id, &root.tree, low, since),
                    None => None,
                },
            };
            if let Some(key) = resume {
                self.resume = Some((id, key));
                break;
            }
            if builder.is_full() {
                // The next tree starts a slice of its own.
                self.resume = Some((TreeId(id.0 + 1), Vec::new()));
                break;
            }
        }
        if self.resume.is_none() {
            // If the checkpoint is given up after this, its rows are written all the same: a
            // leaf needs no second writing before it changes again.
            data.checkpointed = upto;
        }
        self.next = data.high.clone();
        self.slice = Some(builder.build());
        Ok(())
    }
}
