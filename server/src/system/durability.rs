//! `archipel.log` and `archipel.checkpoints`: what would be lost or replayed, and how long a
//! restart would take.

use archipel_engine::{CheckpointReason, CheckpointState};
use archipel_sql::datum::Datum;
use archipel_sql::types::Type;

use super::cells::{big, count, optional, text};
use crate::session::host::Host;

/// One row. `log_bytes` is the log a restart would replay, `checkpoint_at_bytes` its length at
/// which the next checkpoint begins, `log_bytes_max` the length it should stay below.
pub(super) const LOG: &[(&str, Type)] = &[
    ("epoch", Type::INT8),
    ("durable_epoch", Type::INT8),
    ("batches", Type::INT8),
    ("bytes", Type::INT8),
    ("snapshots", Type::INT4),
    ("version_bytes", Type::INT8),
    ("row_waits", Type::INT8),
    ("memory_used_bytes", Type::INT8),
    ("memory_max_bytes", Type::INT8),
    ("log_bytes", Type::INT8),
    ("checkpoint_at_bytes", Type::INT8),
    ("log_bytes_max", Type::INT8),
    ("restart_estimate_ms", Type::INT8),
    ("replay_bytes_per_second", Type::INT8),
    ("load_rows_per_second", Type::INT8),
];

pub(super) fn log(host: &Host) -> Vec<Vec<Datum>> {
    let log = host.server.engine.log();
    vec![vec![
        big(log.epoch.0),
        big(log.durable.0),
        big(log.counters.batches),
        big(log.counters.bytes),
        count(log.snapshots),
        Datum::Int8(log.version_bytes),
        big(log.row_waits),
        Datum::Int8(log.memory_used_bytes),
        Datum::Int8(log.memory_max_bytes),
        big(log.counters.bytes_since_checkpoint),
        big(log.checkpoint_at_bytes),
        big(log.log_bytes_max),
        big(log.restart_estimate.as_millis() as u64),
        big(log.speed.log_bytes_per_second),
        big(log.speed.rows_per_second),
    ]]
}

/// The last checkpoints of this server and the one under way, oldest first.
pub(super) const CHECKPOINTS: &[(&str, Type)] = &[
    ("checkpoint", Type::INT8),
    ("state", Type::TEXT),
    ("reason", Type::TEXT),
    ("began", Type::TIMESTAMPTZ),
    ("duration_ms", Type::INT8),
    ("progress", Type::FLOAT8),
    ("rows", Type::INT8),
    ("bytes", Type::INT8),
    ("rows_removed", Type::INT8),
    ("log_bytes_at_begin", Type::INT8),
    ("log_bytes_cut", Type::INT8),
    ("error", Type::TEXT),
];

pub(super) fn checkpoints(host: &Host) -> Vec<Vec<Datum>> {
    host.server
        .engine
        .checkpoints()
        .into_iter()
        .map(|checkpoint| {
            let (state, error) = match &checkpoint.state {
                CheckpointState::Running => ("running", None),
                CheckpointState::Done => ("done", None),
                CheckpointState::GivenUp(error) => ("given up", Some(error)),
            };
            let reason = match checkpoint.reason {
                CheckpointReason::Log => "log",
                CheckpointReason::Request => "request",
                CheckpointReason::Backup => "backup",
            };
            vec![
                big(checkpoint.number),
                text(state),
                text(reason),
                Datum::TimestampTz(checkpoint.began_micros),
                big(checkpoint.took_nanos / 1_000_000),
                Datum::Float8((checkpoint.progress * 1000.0).round() / 1000.0),
                big(checkpoint.done.rows),
                big(checkpoint.done.bytes),
                big(checkpoint.done.rows_removed),
                big(checkpoint.log_bytes_at_begin),
                big(checkpoint.done.log_bytes_cut),
                optional(error),
            ]
        })
        .collect()
}
