//! The binder: from syntax to the typed bound tree. It knows no engine.
//!
//! - [`bound`] the typed bound tree
//! - [`bind`]  from syntax to the bound tree
//! - [`partition`] tables whose rows are kept by others
//! - [`evaluate`] the values of expressions without a transaction; [`known`] what of them is known when it is
//!   planned; [`construct`], [`array`] and [`comparison`] what they do with values at hand
//! - [`implication`] whether one condition says all that another one does
//! - [`prepared`] what EXECUTE gives to a prepared statement

pub mod array;
pub mod bind;
pub mod bound;
pub mod comparison;
pub mod construct;
pub mod evaluate;
pub mod implication;
pub mod known;
pub mod partition;
pub mod prepared;
