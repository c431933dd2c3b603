//! The planner: binds statements to types by PostgreSQL's rules, and compiles them to plans.
//!
//! - [`bound`] the typed bound tree
//! - [`bind`]  from syntax to the bound tree
//! - [`native`] bound statements as closures over a claimed transaction
//! - [`array`], [`comparison`], [`evaluate`] what expressions are made of, known before a run
//! - [`partition`] tables whose rows are kept by others, [`pruning`] which of them conditions leave
//! - [`prepared`] what EXECUTE gives to a prepared statement
//! - [`route`] what a plan touches, and which executor it is for
//! - [`row`]   between SQL values and the engine's cells
//! - [`explain`] plans as text
//! - [`ddl`]   definitions: what they change in the catalog and in the engine
pub mod explain;
pub mod native;
pub mod pruning;
pub mod route;

use archipel_binder::{array, comparison, evaluate};
pub use archipel_binder::{bind, bound, partition, prepared};
pub use archipel_definitions as ddl;
pub use archipel_row as row;
