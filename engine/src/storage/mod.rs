//! What a partition holds: rows, keys, ordered trees, and what readers of the past need.
//!
//! - [`row`]       one row in one byte buffer; any column in O(1), fixed columns updated in place
//! - [`key`]       memcomparable keys: byte order is column order
//! - [`tree`]      the B+tree: one root per partition and table or index, split and
//!   concatenated in O(height)
//! - `shared_map`  a map by numbers whose versions share what did not change
//! - `images`      what interactive transactions have made of rows and not committed yet
//! - [`versions`]  before-images for registered snapshots; `runs`: those of neighbouring new rows
//!
//! Invariant: nothing here latches. A claim makes the caller the only thread inside a
//! partition; what a reference table has published shares nodes that nobody writes any more
//! ([`tree::Shared`]).
mod images;
pub mod key;
pub mod row;
mod runs;
mod shared_map;
pub mod tree;
pub mod versions;

pub(crate) use images::{Image, Images, StoredImage};
pub use key::KeyBuf;
pub use row::{ColumnPlace, Row, RowLayout, RowWriter, Touched};
pub(crate) use shared_map::SharedMap;
pub use tree::{Finger, Tree};
