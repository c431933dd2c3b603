//! A row that is asked for ahead ([`super::prefetch`]).

use archipel_planner::native::prefetch::KnownRow;

/// A row, its key over the arguments and at most one counter.
pub(crate) struct Foreseen {
    pub(super) counter: Option<u32>,
    pub(super) row: KnownRow,
}
