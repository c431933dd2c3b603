//! Statements made up at random, for two servers to disagree about.
//!
//! - [`kind`]       the types, with values
//! - [`template`]   what expressions of a type are made with
//! - [`expression`] typed expressions over a scope of columns
//! - [`table`]      the tables of `schema.sql` as the generator sees them
//! - [`statement`]  statements in parts that can be taken away, and how they are given to a server
//! - [`generator`]  from a seed to statements: [`query`] and [`change`]
//! - [`shrink`]     the least of a statement that still makes them differ
//! - [`answer`]     what a server makes of a statement
//!
//! A statement is a tree of typed expressions between pieces of text, so that shrinking knows
//! what may stand where. The same seed makes the same statements.

pub mod answer;
mod change;
pub mod expression;
pub mod generator;
pub mod kind;
mod query;
pub mod shrink;
pub mod statement;
pub mod table;
pub mod template;

pub use answer::{Answer, Room, answer};
pub use generator::Generator;
pub use statement::{Statement, Written};

/// The tables the statements are about, with their rows.
pub const SCHEMA: &str = include_str!("schema.sql");
