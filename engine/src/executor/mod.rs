//! Executors: one pinned thread per core, which drains the queues of its partitions.
//!
//! A partition with queued work is in exactly one ready list, held on behalf of the list, until
//! a thread takes it and serves its queue. An executor takes from its own list first, then from
//! those of its island; never from another island. What an executor does between slices —
//! serving connections, spinning, parking — is its driver's business: the server brings a
//! runtime, benches and tests use [`run_plain`].
//!
//! **Cores come and go** (`crate::engine::follow`). An executor that has a core is *active*; one
//! that lost it is *retired*: its list goes to others, its partitions get other homes, and its
//! thread, which may have a slice or a client's statement in the works, goes on as a thread of
//! no island — it runs nothing on the spot and steals nothing, so that it never holds a claim
//! on a core that is another executor's. The same thread takes a core again when one comes.

mod assist;
#[cfg(test)]
#[path = "assist/tests.rs"]
mod assist_tests;
mod plain;
mod ready;
mod speed;
mod worker;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use std::task::Waker;

use parking_lot::Mutex;

pub(crate) use assist::FanOut;
pub use plain::run_plain;
pub(crate) use worker::{Finish, FinishedAs, MemoryGauge, Scratch, Worker, put, refusal, take, with_worker};

use ready::ReadyList;

use crate::engine::{ExecutorPlace, Point, Shared};
use crate::id::{Epoch, ExecutorId, IslandId};
use crate::log::Wake;
use crate::partition::{Lend, NO_NODE, PartitionRef};
use crate::sync;
use crate::topology::Near;

/// What the views and the server know of an executor.
#[derive(Clone, Debug)]
pub struct ExecutorInfo {
    pub id: ExecutorId,
    pub island: IslandId,
    /// The operating system's number of the core to pin to, if one is assigned.
    /// Of a retired executor, the one it lost.
    pub core: Option<usize>,
    /// Whether a thread drives it.
    pub started: bool,
    /// Whether it has a core; if not, it is retired.
    pub active: bool,
    /// Since when it is active or retired: microseconds since 2000-01-01 UTC.
    pub since_micros: i64,
    /// Partitions with queued work.
    pub ready: usize,
    pub slices: u64,
    pub served: u64,
    pub stolen: u64,
    /// The memory node of its island; `None`: the island has several.
    pub memory_node: Option<u16>,
    /// How fast its core is, measured against the others': 1 is usual.
    pub speed: f64,
}

/// The shared part of an executor.
pub(crate) struct Executor {
    pub id: ExecutorId,
    island: AtomicU16,
    /// -1: none is assigned.
    core: AtomicI64,
    /// What it shares with others, in two halves.
    near: AtomicU32,
    /// The memory node of its island, or [`NO_NODE`].
    memory_node: AtomicU16,
    /// How fast its core is, in thousandths of a usual one.
    speed: AtomicU32,
    /// Somebody wants to know how fast its core is; see [`speed`].
    speed_asked: AtomicBool,
    /// The last answer, in nanoseconds; 0: none since it was taken away.
    speed_nanos: AtomicU64,
    /// Moves with every change of place, so that the thread learns of it.
    placed: AtomicU32,
    since_micros: AtomicI64,
    /// The operating system's number of its thread, if the engine started it; 0: none.
    thread: AtomicI32,
    ready: ReadyList<PartitionRef>,
    /// Fan-outs that could use help.
    assists: Mutex<VecDeque<Arc<FanOut>>>,
    assists_len: AtomicUsize,
    /// Somebody pushed since the last slice began.
    signalled: AtomicBool,
    waker: Mutex<Option<Arc<dyn Wake>>>,
    /// Replies of this executor's connections that wait for an epoch to be durable.
    durable_waiters: Mutex<Vec<(Epoch, Waker)>>,
    slices: AtomicU64,
    served: AtomicU64,
    stolen: AtomicU64,
}

/// How long one slice may be.
#[derive(Clone, Copy, Debug)]
pub struct SliceBudget {
    pub actions: u32,
    pub micros: u64,
}

impl Default for SliceBudget {
    fn default() -> Self {
        Self { actions: 64, micros: 500 }
    }
}

/// What a slice did.
#[derive(Clone, Copy, Debug)]
pub struct Drained {
    /// Actions served.
    pub served: u32,
    /// More work is ready.
    pub more: bool,
}

impl Executor {
    /// An executor at its place, or without one.
    pub fn new(id: ExecutorId, place: Option<ExecutorPlace>, now_micros: i64) -> Self {
        let at = place.unwrap_or_default();
        Self {
            id,
            island: AtomicU16::new(at.island.0),
            core: AtomicI64::new(core_number(at.core)),
            near: AtomicU32::new(packed(at.near)),
            memory_node: AtomicU16::new(at.memory_node.unwrap_or(NO_NODE)),
            speed: AtomicU32::new(USUAL_SPEED),
            speed_asked: AtomicBool::new(false),
            speed_nanos: AtomicU64::new(0),
            placed: AtomicU32::new(0),
            since_micros: AtomicI64::new(now_micros),
            thread: AtomicI32::new(0),
            ready: ReadyList::new(place.is_some()),
            assists: Mutex::new(VecDeque::new()),
            assists_len: AtomicUsize::new(0),
            signalled: AtomicBool::new(false),
            waker: Mutex::new(None),
            durable_waiters: Mutex::new(Vec::new()),
            slices: AtomicU64::new(0),
            served: AtomicU64::new(0),
            stolen: AtomicU64::new(0),
        }
    }

    pub fn island(&self) -> IslandId {
        IslandId(self.island.load(Ordering::Relaxed))
    }

    pub fn core(&self) -> Option<usize> {
        usize::try_from(self.core.load(Ordering::Relaxed)).ok()
    }

    /// What its place shares with those of others.
    pub fn near(&self) -> Near {
        let near = self.near.load(Ordering::Relaxed);
        Near { cache: near as u16, package: (near >> 16) as u16 }
    }

    /// The memory node of its island; `None`: the island has several.
    pub fn memory_node(&self) -> Option<u16> {
        Some(self.memory_node.load(Ordering::Relaxed)).filter(|node| *node != NO_NODE)
    }

    /// How fast its core is; 1 is usual.
    pub fn speed(&self) -> f64 {
        f64::from(self.speed.load(Ordering::Relaxed)) / f64::from(USUAL_SPEED)
    }

    /// Says how fast its core is; whether that is another speed than before.
    pub fn set_speed(&self, speed: f64) -> bool {
        let speed = (speed * f64::from(USUAL_SPEED)).round().clamp(1.0, 1e6) as u32;
        self.speed.swap(speed, Ordering::Relaxed) != speed
    }

    /// Asks its thread to measure the speed of its core.
    pub fn ask_speed(&self) {
        self.speed_nanos.store(0, Ordering::Relaxed);
        self.speed_asked.store(true, Ordering::Relaxed);
        self.signal();
    }

    /// What the thread has measured since it was asked, in nanoseconds.
    pub fn take_speed(&self) -> Option<u64> {
        Some(self.speed_nanos.swap(0, Ordering::Relaxed)).filter(|nanos| *nanos > 0)
    }

    /// Whether a thread with a core takes what is pushed here.
    pub fn is_served(&self) -> bool {
        self.ready.is_served()
    }

    pub fn is_driven(&self) -> bool {
        self.ready.is_driven()
    }

    pub fn is_active(&self) -> bool {
        self.ready.is_active()
    }

    /// Takes the place of the thread that drives it; whether it was free.
    pub fn begin_driving(&self) -> bool {
        !self.ready.set_driven(true)
    }

    /// The thread that the engine may pin; 0: none.
    pub fn thread(&self) -> i32 {
        self.thread.load(Ordering::Relaxed)
    }

    pub fn set_thread(&self, thread: i32) {
        self.thread.store(thread, Ordering::Relaxed);
    }

    /// Gives it a place. Its list is served from now on, if a thread drives it.
    pub fn activate(&self, place: ExecutorPlace, now_micros: i64) {
        self.island.store(place.island.0, Ordering::Relaxed);
        self.core.store(core_number(place.core), Ordering::Relaxed);
        self.near.store(packed(place.near), Ordering::Relaxed);
        self.memory_node.store(place.memory_node.unwrap_or(NO_NODE), Ordering::Relaxed);
        if !self.ready.set_active(true) {
            self.since_micros.store(now_micros, Ordering::Relaxed);
        }
        self.placed.fetch_add(1, Ordering::Release);
    }

    /// Takes its place away; the caller hands its list over.
    pub fn retire(&self, now_micros: i64) {
        self.ready.set_active(false);
        self.since_micros.store(now_micros, Ordering::Relaxed);
        self.placed.fetch_add(1, Ordering::Release);
    }

    /// Hands a held partition with queued work to this executor.
    pub fn push(&self, partition: PartitionRef) {
        self.ready.push(partition);
        self.signal();
    }

    pub fn pop(&self) -> Option<PartitionRef> {
        self.ready.pop()
    }

    pub fn take_all(&self) -> VecDeque<PartitionRef> {
        self.ready.take_all()
    }

    /// Asks this executor to help with a fan-out when it gets to it.
    pub fn ask(&self, work: &Arc<FanOut>) {
        let mut assists = self.assists.lock();
        assists.push_back(work.clone());
        self.assists_len.store(assists.len(), Ordering::Release);
        drop(assists);
        self.signal();
    }

    /// Helps with every fan-out that asked.
    fn assist(&self) {
        while self.assists_len.load(Ordering::Acquire) > 0 {
            let work = {
                let mut assists = self.assists.lock();
                let work = assists.pop_front();
                self.assists_len.store(assists.len(), Ordering::Release);
                work
            };
            match work {
                Some(work) => work.help(),
                None => break,
            }
        }
    }

    /// Wakes the driver, once per slice.
    pub fn signal(&self) {
        if !self.signalled.swap(true, Ordering::SeqCst)
            && let Some(waker) = &*self.waker.lock()
        {
            waker.wake();
        }
    }

    pub fn ready_len(&self) -> usize {
        self.ready.len()
    }

    pub fn set_waker(&self, waker: Arc<dyn Wake>) {
        *self.waker.lock() = Some(waker.clone());
        if self.signalled.load(Ordering::SeqCst) {
            waker.wake();
        }
    }

    pub fn info(&self) -> ExecutorInfo {
        ExecutorInfo {
            id: self.id,
            island: self.island(),
            core: self.core(),
            started: self.is_driven(),
            active: self.is_active(),
            since_micros: self.since_micros.load(Ordering::Relaxed),
            ready: self.ready_len(),
            slices: self.slices.load(Ordering::Relaxed),
            served: self.served.load(Ordering::Relaxed),
            stolen: self.stolen.load(Ordering::Relaxed),
            memory_node: self.memory_node(),
            speed: self.speed(),
        }
    }

    /// Registers a reply that waits for `epoch`.
    pub fn wait_durable(&self, epoch: Epoch, waker: Waker) {
        self.durable_waiters.lock().push((epoch, waker));
    }

    /// Wakes the replies whose epoch is durable, in the order they came.
    pub fn release_durable(&self, durable: Epoch) {
        let mut waiters = self.durable_waiters.lock();
        if waiters.is_empty() {
            return;
        }
        let mut due = Vec::new();
        waiters.retain(|(epoch, waker)| {
            let is_due = *epoch <= durable;
            if is_due {
                due.push(waker.clone());
            }
            !is_due
        });
        drop(waiters);
        for waker in due {
            waker.wake();
        }
    }
}

/// A core that ran fewer transactions since it was last asked for its speed is not a busy one.
const BUSY_RUNS_MIN: u64 = 100;

/// See [`Executor::speed`].
const USUAL_SPEED: u32 = 1_000;

fn packed(near: Near) -> u32 {
    u32::from(near.package) << 16 | u32::from(near.cache)
}

fn core_number(core: Option<usize>) -> i64 {
    core.and_then(|core| i64::try_from(core).ok()).unwrap_or(-1)
}

/// The log pokes every executor when the durable epoch moves.
impl Wake for Executor {
    fn wake(&self) {
        if self.durable_waiters.lock().is_empty() {
            return;
        }
        self.signal();
    }
}

/// An executor thread's handle on its executor. One per executor; the thread that drains must
/// be the one it is used on.
pub struct ExecutorHandle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: ExecutorId,
    /// The place this thread knows of.
    placed: Cell<u32>,
    /// Runs of this thread when it was last asked for the speed of its core.
    runs: Cell<u64>,
}

impl ExecutorHandle {
    pub(crate) fn new(shared: Arc<Shared>, id: ExecutorId) -> Self {
        Self { shared, id, placed: Cell::new(u32::MAX), runs: Cell::new(0) }
    }

    pub fn id(&self) -> ExecutorId {
        self.id
    }

    fn executor(&self) -> &Executor {
        &self.shared.seats()[usize::from(self.id.0)]
    }

    /// How this executor is woken when it has work: called from any thread, often.
    pub fn set_waker(&self, waker: Arc<dyn Wake>) {
        self.executor().set_waker(waker);
    }

    /// Whether partitions of this executor have queued work, or replies may be due.
    pub fn has_work(&self) -> bool {
        let executor = self.executor();
        executor.ready_len() > 0 || executor.signalled.load(Ordering::SeqCst)
    }

    /// Serves ready partitions, its own first, then those of its island, within the budget.
    /// After `more == false` the driver may park until it is woken.
    pub fn drain(&self, budget: SliceBudget) -> Drained {
        let executor = self.executor();
        executor.signalled.store(false, Ordering::SeqCst);
        if executor.placed.load(Ordering::Acquire) != self.placed.get() {
            self.seat();
        }
        executor.release_durable(self.shared.log.durable());
        executor.assist();
        if executor.speed_asked.load(Ordering::Relaxed) {
            self.measure_speed(executor);
        }
        let active = executor.is_active();
        if !active {
            // What is left, for want of another executor, is served here.
            self.shared.hand_over(executor);
        }
        let mut served = 0;
        let others_have_work =
            if active { self.shared.island_has_work(executor) } else { self.shared.has_orphans() };
        if executor.ready_len() > 0 || others_have_work {
            with_worker(&self.shared, |shared, worker| {
                worker.executor = Some(executor.id);
                worker.island = active.then(|| executor.island());
                let began = shared.clock.monotonic_nanos();
                while served < budget.actions {
                    let Some(partition) = executor.pop().or_else(|| {
                        let stolen = if active { shared.steal(executor) } else { shared.orphan() };
                        if stolen.is_some() {
                            executor.stolen.fetch_add(1, Ordering::Relaxed);
                        }
                        stolen
                    }) else {
                        break;
                    };
                    serve(shared, worker, partition);
                    served += 1;
                    if served % 8 == 0 && shared.clock.monotonic_nanos() - began > budget.micros * 1_000 {
                        break;
                    }
                }
            });
            executor.slices.fetch_add(1, Ordering::Relaxed);
            executor.served.fetch_add(u64::from(served), Ordering::Relaxed);
        }
        Drained { served, more: executor.ready_len() > 0 || executor.signalled.load(Ordering::SeqCst) }
    }

    /// Measures how fast this core is: some tens of microseconds, when somebody has asked. A core
    /// that has had little to do is not measured: it may run at the clock of an idle one.
    #[cold]
    fn measure_speed(&self, executor: &Executor) {
        executor.speed_asked.store(false, Ordering::Relaxed);
        let runs = with_worker(&self.shared, |_, worker| worker.tally.runs);
        if runs.saturating_sub(self.runs.replace(runs)) < BUSY_RUNS_MIN {
            return;
        }
        let measured = || speed::measure(&*self.shared.clock);
        let nanos = self.shared.machine.work_nanos(executor.core()).unwrap_or_else(measured);
        executor.speed_nanos.store(nanos.max(1), Ordering::Relaxed);
    }

    /// Seats this thread's worker as the executor's, so that programs submitted here are
    /// known to run on it.
    pub fn seat(&self) {
        let executor = self.executor();
        self.placed.set(executor.placed.load(Ordering::Acquire));
        with_worker(&self.shared, |_, worker| {
            worker.executor = Some(executor.id);
            worker.island = executor.is_active().then(|| executor.island());
        });
    }
}

impl Drop for ExecutorHandle {
    fn drop(&mut self) {
        let executor = self.executor();
        executor.ready.set_driven(false);
        executor.set_thread(0);
        *executor.waker.lock() = None;
        self.shared.hand_over(executor);
        // Replies that still wait would wait for ever.
        executor.release_durable(Epoch(u64::MAX));
    }
}

/// Serves the queue of a held partition until it runs one job, lends the partition away, or
/// finds the queue empty and releases it.
pub(crate) fn serve(shared: &Arc<Shared>, worker: &mut Worker, partition: PartitionRef) {
    shared.point(Point::BeforeServe);
    worker.nesting += 1;
    loop {
        match partition.take_next() {
            Some(ticket) => match ticket.lend(partition) {
                Lend::Kept => break,
                Lend::Refused => {}
                Lend::Run(job, held) => {
                    job.run(shared, worker, held);
                    break;
                }
            },
            None => {
                if partition.try_release() {
                    break;
                }
            }
        }
    }
    worker.nesting -= 1;
}
