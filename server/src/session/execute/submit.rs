//! Handing a statement's run to the engine: as a one-shot, in the transaction at hand, or on a thread
//! of its own.
//!
//! What takes longer than a one-shot may, and has written nothing, begins again as of a snapshot, and
//! holds a partition for a page at a time ([`How::InPages`]); whatever writes holds its claims to its
//! end, on a thread of its own.

use std::time::Instant;

use archipel_engine::txn::Interactive;
use archipel_engine::{Completed, Outcome, Paging, Start, Stop, SubmitOptions};
use archipel_sql::error::Result;

use crate::design::counts::Counted;
use crate::run::portions::{Portion, Portions};
use crate::run::statement::{StatementRun, Streaming};
use crate::session::Session;
use crate::settings::session::Tracked;
use crate::statement::Code;

/// How a run is handed over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// As a one-shot, or a statement that is as short.
    Briefly,
    /// On a thread of its own, for as long as it takes.
    Apart,
    /// As before, reading in pages.
    InPages,
}

impl Session {
    /// Hands a run to the engine and waits for it; one that takes long is run again apart from
    /// the executors, and the next time at once if it claims nothing.
    pub(in crate::session) async fn submit(
        &mut self,
        run: Box<StatementRun>,
    ) -> (Box<StatementRun>, Outcome) {
        if run.plan.counts.is_none() && run.tracked == Tracked::None {
            return self.submit_uncounted(run).await.0;
        }
        let (begins, begun) = (run.resume.is_none(), Instant::now());
        let ((mut run, outcome), aside) = self.submit_uncounted(run).await;
        if let Some(counts) = &run.plan.counts
            && outcome.result.is_ok()
        {
            let call = Counted {
                begins,
                rows: run.rows,
                nanos: begun.elapsed().as_nanos() as u64,
                partitions: outcome.partitions,
                restarts: outcome.restarts + aside.as_ref().map_or(0, |outcome| outcome.restarts),
                interactive: aside.is_some(),
            };
            counts.add(self.entry().executor(), &call);
        }
        if let Some(usage) = run.usage.take() {
            self.database.calls.add_usage(&usage, &run.host.catalog.catalog);
        }
        (run, outcome)
    }

    /// As [`Session::submit`]; also how a run ended that was run again apart.
    async fn submit_uncounted(
        &mut self,
        run: Box<StatementRun>,
    ) -> ((Box<StatementRun>, Outcome), Option<Outcome>) {
        let read_only = run.plan.is_read_only();
        if run.plan.computes_long() && !run.goes_by_pages() {
            let (plan, begun) = (run.plan.clone(), Instant::now());
            let done = self.submit_apart(run, How::Apart).await;
            plan.note_long(begun.elapsed() > self.server.engine.one_shot_budget());
            return (done, None);
        }
        let (mut run, first) = self.submit_in(run, read_only, None, How::Briefly).await;
        if first.result != Err(Stop::Interactive) {
            return ((run, first), None);
        }
        run.plan.note_long(true);
        // Tables that the transaction has defined have no past to read, and what it wrote into reference
        // tables is read under the claim of their partition: where rows have left, it is too late to say so.
        let claims = self.transaction.interactive().is_some_and(Interactive::wrote_references);
        if run.goes_by_pages() && self.transaction.staged().is_none() && !claims {
            let (paged, outcome) = self.submit_apart(run, How::InPages).await;
            match outcome.result {
                Err(Stop::Interactive) => paged.plan.note_writes_late(),
                // Versions of rows took too much memory: under claims there is no need of any.
                Err(Stop::SnapshotTooOld) if !paged.has_sent() => {}
                _ => return ((paged, outcome), Some(first)),
            }
            run = paged;
        }
        (self.submit_apart(run, How::Apart).await, Some(first))
    }

    /// Runs on a thread of its own, a one-shot as an interactive transaction of its own.
    async fn submit_apart(&mut self, run: Box<StatementRun>, how: How) -> (Box<StatementRun>, Outcome) {
        let read_only = run.plan.is_read_only();
        if self.transaction.interactive().is_some() {
            return match how == How::InPages && run.streams() {
                true => self.submit_streaming(run, None).await,
                false => self.submit_in(run, read_only, None, how).await,
            };
        }
        let own = self.begin_interactive();
        let (mut run, mut outcome) = match how == How::InPages && run.streams() {
            true => self.submit_streaming(run, Some(&own)).await,
            false => self.submit_in(run, read_only, Some(&own), how).await,
        };
        let own = if outcome.result.is_ok() && !run.deferred.is_empty() {
            match self.check_own(&mut run, &mut outcome, own).await {
                Some(own) => own,
                None => return (run, outcome),
            }
        } else {
            own
        };
        if outcome.result.is_ok() {
            match self.draw_ticket(&run.notifications) {
                Ok(ticket) => run.ticket = ticket,
                Err(error) => {
                    run.error = Some(error);
                    outcome.result = Err(Stop::Abort);
                }
            }
        }
        if outcome.result.is_err() {
            let _ = self.server.engine.rollback(&own).await;
            return (run, outcome);
        }
        let committed = self.server.engine.commit(&own).await.outcome;
        if committed.result.is_err() {
            let _ = self.server.engine.rollback(&own).await;
        }
        let depends_on = outcome.depends_on.max(committed.depends_on);
        (run, Outcome { depends_on, ..committed })
    }

    /// The checks that a statement put off to the end of a transaction which is its own; `None` if
    /// that is over.
    async fn check_own(
        &mut self,
        run: &mut StatementRun,
        outcome: &mut Outcome,
        own: Interactive,
    ) -> Option<Interactive> {
        // What the statement has said comes before its rows, and what the checks say behind them.
        let rows = run.out.split_off(run.mark);
        self.output.restore(std::mem::take(&mut run.out));
        self.tell_notices(std::mem::take(&mut run.notices));
        run.out = self.output.take();
        run.mark = run.out.len();
        // What the statement asked of its host is still to be done.
        let host = self.host.take();
        let before = self.transaction.take_pending();
        self.transaction.enter_own(own);
        self.transaction.add_deferred(std::mem::take(&mut run.deferred));
        if let Err(error) = self.check_deferred(None).await {
            run.error = Some(match (run.paused.take(), &run.plan.code) {
                (Some(paused), Code::Call(call)) => paused.add_context(&call.program, error),
                _ => error,
            });
            outcome.result = Err(Stop::Abort);
        }
        self.host = host;
        let goes_on = outcome.result.is_ok() && run.paused.is_none();
        if goes_on {
            run.out.extend_from_slice(&rows);
        }
        self.late_notices = self.output.notices_from(0);
        run.out.extend_from_slice(&self.output.take());
        if !goes_on {
            // No rows come before it.
            run.mark = run.out.len();
        }
        let own = self.transaction.leave_own();
        let said = self.transaction.take_pending();
        self.transaction.put_pending(before);
        if let Some(mut said) = said
            && let Err(error) = run.notifications.append(said.take_notifications())
        {
            run.error = Some(error);
            outcome.result = Err(Stop::Abort);
        }
        own
    }

    /// Whether rows may leave before their statement has ended: nobody adds to, or takes out of, what it
    /// answers.
    pub(in crate::session) fn may_stream(&self) -> bool {
        self.overheard.is_none() && !self.has_put_off()
    }

    /// Runs in pages, and sends the rows as they come and as the client takes them.
    async fn submit_streaming(
        &mut self,
        mut run: Box<StatementRun>,
        own: Option<&Interactive>,
    ) -> (Box<StatementRun>, Outcome) {
        let (portions, mut rows) = Portions::new();
        run.streaming = Streaming::Streams(portions);
        run.one_shot = false;
        let options = SubmitOptions {
            transaction: own.or(self.transaction.interactive()),
            read_only: true,
            client: Some(&self.entry().engine),
            start: Start::Apart,
            paging: Paging::Locking,
            ..SubmitOptions::default()
        };
        let mut submission = self.server.engine.submit(run, options);
        let mut is_taken = true;
        let Completed { program, outcome } = loop {
            let portion = tokio::select! {
                biased;
                portion = rows.recv(), if is_taken => portion,
                completed = self.cancellable_by(&mut submission) => break completed,
            };
            is_taken = match portion {
                Some(portion) => self.pass_on(portion).await.is_ok(),
                None => false,
            };
            if !is_taken {
                // The run finds nobody to take what comes next.
                rows.close();
            }
        };
        // What it has handed over before its end.
        while let Some(portion) = rows.try_recv().ok().filter(|_| is_taken) {
            is_taken = self.pass_on(portion).await.is_ok();
        }
        if is_taken {
            return (program, outcome);
        }
        // It may have come to its end while its last rows were refused.
        (program, Outcome { result: outcome.result.and(Err(Stop::Cancelled)), ..outcome })
    }

    /// Sends what a run has handed over; refused where the statement has been cancelled.
    async fn pass_on(&mut self, portion: Portion) -> Result<()> {
        self.depend_on(portion.epoch);
        self.output.restore(portion.messages);
        self.pass_rows_on().await
    }

    async fn submit_in(
        &self,
        mut run: Box<StatementRun>,
        read_only: bool,
        own: Option<&Interactive>,
        how: How,
    ) -> (Box<StatementRun>, Outcome) {
        let transaction = own.or(self.transaction.interactive());
        run.one_shot = transaction.is_none();
        let options = SubmitOptions {
            transaction,
            read_only,
            client: Some(&self.entry().engine),
            start: Start::apart_if(how != How::Briefly),
            paging: if how == How::InPages { Paging::Locking } else { Paging::Off },
            ..SubmitOptions::default()
        };
        let submission = self.server.engine.submit(run, options);
        let completed = self.cancellable(submission).await;
        (completed.program, completed.outcome)
    }
}
