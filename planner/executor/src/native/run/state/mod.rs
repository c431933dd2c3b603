//! What a statement runs in, and what a run leaves.
//!
//! - [`context`] the context of a run, and its frame of slots
//! - [`effects`] what a run leaves beside rows
//! - [`cursor`] open cursors
//! - [`usage`] how long routines take

pub mod context;
pub mod cursor;
pub mod effects;
pub(crate) mod usage;
