//! What statements say of partitioned tables and their partitions.

use super::{ColumnConstraint, Expression, IndexElement, QualifiedName};

/// PARTITION OF parent [(column options)] bound.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionOf {
    pub parent: QualifiedName,
    pub columns: Vec<ColumnOptions>,
    pub bound: BoundSpec,
}

/// What a partition says of a column it has from its parent: `name [WITH OPTIONS] constraint …`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnOptions {
    pub name: String,
    pub position: u32,
    pub constraints: Vec<ColumnConstraint>,
}

/// FOR VALUES …, or DEFAULT.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundSpec {
    pub position: u32,
    pub kind: BoundSpecKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BoundSpecKind {
    Default,
    /// IN (…).
    List(Vec<Expression>),
    /// FROM (…) TO (…). MINVALUE and MAXVALUE are names.
    Range {
        from: Vec<Expression>,
        to: Vec<Expression>,
    },
    /// WITH (MODULUS …, REMAINDER …).
    Hash {
        modulus: i64,
        remainder: i64,
    },
}

/// PARTITION BY strategy (parts).
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionBy {
    /// As written.
    pub strategy: String,
    pub parts: Vec<IndexElement>,
}
