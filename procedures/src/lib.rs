//! Routines: PL/pgSQL and SQL functions, compiled to one-shot programs.
//!
//! In the order a routine meets them:
//!
//! - [`plpgsql`]  the language: lexer, grammar, tree
//! - [`compile`]  the tree to operations over registers; what is known of routing beforehand
//! - [`run`]      the operations at run time
//! - [`trigger`]  functions of triggers, and their conditions
//! - [`rights`]   who may run a part of one
//! - [`registry`] compiled routines; [`table_versions`] the tables that they were made of
//! - [`call`]     one call as a program of the engine
//! - [`describe`] class, routing expression, EXPLAIN CALL
//! - [`flow`]     flow graphs: actions, dependencies, synchronization points
//! - [`evidence`] what a routine shows of where tables belong; [`advice`] what follows from all,
//!   `columns` which columns should distribute them
//! - `flow_graph` what a flow graph is; `query_routine` what stands for the routine of a query
//!
//! The life of a CALL: the server asks the [`Registry`] for the routine's [`Program`], compiled
//! at its first use; the routine's accesses, evaluated on the arguments, name the partitions;
//! once they are claimed the program's operations run over a frame of registers, without
//! parsing, planning or looking up a name; rows and notices wait for the commit. COMMIT and
//! ROLLBACK in a procedure end the engine's transaction: the run stops there with all it needs
//! to go on ([`run::pause`]), and goes on as the next transaction.
//!
//! Invariant: routing is proved from the compiled statements. Where a key is not known
//! beforehand it is said so, with the reason, and the engine's bounds checks find the partition.
pub mod advice;
pub mod call;
mod columns;
pub mod compile;
pub mod describe;
pub mod evidence;
pub mod flow;
mod flow_graph;
pub mod plpgsql;
mod query_routine;
pub mod registry;
pub mod rights;
pub mod run;
mod table_versions;
mod trigger;

pub use call::{CallProgram, Rows};
pub use compile::{
    ChangedTable, Columns, Environment, changed_table, compile as compile_routine, result_columns,
    with_row_keys,
};
pub use describe::{Class, Classification, classify, explain, unrouted};
pub use registry::Registry;
pub use run::operation::Program;
