//! Memory that follows partitions to another memory node, beside a load: how long it takes, and
//! what the load feels of it.
//!
//! The machine has two sockets, made up, each with a memory node and half of the executors; half of
//! the partitions have just come from the other one. On a machine of one socket the lines come no
//! nearer by it, so what is shown is the price and not the gain.
//!
//! Memory follows for a while and rests for a while, so that each step in which some followed has
//! steps shortly before it in which none did: what else the machine does comes and goes meanwhile.

use std::time::{Duration, Instant};

use archipel_engine::MonitorSettings;
use archipel_engine::random::RandomStream;
use serde_json::json;

use crate::experiments::{Options, STEP, median};
use crate::plot::{Line, Plot, write};
use crate::verdict::Verdicts;
use crate::world::{Kind, READS, Work, World};

const TABLE_ROWS: i64 = 400_000;
/// What following may take at most, rests and all, in seconds.
const LIMIT_SECONDS: u64 = 120;
/// Steps of a rest, and of a spell after it; the engine looks once a second whether it may go on.
const REST_STEPS: usize = 10;
const SPELL_STEPS: usize = 20;

/// A step with less than this part of the second before is a low one.
const LOW: f64 = 0.8;

/// One step: when it ended, in seconds, and transactions a second.
type Step = (f64, f64);

pub fn run(options: &Options) {
    let mut world = World::with_sockets(options.executors.next_multiple_of(2), TABLE_ROWS, Kind::Static);
    let follows = |memory_follows| MonitorSettings { memory_follows, ..Kind::Static.settings() };
    world.engine.set_monitor(follows(false));
    world.set_load(|random: &mut RandomStream| {
        let row = random.below(TABLE_ROWS as u64) as i64;
        let writes = random.below(2) == 0;
        Work { class: 1, rows: [Some(row), None], writes, further_reads: READS }
    });
    world.start();
    world.watch(Duration::from_secs(2), STEP);
    let away = |world: &World| {
        let partitions = world.engine.partitions();
        partitions.iter().filter(|partition| partition.memory_followed < 1.0).count()
    };
    let followed = world.engine.memory_followed();
    let began = Instant::now();
    let (mut resting, mut following, mut shares): (Vec<Step>, Vec<Step>, Vec<f64>) = Default::default();
    while away(&world) > 0 && began.elapsed() < Duration::from_secs(LIMIT_SECONDS) {
        for step in 0..REST_STEPS + SPELL_STEPS {
            world.engine.set_monitor(follows(step >= REST_STEPS));
            let pieces = world.engine.memory_followed().pieces;
            let rate = median(&world.watch(STEP, STEP));
            let at = began.elapsed().as_secs_f64();
            if world.engine.memory_followed().pieces == pieces {
                resting.push((at, rate));
                continue;
            }
            following.push((at, rate));
            let before = &resting[resting.len() - REST_STEPS..];
            let before: Vec<f64> = before.iter().map(|step| step.1).collect();
            shares.push(rate / median(&before).max(1.0));
        }
    }
    let (now, left) = (world.engine.memory_followed(), away(&world));
    world.stop();
    let (pieces, bytes) = (now.pieces - followed.pieces, now.bytes - followed.bytes);
    let took = following.len() as f64 * STEP.as_secs_f64();
    println!(
        "{:.1} MB in {pieces} pieces followed in {took:.1} s, beside {:.1} % of the transactions of the second \
         before, in the median",
        bytes as f64 / 1e6,
        100.0 * median(&shares)
    );
    // What the machine does without it.
    let rates: Vec<f64> = resting.iter().map(|step| step.1).collect();
    let at_rest = rates.windows(REST_STEPS + 1).map(|steps| steps[REST_STEPS] / median(&steps[..REST_STEPS]));
    let at_rest: Vec<f64> = at_rest.collect();
    let low = |shares: &[f64]| shares.iter().filter(|share| **share < LOW).count();
    let told = |shares: &[f64]| {
        let lowest = shares.iter().copied().fold(f64::MAX, f64::min);
        format!("{} of {}, the lowest at {:.1} %", low(shares), shares.len(), 100.0 * lowest)
    };
    println!("steps below 80 % of the second before: {}; at rest: {}", told(&shares), told(&at_rest));
    let mut verdicts = Verdicts::default();
    verdicts.judge("all memory follows", &format!("{left} partitions are left"), left == 0);
    // What steps at rest show as well is the machine's: more of them by two standard deviations are not.
    let part = |low: usize, of: usize| low as f64 / of.max(1) as f64;
    let (here, there) = (low(&shares), low(&at_rest));
    let usual = part(here + there, shares.len() + at_rest.len());
    let each = 1.0 / shares.len().max(1) as f64 + 1.0 / at_rest.len().max(1) as f64;
    let chance = 2.0 * (usual * (1.0 - usual) * each).sqrt();
    verdicts.at_most(
        "steps below 80 % are no more than at rest, but by chance",
        part(there, at_rest.len()) + chance,
        &[part(here, shares.len())],
    );
    let lines = [
        Line { name: "memory rests", points: resting.clone() },
        Line { name: "memory follows", points: following.clone() },
    ];
    let plot = Plot {
        title: "Memory that follows half of the partitions to another socket",
        x: "seconds",
        y: "transactions a second",
        lines: &lines,
        marks: &[],
    };
    let result = json!({
        "experiment": "memory", "executors": options.executors, "bytes": bytes, "pieces": pieces,
        "seconds": took, "resting": resting, "following": following, "shares": shares, "shares_at_rest": at_rest,
        "targets": verdicts.told(),
    });
    write(&options.out, "memory", &plot, &result);
}
