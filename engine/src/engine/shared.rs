//! The state every thread of the engine sees.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use arc_swap::ArcSwap;
use crossbeam::utils::CachePadded;
use parking_lot::{Condvar, Mutex};

use super::follow::Following;
use super::history::CheckpointHistory;
use super::memory::MemoryFollowing;
use super::open::{EngineConfig, Interleave, Point};
use super::partitions::Partitions;
use super::restart::RestartBound;
use crate::client::Client;
use crate::clock::Clock;
use crate::executor::{Executor, FanOut, MemoryGauge, Worker, put, serve, take};
use crate::id::{Epoch, ExecutorId, GroupId, TreeId, TxnId};
use crate::locks::table::LockTable;
use crate::log::{Log, Wake};
use crate::monitor::Monitor;
use crate::partition::{
    HeldList, Job, NO_NODE, Partition, PartitionData, PartitionRef, RoutingTable, Ticket,
};
use crate::random::Entropy;
use crate::snapshot::Snapshots;
use crate::spawn::Spawn;
use crate::table::{REFERENCE_GROUP, Schema};
use crate::topology::{CoreDistances, Machine, Topology, WatchedMachine};
use crate::txn::{EpochClock, GroupPlaces, History, References, Sequence, SplitPartition, WaitGraph};

/// See the module.
pub(crate) struct Shared {
    pub config: EngineConfig,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub spawn: Arc<dyn Spawn>,
    interleave: Option<Arc<dyn Interleave>>,
    pub epochs: EpochClock,
    pub log: Arc<Log>,
    pub references: References,
    pub snapshots: Snapshots,
    pub waits: WaitGraph,
    pub locks: LockTable,
    /// Those that may be asked what they hold; touched when one comes.
    clients: Mutex<Vec<Weak<Client>>>,
    pub memory: MemoryGauge,
    pub counters: Counters,
    /// How long the log may grow.
    pub restart: RestartBound,
    pub checkpoints: CheckpointHistory,
    /// Entries the last checkpoint looked at, and rows there were at its end; 0 before the first.
    pub checkpoint_entries: AtomicU64,
    pub checkpoint_rows: AtomicU64,
    /// Who waits for the checkpoint under way to end.
    pub checkpoint_hurry: AtomicUsize,
    pub repartitions: History,
    pub monitor: Monitor,
    pub row_ids: Arc<Sequence>,
    /// Counts the starts of the database.
    pub starts: Arc<Sequence>,
    /// Every executor there may ever be; those below `seats_used` have had a core.
    executors: Vec<Arc<Executor>>,
    seats_used: AtomicUsize,
    /// How many have a core.
    active: AtomicUsize,
    /// What is known of the machine.
    pub machine: WatchedMachine,
    pub following: Following,
    pub memory_following: MemoryFollowing,
    /// Moves with every publication of definitions or routing.
    definitions_version: CachePadded<AtomicU64>,
    /// The number of whoever has published definitions last.
    definitions_number: AtomicU64,
    schema: ArcSwap<Schema>,
    routing: ArcSwap<RoutingTable>,
    /// Publications one after another.
    routing_latch: Mutex<()>,
    /// How the log has the partitions of groups.
    pub group_places: GroupPlaces,
    partitions: Mutex<Partitions<PartitionRef>>,
    next_table_version: AtomicU32,
    /// See [`crate::Engine::first_unused_tree`].
    pub first_unused_tree: TreeId,
    meta_sequence: AtomicU64,
    next_transaction: AtomicU64,
    // Boxed, because they move between threads' seats and here all the time.
    #[allow(clippy::vec_box)]
    idle_workers: Mutex<Vec<Box<Worker>>>,
    /// Replies of threads that are no executors.
    durable_waiters: Mutex<Vec<(Epoch, Waker)>>,
    durable_change: Mutex<u64>,
    durable_changed: Condvar,
    /// Locks of interactive transactions that forbid to refer to a row of a reference table.
    pub reference_keys_locked: AtomicUsize,
    /// The one starved one-shot that locks rows; zero: none.
    pub starved: AtomicU64,
    pub failed: AtomicBool,
}

/// So many partitions a group gets for each executor, where its keys allow: enough to level
/// the load by moving whole partitions, few enough for statements over all of them.
pub const PARTITIONS_PER_EXECUTOR: usize = 4;
/// From so many partitions for each executor on, a group that grows has larger ones instead of more: splits
/// by load have something to choose from, and what is done for each partition stays little.
const SIZED_PER_EXECUTOR: usize = 16;
/// A partition with fewer rows is not split for the sake of spreading: a small group is
/// cheaper in one piece.
const SPREAD_ROWS_MIN: u64 = 2_000;

/// What threads had that ended is kept for so many new ones.
const IDLE_WORKERS_MAX: usize = 32;

/// No machine has more cores than this.
const EXECUTORS_MAX: usize = 1 << 13;

/// Rare events, for the views.
#[derive(Default)]
pub(crate) struct Counters {
    pub row_waits: AtomicU64,
    /// One-shots that waited so often that they locked rows.
    pub starved: AtomicU64,
}

/// What recovery (or a first start) puts in.
pub(crate) struct SharedParts {
    pub config: EngineConfig,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub spawn: Arc<dyn Spawn>,
    pub interleave: Option<Arc<dyn Interleave>>,
    pub topology: Option<Arc<dyn Topology>>,
    /// Of cores, and the machine they are on.
    pub distances: (CoreDistances, Option<Machine>),
    pub log: Arc<Log>,
    pub restart: RestartBound,
    pub first_epoch: Epoch,
    pub references: References,
    pub row_ids: Arc<Sequence>,
    /// Counts the starts of the database.
    pub starts: Arc<Sequence>,
    pub schema: Schema,
    pub routing: RoutingTable,
    pub group_places: GroupPlaces,
    pub partitions: Vec<PartitionRef>,
    pub next_partition: u32,
    pub next_table_version: u32,
    pub first_unused_tree: TreeId,
    pub meta_sequence: u64,
    pub memory_used: i64,
}

impl Shared {
    pub fn new(parts: SharedParts) -> Arc<Self> {
        let (places, settings) = (parts.config.executors.clone(), parts.config.monitor);
        let now_micros = parts.clock.wall_micros();
        let seats = parts.config.executors_max.min(EXECUTORS_MAX).max(places.len());
        let executors: Vec<Arc<Executor>> = (0..seats)
            .map(|at| Arc::new(Executor::new(ExecutorId(at as u16), places.get(at).copied(), now_micros)))
            .collect();
        if let [first, others @ ..] = &places[..]
            && let Some(node) = first.memory_node
            && others.iter().all(|other| other.memory_node == first.memory_node)
        {
            // Wherever recovery has put them: there is one node.
            parts.partitions.iter().for_each(|partition| partition.set_memory_node(node));
        }
        let snapshots = Snapshots::new(parts.config.version_memory_max_bytes);
        let memory = MemoryGauge::new(parts.config.max_memory_bytes);
        memory.add(parts.memory_used);
        let shared = Arc::new(Self {
            config: parts.config,
            clock: parts.clock,
            entropy: parts.entropy,
            spawn: parts.spawn,
            interleave: parts.interleave,
            epochs: EpochClock::new(parts.first_epoch),
            next_transaction: AtomicU64::new(parts.log.transaction_at_start().0 + 1),
            log: parts.log,
            references: parts.references,
            snapshots,
            waits: WaitGraph::default(),
            locks: LockTable::default(),
            clients: Mutex::default(),
            memory,
            counters: Counters::default(),
            restart: parts.restart,
            checkpoints: CheckpointHistory::default(),
            checkpoint_entries: AtomicU64::new(0),
            checkpoint_rows: AtomicU64::new(0),
            checkpoint_hurry: AtomicUsize::new(0),
            repartitions: History::default(),
            monitor: Monitor::new(settings),
            row_ids: parts.row_ids,
            starts: parts.starts,
            executors,
            seats_used: AtomicUsize::new(0),
            active: AtomicUsize::new(places.len()),
            machine: WatchedMachine::new(parts.topology, parts.distances),
            following: Following::default(),
            memory_following: MemoryFollowing::default(),
            definitions_version: CachePadded::new(AtomicU64::new(1)),
            definitions_number: AtomicU64::new(0),
            schema: ArcSwap::from_pointee(parts.schema),
            routing: ArcSwap::from_pointee(parts.routing),
            routing_latch: Mutex::new(()),
            group_places: parts.group_places,
            partitions: Mutex::new(listed(parts.partitions, parts.next_partition)),
            next_table_version: AtomicU32::new(parts.next_table_version),
            first_unused_tree: parts.first_unused_tree,
            meta_sequence: AtomicU64::new(parts.meta_sequence),
            idle_workers: Mutex::new(Vec::new()),
            durable_waiters: Mutex::new(Vec::new()),
            durable_change: Mutex::new(0),
            durable_changed: Condvar::new(),
            reference_keys_locked: AtomicUsize::new(0),
            starved: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        });
        shared.use_seats(places.len());
        shared.log.subscribe(Arc::new(DurableChange(Arc::downgrade(&shared))));
        shared
    }

    /// The executors that have, or once had, a core.
    pub fn executors(&self) -> &[Arc<Executor>] {
        &self.executors[..self.seats_used.load(Ordering::Acquire)]
    }

    /// Every executor there may ever be.
    pub fn seats(&self) -> &[Arc<Executor>] {
        &self.executors
    }

    /// Those that have a core.
    pub fn active(&self) -> Vec<ExecutorId> {
        self.executors().iter().filter(|executor| executor.is_active()).map(|executor| executor.id).collect()
    }

    /// How many executors have a core; at least one.
    pub fn active_count(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Notes how many executors have a core now, and tells the log of new ones.
    pub fn use_seats(&self, active: usize) {
        self.active.store(active, Ordering::Relaxed);
        let used = self.seats_used.load(Ordering::Acquire);
        let last = self.executors.iter().rposition(|executor| executor.is_active());
        let now = last.map_or(0, |last| last + 1).max(used);
        for executor in &self.executors[used..now] {
            self.log.subscribe(executor.clone());
        }
        self.seats_used.store(now, Ordering::Release);
    }

    /// Lets the simulator come between.
    #[inline]
    pub fn point(&self, point: Point) {
        if let Some(interleave) = &self.interleave {
            interleave.at(point);
        }
    }

    pub fn definitions_version(&self) -> u64 {
        self.definitions_version.load(Ordering::Acquire)
    }

    /// The number of the transaction that has changed definitions last, or a greater one.
    pub fn definitions_number(&self) -> u64 {
        self.definitions_number.load(Ordering::Acquire)
    }

    pub fn load_schema(&self) -> Arc<Schema> {
        self.schema.load_full()
    }

    pub fn load_routing(&self) -> Arc<RoutingTable> {
        self.routing.load_full()
    }

    /// Publishes new definitions, and what they change of the routing table. The caller holds the
    /// reference partition, so that these are the newest definitions and its own changes; other groups'
    /// routes may have changed since it began. `number` is its own.
    pub fn publish_definitions(&self, schema: Schema, number: u64, change: impl FnOnce(&mut RoutingTable)) {
        let _latch = self.routing_latch.lock();
        self.definitions_number.store(number, Ordering::Release);
        self.schema.store(Arc::new(schema));
        self.store_routing(change);
    }

    /// Changes the routing table by copy, one change after another.
    pub fn change_routing(&self, change: impl FnOnce(&mut RoutingTable)) {
        let _latch = self.routing_latch.lock();
        self.store_routing(change);
    }

    /// The caller has the latch.
    fn store_routing(&self, change: impl FnOnce(&mut RoutingTable)) {
        let mut routing = (*self.routing.load_full()).clone();
        change(&mut routing);
        routing.version += 1;
        self.routing.store(Arc::new(routing));
        self.definitions_version.fetch_add(1, Ordering::AcqRel);
    }

    /// A new partition, held by the caller, at home where the fewest are.
    pub fn new_partition(&self, group: GroupId, data: PartitionData) -> PartitionRef {
        let active = self.active();
        let mut partitions = self.partitions.lock();
        let home = partitions.fewest(&active, group);
        let partition = match partitions.take_shell(|shell| shell.try_claim()) {
            Some(shell) => {
                shell.begin(group, home, data);
                shell
            }
            None => Partition::leak(partitions.next_number(), group, home, data, true),
        };
        partitions.insert(partition.id, group, home, partition);
        drop(partitions);
        // What comes into it is put there by its home.
        let node = self.home_of(partition).memory_node();
        partition.set_memory_node(node.unwrap_or(NO_NODE));
        partition
    }

    /// Rows and index entries in all partitions, as of their last sampled looks.
    pub fn rows(&self) -> u64 {
        self.partitions.lock().live().map(|partition| partition.rows.load(Ordering::Relaxed)).sum()
    }

    /// Makes a partition a shell that was merged into its neighbour, or whose group is gone. The
    /// caller holds it, and no routing table names it that is, or will be, published.
    pub fn retire(&self, partition: PartitionRef) {
        partition.vacate();
        self.partitions.lock().retire(partition.id);
    }

    /// Gives a partition another home; the caller holds it, or it is the one of the reference tables.
    pub fn set_home(&self, partition: PartitionRef, home: ExecutorId) {
        partition.set_home(home);
        self.partitions.lock().moved(partition.id, home);
    }

    /// How many partitions there are, and how many shells of such that were.
    pub fn partition_counts(&self) -> (usize, usize) {
        self.partitions.lock().counts()
    }

    pub fn next_table_version(&self) -> u32 {
        self.next_table_version.fetch_add(1, Ordering::Relaxed)
    }

    pub fn next_meta_sequence(&self) -> u64 {
        self.meta_sequence.fetch_add(1, Ordering::Relaxed)
    }

    pub fn next_transaction(&self) -> TxnId {
        TxnId(self.next_transaction.fetch_add(1, Ordering::Relaxed))
    }

    /// A new client.
    pub fn client(self: &Arc<Self>, number: i32) -> Arc<Client> {
        let client = Client::new(number, self.next_transaction(), Arc::downgrade(self));
        let mut clients = self.clients.lock();
        // Those that are gone are dropped as often as the list has doubled.
        if clients.len() == clients.capacity() {
            clients.retain(|client| client.strong_count() > 0);
        }
        clients.push(Arc::downgrade(&client));
        client
    }

    /// The clients there are.
    pub fn clients(&self) -> Vec<Arc<Client>> {
        self.clients.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Runs `body` with this thread's worker.
    pub fn with_worker<R>(self: &Arc<Self>, body: impl FnOnce(&Arc<Self>, &mut Worker) -> R) -> R {
        crate::executor::with_worker(self, body)
    }

    pub fn take_worker(self: &Arc<Self>) -> Box<Worker> {
        let idle = self.idle_workers.lock().pop();
        idle.unwrap_or_else(|| Worker::new(self))
    }

    /// Keeps what a thread that ends had of the engine for the next one, unless there is enough.
    pub fn return_worker(&self, worker: Box<Worker>) {
        let mut idle = self.idle_workers.lock();
        if idle.len() < IDLE_WORKERS_MAX || !worker.may_end() {
            idle.push(worker);
            return;
        }
        drop(idle);
        worker.end(self);
    }

    /// Whether this thread may run a program over these partitions on the spot: a thread of
    /// the island of all their homes. Other threads (checkpoints, analytical scans) leave it to
    /// the executors that are there: they may have a lower priority, and a thread that loses
    /// its core while it holds a claim stalls the partition.
    pub fn may_run_here(&self, worker: &Worker, held: &[PartitionRef]) -> bool {
        match worker.island {
            None => held.iter().all(|partition| {
                let home = self.home_of(partition);
                !home.is_served() && self.stand_in(home).is_none()
            }),
            Some(island) => {
                held.iter().all(|partition| {
                    partition.group() == REFERENCE_GROUP || self.home_of(partition).island() == island
                }) || held.len() > 1
            }
        }
    }

    /// Whether a thread with a core serves this executor; or none serves any, it has a core, and
    /// whoever waits serves.
    pub fn is_served(&self, id: ExecutorId) -> bool {
        let Some(executor) = self.executors().get(usize::from(id.0)) else { return false };
        let nobody = || !self.executors().iter().any(|executor| executor.is_served());
        executor.is_served() || executor.is_active() && nobody()
    }

    /// What took so long on an executor's core, as a usual core would have taken.
    pub fn usual_nanos(&self, executor: Option<ExecutorId>, nanos: u64) -> u64 {
        let executor = executor.and_then(|id| self.executors.get(usize::from(id.0)));
        match executor.map_or(1.0, |executor| executor.speed()) {
            1.0 => nanos,
            speed => (nanos as f64 * speed) as u64,
        }
    }

    fn home_of(&self, partition: PartitionRef) -> &Executor {
        let home = usize::from(partition.home().0);
        &self.executors[home.min(self.executors.len() - 1)]
    }

    /// Gives partitions back; those with queued work go to an executor.
    pub fn release_all(self: &Arc<Self>, _worker: &mut Worker, held: &[PartitionRef]) {
        for &partition in held {
            if !partition.try_release() {
                self.make_ready(partition);
            }
        }
    }

    /// Puts a held partition with queued work on the list of an executor that will serve it:
    /// its home, or while that has no thread or no core, another one, of the same island if
    /// there is one. See `executor::ready` for why nothing is left behind.
    pub fn make_ready(&self, partition: PartitionRef) {
        let home = self.home_of(partition);
        let executor = if home.is_served() { home } else { self.stand_in(home).unwrap_or(home) };
        executor.push(partition);
        if !executor.is_served() {
            // It ended just now, and may have handed its list over before the push.
            self.hand_over(executor);
        }
    }

    /// The work of an executor that is not served any more goes to others.
    pub fn hand_over(&self, from: &Executor) {
        let mut from = from;
        while let Some(to) = self.stand_in(from) {
            let partitions = from.take_all();
            if partitions.is_empty() {
                return;
            }
            partitions.into_iter().for_each(|partition| to.push(partition));
            if to.is_served() {
                return;
            }
            from = to;
        }
        // No thread has a core: those without one do what there is.
        if from.ready_len() > 0 {
            self.executors().iter().filter(|executor| executor.is_driven()).for_each(|it| it.signal());
        }
    }

    /// An executor that begins takes over what stands on lists that nobody serves.
    pub fn take_over(&self, by: ExecutorId) {
        for executor in self.executors().iter().filter(|executor| executor.id != by) {
            if !executor.is_served() {
                self.hand_over(executor);
            }
        }
    }

    fn stand_in(&self, gone: &Executor) -> Option<&Executor> {
        let served = |executor: &&Arc<Executor>| executor.id != gone.id && executor.is_served();
        let others = self.executors().iter().filter(served);
        others.min_by_key(|executor| executor.island() != gone.island()).map(|executor| &**executor)
    }

    /// Enters the queues of all partitions with a ticket for `job`. Partitions that were idle
    /// are held now: they are served at once, here or at home.
    pub fn enter_queues(
        self: &Arc<Self>,
        worker: &mut Worker,
        held: HeldList,
        job: Box<dyn Job>,
        here: bool,
        note: &dyn Fn(&Arc<Ticket>),
    ) {
        let ticket = Ticket::new(held.clone(), job);
        note(&ticket);
        let gained = Partition::enqueue_all(&ticket, &held);
        self.point(Point::Enqueued);
        for partition in gained {
            if here && worker.nesting == 0 && self.may_run_here(worker, &held) {
                serve(self, worker, partition);
            } else {
                self.make_ready(partition);
            }
        }
    }

    /// Offers a fan-out to up to `helpers` other executors that are served.
    pub fn offer(&self, work: &Arc<FanOut>, helpers: usize) {
        let asked = self.executors().iter().filter(|executor| executor.is_served());
        for executor in asked.take(helpers) {
            executor.ask(work);
        }
    }

    /// Work of another executor of the same island.
    pub fn steal(&self, thief: &Executor) -> Option<PartitionRef> {
        let start = usize::from(thief.id.0) + 1;
        let executors = self.executors();
        let island = thief.island();
        (0..executors.len() - 1)
            .map(|step| &executors[(start + step) % executors.len()])
            .filter(|executor| executor.island() == island)
            .find_map(|executor| executor.pop())
    }

    pub fn island_has_work(&self, of: &Executor) -> bool {
        let island = of.island();
        self.executors().iter().any(|executor| executor.ready_len() > 0 && executor.island() == island)
    }

    /// Work on the list of an executor that nobody drives. There is some only while no executor
    /// has both a thread and a core.
    pub fn orphan(&self) -> Option<PartitionRef> {
        let mut undriven = self.executors().iter().filter(|executor| !executor.is_driven());
        undriven.find_map(|executor| executor.pop())
    }

    pub fn has_orphans(&self) -> bool {
        self.executors().iter().any(|executor| executor.ready_len() > 0 && !executor.is_driven())
    }

    /// Serves one ready partition of an executor that nobody drives; whether there was one.
    pub fn help(self: &Arc<Self>) -> bool {
        let Some(partition) = self.orphan() else { return false };
        self.with_worker(|shared, worker| serve(shared, worker, partition));
        true
    }

    /// Takes a sampled look at a held partition: numbers for the views, and whether it has
    /// grown beyond its size.
    pub fn look_at(self: &Arc<Self>, partition: PartitionRef) {
        // SAFETY: the caller holds the partition; the reference ends with this function.
        let data = unsafe { partition.data_mut() };
        let rows = data.rows();
        partition.note_size(data);
        // One key cannot be split: do not try again before the partition has doubled.
        if partition.group() == REFERENCE_GROUP || rows < data.split_again_rows {
            return;
        }
        let largest = data.roots.iter().map(|root| root.rows().len()).max().unwrap_or(0);
        let (reason, partitions_max) = if largest >= self.config.split_rows {
            if !self.outgrows(partition.group(), rows) {
                data.split_again_rows = rows + rows / 4;
                return;
            }
            ("size", usize::MAX)
        } else if rows >= SPREAD_ROWS_MIN && self.spreads(partition.group(), rows) {
            ("spread over executors", PARTITIONS_PER_EXECUTOR * self.active_count())
        } else {
            return;
        };
        data.split_again_rows = rows * 2;
        let split = SplitPartition {
            group: partition.group(),
            key: data.low.clone(),
            rows_min: rows / 2,
            partitions_max,
            reason,
            split_at: None,
        };
        drop(super::submit_on(self, split, super::SubmitOptions::default()));
    }

    /// Whether a partition of so many rows, more than one should have where there are few, is to be split
    /// for its size: until its group has [`SIZED_PER_EXECUTOR`] for each executor, and then if it has twice
    /// its share. So partitions become larger with their group, and not ever more; where the load wants
    /// more of them the monitor cuts.
    fn outgrows(&self, group: GroupId, rows: u64) -> bool {
        let many = SIZED_PER_EXECUTOR * self.active_count();
        let routing = self.routing.load();
        let routes = routing.routes(group);
        if routes.len() < many {
            return true;
        }
        let all: u64 = routes.iter().map(|route| route.partition.rows.load(Ordering::Relaxed)).sum();
        rows.saturating_mul(many as u64) >= all.saturating_mul(2)
    }

    /// Whether a partition of so many rows should be split so that its group can be served by
    /// all executors: the group has less than [`PARTITIONS_PER_EXECUTOR`] for each of them, and
    /// this one at least four thirds of its fair share of the rows: two thirds in each half.
    fn spreads(&self, group: GroupId, rows: u64) -> bool {
        let wanted = PARTITIONS_PER_EXECUTOR * self.active_count();
        let routing = self.routing.load();
        let routes = routing.routes(group);
        if routes.len() >= wanted {
            return false;
        }
        let all: u64 = routes.iter().map(|route| route.partition.rows.load(Ordering::Relaxed)).sum();
        rows * wanted as u64 * 3 >= all * 4
    }

    /// Registers a reply that waits for an epoch: with the executor of this thread, whose
    /// slices release it, or with the log's own thread.
    pub fn register_durable(self: &Arc<Self>, epoch: Epoch, waker: Waker) {
        let worker = take(self);
        let executor = worker.executor;
        put(worker);
        match executor.and_then(|id| self.executors.get(usize::from(id.0))) {
            Some(executor) if executor.is_driven() => executor.wait_durable(epoch, waker),
            _ => self.durable_waiters.lock().push((epoch, waker)),
        }
    }

    pub fn log_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    pub fn wait_for_durable_change(&self) {
        let mut change = self.durable_change.lock();
        self.durable_changed.wait_for(&mut change, Duration::from_millis(5));
    }

    fn durable_changed(&self) {
        *self.durable_change.lock() += 1;
        self.durable_changed.notify_all();
        let durable = if self.log_failed() { Epoch(u64::MAX) } else { self.log.durable() };
        let mut due = Vec::new();
        self.durable_waiters.lock().retain(|(epoch, waker)| {
            let is_due = *epoch <= durable;
            if is_due {
                due.push(waker.clone());
            }
            !is_due
        });
        for waker in due {
            waker.wake();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Partitions stay as empty shells; see `partition::PartitionRef`.
        let partitions = self.partitions.get_mut();
        for partition in partitions.live().chain(partitions.shells().iter().copied()) {
            partition.clear();
        }
    }
}

/// The list of the partitions of a start; `next` is the first number that none of them has.
fn listed(all: Vec<PartitionRef>, next: u32) -> Partitions<PartitionRef> {
    let mut partitions = Partitions::new(next);
    for partition in all {
        partitions.insert(partition.id, partition.group(), partition.home(), partition);
    }
    partitions
}

/// Releases the replies of threads that are no executors.
struct DurableChange(std::sync::Weak<Shared>);

impl Wake for DurableChange {
    fn wake(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.durable_changed();
        }
    }
}
