//! Pipelines: what lies between two Syncs is one transaction (PostgreSQL 15, chapter 55.2.3).
//!
//! Where the messages up to Sync have arrived and only bind, describe and run statements that are
//! known to be quick, the first statement that writes and those after it are put off: at Sync all of
//! them run as one program of the engine ([`crate::run::pipeline`]), and commit with it. Their
//! answers go to the places where they would have been.
//!
//! Whatever else comes, the statements that were put off run first, one after the other in an
//! interactive transaction; so they do when the program fails, which undoes all of them: what each
//! answers, and which of them fails, is told by that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipel_engine::txn::Isolation;
use archipel_engine::{Outcome, Stop, SubmitOptions};
use archipel_sql::ast::Statement;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};

use super::pipeline_state::Way;
use crate::encode::Formats;
use crate::run::pipeline::{PipelineRun, Step, native};
use crate::session::Session;
use crate::settings::session::Tracked;
use crate::statement::{Body, Prepared};

/// The most statements that run as one program: it holds its partitions until the last of them.
const STEPS_MAX: usize = 128;

impl Session {
    /// Whether a statement can wait for Sync, with those that come after it in `rest`.
    pub(in crate::session) fn may_wait_for_sync(
        &mut self,
        prepared: &Prepared,
        last: bool,
        rest: &[u8],
    ) -> bool {
        match self.pipeline.way {
            Way::Apart => false,
            Way::Together => is_step(prepared),
            Way::Open => {
                // Alone, or before the first one that writes, a statement is a one-shot anyway.
                let reads = matches!(&prepared.body, Body::Rows(plan) if plan.is_read_only());
                if last || reads || self.transaction.is_open() {
                    return false;
                }
                let together = self.pipeline.pause == 0
                    && is_step(prepared)
                    && self.is_plain()
                    && whole_pipeline_follows(rest);
                self.pipeline.pause = self.pipeline.pause.saturating_sub(1);
                self.pipeline.way = if together { Way::Together } else { Way::Apart };
                together
            }
        }
    }

    /// Whether nothing that the session has set asks for its statements one by one.
    fn is_plain(&self) -> bool {
        let effective = self.settings.effective();
        effective.statement_timeout_ms == 0
            && !effective.require_route
            && !effective.transaction_read_only
            && effective.log_statement_ms == u64::MAX
            && effective.log_plan_ms == u64::MAX
            && effective.tracked == Tracked::None
            && self.isolation() == Isolation::ReadCommitted
            && self.cursors.is_empty()
    }

    /// Puts a statement off: its answer will come here.
    pub(in crate::session) fn put_off(
        &mut self,
        prepared: Arc<Prepared>,
        params: Vec<Datum>,
        formats: Formats,
    ) {
        let (at, encoding) = (self.output.len(), self.encoding());
        self.pipeline.steps.push(Step::new(prepared, params, formats, encoding, at));
    }

    /// Whether statements wait for Sync.
    pub(in crate::session) fn has_put_off(&self) -> bool {
        !self.pipeline.steps.is_empty()
    }

    /// Sync has come: runs what was put off, together if that succeeds.
    pub(super) async fn run_together(&mut self) -> Result<()> {
        let Some(last) = self.pipeline.steps.last() else { return Ok(()) };
        let text = last.prepared.text.clone();
        self.begin_statement(&text);
        let begun = Instant::now();
        let (replies, constraints) = (self.output.take(), self.transaction.constraint_modes());
        let steps = std::mem::take(&mut self.pipeline.steps);
        let run = Box::new(PipelineRun::new(steps, replies, self.host(), constraints));
        let options = SubmitOptions { client: Some(&self.entry().engine), ..SubmitOptions::default() };
        let submission = self.server.engine.submit(run, options);
        let completed = self.cancellable(submission).await;
        let (mut run, outcome) = (completed.program, completed.outcome);
        match outcome.result {
            Ok(()) => {
                self.finish_together(*run, outcome, begun.elapsed());
                Ok(())
            }
            // Once is enough: it would be told so again, or wait for as long again.
            Err(stop @ (Stop::Cancelled | Stop::LockNotAvailable)) => {
                self.output.restore(run.into_answers().take());
                self.depend_on(outcome.depends_on);
                Err(self.stop_error(stop))
            }
            Err(_) => {
                self.pipeline.failed();
                self.pipeline.numbers_left = Some(run.take_numbers());
                let PipelineRun { steps, replies, panicked, .. } = *run;
                let done = Box::pin(self.run_one_by_one(steps, replies, panicked)).await;
                self.pipeline.numbers_left = None;
                done
            }
        }
    }

    fn finish_together(&mut self, run: PipelineRun, outcome: Outcome, took: Duration) {
        let PipelineRun { mut steps, mut out, sequences, .. } = run;
        self.output.restore(out.take());
        self.depend_on(outcome.depends_on);
        self.remember_sequences(&sequences);
        self.count(|counters| &counters.statements, steps.len() as u64);
        let each = took / steps.len().max(1) as u32;
        steps.iter().for_each(|step| step.prepared.pace.note(each));
        self.took = Some(took);
        self.pipeline.succeeded();
        steps.clear();
        self.pipeline.steps = steps;
    }

    /// Something comes that cannot wait for Sync: runs what was put off, one after the other.
    pub(in crate::session) async fn run_apart(&mut self) -> Result<()> {
        let Some(first) = self.pipeline.steps.first() else { return Ok(()) };
        let text = first.prepared.text.clone();
        self.begin_statement(&text);
        self.pipeline.way = Way::Apart;
        let (steps, replies) = (std::mem::take(&mut self.pipeline.steps), self.output.take());
        Box::pin(self.run_one_by_one(steps, replies, None)).await
    }

    /// Runs steps as if each had come at its place among the replies.
    async fn run_one_by_one(
        &mut self,
        steps: Vec<Step>,
        replies: Vec<u8>,
        panicked: Option<(usize, SqlError)>,
    ) -> Result<()> {
        let (mut from, mut panicked) = (0, panicked);
        for (number, step) in steps.into_iter().enumerate() {
            self.output.append(&replies[from..step.at]);
            from = step.at;
            if let Some((_, error)) = panicked.take_if(|(at, _)| *at == number) {
                return Err(error);
            }
            self.execute(&step.prepared, step.params, &step.formats, false).await?;
        }
        self.output.append(&replies[from..]);
        Ok(())
    }

    /// What a pipeline fails with where a message was refused: if statements wait before it, the first
    /// error of theirs.
    pub(super) async fn first_error(&mut self, refused: SqlError) -> SqlError {
        match self.run_apart().await {
            Ok(()) => refused,
            Err(error) => error,
        }
    }

    /// The next message begins another pipeline.
    pub(super) fn end_pipeline(&mut self) {
        self.pipeline.way = Way::Open;
        self.pipeline.has_run = false;
    }

    /// A statement of the pipeline has run.
    pub(in crate::session) fn step_has_run(&mut self, prepared: &Prepared) {
        match &prepared.body {
            Body::Empty => {}
            // Databases come and go in a commit of their own.
            Body::Utility(statement)
                if matches!(
                    **statement,
                    Statement::Transaction(_) | Statement::CreateDatabase(_) | Statement::DropDatabase(_)
                ) =>
            {
                self.pipeline.has_run = false;
            }
            Body::Rows(_) | Body::Utility(_) => self.pipeline.has_run = true,
        }
    }

    /// Whether a statement has run before the one at hand.
    pub(in crate::session) fn is_behind_others(&self) -> bool {
        self.pipeline.has_run
    }
}

/// Whether a statement can run with others as one program.
fn is_step(prepared: &Prepared) -> bool {
    let Body::Rows(plan) = &prepared.body else { return false };
    // How long one takes that has not run yet, nobody knows.
    native(prepared).is_some()
        && !plan.is_analytic()
        && !plan.computes_long()
        // What is bound after it is read with the settings that it leaves.
        && !plan.changes_settings()
        && prepared.pace.is_quick()
        && prepared.denied.is_none()
        // A call of a routine is counted with what it took.
        && plan.counts.is_none()
}

/// Whether all messages up to Sync have arrived, and do nothing but bind, describe, run and close, not
/// too often.
fn whole_pipeline_follows(mut rest: &[u8]) -> bool {
    let mut steps = 1;
    while let Some((&kind, tail)) = rest.split_first() {
        match kind {
            b'S' => return tail.starts_with(&[0, 0, 0, 4]),
            b'E' => steps += 1,
            b'B' | b'C' | b'D' => {}
            _ => return false,
        }
        let Some(length) = tail.first_chunk::<4>() else { return false };
        let Some(next) = tail.get(u32::from_be_bytes(*length) as usize..) else { return false };
        if steps > STEPS_MAX {
            return false;
        }
        rest = next;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::protocol::pipeline_state::Pipeline;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn a_pipeline_counts_once_its_sync_is_here() {
        let step = [message(b'B', b"\0s\0"), message(b'D', b"P\0"), message(b'E', b"\0\0\0\0\0")].concat();
        let sync = message(b'S', b"");
        assert!(whole_pipeline_follows(&sync));
        assert!(whole_pipeline_follows(&[&step[..], &step, &sync].concat()));
        assert!(!whole_pipeline_follows(&[&step[..], &step].concat()));
        assert!(!whole_pipeline_follows(&[&step[..], &sync[..4]].concat()));
        assert!(!whole_pipeline_follows(&[&step[..7]].concat()));
        assert!(!whole_pipeline_follows(b""));
        for kind in [b'P', b'Q', b'H', b'd', b'X'] {
            assert!(!whole_pipeline_follows(&[&message(kind, b"x\0")[..], &sync].concat()));
        }
        let many = step.repeat(STEPS_MAX - 1);
        assert!(whole_pipeline_follows(&[&many[..], &sync].concat()));
        assert!(!whole_pipeline_follows(&[&many[..], &step, &sync].concat()));
    }

    #[test]
    fn after_a_failure_others_go_by_before_the_next_try() {
        let mut pipeline = Pipeline::default();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            pipeline.failed();
            pauses.push(pipeline.pause);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        pipeline.succeeded();
        pipeline.failed();
        assert_eq!(pipeline.pause, 1);
    }
}
