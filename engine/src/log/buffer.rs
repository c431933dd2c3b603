//! A thread's redo on its way to the log, segmented by epoch.
//!
//! One thread appends, between entering and leaving its epoch; the log writer takes whole
//! segments of closed epochs, which nobody appends to any more. The latch is therefore free
//! except for the instant in which the writer takes a segment; it and the data are the
//! thread's own, so that commits of different threads share no cache line.
//!
//! Offsets in segments have 32 bits: an epoch with very much redo of a thread has several segments of it, one
//! behind the other, each of whole records. A transaction that is cut so has a header in each, and one number.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam::utils::CachePadded;
use parking_lot::Mutex;

use super::transaction::{self, Author, Records};
use crate::id::Epoch;

/// The transactions of one epoch from one thread, or a part of them.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) epoch: Epoch,
    /// Numbers of the first transaction and of the last.
    first: u64,
    last: u64,
    pub(super) transactions: Vec<u8>,
}

#[derive(Default)]
struct Inner {
    segments: VecDeque<Segment>,
    /// Emptied vectors, kept so that committing does not allocate.
    spare: Vec<Vec<u8>>,
    /// Nobody commits through it any more.
    has_ended: bool,
}

/// One committing thread's buffer; made by [`super::Log::new_buffer`].
#[derive(Default)]
pub struct CommitBuffer {
    /// Tells it from all other buffers there ever are.
    thread: u64,
    inner: CachePadded<Mutex<Inner>>,
    bytes: AtomicUsize,
    /// The epoch of the newest segment there was.
    newest: AtomicU64,
}

/// One fills while the other is written.
const SPARE_MAX: usize = 2;
/// Above the capacity a segment grows to in the time between two batches of a busy thread: a
/// vector grown anew for each batch costs page faults and copies inside commits.
const SPARE_BYTES_MAX: usize = 16 << 20;

/// A segment that has so many bytes takes no more records: with a record of the longest row and key
/// behind it, it is far below 4 GiB.
const SEGMENT_BYTES_MAX: usize = 1 << 30;

impl CommitBuffer {
    /// Appends the records of a transaction that commits in `epoch`. Its number is above all that were
    /// appended before, and epochs never go back.
    #[inline]
    pub fn append(&self, epoch: Epoch, author: Author, number: u64, records: &[u8]) {
        if records.len() > SEGMENT_BYTES_MAX {
            return self.append_in_parts(epoch, author, number, records, SEGMENT_BYTES_MAX);
        }
        self.append_below(epoch, author, number, records, SEGMENT_BYTES_MAX);
    }

    /// As [`CommitBuffer::append`], to a segment that has fewer bytes than these.
    #[inline]
    fn append_below(&self, epoch: Epoch, author: Author, number: u64, records: &[u8], bytes: usize) {
        let mut inner = self.inner.lock();
        let takes_more = |last: &Segment| last.epoch == epoch && last.transactions.len() < bytes;
        if !inner.segments.back().is_some_and(takes_more) {
            debug_assert!(inner.segments.back().is_none_or(|last| last.epoch <= epoch));
            let transactions = inner.spare.pop().unwrap_or_default();
            inner.segments.push_back(Segment { epoch, first: number, last: number - 1, transactions });
            self.newest.store(epoch.0, Ordering::Release);
        }
        let segment = inner.segments.back_mut().expect("pushed above");
        assert!(number > segment.last, "the numbers of a thread grow");
        let before = segment.transactions.len();
        transaction::put(&mut segment.transactions, author, number - segment.last, records);
        segment.last = number;
        let added = segment.transactions.len() - before;
        self.bytes.fetch_add(added, Ordering::Relaxed);
    }

    /// Appends records to segments of about so many bytes, none of them cut.
    #[cold]
    fn append_in_parts(&self, epoch: Epoch, author: Author, number: u64, records: &[u8], bytes: usize) {
        let part = |range: Range<usize>| {
            self.append_below(epoch, author, number, &records[range], bytes);
        };
        let mut from = 0;
        for located in Records::of_transaction(records).flatten() {
            if located.offset - from >= bytes {
                // Full by itself: so what comes behind it, of the same number, has another segment.
                part(from..located.offset);
                from = located.offset;
            }
        }
        part(from..records.len());
    }

    /// What the log writer writes of a segment that it has taken from here.
    pub(super) fn framed<'s>(&self, segment: &'s Segment) -> transaction::Segment<'s> {
        let Segment { epoch, first, transactions, .. } = segment;
        transaction::Segment { epoch: *epoch, thread: self.thread, first: *first, transactions }
    }

    /// Bytes not yet taken by the log writer.
    pub fn pending_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Says that nobody commits through it any more.
    pub(super) fn end(&self) {
        self.inner.lock().has_ended = true;
    }

    /// The epoch of the newest commit there was.
    fn newest(&self) -> Epoch {
        Epoch(self.newest.load(Ordering::Acquire))
    }

    /// Moves the segments of epochs up to `closed` into `out`. Whether nothing is left, nor will come.
    fn take(&self, closed: Epoch, out: &mut Vec<Segment>) -> bool {
        let mut inner = self.inner.lock();
        let mut taken = 0;
        while inner.segments.front().is_some_and(|segment| segment.epoch <= closed) {
            let segment = inner.segments.pop_front().expect("looked at above");
            taken += segment.transactions.len();
            out.push(segment);
        }
        self.bytes.fetch_sub(taken, Ordering::Relaxed);
        inner.has_ended && inner.segments.is_empty()
    }

    /// Gives an emptied vector back for reuse.
    pub(super) fn recycle(&self, mut emptied: Vec<u8>) {
        if emptied.capacity() > SPARE_BYTES_MAX {
            return;
        }
        emptied.clear();
        let mut inner = self.inner.lock();
        if inner.spare.len() < SPARE_MAX {
            inner.spare.push(emptied);
        }
    }
}

/// The buffers of all committing threads.
#[derive(Default)]
pub(super) struct Buffers {
    all: Mutex<Vec<Arc<CommitBuffer>>>,
    /// How many there ever were; changes under the lock.
    made: AtomicU64,
    /// The newest epoch in buffers that are gone; changes under their lock.
    newest_gone: AtomicU64,
}

impl Buffers {
    pub(super) fn add(&self) -> Arc<CommitBuffer> {
        let mut all = self.all.lock();
        let thread = self.made.fetch_add(1, Ordering::Relaxed);
        let buffer = Arc::new(CommitBuffer { thread, ..CommitBuffer::default() });
        all.push(Arc::clone(&buffer));
        buffer
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.lock().len()
    }

    /// Whether any holds redo.
    pub(super) fn any_pending(&self) -> bool {
        self.all.lock().iter().any(|buffer| buffer.pending_bytes() > 0)
    }

    /// The epoch of the newest commit there was through any of them.
    pub(super) fn newest_commit(&self) -> Epoch {
        let all = self.all.lock();
        let gone = Epoch(self.newest_gone.load(Ordering::Relaxed));
        all.iter().map(|buffer| buffer.newest()).fold(gone, Epoch::max)
    }

    /// Moves the segments of epochs up to `closed` into `segments`, each with its buffer, by way of `taken`,
    /// which is empty; buffers that nobody commits through any more and that have none left are let go.
    pub(super) fn collect(
        &self,
        closed: Epoch,
        taken: &mut Vec<Segment>,
        segments: &mut Vec<(Arc<CommitBuffer>, Segment)>,
    ) {
        let mut all = self.all.lock();
        all.retain(|buffer| {
            let is_over = buffer.take(closed, taken);
            segments.extend(taken.drain(..).map(|segment| (Arc::clone(buffer), segment)));
            if is_over {
                self.newest_gone.fetch_max(buffer.newest().0, Ordering::Relaxed);
            }
            !is_over
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::redo;
    use super::*;
    use crate::id::TreeId;

    fn read(segment: &Segment) -> Vec<(u64, Vec<u8>)> {
        let records = Records::new(&segment.transactions, Some(segment.first));
        let whole = records.map(|located| located.expect("no record is cut"));
        whole.map(|located| (located.transaction, located.record.key.to_vec())).collect()
    }

    /// The records of a commit too long for one segment are several, none of them cut, in order, and all of
    /// one number.
    #[test]
    fn long_redo_is_cut_between_records() {
        let mut records = Vec::new();
        let mut expected = Vec::new();
        for at in 0..50u8 {
            redo::put(&mut records, TreeId(20), &[at], &vec![7; usize::from(at) * 3]);
            expected.push((9, vec![at]));
        }
        let mut behind = Vec::new();
        redo::delete(&mut behind, TreeId(20), b"behind");
        expected.push((10, b"behind".to_vec()));
        for bytes in [1, 100, 1_000, records.len()] {
            let parts = CommitBuffer::default();
            parts.append_in_parts(Epoch(3), Author::Program, 9, &records, bytes);
            parts.append(Epoch(3), Author::Program, 10, &behind);
            let mut taken = Vec::new();
            let pending = parts.pending_bytes();
            parts.take(Epoch(3), &mut taken);
            assert_eq!(pending, taken.iter().map(|segment| segment.transactions.len()).sum::<usize>());
            for segment in &taken {
                assert_eq!(segment.epoch, Epoch(3));
                let most = 2 * bytes + 250;
                assert!(segment.transactions.len() < most, "a part and a record too many at most");
            }
            assert_eq!(taken.iter().flat_map(read).collect::<Vec<_>>(), expected);
            assert!(taken.len() > 1 || bytes == records.len());
        }
    }

    #[test]
    fn numbers_with_gaps_and_of_several_epochs_come_back() {
        let buffer = CommitBuffer::default();
        let mut records = Vec::new();
        redo::delete(&mut records, TreeId(20), b"k");
        let all = [(1, 5), (1, 6), (1, 90), (2, 91), (2, 1 << 50)];
        for (epoch, number) in all {
            buffer.append(Epoch(epoch), Author::Program, number, &records);
        }
        let mut taken = Vec::new();
        buffer.take(Epoch(2), &mut taken);
        let numbers =
            |segment: &Segment| read(segment).into_iter().map(|(number, _)| number).collect::<Vec<_>>();
        assert_eq!(taken.iter().map(numbers).collect::<Vec<_>>(), [vec![5, 6, 90], vec![91, 1 << 50]]);
        let framed = buffer.framed(&taken[1]);
        assert_eq!((framed.epoch, framed.first), (Epoch(2), 91));
    }
}
