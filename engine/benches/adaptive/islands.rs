//! How large an island should be: requests of which some go to data of any executor, on islands of
//! one core, of all, and of a size that the load chooses.
//!
//! The study of hardware islands moves the share of requests over several sites from none to all,
//! with keys drawn evenly and by Zipf's law. Here a site is an executor: a request reads or writes
//! a row at home on the executor that submits it, or a row anywhere. From four executors on the
//! machine has two sockets of two caches each, made up, and islands of these sizes too.

use std::sync::Arc;
use std::time::Duration;

use archipel_engine::random::RandomStream;
use archipel_engine::topology::Granularity;
use serde_json::json;

use crate::experiments::{Options, ROWS, STEP, settled};
use crate::plot::{Line, Plot, write};
use crate::verdict::Verdicts;
use crate::world::{Kind, READS, Work, World};

/// Shares of requests that go anywhere, in percent.
const SHARES: [u64; 5] = [0, 20, 50, 80, 100];
/// Exponents of Zipf's law; with 0 all keys are alike.
const SKEWS: [f64; 3] = [0.0, 0.5, 0.99];
const THESIS: &str = "one engine for all cores is flat over the share; partitioned ones fall as it grows, \
                      a core an instance fastest (3.7); under Zipf's law these are limited by their \
                      hottest instance, and islands cope best (3.16)";
/// What a choice may take until it shows.
const CHOICE: Duration = Duration::from_secs(12);

/// Draws ranks of `count` keys by Zipf's law.
struct Zipf {
    /// By rank, what part of the draws it and those before have.
    shares: Vec<f64>,
}

impl Zipf {
    fn new(count: i64, exponent: f64) -> Self {
        let mut shares = Vec::with_capacity(count as usize);
        let mut sum = 0.0;
        for rank in 1..=count {
            sum += (rank as f64).powf(-exponent);
            shares.push(sum);
        }
        shares.iter_mut().for_each(|share| *share /= sum);
        Self { shares }
    }

    fn draw(&self, random: &mut RandomStream) -> i64 {
        let drawn = random.below(1 << 53) as f64 / (1u64 << 53) as f64;
        self.shares.partition_point(|share| *share < drawn) as i64
    }
}

/// Ranks are spread over the keys, so that frequent ones lie apart.
fn spread(rank: i64, count: i64) -> i64 {
    rank * 7_919 % count
}

pub fn run(options: &Options) {
    // With how many islands each size leaves the machine; on one cache two of them are the same.
    let executors = options.executors;
    let mut sizes = vec![("core", Granularity::Core, executors), ("machine", Granularity::Machine, 1)];
    if executors >= 4 {
        sizes.splice(1..1, [("l3", Granularity::L3, 4), ("socket", Granularity::Socket, 2)]);
    }
    let fixed = sizes.clone();
    sizes.push(("auto", Granularity::Core, 0));
    let seconds = Duration::from_secs(options.seconds.div_ceil(4));
    let (mut results, mut reached) = (Vec::new(), Vec::new());
    for skew in SKEWS {
        println!("Zipf {skew}: transactions a second");
        let names: Vec<String> = sizes.iter().map(|(name, ..)| format!("{name:>12}")).collect();
        println!("{:<10} {}   chosen", "anywhere", names.join(" "));
        let mut lines: Vec<Line> =
            sizes.iter().map(|&(name, ..)| Line { name, points: Vec::new() }).collect();
        let own = ROWS / i64::from(options.executors);
        let (here, anywhere) = (Arc::new(Zipf::new(own, skew)), Arc::new(Zipf::new(ROWS, skew)));
        for share in SHARES {
            let (mut rates, mut told) = (serde_json::Map::new(), Vec::new());
            let mut chosen = "";
            for (line, &(name, size, islands)) in lines.iter_mut().zip(&sizes) {
                let chooses = islands == 0;
                let kind = if chooses { Kind::Adaptive } else { Kind::Static };
                let mut world = World::with_islands(options.executors, ROWS, kind, size, chooses);
                world.set_distance(options.line_nanos);
                let (here, anywhere) = (here.clone(), anywhere.clone());
                world.set_load_by_executor(move |executor, random| {
                    let row = match random.below(100) < share {
                        true => spread(anywhere.draw(random), ROWS),
                        false => i64::from(executor) * own + spread(here.draw(random), own),
                    };
                    let writes = random.below(2) == 0;
                    Work { class: 1, rows: [Some(row), None], writes, further_reads: READS }
                });
                world.start();
                world.watch(if chooses { CHOICE } else { Duration::from_secs(1) }, STEP);
                let rate = settled(&world.watch(seconds, STEP));
                if chooses {
                    let islands = world.engine.executors().iter().map(|it| it.island.0 + 1).max();
                    chosen = fixed.iter().find(|size| Some(size.2) == islands).map_or("?", |size| size.0);
                }
                world.stop();
                line.points.push((share as f64, rate));
                told.push(format!("{rate:>12.0}"));
                rates.insert(name.to_owned(), json!(rate));
            }
            println!("{:<10} {}   {chosen}", format!("{share} %"), told.join(" "));
            let rate = |line: &Line| line.points.last().map_or(0.0, |point| point.1);
            let (auto, fixed) = (lines.last().map_or(0.0, rate), &lines[..lines.len() - 1]);
            reached.push(auto / fixed.iter().map(rate).fold(1.0, f64::max));
            results.push(json!({ "zipf": skew, "anywhere": share, "rates": rates, "chosen": chosen }));
        }
        let title = format!("Requests that go anywhere, Zipf {skew} (Figs. 3.7, 3.16)");
        let plot = Plot {
            title: &title,
            x: "percent of the requests",
            y: "transactions a second",
            lines: &lines,
            marks: &[],
        };
        write(
            &options.out,
            &format!("islands-{skew}"),
            &plot,
            &json!({
                "experiment": "islands", "zipf": skew, "line_ns_injected": options.line_nanos,
                "results": results, "thesis": THESIS,
            }),
        );
        results.clear();
    }
    println!("thesis: {THESIS}");
    reached.sort_by(f64::total_cmp);
    let mut verdicts = Verdicts::default();
    let middle = reached[reached.len() / 2];
    verdicts.at_least("auto reaches 90 % of the best size in the median", 0.9, &[middle]);
    println!("auto reaches {:.0} % of the best size at worst", 100.0 * reached[0]);
}
