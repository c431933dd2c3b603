//! Statements that change rows.
//!
//! - [`insert`] INSERT
//! - [`arbiter`] the key that ON CONFLICT means
//! - [`modify`] UPDATE, DELETE and CALL
//! - [`merge`] MERGE
//! - [`target`] what they change: tables, and views that are simple enough
//! - [`policy`] what policies demand of them
//! - [`element`] parts of columns that are assigned to
//! - [`reference`] what foreign keys run
//! - [`table_expressions`] whether what a table consists of can be bound

pub mod arbiter;
pub(crate) mod element;
pub mod insert;
pub(crate) mod merge;
pub mod modify;
mod policy;
pub mod reference;
pub mod table_expressions;
pub mod target;
