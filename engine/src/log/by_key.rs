//! The log's records by key, as replay takes them.
//!
//! A log holds tens of millions of records of a few dozen bytes each. Decoded, they take several
//! times the log's own size, and sorting them moves all of it about. So what is dealt out and
//! sorted is an [`Entry`] a record: its tree, the first bytes of its key as integers, and where
//! it lies. It is decoded again when its key's turn comes.
//!
//! The place in the log settles the order of one key's records: it ascends with the epoch. Only
//! where several threads wrote a key in one epoch do their sequences have to be looked at, and
//! only where keys share all the bytes an entry has are whole keys compared.

use std::iter::Peekable;

use rustc_hash::FxHashSet;

use super::batch;
use super::redo::{self, Operation, Record, Tag};
use super::store::{CheckpointKey, StoreError};
use crate::id::{Epoch, TreeId};
use crate::parallel::in_parallel;

/// What one thread wrote in one epoch.
#[derive(Clone, Copy)]
pub(super) struct Segment<'l> {
    epoch: Epoch,
    records: &'l [u8],
}

/// A record and its tag.
pub(super) type Tagged<'l> = (Tag, Record<'l>);

/// The first bytes of a key: they compare as the keys do, as far as they go.
type Head = [u64; 2];

/// Where a record lies; in the order of trees and keys as far as heads go, then of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    tree: TreeId,
    head: Head,
    segment: u32,
    offset: u32,
}

/// The records of a stretch of the log, by the part of the key space they belong to.
#[derive(Default)]
struct Stretch {
    parts: Vec<Vec<Entry>>,
    dropped: Vec<TreeId>,
    sequence_max: u64,
    records: u64,
}

/// The log, dealt out.
pub(super) struct Dealt {
    /// For each part, what each stretch of the log has for it.
    pub shares: Vec<Vec<Vec<Entry>>>,
    /// Trees that a record drops.
    pub dropped: FxHashSet<TreeId>,
    /// No record has a greater sequence.
    pub sequence_max: u64,
    /// Records there are, but for those that drop a tree.
    pub records: u64,
}

fn head(key: &[u8]) -> Head {
    let mut bytes = [0; 16];
    let length = key.len().min(bytes.len());
    bytes[..length].copy_from_slice(&key[..length]);
    let whole = u128::from_be_bytes(bytes);
    [(whole >> 64) as u64, whole as u64]
}

fn malformed(epoch: Epoch) -> StoreError {
    StoreError::Damaged(format!("malformed redo record in epoch {epoch}"))
}

/// The segments of batches that check, in the log's order.
pub(super) fn segments(batches: &[Vec<u8>]) -> Result<Vec<Segment<'_>>, StoreError> {
    let mut segments = Vec::new();
    for bytes in batches {
        for segment in batch::segments(bytes) {
            let (epoch, records) =
                segment.ok_or_else(|| StoreError::Damaged("a log batch is malformed".into()))?;
            segments.push(Segment { epoch, records });
        }
    }
    Ok(segments)
}

/// Bytes of keys that are looked at before the log is dealt out, and segments they are taken of.
const SAMPLE_BYTES: usize = 4 << 20;
const SAMPLED_SEGMENTS: usize = 4096;

/// Keys of records here and there in the log.
pub(super) fn sample(segments: &[Segment<'_>]) -> Vec<CheckpointKey> {
    let chosen = segments.iter().step_by(segments.len().div_ceil(SAMPLED_SEGMENTS).max(1));
    let each = SAMPLE_BYTES / chosen.len().max(1);
    let mut keys = Vec::new();
    for segment in chosen {
        let mut left = each;
        for record in redo::records(segment.records).map_while(Result::ok) {
            keys.push((record.tree, record.key.to_vec()));
            match left.checked_sub(record.key.len() + 1) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    }
    keys
}

/// Deals the records out to the parts between `cuts`, on up to `threads` threads.
pub(super) fn deal(
    segments: &[Segment<'_>],
    cuts: &[CheckpointKey],
    threads: usize,
) -> Result<Dealt, StoreError> {
    let cuts: Vec<Cut<'_>> = cuts.iter().map(|(tree, key)| (*tree, head(key), key.as_slice())).collect();
    let bytes: usize = segments.iter().map(|segment| segment.records.len()).sum();
    let share = bytes / threads.max(1) + 1;
    let mut stretches = Vec::new();
    let (mut from, mut length) = (0, 0);
    for (at, segment) in segments.iter().enumerate() {
        length += segment.records.len();
        if length >= share || at + 1 == segments.len() {
            stretches.push(from..at + 1);
            (from, length) = (at + 1, 0);
        }
    }
    let dealt = in_parallel(stretches, threads, |stretch| deal_stretch(segments, stretch, &cuts));
    let mut all = Dealt {
        shares: (0..=cuts.len()).map(|_| Vec::new()).collect(),
        dropped: FxHashSet::default(),
        sequence_max: 0,
        records: 0,
    };
    for stretch in dealt {
        let stretch = stretch?;
        all.dropped.extend(stretch.dropped);
        all.sequence_max = all.sequence_max.max(stretch.sequence_max);
        all.records += stretch.records;
        for (share, part) in all.shares.iter_mut().zip(stretch.parts) {
            share.push(part);
        }
    }
    Ok(all)
}

/// A cut of the key space.
type Cut<'c> = (TreeId, Head, &'c [u8]);

fn part_of(cuts: &[Cut<'_>], record: &Record<'_>, head: Head) -> usize {
    cuts.partition_point(|(tree, cut, key)| {
        (*tree, *cut).cmp(&(record.tree, head)).then_with(|| (*key).cmp(record.key)).is_le()
    })
}

fn deal_stretch(
    segments: &[Segment<'_>],
    stretch: std::ops::Range<usize>,
    cuts: &[Cut<'_>],
) -> Result<Stretch, StoreError> {
    let mut dealt = Stretch { parts: vec![Vec::new(); cuts.len() + 1], ..Stretch::default() };
    for number in stretch {
        let segment = segments[number];
        for located in redo::located(segment.records) {
            let (offset, record) = located.map_err(|_| malformed(segment.epoch))?;
            dealt.sequence_max = dealt.sequence_max.max(record.sequence);
            if record.operation == Operation::DropTree {
                dealt.dropped.push(record.tree);
                continue;
            }
            let (tree, head) = (record.tree, head(record.key));
            let (segment, offset) = (index(number), index(offset));
            dealt.parts[part_of(cuts, &record, head)].push(Entry { tree, head, segment, offset });
            dealt.records += 1;
        }
    }
    Ok(dealt)
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a log has fewer segments than bytes, and a segment is far below 4 GiB")
}

/// The records of one part, key by key.
pub(super) struct Groups<'l> {
    segments: &'l [Segment<'l>],
    /// What each stretch of the log has, sorted; stretches in the log's order.
    lists: Vec<Peekable<std::vec::IntoIter<Entry>>>,
    /// The records whose keys begin as the next one's does, in the order of keys and tags.
    run: Vec<Tagged<'l>>,
    /// How many of `run` were taken.
    taken: usize,
}

impl<'l> Groups<'l> {
    pub(super) fn new(segments: &'l [Segment<'l>], mut share: Vec<Vec<Entry>>) -> Self {
        share.iter_mut().for_each(|list| list.sort_unstable());
        let lists = share.into_iter().map(|list| list.into_iter().peekable()).collect();
        Groups { segments, lists, run: Vec::new(), taken: 0 }
    }

    /// The tree and key of the next group.
    pub(super) fn key(&mut self) -> Option<(TreeId, &'l [u8])> {
        if self.taken == self.run.len() {
            self.fill();
        }
        self.run.get(self.taken).map(|(_, record)| (record.tree, record.key))
    }

    /// Takes the next group: the records of one key in the order of their tags, those of one
    /// transaction as they stand in the log. Empty when there is none left.
    pub(super) fn take(&mut self) -> &[Tagged<'l>] {
        let Some((_, key)) = self.key() else { return &[] };
        let from = self.taken;
        let same = self.run[from..].iter().take_while(|(_, record)| record.key == key).count();
        self.taken += same;
        &self.run[from..self.taken]
    }

    fn fill(&mut self) {
        self.run.clear();
        self.taken = 0;
        let heads =
            self.lists.iter_mut().filter_map(|list| list.peek().map(|entry| (entry.tree, entry.head)));
        let Some(first) = heads.min() else { return };
        let segments = self.segments;
        for list in &mut self.lists {
            while let Some(entry) = list.next_if(|entry| (entry.tree, entry.head) == first) {
                let segment = segments[entry.segment as usize];
                let record = redo::record_at(segment.records, entry.offset as usize)
                    .expect("it was decoded when it was dealt out");
                self.run.push((Tag { epoch: segment.epoch, sequence: record.sequence }, record));
            }
        }
        let in_order = |pair: &[Tagged<'l>]| pair[0].1.key == pair[1].1.key && pair[0].0 <= pair[1].0;
        if !self.run.windows(2).all(in_order) {
            self.run.sort_by(|(tag_a, a), (tag_b, b)| (a.key, tag_a).cmp(&(b.key, tag_b)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the keys share, each comes once, in order, with its records by tag.
        #[test]
        fn groups_are_what_a_sort_of_all_records_says(
            writes in proptest::collection::vec(
                (1u32..3, proptest::collection::vec(0u8..3, 0..3), any::<bool>(), 0u64..4, 1u64..4),
                0..80,
            ),
            threads in 1usize..4,
        ) {
            // Epochs ascend along the log; sequences within one need not.
            let mut epochs: Vec<u64> = writes.iter().map(|write| write.4).collect();
            epochs.sort_unstable();
            let mut parts: Vec<(Epoch, Vec<u8>)> = Vec::new();
            let mut expected = Vec::new();
            for (at, ((tree, end, long, sequence, _), epoch)) in writes.iter().zip(epochs).enumerate() {
                let mut key = if *long { b"a key of more than sixteen bytes".to_vec() } else { Vec::new() };
                key.extend(end);
                let mut bytes = Vec::new();
                redo::put(&mut bytes, TreeId(*tree), *sequence, &key, &[at as u8]);
                parts.push((Epoch(epoch), bytes));
                expected.push(((TreeId(*tree), key), Tag { epoch: Epoch(epoch), sequence: *sequence }, at as u8));
            }
            expected.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
            let segments: Vec<Segment<'_>> =
                parts.iter().map(|(epoch, records)| Segment { epoch: *epoch, records }).collect();
            let mut cuts = sample(&segments);
            cuts.sort();
            cuts.dedup();
            let dealt = deal(&segments, &cuts, threads).expect("well formed");
            prop_assert_eq!(dealt.records, writes.len() as u64);
            let mut found = Vec::new();
            for share in dealt.shares {
                let mut groups = Groups::new(&segments, share);
                while let Some((tree, key)) = groups.key() {
                    let before = found.len();
                    for (tag, record) in groups.take() {
                        prop_assert_eq!((record.tree, record.key), (tree, key));
                        let Operation::Put(row) = record.operation else { panic!("only rows were put") };
                        found.push(((tree, key.to_vec()), *tag, row[0]));
                    }
                    prop_assert!(found.len() > before);
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
