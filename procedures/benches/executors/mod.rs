//! A mix of calls on one executor and on two, each with a share of the data as its own, and on as
//! many engines that share nothing but the machine: what those do together is all that it has to
//! give. Then the calls that are written by hand as well, over the same engine, each beside its
//! routine.
//!
//! Arguments: `only=ROUTINE` calls nothing else; `monitor=off` measures nothing for the monitor;
//! `executors=N` runs the mix on 1, 2, 4, … executors up to so many, and nothing by hand;
//! `json=FILE` writes the figures of that there; `calls=N` runs so many calls on one executor and
//! ends, for counting instructions:
//!
//! ```sh
//! valgrind --tool=callgrind target/release/deps/tatp-… 2000 1 only=get_subscriber_data calls=50000
//! ```

mod log_writer;

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use archipel_engine::id::ExecutorId;
use archipel_engine::{
    Completed, Engine, ExecutorHandle, MonitorSettings, Outcome, Program as EngineProgram, SliceBudget, Stop,
    Submission, SubmitOptions,
};
use archipel_procedures::{CallProgram, Program};
use archipel_sql::datum::Datum;

use crate::by_hand::{ByHand, HandProgram};
use crate::common::{Database, Host};
use log_writer::LogWriter;

/// The server's: calls take and give back memory as they do there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is compared takes turns, so many, and the medians over them count: what else the machine
/// does lasts longer than a turn and meets all sides of one.
const TURNS: usize = 9;

/// A turn's part of the seconds that are asked for.
const PART_OF_A_TURN: u32 = 3;

/// Calls that an executor has on their way at most. As it serves many connections, it runs the
/// call of another one while the partitions of one are busy.
const ON_THEIR_WAY_MAX: usize = 8;

/// A small generator: the mix must be the same each time the bench runs.
pub struct Random(u64);

impl Random {
    /// What an executor's thread draws in a run. No run draws what an earlier one has drawn: the
    /// rows it would insert are there by then.
    pub fn new(thread: u16, run: usize) -> Random {
        const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
        Random((SEED ^ u64::from(thread) << 32).wrapping_mul(2 * run as u64 + 1))
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
    /// Makes the database the mix is over.
    fn load(&self) -> Database;
    /// The mix over one thread's share of the data, which is all there is.
    fn alone(&self) -> Self;
    /// Routines, and their shares in a hundred calls.
    const CALLS: &'static [(&'static str, i32)];
    /// Arguments of one call by an executor's thread.
    fn arguments(&self, which: usize, random: &mut Random, thread: u16) -> Vec<Datum>;
    /// Whether the mix provides for this failure.
    fn expects(&self, state: &str, message: &str) -> bool;
    /// The calls written by hand.
    fn by_hand(&self, db: &Database) -> Arc<dyn ByHand>;
}

/// What one thread did: by call, and in all.
#[derive(Clone, Default)]
struct Tally {
    done: Vec<u64>,
    /// Calls that failed as the mix provides: no transactions, but they take their time.
    failed: Vec<u64>,
    /// In both, as far as they ran on the spot.
    spent: Vec<Duration>,
    /// Calls whose partitions were busy, and the time in which they were waited for and run.
    queued: u64,
    serving: Duration,
    restarts: u64,
    cpu_nanos: u64,
}

impl Tally {
    fn of(calls: usize) -> Tally {
        let (none, no_time) = (vec![0; calls], vec![Duration::ZERO; calls]);
        Tally { done: none.clone(), failed: none, spent: no_time, ..Tally::default() }
    }

    /// Microseconds a call of this kind took, whether it succeeded or not.
    fn micros(&self, which: usize) -> f64 {
        self.spent[which].as_secs_f64() * 1e6 / (self.done[which] + self.failed[which]) as f64
    }

    /// Notes how a call ended; its program is free again.
    fn settle<M: Mix, P: Calls>(&mut self, mix: M, which: usize, completed: Completed<P>) -> P {
        let Completed { program, outcome } = completed;
        self.restarts += u64::from(outcome.restarts);
        match outcome.result {
            Ok(()) => self.done[which] += 1,
            Err(stop) if program.may_stop(mix, stop) => self.failed[which] += 1,
            Err(stop) => panic!("{}: {stop:?}", M::CALLS[which].0),
        }
        program
    }

    /// Transactions a second of time in calls.
    fn rate(&self) -> f64 {
        let time = self.spent.iter().sum::<Duration>() + self.serving;
        self.done.iter().sum::<u64>() as f64 / time.as_secs_f64()
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

/// How many executors the mix scales to, if that is what the command line asks for.
fn scaled_to() -> Option<u16> {
    argument("executors=").map(|count| count.parse().expect("a number of executors"))
}

/// How many executors have a share of the data: two, or as many as the command line says.
pub fn executors_max() -> u16 {
    scaled_to().map_or(2, |count| count.max(1))
}

/// 1, 2, 4, … and the greatest number itself.
fn numbers_of_executors() -> Vec<u16> {
    let max = executors_max();
    let doubled = std::iter::successors(Some(1u16), |count| count.checked_mul(2));
    let mut counts: Vec<u16> = doubled.take_while(|count| *count < max).collect();
    counts.push(max);
    counts
}

/// A call that is submitted again and again with other arguments.
///
/// Its program stays with its thread: a count of references that threads share is a cache line
/// they all write.
trait Calls: EngineProgram + Sized {
    fn prepare(&mut self, args: Vec<Datum>);
    /// Whether the call may end like this.
    fn may_stop<M: Mix>(&self, mix: M, stop: Stop) -> bool;
}

/// In a box, as the server's: it changes hands on the way.
type RoutineCall = Box<CallProgram<Host>>;

impl Calls for RoutineCall {
    fn prepare(&mut self, args: Vec<Datum>) {
        self.args = args;
    }

    fn may_stop<M: Mix>(&self, mix: M, stop: Stop) -> bool {
        match &self.error {
            Some(error) => mix.expects(error.state().as_str(), error.message()),
            // The budget is wall-clock time: a busy machine uses it up.
            None => stop == Stop::Interactive,
        }
    }
}

impl Calls for HandProgram {
    fn prepare(&mut self, args: Vec<Datum>) {
        self.args = args;
    }

    fn may_stop<M: Mix>(&self, _mix: M, stop: Stop) -> bool {
        stop == Stop::Abort
    }
}

/// A call of a routine.
fn routine(programs: &[Arc<Program>], which: usize, engine: &Engine) -> RoutineCall {
    Box::new(CallProgram::new(programs[which].clone(), Vec::new(), Arc::<Host>::default(), engine.clone()))
}

/// Submits a call and serves its executor until it is done.
fn submit<P: Calls>(engine: &Engine, handle: &ExecutorHandle, program: P) -> (P, Outcome) {
    let mut submission = engine.submit(program, SubmitOptions::default());
    loop {
        match submission.try_take() {
            Some(completed) => return (completed.program, completed.outcome),
            // Its partitions are busy: meanwhile this executor serves, as a driver does.
            None => drop(handle.drain(SliceBudget::default())),
        }
    }
}

/// Calls whose partitions were busy when they were submitted.
struct Queued<P: Calls> {
    calls: Vec<(usize, Submission<P>)>,
    /// Those that are done, by what they call.
    idle: Vec<Vec<P>>,
}

impl<P: Calls> Queued<P> {
    /// Serves the executor for a slice, and takes what is done.
    fn serve<M: Mix>(&mut self, mix: M, handle: &ExecutorHandle, tally: &mut Tally) {
        let start = Instant::now();
        let _ = handle.drain(SliceBudget::default());
        let mut at = 0;
        while let Some((which, submission)) = self.calls.get_mut(at) {
            match submission.try_take() {
                Some(completed) => {
                    self.idle[*which].push(tally.settle(mix, *which, completed));
                    drop(self.calls.swap_remove(at));
                }
                None => at += 1,
            }
        }
        tally.serving += start.elapsed();
    }
}

/// Runs the mix, or one of its calls alone, on a thread.
fn run<M: Mix, P: Calls>(
    mix: M,
    engine: &Engine,
    handle: &ExecutorHandle,
    new_program: impl Fn(usize) -> P,
    only: Option<usize>,
    (thread, number): (u16, usize),
    time: Duration,
) -> Tally {
    let calls = M::CALLS;
    let calls_max: u64 = argument("calls=").and_then(|count| count.parse().ok()).unwrap_or(u64::MAX);
    let mut tally = Tally::of(calls.len());
    let idle = calls.iter().map(|_| Vec::new()).collect();
    let mut queued = Queued { calls: Vec::new(), idle };
    let mut random = Random::new(thread, number);
    let (began, cpu_began) = (Instant::now(), thread_cpu_nanos());
    while began.elapsed() < time && tally.done.iter().sum::<u64>() < calls_max {
        let mut ticket = random.between(1, 100);
        let drawn = calls.iter().position(|(_, share)| {
            ticket -= share;
            ticket <= 0
        });
        let which = only.or(drawn).expect("the shares add up to a hundred");
        let mut program = queued.idle[which].pop().unwrap_or_else(|| new_program(which));
        program.prepare(mix.arguments(which, &mut random, thread));
        let start = Instant::now();
        let mut submission = engine.submit(program, SubmitOptions::default());
        let completed = submission.try_take();
        tally.spent[which] += start.elapsed();
        match completed {
            Some(completed) => queued.idle[which].push(tally.settle(mix, which, completed)),
            None => {
                tally.queued += 1;
                queued.calls.push((which, submission));
            }
        }
        while !queued.calls.is_empty() {
            queued.serve(mix, handle, &mut tally);
            if queued.calls.len() < ON_THEIR_WAY_MAX {
                break;
            }
        }
    }
    while !queued.calls.is_empty() {
        queued.serve(mix, handle, &mut tally);
    }
    tally.cpu_nanos = thread_cpu_nanos() - cpu_began;
    tally
}

/// The call of the mix that the command line asks for.
fn only<M: Mix>() -> Option<usize> {
    argument("only=").and_then(|name| M::CALLS.iter().position(|(call, _)| *call == name))
}

/// A mix over its database.
struct Loaded<M: Mix> {
    mix: M,
    db: Database,
    routines: Arc<Vec<Arc<Program>>>,
    _log_writer: LogWriter,
}

impl<M: Mix> Loaded<M> {
    fn of(mix: M) -> Loaded<M> {
        let db = mix.load();
        let routines = Arc::new(M::CALLS.iter().map(|(name, _)| db.program(name)).collect());
        if argument("monitor=").is_some_and(|value| value == "off") {
            let off = MonitorSettings { measures: false, ..MonitorSettings::default() };
            db.engine.set_monitor(off);
        }
        let log_writer = LogWriter::start(db.engine.clone(), db.store.clone());
        Loaded { mix, db, routines, _log_writer: log_writer }
    }
}

/// The run of this number, each thread on an executor of a database.
fn run_on<'d, M: Mix>(
    executors: impl ExactSizeIterator<Item = (&'d Loaded<M>, u16)>,
    number: usize,
    time: Duration,
) -> Vec<Tally> {
    let start = Arc::new(Barrier::new(executors.len()));
    let running = Arc::new(AtomicU16::new(executors.len() as u16));
    let threads: Vec<_> = executors
        .map(|(loaded, thread)| {
            let (mix, engine) = (loaded.mix, &loaded.db.engine);
            let (inner, routines) = (engine.clone(), loaded.routines.clone());
            let (start, running) = (start.clone(), running.clone());
            let (send, receive) = std::sync::mpsc::channel();
            let body = Box::new(move |handle: ExecutorHandle| {
                start.wait();
                let program = |which| routine(&routines, which, &inner);
                let tally = run(mix, &inner, &handle, program, only::<M>(), (thread, number), time);
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

/// Runs a body on a thread of the first executor.
fn on_executor<T: Send + 'static>(
    engine: &Engine,
    body: impl FnOnce(&Engine, &ExecutorHandle) -> T + Send + 'static,
) -> T {
    let (inner, (send, receive)) = (engine.clone(), std::sync::mpsc::channel());
    let body = Box::new(move |handle: ExecutorHandle| {
        let _ = send.send(body(&inner, &handle));
    });
    let thread = engine.start_executor(ExecutorId(0), body).expect("an executor starts");
    let result = receive.recv().expect("the body ends");
    thread.join().expect("the executor ends");
    result
}

/// How many calls a routine and its twin must answer alike before they are measured.
const COMPARED: usize = 200;

/// Runs each call that is written by hand in turn with its routine, and prints what they take.
fn measure_by_hand<M: Mix>(loaded: &Loaded<M>, time: Duration) {
    let Loaded { mix, db, routines: programs, .. } = loaded;
    let (mix, by_hand) = (*mix, loaded.mix.by_hand(db));
    println!("{:<24} {:>10} {:>8} {:>8}", "", "routine us", "by hand", "ratio");
    let known = (0..M::CALLS.len()).filter(|which| by_hand.knows(*which));
    for which in known.filter(|which| only::<M>().is_none_or(|only| only == *which)) {
        let name = M::CALLS[which].0;
        let hand = move |by_hand: &Arc<dyn ByHand>| HandProgram {
            by_hand: by_hand.clone(),
            which,
            args: Vec::new(),
            answer: Vec::new(),
        };
        let (twin, routines) = (by_hand.clone(), programs.clone());
        on_executor(&db.engine, move |engine, handle| {
            let mut random = Random::new(7, 0);
            let (mut routine, mut written) = (routine(&routines, which, engine), hand(&twin));
            for _ in 0..COMPARED {
                let args = mix.arguments(which, &mut random, 0);
                routine.prepare(args.clone());
                written.prepare(args.clone());
                let (one, other);
                (routine, one) = submit(engine, handle, routine);
                (written, other) = submit(engine, handle, written);
                assert_eq!(one.result.is_ok(), other.result.is_ok(), "{name} {args:?}");
                if one.result.is_ok() {
                    let answer: Vec<Datum> = routine.rows.values.clone();
                    assert!(
                        twin.agree(which, &args, &answer, &written.answer),
                        "{name} {args:?}: {answer:?} and {:?}",
                        written.answer
                    );
                }
            }
        });
        let mut each = [Vec::new(), Vec::new()];
        for number in 0..TURNS {
            let (twin, routines) = (by_hand.clone(), programs.clone());
            let tallies = on_executor(&db.engine, move |engine, handle| {
                let called = |which| routine(&routines, which, engine);
                let routine = || run(mix, engine, handle, called, Some(which), (0, number), time);
                let by_hand = || run(mix, engine, handle, |_| hand(&twin), Some(which), (0, number), time);
                // The second one finds rows in the caches that the first has touched.
                if number % 2 == 0 {
                    [routine(), by_hand()]
                } else {
                    let by_hand = by_hand();
                    [routine(), by_hand]
                }
            });
            for (each, tally) in each.iter_mut().zip(tallies) {
                each.push(tally.micros(which));
            }
        }
        let ratio = median(each[0].iter().zip(&each[1]).map(|(routine, hand)| routine / hand).collect());
        let [routine, by_hand] = each.map(median);
        println!("{name:<24} {routine:>10.2} {by_hand:>8.2} {ratio:>8.2}");
    }
}

/// What executors of one engine did in a run, and as many engines with one each.
struct Measured {
    together: Vec<Tally>,
    apart: Vec<Tally>,
}

/// What so many executors did: medians over the turns.
struct Scaled {
    executors: u16,
    time: Rate,
    processor: Rate,
}

/// Transactions a second.
struct Rate {
    /// Of one engine's executors.
    together: f64,
    /// How many times one executor's in the same turn.
    over_one: f64,
    /// The same of engines apart.
    apart_over_one: f64,
}

impl Rate {
    /// `turns` have what each number of executors did, one executor's first.
    fn of(place: usize, turns: &[Vec<Measured>], rate: fn(&Tally) -> f64) -> Rate {
        let all = |tallies: &[Tally]| tallies.iter().map(rate).sum::<f64>();
        let over_turns =
            |of: &dyn Fn(&[Measured]) -> f64| median(turns.iter().map(|turn| of(turn)).collect());
        Rate {
            together: over_turns(&|turn| all(&turn[place].together)),
            over_one: over_turns(&|turn| all(&turn[place].together) / all(&turn[0].together)),
            apart_over_one: over_turns(&|turn| all(&turn[place].apart) / all(&turn[0].apart)),
        }
    }

    fn text(&self) -> String {
        let Rate { together, over_one, apart_over_one } = self;
        format!("{together:>9.0} tx/s ({over_one:.2}, apart {apart_over_one:.2})")
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "transactions_per_second": self.together,
            "over_one": self.over_one,
            "apart_over_one": self.apart_over_one,
        })
    }
}

impl Scaled {
    fn of(executors: u16, place: usize, turns: &[Vec<Measured>]) -> Scaled {
        let rate = |of| Rate::of(place, turns, of);
        Scaled { executors, time: rate(Tally::rate), processor: rate(Tally::cpu_rate) }
    }

    fn print(&self) {
        let Scaled { executors, time, processor } = self;
        let word = if *executors == 1 { "executor:  " } else { "executors: " };
        println!(
            "{executors:>2} {word}{} of time in calls, {} of processor time",
            time.text(),
            processor.text()
        );
    }

    fn json(&self) -> serde_json::Value {
        let (time, processor) = (self.time.json(), self.processor.json());
        serde_json::json!({ "executors": self.executors, "time": time, "processor_time": processor })
    }
}

/// Runs the mix on one executor and on more of them in turn, and prints what each call takes and
/// what the others bring; then what is written by hand.
pub fn measure<M: Mix>(mix: M, time: Duration) {
    let loaded = Loaded::of(mix);
    if argument("calls=").is_some() {
        let tally = run_on([(&loaded, 0)].into_iter(), 0, Duration::MAX);
        println!("{} calls, {:.0} ns each", tally[0].done.iter().sum::<u64>(), 1e9 / tally[0].cpu_rate());
        return;
    }
    let alone: Vec<Loaded<M>> = (0..executors_max()).map(|_| Loaded::of(mix.alone())).collect();
    let (counts, part) = (numbers_of_executors(), time / PART_OF_A_TURN);
    let turns: Vec<Vec<Measured>> = (0..TURNS)
        .map(|turn| {
            let run = |(place, of): (usize, &u16)| {
                let number = counts.len() * turn + place + 1;
                let together = || run_on((0..*of).map(|thread| (&loaded, thread)), number, part);
                let apart = || run_on(alone[..usize::from(*of)].iter().map(|one| (one, 0)), number, part);
                if turn % 2 == 0 {
                    Measured { together: together(), apart: apart() }
                } else {
                    let apart = apart();
                    Measured { together: together(), apart }
                }
            };
            counts.iter().enumerate().map(run).collect()
        })
        .collect();
    println!("{:<24} {:>10} {:>10} {:>8}", "", "calls", "rejected", "us each");
    for (which, (name, _)) in M::CALLS.iter().enumerate() {
        let ones = || turns.iter().map(|turn| &turn[0].together[0]);
        let failed: u64 = ones().map(|tally| tally.failed[which]).sum();
        let calls = failed + ones().map(|tally| tally.done[which]).sum::<u64>();
        if calls > 0 {
            let each = median(ones().map(|tally| tally.micros(which)).collect());
            println!("{name:<24} {calls:>10} {failed:>10} {each:>8.2}");
        }
    }
    let together = || turns.iter().flatten().flat_map(|measured| &measured.together);
    let sum = |count: fn(&Tally) -> u64| together().map(count).sum::<u64>();
    let (queued, restarts) = (sum(|tally| tally.queued), sum(|tally| tally.restarts));
    println!("rejected: as the mix provides; {queued} calls queued, {restarts} restarts, in all");
    let scaled = |(place, count): (usize, &u16)| Scaled::of(*count, place, &turns);
    let scaled: Vec<Scaled> = counts.iter().enumerate().map(scaled).collect();
    scaled.iter().for_each(Scaled::print);
    println!(
        "in parentheses: times what one executor does in the same turn, and engines apart; medians of {TURNS} turns"
    );
    if let Some(file) = argument("json=") {
        let figures = serde_json::Value::from_iter(scaled.iter().map(Scaled::json));
        std::fs::write(&file, figures.to_string()).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    if scaled_to().is_some() {
        return;
    }
    measure_by_hand(&loaded, part);
}
