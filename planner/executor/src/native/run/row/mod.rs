//! Rows: kept, hashed, compared, sorted and handed out.
//!
//! - [`sink`] where result rows go
//! - [`projection`] the columns that somebody reads
//! - [`buffer`] rows kept for later
//! - [`hash`] keys to group, join and tell apart by
//! - [`equality`] the `=` that keys are compared with
//! - [`quicksort`] the order of few rows
//! - [`answer`] result rows on their way out

pub(crate) mod answer;
pub(crate) mod buffer;
pub(crate) mod equality;
pub mod hash;
pub(crate) mod projection;
pub(crate) mod quicksort;
pub(crate) mod sink;
