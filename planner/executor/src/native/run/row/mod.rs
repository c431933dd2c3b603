//! Rows: kept, hashed, compared, sorted and handed out.
//!
//! - [`buffer`] rows kept for later
//! - [`hash`] keys to group, join and tell apart by
//! - [`equality`] the `=` that keys are compared with
//! - [`quicksort`] the order of few rows

pub(crate) mod buffer;
pub(crate) mod equality;
pub mod hash;
pub(crate) mod quicksort;
