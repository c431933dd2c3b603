//! What plans say of themselves, while they are compiled.
//!
//! - [`column`] what columns and conditions are called
//! - [`node`] what operators say beyond their names
//! - [`scan`] lines for a scan

pub(crate) mod column;
pub(crate) mod node;
pub(crate) mod scan;
