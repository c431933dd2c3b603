//! The size of the islands, as a decision (`archipel.island = auto`).
//!
//! Once in a while, in quiet phases of [`super::watch`], what runs cost by reach
//! ([`super::crossings`]) and what meetings cost across islands is put together for every size
//! there could be: a core, the cores of a cache, of a socket, of the machine. If another size
//! promises more throughput than the least gain and than chance may show, twice in a row, it is
//! chosen; the topology names other islands from its next reading on, and no partition moves.
//!
//! Whether the forecast was right is seen in the throughput of a window that begins when the
//! executors have their new islands. Where it has fallen, the old size comes back, and the next
//! choice waits, longer each time that happens.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::crossings::{ByReach, Means, REACHES};
use super::decide::{Costs, communication};
use super::decision::{Decision, Told};
use super::gather::{Gathered, LINE_NANOS};
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
/// Throughput that has fallen by more than this part speaks against a choice.
const FALL: f64 = 0.05;

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
    poor: u32,
    held_off_until: u64,
    /// Told of what would be chosen, if it may not be.
    told: Option<Granularity>,
}

/// A choice that has to prove itself.
struct Trial {
    before: Granularity,
    decision: u64,
    throughput: f64,
    windows: u32,
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

    /// A repartitioning is on its way: what is measured meanwhile is not the islands', and what a
    /// choice has brought shows when it is over.
    pub fn disturbed(&mut self) {
        self.before = None;
        self.asked = None;
        self.due = 0;
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
        if self.trial.is_some() {
            return self.prove(shared, settings, now, throughput, next);
        }
        let asked = self.choose(shared, settings, now, (&window, throughput), next, gathered);
        Looked { asked, proved: None }
    }

    /// A window after a choice.
    fn prove(
        &mut self,
        shared: &Shared,
        settings: &MonitorSettings,
        now: u64,
        throughput: f64,
        next: u64,
    ) -> Looked {
        let Some(trial) = &mut self.trial else { return Looked::default() };
        trial.windows += 1;
        if trial.windows <= SETTLING_WINDOWS {
            return Looked::default();
        }
        let Some(trial) = self.trial.take() else { return Looked::default() };
        let gain = throughput / trial.throughput.max(1.0) - 1.0;
        let proved = Some(Proved { decision: trial.decision, gain, throughput });
        if gain > -FALL {
            self.poor = 0;
            return Looked { asked: None, proved };
        }
        let window = WINDOW_INTERVALS * settings.interval_min_nanos;
        self.held_off_until = now + (HOLD_OFF_WINDOWS << self.poor) * window;
        self.poor = (self.poor + 1).min(HOLD_OFF_DOUBLINGS_MAX);
        let mut decision = row(shared, next, throughput);
        decision.verdict = Told::IslandsBack(trial.before);
        decision.predicted_gain = trial.throughput / throughput.max(1.0) - 1.0;
        Looked { asked: Some(Asked { decision, size: Some(trial.before) }), proved }
    }

    fn choose(
        &mut self,
        shared: &Arc<Shared>,
        settings: &MonitorSettings,
        now: u64,
        (window, throughput): (&ByReach, f64),
        next: u64,
        gathered: &dyn Fn() -> Gathered,
    ) -> Option<Asked> {
        let size = shared.following.size();
        let island = reach_of(size);
        self.queue_nanos = window.way_through_queue(island).or(self.queue_nanos);
        if !shared.following.chooses_islands()
            || now < self.held_off_until
            || window.samples() < settings.samples_min
        {
            self.asked = None;
            return None;
        }
        let places = places(shared);
        let means = Means {
            measured: window,
            island,
            line_nanos: line_nanos(shared, &places),
            queue_nanos: self.queue_nanos,
        };
        let gathered = gathered();
        let run = means.time(island)?;
        let load = gathered.trace.total().max(1.0);
        let cost = |size: Granularity| -> Option<(f64, f64)> {
            let hardware = with_islands(&gathered, &places, reach_of(size), &means.line_nanos);
            let meetings = communication(&hardware, &gathered.trace, &gathered.layout.assignment());
            // Of no meetings the sum is a negative zero.
            let share = meetings / load + 0.0;
            Some((means.time(reach_of(size))? + run * share, share))
        };
        let (now_costs, meetings_now) = cost(size)?;
        let others = sizes(&places, size).into_iter().filter_map(|size| Some((cost(size)?, size)));
        let ((best_costs, meetings_then), best) =
            others.min_by(|one, other| one.0.0.total_cmp(&other.0.0))?;
        let gain = now_costs / best_costs - 1.0;
        let noise = settings.confidence / (window.samples() as f64).sqrt();
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
        let mut decision = row(shared, next, throughput);
        decision.samples = window.samples();
        decision.predicted_gain = gain;
        decision.noise = noise;
        decision.before = Costs { imbalance: 0.0, synchronization: meetings_now, time: now_costs / run };
        decision.after = Costs { imbalance: 0.0, synchronization: meetings_then, time: best_costs / run };
        decision.verdict = if settings.adapts { Told::Islands(best) } else { Told::Static };
        if settings.adapts {
            self.trial = Some(Trial { before: size, decision: next, throughput, windows: 0 });
        }
        Some(Asked { decision, size: settings.adapts.then_some(best) })
    }
}

fn row(shared: &Shared, id: u64, throughput: f64) -> Decision {
    Decision {
        id,
        at: shared.clock.wall_micros(),
        reason: Reason::Communication,
        verdict: Told::Static,
        watched_nanos: 0,
        interval_nanos: 0,
        throughput,
        samples: 0,
        before: Costs::default(),
        after: Costs::default(),
        measured: None,
        predicted_gain: 0.0,
        measured_gain: None,
        throughput_after: None,
        noise: 0.0,
        price_nanos: 0.0,
        splits: 0,
        merges: 0,
        moves: 0,
        refused: 0,
        acted_nanos: None,
        advice: None,
    }
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
            if let Some(nanos) = cores.and_then(|(one, other)| shared.following.core_distance(one, other)) {
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
    tracing::info!("monitor: an island is a {} from now on", size.name());
    shared.following.choose_islands(size);
}

/// Actions of all partitions, ever.
pub(super) fn actions(shared: &Shared) -> u64 {
    let routing = shared.load_routing();
    let groups = routing.groups().into_iter().filter(|group| *group != crate::table::REFERENCE_GROUP);
    let routes = groups.flat_map(|group| routing.routes(group));
    routes.map(|route| route.partition.actions.load(Ordering::Relaxed)).sum()
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
