//! Roles and rights as written.

use super::name::RoleName;
use super::{QualifiedName, RoutineSignature, RoutineWord, Set};

/// ROLE, USER or GROUP, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleWord {
    Role,
    User,
    Group,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleOption {
    Superuser(bool),
    CreateDatabase(bool),
    CreateRole(bool),
    Inherit(bool),
    Login(bool),
    Replication(bool),
    BypassRowSecurity(bool),
    ConnectionLimit(i64),
    /// `None`: PASSWORD NULL.
    Password(Option<String>),
    ValidUntil(String),
    InRole(Vec<RoleName>),
    /// ROLE and USER.
    Members(Vec<RoleName>),
    Admins(Vec<RoleName>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRole {
    pub word: RoleWord,
    pub name: RoleName,
    pub options: Vec<RoleOption>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RoleAction {
    Options(Vec<RoleOption>),
    RenameTo(String),
    Set(Set),
    Reset(String),
    ResetAll,
    /// ALTER GROUP … ADD and DROP USER.
    Members {
        add: bool,
        members: Vec<RoleName>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterRole {
    pub role: RoleName,
    pub action: RoleAction,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropRole {
    pub roles: Vec<RoleName>,
    pub if_exists: bool,
}

/// GRANT and REVOKE of roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRole {
    pub revoke: bool,
    pub roles: Vec<String>,
    pub members: Vec<RoleName>,
    /// WITH ADMIN OPTION; of REVOKE: only that.
    pub admin: bool,
    pub granted_by: Option<RoleName>,
    pub cascade: bool,
}

/// A right, on the whole object or on some of its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantedPrivilege {
    /// Folded; `None`: ALL [PRIVILEGES].
    pub name: Option<String>,
    pub columns: Vec<String>,
}

/// GRANT and REVOKE on objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    pub revoke: bool,
    pub privileges: Vec<GrantedPrivilege>,
    pub objects: GrantObjects,
    pub grantees: Vec<RoleName>,
    /// WITH GRANT OPTION; of REVOKE: only that.
    pub grant_option: bool,
    pub granted_by: Option<RoleName>,
    pub cascade: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum GrantObjects {
    Tables(Vec<QualifiedName>),
    Sequences(Vec<QualifiedName>),
    Schemas(Vec<String>),
    Databases(Vec<String>),
    Languages(Vec<String>),
    /// Configuration parameters, with the dots in their names.
    Parameters(Vec<String>),
    Routines(RoutineWord, Vec<RoutineSignature>),
    Types(Vec<QualifiedName>),
    Domains(Vec<QualifiedName>),
    /// By their numbers. A statement about them is a [`LargeObjectStatement`](super::LargeObjectStatement).
    LargeObjects(Vec<u32>),
    /// ALL TABLES | SEQUENCES | FUNCTIONS … IN SCHEMA: the word, and the schemas.
    AllInSchema(String, Vec<String>),
}

/// ALTER DEFAULT PRIVILEGES.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDefaultPrivileges {
    /// Empty: of the current role.
    pub roles: Vec<RoleName>,
    pub schemas: Vec<String>,
    pub revoke: bool,
    pub privileges: Vec<GrantedPrivilege>,
    /// TABLES, SEQUENCES, FUNCTIONS, ROUTINES, TYPES or SCHEMAS.
    pub objects: String,
    pub grantees: Vec<RoleName>,
    pub grant_option: bool,
    pub cascade: bool,
}

/// REASSIGN OWNED and DROP OWNED.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedObjects {
    pub roles: Vec<RoleName>,
    /// `None`: DROP OWNED.
    pub to: Option<RoleName>,
    pub cascade: bool,
}
