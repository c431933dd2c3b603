//! Opening an engine: recovery and the first start.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::background::Background;
use super::indexing::BuiltTable;
use super::partitions::Homes;
use super::restart::{RecoverySpeed, RestartBound};
use super::shared::{Shared, SharedParts};
use crate::clock::{Clock, SystemClock};
use crate::id::{Epoch, ExecutorId, GroupId, IslandId, PartitionId, SequenceId, TreeId};
use crate::log::store::{check_format, raise_format};
use crate::log::{
    Log, LogLimits, LogStore, Progress, Recovered, RecoveryCost, Step, StoreError, begin_pair, recover_timed,
};
use crate::monitor::MonitorSettings;
use crate::partition::{Partition, PartitionData, PartitionRef, Root, Route, RoutingTable};
use crate::random::{Entropy, SystemEntropy};
use crate::spawn::{Spawn, SystemSpawn};
use crate::storage::{KeyBuf, Tree};
use crate::table::{CATALOG_TREE, REFERENCE_GROUP, Schema, SequenceDef, catalog_table};
use crate::topology::{CoreDistances, Near, Topology};
use crate::txn::{
    ENDED_ON_THE_SPOT, GroupPlaces, LoggedPlace, ROW_ID_SEQUENCE, ReferenceTable, ReferenceVector,
    References, START_SEQUENCE, Sequence, SequenceRecord, TableRecord, TransactionLimits, recovered_places,
    sequence_key,
};

/// Where an executor lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutorPlace {
    pub island: IslandId,
    /// The core to pin its thread to.
    pub core: Option<usize>,
    /// What it shares with other executors.
    pub near: Near,
    /// The memory node of its island; `None`: the island has several.
    pub memory_node: Option<u16>,
}

impl Default for ExecutorPlace {
    fn default() -> Self {
        Self { island: IslandId(0), core: None, near: Near::default(), memory_node: Some(0) }
    }
}

/// Rows of a page of what only reads, unless [`EngineConfig::page_rows_max`] says otherwise.
pub const PAGE_ROWS_MAX: usize = 1_024;

/// What an engine is opened with. Defaults are those of a server.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// One entry an executor; at least one.
    pub executors: Vec<ExecutorPlace>,
    /// Executors there may be when the machine gains cores; fewer than above count as many.
    pub executors_max: usize,
    pub pin_threads: bool,
    /// Rows and keys beyond this are refused with [`crate::Stop::OutOfMemory`]. What else the process
    /// takes is bounded by [`crate::heap::set_limit`].
    pub max_memory_bytes: i64,
    /// When old row versions take more than this, the oldest snapshots are cancelled.
    pub version_memory_max_bytes: i64,
    /// A one-shot that runs longer is asked to become interactive.
    pub one_shot_budget_micros: u64,
    /// A long read holds a partition for this many rows at most, at least one, and passes over no
    /// more than four times as many that came after its snapshot. The default takes some hundreds of
    /// microseconds.
    pub page_rows_max: usize,
    /// COMMIT and ROLLBACK of more changes go in slices.
    pub ended_at_once: usize,
    /// Such a slice has so many changes at most. The default takes some hundreds of microseconds.
    pub slice_changes_max: usize,
    /// A partition one of whose trees has more rows than this splits, while its group has few for the
    /// executors there are.
    pub split_rows: u64,
    /// Whether the engine runs its own log writer and checkpointer. The simulator steps the
    /// writer itself.
    pub background: bool,
    pub log: LogLimits,
    /// What one transaction may write.
    pub transaction: TransactionLimits,
    /// A checkpoint begins when the log has this length, or earlier if
    /// [`Self::restart_target`] asks for it. It should end before four times this.
    pub checkpoint_bytes: u64,
    /// A restart should take no longer: bounds the log by the measured speed of recovery.
    pub restart_target: Duration,
    /// A checkpoint slice, and so a partition's pause for it, has about this size.
    pub checkpoint_slice_bytes: usize,
    /// Threads of recovery.
    pub recovery_threads: usize,
    pub monitor: MonitorSettings,
    /// Whether a log that failed ends the process.
    pub abort_on_log_failure: bool,
    /// Unused by the engine; shown by the views.
    pub data_directory: Option<PathBuf>,
}

impl EngineConfig {
    /// A configuration with this many executors on one island, unpinned.
    pub fn with_executors(count: usize) -> Self {
        Self { executors: vec![ExecutorPlace::default(); count.max(1)], ..Self::default() }
    }
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            executors: vec![ExecutorPlace::default()],
            executors_max: 0,
            pin_threads: true,
            max_memory_bytes: 4 << 30,
            one_shot_budget_micros: 20_000,
            page_rows_max: PAGE_ROWS_MAX,
            ended_at_once: ENDED_ON_THE_SPOT,
            slice_changes_max: 1_024,
            version_memory_max_bytes: 1 << 30,
            split_rows: 100_000,
            background: true,
            log: LogLimits::default(),
            transaction: TransactionLimits::default(),
            // As PostgreSQL's max_wal_size: rewriting hot rows more often costs more than it saves.
            checkpoint_bytes: 1 << 30,
            restart_target: Duration::from_secs(15),
            checkpoint_slice_bytes: 256 << 10,
            recovery_threads: std::thread::available_parallelism().map_or(1, usize::from),
            monitor: MonitorSettings::default(),
            abort_on_log_failure: true,
            data_directory: None,
        }
    }
}

/// Places inside the engine where another thread's steps may come between. All of them are
/// outside latches and commit points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A program ran and is about to commit, holding its partitions.
    BeforeCommit,
    /// What a large commit has logged in parts is on its way, and no epoch entered.
    PartsSent,
    /// It is committed and holds its partitions still.
    BeforeRelease,
    /// A ticket stands in all its queues; partitions that were idle are not served yet.
    Enqueued,
    /// A program that waits for a row has released everything and is not parked yet.
    BeforePark,
    /// A partition was taken from a ready list and is not served yet.
    BeforeServe,
    /// A split, merge or move has published its routes and holds its partitions still.
    RoutesPublished,
    /// A long read is about to claim its next page, and holds nothing.
    BeforePage,
    /// A long read stands in the queue of its page's partition. Its thread waits until that is
    /// brought, so that whoever comes between must serve the queues.
    AwaitsPage,
}

/// The simulator's way in: called at every [`Point`] if it is set.
pub trait Interleave: Send + Sync {
    fn at(&self, point: Point);
}

/// The world outside, replaceable for simulation.
#[derive(Clone)]
pub struct Seams {
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub spawn: Arc<dyn Spawn>,
    pub interleave: Option<Arc<dyn Interleave>>,
    /// What the executors follow; without one they stay as configured.
    pub topology: Option<Arc<dyn Topology>>,
}

impl Default for Seams {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(SystemEntropy),
            spawn: Arc::new(SystemSpawn),
            interleave: None,
            topology: None,
        }
    }
}

/// Why an engine cannot be opened, or a checkpoint be taken.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the log's record {key} cannot be read: {reason}")]
    Definition { key: String, reason: String },
    #[error("table {table} breaks its unique index {index} after recovery")]
    Index { table: String, index: String },
    #[error("a thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
    #[error("an engine needs at least one executor")]
    NoExecutors,
    /// A checkpoint was given up: nothing is lost, and the next start reads more log.
    #[error("the checkpoint was given up, because the server is being stopped")]
    Stopping,
}

/// A shorter replay is no reason to keep somebody waiting at the end.
const REPLAY_WORTH_A_CHECKPOINT: Duration = Duration::from_secs(1);

impl Engine {
    /// Opens an engine on a log store: recovers what is there, or makes a new database with
    /// the system catalog's table.
    pub fn open(config: EngineConfig, store: Arc<dyn LogStore>) -> Result<Self, OpenError> {
        Self::open_with(config, store, Seams::default(), &|_| {})
    }

    /// As [`Engine::open`], with the world outside given and the progress of recovery shown.
    pub fn open_with(
        config: EngineConfig,
        store: Arc<dyn LogStore>,
        seams: Seams,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Self, OpenError> {
        if config.executors.is_empty() {
            return Err(OpenError::NoExecutors);
        }
        crate::panics::watch();
        check_format(&*store)?;
        let clock = seams.clock.clone();
        let threads = config.recovery_threads;
        let mut recovered = recover_timed(&*store, threads, Some(&*clock), progress)?;
        let log = Log::new(config.log, &recovered);
        let began = clock.monotonic_nanos();
        let speed = RecoverySpeed::read(&*store, threads)?;
        let machine = seams.topology.as_ref().and_then(|topology| topology.read().ok());
        let distances = match &machine {
            Some(machine) if config.background && config.pin_threads => {
                CoreDistances::learn(machine, &*store, &*seams.spawn, &clock)
            }
            _ => CoreDistances::default(),
        };
        let mut parts = rebuild(config, seams, log.clone(), &mut recovered, speed)?;
        raise_format(&*store)?;
        log.note_start(&*store)?;
        begin_pair(&*store, clock.wall_micros().unsigned_abs() ^ clock.monotonic_nanos().rotate_left(40))?;
        parts.distances = (distances, machine);
        let rebuild_nanos = clock.monotonic_nanos().saturating_sub(began);
        if parts.config.background {
            parts.restart.speed = speed.learn(&*store, &recovered.cost, rebuild_nanos)?;
        }
        tell(&recovered.cost, rebuild_nanos, parts.restart.speed, threads);
        let shared = Shared::new(parts);
        let background = Background::start(&shared, store, log, &recovered)?;
        let engine = Self { shared, background: Arc::new(background) };
        engine.create_catalog();
        Ok(engine)
    }

    /// The first start: the catalog's table.
    fn create_catalog(&self) {
        if self.table(CATALOG_TREE).is_none() {
            let completed = self.submit(CreateCatalog, super::SubmitOptions::default()).wait();
            debug_assert!(completed.outcome.result.is_ok());
        }
    }

    /// For drivers without background threads: closes the current epoch and makes it durable.
    pub fn step_log(&self) -> Result<Step, StoreError> {
        self.background.step(&self.shared)
    }

    /// The orderly end: the last commits written, and a checkpoint, so that the next start
    /// replays nothing. Whoever stops a server waits for it: a log that replays in less than
    /// [`REPLAY_WORTH_A_CHECKPOINT`] is left as it is, and a checkpoint that takes longer than
    /// `limit` is given up ([`OpenError::Stopping`]), which costs the next start the log and
    /// nothing else.
    pub fn shutdown(&self, limit: Duration) -> Result<(), OpenError> {
        self.flush();
        let log_bytes = self.shared.log.counters().bytes_since_checkpoint;
        let checkpoint = if self.shared.restart.estimate(0, log_bytes) < REPLAY_WORTH_A_CHECKPOINT {
            Ok(())
        } else {
            self.background.checkpoint_within(&self.shared, limit)
        };
        self.close();
        checkpoint
    }

    /// Stops the background threads; what was committed is written first.
    pub fn close(&self) {
        self.background.stop();
    }
}

/// What the recovery cost, for whoever reads the server's log.
fn tell(cost: &RecoveryCost, rebuild_nanos: u64, speed: RecoverySpeed, threads: usize) {
    if cost.checkpoint_rows + cost.log_records == 0 {
        return;
    }
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let a_core = |amount: u64, nanos: u64| amount as f64 / seconds(nanos.max(1)) / threads.max(1) as f64;
    tracing::info!(
        "recovery: read {} records in {:.1} MB of log in {:.2} s; made rows of them and of {} checkpoint rows \
         in {:.2} s ({:.0} a second a core); index entries and partitions in {:.2} s; all in all {:.0} MB/s \
         of log and {:.0} rows/s",
        cost.log_records,
        cost.log_bytes as f64 / 1e6,
        seconds(cost.log_nanos),
        cost.checkpoint_rows,
        seconds(cost.build_nanos),
        a_core(cost.checkpoint_rows + cost.log_records, cost.build_nanos),
        seconds(rebuild_nanos),
        speed.log_bytes_per_second as f64 / 1e6,
        speed.rows_per_second as f64,
    );
}

struct CreateCatalog;

impl crate::program::Program for CreateCatalog {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut crate::partition::ClaimSet) {
        claims.everything();
    }

    fn run(&mut self, txn: &mut crate::txn::Txn<'_>) -> Result<(), crate::program::Stop> {
        if txn.table(CATALOG_TREE).is_none() {
            let _ = txn.ddl(crate::txn::DdlOp::CreateTable(catalog_table()))?;
        }
        Ok(())
    }
}

fn parse<'m, T: serde::de::DeserializeOwned>(
    meta: &'m BTreeMap<Vec<u8>, Vec<u8>>,
    prefix: &'m str,
) -> impl Iterator<Item = Result<(u32, T), OpenError>> + 'm {
    meta.iter().filter_map(move |(key, value)| {
        let key = std::str::from_utf8(key).ok()?;
        let id = key.strip_prefix(prefix)?.parse::<u32>();
        let unreadable = |reason: String| OpenError::Definition { key: key.to_owned(), reason };
        Some(match (id, serde_json::from_slice::<T>(value)) {
            (Ok(id), Ok(record)) => Ok((id, record)),
            (Err(error), _) => Err(unreadable(error.to_string())),
            (_, Err(error)) => Err(unreadable(error.to_string())),
        })
    })
}

/// The tables that the log tells of, without sequences, and the version of the next one that is made.
fn recovered_tables(meta: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<(Schema, u32), OpenError> {
    let mut schema = Schema::default();
    let mut tables = Vec::new();
    for record in parse::<TableRecord>(meta, "table/") {
        tables.push(record?.1);
    }
    tables.sort_by_key(|record| record.def.id);
    let mut next_table_version = 1;
    for record in tables {
        next_table_version = next_table_version.max(record.version + 1);
        #[cfg(test)]
        if crate::planted::is(crate::planted::Bug::DeclaredKept) {
            let indexes = [record.def.indexes, record.declared].concat();
            let def = crate::schema::TableDef { indexes, ..record.def };
            schema.put_table(def, record.version);
            continue;
        }
        schema.put_table(record.def, record.version);
    }
    Ok((schema, next_table_version))
}

/// From what the log says to partitions: definitions first, then rows, then index entries.
fn rebuild(
    config: EngineConfig,
    seams: Seams,
    log: Arc<Log>,
    recovered: &mut Recovered,
    speed: RecoverySpeed,
) -> Result<SharedParts, OpenError> {
    let (mut schema, next_table_version) = recovered_tables(&recovered.meta)?;
    let used = schema.tables.values().flat_map(|table| {
        table.indexes.iter().map(|index| index.def.id).chain(std::iter::once(table.def.id))
    });
    let last_used_tree = used.chain(recovered.dropped_tree_max).max().unwrap_or(TreeId(0));
    let mut values: BTreeMap<u32, SequenceRecord> = BTreeMap::new();
    for record in parse::<SequenceRecord>(&recovered.meta, "value/") {
        let (id, record) = record?;
        values.insert(id, record);
    }
    for record in parse::<SequenceDef>(&recovered.meta, "sequence/") {
        let (id, def) = record?;
        let position = values.get(&id).map(|record| record.position(&def));
        schema.sequences.insert(SequenceId(id), Sequence::new(def, position));
    }
    debug_assert_eq!(sequence_key(ROW_ID_SEQUENCE.id), format!("value/{}", u32::MAX));
    let own =
        |def: SequenceDef| Sequence::new(def, values.get(&def.id.0).map(|record| record.position(&def)));
    let (row_ids, starts) = (own(ROW_ID_SEQUENCE), own(START_SEQUENCE));

    let (mut groups, in_one_record) = recovered_places(&recovered.meta)?;
    // That of an index that was only declared has no tree any more.
    groups.retain(|group, _| schema.groups.contains_key(group));
    groups.entry(REFERENCE_GROUP).or_default();
    for (group, _) in schema.groups.iter() {
        groups.entry(group).or_default();
    }

    let executors = (0..config.executors.len()).map(|id| ExecutorId(id as u16)).collect();
    let mut build = Build { executors, partitions: Vec::new(), homes: Homes::default(), memory_used: 0 };
    let mut routing = RoutingTable::default();
    routing.version = 1;
    for (group, mut lows) in groups {
        lows.entry(KeyBuf::new()).or_default();
        let lows: Vec<_> = lows.into_iter().collect();
        let routes = build.group(group, &lows, recovered);
        routing.put_group(group, routes);
    }
    let mut vector = ReferenceVector::default();
    let work = schema
        .tables_sorted()
        .into_iter()
        .map(|table| {
            let rows = recovered.trees.remove(&table.def.id).unwrap_or_default();
            (table, rows)
        })
        .collect();
    for built in BuiltTable::all(work, config.recovery_threads)? {
        build.table(built, &routing, &mut vector, recovered.epoch);
    }
    build.count();
    let restart = RestartBound {
        speed,
        target: config.restart_target,
        checkpoint_bytes: config.checkpoint_bytes,
        memory_max_bytes: config.max_memory_bytes.max(0) as u64,
    };
    Ok(SharedParts {
        config,
        restart,
        clock: seams.clock,
        entropy: seams.entropy,
        spawn: seams.spawn,
        interleave: seams.interleave,
        topology: seams.topology,
        distances: Default::default(),
        log,
        first_epoch: Epoch(recovered.epoch.0 + 1),
        references: References::new(vector),
        row_ids,
        starts,
        schema,
        routing,
        group_places: GroupPlaces::new(in_one_record),
        next_partition: build.partitions.len() as u32,
        partitions: build.partitions,
        next_table_version,
        first_unused_tree: TreeId(last_used_tree.0 + 1),
        meta_sequence: recovered.number_max + 1,
        memory_used: build.memory_used,
    })
}

struct Build {
    executors: Vec<ExecutorId>,
    partitions: Vec<PartitionRef>,
    homes: Homes,
    memory_used: i64,
}

impl Build {
    /// The partitions of a group, idle; nobody else knows them yet.
    fn group(&mut self, group: GroupId, lows: &[(KeyBuf, LoggedPlace)], recovered: &Recovered) -> Vec<Route> {
        let mut routes: Vec<Route> = Vec::new();
        let mut of_group = Homes::default();
        for (at, (low, place)) in lows.iter().enumerate() {
            let mut data = PartitionData::new(low.clone(), lows.get(at + 1).map(|(next, _)| next.clone()));
            data.start_at(recovered.number_max, recovered.epoch);
            let id = PartitionId(self.partitions.len() as u32);
            // There may be fewer executors than there were.
            let home = place
                .home
                .filter(|home| usize::from(*home) < self.executors.len())
                .map_or_else(|| self.homes.fewest(&self.executors, &of_group), ExecutorId);
            self.homes.add(home);
            of_group.add(home);
            let partition = Partition::leak(id, group, home, data, false);
            partition.set_flags(place.flags);
            self.partitions.push(partition);
            routes.push(Route { low: low.clone(), partition });
        }
        routes
    }

    fn table(
        &mut self,
        built: BuiltTable,
        routing: &RoutingTable,
        vector: &mut ReferenceVector,
        epoch: Epoch,
    ) {
        let BuiltTable { table, rows, indexes, memory } = built;
        self.memory_used += memory;
        // What it counts for is that of its partitions, so that all of it goes when the table does.
        let all = rows.bytes() + indexes.iter().map(|tree| tree.bytes()).sum::<u64>();
        let share =
            |tree: &Tree| (i128::from(memory) * i128::from(tree.bytes()) / i128::from(all.max(1))) as i64;
        for (index, tree) in table.indexes.iter().zip(indexes) {
            let (bytes, version) = (share(&tree), table.version);
            let id = index.def.id;
            self.place(index.group(), index.root, id, version, (tree, bytes), routing, vector, epoch);
        }
        let (bytes, id) = (share(&rows), table.def.id);
        self.place(table.group(), table.root, id, table.version, (rows, bytes), routing, vector, epoch);
    }

    /// Cuts a tree at the group's boundaries and puts the parts into their partitions, with what they
    /// count for.
    #[allow(clippy::too_many_arguments)]
    fn place(
        &mut self,
        group: GroupId,
        position: u32,
        id: crate::id::TreeId,
        version: u32,
        (mut tree, bytes): (Tree, i64),
        routing: &RoutingTable,
        vector: &mut ReferenceVector,
        epoch: Epoch,
    ) {
        let rows = tree.len().max(1);
        for route in routing.routes(group).iter().rev() {
            let part =
                if route.low.is_empty() { std::mem::take(&mut tree) } else { tree.split_off(&route.low) };
            let share = (i128::from(bytes) * i128::from(part.len()) / i128::from(rows)) as i64;
            let mut root = Root::new(id, version);
            if group == REFERENCE_GROUP {
                let tree = part.held_by();
                vector.tables.insert(id, Arc::new(ReferenceTable { version, epoch, number: 0, tree }));
            } else {
                root = root.with_rows(part);
            }
            if route.partition.try_claim() {
                // SAFETY: just claimed; nobody else knows the partition yet.
                let data = unsafe { route.partition.data_mut() };
                data.bytes += share;
                data.put_root(position, root);
                let released = route.partition.try_release();
                debug_assert!(released, "nothing can be queued before the engine is open");
            }
        }
    }

    /// Counts what lies in each partition, once all tables are there: there may be thousands in one.
    fn count(&self) {
        for partition in self.partitions.iter().filter(|partition| partition.try_claim()) {
            // SAFETY: just claimed; nobody else knows the partition yet.
            let data = unsafe { partition.data_mut() };
            partition.note_size(data);
            let released = partition.try_release();
            debug_assert!(released, "nothing can be queued before the engine is open");
        }
    }
}
