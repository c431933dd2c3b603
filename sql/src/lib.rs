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
pub mod aggregate;
pub mod ast;
pub mod cast;
pub mod catalog;
pub mod compare;
pub mod copy;
pub mod datetime;
pub mod datum;
pub mod error;
pub mod function;
pub mod interrupt;
pub mod io;
pub mod json;
pub mod memory;
pub mod numeric;
pub mod ordered_set;
pub mod parser;
pub mod partition_hash;
pub mod parts;
pub mod password;
pub mod record;
pub mod rights;
pub mod secret;
pub mod stack;
pub mod style;
pub mod system;
pub mod type_table;
pub mod types;
pub mod typmod;
