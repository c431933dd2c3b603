//! The planner: binds statements to types by PostgreSQL's rules, and compiles them to plans.
//!
//! It is made of crates; this one is their front:
//!
//! - `planner/row`         [`row`]: between SQL values and the engine's cells
//! - `planner/binder`      [`bind`], [`bound`], [`evaluate`]: from syntax to the typed bound tree, which needs no engine
//! - `planner/executor`    [`native`], [`route`], [`explain`]: bound statements as closures over a claimed transaction
//! - `planner/definitions` [`ddl`]: what definitions change in the catalog and in the engine
//!
//! The last two do not know each other.

pub use archipel_binder::{bind, bound, evaluate, partition, prepared};
pub use archipel_definitions as ddl;
pub use archipel_executor::{explain, native, route};
pub use archipel_row as row;
