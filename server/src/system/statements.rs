//! `archipel.statement_cache`: how often statements were found prepared; `pg_prepared_statements`:
//! those that the session has prepared under names; `pg_cursors`: those that it has open.

use std::sync::atomic::{AtomicU64, Ordering};

use archipel_sql::datum::Datum;
use archipel_sql::types::{Oid, Type};

use super::cells::array;
use super::cells::text;
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

pub(super) const PREPARED: &[(&str, Type)] = &[
    ("name", Type::TEXT),
    ("statement", Type::TEXT),
    ("prepare_time", Type::TIMESTAMPTZ),
    ("parameter_types", Type::of(Oid::REGTYPE_ARRAY)),
    ("from_sql", Type::BOOL),
    ("generic_plans", Type::INT8),
    ("custom_plans", Type::INT8),
];

/// One row a name. Every run takes the one plan there is, for whichever values: how often is not
/// counted by name.
pub(super) fn prepared(host: &Host) -> Vec<Vec<Datum>> {
    let prepared = host.memory.prepared.lock();
    let types = |types: &[Type]| array(Oid::REGTYPE, types.iter().map(|ty| Datum::Oid(ty.oid)).collect());
    prepared
        .iter()
        .map(|(name, statement)| {
            vec![
                text(name),
                text(&statement.text),
                Datum::TimestampTz(statement.at),
                types(&statement.types),
                Datum::Bool(statement.from_sql),
                Datum::Int8(0),
                Datum::Int8(0),
            ]
        })
        .collect()
}

pub(super) const CURSORS: &[(&str, Type)] = &[
    ("name", Type::TEXT),
    ("statement", Type::TEXT),
    ("is_holdable", Type::BOOL),
    ("is_binary", Type::BOOL),
    ("is_scrollable", Type::BOOL),
    ("creation_time", Type::TIMESTAMPTZ),
];

pub(super) fn cursors(host: &Host) -> Vec<Vec<Datum>> {
    let shown = host.memory.cursors.lock();
    let open = shown.open.iter().map(|(name, cursor)| (&**name, &**cursor));
    let bound = shown.bound.iter().map(|(name, portal)| (name.as_str(), portal));
    open.chain(bound)
        .map(|(name, cursor)| {
            vec![
                text(name),
                text(&cursor.text),
                Datum::Bool(cursor.hold),
                Datum::Bool(cursor.binary),
                Datum::Bool(cursor.scroll),
                Datum::TimestampTz(cursor.at),
            ]
        })
        .collect()
}
