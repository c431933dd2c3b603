//! Schemas that objects are created in or move to.

use archipel_sql::catalog::names::{is_temporary_schema, undefined_schema};
use archipel_sql::catalog::{ObjectClass, Privileges};
use archipel_sql::error::{Result, SqlError, SqlState};

use crate::work::{Work, is_system_schema};

pub(super) fn check_target(schema: &str, work: &Work<'_>) -> Result<()> {
    if !work.catalog.schema_exists(schema) {
        return Err(undefined_schema(schema));
    }
    if is_system_schema(schema) {
        return Err(SqlError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied for schema {schema}"),
        ));
    }
    if let Some(found) = work.catalog.schema(schema) {
        work.require(found.oid, ObjectClass::Schema, Privileges::CREATE)?;
    }
    Ok(())
}

/// Whether something may move from one schema to another.
pub(super) fn check_move(from: &str, to: &str, work: &Work<'_>) -> Result<()> {
    if to != "pg_temp" {
        check_target(to, work)?;
    }
    if to == "pg_temp" || is_temporary_schema(from) || is_temporary_schema(to) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot move objects into or out of temporary schemas",
        ));
    }
    Ok(())
}
