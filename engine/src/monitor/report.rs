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
        let slice = gathered.coarse(share_max).into_iter().find(|slice| gathered.is_end(*slice))?;
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

#[cfg(test)]
mod tests {
    use super::super::model::{Core, Part, Slice};
    use super::*;
    use crate::id::{ExecutorId, GroupId};

    /// Two tables of two partitions on two executors, ten slices each, with all of the load of the first
    /// table in one of its slices and a little in the second table.
    fn loaded(slice: usize) -> Gathered {
        let mut gathered = Gathered { groups: vec![GroupId(7), GroupId(8)], ..Gathered::default() };
        for core in 0..2 {
            gathered.cores.push(ExecutorId(core));
            gathered.hardware.cores.push(Core { island: 0, speed: 1.0 });
        }
        for part in 0..4 {
            let (table, core) = (part / 2, part % 2);
            let slices = part * 10..(part + 1) * 10;
            let joins = core > 0;
            gathered.layout.parts.push(Part { table, slices, core, pinned: false, frozen: false, joins });
        }
        let load = |at: usize| if at == slice { 900.0 } else { (at / 20) as f64 };
        gathered.trace.slices =
            (0..40).map(|at| Slice { table: at / 20, load: load(at), runs: load(at) }).collect();
        gathered
    }

    #[test]
    fn an_end_that_no_cut_divides_is_told_of_and_nothing_else_is() {
        for (slice, is_told) in [(19, true), (0, true), (9, false), (10, false), (12, false)] {
            let told = advice(&loaded(slice), 0.25);
            let end = matches!(told, Some(Advice::GrowingEnd { group: GroupId(7), share }) if share > 0.9);
            assert_eq!(end, is_told, "slice {slice}: {told:?}");
            assert_eq!(told.is_some(), is_told);
        }
    }
}
