//! The running half: operators, expressions and changes, compiled. It knows no compiler.
//!
//! - [`statement`] a whole statement
//! - [`program`] one statement as an engine program
//! - [`operator`] the nodes of a plan
//! - [`window`] window functions
//! - [`access`] reading tables
//! - [`expression`] what expressions are compiled to
//! - [`function`] functions of the transaction rather than of values
//! - [`routine`] calls of compiled routines
//! - [`row`] rows kept, hashed, sorted and handed out
//! - [`change`] INSERT, UPDATE, DELETE and MERGE
//! - [`constraint`] what they must not break
//! - [`state`] what a statement runs in, and what a run leaves

pub(crate) mod access;
pub(crate) mod change;
pub(crate) mod constraint;
pub(crate) mod expression;
pub(crate) mod function;
pub(crate) mod operator;
pub mod program;
pub(crate) mod routine;
pub(crate) mod row;
pub(crate) mod state;
pub mod statement;
pub(crate) mod window;
