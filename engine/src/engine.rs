//! The engine's front: open, submit, begin, snapshot, views.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

mod background;
mod checkpoint;
mod follow;
mod history;
mod indexing;
mod memory;
mod open;
mod pace;
mod partitions;
mod restart;
mod shared;
mod views;

pub use follow::{TopologyChange, TopologyListener};
pub use history::{CheckpointReason, CheckpointState, CheckpointView};
pub use memory::MemoryFollowed;
pub use open::{EngineConfig, ExecutorPlace, Interleave, OpenError, PAGE_ROWS_MAX, Point, Seams};
pub use restart::RecoverySpeed;
pub use shared::PARTITIONS_PER_EXECUTOR;
pub(crate) use shared::Shared;
pub use views::{LogView, PartitionView, RouteView};

use crate::client::Client;
use crate::executor::{ExecutorHandle, ExecutorInfo, Worker};
use crate::id::{Epoch, ExecutorId, GroupId, SequenceId, TreeId, TxnId};
use crate::locks::LockView;
use crate::monitor::{Decision, MonitorSettings, PartitionLoad, RunCounts, SyncPointView};
use crate::partition::{HeldList, RoutingTable};
use crate::program::{Completed, Outcome, Program, Stop};
use crate::snapshot::Snapshot;
use crate::storage::KeyBuf;
use crate::submission::{Pending, Submission};
use crate::table::TableMeta;
use crate::topology::mask::{bind_thread, take_short_turns, this_thread};
use crate::txn::attempt::{Attempt, Ran, RunOptions, run_held};
use crate::txn::{
    Commit, Interactive, InteractiveSavepoint, InteractiveState, Isolation, LockWait, NextValue, PreSplit,
    Repartition, RepartitionView, Repartitioning, Rollback, RollbackTo, Sequence, SplitPartition, WaitGraph,
};

/// The engine. Cheap to clone; the last clone's end stops its threads.
#[derive(Clone)]
pub struct Engine {
    /// Stops the background threads when the last engine goes; programs on their way keep
    /// only the shared state. Goes before the shared state: the log writer needs its epochs
    /// to write what is still in the buffers.
    background: Arc<background::Background>,
    pub(crate) shared: Arc<Shared>,
}

/// Where a program begins to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// On its submitter's stack if all its partitions are idle, else when its turn comes.
    #[default]
    OnTheSpot,
    /// Through the queues even if all partitions are idle: whichever executor of their islands
    /// has time runs the program, while the caller goes on.
    Queued,
    /// It is known to run long: on a thread of its own when its turn comes, so that it keeps no
    /// executor from its other partitions and its clients.
    Apart,
}

impl Start {
    /// Apart what runs long.
    pub fn apart_if(long: bool) -> Start {
        if long { Start::Apart } else { Start::OnTheSpot }
    }
}

/// Whether a program reads in pages: as of a snapshot, page by page, holding nothing between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paging {
    /// It reads what it has claimed.
    #[default]
    Off,
    /// In pages, under locks of its tables ([`Program::tables`]) that it asks for.
    Locking,
    /// In pages, while somebody else holds those locks: it asks for none, as it could have to wait
    /// behind who waits for their holder.
    Locked,
}

/// Under what a program is submitted.
#[derive(Clone, Copy, Default)]
pub struct SubmitOptions<'i> {
    /// Run as a statement of this interactive transaction.
    pub transaction: Option<&'i Interactive>,
    /// Whether to wait for rows that somebody else locks.
    pub lock_wait: LockWait,
    /// The program promises not to write.
    pub read_only: bool,
    /// Who submits: asked whether to stop, told what the program waits for.
    pub client: Option<&'i Arc<Client>>,
    pub start: Start,
    /// Its pages are as of its transaction's snapshot, or under READ COMMITTED of one of its own, taken
    /// when it begins. Stops with [`Stop::Interactive`] where it would write. For a program that runs
    /// apart, under a transaction.
    pub paging: Paging,
}

impl Engine {
    /// Runs a program: on the spot if all its partitions are idle, else through their queues.
    pub fn submit<P: Program>(&self, program: P, options: SubmitOptions<'_>) -> Submission<P> {
        submit_on(&self.shared, program, options)
    }

    /// Reads reference tables as they are published now, outside of any transaction: for
    /// [`Program::predict`], whose answer may turn out wrong. Whatever `body` writes is undone.
    pub fn read_references<R>(
        &self,
        body: impl FnOnce(&mut crate::txn::Txn<'_>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        crate::executor::with_worker(&self.shared, |shared, worker| {
            worker.refresh(shared);
            crate::txn::attempt::glance(shared, worker, body)
        })
    }

    /// A new client, known to its caller by `number`.
    pub fn client(&self, number: i32) -> Arc<Client> {
        self.shared.client(number)
    }

    /// Begins an interactive transaction.
    pub fn begin(&self) -> Interactive {
        self.begin_at(Isolation::ReadCommitted, false)
    }

    /// Begins an interactive transaction that sees others' work as `isolation` says; its first
    /// statement takes the snapshot. `read_only` promises that no statement writes.
    pub fn begin_at(&self, isolation: Isolation, read_only: bool) -> Interactive {
        self.begin_for(&self.shared.client(0), isolation, read_only)
    }

    /// Begins an interactive transaction of a client, as [`Engine::begin_at`] does.
    pub fn begin_for(&self, client: &Arc<Client>, isolation: Isolation, read_only: bool) -> Interactive {
        let id = self.shared.next_transaction();
        let micros = self.shared.clock.wall_micros();
        let state = InteractiveState::new(id, micros, isolation, read_only, client.clone());
        client.begin(&state);
        Interactive { state, shared: self.shared.clone() }
    }

    /// Commits an interactive transaction. If the outcome is an error other than
    /// [`Stop::TransactionEnded`], roll it back.
    pub fn commit(&self, transaction: &Interactive) -> Submission<Commit> {
        let commit = Commit::alone(transaction);
        let options = commit.options();
        self.submit(commit, options)
    }

    /// Rolls an interactive transaction back.
    pub fn rollback(&self, transaction: &Interactive) -> Submission<Rollback> {
        let rollback = Rollback::of(transaction.state.clone(), &self.shared);
        let options = rollback.options();
        self.submit(rollback, options)
    }

    /// Takes an interactive transaction back to a savepoint.
    pub fn rollback_to(
        &self,
        transaction: &Interactive,
        savepoint: InteractiveSavepoint,
    ) -> Submission<RollbackTo> {
        let rollback = RollbackTo::of(transaction.state.clone(), savepoint);
        let options = rollback.options();
        self.submit(rollback, options)
    }

    /// Who waits for whom. Waits for other things than rows may be published here, so that one
    /// search finds deadlocks over all of them.
    pub fn waits(&self) -> &WaitGraph {
        &self.shared.waits
    }

    /// Whether these are the row locks of a program on its own, which has waited so often that it keeps what it
    /// has got. Of a cycle of waits it is nobody's victim: it lets go of its rows, and begins anew.
    pub fn is_starved(&self, id: TxnId) -> bool {
        self.shared.starved.load(Ordering::SeqCst) == id.0
    }

    /// The database as of now. Advances the epoch, which waits for commit points in progress:
    /// nanoseconds.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_for(0)
    }

    /// The same, and the views say that `holder` (a session's process id) holds it.
    pub fn snapshot_for(&self, holder: u64) -> Snapshot {
        Snapshot::new(&self.shared, holder)
    }

    /// Resolves when `epoch` is durable: `true`, or `false` if the log failed before.
    pub fn durable(&self, epoch: Epoch) -> Durable {
        Durable { shared: self.shared.clone(), epoch, registered: None }
    }

    /// Whether `epoch` is durable already.
    pub fn is_durable(&self, epoch: Epoch) -> bool {
        #[cfg(test)]
        if crate::planted::is(crate::planted::Bug::EarlyAcknowledgement) {
            return true;
        }
        self.shared.log.is_durable(epoch)
    }

    /// Waits on this thread until `epoch` is durable.
    pub fn wait_durable(&self, epoch: Epoch) -> bool {
        self.shared.log.want(epoch);
        while !self.shared.log.is_durable(epoch) {
            if self.shared.log_failed() {
                return false;
            }
            self.shared.wait_for_durable_change();
        }
        true
    }

    /// The table at its current layout.
    pub fn table(&self, id: TreeId) -> Option<Arc<TableMeta>> {
        self.shared.load_schema().tables.get(&id).cloned()
    }

    /// From this number on no tree has been seen when the engine opened: neither by the
    /// definitions, nor by what the log drops, which would take a new tree of the same number
    /// along when it is replayed once more.
    pub fn first_unused_tree(&self) -> TreeId {
        self.shared.first_unused_tree
    }

    /// All tables, in id order.
    pub fn tables(&self) -> Vec<Arc<TableMeta>> {
        self.shared.load_schema().tables_sorted()
    }

    /// All sequences, in id order.
    pub fn sequences(&self) -> Vec<SequenceId> {
        let mut all: Vec<SequenceId> = self.shared.load_schema().sequences.iter().map(|(id, _)| id).collect();
        all.sort_unstable();
        all
    }

    /// A running sequence.
    pub fn sequence(&self, id: SequenceId) -> Option<Arc<Sequence>> {
        self.shared.load_schema().sequences.get(&id).cloned()
    }

    /// `nextval` outside any transaction: sequences are not transactional anyway. A reply that
    /// shows the value depends on the epoch. `None`: there is no such sequence.
    pub fn next_value(&self, id: SequenceId) -> Option<(NextValue, Epoch)> {
        loop {
            let sequence = self.sequence(id)?;
            let taken = self.shared.with_worker(|shared, worker| sequence.take(shared, worker, 1, 0));
            // What has ended has another one in its place by now, or none.
            if let Some((value, bound)) = taken {
                return Some((value, bound.epoch));
            }
        }
    }

    /// `setval` outside any transaction; the epoch its reply depends on.
    pub fn set_value(&self, id: SequenceId, value: i64, is_called: bool) -> Option<Epoch> {
        loop {
            let sequence = self.sequence(id)?;
            let set =
                self.shared.with_worker(|shared, worker| sequence.set(shared, worker, (value, is_called), 0));
            if let Some(bound) = set {
                return Some(bound.epoch);
            }
        }
    }

    /// A number that no earlier start of the database has had, zero for the first: it is logged in an
    /// epoch before all that are entered from now on.
    pub fn number_start(&self) -> u64 {
        let starts = &self.shared.starts;
        let number = starts.peek() as i64;
        self.shared.with_worker(|shared, worker| starts.set(shared, worker, (number, true), 0));
        number as u64
    }

    /// Whether any table is locked, or about to be, in a mode that is in the way of one-shots.
    pub fn has_table_locks(&self) -> bool {
        self.shared.locks.is_strong()
    }

    /// Locks of tables and advisory locks, held and waited for.
    pub fn object_locks(&self) -> Vec<LockView> {
        self.shared.locks.list()
    }

    /// The current routing table.
    pub fn routing(&self) -> Arc<RoutingTable> {
        self.shared.load_routing()
    }

    /// Splits a group at the given keys before a bulk load (COPY's first sample).
    pub fn pre_split(&self, group: GroupId, keys: Vec<KeyBuf>) -> Submission<PreSplit> {
        self.submit(PreSplit { group, keys, added: 0 }, SubmitOptions::default())
    }

    /// Splits the partition of a key in two, if it has at least `rows_min` rows and its keys
    /// allow.
    pub fn split(&self, group: GroupId, key: &[u8], rows_min: u64) -> Submission<SplitPartition> {
        let key = KeyBuf::from_slice(key);
        let program = SplitPartition {
            group,
            key,
            rows_min,
            partitions_max: usize::MAX,
            reason: "asked for",
            split_at: None,
        };
        self.submit(program, SubmitOptions::default())
    }

    /// Splits, merges or moves partitions; `reason` is for [`Engine::repartitions`]. A change
    /// that contradicts what there is is refused, and changes nothing.
    pub fn repartition(&self, change: Repartition, reason: &'static str) -> Submission<Repartitioning> {
        self.submit(Repartitioning::new(change, reason), SubmitOptions::default())
    }

    /// The last repartitionings, oldest first.
    pub fn repartitions(&self) -> Vec<RepartitionView> {
        self.shared.repartitions.list()
    }

    /// What the monitor decided, oldest first.
    pub fn monitor_decisions(&self) -> Vec<Decision> {
        self.shared.monitor.decisions.list()
    }

    /// Shares of the load, as of the last evaluation.
    pub fn partition_loads(&self) -> Vec<PartitionLoad> {
        self.shared.monitor.loads()
    }

    /// Which sub-partitions met in transactions, as of the last evaluation.
    pub fn sync_points(&self) -> Vec<SyncPointView> {
        self.shared.monitor.sync_points()
    }

    /// How programs ran, over all threads.
    pub fn run_counts(&self) -> RunCounts {
        self.shared.monitor.run_counts()
    }

    /// The monitor's thresholds.
    pub fn monitor_settings(&self) -> MonitorSettings {
        self.shared.monitor.settings()
    }

    /// Changes the monitor's thresholds.
    pub fn set_monitor(&self, settings: MonitorSettings) {
        self.shared.monitor.set(settings);
    }

    /// For drivers without background threads: the monitor's next step, if it is due; how long
    /// until the one after.
    pub fn step_monitor(&self) -> std::time::Duration {
        crate::monitor::tick(&self.shared)
    }

    /// The executors that have a core, or had one.
    pub fn executors(&self) -> Vec<ExecutorInfo> {
        self.shared.executors().iter().map(|executor| executor.info()).collect()
    }

    /// How many executors have a core.
    pub fn active_executors(&self) -> usize {
        self.shared.active_count()
    }

    /// The operating system's numbers of the executors' threads.
    pub fn executor_threads(&self) -> Vec<i32> {
        self.shared
            .executors()
            .iter()
            .map(|executor| executor.thread())
            .filter(|thread| *thread != 0)
            .collect()
    }

    /// The longest run of a one-shot.
    pub fn one_shot_budget(&self) -> std::time::Duration {
        std::time::Duration::from_micros(self.shared.config.one_shot_budget_micros)
    }

    /// How many executors there may ever be; their numbers are below.
    pub fn executors_max(&self) -> usize {
        self.shared.seats().len()
    }

    /// Takes the handle of an executor, for the thread that will drive it; `None` if somebody
    /// drives it already, or it never had a core: the log knows nothing of that one yet, and
    /// would not wake it.
    pub fn attach_executor(&self, id: ExecutorId) -> Option<ExecutorHandle> {
        let executor = self.shared.executors().get(usize::from(id.0))?;
        if !executor.begin_driving() {
            return None;
        }
        self.shared.take_over(id);
        Some(ExecutorHandle::new(self.shared.clone(), id))
    }

    /// Starts an executor's thread, pinned to its core, and calls `body` on it.
    pub fn start_executor(
        &self,
        id: ExecutorId,
        body: Box<dyn FnOnce(ExecutorHandle) + Send>,
    ) -> std::io::Result<JoinHandle<()>> {
        let handle = self.attach_executor(id).ok_or_else(|| {
            std::io::Error::new(
                std::io::ErrorKind::AlreadyExists,
                "the executor is driven already, or never had a core",
            )
        })?;
        let executor = self.shared.seats()[usize::from(id.0)].clone();
        let pin = self.shared.config.pin_threads;
        self.shared.spawn.spawn(
            format!("executor-{id}"),
            Box::new(move || {
                executor.set_thread(this_thread());
                if let (true, Some(core)) = (pin, executor.core()) {
                    // A refusal (a smaller cpuset) leaves the thread where it is.
                    bind_thread(0, &BTreeSet::from([core]));
                }
                take_short_turns();
                handle.seat();
                body(handle);
            }),
        )
    }

    /// Writes everything committed so far to the log, durably.
    pub fn flush(&self) -> bool {
        self.wait_durable(self.shared.epochs.current())
    }

    /// Runs a checkpoint now and waits for it.
    pub fn checkpoint(&self) -> Result<(), OpenError> {
        self.background.checkpoint(&self.shared, CheckpointReason::Request)
    }

    /// Copies the database, while it is in use, into a directory that does not exist yet. The
    /// copy opens as a database that holds every commit acknowledged before the call, and is
    /// as of one moment of the call. It begins with a checkpoint, so that it holds little log.
    pub fn copy_to(&self, directory: &std::path::Path) -> Result<(), OpenError> {
        self.background.copy_to(&self.shared, directory)
    }
}

/// Submits a program, from an engine or from inside it.
pub(crate) fn submit_on<P: Program>(
    shared: &Arc<Shared>,
    mut program: P,
    options: SubmitOptions<'_>,
) -> Submission<P> {
    let run_options = RunOptions {
        interactive: options.transaction.map(|transaction| transaction.state.clone()),
        lock_wait: options.lock_wait,
        read_only: options.read_only,
        client: options.client.cloned(),
        start: options.start,
        paging: if options.transaction.is_some() { options.paging } else { Paging::Off },
        ..RunOptions::default()
    };
    if let Some(interactive) = &run_options.interactive {
        interactive.take_snapshot(shared);
    }
    if let Some(interactive) = &run_options.interactive
        && !interactive.is_active()
    {
        return Submission::ready(Completed { program, outcome: refused(Stop::TransactionEnded) });
    }
    crate::executor::with_worker(shared, |shared, worker| {
        worker.wait_for_room(shared);
        worker.refresh(shared);
        let mut claims = worker.scratch.claims.take().unwrap_or_default();
        claims.clear();
        if run_options.paging == Paging::Off {
            program.predict(&worker.routing, &mut claims);
        }
        if let Some(interactive) = &run_options.interactive
            && interactive.wrote_references()
            && run_options.paging == Paging::Off
        {
            claims.add_group(crate::table::REFERENCE_GROUP);
        }
        let mut held = HeldList::new();
        worker.routing.resolve(&claims, &mut held);
        let mut restarts = 0;
        let (mut parked, mut goes_on) = (None, false);
        let on_the_spot = run_options.start == Start::OnTheSpot;
        if on_the_spot && shared.may_run_here(worker, &held) && claim_all(shared, worker, &held) {
            match run_held(shared, worker, &mut program, &run_options, held, &claims) {
                Ran::Done(outcome) if outcome.result.is_ok() && program.goes_on() => goes_on = true,
                Ran::Done(outcome) => {
                    program.ended();
                    worker.scratch.claims = Some(claims);
                    return Submission::ready(Completed { program, outcome });
                }
                Ran::Restart => {
                    restarts = 1;
                    let mut missing = std::mem::take(&mut worker.scratch.missing);
                    Attempt::<P>::widen(&mut claims, &mut missing, restarts);
                    worker.scratch.missing = missing;
                }
                // There is no view yet, so nothing to look at again.
                Ran::Reevaluate => {}
                Ran::Wait(waiter, view) => parked = Some((waiter, view)),
            }
        }
        let pending = Pending::new(shared);
        let attempt = Attempt {
            program,
            claims: *claims,
            options: run_options,
            restarts,
            waits: 0,
            waited_for: None,
            pending: pending.clone(),
            queued_nanos: None,
            from: worker.executor,
        };
        match parked {
            Some((waiter, view)) => Box::new(attempt).wait(shared, worker, waiter, view),
            None if goes_on => attempt.go_on(shared, worker),
            None => attempt.enqueue(shared, worker),
        }
        Submission::pending(pending)
    })
}

/// Claims all partitions directly, or none.
fn claim_all(shared: &Arc<Shared>, worker: &mut Worker, held: &[crate::partition::PartitionRef]) -> bool {
    for (at, partition) in held.iter().enumerate() {
        if !partition.try_claim() {
            shared.release_all(worker, &held[..at]);
            return false;
        }
    }
    true
}

fn refused(stop: Stop) -> Outcome {
    Outcome {
        result: Err(stop),
        depends_on: Epoch(0),
        restarts: 0,
        partitions: 0,
        ran_on: None,
        inline: true,
    }
}

/// A future of durability: see [`Engine::durable`].
pub struct Durable {
    shared: Arc<Shared>,
    epoch: Epoch,
    registered: Option<Waker>,
}

impl Future for Durable {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        if self.shared.log.is_durable(self.epoch) {
            return Poll::Ready(true);
        }
        if self.shared.log_failed() {
            return Poll::Ready(false);
        }
        let waker = context.waker();
        if !self.registered.as_ref().is_some_and(|registered| registered.will_wake(waker)) {
            self.shared.register_durable(self.epoch, waker.clone());
            self.registered = Some(waker.clone());
            self.shared.log.want(self.epoch);
        }
        // The epoch may have become durable before the registration.
        if self.shared.log.is_durable(self.epoch) { Poll::Ready(true) } else { Poll::Pending }
    }
}
