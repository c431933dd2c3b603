//! How far the log has come, as known beside it.
//!
//! A log whose newest files are cut short or gone looks like a shorter log: its batches number on
//! without a gap, and the note of the last checkpoint, which lies in the same files, may be an
//! older one. So a few words are kept elsewhere, and a start compares.
//!
//! ```text
//! start       after recovery                        synced
//! once a sec  after a batch that is synced          not synced: the kernel writes it soon
//! checkpoint  when it is done, before the log is cut  synced
//! stop        after the last batch                  synced
//! ```
//!
//! A watermark names only what was synced before it, so it may be behind, never ahead: after a
//! stop in order, and just after a start or a checkpoint, it is exact; after a crash the batches
//! of the last second before may have come after it (of the last seconds, when the power went).
//! In these a file that is cut short cannot be told from a batch that was being written.

use parking_lot::Mutex;

use super::batch::BatchNumber;
use super::store::{LogStore, StoreError};
use crate::id::Epoch;

/// What somebody can do whose log is not whole.
pub const WAYS_OUT: &str = "put back the file that is missing or cut short, or restore a backup; \
                            \"archipel reset-log\" goes on without what it held";

/// What a log must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// This batch was in the log, synced.
    pub batch: BatchNumber,
    /// So was everything up to this epoch.
    pub epoch: Epoch,
    /// The last checkpoint that is done leaves this batch as the first to replay.
    pub replay_from: BatchNumber,
}

impl Default for Watermark {
    /// Says nothing of any log.
    fn default() -> Self {
        Watermark { batch: BatchNumber(0), epoch: Epoch(0), replay_from: BatchNumber(0) }
    }
}

impl Watermark {
    /// The further of the two in each word.
    pub fn raised_to(self, other: Watermark) -> Watermark {
        Watermark {
            batch: self.batch.max(other.batch),
            epoch: self.epoch.max(other.epoch),
            replay_from: self.replay_from.max(other.replay_from),
        }
    }

    /// Refuses a log that ends before batch `next` and whose replay begins with `replay_from`, if
    /// it was longer.
    pub(super) fn require(self, replay_from: BatchNumber, next: BatchNumber) -> Result<(), StoreError> {
        match self.missing(replay_from, next) {
            None => Ok(()),
            Some(missing) => Err(StoreError::Damaged(missing)),
        }
    }

    /// What such a log lacks, in words.
    pub(super) fn missing(self, replay_from: BatchNumber, next: BatchNumber) -> Option<String> {
        if replay_from < self.replay_from {
            return Some(format!(
                "the log has lost its end: a checkpoint has left batch {} as the first to replay, and the \
                 log's own note of it says {}; {WAYS_OUT}",
                self.replay_from.0, replay_from.0
            ));
        }
        (next <= self.batch).then(|| {
            format!(
                "the log has lost its end: batch {} had been written, and it ends before batch {}; {WAYS_OUT}",
                self.batch.0, next.0
            )
        })
    }

    /// Refuses checkpoint rows of `epoch` beside a log that ends with `log`: rows are written only
    /// when their commits are durable.
    pub(super) fn require_rows(self, epoch: Epoch, log: Epoch) -> Result<(), StoreError> {
        if epoch <= log.max(self.epoch) {
            return Ok(());
        }
        Err(StoreError::Damaged(format!(
            "the log has lost its end: the checkpoint has rows of epoch {epoch}, the log ends with {log}; \
             {WAYS_OUT}"
        )))
    }
}

/// What the store was told last; the log's writer and its checkpointer raise it.
pub(super) struct Noted(Mutex<Watermark>);

impl Noted {
    pub(super) fn new(watermark: Watermark) -> Noted {
        Noted(Mutex::new(watermark))
    }

    /// Notes, durably, that the log has come so far; what was said already stays.
    pub(super) fn note(&self, store: &dyn LogStore, end: Watermark) -> Result<(), StoreError> {
        let mut noted = self.0.lock();
        let raised = noted.raised_to(end);
        store.put_watermark(raised, true)?;
        *noted = raised;
        Ok(())
    }

    /// Notes it sooner or later, and not while somebody else does who may wait for the disk.
    pub(super) fn note_soon(&self, store: &dyn LogStore, end: Watermark) -> Result<(), StoreError> {
        let Some(mut noted) = self.0.try_lock() else { return Ok(()) };
        let raised = noted.raised_to(end);
        store.put_watermark(raised, false)?;
        *noted = raised;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watermark_only_rises() {
        let low = Watermark { batch: BatchNumber(5), epoch: Epoch(9), replay_from: BatchNumber(1) };
        let high = Watermark { batch: BatchNumber(4), epoch: Epoch(10), replay_from: BatchNumber(3) };
        let both = Watermark { batch: BatchNumber(5), epoch: Epoch(10), replay_from: BatchNumber(3) };
        assert_eq!((low.raised_to(high), high.raised_to(low)), (both, both));
    }

    #[test]
    fn a_log_may_be_longer_and_not_shorter() {
        let mark = Watermark { batch: BatchNumber(5), epoch: Epoch(9), replay_from: BatchNumber(3) };
        assert_eq!(mark.missing(BatchNumber(3), BatchNumber(6)), None);
        assert_eq!(mark.missing(BatchNumber(4), BatchNumber(9)), None);
        let cut = mark.missing(BatchNumber(3), BatchNumber(5)).expect("batch 5 is missing");
        assert!(cut.contains("batch 5 had been written, and it ends before batch 5"), "{cut}");
        let older = mark.missing(BatchNumber(1), BatchNumber(6)).expect("the note is older");
        assert!(older.contains("batch 3 as the first to replay"), "{older}");
        assert!(mark.require_rows(Epoch(9), Epoch(7)).is_ok());
        assert!(mark.require_rows(Epoch(10), Epoch(9)).is_err());
    }
}
