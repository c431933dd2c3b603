//! The syntax of SQL: statements as they are written, and COPY's forms of rows.
//!
//! - [`ast`]    statements as written
//! - [`parser`] from text to statements
//! - [`copy`]   the text and CSV forms of COPY

pub mod ast;
pub mod copy;
pub mod parser;

use archipel_types::{
    bit_string, datetime, datum, encoding, error, interrupt, memory, stack, style, type_table, types,
};
