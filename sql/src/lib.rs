//! The SQL dialect: PostgreSQL's types, values, functions, parser and catalog objects.
//!
//! Invariant: this crate knows no partition, no executor and no session; whatever it needs
//! from the outside comes through [`function::FunctionContext`].
//!
//! It is made of crates; this one is their front:
//!
//! - `sql/types`   types, values, functions and errors: [`types`], [`datum`], [`function`], [`error`], and bounds
//!   of what a statement may take
//! - `sql/syntax`  [`ast`], [`parser`]: statements as written; [`copy`] COPY's forms of rows
//! - `sql/catalog` [`catalog`]: what users have defined; [`system`]: the relations that tell of it
//!
//! Each knows those above it in this list, and none below.

pub use archipel_catalog::{catalog, system};
pub use archipel_syntax::{ast, copy, parser};
pub use archipel_types::{
    aggregate, bit_string, cast, compare, datetime, datum, encoding, error, function, interrupt, io, json,
    memory, network, numeric, ordered_set, partition_hash, password, record, rights, stack, strong_random,
    style, type_kind, type_table, types, typmod, written_size,
};
