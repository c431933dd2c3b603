//! Decisions about invented loads, many times over: whether forecasts come true, and whether chance
//! is left alone. Numbers are drawn; nothing is timed.
//!
//! A window of so many measured runs shows of every slice what it has, give or take chance: how
//! many of the runs came there, how long they took, and that each core runs a little faster or
//! slower than usual in every window (neighbours, clocks of the processor).
//!
//! What a trial leaves out, and others test: whether two windows agree at all (`compare`), holding
//! off, and the way from a layout to actions (`engine/tests/monitor.rs`). A slice's load is spread
//! evenly within it, so that a cut is where its forecast takes it to be.

use super::decide::{Outcome, Terms, Verdict, costs, decide};
use super::model::{Core, DRIFT, Hardware, Layout, Meeting, Part, Slice, Trace};
use super::settings::MonitorSettings;
use crate::engine::PARTITIONS_PER_EXECUTOR as PARTS;
use crate::random::RandomStream;

/// Sub-partitions of a partition, as it is cut.
const SLICES: usize = 10;
/// What a run takes in the mean, in nanoseconds.
const RUN_NANOS: f64 = 10_000.0;

struct Trial {
    random: RandomStream,
    hardware: Hardware,
    layout: Layout,
    /// Of every slice: its table, and which part of the runs comes there.
    shares: Vec<(usize, f64)>,
    /// Measured runs in a window.
    runs: f64,
    /// How much the times of runs differ, relative to their mean.
    spread: f64,
    /// How much cores differ from window to window.
    drift: f64,
    /// Every run meets the same slice of the other table.
    meets: bool,
    /// What cores may be slower or faster with nothing to follow from it.
    levelled: f64,
}

impl Trial {
    /// One or two tables, spread evenly over the cores and over the runs.
    fn new(seed: u64, cores: usize, runs: f64) -> Self {
        let mut random = RandomStream::new(seed);
        let tables = 1 + random.below(2) as usize;
        Self::of(random, tables, Hardware::uniform(1, cores), runs)
    }

    fn of(random: RandomStream, tables: usize, hardware: Hardware, runs: f64) -> Self {
        let cores = hardware.cores.len();
        let parts = PARTS * cores;
        let slices = tables * parts * SLICES;
        let part = |at: usize| Part {
            table: at / parts,
            slices: at * SLICES..(at + 1) * SLICES,
            core: at % parts / PARTS,
            pinned: false,
            frozen: false,
            joins: true,
        };
        Self {
            random,
            hardware,
            layout: Layout { parts: (0..tables * parts).map(part).collect() },
            shares: (0..slices).map(|at| (at / (parts * SLICES), 1.0 / slices as f64)).collect(),
            runs,
            spread: 1.0,
            drift: 0.02,
            meets: false,
            levelled: DRIFT,
        }
    }

    /// Two tables whose runs meet, at home on two islands, always on the one that the other is not.
    fn apart(seed: u64, runs: f64) -> Self {
        let mut trial = Self::of(RandomStream::new(seed), 2, Hardware::uniform(2, 1), runs);
        trial
            .layout
            .parts
            .iter_mut()
            .filter(|part| part.table == 1)
            .for_each(|part| part.core = 1 - part.core);
        Self { meets: true, ..trial }
    }

    /// One core is slower than the others, and known to be: what is measured there counts as what
    /// a usual core would have taken.
    fn slow(&mut self, core: usize, speed: f64) {
        self.hardware.cores[core] = Core { speed, ..self.hardware.cores[core] };
    }

    /// Some part of the runs goes to some neighbouring keys.
    fn skew(&mut self) {
        let (slices, from) = (self.shares.len(), self.random.below(self.shares.len() as u64) as usize);
        let width = (slices as f64 * (0.05 + 0.45 * self.uniform())).ceil();
        let part = 0.2 + 0.6 * self.uniform();
        for (at, (_, share)) in self.shares.iter_mut().enumerate() {
            let inside = (at + slices - from) % slices < width as usize;
            *share = *share * (1.0 - part) + if inside { part / width } else { 0.0 };
        }
    }

    fn uniform(&mut self) -> f64 {
        self.random.below(1 << 40) as f64 / (1_u64 << 40) as f64
    }

    /// Drawn by the normal distribution.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// What so many windows together show if every slice is at home where `layout` has it.
    fn trace(&mut self, layout: &Layout, windows: f64) -> Trace {
        let drifts: Vec<f64> = (0..self.hardware.cores.len())
            .map(|_| 1.0 + self.drift * self.normal() / windows.sqrt())
            .collect();
        let assignment = layout.assignment();
        let mut slices = Vec::with_capacity(assignment.len());
        for (at, core) in assignment.into_iter().enumerate() {
            let (table, share) = self.shares[at];
            let expected = self.runs * windows * share;
            let runs = (expected + self.normal() * expected.sqrt()).max(0.0);
            let chance = self.normal() * self.spread * expected.sqrt();
            let load = ((runs + chance) * RUN_NANOS * drifts[core]).max(0.0);
            slices.push(Slice { table, load, runs });
        }
        let meetings = if self.meets { self.meetings(windows) } else { Vec::new() };
        Trace { slices, meetings }
    }

    /// What met in so many windows, give or take chance.
    fn meetings(&mut self, windows: f64) -> Vec<Meeting> {
        let half = self.shares.len() / 2;
        let meeting = |at: usize| {
            let runs = self.runs * windows * (self.shares[at].1 + self.shares[half + at].1);
            let count = (runs + self.normal() * runs.sqrt()).max(0.0);
            Meeting { class: 1, slices: vec![at, half + at], count, bytes: 256.0 * count }
        };
        (0..half).map(meeting).collect()
    }

    /// As the monitor has them: a trial with thresholds of its own would prove nothing about it.
    fn terms(&self, windows: f64) -> Terms {
        let cores = self.hardware.cores.len();
        let samples = self.runs * windows;
        let evidence = samples / (1.0 + self.spread.powi(2));
        let settings = MonitorSettings::default();
        Terms::of(cores, PARTS * cores, &settings, (samples as u64, evidence), self.levelled)
    }

    /// Watches as the monitor does: what may be chance is looked at for as long again, once. With
    /// `judged` unset, as if a search could be believed. The verdict, and the windows it is from.
    fn decide(&mut self, judged: bool) -> (Verdict, f64) {
        let first = self.trace(&self.layout.clone(), 1.0);
        let (verdict, both) = self.look(first, 1.0, judged);
        if verdict.outcome != Outcome::Chance {
            return (verdict, 2.0);
        }
        (self.look(both, 2.0, judged).0, 4.0)
    }

    /// The verdict by a first window and one more of the same length, and both together.
    fn look(&mut self, first: Trace, windows: f64, judged: bool) -> (Verdict, Trace) {
        let layout = self.layout.clone();
        let second = self.trace(&layout, windows);
        let both = sum(&first, &second);
        let (pair, terms) = ([first, second], self.terms(2.0 * windows));
        (decide(&self.hardware, &both, judged.then_some(&pair), &layout, &terms), both)
    }

    /// What a decision brought, by the same formula and a trace of afterwards.
    fn measured(&mut self, verdict: &Verdict, windows: f64) -> f64 {
        let trace = self.trace(&verdict.after, windows);
        let trace = trace.levelled(&self.hardware, &verdict.after, self.levelled);
        verdict.costs_before.time / costs(&self.hardware, &trace, &verdict.after).time - 1.0
    }
}

fn sum(one: &Trace, other: &Trace) -> Trace {
    let slices = one.slices.iter().zip(&other.slices);
    let slice = |(one, other): (&Slice, &Slice)| Slice {
        load: one.load + other.load,
        runs: one.runs + other.runs,
        ..*one
    };
    let slices = slices.map(slice).collect();
    let meetings = one.meetings.iter().zip(&other.meetings);
    let meetings = meetings.map(|(one, other)| Meeting {
        count: one.count + other.count,
        bytes: one.bytes + other.bytes,
        ..one.clone()
    });
    Trace { slices, meetings: meetings.collect() }
}

/// Repartitionings, how many of them came to within a quarter of their forecast, and what they
/// brought less than it in the mean.
fn forecasts(judged: bool) -> (usize, usize, f64) {
    forecasts_on(judged, &|_| {})
}

/// The same of trials that `alter` has changed.
fn forecasts_on(judged: bool, alter: &dyn Fn(&mut Trial)) -> (usize, usize, f64) {
    let (mut acted, mut right, mut short) = (0, 0, 0.0);
    for seed in 0..200 {
        let cores = [2, 2, 2, 4][seed as usize % 4];
        let runs = [600.0, 1_500.0, 4_000.0][seed as usize / 4 % 3];
        let mut trial = Trial::new(seed, cores, runs);
        alter(&mut trial);
        trial.skew();
        // Skew comes, and what is left of it is looked at again.
        for _ in 0..3 {
            let (verdict, windows) = trial.decide(judged);
            if verdict.outcome != Outcome::Repartition {
                break;
            }
            let measured = trial.measured(&verdict, windows);
            acted += 1;
            right += usize::from((measured / verdict.gain - 1.0).abs() <= 0.25);
            short += verdict.gain - measured;
            trial.layout = verdict.after;
        }
    }
    (acted, right, short / acted as f64)
}

#[test]
fn forecasts_come_true() {
    let mut told = String::new();
    let mut share = |judged: bool| {
        let (acted, right, short) = forecasts(judged);
        told += &format!(
            "judged by unseen windows: {judged}: {right} of {acted} within a quarter, {:.1} % too much in the \
             mean; ",
            100.0 * short
        );
        (acted, right as f64 / acted as f64, short)
    };
    let believed = share(false);
    let judged = share(true);
    println!("{told}");
    assert!(judged.0 >= 100, "{told}");
    assert!(judged.1 >= 0.8, "{told}");
    assert!(judged.2.abs() < believed.2.abs(), "{told}");
}

#[test]
fn forecasts_come_true_where_cores_are_slower_for_a_while() {
    // As much apart, in a second, as two cores of a machine with neighbours were measured.
    let right = |levelled: f64| {
        let (acted, right, _) = forecasts_on(true, &|trial| (trial.drift, trial.levelled) = (0.06, levelled));
        (acted, right as f64 / acted as f64)
    };
    let (believed, levelled) = (right(0.0), right(DRIFT));
    println!("cores believed: {believed:?}; levelled: {levelled:?}");
    assert!(levelled.0 >= 100 && levelled.1 >= 0.85, "{levelled:?}");
    assert!(believed.1 < levelled.1 - 0.1, "{believed:?} and {levelled:?}");
}

#[test]
fn chance_is_left_alone() {
    let mut acted = Vec::new();
    for seed in 0..100 {
        let cores = [2, 4][seed as usize % 2];
        let runs = [300.0, 1_500.0, 4_000.0][seed as usize % 3];
        let mut trial = Trial::new(seed, cores, runs);
        // A busy machine.
        trial.drift = 0.03;
        for round in 0..10 {
            let (verdict, _) = trial.decide(true);
            if verdict.outcome == Outcome::Repartition {
                acted.push((seed, round, verdict.gain, verdict.noise));
            }
        }
    }
    assert!(acted.len() <= 5, "{} of 1,000 evaluations of an even load act: {acted:?}", acted.len());
}

#[test]
fn what_meets_is_brought_together_and_that_brings_what_was_forecast() {
    const SEEDS: u64 = 30;
    let (mut right, mut left, mut all, mut told) = (0, 0.0, 0.0, Vec::new());
    for seed in 0..SEEDS {
        let mut trial = Trial::apart(seed, [600.0, 4_000.0][seed as usize % 2]);
        let (verdict, windows) = trial.decide(true);
        assert_eq!(verdict.outcome, Outcome::Repartition, "seed {seed}");
        left += verdict.costs_after.synchronization;
        all += verdict.costs_before.synchronization;
        let measured = trial.measured(&verdict, windows);
        right += u64::from((measured / verdict.gain - 1.0).abs() <= 0.25);
        told.push((measured, verdict.gain));
    }
    // Balance comes first, and where few runs are known it cuts some that meet apart.
    assert!(left < 0.25 * all, "{left} of {all} is left");
    assert!(right * 5 >= SEEDS * 4, "{right} of {SEEDS} within a quarter: measured and forecast {told:?}");
}

#[test]
fn a_slow_core_gets_its_share_and_is_then_left_alone() {
    for seed in 0..40 {
        let cores = [2, 4][seed as usize % 2];
        let mut trial = Trial::new(seed, cores, 4_000.0);
        trial.slow(1, 0.5);
        let mut acted = 0;
        for _ in 0..10 {
            let (verdict, _) = trial.decide(true);
            if verdict.outcome == Outcome::Repartition {
                acted += 1;
                trial.layout = verdict.after;
            }
        }
        let loads = trial.shares.iter().zip(trial.layout.assignment());
        let slow: f64 = loads.filter(|(_, core)| *core == 1).map(|((_, share), _)| share).sum();
        let fair = 0.5 / (cores as f64 - 0.5);
        assert!((slow / fair - 1.0).abs() < 0.15, "seed {seed}: {slow:.3} of the load, {fair:.3} is fair");
        assert!((1..=2).contains(&acted), "seed {seed}: {acted} repartitionings");
    }
}
