//! From counters to a trace: what the searches work on, and how to get back from it to keys,
//! partitions and executors.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic;

use super::counters::{Measured, PartitionStatistics, SubPartition};
use super::decide::LINE_NANOS;
use super::model::{Core, Hardware, Layout, Meeting, Part, Slice, Trace};
use crate::engine::Shared;
use crate::id::{ExecutorId, GroupId, PartitionId};
use crate::partition::Route;
use crate::storage::KeyBuf;
use crate::table::REFERENCE_GROUP;
use crate::txn::Cut;

/// Fewer samples do not make a key hot.
const HOT_SAMPLES_MIN: u64 = 32;
/// How much of what a partition should have one slice may have.
const COARSE: f64 = 0.5;
/// How much more than the others of its partition it then has.
const UNEVEN: f64 = 3.0;
/// By how much the share of the slice at an end grows from window to window where load moves there.
const MOVES: f64 = 0.1;
/// And by so many standard deviations of what chance shows.
const MOVES_BEYOND_CHANCE: f64 = 3.0;
/// A key with more than this cannot be told from all of its partition.
const HOT_SHARE_ALL: f64 = 0.97;

/// A trace, and what its numbers stand for.
#[derive(Clone, Default)]
pub(crate) struct Gathered {
    pub trace: Trace,
    pub layout: Layout,
    /// By core of the model.
    pub cores: Vec<ExecutorId>,
    pub hardware: Hardware,
    /// By table of the model.
    pub groups: Vec<GroupId>,
    /// Where a slice begins; the first key of a partition, or where it could be cut.
    pub starts: Vec<Cut>,
    /// By part: the partition, and its home as it is.
    pub partitions: Vec<(PartitionId, ExecutorId)>,
    /// Slices of one key each, with the key.
    pub hot: Vec<(usize, KeyBuf)>,
    /// Measured runs over all partitions.
    pub measured: Measured,
    /// The squares of their times, summed.
    pub squares: f64,
    /// Measured runs that wrote reference tables.
    pub references: Measured,
    /// A partition is at home where nobody serves it.
    pub homeless: bool,
}

/// Gathers what was measured since the last reset, and resets it if asked.
pub(crate) fn gather(
    shared: &Shared,
    own_cuts: &BTreeSet<(GroupId, KeyBuf)>,
    hot_key_share: f64,
    reset: bool,
) -> Gathered {
    let mut gathered = Gathered::default();
    gathered.read_hardware(shared);
    let routing = shared.load_routing();
    let mut places = BTreeMap::new();
    for group in routing.groups() {
        let routes = routing.routes(group);
        if group == REFERENCE_GROUP {
            for route in routes {
                gathered.references = take(route, reset).total();
            }
            continue;
        }
        let table = gathered.groups.len();
        gathered.groups.push(group);
        let mut ends = routes.iter().skip(1).map(|next| &next.low);
        for route in routes {
            let statistics = take(route, reset);
            let high = ends.next();
            let (slices, measured) = gathered.add_slices(table, route, high, &statistics, hot_key_share);
            places.insert(route.partition.id, measured);
            gathered.add_part(table, route, slices, own_cuts.contains(&(group, route.low.clone())));
            let total = statistics.total();
            gathered.measured.samples += total.samples;
            gathered.measured.runs += total.runs;
            gathered.measured.nanos += total.nanos;
            gathered.squares += statistics.squares;
        }
    }
    gathered.trace.meetings = meetings(shared, &places, reset);
    gathered
}

/// Forgets what was measured since the last reset.
pub(crate) fn forget(shared: &Shared) {
    let routing = shared.load_routing();
    for route in routing.groups().into_iter().flat_map(|group| routing.routes(group)) {
        route.partition.statistics.lock().reset();
    }
    for thread in shared.monitor.threads() {
        thread.lock().reset();
    }
}

/// Has the cuts of some partitions drawn anew where they divide the load.
pub(crate) fn refine(shared: &Shared, partitions: &[PartitionId]) {
    let routing = shared.load_routing();
    for route in routing.groups().into_iter().flat_map(|group| routing.routes(group)) {
        if partitions.contains(&route.partition.id) {
            route.partition.statistics.lock().refine();
        }
    }
}

/// Actions of all partitions, ever.
pub(super) fn actions(shared: &Shared) -> u64 {
    let routing = shared.load_routing();
    let groups = routing.groups().into_iter().filter(|group| *group != REFERENCE_GROUP);
    let routes = groups.flat_map(|group| routing.routes(group));
    routes.map(|route| route.partition.actions.load(atomic::Ordering::Relaxed)).sum()
}

fn take(route: &Route, reset: bool) -> PartitionStatistics {
    let mut statistics = route.partition.statistics.lock();
    let taken = statistics.clone();
    if reset {
        statistics.reset();
    }
    taken
}

impl Gathered {
    /// The executors that somebody serves.
    fn read_hardware(&mut self, shared: &Shared) {
        let served = shared.executors().iter().filter(|executor| shared.is_served(executor.id));
        let mut islands = 0;
        for executor in served {
            self.cores.push(executor.id);
            let island = usize::from(executor.island().0);
            islands = islands.max(island + 1);
            self.hardware.cores.push(Core { island, speed: executor.speed() });
        }
        self.hardware.distances = (0..islands)
            .map(|from| (0..islands).map(|to| if from == to { 0.0 } else { 1.0 }).collect())
            .collect();
        for known in shared.machine.island_distances().iter().filter(|known| known.from != known.to) {
            let row = self.hardware.distances.get_mut(usize::from(known.from.0));
            if let Some(distance) = row.and_then(|row| row.get_mut(usize::from(known.to.0))) {
                *distance = known.nanos / LINE_NANOS;
            }
        }
    }

    /// Adds the slices of a partition; where they are, and the slice of every sub-partition that
    /// was measured.
    fn add_slices(
        &mut self,
        table: usize,
        route: &Route,
        high: Option<&KeyBuf>,
        statistics: &PartitionStatistics,
        hot_key_share: f64,
    ) -> (Range<usize>, Vec<usize>) {
        let first = self.starts.len();
        self.starts.push(Cut::At(route.low.clone()));
        // A partition that was cut anew in between may have fewer slices than were measured.
        let mut places = vec![first];
        for cut in &statistics.cuts {
            if *cut > route.low && high.is_none_or(|high| cut < high) {
                self.starts.push(Cut::At(cut.clone()));
            }
            places.push(self.starts.len() - 1);
        }
        let count = self.starts.len() - first;
        let part = |measured: u64| measured as f64 / count as f64;
        let spread = Slice { table, load: part(statistics.spread.nanos), runs: part(statistics.spread.runs) };
        let mut slices = vec![spread; count];
        for (place, measured) in places.iter().zip(&statistics.slices) {
            let slice = &mut slices[place - first];
            slice.load += measured.nanos as f64;
            slice.runs += measured.runs as f64;
        }
        self.trace.slices.extend(slices);
        if let Some((key, share)) = statistics.hot.hottest()
            && share >= hot_key_share
            && statistics.total().samples >= HOT_SAMPLES_MIN
        {
            self.set_apart(first, key.clone(), share, &mut places);
        }
        (first..self.starts.len(), places)
    }

    /// Gives a hot key a slice of its own, so that the searches can give it a partition. `places`
    /// of what was measured follow; of a slice that is divided, to its heaviest part.
    fn set_apart(&mut self, first: usize, key: KeyBuf, share: f64, places: &mut [usize]) {
        let slices = first..self.trace.slices.len();
        if slices.len() == 1 && share >= HOT_SHARE_ALL {
            self.hot.push((first, key));
            return;
        }
        let whole: f64 = self.trace.slices[slices.clone()].iter().map(|slice| slice.load).sum();
        let at = slices.rev().find(|&at| matches!(&self.starts[at], Cut::At(start) if *start <= key));
        let Some(at) = at else { return };
        let slice = self.trace.slices[at];
        let hot = (whole * share).min(slice.load);
        let rest = (slice.load - hot) / 2.0;
        let mut parts = vec![(Cut::At(key.clone()), hot), (Cut::Behind(key.clone()), rest)];
        let begins = self.starts[at] == Cut::At(key.clone());
        if begins {
            parts[1].1 += rest;
        } else {
            parts.insert(0, (self.starts[at].clone(), rest));
        }
        self.hot.push((at + usize::from(!begins), key));
        let loads = parts.iter().map(|(_, load)| *load).enumerate();
        let heaviest = loads.max_by(|one, other| one.1.total_cmp(&other.1)).map_or(0, |(part, _)| part);
        for place in places {
            match (*place).cmp(&at) {
                Ordering::Less => {}
                Ordering::Equal => *place += heaviest,
                Ordering::Greater => *place += parts.len() - 1,
            }
        }
        // Of each the same part of the runs.
        let divided =
            |&(_, load): &(Cut, f64)| Slice { load, runs: slice.runs * load / slice.load.max(1.0), ..slice };
        self.trace.slices.splice(at..=at, parts.iter().map(divided));
        self.starts.splice(at..=at, parts.into_iter().map(|(start, _)| start));
    }

    fn add_part(&mut self, table: usize, route: &Route, slices: Range<usize>, joins: bool) {
        let (home, partition) = (route.home(), route.partition);
        let core = self.cores.iter().position(|core| *core == home);
        self.homeless |= core.is_none();
        let core = core.unwrap_or_else(|| self.emptiest());
        let (pinned, frozen) = (partition.is_pinned(), partition.is_frozen());
        self.layout.parts.push(Part { table, slices, core, pinned, frozen, joins });
        self.partitions.push((partition.id, home));
    }

    /// The core with the fewest parts so far.
    fn emptiest(&self) -> usize {
        let mut counts = vec![0; self.cores.len().max(1)];
        for part in &self.layout.parts {
            counts[part.core] += 1;
        }
        counts.iter().enumerate().min_by_key(|(_, count)| **count).map_or(0, |(core, _)| core)
    }

    /// Slices in which so much load lies together that no layout of whole ones is a good one: more
    /// than half of what one partition should have (`share_max`), and more than [`UNEVEN`] times what
    /// slices of their partition have in the mean. Not those of one hot key.
    pub fn coarse(&self, share_max: f64) -> Vec<usize> {
        let coarse = COARSE * share_max * self.trace.total();
        let parts = self.layout.parts.iter().filter(|part| !part.frozen);
        let slices = parts.flat_map(|part| {
            let (all, count) = (self.trace.load(part.slices.clone()), part.slices.len() as f64);
            part.slices.clone().filter(move |slice| {
                let load = self.trace.slices[*slice].load;
                // Of few slices none has so much more than the mean: it is that of the others.
                let even = if count > UNEVEN { all / count } else { (all - load) / (count - 1.0) };
                load > coarse.max(UNEVEN * even)
            })
        });
        slices.filter(|slice| !self.hot.iter().any(|(hot, _)| hot == slice)).collect()
    }

    /// Whether nothing of its table comes behind a slice, or before it, where keys descend: there rows are
    /// added.
    pub fn is_end(&self, slice: usize) -> bool {
        let parts = &self.layout.parts;
        let at = self.layout.part_of(slice);
        let (table, slices) = (parts[at].table, &parts[at].slices);
        let is_other = |part: Option<&Part>| part.is_none_or(|part| part.table != table);
        let before = at.checked_sub(1).and_then(|before| parts.get(before));
        slice + 1 == slices.end && is_other(parts.get(at + 1)) || slice == slices.start && is_other(before)
    }

    /// Gathers in the last slice what lies near an end and moves there from one window to the next: rows that
    /// were just added are still asked for, behind those that come next, and what was measured of each slice
    /// is over before any cut there would pay. So nothing is forecast of such cuts.
    pub fn settle_ends(&mut self, windows: &mut [Trace; 2]) {
        let samples = self.measured.samples as f64 / 2.0;
        for at in 0..self.layout.parts.len() {
            let slices = self.layout.parts[at].slices.clone();
            for end in [slices.end - 1, slices.start] {
                if self.is_end(end) && moves_to(end, &slices, windows, samples) {
                    windows.iter_mut().for_each(|window| window.gather_in(end, slices.clone()));
                    self.trace.gather_in(end, slices.clone());
                }
            }
        }
    }

    /// The partition of a slice.
    pub fn partition_of(&self, slice: usize) -> PartitionId {
        self.partitions[self.layout.part_of(slice)].0
    }

    /// What part of the load each partition has.
    pub fn shares(&self) -> Vec<(PartitionId, f64)> {
        let total = self.trace.total().max(1.0);
        let loads = self.layout.parts.iter().map(|part| self.trace.load(part.slices.clone()) / total);
        self.partitions.iter().map(|(partition, _)| *partition).zip(loads).collect()
    }

    /// As many runs that take equally long would say as much of where the load lies (Kish's
    /// effective sample size): a few long ones among many short ones say little.
    pub fn evidence(&self) -> f64 {
        if self.squares > 0.0 { (self.measured.nanos as f64).powi(2) / self.squares } else { 0.0 }
    }

    /// What came since `before` was gathered; `None` if cuts were drawn or keys set apart in between, so
    /// that they have other slices.
    pub fn since(&self, before: &Gathered) -> Option<Gathered> {
        if !self.has_slices_of(before) {
            return None;
        }
        let less = |all: Measured, before: Measured| Measured {
            samples: all.samples.saturating_sub(before.samples),
            runs: all.runs.saturating_sub(before.runs),
            nanos: all.nanos.saturating_sub(before.nanos),
        };
        Some(Gathered {
            trace: self.trace.since(&before.trace),
            measured: less(self.measured, before.measured),
            squares: (self.squares - before.squares).max(0.0),
            references: less(self.references, before.references),
            ..self.clone()
        })
    }

    fn has_slices_of(&self, other: &Gathered) -> bool {
        other.starts == self.starts && other.groups == self.groups && other.partitions == self.partitions
    }

    /// The two windows of a trace: what was gathered when the first had ended, and what came
    /// since. `None` if cuts were drawn in between, so that they have other slices.
    pub fn windows(&self, first: &Gathered) -> Option<[Trace; 2]> {
        self.has_slices_of(first).then(|| [first.trace.clone(), self.trace.since(&first.trace)])
    }

    /// What part of the load each partition has, by where it begins.
    pub fn places(&self) -> BTreeMap<(GroupId, KeyBuf), f64> {
        let total = self.trace.total().max(1.0);
        let place = |part: &Part| {
            let (Cut::At(low) | Cut::Behind(low)) = &self.starts[part.slices.start];
            let load = self.trace.load(part.slices.clone()) / total;
            ((self.groups[part.table], low.clone()), load)
        };
        self.layout.parts.iter().map(place).collect()
    }

    /// Loads of the partitions, in nanoseconds.
    pub fn loads(&self) -> Vec<(PartitionId, f64)> {
        let loads = self.layout.parts.iter().map(|part| self.trace.load(part.slices.clone()));
        self.partitions.iter().map(|(partition, _)| *partition).zip(loads).collect()
    }
}

/// Whether load of some neighbouring slices moves to one of them from the first window to the second.
/// `samples`: of a window.
fn moves_to(end: usize, slices: &Range<usize>, windows: &[Trace; 2], samples: f64) -> bool {
    let share = |window: &Trace| window.slices[end].load / window.load(slices.clone()).max(1.0);
    let all: f64 = windows.iter().map(Trace::total).sum();
    let here: f64 = windows.iter().map(|window| window.load(slices.clone())).sum();
    let seen = (samples * here / all.max(1.0)).max(1.0);
    // Two shares of so many samples each, at most a half.
    let chance = (0.5 / seen).sqrt();
    share(&windows[1]) - share(&windows[0]) > (MOVES_BEYOND_CHANCE * chance).max(MOVES)
}

/// Meetings of all threads, by slices of the trace.
fn meetings(shared: &Shared, places: &BTreeMap<PartitionId, Vec<usize>>, reset: bool) -> Vec<Meeting> {
    let mut sums: BTreeMap<(u32, Vec<usize>), (u64, u64)> = BTreeMap::new();
    let slice_of = |&(partition, slice): &SubPartition| {
        let slices = places.get(&partition)?;
        // Its cuts may have been drawn anew since they met.
        slices.get(usize::from(slice)).or(slices.last()).copied()
    };
    for thread in shared.monitor.threads() {
        let mut thread = thread.lock();
        for count in &thread.meetings {
            // A partition that has gone meanwhile met nobody.
            let slices: Option<Vec<usize>> = count.participants.iter().map(slice_of).collect();
            if let Some(slices) = slices {
                let sum = sums.entry((count.class, slices)).or_default();
                *sum = (sum.0 + count.runs, sum.1 + count.bytes);
            }
        }
        if reset {
            thread.reset();
        }
    }
    let meeting = |((class, slices), (count, bytes))| Meeting {
        class,
        slices,
        count: count as f64,
        bytes: bytes as f64,
    };
    sums.into_iter().map(meeting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> KeyBuf {
        KeyBuf::from_slice(text.as_bytes())
    }

    fn gathered(starts: &[&str], load: f64) -> Gathered {
        let slices = vec![Slice { table: 0, load, runs: load }; starts.len()];
        Gathered {
            starts: starts.iter().map(|start| Cut::At(key(start))).collect(),
            trace: Trace { slices, meetings: Vec::new() },
            ..Gathered::default()
        }
    }

    #[test]
    fn what_was_measured_keeps_its_place_when_a_hot_key_is_set_apart() {
        // Another partition's slice comes first; of the second partition's, the middle is divided.
        let mut gathered = gathered(&["", "d", "h", "p"], 100.0);
        let mut places = [1, 2, 3];
        gathered.set_apart(1, key("k"), 0.3, &mut places);
        let starts = [
            Cut::At(key("")),
            Cut::At(key("d")),
            Cut::At(key("h")),
            Cut::At(key("k")),
            Cut::Behind(key("k")),
            Cut::At(key("p")),
        ];
        assert_eq!(gathered.starts, starts);
        let loads: Vec<f64> = gathered.trace.slices.iter().map(|slice| slice.load).collect();
        assert_eq!(loads, [100.0, 100.0, 5.0, 90.0, 5.0, 100.0]);
        assert_eq!(gathered.hot, [(3, key("k"))]);
        // What met in the middle met at the hot key, most of it; what met behind, behind it.
        assert_eq!(places, [1, 3, 5]);
    }

    /// Two partitions of four slices each, and windows in which the second has these loads.
    fn windows(loads: [[f64; 4]; 2]) -> (Gathered, [Trace; 2]) {
        let window = |loads: [f64; 4]| {
            let loads = [100.0; 4].into_iter().chain(loads);
            let slices = loads.map(|load| Slice { table: 0, load, runs: load });
            Trace { slices: slices.collect(), meetings: Vec::new() }
        };
        let part = |slices: Range<usize>| Part {
            table: 0,
            slices,
            core: 0,
            pinned: false,
            frozen: false,
            joins: false,
        };
        let windows = loads.map(window);
        let mut gathered = gathered(&["a", "b", "c", "d", "e", "f", "g", "h"], 0.0);
        let both = windows[0].slices.iter().zip(&windows[1].slices);
        gathered.trace.slices =
            both.map(|(one, other)| Slice { load: one.load + other.load, ..*one }).collect();
        gathered.layout.parts = vec![part(0..4), part(4..8)];
        gathered.measured.samples = 4_000;
        (gathered, windows)
    }

    #[test]
    fn what_moves_to_an_end_is_not_divided() {
        let loads = |gathered: &Gathered| -> Vec<f64> {
            gathered.trace.slices[4..].iter().map(|slice| slice.load).collect()
        };
        let (mut gathered, mut moving) = windows([[0.0, 100.0, 200.0, 100.0], [0.0, 0.0, 50.0, 350.0]]);
        gathered.settle_ends(&mut moving);
        assert_eq!(loads(&gathered), [0.0, 0.0, 0.0, 800.0]);
        assert_eq!(moving[0].slices[7].load, 400.0);
        assert_eq!(moving[1].slices[7].load, 400.0);
        assert_eq!(gathered.trace.slices[0].load, 200.0, "the other end is left as it is");
        // A hot range near the end that stays where it is can be divided.
        let (mut gathered, mut steady) = windows([[0.0, 100.0, 200.0, 100.0], [0.0, 110.0, 180.0, 110.0]]);
        gathered.settle_ends(&mut steady);
        assert_eq!(loads(&gathered), [0.0, 210.0, 380.0, 210.0]);
        // What moves within does not grow.
        let (mut gathered, mut within) = windows([[0.0, 300.0, 50.0, 50.0], [0.0, 50.0, 300.0, 50.0]]);
        gathered.settle_ends(&mut within);
        assert_eq!(loads(&gathered), [0.0, 350.0, 350.0, 100.0]);
    }

    #[test]
    fn a_hot_key_that_begins_a_slice_leaves_one_part_behind_it() {
        let mut gathered = gathered(&["", "h", "p"], 100.0);
        let mut places = [0, 1, 2];
        gathered.set_apart(0, key("h"), 0.1, &mut places);
        assert_eq!(gathered.starts.len(), 4);
        assert_eq!(gathered.starts[2], Cut::Behind(key("h")));
        // The hot key has 30 of the 100 only.
        assert_eq!(places, [0, 2, 3]);
    }
}
