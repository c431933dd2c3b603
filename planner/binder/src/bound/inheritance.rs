//! A table with those that have rows of it, as bound statements hold it: itself and its heirs, or its partitions.

use archipel_sql::catalog::TableRef;

use super::BoundExpr;
use crate::partition::lookup::Lookup;

/// A table with those that have rows of it: itself and its heirs, or its partitions.
#[derive(Debug)]
pub struct Family {
    pub root: TableRef,
    /// Those that have rows, in the order in which statements go through them.
    pub members: Vec<Member>,
    /// Partitioned tables, the root first; none where tables merely inherit.
    pub nodes: Vec<PartitionNode>,
}

/// A table that has rows of a family.
#[derive(Debug)]
pub struct Member {
    pub table: TableRef,
    /// Where the root's columns are in it.
    pub columns: Vec<u16>,
}

/// A partitioned table of a family.
#[derive(Debug)]
pub struct PartitionNode {
    pub table: TableRef,
    /// The parts of its key, over the root's row.
    pub key: Vec<BoundExpr>,
    /// What the lookup is asked, where that is not the key: hashes that functions compute.
    pub hashes: Option<Vec<BoundExpr>>,
    pub lookup: Lookup,
    /// Its partitions, as the lookup counts them.
    pub children: Vec<Child>,
}

/// A partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// With rows, by its place among the members.
    Member(usize),
    /// Partitioned itself, by its place among the nodes.
    Node(usize),
}
