//! Whose member a role is, in a catalog.

use super::role::Role;
use crate::catalog::{Catalog, DATABASE_OWNER};
use crate::types::Oid;

impl Catalog {
    /// `role` and all that it belongs to, nearest first; with `inherited`, only those whose rights
    /// it has without SET ROLE.
    pub fn roles_of(&self, role: Oid, inherited: bool) -> Vec<Oid> {
        let mut found = vec![role];
        let mut at = 0;
        while at < found.len() {
            let of = found[at];
            at += 1;
            let Some(member) = self.role_by_oid(of) else { continue };
            if inherited && !member.inherit {
                continue;
            }
            if of == self.owner_of_database(self.database_oid()) && !found.contains(&DATABASE_OWNER) {
                found.push(DATABASE_OWNER);
            }
            for membership in &member.member_of {
                if !found.contains(&membership.role) {
                    found.push(membership.role);
                }
            }
        }
        found
    }

    /// Those that belong to `role` by a grant of their own.
    pub fn members_of(&self, role: Oid) -> impl Iterator<Item = &std::sync::Arc<Role>> {
        self.roles().filter(move |member| member.membership(role).is_some())
    }
}
