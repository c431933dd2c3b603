//! Statements that change rows.
//!
//! - [`insert`] INSERT
//! - [`modify`] UPDATE, DELETE and CALL
//! - [`merge`] MERGE
//! - [`target`] what they change: tables, and views that are simple enough
//! - [`element`] parts of columns that are assigned to
//! - [`reference`] what foreign keys run

pub(crate) mod element;
pub mod insert;
pub(crate) mod merge;
pub mod modify;
pub mod reference;
pub mod target;
