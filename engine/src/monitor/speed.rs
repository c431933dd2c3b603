//! How fast the cores are, measured: what the cost model takes for unequal cores.
//!
//! Every few seconds each executor that has been working does a piece of work that is always the
//! same, on its own core (`crate::executor`'s `speed`). The time says how fast the core is against the others; the usual
//! core, whose speed is 1, is the one in the middle, of two the faster.
//!
//! **Noise repartitions nothing.** A core counts as it did until so many measurements in a row,
//! each of them the shortest of several, have all been off by more than [`STEP`], on the same side;
//! then it counts as their median says. Machines whose cores differ by less than that are machines
//! of equal cores: their speeds are 1, exactly.
//!
//! Pure, but for [`Speeds::tick`], which asks and collects.

use std::collections::{BTreeMap, VecDeque};

use super::settings::MonitorSettings;
use crate::engine::Shared;
use crate::executor::Executor;
use crate::id::ExecutorId;

/// Measurements that must agree.
const WINDOW: usize = 8;
/// By what part a speed must be another one, and stay it.
const STEP: f64 = 0.12;
/// Until the first window is full, measurements come so many times as often.
const HURRY: u64 = 10;

/// An executor, its core, and how many nanoseconds the work took there, if it was done.
type Answer = (ExecutorId, Option<usize>, Option<f64>);

/// The cores' speeds as they were measured.
#[derive(Default)]
pub(super) struct Speeds {
    cores: BTreeMap<ExecutorId, Measured>,
    due: u64,
}

/// The last measurements of one executor's core.
struct Measured {
    /// Another core begins anew.
    core: Option<usize>,
    nanos: VecDeque<f64>,
    speed: f64,
}

impl Measured {
    fn of(core: Option<usize>) -> Self {
        Self { core, nanos: VecDeque::new(), speed: 1.0 }
    }

    fn median(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.nanos.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len().checked_sub(1)? / 2).copied()
    }
}

impl Speeds {
    /// Collects what was measured and asks for more, if that is due. Whether a core counts as
    /// faster or slower than before.
    pub fn tick(&mut self, shared: &Shared, settings: &MonitorSettings, now: u64) -> bool {
        if !settings.measures_cores {
            self.cores.clear();
            return set(shared, |_| 1.0);
        }
        if now < self.due {
            return false;
        }
        let executors = shared.executors().iter().filter(|executor| executor.is_active());
        let nanos = |executor: &Executor| executor.take_speed().map(|nanos| nanos as f64);
        let answers: Vec<Answer> =
            executors.map(|executor| (executor.id, executor.core(), nanos(executor))).collect();
        self.take(&answers);
        let active =
            shared.executors().iter().filter(|executor| executor.is_active() && executor.is_driven());
        active.for_each(|executor| executor.ask_speed());
        let full = self.cores.values().all(|core| core.nanos.len() == WINDOW);
        self.due = now + settings.core_interval_nanos / if full { 1 } else { HURRY };
        set(shared, |id| self.speed(id))
    }

    /// What executors have answered: the cores they are on, and how long the work took there.
    fn take(&mut self, answers: &[Answer]) {
        self.cores.retain(|id, _| answers.iter().any(|(known, ..)| known == id));
        for &(id, core, nanos) in answers {
            let measured = self.cores.entry(id).or_insert_with(|| Measured::of(core));
            if measured.core != core {
                *measured = Measured::of(core);
            }
            let Some(nanos) = nanos else { continue };
            measured.nanos.push_back(nanos);
            if measured.nanos.len() > WINDOW {
                measured.nanos.pop_front();
            }
        }
        let mut medians: Vec<f64> = self.cores.values().filter_map(Measured::median).collect();
        medians.sort_by(f64::total_cmp);
        let Some(usual) = medians.len().checked_sub(1).map(|last| medians[last / 2]) else { return };
        for measured in self.cores.values_mut().filter(|measured| measured.nanos.len() == WINDOW) {
            let faster = measured.nanos.iter().all(|nanos| usual / nanos > measured.speed * (1.0 + STEP));
            let slower = measured.nanos.iter().all(|nanos| usual / nanos < measured.speed / (1.0 + STEP));
            let Some(median) = measured.median().filter(|_| faster || slower) else { continue };
            let speed = usual / median;
            let equal = (1.0 / (1.0 + STEP)..=1.0 + STEP).contains(&speed);
            measured.speed = if equal { 1.0 } else { speed };
        }
    }

    fn speed(&self, id: ExecutorId) -> f64 {
        self.cores.get(&id).map_or(1.0, |measured| measured.speed)
    }
}

/// Gives every executor its speed; whether one has another than before.
fn set(shared: &Shared, speed: impl Fn(ExecutorId) -> f64) -> bool {
    let mut changed = false;
    for executor in shared.executors() {
        let speed = speed(executor.id);
        if executor.set_speed(speed) {
            tracing::info!(
                "monitor: the core of executor {} counts as {speed:.2} of a usual one",
                executor.id
            );
            changed = true;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn uniform(random: &mut RandomStream) -> f64 {
        random.below(1 << 30) as f64 / (1_u64 << 30) as f64
    }

    /// Measurements of cores of these speeds: a few percent of noise, clocks that drift for a while,
    /// and now and then something that is in the way of all of a core's tries.
    fn round(random: &mut RandomStream, speeds: &[f64], drift: &mut [f64]) -> Vec<Answer> {
        let mut answers = Vec::new();
        for (at, speed) in speeds.iter().enumerate() {
            drift[at] = 0.95 * drift[at] + 0.01 * (uniform(random) - 0.5);
            let in_the_way = if random.below(10) == 0 { 1.0 + 4.0 * uniform(random) } else { 1.0 };
            let nanos = 10_000.0 / speed * (1.0 + drift[at] + 0.04 * uniform(random)) * in_the_way;
            // A busy machine does not always answer in time.
            let nanos = (random.below(20) > 0).then_some(nanos);
            answers.push((ExecutorId(at as u16), Some(at), nanos));
        }
        answers
    }

    fn shown(speeds: &Speeds, cores: usize) -> Vec<f64> {
        (0..cores).map(|at| speeds.speed(ExecutorId(at as u16))).collect()
    }

    #[test]
    fn equal_cores_stay_equal_whatever_chance_does() {
        for seed in 0..20 {
            let cores = [2, 3, 8, 16][seed as usize % 4];
            let (mut random, mut speeds) = (RandomStream::new(seed), Speeds::default());
            let (real, mut drift) = (vec![1.0; cores], vec![0.0; cores]);
            for number in 0..5_000 {
                speeds.take(&round(&mut random, &real, &mut drift));
                assert_eq!(shown(&speeds, cores), real, "seed {seed}, round {number}");
            }
        }
    }

    #[test]
    fn slow_cores_are_found_and_stay_found() {
        let (mut random, mut speeds) = (RandomStream::new(1), Speeds::default());
        let (real, mut drift) = ([1.0, 1.0, 0.5, 1.6], [0.0; 4]);
        let mut changes = 0;
        let mut last = vec![1.0; 4];
        for _ in 0..5_000 {
            speeds.take(&round(&mut random, &real, &mut drift));
            let now = shown(&speeds, 4);
            changes += usize::from(now != last);
            last = now;
        }
        assert_eq!(last[..2], [1.0, 1.0]);
        assert!((last[2] - 0.5).abs() < 0.05 && (last[3] - 1.6).abs() < 0.16, "{last:?}");
        assert!(changes <= 2, "{changes} changes");
    }

    #[test]
    fn a_core_that_becomes_slow_is_found_and_so_is_its_return() {
        let (mut random, mut speeds) = (RandomStream::new(2), Speeds::default());
        let mut drift = [0.0; 2];
        for (real, expected) in [([1.0, 1.0], 1.0), ([1.0, 0.6], 0.6), ([1.0, 1.0], 1.0)] {
            for _ in 0..100 {
                speeds.take(&round(&mut random, &real, &mut drift));
            }
            let now = shown(&speeds, 2);
            assert_eq!(now[0], 1.0);
            assert!((now[1] - expected).abs() < 0.06, "{now:?}, not {expected}");
        }
        assert_eq!(shown(&speeds, 2), [1.0, 1.0], "and not nearly");
    }

    #[test]
    fn another_core_begins_anew() {
        let (mut random, mut speeds) = (RandomStream::new(3), Speeds::default());
        let mut drift = [0.0; 2];
        for _ in 0..50 {
            speeds.take(&round(&mut random, &[1.0, 0.4], &mut drift));
        }
        assert!(speeds.speed(ExecutorId(1)) < 0.5);
        speeds.take(&[(ExecutorId(0), Some(0), None), (ExecutorId(1), Some(7), None)]);
        assert_eq!(speeds.speed(ExecutorId(1)), 1.0);
        speeds.take(&[(ExecutorId(0), Some(0), None)]);
        assert_eq!(speeds.cores.len(), 1, "one that has retired is forgotten");
    }
}
