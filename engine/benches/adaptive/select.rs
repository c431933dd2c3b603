//! Dependent reads of two tables: apart as they fell, together as the engine brings them, and together
//! by hand. The placements take turns, because what else the machine does drifts.

use std::time::Duration;

use archipel_engine::random::RandomStream;
use serde_json::json;

use crate::experiments::{Options, ROWS, STEP, line, mean, median, settled, told, uniform};
use crate::plot::{Plot, write};
use crate::verdict::Verdicts;
use crate::world::{Kind, READS, Work, World, group};

/// How often the placements take their turns, and for how long.
const PAIRS: usize = 8;
const SPELL: Duration = Duration::from_secs(1);

pub fn run(options: &Options) {
    // A row of the first table leads to the row of the second with the same key.
    fn dependent(random: &mut RandomStream) -> Work {
        let row = uniform(random);
        Work { class: 1, rows: [Some(row), Some(row)], writes: false, further_reads: READS / 2 }
    }
    let executors = i64::from(options.executors);
    // Naive: both tables are spread evenly, and what belongs together is apart.
    let placements: [(&'static str, Kind, i64); 3] = [
        ("naive, static", Kind::Static, 1),
        ("naive, then adaptive", Kind::Adaptive, 1),
        ("placed together by hand", Kind::Static, 0),
    ];
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    let mut worlds = Vec::new();
    println!("{:<26} {:>12} {:>12}", "placement", "at first/s", "settled/s");
    for (name, kind, shift) in placements {
        let mut world = World::new(options.executors, ROWS, kind);
        world.set_distance(options.line_nanos);
        let parts = world.engine.routing().routes(group(1)).len() as i64 / executors;
        world.place(1, |part| ((part / parts + shift) % executors) as u16);
        world.set_load(dependent);
        world.start();
        let rates = world.watch(Duration::from_secs(options.seconds), STEP);
        let decisions = world.engine.monitor_decisions();
        let first = mean(&rates[2.min(rates.len())..8.min(rates.len())]);
        println!("{name:<26} {first:>12.0} {:>12.0}", settled(&rates));
        rows.push(json!({
            "placement": name, "first": first, "settled": settled(&rates), "decisions": told(&decisions),
        }));
        lines.push(line(name, &[rates]));
        world.engine.set_monitor(Kind::Static.settings());
        world.pause(true);
        worlds.push(world);
    }
    let rate = |world: &World| {
        world.pause(false);
        let rate = median(&world.watch(SPELL, STEP));
        world.pause(true);
        rate
    };
    let compared = |_| [rate(&worlds[1]), rate(&worlds[2])];
    // The first of each finds cold caches.
    let pairs: Vec<[f64; 2]> = (0..=PAIRS).map(compared).skip(1).collect();
    let by_hand: Vec<f64> = pairs.iter().map(|[adaptive, by_hand]| adaptive / by_hand.max(1.0)).collect();
    worlds.iter_mut().for_each(World::stop);
    let thesis =
        "hardware-aware 1.7 to 2 times the baselines, workload-aware 2.3 times that, placed together +10 %";
    println!("thesis: {thesis}");
    let mut verdicts = Verdicts::default();
    let target = "95 % of what placing by hand brings, in the median of pairs";
    verdicts.at_least(target, 0.95, &[median(&by_hand)]);
    let plot = Plot {
        title: "Dependent reads of two tables (Fig. 4.7)",
        x: "seconds",
        y: "transactions a second",
        lines: &lines,
        marks: &[],
    };
    write(
        &options.out,
        "select",
        &plot,
        &json!({
            "experiment": "select", "line_ns_injected": options.line_nanos, "placements": rows, "pairs": pairs,
            "thesis": thesis, "targets": verdicts.told(),
        }),
    );
}
