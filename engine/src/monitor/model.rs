//! The cost model of ATraPos (section 4.3.2 of the thesis): what a trace costs under a layout.
//!
//! Pure: a trace, the hardware and a layout in, numbers out. Two costs, both to be minimised and
//! never summed (their units differ; the searches take them one after the other):
//!
//! ```text
//! balance          RU = Σ over cores |RU(c) − RU_avg|          RU(c): time of the actions there
//! synchronization  TS = Σ over meetings (islands − 1) · distance · bytes
//! ```
//!
//! Repairs of the thesis's model:
//! - *Unequal cores.* A core has a speed, RU(c) is its load over its speed, and the average is
//!   taken over all speeds; with equal cores this is the thesis's formula.
//! - *More tables than cores, and fewer.* A core may hold any number of partitions of any
//!   tables, and none.
//! - *Contiguity.* A layout is ranges of neighbouring slices, since a partition is a range of
//!   keys; the thesis's free assignment of slices is only in [`super::thesis`].
//! - *What one partition can bear.* Balance alone never sees that one partition is served by
//!   one thread at a time. [`bottleneck`] does, and forecasts are made with it.

use std::collections::BTreeMap;
use std::ops::Range;

/// How much slower or faster than the others a core may be for a second or two, with nothing to be
/// learnt from it: beside neighbours, two equal cores were measured 6 % apart in each second (one
/// standard deviation), and the next but one did not remember it. A window of watching cannot tell
/// that from slices that take longer.
pub const DRIFT: f64 = 0.10;

/// A place for an executor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Core {
    pub island: usize,
    /// Relative to a usual core; a slower one has less than 1.
    pub speed: f64,
}

/// What there is to run on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hardware {
    pub cores: Vec<Core>,
    /// The cost of moving a byte from one island to another, as a multiple of what it costs when
    /// a cache line takes 100 ns; zero on the diagonal.
    pub distances: Vec<Vec<f64>>,
}

/// A sub-partition: the unit of measuring, and of drawing new boundaries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// The co-location group it is a part of (a table, in the thesis's words).
    pub table: usize,
    /// Time of the actions on it, in nanoseconds of the window, as a usual core would have taken.
    pub load: f64,
    /// How many actions that were.
    pub runs: f64,
}

/// A synchronization point: slices whose actions met in one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Meeting {
    /// The transaction class: a routine's number, 0 for single statements.
    pub class: u32,
    /// Indexes into [`Trace::slices`].
    pub slices: Vec<usize>,
    /// How often they met.
    pub count: f64,
    /// Bytes exchanged in all its occurrences.
    pub bytes: f64,
}

/// What was measured in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Slices of one table stand together, in key order.
    pub slices: Vec<Slice>,
    pub meetings: Vec<Meeting>,
}

/// A partition: neighbouring slices of one table, and the core it is at home on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub table: usize,
    pub slices: Range<usize>,
    pub core: usize,
    /// Its home may not change.
    pub pinned: bool,
    /// Its bounds may not change.
    pub frozen: bool,
    /// Its first bound was drawn by the monitor, which may take it away again.
    pub joins: bool,
}

/// A partitioning and a placement: every slice is in exactly one part, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub parts: Vec<Part>,
}

impl Hardware {
    /// `islands` islands of `cores` equal cores each, all the same distance apart.
    pub fn uniform(islands: usize, cores: usize) -> Self {
        let distance = |from: usize, to: usize| if from == to { 0.0 } else { 1.0 };
        Self {
            cores: (0..islands * cores).map(|core| Core { island: core / cores, speed: 1.0 }).collect(),
            distances: (0..islands).map(|from| (0..islands).map(|to| distance(from, to)).collect()).collect(),
        }
    }

    fn speed(&self) -> f64 {
        self.cores.iter().map(|core| core.speed).sum()
    }

    fn distance(&self, from: usize, to: usize) -> f64 {
        let known = self.distances.get(from).and_then(|row| row.get(to)).copied();
        known.unwrap_or(if from == to { 0.0 } else { 1.0 })
    }
}

impl Trace {
    /// The load of some slices.
    pub fn load(&self, slices: Range<usize>) -> f64 {
        self.slices[slices].iter().map(|slice| slice.load).sum()
    }

    /// The load of everything.
    pub fn total(&self) -> f64 {
        self.load(0..self.slices.len())
    }

    /// Puts the load of some slices into one of them.
    pub fn gather_in(&mut self, one: usize, slices: Range<usize>) {
        let load = self.load(slices.clone());
        let runs: f64 = self.slices[slices.clone()].iter().map(|slice| slice.runs).sum();
        for slice in &mut self.slices[slices] {
            (slice.load, slice.runs) = (0.0, 0.0);
        }
        (self.slices[one].load, self.slices[one].runs) = (load, runs);
    }

    /// What came since `before`, an earlier trace of the same slices.
    pub fn since(&self, before: &Trace) -> Trace {
        let slices = self.slices.iter().zip(&before.slices);
        let slice = |(now, before): (&Slice, &Slice)| Slice {
            load: (now.load - before.load).max(0.0),
            runs: (now.runs - before.runs).max(0.0),
            ..*now
        };
        let slices = slices.map(slice).collect();
        let known: BTreeMap<(u32, &[usize]), &Meeting> =
            before.meetings.iter().map(|known| ((known.class, &known.slices[..]), known)).collect();
        let since = |now: &Meeting| {
            let known = known.get(&(now.class, &now.slices[..]));
            let (count, bytes) = known.map_or((0.0, 0.0), |known| (known.count, known.bytes));
            Meeting {
                count: (now.count - count).max(0.0),
                bytes: (now.bytes - bytes).max(0.0),
                ..now.clone()
            }
        };
        Trace { slices, meetings: self.meetings.iter().map(since).collect() }
    }

    /// The trace less what the cores were faster or slower in it, up to `drift`: as if actions on
    /// the slices of each core had taken what actions on their tables took everywhere. Of a drift
    /// without bounds, how often actions came is all that is left.
    pub fn levelled(&self, hardware: &Hardware, layout: &Layout, drift: f64) -> Trace {
        let tables = self.slices.iter().map(|slice| slice.table + 1).max().unwrap_or(0);
        let mut means = vec![(0.0, 0.0); tables];
        for slice in &self.slices {
            means[slice.table].0 += slice.load;
            means[slice.table].1 += slice.runs;
        }
        let assignment = layout.assignment();
        let mut spent = vec![(0.0, 0.0); hardware.cores.len()];
        for (slice, &core) in self.slices.iter().zip(&assignment) {
            let (load, runs) = means[slice.table];
            spent[core].0 += slice.load;
            spent[core].1 += if runs > 0.0 { slice.runs * load / runs } else { slice.load };
        }
        let pace = |core: usize| match spent[core] {
            (load, usual) if usual > 0.0 => (load / usual).clamp(1.0 / (1.0 + drift), 1.0 + drift),
            _ => 1.0,
        };
        let slices = self.slices.iter().zip(&assignment);
        let slices = slices.map(|(slice, &core)| Slice { load: slice.load / pace(core), ..*slice });
        Trace { slices: slices.collect(), meetings: self.meetings.clone() }
    }
}

impl Layout {
    /// The core of every slice.
    pub fn assignment(&self) -> Vec<usize> {
        self.parts.iter().flat_map(|part| part.slices.clone().map(|_| part.core)).collect()
    }

    /// The part that holds a slice.
    pub fn part_of(&self, slice: usize) -> usize {
        self.parts.partition_point(|part| part.slices.end <= slice)
    }

    /// Every slice is in exactly one part, each part is of one table, and cores exist.
    ///
    /// # Panics
    /// If that is not so: a search broke the layout, and no action may follow from it.
    pub fn assert_covers(&self, trace: &Trace, hardware: &Hardware) {
        let mut next = 0;
        for part in &self.parts {
            assert!(part.slices.start == next && part.slices.end > next, "parts follow one another");
            next = part.slices.end;
            assert!(trace.slices[part.slices.clone()].iter().all(|slice| slice.table == part.table));
            assert!(part.core < hardware.cores.len(), "a part is at home on a core");
        }
        assert_eq!(next, trace.slices.len(), "parts cover all slices");
    }
}

/// RU(c) of every core: the load of its slices over its speed.
pub fn utilization(hardware: &Hardware, trace: &Trace, assignment: &[usize]) -> Vec<f64> {
    let mut loads = vec![0.0; hardware.cores.len()];
    for (slice, &core) in trace.slices.iter().zip(assignment) {
        loads[core] += slice.load;
    }
    loads.iter().zip(&hardware.cores).map(|(load, core)| load / core.speed).collect()
}

/// RU_avg: what every core would have if all had the same.
pub fn average(hardware: &Hardware, trace: &Trace) -> f64 {
    trace.total() / hardware.speed().max(f64::MIN_POSITIVE)
}

/// RU(S, W): how far the cores are from their average, summed.
pub fn imbalance(hardware: &Hardware, trace: &Trace, assignment: &[usize]) -> f64 {
    let average = average(hardware, trace);
    utilization(hardware, trace, assignment).iter().map(|used| (used - average).abs()).sum()
}

/// How much more than the average the busiest core has.
pub fn overload(hardware: &Hardware, trace: &Trace, assignment: &[usize]) -> f64 {
    let average = average(hardware, trace);
    let busiest = utilization(hardware, trace, assignment).into_iter().fold(0.0, f64::max);
    if average > 0.0 { busiest / average - 1.0 } else { 0.0 }
}

/// Cost(s): what one meeting costs: nothing on one island.
pub fn meeting_cost(hardware: &Hardware, meeting: &Meeting, assignment: &[usize]) -> f64 {
    let islands = islands_of(hardware, meeting, assignment);
    let count = islands.len();
    if count < 2 {
        return 0.0;
    }
    let pairs = islands
        .iter()
        .enumerate()
        .flat_map(|(at, &from)| islands[at + 1..].iter().map(move |&to| (from, to)));
    let distances: f64 = pairs.map(|(from, to)| hardware.distance(from, to)).sum();
    let distance = distances / (count * (count - 1) / 2) as f64;
    (count - 1) as f64 * distance * meeting.bytes
}

/// TS(S, W): what all meetings cost.
pub fn synchronization(hardware: &Hardware, trace: &Trace, assignment: &[usize]) -> f64 {
    trace.meetings.iter().map(|meeting| meeting_cost(hardware, meeting, assignment)).sum()
}

/// How often partitions were passed to another island for a meeting.
pub fn hops(hardware: &Hardware, trace: &Trace, assignment: &[usize]) -> f64 {
    let hops = |meeting: &Meeting| {
        let islands = islands_of(hardware, meeting, assignment).len();
        islands.saturating_sub(1) as f64 * meeting.count
    };
    trace.meetings.iter().map(hops).sum()
}

/// The islands of a meeting, in order.
pub fn islands_of(hardware: &Hardware, meeting: &Meeting, assignment: &[usize]) -> Vec<usize> {
    let mut islands: Vec<usize> =
        meeting.slices.iter().map(|&slice| hardware.cores[assignment[slice]].island).collect();
    islands.sort_unstable();
    islands.dedup();
    islands
}

/// What a transaction that finds its partition busy waits, in transactions: the rest of the
/// running one, half of it in the mean.
const WAIT_OF_A_CONFLICT: f64 = 0.5;

/// The time the trace takes, relative to a perfect spread: the busiest core over the average,
/// and what transactions wait for partitions that another core is serving. With `n` cores busy, a
/// transaction meets its own partition held by another core with probability `(n − 1) · Σ share²`.
/// 1 is perfect; twice as much takes twice as long.
pub fn bottleneck(hardware: &Hardware, trace: &Trace, layout: &Layout) -> f64 {
    let total = trace.total();
    if total <= 0.0 {
        return 1.0;
    }
    let busiest = 1.0 + overload(hardware, trace, &layout.assignment());
    let squares: f64 =
        layout.parts.iter().map(|part| (trace.load(part.slices.clone()) / total).powi(2)).sum();
    let conflicts = ((hardware.cores.len() - 1) as f64 * squares).min(hardware.cores.len() as f64);
    busiest + WAIT_OF_A_CONFLICT * conflicts
}

/// Tables and loads of slices that never meet.
#[cfg(test)]
pub(super) fn trace(loads: &[(usize, f64)]) -> Trace {
    let slices = loads.iter().map(|&(table, load)| Slice { table, load, runs: load }).collect();
    Trace { slices, meetings: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imbalance_is_the_distance_of_the_cores_from_their_average() {
        // Loads 30, 10 and 20 on three cores: the average is 20, so |10| + |−10| + 0.
        let trace = trace(&[(0, 20.0), (0, 10.0), (0, 10.0), (1, 20.0)]);
        let hardware = Hardware::uniform(1, 3);
        assert_eq!(average(&hardware, &trace), 20.0);
        assert_eq!(utilization(&hardware, &trace, &[0, 0, 1, 2]), [30.0, 10.0, 20.0]);
        assert_eq!(imbalance(&hardware, &trace, &[0, 0, 1, 2]), 20.0);
        assert_eq!(imbalance(&hardware, &trace, &[0, 1, 1, 2]), 0.0);
    }

    #[test]
    fn a_slow_core_is_full_earlier() {
        let mut hardware = Hardware::uniform(1, 2);
        hardware.cores[1].speed = 0.5;
        let trace = trace(&[(0, 20.0), (0, 10.0)]);
        // 30 of load on speeds of 1.5: 20 for each; the slow core has that with a load of 10.
        assert_eq!(imbalance(&hardware, &trace, &[0, 1]), 0.0);
        assert_eq!(imbalance(&hardware, &trace, &[1, 0]), (40.0 - 20.0) + (20.0 - 10.0));
    }

    #[test]
    fn a_meeting_costs_by_islands_distance_and_bytes() {
        let mut hardware = Hardware::uniform(3, 1);
        hardware.distances = vec![vec![0.0, 1.0, 2.0], vec![1.0, 0.0, 3.0], vec![2.0, 3.0, 0.0]];
        let mut trace = trace(&[(0, 1.0), (0, 1.0), (1, 1.0)]);
        trace.meetings = vec![Meeting { class: 1, slices: vec![0, 1, 2], count: 1.0, bytes: 10.0 }];
        // Three islands: (3 − 1) · (1 + 2 + 3) / 3 · 10.
        assert_eq!(synchronization(&hardware, &trace, &[0, 1, 2]), 40.0);
        // Two islands at distance 3: (2 − 1) · 3 · 10.
        assert_eq!(synchronization(&hardware, &trace, &[1, 1, 2]), 30.0);
        assert_eq!(synchronization(&hardware, &trace, &[1, 1, 1]), 0.0);
    }

    #[test]
    fn what_came_since_is_the_difference() {
        let meeting = |class, count, bytes| Meeting { class, slices: vec![0, 1], count, bytes };
        let mut first = trace(&[(0, 5.0), (1, 7.0)]);
        first.meetings = vec![meeting(1, 2.0, 20.0)];
        let mut both = trace(&[(0, 15.0), (1, 7.0)]);
        both.meetings = vec![meeting(1, 5.0, 60.0), meeting(2, 1.0, 8.0)];
        let mut second = trace(&[(0, 10.0), (1, 0.0)]);
        second.meetings = vec![meeting(1, 3.0, 40.0), meeting(2, 1.0, 8.0)];
        assert_eq!(both.since(&first), second);
    }

    #[test]
    fn one_partition_with_everything_takes_as_long_as_one_core() {
        let hardware = Hardware::uniform(1, 2);
        let trace = trace(&[(0, 10.0), (0, 10.0)]);
        let part = |slices: Range<usize>, core| Part {
            table: 0,
            slices,
            core,
            pinned: false,
            frozen: false,
            joins: true,
        };
        let whole = Layout { parts: vec![part(0..2, 0)] };
        let halves = Layout { parts: vec![part(0..1, 0), part(1..2, 1)] };
        // One core has twice the average, and every second transaction finds the other's claim.
        assert_eq!(bottleneck(&hardware, &trace, &whole), 2.0 + 0.5);
        assert_eq!(bottleneck(&hardware, &trace, &halves), 1.0 + 0.5 * 0.5);
        assert_eq!(bottleneck(&hardware, &Trace::default(), &Layout::default()), 1.0);
    }
}
