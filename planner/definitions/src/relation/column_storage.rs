//! SET STATISTICS, SET STORAGE and SET COMPRESSION: how PostgreSQL is to keep a column's values and to sample
//! them. They are kept for whoever reads the definition.

use archipel_sql::ast::ColumnOption;
use archipel_sql::catalog::{Column, ColumnStorage, SYSTEM_COLUMNS, Table};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::{TypeNames, layout};

use crate::work::Work;
use crate::work::change::column_place;

/// Values that are too long stay where they are.
const PLAIN: u8 = b'p';
/// The highest target of statistics.
const TARGET_MAX: i64 = 10_000;

/// What one of the actions makes of a table's column: its place, and how it is stored then; `None` where
/// nothing comes of it.
pub(crate) fn changed(
    table: &Table,
    column: &str,
    option: &ColumnOption,
    work: &mut Work<'_>,
) -> Result<Option<(usize, ColumnStorage)>> {
    // PostgreSQL reads the value of these before it looks for the column.
    let target = match option {
        ColumnOption::Statistics(target) => checked_target(*target, work)?,
        _ => None,
    };
    let strategy = match option {
        ColumnOption::Storage(name) => Some(strategy(name)?),
        _ => None,
    };
    if SYSTEM_COLUMNS.contains(&column) {
        return Err(refused(format!("cannot alter system column \"{column}\"")));
    }
    let place = usize::from(column_place(table, column)?);
    let own = &table.columns[place];
    let mut storage: ColumnStorage = own.storage;
    match option {
        ColumnOption::Statistics(_) => storage.statistics = target,
        ColumnOption::Storage(_) => {
            if strategy != Some(PLAIN) && !is_toastable(own) {
                let ty = work.type_name(own.declared().oid);
                return Err(refused(format!("column data type {ty} can only have storage PLAIN")));
            }
            storage.strategy = strategy;
        }
        ColumnOption::Compression(method) => storage.compression = compression(own, method, work)?,
        ColumnOption::Estimates => return Ok(None),
    }
    Ok(Some((place, storage)))
}

fn refused(message: String) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The target of SET STATISTICS; `None` is the default's.
fn checked_target(target: i64, work: &mut Work<'_>) -> Result<Option<i32>> {
    if target < -1 {
        return Err(invalid(format!("statistics target {target} is too low")));
    }
    if target > TARGET_MAX {
        let message = format!("lowering statistics target to {TARGET_MAX}");
        work.notice_as(SqlState::INVALID_PARAMETER_VALUE, message);
    }
    Ok(i32::try_from(target.min(TARGET_MAX)).ok().filter(|target| *target >= 0))
}

/// The letter of attstorage.
fn strategy(name: &str) -> Result<u8> {
    match name.to_ascii_lowercase().as_str() {
        "plain" => Ok(PLAIN),
        "external" => Ok(b'e'),
        "extended" => Ok(b'x'),
        "main" => Ok(b'm'),
        _ => Err(invalid(format!("invalid storage type \"{name}\""))),
    }
}

/// Whether values of a column can be stored outside of their rows, or compressed.
fn is_toastable(column: &Column) -> bool {
    layout(column.ty.oid).is_none_or(|layout| layout.storage != PLAIN)
}

/// The letter of attcompression; `None` is the default.
pub(super) fn compression(column: &Column, method: &str, work: &Work<'_>) -> Result<Option<u8>> {
    if method == "default" {
        return Ok(None);
    }
    if !is_toastable(column) {
        let ty = work.type_name(column.declared().oid);
        return Err(refused(format!("column data type {ty} does not support compression")));
    }
    match method {
        "pglz" => Ok(Some(b'p')),
        "lz4" => Ok(Some(b'l')),
        _ => Err(invalid(format!("invalid compression method \"{method}\""))),
    }
}
