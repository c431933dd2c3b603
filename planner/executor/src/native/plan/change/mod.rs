//! Statements that change rows, compiled.
//!
//! - [`insert`] INSERT
//! - [`tuple_routing`] INSERT into a partitioned table
//! - [`modify`] UPDATE and DELETE
//! - [`assignment`] what an UPDATE makes of a row
//! - [`inheritance`] UPDATE and DELETE of a table whose rows are in others
//! - [`instead_of`] changes of a view
//! - [`index_expression`] what rows store for indexes alone

pub(crate) mod assignment;
pub(crate) mod index_expression;
pub(crate) mod inheritance;
pub(crate) mod insert;
pub(crate) mod instead_of;
pub(crate) mod modify;
pub(crate) mod tuple_routing;
