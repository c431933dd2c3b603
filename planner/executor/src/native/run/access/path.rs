//! How a scan reaches its table: a tree, and what of its keys is given.

use std::sync::Arc;

use archipel_engine::TableMeta;
use archipel_engine::index_uses::IndexUses;
use archipel_engine::schema::{IndexDef, KeyColumn};

use crate::native::run::expression::source::Source;
use crate::row::Codec;

/// One value a key column must have.
pub(crate) enum KeyPart {
    One(Source),
    /// One of several: `IN (…)`.
    Each(Vec<Source>),
    /// One of an array's elements: `= ANY (array)`.
    Elements(Source),
    Null,
}

/// Which tree a path walks.
pub(crate) enum Tree {
    Storage,
    Index(IndexDef),
}

/// An index that a scan counts for: the one that it goes by, or one that it would go by if the index's entries
/// were elsewhere.
pub(crate) struct CountedIndex {
    /// Its counts.
    pub uses: Arc<IndexUses>,
    /// Whether the conditions give the distribution column.
    pub bound: bool,
    /// Whether it is the latter.
    pub missed: bool,
}

/// A compiled path.
pub(crate) struct Path {
    pub tree: Tree,
    /// Key columns of the tree with how their values are stored.
    pub columns: Vec<(KeyColumn, Codec)>,
    pub equals: Vec<KeyPart>,
    /// Bounds on the column after `equals`, in the column's order; the flag says inclusive.
    pub low: Option<(Source, bool)>,
    pub high: Option<(Source, bool)>,
    /// At most one row a key.
    pub unique: bool,
    pub reverse: bool,
    /// Other ways into the same tree: what one of them leads to is on the path.
    pub also: Vec<Path>,
    /// Whose uses are counted; of the other ways those of the first.
    pub counted: Vec<CountedIndex>,
}

/// A column of a wanted order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrderKey {
    pub slot: u32,
    pub descending: bool,
    pub nulls_first: bool,
}

/// A table's engine side, shared by the nodes that use it.
pub(crate) type Meta = Arc<TableMeta>;
