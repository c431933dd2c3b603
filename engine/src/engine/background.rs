//! The engine's own threads: the log writer, the checkpointer, the monitor, the look at the
//! topology, and memory that follows its partition.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::OpenError;
use super::history::CheckpointReason;
use super::shared::Shared;
use crate::id::Epoch;
use crate::log::{Checkpointer, Log, LogStore, LogWriter, Recovered, Step, StoreError};

/// The log writer and the checkpointer, as threads or stepped by the caller.
pub(super) struct Background {
    log: Arc<Log>,
    writer: Arc<Mutex<Option<LogWriter>>>,
    checkpointer: Arc<Mutex<Checkpointer>>,
    stop: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// How often the topology is read again: changes are to be followed within two seconds.
const TOPOLOGY_LOOK: Duration = Duration::from_secs(1);

/// How often the checkpointer looks at the log's length.
const CHECKPOINT_LOOK: Duration = Duration::from_millis(200);

impl Background {
    pub fn start(
        shared: &Arc<Shared>,
        store: Arc<dyn LogStore>,
        log: Arc<Log>,
        recovered: &Recovered,
    ) -> Result<Self, OpenError> {
        let failing = Arc::downgrade(shared);
        let abort = shared.config.abort_on_log_failure;
        let on_failure = Box::new(move |error: &StoreError| {
            tracing::error!(%error, "the log failed: nothing more can be acknowledged");
            if abort {
                eprintln!("FATAL: the log failed: {error}");
                std::process::abort();
            }
            if let Some(shared) = failing.upgrade() {
                shared.failed.store(true, Ordering::Release);
            }
        });
        let writer = LogWriter::new(log.clone(), store.clone(), recovered, on_failure)
            .with_clock(shared.clock.clone());
        let background = Self {
            checkpointer: Arc::new(Mutex::new(Checkpointer::new(log.clone(), store)?)),
            log,
            writer: Arc::new(Mutex::new(Some(writer))),
            stop: Arc::new(AtomicBool::new(false)),
            threads: Mutex::new(Vec::new()),
        };
        if shared.config.background {
            background.spawn_writer(shared)?;
            background.spawn_checkpointer(shared)?;
            background.spawn_monitor(shared)?;
            if shared.machine.is_watched() {
                background.spawn_follower(shared)?;
                background.spawn_memory(shared)?;
            }
        }
        Ok(background)
    }

    fn spawn_writer(&self, shared: &Arc<Shared>) -> Result<(), OpenError> {
        let Some(mut writer) = self.writer.lock().take() else { return Ok(()) };
        let (seat, stop) = (self.writer.clone(), self.stop.clone());
        let weak = Arc::downgrade(shared);
        let thread = shared.spawn.spawn(
            "log-writer".to_owned(),
            Box::new(move || {
                let advance = || match weak.upgrade() {
                    Some(shared) => shared.epochs.advance(),
                    None => Epoch(0),
                };
                writer.run(&advance, &stop);
                *seat.lock() = Some(writer);
            }),
        )?;
        self.threads.lock().push(thread);
        Ok(())
    }

    fn spawn_checkpointer(&self, shared: &Arc<Shared>) -> Result<(), OpenError> {
        let (checkpointer, stop) = (self.checkpointer.clone(), self.stop.clone());
        let weak = Arc::downgrade(shared);
        let thread = shared.spawn.spawn(
            "checkpointer".to_owned(),
            Box::new(move || {
                while !stop.load(Ordering::Acquire) {
                    std::thread::park_timeout(CHECKPOINT_LOOK);
                    let Some(shared) = weak.upgrade() else { return };
                    let log_bytes = shared.log.counters().bytes_since_checkpoint;
                    if log_bytes < shared.restart.begin_at(shared.rows()) || stop.load(Ordering::Acquire) {
                        continue;
                    }
                    let mut checkpointer = checkpointer.lock();
                    // Whoever held it may have taken a checkpoint.
                    if shared.log.counters().bytes_since_checkpoint < log_bytes {
                        continue;
                    }
                    let result =
                        super::checkpoint::run(&shared, &mut checkpointer, &stop, CheckpointReason::Log);
                    if let Err(error) = result {
                        tracing::warn!(%error, "a checkpoint was given up");
                    }
                }
            }),
        )?;
        self.threads.lock().push(thread);
        Ok(())
    }

    fn spawn_monitor(&self, shared: &Arc<Shared>) -> Result<(), OpenError> {
        let (weak, stop) = (Arc::downgrade(shared), self.stop.clone());
        let thread = shared.spawn.spawn(
            "monitor".to_owned(),
            Box::new(move || {
                while !stop.load(Ordering::Acquire) {
                    let Some(shared) = weak.upgrade() else { return };
                    let pause = crate::monitor::tick(&shared);
                    drop(shared);
                    std::thread::park_timeout(pause);
                }
            }),
        )?;
        self.threads.lock().push(thread);
        Ok(())
    }

    fn spawn_memory(&self, shared: &Arc<Shared>) -> Result<(), OpenError> {
        let (weak, stop) = (Arc::downgrade(shared), self.stop.clone());
        let thread = shared.spawn.spawn(
            "memory".to_owned(),
            Box::new(move || {
                while !stop.load(Ordering::Acquire) {
                    let Some(shared) = weak.upgrade() else { return };
                    let pause = super::memory::tick(&shared);
                    drop(shared);
                    std::thread::park_timeout(pause);
                }
            }),
        )?;
        self.threads.lock().push(thread);
        Ok(())
    }

    fn spawn_follower(&self, shared: &Arc<Shared>) -> Result<(), OpenError> {
        let (weak, stop) = (Arc::downgrade(shared), self.stop.clone());
        let thread = shared.spawn.spawn(
            "topology".to_owned(),
            Box::new(move || {
                while !stop.load(Ordering::Acquire) {
                    std::thread::park_timeout(TOPOLOGY_LOOK);
                    let Some(shared) = weak.upgrade() else { return };
                    if !stop.load(Ordering::Acquire) {
                        super::follow::look_and_tell(&shared);
                    }
                }
            }),
        )?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Runs a checkpoint on this thread.
    pub fn checkpoint(&self, shared: &Arc<Shared>, reason: CheckpointReason) -> Result<(), OpenError> {
        let mut checkpointer = self.seize(shared);
        self.take_checkpoint(shared, &mut checkpointer, reason)
    }

    fn take_checkpoint(
        &self,
        shared: &Arc<Shared>,
        checkpointer: &mut Checkpointer,
        reason: CheckpointReason,
    ) -> Result<(), OpenError> {
        match super::checkpoint::run(shared, checkpointer, &self.stop, reason)? {
            Some(_) => Ok(()),
            None => Err(OpenError::Stopping),
        }
    }

    /// Runs a checkpoint that is given up after a while, as when the background threads stop;
    /// then the answer is [`OpenError::Stopping`].
    pub fn checkpoint_within(&self, shared: &Arc<Shared>, limit: Duration) -> Result<(), OpenError> {
        let ended = Arc::new(AtomicBool::new(false));
        let (done, stop, clock) = (ended.clone(), self.stop.clone(), shared.clock.clone());
        let watch = shared.spawn.spawn(
            "shutdown".to_owned(),
            Box::new(move || {
                let began = clock.monotonic_nanos();
                let passed = || Duration::from_nanos(clock.monotonic_nanos().saturating_sub(began));
                while !done.load(Ordering::Acquire) {
                    match limit.checked_sub(passed()).filter(|left| !left.is_zero()) {
                        Some(left) => std::thread::park_timeout(left),
                        None => return stop.store(true, Ordering::Release),
                    }
                }
            }),
        )?;
        let checkpoint = self.checkpoint(shared, CheckpointReason::Request);
        ended.store(true, Ordering::Release);
        watch.thread().unpark();
        // It ends at once, and has no result.
        let _ = watch.join();
        checkpoint
    }

    /// Copies the database as it is, after a checkpoint.
    pub fn copy_to(&self, shared: &Arc<Shared>, directory: &Path) -> Result<(), OpenError> {
        let mut checkpointer = self.seize(shared);
        self.take_checkpoint(shared, &mut checkpointer, CheckpointReason::Backup)?;
        checkpointer.copy_to(directory)?;
        Ok(())
    }

    /// The checkpointer, once the checkpoint under way has ended, without rests from now on.
    fn seize(&self, shared: &Shared) -> MutexGuard<'_, Checkpointer> {
        shared.checkpoint_hurry.fetch_add(1, Ordering::Relaxed);
        let checkpointer = self.checkpointer.lock();
        shared.checkpoint_hurry.fetch_sub(1, Ordering::Relaxed);
        checkpointer
    }

    pub fn step(&self, shared: &Arc<Shared>) -> Result<Step, StoreError> {
        match &mut *self.writer.lock() {
            Some(writer) => writer.step(shared.epochs.advance()),
            None => Ok(Step { durable: self.log.durable(), bytes: 0 }),
        }
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.log.nudge();
        for thread in self.threads.lock().drain(..) {
            thread.thread().unpark();
            // The last engine may go on one of its own threads; a thread cannot wait for itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}
