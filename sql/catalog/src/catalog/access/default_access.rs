//! What `ALTER DEFAULT PRIVILEGES` has said: with which rights new objects of a role begin. A role is all
//! databases', and this is about the schemas of one: it is a row of its own, that of pg_default_acl.

use serde::{Deserialize, Serialize};

use super::{AclItem, ObjectClass};
use crate::types::Oid;

/// What new objects of a role begin with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultAccess {
    pub oid: Oid,
    pub role: Oid,
    /// `None`: wherever they are made.
    pub schema: Option<Oid>,
    pub class: ObjectClass,
    pub acl: Vec<AclItem>,
}

impl DefaultAccess {
    /// As pg_default_acl says what kind of objects it is about.
    pub fn letter(&self) -> char {
        if self.class == ObjectClass::Sequence { 'S' } else { self.class.letter() }
    }

    /// What the objects that it is about are called, in ALTER DEFAULT PRIVILEGES and in a message.
    pub fn words(&self) -> (&'static str, &'static str) {
        match self.class {
            ObjectClass::Relation => ("tables", "relations"),
            ObjectClass::Sequence => ("sequences", "sequences"),
            ObjectClass::Type => ("types", "types"),
            ObjectClass::Schema => ("schemas", "schemas"),
            _ => ("functions", "functions"),
        }
    }

    /// As messages call it: by the names of its role and of its schema.
    pub fn describe(&self, role: &str, schema: Option<&str>) -> String {
        let place = schema.map_or_else(String::new, |schema| format!(" in schema {schema}"));
        format!("default privileges on new {} belonging to role {role}{place}", self.words().1)
    }
}
