//! What a trace says: rows of the views, and advice.

use std::collections::BTreeSet;

use super::decision::{Advice, PartitionLoad, SyncPointView};
use super::gather::Gathered;
use super::model::meeting_cost;
use crate::txn::Cut;

/// A reference table whose writes take more of the time is worth a word.
const HOT_REFERENCE_SHARE: f64 = 0.2;

/// What to say of keys and tables that no repartitioning makes lighter.
///
/// `share_max`: what part of the load one partition should have at most.
pub(super) fn advice(gathered: &Gathered, share_max: f64) -> Option<Advice> {
    let total = gathered.trace.total();
    let fair = 1.0 / gathered.cores.len().max(1) as f64;
    let key = gathered.hot.iter().find_map(|(slice, key)| {
        let share = gathered.trace.slices[*slice].load / total.max(1.0);
        let group = gathered.groups[gathered.trace.slices[*slice].table];
        (share > fair).then(|| Advice::HotKey { group, key: key.to_vec(), share })
    });
    let written = gathered.references.nanos as f64;
    let share = written / (total + written).max(1.0);
    let end = || {
        let slice = gathered.coarse(share_max).into_iter().find(|slice| {
            let part = gathered.layout.part_of(*slice);
            let table = gathered.layout.parts[part].table;
            let next = gathered.layout.parts.get(part + 1);
            *slice + 1 == gathered.layout.parts[part].slices.end
                && next.is_none_or(|next| next.table != table)
        })?;
        let load = gathered.trace.slices[slice].load / total.max(1.0);
        let group = gathered.groups[gathered.trace.slices[slice].table];
        (load > fair).then_some(Advice::GrowingEnd { group, share: load })
    };
    key.or_else(end).or_else(|| (share > HOT_REFERENCE_SHARE).then_some(Advice::HotReference { share }))
}

/// What a trace says, for the views.
pub(super) fn views(gathered: &Gathered) -> (Vec<PartitionLoad>, Vec<SyncPointView>) {
    let homes = gathered.partitions.iter().map(|(_, home)| *home);
    let loads = gathered.shares().into_iter().zip(homes);
    let loads = loads.map(|((partition, share), home)| PartitionLoad { partition, home, share }).collect();
    let assignment = gathered.layout.assignment();
    let participant = |slice: usize| {
        let part = gathered.layout.part_of(slice);
        let (Cut::At(key) | Cut::Behind(key)) = &gathered.starts[slice];
        let group = gathered.groups[gathered.layout.parts[part].table];
        (gathered.partitions[part].0, group, key.to_vec())
    };
    let meetings = gathered.trace.meetings.iter().map(|meeting| {
        let islands: BTreeSet<usize> =
            meeting.slices.iter().map(|&slice| gathered.hardware.cores[assignment[slice]].island).collect();
        SyncPointView {
            class: meeting.class,
            participants: meeting.slices.iter().map(|&slice| participant(slice)).collect(),
            bytes: meeting.bytes as u64,
            islands: islands.len(),
            cost: meeting_cost(&gathered.hardware, meeting, &assignment),
        }
    });
    (loads, meetings.collect())
}
