//! Rights, and what statements need of them.

use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

use serde::{Deserialize, Serialize};

use crate::types::Oid;

/// A set of rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Privileges(pub u16);

impl Privileges {
    pub const NONE: Privileges = Privileges(0);
    pub const INSERT: Privileges = Privileges(1);
    pub const SELECT: Privileges = Privileges(1 << 1);
    pub const UPDATE: Privileges = Privileges(1 << 2);
    pub const DELETE: Privileges = Privileges(1 << 3);
    pub const TRUNCATE: Privileges = Privileges(1 << 4);
    pub const REFERENCES: Privileges = Privileges(1 << 5);
    pub const TRIGGER: Privileges = Privileges(1 << 6);
    pub const EXECUTE: Privileges = Privileges(1 << 7);
    pub const USAGE: Privileges = Privileges(1 << 8);
    pub const CREATE: Privileges = Privileges(1 << 9);
    pub const TEMPORARY: Privileges = Privileges(1 << 10);
    pub const CONNECT: Privileges = Privileges(1 << 11);
    /// Of a configuration parameter.
    pub const SET: Privileges = Privileges(1 << 12);
    /// Of a configuration parameter.
    pub const ALTER_SYSTEM: Privileges = Privileges(1 << 13);
    /// What a column can be granted.
    pub const OF_COLUMNS: Privileges =
        Privileges(Self::INSERT.0 | Self::SELECT.0 | Self::UPDATE.0 | Self::REFERENCES.0);

    /// Each right with its letter and its name, in the order PostgreSQL writes them.
    pub const NAMES: [(Privileges, char, &'static str); 14] = [
        (Privileges::INSERT, 'a', "INSERT"),
        (Privileges::SELECT, 'r', "SELECT"),
        (Privileges::UPDATE, 'w', "UPDATE"),
        (Privileges::DELETE, 'd', "DELETE"),
        (Privileges::TRUNCATE, 'D', "TRUNCATE"),
        (Privileges::REFERENCES, 'x', "REFERENCES"),
        (Privileges::TRIGGER, 't', "TRIGGER"),
        (Privileges::EXECUTE, 'X', "EXECUTE"),
        (Privileges::USAGE, 'U', "USAGE"),
        (Privileges::CREATE, 'C', "CREATE"),
        (Privileges::TEMPORARY, 'T', "TEMPORARY"),
        (Privileges::CONNECT, 'c', "CONNECT"),
        (Privileges::SET, 's', "SET"),
        (Privileges::ALTER_SYSTEM, 'A', "ALTER SYSTEM"),
    ];

    /// The right of this name, in any letter case.
    pub fn parse(name: &str) -> Option<Privileges> {
        if name.eq_ignore_ascii_case("temp") {
            return Some(Privileges::TEMPORARY);
        }
        let found = Self::NAMES.iter().find(|(_, _, known)| known.eq_ignore_ascii_case(name));
        found.map(|(privilege, ..)| *privilege)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, all: Privileges) -> bool {
        self & all == all
    }

    /// Those of [`Privileges::NAMES`] that are in it.
    pub fn each(self) -> impl Iterator<Item = (Privileges, char, &'static str)> {
        Self::NAMES.into_iter().filter(move |(privilege, ..)| self.contains(*privilege))
    }
}

impl BitOr for Privileges {
    type Output = Privileges;
    fn bitor(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }
}

impl BitOrAssign for Privileges {
    fn bitor_assign(&mut self, other: Privileges) {
        self.0 |= other.0;
    }
}

impl BitAnd for Privileges {
    type Output = Privileges;
    fn bitand(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }
}

impl Not for Privileges {
    type Output = Privileges;
    fn not(self) -> Privileges {
        Privileges(!self.0)
    }
}

/// Something a statement needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Whose rights count: the owner of the view in which it stands; `None`: of whoever runs it.
    pub acting: Option<Oid>,
    pub what: Required,
}

/// What that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Required {
    /// USAGE of a schema.
    Schema(Oid),
    /// Rights on a table or view; columns (one-based) where single ones will do.
    Table { table: Oid, privileges: Privileges, selected: Vec<u16>, inserted: Vec<u16>, updated: Vec<u16> },
    /// EXECUTE of a routine.
    Routine(Oid),
    /// To be who the statement was planned for, as the policies of a table decided what it reads and writes:
    /// this role, if they were not those for a view's owner, and this setting of `row_security`.
    RowSecurity { role: Option<Oid>, on: bool },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::SessionHost;

    /// A host that answers nothing itself.
    struct Forgetful;
    impl SessionHost for Forgetful {}

    #[test]
    fn a_host_that_forgets_what_it_is_asked_refuses() {
        let something = Oid(20_000);
        let needed = [Requirement { acting: None, what: Required::Routine(something) }];
        assert!(Forgetful.require(&needed).is_err());
        assert!(Forgetful.require_sequence(something, Privileges::USAGE).is_err());
        assert!(Forgetful.check_label(something).is_err());
        assert!(Forgetful.with_settings(&[]).is_err());
        assert!(Forgetful.as_owner_of(something, &[]).is_err());
    }
}
