//! The command line. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 address
//! in use, 4 data directory in use, 5 data damaged, 6 data of a newer format.
//!
//! Nothing that any command makes can be read by others.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::backup::BackupError;
use crate::config::{Config, Given, HTTP_DEFAULT, LISTEN_DEFAULT};
use crate::listen::ListenError;
use crate::server::StartError;

/// An in-memory, durable OLTP server that speaks PostgreSQL's protocol.
#[derive(Parser)]
#[command(name = "archipel", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server until SIGTERM or SIGINT.
    Serve(Serve),
    /// Load, run and check the benchmark workloads against this server or PostgreSQL.
    Workload(archipel_workload::WorkloadArgs),
    /// Verify every checksum and structure of a data directory that no server uses.
    Check(crate::check::CheckArgs),
    /// Go on without the part of a data directory's log that is missing or damaged, and so without
    /// what was committed there.
    ResetLog(crate::check::ResetLogArgs),
    /// Take a consistent backup of a running server.
    Backup(crate::backup::take::BackupArgs),
    /// Make a data directory from a backup.
    Restore(crate::backup::restore::RestoreArgs),
    /// Show the islands, cores and executors this machine would be given.
    Topology(Topology),
}

#[derive(Args)]
struct Serve {
    /// Where the data lives; created if it does not exist.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Addresses for PostgreSQL clients. Clients of other machines have passwords: one that is not loopback needs a
    /// superuser with one (ARCHIPEL_PASSWORD), or a pg_hba.conf that says how they come in.
    #[arg(long, value_name = "ADDR:PORT", help = format!("Address for PostgreSQL clients, or several with commas between, * for all; beyond loopback, a superuser needs a password (ARCHIPEL_PASSWORD, ARCHIPEL_PASSWORD_FILE), or pg_hba.conf says who comes in [default: {LISTEN_DEFAULT}]"))]
    listen: Option<String>,
    #[arg(long, value_name = "ADDR:PORT", help = format!("Address for health, metrics and the live page (loopback only, unless archipel.http_tls or archipel.http_token_file is set), or \"off\" [default: {HTTP_DEFAULT}]"))]
    http: Option<String>,
    /// A TOML file of settings.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Give a setting a value; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

#[derive(Args)]
struct Topology {
    /// Plan for another machine: synthetic:DESCRIPTION, as hwloc describes machines.
    #[arg(long, default_value = "auto")]
    topology: String,
    /// As many executors as this; 0 is one for each core.
    #[arg(long, default_value_t = 0)]
    executors: usize,
    /// How large an island is: auto, core, l3, socket or machine.
    #[arg(long, default_value = "auto")]
    island: String,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    // As PostgreSQL's: RocksDB's files, too, are their owner's alone.
    // SAFETY: umask sets a number of the process and cannot fail; no other thread runs yet.
    unsafe { libc::umask(0o077) };
    // As PostgreSQL's: a file that may not grow is an error like a full disk, and not the end.
    // SAFETY: the signal has no handler of ours, and no other thread runs yet.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    match cli.command {
        Command::Serve(serve) => {
            ignore_signals();
            let given = Given {
                data_directory: serve.data_dir,
                listen: serve.listen,
                http: serve.http,
                file: serve.config,
                set: serve.set,
            };
            let config = match Config::load(&given) {
                Ok(config) => config,
                Err(error) => return fail(2, &error),
            };
            match crate::server::run(config) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(exit_code(&error), &error),
            }
        }
        Command::Workload(args) => ExitCode::from(archipel_workload::main(args).clamp(0, 255) as u8),
        Command::Check(args) => match crate::check::run(&args) {
            Ok(checked) if checked.problems.is_empty() => {
                println!("{}the data directory is good", checked.report);
                ExitCode::SUCCESS
            }
            Ok(checked) => {
                print!("{}", checked.report);
                for problem in &checked.problems {
                    eprintln!("archipel: {problem}");
                }
                fail(DAMAGED, &"the data directory is damaged")
            }
            Err(error) => fail(exit_code(&error), &error),
        },
        Command::ResetLog(args) => match crate::check::reset_log(&args) {
            Ok(told) => {
                println!("{told}");
                ExitCode::SUCCESS
            }
            Err(error) => fail(exit_code(&error), &error),
        },
        Command::Backup(args) => done(crate::backup::take::run(&args)),
        Command::Restore(args) => done(crate::backup::restore::run(&args)),
        Command::Topology(topology) => {
            match crate::topology::describe(&topology.topology, &topology.island, topology.executors) {
                Ok(text) => {
                    print!("{text}");
                    ExitCode::SUCCESS
                }
                Err(error) => fail(2, &error),
            }
        }
    }
}

/// Ignores what PostgreSQL's server does not end by, and tools written for it may send: SIGUSR1 and
/// SIGUSR2 are how its own processes talk.
fn ignore_signals() {
    for signal in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM, libc::SIGTTIN, libc::SIGTTOU] {
        // SAFETY: the signal has no handler of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Tells the end of a backup or a restore.
fn done(result: Result<String, BackupError>) -> ExitCode {
    match result {
        Ok(told) => {
            println!("{told}");
            ExitCode::SUCCESS
        }
        Err(error @ BackupError::Damaged(_)) => fail(DAMAGED, &error),
        Err(error @ BackupError::NewerFormat(_)) => fail(NEWER_FORMAT, &error),
        Err(error) => fail(1, &error),
    }
}

const DAMAGED: u8 = 5;
const NEWER_FORMAT: u8 = 6;

fn exit_code(error: &StartError) -> u8 {
    match error {
        StartError::Listen(ListenError::AddressInUse { .. } | ListenError::SocketInUse { .. }) => 3,
        StartError::DirectoryInUse { .. } => 4,
        StartError::Damaged(_) => DAMAGED,
        StartError::NewerFormat(_) => NEWER_FORMAT,
        StartError::Configuration(_) | StartError::Listen(ListenError::Unresolved { .. }) => 2,
        StartError::Listen(_) | StartError::Other(_) => 1,
    }
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("archipel: {error}");
    ExitCode::from(code)
}
