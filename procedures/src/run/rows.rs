//! SQL statements of a body: where their rows go.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_planner::native::cursor::CursorRows;
use archipel_planner::native::{
    CompiledRoutine, CompiledStatement, ExecContext, ExecError, ExecResult, RowSink,
};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::ExtraCheck;
use smallvec::SmallVec;

use super::operation::*;
use super::pause::{Paused, Resume, Shown};
use super::{Flow, Invocation, context, null_refused};
use crate::registry::program_of;

/// A row on its way between a statement and registers.
pub type Row = SmallVec<[Datum; 8]>;

/// Keeps the first row, in a buffer the invocation lends, and counts up to a limit.
pub(super) struct FirstRow {
    pub row: Vec<Datum>,
    pub count: u64,
    limit: u64,
}

impl FirstRow {
    pub fn new(limit: u64, mut row: Vec<Datum>) -> FirstRow {
        row.clear();
        FirstRow { row, count: 0, limit }
    }
}

impl RowSink for FirstRow {
    #[inline]
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        if self.count == 0 {
            self.row.extend_from_slice(row);
        }
        self.count += 1;
        Ok(if self.count >= self.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    #[inline]
    fn given(&mut self, row: &mut [Datum]) -> ExecResult<ControlFlow<()>> {
        if self.count == 0 {
            self.row.extend(row.iter_mut().map(Datum::take));
        }
        self.count += 1;
        Ok(if self.count >= self.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// Counts rows.
#[derive(Default)]
pub(super) struct Counted(pub u64);

impl RowSink for Counted {
    fn row(&mut self, _row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.0 += 1;
        Ok(ControlFlow::Continue(()))
    }
}

/// Keeps all rows, flat.
#[derive(Default)]
pub(super) struct Gathered {
    pub values: Vec<Datum>,
    pub rows: usize,
}

impl Gathered {
    /// How many of the rows of a query that has failed a loop goes over before it meets the error:
    /// PostgreSQL fetches them one by one where the loop may end its transaction, else ten and then
    /// fifty at a time.
    pub fn met_before_error(&self, ctx: &ExecContext<'_, '_>) -> usize {
        match self.rows.checked_sub(10) {
            _ if ctx.may_end => self.rows,
            Some(more) => 10 + more / 50 * 50,
            None => 0,
        }
    }

    /// The rows, of so many columns.
    pub fn rows(self, width: usize) -> CursorRows {
        CursorRows { values: self.values, width, count: self.rows }
    }
}

impl RowSink for Gathered {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.values.extend_from_slice(row);
        self.rows += 1;
        Ok(ControlFlow::Continue(()))
    }

    fn given(&mut self, row: &mut [Datum]) -> ExecResult<ControlFlow<()>> {
        self.values.extend(row.iter_mut().map(Datum::take));
        self.rows += 1;
        Ok(ControlFlow::Continue(()))
    }
}

/// Passes rows on, never asking to stop.
struct Through<'s> {
    sink: &'s mut dyn RowSink,
    rows: u64,
    /// Whether the only column is the row that is answered.
    spread: bool,
}

impl RowSink for Through<'_> {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.rows += 1;
        let row = match row {
            [Datum::Record(fields)] if self.spread => &fields[..],
            _ if self.spread => &[],
            row => row,
        };
        let _: ControlFlow<()> = self.sink.row(row)?;
        Ok(ControlFlow::Continue(()))
    }

    fn given(&mut self, row: &mut [Datum]) -> ExecResult<ControlFlow<()>> {
        if self.spread {
            return self.row(row);
        }
        self.rows += 1;
        let _: ControlFlow<()> = self.sink.given(row)?;
        Ok(ControlFlow::Continue(()))
    }
}

/// Stores the columns of a row, taking them out of it; missing ones are NULL, surplus ones stay.
#[inline]
pub(super) fn store_row(
    ctx: &mut ExecContext<'_, '_>,
    targets: &Targets,
    row: &mut [Datum],
) -> ExecResult<()> {
    for (position, name) in &targets.not_null {
        if row.get(*position as usize).is_none_or(Datum::is_null) {
            return Err(ExecError::Sql(null_refused(name)));
        }
    }
    for (position, register) in targets.registers.iter().enumerate() {
        let variable = &mut ctx.variables[*register as usize];
        match row.get_mut(position) {
            Some(value) => std::mem::swap(variable, value),
            None => *variable = Datum::Null,
        }
    }
    there_is_a_row(ctx, targets);
    Ok(())
}

/// Sets what says that a row is there, and of which structure.
#[inline]
fn there_is_a_row(ctx: &mut ExecContext<'_, '_>, targets: &Targets) {
    if let Some(present) = targets.present {
        ctx.variables[present as usize].set(Datum::Bool(true));
    }
    if let Some((tag, number)) = targets.tag {
        ctx.variables[tag as usize].set(Datum::Int4(number));
    }
}

/// What a loop without a row leaves in its variables: NULL in their structure.
pub(super) fn store_nulls(ctx: &mut ExecContext<'_, '_>, targets: &Targets) {
    for register in &targets.registers {
        ctx.variables[*register as usize] = Datum::Null;
    }
    if let Some((tag, number)) = targets.tag {
        ctx.variables[tag as usize].set(Datum::Int4(number));
    }
}

/// What INTO STRICT tells of the parameters, where that is asked for.
#[cold]
fn with_parameters(
    ctx: &mut ExecContext<'_, '_>,
    error: SqlError,
    parameters: &StrictParameters,
) -> ExecResult<SqlError> {
    let session = ctx.functions.session;
    let by_setting = || session.setting("plpgsql.print_strict_params").as_deref() == Some("on");
    if parameters.values.is_empty() || !parameters.told.unwrap_or_else(by_setting) {
        return Ok(error);
    }
    let mut told = Vec::new();
    for (name, value) in &parameters.values {
        told.push(match value(ctx)? {
            Datum::Text(text) => format!("{name} = '{}'", text.replace('\'', "''")),
            _ => format!("{name} = NULL"),
        });
    }
    Ok(error.with_detail(format!("parameters: {}", told.join(", "))))
}

impl Invocation<'_, '_> {
    /// Runs a statement; an error gets the statement's text and this routine's line.
    pub(super) fn run_statement(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        statement: &SqlStatement,
        sink: &mut dyn RowSink,
        site: Site,
    ) -> ExecResult<u64> {
        let text = statement.text.as_deref();
        self.query(ctx, text, site, |ctx| statement.compiled.run(ctx, sink))
    }

    /// Runs what CONTEXT lines name by the text of a statement.
    pub(super) fn query<T>(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        text: Option<&str>,
        site: Site,
        run: impl FnOnce(&mut ExecContext<'_, '_>) -> ExecResult<T>,
    ) -> ExecResult<T> {
        let told = match text {
            Some(text) if self.telling => context::enter(ctx, &context::statement_line(text)),
            _ => None,
        };
        let result = run(ctx);
        self.queried(ctx, result, told, text, site)
    }

    /// What follows a query: its line, to the error or to the notices.
    fn queried<T>(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        result: ExecResult<T>,
        told: Option<usize>,
        text: Option<&str>,
        site: Site,
    ) -> ExecResult<T> {
        context::leave(ctx, told);
        if context::notices_wait(ctx) {
            if let Some(text) = text {
                context::notices_in(ctx, &context::statement_line(text));
            }
            self.settle(ctx, site);
        }
        result.map_err(|error| self.in_statement(error, text, site))
    }

    #[cold]
    pub(super) fn in_statement(&self, error: ExecError, text: Option<&str>, site: Site) -> ExecError {
        let error = match (error, text) {
            (ExecError::Sql(error), Some(text)) => context::of_statement(error, text).into(),
            (error, _) => error,
        };
        self.at(error, site)
    }

    /// Runs a query whose rows are the routine's.
    pub(super) fn run_to_sink(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        statement: &SqlStatement,
        spread: bool,
        site: Site,
    ) -> ExecResult<u64> {
        let text = statement.text.as_deref();
        let told = match text {
            Some(text) if self.telling => context::enter(ctx, &context::statement_line(text)),
            _ => None,
        };
        let mut through = Through { sink: self.sink, rows: 0, spread };
        let result = statement.compiled.run(ctx, &mut through);
        let rows = through.rows;
        self.sent += rows;
        self.queried(ctx, result, told, text, site)?;
        Ok(rows)
    }

    /// A SQL statement, with or without INTO.
    pub(super) fn sql(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        statement: &SqlStatement,
        into: Option<&IntoPlan>,
        site: Site,
    ) -> ExecResult<()> {
        let Some(into) = into else {
            let rows = self.run_statement(ctx, statement, &mut Counted::default(), site)?;
            self.set_found(ctx, rows);
            return Ok(());
        };
        if into.direct {
            return self.row_into(ctx, statement, into, site);
        }
        let limit = match (into.modifies, into.strict) {
            (true, _) => u64::MAX,
            (false, true) => 2,
            (false, false) => self.rows_wanted(ctx),
        };
        let mut first = FirstRow::new(limit, std::mem::take(&mut self.buffer));
        self.run_statement(ctx, statement, &mut first, site)?;
        self.store_first(ctx, into, first, site)
    }

    /// A query of one row by its key, whose columns go into variables as they are.
    fn row_into(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        statement: &SqlStatement,
        into: &IntoPlan,
        site: Site,
    ) -> ExecResult<()> {
        let (text, targets) = (statement.text.as_deref(), &into.targets);
        let found =
            self.query(ctx, text, site, |ctx| statement.compiled.read_row(ctx, &targets.registers))?;
        if !found {
            let none = FirstRow::new(1, std::mem::take(&mut self.buffer));
            return self.store_first(ctx, into, none, site);
        }
        there_is_a_row(ctx, targets);
        self.set_found(ctx, 1);
        Ok(())
    }

    /// What INTO does with what came.
    pub(super) fn store_first(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        into: &IntoPlan,
        mut first: FirstRow,
        site: Site,
    ) -> ExecResult<()> {
        if first.count == 0 && into.strict {
            let error = SqlError::new(SqlState::NO_DATA_FOUND, "query returned no rows");
            let error = with_parameters(ctx, error, &into.parameters)?;
            return Err(self.at(error.into(), site));
        }
        if first.count > 1 && (into.strict || into.modifies) {
            let error = SqlError::new(SqlState::TOO_MANY_ROWS, "query returned more than one row")
                .with_hint("Make sure the query returns a single row, or use LIMIT 1.");
            let error = with_parameters(ctx, error, &into.parameters)?;
            return Err(self.at(error.into(), site));
        }
        let rows = first.count.min(1);
        if first.count > 1 {
            let error = SqlError::new(SqlState::TOO_MANY_ROWS, "query returned more than one row")
                .with_hint("Make sure the query returns a single row, or use LIMIT 1.");
            let error = with_parameters(ctx, error, &into.parameters)?;
            self.checked(ctx, ExtraCheck::TooManyRows, error, site)?;
        }
        if into.surplus != 0 && rows > 0 {
            self.check_columns(ctx, into.surplus, site)?;
        }
        for IntoCast { place, scratch, cast } in into.casts.iter().filter(|_| rows > 0) {
            if let Some(value) = first.row.get_mut(*place) {
                ctx.variables[*scratch as usize] = value.take();
                *value = cast(ctx).map_err(|e| self.at(e, site))?;
            }
        }
        store_row(ctx, &into.targets, &mut first.row).map_err(|e| self.at(e, site))?;
        self.buffer = first.row;
        self.set_found(ctx, rows);
        Ok(())
    }

    /// What a call runs, and where it goes on if it has stopped before.
    pub(super) fn program_of_call(
        &mut self,
        routine: &Arc<dyn CompiledRoutine>,
        site: Site,
    ) -> ExecResult<(Arc<Program>, Option<Paused>)> {
        let resumed = self.resumed_call();
        let now = program_of(routine).map_err(|e| self.at(e.into(), site))?;
        let Some((before, paused)) = resumed else { return Ok((now, None)) };
        // In the form this routine was compiled with, if there the call is at the same place.
        match (!Arc::ptr_eq(&now, &before)).then(|| paused.renewed(&before, &now)).flatten() {
            Some(renewed) => Ok((now, Some(renewed))),
            None => Ok((before, Some(paused))),
        }
    }

    /// CALL of another procedure.
    pub(super) fn call(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        routine: &Arc<dyn CompiledRoutine>,
        args: &[Compiled],
        (targets, text): (Option<&Targets>, &str),
        site: Site,
    ) -> ExecResult<Flow> {
        let mut values = Row::new();
        let (program, paused) = self.program_of_call(routine, site)?;
        if paused.is_none() {
            for arg in args {
                values.push(arg(ctx).map_err(|e| self.at(e, site))?);
            }
        }
        let mut first = FirstRow::new(u64::MAX, Vec::new());
        let paused = self.query(ctx, Some(text), site, |ctx| {
            program.invoke_until_pause(ctx, &values, &mut first, paused)
        })?;
        if let Some(paused) = paused {
            return Ok(self.pause_below(program, paused, Some(text), site));
        }
        if let Some(targets) = targets {
            store_row(ctx, targets, &mut first.row).map_err(|e| self.at(e, site))?;
        }
        Ok(Flow::Next)
    }

    /// EXECUTE.
    pub(super) fn dynamic(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        plan: &DynamicPlan,
        site: Site,
    ) -> ExecResult<Flow> {
        // Else only a command can have stopped here.
        if self.resuming && !self.resumes_call() {
            return self.after_command(site);
        }
        match (&plan.into, plan.returns) {
            (Some(into), _) => {
                // All of its rows are made, and counted, though one at most is kept.
                let mut first = FirstRow::new(u64::MAX, Vec::new());
                if let ControlFlow::Break(flow) = self.run_dynamic(ctx, plan, &mut first, site)? {
                    return Ok(flow);
                }
                let rows = first.count;
                if !into.strict {
                    first.count = rows.min(1);
                }
                let found = ctx.variables[self.program.found as usize].clone();
                // Here PostgreSQL gives no hint.
                let stored = self.store_first(ctx, into, first, site);
                stored.map_err(|error| match error {
                    ExecError::Sql(mut error) if error.state() == SqlState::TOO_MANY_ROWS => {
                        error.fields_mut().hint = None;
                        ExecError::Sql(error)
                    }
                    error => error,
                })?;
                // EXECUTE leaves FOUND as it was.
                ctx.variables[self.program.found as usize] = found;
                self.row_count = rows;
            }
            (None, true) => {
                let mut rows = Gathered::default();
                let width = match self.run_dynamic(ctx, plan, &mut rows, site)? {
                    ControlFlow::Continue((_, width)) => width,
                    ControlFlow::Break(flow) => return Ok(flow),
                };
                for row in rows.values.chunks_mut(width.max(1)) {
                    self.send(row)?;
                }
                self.set_found(ctx, rows.rows as u64);
            }
            (None, false) if self.resuming => {
                match self.run_dynamic(ctx, plan, &mut Counted::default(), site)? {
                    ControlFlow::Continue((rows, _)) => self.row_count = rows,
                    ControlFlow::Break(flow) => return Ok(flow),
                }
            }
            (None, false) => {
                let (text, params) = self.dynamic_inputs(ctx, plan, site)?;
                let bound = plan.binder.bind(&text, ctx.functions.session);
                if bound.is_err()
                    && let Some(notification) = plan.binder.notification(&text)
                {
                    self.row_count = 0;
                    let noted = notification
                        .and_then(|notification| ctx.effects_mut().notifications.add(notification));
                    noted.map_err(|error| self.in_statement(error.into(), Some(&text), site))?;
                    return Ok(Flow::Next);
                }
                if bound.is_err()
                    && let Some((command, tag)) = plan.binder.command(&text, &params)
                {
                    self.row_count = 0;
                    // A text without a statement has nothing to run.
                    return match tag {
                        "" => Ok(Flow::Next),
                        tag => self.command(ctx, command, tag, site),
                    };
                }
                let inputs = (text, params);
                match self.run_text(ctx, (plan, bound), inputs, &mut Counted::default(), site)? {
                    ControlFlow::Continue((rows, _)) => self.row_count = rows,
                    ControlFlow::Break(flow) => return Ok(flow),
                }
            }
        }
        Ok(Flow::Next)
    }

    /// The text of EXECUTE and its parameters.
    pub(super) fn dynamic_inputs(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        plan: &DynamicPlan,
        site: Site,
    ) -> ExecResult<(Arc<str>, Vec<Datum>)> {
        let text = match (plan.text)(ctx).map_err(|e| self.at(e, site))? {
            Datum::Text(text) => Arc::from(&*text),
            _ => {
                let error = SqlError::new(
                    SqlState::NULL_VALUE_NOT_ALLOWED,
                    "query string argument of EXECUTE is null",
                );
                return Err(self.at(error.into(), site));
            }
        };
        let mut params = Vec::with_capacity(plan.using.len());
        for value in &plan.using {
            params.push(value(ctx).map_err(|e| self.at(e, site))?);
        }
        self.text_of(ctx, plan, (text, params), site)
    }

    /// Runs the text of EXECUTE, or goes on with it: answers rows and columns.
    pub(super) fn run_dynamic(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        plan: &DynamicPlan,
        sink: &mut dyn RowSink,
        site: Site,
    ) -> ExecResult<ControlFlow<Flow, (u64, usize)>> {
        if let Some((text, before, paused)) = self.resumed_text() {
            let now = plan.binder.pieces(&text);
            let now = now.map_err(|error| self.in_statement(error, Some(&text), site))?;
            let renewed = now.and_then(|now| Some((paused.renewed(&before, &now.program)?, now)));
            let (paused, pieces) = match renewed {
                Some(renewed) => renewed,
                None => {
                    let width = before.width as usize;
                    (paused, Arc::new(Pieces { program: before, width }))
                }
            };
            return self.run_pieces(ctx, (plan, &pieces), &text, (&[], Some(paused)), sink, site);
        }
        let (text, params) = self.dynamic_inputs(ctx, plan, site)?;
        let bound = plan.binder.bind(&text, ctx.functions.session);
        if bound.is_err()
            && plan.into.is_some()
            && let Some(several) = plan.binder.several(&text, ctx.functions.session)
        {
            return self.run_several(ctx, several, (text, params), sink, site);
        }
        self.run_text(ctx, (plan, bound), (text, params), sink, site)
    }

    /// Runs the statements of a text; the last one answers.
    fn run_several(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        several: ExecResult<Vec<Arc<CompiledStatement>>>,
        (text, params): (Arc<str>, Vec<Datum>),
        sink: &mut dyn RowSink,
        site: Site,
    ) -> ExecResult<ControlFlow<Flow, (u64, usize)>> {
        let several = several.map_err(|error| self.in_text(error, &text, site))?;
        self.tell_from_now_on(ctx, site);
        let outer = std::mem::replace(&mut ctx.params, params);
        let answered = self.query(ctx, Some(&text), site, |ctx| {
            let mut answered = (0, 0);
            for (place, statement) in several.iter().enumerate() {
                let rows = match place + 1 == several.len() {
                    true => statement.run(ctx, sink)?,
                    false => statement.run(ctx, &mut Counted::default())?,
                };
                answered = (rows, statement.columns.len());
            }
            Ok(answered)
        });
        ctx.params = outer;
        Ok(ControlFlow::Continue(answered?))
    }

    fn run_text(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        (plan, bound): (&DynamicPlan, ExecResult<Arc<CompiledStatement>>),
        (text, params): (Arc<str>, Vec<Datum>),
        sink: &mut dyn RowSink,
        site: Site,
    ) -> ExecResult<ControlFlow<Flow, (u64, usize)>> {
        let statement = bound.map_err(|error| self.in_text(error, &text, site))?;
        self.tell_from_now_on(ctx, site);
        if ctx.in_pieces && ctx.may_command {
            let pieces = plan.binder.pieces(&text);
            if let Some(pieces) = pieces.map_err(|error| self.in_statement(error, Some(&text), site))? {
                return self.run_pieces(ctx, (plan, &pieces), &text, (&params, None), sink, site);
            }
        }
        let shown = (!plan.looped).then_some(&*text);
        let outer = std::mem::replace(&mut ctx.params, params);
        let result = self.query(ctx, shown, site, |ctx| statement.run(ctx, sink));
        ctx.params = outer;
        Ok(ControlFlow::Continue((result?, statement.columns.len())))
    }

    /// An error of binding a text; what EXECUTE itself refuses is not said of the text.
    pub(super) fn in_text(&self, error: ExecError, text: &str, site: Site) -> ExecError {
        let refusals = ["EXECUTE of ", "INTO used with a command", "cannot open "];
        let own = match &error {
            ExecError::Sql(error) => refusals.iter().any(|words| error.message().starts_with(words)),
            ExecError::Stop(_) => false,
        };
        self.in_statement(error, (!own).then_some(text), site)
    }

    /// Runs a text in the form that can stop, or goes on with it.
    fn run_pieces(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        (plan, pieces): (&DynamicPlan, &Pieces),
        text: &str,
        (params, paused): (&[Datum], Option<Paused>),
        sink: &mut dyn RowSink,
        site: Site,
    ) -> ExecResult<ControlFlow<Flow, (u64, usize)>> {
        let mut through = Through { sink, rows: 0, spread: false };
        let program = &pieces.program;
        let shown = (!plan.looped).then_some(text);
        let paused = self
            .query(ctx, shown, site, |ctx| program.invoke_until_pause(ctx, params, &mut through, paused))?;
        Ok(match paused {
            Some(paused) => {
                let flow = self.pause_below(program.clone(), paused, Some(text), site);
                if let (true, Some(Resume::Call(.., shown))) = (plan.looped, self.places.last_mut()) {
                    *shown = Shown::No;
                }
                ControlFlow::Break(flow)
            }
            None => ControlFlow::Continue((through.rows, pieces.width)),
        })
    }
}
