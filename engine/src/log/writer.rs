//! Group commit: one thread writes what all threads committed.
//!
//! A step takes a closed epoch, collects the redo of it and all before it from every thread's
//! buffer, writes it as one batch, syncs, publishes the durable epoch and wakes each
//! subscriber once. While it syncs, the next epoch fills; the next step starts as soon as the
//! sync returns, so the group grows with the load by itself and a lone committer waits for one
//! sync and no timer. Commits nobody waits for (asynchronous ones) are written when enough has
//! gathered or after [`LogLimits::asynchronous_delay`], which bounds what a crash can take.
//!
//! **When the disk fails.** After a failed write or sync the state of the disk is unknown:
//! nothing more is acknowledged and the fatal hook ends the process. A full disk is different:
//! while what is on its way still fits, [`Log::admits`] refuses new writes; a batch or a part that does
//! not fit all the same is kept and tried again. When space returns, so do the writes.
//!
//! **Parts** of large transactions ([`super::parts`]) are written as they come, some before each batch and without a
//! sync of their own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam::utils::CachePadded;
use parking_lot::{Condvar, Mutex};

use super::batch::{self, BatchNumber};
use super::buffer::{Buffers, CommitBuffer, Segment};
use super::parts::{PART_BYTES, Part, PartWork};
use super::recovery::Recovered;
use super::store::{LogStore, Space, StoreError};
use super::watermark::{Noted, Watermark};
use crate::clock::Clock;
use crate::id::{Epoch, TxnId};

/// Somebody to poke when the durable epoch has grown. Called from the log writer's thread.
pub trait Wake: Send + Sync {
    /// Pokes; must not block.
    fn wake(&self);
}

/// Bounds of the log.
#[derive(Clone, Copy, Debug)]
pub struct LogLimits {
    /// Unwritten redo of one thread beyond which its commits wait.
    pub buffer_bytes_max: usize,
    /// Redo of one commit that is longer goes to the log in parts of this many bytes.
    pub part_bytes: usize,
    /// How long asynchronous commits may wait for their batch to begin. With one batch under
    /// way and one behind it the loss bound is three times this: 600 ms, as PostgreSQL's.
    pub asynchronous_delay: Duration,
    /// Pause between attempts while the disk is full.
    pub full_disk_pause: Duration,
}

impl Default for LogLimits {
    fn default() -> Self {
        LogLimits {
            buffer_bytes_max: 16 << 20,
            part_bytes: PART_BYTES,
            asynchronous_delay: Duration::from_millis(200),
            full_disk_pause: Duration::from_millis(100),
        }
    }
}

/// Why a commit cannot be taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogRefusal {
    /// The thread's buffer is full: [`Log::wait_for_room`], or try later.
    #[error("the log is behind")]
    Behind,
    /// The disk is full (SQLSTATE 53100).
    #[error("could not write to the log: no space left on device")]
    DiskFull,
    /// One commit has more redo than half of the space there is (SQLSTATE 53200).
    #[error("the transaction has more than the log has room for")]
    TooLarge,
    /// The log has failed; the process is about to end.
    #[error("the log has failed")]
    Failed,
}

/// How often the writer notes aside how far the log has come.
const NOTED_EVERY_NANOS: u64 = 1_000_000_000;

/// Memory the writer keeps for its next batch.
const SPARE_BYTES_MAX: usize = 32 << 20;

const OPEN: u8 = 0;
const FULL: u8 = 1;
const FAILED: u8 = 2;

/// Counters for the views, each since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounters {
    /// Batches written and synced.
    pub batches: u64,
    /// Bytes written, parts among them.
    pub bytes: u64,
    /// Bytes in the log since the last checkpoint cut it.
    pub bytes_since_checkpoint: u64,
}

#[derive(Default)]
struct Counters {
    batches: AtomicU64,
    bytes: AtomicU64,
    bytes_since_checkpoint: AtomicU64,
}

/// A batch in the log, as checkpoints must know it to cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexEntry {
    pub(super) number: BatchNumber,
    pub(super) last: Epoch,
    /// With the parts that it names.
    pub(super) bytes: u64,
}

/// The log as everybody sees it.
pub struct Log {
    durable: CachePadded<AtomicU64>,
    /// The newest epoch somebody waits for.
    wanted: CachePadded<AtomicU64>,
    state: AtomicU8,
    buffers: Buffers,
    subscribers: Mutex<Vec<Arc<dyn Wake>>>,
    nudged: Mutex<bool>,
    nudge: Condvar,
    room: Mutex<()>,
    room_made: Condvar,
    limits: LogLimits,
    counters: Counters,
    pub(super) index: Mutex<VecDeque<IndexEntry>>,
    pub(super) noted: Noted,
    /// No number of before the start is greater.
    number_at_start: u64,
    /// Nor is the id of a transaction that is known of.
    transaction_at_start: TxnId,
    /// What the disk has left, as of the writer's last look.
    space: Mutex<Option<Space>>,
    /// Bytes of commits that were admitted and are still being cut into parts.
    promised: AtomicU64,
}

impl Log {
    /// A log in which everything up to `recovered.epoch` is durable.
    pub fn new(limits: LogLimits, recovered: &Recovered) -> Arc<Log> {
        let log = Log {
            durable: CachePadded::new(AtomicU64::new(recovered.epoch.0)),
            wanted: CachePadded::new(AtomicU64::new(0)),
            state: AtomicU8::new(OPEN),
            buffers: Buffers::default(),
            subscribers: Mutex::default(),
            nudged: Mutex::default(),
            nudge: Condvar::new(),
            room: Mutex::default(),
            room_made: Condvar::new(),
            limits,
            counters: Counters::default(),
            index: Mutex::new(recovered.index.clone()),
            noted: Noted::new(recovered.watermark),
            number_at_start: recovered.number_max,
            transaction_at_start: recovered.transaction_max,
            space: Mutex::new(None),
            promised: AtomicU64::new(0),
        };
        let bytes = recovered.index.iter().map(|entry| entry.bytes).sum();
        log.counters.bytes_since_checkpoint.store(bytes, Ordering::Relaxed);
        Arc::new(log)
    }

    /// A buffer for one committing thread.
    pub fn new_buffer(&self) -> Arc<CommitBuffer> {
        self.buffers.add()
    }

    /// The number that those of a thread's transactions go on above which has given none.
    pub(crate) fn number_at_start(&self) -> u64 {
        self.number_at_start
    }

    /// The id that those of transactions go on above.
    pub(crate) fn transaction_at_start(&self) -> TxnId {
        self.transaction_at_start
    }

    /// A thread has committed through `buffer` for the last time. The buffer goes as soon as what is in it has
    /// been taken.
    pub(crate) fn end_buffer(&self, buffer: &CommitBuffer) {
        buffer.end();
    }

    /// How many buffers there are.
    #[cfg(test)]
    pub(crate) fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// Everything up to this epoch survives a crash.
    #[inline]
    pub fn durable(&self) -> Epoch {
        Epoch(self.durable.load(Ordering::Acquire))
    }

    /// Whether an epoch survives a crash.
    #[inline]
    pub fn is_durable(&self, epoch: Epoch) -> bool {
        epoch <= self.durable()
    }

    /// Asks for `epoch` to become durable soon; subscribers are woken when it is. Costs one
    /// load unless this is the first wish for the epoch.
    pub fn want(&self, epoch: Epoch) {
        if self.wanted.load(Ordering::Relaxed) >= epoch.0 {
            return;
        }
        if self.wanted.fetch_max(epoch.0, Ordering::SeqCst) < epoch.0 {
            self.nudge();
        }
    }

    /// Registers somebody to wake after each growth of the durable epoch.
    pub fn subscribe(&self, wake: Arc<dyn Wake>) {
        self.subscribers.lock().push(wake);
    }

    /// Whether a commit through `buffer` may go ahead. To be asked before the commit point,
    /// which cannot wait.
    #[inline]
    pub fn admits(&self, buffer: &CommitBuffer) -> Result<(), LogRefusal> {
        match self.state.load(Ordering::Relaxed) {
            OPEN => {}
            FULL => return Err(LogRefusal::DiskFull),
            _ => return Err(LogRefusal::Failed),
        }
        let pending = buffer.pending_bytes();
        if pending > self.limits.buffer_bytes_max / 4 {
            self.nudge();
            if pending > self.limits.buffer_bytes_max {
                return Err(LogRefusal::Behind);
            }
        }
        Ok(())
    }

    /// Whether a commit that has this much redo, more than one part, may go ahead. Nothing of it is on its way yet:
    /// there is room for it until it says that it [is](Self::keep_promise).
    pub(crate) fn admits_parts(&self, bytes: usize) -> Result<(), LogRefusal> {
        let bytes = bytes as u64;
        let promised = self.promised.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let admitted = self.has_room(bytes, promised);
        if admitted.is_err() {
            self.promised.fetch_sub(bytes, Ordering::Relaxed);
        }
        admitted
    }

    /// So many bytes that were admitted count as a thread's from here on.
    pub(crate) fn keep_promise(&self, bytes: usize) {
        self.promised.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Whether a commit of so many bytes has room, with all that are promised it.
    fn has_room(&self, bytes: u64, promised: u64) -> Result<(), LogRefusal> {
        match self.state.load(Ordering::Relaxed) {
            OPEN => {}
            FULL => return Err(LogRefusal::DiskFull),
            _ => return Err(LogRefusal::Failed),
        }
        let Some(space) = *self.space.lock() else { return Ok(()) };
        if self.buffers.pending_bytes().saturating_add(promised) > space.room_bytes {
            return Err(LogRefusal::DiskFull);
        }
        if bytes > space.free_bytes / 2 {
            return Err(LogRefusal::TooLarge);
        }
        Ok(())
    }

    /// Waits until the log admits commits through `buffer`, or never will. To be called without
    /// any claim.
    pub fn wait_for_room(&self, buffer: &CommitBuffer) -> Result<(), LogRefusal> {
        loop {
            match self.admits(buffer) {
                Err(LogRefusal::Behind) => {}
                other => return other,
            }
            let mut room = self.room.lock();
            // The writer may have made room in between: a bounded wait needs no second check.
            self.room_made.wait_for(&mut room, Duration::from_millis(5));
        }
    }

    /// Counters for the views.
    pub fn counters(&self) -> LogCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LogCounters {
            batches: read(&self.counters.batches),
            bytes: read(&self.counters.bytes),
            bytes_since_checkpoint: read(&self.counters.bytes_since_checkpoint),
        }
    }

    /// Wakes the writer's thread.
    pub fn nudge(&self) {
        let mut nudged = self.nudged.lock();
        if !*nudged {
            *nudged = true;
            self.nudge.notify_one();
        }
    }

    /// Notes what recovery found, so that a log that is shorter at the next start is noticed. To be
    /// called once everything else has found the store good.
    pub(crate) fn note_start(&self, store: &dyn LogStore) -> Result<(), StoreError> {
        self.noted.note(store, Watermark::default())
    }

    /// Waits for a nudge; false after `timeout` without one.
    fn wait_for_nudge(&self, timeout: Duration) -> bool {
        let mut nudged = self.nudged.lock();
        if !*nudged {
            self.nudge.wait_for(&mut nudged, timeout);
        }
        std::mem::take(&mut *nudged)
    }

    fn somebody_waits(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > self.durable.load(Ordering::Relaxed)
    }

    fn has_pending(&self) -> bool {
        self.buffers.any_pending()
    }

    /// The epoch of the newest commit there was since the start. Whoever has seen a commit's rows finds
    /// its epoch here: redo is appended before a partition is released.
    pub(crate) fn newest_commit(&self) -> Epoch {
        self.buffers.newest_commit()
    }

    pub(super) fn publish(&self, epoch: Epoch) {
        if epoch <= self.durable() {
            return;
        }
        self.durable.store(epoch.0, Ordering::Release);
        self.wake_all();
    }

    fn wake_all(&self) {
        for subscriber in self.subscribers.lock().iter() {
            subscriber.wake();
        }
        self.room_made.notify_all();
    }

    pub(super) fn cut_bytes(&self, bytes: u64) {
        self.counters.bytes_since_checkpoint.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The durable epoch after it.
    pub durable: Epoch,
    /// Bytes written; 0 if nothing had been committed.
    pub bytes: u64,
}

struct Pending {
    number: BatchNumber,
    bytes: Vec<u8>,
    last: Epoch,
    /// Bytes of the parts that it names.
    part_bytes: u64,
}

/// Parts that were taken from the threads' buffers and have still to be written or dropped.
#[derive(Default)]
struct PartQueue {
    /// Each with its buffer, where it counts until it is written.
    unwritten: VecDeque<(Arc<CommitBuffer>, Part)>,
    /// Transactions that have not committed.
    undecided: VecDeque<TxnId>,
}

impl PartQueue {
    fn is_empty(&self) -> bool {
        self.unwritten.is_empty() && self.undecided.is_empty()
    }

    fn add(&mut self, buffer: &Arc<CommitBuffer>, work: PartWork) {
        match work {
            PartWork::Append(part) => self.unwritten.push_back((Arc::clone(buffer), part)),
            PartWork::Drop(id) => {
                self.unwritten.retain(|(buffer, part)| {
                    if part.id == id {
                        buffer.part_written(part.value.len());
                    }
                    part.id != id
                });
                self.undecided.push_back(id);
            }
        }
    }
}

/// The one that writes.
pub struct LogWriter {
    log: Arc<Log>,
    store: Arc<dyn LogStore>,
    next: BatchNumber,
    /// A batch the disk had no room for.
    pending: Option<Pending>,
    parts: PartQueue,
    on_failure: Box<dyn Fn(&StoreError) + Send>,
    segments: Vec<(Arc<CommitBuffer>, Segment)>,
    taken: Vec<Segment>,
    /// The memory of the last batch: batches under load are megabytes each, and fresh pages cost
    /// more than what is copied into them.
    spare: Vec<u8>,
    /// Without one it notes nothing.
    clock: Option<Arc<dyn Clock>>,
    /// When the epochs of the last batch were closed, in microseconds since 2000.
    closed_micros: i64,
    /// The newest batch that was noted aside, and when the next may be.
    noted: BatchNumber,
    note_at_nanos: u64,
}

impl LogWriter {
    /// A writer that continues the recovered log. `on_failure` is called once when the log
    /// fails for good; a server ends the process there.
    pub fn new(
        log: Arc<Log>,
        store: Arc<dyn LogStore>,
        recovered: &Recovered,
        on_failure: Box<dyn Fn(&StoreError) + Send>,
    ) -> LogWriter {
        *log.space.lock() = store.space();
        LogWriter {
            log,
            store,
            next: recovered.next_batch,
            pending: None,
            parts: PartQueue::default(),
            on_failure,
            segments: Vec::new(),
            taken: Vec::new(),
            spare: Vec::new(),
            clock: None,
            closed_micros: recovered.closed_micros,
            noted: BatchNumber(recovered.next_batch.0.saturating_sub(1)),
            note_at_nanos: 0,
        }
    }

    /// The same, which notes aside once a second how far the log has come.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> LogWriter {
        LogWriter { clock: Some(clock), ..self }
    }

    /// The newest batch that is in the log.
    fn written(&self) -> BatchNumber {
        let next = self.pending.as_ref().map_or(self.next, |pending| pending.number);
        BatchNumber(next.0.saturating_sub(1))
    }

    /// How far the log has come.
    fn end(&self) -> Watermark {
        Watermark { batch: self.written(), epoch: self.log.durable(), ..Watermark::default() }
    }

    /// Notes aside how far the log has come, if that is news and a second has gone by. Nothing
    /// hangs on it but what is noticed after an accident to the log's files.
    fn note(&mut self) {
        let Some(clock) = self.clock.as_ref().filter(|_| self.written() != self.noted) else { return };
        let now = clock.monotonic_nanos();
        if now < self.note_at_nanos {
            return;
        }
        self.note_at_nanos = now + NOTED_EVERY_NANOS;
        self.noted = self.written();
        if let Err(error) = self.log.noted.note_soon(&*self.store, self.end()) {
            tracing::warn!(%error, "how far the log has come could not be noted");
        }
    }

    /// The same at the end, exactly and durably.
    fn note_stop(&self) {
        if self.clock.is_some()
            && let Err(error) = self.log.noted.note(&*self.store, self.end())
        {
            tracing::warn!(%error, "how far the log has come could not be noted");
        }
    }

    /// Makes every commit up to `closed` durable. All of them have left their epoch, so their
    /// redo is in the buffers.
    pub fn step(&mut self, closed: Epoch) -> Result<Step, StoreError> {
        if self.log.state.load(Ordering::Relaxed) == FAILED {
            return Err(StoreError::Failed("the log has failed before".into()));
        }
        // Before what is on its way: that may wait for the space that they take.
        self.drop_undecided()?;
        let mut bytes = self.write_pending()?;
        #[cfg(test)]
        let late = crate::planted::is(crate::planted::Bug::CommitBeforeParts);
        #[cfg(not(test))]
        let late = false;
        if closed <= self.log.durable() {
            bytes += self.write_parts(self.parts_a_step())?;
            return Ok(Step { durable: self.log.durable(), bytes });
        }
        self.collect(closed);
        if !late {
            // Of commits that are to come some, so that nobody's batch waits for all of them.
            let names_parts = self.segments.iter().any(|(_, segment)| segment.part_bytes > 0);
            bytes += self.write_parts(if names_parts { u64::MAX } else { self.parts_a_step() })?;
        }
        if self.segments.is_empty() {
            // Nothing was committed in these epochs: they are durable as they are.
            self.log.publish(closed);
            return Ok(Step { durable: closed, bytes });
        }
        let first = Epoch(self.log.durable().0 + 1);
        // A wall clock may be set back; the log's time is not.
        let now = self.clock.as_ref().map_or(i64::MIN, |clock| clock.wall_micros());
        self.closed_micros = self.closed_micros.max(now);
        let part_bytes = self.segments.iter().map(|(_, segment)| segment.part_bytes).sum();
        let segments = self.segments.iter().map(|(buffer, segment)| buffer.framed(segment));
        let mut batch = std::mem::take(&mut self.spare);
        batch::encode_into(&mut batch, self.next, (first, closed), self.closed_micros, segments);
        for (buffer, segment) in self.segments.drain(..) {
            buffer.recycle(segment.transactions);
        }
        self.pending = Some(Pending { number: self.next, bytes: batch, last: closed, part_bytes });
        self.next = self.next.next();
        bytes += self.write_pending()?;
        if late {
            bytes += self.write_parts(u64::MAX)?;
        }
        Ok(Step { durable: self.log.durable(), bytes })
    }

    fn collect(&mut self, closed: Epoch) {
        self.log.buffers.collect(closed, &mut self.taken, &mut self.segments);
        self.segments.sort_by_key(|(_, segment)| segment.epoch);
    }

    /// Notes what a write shows of the disk.
    fn note_disk(&self, result: Result<(), StoreError>) -> Result<(), StoreError> {
        let state = match &result {
            Ok(()) if self.store.nearly_full() => FULL,
            Ok(()) => OPEN,
            Err(StoreError::Full(_)) => FULL,
            Err(_) => FAILED,
        };
        let before = self.log.state.swap(state, Ordering::Relaxed);
        if before != state && state != OPEN {
            // Committers that wait for room must learn that none will be made.
            self.log.room_made.notify_all();
        }
        if let (Err(error), FAILED) = (&result, state) {
            (self.on_failure)(error);
        }
        result
    }

    /// Takes the parts that threads have appended by now, those that a closed epoch names among them, and drops
    /// those of transactions that did not commit.
    fn drop_undecided(&mut self) -> Result<(), StoreError> {
        self.log.buffers.collect_parts(|buffer, work| self.parts.add(buffer, work));
        while let Some(id) = self.parts.undecided.front() {
            let dropped = self.store.drop_parts(&[*id]);
            if dropped.is_err() {
                self.note_disk(dropped)?;
            }
            self.parts.undecided.pop_front();
            self.look_for_space();
        }
        Ok(())
    }

    /// Bytes of parts that a batch waits for which names none.
    fn parts_a_step(&self) -> u64 {
        4 * self.log.limits.part_bytes.max(1) as u64
    }

    /// Writes of the parts that were taken until there are so many bytes. The next batch's sync makes them durable.
    fn write_parts(&mut self, bytes_max: u64) -> Result<u64, StoreError> {
        let mut bytes = 0;
        while let Some((buffer, part)) = self.parts.unwritten.front().filter(|_| bytes < bytes_max) {
            self.note_disk(self.store.append_part(part.id, part.number, &part.value))?;
            // Others ask for what is left meanwhile.
            *self.log.space.lock() = self.store.space();
            buffer.part_written(part.value.len());
            bytes += part.value.len() as u64;
            self.parts.unwritten.pop_front();
        }
        self.log.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(bytes)
    }

    fn write_pending(&mut self) -> Result<u64, StoreError> {
        let Some(pending) = &self.pending else { return Ok(0) };
        self.note_disk(self.store.append(pending.number, &pending.bytes, true))?;
        let bytes = pending.bytes.len() as u64;
        let counters = &self.log.counters;
        counters.batches.fetch_add(1, Ordering::Relaxed);
        counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        // Parts count as log from here on, all at once.
        let of_log = bytes + pending.part_bytes;
        counters.bytes_since_checkpoint.fetch_add(of_log, Ordering::Relaxed);
        let entry = IndexEntry { number: pending.number, last: pending.last, bytes: of_log };
        self.log.index.lock().push_back(entry);
        let last = pending.last;
        if let Some(written) = self.pending.take()
            && written.bytes.capacity() <= SPARE_BYTES_MAX
        {
            self.spare = written.bytes;
        }
        self.log.publish(last);
        self.note();
        Ok(bytes)
    }

    /// Takes commits again once there is space; what is pending finds out by itself.
    fn look_for_space(&self) {
        *self.log.space.lock() = self.store.space();
        if self.pending.is_none()
            && self.parts.is_empty()
            && self.log.state.load(Ordering::Relaxed) == FULL
            && !self.store.nearly_full()
        {
            self.log.state.store(OPEN, Ordering::Relaxed);
        }
    }

    /// The loop of the writer's thread, until `stop`. `advance` closes the current epoch and
    /// returns it once every commit in it has left. The last commits are written before this
    /// returns.
    pub fn run(&mut self, advance: &dyn Fn() -> Epoch, stop: &AtomicBool) {
        loop {
            let stopping = stop.load(Ordering::Acquire);
            if !stopping && self.parts.is_empty() && !self.log.somebody_waits() {
                self.log.wait_for_nudge(self.log.limits.asynchronous_delay);
            }
            self.look_for_space();
            self.note();
            let has_work = self.log.has_pending() || self.pending.is_some() || !self.parts.is_empty();
            if has_work || self.log.somebody_waits() {
                match self.step(advance()) {
                    Ok(_) => {}
                    Err(StoreError::Full(_)) if !stopping => {
                        std::thread::sleep(self.log.limits.full_disk_pause)
                    }
                    Err(error) => {
                        tracing::error!(%error, "the log writer stops");
                        self.log.wake_all();
                        return;
                    }
                }
            } else if stopping {
                self.note_stop();
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
