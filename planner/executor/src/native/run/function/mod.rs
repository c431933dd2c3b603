//! Functions of the transaction and of the session rather than of values.
//!
//! - [`sequence`] `nextval` and its kin
//! - [`advisory_lock`] advisory locks
//! - [`notify`] `pg_notify`
//! - [`large_object`] large objects
//! - [`sleep`] `pg_sleep`
//! - [`column_definition`] functions whose columns only the query defines

pub(crate) mod advisory_lock;
pub(crate) mod column_definition;
pub(crate) mod large_object;
pub mod notify;
pub(crate) mod sequence;
pub(crate) mod sleep;
