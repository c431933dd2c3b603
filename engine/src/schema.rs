//! What the engine must know of a table to store, route, index, log and recover its rows.

use serde::{Deserialize, Serialize};

use crate::cell::ColumnKind;
use crate::id::{GroupId, TreeId};

/// How the bytes of a column stand in a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum KeyForm {
    /// As they are stored.
    #[default]
    Stored,
    /// As the layer above makes them from the stored ones, so that they sort as the values do: the
    /// number says which way (see [`set_derived_keys`](crate::storage::key::set_derived_keys)).
    Derived(u8),
}

/// One column of a key, in key order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyColumn {
    /// Position in [`TableDef::columns`].
    pub column: u16,
    pub descending: bool,
    /// Whether NULL sorts before every value of this key column.
    pub nulls_first: bool,
    /// A column that cannot be NULL spends no marker byte in the key.
    pub nullable: bool,
    #[serde(default)]
    pub form: KeyForm,
}

impl KeyColumn {
    /// Whether a value stands in keys as it is: without a marker, and not inverted.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.nullable && !self.descending
    }
}

/// Where the rows of a table live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Placement {
    /// Split by the first key column over the partitions of a group.
    Distributed { group: GroupId },
    /// One partition for writers, readable from everywhere without a claim.
    Reference,
}

/// Where the entries of an index live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexPlacement {
    /// In the table's own partitions: its first key column is the table's first key column
    /// (or the table is a reference table).
    Local,
    /// In a group of its own, distributed by its own first key column.
    Global { group: GroupId },
}

/// A secondary index. Entries map the index key (followed by the storage key unless unique
/// and without NULLs) to the storage key of the row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDef {
    pub id: TreeId,
    pub name: String,
    pub key: Vec<KeyColumn>,
    /// A second row with an equal key is refused: one without a NULL, or any if `nulls_equal`.
    pub unique: bool,
    /// Whether a NULL equals another one.
    #[serde(default)]
    pub nulls_equal: bool,
    pub placement: IndexPlacement,
}

impl IndexDef {
    /// Whether a row that has a NULL among its key can be refused for another one's sake, too.
    pub fn refuses_nulls(&self) -> bool {
        self.unique && self.nulls_equal
    }
}

/// A table as the engine sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDef {
    pub id: TreeId,
    pub name: String,
    /// Physical kind of each column, in row order. A table without a primary key ends with a
    /// hidden `Int8` column filled from [`crate::txn::Txn::hidden_row_id`].
    pub columns: Vec<ColumnKind>,
    /// The storage key: unique, its first column is the distribution column.
    pub key: Vec<KeyColumn>,
    pub placement: Placement,
    pub indexes: Vec<IndexDef>,
}
