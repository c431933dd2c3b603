//! The executor: bound statements as closures over a claimed transaction, what they will touch, and how
//! they are shown.
//!
//! - [`native`] bound statements as closures over a claimed transaction: `plan` compiles them, `run` runs them
//! - [`route`] what a plan touches, and which executor it is for; [`pruning`] which partitions conditions leave
//! - [`explain`] plans as text

pub mod explain;
pub mod native;
pub mod pruning;
pub mod route;

use archipel_binder::{array, bind, bound, comparison, construct, evaluate, known, partition};
use archipel_row as row;
