//! Programs that are found when they are called: a routine was being compiled when it was linked, or stands too
//! deep inside of others.

use std::sync::Arc;

use archipel_planner::native::CompiledRoutine;
use archipel_sql::error::{Result, SqlError};

use super::operation::Program;

/// Finds the program of a routine when it is called.
pub(crate) trait FindProgram: Send + Sync {
    /// The program as of now.
    fn find(&self) -> Result<Arc<Program>>;
}

/// What stands behind the link of such a routine ([`CompiledRoutine::as_any`]).
pub(crate) struct LateProgram(pub Arc<dyn FindProgram>);

/// The program behind a link.
pub(crate) fn program_of(routine: &Arc<dyn CompiledRoutine>) -> Result<Arc<Program>> {
    match routine.clone().as_any().downcast::<Program>() {
        Ok(program) => Ok(program),
        Err(other) => other.downcast::<LateProgram>().map_err(|_| gone())?.0.find(),
    }
}

pub(crate) fn gone() -> SqlError {
    SqlError::internal("the registry of routines is gone")
}
