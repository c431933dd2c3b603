//! The log's writer beside a mix.
//!
//! As the server has it, redo is taken from the executors' buffers a few times a second, and the
//! emptied buffers go back to them. Without a writer they would grow for as long as the mix runs,
//! and an executor would spend its time on first touches of memory instead of on calls. What is
//! written is forgotten at once: nothing here starts again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use archipel_engine::Engine;
use archipel_engine::log::{BatchNumber, LogStore, MemoryStore};

/// The pace at which the server writes what no reply waits for.
const PACE: Duration = Duration::from_millis(200);

/// Writes an engine's log until it is dropped.
pub struct LogWriter {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LogWriter {
    pub fn start(engine: Engine, store: MemoryStore) -> LogWriter {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopping.load(Ordering::Acquire) {
                engine.step_log().expect("a store in memory takes every batch");
                if let Some(BatchNumber(newest)) = store.batches().last() {
                    store.truncate(BatchNumber(newest + 1)).expect("a store in memory forgets");
                }
                std::thread::park_timeout(PACE);
            }
        });
        LogWriter { stop, thread: Some(thread) }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        let _ = thread.join();
    }
}
