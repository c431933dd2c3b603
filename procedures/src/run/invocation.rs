//! One call of a routine under way.

use std::sync::Arc;

use archipel_planner::native::RowSink;
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;

use super::operation::Program;
use super::operation::expression::Compiled;
use super::operation::site::Site;
use super::pause::Left;
use super::pause::state::Resume;

/// One call of a routine.
pub(crate) struct Invocation<'p, 's> {
    pub program: &'p Program,
    pub sink: &'s mut dyn RowSink,
    /// ROW_COUNT.
    pub row_count: u64,
    /// Errors whose handlers are running, innermost last.
    pub errors: Vec<SqlError>,
    /// Rows sent to the sink.
    pub sent: u64,
    /// Lent to statements with INTO.
    pub buffer: Vec<Datum>,
    /// Where the run stands, innermost first: filled as it stops, emptied as it goes on.
    pub places: Vec<Resume>,
    /// Whether it is on its way back to where it stopped.
    pub resuming: bool,
    /// Where it has ended its transaction, or left a command.
    pub ended_at: Site,
    /// What it has left to the session.
    pub left: Option<Left>,
    /// Whether the next transaction has the modes of this one.
    pub chain: bool,
    /// What became of that, if it has failed: the statement's text and the error.
    pub failure: Option<(Arc<str>, SqlError)>,
    /// Whether it tells where it is.
    pub telling: bool,
    /// What makes the result of the value that RETURN has left.
    pub returned: Option<Arc<Compiled>>,
}
