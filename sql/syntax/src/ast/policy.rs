//! Policies as written.

use super::QualifiedName;
use super::name::{Expression, RoleName};

/// The commands that a policy is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum PolicyCommand {
    All,
    Select,
    Insert,
    Update,
    Delete,
}

/// CREATE POLICY.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatePolicy {
    pub name: String,
    pub table: QualifiedName,
    pub permissive: bool,
    pub command: PolicyCommand,
    /// Empty: PUBLIC.
    pub roles: Vec<RoleName>,
    pub using: Option<Expression>,
    pub check: Option<Expression>,
}

/// ALTER POLICY, but for its name.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterPolicy {
    pub name: String,
    pub table: QualifiedName,
    /// `None`: those it is for.
    pub roles: Option<Vec<RoleName>>,
    pub using: Option<Expression>,
    pub check: Option<Expression>,
}

/// ALTER POLICY … RENAME TO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenamePolicy {
    pub name: String,
    pub table: QualifiedName,
    pub new_name: String,
}

/// DROP POLICY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropPolicy {
    pub name: String,
    pub table: QualifiedName,
    pub if_exists: bool,
}
