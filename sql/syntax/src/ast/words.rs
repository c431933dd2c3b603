//! Words that statements say and the catalog keeps.

use serde::{Deserialize, Serialize};

/// Whether a table outlives its session. Unlogged tables are as durable as any: the word is kept
/// for those who ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Persistence {
    #[default]
    Permanent,
    Unlogged,
    Temporary,
}

impl Persistence {
    /// pg_class.relpersistence.
    pub fn letter(self) -> &'static str {
        match self {
            Persistence::Permanent => "p",
            Persistence::Unlogged => "u",
            Persistence::Temporary => "t",
        }
    }
}

/// What COMMIT does with the rows of a temporary table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnCommit {
    #[default]
    PreserveRows,
    DeleteRows,
    Drop,
}

/// How a parameter of a routine is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArgMode {
    In,
    Out,
    InOut,
    Variadic,
    Table,
}

/// What a trigger waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TriggerEvent {
    Insert,
    Delete,
    Update,
    /// Of statements alone.
    Truncate,
}

impl TriggerEvent {
    /// As TG_OP has it.
    pub fn as_str(self) -> &'static str {
        match self {
            TriggerEvent::Insert => "INSERT",
            TriggerEvent::Delete => "DELETE",
            TriggerEvent::Update => "UPDATE",
            TriggerEvent::Truncate => "TRUNCATE",
        }
    }
}

/// WITH LOCAL or CASCADED CHECK OPTION: of the view alone, or of those below it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckOption {
    Local,
    Cascaded,
}
