//! Types, values and functions of PostgreSQL. No syntax and no catalog are known here: what needs one
//! comes through [`function::FunctionContext`].
//!
//! - [`error`]    every error with its SQLSTATE
//! - [`types`]    type identities (PostgreSQL's OIDs) and modifiers ([`typmod`]); [`type_table`] the built-in ones,
//!   [`type_kind`] those that users make
//! - [`datum`]    values at run time; [`record`] composite ones
//! - [`numeric`], [`datetime`], [`bit_string`], [`network`], [`json`] values with an arithmetic or a
//!   structure of their own
//! - [`keyword`]  the words of the grammar, and which names need quotes; [`encoding`] character sets
//! - [`io`]       their text and binary forms, as [`style`] says; [`cast`], [`compare`]
//! - [`function`] scalar functions and operators; [`aggregate`], [`ordered_set`]
//! - [`stack`], [`memory`], [`written_size`], [`interrupt`] bounds of what a statement may take
//! - [`partition_hash`] which HASH partition a row is for
//! - [`rights`]   what statements need; [`password`], [`strong_random`]

pub mod aggregate;
pub mod bit_string;
pub mod cast;
pub mod compare;
pub mod datetime;
pub mod datum;
pub mod encoding;
pub mod error;
pub mod function;
pub mod interrupt;
pub mod io;
pub mod json;
pub mod keyword;
pub mod memory;
pub mod network;
pub mod numeric;
pub mod ordered_set;
pub mod partition_hash;
pub mod password;
pub mod record;
pub mod rights;
pub mod stack;
pub mod strong_random;
pub mod style;
pub mod type_kind;
pub mod type_table;
pub mod types;
pub mod typmod;
pub mod written_size;
