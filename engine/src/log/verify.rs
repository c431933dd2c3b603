//! A look at every byte of a store that nobody serves, for `archipel check`.
//!
//! Recovery stops at the first contradiction; this goes on, so that a report shows all of
//! them. What it checks: the checksum, number and epochs of every batch; every transaction in them (its flags,
//! its length, a number that rises in its segment, all the parts that it names) and every record;
//! the order, tag and (in the store) block checksum of every checkpoint row; that the log goes as
//! far as it was known to, that no row is younger, and that the checkpoint is not an older one. Whether the rows fit their tables is recovery's to say.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::batch::{self, BatchNumber};
use super::checkpoint::{self, CheckpointMark};
use super::parts;
use super::stamp;
use super::store::{LogStore, StoreError};
use super::transaction::{Records, WithParts};
use super::watermark::{WAYS_OUT, Watermark};
use crate::id::TreeId;

/// Contradictions beyond this many are only counted.
const TOLD_MAX: usize = 20;

/// What is in a store.
#[derive(Clone, Debug, Default)]
pub struct StoreReport {
    /// The first batch a recovery would read.
    pub replay_from: u64,
    pub batches: u64,
    pub log_bytes: u64,
    /// Parts of large transactions, and the bytes of their records.
    pub parts: u64,
    pub part_bytes: u64,
    /// Of batches and parts.
    pub records: u64,
    /// The newest whole epoch.
    pub epoch: u64,
    /// Bytes at the end that a crash left unfinished; no commit in them was acknowledged.
    pub torn_bytes: u64,
    pub checkpoint_rows: u64,
    pub checkpoint_bytes: u64,
    /// Checkpoint rows by tree.
    pub rows_of: BTreeMap<TreeId, u64>,
    /// The first contradictions, in words.
    pub problems: Vec<String>,
    /// All of them.
    pub problem_count: u64,
}

impl StoreReport {
    fn problem(&mut self, problem: String) {
        self.problem_count += 1;
        if self.problems.len() < TOLD_MAX {
            self.problems.push(problem);
        }
    }
}

/// Reads everything; an error only if nothing can be said at all.
pub fn verify(store: &dyn LogStore) -> Result<StoreReport, StoreError> {
    let mark = CheckpointMark::read(store)?;
    let watermark = store.watermark()?.unwrap_or_default();
    let mut report = StoreReport { replay_from: mark.replay_from.0, ..StoreReport::default() };
    report.epoch = mark.epoch.0;
    if let Err(error) = verify_log(store, (mark, watermark), &mut report) {
        report.problem(format!("the log cannot be read: {error}"));
    }
    report.epoch = report.epoch.max(watermark.epoch.0);
    match stamp::missing(store) {
        Ok(None) => {}
        Ok(Some(missing)) => report.problem(missing),
        Err(error) => report.problem(format!("the checkpoint's stamp cannot be read: {error}")),
    }
    if let Err(error) = verify_rows(store, &mut report) {
        report.problem(format!("the checkpoint cannot be read to its end: {error}"));
    }
    Ok(report)
}

fn verify_log(
    store: &dyn LogStore,
    (mark, watermark): (CheckpointMark, Watermark),
    report: &mut StoreReport,
) -> Result<(), StoreError> {
    let mut next = mark.replay_from;
    let mut with_parts = Vec::new();
    let mut bad: Option<(BatchNumber, u64)> = None;
    store.read_log(mark.replay_from, &mut |number, bytes| {
        let length = bytes.len() as u64;
        let Some(header) = batch::check(bytes).filter(|header| header.number == number) else {
            let torn = bad.map_or(0, |(_, torn)| torn);
            bad = Some((bad.map_or(number, |(first, _)| first), torn + length));
            return ControlFlow::Continue(());
        };
        if let Some((first, _)) = bad.take() {
            report.problem(format!(
                "log batch {} is damaged, but batch {} after it is whole",
                first.0, number.0
            ));
        } else if number != next {
            report.problem(format!("log batch {} is missing", next.0));
        }
        if header.last.0 < report.epoch || header.first > header.last {
            report.problem(format!("log batch {} goes back in time", number.0));
        }
        next = number.next();
        report.batches += 1;
        report.log_bytes += length;
        report.epoch = header.last.0.max(report.epoch);
        with_parts.extend(verify_batch(number, bytes, report));
        ControlFlow::Continue(())
    })?;
    report.torn_bytes = bad.map_or(0, |(_, torn)| torn);
    if let Some(missing) = watermark.missing(mark.replay_from, next) {
        report.problem(missing);
    }
    for of in with_parts {
        verify_parts(store, &of, report);
    }
    Ok(())
}

/// Answers the transactions of a batch that have parts.
fn verify_batch(number: BatchNumber, bytes: &[u8], report: &mut StoreReport) -> Vec<WithParts> {
    batch::each_record(bytes, |_, _| report.records += 1).unwrap_or_else(|error| {
        report.problem(format!("log batch {}: {error}", number.0));
        Vec::new()
    })
}

fn verify_parts(store: &dyn LogStore, of: &WithParts, report: &mut StoreReport) {
    let read = parts::read_all(store, of, &mut |records| {
        report.parts += 1;
        report.part_bytes += records.len() as u64;
        for located in Records::of_transaction(records, of.number) {
            let told = |error| StoreError::Damaged(format!("a part of transaction {}: {error}", of.parts.id));
            located.map_err(told)?;
            report.records += 1;
        }
        Ok(())
    });
    match read {
        Ok(()) => {}
        Err(StoreError::Damaged(told)) => report.problem(told),
        Err(error) => report.problem(format!("parts of transaction {}: {error}", of.parts.id)),
    }
}

fn verify_rows(store: &dyn LogStore, report: &mut StoreReport) -> Result<(), StoreError> {
    let mut before: Option<(TreeId, Vec<u8>)> = None;
    store.checkpoint_scan(None, None, &mut |tree, key, value| {
        if stamp::is_stamp(tree, key) {
            return ControlFlow::Continue(());
        }
        report.checkpoint_rows += 1;
        report.checkpoint_bytes += (key.len() + value.len()) as u64;
        *report.rows_of.entry(tree).or_default() += 1;
        match &mut before {
            Some((last_tree, last_key)) => {
                if (*last_tree, last_key.as_slice()) >= (tree, key) {
                    report.problem(format!("checkpoint rows of tree {tree} are out of order"));
                }
                *last_tree = tree;
                last_key.clear();
                last_key.extend_from_slice(key);
            }
            None => before = Some((tree, key.to_vec())),
        }
        match checkpoint::decode_row(value) {
            Ok((tag, _)) if tag.epoch.0 > report.epoch => {
                report.problem(format!(
                    "a checkpoint row of tree {tree} is of epoch {}, the log ends with {}; {WAYS_OUT}",
                    tag.epoch, report.epoch
                ));
            }
            Ok(_) => {}
            Err(error) => report.problem(format!("tree {tree}: {error}")),
        }
        ControlFlow::Continue(())
    })
}

#[cfg(test)]
mod tests {
    use super::super::store::Losses;
    use super::*;
    use crate::id::Epoch;
    use crate::log::store::CheckpointChange;
    use crate::log::{MemoryStore, redo};

    fn batch(number: u64, epoch: u64) -> Vec<u8> {
        let mut records = Vec::new();
        redo::put(&mut records, TreeId(20), &number.to_be_bytes(), b"row");
        let epochs = (Epoch(epoch), Epoch(epoch));
        batch::encode(BatchNumber(number), epochs, [(Epoch(epoch), epoch, records.as_slice())])
    }

    fn store(numbers: &[u64]) -> MemoryStore {
        let store = MemoryStore::new();
        for &number in numbers {
            store.append(BatchNumber(number), &batch(number, number + 10), true).expect("written");
        }
        store
    }

    #[test]
    fn a_good_store_has_no_problems() {
        let report = verify(&store(&[1, 2, 3])).expect("readable");
        assert_eq!((report.batches, report.records, report.epoch), (3, 3, 13));
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }

    #[test]
    fn a_gap_a_bad_batch_and_a_row_from_the_future_are_all_told() {
        let store = store(&[1, 2, 4, 6]);
        let mut bad = batch(5, 15);
        bad[40] ^= 1;
        store.append(BatchNumber(5), &bad, true).expect("written");
        let future =
            CheckpointChange { tree: TreeId(20), key: (*b"key").into(), value: Some(vec![99, 1, b'r']) };
        store.checkpoint_write(Losses::default(), &[future]).expect("written");
        let report = verify(&store).expect("readable");
        let told = report.problems.join("\n");
        assert_eq!(report.problem_count, 3, "{told}");
        assert!(told.contains("log batch 3 is missing"), "{told}");
        assert!(told.contains("log batch 5 is damaged, but batch 6 after it is whole"), "{told}");
        assert!(told.contains("of epoch 99, the log ends with 16"), "{told}");
    }

    #[test]
    fn parts_are_looked_at_and_damage_to_them_is_told() {
        let store = crate::log::tests::parts::store_with_parts(1);
        let report = verify(&store).expect("readable");
        assert_eq!((report.batches, report.parts, report.records, report.problem_count), (1, 2, 3, 0));
        store.damage_part(crate::id::TxnId(1), 1, 9);
        let told = verify(&store).expect("readable").problems.join("\n");
        assert!(told.contains("part 1 of a transaction is damaged: transaction 1 of epoch 1"), "{told}");
        store.lose_part(crate::id::TxnId(1), 0);
        let told = verify(&store).expect("readable").problems.join("\n");
        assert!(told.contains("part 0 of a transaction is missing: transaction 1 of epoch 1"), "{told}");
    }

    #[test]
    fn a_log_that_was_longer_is_told() {
        let store = store(&[1, 2]);
        let watermark = Watermark { batch: BatchNumber(3), epoch: Epoch(13), replay_from: BatchNumber(1) };
        store.put_watermark(watermark, false).expect("noted");
        let told = verify(&store).expect("readable").problems.join("\n");
        assert!(told.contains("batch 3 had been written, and it ends before batch 3"), "{told}");
        store.append(BatchNumber(3), &batch(3, 13), true).expect("written");
        assert_eq!(verify(&store).expect("readable").problem_count, 0);
    }

    #[test]
    fn a_torn_tail_is_no_problem() {
        let store = store(&[1, 2]);
        let torn = batch(3, 13);
        store.append(BatchNumber(3), &torn[..20], true).expect("written");
        let report = verify(&store).expect("readable");
        assert_eq!((report.problem_count, report.torn_bytes), (0, 20));
    }
}
