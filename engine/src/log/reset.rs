//! Going on with what is left of a log, for `archipel reset-log`.
//!
//! A start refuses a log that has lost its end, or a batch in its middle. When what is missing
//! cannot be put back and no backup is at hand, this keeps the batches up to the first gap,
//! forgets those behind it, and says so to the next start: the commits in between are lost. Rows
//! that the checkpoint has of them stay, so the newest state may be half there; whoever resets
//! a log looks through the tables afterwards, and dumps and reloads them.
//!
//! Tags of what is written from then on must be above those of all that stays, or the next
//! recovery would take an older row for the newer one: epochs and numbers go on above every
//! batch, every checkpoint row and the watermark.
//!
//! A transaction that lacks a part is a gap, too: its batch goes, and all behind it.
//!
//! The same goes on with a checkpoint that is older than its log: rows as they were then, and what
//! the log has of them since.

use std::ops::ControlFlow;

use super::batch::{self, BatchNumber};
use super::checkpoint::{self, CheckpointMark};
use super::store::{LogStore, StoreError};
use super::transaction::{Located, WithParts};
use super::watermark::Watermark;
use super::{pair, parts, stamp};
use crate::id::{Epoch, TxnId};

/// What a reset found and left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// Batches that stay.
    pub kept: u64,
    /// Batches that were there, behind a gap, and are forgotten.
    pub dropped: u64,
    /// The newest batch that was known to have been written.
    pub known: BatchNumber,
    /// The newest that stays.
    pub last: BatchNumber,
    /// Epochs go on above this one.
    pub epoch: Epoch,
}

impl Reset {
    /// Batches that are lost, as far as anybody knows.
    pub fn lost(&self) -> u64 {
        self.known.0.saturating_sub(self.last.0).max(self.dropped)
    }
}

/// The batches up to the first gap.
struct Kept {
    next: BatchNumber,
    last: Epoch,
    /// Of everything there is, behind the gap too.
    newest: Epoch,
    number_max: u64,
    kept: u64,
    dropped: u64,
    gap: bool,
    /// Transactions that have parts, each with where the log would end before its batch.
    with_parts: Vec<(BatchNumber, Epoch, WithParts)>,
}

impl Kept {
    fn see(&mut self, number: BatchNumber, bytes: &[u8]) {
        let header = batch::check(bytes).filter(|header| header.number == number);
        if let Some(header) = header {
            self.newest = self.newest.max(header.last);
        }
        let follows = |header: batch::BatchHeader| number == self.next && header.last >= self.last;
        let records = header.filter(|_| !self.gap).filter(|header| follows(*header)).and_then(|header| {
            let (number, with_parts) = number_max(bytes)?;
            Some((header.last, number, with_parts))
        });
        let Some((last, greatest, with_parts)) = records else {
            self.gap = true;
            self.dropped += 1;
            return;
        };
        let before = self.last;
        self.with_parts.extend(with_parts.into_iter().map(|of| (number, before, of)));
        self.last = last;
        self.number_max = self.number_max.max(greatest);
        self.next = number.next();
        self.kept += 1;
    }

    /// Ends the log before the first transaction that lacks a part, or has a damaged one.
    fn require_parts(&mut self, store: &dyn LogStore) -> Result<(), StoreError> {
        for (batch, before, of) in &self.with_parts {
            match parts::read_all(store, of, &mut |_| Ok(())) {
                Ok(()) => {}
                Err(StoreError::Damaged(told)) => {
                    tracing::warn!("{told}");
                    let cut = self.next.0 - batch.0;
                    (self.next, self.last, self.gap) = (*batch, *before, true);
                    self.kept -= cut;
                    self.dropped += cut;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The greatest id of a transaction that is known, behind the end too.
    fn transaction_max(&self, store: &dyn LogStore, mark: TxnId) -> Result<TxnId, StoreError> {
        let named = self.with_parts.iter().map(|(_, _, of)| of.parts.id);
        Ok(named.chain(store.part_ids()?).fold(mark, TxnId::max))
    }
}

/// The greatest number in a batch, and its transactions that have parts; `None` if it cannot be taken apart.
fn number_max(bytes: &[u8]) -> Option<(u64, Vec<WithParts>)> {
    let mut greatest = 0;
    let taken = batch::each_record(bytes, |_, Located { transaction, record, .. }| {
        greatest = greatest.max(transaction).max(record.number);
    });
    let with_parts = taken.ok()?;
    Some((with_parts.iter().map(|of| of.number).fold(greatest, u64::max), with_parts))
}

/// Keeps what can be kept of a store's log.
pub fn reset(store: &dyn LogStore) -> Result<Reset, StoreError> {
    let mark = CheckpointMark::read(store)?;
    let watermark = store.watermark()?.unwrap_or_default();
    // The note in the log may be older than the checkpoint, which has all that came before.
    let replay_from = mark.replay_from.max(watermark.replay_from);
    let mut log = Kept {
        next: replay_from,
        last: mark.epoch,
        newest: mark.epoch.max(watermark.epoch),
        number_max: mark.number_max,
        kept: 0,
        dropped: 0,
        gap: false,
        with_parts: Vec::new(),
    };
    store.read_log(replay_from, &mut |number, bytes| {
        log.see(number, bytes);
        ControlFlow::Continue(())
    })?;
    log.require_parts(store)?;
    let mut unreadable = None;
    store.checkpoint_scan(None, None, &mut |_, _, value| match checkpoint::decode_row(value) {
        Ok((tag, _)) => {
            log.newest = log.newest.max(tag.epoch);
            log.number_max = log.number_max.max(tag.number);
            ControlFlow::Continue(())
        }
        Err(error) => {
            unreadable = Some(error);
            ControlFlow::Break(())
        }
    })?;
    if let Some(error) = unreadable {
        return Err(error);
    }
    if log.gap {
        store.truncate_tail(log.next)?;
        store.sync()?;
    }
    // It may be an older one: then it is taken for what it is.
    stamp::note(store, stamp::read_stamp(store)?)?;
    pair::accept(store)?;
    let transaction_max = log.transaction_max(store, mark.transaction_max)?;
    CheckpointMark { replay_from, number_max: log.number_max, epoch: mark.epoch, transaction_max }
        .write(store)?;
    let last = BatchNumber(log.next.0.saturating_sub(1));
    store.put_watermark(Watermark { batch: last, epoch: log.newest, replay_from }, true)?;
    Ok(Reset { kept: log.kept, dropped: log.dropped, known: watermark.batch, last, epoch: log.newest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TreeId;
    use crate::log::store::{CheckpointChange, Losses};
    use crate::log::{MemoryStore, recover, redo};

    fn store(batches: u64) -> MemoryStore {
        let store = MemoryStore::new();
        for number in 1..=batches {
            let mut records = Vec::new();
            redo::put(&mut records, TreeId(20), &number.to_be_bytes(), b"row");
            let epoch = Epoch(number);
            let bytes =
                batch::encode(BatchNumber(number), (epoch, epoch), [(epoch, number, records.as_slice())]);
            store.append(BatchNumber(number), &bytes, true).expect("written");
        }
        let watermark =
            Watermark { batch: BatchNumber(batches), epoch: Epoch(batches), replay_from: BatchNumber(1) };
        store.put_watermark(watermark, true).expect("noted");
        store
    }

    #[test]
    fn what_stands_before_the_gap_stays_and_tags_go_on_above_all_that_stays() {
        let store = store(9);
        store.lose(BatchNumber(6));
        // A row of a checkpoint that was under way, newer than all that is left.
        let row =
            CheckpointChange { tree: TreeId(20), key: (*b"key").into(), value: Some(vec![9, 77, b'r']) };
        store.checkpoint_write(Losses::default(), &[row]).expect("written");
        assert!(recover(&store, 2, &|_| {}).is_err(), "batch 6 is missing");
        let done = reset(&store).expect("nothing else is wrong");
        assert_eq!((done.kept, done.dropped, done.last, done.lost()), (5, 3, BatchNumber(5), 4));
        let recovered = recover(&store, 2, &|_| {}).expect("recovers");
        assert_eq!((recovered.epoch, recovered.number_max), (Epoch(9), 77));
        assert_eq!(recovered.next_batch, BatchNumber(6));
        assert_eq!(recovered.trees[&TreeId(20)].len(), 6);
    }

    #[test]
    fn a_log_ends_before_the_first_transaction_that_lacks_a_part() {
        let damages: [fn(&MemoryStore); 2] =
            [|store| store.lose_part(TxnId(3), 1), |store| store.damage_part(TxnId(3), 0, 7)];
        for damage in damages {
            let store = crate::log::tests::parts::store_with_parts(5);
            assert_eq!(reset(&store).expect("resets").kept, 5, "all are there");
            damage(&store);
            let told = recover(&store, 2, &|_| {}).err().expect("refused").to_string();
            assert!(told.contains("transaction 3 of epoch 3"), "{told}");
            let done = reset(&store).expect("resets");
            assert_eq!((done.kept, done.dropped, done.last), (2, 3, BatchNumber(2)));
            let recovered = recover(&store, 2, &|_| {}).expect("recovers");
            assert_eq!((recovered.next_batch, recovered.transaction_max), (BatchNumber(3), TxnId(5)));
            assert_eq!(recovered.trees[&TreeId(20)].len(), 6);
            assert_eq!(store.part_ids().expect("readable"), [TxnId(1), TxnId(2)], "nobody names the others");
        }
    }

    #[test]
    fn a_log_without_its_end_is_refused_before_and_taken_after() {
        let store = store(4);
        store.lose(BatchNumber(4));
        let error = recover(&store, 1, &|_| {}).err().expect("refused");
        assert!(matches!(&error, StoreError::Damaged(told) if told.contains("batch 4 had been written")));
        assert_eq!(reset(&store).expect("resets").lost(), 1);
        let recovered = recover(&store, 1, &|_| {}).expect("recovers");
        assert_eq!((recovered.epoch, recovered.next_batch), (Epoch(4), BatchNumber(4)));
    }

    #[test]
    fn a_log_that_is_gone_after_its_checkpoint_leaves_the_checkpoint() {
        let store = MemoryStore::new();
        let row = CheckpointChange { tree: TreeId(20), key: (*b"key").into(), value: Some(vec![5, 8, b'r']) };
        store.checkpoint_write(Losses::default(), &[row]).expect("written");
        let watermark = Watermark { batch: BatchNumber(7), epoch: Epoch(6), replay_from: BatchNumber(7) };
        store.put_watermark(watermark, true).expect("noted");
        let error = recover(&store, 1, &|_| {}).err().expect("refused");
        assert!(error.to_string().contains("batch 7 as the first to replay"), "{error}");
        reset(&store).expect("resets");
        let recovered = recover(&store, 1, &|_| {}).expect("recovers");
        assert_eq!((recovered.epoch, recovered.number_max), (Epoch(6), 8));
        assert_eq!(recovered.next_batch, BatchNumber(7));
    }
}
