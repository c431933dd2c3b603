//! Routines, and what is made of them.
//!
//! - [`routine`] functions and procedures
//! - [`routine_drop`] DROP FUNCTION, PROCEDURE, ROUTINE and AGGREGATE
//! - [`aggregate`] aggregates
//! - [`extension`] extensions
//! - [`extension_object`] extensions that are there
//! - [`operator_class`] how the keys of indexes are ordered
//! - [`create_operator_class`] operator classes that users define

pub(crate) mod aggregate;
pub(crate) mod create_operator_class;
pub(crate) mod extension;
pub(crate) mod extension_object;
pub(crate) mod operator_class;
pub(crate) mod routine;
pub(crate) mod routine_drop;
