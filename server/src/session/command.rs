//! Statements that a routine leaves to its session: definitions, SET, LOCK TABLE and the like.
//!
//! A routine that comes to one stops there, as at a COMMIT, but its transaction goes on. The
//! session runs the statement in it and the routine goes on behind. A one-shot has no
//! transaction that could go on: it is undone, and the call runs again in a block begun for it,
//! which ends with the call.

use std::sync::Arc;

use archipel_engine::id::Epoch;
use archipel_procedures::run::pause::Command;
use archipel_sql::ast::TransactionModes;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Oid;

use super::Session;
use super::execute::Ran;
use super::host::Host;
use crate::encode::Formats;
use crate::run::statement::StatementRun;
use crate::statement::{Code, Prepared};

impl Session {
    pub(super) async fn run_until_done(
        &mut self,
        prepared: &Arc<Prepared>,
        run: StatementRun,
    ) -> Result<((Ran, Vec<Vec<Datum>>), Arc<Host>)> {
        let mut own = false;
        let ran = self.run_pieces(prepared, run, &mut own).await;
        if own {
            match &ran {
                Ok(_) => Box::pin(self.commit_transaction()).await?,
                Err(_) => Box::pin(self.rollback_transaction()).await,
            }
        }
        ran
    }

    /// Begins a block for a call that is to run again in it.
    pub(super) fn begin_for(&mut self, run: &mut StatementRun) -> Result<()> {
        run.out.truncate(run.mark);
        self.begin(&TransactionModes::default())?;
        self.enter_transaction(false);
        run.in_block = true;
        run.now = self.transaction.start();
        run.constraints = Some(self.transaction.constraint_modes());
        run.host = self.host();
        Ok(())
    }

    /// Ends the block of a call that ends its transaction.
    pub(super) async fn end_for(&mut self, run: &mut StatementRun) -> Result<()> {
        let commits = run.paused.as_ref().is_some_and(|paused| paused.commit);
        self.transaction.add_deferred(std::mem::take(&mut run.deferred));
        self.take_said(std::mem::take(&mut run.notifications), None, Epoch(0))?;
        if commits {
            let host = run.host.clone();
            self.apply_settings(&host)?;
            Box::pin(self.commit_transaction()).await?;
        } else {
            Box::pin(self.rollback_transaction()).await;
        }
        run.in_block = false;
        run.now = None;
        run.constraints = Some(self.transaction.constraint_modes());
        Ok(())
    }

    /// Runs what a routine has left, and makes its run ready to go on.
    pub(super) async fn run_command(&mut self, run: &mut StatementRun, depends_on: Epoch) -> Result<()> {
        let paused = run.paused.take().ok_or_else(|| SqlError::internal("nobody has left a command"))?;
        self.take_over(run, depends_on)?;
        self.transaction.add_deferred(std::mem::take(&mut run.deferred));
        if let Some(cursors) = run.cursors_changed.take() {
            self.cursors = cursors;
        }
        let host = run.host.clone();
        self.apply_settings(&host)?;
        let in_context = |error: SqlError, run: &StatementRun| match &run.plan.code {
            Code::Call(call) => paused.add_context(&call.program, error),
            _ => error,
        };
        if let Some(command) = &paused.command {
            // Its completion and its rows are nobody's; its notices come out of the routine.
            let before = std::mem::take(&mut self.output);
            let heard = self.overheard.replace(Vec::new());
            let ran = Box::pin(self.run_left(command)).await;
            self.output = before;
            let notices = std::mem::replace(&mut self.overheard, heard).unwrap_or_default();
            for (severity, notice) in notices {
                self.notice(severity, &in_context(notice, run));
            }
            ran.map_err(|error| in_context(error, run))?;
        }
        run.resume = Some(paused.after_command());
        run.cursors = self.cursors.clone();
        run.constraints = Some(self.transaction.constraint_modes());
        run.out = self.output.take();
        run.mark = run.out.len();
        Ok(())
    }

    async fn run_left(&mut self, command: &Command) -> Result<()> {
        let statements = archipel_sql::parser::parse(&command.text)?;
        let types: Vec<Oid> = command.params.iter().map(|(ty, _)| *ty).collect();
        for statement in statements {
            let text: Arc<str> = command.text[statement.range.clone()].into();
            let statement = archipel_sql::parser::parse(&text)?;
            let prepared = self.prepare_parsed(&text, statement, &types)?;
            let params = command.params.iter().map(|(_, value)| value.clone()).collect();
            self.execute(&prepared, params, &Formats::TEXT, false).await?;
        }
        Ok(())
    }
}

impl StatementRun {
    /// Whether its routine has left a command.
    pub fn has_command(&self) -> bool {
        self.error.is_none() && self.paused.as_ref().is_some_and(|paused| paused.command.is_some())
    }
}
