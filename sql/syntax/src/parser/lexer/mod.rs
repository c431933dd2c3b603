//! From text to tokens, as PostgreSQL's scanner cuts them (scan.l).
//!
//! - [`tokens`]      the tokens of a script, and which rewritings they go through; `tokenizer` the library's
//!   tokeniser, ended on its way
//! - [`scan`]        tokens as PostgreSQL's scanner cuts them, blanks and comments among them; [`lexeme`] what
//!   they are; [`position`] where something stands in a text
//! - `operators`     where operators begin and end; `trailing_junk` what stands behind numbers without a blank
//! - [`backslash`]   constants with escapes, and texts whose plain constants have escapes, too
//! - [`keywords`]    which words are reserved
//! - `unicode`       Unicode escapes; [`truncation`] identifiers that are too long

pub(super) mod backslash;
pub(super) mod keywords;
pub(super) mod lexeme;
mod operators;
pub(super) mod position;
pub(super) mod scan;
mod tokenizer;
pub(super) mod tokens;
mod trailing_junk;
pub(super) mod truncation;
mod unicode;
