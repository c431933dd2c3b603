//! Waiting for a program that the engine runs: whatever may end it before its time, a request to
//! stop, `lock_timeout`, a deadlock, a client that has gone.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use archipel_engine::id::TxnId;
use archipel_engine::txn::WaitEdge;
use archipel_engine::{Canceller, Completed, Program, Stop, Submission, Wait, WaitOn};

use crate::session::Session;
use crate::sessions::CancelReason;

/// A statement that runs longer than this looks now and then whether its client is still there.
const CLIENT_LOOKED_FOR_AFTER: Duration = Duration::from_secs(1);

impl Session {
    /// Cancels the statement if its client has closed the connection: nobody waits for it.
    fn look_for_client(&self) {
        let ends = self.leaves.get() || self.entry().is_terminated();
        let told_to_go = ends || self.server.closing.load(Ordering::Acquire);
        if !told_to_go && self.replies.socket().is_closed() {
            self.client_gone.set(true);
            self.entry().cancel(CancelReason::ClientGone);
        }
    }

    /// The same for who never waits long, and so hears of it from nobody; looks once in a while after `looked`.
    pub(in crate::session) fn look_for_client_after(&self, looked: &mut Instant) {
        if looked.elapsed() >= CLIENT_LOOKED_FOR_AFTER {
            self.look_for_client();
            *looked = Instant::now();
        }
    }

    /// Resolves when the client has closed the connection and the statement is cancelled.
    pub(in crate::session) async fn client_lost(&self) {
        while self.leaves.get() || !self.client_gone.get() {
            tokio::time::sleep(CLIENT_LOOKED_FOR_AFTER).await;
            self.look_for_client();
        }
    }

    /// Waits for a submission: cancels it when somebody asks for that or it has waited for a row
    /// beyond `lock_timeout`, and looks for a deadlock after `deadlock_timeout`.
    pub(in crate::session) async fn cancellable<P: Program>(
        &self,
        mut submission: Submission<P>,
    ) -> Completed<P> {
        self.cancellable_by(&mut submission).await
    }

    /// The same for a submission that the caller keeps, who may stop waiting and begin again.
    pub(super) async fn cancellable_by<P: Program>(&self, submission: &mut Submission<P>) -> Completed<P> {
        let completed = self.ended(submission).await;
        self.waits_no_more_beside();
        completed
    }

    async fn ended<P: Program>(&self, mut submission: &mut Submission<P>) -> Completed<P> {
        if let Some(completed) = submission.try_take() {
            return completed;
        }
        let Some(canceller) = submission.canceller() else { return submission.await };
        let effective = self.settings.effective();
        let timeout = |limit_ms: u64| (limit_ms > 0).then(|| Duration::from_millis(limit_ms));
        let lock_timeout = timeout(effective.lock_timeout_ms);
        let deadlock_timeout = Duration::from_millis(effective.deadlock_timeout_ms);
        let mut next_search = deadlock_timeout;
        let begun = Instant::now();
        loop {
            let waited = canceller.waited_nanos().map(Duration::from_nanos);
            // A wait that begins after this look is seen at the next one.
            let until = next_search.min(lock_timeout.unwrap_or(next_search));
            let pause = match waited {
                Some(waited) => until.saturating_sub(waited).max(Duration::from_millis(1)),
                None => (until / 4).clamp(Duration::from_millis(1), Duration::from_millis(100)),
            };
            tokio::select! {
                biased;
                completed = &mut submission => return completed,
                () = self.entry().cancel_asked() => {
                    canceller.cancel(Stop::Cancelled);
                    tokio::select! {
                        biased;
                        completed = &mut submission => return completed,
                        () = self.entry().cancellation_forgotten() => {}
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
            if begun.elapsed() >= CLIENT_LOOKED_FOR_AFTER {
                self.look_for_client();
            }
            match canceller.waited_nanos().map(Duration::from_nanos) {
                None => {
                    next_search = deadlock_timeout;
                    self.waits_no_more_beside();
                }
                Some(waited) => {
                    self.wait_beside(&canceller);
                    if lock_timeout.is_some_and(|limit| waited >= limit) {
                        canceller.cancel_wait(Stop::LockNotAvailable);
                    } else if waited >= next_search {
                        next_search = waited + deadlock_timeout;
                        let wait = self.entry().engine.wait();
                        let cycle = canceller.break_deadlock().or_else(|| self.break_beside(&canceller));
                        if let Some(cycle) = cycle {
                            *self.deadlock.borrow_mut() = Some(self.describe_cycle(&cycle, wait));
                        }
                    }
                }
            }
        }
    }

    /// Says whom a block waits for whose definition a program runs beside it: for whom the program does.
    fn wait_beside(&self, canceller: &Canceller) {
        if let Some(block) = self.beside.get()
            && let Some(wait) = canceller.row_wait()
            && wait.waiter != Some(block)
        {
            self.server.engine.waits().publish(block, wait.blockers);
        }
    }

    fn waits_no_more_beside(&self) {
        if let Some(block) = self.beside.get() {
            self.server.engine.waits().forget(block);
        }
    }

    /// The cycle that such a block closes, after its program has been ended.
    fn break_beside(&self, canceller: &Canceller) -> Option<Vec<WaitEdge>> {
        let block = self.beside.get()?;
        let waits = self.server.engine.waits();
        let cycle = {
            let _alone = waits.search();
            waits.break_cycle(block)
        }?;
        canceller.cancel_wait(Stop::Deadlock).then_some(cycle)
    }

    /// A deadlock in PostgreSQL's words. `own` is what this session waited for; it has been told
    /// to give up, so it does not say any more.
    pub(in crate::session) fn describe_cycle(&self, cycle: &[WaitEdge], own: Option<Wait>) -> String {
        let sessions = self.server.sessions.list();
        let holder = |id: TxnId| sessions.iter().find(|entry| entry.engine.holds_as(id));
        let process = |id: TxnId| holder(id).map_or(0, |entry| entry.process_id);
        let mine = self.entry().process_id;
        let lines: Vec<String> = cycle
            .iter()
            // A session's own locks wait for its own transaction: one process.
            .filter(|edge| process(edge.waiter) != process(edge.blocker))
            .map(|edge| {
                let waiter = process(edge.waiter);
                let wait = if waiter == mine {
                    own.clone()
                } else {
                    holder(edge.waiter).and_then(|entry| entry.engine.wait())
                };
                let what = match wait.map(|wait| wait.on) {
                    Some(WaitOn::Object(lock)) => self.describe_lock(lock),
                    _ => format!("ShareLock on transaction {}", edge.blocker),
                };
                format!("Process {waiter} waits for {what}; blocked by process {}.", process(edge.blocker))
            })
            .collect();
        lines.join("\n")
    }
}
