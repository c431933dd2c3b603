//! The size of the islands, as a decision (`archipel.island = auto`).
//!
//! Once in a while, in quiet phases of [`super::watch`], what runs cost by reach
//! ([`super::crossings`]) and what meetings cost across islands is put together for every size
//! there could be: a core, the cores of a cache, of a socket, of the machine. If another size
//! promises more throughput than the least gain and than chance may show, twice in a row, it is
//! chosen; the topology names other islands from its next reading on, and no partition moves.
//!
//! Whether the forecast was right is seen in what runs take in a window that begins when the
//! executors have their new islands: throughput says nothing of it where clients ask for no more
//! than they get. Where runs take longer, the old size comes back; there, and where they got less
//! than they were promised, the next choice waits, longer each time that happens. What runs took
//! with a size is remembered for a while, and is believed before any forecast.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::crossings::{ByReach, Means, REACHES};
use super::decide::{Costs, LINE_NANOS, communication};
use super::decision::{Decision, Told};
use super::gather::Gathered;
use super::model::{Core, Hardware};
use super::settings::MonitorSettings;
use super::trigger::Reason;
use crate::engine::Shared;
use crate::id::ExecutorId;
use crate::topology::distance::assumed;
use crate::topology::{Granularity, Near, Reach};

/// A window in shortest evaluation intervals.
const WINDOW_INTERVALS: u64 = 2;
/// Windows that the executors may take for their new islands.
const SETTLING_WINDOWS: u32 = 1;
/// After a choice that did no good the next one waits so many windows, twice as many each time.
const HOLD_OFF_WINDOWS: u64 = 16;
const HOLD_OFF_DOUBLINGS_MAX: u32 = 6;
/// Runs that take longer by more than this part, or than chance, speak against a choice.
const FALL: f64 = 0.05;
/// A choice that brought less than this part of its promise was a poor one.
const POOR: f64 = 0.25;
/// For so many windows what runs took with a size is believed.
const BELIEVED_WINDOWS: u64 = 512;
/// A choice that shows in no topology for so many windows has been overruled.
const OVERRULED_WINDOWS: u32 = 32;

/// See the module.
#[derive(Default)]
pub(super) struct IslandSize {
    due: u64,
    began: u64,
    /// Sums and actions when the window began.
    before: Option<(ByReach, u64)>,
    /// What the window before asked for.
    asked: Option<Granularity>,
    queue_nanos: Option<f64>,
    trial: Option<Trial>,
    /// By the reach of an island: what a run took, and when that was measured.
    took: [Option<(f64, u64)>; 4],
    poor: u32,
    held_off_until: u64,
    /// Told of what would be chosen, if it may not be.
    told: Option<Granularity>,
}

/// A choice that has to prove itself.
struct Trial {
    before: Granularity,
    chosen: Granularity,
    decision: u64,
    /// What a run cost before, and by which part that should fall.
    cost: f64,
    promised: f64,
    windows: u32,
    /// Windows in which the executors had not got their new islands.
    absent: u32,
}

/// What a window led to.
pub(super) struct Asked {
    pub decision: Decision,
    /// The size to use from now on.
    pub size: Option<Granularity>,
}

/// What a window showed of an earlier choice.
pub(super) struct Proved {
    pub decision: u64,
    pub gain: f64,
    pub throughput: f64,
}

/// What a window asks and shows.
#[derive(Default)]
pub(super) struct Looked {
    pub asked: Option<Asked>,
    pub proved: Option<Proved>,
}

impl IslandSize {
    /// Whether a window has ended.
    pub fn is_due(&self, now: u64) -> bool {
        now >= self.due
    }

    /// A repartitioning is on its way, or nothing is measured: what comes meanwhile is not the
    /// islands', and what a choice has brought shows when it is over.
    pub fn disturbed(&mut self) {
        self.before = None;
        self.asked = None;
        self.due = 0;
        self.took = [None; 4];
        if let Some(trial) = &mut self.trial {
            trial.windows = 0;
        }
    }

    /// The end of a window, and the beginning of the next. `actions` are those of all partitions,
    /// ever; `gathered` is the trace since the last reset; `next` is the number of a decision.
    pub fn look(
        &mut self,
        shared: &Arc<Shared>,
        settings: &MonitorSettings,
        now: u64,
        (actions, next): (u64, u64),
        gathered: &dyn Fn() -> Gathered,
    ) -> Looked {
        let took = now.saturating_sub(self.began);
        self.began = now;
        self.due = now + WINDOW_INTERVALS * settings.interval_min_nanos;
        let sums = sums(shared);
        let Some((before, actions_before)) = self.before.replace((sums, actions)) else {
            return Looked::default();
        };
        let window = sums.since(&before);
        let throughput = actions.saturating_sub(actions_before) as f64 / (took.max(1) as f64 / 1e9);
        let window = Window { sums: &window, throughput, gathered, next };
        if self.trial.is_some() {
            return self.prove(shared, settings, now, &window);
        }
        Looked { asked: self.choose(shared, settings, now, &window), proved: None }
    }

    /// A window after a choice.
    fn prove(
        &mut self,
        shared: &Shared,
        settings: &MonitorSettings,
        now: u64,
        window: &Window<'_>,
    ) -> Looked {
        let Some(mut trial) = self.trial.take() else { return Looked::default() };
        let Some(found) = trial.shown(self, shared, settings, window) else {
            // It is looked at again, unless it has been overruled.
            let stands = trial.absent <= OVERRULED_WINDOWS && shared.machine.chooses_islands();
            self.trial = stands.then_some(trial);
            return Looked::default();
        };
        self.remember(trial.chosen, found.run, now);
        let gain = trial.cost / found.time.max(1.0) - 1.0;
        let proved = Some(Proved { decision: trial.decision, gain, throughput: window.throughput });
        let fell = gain < -FALL.max(settings.confidence / (window.sums.samples() as f64).sqrt());
        if !fell && gain >= trial.promised * POOR {
            self.poor = 0;
            return Looked { asked: None, proved };
        }
        let length = WINDOW_INTERVALS * settings.interval_min_nanos;
        self.held_off_until = now + (HOLD_OFF_WINDOWS << self.poor) * length;
        self.poor = (self.poor + 1).min(HOLD_OFF_DOUBLINGS_MAX);
        if !fell {
            return Looked { asked: None, proved };
        }
        let decision = Decision {
            throughput: window.throughput,
            samples: window.sums.samples(),
            predicted_gain: found.time / trial.cost.max(1.0) - 1.0,
            ..row(shared, window.next, Told::IslandsBack(trial.before))
        };
        Looked { asked: Some(Asked { decision, size: Some(trial.before) }), proved }
    }

    fn remember(&mut self, size: Granularity, run: f64, now: u64) {
        self.took[reach_of(size) as usize] = Some((run, now));
    }

    fn choose(
        &mut self,
        shared: &Shared,
        settings: &MonitorSettings,
        now: u64,
        window: &Window<'_>,
    ) -> Option<Asked> {
        let size = shared.machine.size();
        let samples = window.sums.samples();
        self.queue_nanos = window.sums.way_through_queue(reach_of(size)).or(self.queue_nanos);
        if !shared.machine.chooses_islands() || samples < settings.samples_min {
            self.asked = None;
            return None;
        }
        let old = BELIEVED_WINDOWS * WINDOW_INTERVALS * settings.interval_min_nanos;
        self.took = self.took.map(|took| took.filter(|(_, at)| now.saturating_sub(*at) < old));
        if now < self.held_off_until {
            self.asked = None;
            return None;
        }
        let forecast = Forecast::new(self, shared, window)?;
        let here = forecast.cost(size)?;
        let others =
            sizes(&forecast.places, size).into_iter().filter_map(|size| Some((forecast.cost(size)?, size)));
        let (there, best) = others.min_by(|one, other| one.0.time.total_cmp(&other.0.time))?;
        let run = forecast.run;
        self.remember(size, run, now);
        let gain = here.time / there.time - 1.0;
        let noise = settings.confidence / (samples as f64).sqrt();
        if gain < settings.gain_min.max(noise) {
            self.asked = None;
            return None;
        }
        if self.asked.replace(best) != Some(best) {
            return None;
        }
        self.asked = None;
        if !settings.adapts && self.told.replace(best) == Some(best) {
            return None;
        }
        let costs = |of: Cost| Costs { imbalance: 0.0, synchronization: of.meetings, time: of.time / run };
        let told = if settings.adapts { Told::Islands(best) } else { Told::Static };
        let decision = Decision {
            throughput: window.throughput,
            samples,
            predicted_gain: gain,
            noise,
            before: costs(here),
            after: costs(there),
            ..row(shared, window.next, told)
        };
        if settings.adapts {
            self.trial = Some(Trial {
                before: size,
                chosen: best,
                decision: window.next,
                cost: here.time,
                promised: gain,
                windows: 0,
                absent: 0,
            });
        }
        Some(Asked { decision, size: settings.adapts.then_some(best) })
    }
}

impl Trial {
    /// What runs cost with what was chosen, once a window shows it.
    fn shown(
        &mut self,
        sizes: &IslandSize,
        shared: &Shared,
        settings: &MonitorSettings,
        window: &Window<'_>,
    ) -> Option<Cost> {
        // The topology is read once a second, which may be many windows.
        if reach_of(shared.machine.size()) != reach_of(self.chosen) {
            self.windows = 0;
            self.absent += 1;
            return None;
        }
        // A load that has ended tells nothing.
        if window.sums.samples() < settings.samples_min {
            return None;
        }
        self.windows += 1;
        if self.windows <= SETTLING_WINDOWS {
            return None;
        }
        Forecast::new(sizes, shared, window)?.cost(self.chosen)
    }
}

/// What was measured since the last look.
struct Window<'w> {
    sums: &'w ByReach,
    /// Actions a second.
    throughput: f64,
    /// The trace since the last reset.
    gathered: &'w dyn Fn() -> Gathered,
    /// The number of a decision.
    next: u64,
}

/// What a run costs with islands of a size.
#[derive(Clone, Copy)]
struct Cost {
    /// Nanoseconds of the run.
    run: f64,
    /// What meetings cost, as a part of the load.
    meetings: f64,
    /// Nanoseconds of the run and its part of the meetings.
    time: f64,
}

/// What a window says of every size.
struct Forecast<'f> {
    means: Means<'f>,
    places: Vec<(ExecutorId, Near, Option<usize>)>,
    gathered: Gathered,
    /// What a run takes now.
    run: f64,
    /// What it took with other sizes, where that is remembered.
    took: [Option<(f64, u64)>; 4],
}

impl<'f> Forecast<'f> {
    fn new(sizes: &IslandSize, shared: &Shared, window: &Window<'f>) -> Option<Self> {
        let (island, places) = (reach_of(shared.machine.size()), places(shared));
        let line_nanos = line_nanos(shared, &places);
        let means = Means { measured: window.sums, island, line_nanos, queue_nanos: sizes.queue_nanos };
        let run = means.time(island)?;
        Some(Self { means, places, gathered: (window.gathered)(), run, took: sizes.took })
    }

    fn cost(&self, size: Granularity) -> Option<Cost> {
        let reach = reach_of(size);
        let took = self.took[reach as usize].filter(|_| reach != self.means.island);
        let run = took.map(|(run, _)| run).or_else(|| self.means.time(reach))?;
        let hardware = with_islands(&self.gathered, &self.places, reach, &self.means.line_nanos);
        let (trace, assignment) = (&self.gathered.trace, self.gathered.layout.assignment());
        // Of no meetings the sum is a negative zero.
        let meetings = communication(&hardware, trace, &assignment) / trace.total().max(1.0) + 0.0;
        Some(Cost { run, meetings, time: run + self.run * meetings })
    }
}

fn row(shared: &Shared, id: u64, told: Told) -> Decision {
    Decision::new(id, shared.clock.wall_micros(), Reason::Communication, told)
}

/// What executors of one island have in common, at least.
fn reach_of(size: Granularity) -> Reach {
    match size {
        Granularity::Core => Reach::Core,
        Granularity::Auto | Granularity::L3 => Reach::Cache,
        Granularity::Socket => Reach::Socket,
        Granularity::Machine => Reach::Machine,
    }
}

/// The executors that have a core, with what they share.
fn places(shared: &Shared) -> Vec<(ExecutorId, Near, Option<usize>)> {
    let active = shared.executors().iter().filter(|executor| executor.is_active());
    active.map(|executor| (executor.id, executor.near(), executor.core())).collect()
}

fn sums(shared: &Shared) -> ByReach {
    let near: Vec<Near> = shared.executors().iter().map(|executor| executor.near()).collect();
    let reach = |one: ExecutorId, other: ExecutorId| match (one == other, near.get(usize::from(one.0))) {
        (true, _) => Reach::Core,
        (false, Some(near_one)) => {
            near.get(usize::from(other.0)).map_or(Reach::Machine, |near_other| near_one.reach(*near_other))
        }
        (false, None) => Reach::Machine,
    };
    let mut sums = ByReach::default();
    for thread in shared.monitor.threads() {
        sums.take(&thread.lock().crossings, reach);
    }
    sums
}

/// What a line costs by reach: the mean of what was measured, or what is assumed.
fn line_nanos(shared: &Shared, places: &[(ExecutorId, Near, Option<usize>)]) -> [f64; 4] {
    let mut known = [(0.0, 0.0); 4];
    for (at, (_, near, core)) in places.iter().enumerate() {
        for (_, far, other) in &places[at + 1..] {
            let cores = core.zip(*other);
            if let Some(nanos) = cores.and_then(|(one, other)| shared.machine.core_distance(one, other)) {
                let (sum, count) = &mut known[near.reach(*far) as usize];
                *sum += nanos;
                *count += 1.0;
            }
        }
    }
    std::array::from_fn(|at| match known[at] {
        (sum, count) if count > 0.0 => sum / count,
        _ => assumed(REACHES[at]),
    })
}

/// The sizes that would make other islands of these executors than `now` does.
fn sizes(places: &[(ExecutorId, Near, Option<usize>)], now: Granularity) -> Vec<Granularity> {
    let count = |size: Granularity| {
        let islands: BTreeSet<(usize, u16, u16)> =
            places.iter().enumerate().map(|(at, (_, near, _))| island(at, *near, reach_of(size))).collect();
        islands.len()
    };
    // Islands of one size are whole islands of the smaller ones: as many are the same.
    let mut seen = BTreeSet::from([count(now)]);
    [Granularity::Core, Granularity::L3, Granularity::Socket, Granularity::Machine]
        .into_iter()
        .filter(|size| seen.insert(count(*size)))
        .collect()
}

/// What tells the islands of a size apart.
fn island(at: usize, near: Near, reach: Reach) -> (usize, u16, u16) {
    match reach {
        Reach::Core => (at, 0, 0),
        Reach::Cache => (0, near.cache, near.package),
        Reach::Socket => (0, 0, near.package),
        Reach::Machine => (0, 0, 0),
    }
}

/// The hardware of a trace with islands of another size.
fn with_islands(
    gathered: &Gathered,
    places: &[(ExecutorId, Near, Option<usize>)],
    reach: Reach,
    line_nanos: &[f64; 4],
) -> Hardware {
    let mut keys: Vec<((usize, u16, u16), Near)> = Vec::new();
    let mut cores = Vec::with_capacity(gathered.cores.len());
    for (at, (executor, core)) in gathered.cores.iter().zip(&gathered.hardware.cores).enumerate() {
        let near = places.iter().find(|(id, ..)| id == executor).map_or(Near::default(), |it| it.1);
        let key = island(at, near, reach);
        let found = keys.iter().position(|(known, _)| *known == key);
        let island = found.unwrap_or_else(|| {
            keys.push((key, near));
            keys.len() - 1
        });
        cores.push(Core { island, speed: core.speed });
    }
    let distance = |from: usize, to: usize| match from == to {
        true => 0.0,
        false => line_nanos[keys[from].1.reach(keys[to].1) as usize] / LINE_NANOS,
    };
    let distances =
        (0..keys.len()).map(|from| (0..keys.len()).map(|to| distance(from, to)).collect()).collect();
    Hardware { cores, distances }
}

/// Chooses a size: the topology names other islands from its next reading on.
pub(super) fn apply(shared: &Shared, size: Granularity) {
    tracing::info!("monitor: an island is {} from now on", size.name());
    shared.machine.choose_islands(size);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(executor: u16, cache: u16, package: u16) -> (ExecutorId, Near, Option<usize>) {
        (ExecutorId(executor), Near { cache, package }, None)
    }

    #[test]
    fn sizes_that_make_the_same_islands_are_one() {
        let chiplets = [place(0, 0, 0), place(1, 0, 0), place(2, 1, 0), place(3, 1, 0)];
        assert_eq!(sizes(&chiplets, Granularity::L3), [Granularity::Core, Granularity::Socket]);
        let one_cache = [place(0, 0, 0), place(1, 0, 0)];
        assert_eq!(sizes(&one_cache, Granularity::L3), [Granularity::Core]);
        assert_eq!(sizes(&one_cache, Granularity::Core), [Granularity::L3]);
        assert_eq!(sizes(&one_cache[..1], Granularity::L3), []);
    }

    #[test]
    fn a_machine_of_larger_islands_has_fewer_of_them_at_their_distances() {
        let places = [place(0, 0, 0), place(1, 1, 0), place(2, 2, 1), place(3, 3, 1)];
        let gathered = Gathered {
            cores: places.iter().map(|place| place.0).collect(),
            hardware: Hardware::uniform(4, 1),
            ..Gathered::default()
        };
        let lines = [0.0, 50.0, 100.0, 200.0];
        let islands = |reach| with_islands(&gathered, &places, reach, &lines);
        let of = |hardware: &Hardware| hardware.cores.iter().map(|core| core.island).collect::<Vec<_>>();
        assert_eq!(of(&islands(Reach::Socket)), [0, 0, 1, 1]);
        assert_eq!(islands(Reach::Socket).distances, [[0.0, 2.0], [2.0, 0.0]]);
        assert_eq!(of(&islands(Reach::Machine)), [0; 4]);
        let cores = islands(Reach::Core);
        assert_eq!((cores.distances[0][1], cores.distances[0][2]), (1.0, 2.0));
    }
}
