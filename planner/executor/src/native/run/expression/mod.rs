//! What expressions are compiled to.
//!
//! - [`code`] closures
//! - [`operand`] values that lie somewhere already

pub(crate) mod code;
pub(crate) mod operand;
