//! What the monitor shows: its decisions, the synchronization points, and how programs ran.

use archipel_engine::id::GroupId;
use archipel_engine::{Advice, Decision};
use archipel_sql::datum::Datum;
use archipel_sql::types::Type;

use super::cells::{big, count, optional, text};
use super::relations::Relations;
use super::visibility::Sight;
use crate::database::Database;
use crate::session::host::Host;

pub(super) const DECISIONS: &[(&str, Type)] = &[
    ("decision", Type::INT8),
    ("at", Type::TIMESTAMPTZ),
    ("reason", Type::TEXT),
    ("outcome", Type::TEXT),
    ("watched_ms", Type::INT8),
    ("interval_ms", Type::INT8),
    ("throughput", Type::FLOAT8),
    ("samples", Type::INT8),
    ("imbalance", Type::FLOAT8),
    ("imbalance_predicted", Type::FLOAT8),
    ("imbalance_measured", Type::FLOAT8),
    ("synchronization", Type::FLOAT8),
    ("synchronization_predicted", Type::FLOAT8),
    ("synchronization_measured", Type::FLOAT8),
    ("predicted_gain", Type::FLOAT8),
    ("measured_gain", Type::FLOAT8),
    ("noise", Type::FLOAT8),
    ("throughput_after", Type::FLOAT8),
    ("price_us", Type::INT8),
    ("splits", Type::INT4),
    ("merges", Type::INT4),
    ("moves", Type::INT4),
    ("refused", Type::INT4),
    ("duration_us", Type::INT8),
    ("advice", Type::TEXT),
];

pub(super) fn decisions(host: &Host) -> Vec<Vec<Datum>> {
    let sight = Sight::of(host);
    host.server.engine.monitor_decisions().iter().map(|decision| row(&sight, decision)).collect()
}

fn row(sight: &Sight<'_>, decision: &Decision) -> Vec<Datum> {
    let real = Datum::Float8;
    let maybe = |value: Option<f64>| value.map_or(Datum::Null, Datum::Float8);
    vec![
        big(decision.id),
        Datum::TimestampTz(decision.at),
        text(decision.reason.name()),
        text(decision.verdict.name()),
        big(decision.watched_nanos / 1_000_000),
        big(decision.interval_nanos / 1_000_000),
        real(decision.throughput),
        big(decision.samples),
        real(decision.before.imbalance),
        real(decision.after.imbalance),
        maybe(decision.measured.map(|measured| measured.imbalance)),
        real(decision.before.synchronization),
        real(decision.after.synchronization),
        maybe(decision.measured.map(|measured| measured.synchronization)),
        real(decision.predicted_gain),
        maybe(decision.measured_gain),
        real(decision.noise),
        maybe(decision.throughput_after),
        big((decision.price_nanos / 1e3) as u64),
        count(decision.splits as usize),
        count(decision.merges as usize),
        count(decision.moves as usize),
        count(decision.refused as usize),
        decision.acted_nanos.map_or(Datum::Null, |nanos| big(nanos / 1_000)),
        optional(decision.advice.as_ref().and_then(|advice| advise(sight, advice))),
    ]
}

/// The advice in words; `None` for those who may not know of the tables.
fn advise(sight: &Sight<'_>, advice: &Advice) -> Option<String> {
    let seen = match advice {
        Advice::HotKey { group, .. } => sight.group(*group).is_some_and(|group| group.keys),
        Advice::GrowingEnd { group, .. } => sight.group(*group).is_some(),
        Advice::HotReference { .. } => true,
    };
    if !seen {
        return None;
    }
    let percent = |share: f64| (share * 100.0).round();
    Some(match advice {
        Advice::HotKey { group, key, share } => {
            let keys = sight.groups().keys(*group);
            format!(
                "rows of {} with {} = {} take {}% of the time, more than one executor's share; no \
                 partitioning divides one value: distribute by another column, or keep several counters",
                sight.groups().tables(*group).join(", "),
                keys.column().unwrap_or("key"),
                keys.show(key).unwrap_or_default(),
                percent(*share)
            )
        }
        Advice::GrowingEnd { group, share } => format!(
            "the end of {}, where rows are added, takes {}% of the time, more than one executor's share; no \
             partitioning divides it: let the key begin with a column whose values come in any order",
            sight.groups().tables(*group).join(", "),
            percent(*share)
        ),
        Advice::HotReference { share } => format!(
            "writes of reference tables take {}% of the time, one after another; distribute the table that \
             is written most",
            percent(*share)
        ),
    })
}

pub(super) const SYNC_POINTS: &[(&str, Type)] = &[
    ("class", Type::TEXT),
    ("partitions", Type::TEXT),
    ("tables", Type::TEXT),
    ("sub_partitions", Type::TEXT),
    ("islands", Type::INT4),
    ("bytes", Type::INT8),
    ("cost", Type::FLOAT8),
    ("datname", Type::NAME),
];

pub(super) fn sync_points(host: &Host) -> Vec<Vec<Datum>> {
    let mut points = host.server.engine.sync_points();
    points.sort_by_key(|point| std::cmp::Reverse(point.bytes));
    let sight = Sight::of(host);
    let is_seen = |point: &archipel_engine::SyncPointView| {
        let routine = sight.groups().relations().routine(point.class);
        let mut groups = point.participants.iter().map(|(_, group, _)| *group);
        routine.is_none_or(|(database, routine)| sight.routine_of(database, routine.oid))
            && groups.all(|group| sight.group(group).is_some_and(|group| group.keys))
    };
    points.retain(is_seen);
    let row = |point: archipel_engine::SyncPointView| {
        let list = |show: &dyn Fn(u32, GroupId, &[u8]) -> String| {
            let shown: Vec<String> = point
                .participants
                .iter()
                .map(|(partition, group, key)| show(partition.0, *group, key))
                .collect();
            shown.join(", ")
        };
        vec![
            text(class_name(sight.groups().relations(), point.class)),
            text(list(&|partition, _, _| partition.to_string())),
            text(list(&|_, group, _| sight.groups().tables(group).join("+"))),
            text(list(&|_, group, key| {
                sight.groups().keys(group).show(key).unwrap_or_else(|| "-".to_owned())
            })),
            count(point.islands),
            big(point.bytes),
            Datum::Float8(point.cost),
            optional(
                point
                    .participants
                    .iter()
                    .find_map(|(_, group, _)| sight.groups().database(*group))
                    .map(Database::name),
            ),
        ]
    };
    points.into_iter().map(row).collect()
}

/// A routine's name, or what is not one's.
fn class_name(relations: &Relations, class: u32) -> String {
    match relations.routine(class) {
        Some((_, routine)) => routine.name.clone(),
        None => "statements".to_owned(),
    }
}

pub(super) const ACTIONS: &[(&str, Type)] = &[
    ("runs", Type::INT8),
    ("multi_partition", Type::INT8),
    ("restarts", Type::INT8),
    ("queued", Type::INT8),
    ("queue_wait_us", Type::INT8),
    ("meetings_lost", Type::INT8),
];

pub(super) fn actions(host: &Host) -> Vec<Vec<Datum>> {
    let counts = host.server.engine.run_counts();
    vec![vec![
        big(counts.runs),
        big(counts.multi_partition),
        big(counts.restarts),
        big(counts.queued),
        big(counts.queue_wait_nanos / 1_000),
        big(counts.meetings_lost),
    ]]
}
