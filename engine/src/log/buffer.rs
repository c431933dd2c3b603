//! A thread's redo on its way to the log, segmented by epoch.
//!
//! One thread appends, between entering and leaving its epoch; the log writer takes whole
//! segments of closed epochs, which nobody appends to any more. The latch is therefore free
//! except for the instant in which the writer takes a segment; it and the data are the
//! thread's own, so that commits of different threads share no cache line.
//!
//! Offsets in segments have 32 bits: an epoch with very much redo of a thread has several segments of it, one
//! behind the other, each of whole transactions. What a large one has beyond a megabyte is in no segment: its
//! [`super::parts`] wait beside them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crossbeam::utils::CachePadded;
use parking_lot::Mutex;

use super::parts::{Part, PartWork};
use super::transaction::{self, Author, Parts};
use crate::id::{Epoch, TxnId};

/// The transactions of one epoch from one thread, or a part of them.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) epoch: Epoch,
    /// Numbers of the first transaction and of the last.
    first: u64,
    last: u64,
    pub(super) transactions: Vec<u8>,
    /// Bytes of the parts that they name.
    pub(super) part_bytes: u64,
}

#[derive(Default)]
struct Inner {
    segments: VecDeque<Segment>,
    /// Parts of transactions that have committed or have still to, in the order of their calls.
    parts: Vec<PartWork>,
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
    /// There is something in `parts`.
    has_parts: AtomicBool,
    /// The epoch of the newest segment there was.
    newest: AtomicU64,
}

/// One fills while the other is written.
const SPARE_MAX: usize = 2;
/// Above the capacity a segment grows to in the time between two batches of a busy thread: a
/// vector grown anew for each batch costs page faults and copies inside commits.
const SPARE_BYTES_MAX: usize = 16 << 20;

/// A segment that has so many bytes takes no more transactions: with one behind it, which is some megabytes and
/// one record of the longest row and key at most, it is far below 4 GiB.
const SEGMENT_BYTES_MAX: usize = 1 << 30;

impl CommitBuffer {
    /// Appends the records of a transaction that commits in `epoch`. Its number is above all that were
    /// appended before, and epochs never go back.
    #[inline]
    pub fn append(&self, epoch: Epoch, author: Author, number: u64, records: &[u8]) {
        self.append_framed(epoch, number, 0, |out, step| transaction::put(out, author, step, records));
    }

    /// The same of a program's transaction that has parts, all of which were appended before it entered the epoch;
    /// `records` are the rest of it.
    #[cold]
    pub fn append_with_parts(&self, epoch: Epoch, number: u64, parts: &Parts, records: &[u8]) {
        self.append_framed(epoch, number, parts.bytes, |out, step| {
            transaction::put_with_parts(out, step, parts, records);
        });
    }

    /// Appends a transaction that names parts of so many bytes, as `put` frames it.
    #[inline]
    fn append_framed(&self, epoch: Epoch, number: u64, part_bytes: u64, put: impl FnOnce(&mut Vec<u8>, u64)) {
        let mut inner = self.inner.lock();
        let takes_more = |last: &Segment| last.epoch == epoch && last.transactions.len() < SEGMENT_BYTES_MAX;
        if !inner.segments.back().is_some_and(takes_more) {
            debug_assert!(inner.segments.back().is_none_or(|last| last.epoch <= epoch));
            let transactions = inner.spare.pop().unwrap_or_default();
            let (first, last) = (number, number - 1);
            inner.segments.push_back(Segment { epoch, first, last, transactions, part_bytes: 0 });
            self.newest.store(epoch.0, Ordering::Release);
        }
        let segment = inner.segments.back_mut().expect("pushed above");
        assert!(number > segment.last, "the numbers of a thread grow");
        let before = segment.transactions.len();
        put(&mut segment.transactions, number - segment.last);
        segment.last = number;
        segment.part_bytes += part_bytes;
        let added = segment.transactions.len() - before;
        self.bytes.fetch_add(added, Ordering::Relaxed);
    }

    /// Appends a part of a transaction that has still to commit. It counts as unwritten until
    /// [`CommitBuffer::part_written`].
    pub(crate) fn append_part(&self, part: Part) {
        self.bytes.fetch_add(part.value.len(), Ordering::Relaxed);
        self.ask(PartWork::Append(part));
    }

    /// No commit will name the parts that were appended under this id.
    pub(crate) fn drop_parts(&self, id: TxnId) {
        self.ask(PartWork::Drop(id));
    }

    fn ask(&self, work: PartWork) {
        let mut inner = self.inner.lock();
        inner.parts.push(work);
        self.has_parts.store(true, Ordering::Release);
    }

    /// So many bytes of parts are written, or will not be.
    pub(super) fn part_written(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What there is to do with parts.
    fn take_parts(&self) -> Vec<PartWork> {
        if !self.has_parts.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut inner = self.inner.lock();
        self.has_parts.store(false, Ordering::Relaxed);
        std::mem::take(&mut inner.parts)
    }

    /// What the log writer writes of a segment that it has taken from here.
    pub(super) fn framed<'s>(&self, segment: &'s Segment) -> transaction::Segment<'s> {
        let Segment { epoch, first, transactions, .. } = segment;
        transaction::Segment { epoch: *epoch, thread: self.thread, first: *first, transactions }
    }

    /// Bytes not yet taken by the log writer, and those of parts that are not yet written.
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
        inner.has_ended && inner.segments.is_empty() && inner.parts.is_empty()
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

    /// Whether there is anything to write, or parts to drop.
    pub(super) fn any_pending(&self) -> bool {
        let is_pending = |buffer: &Arc<CommitBuffer>| {
            buffer.pending_bytes() > 0 || buffer.has_parts.load(Ordering::Acquire)
        };
        self.all.lock().iter().any(is_pending)
    }

    /// Bytes that are not yet written, of all threads.
    pub(super) fn pending_bytes(&self) -> u64 {
        self.all.lock().iter().map(|buffer| buffer.pending_bytes() as u64).sum()
    }

    /// Shows what there is to do with parts, each with its buffer. Of a transaction whose epoch is closed all parts
    /// are among it, or were shown before.
    pub(super) fn collect_parts(&self, mut visit: impl FnMut(&Arc<CommitBuffer>, PartWork)) {
        for buffer in self.all.lock().iter() {
            buffer.take_parts().into_iter().for_each(|work| visit(buffer, work));
        }
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
    use super::super::transaction::Records;
    use super::*;
    use crate::id::TreeId;

    fn read(segment: &Segment) -> Vec<(u64, Vec<u8>)> {
        let records = Records::new(&segment.transactions, Some(segment.first));
        let whole = records.map(|located| located.expect("no record is cut"));
        whole.map(|located| (located.transaction, located.record.key.to_vec())).collect()
    }

    /// They are asked for before the segments of any epoch, and count until they are written.
    #[test]
    fn parts_wait_beside_the_segments_and_keep_their_buffer() {
        let buffers = Buffers::default();
        let buffer = buffers.add();
        let mut framer = super::super::parts::Framer::new(TxnId(4));
        let bytes: usize = [&b"one"[..], b"two"]
            .map(|records| {
                let part = framer.frame(records);
                let bytes = part.value.len();
                buffer.append_part(part);
                bytes
            })
            .iter()
            .sum();
        assert_eq!(buffer.pending_bytes(), bytes);
        buffer.append_with_parts(Epoch(5), 1, &framer.parts(), b"");
        buffer.drop_parts(TxnId(5));
        buffer.end();
        let (mut taken, mut segments) = (Vec::new(), Vec::new());
        buffers.collect(Epoch(4), &mut taken, &mut segments);
        assert_eq!((segments.len(), buffers.len()), (0, 1));
        let mut asked = Vec::new();
        buffers.collect_parts(|buffer, work| match work {
            PartWork::Append(part) => {
                asked.push((part.id.0, part.number));
                buffer.part_written(part.value.len());
            }
            PartWork::Drop(id) => asked.push((id.0, 99)),
        });
        assert_eq!(asked, [(4, 0), (4, 1), (5, 99)]);
        buffers.collect(Epoch(5), &mut taken, &mut segments);
        assert_eq!((segments.len(), segments[0].1.part_bytes, buffers.len()), (1, 6, 0));
        assert!(!buffers.any_pending());
        assert_eq!(buffer.pending_bytes(), 0);
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
