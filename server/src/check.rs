//! `archipel check`: looks at a data directory that nobody serves, from the checksums of files
//! to the rows of tables, changes nothing, and tells all it found.
//!
//! 1. the store: blocks, batches, records, checkpoint rows
//! 2. the engine: recovers in memory; rows against the columns of their tables, unique indexes
//! 3. the catalog: readable, and the same tables and indexes as the engine's
//! 4. secondary indexes: as many entries as their tables have rows
//!
//! A start refuses what this refuses under 1 to 3, in the same words: the store by what recovery
//! finds, the catalog by the same comparison. What a transaction had made and not committed when
//! the server went down, or when a backup was taken, is no damage: the next start drops it.
//!
//! Beside it `archipel reset-log`, for a log that is not whole and that nothing can make whole.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archipel_engine::id::TreeId;
use archipel_engine::log::LogStore;
use archipel_engine::log::reset::reset;
use archipel_engine::log::verify::{StoreReport, verify};
use archipel_engine::{Engine, EngineConfig};
use archipel_rocksdb::{RocksLogStore, RocksOptions};
use archipel_sql::catalog::Catalog;
use clap::Args;

use crate::catalog::{CatalogError, startup};
use crate::server::StartError;

/// Verify every checksum and structure of a data directory that no server uses.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The data directory.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

/// Go on without the part of a data directory's log that is missing or damaged. What was committed
/// there is lost, and rows that the last checkpoint has of it stay: look through the tables, and take
/// a backup before anything else. A good log stays as it is.
#[derive(Debug, Args)]
pub struct ResetLogArgs {
    /// The data directory.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

/// Runs `archipel reset-log`; what to tell the person.
pub fn reset_log(args: &ResetLogArgs) -> Result<String, StartError> {
    let store = RocksLogStore::open_to_reset(&args.data_dir, RocksOptions::default())?;
    archipel_engine::log::store::check_format(&store)?;
    let done = reset(&store)?;
    Ok(match done.lost() {
        0 => format!("the log is whole as far as anybody knows: it ends with batch {}", done.last.0),
        lost => format!(
            "{lost} batches of the log are lost: it ends with batch {}, and epochs go on above {}",
            done.last.0, done.epoch
        ),
    })
}

/// What a check found.
pub struct Checked {
    /// For the person, line by line.
    pub report: String,
    /// Contradictions; none in a good directory.
    pub problems: Vec<String>,
}

/// Runs `archipel check`. An error means that it could not look, or not even begin.
pub fn run(args: &CheckArgs) -> Result<Checked, StartError> {
    check(&args.data_dir)
}

/// Checks a data directory.
pub fn check(directory: &Path) -> Result<Checked, StartError> {
    let store: Arc<dyn LogStore> =
        Arc::new(RocksLogStore::open_read_only(directory, RocksOptions::default())?);
    archipel_engine::log::store::check_format(&*store)?;
    let found = verify(&*store)?;
    let mut checked = Checked { report: describe(directory, &found), problems: found.problems.clone() };
    if found.problem_count > found.problems.len() as u64 {
        checked.problems.push(format!("{} problems in all", found.problem_count));
    }
    // What cannot be read cannot be recovered either.
    if checked.problems.is_empty() {
        recover(store, &mut checked)?;
    }
    Ok(checked)
}

fn describe(directory: &Path, found: &StoreReport) -> String {
    let mut text = format!("data directory {}\n", directory.display());
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "log: {} batches from number {}, {} records, {:.1} MB, up to epoch {}",
        found.batches,
        found.replay_from,
        found.records,
        found.log_bytes as f64 / 1e6,
        found.epoch
    );
    if found.parts > 0 {
        let _ = writeln!(
            text,
            "log: {} parts of large transactions, {:.1} MB",
            found.parts,
            found.part_bytes as f64 / 1e6
        );
    }
    if found.torn_bytes > 0 {
        let _ = writeln!(
            text,
            "log: {} bytes at its end are unfinished, as after a crash; the next start cuts them off",
            found.torn_bytes
        );
    }
    let _ = writeln!(
        text,
        "checkpoint: {} rows of {} trees, {:.1} MB",
        found.checkpoint_rows,
        found.rows_of.len(),
        found.checkpoint_bytes as f64 / 1e6
    );
    text
}

fn recover(store: Arc<dyn LogStore>, checked: &mut Checked) -> Result<(), StartError> {
    // Steps nothing by itself, so nothing is written.
    let config = EngineConfig {
        background: false,
        pin_threads: false,
        max_memory_bytes: i64::MAX,
        abort_on_log_failure: false,
        ..EngineConfig::default()
    };
    archipel_planner::row::install_key_forms();
    let engine = match Engine::open(config, store) {
        Ok(engine) => engine,
        Err(error) => match StartError::from(error) {
            StartError::Damaged(problem) => {
                checked.problems.push(problem);
                return Ok(());
            }
            other => return Err(other),
        },
    };
    match crate::catalog::read(&engine) {
        Ok(catalogs) => {
            checked.problems.extend(startup::contradictions(&engine, &catalogs));
            let rows = engine.tree_rows();
            for catalog in &catalogs {
                describe_catalog(catalog, checked)?;
                compare(&engine, &rows, catalog, checked);
            }
            tell_unknown(&engine, &catalogs, checked);
        }
        Err(CatalogError::Newer(error)) => return Err(StartError::NewerFormat(error.to_string())),
        Err(error) => checked.problems.push(error.to_string()),
    }
    Ok(())
}

fn describe_catalog(catalog: &Catalog, checked: &mut Checked) -> Result<(), StartError> {
    let pending = archipel_migrations::pending(catalog.migration())
        .map_err(|error| StartError::NewerFormat(error.to_string()))?;
    let _ = writeln!(
        checked.report,
        "database {}: {} tables, {} routines, {} sequences, migration step {}{}",
        catalog.database_name(),
        catalog.tables().filter(|table| table.is_stored() && table.schema != "pg_catalog").count(),
        catalog.routines_all().count(),
        catalog.sequences().count(),
        catalog.migration(),
        if pending.is_empty() { "" } else { " (the next start brings it up to date)" }
    );
    Ok(())
}

/// A catalog's tables against the engine's.
fn compare(engine: &Engine, rows: &BTreeMap<TreeId, u64>, catalog: &Catalog, checked: &mut Checked) {
    let rows_in = |tree: u32| rows.get(&TreeId(tree)).copied().unwrap_or(0);
    for table in catalog.tables().filter(|table| table.is_stored()) {
        let name = format!("{}.{}", table.schema, table.name);
        let Some(meta) = engine.table(TreeId(table.tree)) else { continue };
        let _ = writeln!(checked.report, "table {name}: {} rows", rows_in(table.tree));
        for index in &table.indexes {
            if !meta.indexes.iter().any(|known| known.def.id == TreeId(index.tree)) {
                continue;
            }
            if rows_in(index.tree) != rows_in(table.tree) {
                checked.problems.push(format!(
                    "index {} has {} entries, its table {name} {} rows",
                    index.name,
                    rows_in(index.tree),
                    rows_in(table.tree)
                ));
            } else {
                let unique = if index.unique { ", unique" } else { "" };
                let _ = writeln!(
                    checked.report,
                    "  index {}: {} entries{unique}",
                    index.name,
                    rows_in(index.tree)
                );
            }
        }
    }
}

/// What the engine has and no catalog, as `crate::catalog::load` takes it.
fn tell_unknown(engine: &Engine, catalogs: &[Catalog], checked: &mut Checked) {
    let (tables, sequences) = startup::unknown(engine, catalogs);
    if !tables.is_empty() || !sequences.is_empty() {
        let _ = writeln!(
            checked.report,
            "{} tables and {} sequences of transactions that did not commit; the next start drops them",
            tables.len(),
            sequences.len()
        );
    }
}
