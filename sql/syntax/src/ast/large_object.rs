//! Statements about large objects. No catalog knows these, so such statements are no definitions.

use super::name::RoleName;
use super::role::Grant;

/// A statement about large objects, which are named by their numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum LargeObjectStatement {
    /// GRANT and REVOKE ON LARGE OBJECT: the objects, and the rest of it.
    Access(Vec<u32>, Box<Grant>),
    OwnerTo {
        object: u32,
        owner: RoleName,
    },
    /// COMMENT ON LARGE OBJECT; `None` removes it.
    Comment {
        object: u32,
        text: Option<String>,
    },
}

impl LargeObjectStatement {
    /// As the command is told.
    pub fn tag(&self) -> &'static str {
        match self {
            LargeObjectStatement::Access(_, grant) if grant.revoke => "REVOKE",
            LargeObjectStatement::Access(..) => "GRANT",
            LargeObjectStatement::OwnerTo { .. } => "ALTER LARGE OBJECT",
            LargeObjectStatement::Comment { .. } => "COMMENT",
        }
    }
}
