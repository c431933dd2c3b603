//! Statements as written, before any name is looked up.
//!
//! Queries and data changes keep sqlparser's trees, because the binder walks them field by
//! field; every other statement has a node of our own, since sqlparser rejects or blurs most
//! of PostgreSQL's utility statements. Our nodes hold identifiers already folded (lower case
//! unless quoted) and expressions with their source text, as the catalog stores it.
//!
//! - [`statement`] any of them; [`name`] names and expressions within; [`setting`] values of settings
//! - [`constraint`] constraints of columns and tables, and the keys of indexes
//! - [`ddl`]       tables, indexes, sequences, schemas; [`routine`] routines
//! - [`aggregate`] aggregates; [`operator_class`] operator classes
//! - [`partition`] partitioned tables and their partitions
//! - [`utility`]   transactions, settings, COPY, cursors, prepared statements, maintenance
//! - [`type_name`] types as written
//! - [`role`]      roles, GRANT and REVOKE; [`policy`] policies; [`database`] databases
//! - [`extension`] extensions; [`words`] words that statements say and the catalog keeps
//! - [`lock`]      row locking clauses, which sqlparser knows only in part

pub mod aggregate;
pub mod constraint;
pub mod database;
pub mod ddl;
pub mod extension;
pub mod large_object;
mod lock;
pub mod name;
pub mod operator_class;
pub mod partition;
pub mod policy;
pub mod role;
pub mod routine;
pub mod setting;
pub mod statement;
pub mod type_name;
pub mod utility;
pub mod words;

pub use aggregate::*;
pub use constraint::*;
pub use database::*;
pub use ddl::*;
pub use extension::*;
pub use large_object::*;
pub use lock::*;
pub use name::*;
pub use operator_class::*;
pub use partition::*;
pub use policy::*;
pub use role::*;
pub use routine::*;
pub use setting::*;
pub use statement::*;
pub use type_name::*;
pub use utility::*;
pub use words::*;

/// The name of a function argument that stands for VARIADIC: `f(VARIADIC a)` arrives as
/// `f("…" => a)`. A name with a NUL cannot come from a client's text.
///
/// Likewise `INSERT … OVERRIDING SYSTEM VALUE` arrives with sqlparser's `overwrite` set.
pub const VARIADIC_ARGUMENT: &str = "\0variadic";
