//! What roles are needed for: the rows of pg_shdepend. A role that is in use anywhere is not dropped.
//!
//! The roles of the system are there for good: nothing is said of them.

use super::{AclItem, ObjectClass};
use crate::catalog::names::is_temporary_schema;
use crate::catalog::routine::language_object::language_numbered;
use crate::catalog::{Catalog, FIRST_OID, LargeObject};
use crate::types::Oid;

/// What an object has to do with a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleTie {
    Owner,
    /// Somebody has given it rights on the object, or it has given them.
    Granted,
    /// The policy is for it.
    Policy,
}

impl RoleTie {
    /// pg_shdepend.deptype.
    pub fn letter(self) -> char {
        match self {
            RoleTie::Owner => 'o',
            RoleTie::Granted => 'a',
            RoleTie::Policy => 'r',
        }
    }
}

/// What needs a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleUser {
    Object(ObjectClass),
    /// What new objects begin with.
    DefaultAccess,
    Policy,
}

/// Something that needs a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleDependency {
    pub role: Oid,
    pub tie: RoleTie,
    pub user: RoleUser,
    pub object: Oid,
    /// One-based; 0: the object itself.
    pub column: u16,
}

impl RoleDependency {
    /// Whether it is about what all databases share.
    pub fn is_shared(&self) -> bool {
        matches!(self.user, RoleUser::Object(ObjectClass::Database | ObjectClass::Parameter))
    }

    /// What a large object needs roles for, which no catalog knows.
    pub fn of_large_object(object: Oid, row: &LargeObject) -> Vec<RoleDependency> {
        let user = RoleUser::Object(ObjectClass::LargeObject);
        let of = |role, tie| RoleDependency { role, tie, user, object, column: 0 };
        let granted = named_in(row.acl.as_deref().unwrap_or_default(), row.owner);
        let granted = granted.into_iter().map(|role| of(role, RoleTie::Granted));
        let all = std::iter::once(of(row.owner, RoleTie::Owner)).chain(granted);
        all.filter(|known| known.role.0 >= FIRST_OID).collect()
    }
}

/// The roles that a list names, but its owner, each once.
fn named_in(acl: &[AclItem], owner: Oid) -> Vec<Oid> {
    let roles = acl.iter().flat_map(|item| [item.grantee, item.grantor]);
    let mut roles: Vec<Oid> = roles.filter(|role| *role != owner).collect();
    roles.sort_unstable();
    roles.dedup();
    roles
}

impl Catalog {
    /// All that roles are needed for in this database, and what all databases share.
    pub fn role_dependencies(&self) -> Vec<RoleDependency> {
        let mut found = Vec::new();
        self.add_objects(&mut found);
        for entry in self.default_access_all() {
            let of = |role, tie| RoleDependency {
                role,
                tie,
                user: RoleUser::DefaultAccess,
                object: entry.oid,
                column: 0,
            };
            found.push(of(entry.role, RoleTie::Owner));
            found.extend(named_in(&entry.acl, entry.role).into_iter().map(|role| of(role, RoleTie::Granted)));
        }
        for policy in self.tables().flat_map(|table| &table.row_security.policies) {
            let (user, object, tie) = (RoleUser::Policy, policy.oid, RoleTie::Policy);
            let roles = policy.roles.iter().copied();
            found.extend(roles.map(|role| RoleDependency { role, tie, user, object, column: 0 }));
        }
        // PUBLIC is none, and the others are the system's.
        found.retain(|known| known.role.0 >= FIRST_OID);
        found
    }

    fn add_objects(&self, found: &mut Vec<RoleDependency>) {
        for access in self.access_all() {
            let object = access.object;
            if self.schema_by_oid(object).is_some_and(|schema| is_temporary_schema(&schema.name)) {
                continue;
            }
            let class = self.class_of(object).unwrap_or_else(|| class_of_built_in(object));
            let user = RoleUser::Object(class);
            let of = |role, tie, column| RoleDependency { role, tie, user, object, column };
            found.push(of(access.owner, RoleTie::Owner, 0));
            let whole = access.acl.as_deref().unwrap_or_default();
            let granted = named_in(whole, access.owner).into_iter();
            found.extend(granted.map(|role| of(role, RoleTie::Granted, 0)));
            let Some(table) = self.table_by_oid(object) else { continue };
            for (column, acl) in &access.columns {
                if (1..=table.columns.len()).contains(&usize::from(*column)) {
                    let granted = named_in(acl, access.owner).into_iter();
                    found.extend(granted.map(|role| of(role, RoleTie::Granted, *column)));
                }
            }
        }
    }
}

/// The class of what no catalog has as an object: languages, and functions and types that are built in.
pub fn class_of_built_in(object: Oid) -> ObjectClass {
    if language_numbered(object).is_some() {
        return ObjectClass::Language;
    }
    if crate::type_table::type_info(object).is_some() { ObjectClass::Type } else { ObjectClass::Routine }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Access, CatalogChange, Database, Object, Privileges, Role, Schema};

    #[test]
    fn owners_and_grantees_are_told_and_the_system_s_roles_are_not() {
        let (alice, bob, schema, shop) = (Oid(20_000), Oid(20_001), Oid(20_002), Oid(20_003));
        let acl = vec![
            AclItem::new(alice, alice, Privileges::USAGE),
            AclItem::new(bob, alice, Privileges::USAGE),
            AclItem::new(crate::catalog::SUPERUSER, alice, Privileges::USAGE),
        ];
        let catalog = Catalog::initial(Vec::new()).apply(&[
            CatalogChange::Put(Object::Role(Role::new(alice, "alice"))),
            CatalogChange::Put(Object::Role(Role::new(bob, "bob"))),
            CatalogChange::Put(Object::Schema(Schema { oid: schema, name: "s".to_owned() })),
            CatalogChange::Put(Object::Access(Access { acl: Some(acl), ..Access::of_owner(schema, alice) })),
            CatalogChange::Put(Object::Database(Database::new(shop, "shop", bob))),
        ]);
        let of = |role, tie, class, object| RoleDependency {
            role,
            tie,
            user: RoleUser::Object(class),
            object,
            column: 0,
        };
        let mut found = catalog.role_dependencies();
        found.sort_by_key(|known| (known.object, known.role));
        assert_eq!(
            found,
            [
                of(alice, RoleTie::Owner, ObjectClass::Schema, schema),
                of(bob, RoleTie::Granted, ObjectClass::Schema, schema),
                of(bob, RoleTie::Owner, ObjectClass::Database, shop),
            ]
        );
        assert!(found[2].is_shared() && !found[0].is_shared());
    }
}
