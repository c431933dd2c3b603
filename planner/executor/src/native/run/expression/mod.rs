//! What expressions are compiled to.
//!
//! - [`operand`] values that lie somewhere already

pub(crate) mod operand;
