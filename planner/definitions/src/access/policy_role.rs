//! Policies that are for a role, which it does not go without.

use archipel_sql::catalog::TableRef;
use archipel_sql::error::SqlState;
use archipel_sql::types::Oid;

use crate::work::{Work, change};

/// The policies that are for a role, by their numbers: what they are called, and on what.
pub(super) fn of_role(role: Oid, work: &Work<'_>) -> Vec<(Oid, TableRef, usize)> {
    let mut found = Vec::new();
    for table in work.catalog.tables() {
        for (place, policy) in table.row_security.policies.iter().enumerate() {
            if policy.roles.contains(&role) {
                found.push((policy.oid, table.clone(), place));
            }
        }
    }
    found
}

/// Takes a role out of the policies that are for it; those that are for nobody then go (DROP OWNED). Answers how
/// many went.
pub(super) fn forget_role(role: Oid, work: &mut Work<'_>) -> usize {
    let mut gone = 0;
    for (oid, table, place) in of_role(role, work) {
        let Some(current) = work.catalog.table_by_oid(table.oid) else { continue };
        if !work.env.system && !work.authority().owns(table.oid) {
            let message = format!(
                "role \"{}\" could not be removed from policy \"{}\" on \"{}\"",
                work.role_name(role),
                table.row_security.policies[place].name,
                table.name
            );
            work.notice_as(SqlState::WARNING, message);
            continue;
        }
        let mut changed = (*current).clone();
        for policy in changed.row_security.policies.iter_mut().filter(|policy| policy.oid == oid) {
            policy.roles.retain(|of| *of != role);
        }
        let before = changed.row_security.policies.len();
        changed.row_security.policies.retain(|policy| !policy.roles.is_empty());
        gone += before - changed.row_security.policies.len();
        work.put_table(changed);
        change::touch(table.oid, work);
    }
    gone
}
