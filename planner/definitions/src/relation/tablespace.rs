//! TABLESPACE: all there is lies in `pg_default`, which may be named; nothing of one database lies in `pg_global`.

use archipel_sql::ast::AlterTableAction;
use archipel_sql::error::{Result, SqlError, SqlState};

use crate::work::Work;

/// Refuses to put a relation into a tablespace other than `pg_default`: 42704 for one that is not there, 42501 and
/// 22023 for `pg_global`, 0A000 for a partitioned relation that names the one it is in anyway (DefineRelation,
/// DefineIndex).
pub(crate) fn check(name: Option<&str>, partitioned: bool, work: &Work<'_>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    match name {
        "pg_default" if partitioned => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot specify default tablespace for partitioned relations",
        )),
        "pg_default" => Ok(()),
        "pg_global" if !work.authority().is_superuser() => Err(SqlError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied for tablespace {name}"),
        )),
        "pg_global" => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "only shared relations can be placed in pg_global tablespace",
        )),
        _ => Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("tablespace \"{name}\" does not exist"))),
    }
}

/// As [`check`], of what SET TABLESPACE among these actions names; it may stand there once. A partitioned relation
/// may say it, for the partitions to come.
pub(crate) fn check_moves(actions: &[AlterTableAction], work: &Work<'_>) -> Result<()> {
    let mut said = false;
    for action in actions {
        let AlterTableAction::SetTablespace(name) = action else { continue };
        check(Some(name), false, work)?;
        if std::mem::replace(&mut said, true) {
            let message = "cannot have multiple SET TABLESPACE subcommands";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
    }
    Ok(())
}
