//! Extensions.

use super::{RoutineSignature, RoutineWord};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateExtension {
    pub name: String,
    pub if_not_exists: bool,
    pub schema: Option<String>,
    pub version: Option<String>,
}

/// ALTER EXTENSION.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterExtension {
    pub name: String,
    pub action: AlterExtensionAction,
}

/// What ALTER EXTENSION does.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterExtensionAction {
    /// UPDATE, perhaps TO a version.
    Update(Option<String>),
    SetSchema(String),
    /// ADD and DROP of a routine.
    Add(RoutineWord, RoutineSignature),
    Drop(RoutineWord, RoutineSignature),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropExtension {
    pub names: Vec<String>,
    pub if_exists: bool,
    pub cascade: bool,
}
