//! Running a compiled routine: a walk over a small tree of operations, the variables being
//! registers in the context.
//!
//! - [`operation`] the tree
//! - this file:    an invocation, statements, blocks and handlers
//! - [`loops`]     the loops
//! - [`rows`]      what SQL statements answer, and where it goes
//! - [`cursor`]    OPEN, FETCH, CLOSE, loops over cursors
//! - [`dynamic`]   what EXECUTE knows of the text that it will run
//! - [`element`]   assignment to elements and slices of arrays; [`append`] to the end of a value
//! - [`machine`]   loops over numbers, texts and arrays, without a walk; its [`instruction`]s,
//!   the [`strips`] of its texts, the arrays it has [`held`]
//! - [`raise`]     RAISE, ASSERT, diagnostics
//! - [`context`]   CONTEXT lines; [`checked`] what extra checks find
//! - [`guard`]     blocks with an EXCEPTION clause
//! - [`hoisted`]   calls made before the statements they stand in
//! - [`pause`]     COMMIT and ROLLBACK: stopping there, and going on; [`renewed`] in another form
//!
//! Nothing here parses, plans or looks up a name. Errors get their CONTEXT lines on the way
//! out, at the statement where they arose: the good path pays nothing for them.
//!
//! Invariant: `ExecError::Stop` passes through every block untouched, but for a cancellation where a
//! handler is for `query_canceled`. Only SQL conditions are caught, and what a block did before its handler runs is rolled back to its savepoint.

mod ahead;
mod append;
mod checked;
pub(crate) mod context;
mod cursor;
mod dynamic;
mod element;
pub(crate) mod found;
mod guard;
mod held;
mod hoisted;
pub(crate) mod instruction;
mod loops;
pub(crate) mod machine;
pub mod operation;
pub mod pause;
mod raise;
pub mod renewed;
mod rows;
mod strips;

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::Stop;
use archipel_planner::native::{self, ExecContext, ExecError, ExecResult, RowSink};
use archipel_sql::catalog::Language;
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::stack;
use archipel_sql::types::Oid;

use operation::*;
use pause::{Command, Left, Paused, Resume, Within};
pub use rows::Row;

/// How a statement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    /// EXIT of the loop or block with this number.
    Exit(u32),
    /// CONTINUE of the loop with this number.
    Continue(u32),
    Return,
    /// The transaction ends here (COMMIT if set): each statement around leaves its place in
    /// [`Invocation::places`].
    Pause(bool),
}

/// One call of a routine.
pub(crate) struct Invocation<'p, 's> {
    pub program: &'p Program,
    pub sink: &'s mut dyn RowSink,
    /// ROW_COUNT.
    pub row_count: u64,
    /// Errors whose handlers are running, innermost last.
    pub errors: Vec<SqlError>,
    /// Rows sent to the sink.
    pub sent: u64,
    /// Lent to statements with INTO.
    pub buffer: Vec<Datum>,
    /// Where the run stands, innermost first: filled as it stops, emptied as it goes on.
    pub places: Vec<Resume>,
    /// Whether it is on its way back to where it stopped.
    pub resuming: bool,
    /// Where it has ended its transaction, or left a command.
    pub ended_at: Site,
    /// What it has left to the session.
    pub left: Option<Left>,
    /// Whether the next transaction has the modes of this one.
    pub chain: bool,
    /// What became of that, if it has failed: the statement's text and the error.
    pub failure: Option<(Arc<str>, SqlError)>,
    /// Whether it tells where it is.
    pub telling: bool,
    /// What makes the result of the value that RETURN has left.
    pub returned: Option<Arc<Compiled>>,
}

impl Program {
    /// Runs the routine on its arguments, in one transaction; result rows go to `sink`.
    pub fn invoke(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        args: &[Datum],
        sink: &mut dyn RowSink,
    ) -> ExecResult<()> {
        let may_end = std::mem::replace(&mut ctx.may_end, false);
        let may_command = std::mem::replace(&mut ctx.may_command, false);
        let result = self.invoke_until_pause(ctx, args, sink, None);
        (ctx.may_end, ctx.may_command) = (may_end, may_command);
        result.map(drop)
    }

    /// Runs the routine until it ends, or ends its transaction where [`ExecContext::may_end`]
    /// lets it; goes on from `paused` if it has stopped before.
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
        let (functions, may_end, may_command) = (ctx.functions, ctx.may_end, ctx.may_command);
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
        ctx.may_end &= own && ctx.subtransactions == 0 && ctx.guards == 0;
        // Rows that have been sent would be lost; in pieces, they are kept.
        ctx.may_command &= ctx.in_pieces || !self.routine.returns_set;
        let borrows = ctx.borrows;
        ctx.borrows |= !as_itself;
        let outer = std::mem::replace(&mut ctx.variables, frame);
        let told = ctx.callers.len();
        ctx.depth += 1;
        if !invocation.resuming {
            ahead::fetch_rows(ctx, &self.ahead);
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
        (ctx.may_end, ctx.may_command) = (may_end, may_command);
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
                context::add_line(error, &line).into()
            }
            (error, _) => error,
        }
    }

    pub(crate) fn send(&mut self, row: &mut [Datum]) -> ExecResult<()> {
        self.sent += 1;
        // A routine runs to its end, whether or not somebody still wants its rows.
        let _: ControlFlow<()> = self.sink.given(row)?;
        Ok(())
    }

    /// Sends the OUT, INOUT or TABLE columns as they stand.
    fn send_columns(&mut self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        let mut row = self.columns(&mut ctx.variables[..], |register| register.clone());
        self.send(&mut row)
    }

    /// The same as the routine's last act: nobody reads them afterwards.
    fn give_columns(&mut self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        if let Some(at) = &self.program.columns_at {
            return self.send(&mut ctx.variables[at.clone()]);
        }
        let mut row = self.columns(&mut ctx.variables[..], Datum::take);
        self.send(&mut row)
    }

    /// The OUT, INOUT or TABLE columns as a row; `read` copies a register, or empties it.
    fn columns(&self, variables: &mut [Datum], read: fn(&mut Datum) -> Datum) -> Row {
        let record = |variables: &mut [Datum], registers: &[u32], present: &Option<u32>| {
            let is_there = present.is_none_or(|present| !variables[present as usize].is_null())
                || registers.iter().any(|register| !variables[*register as usize].is_null());
            let fields: Row =
                registers.iter().map(|register| read(&mut variables[*register as usize])).collect();
            (is_there, fields)
        };
        match &self.program.columns[..] {
            [OutColumn::Row { registers, present, spread: true }] => {
                let (is_there, fields) = record(variables, registers, present);
                // One row of a set is there in any case.
                if is_there || self.program.routine.returns_set { fields } else { Row::new() }
            }
            [OutColumn::Spread(register)] => match read(&mut variables[*register as usize]) {
                Datum::Record(fields) => fields.iter().cloned().collect(),
                _ => {
                    let mut row = Row::new();
                    if self.program.routine.returns_set {
                        row.resize(self.program.width as usize, Datum::Null);
                    }
                    row
                }
            },
            columns => {
                let mut row = Row::new();
                for column in columns {
                    row.push(match column {
                        OutColumn::Register(register) | OutColumn::Spread(register) => {
                            read(&mut variables[*register as usize])
                        }
                        OutColumn::Row { registers, present, .. } => {
                            match record(variables, registers, present) {
                                (true, fields) => Datum::Record(fields.into_vec().into()),
                                (false, _) => Datum::Null,
                            }
                        }
                    });
                }
                row
            }
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
        let site = operation.site;
        if let Some(rights) = &operation.rights {
            let checked = rights.check(ctx.functions.session);
            checked.map_err(|error| self.in_statement(error.into(), operation.text(), site))?;
        }
        match &operation.kind {
            OperationKind::Assign { register, value } => {
                let value = (value.run)(ctx).map_err(|e| self.at(e, site))?;
                ctx.variables[*register as usize].set(value);
            }
            OperationKind::AssignChecked { register, value, name } => {
                let value = (value.run)(ctx).map_err(|e| self.at(e, site))?;
                if value.is_null() {
                    return Err(self.at(null_refused(name).into(), site));
                }
                ctx.variables[*register as usize] = value;
            }
            OperationKind::AppendText { register, parts } => {
                append::text(ctx, *register, parts).map_err(|e| self.at(e, site))?;
            }
            OperationKind::AppendElement { register, element, value } => {
                append::element(ctx, *register, *element, value).map_err(|e| self.at(e, site))?;
            }
            OperationKind::AppendArray { register, value, function } => {
                append::array(ctx, *register, value, *function).map_err(|e| self.at(e, site))?;
            }
            OperationKind::AssignRow { targets: Targets { whole_not_null: Some(name), .. }, values }
                if values.is_empty() =>
            {
                return Err(self.at(null_refused(name).into(), site));
            }
            OperationKind::AssignRow { targets, values } => {
                let mut row = Row::new();
                for value in values {
                    row.push(value(ctx).map_err(|e| self.at(e, site))?);
                }
                rows::store_row(ctx, targets, &mut row).map_err(|e| self.at(e, site))?;
            }
            OperationKind::AssignRecord { targets, value } => {
                let value = value(ctx).map_err(|e| self.at(e, site))?;
                if let (true, Some(name)) = (value.is_null(), &targets.whole_not_null) {
                    return Err(self.at(null_refused(name).into(), site));
                }
                let mut row: Row = match &value {
                    Datum::Record(fields) => fields.iter().cloned().collect(),
                    _ => Row::new(),
                };
                rows::store_row(ctx, targets, &mut row).map_err(|e| self.at(e, site))?;
                if let (Some(present), true) = (targets.present, value.is_null()) {
                    ctx.variables[present as usize] = Datum::Null;
                }
            }
            OperationKind::AssignFound(found) => self.assign_found(ctx, found, site)?,
            OperationKind::AssignElement { register, element, subscripts, value } => {
                self.assign_element(ctx, *register, *element, subscripts, value)
                    .map_err(|e| self.at(e, site))?;
            }
            OperationKind::AssignSlice { register, bounds, value } => {
                self.assign_slice(ctx, *register, bounds, value).map_err(|e| self.at(e, site))?;
            }
            OperationKind::If { arms, otherwise } => {
                let from = if self.resuming { self.place_in_list() } else { 0 };
                for (arm, (condition, body)) in arms.iter().enumerate().skip(from) {
                    if self.resuming || self.holds(ctx, &condition.run, site)? {
                        return self.arm(ctx, arm, body);
                    }
                }
                return self.arm(ctx, arms.len(), otherwise);
            }
            OperationKind::Sequence(body) => return self.operations(ctx, body),
            OperationKind::Block { number, body, handlers } => {
                return self.block(ctx, *number, body, handlers.as_ref());
            }
            OperationKind::Open(open) => {
                self.open_cursor(ctx, open, site)?;
            }
            OperationKind::Fetch(fetch) => self.fetch(ctx, fetch, site)?,
            OperationKind::Close { cursor } => self.close_cursor(ctx, cursor, site)?,
            OperationKind::CurrentOf(plan) => self.current_of(ctx, plan, site)?,
            OperationKind::EndTransaction { commit, chain, changing } => {
                self.chain = *chain;
                return self.end_transaction(ctx, *commit, *changing, site);
            }
            OperationKind::Loop(looping) => return self.looping(ctx, looping, site),
            OperationKind::Leave { exit, target, when } => {
                if let Some(when) = when
                    && !is_true(&(when.run)(ctx).map_err(|e| self.at(e, site))?)
                {
                    return Ok(Flow::Next);
                }
                return Ok(if *exit { Flow::Exit(*target) } else { Flow::Continue(*target) });
            }
            OperationKind::Return => return Ok(Flow::Return),
            OperationKind::ReturnColumns => {
                self.give_columns(ctx)?;
                return Ok(Flow::Return);
            }
            OperationKind::ReturnRow { values } => {
                self.send_values(ctx, values, site)?;
                return Ok(Flow::Return);
            }
            OperationKind::ReturnCast { value, register, cast } => {
                ctx.variables[*register as usize] = value(ctx).map_err(|e| self.at(e, site))?;
                self.returned = Some(cast.clone());
                return Ok(Flow::Return);
            }
            OperationKind::ReturnRecord { value, width } => {
                self.send_record(ctx, value, *width, site)?;
                return Ok(Flow::Return);
            }
            OperationKind::NextColumns => self.send_columns(ctx)?,
            OperationKind::NextRow { values } => self.send_values(ctx, values, site)?,
            OperationKind::NextRecord { value, width } => self.send_record(ctx, value, *width, site)?,
            OperationKind::ReturnQuery { statement, spread } => {
                let sent = self.run_to_sink(ctx, statement, *spread, site)?;
                self.set_found(ctx, sent);
            }
            OperationKind::FirstRow { statement, spread } => {
                let mut first = rows::FirstRow::new(1, std::mem::take(&mut self.buffer));
                self.run_statement(ctx, statement, &mut first, site)?;
                match &mut first.row[..] {
                    [Datum::Record(fields)] if *spread => {
                        let mut row: Row = fields.iter().cloned().collect();
                        self.send(&mut row)?;
                    }
                    // NULL of a composite type.
                    _ if *spread || (first.count == 0 && self.program.width > 1) => self.send(&mut [])?,
                    _ => {
                        if first.count == 0 {
                            first.row.resize(self.program.width.max(1) as usize, Datum::Null);
                        }
                        self.send(&mut first.row)?;
                    }
                }
                return Ok(Flow::Return);
            }
            OperationKind::Sql { statement, into } => self.sql(ctx, statement, into.as_ref(), site)?,
            OperationKind::Perform(statement) => {
                let mut counted = rows::Counted::default();
                self.run_statement(ctx, statement, &mut counted, site)?;
                self.set_found(ctx, counted.0);
            }
            OperationKind::Call { routine, args, targets, text } => {
                return self.call(ctx, routine, args, (targets.as_ref(), text), site);
            }
            OperationKind::TakeSettings => return self.take_settings(ctx, site),
            OperationKind::Dynamic(dynamic) => return self.dynamic(ctx, dynamic, site),
            OperationKind::Command { text, written, tag, params, begins } => {
                let value = |(ty, register): &(Oid, u32)| (*ty, ctx.variables[*register as usize].clone());
                let params = params.iter().map(value).collect();
                let (text, written) = (text.clone(), written.clone());
                let command = Command { text, written, params, within: Vec::new(), begins: *begins };
                return self.command(ctx, command, tag, site);
            }
            OperationKind::Notify { notification, text } => {
                let noted = ctx.effects_mut().notifications.add(notification.clone());
                noted.map_err(|error| self.in_statement(error.into(), Some(text), site))?;
            }
            OperationKind::Raise(raise) => self.raise(ctx, raise, site)?,
            OperationKind::Assert { condition, message } => {
                self.assert(ctx, condition, message.as_ref(), site)?;
            }
            OperationKind::GetDiagnostics { items, stacked } => {
                self.get_diagnostics(ctx, items, *stacked, site)?;
            }
            OperationKind::Shared(shared) => return self.operation(ctx, shared),
            OperationKind::Hoisted { calls, statement } => return self.hoisted(ctx, calls, statement),
            OperationKind::Fail { error } if native::is_outdated(error) => return Err(Stop::Recompile.into()),
            OperationKind::Fail { error } => return Err(self.at(error.as_ref().clone().into(), site)),
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

    fn send_values(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        values: &[Compiled],
        site: Site,
    ) -> ExecResult<()> {
        if let [value] = values {
            let value = value(ctx).map_err(|e| self.at(e, site))?;
            return self.send(&mut [value]);
        }
        let mut row = Row::new();
        for value in values {
            row.push(value(ctx).map_err(|e| self.at(e, site))?);
        }
        self.send(&mut row)
    }

    fn send_record(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        value: &Compiled,
        width: Option<u32>,
        site: Site,
    ) -> ExecResult<()> {
        let value = value(ctx).map_err(|e| self.at(e, site))?;
        let Some(width) = width else {
            return match value {
                Datum::Null if !self.program.routine.returns_set => self.send(&mut []),
                record => self.send(&mut [record]),
            };
        };
        let mut row: Row = match value {
            Datum::Record(fields) => fields.iter().cloned().collect(),
            // NULL is no row: the trigger's own row is dropped.
            _ if self.program.at_end == AtEnd::MissingOfTrigger => return Ok(()),
            // NULL of a composite type, and not a row of NULLs.
            _ if !self.program.routine.returns_set => return self.send(&mut []),
            _ => Row::new(),
        };
        row.resize(width as usize, Datum::Null);
        self.send(&mut row)
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

pub(crate) fn is_true(value: &Datum) -> bool {
    matches!(value, Datum::Bool(true))
}

pub(crate) fn null_refused(name: &str) -> SqlError {
    SqlError::new(
        SqlState::NULL_VALUE_NOT_ALLOWED,
        format!("null value cannot be assigned to variable \"{name}\" declared NOT NULL"),
    )
}
