//! SQL statements of a body: where their rows go.

use std::sync::Arc;

use archipel_planner::native::{CompiledRoutine, ExecContext, ExecError, ExecResult, RowSink};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::ExtraCheck;

use super::condition::null_refused;
use super::ending::Flow;
use super::invocation::Invocation;
use super::late::program_of;
use super::operation::expression::Compiled;
use super::operation::into::{IntoCast, IntoPlan, StrictParameters};
use super::operation::site::Site;
use super::operation::*;
use super::pause::Paused;
use super::sink::{Counted, FirstRow, Row, Through};
use super::{context, context_line};

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
            None => *variable = targets.without_row.clone(),
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
        ctx.variables[*register as usize] = targets.without_row.clone();
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
            Some(text) if self.telling => context::enter(ctx, &context_line::statement_line(text)),
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
                context::notices_in(ctx, &context_line::statement_line(text));
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

    /// PERFORM: the rows are counted and forgotten.
    pub(super) fn perform(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        statement: &SqlStatement,
        site: Site,
    ) -> ExecResult<()> {
        let mut counted = Counted::default();
        self.run_statement(ctx, statement, &mut counted, site)?;
        self.set_found(ctx, counted.0);
        Ok(())
    }

    /// Assigns fields, which are evaluated first and stored then.
    pub(super) fn assign_row(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        targets: &Targets,
        values: &[Compiled],
        site: Site,
    ) -> ExecResult<()> {
        if let (Some(name), true) = (&targets.whole_not_null, values.is_empty()) {
            return Err(self.at(null_refused(name).into(), site));
        }
        let mut row = Row::new();
        for value in values {
            row.push(value(ctx).map_err(|e| self.at(e, site))?);
        }
        store_row(ctx, targets, &mut row).map_err(|e| self.at(e, site))?;
        Ok(())
    }

    /// Assigns a record's fields.
    pub(super) fn assign_record(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        targets: &Targets,
        value: &Compiled,
        site: Site,
    ) -> ExecResult<()> {
        let value = value(ctx).map_err(|e| self.at(e, site))?;
        if let (true, Some(name)) = (value.is_null(), &targets.whole_not_null) {
            return Err(self.at(null_refused(name).into(), site));
        }
        let mut row: Row = match &value {
            Datum::Record(fields) => fields.iter().cloned().collect(),
            _ => Row::new(),
        };
        store_row(ctx, targets, &mut row).map_err(|e| self.at(e, site))?;
        if let (Some(present), true) = (targets.present, value.is_null()) {
            ctx.variables[present as usize] = Datum::Null;
        }
        Ok(())
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
            Some(text) if self.telling => context::enter(ctx, &context_line::statement_line(text)),
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
        if let Some(stored) = first.stored.as_ref().filter(|_| rows > 0) {
            stored.convert(ctx, &mut first.row).map_err(|e| self.at(e, site))?;
        }
        store_row(ctx, &into.targets, &mut first.row).map_err(|e| self.at(e, site))?;
        if let Some(stored) = first.stored.as_ref().filter(|_| rows == 0) {
            stored.leave_structure(ctx, &into.targets);
        }
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
}
