//! What expressions are compiled to.
//!
//! - [`code`] closures
//! - [`source`] where a value is, or how to get it
//! - [`operand`] values that lie somewhere already
//! - [`row_shape`] what a routine answers, as one value

pub(crate) mod code;
pub(crate) mod operand;
pub(crate) mod row_shape;
pub(crate) mod source;
