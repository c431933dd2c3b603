//! Reading tables.
//!
//! - [`path`] a tree, and what of its keys is given
//! - [`key_span`] the keys of a path as bytes
//! - [`scan`] the scan
//! - [`lookup`] rows by key for many outer rows together
//! - [`row_read`] one row by its key, straight into registers
//! - [`prefetch`] rows whose keys are known before they are read
//! - [`batch`] rows that are read ahead
//! - [`system_scan`] the rows of system relations

pub(crate) mod batch;
pub(crate) mod key_span;
pub(crate) mod lookup;
pub(crate) mod path;
pub mod prefetch;
pub(crate) mod row_read;
pub(crate) mod scan;
pub(crate) mod system_scan;
