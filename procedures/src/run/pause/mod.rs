//! COMMIT and ROLLBACK in a procedure: a call that runs as several transactions.
//!
//! A transaction of the engine is one run of a program, from its claims to its commit point. A
//! procedure that ends its transaction therefore stops: on the way out each statement around the
//! COMMIT leaves its place in [`Invocation::places`] (which statement of a list, which round of
//! a loop), and the registers are kept. The server commits or undoes what has run and runs the
//! call again from [`Paused`]: on the way in each statement takes its place from there until the
//! COMMIT itself is reached, which is passed then. Each of the transactions is a one-shot as
//! long as it can be one, and may be run again from its own beginning, since [`Paused`] is
//! copied at each run.
//!
//! Definitions (CREATE, ALTER, SET, LOCK and the like) are the session's: a routine stops there
//! in the same way, leaves the statement in [`Paused::command`], and goes on in the same transaction
//! when the session has run it.
//!
//! Where it cannot stop at once, inside of a query or a subtransaction, the run is undone and the
//! call runs again in pieces: in a form that makes calls before the statements they stand in, and
//! with savepoints of the session's ([`guard`]).
//!
//! A block with an EXCEPTION clause is one subtransaction, so its body cannot end the
//! transaction; its handlers can. The rows a FOR loop is over were read before its first round
//! and outlive the transaction, as PostgreSQL's loops over held cursors do.
//!
//! - [`guard`] blocks with handlers; [`recompile`] going on in another form of the routine
//! - [`state`] the call that has stopped; [`command`] a statement that the session has to run; [`home`]
//!   registers that it goes on with

mod command;
mod guard;
mod home;
pub mod recompile;
pub(super) mod state;

use std::sync::Arc;

use archipel_planner::native::{ExecContext, ExecResult};
use archipel_sql::datum::{Array, Datum};
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::stack;
use state::{EachRow, Resume, RowsLeft, Shown};

use super::ending::Flow;
use super::invocation::Invocation;
use super::operation::site::Site;
use super::operation::{Handlers, Operation};
use super::{context, context_line};
use crate::Program;
pub use command::{Command, Within};
pub use state::{Left, Paused};

/// How many routines may be around one that stops: each time it does, all of them are left and
/// entered again.
const DEPTH_MAX: u32 = 1_000;

impl Paused {
    /// The same when the session has run what was left to it: a statement of so many rows, if it was one.
    #[must_use]
    pub fn after_command(mut self, rows: Option<u64>) -> Paused {
        self.left = None;
        if let Some(rows) = rows {
            self.innermost(|stopped| stopped.row_count = rows);
        }
        self
    }

    /// Changes what is kept of the routine that has stopped, below those that have called it.
    fn innermost(&mut self, change: impl FnOnce(&mut Paused)) {
        for place in &mut self.places {
            if let Resume::Call(_, inner, ..) = place {
                return inner.innermost(change);
            }
        }
        change(self);
    }

    /// The same when that has failed: the routine goes on with the error.
    #[must_use]
    pub fn after_failure(mut self, error: SqlError) -> Paused {
        let text = match self.left.take() {
            Some(Left::Statement(command)) => command.written,
            _ => Arc::from(""),
        };
        self.innermost(|stopped| stopped.failure = Some((text, error)));
        self
    }

    /// Whether an error where it stands may be caught.
    pub fn is_guarded(&self) -> bool {
        self.places.iter().any(|place| match place {
            Resume::Guarded(begun) => *begun,
            Resume::Call(_, inner, ..) => inner.is_guarded(),
            _ => false,
        })
    }

    /// The context of an error at the end of the transaction or in a command, or of a notice of
    /// that; `program` is what has run.
    pub fn add_context(&self, program: &Program, error: SqlError) -> SqlError {
        let inner = self.places.iter().find_map(|place| match place {
            Resume::Call(program, paused, text, shown) => {
                Some((program, paused, text.as_ref().filter(|_| *shown == Shown::Yes)))
            }
            _ => None,
        });
        let error = match inner {
            Some((inner, paused, text)) => {
                let error = paused.add_context(inner, error);
                match text {
                    Some(text) => context_line::add_line(error, &context_line::statement_line(text)),
                    None => error,
                }
            }
            None => match &self.left {
                Some(Left::Statement(command)) => context::of_statement(error, &command.written),
                _ => error,
            },
        };
        program.add_context(error, Some(self.site))
    }
}

fn refused(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_TRANSACTION_TERMINATION, message)
}

impl Invocation<'_, '_> {
    /// What is needed to go on.
    pub(super) fn stop(self, commit: bool, frame: Vec<Datum>) -> Paused {
        Paused {
            commit,
            chain: self.chain,
            left: self.left,
            failure: None,
            site: self.ended_at,
            frame,
            places: self.places,
            errors: self.errors,
            row_count: self.row_count,
            sent: self.sent,
        }
    }

    /// Goes on: answers the registers.
    pub(super) fn go_on(&mut self, paused: Paused) -> Vec<Datum> {
        self.places = paused.places;
        self.errors = paused.errors;
        self.row_count = paused.row_count;
        self.sent = paused.sent;
        self.failure = paused.failure;
        self.resuming = true;
        paused.frame
    }

    /// 54001 where too many routines are around this one for it to stop.
    fn check_depth(&self, ctx: &ExecContext<'_, '_>, site: Site) -> ExecResult<()> {
        if ctx.depth <= DEPTH_MAX { Ok(()) } else { Err(self.at(stack::too_deep().into(), site)) }
    }

    /// COMMIT or ROLLBACK: stops there, or passes it when it comes back to it.
    pub(super) fn end_transaction(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        commit: bool,
        changing: bool,
        site: Site,
    ) -> ExecResult<Flow> {
        if self.resuming {
            self.resuming = false;
            return Ok(Flow::Next);
        }
        if changing && ctx.permits.end {
            let message = "cannot perform transaction commands inside a cursor loop that is not read-only";
            let error = SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
            return Err(self.at(error.into(), site));
        }
        let problem = if !ctx.permits.end {
            "invalid transaction termination"
        } else if ctx.subtransactions == 0 && ctx.guards == 0 {
            self.check_depth(ctx, site)?;
            self.ended_at = site;
            return Ok(Flow::Pause(commit));
        } else if commit {
            "cannot commit while a subtransaction is active"
        } else {
            "cannot roll back while a subtransaction is active"
        };
        Err(self.at(refused(problem).into(), site))
    }

    /// Leaves a statement to the session, or passes it when that is done.
    #[cold]
    pub(super) fn command(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        command: Command,
        tag: &str,
        site: Site,
    ) -> ExecResult<Flow> {
        if self.resuming {
            return self.after_command(site);
        }
        if self.program.routine.volatility != 'v' {
            let message = format!("{tag} is not allowed in a non-volatile function");
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Err(self.in_statement(error.into(), Some(&command.written), site));
        }
        ctx.want_pieces()?;
        let problem = if !ctx.permits.command {
            format!("{tag} in a routine that a query calls")
        } else if ctx.borrows && matches!(tag, "SET" | "RESET") {
            // What it sets would end with the routine's own settings.
            format!("{tag} in a routine with SET clauses, or SECURITY DEFINER,")
        } else if ctx.subtransactions > 0 {
            format!("{tag} in a block with an EXCEPTION clause")
        } else {
            self.check_depth(ctx, site)?;
            self.ended_at = site;
            self.left = Some(Left::Statement(command));
            return Ok(Flow::Pause(true));
        };
        Err(self.at(SqlError::unsupported(problem).into(), site))
    }

    /// Leaves settings that functions have changed to the session, so that names are looked up and
    /// values written as they say. Where a routine cannot stop, that waits for the end of its statement.
    #[cold]
    pub(super) fn take_settings(&mut self, ctx: &mut ExecContext<'_, '_>, site: Site) -> ExecResult<Flow> {
        if self.resuming {
            return self.after_command(site);
        }
        if !ctx.functions.session.has_settings_to_take() {
            return Ok(Flow::Next);
        }
        ctx.want_pieces()?;
        if !ctx.permits.command || ctx.borrows || ctx.subtransactions > 0 {
            return Ok(Flow::Next);
        }
        self.ended_at = site;
        self.left = Some(Left::Settings);
        Ok(Flow::Pause(true))
    }

    /// The session has run what was left to it.
    pub(super) fn after_command(&mut self, site: Site) -> ExecResult<Flow> {
        self.resuming = false;
        match self.failure.take() {
            None => Ok(Flow::Next),
            Some((text, error)) => Err(self.in_statement(error.into(), Some(&text), site)),
        }
    }

    /// Stops where a routine that this one has called has stopped.
    pub(super) fn pause_below(
        &mut self,
        program: Arc<Program>,
        paused: Paused,
        text: Option<&str>,
        site: Site,
    ) -> Flow {
        let commit = paused.commit;
        self.left = paused.left.clone();
        self.chain = paused.chain;
        self.ended_at = site;
        self.places.push(Resume::Call(program, Box::new(paused), text.map(Into::into), Shown::Yes));
        Flow::Pause(commit)
    }

    /// The statement of a list, or the arm of an IF, to go on with.
    #[cold]
    pub(super) fn place_in_list(&mut self) -> usize {
        match self.places.pop() {
            Some(Resume::At(at)) => at,
            _ => 0,
        }
    }

    /// An arm of an IF.
    pub(super) fn arm(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        arm: usize,
        body: &[Operation],
    ) -> ExecResult<Flow> {
        let flow = self.operations(ctx, body)?;
        if matches!(flow, Flow::Pause(_)) {
            self.places.push(Resume::At(arm));
        }
        Ok(flow)
    }

    /// The handler with this number, its error on top of [`Invocation::errors`].
    pub(super) fn handler(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        handlers: &Handlers,
        number: usize,
    ) -> ExecResult<Flow> {
        let flow = self.operations(ctx, &handlers.handlers[number].body);
        if matches!(flow, Ok(Flow::Pause(_))) {
            self.places.push(Resume::Handler(number));
        } else {
            self.errors.pop();
        }
        flow
    }

    /// Only a handler can have ended the transaction.
    #[cold]
    pub(super) fn resumed_handler(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        handlers: &Handlers,
    ) -> ExecResult<Flow> {
        match self.places.pop() {
            Some(Resume::Handler(number)) => self.handler(ctx, handlers, number),
            _ => Err(SqlError::internal("a block without a handler to go on with").into()),
        }
    }

    /// Where a loop over integers goes on: the counter, its end and its step.
    pub(super) fn resumed_counter(&mut self) -> Option<(i32, i32, i32)> {
        match self.resuming.then(|| self.places.pop())?? {
            Resume::Counter { at, upper, step } => Some((at, upper, step)),
            _ => None,
        }
    }

    pub(super) fn resumed_rows(&mut self) -> Option<RowsLeft> {
        match self.resuming.then(|| self.places.pop())?? {
            Resume::Rows(rows) => Some(rows),
            _ => None,
        }
    }

    pub(super) fn resumed_array(&mut self) -> Option<(Arc<Array>, usize)> {
        match self.resuming.then(|| self.places.pop())?? {
            Resume::Array(array, round) => Some((array, round)),
            _ => None,
        }
    }

    pub(super) fn resumed_each_row(&mut self) -> Option<EachRow> {
        match self.resuming.then(|| self.places.pop())?? {
            Resume::EachRow(each) => Some(each),
            _ => None,
        }
    }

    /// Whether the way back leads into a routine from here.
    pub(super) fn resumes_call(&self) -> bool {
        self.resuming && matches!(self.places.last(), Some(Resume::Call(..)))
    }

    pub(super) fn resumed_answer(&mut self) -> Option<Vec<Datum>> {
        match self.resuming.then(|| self.places.pop())?? {
            Resume::Answer(rows) => Some(rows),
            _ => None,
        }
    }

    /// The text of an EXECUTE to go back into, as [`Invocation::resumed_call`].
    pub(super) fn resumed_text(&mut self) -> Option<(Box<str>, Arc<Program>, Paused)> {
        if !self.resumes_call() {
            return None;
        }
        match self.places.pop()? {
            Resume::Call(program, paused, text, _) => {
                self.resuming = false;
                Some((text.unwrap_or_default(), program, *paused))
            }
            _ => None,
        }
    }

    /// The procedure to go back into. Whoever is inside of it has come back to its COMMIT.
    pub(super) fn resumed_call(&mut self) -> Option<(Arc<Program>, Paused)> {
        match self.resuming.then(|| self.places.pop())?? {
            Resume::Call(program, paused, ..) => {
                self.resuming = false;
                Some((program, *paused))
            }
            _ => None,
        }
    }
}
