//! What a query calls the relations it reads and changes: nothing below looks a name up, but EXPLAIN tells
//! which one is meant.

use std::sync::Arc;

/// What a query calls a relation and its columns; `None` where that is what they are called anyway.
pub type Alias = Option<Arc<RelationName>>;

/// See [`Alias`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationName {
    pub name: String,
    /// `None`: the columns' own names.
    pub columns: Option<Vec<String>>,
}
