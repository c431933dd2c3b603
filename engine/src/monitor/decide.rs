//! The decision: both searches, what they would bring, and whether that is worth it.
//!
//! Pure, like everything it calls. Hysteresis is here: a better layout is taken only if the
//! forecast gain is above the threshold, above what chance alone shows in a trace of so many
//! samples, and above the cost of the actions within [`HORIZON_NANOS`].
//!
//! **The forecast is not the search's own word.** A search finds the layout that fits what was
//! measured, chance included, so that by the same trace it always looks better than it will be. A
//! trace has two windows; what a layout that was found by the one loses in the other, both ways,
//! is what a search believes too much of a window. Of the whole trace, with twice the samples, it
//! believes that divided by √2, and so much is added to the forecast ([`judge`]). How far the two
//! windows are apart in what they promise is what chance shows on this machine, whatever the
//! reason for it (samples, neighbours, clocks of the processor).

use super::balance::{Limits, balance};
use super::model::{Hardware, Layout, Trace, bottleneck, hops, imbalance, synchronization};
use super::settings::MonitorSettings;
use super::synchronize::synchronize;
use crate::engine::PARTITIONS_PER_EXECUTOR;

/// A repartitioning must pay for itself within this time.
pub const HORIZON_NANOS: f64 = 10e9;
/// Islands that pass a line in this time are at a distance of one.
pub const LINE_NANOS: f64 = 100.0;
const LINE_BYTES: f64 = 64.0;
/// What passing a partition to another island for a meeting costs beside the bytes: it waits in a
/// queue there, lent and idle, until the others have come.
const HOP_NANOS: f64 = 5_000.0;
/// The second search may leave so much more of the load out of balance than the first.
const IMBALANCE_FOR_MEETINGS: f64 = 0.05;

/// What an action is expected to take before any was done.
const ACTION_NANOS_FIRST: f64 = 100_000.0;
/// One partition may have so much more than its fair share when groups have as many as they want.
const SHARE_FACTOR: f64 = 2.0;
/// What an action must bring in balance, as a share of the load.
const ACTION_PRICE: f64 = 0.004;

/// What else a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub limits: Limits,
    /// The least gain that is acted on.
    pub gain_min: f64,
    /// Measured runs in the trace, and how many there must be.
    pub samples: u64,
    pub samples_min: u64,
    /// As many runs that take equally long say as much as those.
    pub evidence: f64,
    /// Standard deviations of chance that the gain must be above.
    pub confidence: f64,
    /// What one action has cost so far, in nanoseconds.
    pub action_nanos: f64,
    /// Some partitions are at home where nobody serves them.
    pub homeless: bool,
    /// How much slower or faster cores may be with nothing to follow from it ([`Trace::levelled`]).
    pub drift: f64,
}

impl Terms {
    /// Those of so many executors, of which groups want so many partitions, and of a trace of so many
    /// samples, which say as much as so many equal ones.
    pub fn of(
        executors: usize,
        partitions_wanted: usize,
        settings: &MonitorSettings,
        (samples, evidence): (u64, f64),
        drift: f64,
    ) -> Self {
        let executors = executors.max(1);
        Self {
            limits: Limits {
                share_max: SHARE_FACTOR / (PARTITIONS_PER_EXECUTOR * executors) as f64,
                action_price: ACTION_PRICE,
                parts_max: partitions_wanted.max(settings.partitions_per_executor_max * executors),
            },
            gain_min: settings.gain_min,
            samples,
            samples_min: settings.samples_min,
            evidence,
            confidence: settings.confidence,
            action_nanos: ACTION_NANOS_FIRST,
            homeless: false,
            drift,
        }
    }
}

/// The costs of a layout under a trace. Imbalance as a part of the whole load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    pub imbalance: f64,
    pub synchronization: f64,
    /// Relative to a perfect layout: see [`bottleneck`], with the meetings added.
    pub time: f64,
}

/// What to do, and the numbers that say so.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub outcome: Outcome,
    pub after: Layout,
    pub costs_before: Costs,
    pub costs_after: Costs,
    /// By which part throughput should rise.
    pub gain: f64,
    /// What chance alone may show.
    pub noise: f64,
    /// Nanoseconds of all actions.
    pub price_nanos: f64,
}

/// See [`Verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No better layout was found.
    Kept,
    /// A better one was found, and is not worth it.
    TooSmall,
    /// A better one was found, and chance alone may show as much.
    Chance,
    /// The actions cost more than they bring.
    TooDear,
    /// Too few runs were measured.
    TooFew,
    Repartition,
}

/// Evaluates a trace; `windows` are the two that it is made of, if they can be told apart.
pub fn decide(
    hardware: &Hardware,
    trace: &Trace,
    windows: Option<&[Trace; 2]>,
    layout: &Layout,
    terms: &Terms,
) -> Verdict {
    let level = |trace: &Trace| trace.levelled(hardware, layout, terms.drift);
    let (trace, windows) = (&level(trace), windows.map(|windows| windows.each_ref().map(level)));
    let costs_before = costs(hardware, trace, layout);
    let after = better(hardware, trace, layout, &terms.limits);
    let mut costs_after = costs(hardware, trace, &after);
    let judged = windows.as_ref().map_or(Judged::default(), |it| judge(hardware, it, layout, &terms.limits));
    costs_after.time += judged.optimism / std::f64::consts::SQRT_2;
    let gain = costs_before.time / costs_after.time - 1.0;
    // The busiest core's load is known from its own samples, at least a fair share of all.
    let share = terms.evidence / hardware.cores.len().max(1) as f64;
    let noise = terms.confidence * (1.0 / share.max(1.0).sqrt()).max(judged.spread);
    let price_nanos = actions(layout, &after) as f64 * terms.action_nanos;
    let saved = (1.0 - costs_after.time / costs_before.time) * HORIZON_NANOS;
    let outcome = if terms.homeless {
        Outcome::Repartition
    } else if terms.samples < terms.samples_min {
        Outcome::TooFew
    } else if after == *layout {
        Outcome::Kept
    } else if gain < terms.gain_min {
        Outcome::TooSmall
    } else if gain < noise {
        Outcome::Chance
    } else if saved < price_nanos {
        Outcome::TooDear
    } else {
        Outcome::Repartition
    };
    Verdict { outcome, after, costs_before, costs_after, gain, noise, price_nanos }
}

/// What both searches find, one after the other.
fn better(hardware: &Hardware, trace: &Trace, layout: &Layout, limits: &Limits) -> Layout {
    let balanced = balance(hardware, trace, layout, limits);
    synchronize(hardware, trace, &balanced, IMBALANCE_FOR_MEETINGS * trace.total())
}

/// What two windows say of the search.
#[derive(Clone, Copy, Debug, Default)]
struct Judged {
    /// What a layout found by one window takes longer in the other, in the mean of both ways.
    optimism: f64,
    /// How far the mean of their two gains may be from the truth: half of their distance.
    spread: f64,
}

/// See the module.
fn judge(hardware: &Hardware, windows: &[Trace; 2], layout: &Layout, limits: &Limits) -> Judged {
    let [one, other] = [(0, 1), (1, 0)].map(|(chosen, unseen)| {
        let found = better(hardware, &windows[chosen], layout, limits);
        let time = |window: usize, layout: &Layout| costs(hardware, &windows[window], layout).time;
        let (seen, unseen_time) = (time(chosen, &found), time(unseen, &found));
        (unseen_time - seen, time(unseen, layout) / unseen_time - 1.0)
    });
    Judged { optimism: ((one.0 + other.0) / 2.0).max(0.0), spread: (one.1 - other.1).abs() / 2.0 }
}

/// What a layout costs under a trace.
pub fn costs(hardware: &Hardware, trace: &Trace, layout: &Layout) -> Costs {
    let (assignment, total) = (layout.assignment(), trace.total().max(1.0));
    let synchronization = synchronization(hardware, trace, &assignment);
    Costs {
        imbalance: imbalance(hardware, trace, &assignment) / total,
        synchronization,
        time: bottleneck(hardware, trace, layout) + communication(hardware, trace, &assignment) / total,
    }
}

/// What meetings cost in nanoseconds of the trace: bytes that cross islands, and waits for them.
pub fn communication(hardware: &Hardware, trace: &Trace, assignment: &[usize]) -> f64 {
    synchronization(hardware, trace, assignment) * (LINE_NANOS / LINE_BYTES)
        + hops(hardware, trace, assignment) * HOP_NANOS
}

/// Splits, merges and moves between two layouts of the same slices.
fn actions(before: &Layout, after: &Layout) -> usize {
    let starts =
        |layout: &Layout| -> Vec<usize> { layout.parts.iter().map(|part| part.slices.start).collect() };
    let (had, has) = (starts(before), starts(after));
    let splits = has.iter().filter(|start| !had.contains(start)).count();
    let merges = had.iter().filter(|start| !has.contains(start)).count();
    let was = before.assignment();
    let moves = after.parts.iter().filter(|part| was[part.slices.start] != part.core).count();
    splits + merges + moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::model::{Meeting, Part, Slice};

    fn trace(loads: &[f64]) -> Trace {
        Trace {
            slices: loads.iter().map(|&load| Slice { table: 0, load, runs: load }).collect(),
            meetings: Vec::new(),
        }
    }

    fn layout(bounds: &[(usize, usize)], slices: usize) -> Layout {
        let ends = bounds.iter().skip(1).map(|bound| bound.0).chain([slices]);
        let part = |(&(start, core), end): (&(usize, usize), usize)| Part {
            table: 0,
            slices: start..end,
            core,
            pinned: false,
            frozen: false,
            joins: true,
        };
        Layout { parts: bounds.iter().zip(ends).map(part).collect() }
    }

    fn terms(samples: u64) -> Terms {
        let limits = Limits { share_max: 0.25, action_price: 0.002, parts_max: 32 };
        Terms {
            limits,
            gain_min: 0.05,
            samples,
            samples_min: 100,
            evidence: samples as f64,
            confidence: 1.5,
            action_nanos: 50_000.0,
            homeless: false,
            drift: 0.0,
        }
    }

    /// Four partitions of ten slices, two a core; half of the load in a fifth of the keys.
    fn skewed() -> (Trace, Layout) {
        let loads: Vec<f64> = (0..40).map(|at| if at < 8 { 50.0 / 8.0 } else { 50.0 / 32.0 }).collect();
        (trace(&loads), layout(&[(0, 0), (10, 0), (20, 1), (30, 1)], 40))
    }

    #[test]
    fn skew_is_spread_and_then_left_alone() {
        let hardware = Hardware::uniform(1, 2);
        let (trace, before) = skewed();
        let verdict = decide(&hardware, &trace, None, &before, &terms(2_000));
        assert_eq!(verdict.outcome, Outcome::Repartition);
        assert!(verdict.costs_after.imbalance < 0.05, "{verdict:?}");
        assert!(verdict.gain > 0.2, "{verdict:?}");
        let again = decide(&hardware, &trace, None, &verdict.after, &terms(2_000));
        assert_ne!(again.outcome, Outcome::Repartition, "{again:?}");
    }

    #[test]
    fn a_small_trace_or_a_small_gain_is_not_acted_on() {
        let hardware = Hardware::uniform(1, 2);
        let (trace, before) = skewed();
        assert_eq!(decide(&hardware, &trace, None, &before, &terms(50)).outcome, Outcome::TooFew);
        let even = self::trace(&[10.0, 10.0, 10.5, 10.0]);
        let verdict =
            decide(&hardware, &even, None, &layout(&[(0, 0), (1, 0), (2, 1), (3, 1)], 4), &terms(100));
        assert!(
            matches!(verdict.outcome, Outcome::TooSmall | Outcome::Chance | Outcome::Kept),
            "{verdict:?}"
        );
    }

    #[test]
    fn actions_that_cost_too_much_are_not_taken() {
        let hardware = Hardware::uniform(1, 2);
        let (trace, before) = skewed();
        let dear = Terms { action_nanos: 5e9, ..terms(2_000) };
        assert_eq!(decide(&hardware, &trace, None, &before, &dear).outcome, Outcome::TooDear);
    }

    #[test]
    fn partitions_that_meet_across_islands_are_brought_together() {
        // Two tables of two partitions each; what meets is apart.
        let hardware = Hardware::uniform(2, 1);
        let slice = |table| Slice { table, load: 10e6, runs: 1e3 };
        let meeting =
            |slices: [usize; 2]| Meeting { class: 1, slices: slices.to_vec(), count: 1e3, bytes: 256e3 };
        let trace = Trace {
            slices: vec![slice(0), slice(0), slice(1), slice(1)],
            meetings: vec![meeting([0, 2]), meeting([1, 3])],
        };
        let mut before = layout(&[(0, 0), (1, 1), (2, 1), (3, 0)], 4);
        before.parts[2].table = 1;
        before.parts[3].table = 1;
        let verdict = decide(&hardware, &trace, None, &before, &terms(2_000));
        assert_eq!(verdict.outcome, Outcome::Repartition, "{verdict:?}");
        assert_eq!((verdict.costs_after.synchronization, verdict.costs_after.imbalance), (0.0, 0.0));
    }

    #[test]
    fn homeless_partitions_are_moved_whatever_it_brings() {
        let hardware = Hardware::uniform(1, 2);
        let (trace, before) = skewed();
        let homeless = Terms { homeless: true, ..terms(0) };
        assert_eq!(decide(&hardware, &trace, None, &before, &homeless).outcome, Outcome::Repartition);
    }
}
