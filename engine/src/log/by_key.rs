//! The log's records by key, as replay takes them.
//!
//! A log holds tens of millions of records of a few dozen bytes each. Decoded, they take several
//! times the log's own size, and sorting them moves all of it about. So what is sorted is an
//! [`Entry`] a record: its tree, the first bytes of its key, and where it lies. It is decoded
//! again when its key's turn comes.
//!
//! ```text
//! log     │ Run: bytes, entries sorted │ Run │ Run │ …      while it is read
//! parts   │ of each run the entries between two cuts, merged │ …
//! ```
//!
//! Whoever reads the log sorts it run by run, while a run's bytes are at hand; so the disk, too,
//! works meanwhile. A part of the key space takes a stretch of every run and merges them.
//!
//! The place in the log settles the order of one key's records: it ascends with the epoch. Only
//! where several threads wrote a key in one epoch do their numbers have to be looked at, and where a transaction
//! has [`super::parts`]: those come before all of the log, with tags that are late for their place. And
//! only where keys share all the bytes an entry has are whole keys compared. Cuts of the key
//! space are no longer than that, so that such keys stay together.
//!
//! A record does not say which transaction it is of, so its entry does: by the distance of the number from
//! that of its segment, in 32 bits. A distance that is greater begins another segment of the same bytes.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::batch;
use super::input::Input;
use super::redo::{self, Operation, Record, Tag};
use super::store::{CheckpointKey, StoreError};
use super::transaction::{Located, Records, WithParts};
use crate::id::{Epoch, TreeId};
use crate::pages;
use crate::storage::tree::fetch_bytes;

/// What one thread wrote in one epoch, or a part of it.
#[derive(Clone, Copy)]
struct Segment<'l> {
    epoch: Epoch,
    /// The number that those of its transactions are told from; `None`: it has records alone.
    first: Option<u64>,
    bytes: &'l [u8],
}

/// A record and its tag.
pub(super) type Tagged<'l> = (Tag, Record<'l>);

/// Bytes of a key that an entry has.
const HEAD_BYTES: usize = 16;

/// Where a record lies; in the order of trees and keys as far as heads go, then of the log.
///
/// Two integers, which compare without a branch for each field: the tree, the key's first
/// [`HEAD_BYTES`] padded with zeros, the number of the segment, the distance of the transaction's number from
/// the segment's, and the offset in it. Numbers rise along a segment, so they do not change the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    high: u128,
    low: u128,
}

const HEAD_LOW_BITS: u32 = 32;
const PLACE_BITS: u32 = 128 - HEAD_LOW_BITS;
const SEGMENT_SHIFT: u32 = 64;

impl Entry {
    fn new(tree: TreeId, key: &[u8], (segment, distance, offset): (u32, u32, u32)) -> Entry {
        let head = head(key);
        let place = u128::from(segment) << SEGMENT_SHIFT | u128::from(distance) << 32 | u128::from(offset);
        Entry {
            high: u128::from(tree.0) << PLACE_BITS | head >> HEAD_LOW_BITS,
            low: head << PLACE_BITS | place,
        }
    }

    /// Before all entries whose keys begin so.
    fn first_of(tree: TreeId, key: &[u8]) -> Entry {
        Entry::new(tree, key, (0, 0, 0))
    }

    /// Whether tree and head are the same.
    fn begins_as(&self, other: &Entry) -> bool {
        self.high == other.high && (self.low ^ other.low) >> PLACE_BITS == 0
    }

    fn segment(&self) -> usize {
        (self.low >> SEGMENT_SHIFT) as u32 as usize
    }

    fn distance(&self) -> u32 {
        (self.low >> 32) as u32
    }

    fn offset(&self) -> usize {
        self.low as u32 as usize
    }

    /// The same, segments counted from another one on.
    fn after(self, segments: u32) -> Entry {
        Entry { low: self.low + (u128::from(segments) << SEGMENT_SHIFT), ..self }
    }

    /// The shortest key that cuts right before all entries that begin as this one.
    fn cut(&self) -> CheckpointKey {
        let head = self.high << HEAD_LOW_BITS | self.low >> PLACE_BITS;
        (TreeId((self.high >> PLACE_BITS) as u32), head.to_be_bytes().to_vec())
    }
}

fn head(key: &[u8]) -> u128 {
    match key.first_chunk::<HEAD_BYTES>() {
        Some(bytes) => u128::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; HEAD_BYTES];
            bytes[..key.len()].copy_from_slice(key);
            u128::from_be_bytes(bytes)
        }
    }
}

/// Shortens a cut to what entries know of a key. The zeros at its end go, too: a shorter key
/// without them has the same head.
pub(super) fn shorten(cut: &mut CheckpointKey) {
    cut.1.truncate(HEAD_BYTES);
    while cut.1.last() == Some(&0) {
        cut.1.pop();
    }
}

/// Bytes of log that are sorted at once: few runs to merge, and little that is sorted late.
const RUN_BYTES: usize = 32 << 20;
/// A run that reaches this length probably becomes a whole one.
const LONG_RUN_BYTES: usize = 1 << 20;

/// Consecutive batches of the log, or parts, their records sorted.
#[derive(Default)]
pub(super) struct Run {
    bytes: Vec<u8>,
    segments: Vec<RunSegment>,
    entries: Vec<Entry>,
    /// Trees that a record drops.
    dropped: Vec<TreeId>,
    /// No record has a greater number.
    number_max: u64,
}

/// Where a segment lies in a run's bytes.
struct RunSegment {
    epoch: Epoch,
    first: Option<u64>,
    range: Range<usize>,
}

impl Run {
    /// Takes in the next batch, which checked; answers its transactions that have parts. After an error the run is
    /// of no use.
    pub(super) fn add(&mut self, batch: &[u8]) -> Result<Vec<WithParts>, StoreError> {
        self.make_room(batch.len(), usize::MAX);
        let mut with_parts = Vec::new();
        for segment in batch::segments(batch) {
            let segment = segment.map_err(|error| StoreError::Damaged(format!("the log has a {error}")))?;
            let mut records = segment.records();
            self.add_records(segment.epoch(), segment.first(), segment.bytes(), &mut records)?;
            with_parts.extend(records.with_parts(segment.epoch()));
        }
        Ok(with_parts)
    }

    /// Takes in a part of a transaction.
    pub(super) fn add_part(&mut self, of: &WithParts, records: &[u8]) -> Result<(), StoreError> {
        // Most that have parts have much less than a run takes.
        self.make_room(records.len(), usize::try_from(of.parts.bytes).unwrap_or(usize::MAX));
        let mut all = Records::of_transaction(records, of.number);
        self.add_records(of.epoch, Some(of.number), records, &mut all)
    }

    /// Sees that so many bytes have room, and more of a run that gets `most` in all.
    fn make_room(&mut self, bytes: usize, most: usize) {
        let needed = self.bytes.len() + bytes;
        if needed > self.bytes.capacity() && needed > LONG_RUN_BYTES {
            let whole_run = (RUN_BYTES + RUN_BYTES / 4).min(most).saturating_sub(self.bytes.len());
            self.bytes.reserve_exact(whole_run.max(bytes));
            pages::prefer_large(&self.bytes);
        }
    }

    fn add_records(
        &mut self,
        epoch: Epoch,
        mut first: Option<u64>,
        bytes: &[u8],
        records: &mut Records<'_>,
    ) -> Result<(), StoreError> {
        let range = self.bytes.len()..self.bytes.len() + bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.segments.push(RunSegment { epoch, first, range: range.clone() });
        for located in records {
            let Located { offset, transaction, record } = located
                .map_err(|error| StoreError::Damaged(format!("the log has a {error} (epoch {epoch})")))?;
            let distance = u32::try_from(transaction - first.unwrap_or(0)).unwrap_or_else(|_| {
                first = Some(transaction);
                self.segments.push(RunSegment { epoch, first, range: range.clone() });
                0
            });
            self.number_max = self.number_max.max(transaction).max(record.number);
            if record.operation == Operation::DropTree {
                self.dropped.push(record.tree);
            } else {
                let place = (index(self.segments.len() - 1), distance, index(offset));
                self.entries.push(Entry::new(record.tree, record.key, place));
            }
        }
        Ok(())
    }

    /// Whether another batch belongs into another run.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= RUN_BYTES
    }

    /// Sorts it, once the last batch is in.
    pub(super) fn sort(&mut self) {
        self.entries.sort_unstable();
    }

    fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        self.segments.iter().map(|RunSegment { epoch, first, range }| {
            let bytes = &self.bytes[range.clone()];
            Segment { epoch: *epoch, first: *first, bytes }
        })
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a log has fewer segments than bytes, and a segment is far below 4 GiB")
}

/// The runs of parts, then those of the log, in its order: of one transaction parts come first.
pub(super) struct Runs<'l> {
    runs: &'l [Run],
    /// Those of all runs, and the number of the first of each.
    segments: Vec<Segment<'l>>,
    first_segments: Vec<u32>,
    /// Trees that a record drops.
    pub(super) dropped: FxHashSet<TreeId>,
    /// No record has a greater number.
    pub(super) number_max: u64,
    /// Records there are, but for those that drop a tree.
    pub(super) records: u64,
}

impl<'l> Runs<'l> {
    pub(super) fn new(runs: &'l [Run]) -> Runs<'l> {
        let mut all = Runs {
            runs,
            segments: Vec::new(),
            first_segments: Vec::new(),
            dropped: FxHashSet::default(),
            number_max: 0,
            records: 0,
        };
        for run in runs {
            all.first_segments.push(index(all.segments.len()));
            all.segments.extend(run.segments());
            all.dropped.extend(&run.dropped);
            all.number_max = all.number_max.max(run.number_max);
            all.records += run.entries.len() as u64;
        }
        all
    }

    /// Cuts before every so many records, in no order.
    pub(super) fn cuts(&self, records: usize) -> impl Iterator<Item = CheckpointKey> {
        self.runs
            .iter()
            .flat_map(move |run| run.entries.iter().skip(records / 2).step_by(records))
            .map(Entry::cut)
    }

    /// The records from one cut to another, key by key. Cuts are [shortened](shorten).
    pub(super) fn groups(&self, low: Option<&CheckpointKey>, high: Option<&CheckpointKey>) -> Groups<'_> {
        let before = |run: &Run, cut: &CheckpointKey| {
            let first = Entry::first_of(cut.0, &cut.1);
            run.entries.partition_point(|entry| *entry < first)
        };
        let stretches = self.runs.iter().zip(&self.first_segments).map(|(run, first)| {
            let from = low.map_or(0, |cut| before(run, cut));
            let to = high.map_or(run.entries.len(), |cut| before(run, cut));
            (&run.entries[from..to.max(from)], *first)
        });
        let mut entries = Vec::with_capacity(stretches.clone().map(|(stretch, _)| stretch.len()).sum());
        for (stretch, first) in stretches {
            entries.extend(stretch.iter().map(|entry| entry.after(first)));
        }
        // Finds the sorted stretches and merges them.
        entries.sort();
        Groups { segments: &self.segments, entries, next: 0, run: Vec::new(), taken: 0 }
    }
}

/// Records that are asked for before their turn: they lie all over the log.
const AHEAD: usize = 12;
/// Bytes of them; most are shorter.
const AHEAD_BYTES: usize = 128;

/// The records of one part, key by key.
pub(super) struct Groups<'l> {
    segments: &'l [Segment<'l>],
    /// In the order of keys, then of the log.
    entries: Vec<Entry>,
    /// The first one that is not in `run` and never was.
    next: usize,
    /// The records whose keys begin as the next one's does, in the order of keys and tags.
    run: Vec<Tagged<'l>>,
    /// How many of `run` were taken.
    taken: usize,
}

impl<'l> Groups<'l> {
    /// The tree and key of the next group.
    #[inline]
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
        let Some(first) = self.entries.get(self.next).copied() else { return };
        while let Some(entry) = self.entries.get(self.next).filter(|entry| entry.begins_as(&first)) {
            if let Some(later) = self.entries.get(self.next + AHEAD) {
                let bytes = self.segments[later.segment()].bytes;
                fetch_bytes(bytes.as_ptr().wrapping_add(later.offset()), AHEAD_BYTES);
            }
            let segment = &self.segments[entry.segment()];
            let transaction = segment.first.map(|first| first + u64::from(entry.distance()));
            let mut input = Input { bytes: &segment.bytes[entry.offset()..] };
            let record = redo::take(&mut input, transaction).expect("it was decoded when it was read");
            self.run.push((Tag { epoch: segment.epoch, number: record.number }, record));
            self.next += 1;
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

    use super::super::buffer::Buffers;
    use super::super::transaction::Author;
    use super::*;
    use crate::log::BatchNumber;

    fn batch_of(buffers: &Buffers, epochs: (Epoch, Epoch)) -> Vec<u8> {
        let (mut taken, mut segments) = (Vec::new(), Vec::new());
        buffers.collect(epochs.1, &mut taken, &mut segments);
        segments.sort_by_key(|(_, segment)| segment.epoch);
        let mut out = Vec::new();
        let framed = segments.iter().map(|(buffer, segment)| buffer.framed(segment));
        batch::encode_into(&mut out, BatchNumber(1), epochs, 0, framed);
        out
    }

    proptest! {
        /// Whatever the keys share and wherever the log and the key space are cut, each key comes
        /// once, in order, with its records by tag.
        #[test]
        fn groups_are_what_a_sort_of_all_records_says(
            writes in proptest::collection::vec(
                (
                    1u32..3, proptest::collection::vec(0u8..3, 0..3), 0usize..3,
                    prop_oneof![4 => 1u64..4, 1 => (1u64 << 33)..(1 << 33) + 3], 1u64..4,
                ),
                0..80,
            ),
            run_lengths in proptest::collection::vec(1usize..20, 1..10),
            every in 1usize..6,
            more_cuts in proptest::collection::vec((1u32..3, proptest::collection::vec(0u8..3, 0..3), 0usize..3), 0..4),
        ) {
            let key = |shape: usize, end: &[u8]| {
                let start = [&b""[..], b"a key of sixteen", b"a key of more than sixteen bytes"][shape];
                [start, end].concat()
            };
            // Epochs ascend along the log, and numbers along what a thread has of an epoch; of several threads
            // they need not.
            let mut epochs: Vec<u64> = writes.iter().map(|write| write.4).collect();
            epochs.sort_unstable();
            let mut expected = Vec::new();
            let mut runs = vec![Run::default()];
            let mut lengths = run_lengths.iter().cycle();
            let mut written = writes.iter().zip(epochs).enumerate();
            while written.len() > 0 {
                let buffers = Buffers::default();
                let mut threads = [(buffers.add(), 0), (buffers.add(), 0)];
                let (mut first, mut end) = (None, Epoch(0));
                for (at, ((tree, shape_end, shape, number, _), epoch)) in
                    written.by_ref().take(*lengths.next().expect("endless"))
                {
                    let key = key(*shape, shape_end);
                    let mut bytes = Vec::new();
                    redo::put(&mut bytes, TreeId(*tree), &key, &[at as u8]);
                    let (thread, last) = &mut threads[at % 2];
                    // Another one than any of the other thread's.
                    let number = 2 * (*last / 2 + 1).max(*number) + at as u64 % 2;
                    *last = number;
                    end = Epoch(epoch);
                    first.get_or_insert(end);
                    thread.append(end, Author::Program, number, &bytes);
                    expected.push(((TreeId(*tree), key), Tag { epoch: end, number }, at as u8));
                }
                let batch = batch_of(&buffers, (first.expect("one at least"), end));
                runs.last_mut().expect("not empty").add(&batch).expect("well formed");
                runs.push(Run::default());
            }
            expected.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
            runs.iter_mut().for_each(Run::sort);
            let runs = Runs::new(&runs);
            prop_assert_eq!(runs.records, writes.len() as u64);
            let mut cuts: Vec<CheckpointKey> = runs.cuts(every).collect();
            cuts.extend(more_cuts.into_iter().map(|(tree, end, shape)| (TreeId(tree), key(shape, &end))));
            cuts.iter_mut().for_each(shorten);
            cuts.sort();
            cuts.dedup();
            let mut found = Vec::new();
            for part in 0..=cuts.len() {
                let (low, high) = (part.checked_sub(1).map(|before| &cuts[before]), cuts.get(part));
                let mut groups = runs.groups(low, high);
                while let Some((tree, key)) = groups.key() {
                    let key = (tree, key.to_vec());
                    prop_assert!(low.is_none_or(|low| *low <= key) && high.is_none_or(|high| key < *high));
                    let before = found.len();
                    for (tag, record) in groups.take() {
                        prop_assert_eq!((record.tree, record.key), (tree, &key.1[..]));
                        let Operation::Put(row) = record.operation else { panic!("only rows were put") };
                        found.push((key.clone(), *tag, row[0]));
                    }
                    prop_assert!(found.len() > before);
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
