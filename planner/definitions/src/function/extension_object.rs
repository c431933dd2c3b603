//! Extensions that are there, and whose they are.

use archipel_sql::catalog::extension::{Extension, find};
use archipel_sql::error::{Result, SqlError, SqlState};

use crate::work::Work;

fn undefined(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("extension \"{name}\" does not exist"))
}

/// An extension that is there.
pub(crate) fn require(name: &str, work: &Work<'_>) -> Result<&'static Extension> {
    let known = find(name).filter(|known| work.catalog.extension_schema(known).is_some());
    known.ok_or_else(|| undefined(name))
}

/// Whoever made an extension owns its functions.
pub(crate) fn require_owner(extension: &Extension, work: &Work<'_>) -> Result<()> {
    let members = work.catalog.extension_members(extension.name);
    let owned = members.iter().all(|member| work.authority().owns(member.oid));
    if work.env.system || work.authority().is_superuser() || owned && !extension.is_built_in() {
        return Ok(());
    }
    Err(archipel_sql::catalog::authority::must_be_owner("extension", extension.name))
}
