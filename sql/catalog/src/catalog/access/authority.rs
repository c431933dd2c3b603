//! What a role may do, and PostgreSQL's errors when it may not.
//!
//! Binding a statement notes what it needs ([`Requirement`]); whoever runs it asks once for each
//! role and version of the catalog. Definitions ask directly.

use std::sync::Arc;

use crate::error::{Result, SqlError, SqlState};
pub use crate::rights::{Required, Requirement};
use crate::types::Oid;

use super::EVERYBODY;
use super::role::{DATABASE_OWNER, READ_ALL_DATA, WRITE_ALL_DATA};
use crate::catalog::large_object::is_table_of_large_objects;
use crate::catalog::routine::language_object::language_numbered;
use crate::catalog::{AclItem, Catalog, ObjectClass, Privileges, Relation, SUPERUSER_NAME, TableKind};

/// A role in a catalog.
#[derive(Clone, Copy, Debug)]
pub struct Authority<'c> {
    pub catalog: &'c Catalog,
    pub role: Oid,
}

/// 42501.
fn denied(what: &str, name: &str) -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, format!("permission denied for {what} {name}"))
}

/// 42501 of those whose an object is not.
pub fn must_be_owner(what: &str, name: &str) -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, format!("must be owner of {what} {name}"))
}

/// 42704.
pub fn undefined_role(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"))
}

/// 0A000 of a statement whose plan other policies went into than those that count now.
pub fn planned_for_another() -> SqlError {
    let what =
        "another role or row_security for a statement over a table with policies while its routine runs";
    SqlError::unsupported(what)
}

impl Catalog {
    /// An object in the words of an error: its kind and its name.
    pub fn kind_and_name(&self, object: Oid) -> (&'static str, String) {
        if let Some(relation) = self.relation_by_oid(object) {
            let kind = match &relation {
                Relation::Table(table) if table.kind == TableKind::Table => "table",
                Relation::Table(table) if table.kind == TableKind::System && !is_view(&table.schema) => {
                    "table"
                }
                Relation::Table(_) => "view",
                Relation::Sequence(_) => "sequence",
                Relation::Index(..) | Relation::PrimaryKey(_) | Relation::Nominal(..) => "index",
            };
            return (kind, relation.name().to_owned());
        }
        if let Some(routine) = self.routine_by_oid(object) {
            return (routine.kind.as_str(), routine.name.clone());
        }
        if let Some(schema) = self.schema_by_oid(object) {
            return ("schema", schema.name.clone());
        }
        if let Some(ty) = self.user_type_by_oid(object) {
            return ("type", ty.name.clone());
        }
        if let Some(language) = language_numbered(object) {
            return ("language", language.name.to_owned());
        }
        if let Some(function) = crate::system::built_in_name(object) {
            return ("function", function.to_owned());
        }
        if let Some(info) = crate::type_table::type_info(object) {
            return ("type", info.name.to_owned());
        }
        if let Some(parameter) = self.parameters().numbered(object) {
            return ("parameter", parameter.name.clone());
        }
        match self.name_of_database(object) {
            Some(name) => ("database", name.to_owned()),
            None => ("object", object.to_string()),
        }
    }
}

/// Whether the system relations of a schema are views in PostgreSQL.
fn is_view(schema: &str) -> bool {
    schema != "pg_catalog"
}

impl Authority<'_> {
    pub fn is_superuser(&self) -> bool {
        self.catalog.role_by_oid(self.role).is_some_and(|role| role.superuser)
    }

    /// Whether it has the rights of `role` without SET ROLE (has_privs_of_role).
    pub fn acts_as(&self, role: Oid) -> bool {
        self.role == role || self.is_superuser() || self.catalog.roles_of(self.role, true).contains(&role)
    }

    /// Whether it belongs to `role`: may SET ROLE to it (is_member_of_role).
    pub fn belongs_to(&self, role: Oid) -> bool {
        self.role == role || self.is_superuser() || self.catalog.roles_of(self.role, false).contains(&role)
    }

    pub fn owns(&self, object: Oid) -> bool {
        self.acts_as(self.catalog.owner(object))
    }

    /// As [`Authority::owns`], of a database.
    pub fn owns_database(&self, database: Oid) -> bool {
        self.acts_as(self.catalog.owner_of_database(database))
    }

    /// 42501 unless it owns the object.
    pub fn require_owner(&self, object: Oid) -> Result<()> {
        if self.owns(object) {
            return Ok(());
        }
        let (what, name) = self.catalog.kind_and_name(object);
        Err(must_be_owner(what, &name))
    }

    /// The rights a list gives it, directly or through others (aclmask).
    fn held(&self, acl: &[AclItem], roles: &[Oid]) -> Privileges {
        let own = acl.iter().filter(|item| item.grantee == EVERYBODY || roles.contains(&item.grantee));
        own.fold(Privileges::NONE, |all, item| all | item.privileges)
    }

    /// The grant options a list gives it; the owner has them all.
    fn options(&self, acl: &[AclItem], owner: Oid, roles: &[Oid]) -> Privileges {
        if roles.contains(&owner) {
            return Privileges(u16::MAX);
        }
        let own = acl.iter().filter(|item| roles.contains(&item.grantee));
        own.fold(Privileges::NONE, |all, item| all | item.options)
    }

    /// Its rights on an object.
    pub fn privileges(&self, object: Oid, class: ObjectClass) -> Privileges {
        if self.is_superuser() {
            return Privileges(u16::MAX);
        }
        let roles = self.catalog.roles_of(self.role, true);
        let mut held = self.held(&self.catalog.acl_of(object, class), &roles);
        if matches!(class, ObjectClass::Relation | ObjectClass::Sequence | ObjectClass::Schema) {
            held |= self.predefined(object, class, &roles);
        }
        held
    }

    /// What pg_read_all_data and pg_write_all_data may.
    fn predefined(&self, object: Oid, class: ObjectClass, roles: &[Oid]) -> Privileges {
        let system = is_table_of_large_objects(object)
            || self.catalog.table_in_place(object).is_some_and(|table| table.kind == TableKind::System);
        let (read, write) = match class {
            _ if system => (Privileges::SELECT, Privileges::NONE),
            ObjectClass::Schema => (Privileges::USAGE, Privileges::USAGE),
            ObjectClass::Relation => {
                let write = Privileges::INSERT | Privileges::UPDATE | Privileges::DELETE;
                (Privileges::SELECT, write)
            }
            _ => (Privileges::SELECT, Privileges::UPDATE),
        };
        let mut held = Privileges::NONE;
        if roles.contains(&READ_ALL_DATA) {
            held |= read;
        }
        if roles.contains(&WRITE_ALL_DATA) {
            held |= write;
        }
        held
    }

    /// Its grant options on an object.
    pub fn grant_options(&self, object: Oid, class: ObjectClass) -> Privileges {
        if self.is_superuser() {
            return Privileges(u16::MAX);
        }
        let owner = self.catalog.owner_by_class(object, class);
        let roles = self.catalog.roles_of(self.role, true);
        self.options(&self.catalog.acl_of(object, class), owner, &roles)
    }

    /// Its rights on a column (one-based), without those on the whole table.
    pub fn column_privileges(&self, table: Oid, column: u16) -> Privileges {
        let Some(access) = self.catalog.access(table) else {
            let is_open = self.catalog.is_open_column(table, column);
            return if is_open { Privileges::SELECT } else { Privileges::NONE };
        };
        self.held(access.column(column), &self.catalog.roles_of(self.role, true))
    }

    /// Its grant options on a column (one-based), without those on the whole table.
    pub fn column_options(&self, table: Oid, column: u16) -> Privileges {
        let Some(access) = self.catalog.access(table) else { return Privileges::NONE };
        self.options(access.column(column), access.owner, &self.catalog.roles_of(self.role, true))
    }

    /// What a list gives it that no catalog keeps: a large object's.
    pub fn privileges_by(&self, acl: &[AclItem]) -> Privileges {
        if self.is_superuser() {
            return Privileges(u16::MAX);
        }
        self.held(acl, &self.catalog.roles_of(self.role, true))
    }

    /// 42501 unless it has all these rights on the object.
    pub fn require(&self, object: Oid, class: ObjectClass, privileges: Privileges) -> Result<()> {
        if self.privileges(object, class).contains(privileges) {
            return Ok(());
        }
        let (what, name) = self.catalog.kind_and_name_by_class(object, class);
        Err(denied(what, &name))
    }

    /// 42501 unless it has one of these rights on the object.
    pub fn require_any(&self, object: Oid, class: ObjectClass, privileges: Privileges) -> Result<()> {
        if !(self.privileges(object, class) & privileges).is_empty() {
            return Ok(());
        }
        let (what, name) = self.catalog.kind_and_name_by_class(object, class);
        Err(denied(what, &name))
    }

    /// 42501 unless it may look into the schema.
    pub fn require_schema(&self, name: &str, privileges: Privileges) -> Result<()> {
        match self.catalog.schema(name) {
            Some(schema) => self.require(schema.oid, ObjectClass::Schema, privileges),
            None => Ok(()),
        }
    }

    /// Whether names without a schema are looked up there.
    pub fn sees_schema(&self, name: &str) -> bool {
        crate::catalog::names::is_temporary_schema(name)
            || self.require_schema(name, Privileges::USAGE).is_ok()
    }

    /// A search path as the role goes along it: `$user` is its own name, and schemas that it may not
    /// look into are passed over.
    pub fn path(&self, written: &[String]) -> Arc<[String]> {
        let superuser = self.is_superuser();
        // The superuser's name is the name of the system's own schema, which "$user" never means.
        let own =
            || Some(self.catalog.role_by_oid(self.role)?.name.clone()).filter(|own| own != SUPERUSER_NAME);
        written
            .iter()
            .filter_map(|schema| if schema == "$user" { own() } else { Some(schema.clone()) })
            .filter(|schema| superuser || self.sees_schema(schema))
            .collect()
    }

    /// 42501 for the first of these that it has not.
    pub fn require_all(&self, needed: &[Requirement]) -> Result<()> {
        let is_plain = |requirement: &Requirement| {
            requirement.acting.is_none() && !matches!(requirement.what, Required::RowSecurity { .. })
        };
        if self.is_superuser() && needed.iter().all(is_plain) {
            return Ok(());
        }
        for requirement in needed {
            let acting = requirement.acting.unwrap_or(self.role);
            Authority { catalog: self.catalog, role: acting }.require_one(&requirement.what)?;
        }
        Ok(())
    }

    fn require_one(&self, needed: &Required) -> Result<()> {
        match needed {
            Required::Schema(schema) => self.require(*schema, ObjectClass::Schema, Privileges::USAGE),
            Required::Routine(routine) => self.require(*routine, ObjectClass::Routine, Privileges::EXECUTE),
            Required::RowSecurity { role, .. } if role.is_none_or(|role| role == self.role) => Ok(()),
            Required::RowSecurity { .. } => Err(planned_for_another()),
            Required::Table { table, privileges, selected, inserted, updated } => {
                let columns = [
                    (Privileges::SELECT, &selected[..]),
                    (Privileges::INSERT, &inserted[..]),
                    (Privileges::UPDATE, &updated[..]),
                ];
                if self.may(*table, *privileges, &columns) {
                    return Ok(());
                }
                let (what, name) = self.catalog.kind_and_name(*table);
                Err(denied(what, &name))
            }
        }
    }

    /// ExecCheckRTEPerms: what the table does not grant, every column touched must; any column will
    /// do where none is named.
    pub fn may(&self, table: Oid, privileges: Privileges, columns: &[(Privileges, &[u16])]) -> bool {
        let mut missing = privileges & !self.privileges(table, ObjectClass::Relation);
        for (privilege, touched) in columns {
            if (missing & *privilege).is_empty() {
                continue;
            }
            let granted = |column: u16| self.column_privileges(table, column).contains(*privilege);
            let enough = if touched.is_empty() {
                let all = self.catalog.access(table).map(|access| &access.columns[..]).unwrap_or_default();
                all.iter().any(|(column, _)| granted(*column)) || granted(1)
            } else {
                touched.iter().all(|column| granted(*column))
            };
            if enough {
                missing = missing & !*privilege;
            }
        }
        missing.is_empty()
    }

    /// Whether it may set a parameter that only superusers may, or change it by ALTER SYSTEM.
    pub fn may_change_parameter(&self, name: &str, privilege: Privileges) -> bool {
        let parameters = self.catalog.parameters();
        let known = parameters.named(name).map(|known| known.oid);
        self.is_superuser()
            || known.is_some_and(|oid| self.privileges(oid, ObjectClass::Parameter).contains(privilege))
    }

    /// In whose name it grants these rights, and which of them it may (select_best_grantor).
    pub fn grantor(&self, acl: &[AclItem], owner: Oid, wanted: Privileges) -> (Oid, Privileges) {
        if self.role == owner || self.is_superuser() {
            return (owner, wanted);
        }
        let mut best = (self.role, Privileges::NONE);
        for role in self.catalog.roles_of(self.role, true) {
            let found = super::grant_options(acl, role, owner) & wanted;
            if found == wanted {
                return (role, found);
            }
            if found.0.count_ones() > best.1.0.count_ones() {
                best = (role, found);
            }
        }
        best
    }

    /// Whether it may make roles and change them.
    pub fn creates_roles(&self) -> bool {
        self.is_superuser() || self.catalog.role_by_oid(self.role).is_some_and(|role| role.create_role)
    }

    /// 42501 unless an object of its own may become `role`'s.
    pub fn require_member(&self, role: Oid) -> Result<()> {
        if role == DATABASE_OWNER || self.belongs_to(role) {
            return Ok(());
        }
        let name = self.catalog.role_by_oid(role).map_or_else(|| role.to_string(), |role| role.name.clone());
        let message = format!("must be member of role \"{name}\"");
        Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
    }
}

/// In whose name a session works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRoles {
    /// Whose rights count: SET ROLE changes it.
    pub current: Oid,
    /// Who connected, or SET SESSION AUTHORIZATION.
    pub session: Oid,
}

impl Default for SessionRoles {
    /// The superuser's.
    fn default() -> SessionRoles {
        SessionRoles { current: crate::catalog::SUPERUSER, session: crate::catalog::SUPERUSER }
    }
}
