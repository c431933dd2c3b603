//! `archipel workload`: loads, drives and checks workloads of transactions over plain PostgreSQL
//! protocol, so that the same program measures Archipel and PostgreSQL.
//!
//! - [`client`]  a lean pipelined client: on a shared machine the driver's own cost is part of
//!   the measurement, so it encodes and skips bytes instead of building rows
//! - [`load`]    schema, procedures and COPY streams, with a progress bar
//! - [`run`]     the drivers' loop, closed or open, and live figures; [`alarm`] keeps its time
//! - [`canned`]  a server of canned answers: the ceiling of what the wire allows
//! - [`report`]  latency histograms, the final table and its JSON
//! - [`tpcc`], [`tatp`], [`smallbank`], [`voter`], [`ycsb`], [`reservation`]  the workloads; their
//!   schemas and procedures are those of `tests/workloads`

/// Appends formatted text to a COPY stream.
macro_rules! put {
    ($out:expr, $($argument:tt)*) => {
        std::io::Write::write_fmt($out, format_args!($($argument)*)).expect("writing to memory cannot fail")
    };
}

/// A workload's schema, distribution and procedures, from its folder.
macro_rules! scripts {
    ($folder:literal) => {
        fn schema(&self) -> &'static str {
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../tests/workloads/",
                $folder,
                "/schema.sql"
            ))
        }

        fn distribution(&self) -> &'static str {
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../tests/workloads/",
                $folder,
                "/distribution.sql"
            ))
        }

        fn procedures(&self) -> &'static str {
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../tests/workloads/",
                $folder,
                "/procedures.sql"
            ))
        }
    };
}

mod alarm;
mod canned;
mod client;
mod load;
mod report;
mod reservation;
mod run;
mod smallbank;
mod tatp;
mod tpcc;
mod voter;
mod ycsb;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};

/// What can go wrong in the driver, told to a person.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("{0}")]
    Usage(String),
    #[error("connection to {url} failed: {source}")]
    Connect { url: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("connection lost: {0}")]
    Io(#[from] std::io::Error),
    #[error("{context}: {source}")]
    Sql { context: String, source: tokio_postgres::Error },
    #[error("server answered {state}: {message}")]
    Server { state: String, message: String },
    #[error("protocol: {0}")]
    Protocol(String),
    #[error("{0} consistency checks failed")]
    Inconsistent(usize),
}

impl WorkloadError {
    fn sql(context: impl Into<String>) -> impl FnOnce(tokio_postgres::Error) -> WorkloadError {
        let context = context.into();
        move |source| match source.as_db_error() {
            Some(db) => WorkloadError::Server {
                state: db.code().code().to_owned(),
                message: format!("{context}: {}", db.message()),
            },
            None => WorkloadError::Sql { context, source },
        }
    }
}

type Result<T> = std::result::Result<T, WorkloadError>;

/// Load, run or check a workload against a PostgreSQL-compatible server.
#[derive(Debug, Args)]
pub struct WorkloadArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create the schema and routines and load the initial population.
    Load(LoadArgs),
    /// Drive the specified mix and report throughput and latency.
    Run(RunArgs),
    /// Verify the workload's consistency conditions.
    Check(CheckArgs),
    /// Answer every call with fixed bytes, to see what wire and driver allow.
    #[command(hide = true)]
    Canned(CannedArgs),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    Tpcc,
    Tatp,
    Smallbank,
    Voter,
    Ycsb,
    Reservation,
}

impl Name {
    fn workload(self, scale: u32) -> Arc<dyn Workload> {
        match self {
            Name::Tpcc => Arc::new(tpcc::Tpcc::new(scale)),
            Name::Tatp => Arc::new(tatp::Tatp::new(scale)),
            Name::Smallbank => Arc::new(smallbank::SmallBank::new(scale)),
            Name::Voter => Arc::new(voter::Voter::new(scale)),
            Name::Ycsb => Arc::new(ycsb::Ycsb::new(scale)),
            Name::Reservation => Arc::new(reservation::Reservation::new(scale)),
        }
    }
}

#[derive(Debug, Args)]
struct Target {
    /// Which workload.
    #[arg(value_enum)]
    name: Name,
    /// A PostgreSQL connection URL.
    #[arg(long, default_value = "postgresql://archipel@127.0.0.1:5432/archipel")]
    url: String,
    /// Warehouses (TPC-C), hundreds of thousands of subscribers (TATP) or of customers (SmallBank),
    /// millions of lines (Voter), tens of thousands of records (YCSB), thousands of flights
    /// (reservation).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    scale: u32,
}

#[derive(Debug, Args)]
struct LoadArgs {
    #[command(flatten)]
    target: Target,
    /// Parallel COPY streams.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    connections: u32,
    /// Leave distribution to the server's own choice.
    #[arg(long)]
    no_distribution: bool,
    /// Drop the workload's tables first.
    #[arg(long)]
    replace: bool,
}

#[derive(Debug, Args)]
struct CannedArgs {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    target: Target,
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Calls in flight on each connection; each has its own Sync.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pipeline: u32,
    /// Calls a second over all connections, each at its moment however slow the answers are;
    /// latency counts from that moment. 0: the next call follows the last answer.
    #[arg(long, default_value_t = 0)]
    rate: u32,
    /// Seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    duration: u32,
    /// Seconds before measuring starts.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=3_600))]
    warmup: u32,
    /// Driver threads; 0 takes a quarter of the cores.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=64))]
    threads: u32,
    /// Settings for every session, as `name=value`; repeatable.
    #[arg(long = "set")]
    settings: Vec<String>,
    /// Only these transactions of the mix, separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Seed of the driver's random numbers; 0 takes one from the clock.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write the figures as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write every acknowledged order (TPC-C), for `check --acknowledged`.
    #[arg(long)]
    acknowledged: Option<PathBuf>,
    /// No line every second.
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Args)]
struct CheckArgs {
    #[command(flatten)]
    target: Target,
    /// A file written by `run --acknowledged`: every order in it must exist.
    #[arg(long)]
    acknowledged: Option<PathBuf>,
}

/// One kind of call a workload makes.
struct Call {
    name: &'static str,
    sql: &'static str,
    /// Share of the mix, in hundredths.
    weight: u32,
    /// Widths in bytes of a usual answer's columns, for canned answers.
    answer: &'static [u16],
}

/// Writes one row of a COPY stream.
type RowWriter = Box<dyn FnMut(u64, &mut Vec<u8>) + Send>;

/// A stream of rows for one COPY, produced lazily.
struct CopyJob {
    sql: &'static str,
    rows: u64,
    /// Appends the text form of row `n` (0-based), newline included.
    write: RowWriter,
}

/// A condition that must hold: a query that counts its violations.
struct Condition {
    name: &'static str,
    sql: &'static str,
}

/// What the generic loader, driver and checker need to know of a workload.
trait Workload: Send + Sync {
    fn tables(&self) -> &'static [&'static str];
    /// Views over the tables.
    fn views(&self) -> &'static [&'static str] {
        &[]
    }
    fn schema(&self) -> &'static str;
    fn distribution(&self) -> &'static str;
    fn procedures(&self) -> &'static str;
    /// Independent COPY streams; those of one group must end before the next group begins.
    fn copy_jobs(&self) -> Vec<Vec<CopyJob>>;
    fn calls(&self) -> &'static [Call];
    /// A source of transactions for one connection of `connections`.
    fn terminal(&self, connection: u32, connections: u32, seed: u64) -> Box<dyn Terminal>;
    fn conditions(&self) -> &'static [Condition];
    /// Checks one line of an acknowledged-orders file: the query, answering its count.
    fn acknowledged_query(&self) -> Option<&'static str> {
        None
    }
}

/// Draws one connection's transactions.
trait Terminal: Send {
    /// Fills the parameters of the next call of `calls()[call]`.
    fn fill(&mut self, call: usize, parameters: &mut client::Parameters);
    /// A number below `bound`, for choosing the call.
    fn pick(&mut self, bound: u32) -> u32;
    /// Whether this call's failure with `state` is part of the specification.
    fn expected(&self, call: usize, state: &[u8]) -> bool;
    /// The line to note for an acknowledged call, given its first result column (binary int4).
    fn acknowledged(&self, _call: usize, _key: &client::Parameters, _result: i32) -> Option<String> {
        None
    }
}

/// Runs the subcommand; the exit code is 0, 1 for failures, 2 for a wrong command line and
/// 3 when the connection was lost in mid-run.
pub fn main(args: WorkloadArgs) -> i32 {
    let outcome = match args.action {
        Action::Load(args) => load::load(&args),
        Action::Run(args) => run::run(&args),
        Action::Check(args) => load::check(&args),
        Action::Canned(args) => canned::serve(&args),
    };
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("archipel workload: {error}");
            match error {
                WorkloadError::Usage(_) => 2,
                WorkloadError::Io(_) => 3,
                _ => 1,
            }
        }
    }
}
