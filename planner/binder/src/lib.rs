//! The binder: from syntax to the typed bound tree. It knows no engine.
//!
//! - [`bound`] the typed bound tree
//! - [`bind`]  from syntax to the bound tree
//! - [`partition`] tables whose rows are kept by others
//! - [`evaluate`] expressions over parameters alone; [`array`] and [`comparison`] what they do with values
//! - [`prepared`] what EXECUTE gives to a prepared statement

pub mod array;
pub mod bind;
pub mod bound;
pub mod comparison;
pub mod evaluate;
pub mod partition;
pub mod prepared;
