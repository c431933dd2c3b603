//! `archipel.statement_cache`: how often statements were found prepared.

use std::sync::atomic::{AtomicU64, Ordering};

use archipel_sql::datum::Datum;
use archipel_sql::types::Type;

use crate::session::host::Host;

pub(super) const COLUMNS: &[(&str, Type)] = &[
    ("executor", Type::INT4),
    ("statements", Type::INT8),
    ("found_by_text", Type::INT8),
    ("found_by_shape", Type::INT8),
    ("hit_ratio", Type::FLOAT8),
];

/// One row an executor: its sessions find what any of them has prepared. A ratio of nothing is NULL.
pub(super) fn rows(host: &Host) -> Vec<Vec<Datum>> {
    let server = &host.server;
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    server
        .engine
        .executors()
        .iter()
        .filter_map(|executor| {
            let counters = server.counters.get(usize::from(executor.id.0))?;
            let sought = read(&counters.statements_sought);
            let (text, shape) = (read(&counters.found_by_text), read(&counters.found_by_shape));
            let ratio = (text + shape) as f64 / sought as f64;
            let big = |count: u64| Datum::Int8(count as i64);
            Some(vec![
                Datum::Int4(i32::from(executor.id.0)),
                big(sought),
                big(text),
                big(shape),
                if sought == 0 { Datum::Null } else { Datum::Float8(ratio) },
            ])
        })
        .collect()
}
