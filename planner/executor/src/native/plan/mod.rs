//! The compiling half: from bound statements to what [`run`](crate::native::run) runs.
//!
//! - [`compiler`] the state of one compilation: scopes, slots, what was used
//! - [`environment`] what it asks of the outside
//! - [`statement`] a whole statement
//! - [`relation`] relational operators
//! - [`join`] the order of joins
//! - [`access`] how tables are reached
//! - [`expression`] scalar expressions and conditions
//! - [`scalar`] expressions over machine numbers
//! - [`constant`] what PostgreSQL computes when it plans, and fails at
//! - [`change`] INSERT, UPDATE, DELETE and MERGE
//! - [`constraint`] what they must not break
//! - [`explain`] what plans say of themselves
//! - [`walk`] walks over bound expressions

pub(crate) mod access;
pub(crate) mod change;
pub(crate) mod compiler;
pub(crate) mod constant;
pub(crate) mod constraint;
pub(crate) mod environment;
pub(crate) mod explain;
pub(crate) mod expression;
pub(crate) mod join;
pub(crate) mod relation;
pub mod scalar;
pub(crate) mod statement;
pub(crate) mod walk;
