//! Planning away from the session: what it needs of a session, and threads for it.
//!
//! A text of a few lines is planned where its session is, on the executor's thread: going elsewhere
//! would take longer. If planning it takes long after all, it is begun anew elsewhere. A long one (a list
//! of 100,000 numbers, a thousand rows of VALUES) would keep the thread from its other sessions, from clients
//! that want to begin, and from its partitions. It is read, bound and compiled on a niced thread of its own,
//! while its session waits as it does for rows.
//!
//! There are places for as many as there are executors, two at the least; whoever finds none waits for one.
//! A planning that nobody waits for any longer keeps its place until it ends.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use archipel_sql::catalog::LookupRecorder;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::FunctionContext;
use archipel_sql::interrupt::Watch;
use archipel_sql::stack::Depth;

use super::planning_threads::PlanningThreads;
use crate::session::host::Host;

/// Texts of this size or more are planned apart: one takes some milliseconds, going there and back less
/// than a tenth of one.
const LONG_BYTES_MIN: usize = 4 << 10;

/// Whether a text is planned apart from its session's thread.
pub(crate) fn is_long(text: &str) -> bool {
    text.len() >= LONG_BYTES_MIN
}

/// What planning needs of its session: one host for all of it, as the catalog may change on the way.
pub(crate) struct Planning {
    pub host: Arc<Host>,
    /// When the transaction began that it is for, if one has.
    start: Option<i64>,
}

impl Planning {
    pub fn new(host: Arc<Host>, start: Option<i64>) -> Planning {
        Planning { host, start }
    }

    /// The same for a thread beside the session, until `given_up` says that nobody waits for it.
    pub fn beside(&self, given_up: Arc<AtomicBool>) -> Planning {
        Planning { host: Arc::new(self.host.beside(given_up)), start: self.start }
    }

    /// The same with what is looked up in its catalog written down.
    pub fn noting(&self) -> (Planning, Arc<LookupRecorder>) {
        let (host, asked) = self.host.noting();
        (Planning { host: Arc::new(host), start: self.start }, asked)
    }

    /// The context of what is read and folded for a statement: in a transaction block, its time is
    /// that of the block's start.
    pub fn context(&self) -> FunctionContext<'_> {
        let context = self.host.context();
        FunctionContext { now: self.start.unwrap_or(context.now), ..context }
    }

    /// Runs `work` when there is a place for it, in the name of the planning's session; 53200 if there can
    /// be no thread. Dropping the future gives up waiting for a place; work that has begun goes on until it
    /// looks whether somebody waits for it.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        threads: &PlanningThreads,
        work: impl FnOnce(&Planning) -> T + Send + 'static,
    ) -> Result<T> {
        let failed = || SqlError::internal("planning failed by a bug in the server");
        let place = threads.places.clone().acquire_owned().await.map_err(|_| failed())?;
        let done = threads.threads.begin(move || {
            // Given back when the work has ended, however it does.
            let _place = place;
            let _depth = Depth::of(self.host.settings.stack_depth_kb);
            let _watch = Watch::of(self.host.clone());
            work(&self)
        })?;
        done.await.map_err(|_| failed())
    }
}
