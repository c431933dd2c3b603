//! Routing: what a plan will touch, as expressions over its parameters.
//!
//! Every table a statement reaches is an [`Access`]: a co-location group and a [`RouteKey`]
//! that says which of the group's keys. Before a program runs, [`predict`] evaluates the keys
//! on the actual arguments and names the partitions to claim; at CREATE, [`classify`] reads
//! off whether a call stays in one partition. Routing is proved from the plan: a key that
//! cannot be computed beforehand is [`RouteKey::Unknown`] with the reason, never a guess. The
//! engine checks every access against the claimed bounds anyway, so a missing prediction costs
//! a restart and never an answer.

mod accesses;
mod over_arguments;
mod predict;

use std::sync::Arc;

use archipel_engine::cell::ColumnKind;
use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::schema::KeyColumn;

pub use accesses::{Class, accesses_of_expression, classify, is_plain_query};
pub use over_arguments::access_over_arguments;
pub use predict::{Classification, Spread, classify_accesses, predict, route_key_bytes};

use archipel_sql::catalog::{Distribution, Table};
use archipel_sql::types::Oid;

use crate::bound::BoundExpr;
pub use crate::evaluate::{RouteInputs, evaluate, is_row_free};
use crate::pruning::Among;
use crate::row::Codec;

/// One table (or global index) a plan reaches.
#[derive(Clone, Debug)]
pub struct Access {
    /// `None`: a reference table, which readers need not claim.
    pub group: Option<GroupId>,
    /// Schema-qualified name where the schema is not `public`.
    pub table: String,
    /// The table's number; 0 where it is not known which one.
    pub oid: Oid,
    /// The distribution column's name.
    pub column: String,
    pub write: bool,
    /// How the first key column is stored: what a key value must become before it is compared
    /// with partition bounds.
    pub key_column: KeyColumn,
    pub kind: ColumnKind,
    pub codec: Codec,
    pub key: RouteKey,
    /// A member of a family: what tells whether it is met at all, and its place among them.
    pub among: Option<(Arc<Among>, usize)>,
    /// What share of the rows that it reads the conditions on them alone keep: a guess, by their form.
    pub kept: f64,
    /// What else could route the rows, as evidence of where they belong and for nothing else: what an
    /// INSERT puts into columns of a table that has no key, and what is known of the columns of a
    /// primary key ([`key_candidates`]).
    pub candidates: Vec<(u16, RouteKey)>,
    /// The columns by which its rows are joined to others, where all of its partitions are read for that:
    /// as evidence, too.
    pub joined: Vec<u16>,
    /// What indexes of the table were chosen for, or would have been if their entries were elsewhere.
    pub uses: Vec<NotedUse>,
}

/// An index that a scan uses, or misses where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotedUse {
    /// Its tree.
    pub index: TreeId,
    /// Whether the conditions give the distribution column.
    pub bound: bool,
    /// Whether it goes another way, as the index's entries are not where they would be of use.
    pub missed: bool,
}

/// The columns that a table with a primary key could be distributed by: the storage key begins with
/// any of them. None where there is no choice.
pub fn key_candidates(table: &Table) -> &[u16] {
    match (&table.primary_key, table.distribution) {
        (Some(key), Distribution::Column { .. }) if key.columns.len() > 1 => &key.columns,
        _ => &[],
    }
}

impl Access {
    /// Why the partitions it touches are not known beforehand: what `archipel.require_route`
    /// turns into an error. `None` for reference tables and everything routed.
    pub fn unrouted(&self) -> Option<String> {
        self.group?;
        match &self.key {
            RouteKey::All => Some(format!("{} is read without a condition on {}", self.table, self.column)),
            RouteKey::Unknown(reason) => Some(format!("{} of {}: {reason}", self.column, self.table)),
            _ => None,
        }
    }
}

/// Which keys of the group.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteKey {
    /// One value of the distribution column, over parameters and constants (and, inside a
    /// routine, its variables, which the routine's own analysis traces back).
    Point(BoundExpr),
    /// Every element of an array.
    EachOf(BoundExpr),
    /// Several single values.
    List(Vec<BoundExpr>),
    /// Every integer from the first to the second value: a FOR loop's variable.
    Each { from: BoundExpr, to: BoundExpr },
    /// Values between two bounds; the flag says whether the bound itself is included.
    Range { low: Option<(BoundExpr, bool)>, high: Option<(BoundExpr, bool)> },
    /// Every partition of the group.
    All,
    /// Not known before the program runs, and why.
    Unknown(String),
}
