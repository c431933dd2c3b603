//! USING and SET ACCESS METHOD of tables: all are stored by `heap`, as PostgreSQL calls what it stores tables by
//! unless it is told otherwise.

use archipel_sql::ast::AlterTableAction;
use archipel_sql::error::{Result, SqlError, SqlState};

/// What a table may be stored by.
const TABLE_METHOD: &str = "heap";
/// What indexes may be made by.
const INDEX_METHODS: [&str; 6] = ["btree", "hash", "gist", "gin", "spgist", "brin"];

/// The access method that CREATE TABLE names: 42704 for one that is not there, 55000 for one of indexes, 0A000 for a
/// partitioned table, which has no rows of its own (DefineRelation).
pub(crate) fn check(name: Option<&str>, partitioned: bool) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    if partitioned {
        let message = "specifying a table access method is not supported on a partitioned table";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    require_table_method(name)
}

/// As [`check`], of what SET ACCESS METHOD among these actions names, but for 42809 of a partitioned table
/// (ATPrepCmd). It can only be the one that the table has.
pub(crate) fn check_moves(actions: &[AlterTableAction], partitioned: bool) -> Result<()> {
    for action in actions {
        let AlterTableAction::SetAccessMethod(name) = action else { continue };
        if partitioned {
            let message = "cannot change access method of a partitioned table";
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        require_table_method(name)?;
    }
    Ok(())
}

/// As PostgreSQL's get_table_am_oid.
fn require_table_method(name: &str) -> Result<()> {
    match name {
        TABLE_METHOD => Ok(()),
        _ if INDEX_METHODS.contains(&name) => Err(of_other_type(name, "TABLE")),
        _ => Err(undefined(name)),
    }
}

/// Refuses to make an index by what is no access method of indexes: 55000 for the one of tables, 42704 otherwise.
pub(crate) fn refuse_for_index(name: &str) -> SqlError {
    if name == TABLE_METHOD { of_other_type(name, "INDEX") } else { undefined(name) }
}

fn of_other_type(name: &str, wanted: &str) -> SqlError {
    let message = format!("access method \"{name}\" is not of type {wanted}");
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

fn undefined(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("access method \"{name}\" does not exist"))
}
