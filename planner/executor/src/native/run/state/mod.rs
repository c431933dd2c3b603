//! What a statement runs in, and what a run leaves.
//!
//! - [`context`] the context of a run, and its frame of slots
//! - [`effects`] what a run leaves beside rows
//! - [`cursor`] an open cursor; [`cursors`] those of a session; [`large_object`] open large objects
//! - [`usage`] how long routines take
//! - [`frame`] the slots
//! - [`error`] what ends a run

pub mod context;
pub mod cursor;
pub mod cursors;
pub mod effects;
pub(crate) mod error;
pub(crate) mod frame;
pub mod large_object;
pub(crate) mod usage;
