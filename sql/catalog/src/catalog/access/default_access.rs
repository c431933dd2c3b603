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
}
