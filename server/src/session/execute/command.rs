//! Statements that a routine leaves to its session: definitions, SET, LOCK TABLE and the like.
//!
//! A routine that comes to one stops there, as at a COMMIT, but its transaction goes on. The
//! session runs the statement in it and the routine goes on behind. A one-shot has no
//! transaction that could go on: it is undone, and the call runs again in a block begun for it,
//! which ends with the call.
//!
//! Not every place in a routine is one to stop at: a run that comes to a statement of the session's
//! is undone where it first does, and runs again in pieces, in the form that stops wherever it can
//! ([`archipel_procedures::run::pause`]). Its blocks with EXCEPTION clauses have savepoints of the
//! session's then, which end with the run.

use std::sync::Arc;

use archipel_engine::id::Epoch;
use archipel_procedures::run::pause::{Command, Left};
use archipel_sql::ast::TransactionModes;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::stack;
use archipel_sql::types::Oid;

use super::outcome::Ran;
use crate::encode::Formats;
use crate::run::statement::StatementRun;
use crate::session::host::Host;
use crate::session::{Session, role_setting};
use crate::statement::{Code, Prepared};

/// What was begun for a run that needs a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Begun {
    Block,
    /// The implicit transaction of a script counts as one while the run lasts.
    Pretence,
}

impl Session {
    pub(super) async fn run_until_done(
        &mut self,
        prepared: &Arc<Prepared>,
        run: Box<StatementRun>,
    ) -> Result<((Ran, Vec<Vec<Datum>>), Arc<Host>)> {
        let mut block = None;
        let savepoints = run.savepoints;
        let ran = self.run_pieces(prepared, run, &mut block).await;
        self.transaction.release(savepoints);
        match (block, &ran) {
            (Some(Begun::Block), Ok(_)) => Box::pin(self.commit_transaction()).await?,
            (Some(Begun::Block), Err(_)) => Box::pin(self.rollback_transaction()).await,
            (Some(Begun::Pretence), _) => self.transaction.pretend_block(false),
            (None, _) => {}
        }
        ran
    }

    /// Begins a block for a call that is to run again in it.
    pub(in crate::session) fn begin_for(
        &mut self,
        run: &mut StatementRun,
        modes: &TransactionModes,
    ) -> Result<Begun> {
        run.out.truncate(run.mark);
        let begun = if self.transaction.is_open() {
            self.transaction.pretend_block(true);
            Begun::Pretence
        } else {
            self.begin(modes)?;
            self.transaction.begun_for_routine();
            Begun::Block
        };
        self.enter_transaction(false);
        run.in_block = true;
        run.now = self.transaction.start();
        run.constraints = Some(self.transaction.constraint_modes());
        run.host = self.host();
        Ok(begun)
    }

    /// Ends the block of a call that ends its transaction.
    pub(super) async fn end_for(&mut self, run: &mut StatementRun) -> Result<()> {
        let commits = run.paused.as_ref().is_some_and(|paused| paused.commit);
        self.transaction.add_deferred(std::mem::take(&mut run.deferred));
        self.take_said(std::mem::take(&mut run.notifications), None, Epoch(0))?;
        if commits {
            // Those WITH HOLD stay as the routine has left them.
            if let Some(cursors) = run.cursors_changed.take() {
                self.cursors = cursors;
            }
            let host = run.host.clone();
            self.apply_settings(&host)?;
            Box::pin(self.commit_transaction()).await.map_err(|error| {
                match (&run.paused, &run.plan.code) {
                    (Some(paused), Code::Call(call)) => paused.add_context(&call.program, error),
                    _ => error,
                }
            })?;
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
            self.pin_large_objects();
        }
        let host = run.host.clone();
        self.apply_settings(&host)?;
        let in_context = |error: SqlError, run: &StatementRun| match &run.plan.code {
            Code::Call(call) => paused.add_context(&call.program, error),
            _ => error,
        };
        let mut failure = None;
        let mut rows = None;
        let isolation = self.isolation();
        match &paused.left {
            Some(Left::Statement(command)) => {
                if !command.begins {
                    self.note_query();
                }
                // Its rows are nobody's, but how many there were; its notices come out of the routine.
                let before = self.output.take();
                let heard = self.overheard.replace(Vec::new());
                let ran = self.run_within(command).await;
                self.reshaped = false;
                rows = Some(self.output.rows_completed());
                self.output.restore(before);
                let notices = std::mem::replace(&mut self.overheard, heard).unwrap_or_default();
                for (severity, notice) in notices {
                    self.notice(severity, &in_context(notice, run));
                }
                match ran {
                    Err(error) if paused.is_guarded() => failure = Some(error),
                    ran => ran.map_err(|error| in_context(error, run))?,
                }
            }
            Some(Left::Savepoint(inside)) => {
                self.transaction.release(run.savepoints + *inside as usize);
                self.set_savepoint("");
            }
            Some(Left::RollbackTo(inside)) => {
                let index = run.savepoints + *inside as usize;
                self.rollback_to(index).await.map_err(|error| in_context(error, run))?;
                self.transaction.release(index);
            }
            // Those of the run are taken over already.
            Some(Left::Settings) | None => {}
        }
        if self.isolation() != isolation {
            self.begin_again().await;
        }
        run.read_only = self.is_read_only();
        run.resume = Some(match failure {
            Some(error) => paused.after_failure(error),
            None => paused.after_command(rows),
        });
        run.cursors = self.cursors.clone();
        run.constraints = Some(self.transaction.constraint_modes());
        self.flush_early().await;
        run.out = self.output.take();
        run.mark = run.out.len();
        Ok(())
    }

    /// Runs a statement with the settings, and in the name, that the routines around it have.
    async fn run_within(&mut self, command: &Command) -> Result<()> {
        if command.within.is_empty() {
            return self.run_deep(command).await;
        }
        let mark = self.settings.mark();
        let catalog = self.host().catalog.clone();
        let taken = self.change_settings(|all| {
            for around in command.within.iter().rev() {
                let owner = catalog.catalog.role_by_oid(catalog.catalog.owner(around.routine));
                if let Some(owner) = owner.filter(|_| around.definer) {
                    all.set_role(role_setting::ROLE, Some(role_setting::role_value(&owner)), true);
                }
                for (name, value) in &around.settings {
                    all.set(name, Some(value), true)?;
                }
            }
            Ok(())
        });
        let ran = match taken {
            Ok(()) => self.run_deep(command).await,
            Err(error) => Err(error),
        };
        self.change_settings(|all| {
            all.rollback_to(mark);
            Ok(())
        })?;
        self.host = None;
        ran
    }

    /// Runs a statement, which may call a routine that leaves one, and so on: each is polled inside
    /// of the one before.
    async fn run_deep(&mut self, command: &Command) -> Result<()> {
        stack::check()?;
        Box::pin(self.run_left(command)).await
    }

    async fn run_left(&mut self, command: &Command) -> Result<()> {
        let statements = self.read(&command.text).await?;
        let types: Vec<Oid> = command.params.iter().map(|(ty, _)| *ty).collect();
        for statement in statements {
            let text: Arc<str> = command.text[statement.range.clone()].into();
            let statement = self.read(&text).await?;
            let prepared = self.prepare_parsed(&text, statement, &types).await?;
            let params = command.params.iter().map(|(_, value)| value.clone()).collect();
            self.execute(&prepared, params, &Formats::TEXT, false).await?;
        }
        Ok(())
    }
}

impl StatementRun {
    /// Whether its routine has left a command.
    pub fn has_command(&self) -> bool {
        self.error.is_none() && self.paused.as_ref().is_some_and(|paused| paused.left.is_some())
    }
}
