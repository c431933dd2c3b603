//! Extensions.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateExtension {
    pub name: String,
    pub if_not_exists: bool,
    pub schema: Option<String>,
    pub version: Option<String>,
}

/// ALTER EXTENSION … UPDATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterExtension {
    pub name: String,
    /// TO.
    pub version: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropExtension {
    pub names: Vec<String>,
    pub if_exists: bool,
    pub cascade: bool,
}
