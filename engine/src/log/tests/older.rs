//! The log as versions wrote it that knew no transactions.
//!
//! What this version has written is written anew: each record has a sequence of its own, which grows along its
//! partition as numbers do.

use std::ops::ControlFlow;

use super::super::batch::{self, BatchNumber, MAGIC_OF_OLDER};
use super::super::input::put_varint;
use super::super::memory::MemoryStore;
use super::super::redo::{META_TREE, Operation, Record};
use super::super::store::LogStore;

/// No transaction of these tests has more records.
const RECORDS_MAX: u64 = 64;

/// The sequence of a partition whose newest transaction had this number.
pub fn newest(number: u64) -> u64 {
    number * RECORDS_MAX + RECORDS_MAX - 1
}

/// Writes the last batch of a log anew.
pub fn rewrite_last(store: &MemoryStore) {
    let mut last = None;
    let mut visit = |number: BatchNumber, bytes: &[u8]| {
        last = Some((number, bytes.to_vec()));
        ControlFlow::Continue(())
    };
    let from = store.batches().last().copied().unwrap_or(BatchNumber(0));
    store.read_log(from, &mut visit).expect("readable");
    if let Some((number, bytes)) = last
        && bytes[..4] != MAGIC_OF_OLDER
    {
        store.append(number, &rewritten(&bytes), true).expect("no faults");
    }
}

fn rewritten(batch: &[u8]) -> Vec<u8> {
    let header = batch::check(batch).expect("whole");
    let mut out = [&MAGIC_OF_OLDER[..], &[0; 4]].concat();
    for word in [header.number.0, header.first.0, header.last.0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for segment in batch::segments(batch) {
        let segment = segment.expect("well formed");
        let mut records = Vec::new();
        let (mut transaction, mut at) = (0, 0);
        for located in segment.records() {
            let located = located.expect("well formed");
            at = if located.transaction == transaction { at + 1 } else { 0 };
            transaction = located.transaction;
            assert!(at < RECORDS_MAX);
            let sequence = match located.record.tree {
                META_TREE => located.record.number,
                _ => transaction * RECORDS_MAX + at,
            };
            put_record(&mut records, &located.record, sequence);
        }
        out.extend_from_slice(&segment.epoch().0.to_le_bytes());
        out.extend_from_slice(&(records.len() as u32).to_le_bytes());
        out.extend_from_slice(&records);
    }
    let crc = crc32c::crc32c(&out[8..]);
    out[4..8].copy_from_slice(&crc.to_le_bytes());
    out
}

fn put_record(out: &mut Vec<u8>, record: &Record<'_>, sequence: u64) {
    out.push(match record.operation {
        Operation::Put(_) => 1,
        Operation::Patch(_) => 2,
        Operation::Delete => 3,
        Operation::DropTree => 4,
    });
    put_varint(out, u64::from(record.tree.0));
    put_varint(out, sequence);
    put_varint(out, record.key.len() as u64);
    out.extend_from_slice(record.key);
    match record.operation {
        Operation::Put(row) => {
            put_varint(out, row.len() as u64);
            out.extend_from_slice(row);
        }
        Operation::Patch(patch) => out.extend_from_slice(patch),
        Operation::Delete | Operation::DropTree => {}
    }
}
