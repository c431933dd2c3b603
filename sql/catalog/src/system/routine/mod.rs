//! Relations about routines.
//!
//! - [`routines`]       pg_proc, pg_aggregate
//! - [`builtin`]        arguments and results of built-in functions; [`function_name`] their names
//! - [`type_functions`] the functions that read and write types

pub(super) mod builtin;
pub(super) mod function_name;
pub(super) mod routines;
pub(super) mod type_functions;
