//! The planner: binds statements to types by PostgreSQL's rules, and compiles them to plans.
//!
//! - [`bound`] the typed bound tree
pub mod bound;
