//! A thread's redo on its way to the log, segmented by epoch.
//!
//! One thread appends, between entering and leaving its epoch; the log writer takes whole
//! segments of closed epochs, which nobody appends to any more. The latch is therefore free
//! except for the instant in which the writer takes a segment; it and the data are the
//! thread's own, so that commits of different threads share no cache line.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam::utils::CachePadded;
use parking_lot::Mutex;

use crate::id::Epoch;

/// The redo of one epoch from one thread.
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

impl CommitBuffer {
    /// Lets `write` append the records of a commit in `epoch`. Epochs never go back.
    pub fn segment<R>(&self, epoch: Epoch, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let mut inner = self.inner.lock();
        if inner.segments.back().is_none_or(|last| last.epoch != epoch) {
            debug_assert!(inner.segments.back().is_none_or(|last| last.epoch < epoch));
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
    pub fn append(&self, epoch: Epoch, records: &[u8]) {
        self.segment(epoch, |out| out.extend_from_slice(records));
    }

    /// Bytes not yet taken by the log writer.
    pub fn pending_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The epoch of the newest commit there was.
    pub(super) fn newest(&self) -> Epoch {
        Epoch(self.newest.load(Ordering::Acquire))
    }

    /// Moves the segments of epochs up to `closed` into `out`.
    pub(super) fn take(&self, closed: Epoch, out: &mut Vec<Segment>) {
        let mut inner = self.inner.lock();
        let mut taken = 0;
        while inner.segments.front().is_some_and(|segment| segment.epoch <= closed) {
            let segment = inner.segments.pop_front().expect("looked at above");
            taken += segment.records.len();
            out.push(segment);
        }
        self.bytes.fetch_sub(taken, Ordering::Relaxed);
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
