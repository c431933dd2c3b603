//! Aggregate functions.
use crate::function::AggregateState;
use crate::types::{Oid, Type};

/// The state factory of an aggregate and whether it skips rows with NULL arguments.
pub fn factory(_name: &str, _args: &[Oid]) -> Option<(fn(&[Type]) -> Box<dyn AggregateState>, bool)> {
    None
}
