//! What the system views show of the engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{CheckpointView, Engine, RecoverySpeed, SubmitOptions};
use crate::id::{Epoch, ExecutorId, GroupId, PartitionId, TreeId};
use crate::log::writer::LogCounters;
use crate::partition::{ClaimSet, RoutingTable};
use crate::program::{Program, Stop};
use crate::snapshot::SnapshotView;
use crate::table::REFERENCE_GROUP;
use crate::txn::Txn;

/// A row of `archipel.partitions`. Counts are as of the last sampled look.
#[derive(Clone, Debug)]
pub struct PartitionView {
    pub id: PartitionId,
    pub group: GroupId,
    pub home: ExecutorId,
    pub low: Vec<u8>,
    /// `None`: the end of the group.
    pub high: Option<Vec<u8>>,
    pub rows: u64,
    pub bytes: u64,
    pub actions: u64,
    /// Estimated nanoseconds spent in those actions, from one in [`SAMPLE_EVERY`] of them.
    pub busy_nanos: u64,
    pub queued: usize,
    /// Actions that came through the queue.
    pub queued_total: u64,
    /// Its home stays.
    pub pinned: bool,
    /// Its bounds stay.
    pub frozen: bool,
    /// The memory node its rows lie on; `None`: on several, or nobody knows.
    pub memory_node: Option<u16>,
    /// What part of its memory lies on the node of its home, from 0 to 1.
    pub memory_followed: f64,
}

/// A row of `archipel.routing`.
#[derive(Clone, Debug)]
pub struct RouteView {
    pub group: GroupId,
    pub low: Vec<u8>,
    pub partition: PartitionId,
    pub home: ExecutorId,
}

/// The row of `archipel.log`.
#[derive(Clone, Debug)]
pub struct LogView {
    pub epoch: Epoch,
    pub durable: Epoch,
    pub counters: LogCounters,
    pub snapshots: usize,
    /// What old row versions take.
    pub version_bytes: i64,
    pub memory_used_bytes: i64,
    pub memory_max_bytes: i64,
    pub row_waits: u64,
    /// The length the log should stay below.
    pub log_bytes_max: u64,
    /// The length at which the next checkpoint begins.
    pub checkpoint_at_bytes: u64,
    /// How long a restart would take now.
    pub restart_estimate: Duration,
    /// What the last large recovery showed, or a guess.
    pub speed: RecoverySpeed,
}

impl Engine {
    /// The partitions in use, group by group in key order.
    pub fn partitions(&self) -> Vec<PartitionView> {
        let routing = self.shared.load_routing();
        let mut views = Vec::new();
        for group in routing.groups() {
            let routes = routing.routes(group);
            let mut ends = routes.iter().skip(1).map(|next| next.low.to_vec());
            for route in routes {
                let partition = route.partition;
                let (memory_node, memory_followed) = super::memory::place(&self.shared, partition);
                views.push(PartitionView {
                    id: partition.id,
                    group,
                    home: partition.home(),
                    low: route.low.to_vec(),
                    high: ends.next(),
                    rows: partition.rows.load(Ordering::Relaxed),
                    bytes: partition.bytes.load(Ordering::Relaxed),
                    actions: partition.actions.load(Ordering::Relaxed),
                    busy_nanos: partition.sampled_nanos.load(Ordering::Relaxed)
                        * crate::partition::SAMPLE_EVERY,
                    queued: partition.queue_length(),
                    queued_total: partition.queued.load(Ordering::Relaxed),
                    pinned: partition.is_pinned(),
                    frozen: partition.is_frozen(),
                    memory_node,
                    memory_followed,
                });
            }
        }
        views
    }

    /// How many partitions there are, and how many shells of such that were merged or whose groups
    /// are gone, which are used again.
    pub fn partition_counts(&self) -> (usize, usize) {
        self.shared.partition_counts()
    }

    /// How many rows a table has at the most: what lies in its partitions, other tables' rows included, as
    /// their last writers left it. Zero for one that is not there.
    pub fn rows_at_most(&self, table: TreeId) -> u64 {
        let Some(table) = self.table(table) else { return 0 };
        let routing = self.shared.load_routing();
        let routes = routing.routes(table.group()).iter();
        routes.map(|route| route.partition.rows.load(Ordering::Relaxed)).sum()
    }

    /// The bytes of a group's partitions, as their last writers left them.
    pub fn group_bytes(&self, group: GroupId) -> u64 {
        let routing = self.shared.load_routing();
        routing.routes(group).iter().map(|route| route.partition.bytes.load(Ordering::Relaxed)).sum()
    }

    /// The routing table, row by row.
    pub fn routes(&self) -> Vec<RouteView> {
        self.partitions()
            .into_iter()
            .map(|partition| RouteView {
                group: partition.group,
                low: partition.low,
                partition: partition.id,
                home: partition.home,
            })
            .collect()
    }

    /// The registered snapshots, oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotView> {
        self.shared.snapshots.views()
    }

    /// Rows of each table and entries of each index, exactly, as of one moment. Claims everything.
    pub fn tree_rows(&self) -> BTreeMap<TreeId, u64> {
        let program = CountRows { routing: self.shared.load_routing(), rows: BTreeMap::new() };
        self.submit(program, SubmitOptions { read_only: true, ..SubmitOptions::default() })
            .wait()
            .program
            .rows
    }

    /// The addresses of all that lies in the trees of each partition that is no reference table's:
    /// nodes, rows and long keys. Claims everything.
    pub fn allocations(&self) -> BTreeMap<PartitionId, Vec<usize>> {
        let program = FindMemory { routing: self.shared.load_routing(), found: BTreeMap::new() };
        self.submit(program, SubmitOptions { read_only: true, ..SubmitOptions::default() })
            .wait()
            .program
            .found
    }

    /// The last checkpoints and the one under way, oldest first.
    pub fn checkpoints(&self) -> Vec<CheckpointView> {
        self.shared.checkpoints.views(self.shared.clock.monotonic_nanos())
    }

    /// The log, the epochs and the memory.
    pub fn log(&self) -> LogView {
        let (restart, rows) = (&self.shared.restart, self.shared.rows());
        let counters = self.shared.log.counters();
        LogView {
            log_bytes_max: restart.log_bytes_max(rows),
            checkpoint_at_bytes: restart.begin_at(rows),
            restart_estimate: restart.estimate(rows, counters.bytes_since_checkpoint),
            speed: restart.speed,
            epoch: self.shared.epochs.current(),
            durable: self.shared.log.durable(),
            counters,
            snapshots: self.shared.snapshots.registered(),
            version_bytes: self.shared.snapshots.bytes(),
            memory_used_bytes: self.shared.memory.used(),
            memory_max_bytes: self.shared.memory.max(),
            row_waits: self.shared.counters.row_waits.load(Ordering::Relaxed),
        }
    }
}

/// Counts what is in the trees.
struct CountRows {
    routing: Arc<RoutingTable>,
    rows: BTreeMap<TreeId, u64>,
}

impl Program for CountRows {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        self.routing = Arc::new(routing.clone());
        claims.everything();
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.rows.clear();
        for (id, table) in txn.published_references().tables.iter() {
            *self.rows.entry(id).or_default() += table.tree.len();
        }
        for group in self.routing.groups() {
            for route in self.routing.routes(group) {
                for root in &txn.partition_data(group, &route.low)?.roots {
                    if let Some(id) = root.id {
                        *self.rows.entry(id).or_default() += root.rows().len();
                    }
                }
            }
        }
        Ok(())
    }
}

/// Finds where the trees' memory lies.
struct FindMemory {
    routing: Arc<RoutingTable>,
    found: BTreeMap<PartitionId, Vec<usize>>,
}

impl Program for FindMemory {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        self.routing = Arc::new(routing.clone());
        claims.everything();
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.found.clear();
        for group in self.routing.groups().into_iter().filter(|group| *group != REFERENCE_GROUP) {
            for route in self.routing.routes(group) {
                let found = self.found.entry(route.partition()).or_default();
                txn.partition_data(group, &route.low)?
                    .allocations(&mut |address| found.push(address.expose_provenance()));
            }
        }
        Ok(())
    }
}
