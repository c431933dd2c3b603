//! Roles: who may connect and what they may do everywhere, who belongs to whom.
//!
//! A membership is part of the member, so that dropping a role takes its memberships along; those
//! of others in it are taken out by whoever drops it.

use serde::{Deserialize, Serialize};

use crate::types::Oid;

pub use crate::catalog::DATABASE_OWNER;
use crate::catalog::SUPERUSER;

/// A role. See the module's head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub oid: Oid,
    pub name: String,
    pub superuser: bool,
    pub login: bool,
    /// Has the rights of the roles it belongs to without SET ROLE.
    #[serde(default = "yes")]
    pub inherit: bool,
    #[serde(default)]
    pub create_role: bool,
    #[serde(default)]
    pub create_database: bool,
    #[serde(default)]
    pub replication: bool,
    #[serde(default)]
    pub bypass_row_security: bool,
    /// How many sessions it may have; -1: any number.
    #[serde(default = "unlimited")]
    pub connection_limit: i32,
    /// A SCRAM-SHA-256 verifier in PostgreSQL's form.
    #[serde(default)]
    pub password: Option<String>,
    /// Until when the password is good: microseconds since 2000-01-01 UTC.
    #[serde(default)]
    pub valid_until: Option<i64>,
    /// ALTER ROLE … SET: settings of a new session.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    #[serde(default)]
    pub member_of: Vec<Membership>,
}

/// That a role belongs to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    pub role: Oid,
    pub grantor: Oid,
    /// May let others belong to it.
    pub admin: bool,
}

fn yes() -> bool {
    true
}

fn unlimited() -> i32 {
    -1
}

pub const READ_ALL_DATA: Oid = Oid(6181);
pub const WRITE_ALL_DATA: Oid = Oid(6182);
pub const SIGNAL_BACKEND: Oid = Oid(4200);
pub const CHECKPOINT: Oid = Oid(4544);
pub const READ_ALL_SETTINGS: Oid = Oid(3374);
pub const READ_ALL_STATS: Oid = Oid(3375);
pub const READ_SERVER_FILES: Oid = Oid(4569);
/// Its members write files of the server by COPY.
pub const WRITE_SERVER_FILES: Oid = Oid(4570);
/// Its members run programs of the server by COPY.
pub const EXECUTE_SERVER_PROGRAM: Oid = Oid(4571);
const MONITOR: Oid = Oid(3373);

/// PostgreSQL 15's predefined roles.
const PREDEFINED: [(Oid, &str); 12] = [
    (DATABASE_OWNER, "pg_database_owner"),
    (READ_ALL_DATA, "pg_read_all_data"),
    (WRITE_ALL_DATA, "pg_write_all_data"),
    (MONITOR, "pg_monitor"),
    (READ_ALL_SETTINGS, "pg_read_all_settings"),
    (READ_ALL_STATS, "pg_read_all_stats"),
    (Oid(3377), "pg_stat_scan_tables"),
    (READ_SERVER_FILES, "pg_read_server_files"),
    (WRITE_SERVER_FILES, "pg_write_server_files"),
    (EXECUTE_SERVER_PROGRAM, "pg_execute_server_program"),
    (SIGNAL_BACKEND, "pg_signal_backend"),
    (CHECKPOINT, "pg_checkpoint"),
];

/// The roles that every server has besides its superuser.
pub(in crate::catalog) fn predefined() -> impl Iterator<Item = Role> {
    PREDEFINED.iter().map(|&(oid, name)| {
        let mut role = Role::new(oid, name);
        if oid == MONITOR {
            role.member_of = [3374, 3375, 3377]
                .map(|of| Membership { role: Oid(of), grantor: SUPERUSER, admin: false })
                .to_vec();
        }
        role
    })
}

impl Role {
    /// A role as CREATE ROLE makes it without options.
    pub fn new(oid: Oid, name: &str) -> Role {
        Role {
            oid,
            name: name.to_owned(),
            superuser: false,
            login: false,
            inherit: true,
            create_role: false,
            create_database: false,
            replication: false,
            bypass_row_security: false,
            connection_limit: -1,
            password: None,
            valid_until: None,
            settings: Vec::new(),
            member_of: Vec::new(),
        }
    }

    /// The role that a new data directory has.
    pub(in crate::catalog) fn superuser(oid: Oid, name: &str) -> Role {
        Role {
            superuser: true,
            login: true,
            create_role: true,
            create_database: true,
            replication: true,
            bypass_row_security: true,
            ..Role::new(oid, name)
        }
    }

    /// Whether it belongs to `role` by a grant of its own.
    pub fn membership(&self, role: Oid) -> Option<&Membership> {
        self.member_of.iter().find(|membership| membership.role == role)
    }
}
