//! What objects have to do with a role, in the database of a statement and in others: a role that is in use
//! anywhere is not dropped.

use archipel_sql::catalog::access::role_dependency::RoleDependency;
use archipel_sql::catalog::{Catalog, CatalogChange, ObjectKind};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

/// What needs a role in a catalog and what all databases share.
pub(super) fn dependencies(role: Oid, catalog: &Catalog) -> impl Iterator<Item = RoleDependency> {
    catalog.role_dependencies().into_iter().filter(move |known| known.role == role)
}

/// How much in other databases has to do with a role: a line for each of them, as PostgreSQL's DETAIL counts.
pub(super) fn in_other_databases(role: Oid, others: &[Catalog]) -> Vec<String> {
    let line = |other: &Catalog| {
        // The statement's own catalog has what is shared, too.
        let count = dependencies(role, other).filter(|known| !known.is_shared()).count();
        let objects = if count == 1 { "object" } else { "objects" };
        (count > 0).then(|| format!("{count} {objects} in database {}", other.database_name()))
    };
    others.iter().filter_map(line).collect()
}

/// 2BP01 for a role that something hangs on.
pub(super) fn role_in_use(name: &str, lines: &[String]) -> SqlError {
    let message = format!("role \"{name}\" cannot be dropped because some objects depend on it");
    SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message).with_detail(lines.join("\n"))
}

/// 2BP01 if changes that were planned on `base` drop a role which something in another database hangs on by
/// now.
pub fn require_unused_roles<'c>(
    changes: impl IntoIterator<Item = &'c CatalogChange>,
    base: &Catalog,
    others: &[Catalog],
) -> Result<()> {
    for change in changes {
        let CatalogChange::Drop(ObjectKind::Role, role) = change else { continue };
        let lines = in_other_databases(*role, others);
        if !lines.is_empty() {
            let known = base.role_by_oid(*role);
            let name = known.as_ref().map_or_else(|| role.to_string(), |role| role.name.clone());
            return Err(role_in_use(&name, &lines));
        }
    }
    Ok(())
}
