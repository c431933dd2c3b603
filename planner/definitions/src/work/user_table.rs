//! Which tables definitions may change.

use archipel_sql::catalog::{Table, TableKind};
use archipel_sql::error::{Result, SqlError, SqlState};

/// Refuses views and the system's own tables.
pub fn require_user_table(table: &Table) -> Result<()> {
    if table.kind == TableKind::Table && table.schema != "pg_catalog" {
        return Ok(());
    }
    if table.kind == TableKind::View {
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not a table", table.name)));
    }
    Err(SqlError::new(
        SqlState::INSUFFICIENT_PRIVILEGE,
        format!("permission denied: \"{}\" is a system catalog", table.name),
    ))
}
