//! How tables are reached: which tree, which of its keys, which of its partitions.
//!
//! - [`conjunct`] conditions taken apart
//! - [`path`] key and index ranges from conjuncts
//! - [`union`] the paths of an OR
//! - [`inheritance`] tables whose rows are in others

pub(crate) mod conjunct;
pub(crate) mod inheritance;
pub(crate) mod path;
pub(crate) mod union;
