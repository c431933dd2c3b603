//! What is said of configuration parameters for all databases: with which values all sessions begin, and who may
//! set them.
//!
//! It is one object of what databases share, so that each change of it is one row of the catalog.

use serde::{Deserialize, Serialize};

use super::{Access, AclItem, SUPERUSER};
use crate::types::Oid;

/// The number that the one object of its kind goes by.
pub const PARAMETERS: Oid = Oid(0);

/// What is said of parameters. See the module's head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// ALTER ROLE ALL … SET: names and values (the row of pg_db_role_setting that has neither a database nor a
    /// role).
    pub settings: Vec<(String, String)>,
    /// GRANT … ON PARAMETER: the rows of pg_parameter_acl.
    #[serde(default)]
    pub access: Vec<ParameterAccess>,
}

/// Who may set a parameter, where somebody was given the right to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterAccess {
    pub oid: Oid,
    /// In lower case.
    pub name: String,
    pub acl: Vec<AclItem>,
}

impl ParameterAccess {
    /// Parameters are the superuser's.
    pub(super) fn access(&self) -> Access {
        Access { acl: Some(self.acl.clone()), ..Access::of_owner(self.oid, SUPERUSER) }
    }
}

impl Parameters {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.access.is_empty()
    }

    /// The rights on a parameter, by its number.
    pub fn numbered(&self, oid: Oid) -> Option<&ParameterAccess> {
        self.access.iter().find(|known| known.oid == oid)
    }

    /// The rights on a parameter, by its name in any letter case.
    pub fn named(&self, name: &str) -> Option<&ParameterAccess> {
        self.access.iter().find(|known| known.name.eq_ignore_ascii_case(name))
    }
}
