//! `archipel workload`: loads, drives and checks workloads of transactions over plain PostgreSQL
//! protocol, so that the same program measures Archipel and PostgreSQL.
//!
//! - [`client`]  a lean pipelined client: on a shared machine the driver's own cost is part of
//!   the measurement, so it encodes and skips bytes instead of building rows
//! - [`workload`] what a workload is; [`registry`] those there are, by name
//! - [`args`]    the command line; [`error`] what can go wrong
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
mod args;
mod canned;
mod client;
mod error;
mod load;
mod registry;
mod report;
mod reservation;
mod run;
mod smallbank;
mod tatp;
mod tpcc;
mod voter;
mod workload;
mod ycsb;

use args::{CannedArgs, CheckArgs, LoadArgs, RunArgs};
use clap::{Args, Subcommand};

pub use error::WorkloadError;

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
