//! The numbers of what objects consist of: what is said of those goes with them.

use archipel_sql::catalog::{Table, UserType};
use archipel_sql::types::Oid;

/// The numbers of what a table consists of and comments may be on: constraints, indexes, triggers, policies.
pub(super) fn parts_of(table: &Table) -> Vec<Oid> {
    let keys = table.primary_key.iter().flat_map(|key| [key.oid, key.constraint_oid()]);
    let indexes = table.indexes.iter().chain(table.nominal.indexes.iter().map(|nominal| &nominal.index));
    let indexes = indexes.flat_map(|index| [Some(index.oid), index.constraint_oid()]).flatten();
    let constraints = table.checks.iter().map(|check| check.oid);
    let constraints = constraints.chain(table.foreign_keys.iter().map(|key| key.oid));
    let triggers = table.triggers.iter().map(|trigger| trigger.oid);
    let policies = table.row_security.policies.iter().map(|policy| policy.oid);
    keys.chain(indexes).chain(constraints).chain(triggers).chain(policies).collect()
}

/// The numbers of the constraints of a domain.
pub(super) fn parts_of_type(ty: &UserType) -> Vec<Oid> {
    ty.domain.iter().flat_map(|domain| domain.checks.iter().map(|check| check.oid)).collect()
}
