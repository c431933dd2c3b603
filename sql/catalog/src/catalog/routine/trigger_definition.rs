//! What a trigger is: part of the definition of its table.

use serde::{Deserialize, Serialize};

use crate::catalog::TriggerEvent;
use crate::types::Oid;

/// The sessions that a trigger is for (session_replication_role).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TriggerRole {
    #[default]
    Origin,
    Replica,
    Always,
}

/// A function that runs when rows of a table change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    pub oid: Oid,
    pub name: String,
    pub function: Oid,
    /// BEFORE; AFTER otherwise.
    pub before: bool,
    /// INSTEAD OF, of a view's rows: neither.
    #[serde(default)]
    pub instead: bool,
    pub events: Vec<TriggerEvent>,
    /// UPDATE OF: names of columns; empty for any.
    #[serde(default)]
    pub columns: Vec<String>,
    /// FOR EACH ROW; FOR EACH STATEMENT otherwise.
    pub row: bool,
    /// SQL text of WHEN.
    #[serde(default)]
    pub condition: Option<String>,
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Whether it fires in those that it is for; of those of replicas it always does.
    pub enabled: bool,
    /// Which sessions it was said to fire in.
    #[serde(default)]
    pub role: TriggerRole,
    /// Names of the rows that went and came, for the function's queries.
    #[serde(default)]
    pub old_table: Option<String>,
    #[serde(default)]
    pub new_table: Option<String>,
    /// A constraint trigger, and when it fires.
    #[serde(default)]
    pub constraint: Option<TriggerTiming>,
    /// Partitions: the trigger of the table it is part of.
    #[serde(default)]
    pub parent: Option<Oid>,
}

/// In which sessions a trigger fires: in those that apply what another server has done, and in the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiresIn {
    pub replica: bool,
    pub origin: bool,
}

impl FiresIn {
    /// Whether it fires in a session.
    #[inline]
    pub fn session(self, is_replica: bool) -> bool {
        if is_replica { self.replica } else { self.origin }
    }
}

/// When a constraint trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerTiming {
    pub deferrable: bool,
    pub initially_deferred: bool,
}
