//! DROP, and what goes along.
//!
//! - [`relation`] DROP TABLE, SCHEMA, SEQUENCE; TRUNCATE
//! - [`dependency`] what stands on an object
//! - [`dependent`] dropping that
//! - [`cascade`] what is said of it

pub(crate) mod cascade;
pub(crate) mod dependency;
pub(crate) mod dependent;
pub(crate) mod relation;
