//! The server for HTTP: Prometheus metrics, and the document behind the live page.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::groups::{GroupKeys, group_tables};
use crate::http;
use crate::server::Server;

/// See the module's head.
pub struct Facts(pub Arc<Server>);

impl http::Facts for Facts {
    fn ready(&self) -> bool {
        !self.0.closing.load(Ordering::Acquire)
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
        metric("memory_max_bytes", "gauge", "Limit for rows and indexes.", log.memory_max_bytes as f64);
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
        let catalog = server.catalog.current().catalog.clone();
        let partitions = server.engine.partitions();
        let executors = server.engine.executors();
        let mut islands: Vec<_> = executors.iter().map(|executor| executor.island).collect();
        islands.dedup();
        let rows: u64 = partitions.iter().map(|partition| partition.rows).sum();
        let islands: Vec<_> = islands
            .into_iter()
            .map(|island| {
                let members: Vec<_> = executors
                    .iter()
                    .filter(|executor| executor.island == island)
                    .map(|executor| {
                        let mut busy = 0;
                        let homes: Vec<_> = partitions
                            .iter()
                            .filter(|partition| partition.home == executor.id)
                            .map(|partition| {
                                busy += partition.busy_nanos / 1_000;
                                let keys = GroupKeys::of(server, &catalog, partition.group);
                                json!({
                                    "id": partition.id.0,
                                    "group": group_tables(server, &catalog, partition.group).join(", "),
                                    "low": keys.show(&partition.low).unwrap_or_else(|| "-∞".to_owned()),
                                    "high": partition.high.as_deref().and_then(|high| keys.show(high)).unwrap_or_else(|| "∞".to_owned()),
                                    "rows": partition.rows,
                                    "bytes": partition.bytes,
                                    "actions": partition.actions,
                                })
                            })
                            .collect();
                        json!({ "id": executor.id.0, "core": executor.core, "busy_us": busy, "partitions": homes })
                    })
                    .collect();
                json!({ "id": island.0, "executors": members })
            })
            .collect();
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
            "islands": islands,
        })
        .to_string()
    }
}
