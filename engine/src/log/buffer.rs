//! A thread's redo on its way to the log, segmented by epoch.
//!
//! One thread appends, between entering and leaving its epoch; the log writer takes whole
//! segments of closed epochs, which nobody appends to any more. The latch is therefore free
//! except for the instant in which the writer takes a segment; it and the data are the
//! thread's own, so that commits of different threads share no cache line.
//!
//! Lengths of segments, and offsets in them, have 32 bits: an epoch with very much redo of a thread has
//! several segments of it, one behind the other, each of whole records.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam::utils::CachePadded;
use parking_lot::Mutex;

use super::redo;
use crate::id::Epoch;

/// The redo of one epoch from one thread, or a part of it.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) epoch: Epoch,
    pub(super) records: Vec<u8>,
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
    /// Lets `write` append records of a commit in `epoch`, up to a gigabyte of them, or one.
    /// Epochs never go back.
    pub fn segment<R>(&self, epoch: Epoch, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        self.segment_below(epoch, SEGMENT_BYTES_MAX, write)
    }

    /// As [`CommitBuffer::segment`], in one that has fewer bytes than these.
    #[inline]
    fn segment_below<R>(&self, epoch: Epoch, bytes: usize, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let mut inner = self.inner.lock();
        let takes_more = |last: &Segment| last.epoch == epoch && last.records.len() < bytes;
        if !inner.segments.back().is_some_and(takes_more) {
            debug_assert!(inner.segments.back().is_none_or(|last| last.epoch <= epoch));
            let records = inner.spare.pop().unwrap_or_default();
            inner.segments.push_back(Segment { epoch, records });
            self.newest.store(epoch.0, Ordering::Release);
        }
        let segment = inner.segments.back_mut().expect("pushed above");
        let before = segment.records.len();
        let result = write(&mut segment.records);
        let added = segment.records.len() - before;
        self.bytes.fetch_add(added, Ordering::Relaxed);
        result
    }

    /// Appends records encoded elsewhere.
    #[inline]
    pub fn append(&self, epoch: Epoch, records: &[u8]) {
        if records.len() > SEGMENT_BYTES_MAX {
            return self.append_in_parts(epoch, records, SEGMENT_BYTES_MAX);
        }
        self.segment(epoch, |out| out.extend_from_slice(records));
    }

    /// Appends records to segments of about so many bytes, none of them cut.
    #[cold]
    fn append_in_parts(&self, epoch: Epoch, records: &[u8], bytes: usize) {
        let part = |range: Range<usize>| {
            self.segment_below(epoch, bytes, |out| out.extend_from_slice(&records[range]));
        };
        let mut from = 0;
        for (offset, _) in redo::located(records).flatten() {
            if offset - from >= bytes {
                part(from..offset);
                from = offset;
            }
        }
        part(from..records.len());
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
            taken += segment.records.len();
            out.push(segment);
        }
        self.bytes.fetch_sub(taken, Ordering::Relaxed);
        inner.has_ended && inner.segments.is_empty()
    }

    /// Gives an emptied vector back for reuse.
    pub(super) fn recycle(&self, mut records: Vec<u8>) {
        if records.capacity() > SPARE_BYTES_MAX {
            return;
        }
        records.clear();
        let mut inner = self.inner.lock();
        if inner.spare.len() < SPARE_MAX {
            inner.spare.push(records);
        }
    }
}

/// The buffers of all committing threads.
#[derive(Default)]
pub(super) struct Buffers {
    all: Mutex<Vec<Arc<CommitBuffer>>>,
    /// The newest epoch in buffers that are gone; changes under their lock.
    newest_gone: AtomicU64,
}

impl Buffers {
    pub(super) fn add(&self) -> Arc<CommitBuffer> {
        let buffer = Arc::new(CommitBuffer::default());
        self.all.lock().push(Arc::clone(&buffer));
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
    use super::*;
    use crate::id::TreeId;

    /// The records of a commit too long for one segment are several, none of them cut, in order.
    #[test]
    fn long_redo_is_cut_between_records() {
        let mut records = Vec::new();
        let mut expected = Vec::new();
        for sequence in 0..50u64 {
            redo::put(&mut records, TreeId(20), sequence, b"key", &vec![7; sequence as usize * 3]);
            expected.push(sequence);
        }
        for bytes in [1, 100, 1_000, records.len()] {
            let parts = CommitBuffer::default();
            parts.append_in_parts(Epoch(3), &records, bytes);
            assert_eq!(parts.pending_bytes(), records.len());
            let mut taken = Vec::new();
            parts.take(Epoch(3), &mut taken);
            let mut read = Vec::new();
            for segment in &taken {
                assert_eq!(segment.epoch, Epoch(3));
                assert!(segment.records.len() < 2 * bytes + 200, "a part and a record too many at most");
                let records = redo::records(&segment.records);
                read.extend(records.map(|record| record.expect("no record is cut").sequence));
            }
            assert_eq!(read, expected);
            assert!(taken.len() > 1 || bytes == records.len());
        }
    }
}
