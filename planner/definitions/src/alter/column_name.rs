//! Columns by the names that ALTER TABLE calls them.

use archipel_sql::catalog::Table;
use archipel_sql::error::{Result, SqlError, SqlState};

/// The place of a column that is to be renamed; PostgreSQL does not say of which table one that is not there would be.
pub(super) fn renamed_column(table: &Table, from: &str) -> Result<usize> {
    table
        .column_index(from)
        .map(usize::from)
        .ok_or_else(|| SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{from}\" does not exist")))
}
