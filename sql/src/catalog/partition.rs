//! Tables that have their rows in others: INHERITS, and declarative partitioning (PostgreSQL's
//! chapters 5.10 and 5.11).
//!
//! A partition is a table like any other, with rows, indexes and constraints of its own. The table
//! it is part of has no rows and no tree: statements that name it are bound over its partitions.
//! These partitions are what users declare, and have nothing to do with the engine's, which every
//! stored table has.

use serde::{Deserialize, Serialize};

use crate::types::{Oid, Type};

use super::Table;

/// PARTITION BY.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionKey {
    pub strategy: PartitionStrategy,
    pub parts: Vec<PartitionKeyPart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionStrategy {
    List,
    Range,
    Hash,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionKeyPart {
    /// As an index into [`Table::columns`].
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

impl Table {
    /// Whether its rows are its partitions'.
    pub fn is_partitioned(&self) -> bool {
        self.partitioned_by.is_some()
    }

    /// The table it is a partition of.
    pub fn partition_of(&self) -> Option<Oid> {
        self.bound.as_ref().and_then(|_| self.inherits.first().copied())
    }
}
