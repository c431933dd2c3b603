//! What plans say of themselves, while they are compiled.
//!
//! - [`column`] what columns and conditions are called
//! - [`node`] what operators say beyond their names
//! - [`scan`] lines for a scan
//! - [`instrument`] which nodes are counted
//! - [`analyze`] EXPLAIN ANALYZE among the rows of another statement
//! - [`name`] what they are called by

pub(crate) mod analyze;
pub(crate) mod column;
pub(crate) mod instrument;
pub(crate) mod name;
pub(crate) mod node;
pub(crate) mod scan;
