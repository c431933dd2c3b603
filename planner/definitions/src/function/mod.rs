//! Routines, and what is made of them.
//!
//! - [`routine`] functions and procedures
//! - [`routine_drop`] DROP FUNCTION, PROCEDURE, ROUTINE and AGGREGATE
//! - [`aggregate`] aggregates
//! - [`extension`] extensions
//! - [`extension_object`] extensions that are there
//! - [`operator_class`] how the keys of indexes are ordered
//! - [`create_operator_class`] operator classes that users define
//! - [`operator_family`] their families; [`family_lookup`] which one a class is in
//! - [`access_method`] what they are for

pub(crate) mod access_method;
pub(crate) mod aggregate;
pub(crate) mod create_operator_class;
pub(crate) mod extension;
pub(crate) mod extension_object;
pub(crate) mod family_lookup;
pub(crate) mod operator_class;
pub(crate) mod operator_family;
pub(crate) mod routine;
pub(crate) mod routine_drop;
