//! The driver's loop: every connection keeps `pipeline` calls in flight until time is up.
//!
//! With a rate the loop is open: there is one timetable, and the connections are a pool. Whichever
//! has room for a call takes the next moment and waits for it. A call that cannot leave at its
//! moment because the server still owes answers on every connection leaves late, and its latency
//! counts from the moment it should have left, so that a stall shows in every call that it held
//! up and not in one a connection (Gil Tene's coordinated omission).

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use archipel_engine::topology::mask::take_short_turns;
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::alarm::Alarm;
use super::client::Client;
use super::report::{Figures, write_json};
use crate::args::RunArgs;
use crate::error::{Result, WorkloadError};
use crate::workload::{Call, Terminal, Workload};

/// What all connections of a run share.
struct Shared {
    workload: Arc<dyn Workload>,
    /// Per connection: figures of the current second and of the measured time so far. Only the
    /// reporter shares the lock, once a second.
    figures: Vec<Mutex<(Figures, Figures)>>,
    acknowledged: Option<Mutex<std::io::BufWriter<std::fs::File>>>,
    measuring: AtomicBool,
    stop: AtomicBool,
    connected: AtomicU32,
    /// Nothing for a closed loop.
    timetable: Option<Timetable>,
}

/// When calls should leave, whichever connection they take.
struct Timetable {
    /// Nanoseconds from one call to the next.
    interval: f64,
    /// The first moment: that of whoever asks first.
    begin: OnceLock<Instant>,
    /// Moments that connections took.
    taken: AtomicU64,
    /// Those that no call left for.
    given_back: AtomicU64,
}

impl Timetable {
    fn new(rate: u32) -> Option<Timetable> {
        let interval = (rate > 0).then(|| 1e9 / f64::from(rate))?;
        Some(Timetable {
            interval,
            begin: OnceLock::new(),
            taken: AtomicU64::new(0),
            given_back: AtomicU64::new(0),
        })
    }

    /// The next moment; it is the caller's to send a call at.
    fn take(&self) -> Instant {
        let begin = *self.begin.get_or_init(Instant::now);
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        begin + Duration::from_nanos((number as f64 * self.interval) as u64)
    }

    /// Calls whose moment had come at `end`, and that never left.
    fn unsent(&self, end: Instant) -> u64 {
        let passed = self.begin.get().map_or(Duration::ZERO, |begin| end.saturating_duration_since(*begin));
        let due = (passed.as_nanos() as f64 / self.interval) as u64 + 1;
        let sent = self.taken.load(Ordering::Relaxed) - self.given_back.load(Ordering::Relaxed);
        due.saturating_sub(sent)
    }
}

/// A connection that waits for its moment looks this often whether the run has ended.
const LOOK: Duration = Duration::from_millis(100);

/// `archipel workload run`.
pub fn run(args: &RunArgs) -> Result<()> {
    let workload = args.target.name.workload(args.target.scale);
    let weights = weights(workload.calls(), &args.only)?;
    let acknowledged = match &args.acknowledged {
        Some(path) => Some(Mutex::new(std::io::BufWriter::new(std::fs::File::create(path)?))),
        None => None,
    };
    let blank = Figures::new(workload.calls().len());
    let shared = Arc::new(Shared {
        workload: workload.clone(),
        figures: (0..args.connections).map(|_| Mutex::new((blank.clone(), blank.clone()))).collect(),
        acknowledged,
        measuring: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        connected: AtomicU32::new(0),
        timetable: Timetable::new(args.rate),
    });
    let seed = match args.seed {
        0 => std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(1, |d| d.as_nanos() as u64),
        seed => seed,
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let threads = match args.threads {
        0 => (cores / 4).clamp(1, args.connections),
        threads => threads.min(args.connections),
    };
    let drivers: Vec<_> = (0..threads)
        .map(|thread| {
            let (shared, weights) = (shared.clone(), weights.clone());
            let connections: Vec<u32> = (thread..args.connections).step_by(threads as usize).collect();
            let (url, settings) = (args.target.url.clone(), args.settings.clone());
            let (all, pipeline) = (args.connections, args.pipeline as usize);
            std::thread::spawn(move || -> Result<()> {
                // On the server's machine, what the driver waits for a core would be counted as
                // latency, and what it holds one for is.
                take_short_turns();
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let tasks = connections.into_iter().map(|connection| {
                    let terminal =
                        shared.workload.terminal(connection, all, seed ^ u64::from(connection) << 32);
                    drive(&shared, connection as usize, terminal, &weights, &url, &settings, pipeline)
                });
                // Only connections with news are looked at: `join_all` would ask all of them each time.
                let outcomes = tasks.collect::<FuturesUnordered<_>>().collect::<Vec<_>>();
                runtime.block_on(outcomes).into_iter().collect()
            })
        })
        .collect();
    let (elapsed, began, seconds) =
        watch(args, &shared, || drivers.iter().all(|driver| driver.is_finished()));
    let stopped = Instant::now();
    shared.stop.store(true, Ordering::Relaxed);
    let mut failure = None;
    for driver in drivers {
        match driver.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failure = failure.or(Some(error)),
            Err(_) => failure = failure.or(Some(WorkloadError::Protocol("a driver thread panicked".into()))),
        }
    }
    if let Some(writer) = &shared.acknowledged {
        writer.lock().expect("no driver panicked while writing").flush()?;
    }
    let mut total = blank;
    for figures in &shared.figures {
        total.merge(&figures.lock().expect("no driver panicked while recording").1);
    }
    print!("{}", total.table(workload.calls(), elapsed));
    if let Some(path) = &args.json {
        let settings = serde_json::json!({
            "workload": format!("{:?}", args.target.name).to_lowercase(),
            "scale": args.target.scale,
            "connections": args.connections,
            "pipeline": args.pipeline,
            "rate": args.rate,
            "unsent": shared.timetable.as_ref().map_or(0, |timetable| timetable.unsent(stopped)),
            "threads": threads,
            "settings": args.settings,
            "began": began,
            "committed_each_second": seconds,
        });
        write_json(path, &total.json(workload.calls(), elapsed, settings))?;
    }
    failure.map_or(Ok(()), Err)
}

/// Prints a line a second and waits for the end; answers the measured time, when it began
/// (seconds of the Unix epoch) and the calls committed in each whole second of it.
fn watch(args: &RunArgs, shared: &Shared, finished: impl Fn() -> bool) -> (Duration, f64, Vec<u64>) {
    while shared.connected.load(Ordering::Acquire) < args.connections && !finished() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let begin = Instant::now();
    let warmup = Duration::from_secs(u64::from(args.warmup));
    while begin.elapsed() < warmup && !finished() {
        std::thread::sleep(Duration::from_millis(10));
    }
    shared.measuring.store(true, Ordering::Release);
    let start = Instant::now();
    let began = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64());
    let mut seconds = Vec::new();
    let mut last = start;
    for second in 1..=u64::from(args.duration) {
        while start.elapsed() < Duration::from_secs(second) {
            if finished() {
                return (start.elapsed(), began, seconds);
            }
            std::thread::sleep(
                Duration::from_millis(20)
                    .min(Duration::from_secs(second) - start.elapsed().min(Duration::from_secs(second))),
            );
        }
        let mut window = Figures::new(shared.workload.calls().len());
        for figures in &shared.figures {
            let recent = &mut figures.lock().expect("no driver panicked while recording").0;
            window.merge(recent);
            *recent = Figures::new(shared.workload.calls().len());
        }
        seconds.push(window.committed());
        if !args.quiet {
            println!("{}", window.live_line(second, last.elapsed()));
        }
        last = Instant::now();
    }
    shared.measuring.store(false, Ordering::Release);
    (start.elapsed(), began, seconds)
}

/// One connection's life.
async fn drive(
    shared: &Shared,
    connection: usize,
    mut terminal: Box<dyn Terminal>,
    weights: &[u32],
    url: &str,
    settings: &[String],
    pipeline: usize,
) -> Result<()> {
    let mut client = Client::connect(url).await?;
    for setting in settings {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| WorkloadError::Usage(format!("--set {setting}: expected name=value")))?;
        client.simple(&format!("SET {name} = '{}'", value.replace('\'', "''"))).await?;
    }
    for (number, call) in shared.workload.calls().iter().enumerate() {
        client.prepare(number, call.sql).await?;
    }
    shared.connected.fetch_add(1, Ordering::Release);
    let total: u32 = weights.iter().sum();
    let mut alarm = Alarm::new()?;
    // The moment that this connection has taken and not sent a call at.
    let mut due: Option<Instant> = None;
    loop {
        let stopping = shared.stop.load(Ordering::Relaxed);
        while !stopping && client.in_flight() < pipeline {
            let started = match &shared.timetable {
                None => Instant::now(),
                Some(timetable) => {
                    let moment = *due.get_or_insert_with(|| timetable.take());
                    if moment > Instant::now() {
                        break;
                    }
                    due = None;
                    moment
                }
            };
            let mut ticket = terminal.pick(total);
            let call = weights
                .iter()
                .position(|&weight| {
                    let here = ticket < weight;
                    ticket = ticket.wrapping_sub(if here { 0 } else { weight });
                    here
                })
                .unwrap_or(0);
            client.queue(call, started, |parameters| terminal.fill(call, parameters))?;
        }
        if client.in_flight() == 0 && stopping {
            if let (Some(timetable), Some(_)) = (&shared.timetable, due) {
                timetable.given_back.fetch_add(1, Ordering::Relaxed);
            }
            return Ok(());
        }
        client.flush().await?;
        if client.in_flight() == 0 {
            let look = Instant::now() + LOOK;
            alarm.until(due.map_or(look, |moment| moment.min(look))).await?;
            continue;
        }
        let moment = due.filter(|_| !stopping);
        let measuring = shared.measuring.load(Ordering::Relaxed);
        let answers = client.receive(|ended| {
            let expected = ended.failed.is_some_and(|state| terminal.expected(ended.call, &state));
            if measuring {
                let mut figures = shared.figures[connection].lock().expect("the reporter does not panic");
                figures.0.record(ended.call, ended.micros, ended.failed, expected);
                figures.1.record(ended.call, ended.micros, ended.failed, expected);
            }
            if let (Some(file), None, Some(result)) = (&shared.acknowledged, ended.failed, ended.result)
                && let Some(line) = terminal.acknowledged(ended.call, ended.parameters, result)
            {
                // A line that cannot be written is only one order fewer to check.
                let _ = writeln!(file.lock().expect("no driver panics while writing"), "{line}");
            }
        });
        // With room for another call, its moment may come before the next answer.
        match moment {
            Some(moment) => tokio::select! {
                answered = answers => answered?,
                rang = alarm.until(moment) => rang?,
            },
            None => answers.await?,
        }
    }
}

fn weights(calls: &[Call], only: &[String]) -> Result<Vec<u32>> {
    let named = |call: &Call| only.is_empty() || only.iter().any(|name| name == call.name);
    let weights = calls.iter().map(|call| if named(call) { call.weight } else { 0 }).collect();
    if only.iter().any(|name| calls.iter().all(|call| call.name != name)) {
        let names: Vec<_> = calls.iter().map(|call| call.name).collect();
        return Err(WorkloadError::Usage(format!("--only takes some of: {}", names.join(", "))));
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_come_evenly_and_those_without_a_call_are_told() {
        assert!(Timetable::new(0).is_none(), "a closed loop has no timetable");
        let timetable = Timetable::new(1_000).expect("an open loop has one");
        let moments: Vec<Instant> = (0..5).map(|_| timetable.take()).collect();
        assert!(moments.windows(2).all(|two| two[1] - two[0] == Duration::from_millis(1)));
        timetable.given_back.fetch_add(1, Ordering::Relaxed);
        let end = moments[0] + Duration::from_micros(9_500);
        assert_eq!(timetable.unsent(end), 10 - 4, "ten were due, four calls left");
        assert_eq!(timetable.unsent(moments[3]), 0);
    }
}
