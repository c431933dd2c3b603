//! What PARTITION BY and FOR VALUES say: parts of the definition of a table.

use serde::{Deserialize, Serialize};

use crate::types::{Oid, Type};

/// PARTITION BY.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionKey {
    pub strategy: PartitionStrategy,
    pub parts: Vec<PartitionKeyPart>,
    /// The operator classes of the parts, where somebody defined one: 0 is the type's own. None at
    /// all: every part has its own.
    #[serde(default)]
    pub classes: Vec<Oid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionStrategy {
    List,
    Range,
    Hash,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionKeyPart {
    /// As an index into [`crate::catalog::Table::columns`].
    Column(u16),
    /// SQL text over the row's columns.
    Expression { text: String, ty: Type },
}

/// FOR VALUES, or DEFAULT. Values are in their types' text form, those of the key's parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionBound {
    Default,
    /// IN (…): `None` is NULL.
    List(Vec<Option<String>>),
    /// FROM (…) TO (…): the lower end is in it, the upper is not.
    Range {
        from: Vec<RangeEnd>,
        to: Vec<RangeEnd>,
    },
    /// WITH (MODULUS …, REMAINDER …).
    Hash {
        modulus: u32,
        remainder: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RangeEnd {
    MinValue,
    MaxValue,
    Value(String),
}
