//! ALTER TABLE.
//!
//! - [`table`] its actions
//! - [`pass`] their order
//! - [`column`] columns that come or change
//! - [`drop_column`] columns that go; [`column_name`] columns by their names
//! - [`index_rebuild`] indexes over expressions of columns that change
//! - [`alter_inheritance`] what becomes of those that inherit
//! - [`attach`] tables that get a parent or lose one
//! - [`constraint_timing`] ALTER CONSTRAINT: when keys are checked

pub(crate) mod alter_inheritance;
pub(crate) mod attach;
pub(crate) mod column;
mod column_name;
pub(crate) mod constraint_timing;
pub(crate) mod drop_column;
mod index_rebuild;
pub(crate) mod pass;
pub(crate) mod table;
