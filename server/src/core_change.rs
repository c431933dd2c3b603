//! Threads, doors and sessions follow the executors as cores come and go.
//!
//! The engine reads the machine every second and gives executors their places
//! (`TopologyListener`); here follows what the server adds. An executor that never had a core
//! gets its thread. New clients are shown to those with a core only. Sessions spread over these:
//! each goes when it is between two transactions; until then the thread of an executor without
//! a core serves it, and what it submits runs on the threads that have one.

use std::collections::BTreeSet;
use std::sync::Arc;

use archipel_engine::id::ExecutorId;
use archipel_engine::topology::Machine;
use archipel_engine::topology::mask::{bind_thread, thread_mask, threads};
use archipel_engine::{TopologyChange, TopologyListener};
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use crate::front::Arrival;
use crate::server::{Server, StartError};

/// See the module's head.
pub struct Following {
    server: Arc<Server>,
    stop: watch::Receiver<bool>,
    /// By executor: who will come through its door, until its thread takes that.
    waiting: Vec<Arc<Mutex<Option<UnboundedReceiver<Arrival>>>>>,
    /// Executors whose threads could not be started: tried again at every look.
    failed: Mutex<BTreeSet<ExecutorId>>,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
}

impl Following {
    /// `arrivals` has one entry for every executor there may ever be.
    pub fn new(
        server: Arc<Server>,
        arrivals: Vec<UnboundedReceiver<Arrival>>,
        stop: watch::Receiver<bool>,
    ) -> Following {
        let waiting = arrivals.into_iter().map(|arrivals| Arc::new(Mutex::new(Some(arrivals)))).collect();
        Following { server, stop, waiting, failed: Mutex::default(), threads: Mutex::default() }
    }

    /// Starts an executor's thread, if it has none, and opens its door.
    pub fn begin(&self, id: ExecutorId) -> Result<(), StartError> {
        let Some(waiting) = self.waiting.get(usize::from(id.0)).cloned() else { return Ok(()) };
        if waiting.lock().is_some() {
            let (server, stop) = (self.server.clone(), self.stop.clone());
            let sessions = self.server.doors.0[usize::from(id.0)].sessions.clone();
            // Taken by the thread: what cannot start leaves them to the next attempt.
            let body = move |handle| {
                // Not held while the thread runs: whoever looks again whether it does would wait.
                let arrivals = waiting.lock().take();
                if let Some(arrivals) = arrivals {
                    crate::executor::run(server, handle, arrivals, sessions, stop);
                }
            };
            let thread = self
                .server
                .engine
                .start_executor(id, Box::new(body))
                .map_err(|error| StartError::Other(format!("cannot start executor {id}: {error}")))?;
            self.threads.lock().push(thread);
        }
        self.server.doors.set_open(id.0, true);
        Ok(())
    }

    /// Waits for the threads, which have been told to stop.
    pub fn join(&self) {
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("an executor thread ended by a panic");
            }
        }
    }

    /// Threads that are no executors may run wherever the process may: `taskset` without `-a`
    /// changes its first thread alone. (The engine sees to the executors' threads.)
    fn free_threads(&self, machine: &Machine) {
        let Some(allowed) = &machine.allowed else { return };
        let executors = self.server.engine.executor_threads();
        for thread in threads().into_iter().filter(|thread| !executors.contains(thread)) {
            if thread_mask(thread).is_some_and(|mask| mask != *allowed) {
                bind_thread(thread, allowed);
            }
        }
    }
}

impl TopologyListener for Following {
    fn changed(&self, change: &TopologyChange) {
        for id in &change.retired {
            self.server.doors.set_open(id.0, false);
        }
        for id in &change.activated {
            if let Err(error) = self.begin(*id) {
                // Its partitions are served by the others.
                tracing::error!("{error}; it is tried again every second");
                self.failed.lock().insert(*id);
            }
        }
        self.failed.lock().retain(|id| !change.retired.contains(id));
        self.free_threads(&change.machine);
        self.server.sessions.spread(&self.server.doors.open());
    }

    fn looked(&self) {
        let mut failed = self.failed.lock();
        let before = failed.len();
        failed.retain(|id| match self.begin(*id) {
            Ok(()) => {
                tracing::info!("executor {id} has its thread at last");
                false
            }
            Err(_) => true,
        });
        if failed.len() < before {
            self.server.sessions.spread(&self.server.doors.open());
        }
    }
}
