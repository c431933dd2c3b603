//! SET of one setting: by itself, of a role, of a database, of a routine.

/// SET [SESSION | LOCAL] name TO value. Names are folded; `SET TIME ZONE` is `timezone`,
/// `SET NAMES` is `client_encoding`, `SET SCHEMA` is `search_path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    pub local: bool,
    pub name: String,
    pub value: SetValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetValue {
    Default,
    /// FROM CURRENT (routines only).
    Current,
    /// The items of the list, unquoted; most settings take one.
    List(Vec<String>),
}

/// What a role or a database says of the settings that its sessions begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingChange {
    Set(Set),
    Reset(String),
    ResetAll,
}
