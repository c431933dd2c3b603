//! What a write must not break, and how PostgreSQL says so when it would.
//!
//! - [`check`] NOT NULL, CHECK, partition bounds of new rows
//! - [`foreign_key`] foreign keys
//! - [`referential_action`] CASCADE, SET NULL, SET DEFAULT
//! - [`partition_bound`] rows within the bounds of partitions
//! - [`duplicate_key`] the error of a key that is there already
//! - [`deferral`] what is checked at COMMIT
//! - [`detail`] the rows and keys that errors show
//! - [`mode`] SET CONSTRAINTS

pub(crate) mod check;
pub(crate) mod deferral;
pub(crate) mod detail;
pub(crate) mod duplicate_key;
pub(crate) mod foreign_key;
pub(crate) mod mode;
pub(crate) mod partition_bound;
pub(crate) mod referential_action;
