//! Decisions about invented loads, many times over: whether forecasts come true, and whether chance
//! is left alone. Numbers are drawn; nothing is timed.
//!
//! A window of so many measured runs shows of every slice what it has, give or take chance: how
//! many of the runs came there, how long they took, and that each core runs a little faster or
//! slower than usual in every window (neighbours, clocks of the processor).

use super::balance::Limits;
use super::decide::{Outcome, Terms, Verdict, costs, decide};
use super::model::{Hardware, Layout, Part, Slice, Trace};
use super::settings::MonitorSettings;
use crate::random::RandomStream;

/// Sub-partitions of a partition, as it is cut.
const SLICES: usize = 10;
/// Partitions of a table for each core.
const PARTS: usize = 4;
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
}

impl Trial {
    /// One or two tables, spread evenly over the cores and over the runs.
    fn new(seed: u64, cores: usize, runs: f64) -> Self {
        let mut random = RandomStream::new(seed);
        let tables = 1 + random.below(2) as usize;
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
            hardware: Hardware::uniform(1, cores),
            layout: Layout { parts: (0..tables * parts).map(part).collect() },
            shares: (0..slices).map(|at| (at / (parts * SLICES), 1.0 / slices as f64)).collect(),
            runs,
            spread: 1.0,
            drift: 0.02,
        }
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
            let runs = self.runs * windows * share;
            let chance = self.normal() * (runs * (1.0 + self.spread.powi(2))).sqrt();
            slices.push(Slice { table, load: ((runs + chance) * RUN_NANOS * drifts[core]).max(0.0) });
        }
        Trace { slices, meetings: Vec::new() }
    }

    fn terms(&self, windows: f64) -> Terms {
        let (settings, cores) = (MonitorSettings::default(), self.hardware.cores.len());
        let samples = self.runs * windows;
        Terms {
            limits: Limits {
                share_max: 2.0 / (PARTS * cores) as f64,
                action_price: 0.004,
                parts_max: settings.partitions_per_executor_max * cores,
            },
            gain_min: settings.gain_min,
            samples: samples as u64,
            samples_min: settings.samples_min,
            evidence: samples / (1.0 + self.spread.powi(2)),
            confidence: settings.confidence,
            action_nanos: 100_000.0,
            homeless: false,
        }
    }

    /// Watches as the monitor does; with `judged` unset, as if a search could be believed.
    fn decide(&mut self, judged: bool) -> (Verdict, f64) {
        let layout = self.layout.clone();
        let mut first = self.trace(&layout, 1.0);
        for windows in [1.0, 2.0] {
            let second = self.trace(&layout, windows);
            let both = sum(&first, &second);
            let pair = [first, second];
            let terms = self.terms(2.0 * windows);
            let verdict = decide(&self.hardware, &both, judged.then_some(&pair), &layout, &terms);
            if verdict.outcome != Outcome::Chance || windows > 1.0 {
                return (verdict, 2.0 * windows);
            }
            first = both;
        }
        unreachable!("the second time is the last")
    }

    /// What a decision brought, by the same formula and a trace of afterwards.
    fn measured(&mut self, verdict: &Verdict, windows: f64) -> f64 {
        let trace = self.trace(&verdict.after, windows);
        verdict.costs_before.time / costs(&self.hardware, &trace, &verdict.after).time - 1.0
    }
}

fn sum(one: &Trace, other: &Trace) -> Trace {
    let slices = one.slices.iter().zip(&other.slices);
    let slices = slices.map(|(one, other)| Slice { load: one.load + other.load, ..*one }).collect();
    Trace { slices, meetings: Vec::new() }
}

/// Repartitionings, how many of them came to within a quarter of their forecast, and what they
/// brought less than it in the mean.
fn forecasts(judged: bool) -> (usize, usize, f64) {
    let (mut acted, mut right, mut short) = (0, 0, 0.0);
    for seed in 0..200 {
        let cores = [2, 2, 2, 4][seed as usize % 4];
        let runs = [600.0, 1_500.0, 4_000.0][seed as usize / 4 % 3];
        let mut trial = Trial::new(seed, cores, runs);
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
