//! What the system views show of the engine.

use std::sync::atomic::Ordering;

use super::Engine;
use crate::id::{Epoch, ExecutorId, GroupId, PartitionId};
use crate::log::writer::LogCounters;
use crate::snapshot::SnapshotView;

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
}

impl Engine {
    /// The partitions in use, group by group in key order.
    pub fn partitions(&self) -> Vec<PartitionView> {
        let routing = self.shared.load_routing();
        let mut views = Vec::new();
        for group in routing.groups() {
            let routes = routing.routes(group);
            for (at, route) in routes.iter().enumerate() {
                let partition = route.partition;
                views.push(PartitionView {
                    id: partition.id,
                    group,
                    home: partition.home(),
                    low: route.low.to_vec(),
                    high: routes.get(at + 1).map(|next| next.low.to_vec()),
                    rows: partition.rows.load(Ordering::Relaxed),
                    bytes: partition.bytes.load(Ordering::Relaxed),
                    actions: partition.actions.load(Ordering::Relaxed),
                    busy_nanos: partition.sampled_nanos.load(Ordering::Relaxed)
                        * crate::partition::SAMPLE_EVERY,
                    queued: partition.queue_length(),
                });
            }
        }
        views
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

    /// The log, the epochs and the memory.
    pub fn log(&self) -> LogView {
        LogView {
            epoch: self.shared.epochs.current(),
            durable: self.shared.log.durable(),
            counters: self.shared.log.counters(),
            snapshots: self.shared.snapshots.registered(),
            version_bytes: self.shared.snapshots.bytes(),
            memory_used_bytes: self.shared.memory.used(),
            memory_max_bytes: self.shared.memory.max(),
            row_waits: self.shared.counters.row_waits.load(Ordering::Relaxed),
        }
    }
}
