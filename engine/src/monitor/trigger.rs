//! When to evaluate: the adaptive interval of ATraPos, and what it misses.
//!
//! ```text
//! every 250 ms   sample: topology event? first full trace? imbalance? mix shifted?  ─► evaluate
//! every 1 … 8 s  interval: throughput within 10 % of the mean of the last five?
//!                yes: the interval doubles           no: back to 1 s              ─► evaluate
//! ```
//!
//! The thesis looks at throughput alone, so a load that is steady from the start is never
//! evaluated, and a shift that leaves the throughput as it was goes unseen. Here the first full
//! trace is evaluated whatever happens, and shares of the partitions are compared with those at the
//! last evaluation. With fewer than five intervals the mean is over those there are, of at least
//! two.
//!
//! Pure: samples in, reasons out; time is a number in the sample.

use std::collections::VecDeque;

use super::counters::measured_of;
use super::settings::MonitorSettings;
use crate::id::PartitionId;

/// Why an evaluation began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    FirstTrace,
    Throughput,
    Imbalance,
    Mix,
    Topology,
    /// The way between executors and their data costs more than it need.
    Communication,
}

impl Reason {
    /// As the views show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::FirstTrace => "first trace",
            Self::Throughput => "throughput changed",
            Self::Imbalance => "imbalance",
            Self::Mix => "mix shifted",
            Self::Topology => "topology changed",
            Self::Communication => "communication",
        }
    }
}

/// One look at a partition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartitionSample {
    pub partition: PartitionId,
    /// Its home, as a position among the executors in use.
    pub core: usize,
    /// Actions since it exists.
    pub actions: u64,
    /// What one takes in the mean.
    pub nanos_each: f64,
}

/// One look at everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    pub at_nanos: u64,
    /// In partition order.
    pub partitions: Vec<PartitionSample>,
    pub cores: usize,
    /// Moves with every change of the executors in use.
    pub topology: u64,
}

/// Samples of a window: with 250 ms between two, a second.
const WINDOW: usize = 5;
const INTERVALS_KEPT: usize = 5;

/// See the module.
#[derive(Debug, Default)]
pub struct Trigger {
    samples: VecDeque<Sample>,
    interval_nanos: u64,
    interval_began: Option<(u64, u64)>,
    throughputs: VecDeque<f64>,
    /// Shares of the partitions since the last evaluation.
    reference: Option<Vec<(PartitionId, f64)>>,
    /// The imbalance that the last evaluation could not, or need not, remove.
    accepted: f64,
    traced: bool,
    topology: Option<u64>,
}

/// What the last window showed.
struct Window {
    actions: u64,
    /// How many of them were measured, about.
    samples: f64,
    shares: Vec<(PartitionId, f64)>,
    imbalance: f64,
}

impl Trigger {
    /// Takes a sample in; whether to evaluate, and why.
    pub fn sample(&mut self, sample: Sample, settings: &MonitorSettings) -> Option<Reason> {
        let moved = self.topology.replace(sample.topology).is_some_and(|before| before != sample.topology);
        self.samples.push_back(sample);
        if self.samples.len() > WINDOW {
            self.samples.pop_front();
        }
        let interval = self.interval(settings);
        if moved {
            return Some(Reason::Topology);
        }
        let window = self.window().filter(|window| window.samples >= settings.samples_min as f64)?;
        if !std::mem::replace(&mut self.traced, true) {
            return Some(Reason::FirstTrace);
        }
        if window.imbalance > settings.imbalance.max(self.accepted * 1.25 + 0.05) {
            return Some(Reason::Imbalance);
        }
        let reference = self.reference.get_or_insert_with(|| window.shares.clone());
        let Some(shift) = distance(&window.shares, reference) else {
            // Partitions came or went: there is nothing to compare with.
            self.reference = Some(window.shares);
            return interval;
        };
        if shift > settings.mix_shift + noise(window.shares.len(), window.actions) {
            return Some(Reason::Mix);
        }
        interval
    }

    /// What is there now was evaluated: it is what later windows are compared with. So much
    /// imbalance is accepted; `false`: the trace was no full one.
    pub fn evaluated(&mut self, settings: &MonitorSettings, accepted: f64, traced: bool) {
        self.reference = None;
        self.accepted = accepted;
        self.traced &= traced;
        self.samples.clear();
        self.throughputs.clear();
        self.interval_began = None;
        self.interval_nanos = settings.interval_min_nanos;
    }

    /// Begins anew, as if nothing had been evaluated yet.
    pub fn restart(&mut self) {
        *self = Self { topology: self.topology, ..Self::default() };
    }

    /// The present interval.
    pub fn interval_nanos(&self) -> u64 {
        self.interval_nanos
    }

    /// Actions a second over the last window.
    pub fn throughput(&self) -> f64 {
        match (self.samples.front(), self.samples.back()) {
            (Some(first), Some(last)) if last.at_nanos > first.at_nanos => {
                let actions = total(last).saturating_sub(total(first));
                actions as f64 / ((last.at_nanos - first.at_nanos) as f64 / 1e9)
            }
            _ => 0.0,
        }
    }

    fn interval(&mut self, settings: &MonitorSettings) -> Option<Reason> {
        let last = self.samples.back()?;
        let (now, actions) = (last.at_nanos, total(last));
        self.interval_nanos =
            self.interval_nanos.clamp(settings.interval_min_nanos, settings.interval_max_nanos);
        let Some((began, before)) = self.interval_began else {
            self.interval_began = Some((now, actions));
            return None;
        };
        if now.saturating_sub(began) < self.interval_nanos {
            return None;
        }
        self.interval_began = Some((now, actions));
        let seconds = (now - began) as f64 / 1e9;
        let done = actions.saturating_sub(before);
        let throughput = done as f64 / seconds;
        let mean = self.throughputs.iter().sum::<f64>() / self.throughputs.len().max(1) as f64;
        let least = settings.samples_min as f64 * measured_of(mean_nanos(last)) as f64;
        let told = self.throughputs.len() >= 2 && (done as f64 >= least || mean * seconds >= least);
        self.throughputs.push_back(throughput);
        if self.throughputs.len() > INTERVALS_KEPT {
            self.throughputs.pop_front();
        }
        if told && (throughput - mean).abs() > settings.deviation * mean {
            self.interval_nanos = settings.interval_min_nanos;
            return Some(Reason::Throughput);
        }
        self.interval_nanos = (self.interval_nanos * 2).min(settings.interval_max_nanos);
        None
    }

    fn window(&self) -> Option<Window> {
        if self.samples.len() < WINDOW {
            return None;
        }
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        let mut loads = vec![0.0; last.cores.max(1)];
        let mut shares = Vec::with_capacity(last.partitions.len());
        let (mut actions, mut samples) = (0, 0.0);
        for partition in &last.partitions {
            let before = first.partitions.binary_search_by_key(&partition.partition, |known| known.partition);
            let Ok(before) = before else { return None };
            let done = partition.actions.saturating_sub(first.partitions[before].actions);
            actions += done;
            samples += done as f64 / measured_of(partition.nanos_each) as f64;
            shares.push((partition.partition, done as f64));
            if let Some(load) = loads.get_mut(partition.core) {
                *load += done as f64 * partition.nanos_each;
            }
        }
        for (_, share) in &mut shares {
            *share /= actions.max(1) as f64;
        }
        let sum: f64 = loads.iter().sum();
        let most = loads.iter().fold(0.0, |most: f64, load| most.max(*load));
        let imbalance = if sum > 0.0 { most * loads.len() as f64 / sum - 1.0 } else { 0.0 };
        Some(Window { actions, samples, shares, imbalance })
    }
}

/// What an action takes in the mean over all partitions.
fn mean_nanos(sample: &Sample) -> f64 {
    let nanos = sample.partitions.iter().map(|partition| partition.actions as f64 * partition.nanos_each);
    nanos.sum::<f64>() / total(sample).max(1) as f64
}

fn total(sample: &Sample) -> u64 {
    sample.partitions.iter().map(|partition| partition.actions).sum()
}

/// Which part of the whole lies elsewhere; `None` if the partitions are others.
pub fn distance(one: &[(PartitionId, f64)], other: &[(PartitionId, f64)]) -> Option<f64> {
    let same = one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.0 == other.0);
    same.then(|| one.iter().zip(other).map(|(one, other)| (one.1 - other.1).abs()).sum::<f64>() / 2.0)
}

/// How far two samples of so many observations in so many parts are apart by chance.
pub fn noise(parts: usize, observations: u64) -> f64 {
    0.6 * (2.0 * parts as f64 / observations.max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds samples of two partitions on two cores, with so many actions each per sample.
    struct Feed {
        trigger: Trigger,
        settings: MonitorSettings,
        at: u64,
        actions: [u64; 2],
        nanos_each: f64,
        topology: u64,
    }

    impl Feed {
        fn new() -> Self {
            let settings = MonitorSettings::default();
            Self {
                trigger: Trigger::default(),
                settings,
                at: 0,
                actions: [0, 0],
                nanos_each: 1_000.0,
                topology: 0,
            }
        }

        fn sample(&mut self, one: u64, other: u64) -> Option<Reason> {
            self.at += self.settings.sample_interval_nanos;
            self.actions[0] += one;
            self.actions[1] += other;
            let partition = |at: usize| PartitionSample {
                partition: PartitionId(at as u32),
                core: at,
                actions: self.actions[at],
                nanos_each: self.nanos_each,
            };
            let partitions = vec![partition(0), partition(1)];
            let sample = Sample { at_nanos: self.at, partitions, cores: 2, topology: self.topology };
            self.trigger.sample(sample, &self.settings)
        }

        /// The reasons within so many samples, each evaluated at once.
        fn run(&mut self, samples: usize, one: u64, other: u64) -> Vec<Reason> {
            let mut reasons = Vec::new();
            for _ in 0..samples {
                if let Some(reason) = self.sample(one, other) {
                    reasons.push(reason);
                    let accepted = one.max(other) as f64 * 2.0 / (one + other) as f64 - 1.0;
                    self.trigger.evaluated(&self.settings, accepted, true);
                }
            }
            reasons
        }
    }

    #[test]
    fn a_steady_load_is_evaluated_once_and_then_left_alone() {
        let mut feed = Feed::new();
        assert_eq!(feed.run(2_400, 1_000, 1_010), [Reason::FirstTrace], "ten minutes");
        assert_eq!(feed.trigger.interval_nanos(), feed.settings.interval_max_nanos);
    }

    #[test]
    fn an_idle_system_is_left_alone() {
        assert_eq!(Feed::new().run(400, 0, 0), []);
        assert_eq!(Feed::new().run(400, 3, 1), []);
    }

    #[test]
    fn few_long_actions_are_a_load_like_many_short_ones() {
        let mut feed = Feed::new();
        feed.nanos_each = 1_000_000.0;
        assert_eq!(feed.run(WINDOW, 200, 50), [Reason::FirstTrace]);
    }

    #[test]
    fn a_change_of_throughput_is_seen_within_the_longest_interval() {
        let mut feed = Feed::new();
        feed.run(400, 1_000, 1_000);
        let longest = (feed.settings.interval_max_nanos / feed.settings.sample_interval_nanos) as usize;
        assert_eq!(feed.run(longest, 500, 500), [Reason::Throughput]);
    }

    #[test]
    fn skew_is_seen_within_a_window_whatever_the_interval() {
        let mut feed = Feed::new();
        feed.run(400, 1_000, 1_000);
        assert_eq!(feed.run(WINDOW, 1_700, 300), [Reason::Imbalance]);
        // It was evaluated: as long as it stays as it is, that is no news.
        assert_eq!(feed.run(400, 1_700, 300), []);
    }

    #[test]
    fn a_shift_that_leaves_throughput_and_balance_is_seen() {
        let mut feed = Feed::new();
        feed.settings.imbalance = 10.0;
        feed.run(400, 1_400, 600);
        assert_eq!(feed.run(WINDOW, 600, 1_400), [Reason::Mix]);
    }

    #[test]
    fn a_change_of_the_executors_is_seen_at_once() {
        let mut feed = Feed::new();
        feed.run(40, 1_000, 1_000);
        feed.topology = 1;
        assert_eq!(feed.sample(1_000, 1_000), Some(Reason::Topology));
    }
}
