//! Who is shown what by the views about the running server.
//!
//! Rows about tables and routines are for those who may do something with them, values of keys for
//! those who may read all rows of the tables: whom policies hide some from is told of none. Members of
//! pg_read_all_stats, and so of pg_monitor, see all of it, as PostgreSQL has it of its statistics. Some settings are shown to nobody but superusers and members of
//! pg_read_all_settings.

use std::cell::OnceCell;

use archipel_engine::REFERENCE_GROUP;
use archipel_engine::id::GroupId;
use archipel_sql::catalog::role::{READ_ALL_SETTINGS, READ_ALL_STATS};
use archipel_sql::catalog::{Authority, ObjectClass, Privileges, Table};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::groups::Groups;
use super::relations::Relations;
use crate::database::Database;
use crate::session::host::Host;

/// What the role in force is shown.
pub(crate) struct Sight<'h> {
    host: &'h Host,
    rights: Authority<'h>,
    /// Everything.
    all: bool,
    /// Once somebody asks for one.
    groups: OnceCell<Groups>,
}

/// What it is shown of a co-location group.
pub(crate) struct GroupSight {
    /// The names of the tables and global indexes that it may know of.
    pub tables: Vec<String>,
    /// Whether it may see values of the keys.
    pub keys: bool,
}

impl<'h> Sight<'h> {
    pub fn of(host: &'h Host) -> Sight<'h> {
        let rights = host.rights();
        Sight { host, rights, all: rights.acts_as(READ_ALL_STATS), groups: OnceCell::new() }
    }

    /// Whether it is the session's database: of others' objects no rights are known.
    fn is_own(&self, database: &Database) -> bool {
        database.oid == self.host.database.oid
    }

    /// A table of some database.
    pub fn table_of(&self, database: &Database, table: Oid) -> bool {
        self.all || self.is_own(database) && self.table(table)
    }

    /// A routine of some database.
    pub fn routine_of(&self, database: &Database, routine: Oid) -> bool {
        self.all || self.is_own(database) && self.routine(routine)
    }

    /// What only owners are shown.
    pub fn owns(&self, object: Oid) -> bool {
        self.all || self.rights.owns(object)
    }

    /// A table or view: whoever owns it, or may do something with it or a column of it.
    pub fn table(&self, table: Oid) -> bool {
        if self.owns(table) {
            return true;
        }
        let held = self.rights.privileges(table, ObjectClass::Relation);
        let columns = || {
            let access = self.rights.catalog.access(table);
            access.is_some_and(|access| {
                access
                    .columns
                    .iter()
                    .any(|(column, _)| !self.rights.column_privileges(table, *column).is_empty())
            })
        };
        !(held & ObjectClass::Relation.all()).is_empty() || columns()
    }

    /// The values in a table, whichever row they are of.
    fn rows_of(&self, table: Oid) -> bool {
        let held = || self.rights.privileges(table, ObjectClass::Relation);
        // Only `row_security = off` makes it an error.
        let is_filtered = |known: &Table| self.rights.is_under_row_security(known, true).unwrap_or(true);
        let known = self.rights.catalog.table_by_oid(table);
        let filtered = known.is_some_and(|known| is_filtered(&known));
        self.all || !filtered && (self.rights.owns(table) || held().contains(Privileges::SELECT))
    }

    /// A routine: whoever owns it or may call it.
    pub fn routine(&self, routine: Oid) -> bool {
        let held = || self.rights.privileges(routine, ObjectClass::Routine);
        self.owns(routine) || held().contains(Privileges::EXECUTE)
    }

    /// What is in which group, whoever may know of it.
    pub(super) fn groups(&self) -> &Groups {
        let host = self.host;
        self.groups.get_or_init(|| Groups::of(&host.server, Relations::seen_by(host)))
    }

    /// A group; `None` where it may know of none of its tables. That of the reference tables is
    /// everybody's: no key is in it.
    pub fn group(&self, group: GroupId) -> Option<GroupSight> {
        if self.all || group == REFERENCE_GROUP {
            return Some(GroupSight { tables: self.groups().tables(group), keys: true });
        }
        let members = self.groups().named(group);
        let own = |(database, table): (&Database, Oid)| self.is_own(database).then_some(table);
        let known = |of: &Option<(&Database, Oid)>| of.and_then(own).is_some_and(|table| self.table(table));
        let keys = members.iter().all(|(of, _)| of.and_then(own).is_some_and(|table| self.rows_of(table)));
        let tables: Vec<String> =
            members.into_iter().filter(|(of, _)| known(of)).map(|(_, name)| name).collect();
        (!tables.is_empty()).then_some(GroupSight { tables, keys })
    }
}

/// The settings that tell of the machine more than everybody need know (GUC_SUPERUSER_ONLY).
const OF_SUPERUSERS: &[&str] = &[
    "config_file",
    "data_directory",
    "dynamic_library_path",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "jit_provider",
    "krb_server_keyfile",
    "log_directory",
    "log_filename",
    "primary_conninfo",
    "session_preload_libraries",
    "shared_preload_libraries",
    "ssl_ciphers",
    "ssl_dh_params_file",
    "ssl_ecdh_curve",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "ssl_passphrase_command",
    "unix_socket_directories",
];

/// 42501 for a setting whose value the role in force may not see.
pub(crate) fn examine_setting(host: &Host, name: &str) -> Result<()> {
    let known = OF_SUPERUSERS.iter().find(|known| known.eq_ignore_ascii_case(name));
    match known {
        Some(known) if !host.rights().acts_as(READ_ALL_SETTINGS) => {
            let message = format!(
                "must be superuser or have privileges of pg_read_all_settings to examine \"{known}\""
            );
            Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
        }
        _ => Ok(()),
    }
}
