//! Paths through a body: what is known where one ends, and whether it goes on.

use crate::compile::record::variable::RecordState;
use crate::compile::trace::symbols::Symbols;
use crate::run::operation::Operation;

/// Whether control can reach the statement after.
pub(in crate::compile) type FallsThrough = bool;

/// A compiled statement, and whether control can pass it.
pub(super) type Path = (Operation, FallsThrough);

/// What is known where a path ends.
pub(super) struct PathEnd {
    pub(super) symbols: Symbols,
    pub(super) records: Vec<RecordState>,
}
