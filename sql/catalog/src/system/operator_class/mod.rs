//! Relations about operator classes and families.
//!
//! - [`builtin_class`] PostgreSQL's own
//! - [`user_class`]    those that users defined

pub(super) mod builtin_class;
pub(super) mod user_class;
