//! Running a compiled routine: a walk over a small tree of operations, the variables being
//! registers in the context.
//!
//! - [`operation`] the tree; [`condition`] what holds, and what refuses NULL
//! - this file:    statements, blocks and handlers of an [`invocation`]; [`ending`] how they end
//! - [`loops`]     the loops
//! - [`rows`]      what SQL statements answer, and where it goes; [`results`] what the routine answers
//! - [`cursor`]    OPEN, FETCH, CLOSE, loops over cursors
//! - [`dynamic`]   what EXECUTE knows of the text that it will run
//! - [`element`]   assignment to elements and slices of arrays; [`append`] to the end of a value
//! - [`machine`]   loops over numbers, texts and arrays, without a walk
//! - [`raise`]     RAISE, ASSERT, diagnostics
//! - [`context`]   CONTEXT lines; [`extra_checks`] what extra checks find
//! - [`hoist`]   calls made before the statements they stand in; [`late`] programs that are found when they are called
//! - [`pause`]     COMMIT and ROLLBACK: stopping there, and going on; blocks with an EXCEPTION clause
//! - [`place`]     where values go; [`sink`] where rows go; [`context_line`] lines of CONTEXT
//! - [`flow_draft`] the actions of a routine, on the way to its flow graph
//!
//! Nothing here parses, plans or looks up a name. Errors get their CONTEXT lines on the way
//! out, at the statement where they arose: the good path pays nothing for them.
//!
//! Invariant: `ExecError::Stop` passes through every block untouched, but for a cancellation where a
//! handler is for `query_canceled`. Only SQL conditions are caught, and what a block did before its handler runs is rolled back to its savepoint.

mod append;
mod condition;
pub(crate) mod context;
pub(crate) mod context_line;
mod cursor;
mod dynamic;
mod element;
pub(crate) mod ending;
mod extra_checks;
pub(crate) mod flow_draft;
mod hoist;
mod invocation;
pub(crate) mod late;
mod loops;
pub(crate) mod machine;
pub mod operation;
pub mod pause;
mod place;
mod prefetch;
mod raise;
pub(crate) mod record_structure;
mod results;
mod rows;
mod sink;

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::Stop;
use archipel_planner::native::notify::Notification;
use archipel_planner::native::{self, ExecContext, ExecError, ExecResult, RowSink};
use archipel_sql::catalog::Language;
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::stack;
use archipel_sql::types::Oid;

use condition::{is_true, null_refused};
use ending::Flow;
use invocation::Invocation;
use operation::expression::{Compiled, Expression};
use operation::site::Site;
use operation::*;
use pause::state::Resume;
use pause::{Command, Left, Paused, Within};
pub use sink::Row;

impl Program {
    /// Runs the routine on its arguments, in one transaction; result rows go to `sink`.
    pub fn invoke(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        args: &[Datum],
        sink: &mut dyn RowSink,
    ) -> ExecResult<()> {
        let permits = std::mem::take(&mut ctx.permits);
        let result = self.invoke_until_pause(ctx, args, sink, None);
        ctx.permits = permits;
        result.map(drop)
    }

    /// Runs the routine until it ends, or ends its transaction where [`ExecContext::permits`]
    /// let it; goes on from `paused` if it has stopped before.
    pub fn invoke_until_pause(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        args: &[Datum],
        sink: &mut dyn RowSink,
        paused: Option<Paused>,
    ) -> ExecResult<Option<Paused>> {
        stack::check()?;
        if self.routine.strict && args.iter().any(Datum::is_null) {
            // Not called at all: NULL, or no rows.
            if !self.routine.returns_set {
                let row: Row = std::iter::repeat_n(Datum::Null, self.width.max(1) as usize).collect();
                let _: ControlFlow<()> = sink.row(&row)?;
            }
            return Ok(None);
        }
        let mut invocation = Invocation {
            program: self,
            sink,
            row_count: 0,
            errors: Vec::new(),
            sent: 0,
            buffer: ctx.take_values(),
            places: Vec::new(),
            resuming: false,
            ended_at: self.body.site,
            left: None,
            chain: false,
            failure: None,
            telling: self.tells(),
            returned: None,
        };
        let frame = match paused {
            Some(paused) => invocation.go_on(paused),
            None => {
                let mut frame = ctx.take_registers(self.registers as usize);
                self.store_arguments(args, &mut frame);
                frame[self.found as usize].set(Datum::Bool(false));
                frame
            }
        };
        let (functions, permits) = (ctx.functions, ctx.permits);
        let traits = &self.routine.traits;
        let session = if traits.security_definer {
            functions.session.as_owner_of(self.routine.oid, &self.settings)?
        } else if self.settings.is_empty() {
            None
        } else {
            functions.session.with_settings(&self.settings)?
        };
        let as_itself = session.is_none();
        if let Some(session) = session {
            ctx.functions = FunctionContext { session, ..functions };
        }
        // Settings of a call, and another's rights, hold for one transaction only.
        let own = self.settings.is_empty() && !traits.security_definer;
        // Nobody's transaction ends inside of a subtransaction of a caller's.
        ctx.permits.end &= own && ctx.subtransactions == 0 && ctx.guards == 0;
        // Rows that have been sent would be lost; in pieces, they are kept.
        ctx.permits.command &= ctx.is_in_pieces() || !self.routine.returns_set;
        let borrows = ctx.borrows;
        ctx.borrows |= !as_itself;
        let outer = std::mem::replace(&mut ctx.variables, frame);
        let told = ctx.callers.len();
        ctx.depth += 1;
        if !invocation.resuming {
            prefetch::fetch_rows(ctx, &self.ahead);
        }
        let begun = ctx.begin_use(self.routine.oid, self.routine.language == Language::Sql);
        let result = invocation.routine(ctx);
        if let Some(begun) = begun {
            match &result {
                Ok(paused) => ctx.end_use(begun, paused.is_none()),
                Err(_) => ctx.forget_use(begun),
            }
        }
        ctx.depth -= 1;
        ctx.callers.truncate(told);
        ctx.functions = functions;
        ctx.permits = permits;
        ctx.borrows = borrows;
        if let (Some(Left::Statement(command)), false) = (&mut invocation.left, as_itself) {
            let (definer, settings) = (traits.security_definer, self.settings.clone());
            command.within.push(Within { routine: self.routine.oid, definer, settings });
        }
        let frame = std::mem::replace(&mut ctx.variables, outer);
        match result? {
            Some(commit) => Ok(Some(invocation.stop(commit, frame))),
            None => {
                ctx.give_registers(frame);
                ctx.give_values(invocation.buffer);
                Ok(None)
            }
        }
    }

    fn store_arguments(&self, args: &[Datum], frame: &mut [Datum]) {
        if self.plain_arguments {
            for (register, value) in frame.iter_mut().zip(args.iter().take(self.arguments.len())) {
                register.set(value.clone());
            }
            return;
        }
        for (place, value) in self.arguments.iter().zip(args) {
            match place {
                Place::Scalar { register, .. } => frame[*register as usize] = value.clone(),
                Place::Record { base, width, present } => {
                    if let Datum::Record(fields) = value {
                        if let Some(present) = present {
                            frame[*present as usize] = Datum::Bool(true);
                        }
                        for (index, field) in fields.iter().take(*width as usize).enumerate() {
                            frame[*base as usize + index] = field.clone();
                        }
                    }
                }
            }
        }
    }
}

impl Invocation<'_, '_> {
    /// Runs the body; answers whether it stopped to end the transaction, and with COMMIT.
    fn routine(&mut self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Option<bool>> {
        let program = self.program;
        let flow = self.operation(ctx, &program.body);
        self.settled(ctx, program.body.site);
        let flow = flow?;
        if let Flow::Pause(commit) = flow {
            return Ok(Some(commit));
        }
        if let Some(cast) = self.returned.take() {
            let value = cast(ctx).map_err(|error| self.while_casting(error))?;
            self.send(&mut [value])?;
        }
        if flow != Flow::Return {
            match program.at_end {
                AtEnd::Nothing => {}
                // Its text form is empty; it is not NULL.
                // In the language sql it is.
                AtEnd::Void if program.language != ContextLanguage::PlPgSql => {
                    self.send(&mut [Datum::Null])?
                }
                AtEnd::Void => self.send(&mut [Datum::text("")])?,
                AtEnd::Columns => self.give_columns(ctx)?,
                AtEnd::Missing | AtEnd::MissingOfTrigger => {
                    let what =
                        if program.at_end == AtEnd::Missing { "function" } else { "trigger procedure" };
                    let error = SqlError::new(
                        SqlState::FUNCTION_EXECUTED_NO_RETURN_STATEMENT,
                        format!("control reached end of {what} without RETURN"),
                    );
                    return Err(self.program.add_context(error, None).into());
                }
            }
        }
        Ok(None)
    }

    /// Says that no statement of the routine has failed, but what becomes of its value.
    #[cold]
    fn while_casting(&self, error: ExecError) -> ExecError {
        match (error, self.program.context_line(None)) {
            (ExecError::Sql(error), Some(line)) => {
                let line = format!("{line} while casting return value to function's return type");
                context_line::add_line(error, &line).into()
            }
            (error, _) => error,
        }
    }

    pub(crate) fn operations(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        operations: &[Operation],
    ) -> ExecResult<Flow> {
        let from = if self.resuming { self.place_in_list() } else { 0 };
        for (at, operation) in operations.iter().enumerate().skip(from) {
            let told = ctx.callers.len();
            if self.telling {
                self.tell_place(ctx, operation);
            }
            ctx.require_memory().map_err(|error| self.at(error, operation.site))?;
            let flow = self.operation(ctx, operation);
            if context::notices_wait(ctx) {
                self.settle(ctx, operation.site);
            }
            if self.telling {
                ctx.callers.truncate(told);
            }
            let flow = flow?;
            if flow != Flow::Next {
                if matches!(flow, Flow::Pause(_)) {
                    self.places.push(Resume::At(at));
                }
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn operation(&mut self, ctx: &mut ExecContext<'_, '_>, operation: &Operation) -> ExecResult<Flow> {
        use OperationKind::*;
        let site = operation.site;
        if let Some(rights) = &operation.rights {
            let checked = rights.check(ctx.functions.session);
            checked.map_err(|error| self.in_statement(error.into(), operation.text(), site))?;
        }
        match &operation.kind {
            Assign { register, value } => {
                let value = (value.run)(ctx).map_err(|e| self.at(e, site))?;
                ctx.variables[*register as usize].set(value);
            }
            AssignChecked { register, value, name } => {
                let value = (value.run)(ctx).map_err(|e| self.at(e, site))?;
                if value.is_null() {
                    return Err(self.at(null_refused(name).into(), site));
                }
                ctx.variables[*register as usize] = value;
            }
            AppendText { register, parts } => {
                append::text(ctx, *register, parts).map_err(|e| self.at(e, site))?;
            }
            AppendElement { register, element, value } => {
                append::element(ctx, *register, *element, value).map_err(|e| self.at(e, site))?;
            }
            AppendArray { register, value, function } => {
                append::array(ctx, *register, value, *function).map_err(|e| self.at(e, site))?;
            }
            AssignRow { targets, values } => self.assign_row(ctx, targets, values, site)?,
            AssignRecord { targets, value } => self.assign_record(ctx, targets, value, site)?,
            AssignFound(found) => self.assign_found(ctx, found, site)?,
            AssignElement { register, element, subscripts, value } => {
                self.assign_element(ctx, *register, *element, subscripts, value)
                    .map_err(|e| self.at(e, site))?;
            }
            AssignSlice { register, bounds, value } => {
                self.assign_slice(ctx, *register, bounds, value).map_err(|e| self.at(e, site))?;
            }
            If { arms, otherwise } => return self.if_statement(ctx, arms, otherwise, site),
            Sequence(body) => return self.operations(ctx, body),
            Block { number, body, handlers } => {
                return self.block(ctx, *number, body, handlers.as_ref());
            }
            Open(open) => drop(self.open_cursor(ctx, open, site)?),
            Fetch(fetch) => self.fetch(ctx, fetch, site)?,
            Close { cursor } => self.close_cursor(ctx, cursor, site)?,
            CurrentOf(plan) => self.current_of(ctx, plan, site)?,
            EndTransaction { commit, chain, changing } => {
                self.chain = *chain;
                return self.end_transaction(ctx, *commit, *changing, site);
            }
            Loop(looping) => return self.looping(ctx, looping, site),
            Leave { exit, target, when } => {
                let flow = if *exit { Flow::Exit(*target) } else { Flow::Continue(*target) };
                return self.leave_when(ctx, flow, when.as_ref(), site);
            }
            Return => return Ok(Flow::Return),
            ReturnColumns => return self.give_columns(ctx).map(|()| Flow::Return),
            ReturnRow { values } => return self.return_row(ctx, values, site),
            ReturnCast { value, register, cast } => {
                return self.return_cast(ctx, value, *register, cast, site);
            }
            ReturnRecord { value, width } => {
                return self.return_record(ctx, value, *width, site);
            }
            NextColumns => self.send_columns(ctx)?,
            NextRow { values } => self.send_values(ctx, values, site)?,
            NextRecord { value, width } => self.send_record(ctx, value, *width, site)?,
            ReturnQuery { statement, spread } => self.return_query(ctx, statement, *spread, site)?,
            FirstRow { statement, spread } => {
                return self.first_row(ctx, statement, *spread, site);
            }
            Sql { statement, into } => self.sql(ctx, statement, into.as_ref(), site)?,
            Perform(statement) => self.perform(ctx, statement, site)?,
            Call { routine, args, targets, text } => {
                return self.call(ctx, routine, args, (targets.as_ref(), text), site);
            }
            TakeSettings => return self.take_settings(ctx, site),
            Dynamic(dynamic) => return self.dynamic(ctx, dynamic, site),
            Command { text, written, tag, params, begins } => {
                let command = command_of(ctx, (text, written), params, *begins);
                return self.command(ctx, command, tag, site);
            }
            Notify { notification, text } => self.notify(ctx, notification, text, site)?,
            Raise(raise) => self.raise(ctx, raise, site)?,
            Assert { condition, message } => self.assert(ctx, condition, message.as_ref(), site)?,
            GetDiagnostics { items, stacked } => self.get_diagnostics(ctx, items, *stacked, site)?,
            Shared(shared) => return self.operation(ctx, shared),
            Hoisted { calls, statement } => return self.hoisted(ctx, calls, statement),
            Fail { error } if native::is_outdated(error) => return Err(Stop::Recompile.into()),
            Fail { error } => return Err(self.at(error.as_ref().clone().into(), site)),
        }
        Ok(Flow::Next)
    }

    /// Adds this routine's line to an error that arose at a statement of its own.
    #[cold]
    pub(crate) fn at(&self, error: ExecError, site: Site) -> ExecError {
        match error {
            ExecError::Sql(error) => ExecError::Sql(self.program.add_context(error, Some(site))),
            stop @ ExecError::Stop(_) => stop,
        }
    }

    /// Evaluates a condition; NULL does not hold.
    pub(crate) fn holds(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        condition: &Compiled,
        site: Site,
    ) -> ExecResult<bool> {
        let value = condition(ctx).map_err(|e| self.at(e, site))?;
        self.settled(ctx, site);
        Ok(is_true(&value))
    }

    fn if_statement(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        arms: &[(Expression, Vec<Operation>)],
        otherwise: &[Operation],
        site: Site,
    ) -> ExecResult<Flow> {
        let from = if self.resuming { self.place_in_list() } else { 0 };
        for (arm, (condition, body)) in arms.iter().enumerate().skip(from) {
            if self.resuming || self.holds(ctx, &condition.run, site)? {
                return self.arm(ctx, arm, body);
            }
        }
        self.arm(ctx, arms.len(), otherwise)
    }

    /// EXIT or CONTINUE, if the condition holds.
    fn leave_when(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        flow: Flow,
        when: Option<&Expression>,
        site: Site,
    ) -> ExecResult<Flow> {
        if let Some(when) = when
            && !is_true(&(when.run)(ctx).map_err(|e| self.at(e, site))?)
        {
            return Ok(Flow::Next);
        }
        Ok(flow)
    }

    fn notify(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        notification: &Notification,
        text: &str,
        site: Site,
    ) -> ExecResult<()> {
        let noted = ctx.effects_mut().notifications.add(notification.clone());
        noted.map_err(|error| self.in_statement(error.into(), Some(text), site))
    }

    fn block(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        number: u32,
        body: &[Operation],
        handlers: Option<&Handlers>,
    ) -> ExecResult<Flow> {
        let flow = match handlers {
            None => self.operations(ctx, body)?,
            Some(handlers) => self.guarded(ctx, body, handlers)?,
        };
        Ok(if flow == Flow::Exit(number) { Flow::Next } else { flow })
    }

    pub(crate) fn set_found(&mut self, ctx: &mut ExecContext<'_, '_>, rows: u64) {
        self.row_count = rows;
        ctx.variables[self.program.found as usize].set(Datum::Bool(rows > 0));
    }
}

/// A statement that the session runs, with the values of what it calls `$1` and so on.
fn command_of(
    ctx: &ExecContext<'_, '_>,
    (text, written): (&Arc<str>, &Arc<str>),
    params: &[(Oid, u32)],
    begins: bool,
) -> Command {
    let value = |(ty, register): &(Oid, u32)| (*ty, ctx.variables[*register as usize].clone());
    let params = params.iter().map(value).collect();
    Command { text: text.clone(), written: written.clone(), params, within: Vec::new(), begins }
}
