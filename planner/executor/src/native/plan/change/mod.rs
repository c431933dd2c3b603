//! Statements that change rows, compiled.
//!
//! - [`insert`] INSERT
//! - [`tuple_routing`] INSERT into a partitioned table
//! - [`modify`] UPDATE and DELETE
//! - [`assignment`] what an UPDATE makes of a row
//! - [`inheritance`] UPDATE and DELETE of a table whose rows are in others
//! - [`cross_partition`] rows that become another partition's
//! - [`merge`] MERGE
//! - [`target`] what their expressions read
//! - [`instead_of`] changes of a view
//! - [`trigger`] which of a table's triggers fire
//! - [`row_trigger`] UPDATE and DELETE of a table with triggers
//! - [`index_expression`] what rows store for indexes alone

pub(crate) mod assignment;
pub(crate) mod cross_partition;
pub(crate) mod index_expression;
pub(crate) mod inheritance;
pub(crate) mod insert;
pub(crate) mod instead_of;
pub(crate) mod merge;
pub(crate) mod modify;
pub(crate) mod row_trigger;
pub(crate) mod target;
pub(crate) mod trigger;
pub(crate) mod tuple_routing;
