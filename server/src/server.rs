//! The whole server: start, recovery, the threads, shutdown; and what all threads share ([`Server`]).

mod engine_settings;
pub mod row_places;
mod shared;
pub mod snapshot_export;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use archipel_analytics::Analytics;
use archipel_engine::heap;
use archipel_engine::log::LogStore;
use archipel_engine::log::discard::DiscardUnsynced;
use archipel_engine::spawn::DeepSpawn;
use archipel_engine::{Engine, Seams};
use archipel_rocksdb::{RocksLogStore, RocksOptions};
use archipel_sql::catalog::{Catalog, ObjectNumbers};
use archipel_sql::stack::THREAD_BYTES;
use engine_settings::{asked_for, check_connections, engine_config};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::authentication::first_password;
use crate::authentication::rules::{Rules, Sources};
use crate::authentication::state::Authentication;
use crate::clock::now;
use crate::config::Config;
use crate::core_change::Following;
use crate::database::Databases;
use crate::front::{Arrival, Door, Doors, Front};
use crate::http::token::Token;
use crate::listen;
use crate::listen::SocketAccess;
use crate::server::row_places::RowPlaces;
use crate::sessions::Sessions;
use crate::settings::live::Live;
use crate::statement::planning_threads::PlanningThreads;
use crate::threads::{self, Threads};
use crate::tls::ServerTls;
use crate::transaction_ids::TransactionIds;
use crate::wire::socket::Socket;
pub use engine_settings::{StartError, check_config};
pub use shared::{Counters, EngineDurability, Server};
use snapshot_export::ExportedSnapshots;

/// The sockets clients connect to. The files of Unix sockets go when this does.
struct Doorways {
    sockets: Vec<socket2::Socket>,
    /// Of those for TCP.
    addresses: Vec<SocketAddr>,
    files: Vec<listen::SocketFile>,
}

/// Opens the TCP addresses and the Unix sockets. A directory that takes no socket is a warning as
/// long as another one does, as in PostgreSQL; the default directory is never insisted on.
fn open_doorways(config: &Config) -> Result<Doorways, StartError> {
    let (mut sockets, addresses): (Vec<_>, Vec<_>) = config.listen.open()?.into_iter().unzip();
    // Asked for any port: the sockets bear the number of the one found.
    let port = addresses.first().map_or(config.listen.port, SocketAddr::port);
    let access =
        SocketAccess::of_settings(config.text("unix_socket_permissions"), config.text("unix_socket_group"))
            .map_err(StartError::Other)?;
    let mut files = Vec::new();
    for directory in &config.socket_directories {
        match listen::unix(directory, port, &config.data_directory, access) {
            Ok((socket, file)) => {
                sockets.push(socket);
                files.push(file);
            }
            Err(error) if config.sockets_required && config.socket_directories.len() == 1 => {
                return Err(error.into());
            }
            Err(error) => tracing::warn!("{error}"),
        }
    }
    if files.is_empty() && config.sockets_required && !config.socket_directories.is_empty() {
        return Err(StartError::Other("could not create any Unix-domain sockets".into()));
    }
    if sockets.is_empty() {
        return Err(StartError::Other("no socket created for listening".into()));
    }
    Ok(Doorways { sockets, addresses, files })
}

fn open_store(config: &Config) -> Result<Arc<dyn LogStore>, StartError> {
    let directory: &Path = &config.data_directory;
    archipel_rocksdb::private_folder(directory).map_err(|error| {
        StartError::Other(format!("cannot create the data directory {}: {error}", directory.display()))
    })?;
    let store = RocksLogStore::open(directory, RocksOptions::default())?;
    // The directory is ours from here on.
    crate::backup::stream::remove_leftovers(directory);
    Ok(match config.text("archipel.log_store") {
        "discard-unsynced" => Arc::new(DiscardUnsynced::new(store)),
        _ => Arc::new(store),
    })
}

/// Opens the engine of a data directory, telling about recovery as it goes.
fn open_engine(config: &Config) -> Result<Engine, StartError> {
    check_connections(config)?;
    let store = open_store(config)?;
    let began = Instant::now();
    let told = AtomicUsize::new(0);
    let topology = asked_for(config)?;
    let engine_config = engine_config(config, &topology)?;
    let spawn = Arc::new(DeepSpawn { bytes: THREAD_BYTES, bytes_for_program: threads::stack_for_program });
    let seams = Seams { topology: Some(Arc::new(topology)), spawn, ..Seams::default() };
    archipel_planner::row::install_key_forms();
    let engine = Engine::open_with(engine_config, store, seams, &|progress| {
        // At most one line a second.
        let second = began.elapsed().as_secs() as usize;
        if second > told.swap(second, Ordering::Relaxed) {
            tracing::info!("recovery: {progress:?}");
        }
    })?;
    shorten_log(&engine);
    tracing::info!("the database is ready after {:.2} s", began.elapsed().as_secs_f64());
    Ok(engine)
}

/// Of what a log may have, one of so much is cut before anybody is served.
const FAR_TOO_LONG: u64 = 2;

/// Takes a checkpoint before anybody is served, if recovery found a far longer log than there may be.
/// Then checkpoints fall behind: beside clients that take every core the next one may not end
/// before the next crash, and each start would find a longer log than the one before. A shorter
/// log is cut beside the first clients, at the pace that the room left asks for, without a rest where
/// none is left: they need not wait for it.
fn shorten_log(engine: &Engine) {
    let log = engine.log();
    let log_bytes = log.counters.bytes_since_checkpoint;
    if log_bytes <= log.log_bytes_max.saturating_mul(FAR_TOO_LONG) {
        return;
    }
    tracing::info!("taking a checkpoint first: the log has {:.0} MB", log_bytes as f64 / 1e6);
    // On a full disk, for one: what there is can still be read.
    if let Err(error) = engine.checkpoint() {
        tracing::warn!("no checkpoint could be taken: {error}");
    }
}

/// Runs a server until it is told to stop.
pub fn run(config: Config) -> Result<(), StartError> {
    start_logging();
    // From the first row that recovery reads.
    crate::memory::bound(config.integer("max_memory"));
    let (sources, password) = (Sources::of(&config, config.boolean("ssl")), first_password::given());
    let password = password.map_err(StartError::Configuration)?;
    let rules = Rules::read(&sources).map_err(StartError::Configuration)?;
    let tls = Arc::new(ServerTls::start(&config)?);
    let http_token = Token::read(&config).map_err(StartError::Configuration)?;
    let Doorways { sockets, addresses, files } = open_doorways(&config)?;
    let http = config.http.map(listen::tcp).transpose()?;
    let engine = open_engine(&config)?;
    let (catalogs, numbers) = crate::catalog::load(&engine)?;
    let catalogs = with_first_password(&engine, catalogs, &numbers, password)?;
    // All have the same roles.
    if let Some(catalog) = catalogs.first() {
        first_password::check_listen(&addresses, &rules, catalog, sources.hba_file())
            .map_err(StartError::Configuration)?;
    }
    let front = start_front()?;
    let analytical_threads = start_analytical_threads(engine.active_executors())?;
    let niced = Threads::new("beside", begin_beside);
    let waiting = Threads::new("waiting", heap::settle_at_end);
    let planning = PlanningThreads::new(engine.active_executors(), niced.clone());
    let (doors, arrivals) = doors_of(engine.executors_max());
    let doors = Arc::new(doors);
    let analytics = Analytics::new(analytical_memory_bytes(&config))
        .map_err(|error| StartError::Other(error.message().to_owned()))?;
    let start = engine.number_start();
    let server = Arc::new(Server {
        sessions: Sessions::new(
            config.integer("max_connections") as usize,
            config.integer("superuser_reserved_connections") as usize,
        ),
        transaction_ids: TransactionIds::of_start(start),
        row_places: RowPlaces::of_start(start),
        exported: ExportedSnapshots::default(),
        engine: engine.clone(),
        databases: Databases::new(catalogs, numbers),
        started: Instant::now(),
        started_at: now(),
        statement_memory_max: config.integer("archipel.statement_memory"),
        counters: doors.0.iter().map(|_| Counters::default()).collect(),
        doors: doors.clone(),
        closing: Arc::default(),
        tls: tls.clone(),
        http_token: ArcSwapOption::from(http_token.map(Arc::new)),
        front: front.handle().clone(),
        analytics,
        analytical_threads: analytical_threads.handle().clone(),
        niced: niced.clone(),
        waiting: waiting.clone(),
        planning,
        live: Live::new(config.values.clone()),
        authentication: Authentication::new(rules, &config.data_directory),
        config,
    });
    // Reading routines compiles them, which may take its time.
    for database in server.databases.all() {
        analytical_threads.spawn(crate::design::follow(server.clone(), database));
    }
    let _memory_watch = crate::memory::Watch::begin(server.config.integer("max_memory"))
        .map_err(|error| StartError::Other(format!("cannot start a thread: {error}")))?;
    let (stop, stopped) = watch::channel(false);
    let following = Arc::new(Following::new(server.clone(), arrivals, stopped));
    for info in engine.executors().iter().filter(|executor| executor.active) {
        following.begin(info.id)?;
    }
    engine.on_topology_change(Some(following.clone()));
    let (sessions, closing) = (server.sessions.clone(), server.closing.clone());
    let entrance = Arc::new(Front { doors, sessions, tls, closing, host: server.clone() });
    let unix = files.iter().map(|file| file.path().display().to_string());
    let places = addresses.iter().map(SocketAddr::to_string).chain(unix).collect();
    let signal = front.block_on(serve_until_told(&server, &entrance, (sockets, places), http))?;
    tracing::info!("{signal}: shutting down");
    server.closing.store(true, Ordering::Release);
    // Receivers are gone only if every executor has ended already.
    let _ = stop.send(true);
    engine.on_topology_change(None);
    following.join();
    niced.finish(Duration::from_secs(1));
    waiting.finish(Duration::from_secs(1));
    analytical_threads.shutdown_timeout(Duration::from_secs(1));
    front.shutdown_timeout(Duration::from_secs(1));
    drop(files);
    shut_down(&engine);
    Ok(())
}

/// The superuser has this password, if it has had none.
fn with_first_password(
    engine: &Engine,
    catalogs: Vec<Catalog>,
    numbers: &ObjectNumbers,
    password: Option<String>,
) -> Result<Vec<Catalog>, StartError> {
    let Some(password) = password else { return Ok(catalogs) };
    Ok(crate::catalog::set_first_password(engine, catalogs, numbers, &password)?)
}

fn shut_down(engine: &Engine) {
    if let Err(error) = engine.shutdown(SHUTDOWN_CHECKPOINT_LIMIT) {
        tracing::warn!(%error, "no checkpoint was taken at shutdown; the next start reads more log");
    }
    tracing::info!("the database is shut down");
}

/// Lets clients in until a signal says to stop; answers which one.
async fn serve_until_told(
    server: &Arc<Server>,
    entrance: &Arc<Front>,
    (sockets, places): (Vec<socket2::Socket>, Vec<String>),
    http: Option<socket2::Socket>,
) -> Result<&'static str, StartError> {
    // Before anybody can come in: who has, may say at once that the server is to stop.
    let stops = Stops::new().map_err(cannot_serve)?;
    reload_at_hangup(server.clone())?;
    let listeners = sockets.len();
    for socket in sockets {
        let socket = Socket::new(socket).map_err(cannot_serve)?;
        tokio::spawn(entrance.clone().serve(socket, listeners));
    }
    if let Some(http) = http {
        let http = Socket::new(http).map_err(cannot_serve)?;
        let facts = Arc::new(crate::system::Facts(server.clone()));
        tokio::spawn(crate::http::serve(http, facts, server.tls.clone()));
    }
    let scheme = if server.config.boolean("archipel.http_tls") { "https" } else { "http" };
    tracing::info!(
        "listening on {}{}, {} executors, data in {}",
        places.join(", "),
        server.config.http.map(|http| format!(", {scheme}://{http}/")).unwrap_or_default(),
        server.engine.active_executors(),
        server.config.data_directory.display()
    );
    Ok(stops.next().await)
}

/// Reads the configuration again at each SIGHUP. To be called on a runtime.
fn reload_at_hangup(server: Arc<Server>) -> Result<(), StartError> {
    let mut hangup = signal(SignalKind::hangup()).map_err(cannot_serve)?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            let reloads = server.clone();
            // It answers nobody, and the log tells where there was no thread.
            if let Ok(done) = server.waiting.begin(move || reloads.reload()) {
                let _ = done.await;
            }
        }
    });
    Ok(())
}

/// Containers get ten seconds between SIGTERM and SIGKILL where nobody says otherwise.
const SHUTDOWN_CHECKPOINT_LIMIT: Duration = Duration::from_secs(5);

/// A sixteenth of what rows may take, at least 64 MiB.
fn analytical_memory_bytes(config: &Config) -> usize {
    (config.integer("max_memory") as usize / 16).max(64 << 20)
}

/// The thread of the front door.
fn start_front() -> Result<tokio::runtime::Runtime, StartError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_stack_size(THREAD_BYTES)
        .thread_name("front")
        .on_thread_start(heap::settle_at_end)
        .enable_all()
        .build()
        .map_err(|error| StartError::Other(format!("cannot start a thread: {error}")))
}

/// A door for every executor there may ever be, and where its clients arrive.
fn doors_of(executors_max: usize) -> (Doors, Vec<mpsc::UnboundedReceiver<Arrival>>) {
    let mut arrivals = Vec::new();
    let doors = (0..executors_max).map(|_| {
        let (sender, receiver) = mpsc::unbounded_channel();
        arrivals.push(receiver);
        Door::new(sender)
    });
    (Doors(doors.collect()), arrivals)
}

/// So many threads read and write what analytical queries spill to disk.
const SPILLING_THREADS_MAX: usize = 4;
/// They stay: they are needed where memory has become scarce, when none may be started any more.
const KEPT: Duration = Duration::from_secs(u32::MAX as u64);

/// Threads beside the executors for parts of analytical queries, each of which has one of its own besides,
/// and for the work of the server itself.
fn start_analytical_threads(executors: usize) -> Result<tokio::runtime::Runtime, StartError> {
    let started = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(executors.clamp(1, 8))
        .max_blocking_threads(SPILLING_THREADS_MAX)
        .thread_keep_alive(KEPT)
        .thread_stack_size(THREAD_BYTES)
        .thread_name("analytics")
        .on_thread_start(begin_beside)
        .enable_all()
        .build();
    let threads = started.map_err(|error| StartError::Other(format!("cannot start a thread: {error}")))?;
    // The first of those that spill. What one does where there is none, and none can be started, panics.
    drop(threads.spawn_blocking(|| ()));
    Ok(threads)
}

/// What threads beside the executors begin with: they take what those leave, and as many come and go
/// each of them settles what it has taken of memory.
fn begin_beside() {
    const NICENESS: i32 = 10;
    heap::settle_at_end();
    // SAFETY: setpriority takes integers and touches no memory; zero is this thread.
    // A refusal leaves the thread at its old priority, which is no error.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
}

fn cannot_serve(error: std::io::Error) -> StartError {
    StartError::Other(format!("cannot serve: {error}"))
}

/// The signals that say to stop, from when this is made.
struct Stops {
    terminate: Signal,
    interrupt: Signal,
}

impl Stops {
    /// To be called on a runtime.
    fn new() -> std::io::Result<Stops> {
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Stops { terminate, interrupt })
    }

    /// The next one's name.
    async fn next(mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("ARCHIPEL_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    // A second start in one process keeps the first one's subscriber.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .try_init();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Given;
    use crate::server::engine_settings::monitor_settings;
    use archipel_engine::MonitorSettings;

    fn config(set: &[&str]) -> Config {
        let given = Given {
            data_directory: Some("nowhere".into()),
            set: set.iter().map(|it| (*it).to_owned()).collect(),
            ..Given::default()
        };
        Config::load(&given).expect("good settings")
    }

    fn monitor(set: &[&str]) -> MonitorSettings {
        monitor_settings(&config(set)).expect("they go together")
    }

    #[test]
    fn places_are_left_for_those_who_are_no_superusers() {
        let check = |set: &[&str]| check_connections(&config(set)).map_err(|error| error.to_string());
        let told = "superuser_reserved_connections (3) must be less than max_connections (3)";
        assert_eq!(check(&["max_connections=3"]), Err(told.to_owned()));
        assert_eq!(check(&["max_connections=4"]), Ok(()));
        assert_eq!(check(&["max_connections=1", "superuser_reserved_connections=0"]), Ok(()));
        assert_eq!(check(&[]), Ok(()));
    }

    #[test]
    fn every_threshold_of_the_monitor_is_a_setting() {
        assert_eq!(monitor(&[]), MonitorSettings::default());
        let found = monitor(&[
            "archipel.monitor=off",
            "archipel.adaptive=off",
            "archipel.adaptive_sample_interval=100ms",
            "archipel.adaptive_interval_min=2s",
            "archipel.adaptive_interval_max=4s",
            "archipel.adaptive_deviation=0.2",
            "archipel.adaptive_imbalance=0.5",
            "archipel.adaptive_mix_shift=0.3",
            "archipel.adaptive_gain_min=0.1",
            "archipel.adaptive_samples_min=50",
            "archipel.adaptive_confidence=3",
            "archipel.adaptive_hot_key_share=0.4",
            "archipel.adaptive_partitions_max=8",
            "archipel.adaptive_action_delay=2ms",
            "archipel.core_speeds=off",
            "archipel.core_speed_interval=1min",
            "archipel.memory_follows=off",
            "archipel.memory_follow_size=1MB",
            "archipel.memory_follow_delay=0",
        ]);
        let expected = MonitorSettings {
            measures: false,
            adapts: false,
            sample_interval_nanos: 100_000_000,
            interval_min_nanos: 2_000_000_000,
            interval_max_nanos: 4_000_000_000,
            deviation: 0.2,
            imbalance: 0.5,
            mix_shift: 0.3,
            gain_min: 0.1,
            samples_min: 50,
            confidence: 3.0,
            hot_key_share: 0.4,
            partitions_per_executor_max: 8,
            action_delay_nanos: 2_000_000,
            measures_cores: false,
            core_interval_nanos: 60_000_000_000,
            memory_follows: false,
            memory_follow_bytes: 1 << 20,
            memory_follow_delay_nanos: 0,
        };
        assert_eq!(found, expected);
    }
}
