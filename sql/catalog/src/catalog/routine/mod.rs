//! Routines, and what is made of them.
//!
//! - [`aggregate`]      aggregates, which are routines
//! - [`routine_traits`] what a routine's declaration says besides its name and types
//! - [`trigger`]        triggers, which are part of their table; [`trigger_definition`] what one is
//! - [`extension`]      extensions, which are scripts of routines
//! - [`language_object`] the languages that they are written in

pub mod aggregate;
pub mod extension;
pub mod language_object;
pub mod routine_traits;
pub mod trigger;
pub(super) mod trigger_definition;
