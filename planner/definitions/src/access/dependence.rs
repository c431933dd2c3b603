//! What objects have to do with a role, in the database of a statement and in others: a role that is in use
//! anywhere is not dropped.

use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::catalog::{AclItem, Catalog, CatalogChange, DefaultAccess, ObjectKind};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

/// What an object has to do with a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tie {
    Owner,
    /// Somebody has given it rights on the object, or it has given them.
    Granted,
    /// The same on one of its columns (one-based).
    GrantedColumn(u16),
}

/// Objects of a catalog, databases among them, and what they have to do with a role.
pub(super) fn ties(role: Oid, catalog: &Catalog) -> Vec<(Oid, Tie)> {
    let names = |acl: &[AclItem]| acl.iter().any(|item| item.grantee == role || item.grantor == role);
    let mut found = Vec::new();
    for access in catalog.access_all() {
        let object = access.object;
        if catalog.schema_by_oid(object).is_some_and(|schema| is_temporary_schema(&schema.name)) {
            continue;
        }
        if access.owner == role {
            found.push((object, Tie::Owner));
            continue;
        }
        if access.acl.as_deref().is_some_and(names) {
            found.push((object, Tie::Granted));
        }
        let Some(table) = catalog.table_by_oid(object) else { continue };
        let columns = access.columns.iter().filter(|(_, acl)| names(acl)).map(|(column, _)| *column);
        let there = columns.filter(|column| (1..=table.columns.len()).contains(&usize::from(*column)));
        found.extend(there.map(|column| (object, Tie::GrantedColumn(column))));
    }
    found
}

/// The same of what new objects begin with.
pub(super) fn ties_of_defaults(role: Oid, catalog: &Catalog) -> impl Iterator<Item = (&DefaultAccess, Tie)> {
    catalog.default_access_all().filter_map(move |entry| {
        let tie = if entry.role == role {
            Tie::Owner
        } else if entry.acl.iter().any(|item| item.grantee == role) {
            Tie::Granted
        } else {
            return None;
        };
        Some((&**entry, tie))
    })
}

/// How much in other databases has to do with a role: a line for each of them, as PostgreSQL's DETAIL counts.
pub(super) fn in_other_databases(role: Oid, others: &[Catalog]) -> Vec<String> {
    let line = |other: &Catalog| {
        // Databases are everybody's to see, and the statement's own catalog has them, too.
        let own =
            ties(role, other).into_iter().filter(|(object, _)| other.name_of_database(*object).is_none());
        let count = own.count() + ties_of_defaults(role, other).count();
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
