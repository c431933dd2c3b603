//! Who owns an object and what its access list says, in a catalog; access lists as text.

use std::fmt;

use super::role::DATABASE_OWNER;
use super::{Access, AclItem, EVERYBODY, ObjectClass};
use crate::catalog::large_object::is_table_of_large_objects;
use crate::catalog::{
    ARCHIPEL, Catalog, INFORMATION_SCHEMA, PG_CATALOG, PUBLIC, SUPERUSER, Table, TableKind,
};
use crate::rights::Privileges;
use crate::types::Oid;

/// How a list reads where its roles have names: `{alice=r*/bob}`.
pub struct AclText<'c> {
    pub item: &'c AclItem,
    pub catalog: &'c Catalog,
}

impl fmt::Display for AclText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |oid: Oid| match self.catalog.role_by_oid(oid) {
            Some(role) if role.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                role.name.clone()
            }
            Some(role) => format!("\"{}\"", role.name.replace('"', "\"\"")),
            None => oid.to_string(),
        };
        match self.item.grantee {
            EVERYBODY => write!(f, "=")?,
            grantee => write!(f, "{}=", name(grantee))?,
        }
        for (privilege, letter, _) in self.item.privileges.each() {
            write!(f, "{letter}")?;
            if self.item.options.contains(privilege) {
                write!(f, "*")?;
            }
        }
        write!(f, "/{}", name(self.item.grantor))
    }
}

/// System relations that not everybody may read.
fn is_secret(table: &Table) -> bool {
    table.schema == "pg_catalog"
        && matches!(
            table.name.as_str(),
            "pg_authid"
                | "pg_shadow"
                | "pg_statistic"
                | "pg_statistic_ext_data"
                | "pg_subscription"
                | "pg_user_mapping"
                | "pg_largeobject"
                | "pg_hba_file_rules"
                | "pg_ident_file_mappings"
                | "pg_file_settings"
                | "pg_config"
                | "pg_backend_memory_contexts"
                | "pg_shmem_allocations"
        )
}

/// Of one of them everybody may read some columns (GRANT SELECT in system_views.sql).
fn has_open_column(table: &Table, column: u16) -> bool {
    let name = usize::from(column).checked_sub(1).and_then(|place| table.columns.get(place));
    table.kind == TableKind::System
        && table.schema == "pg_catalog"
        && table.name == "pg_subscription"
        && name.is_some_and(|column| column.name != "subconninfo")
}

impl Catalog {
    /// Whether everybody may read a column (one-based) of a system relation that is secret as a whole, as long
    /// as nobody changes that.
    pub(super) fn is_open_column(&self, table: Oid, column: u16) -> bool {
        self.access(table).is_none()
            && self.table_in_place(table).is_some_and(|table| has_open_column(table, column))
    }

    /// What kind of object has this oid, as far as rights go.
    pub fn class_of(&self, object: Oid) -> Option<ObjectClass> {
        if self.name_of_database(object).is_some() {
            return Some(ObjectClass::Database);
        }
        if self.parameters().numbered(object).is_some() {
            return Some(ObjectClass::Parameter);
        }
        if self.table_in_place(object).is_some() {
            return Some(ObjectClass::Relation);
        }
        if self.sequence_by_oid(object).is_some() {
            return Some(ObjectClass::Sequence);
        }
        if self.routine_by_oid(object).is_some() {
            return Some(ObjectClass::Routine);
        }
        if self.schema_by_oid(object).is_some() {
            return Some(ObjectClass::Schema);
        }
        self.user_type_by_oid(object).map(|_| ObjectClass::Type)
    }

    /// The owner and the rights of an object, those that go without saying included.
    pub fn access_of(&self, object: Oid) -> Access {
        match self.access(object) {
            Some(access) => Access::clone(access),
            None => self.initial_access(object),
        }
    }

    /// The same as it is before anybody changes it.
    pub fn initial_access(&self, object: Oid) -> Access {
        let with_public = |owner: Oid, own: Privileges, public: Privileges| {
            let items = [AclItem::new(owner, owner, own), AclItem::new(EVERYBODY, owner, public)];
            let acl = items.into_iter().filter(|item| !item.privileges.is_empty()).collect();
            Access { acl: Some(acl), ..Access::of_owner(object, owner) }
        };
        match object {
            PUBLIC => with_public(DATABASE_OWNER, ObjectClass::Schema.all(), Privileges::USAGE),
            PG_CATALOG | INFORMATION_SCHEMA | ARCHIPEL => {
                with_public(SUPERUSER, ObjectClass::Schema.all(), Privileges::USAGE)
            }
            _ => match self.table_in_place(object) {
                Some(table) if table.kind == TableKind::System || is_table_of_large_objects(object) => {
                    let public = if is_secret(table) { Privileges::NONE } else { Privileges::SELECT };
                    with_public(SUPERUSER, ObjectClass::Relation.all(), public)
                }
                _ => Access::of_owner(object, SUPERUSER),
            },
        }
    }

    /// Whose an object is.
    pub fn owner(&self, object: Oid) -> Oid {
        match self.access(object) {
            Some(access) => access.owner,
            None if object == PUBLIC => DATABASE_OWNER,
            None => SUPERUSER,
        }
    }

    /// The rights in force on an object.
    pub fn acl_of(&self, object: Oid, class: ObjectClass) -> Vec<AclItem> {
        let access = self.access_by_class(object, class);
        access.acl.unwrap_or_else(|| class.default_acl(access.owner))
    }
}
