//! Variables that hold rows, and where variables live.
//!
//! - [`storage`] types of variables, registers, shapes of records
//! - [`shape`]   structures of rows that show only at run time; [`tagged`] records that take several; [`found`]
//!   those that values tell
//! - [`variable`] where one variable lives

mod found;
pub(crate) mod shape;
pub(super) mod storage;
pub(super) mod tagged;
pub(super) mod variable;
