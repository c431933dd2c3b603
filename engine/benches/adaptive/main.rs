//! The experiments of ATraPos's evaluation on this engine, adaptive against static in one run.
//!
//! `tests/bench/adaptive EXPERIMENT` (or `cargo bench -p archipel-engine --bench adaptive --
//! EXPERIMENT [--executors N] [--seconds S] [--out DIR]`) writes `DIR/EXPERIMENT.json` and
//! `DIR/EXPERIMENT.svg` and prints a table with the thesis's figures beside ours.
//!
//! In-process, without wire and sync, which would hide the effects. Every executor is an island of
//! its own, as ATraPos binds partitions to cores: what is at home elsewhere goes through a queue.
//! On one socket that shows balance and queues; it shows no NUMA distance. With `--line-nanos N`
//! every cache line that a transaction fetches from another island costs N nanoseconds more, as a
//! machine with several sockets was measured to have it (`archipel.island_distances` there); what
//! is shown then is said to be injected. (`islands` compares sizes of islands.)

mod experiments;
mod islands;
mod memory;
mod plot;
mod select;
mod verdict;
mod world;

use std::path::PathBuf;

use experiments::{EXPERIMENTS, Options};

/// The server's: memory that follows is asked for and given back as it is there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let executors = cores.clamp(2, 16) as u16;
    let mut options = Options { executors, seconds: 8, line_nanos: 0, out: PathBuf::from(".") };
    let mut chosen = Vec::new();
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| usage(&format!("{arg} needs a value")));
        match arg.as_str() {
            "--executors" => options.executors = number(&value()) as u16,
            "--line-nanos" => options.line_nanos = number(&value()),
            "--seconds" => options.seconds = number(&value()),
            "--out" => options.out = PathBuf::from(value()),
            "all" => chosen.extend(EXPERIMENTS.iter().filter(|experiment| {
                // What takes ten minutes, or another program's help, is asked for by name.
                experiment.name != "steady" && !experiment.name.ends_with("measured")
            })),
            name => match EXPERIMENTS.iter().find(|experiment| experiment.name == name) {
                Some(experiment) => chosen.push(experiment),
                None => usage(&format!("there is no experiment {name}")),
            },
        }
    }
    if chosen.is_empty() {
        usage("which experiment?");
    }
    if let Err(error) = std::fs::create_dir_all(&options.out) {
        usage(&format!("{}: {error}", options.out.display()));
    }
    if options.line_nanos > 0 {
        println!(
            "injected: a line from another island costs {} ns more than it does here",
            options.line_nanos
        );
    }
    for experiment in chosen {
        println!("== {}: {}", experiment.name, experiment.about);
        (experiment.run)(&options);
        println!();
    }
    // Engines end with the process.
    std::process::exit(0);
}

fn number(text: &str) -> u64 {
    match text.parse() {
        Ok(number) if number > 0 => number,
        _ => usage(&format!("{text} is no positive number")),
    }
}

fn usage(complaint: &str) -> ! {
    eprintln!("adaptive: {complaint}");
    eprintln!("usage: adaptive EXPERIMENT… | all [--executors N] [--seconds S] [--line-nanos N] [--out DIR]");
    for experiment in EXPERIMENTS {
        eprintln!("  {:<10} {}", experiment.name, experiment.about);
    }
    std::process::exit(2)
}
