//! What a run costs by how far its submitter is from its data, and what it would cost with
//! islands of another size.
//!
//! The size of the islands decides how a program gets to a partition that is at home elsewhere:
//! inside an island its submitter claims the partition and runs the program on the spot, and the
//! lines of the partition come to it; beyond, the program goes through the partition's queue to
//! an executor of the island it is at home on. Both are measured, by what the submitter and the
//! home of the partition have in common ([`Reach`]): on the spot the time of the run, through
//! queues the time from the submission to the end. What is not measured is forecast:
//!
//! - On the spot and farther than now: as at home, and for every line that the run fetches, what
//!   a line costs from there. How many lines that are follows from what runs at home take and
//!   what those take that are measured elsewhere.
//! - Through a queue and nearer than now: as at home, and what the way through a queue takes
//!   beyond the run where it is measured. What runs on the spot take longer there than lines can
//!   explain ([`NANOS_A_LINE_LEAST`]) is not the way's: neighbours who share the cores, threads that
//!   wait for theirs. It stays with them whatever the islands are.
//!
//! Runs over several partitions are left out: they may run anywhere whatever the islands are, and
//! what they cost is in the meetings of the trace.
//!
//! Pure, but for the counting.

use super::counters::Measured;
use crate::id::ExecutorId;
use crate::topology::Reach;

/// Reaches, nearest first.
pub const REACHES: [Reach; 4] = [Reach::Core, Reach::Cache, Reach::Socket, Reach::Machine];
/// Fewer samples of a kind say nothing of its cost.
const SAMPLES_MIN: u64 = 16;
/// A way that took longer was interrupted.
const INTERRUPTED_NANOS: u64 = 10_000_000;
/// The way through a queue, where none was measured: two wakes and a few lines.
const QUEUE_NANOS: f64 = 10_000.0;
/// Where nothing tells how many lines a run fetches: one in so many nanoseconds of it.
const NANOS_A_LINE: f64 = 200.0;
/// However many lines a run fetches: it does something with them at home, too.
const NANOS_A_LINE_LEAST: f64 = 20.0;

/// Measured runs at one partition, counted by the thread that ran them.
#[derive(Debug, Default)]
pub(crate) struct Crossings {
    /// By the executor that the thread drove: one, unless it came to drive another.
    of: Vec<(ExecutorId, Counted)>,
}

#[derive(Debug, Default)]
struct Counted {
    /// On the spot, by the home of the partition.
    direct: Vec<Measured>,
    /// Through a queue, by who submitted.
    queued: Vec<Measured>,
}

impl Crossings {
    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub fn add_direct(&mut self, by: ExecutorId, home: ExecutorId, nanos: u64) {
        add(&mut self.counted(by).direct, home, nanos);
    }

    pub fn add_queued(&mut self, by: ExecutorId, from: ExecutorId, nanos: u64) {
        add(&mut self.counted(by).queued, from, nanos);
    }

    fn counted(&mut self, by: ExecutorId) -> &mut Counted {
        let known = self.of.iter().position(|(executor, _)| *executor == by);
        let at = known.unwrap_or_else(|| {
            self.of.push((by, Counted::default()));
            self.of.len() - 1
        });
        &mut self.of[at].1
    }
}

fn add(counts: &mut Vec<Measured>, at: ExecutorId, nanos: u64) {
    let at = usize::from(at.0);
    if counts.len() <= at {
        counts.resize(at + 1, Measured::default());
    }
    counts[at].add(nanos.min(INTERRUPTED_NANOS), 1);
}

/// Measured runs by reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByReach {
    pub direct: [Measured; 4],
    pub queued: [Measured; 4],
}

impl ByReach {
    /// Adds what a thread counted; `reach` says what two executors have in common.
    pub(crate) fn take(&mut self, counted: &Crossings, reach: impl Fn(ExecutorId, ExecutorId) -> Reach) {
        for (own, counted) in &counted.of {
            for (sums, counts) in [(&mut self.direct, &counted.direct), (&mut self.queued, &counted.queued)] {
                for (other, count) in counts.iter().enumerate().filter(|(_, count)| count.samples > 0) {
                    let sum = &mut sums[reach(*own, ExecutorId(other as u16)) as usize];
                    sum.samples += count.samples;
                    sum.runs += count.runs;
                    sum.nanos += count.nanos;
                }
            }
        }
    }

    /// What came since `before`.
    pub fn since(&self, before: &ByReach) -> ByReach {
        let less = |now: [Measured; 4], before: [Measured; 4]| {
            std::array::from_fn(|at| Measured {
                samples: now[at].samples.saturating_sub(before[at].samples),
                runs: now[at].runs.saturating_sub(before[at].runs),
                nanos: now[at].nanos.saturating_sub(before[at].nanos),
            })
        };
        ByReach { direct: less(self.direct, before.direct), queued: less(self.queued, before.queued) }
    }

    pub fn samples(&self) -> u64 {
        self.direct.iter().chain(&self.queued).map(|measured| measured.samples).sum()
    }

    /// Mean time of a run at home, or of any on the spot.
    fn at_home(&self) -> Option<f64> {
        let direct = || self.direct.iter();
        mean(&self.direct[0]).or_else(|| {
            let all = Measured {
                samples: direct().map(|measured| measured.samples).sum(),
                runs: direct().map(|measured| measured.runs).sum(),
                nanos: direct().map(|measured| measured.nanos).sum(),
            };
            mean(&all)
        })
    }

    /// What the way through a queue to another island takes beyond a run at home.
    pub fn way_through_queue(&self, island: Reach) -> Option<f64> {
        self.way(|reach| reach > island)
    }

    /// What the way through any queue takes.
    fn way_through_any(&self) -> Option<f64> {
        self.way(|_| true)
    }

    fn way(&self, which: impl Fn(Reach) -> bool) -> Option<f64> {
        let queued = REACHES.iter().filter(|reach| which(**reach)).map(|reach| self.queued[*reach as usize]);
        let all = queued.fold(Measured::default(), |sum, queued| Measured {
            samples: sum.samples + queued.samples,
            runs: sum.runs + queued.runs,
            nanos: sum.nanos + queued.nanos,
        });
        Some((mean(&all)? - self.at_home()?).max(0.0))
    }
}

fn mean(measured: &Measured) -> Option<f64> {
    (measured.samples >= SAMPLES_MIN).then(|| measured.nanos as f64 / measured.samples as f64)
}

/// What a forecast is made from.
#[derive(Clone, Copy, Debug)]
pub struct Means<'m> {
    pub measured: &'m ByReach,
    /// The reach of an island now.
    pub island: Reach,
    /// Nanoseconds of a line, by reach.
    pub line_nanos: [f64; 4],
    /// What the way through a queue took when it was measured last.
    pub queue_nanos: Option<f64>,
}

impl Means<'_> {
    /// The mean time of a run if islands had this reach; `None` if too little was measured.
    pub fn time(&self, island: Reach) -> Option<f64> {
        let measured = self.measured;
        let home = measured.at_home()?;
        let (mut samples, mut nanos) = (0.0, 0.0);
        for reach in REACHES {
            let (direct, queued) = (measured.direct[reach as usize], measured.queued[reach as usize]);
            let count = direct.samples + queued.samples;
            if count == 0 {
                continue;
            }
            let was_inside = reach <= self.island;
            let each = if was_inside == (reach <= island) {
                (direct.nanos + queued.nanos) as f64 / count as f64
            } else if was_inside {
                let away = home / NANOS_A_LINE_LEAST * self.line_nanos[reach as usize];
                let longer = mean(&direct).map_or(0.0, |each| (each - home - away).max(0.0));
                home + self.queue() + longer * direct.samples as f64 / count as f64
            } else {
                let direct = home + self.lines(home) * self.line_nanos[reach as usize];
                // As often as at home somebody else holds the partition.
                let busy = self.busy();
                let queued = mean(&queued).unwrap_or(home + self.queue());
                busy * queued + (1.0 - busy) * direct
            };
            samples += count as f64;
            nanos += count as f64 * each;
        }
        (samples > 0.0).then(|| nanos / samples)
    }

    /// What the way through a queue takes, beyond the run. Where none to another island was ever
    /// measured: as long as those take that found their partition held, since they wait for the
    /// same executors.
    fn queue(&self) -> f64 {
        let beyond = self.measured.way_through_queue(self.island).or(self.queue_nanos);
        beyond.or_else(|| self.measured.way_through_any()).unwrap_or(QUEUE_NANOS)
    }

    /// How often a run finds its partition held, inside the island.
    fn busy(&self) -> f64 {
        let inside = REACHES.iter().filter(|reach| **reach <= self.island).map(|reach| *reach as usize);
        let (direct, queued) = inside.fold((0, 0), |(direct, queued), at| {
            (direct + self.measured.direct[at].samples, queued + self.measured.queued[at].samples)
        });
        queued as f64 / (direct + queued).max(1) as f64
    }

    /// How many lines a run fetches from where its partition was last.
    fn lines(&self, home: f64) -> f64 {
        // The farthest tells most.
        let mut known = REACHES[1..].iter().rev().filter_map(|reach| {
            let line = self.line_nanos[*reach as usize];
            let direct = mean(&self.measured.direct[*reach as usize])?;
            (line > 0.0).then(|| (direct - home).max(0.0) / line)
        });
        known.next().unwrap_or(home / NANOS_A_LINE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [f64; 4] = [0.0, 50.0, 100.0, 200.0];

    fn measured(samples: u64, each: u64) -> Measured {
        Measured { samples, runs: samples, nanos: samples * each }
    }

    fn means(measured: &ByReach, island: Reach) -> Means<'_> {
        Means { measured, island, line_nanos: LINES, queue_nanos: None }
    }

    #[test]
    fn queues_that_cost_more_than_lines_ask_for_larger_islands() {
        // Half of the runs go to the other socket: 3 µs at home, 43 µs through a queue.
        let mut found = ByReach::default();
        found.direct[0] = measured(100, 3_000);
        found.queued[3] = measured(100, 43_000);
        let means = means(&found, Reach::Socket);
        assert_eq!(means.time(Reach::Socket), Some(23_000.0));
        // One line in 200 ns are 15 of them, 200 ns each: 6 µs on the spot.
        assert_eq!(means.time(Reach::Machine), Some(4_500.0));
        assert_eq!(found.way_through_queue(Reach::Socket), Some(40_000.0));
    }

    #[test]
    fn runs_that_are_slow_elsewhere_ask_for_smaller_islands() {
        // 10 µs at home, 30 µs on the spot from another core: its lines have to come along.
        let mut found = ByReach::default();
        found.direct[0] = measured(100, 10_000);
        found.direct[1] = measured(100, 30_000);
        let now = means(&found, Reach::Cache);
        assert_eq!(now.time(Reach::Cache), Some(20_000.0));
        // Through a queue it would be at home, and 10 µs on its way as long as nothing is known.
        assert_eq!(now.time(Reach::Core), Some(15_000.0));
        let known = Means { queue_nanos: Some(300_000.0), ..now };
        assert_eq!(known.time(Reach::Core), Some(160_000.0));
        // Executors that have others to serve first keep programs waiting on either way.
        found.queued[1] = measured(100, 210_000);
        assert_eq!(means(&found, Reach::Cache).time(Reach::Core), Some((10.0 + 210.0 + 210.0) / 3.0 * 1e3));
    }

    #[test]
    fn what_lines_cannot_explain_is_not_promised_back() {
        // 100 µs more for a run of 10: 500 lines of 50 ns are 25 of them.
        let mut found = ByReach::default();
        found.direct[0] = measured(100, 10_000);
        found.direct[1] = measured(100, 110_000);
        let now = means(&found, Reach::Cache);
        assert_eq!(now.time(Reach::Cache), Some(60_000.0));
        assert_eq!(now.time(Reach::Core), Some((10.0 + 10.0 + 10.0 + 75.0) / 2.0 * 1e3));
    }

    #[test]
    fn lines_are_counted_where_they_are_measured() {
        // 2 µs more for a line of 50 ns: 40 lines; on the other socket they take 8 µs.
        let mut found = ByReach::default();
        found.direct[0] = measured(50, 5_000);
        found.direct[1] = measured(50, 7_000);
        found.queued[3] = measured(100, 20_000);
        let means = means(&found, Reach::Cache);
        assert_eq!(means.time(Reach::Machine), Some((50.0 * 5e3 + 50.0 * 7e3 + 100.0 * 13e3) / 200.0));
    }

    #[test]
    fn partitions_that_are_held_stay_held_in_larger_islands() {
        let mut found = ByReach::default();
        found.direct[0] = measured(50, 4_000);
        found.queued[0] = measured(50, 30_000);
        found.queued[2] = measured(100, 30_000);
        let means = means(&found, Reach::Cache);
        // 20 lines of 100 ns, but every second time somebody else is there.
        assert_eq!(means.time(Reach::Socket), Some((17_000.0 + 0.5 * 30_000.0 + 0.5 * 6_000.0) / 2.0));
    }

    #[test]
    fn few_samples_say_nothing() {
        let mut found = ByReach::default();
        assert_eq!(means(&found, Reach::Cache).time(Reach::Core), None);
        found.direct[0] = measured(SAMPLES_MIN - 1, 1_000);
        assert_eq!(means(&found, Reach::Cache).time(Reach::Core), None);
    }

    #[test]
    fn threads_count_by_executor_and_are_summed_by_reach() {
        let mut counted = Crossings::default();
        counted.add_direct(ExecutorId(0), ExecutorId(0), 5);
        counted.add_direct(ExecutorId(0), ExecutorId(3), 7);
        counted.add_queued(ExecutorId(0), ExecutorId(1), INTERRUPTED_NANOS * 9);
        // The thread came to drive another executor: what it counted before stays as far as it was.
        counted.add_direct(ExecutorId(3), ExecutorId(3), 5);
        let reach = |one: ExecutorId, other: ExecutorId| match one.0.abs_diff(other.0) {
            0 => Reach::Core,
            1 => Reach::Cache,
            _ => Reach::Machine,
        };
        let mut sums = ByReach::default();
        sums.take(&counted, reach);
        assert_eq!((sums.direct[0], sums.direct[3]), (measured(2, 5), measured(1, 7)));
        assert_eq!(sums.queued[1], measured(1, INTERRUPTED_NANOS));
        let before = sums;
        sums.take(&counted, reach);
        assert_eq!(sums.since(&before), before);
        assert_eq!(sums.samples(), 8);
    }
}
