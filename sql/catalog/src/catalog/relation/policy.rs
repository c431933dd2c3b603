//! Row-level security: for whom the policies of a table count (chapter 5.8).

use super::view_reference::ViewReference;
use crate::ast::PolicyCommand;
use crate::catalog::access::EVERYBODY;
use crate::catalog::{Authority, Catalog, Policy, Table, TableKind, TableRef, View};
use crate::error::{Result, SqlError, SqlState};
use crate::types::Oid;

impl Policy {
    /// Whether it is about a command, and for a role (check_role_for_policy).
    pub fn concerns(&self, command: PolicyCommand, authority: &Authority<'_>) -> bool {
        let is_for = |role: &Oid| *role == EVERYBODY || authority.acts_as(*role);
        (self.command == PolicyCommand::All || self.command == command) && self.roles.iter().any(is_for)
    }
}

impl Table {
    /// The policy of this name.
    pub fn policy(&self, name: &str) -> Option<&Policy> {
        self.row_security.policies.iter().find(|policy| policy.name == name)
    }

    /// Puts a policy in the place of the one of its number; they stand in the order of their names.
    pub fn put_policy(&mut self, policy: Policy) {
        let policies = &mut self.row_security.policies;
        policies.retain(|known| known.oid != policy.oid);
        let place = policies.partition_point(|known| known.name < policy.name);
        policies.insert(place, policy);
    }

    /// The queries that the catalog keeps of it: its own, of a view; and its policies' expressions.
    pub fn stored_queries_mut(&mut self) -> impl Iterator<Item = &mut View> {
        self.view.iter_mut().chain(self.row_security.policies.iter_mut().flat_map(Policy::queries_mut))
    }

    /// Takes a column of a relation, which has gone and which no policy names, out of the policies.
    pub fn lose_column_in_policies(&mut self, relation: Oid, place: usize) {
        for query in self.row_security.policies.iter_mut().flat_map(Policy::queries_mut) {
            ViewReference::lose_column(&mut query.references, relation, place);
        }
    }
}

impl Authority<'_> {
    /// Whether policies count for what it does with a table; 42501 if they do and `row_security` is off
    /// (check_enable_rls).
    pub fn is_under_row_security(&self, table: &Table, row_security: bool) -> Result<bool> {
        if !table.row_security.enabled || table.kind != TableKind::Table {
            return Ok(false);
        }
        let bypasses = self
            .catalog
            .role_by_oid(self.role)
            .is_some_and(|role| role.superuser || role.bypass_row_security);
        if bypasses {
            return Ok(false);
        }
        let owns = self.owns(table.oid);
        if owns && !table.row_security.forced {
            return Ok(false);
        }
        if row_security {
            return Ok(true);
        }
        let message =
            format!("query would be affected by row-level security policy for table \"{}\"", table.name);
        let error = SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message);
        Err(match owns {
            true => error.with_hint(
                "To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW LEVEL SECURITY.",
            ),
            false => error,
        })
    }
}

impl Catalog {
    /// The table of a policy, and the policy's place in it.
    pub fn policy_by_oid(&self, oid: Oid) -> Option<(TableRef, usize)> {
        let table = self.table_of_part(oid)?;
        let place = table.row_security.policies.iter().position(|policy| policy.oid == oid)?;
        Some((table.clone(), place))
    }
}
