//! What is counted on the hot path: little, by the owner, in fixed space.
//!
//! One run in [`MEASURE_EVERY`] is measured, and more of them where runs are long ([`Rate`]): its
//! time, the sub-partitions it went to, by the keys that routed it and those it touched, and which
//! sub-partitions met in it.
//! A partition's numbers are written by its
//! holder, a thread's by the thread. Both stand behind a latch of their own that the owner only
//! *tries*: the monitor takes it for moments, once in a window, and a sample that finds it taken is
//! dropped. So no run waits, and no two threads write one line.
//!
//! The thesis has two arrays per partition, one of them quadratic in the sub-partitions. Here
//! meetings are sparse: a table of those that happened, by class and sub-partitions. Cuts between
//! sub-partitions are keys that divide the rows evenly. A hot key shows in the sketch; a hot range
//! that is much smaller than a sub-partition shows when the cuts are drawn again where they divide the
//! load, once or a few times ([`PartitionStatistics::refine`]).

use smallvec::SmallVec;

use super::crossings::Crossings;
use super::footprint::Footprint;
use super::sketch::HotKeys;
use crate::id::{ExecutorId, GroupId, PartitionId};
use crate::partition::{ClaimEntry, ClaimSet, PartitionData, PartitionRef};
use crate::schema::KeyColumn;
use crate::storage::KeyBuf;
use crate::table::REFERENCE_GROUP;

/// One run in so many is measured at least; more in simulations, which are short.
pub const MEASURE_EVERY: u64 = if cfg!(test) { 2 } else { 32 };
/// Measuring takes some hundreds of nanoseconds. Once in so many of work, that is nothing.
const MEASURE_NANOS: u64 = 100_000;

/// One in how many runs is measured where one takes so long.
pub fn measured_of(nanos_each: f64) -> u64 {
    ((MEASURE_NANOS as f64 / nanos_each.max(1.0)) as u64).clamp(1, MEASURE_EVERY)
}

/// How often a thread measures: by time, so that a thousand long runs in a second tell as much as
/// a hundred thousand short ones.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    every: u64,
    /// What a run takes in the mean, as a moving average.
    nanos_each: f64,
}

impl Default for Rate {
    fn default() -> Self {
        Self { every: MEASURE_EVERY, nanos_each: 0.0 }
    }
}

impl Rate {
    /// One run in so many is measured: each measured one stands for so many.
    #[inline]
    pub fn every(self) -> u64 {
        self.every
    }

    /// Takes notice of a measured run.
    pub fn note(&mut self, nanos: u64) {
        self.nanos_each += (nanos as f64 - self.nanos_each) / 8.0;
        self.every = measured_of(self.nanos_each);
    }
}

/// Which run of a thread is one in `every`. Not each so-manieth: clients repeat themselves, and of
/// one that does four things in turn always the same would be measured. The multiples of the golden
/// ratio fall evenly into whatever part of the numbers comes in a period (Weyl's theorem).
#[inline]
pub fn is_one_in(every: u64, run: u64) -> bool {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    run.wrapping_mul(GOLDEN) < u64::MAX / every
}

/// Sub-partitions of a partition.
pub const SUB_PARTITIONS: usize = 10;
/// Meetings a thread tells apart in a window; further ones are counted as lost.
const MEETINGS_MAX: usize = 256;
/// Sub-partitions a meeting names. One of more is a statement over many partitions, which no
/// placement would make local.
pub const PARTICIPANTS_MAX: usize = 4;
/// So often a measured run compares a claim with a partition, at most.
const COMPARED_MAX: usize = 10_000;
/// A run that took so many times the mean was interrupted, or is so rare that one sample of it
/// says nothing: it counts as this much.
const OUTLIER: u64 = 32;
/// Cuts are drawn again when the rows have become so much more or fewer.
const REDRAW_FACTOR: u64 = 2;
/// What a participant costs beside the redo: its state word and the lines of the first node.
const PARTICIPANT_BYTES: u64 = 128;

/// Where a partition's distribution column ends in a key.
pub(crate) type Distribution = Option<(KeyColumn, crate::cell::ColumnKind)>;

/// Measured runs, and how many runs they stand for, with the time of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    pub samples: u64,
    pub runs: u64,
    pub nanos: u64,
}

impl Measured {
    pub(super) fn add(&mut self, nanos: u64, stands_for: u64) {
        self.samples += 1;
        self.runs += stands_for;
        self.nanos += nanos * stands_for;
    }
}

/// What was measured of one partition.
#[derive(Clone, Debug, Default)]
pub struct PartitionStatistics {
    /// First keys of the second and all further sub-partitions.
    pub cuts: Vec<KeyBuf>,
    /// Where each stands among the rows, as a part of all of them.
    positions: Vec<f64>,
    /// Rows when the cuts were drawn; 0: they are to be drawn.
    cuts_rows: u64,
    /// Where they are to be drawn next time, if that is not evenly: by position.
    wanted: Option<Vec<f64>>,
    pub slices: [Measured; SUB_PARTITIONS],
    /// Runs over more than a sub-partition, or somewhere unforeseen.
    pub spread: Measured,
    /// All runs.
    total: Measured,
    /// The squares of their times, summed: how much they differ.
    pub squares: f64,
    pub hot: HotKeys,
}

impl PartitionStatistics {
    /// Empties the numbers; the cuts stay.
    pub fn reset(&mut self) {
        self.slices = Default::default();
        self.spread = Measured::default();
        self.total = Measured::default();
        self.squares = 0.0;
        self.hot.clear();
    }

    /// Forgets everything: the bounds have changed.
    pub fn forget(&mut self) {
        self.reset();
        self.cuts.clear();
        self.positions.clear();
        self.cuts_rows = 0;
        self.wanted = None;
    }

    /// Has the cuts drawn anew at the next measured run, where they divide the load that was measured:
    /// sub-partitions become small where it lies.
    pub fn refine(&mut self) {
        let count = self.positions.len() + 1;
        let loads: Vec<f64> =
            self.slices[..count.min(SUB_PARTITIONS)].iter().map(|slice| slice.nanos as f64).collect();
        let total: f64 = loads.iter().sum();
        if total <= 0.0 {
            return;
        }
        let (mut slice, mut before) = (0, 0.0);
        let at = |part: usize| {
            let load = total * part as f64 / SUB_PARTITIONS as f64;
            while slice + 1 < loads.len() && before + loads[slice] < load {
                before += loads[slice];
                slice += 1;
            }
            let low = if slice == 0 { 0.0 } else { self.positions[slice - 1] };
            let high = self.positions.get(slice).copied().unwrap_or(1.0);
            // Within a sub-partition nothing is known.
            let part = if loads[slice] > 0.0 { (load - before) / loads[slice] } else { 0.0 };
            low + (high - low) * part.clamp(0.0, 1.0)
        };
        self.wanted = Some((1..SUB_PARTITIONS).map(at).collect());
    }

    /// All runs.
    pub fn total(&self) -> Measured {
        self.total
    }

    fn count(&mut self, nanos: u64, stands_for: u64) {
        self.total.add(nanos, stands_for);
        self.squares += ((nanos * stands_for) as f64).powi(2);
    }

    fn usual(&self, nanos: u64) -> u64 {
        match self.total.nanos.checked_div(self.total.runs) {
            Some(mean) if self.total.samples >= 8 => nanos.min(mean.max(100) * OUTLIER),
            _ => nanos.min(1_000_000),
        }
    }

    /// Draws the cuts where the rows fall into equal parts, or where they are wanted, at whole
    /// distribution values.
    fn draw(&mut self, data: &PartitionData, distribution: &Distribution) {
        let rows = data.rows();
        let redraw = self.cuts_rows == 0
            || rows > self.cuts_rows.saturating_mul(REDRAW_FACTOR)
            || rows < self.cuts_rows / REDRAW_FACTOR;
        let wanted = self.wanted.take();
        if !redraw && wanted.is_none() {
            return;
        }
        self.forget();
        self.cuts_rows = rows.max(1);
        let Some(largest) = data.roots.iter().max_by_key(|root| root.rows().len()) else { return };
        let count = largest.rows().len();
        let evenly = || (1..SUB_PARTITIONS).map(|part| part as f64 / SUB_PARTITIONS as f64).collect();
        let positions: Vec<f64> = wanted.unwrap_or_else(evenly);
        for position in positions {
            let Some((key, _)) = largest.rows().nth((count as f64 * position) as u64) else { return };
            let key = &key[..value_length(key, distribution)];
            if *key > data.low[..] && self.cuts.last().is_none_or(|last| last[..] < *key) {
                self.cuts.push(KeyBuf::from_slice(key));
                self.positions.push(position);
            }
        }
    }

    /// The sub-partition of a key.
    fn slice_of(&self, key: &[u8]) -> usize {
        self.cuts.partition_point(|cut| cut[..] <= *key)
    }

    /// Where a range of keys lies among the sub-partitions.
    fn slices_of(&self, data: &PartitionData, low: &[u8], high: Option<&[u8]>) -> Slices {
        let begins_behind = data.high.as_ref().is_some_and(|end| end[..] <= *low);
        if begins_behind || high.is_some_and(|high| *high <= data.low[..]) {
            return Slices::None;
        }
        let first = self.slice_of(low.max(&data.low[..]));
        let below = |high: &[u8]| self.cuts.partition_point(|cut| cut[..] < *high);
        match high.map_or(self.cuts.len(), below) {
            last if last <= first => Slices::One(first),
            _ => Slices::Several,
        }
    }
}

/// Where a range lies among the sub-partitions of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slices {
    /// It lies in other partitions.
    None,
    One(usize),
    Several,
}

impl Slices {
    fn is_wide(self) -> bool {
        self == Slices::Several
    }
}

/// Sub-partitions that a run went to, and the distribution values that led it there; empty where they are not
/// known.
type Places<'k> = SmallVec<[(usize, &'k [u8]); 4]>;

fn value_length(key: &[u8], distribution: &Distribution) -> usize {
    distribution
        .as_ref()
        .map_or(key.len(), |(column, kind)| crate::table::distribution_prefix(key, column, *kind))
}

/// A sub-partition: a partition and a position in its cuts.
pub type SubPartition = (PartitionId, u8);

/// Sub-partitions that met in transactions of one class on a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeetingCount {
    pub class: u32,
    pub participants: SmallVec<[SubPartition; PARTICIPANTS_MAX]>,
    pub runs: u64,
    pub bytes: u64,
}

/// Exact counts of a thread, since it exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub runs: u64,
    /// Runs that held several partitions.
    pub multi: u64,
    pub restarts: u64,
    /// Runs that came through queues.
    pub queued: u64,
    /// Nanoseconds that sampled ones of them waited (one in [`MEASURE_EVERY`]).
    pub waited_nanos: u64,
}

/// What was measured on one thread.
#[derive(Debug, Default)]
pub struct ThreadStatistics {
    pub tally: Tally,
    pub meetings: Vec<MeetingCount>,
    /// Meetings there was no room for, since the thread exists.
    pub lost: u64,
    /// Runs by who submitted them and where their partition is at home, since the thread exists.
    pub crossings: Crossings,
}

impl ThreadStatistics {
    pub fn reset(&mut self) {
        self.meetings.clear();
    }

    fn meeting(&mut self, class: u32, participants: &[SubPartition], bytes: u64, stands_for: u64) {
        let same = |count: &MeetingCount| count.class == class && count.participants[..] == *participants;
        match self.meetings.iter().position(same) {
            Some(at) => {
                self.meetings[at].runs += stands_for;
                self.meetings[at].bytes += bytes * stands_for;
            }
            None if self.meetings.len() < MEETINGS_MAX => {
                let participants = SmallVec::from_slice(participants);
                let bytes = bytes * stands_for;
                self.meetings.push(MeetingCount { class, participants, runs: stands_for, bytes });
            }
            None => self.lost += 1,
        }
    }
}

/// A measured run.
pub(crate) struct Run<'r> {
    pub class: u32,
    pub claims: &'r ClaimSet,
    pub touched: &'r Footprint,
    pub nanos: u64,
    /// How many runs it stands for: see [`Rate`].
    pub stands_for: u64,
    pub redo_bytes: u64,
    pub tally: Tally,
    /// The executor that ran it on the spot.
    pub on_the_spot: Option<ExecutorId>,
}

/// Counts a measured run over the partitions it still holds.
#[cold]
#[inline(never)]
pub(crate) fn measure(
    run: &Run<'_>,
    held: &[PartitionRef],
    thread: &parking_lot::Mutex<ThreadStatistics>,
    distribution: &dyn Fn(GroupId) -> Distribution,
) {
    let participants = held.iter().filter(|partition| partition.group() != REFERENCE_GROUP).count();
    // Where one went that claimed very much tells little, and to ask it of each partition takes long.
    let few = held.len().saturating_mul(run.claims.entries.len()) <= COMPARED_MAX;
    let nanos = run.nanos / participants.max(1) as u64;
    let mut met: SmallVec<[SubPartition; PARTICIPANTS_MAX]> = SmallVec::new();
    for partition in held {
        // SAFETY: the caller still holds all of them; the reference ends in this iteration.
        let data = unsafe { partition.data_mut() };
        let Some(mut statistics) = partition.statistics.try_lock() else { continue };
        let claims = if few { &run.claims.entries[..] } else { &[] };
        let slice = place(&mut statistics, partition.group(), data, (run, claims), nanos, distribution);
        if participants > 1 && partition.group() != REFERENCE_GROUP && met.len() < PARTICIPANTS_MAX {
            met.push((partition.id, slice));
        }
    }
    let Some(mut thread) = thread.try_lock() else { return };
    thread.tally = run.tally;
    if let (1, Some(by)) = (participants, run.on_the_spot)
        && let Some(only) = held.iter().find(|partition| partition.group() != REFERENCE_GROUP)
    {
        thread.crossings.add_direct(by, only.home(), run.nanos);
    }
    if (2..=PARTICIPANTS_MAX).contains(&participants) && met.len() == participants {
        let bytes = run.redo_bytes + participants as u64 * PARTICIPANT_BYTES;
        thread.meeting(run.class, &met, bytes, run.stands_for);
    }
}

/// Counts a run at one partition, by the keys it touched there; the sub-partition it went to, or the first
/// of several.
fn place(
    statistics: &mut PartitionStatistics,
    group: GroupId,
    data: &PartitionData,
    (run, claims): (&Run<'_>, &[ClaimEntry]),
    nanos: u64,
    distribution: &dyn Fn(GroupId) -> Distribution,
) -> u8 {
    let stands_for = run.stands_for;
    let nanos = statistics.usual(nanos);
    if group == REFERENCE_GROUP {
        statistics.count(nanos, stands_for);
        statistics.spread.add(nanos, stands_for);
        return 0;
    }
    let distribution = distribution(group);
    // May forget what was counted by other cuts.
    statistics.draw(data, &distribution);
    statistics.count(nanos, stands_for);
    // Points, and ranges that lie in one sub-partition.
    let mut places: Places<'_> = claims
        .iter()
        .filter_map(|entry| match entry {
            ClaimEntry::Point { group: of, key } if *of == group && data.covers(key) => {
                Some((statistics.slice_of(key), &key[..]))
            }
            ClaimEntry::Range { group: of, low, high: Some(high) } if *of == group && data.covers(low) => {
                let slice = statistics.slice_of(low);
                (slice == statistics.slice_of(high)).then_some((slice, &low[..]))
            }
            _ => None,
        })
        .collect();
    if !run.touched.scans(group).any(|(low, high)| statistics.slices_of(data, low, high).is_wide()) {
        add_touched(&mut places, statistics, run.touched, (group, data), &distribution);
    }
    let first = places.first().map(|(slice, _)| *slice);
    for (slice, key) in &places {
        statistics.slices[*slice].nanos += nanos * stands_for / places.len() as u64;
        if !key.is_empty() {
            statistics.hot.add(&key[..value_length(key, &distribution)]);
        }
    }
    match first {
        Some(slice) => {
            statistics.slices[slice].samples += 1;
            statistics.slices[slice].runs += stands_for;
        }
        None => statistics.spread.add(nanos, stands_for),
    }
    first.unwrap_or(0) as u8
}

/// Adds the sub-partitions of what a run touched and no claim has named, with the distribution values that
/// are known whole.
fn add_touched<'k>(
    places: &mut Places<'k>,
    statistics: &PartitionStatistics,
    touched: &'k Footprint,
    (group, data): (GroupId, &PartitionData),
    distribution: &Distribution,
) {
    let is_known = |places: &Places<'k>, key: &[u8]| {
        let same = |known: &[u8]| !known.is_empty() && (known.starts_with(key) || key.starts_with(known));
        places.iter().any(|(_, known)| same(known))
    };
    for key in touched.keys(group).filter(|key| data.covers(key)) {
        let value = &key[..value_length(key, distribution)];
        if !is_known(places, value) {
            places.push((statistics.slice_of(key), value));
        }
    }
    for (low, high) in touched.scans(group) {
        if let Slices::One(slice) = statistics.slices_of(data, low, high)
            && !is_known(places, low)
        {
            places.push((slice, &[]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_comes_in_turn_is_measured_alike() {
        const RUNS: u64 = 1 << 18;
        for period in 1..=64 {
            let mut measured = vec![0_u64; period as usize];
            for run in (0..RUNS).filter(|run| is_one_in(32, *run)) {
                measured[(run % period) as usize] += 1;
            }
            let expected = RUNS / 32 / period;
            let even = |count: &u64| count.abs_diff(expected) <= expected / 7;
            assert!(measured.iter().all(even), "of {period} in turn: {measured:?}");
        }
    }

    #[test]
    fn long_runs_are_measured_more_often_and_stand_for_fewer() {
        let mut rate = Rate::default();
        assert_eq!(rate.every(), MEASURE_EVERY);
        for _ in 0..64 {
            rate.note(1_000_000);
        }
        assert_eq!(rate.every(), 1);
        for _ in 0..64 {
            rate.note(1_000);
        }
        assert_eq!(rate.every(), MEASURE_EVERY);
        let mut measured = Measured::default();
        measured.add(10, 32);
        measured.add(10_000, 1);
        assert_eq!((measured.samples, measured.runs, measured.nanos), (2, 33, 10_320));
    }

    #[test]
    fn cuts_are_refined_where_the_load_lies() {
        let positions = (1..SUB_PARTITIONS).map(|part| part as f64 / 10.0).collect();
        let mut statistics = PartitionStatistics { positions, ..PartitionStatistics::default() };
        // Nine tenths of the load in the third tenth of the rows, the rest evenly.
        for slice in 0..SUB_PARTITIONS {
            statistics.slices[slice].nanos = if slice == 2 { 900 } else { 100 / 9 };
        }
        statistics.refine();
        let wanted = statistics.wanted.expect("cuts are wanted");
        assert_eq!(wanted.len(), SUB_PARTITIONS - 1);
        assert!(wanted.is_sorted(), "{wanted:?}");
        let within = wanted.iter().filter(|position| (0.2..=0.3).contains(*position)).count();
        assert!(within >= 8, "{wanted:?}");
    }

    #[test]
    fn a_range_lies_in_one_sub_partition_or_in_several() {
        let cuts = [b"d", b"h"].map(|cut| KeyBuf::from_slice(cut)).to_vec();
        let statistics = PartitionStatistics { cuts, ..PartitionStatistics::default() };
        let high = Some(KeyBuf::from_slice(b"p"));
        let data = PartitionData::new(KeyBuf::from_slice(b"b"), high);
        let slices = |low: &[u8], high: Option<&[u8]>| statistics.slices_of(&data, low, high);
        assert_eq!(slices(b"d", Some(b"h")), Slices::One(1));
        assert_eq!(slices(b"a", Some(b"c")), Slices::One(0));
        assert_eq!(slices(b"i", None), Slices::One(2));
        assert_eq!(slices(b"c", Some(b"e")), Slices::Several);
        assert_eq!(slices(b"", None), Slices::Several);
        assert_eq!(slices(b"a", Some(b"b")), Slices::None);
        assert_eq!(slices(b"p", None), Slices::None);
    }

    #[test]
    fn a_slow_sample_counts_as_an_outlier() {
        let mut statistics = PartitionStatistics::default();
        for _ in 0..100 {
            let nanos = statistics.usual(1_000);
            statistics.count(nanos, 32);
        }
        assert_eq!(statistics.usual(5_000), 5_000);
        assert_eq!(statistics.usual(50_000_000), 32_000);
    }

    #[test]
    fn a_thread_tells_so_many_meetings_apart_and_no_more() {
        let mut thread = ThreadStatistics::default();
        for round in 0..2 {
            for peer in 0..MEETINGS_MAX as u32 + 10 {
                thread.meeting(1, &[(PartitionId(0), 0), (PartitionId(peer + 1), 3)], 100, 1);
            }
            assert_eq!(thread.meetings.len(), MEETINGS_MAX);
            assert_eq!(thread.meetings[0].runs, round + 1);
        }
        assert_eq!(thread.lost, 20);
        thread.reset();
        assert!(thread.meetings.is_empty());
    }
}
