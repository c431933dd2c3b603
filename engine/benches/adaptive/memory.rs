//! Memory that follows partitions to another memory node, beside a load: how long it takes, and
//! what the load feels of it.
//!
//! The machine has two sockets, made up, each with a memory node and half of the executors; half of
//! the partitions have just come from the other one. On a machine of one socket the lines come no
//! nearer by it, so what is shown is the price and not the gain.

use std::time::{Duration, Instant};

use archipel_engine::MonitorSettings;
use archipel_engine::random::RandomStream;
use serde_json::json;

use crate::experiments::{Options, STEP, median};
use crate::plot::{Line, Plot, write};
use crate::verdict::Verdicts;
use crate::world::{Kind, READS, Work, World};

const TABLE_ROWS: i64 = 400_000;
/// What following may take at most, in seconds.
const LIMIT_SECONDS: u64 = 60;

pub fn run(options: &Options) {
    let mut world = World::with_sockets(options.executors.next_multiple_of(2), TABLE_ROWS, Kind::Static);
    let settings = Kind::Static.settings();
    world.engine.set_monitor(MonitorSettings { memory_follows: false, ..settings });
    world.set_load(|random: &mut RandomStream| {
        let row = random.below(TABLE_ROWS as u64) as i64;
        let writes = random.below(2) == 0;
        Work { class: 1, rows: [Some(row), None], writes, further_reads: READS }
    });
    world.start();
    world.watch(Duration::from_secs(2), STEP);
    let before = world.watch(Duration::from_secs(options.seconds.min(4)), STEP);
    let followed = world.engine.memory_followed();
    world.engine.set_monitor(settings);
    let (began, mut during) = (Instant::now(), Vec::new());
    let away = |world: &World| {
        let partitions = world.engine.partitions();
        partitions.iter().filter(|partition| partition.memory_followed < 1.0).count()
    };
    while away(&world) > 0 && began.elapsed() < Duration::from_secs(LIMIT_SECONDS) {
        during.extend(world.watch(STEP, STEP));
    }
    let (took, left) = (began.elapsed().as_secs_f64(), away(&world));
    let after = world.watch(Duration::from_secs(2), STEP);
    let now = world.engine.memory_followed();
    world.stop();
    let (pieces, bytes) = (now.pieces - followed.pieces, now.bytes - followed.bytes);
    let usual = median(&before);
    println!(
        "{:.1} MB in {pieces} pieces followed in {took:.1} s beside {usual:.0} transactions a second; {:.0} \
         meanwhile, {:.0} afterwards",
        bytes as f64 / 1e6,
        median(&during),
        median(&after)
    );
    let mut verdicts = Verdicts::default();
    verdicts.judge("all memory follows", &format!("{left} partitions are left"), left == 0);
    let lowest: Vec<f64> = during.iter().map(|rate| rate / usual.max(1.0)).collect();
    verdicts.at_least("no 100 ms below 80 % of before while memory follows", 0.8, &lowest);
    let at = |rates: &[f64], from: usize| -> Vec<(f64, f64)> {
        let steps = rates.iter().enumerate();
        steps.map(|(step, rate)| ((from + step + 1) as f64 * STEP.as_secs_f64(), *rate)).collect()
    };
    let (first, last) = (before.len(), before.len() + during.len());
    let lines = [
        Line { name: "before", points: at(&before, 0) },
        Line { name: "memory follows", points: at(&during, first) },
        Line { name: "afterwards", points: at(&after, last) },
    ];
    let plot = Plot {
        title: "Memory that follows half of the partitions to another socket",
        x: "seconds",
        y: "transactions a second",
        lines: &lines,
        marks: &[(first as f64 * STEP.as_secs_f64(), "switched on".to_owned())],
    };
    let result = json!({
        "experiment": "memory", "executors": options.executors, "bytes": bytes, "pieces": pieces,
        "seconds": took, "before": before, "during": during, "after": after, "targets": verdicts.told(),
    });
    write(&options.out, "memory", &plot, &result);
}
