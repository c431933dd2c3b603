//! Databases as written, and the settings that they and roles begin a session with.

use super::name::RoleName;
use super::setting::SettingChange;

/// CREATE DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateDatabase {
    pub name: String,
    pub options: Vec<DatabaseOption>,
}

/// `name [=] value`. Any name is taken: CREATE and ALTER know theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseOption {
    /// Folded; CONNECTION LIMIT is `connection_limit`.
    pub name: String,
    pub value: OptionValue,
    /// One-based character position of the name in the script.
    pub position: u32,
}

/// The value of an option, before the option says of what kind it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// DEFAULT: as if the option were not there.
    Default,
    Integer(i32),
    /// A number that is no integer of four bytes, as written.
    Number(String),
    /// A word, folded, or a string.
    Text(String),
}

/// ALTER DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterDatabase {
    pub name: String,
    pub action: DatabaseAction,
}

/// What ALTER DATABASE changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseAction {
    Options(Vec<DatabaseOption>),
    RenameTo(String),
    OwnerTo(RoleName),
    SetTablespace(String),
    RefreshCollationVersion,
    Setting(SettingChange),
}

impl AlterDatabase {
    /// Whether it is about the tablespace alone, said either way: then no transaction block may hold it.
    pub fn moves(&self) -> bool {
        match &self.action {
            DatabaseAction::SetTablespace(_) => true,
            DatabaseAction::Options(options) => matches!(&options[..], [only] if only.name == "tablespace"),
            _ => false,
        }
    }
}

/// DROP DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropDatabase {
    pub name: String,
    pub if_exists: bool,
    /// WITH (FORCE): those who are connected to it are sent away.
    pub force: bool,
}

/// ALTER ROLE … IN DATABASE … SET and RESET, and those of ALTER ROLE ALL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterRoleSetting {
    /// `None`: ALL.
    pub role: Option<RoleName>,
    /// `None`: in every database.
    pub database: Option<String>,
    pub change: SettingChange,
}
