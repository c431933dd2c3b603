//! How threads that work for a COPY hear that they are to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archipel_sql::error::{Result, SqlError, SqlState};

use crate::sessions::SessionEntry;

/// Asked by threads that wait for a file or a program: whether they are to stop.
#[derive(Clone)]
pub(super) struct StopCheck {
    entry: Arc<SessionEntry>,
    abandoned: Arc<AtomicBool>,
}

impl StopCheck {
    /// For the statement of a session that runs now; and what gives up the work that asks.
    pub(super) fn new(entry: Arc<SessionEntry>) -> (StopCheck, Abandon) {
        let abandoned = Arc::new(AtomicBool::new(false));
        (StopCheck { entry, abandoned: abandoned.clone() }, Abandon(abandoned))
    }

    /// An error where the statement was asked to stop, or is over without what this is for.
    pub(super) fn check(&self) -> Result<()> {
        if self.entry.is_cancelled() {
            return Err(self.entry.cancel_error());
        }
        match self.abandoned.load(Ordering::Acquire) {
            true => Err(SqlError::new(SqlState::QUERY_CANCELED, "COPY has ended")),
            false => Ok(()),
        }
    }
}

/// The session's side of it: what is dropped is given up.
pub(super) struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
