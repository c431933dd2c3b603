//! `archipel check`: looks at a data directory that nobody serves, from the checksums of files
//! to the rows of tables, changes nothing, and tells all it found.
//!
//! 1. the store: blocks, batches, records, checkpoint rows
//! 2. the engine: recovers in memory; rows against the columns of their tables, unique indexes
//! 3. the catalog: readable, and the same tables and indexes as the engine's
//! 4. secondary indexes: as many entries as their tables have rows

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archipel_engine::id::TreeId;
use archipel_engine::log::LogStore;
use archipel_engine::log::verify::{StoreReport, verify};
use archipel_engine::{Engine, EngineConfig};
use archipel_rocksdb::{RocksLogStore, RocksOptions};
use archipel_sql::catalog::Catalog;
use clap::Args;

use crate::catalog::CatalogError;
use crate::server::StartError;

/// Verify every checksum and structure of a data directory that no server uses.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The data directory.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
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
        Ok(catalog) => {
            let pending = archipel_migrations::pending(catalog.migration())
                .map_err(|error| StartError::NewerFormat(error.to_string()))?;
            let _ = writeln!(
                checked.report,
                "catalog: {} tables, {} routines, {} sequences, migration step {}{}",
                catalog.tables().filter(|table| table.is_stored()).count(),
                catalog.routines_all().count(),
                catalog.sequences().count(),
                catalog.migration(),
                if pending.is_empty() { "" } else { " (the next start brings it up to date)" }
            );
            compare(&engine, &catalog, checked);
        }
        Err(CatalogError::Newer(error)) => return Err(StartError::NewerFormat(error.to_string())),
        Err(error) => checked.problems.push(error.to_string()),
    }
    Ok(())
}

/// The catalog's tables against the engine's.
fn compare(engine: &Engine, catalog: &Catalog, checked: &mut Checked) {
    let rows = engine.tree_rows();
    let rows_in = |tree: u32| rows.get(&TreeId(tree)).copied().unwrap_or(0);
    for table in catalog.tables().filter(|table| table.is_stored()) {
        let name = format!("{}.{}", table.schema, table.name);
        let Some(meta) = engine.table(TreeId(table.tree)) else {
            checked.problems.push(format!("table {name} is in the catalog, but its rows are not there"));
            continue;
        };
        let _ = writeln!(checked.report, "table {name}: {} rows", rows_in(table.tree));
        if meta.indexes.len() != table.indexes.len() {
            checked.problems.push(format!(
                "table {name} has {} indexes by the catalog and {} by the engine",
                table.indexes.len(),
                meta.indexes.len()
            ));
        }
        for index in &table.indexes {
            let is_there = meta.indexes.iter().any(|known| known.def.id == TreeId(index.tree));
            if !is_there {
                checked.problems.push(format!("index {} of table {name} is not there", index.name));
            } else if rows_in(index.tree) != rows_in(table.tree) {
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
    let (tables, sequences) = crate::catalog::unknown(engine, catalog);
    for meta in engine.tables().iter().filter(|meta| tables.contains(&meta.def.id)) {
        checked.problems.push(format!("table {} has rows, but is not in the catalog", meta.def.name));
    }
    for sequence in sequences {
        checked.problems.push(format!("sequence {} has a value, but is not in the catalog", sequence.0));
    }
}
