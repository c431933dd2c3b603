//! How tables are reached: which tree, which of its keys, which of its partitions.
//!
//! - [`conjunct`] conditions taken apart
//! - [`path`] key and index ranges from conjuncts
//! - [`union`] the paths of an OR
//! - [`inheritance`] tables whose rows are in others
//! - [`known_row`] rows whose keys are known before a statement runs
//! - [`choice`] paths that are not compiled yet
//! - [`selectivity`] what share of rows a condition keeps
//! - [`index_use`] which indexes a scan counts for
//! - [`system_scan`] scans of system relations

pub(crate) mod choice;
pub(crate) mod conjunct;
mod index_use;
pub(crate) mod inheritance;
pub(crate) mod known_row;
pub(crate) mod path;
pub(crate) mod selectivity;
pub(crate) mod system_scan;
pub(crate) mod union;
