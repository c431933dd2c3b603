//! Variables that hold rows, and where variables live.
//!
//! - [`storage`] types of variables, registers, shapes of records
//! - [`shape`]   structures of rows that show only at run time; [`variant`] records that take several; [`structure`]
//!   those that values tell
//! - [`variable`] where one variable lives

pub(crate) mod shape;
pub(super) mod storage;
mod structure;
pub(super) mod variable;
pub(super) mod variant;
