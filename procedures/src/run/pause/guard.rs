//! Blocks with an EXCEPTION clause.
//!
//! What such a block did before its handler runs is undone. Inside of one run that is a savepoint
//! of the engine's transaction; a run in pieces ([`ExecContext::is_in_pieces`]) stops at the block's
//! beginning and leaves a savepoint to its session, so that what the session runs for the routine
//! is undone as well, and stops before a handler for going back to it.
//!
//! A run that has to wait for a lock is undone and begins anew. Where the wait ends in vain, after
//! `lock_timeout` or in a deadlock, it begins anew as well, and has the error where it would wait.

use archipel_engine::Stop;
use archipel_planner::native::stop_error;
use archipel_planner::native::{ExecContext, ExecError, ExecResult};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};

use super::Left;
use super::state::Resume;
use crate::plpgsql::ast::Condition;
use crate::plpgsql::conditions;
use crate::run::ending::Flow;
use crate::run::invocation::Invocation;
use crate::run::operation::{HandlerPlan, Handlers, Operation};

impl Invocation<'_, '_> {
    /// A block with an EXCEPTION clause.
    pub(in crate::run) fn guarded(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        body: &[Operation],
        handlers: &Handlers,
    ) -> ExecResult<Flow> {
        if ctx.is_in_pieces() && ctx.permits.command {
            return self.guarded_in_pieces(ctx, body, handlers);
        }
        if self.resuming {
            return self.resumed_handler(ctx, handlers);
        }
        let savepoint = ctx.txn.savepoint();
        let depth = ctx.depth;
        let effects = ctx.mark_effects();
        let settings = ctx.functions.session.changed_settings();
        ctx.subtransactions += 1;
        let result = self.operations(ctx, body);
        ctx.subtransactions -= 1;
        if result.is_ok() {
            return result;
        }
        let (error, number) = Self::catch(ctx, handlers, result)?;
        ctx.txn.rollback_to(savepoint);
        ctx.rollback_effects(effects);
        ctx.functions.session.undo_settings(settings);
        ctx.depth = depth;
        self.caught(ctx, handlers, error);
        self.handler(ctx, handlers, number)
    }

    /// The same for a run that may stop inside of it.
    #[cold]
    fn guarded_in_pieces(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        body: &[Operation],
        handlers: &Handlers,
    ) -> ExecResult<Flow> {
        let place = if self.resuming { self.places.pop() } else { None };
        match place {
            None => return Ok(self.leave(Left::Savepoint(ctx.guards), Resume::Guarded(false))),
            // The savepoint is there: the body begins.
            Some(Resume::Guarded(false)) => self.resuming = false,
            Some(Resume::Guarded(true)) => {}
            Some(Resume::Caught(number)) => {
                self.resuming = false;
                return self.handler(ctx, handlers, number);
            }
            Some(Resume::Handler(number)) => return self.handler(ctx, handlers, number),
            Some(_) => return Err(SqlError::internal("a block that has not been stopped in").into()),
        }
        let depth = ctx.depth;
        ctx.guards += 1;
        let result = self.operations(ctx, body);
        ctx.guards -= 1;
        if let Ok(flow) = result {
            if matches!(flow, Flow::Pause(_)) {
                self.places.push(Resume::Guarded(true));
            }
            return Ok(flow);
        }
        let (error, number) = Self::catch(ctx, handlers, result)?;
        ctx.depth = depth;
        self.caught(ctx, handlers, error);
        // Nobody goes back to where the body stood.
        self.resuming = false;
        self.places.clear();
        Ok(self.leave(Left::RollbackTo(ctx.guards), Resume::Caught(number)))
    }

    /// The error of a body, and the handler that takes it.
    fn catch(
        ctx: &mut ExecContext<'_, '_>,
        handlers: &Handlers,
        result: ExecResult<Flow>,
    ) -> ExecResult<(SqlError, usize)> {
        let error = match result {
            Ok(_) => return Err(SqlError::internal("a block that has not failed").into()),
            // The session ends: whatever this was, nobody takes it.
            Err(ExecError::Sql(_)) if ends_for_good(ctx) => return Err(Stop::Cancelled.into()),
            // Nobody's condition: the run begins anew apart.
            Err(ExecError::Sql(error)) if error.is_over_budget() => return Err(Stop::Interactive.into()),
            Err(ExecError::Sql(error)) => error,
            Err(ExecError::Stop(Stop::Cancelled)) if handlers.takes_cancellation() => {
                ctx.functions.session.cancellation().ok_or(Stop::Cancelled)?
            }
            Err(ExecError::Stop(Stop::Wait)) => {
                // The run begins anew when there is room; if there never is, the wait has an error.
                ctx.guards_waits |= handlers.take_waits();
                return Err(Stop::Wait.into());
            }
            Err(ExecError::Stop(Stop::LockNotAvailable)) => {
                let error = ctx.refused_wait().filter(|error| handler_of(handlers, error.state()).is_some());
                if error.is_none() {
                    return Err(Stop::LockNotAvailable.into());
                }
                ctx.take_refused_wait().ok_or(Stop::LockNotAvailable)?
            }
            Err(ExecError::Stop(Stop::Deadlock))
                if handler_of(handlers, SqlState::DEADLOCK_DETECTED).is_some() =>
            {
                stop_error(Stop::Deadlock)
            }
            Err(stop) => return Err(stop),
        };
        let Some(number) = handler_of(handlers, error.state()) else {
            return Err(ExecError::Sql(error));
        };
        if error.state() == SqlState::QUERY_CANCELED {
            ctx.functions.session.forget_cancellation();
        }
        Ok((error, number))
    }

    fn leave(&mut self, left: Left, place: Resume) -> Flow {
        self.ended_at = self.program.body.site;
        self.left = Some(left);
        self.places.push(place);
        Flow::Pause(true)
    }

    fn caught(&mut self, ctx: &mut ExecContext<'_, '_>, handlers: &Handlers, error: SqlError) {
        ctx.variables[handlers.sqlstate as usize] = Datum::text(error.state().as_str());
        ctx.variables[handlers.sqlerrm as usize] = Datum::text(error.message());
        self.errors.push(error);
    }
}

impl Handlers {
    /// Whether one of them is for waits for locks that end in vain.
    fn take_waits(&self) -> bool {
        let mut conditions = self.handlers.iter().flat_map(|handler| &handler.conditions);
        conditions.any(|condition| {
            catches(*condition, SqlState::LOCK_NOT_AVAILABLE)
                || catches(*condition, SqlState::DEADLOCK_DETECTED)
        })
    }

    /// Whether one of them is for statements that were asked to stop.
    fn takes_cancellation(&self) -> bool {
        let mut conditions = self.handlers.iter().flat_map(|handler| &handler.conditions);
        conditions.any(|condition| catches(*condition, SqlState::QUERY_CANCELED))
    }
}

/// Whether the statement was asked to stop for a reason that is no condition of SQL: its session was
/// terminated, its client has gone.
fn ends_for_good(ctx: &ExecContext<'_, '_>) -> bool {
    let session = ctx.functions.session;
    session.interrupted() && session.cancellation().is_none()
}

fn handler_of(handlers: &Handlers, code: SqlState) -> Option<usize> {
    let catching = |h: &HandlerPlan| h.conditions.iter().any(|c| catches(*c, code));
    handlers.handlers.iter().position(catching)
}

/// Whether a handler's condition takes an error.
fn catches(condition: Condition, code: SqlState) -> bool {
    match condition {
        Condition::Others => code != SqlState::QUERY_CANCELED && code != SqlState::ASSERT_FAILURE,
        Condition::Code(wanted) => conditions::matches(wanted, code),
    }
}
