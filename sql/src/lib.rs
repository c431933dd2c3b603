//! The SQL dialect: PostgreSQL's types, values, functions, parser and catalog objects.
//!
//! Invariant: this crate knows no partition, no executor and no session; whatever it needs
//! from the outside comes through [`function::FunctionContext`].
//!
//! In the order a statement meets them:
//!
//! - [`error`]    every error with its SQLSTATE
//! - [`types`]    type identities (PostgreSQL's OIDs) and modifiers
//! - [`datum`]    values at run time; [`record`] composite ones
//! - [`numeric`]  exact decimals
//! - [`ast`]      statements as written
//! - [`parser`]   from text to statements
//! - [`catalog`]  tables, indexes, routines, sequences
//! - [`copy`]     the text and CSV forms of COPY
//! - [`json`]     json and jsonb values
//! - [`stack`]    how deep statements and values may nest; [`memory`] whether large values have room,
//!   [`parts`] how large those are that are made of others
//! - [`interrupt`] how long work hears that its statement shall end
//! - [`partition_hash`] which HASH partition a row is for
//! - [`password`] what is kept of passwords; [`secret`] what nobody can foretell
//! - [`rights`] what statements need
//! - [`function`] scalar functions and operators: signatures and row-wise evaluation

pub use archipel_catalog::{catalog, system};
pub use archipel_syntax::{ast, copy, parser};
pub use archipel_types::{
    aggregate, cast, compare, datetime, datum, error, function, interrupt, io, json, memory, numeric,
    ordered_set, partition_hash, parts, password, record, rights, secret, stack, style, type_table, types,
    typmod,
};
