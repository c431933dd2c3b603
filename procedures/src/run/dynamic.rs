//! EXECUTE, and loops and cursors over it: statements whose text is known only when they run.

use std::sync::Arc;

use archipel_planner::native::notify::Notification;
use archipel_planner::native::{CompiledStatement, ExecResult};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::SessionHost;

use super::operation::{Compiled, CursorQuery, IntoPlan, Program};
use super::pause::Command;

/// EXECUTE: bound when it runs, kept by text.
pub struct DynamicPlan {
    pub text: Compiled,
    /// What `$1` and so on are.
    pub using: Vec<Compiled>,
    pub into: Option<IntoPlan>,
    /// RETURN QUERY EXECUTE: its rows are the function's.
    pub returns: bool,
    /// A loop goes over the rows: what fails in it is not said of the text.
    pub looped: bool,
    pub binder: Arc<dyn DynamicBinder>,
}

/// Turns the text of EXECUTE into a statement over parameters.
pub trait DynamicBinder: Send + Sync {
    /// Binds a text, which the session must be allowed to run.
    fn bind(&self, text: &str, session: &dyn SessionHost) -> ExecResult<Arc<CompiledStatement>>;

    /// Binds each statement of a text that has several, if none of them is the session's: what the
    /// last one answers is what the EXECUTE does.
    fn several(
        &self,
        text: &str,
        session: &dyn SessionHost,
    ) -> Option<ExecResult<Vec<Arc<CompiledStatement>>>>;

    /// A text that calls routines, in the form that can stop where they do; `None` if there is none.
    fn pieces(&self, text: &str) -> ExecResult<Option<Arc<Pieces>>>;

    /// What the session has to run, if this text is such a statement, or several.
    fn command(&self, text: &Arc<str>, params: &[Datum]) -> Option<(Command, &'static str)>;

    /// What this text tells listeners, if it is a NOTIFY.
    fn notification(&self, text: &str) -> Option<Result<Notification>>;

    /// The same for OPEN.
    fn bind_cursor(&self, text: &str, session: &dyn SessionHost) -> Result<Arc<CursorQuery>>;
}

/// A query as a routine whose arguments are its parameters.
pub struct Pieces {
    pub program: Arc<Program>,
    /// Columns of its rows.
    pub width: usize,
}
