//! Reading the log at a start.
//!
//! Several stretches of it at once, each batch checked, taken apart and sorted by whoever reads
//! it: so the disk and all cores work together. What a batch may look like depends on those
//! before it (numbers without gaps, epochs that grow, nothing whole behind a torn end); that is
//! looked at when all of them have been seen. Then come the [`parts`] that their transactions name, several stretches
//! of them at once, too.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use super::batch::{self, BatchHeader, BatchNumber};
use super::by_key::Run;
use super::checkpoint::CheckpointMark;
use super::parts::{self, Checksums};
use super::recovery::Progress;
use super::store::{LogStore, StoreError};
use super::transaction::WithParts;
use super::watermark::Watermark;
use super::writer::IndexEntry;
use crate::id::Epoch;
use crate::parallel::in_parallel;

/// Stretches per reader: so that one with long batches does not keep the others waiting.
const STRETCHES_PER_READER: u64 = 4;

/// Parts of one transaction that are read by one reader: what makes a run of records, or two.
const PARTS_AT_ONCE: u32 = 32;

/// What the log says.
pub(super) struct ReadLog {
    /// Its records, in its order; before them those of parts.
    pub(super) runs: Vec<Run>,
    /// The transactions that have parts.
    pub(super) with_parts: Vec<WithParts>,
    pub(super) index: VecDeque<IndexEntry>,
    /// The number of the next batch.
    pub(super) next: BatchNumber,
    /// The newest whole epoch.
    pub(super) epoch: Epoch,
    /// When the epochs of the last batch were closed; the least there is, if no batch says.
    pub(super) closed_micros: i64,
    /// Bytes cut off as a torn tail.
    pub(super) torn_bytes: u64,
}

/// A batch that was read.
struct Seen {
    number: BatchNumber,
    bytes: u64,
    /// Bytes of the parts that it names.
    part_bytes: u64,
    /// What a batch that checks says of itself.
    header: Option<BatchHeader>,
}

/// Batches with numbers from the first on and, if there is a second, below it.
type Stretch = (BatchNumber, Option<BatchNumber>);

/// What a stretch of the log holds.
#[derive(Default)]
struct Contents {
    runs: Vec<Run>,
    with_parts: Vec<WithParts>,
    seen: Vec<Seen>,
    /// The first batch that checks and cannot be taken apart.
    malformed: Option<StoreError>,
}

/// Reads all that a checkpoint's mark leaves to replay, by `readers` at once; at least up to the
/// watermark.
pub(super) fn read(
    store: &dyn LogStore,
    (mark, watermark): (&CheckpointMark, &Watermark),
    readers: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<ReadLog, StoreError> {
    let stretches = stretches(mark.replay_from, store.last_batch()?, readers);
    let bytes_read = AtomicU64::new(0);
    let count = |bytes: u64| {
        let bytes = bytes_read.fetch_add(bytes, Ordering::Relaxed) + bytes;
        progress(Progress::Log { bytes });
    };
    let contents = in_parallel(stretches, readers, |stretch| read_stretch(store, stretch, &count));
    let mut log = ReadLog {
        runs: Vec::new(),
        with_parts: Vec::new(),
        index: VecDeque::new(),
        next: mark.replay_from,
        epoch: mark.epoch,
        closed_micros: i64::MIN,
        torn_bytes: 0,
    };
    let mut bad = None;
    let mut malformed = None;
    for contents in contents {
        let contents = contents?;
        for seen in &contents.seen {
            log.follow(seen, &mut bad)?;
        }
        log.runs.extend(contents.runs);
        log.with_parts.extend(contents.with_parts);
        malformed = malformed.or(contents.malformed);
    }
    if let Some(malformed) = malformed {
        return Err(malformed);
    }
    // Before anything is changed.
    watermark.require(mark.replay_from, log.next)?;
    #[cfg(test)]
    apply_undecided(store, &mut log)?;
    let mut runs = read_parts(store, &log.with_parts, readers, &count)?;
    runs.append(&mut log.runs);
    log.runs = runs;
    if let Some(bad) = bad {
        tracing::warn!(batch = bad.0, bytes = log.torn_bytes, "cutting off the torn end of the log");
        store.truncate_tail(log.next)?;
        store.sync()?;
    }
    Ok(log)
}

impl ReadLog {
    /// Notes the batch after those before it; `bad` is the first that did not check.
    fn follow(&mut self, seen: &Seen, bad: &mut Option<BatchNumber>) -> Result<(), StoreError> {
        let Some(BatchHeader { last, closed_micros, .. }) = seen.header else {
            bad.get_or_insert(seen.number);
            self.torn_bytes += seen.bytes;
            return Ok(());
        };
        if let Some(bad) = bad {
            let (bad, whole) = (bad.0, seen.number.0);
            return Err(StoreError::Damaged(format!(
                "log batch {bad} is damaged, but batch {whole} after it is whole"
            )));
        }
        if seen.number != self.next || last < self.epoch {
            return Err(StoreError::Damaged(format!("log batch {} is missing", self.next.0)));
        }
        self.next = seen.number.next();
        self.epoch = last;
        self.closed_micros = closed_micros.unwrap_or(i64::MIN).max(self.closed_micros);
        let bytes = seen.bytes + seen.part_bytes;
        self.index.push_back(IndexEntry { number: seen.number, last, bytes });
        Ok(())
    }
}

/// Cuts the batches from `first` to `last` into stretches; the last one takes all there is.
fn stretches(first: BatchNumber, last: Option<BatchNumber>, readers: usize) -> Vec<Stretch> {
    let batches = last.map_or(0, |last| (last.0 + 1).saturating_sub(first.0));
    let count = match readers {
        0 | 1 => 1,
        readers => (readers as u64 * STRETCHES_PER_READER).min(batches).max(1),
    };
    let begin =
        |nth: u64| BatchNumber(first.0 + (u128::from(batches) * u128::from(nth) / u128::from(count)) as u64);
    (0..count).map(|nth| (begin(nth), (nth + 1 < count).then(|| begin(nth + 1)))).collect()
}

fn read_stretch(
    store: &dyn LogStore,
    (first, end): Stretch,
    progress: &dyn Fn(u64),
) -> Result<Contents, StoreError> {
    let mut contents = Contents::default();
    let mut run = Run::default();
    store.read_log(first, &mut |number, bytes| {
        if end.is_some_and(|end| number >= end) {
            return ControlFlow::Break(());
        }
        let length = bytes.len() as u64;
        progress(length);
        let header = batch::check(bytes).filter(|header| header.number == number);
        let mut part_bytes = 0;
        // After an error it is only looked at which batches there are.
        if header.is_some() && contents.malformed.is_none() {
            match run.add(bytes) {
                Ok(with_parts) => {
                    part_bytes = with_parts.iter().map(|of| of.parts.bytes).sum();
                    contents.with_parts.extend(with_parts);
                }
                Err(error) => contents.malformed = Some(error),
            }
            if run.is_full() {
                run.sort();
                contents.runs.push(std::mem::take(&mut run));
            }
        }
        contents.seen.push(Seen { number, bytes: length, part_bytes, header });
        ControlFlow::Continue(())
    })?;
    run.sort();
    contents.runs.push(run);
    Ok(contents)
}

/// Reads all parts of these transactions. One that is missing, or is not what it was, is damage.
fn read_parts(
    store: &dyn LogStore,
    with_parts: &[WithParts],
    readers: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Run>, StoreError> {
    let mut stretches = Vec::new();
    for of in with_parts {
        let mut first = 0;
        while first < of.parts.count {
            let end = of.parts.count.min(first.saturating_add(PARTS_AT_ONCE));
            stretches.push((*of, first..end));
            first = end;
        }
    }
    let read = in_parallel(stretches, readers, |(of, wanted)| {
        let mut run = Run::default();
        let checked = parts::read_some(store, &of, wanted, &mut |records| {
            progress(records.len() as u64);
            run.add_part(&of, records)
        });
        run.sort();
        checked.map(|checked| (run, checked))
    });
    let mut read = read.into_iter();
    let mut runs = Vec::new();
    for of in with_parts {
        let mut all = Checksums::default();
        for stretch in read.by_ref().take(of.parts.count.div_ceil(PARTS_AT_ONCE) as usize) {
            let (run, checked) = stretch?;
            all.join(checked);
            runs.push(run);
        }
        all.require(of)?;
    }
    Ok(runs)
}

/// The mistake of taking all parts there are for parts of transactions that have committed.
#[cfg(test)]
fn apply_undecided(store: &dyn LogStore, log: &mut ReadLog) -> Result<(), StoreError> {
    if !crate::planted::is(crate::planted::Bug::UndecidedApplied) {
        return Ok(());
    }
    for id in store.part_ids()? {
        if log.with_parts.iter().any(|of| of.parts.id == id) {
            continue;
        }
        let mut framer = parts::Framer::new(id);
        store.read_parts(id, 0, &mut |_, value| match parts::unframe(value) {
            Some((_, records)) => {
                framer.frame(records);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        })?;
        // Behind all that has committed.
        let parts = framer.parts();
        if parts.count > 0 {
            log.with_parts.push(WithParts { epoch: log.epoch, number: 1 << 50, parts });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_hold_each_batch_once_and_their_end_is_open() {
        for (first, last) in [(1, 0), (1, 1), (7, 8), (1, 1_000), (u64::MAX - 9, u64::MAX - 1)] {
            for readers in 0..5 {
                let all = stretches(BatchNumber(first), Some(BatchNumber(last)), readers);
                assert_eq!(all[0].0, BatchNumber(first));
                assert_eq!(all[all.len() - 1].1, None);
                for pair in all.windows(2) {
                    assert_eq!(pair[0].1, Some(pair[1].0));
                    assert!(pair[0].0 < pair[1].0);
                }
                let wanted = if readers < 2 { 1 } else { readers as u64 * STRETCHES_PER_READER };
                assert_eq!(all.len() as u64, wanted.min((last + 1 - first).max(1)));
            }
        }
        assert_eq!(stretches(BatchNumber(3), None, 4), [(BatchNumber(3), None)]);
    }
}
