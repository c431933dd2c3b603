//! How far cores are from each other: what it takes until a cache line that one has written is
//! read by another.
//!
//! Measured once on a machine, when an engine opens: two threads, each pinned to its core, write
//! one line in turns. What was found is kept in the store under the machine's fingerprint (its
//! processor and the cores that may be used), so that later starts take it from there. A pair whose
//! cores others used meanwhile shows it by batches that differ: it is not believed, and measured
//! again at the next start. Where nothing could be measured — synthetic machines, cores that came
//! later, pairs beyond [`PAIRS_MAX`] — distances are assumed by what the cores share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crossbeam::utils::CachePadded;

use super::mask::bind_thread;
use super::placement::{Machine, Near, Reach};
use crate::clock::Clock;
use crate::id::IslandId;
use crate::log::LogStore;
use crate::spawn::Spawn;

/// What a line costs that stays in the last-level cache, in nanoseconds, where it is not measured.
const ASSUMED_IN_CACHE: f64 = 50.0;
/// … that crosses a socket.
const ASSUMED_IN_SOCKET: f64 = 100.0;
/// … that crosses the machine.
const ASSUMED_ACROSS: f64 = 200.0;

/// More pairs are not measured: those of the first cores of every two islands come first.
const PAIRS_MAX: usize = 300;
/// The best of so many batches counts, each of so many turns there and back.
const BATCHES: u32 = 5;
const TURNS: u32 = 300;
/// So many batches must be near the best one…
const STEADY_BATCHES: usize = 3;
/// … that is, take at most so many times as long.
const STEADY_SPREAD: f64 = 1.25;
/// A pair that takes longer is given up: others use its cores. One of a quiet machine takes one or
/// two milliseconds.
const PAIR_NANOS: u64 = 20_000_000;
/// No start waits longer for all pairs together.
const ALL_NANOS: u64 = 500_000_000;
/// Looks at the line between two looks at the clock.
const LOOKS: u32 = 1 << 12;

const DISTANCES_KEY: &str = "core-distances";

/// Nanoseconds between pairs of cores, as measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoreDistances {
    /// By the smaller number and the larger one.
    pairs: BTreeMap<(usize, usize), f64>,
}

/// What it costs to pass a line from one island to another, or inside one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IslandDistance {
    pub from: IslandId,
    pub to: IslandId,
    pub nanos: f64,
    /// Otherwise it is assumed.
    pub measured: bool,
}

impl CoreDistances {
    /// What was measured between two cores.
    pub fn nanos(&self, one: usize, other: usize) -> Option<f64> {
        self.pairs.get(&(one.min(other), one.max(other))).copied()
    }

    /// What the store remembers of this machine, and what is measured now of the rest. No start
    /// fails for want of it.
    pub(crate) fn learn(
        machine: &Machine,
        store: &dyn LogStore,
        spawn: &dyn Spawn,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        if machine.synthetic || !machine.pinned || machine.places.len() < 2 {
            return Self::default();
        }
        let fingerprint = fingerprint(machine);
        let kept = store.meta_get(DISTANCES_KEY).unwrap_or_else(|error| {
            tracing::warn!("the distances of cores cannot be read: {error}");
            None
        });
        let mut known = kept.and_then(|bytes| Self::parse(&bytes, &fingerprint)).unwrap_or_default();
        let mut missing = pairs(machine);
        missing.retain(|pair| !known.pairs.contains_key(pair));
        if missing.is_empty() {
            return known;
        }
        let began = clock.monotonic_nanos();
        let measured = Self::measure(missing, spawn, clock);
        let took = clock.monotonic_nanos().saturating_sub(began);
        let nanos = || measured.pairs.values().copied();
        if !measured.pairs.is_empty() {
            tracing::info!(
                "measured the distances of {} pairs of cores in {:.0} ms: {:.0} to {:.0} ns a cache line",
                measured.pairs.len(),
                took as f64 / 1e6,
                nanos().fold(f64::INFINITY, f64::min),
                nanos().fold(0.0, f64::max),
            );
            known.pairs.extend(measured.pairs);
            if let Err(error) = store.meta_put(DISTANCES_KEY, known.write(&fingerprint).as_bytes()) {
                tracing::warn!("the distances of cores cannot be kept: {error}");
            }
        }
        known
    }

    fn measure(pairs: Vec<(usize, usize)>, spawn: &dyn Spawn, clock: &Arc<dyn Clock>) -> Self {
        let end = clock.monotonic_nanos() + ALL_NANOS;
        let in_time = |_: &(usize, usize)| clock.monotonic_nanos() < end;
        let measured = pairs.into_iter().take_while(in_time).filter_map(|(one, other)| {
            let nanos = turns(one, other, spawn, clock)?;
            Some(((one, other), nanos))
        });
        Self { pairs: measured.collect() }
    }

    fn write(&self, fingerprint: &str) -> String {
        let mut text = format!("{fingerprint}\n");
        for ((one, other), nanos) in &self.pairs {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{one} {other} {nanos:.2}");
        }
        text
    }

    /// `None` if it was another machine, or is not readable.
    fn parse(bytes: &[u8], fingerprint: &str) -> Option<Self> {
        let mut lines = std::str::from_utf8(bytes).ok()?.lines();
        if lines.next()? != fingerprint {
            return None;
        }
        let pair = |line: &str| {
            let mut words = line.split(' ');
            let cores = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some((cores, words.next()?.parse().ok()?))
        };
        Some(Self { pairs: lines.map(pair).collect::<Option<_>>()? })
    }

    /// The mean over the pairs of two groups of cores.
    fn mean(&self, ones: &[usize], others: &[usize]) -> Option<f64> {
        let pairs = ones.iter().flat_map(|one| others.iter().map(move |other| (*one, *other)));
        let known: Vec<f64> = pairs.filter_map(|(one, other)| self.nanos(one, other)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }
}

impl Machine {
    /// The distances of all islands, and inside each.
    pub fn island_distances(&self, cores: &CoreDistances) -> Vec<IslandDistance> {
        let cpus =
            |places: &[usize]| -> Vec<usize> { places.iter().map(|&at| self.places[at].cpu).collect() };
        let members: Vec<(IslandId, Vec<usize>, Near)> = self
            .islands
            .iter()
            .filter_map(|island| {
                let near = self.places[*island.places.first()?].near;
                Some((island.id, cpus(&island.places), near))
            })
            .collect();
        let mut distances = Vec::with_capacity(members.len() * members.len());
        for (from, ones, near) in &members {
            for (to, others, far) in &members {
                // The cores of a synthetic machine are not where it says.
                let measured = if self.synthetic { None } else { cores.mean(ones, others) };
                let reach = if from == to { Reach::Cache } else { near.reach(*far) };
                let nanos = measured.unwrap_or_else(|| assumed(reach));
                distances.push(IslandDistance { from: *from, to: *to, nanos, measured: measured.is_some() });
            }
        }
        distances
    }
}

/// What a line costs between cores that have this in common.
pub(crate) fn assumed(reach: Reach) -> f64 {
    match reach {
        Reach::Core => 0.0,
        Reach::Cache => ASSUMED_IN_CACHE,
        Reach::Socket => ASSUMED_IN_SOCKET,
        Reach::Machine => ASSUMED_ACROSS,
    }
}

/// What tells this machine, and the part of it that may be used, from others.
fn fingerprint(machine: &Machine) -> String {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let model = model.trim_start_matches(['\t', ' ', ':']);
    // Steady ones only: what earlier versions have kept need not be.
    let mut text = format!("steady; {model}; {} cores;", machine.cores_seen);
    for place in &machine.places {
        // Writing to a string does not fail.
        let _ = write!(text, " {}/{}/{}", place.cpu, place.near.cache, place.near.package);
    }
    text
}

/// The pairs to measure, the most telling first: across islands, then inside them, then the rest.
fn pairs(machine: &Machine) -> Vec<(usize, usize)> {
    let cpu = |at: usize| machine.places[at].cpu;
    let firsts: Vec<usize> =
        machine.islands.iter().filter_map(|island| island.places.first()).map(|&at| cpu(at)).collect();
    let mut pairs = Vec::new();
    let mut seen = BTreeSet::new();
    let mut add = |one: usize, other: usize| {
        let pair = (one.min(other), one.max(other));
        if one != other && pairs.len() < PAIRS_MAX && seen.insert(pair) {
            pairs.push(pair);
        }
    };
    for (at, &one) in firsts.iter().enumerate() {
        firsts[at + 1..].iter().for_each(|&other| add(one, other));
    }
    for island in &machine.islands {
        if let [first, second, ..] = island.places[..] {
            add(cpu(first), cpu(second));
        }
    }
    for one in 0..machine.places.len() {
        (one + 1..machine.places.len()).for_each(|other| add(cpu(one), cpu(other)));
    }
    pairs
}

/// The line two threads write in turns: odd numbers the one, even ones the other.
struct Line(CachePadded<AtomicU32>);

const OVER: u32 = u32::MAX;

impl Line {
    /// Waits for a turn; `false` if it does not come before `end`.
    fn wait(&self, turn: u32, clock: &dyn Clock, end: u64) -> bool {
        loop {
            for _ in 0..LOOKS {
                match self.0.load(Ordering::Acquire) {
                    seen if seen == turn => return true,
                    OVER => return false,
                    _ => std::hint::spin_loop(),
                }
            }
            if clock.monotonic_nanos() >= end {
                return false;
            }
        }
    }
}

/// Nanoseconds of one transfer between two cores; `None` if they could not be had, or others had
/// them, too.
fn turns(one: usize, other: usize, spawn: &dyn Spawn, clock: &Arc<dyn Clock>) -> Option<f64> {
    let line = Arc::new(Line(CachePadded::new(AtomicU32::new(0))));
    let end = clock.monotonic_nanos() + PAIR_NANOS;
    let (answers, answers_clock) = (line.clone(), clock.clone());
    let answering = spawn
        .spawn(
            "distance".to_owned(),
            Box::new(move || {
                let bound = bind_thread(0, &BTreeSet::from([other]));
                let mut turn = 1;
                while bound && answers.wait(turn, &*answers_clock, end) {
                    answers.0.store(turn + 1, Ordering::Release);
                    turn += 2;
                }
                answers.0.store(OVER, Ordering::Release);
            }),
        )
        .ok()?;
    let (asks, clock) = (line.clone(), clock.clone());
    let best = Arc::new(parking_lot::Mutex::new(None));
    let found = best.clone();
    let asking = spawn.spawn(
        "distance".to_owned(),
        Box::new(move || {
            if bind_thread(0, &BTreeSet::from([one])) {
                *found.lock() = ask(&asks, &*clock, end);
            }
            asks.0.store(OVER, Ordering::Release);
        }),
    );
    match asking {
        // It ends, found or not.
        Ok(asking) => drop(asking.join()),
        Err(_) => line.0.store(OVER, Ordering::Release),
    }
    let _ = answering.join();
    best.lock().take()
}

fn ask(line: &Line, clock: &dyn Clock, end: u64) -> Option<f64> {
    let mut batches = Vec::with_capacity(BATCHES as usize);
    let mut turn = 1;
    // The first batch waits for the other thread to arrive, and does not count.
    for batch in 0..=BATCHES {
        let began = clock.monotonic_nanos();
        for _ in 0..TURNS {
            line.0.store(turn, Ordering::Release);
            if !line.wait(turn + 1, clock, end) {
                return None;
            }
            turn += 2;
        }
        let now = clock.monotonic_nanos();
        if now >= end {
            break;
        }
        if batch > 0 {
            batches.push(now.saturating_sub(began) as f64 / f64::from(2 * TURNS));
        }
    }
    steady(&batches)
}

/// The best of some batches, if it is no matter of luck.
fn steady(batches: &[f64]) -> Option<f64> {
    let best = batches.iter().copied().reduce(f64::min)?;
    let near = batches.iter().filter(|nanos| **nanos <= best * STEADY_SPREAD).count();
    (near >= STEADY_BATCHES).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::super::placement::{Bounds, CoreSeen, Granularity, place};
    use super::*;
    use crate::clock::SystemClock;
    use crate::log::MemoryStore;
    use crate::spawn::{NoSpawn, SystemSpawn};
    use crate::topology::{Hardware, Topology};

    /// Two sockets of two caches of two cores each.
    fn machine(granularity: Granularity) -> Machine {
        let core = |core: usize| CoreSeen {
            threads: vec![core],
            cache: Some(core / 2),
            package: core / 4,
            memory_node: core / 4,
        };
        place(&(0..8).map(core).collect::<Vec<_>>(), &Bounds::default(), granularity)
    }

    fn distances(pairs: &[(usize, usize, f64)]) -> CoreDistances {
        CoreDistances { pairs: pairs.iter().map(|&(one, other, nanos)| ((one, other), nanos)).collect() }
    }

    fn between(found: &[IslandDistance], from: u16, to: u16) -> (f64, bool) {
        let pair = found.iter().find(|it| (it.from, it.to) == (IslandId(from), IslandId(to)));
        pair.map(|it| (it.nanos, it.measured)).expect("every pair has a distance")
    }

    #[test]
    fn islands_are_as_far_as_their_cores_were_found_to_be() {
        let cores = distances(&[(0, 2, 80.0), (1, 3, 100.0), (0, 1, 40.0), (0, 4, 300.0)]);
        let found = machine(Granularity::L3).island_distances(&cores);
        assert_eq!(found.len(), 16);
        assert_eq!(between(&found, 0, 1), (90.0, true));
        assert_eq!(between(&found, 1, 0), (90.0, true), "both ways are the same");
        assert_eq!(between(&found, 0, 0), (40.0, true));
        assert_eq!(between(&found, 0, 2), (300.0, true));
        // What was not measured is assumed by what is shared.
        assert_eq!(between(&found, 2, 3), (ASSUMED_IN_SOCKET, false));
        assert_eq!(between(&found, 1, 3), (ASSUMED_ACROSS, false));
        let found = machine(Granularity::Core).island_distances(&CoreDistances::default());
        assert_eq!(between(&found, 0, 1), (ASSUMED_IN_CACHE, false));
    }

    #[test]
    fn pairs_across_islands_come_first_and_none_comes_twice() {
        let pairs = pairs(&machine(Granularity::L3));
        assert_eq!(pairs.len(), 8 * 7 / 2);
        assert_eq!(pairs[..6], [(0, 2), (0, 4), (0, 6), (2, 4), (2, 6), (4, 6)]);
        assert_eq!(pairs[6], (0, 1));
    }

    #[test]
    fn batches_that_differ_are_not_believed() {
        assert_eq!(steady(&[52.0, 50.0, 51.0, 300.0, 900.0]), Some(50.0));
        assert_eq!(steady(&[50.0, 51.0, 300.0, 310.0, 900.0]), None, "two are luck");
        assert_eq!(steady(&[50.0, 90.0, 130.0, 170.0, 210.0]), None);
        assert_eq!(steady(&[]), None);
    }

    #[test]
    fn a_start_does_without_what_cannot_be_kept() {
        let machine = machine(Granularity::L3);
        let (store, clock) = (MemoryStore::new(), Arc::new(SystemClock::new()) as Arc<dyn Clock>);
        let known = distances(&[(0, 2, 80.0)]);
        store.meta_put(DISTANCES_KEY, known.write(&fingerprint(&machine)).as_bytes()).expect("kept");
        // The others are missing and cannot be measured here: those known stay.
        assert_eq!(CoreDistances::learn(&machine, &store, &NoSpawn, &clock), known);
        store.meta_put(DISTANCES_KEY, b"\xff not text").expect("kept");
        assert_eq!(CoreDistances::learn(&machine, &store, &NoSpawn, &clock), CoreDistances::default());
    }

    #[test]
    fn this_machine_is_measured_once() {
        let machine = Hardware::real(Granularity::Auto).read().expect("hwloc reads this machine");
        if machine.places.len() < 2 {
            return;
        }
        let (store, clock) = (MemoryStore::new(), Arc::new(SystemClock::new()) as Arc<dyn Clock>);
        let learn = |spawn: &dyn Spawn| {
            let began = clock.monotonic_nanos();
            let found = CoreDistances::learn(&machine, &store, spawn, &clock);
            let took = clock.monotonic_nanos() - began;
            assert!(took < 10 * ALL_NANOS, "a start waits {took} ns, on a machine that others use, too");
            found
        };
        assert_eq!(learn(&NoSpawn), CoreDistances::default(), "nothing can be measured without threads");
        let found = learn(&SystemSpawn);
        // On a machine that others use a pair may be given up, but a line takes its time.
        assert!(found.pairs.values().all(|nanos| (1.0..100_000.0).contains(nanos)), "{found:?}");
        if !found.pairs.is_empty() {
            let again = learn(&NoSpawn);
            assert_eq!(again.pairs.len(), found.pairs.len(), "it is remembered");
            let mut other = machine.clone();
            other.cores_seen += 1;
            let other = CoreDistances::learn(&other, &store, &NoSpawn, &clock);
            assert_eq!(other, CoreDistances::default(), "another machine is not this one");
        }
    }
}
