//! The driver's loop: every connection keeps `pipeline` calls in flight until time is up.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::client::Client;
use super::report::{Figures, write_json};
use super::{Call, Result, RunArgs, Terminal, Workload, WorkloadError};

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
}

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
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let tasks = connections.into_iter().map(|connection| {
                    let terminal =
                        shared.workload.terminal(connection, all, seed ^ u64::from(connection) << 32);
                    drive(&shared, connection as usize, terminal, &weights, &url, &settings, pipeline)
                });
                let outcomes = runtime.block_on(futures::future::join_all(tasks));
                outcomes.into_iter().collect()
            })
        })
        .collect();
    let elapsed = watch(args, &shared, || drivers.iter().all(|driver| driver.is_finished()));
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
            "threads": threads,
            "settings": args.settings,
        });
        write_json(path, &total.json(workload.calls(), elapsed, settings))?;
    }
    failure.map_or(Ok(()), Err)
}

/// Prints a line a second and waits for the end; answers the measured time.
fn watch(args: &RunArgs, shared: &Shared, finished: impl Fn() -> bool) -> Duration {
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
    let mut last = start;
    for second in 1..=u64::from(args.duration) {
        while start.elapsed() < Duration::from_secs(second) {
            if finished() {
                return start.elapsed();
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
        if !args.quiet {
            println!("{}", window.live_line(second, last.elapsed()));
        }
        last = Instant::now();
    }
    shared.measuring.store(false, Ordering::Release);
    start.elapsed()
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
    loop {
        let stopping = shared.stop.load(Ordering::Relaxed);
        while !stopping && client.in_flight() < pipeline {
            let mut ticket = terminal.pick(total);
            let call = weights
                .iter()
                .position(|&weight| {
                    let here = ticket < weight;
                    ticket = ticket.wrapping_sub(if here { 0 } else { weight });
                    here
                })
                .unwrap_or(0);
            client.queue(call, |parameters| terminal.fill(call, parameters))?;
        }
        if client.in_flight() == 0 {
            return Ok(());
        }
        client.flush().await?;
        let measuring = shared.measuring.load(Ordering::Relaxed);
        client
            .receive(|ended| {
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
            })
            .await?;
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
