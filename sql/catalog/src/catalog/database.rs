//! A database: a row that all databases share. What lies in it is none of its business.

use serde::{Deserialize, Serialize};

use super::{Access, AclItem, DATABASE, DATABASE_NAME, SUPERUSER};
use crate::types::Oid;

/// A database. See the module's head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    pub oid: Oid,
    pub name: String,
    pub owner: Oid,
    /// `None`: the default.
    #[serde(default)]
    pub acl: Option<Vec<AclItem>>,
    /// Whether everybody who may make databases may copy it.
    #[serde(default)]
    pub is_template: bool,
    /// Whether anybody may connect to it.
    #[serde(default = "yes")]
    pub allow_connections: bool,
    /// How many sessions it may have; -1: any number.
    #[serde(default = "unlimited")]
    pub connection_limit: i32,
    /// ALTER DATABASE … SET, and ALTER ROLE … IN DATABASE … SET: settings of a new session in it.
    #[serde(default)]
    pub settings: Vec<DatabaseSettings>,
}

/// What new sessions in a database begin with (a row of pg_db_role_setting).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseSettings {
    /// Whose sessions; `None`: everybody's.
    pub role: Option<Oid>,
    /// Names and values.
    pub settings: Vec<(String, String)>,
}

fn yes() -> bool {
    true
}

fn unlimited() -> i32 {
    -1
}

/// What CREATE DATABASE copies where nothing else is said.
pub const TEMPLATE1: Oid = Oid(1);
/// The template that nobody changes.
pub const TEMPLATE0: Oid = Oid(4);
/// The database that tools connect to which know of no other. PostgreSQL's has number 5, which is
/// [`DATABASE`]'s here.
pub const POSTGRES: Oid = Oid(6);

impl Database {
    /// A database as CREATE DATABASE makes it without options.
    pub fn new(oid: Oid, name: &str, owner: Oid) -> Database {
        Database {
            oid,
            name: name.to_owned(),
            owner,
            acl: None,
            is_template: false,
            allow_connections: true,
            connection_limit: -1,
            settings: Vec::new(),
        }
    }

    /// The one that a new data directory has.
    pub(super) fn initial() -> Database {
        Database::new(DATABASE, DATABASE_NAME, SUPERUSER)
    }

    /// Whose it is and who may do what with it.
    pub(super) fn access(&self) -> Access {
        Access { acl: self.acl.clone(), ..Access::of_owner(self.oid, self.owner) }
    }
}
