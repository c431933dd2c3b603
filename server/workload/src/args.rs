//! What the command line says.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Name {
    Tpcc,
    Tatp,
    Smallbank,
    Voter,
    Ycsb,
    Reservation,
}

#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Which workload.
    #[arg(value_enum)]
    pub(crate) name: Name,
    /// A PostgreSQL connection URL.
    #[arg(long, default_value = "postgresql://archipel@127.0.0.1:5432/archipel")]
    pub(crate) url: String,
    /// Warehouses (TPC-C), hundreds of thousands of subscribers (TATP) or of customers (SmallBank),
    /// millions of lines (Voter), tens of thousands of records (YCSB), thousands of flights
    /// (reservation).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) scale: u32,
}

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Parallel COPY streams.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) connections: u32,
    /// Leave distribution to the server's own choice.
    #[arg(long)]
    pub(crate) no_distribution: bool,
    /// Drop the workload's tables first.
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CannedArgs {
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) connections: u32,
    /// Calls in flight on each connection; each has its own Sync.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) pipeline: u32,
    /// Calls a second over all connections, each at its moment however slow the answers are;
    /// latency counts from that moment. 0: the next call follows the last answer.
    #[arg(long, default_value_t = 0)]
    pub(crate) rate: u32,
    /// Seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) duration: u32,
    /// Seconds before measuring starts.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=3_600))]
    pub(crate) warmup: u32,
    /// Driver threads; 0 takes a quarter of the cores.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=64))]
    pub(crate) threads: u32,
    /// Settings for every session, as `name=value`; repeatable.
    #[arg(long = "set")]
    pub(crate) settings: Vec<String>,
    /// Only these transactions of the mix, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Seed of the driver's random numbers; 0 takes one from the clock.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write the figures as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// Write every acknowledged order (TPC-C), for `check --acknowledged`.
    #[arg(long)]
    pub(crate) acknowledged: Option<PathBuf>,
    /// No line every second.
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// A file written by `run --acknowledged`: every order in it must exist.
    #[arg(long)]
    pub(crate) acknowledged: Option<PathBuf>,
}
