//! What one thread brings to the engine: its epoch slot, its redo buffer, its view of the
//! definitions, and scratch space that makes a transaction cost no allocation.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};

use crossbeam::utils::CachePadded;

use crate::engine::{Point, Shared};
use crate::id::{Epoch, ExecutorId, IslandId, TreeId};
use crate::log::parts::{Framer, cut};
use crate::log::{Author, CommitBuffer, LogRefusal, Parts};
use crate::monitor::{Footprint, Rate, Tally, ThreadStatistics};
use crate::partition::{ClaimSet, PartitionRef, RoutingTable};
use crate::program::Stop;
use crate::random::RandomStream;
use crate::storage::tree::Ahead;
use crate::table::Schema;
use crate::txn::{
    EpochSlot, InteractiveState, LoggedBound, OverlayUndo, Place, ReferenceVector, TransactionLimits, Undo,
};

/// A thread's part of the engine. Used by one thread at a time.
pub(crate) struct Worker {
    pub slot: Arc<EpochSlot>,
    commits: Arc<CommitBuffer>,
    /// The number of the last transaction that it has logged.
    number: u64,
    /// Redo of one commit beyond which it is cut into parts.
    part_bytes: usize,
    /// Those of the transaction that is about to commit.
    parts: Option<Parts>,
    /// That of whoever has changed what it knows of definitions, or a greater one.
    pub definitions_number: u64,
    pub executor: Option<ExecutorId>,
    pub island: Option<IslandId>,
    pub routing: Arc<RoutingTable>,
    pub schema: Arc<Schema>,
    definitions_version: u64,
    /// Lent to the running transaction, so that reading reference tables counts no reference.
    references: Option<Arc<ReferenceVector>>,
    pub random: RandomStream,
    pub memory: MemoryShare,
    /// Beside what is compared with them.
    pub limits: TransactionLimits,
    /// Hidden row ids at hand, and the epoch and the number of their logged bound.
    pub row_ids: Range<i64>,
    pub row_ids_bound: LoggedBound,
    /// Programs run so far, and how; one in some is timed.
    pub tally: Tally,
    /// How often its runs are measured.
    pub measured: Rate,
    /// What the monitor reads of this thread; the thread only tries the latch.
    pub statistics: Arc<parking_lot::Mutex<ThreadStatistics>>,
    /// Bytes of old versions kept and not reported yet.
    version_bytes: i64,
    /// Old versions were reported since the last look at their limit.
    pub look_at_versions: bool,
    /// How deep the thread is inside runs of queued programs.
    pub nesting: u32,
    pub scratch: Scratch,
    shared: Weak<Shared>,
}

/// Reused from transaction to transaction; empty between them.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Boxed, so that taking it out for a submission moves a pointer.
    pub claims: Option<Box<ClaimSet>>,
    pub missing: ClaimSet,
    pub undo: Vec<Undo>,
    pub overlay_undo: Vec<OverlayUndo>,
    pub arena: Vec<u8>,
    pub redo: Vec<u8>,
    /// What the run touches, if it is measured.
    pub footprint: Footprint,
    /// Ways to rows of a reference table that were fetched ahead.
    pub ahead: (Option<TreeId>, Ahead),
    /// Set by COMMIT and ROLLBACK: the locks to drop after the commit point.
    pub finish: Option<Finish>,
}

/// An interactive transaction that ends, and the rows it holds locks on.
pub(crate) struct Finish {
    pub state: Arc<InteractiveState>,
    pub keys: Vec<(Place, Box<[u8]>)>,
    pub how: FinishedAs,
}

/// What becomes of an interactive transaction that has settled its images, or is to drop them.
pub(crate) enum FinishedAs {
    Committed,
    RolledBack,
    /// It goes on: only what it did to these trees is settled.
    Open(Vec<TreeId>),
    /// It has committed what it wrote in these roots, which are settled later.
    Decided(Vec<(PartitionRef, Place)>),
}

/// Old versions a thread keeps to itself before it reports them.
const VERSION_BYTES_UNREPORTED_MAX: i64 = 256 << 10;

/// Scratch space beyond this is given back after a transaction.
const SCRATCH_KEPT_BYTES: usize = 1 << 20;

impl Scratch {
    pub fn clear_writes(&mut self) {
        self.undo.clear();
        self.overlay_undo.clear();
        self.arena.clear();
        self.redo.clear();
        if self.arena.capacity() > SCRATCH_KEPT_BYTES {
            self.arena = Vec::new();
        }
        if self.redo.capacity() > SCRATCH_KEPT_BYTES {
            self.redo = Vec::new();
        }
        if self.undo.capacity() * size_of::<Undo>() > SCRATCH_KEPT_BYTES {
            self.undo = Vec::new();
        }
    }
}

impl Worker {
    pub fn new(shared: &Arc<Shared>) -> Box<Self> {
        Box::new(Self {
            slot: shared.epochs.register(),
            commits: shared.log.new_buffer(),
            number: shared.log.number_at_start(),
            part_bytes: shared.config.log.part_bytes,
            parts: None,
            definitions_number: 0,
            executor: None,
            island: None,
            routing: shared.load_routing(),
            schema: shared.load_schema(),
            definitions_version: 0,
            references: None,
            random: RandomStream::new(shared.entropy.seed()),
            memory: MemoryShare::default(),
            limits: shared.config.transaction.within_formats(),
            row_ids: 0..0,
            row_ids_bound: LoggedBound::NONE,
            tally: Tally::default(),
            measured: Rate::default(),
            statistics: shared.monitor.register_thread(),
            version_bytes: 0,
            look_at_versions: false,
            nesting: 0,
            scratch: Scratch::default(),
            shared: Arc::downgrade(shared),
        })
    }

    /// Whether nothing is lost if the thread's part ends: what it has measured of an executor's work counts
    /// as long as the executor does.
    pub fn may_end(&self) -> bool {
        self.statistics.lock().crossings.is_empty()
    }

    /// Gives back what a thread has of the engine: its slot of the epochs, which it is not inside of, its
    /// place in the log as soon as that has taken its redo, and what it has counted.
    pub fn end(mut self: Box<Self>, shared: &Shared) {
        shared.memory.add(std::mem::take(&mut self.memory.local));
        shared.snapshots.add_bytes(std::mem::take(&mut self.version_bytes));
        // Measured runs tell it, and there were others since.
        self.statistics.lock().tally = self.tally;
        shared.monitor.end_thread(&self.statistics);
        shared.log.end_buffer(&self.commits);
        shared.epochs.unregister(&self.slot);
    }

    /// Takes up definitions published since the last look.
    #[inline]
    pub fn refresh(&mut self, shared: &Shared) {
        let version = shared.definitions_version();
        if version != self.definitions_version {
            self.routing = shared.load_routing();
            self.schema = shared.load_schema();
            self.definitions_number = shared.definitions_number();
            self.definitions_version = version;
        }
    }

    /// Which definitions it knows: see [`Shared::definitions_version`].
    pub fn definitions_version(&self) -> u64 {
        self.definitions_version
    }

    /// The current reference tables; given back by [`Worker::keep_references`].
    #[inline]
    pub fn take_references(&mut self, shared: &Shared) -> Arc<ReferenceVector> {
        let version = shared.references.version() & !1;
        match self.references.take() {
            Some(cached) if cached.version == version => cached,
            _ => shared.references.load(),
        }
    }

    pub fn keep_references(&mut self, references: Arc<ReferenceVector>) {
        self.references = Some(references);
    }

    /// Whether the transaction has anything to log.
    #[inline]
    pub fn has_redo(&self) -> bool {
        !self.scratch.redo.is_empty() || self.parts.is_some()
    }

    /// Sends ahead what a large transaction has to log, before it enters its epoch: see [`crate::log::parts`]. Refused,
    /// it cannot commit, and nothing of it is on its way.
    #[inline]
    pub fn send_parts(&mut self, shared: &Shared) -> Result<(), Stop> {
        if self.scratch.redo.len() <= self.part_bytes { Ok(()) } else { self.send_long_redo(shared) }
    }

    #[cold]
    fn send_long_redo(&mut self, shared: &Shared) -> Result<(), Stop> {
        refusal(shared.log.admits_parts(self.scratch.redo.len()))?;
        let mut framer = Framer::new(shared.next_transaction());
        let rest = cut(&self.scratch.redo, self.part_bytes, |records| {
            self.commits.append_part(framer.frame(records));
            shared.log.keep_promise(records.len());
            // It writes while the next ones are cut.
            shared.log.nudge();
        });
        self.scratch.redo.drain(..rest);
        shared.log.keep_promise(self.scratch.redo.len());
        self.parts = Some(framer.parts());
        shared.point(Point::PartsSent);
        // The last look before nothing can be refused any more.
        self.admit(shared).inspect_err(|_| self.drop_parts())
    }

    /// What it commits has these parts, which are in the log's hands: see [`crate::txn::Commit`].
    pub fn name_parts(&mut self, parts: Option<Parts>) {
        self.parts = parts;
    }

    /// The transaction does not commit, or not so: its parts go.
    pub fn drop_parts(&mut self) {
        if let Some(parts) = self.parts.take() {
            self.commits.drop_parts(parts.id);
        }
    }

    /// The number of a transaction that has met these: one more than they, and than the last that the thread
    /// has given. It is given when it is logged.
    #[inline]
    pub fn next_number(&self, greatest: u64) -> u64 {
        self.number.max(greatest) + 1
    }

    /// Appends the transaction's redo to the epoch it committed in, under the number that it gets.
    #[inline]
    pub fn log_commit(&mut self, epoch: Epoch, number: u64) {
        self.number = number;
        match self.parts.take() {
            None => self.commits.append(epoch, Author::Program, number, &self.scratch.redo),
            Some(parts) => self.commits.append_with_parts(epoch, number, &parts, &self.scratch.redo),
        }
    }

    /// Accounts for old versions: on this thread, and now and then for all to see.
    pub fn report_versions(&mut self, shared: &Shared, bytes: i64) {
        self.version_bytes += bytes;
        if self.version_bytes >= VERSION_BYTES_UNREPORTED_MAX {
            shared.snapshots.add_bytes(std::mem::take(&mut self.version_bytes));
            self.look_at_versions = true;
        }
    }

    /// Appends engine state as a commit of its own, amid a transaction that has still to commit. Answers its
    /// number, which is above the greatest that it has to come behind.
    pub fn log_system(&mut self, epoch: Epoch, greatest: u64, records: &[u8]) -> u64 {
        self.number = self.next_number(greatest);
        self.commits.append(epoch, Author::System, self.number, records);
        self.number
    }

    /// Whether the log takes writes. Being behind does not refuse them here, under claims: the
    /// next submission waits.
    #[inline]
    pub fn admit(&self, shared: &Shared) -> Result<(), Stop> {
        refusal(shared.log.admits(&self.commits))
    }

    /// Waits, holding nothing, until the log has room for more redo of this thread.
    #[inline]
    pub fn wait_for_room(&self, shared: &Shared) {
        if shared.config.background && shared.log.admits(&self.commits) == Err(LogRefusal::Behind) {
            // What refuses now refuses again at the first write, where it is answered.
            let _ = shared.log.wait_for_room(&self.commits);
        }
    }
}

/// What becomes of a program whose commit the log does not take.
pub(crate) fn refusal(admitted: Result<(), LogRefusal>) -> Result<(), Stop> {
    match admitted {
        Ok(()) | Err(LogRefusal::Behind) => Ok(()),
        Err(LogRefusal::DiskFull) => Err(Stop::DiskFull),
        Err(LogRefusal::TooLarge) => Err(Stop::TransactionTooLarge),
        Err(LogRefusal::Failed) => Err(Stop::LogFailed),
    }
}

/// Memory of rows and keys, over all partitions.
pub(crate) struct MemoryGauge {
    used: CachePadded<AtomicI64>,
    max: i64,
}

/// A thread's share of the gauge, so that the shared number moves rarely.
#[derive(Default)]
pub(crate) struct MemoryShare {
    local: i64,
}

const MEMORY_SHARE_BYTES: i64 = 256 << 10;

impl MemoryGauge {
    pub fn new(max: i64) -> Self {
        Self { used: CachePadded::new(AtomicI64::new(0)), max }
    }

    pub fn add(&self, bytes: i64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn used(&self) -> i64 {
        self.used.load(Ordering::Relaxed)
    }

    pub fn max(&self) -> i64 {
        self.max
    }
}

impl MemoryShare {
    #[inline]
    pub fn add(&mut self, bytes: i64, gauge: &MemoryGauge) {
        self.local += bytes;
        if self.local.abs() > MEMORY_SHARE_BYTES {
            gauge.add(std::mem::take(&mut self.local));
        }
    }

    #[inline]
    pub fn exceeded(&self, gauge: &MemoryGauge) -> bool {
        gauge.used() + self.local > gauge.max
    }
}

thread_local! {
    static SEATS: RefCell<Seats> = const { RefCell::new(Seats(Vec::new())) };
}

/// The workers a thread keeps between calls, the last one on top: one, and one more for every
/// depth it ever nested calls to. Given back when the thread ends.
// Boxed, because they move in and out with every call.
#[allow(clippy::vec_box)]
struct Seats(Vec<Box<Worker>>);

/// Calls nest two deep in practice: a prediction that looks at reference tables.
const SEATS_MAX: usize = 4;

impl Drop for Seats {
    fn drop(&mut self) {
        self.0.drain(..).for_each(give_back);
    }
}

fn give_back(mut worker: Box<Worker>) {
    if let Some(shared) = worker.shared.upgrade() {
        worker.executor = None;
        worker.island = None;
        shared.return_worker(worker);
    }
}

/// Runs `body` with the thread's worker. A nested call gets a worker of its own.
pub(crate) fn with_worker<R>(shared: &Arc<Shared>, body: impl FnOnce(&Arc<Shared>, &mut Worker) -> R) -> R {
    let mut worker = take(shared);
    let result = body(shared, &mut worker);
    put(worker);
    result
}

/// Takes the thread's worker out of its seat, or another one of this engine's.
pub(crate) fn take(shared: &Arc<Shared>) -> Box<Worker> {
    let pop = || {
        SEATS.try_with(|seats| seats.try_borrow_mut().ok().and_then(|mut seats| seats.0.pop())).ok().flatten()
    };
    while let Some(worker) = pop() {
        if std::ptr::eq(worker.shared.as_ptr(), Arc::as_ptr(shared)) {
            return worker;
        }
        give_back(worker);
    }
    shared.take_worker()
}

/// Seats a worker.
pub(crate) fn put(worker: Box<Worker>) {
    let mut worker = Some(worker);
    let _ = SEATS.try_with(|seats| {
        if let Ok(mut seats) = seats.try_borrow_mut()
            && seats.0.len() < SEATS_MAX
        {
            seats.0.extend(worker.take());
        }
    });
    worker.into_iter().for_each(give_back);
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::engine::{Engine, EngineConfig};
    use crate::log::MemoryStore;
    use crate::txn::{NextValue, ROW_ID_SEQUENCE, Sequence};

    #[test]
    fn threads_that_end_give_back_what_they_had() {
        const THREADS: usize = 200;
        let config =
            EngineConfig { background: false, pin_threads: false, ..EngineConfig::with_executors(1) };
        let engine = Engine::open(config, Arc::new(MemoryStore::new())).expect("opens");
        let shared = &engine.shared;
        let sequence = Sequence::new(ROW_ID_SEQUENCE, None);
        for _ in 0..3 {
            let all_are_here = Barrier::new(THREADS);
            let body = || {
                with_worker(shared, |shared, worker| {
                    all_are_here.wait();
                    let (value, _) = sequence.take(shared, worker, 1_000, 0).expect("it goes on");
                    assert!(matches!(value, NextValue::Value(_)));
                });
            };
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(body)).collect();
                // Until they have ended, and not only run their bodies.
                threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
            });
            assert!(shared.epochs.registered() < THREADS / 2, "{} slots", shared.epochs.registered());
            let last = shared.epochs.current();
            assert_eq!(shared.log.newest_commit(), last, "what ended threads have logged is known");
            engine.step_log().expect("written");
            assert!(shared.log.is_durable(last));
            engine.step_log().expect("written");
            assert!(shared.log.buffers() < THREADS / 2, "{} buffers", shared.log.buffers());
            assert_eq!(shared.log.newest_commit(), last);
        }
    }
}
