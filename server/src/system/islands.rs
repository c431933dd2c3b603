//! `archipel.islands`, `archipel.island_distances` and `archipel.executors`: what there is to run
//! on, and what there was.
//!
//! A retired executor has lost its core; the view shows the last one.

use std::sync::atomic::Ordering;

use archipel_engine::{ExecutorInfo, PartitionView};
use archipel_sql::datum::Datum;

use super::cells::{big, count, text};
use crate::session::host::Host;

fn state(active: bool) -> Datum {
    text(if active { "active" } else { "retired" })
}

fn homes(partitions: &[PartitionView], executor: u16) -> usize {
    partitions.iter().filter(|partition| partition.home.0 == executor).count()
}

/// What part of the memory of partitions at home at these executors lies on their node; `None`: there
/// is none.
fn followed(partitions: &[PartitionView], executors: &[&ExecutorInfo]) -> Option<f64> {
    let here = |partition: &&PartitionView| executors.iter().any(|executor| executor.id == partition.home);
    let sizes = partitions.iter().filter(here);
    let (there, all) = sizes.fold((0.0, 0.0), |(there, all), partition| {
        let bytes = partition.bytes as f64;
        (there + bytes * partition.memory_followed, all + bytes)
    });
    (all > 0.0).then(|| there / all)
}

pub(super) fn islands(host: &Host) -> Vec<Vec<Datum>> {
    let executors = host.server.engine.executors();
    let partitions = host.server.engine.partitions();
    let mut islands: Vec<_> = executors.iter().map(|executor| executor.island).collect();
    islands.sort_unstable();
    islands.dedup();
    islands
        .into_iter()
        .map(|island| {
            let members = executors.iter().filter(|executor| executor.island == island);
            let (active, retired): (Vec<&ExecutorInfo>, Vec<_>) =
                members.partition(|executor| executor.active);
            let cores: Vec<String> =
                active.iter().filter_map(|executor| executor.core).map(|core| core.to_string()).collect();
            let held = active.iter().map(|executor| homes(&partitions, executor.id.0)).sum();
            let node = active.first().or(retired.first()).and_then(|executor| executor.memory_node);
            // Active since its first core came, retired since its last one went.
            let since = match active.iter().map(|executor| executor.since_micros).min() {
                Some(since) => Some(since),
                None => retired.iter().map(|executor| executor.since_micros).max(),
            };
            vec![
                Datum::Int4(i32::from(island.0)),
                count(active.len()),
                text(cores.join(",")),
                count(held),
                state(!active.is_empty()),
                since.map_or(Datum::Null, Datum::TimestampTz),
                node.map_or(Datum::Null, |node| Datum::Int4(i32::from(node))),
                followed(&partitions, &active).map_or(Datum::Null, Datum::Float8),
            ]
        })
        .collect()
}

/// What it costs to pass a cache line between islands, and inside each.
pub(super) fn distances(host: &Host) -> Vec<Vec<Datum>> {
    let distances = host.server.engine.island_distances();
    let row = |distance: &archipel_engine::topology::IslandDistance| {
        vec![
            Datum::Int4(i32::from(distance.from.0)),
            Datum::Int4(i32::from(distance.to.0)),
            Datum::Float8((distance.nanos * 10.0).round() / 10.0),
            text(if distance.measured { "measured" } else { "assumed" }),
        ]
    };
    distances.iter().map(row).collect()
}

pub(super) fn executors(host: &Host) -> Vec<Vec<Datum>> {
    let partitions = host.server.engine.partitions();
    let sessions = host.server.sessions.list();
    host.server
        .engine
        .executors()
        .iter()
        .map(|executor| {
            let number = executor.id.0;
            let counters = host.server.counters.get(usize::from(number));
            let statements = counters.map_or(0, |counters| counters.statements.load(Ordering::Relaxed));
            vec![
                Datum::Int4(i32::from(number)),
                Datum::Int4(i32::from(executor.island.0)),
                executor.core.map_or(Datum::Null, count),
                count(sessions.iter().filter(|session| session.executor() == number).count()),
                count(homes(&partitions, number)),
                count(executor.ready),
                big(executor.slices),
                big(executor.served),
                big(executor.stolen),
                big(statements),
                state(executor.active),
                Datum::TimestampTz(executor.since_micros),
                Datum::Float8(executor.speed),
            ]
        })
        .collect()
}
