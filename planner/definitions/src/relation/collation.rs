//! Which types have collations.

use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::{TypeNames, element_of, type_info};
use archipel_sql::types::{Oid, Type};

use crate::work::Work;

/// 42804 for a type whose values have no collation.
pub(crate) fn check_collatable(ty: Type, work: &Work<'_>) -> Result<()> {
    let element = element_of(ty.oid).unwrap_or(ty.oid);
    if type_info(element).is_some_and(|info| info.collation != Oid(0)) {
        return Ok(());
    }
    let message = format!("collations are not supported by type {}", work.type_name(ty.oid));
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
}
