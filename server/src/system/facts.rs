//! The server for HTTP: Prometheus metrics, and the document behind the live page.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use archipel_engine::PartitionView;
use archipel_engine::id::{ExecutorId, IslandId};
use serde_json::{Value, json};

use super::groups::Groups;
use super::relations::Relations;
use crate::http;
use crate::server::Server;

/// See the module's head.
pub struct Facts(pub Arc<Server>);

impl http::Facts for Facts {
    fn ready(&self) -> bool {
        !self.0.closing.load(Ordering::Acquire)
    }

    fn is_host(&self, name: &str) -> bool {
        let names = self.0.live.show("archipel.http_hosts").unwrap_or_default();
        names.split(',').any(|known| !name.is_empty() && known.trim().eq_ignore_ascii_case(name))
    }

    fn is_token(&self, shown: &str) -> bool {
        self.0.http_token.load().as_ref().is_some_and(|token| token.is(shown))
    }

    fn metrics(&self) -> String {
        let server = &self.0;
        let log = server.engine.log();
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, value: f64| {
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "# HELP archipel_{name} {help}\n# TYPE archipel_{name} {kind}\narchipel_{name} {value}\n"
            );
        };
        let errors: u64 =
            server.counters.iter().map(|counters| counters.errors.load(Ordering::Relaxed)).sum();
        metric("up", "gauge", "Whether the server takes statements.", f64::from(u8::from(self.ready())));
        metric("uptime_seconds", "gauge", "Seconds since the start.", server.started.elapsed().as_secs_f64());
        metric("statements_total", "counter", "Statements that ended well.", server.statements() as f64);
        metric("errors_total", "counter", "Statements that ended with an error.", errors as f64);
        metric("connections", "gauge", "Open sessions.", server.sessions.count() as f64);
        metric("connections_max", "gauge", "Sessions allowed.", server.sessions.limit() as f64);
        metric("memory_used_bytes", "gauge", "Rows and indexes.", log.memory_used_bytes as f64);
        let charged = archipel_engine::heap::charged_bytes().max(0);
        metric("memory_charged_bytes", "gauge", "All memory that is held against the limit.", charged as f64);
        metric("memory_max_bytes", "gauge", "Limit of memory.", log.memory_max_bytes as f64);
        metric("epoch", "counter", "The current epoch.", log.epoch.0 as f64);
        metric("durable_epoch", "counter", "The newest durable epoch.", log.durable.0 as f64);
        metric("log_batches_total", "counter", "Batches written to the log.", log.counters.batches as f64);
        metric("log_bytes_total", "counter", "Bytes written to the log.", log.counters.bytes as f64);
        metric("snapshots", "gauge", "Registered snapshots.", log.snapshots as f64);
        metric("version_bytes", "gauge", "Old row versions kept for snapshots.", log.version_bytes as f64);
        metric("row_waits_total", "counter", "Waits for rows locked by others.", log.row_waits as f64);
        let _ = write!(
            text,
            "# HELP archipel_partition_actions_total Actions run on a partition.\n# TYPE archipel_partition_actions_total counter\n"
        );
        for partition in server.engine.partitions() {
            let _ = writeln!(
                text,
                "archipel_partition_actions_total{{partition=\"{}\",group=\"{}\",executor=\"{}\"}} {}",
                partition.id, partition.group, partition.home, partition.actions
            );
        }
        let _ = write!(
            text,
            "# HELP archipel_executor_actions_total Queued actions an executor has run.\n# TYPE archipel_executor_actions_total counter\n"
        );
        for executor in server.engine.executors() {
            let _ = writeln!(
                text,
                "archipel_executor_actions_total{{executor=\"{}\",island=\"{}\"}} {}",
                executor.id, executor.island, executor.served
            );
        }
        text
    }

    fn stats(&self) -> String {
        let server = &self.0;
        let log = server.engine.log();
        let partitions = server.engine.partitions();
        let rows: u64 = partitions.iter().map(|partition| partition.rows).sum();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            // The page takes rates over this clock, not over its own: browsers slow theirs down.
            "clock_us": server.started.elapsed().as_micros() as u64,
            "transactions": server.statements(),
            "connections": server.sessions.count(),
            "max_connections": server.sessions.limit(),
            "memory_bytes": log.memory_used_bytes,
            "epoch": log.epoch.0,
            "durable_epoch": log.durable.0,
            "rows": rows,
            "islands": self.islands(&partitions),
            "repartitions": self.repartitions(),
        })
        .to_string()
    }
}

/// The page's time line is this long.
const REPARTITIONS_SHOWN_US: i64 = 130_000_000;

impl Facts {
    /// Islands, their executors, the partitions at home there.
    fn islands(&self, partitions: &[PartitionView]) -> Vec<Value> {
        let server = &self.0;
        // A group may have hundreds of partitions: its tables and key types are looked up once.
        let known = Groups::of(server, Relations::of(server));
        let mut groups = BTreeMap::new();
        let mut homes: BTreeMap<ExecutorId, (u64, Vec<Value>)> = BTreeMap::new();
        for partition in partitions {
            let group = partition.group;
            let (database, tables, keys) = groups.entry(group).or_insert_with(|| {
                let database = known.database(group).map(|database| database.name().to_string());
                (database, known.tables(group).join(", "), known.keys(group))
            });
            let high = partition.high.as_deref().and_then(|high| keys.show(high));
            let home = homes.entry(partition.home).or_default();
            home.0 += partition.busy_nanos / 1_000;
            home.1.push(json!({
                "id": partition.id.0,
                "group": tables,
                // None is that of the reference tables of all.
                "database": database,
                "low": keys.show(&partition.low).unwrap_or_else(|| "-∞".to_owned()),
                "high": high.unwrap_or_else(|| "∞".to_owned()),
                "rows": partition.rows,
                "bytes": partition.bytes,
                "actions": partition.actions,
            }));
        }
        let mut islands: BTreeMap<IslandId, Vec<Value>> = BTreeMap::new();
        for executor in server.engine.executors() {
            let (busy, partitions) = homes.remove(&executor.id).unwrap_or_default();
            islands.entry(executor.island).or_default().push(json!({
                "id": executor.id.0,
                "core": executor.core,
                "active": executor.active,
                "busy_us": busy,
                "partitions": partitions,
            }));
        }
        let island =
            |(island, executors): (IslandId, Vec<Value>)| json!({ "id": island.0, "executors": executors });
        islands.into_iter().map(island).collect()
    }

    /// What was done to partitions lately, by the page's clock.
    fn repartitions(&self) -> Vec<Value> {
        let server = &self.0;
        let (now, clock_us) = (crate::clock::now(), server.started.elapsed().as_micros() as i64);
        let done = server.engine.repartitions();
        let recent = done.iter().filter(|done| now - done.at < REPARTITIONS_SHOWN_US);
        recent
            .map(|done| {
                json!({
                    "at_us": clock_us - (now - done.at),
                    "action": done.kind.name(),
                    "partition": done.partition.0,
                    "executor": done.home.0,
                    "reason": done.reason,
                })
            })
            .collect()
    }
}
