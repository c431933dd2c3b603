//! A mix of calls on one executor and on two, each with a share of the data as its own.
//!
//! Arguments: `only=ROUTINE` calls nothing else; `monitor=off` measures nothing for the monitor;
//! `calls=N` runs so many calls on one executor and ends, for counting instructions:
//!
//! ```sh
//! valgrind --tool=callgrind target/release/deps/tatp-… 2000 1 only=get_subscriber_data calls=50000
//! ```

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use archipel_engine::id::ExecutorId;
use archipel_engine::{Engine, ExecutorHandle, MonitorSettings, SliceBudget, Stop, SubmitOptions};
use archipel_procedures::{CallProgram, Program};
use archipel_sql::datum::Datum;

use crate::common::{Database, Host};

/// Runs of each number of executors; the medians count.
const ROUNDS: usize = 3;

/// A small generator: the mix must be the same each time.
pub struct Random(u64);

impl Random {
    pub fn new(thread: u16) -> Random {
        Random(0x9E37_79B9_7F4A_7C15 ^ u64::from(thread) << 32)
    }

    /// Uniform in `low ..= high`.
    pub fn between(&mut self, low: i32, high: i32) -> i32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + (self.0 % (high - low + 1) as u64) as i32
    }
}

/// What is called, how often, and with what.
pub trait Mix: Copy + Send + 'static {
    /// Routines, and their shares in a hundred calls.
    const CALLS: &'static [(&'static str, i32)];
    /// Arguments of one call by an executor's thread.
    fn arguments(&self, which: usize, random: &mut Random, thread: u16) -> Vec<Datum>;
    /// Whether the mix provides for this failure.
    fn expects(&self, state: &str, message: &str) -> bool;
}

/// What one thread did.
#[derive(Clone, Default)]
struct Tally {
    done: Vec<u64>,
    spent: Vec<Duration>,
    failed: u64,
    restarts: u64,
    cpu_nanos: u64,
}

impl Tally {
    /// Transactions a second of time in calls.
    fn rate(&self) -> f64 {
        self.done.iter().sum::<u64>() as f64 / self.spent.iter().sum::<Duration>().as_secs_f64()
    }

    /// Transactions a second of processor time: other load on the machine disturbs it little.
    fn cpu_rate(&self) -> f64 {
        self.done.iter().sum::<u64>() as f64 / (self.cpu_nanos as f64 / 1e9)
    }
}

/// CPU time of this thread.
fn thread_cpu_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}

/// What follows a word on the command line.
fn argument(word: &str) -> Option<String> {
    std::env::args().find_map(|arg| arg.strip_prefix(word).map(str::to_owned))
}

fn run<M: Mix>(
    mix: M,
    engine: &Engine,
    handle: &ExecutorHandle,
    routines: &[Arc<Program>],
    thread: u16,
    time: Duration,
) -> Tally {
    let calls = M::CALLS;
    let only = argument("only=").and_then(|name| calls.iter().position(|(call, _)| *call == name));
    let calls_max: u64 = argument("calls=").and_then(|count| count.parse().ok()).unwrap_or(u64::MAX);
    let mut tally =
        Tally { done: vec![0; calls.len()], spent: vec![Duration::ZERO; calls.len()], ..Tally::default() };
    let mut random = Random::new(thread);
    let mut call = CallProgram::new(routines[0].clone(), Vec::new(), Arc::new(Host), engine.clone());
    let (began, cpu_began) = (Instant::now(), thread_cpu_nanos());
    while began.elapsed() < time && tally.done.iter().sum::<u64>() < calls_max {
        let mut ticket = random.between(1, 100);
        let drawn = calls.iter().position(|(_, share)| {
            ticket -= share;
            ticket <= 0
        });
        let which = only.or(drawn).expect("the shares add up to a hundred");
        call.routine = routines[which].clone();
        call.args = mix.arguments(which, &mut random, thread);
        let start = Instant::now();
        let mut submission = engine.submit(call, SubmitOptions::default());
        let completed = loop {
            match submission.try_take() {
                Some(completed) => break completed,
                // Its partitions are busy: meanwhile this executor serves, as a driver does.
                None => drop(handle.drain(SliceBudget::default())),
            }
        };
        tally.spent[which] += start.elapsed();
        call = completed.program;
        tally.restarts += u64::from(completed.outcome.restarts);
        match (completed.outcome.result, &call.error) {
            (Ok(()), _) => tally.done[which] += 1,
            (Err(_), Some(error)) if mix.expects(error.state().as_str(), error.message()) => {
                tally.failed += 1;
            }
            // The budget is wall-clock time: a busy machine uses it up.
            (Err(Stop::Interactive), None) => tally.failed += 1,
            (Err(stop), error) => panic!("{}: {stop:?} {error:?}", calls[which].0),
        }
    }
    tally.cpu_nanos = thread_cpu_nanos() - cpu_began;
    tally
}

/// One round on this many executors.
fn round<M: Mix>(
    mix: M,
    engine: &Engine,
    routines: &Arc<Vec<Arc<Program>>>,
    executors: u16,
    time: Duration,
) -> Vec<Tally> {
    let start = Arc::new(Barrier::new(usize::from(executors)));
    let running = Arc::new(AtomicU16::new(executors));
    let threads: Vec<_> = (0..executors)
        .map(|thread| {
            let (inner, routines) = (engine.clone(), routines.clone());
            let (start, running) = (start.clone(), running.clone());
            let (send, receive) = std::sync::mpsc::channel();
            let body = Box::new(move |handle: ExecutorHandle| {
                start.wait();
                let tally = run(mix, &inner, &handle, &routines, thread, time);
                running.fetch_sub(1, Ordering::AcqRel);
                while running.load(Ordering::Acquire) > 0 {
                    let _ = handle.drain(SliceBudget::default());
                }
                let _ = send.send(tally);
            });
            (engine.start_executor(ExecutorId(thread), body).expect("an executor starts"), receive)
        })
        .collect();
    threads
        .into_iter()
        .map(|(thread, receive)| {
            let tally = receive.recv().expect("the mix runs");
            thread.join().expect("the executor ends");
            tally
        })
        .collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs the mix on one executor and on two in turn, and prints what each call takes and what
/// the second executor brings.
pub fn measure<M: Mix>(mix: M, db: &Database, time: Duration) {
    let routines = Arc::new(M::CALLS.iter().map(|(name, _)| db.program(name)).collect::<Vec<_>>());
    if argument("monitor=").is_some_and(|value| value == "off") {
        let off = MonitorSettings { measures: false, ..MonitorSettings::default() };
        db.engine.set_monitor(off);
    }
    if argument("calls=").is_some() {
        let tally = round(mix, &db.engine, &routines, 1, Duration::MAX);
        println!("{} calls, {:.0} ns each", tally[0].done.iter().sum::<u64>(), 1e9 / tally[0].cpu_rate());
        return;
    }
    let rounds: Vec<[Vec<Tally>; 2]> = (0..ROUNDS)
        .map(|_| [1, 2].map(|executors| round(mix, &db.engine, &routines, executors, time)))
        .collect();
    let of = |executors: usize, rate: fn(&Tally) -> f64| {
        median(rounds.iter().map(|round| round[executors - 1].iter().map(rate).sum()).collect())
    };
    println!("{:<24} {:>10} {:>8}", "", "calls", "us each");
    for (which, (name, _)) in M::CALLS.iter().enumerate() {
        let mut each: Vec<f64> = Vec::new();
        let mut calls = 0;
        for round in &rounds {
            let tally = &round[0][0];
            calls += tally.done[which];
            each.push(tally.spent[which].as_secs_f64() * 1e6 / tally.done[which] as f64);
        }
        if calls > 0 {
            println!("{name:<24} {calls:>10} {:>8.2}", median(each));
        }
    }
    let sum = |count: fn(&Tally) -> u64| rounds.iter().flatten().flatten().map(count).sum::<u64>();
    println!("{} rejected as the mix provides, {} restarts", sum(|t| t.failed), sum(|t| t.restarts));
    for executors in [1, 2] {
        println!(
            "{executors} executor{}: {:>8.0} tx/s of time in calls, {:>8.0} tx/s of processor time",
            if executors == 1 { " " } else { "s" },
            of(executors, Tally::rate),
            of(executors, Tally::cpu_rate),
        );
    }
    println!(
        "two over one: {:.2} of time in calls, {:.2} of processor time (medians of {ROUNDS})",
        of(2, Tally::rate) / of(1, Tally::rate),
        of(2, Tally::cpu_rate) / of(1, Tally::cpu_rate),
    );
}
