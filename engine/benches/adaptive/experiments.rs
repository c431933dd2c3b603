//! The experiments.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use archipel_engine::random::RandomStream;
use archipel_engine::{Decision, Repartition, RepartitionKind};
use serde_json::{Value, json};

use crate::plot::{Line, Plot, write};
use crate::verdict::Verdicts;
use crate::world::{COLUMNS, Kind, READS, Work, World, group, key};

/// What all experiments take.
pub struct Options {
    pub executors: u16,
    /// Length of a phase.
    pub seconds: u64,
    /// What a cache line from another island costs more than it does here.
    pub line_nanos: u64,
    pub out: PathBuf,
}

pub struct Experiment {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(&Options),
}

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment { name: "workload", about: "the workload changes twice (Fig. 4.13)", run: workload },
    Experiment {
        name: "skew",
        about: "half of the requests go to a fifth of the data (Fig. 4.14)",
        run: skew,
    },
    Experiment {
        name: "frequent",
        about: "the workload changes more and more often (Fig. 4.16)",
        run: frequent,
    },
    Experiment { name: "steady", about: "ten minutes of one load, for --seconds 8", run: steady },
    Experiment {
        name: "actions",
        about: "10 to 80 rearrangements on 800,000 rows (Fig. 4.12)",
        run: actions,
    },
    Experiment { name: "overhead", about: "what measuring costs (Table 4.2)", run: overhead },
    Experiment {
        name: "measured",
        about: "reads of a row for callgrind, 10,000 for each of --seconds",
        run: measured,
    },
    Experiment { name: "unmeasured", about: "the same without measuring", run: unmeasured },
    Experiment { name: "select", about: "dependent reads of two tables (Fig. 4.7)", run: crate::select::run },
    Experiment {
        name: "islands",
        about: "0 to 100 % of the requests go anywhere, for every size of islands (Figs. 3.7, 3.16)",
        run: crate::islands::run,
    },
    Experiment {
        name: "memory",
        about: "memory follows half of the partitions to another socket",
        run: crate::memory::run,
    },
];

pub const STEP: Duration = Duration::from_millis(100);
pub const ROWS: i64 = 100_000;

fn one(table: usize, row: i64, writes: bool, class: u32) -> Work {
    let mut rows = [None, None];
    rows[table] = Some(row);
    Work { class, rows, writes, further_reads: READS }
}

pub fn uniform(random: &mut RandomStream) -> i64 {
    random.below(ROWS as u64) as i64
}

/// Half of the draws in the first fifth of the keys.
fn skewed(random: &mut RandomStream) -> i64 {
    if random.below(2) == 0 { random.below(ROWS as u64 / 5) as i64 } else { uniform(random) }
}

type Draw = fn(&mut RandomStream) -> Work;

/// A name, its length in seconds, and what transactions come.
type Phase = (&'static str, u64, Draw);

/// What a run over some phases came to.
struct Watched {
    /// Transactions a second of every phase, in steps.
    rates: Vec<Vec<f64>>,
    /// When each phase began, in microseconds since 2000.
    began: Vec<i64>,
    decisions: Vec<Decision>,
    /// Microseconds of all actions.
    acted_us: f64,
    /// What was measured once the phases were over.
    at_the_end: Vec<f64>,
}

/// As the engine's clock counts them.
fn wall_micros() -> i64 {
    const EPOCH: Duration = Duration::from_secs(946_684_800);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH + EPOCH);
    now.map_or(0, |since| since.as_micros() as i64)
}

impl Watched {
    /// When the last repartitioning of a phase was done, in seconds from its beginning; `None` if
    /// there was none.
    fn followed(&self, phase: usize) -> Option<f64> {
        let (from, until) = (self.began[phase], self.began.get(phase + 1).copied().unwrap_or(i64::MAX));
        let done = self.decisions.iter().filter_map(|decision| {
            let end = decision.at + decision.acted_nanos? as i64 / 1_000;
            (from..until).contains(&decision.at).then(|| (end - from) as f64 / 1e6)
        });
        done.reduce(f64::max)
    }

    /// From when a decision's change was seen until it was followed, in seconds. What was looked at
    /// before the load changed was something else.
    fn took(&self, decision: &Decision) -> f64 {
        let nanos = decision.acted_nanos.unwrap_or(0) as f64;
        let phase = self.began.iter().rfind(|began| **began <= decision.at);
        let since_change = phase.map_or(f64::MAX, |began| (decision.at - began) as f64 * 1e3);
        (since_change.min(decision.watched_nanos as f64) + nanos) / 1e9
    }

    /// The lowest step while a decision was carried out, as a part of the median of the second
    /// before it.
    fn dip(&self, decision: &Decision) -> Option<f64> {
        const BEFORE: usize = 10;
        let acted = decision.acted_nanos? as i64 / 1_000;
        let phase = self.began.iter().rposition(|began| *began <= decision.at)?;
        let at = |micros: i64| ((micros - self.began[phase]) as f64 / 1e6 / STEP.as_secs_f64()) as usize;
        let (first, last) = (at(decision.at), at(decision.at + acted) + 1);
        let (flat, offset) = (self.rates.concat(), self.rates[..phase].iter().map(Vec::len).sum::<usize>());
        let (first, last) = (offset + first, (offset + last).min(flat.len() - 1));
        let before = median(flat.get(first.saturating_sub(BEFORE)..first)?);
        let lowest = flat.get(first..=last)?.iter().copied().fold(f64::MAX, f64::min);
        (before > 0.0).then(|| lowest / before)
    }
}

/// Whether a forecast came true to within a quarter.
fn came_true(decision: &Decision) -> Option<bool> {
    Some((decision.measured_gain? / decision.predicted_gain - 1.0).abs() <= 0.25)
}

/// Measures something on what the phases have left.
type AtTheEnd = fn(&World) -> Vec<f64>;

fn nothing(_: &World) -> Vec<f64> {
    Vec::new()
}

fn phases(options: &Options, kind: Kind, phases: &[Phase], at_the_end: AtTheEnd) -> Watched {
    let mut world = World::new(options.executors, ROWS, kind);
    world.set_distance(options.line_nanos);
    world.set_load(phases[0].2);
    world.start();
    // Caches, and the clocks of the processor.
    world.watch(Duration::from_secs(2), STEP);
    let (mut rates, mut began) = (Vec::new(), Vec::new());
    for &(_, seconds, load) in phases {
        began.push(wall_micros());
        world.set_load(load);
        rates.push(world.watch(Duration::from_secs(seconds), STEP));
    }
    let decisions = world.engine.monitor_decisions();
    let acted: u64 =
        world.engine.repartitions().iter().filter(|done| done.decision > 0).map(|d| d.duration_nanos).sum();
    let at_the_end = at_the_end(&world);
    world.stop();
    Watched { rates, began, decisions, acted_us: acted as f64 / 1e3, at_the_end }
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The second half of a phase: after the change was followed. The median, because what else the
/// machine does for a moment is not the engine's rate.
pub fn settled(rates: &[f64]) -> f64 {
    median(&rates[rates.len() / 2..])
}

/// Steps of the median that stands for a moment, and moments that make a level a settled one.
const MOMENT: usize = 5;
const HELD: usize = 10;

/// Seconds until a phase reaches 90 % of what it settles at, and holds it for a second.
fn time_to_settle(rates: &[f64]) -> f64 {
    let goal = settled(rates) * 0.9;
    let moments: Vec<f64> = rates.windows(MOMENT.min(rates.len())).map(median).collect();
    let held =
        moments.windows(HELD.min(moments.len())).position(|held| held.iter().all(|rate| *rate >= goal));
    // A moment that begins at 0 says that the phase began there.
    match held {
        Some(0) => 0.0,
        Some(at) => (at + MOMENT / 2) as f64 * STEP.as_secs_f64(),
        None => rates.len() as f64 * STEP.as_secs_f64(),
    }
}

pub fn told(decisions: &[Decision]) -> Vec<Value> {
    decisions
        .iter()
        .map(|decision| {
            json!({
                "id": decision.id,
                "reason": decision.reason.name(),
                "outcome": decision.verdict.name(),
                "watched_ms": decision.watched_nanos / 1_000_000,
                "interval_ms": decision.interval_nanos / 1_000_000,
                "imbalance": decision.before.imbalance,
                "imbalance_predicted": decision.after.imbalance,
                "imbalance_measured": decision.measured.map(|costs| costs.imbalance),
                "predicted_gain": decision.predicted_gain,
                "measured_gain": decision.measured_gain,
                "noise": decision.noise,
                "throughput": decision.throughput,
                "throughput_after": decision.throughput_after,
                "splits": decision.splits, "merges": decision.merges, "moves": decision.moves,
                "acted_us": decision.acted_nanos.map(|nanos| nanos / 1_000),
            })
        })
        .collect()
}

pub fn line(name: &'static str, rates: &[Vec<f64>]) -> Line {
    let flat = rates.iter().flatten().enumerate();
    Line { name, points: flat.map(|(at, rate)| ((at + 1) as f64 * STEP.as_secs_f64(), *rate)).collect() }
}

/// What a run is judged by, beside its own targets.
fn judge(verdicts: &mut Verdicts, watched: &Watched, phases: usize) {
    let changed: Vec<&Decision> =
        watched.decisions.iter().filter(|decision| decision.acted_nanos.is_some()).collect();
    let followed: Vec<f64> = (1..phases).filter_map(|phase| watched.followed(phase)).collect();
    verdicts.at_most("a change of the load is followed within 5 s", 5.0, &followed);
    let took: Vec<f64> = changed.iter().map(|decision| watched.took(decision)).collect();
    verdicts.at_most("it is followed within 2 s of being seen", 2.0, &took);
    let dips: Vec<f64> = changed.iter().filter_map(|decision| watched.dip(decision)).collect();
    verdicts.at_least("no 100 ms below 80 % of the second before while repartitioning", 0.8, &dips);
    let known: Vec<bool> = changed.iter().filter_map(|decision| came_true(decision)).collect();
    if !known.is_empty() {
        let share = known.iter().filter(|right| **right).count() as f64 / known.len() as f64;
        let found = format!("{:.0} % of {}", 100.0 * share, known.len());
        verdicts.judge("80 % of the forecasts are within a quarter", &found, share >= 0.8);
    }
}

/// Adaptive against static over the same phases; prints and writes. `own` are the experiment's own
/// targets, by what the adaptive engine came to at the end.
fn compare(
    options: &Options,
    (name, title): (&str, &str),
    list: &[Phase],
    thesis: &str,
    (at_the_end, own): (AtTheEnd, fn(&mut Verdicts, &[f64])),
) {
    let fixed = phases(options, Kind::Static, list, nothing).rates;
    let watched = phases(options, Kind::Adaptive, list, at_the_end);
    let (adaptive, decisions) = (&watched.rates, &watched.decisions);
    let mut marks = Vec::new();
    let mut at = 0.0;
    let mut rows = Vec::new();
    println!(
        "{:<26} {:>12} {:>12} {:>9} {:>12} {:>12}",
        "phase", "static/s", "adaptive/s", "ratio", "settled in", "followed in"
    );
    for (index, (phase, seconds, _)) in list.iter().enumerate() {
        marks.push((at, (*phase).to_owned()));
        at += *seconds as f64;
        let (one, other) = (settled(&fixed[index]), settled(&adaptive[index]));
        let took = time_to_settle(&adaptive[index]);
        let followed = watched.followed(index);
        let told = followed.map_or("-".to_owned(), |seconds| format!("{seconds:.1} s"));
        println!("{phase:<26} {one:>12.0} {other:>12.0} {:>9.2} {took:>10.1} s {told:>12}", other / one);
        rows.push(json!({
            "phase": phase, "static": one, "adaptive": other, "settled_seconds": took,
            "followed_seconds": followed,
            "lowest_100_ms": adaptive[index].iter().copied().fold(f64::MAX, f64::min),
        }));
    }
    let changed: Vec<&Decision> =
        decisions.iter().filter(|decision| decision.acted_nanos.is_some()).collect();
    println!(
        "{} decisions, {} repartitionings, {:.0} us of actions in all",
        decisions.len(),
        changed.len(),
        watched.acted_us
    );
    let percent = |part: Option<f64>| part.map_or("not".to_owned(), |part| format!("{:.0} %", 100.0 * part));
    for decision in &changed {
        println!(
            "  {}: {} splits, {} merges, {} moves {:.1} s after it was seen; gain {:.0} % forecast, {} \
             measured; lowest 100 ms meanwhile: {} of the second before",
            decision.reason.name(),
            decision.splits,
            decision.merges,
            decision.moves,
            watched.took(decision),
            100.0 * decision.predicted_gain,
            percent(decision.measured_gain),
            percent(watched.dip(decision))
        );
    }
    let known: Vec<bool> = changed.iter().filter_map(|decision| came_true(decision)).collect();
    let right = known.iter().filter(|right| **right).count();
    println!("forecasts within a quarter of what was measured: {right} of {}", known.len());
    let dips: Vec<Option<f64>> = changed.iter().map(|decision| watched.dip(decision)).collect();
    println!("thesis: {thesis}");
    let mut verdicts = Verdicts::default();
    judge(&mut verdicts, &watched, list.len());
    own(&mut verdicts, &watched.at_the_end);
    let result = json!({
        "experiment": name, "executors": options.executors, "line_ns_injected": options.line_nanos, "phases": rows, "thesis": thesis,
        "targets": verdicts.told(),
        "decisions": told(decisions), "step_ms": 100,
        "forecasts_measured": known.len(), "forecasts_within_a_quarter": right,
        "lowest_100_ms_while_acting": dips,
        "static_per_step": fixed, "adaptive_per_step": adaptive,
    });
    let lines = [line("static", &fixed), line("adaptive", adaptive)];
    let plot = Plot { title, x: "seconds", y: "transactions a second", lines: &lines, marks: &marks };
    write(&options.out, name, &plot, &result);
}

fn workload(options: &Options) {
    // As UpdSubData, GetNewDest and the mix of TATP: one row written; two tables read, mostly in
    // the lower half of the keys; both.
    fn update(random: &mut RandomStream) -> Work {
        one(0, uniform(random), true, 1)
    }
    fn destination(random: &mut RandomStream) -> Work {
        let row = random.below(ROWS as u64 / 2) as i64;
        Work { class: 2, rows: [Some(row), Some(row)], writes: false, further_reads: READS / 2 }
    }
    fn mix(random: &mut RandomStream) -> Work {
        match random.below(10) {
            0..2 => update(random),
            2..5 => destination(random),
            _ => one(1, skewed(random), false, 3),
        }
    }
    let seconds = options.seconds;
    let list: [Phase; 3] = [
        ("update one row", seconds, update),
        ("read two tables", seconds, destination),
        ("mix", seconds, mix),
    ];
    let thesis = "adapts within 5 s; 220 to 360 thousand a second at the first change (80 cores)";
    compare(options, ("workload", "Change of the workload (Fig. 4.13)"), &list, thesis, (nothing, |_, _| {}));
}

fn read_uniform(random: &mut RandomStream) -> Work {
    one(0, uniform(random), false, 1)
}

fn read_skewed(random: &mut RandomStream) -> Work {
    one(0, skewed(random), false, 1)
}

fn skew(options: &Options) {
    let list: [Phase; 2] =
        [("uniform", options.seconds, read_uniform), ("half to a fifth", 2 * options.seconds, read_skewed)];
    let thesis = "drops by about 80 %, then 3 times static (80 cores)";
    compare(
        options,
        ("skew", "Sudden skew (Fig. 4.14)"),
        &list,
        thesis,
        (beside_balanced, |verdicts, shares| {
            let target = "95 % of the balanced throughput is regained, in the median of pairs";
            verdicts.at_least(target, 0.95, &[median(shares)]);
        }),
    );
}

/// What the skewed reads of the first table reach of uniform reads of the second, which is cut as the
/// first one was and has never been skewed: the two in turn, because whatever else drifts is a quarter
/// of the rate on some machines.
fn beside_balanced(world: &World) -> Vec<f64> {
    const PAIRS: usize = 8;
    const SPELL: Duration = Duration::from_secs(1);
    world.engine.set_monitor(Kind::Static.settings());
    let rate = |load: Draw| {
        world.set_load(load);
        median(&world.watch(SPELL, STEP))
    };
    let pair = |_| {
        let balanced = rate(|random| one(1, uniform(random), false, 1));
        rate(read_skewed) / balanced.max(1.0)
    };
    // The first one finds the second table's caches cold.
    (0..=PAIRS).map(pair).skip(1).collect()
}

fn frequent(options: &Options) {
    let long = options.seconds;
    let short = (options.seconds / 2).max(3);
    let list: [Phase; 6] = [
        ("A", 2 * long, read_uniform),
        ("B", long, read_skewed),
        ("A", long, read_uniform),
        ("B", short, read_skewed),
        ("A", short, read_uniform),
        ("B", short, read_skewed),
    ];
    let thesis = "interval 1 to 8 s; the first shift found within 8 s, the last two in about 2 s";
    compare(options, ("frequent", "Frequent changes (Fig. 4.16)"), &list, thesis, (nothing, |_, _| {}));
}

/// A load that stays as it is: nothing is to be repartitioned.
fn steady(options: &Options) {
    let seconds = options.seconds * 75;
    let watched = phases(options, Kind::Adaptive, &[("uniform", seconds, read_uniform)], nothing);
    let changed = watched.decisions.iter().filter(|decision| decision.acted_nanos.is_some()).count();
    let rate = settled(&watched.rates[0]);
    println!(
        "{seconds} s at {rate:.0} transactions a second: {} decisions, {changed} repartitionings",
        watched.decisions.len()
    );
    let mut verdicts = Verdicts::default();
    verdicts.judge("a steady load is left alone", &format!("{changed} repartitionings"), changed == 0);
    for decision in &watched.decisions {
        println!(
            "  {}: {}, gain {:.1} % forecast, {:.1} % by chance",
            decision.reason.name(),
            decision.verdict.name(),
            100.0 * decision.predicted_gain,
            100.0 * decision.noise
        );
    }
    let result = json!({
        "experiment": "steady", "executors": options.executors, "seconds": seconds, "rate": rate,
        "repartitionings": changed, "decisions": told(&watched.decisions), "per_step": watched.rates,
        "targets": verdicts.told(),
    });
    let lines = [line("adaptive", &watched.rates)];
    let plot = Plot {
        title: "Ten steady minutes",
        x: "seconds",
        y: "transactions a second",
        lines: &lines,
        marks: &[],
    };
    write(&options.out, "steady", &plot, &result);
}

fn actions(options: &Options) {
    const TABLE_ROWS: i64 = 800_000;
    let mut world = World::new(options.executors, TABLE_ROWS, Kind::Static);
    world.set_load(|random| one(1, random.below(TABLE_ROWS as u64) as i64, false, 1));
    world.start();
    world.watch(Duration::from_secs(2), STEP);
    let usual = mean(&world.watch(Duration::from_secs(2), STEP));
    let spent = |world: &World, kind: RepartitionKind, last: usize| -> f64 {
        let done = world.engine.repartitions();
        let of_kind = done.iter().rev().filter(|done| done.kind == kind).take(last);
        of_kind.map(|done| done.duration_nanos as f64 / 1e6).sum()
    };
    let mut points: [Vec<(f64, f64)>; 3] = Default::default();
    let mut rows = Vec::new();
    println!(
        "{:>14} {:>12} {:>12} {:>16} {:>14}",
        "rearrangements", "splits ms", "merges ms", "both ms", "elapsed ms"
    );
    for count in (10..=80).step_by(10) {
        let began = Instant::now();
        // A rearrangement is a split and a merge: each boundary comes and goes.
        for part in 0..count {
            let at = key((2 * part + 1) * TABLE_ROWS / 200 + 1);
            let split = world
                .engine
                .repartition(Repartition::Split { group: group(0), at: at.clone() }, "experiment");
            split.wait().outcome.result.expect("a split ends");
            let routing = world.engine.routing();
            let routes = routing.routes(group(0));
            let upper = routes.iter().position(|route| route.low == at).expect("split there");
            let merge = Repartition::Merge(routes[upper - 1].partition(), routes[upper].partition());
            world.engine.repartition(merge, "experiment").wait().outcome.result.expect("a merge ends");
        }
        let elapsed = began.elapsed().as_secs_f64() * 1e3;
        let splits = spent(&world, RepartitionKind::Split, count as usize);
        let merges = spent(&world, RepartitionKind::Merge, count as usize);
        println!("{count:>14} {splits:>12.3} {merges:>12.3} {:>16.3} {elapsed:>14.1}", splits + merges);
        for (line, value) in points.iter_mut().zip([splits, merges, splits + merges]) {
            line.push((count as f64, value));
        }
        rows.push(json!({ "rearrangements": count, "splits_ms": splits, "merges_ms": merges, "elapsed_ms": elapsed }));
    }
    world.stop();
    println!("{TABLE_ROWS} rows of {COLUMNS} integers, beside {usual:.0} transactions a second");
    let thesis = "80 rearrangements below 200 ms, with everything else stopped; ours stop nothing";
    println!("thesis: {thesis}");
    let mut verdicts = Verdicts::default();
    let most: Vec<f64> = points[2].last().map(|point| point.1).into_iter().collect();
    verdicts.at_most("80 rearrangements take 20 ms of action time", 20.0, &most);
    let [splits, merges, both] = points;
    let lines = [
        Line { name: "rearrangements", points: both },
        Line { name: "splits", points: splits },
        Line { name: "merges", points: merges },
    ];
    let plot = Plot {
        title: "Cost of repartitioning, 800,000 rows (Fig. 4.12)",
        x: "actions",
        y: "milliseconds of all actions",
        lines: &lines,
        marks: &[],
    };
    let result = json!({ "experiment": "actions", "rows": rows, "throughput_beside": usual, "thesis": thesis, "targets": verdicts.told() });
    write(&options.out, "actions", &plot, &result);
}

/// Processor time of this process.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on Linux, and `time` outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn overhead(options: &Options) {
    let loads: [(&str, Draw, &str); 3] = [
        ("read one row", |random| one(0, uniform(random), false, 1), "GetSubData 3.32 %"),
        ("update one row", |random| one(0, uniform(random), true, 1), "UpdSubData 1.01 %"),
        (
            "read two tables",
            |random| {
                let row = uniform(random);
                Work { class: 2, rows: [Some(row), Some(row)], writes: false, further_reads: READS / 2 }
            },
            "GetNewDest 0.11 %",
        ),
    ];
    // One executor, so that every transaction runs where it is submitted: the shortest way.
    let mut world = World::new(1, ROWS, Kind::Unmeasured);
    world.set_load(loads[0].1);
    world.start();
    world.watch(Duration::from_secs(1), STEP);
    println!("{:<18} {:>14} {:>14} {:>10}   thesis", "", "ns each, off", "ns each, on", "overhead");
    let mut rows = Vec::new();
    let (mut verdicts, mut shortest) = (Verdicts::default(), Vec::new());
    let mut points: [Vec<(f64, f64)>; 2] = Default::default();
    for (number, (name, load, thesis)) in loads.into_iter().enumerate() {
        world.set_load(load);
        let mut cost = [Vec::new(), Vec::new()];
        // Alternating, so that whatever else drifts falls on both alike.
        for round in 0..options.seconds * 5 {
            let at = (round % 2) as usize;
            world.engine.set_monitor([Kind::Unmeasured, Kind::Static][at].settings());
            let (cpu, finished) = (cpu_seconds(), world.finished());
            std::thread::sleep(Duration::from_millis(200));
            let done = (world.finished() - finished).max(1) as f64;
            cost[at].push((cpu_seconds() - cpu) / done * 1e9);
        }
        let [off, on] = cost;
        // Of each pair, which stands beside one another in time.
        let pairs: Vec<f64> = on.iter().zip(&off).map(|(on, off)| on / off - 1.0).collect();
        let (off, on, overhead) = (median(&off), median(&on), median(&pairs));
        println!("{name:<18} {off:>14.1} {on:>14.1} {:>8.2} %   {thesis}", 100.0 * overhead);
        if number == 0 {
            shortest.push(overhead);
        }
        points[0].push((number as f64, off));
        points[1].push((number as f64, on));
        rows.push(
            json!({ "load": name, "off_ns": off, "on_ns": on, "overhead": overhead, "thesis": thesis }),
        );
    }
    world.stop();
    verdicts.at_most("measuring costs the shortest transaction 1 % in the median of pairs", 0.01, &shortest);
    let [off, on] = points;
    let lines = [Line { name: "not measured", points: off }, Line { name: "measured", points: on }];
    let plot = Plot {
        title: "Cost of measuring (Table 4.2): processor time a transaction",
        x: "0: read one row, 1: update one row, 2: read two tables",
        y: "nanoseconds",
        lines: &lines,
        marks: &[],
    };
    let result = json!({ "experiment": "overhead", "rows": rows, "targets": verdicts.told() });
    write(&options.out, "overhead", &plot, &result);
}

/// Reads on this thread alone: two lengths under `valgrind --tool=callgrind` tell what a read
/// takes, with and without measuring.
fn count(options: &Options, kind: Kind) {
    let world = World::new(1, 10_000, kind);
    let reads = options.seconds * 10_000;
    world.read_here(reads);
    println!("{reads} reads");
}

fn measured(options: &Options) {
    count(options, Kind::Static);
}

fn unmeasured(options: &Options) {
    count(options, Kind::Unmeasured);
}
