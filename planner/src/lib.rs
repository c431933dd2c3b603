//! The planner: binds statements to types by PostgreSQL's rules, and compiles them to plans.
//!
//! - [`bound`] the typed bound tree
//! - [`bind`]  from syntax to the bound tree
pub mod bind;
pub mod bound;
