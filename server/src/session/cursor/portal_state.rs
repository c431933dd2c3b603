//! A bound statement and how far its rows have been sent ([`super::portal`]).

use std::sync::Arc;

use archipel_planner::bound::OutputColumn;
use archipel_sql::datum::Datum;

use crate::encode::Formats;
use crate::statement::Prepared;

/// See the module's head.
pub struct Portal {
    pub prepared: Arc<Prepared>,
    /// The columns of its rows: of FETCH and EXECUTE those that what they name had at Bind.
    pub columns: Option<Arc<[OutputColumn]>>,
    pub formats: Formats,
    pub state: PortalState,
    /// When it was bound, in microseconds since 2000-01-01 UTC; zero for the unnamed one.
    pub at: i64,
    /// Its place among the session's cursors; zero for the unnamed one.
    pub number: u64,
}

/// How far a portal has come.
pub enum PortalState {
    /// Bound with these parameters, not yet run.
    Ready(Vec<Datum>),
    /// It has run, and its rows are those of the cursor of its name.
    Open,
    /// It has run to its end.
    Done,
}
