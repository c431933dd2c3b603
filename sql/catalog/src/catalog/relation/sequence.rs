//! Sequences, as the catalog knows them.

use serde::{Deserialize, Serialize};

use crate::catalog::Persistence;
use crate::types::{Oid, Type};

/// A sequence's definition: where it stands is the engine's to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    /// int2, int4 or int8.
    pub ty: Type,
    pub start: i64,
    pub increment: i64,
    pub min_value: i64,
    pub max_value: i64,
    pub cycle: bool,
    pub cache: i64,
    /// The column that owns it (serial, identity): table and column index.
    pub owned_by: Option<(Oid, u16)>,
    #[serde(default)]
    pub persistence: Persistence,
    /// The engine's number of it where that is not its oid; see [`Sequence::file`].
    #[serde(default)]
    pub file: Option<u32>,
}

impl Sequence {
    /// The engine's number of it. A sequence that was restarted in a transaction block is another one
    /// there, as PostgreSQL gives it a new file.
    pub fn file(&self) -> u32 {
        self.file.unwrap_or(self.oid.0)
    }
}
