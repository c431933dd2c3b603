//! EXECUTE, and loops and cursors over it: statements whose text is known only when they run.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_planner::native::{ExecContext, ExecError, ExecResult, RowSink};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::{FunctionContext, quote_literal};
use archipel_sql::io;
use archipel_sql::type_table::{TypeNames, type_info};
use archipel_sql::types::Type;

use super::ending::Flow;
use super::invocation::Invocation;
use super::operation::site::Site;
use super::operation::{BoundText, DynamicPlan, Pieces, PreparedStatement};
use super::pause::Paused;
use super::pause::state::{Resume, Shown};
use super::sink::{Counted, FirstRow, Gathered, Stored, Through};

/// What a text answered.
pub(super) struct Answer {
    pub rows: u64,
    /// Columns of its rows.
    pub width: usize,
    pub stored: Arc<Stored>,
}

impl PreparedStatement {
    /// The statement with values in place of its parameters.
    fn with(&self, values: &[Datum], types: &[Type], context: &FunctionContext<'_>) -> String {
        let mut written = String::new();
        let mut copied = 0;
        for (at, number) in &self.params {
            written.push_str(&self.text[copied..at.start]);
            let ty = types.get(*number).copied().unwrap_or(Type::UNKNOWN);
            // As the session would have it shown, a value may lose digits; types of users' own are
            // known to the session alone.
            let built_in = type_info(ty.oid).is_some();
            let plain = FunctionContext::detached();
            let value = match values.get(*number) {
                None | Some(Datum::Null) => "NULL".to_owned(),
                Some(value) => {
                    quote_literal(&io::to_text(value, ty, if built_in { &plain } else { context }))
                }
            };
            let _ = write!(written, "({value}::{})", context.format_type(ty));
            copied = at.end;
        }
        written.push_str(&self.text[copied..]);
        written
    }
}

impl Invocation<'_, '_> {
    /// What the text of an EXECUTE runs, and with which parameters: of a text that executes a prepared
    /// statement, that statement.
    pub(super) fn text_of(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        plan: &DynamicPlan,
        (text, params): (Arc<str>, Vec<Datum>),
        site: Site,
    ) -> ExecResult<(Arc<str>, Vec<Datum>)> {
        let Some(prepared) = plan.binder.prepared(&text, ctx.functions.session) else {
            return Ok((text, params));
        };
        let prepared = prepared.map_err(|error| self.in_statement(error.into(), Some(&text), site))?;
        let Some(arguments) = &prepared.arguments else {
            return Ok((prepared.text.as_ref().into(), Vec::new()));
        };
        // They know none of the parameters of this EXECUTE.
        let mut first = FirstRow::new(1, Vec::new());
        let _ = self.query(ctx, Some(&text), site, |ctx| arguments.compiled.run(ctx, &mut first))?;
        let written = prepared.with(&first.row, &arguments.types, &ctx.functions);
        Ok((written.into(), Vec::new()))
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
                let answer = match self.run_dynamic(ctx, plan, &mut first, site)? {
                    ControlFlow::Continue(answer) => answer,
                    ControlFlow::Break(flow) => return Ok(flow),
                };
                let rows = first.count;
                first.stored = Some(answer.stored);
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
                    ControlFlow::Continue(answer) => answer.width,
                    ControlFlow::Break(flow) => return Ok(flow),
                };
                for row in rows.values.chunks_mut(width.max(1)) {
                    self.send(row)?;
                }
                self.set_found(ctx, rows.rows as u64);
            }
            (None, false) if self.resuming => {
                match self.run_dynamic(ctx, plan, &mut Counted::default(), site)? {
                    ControlFlow::Continue(answer) => self.row_count = answer.rows,
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
                    ControlFlow::Continue(answer) => self.row_count = answer.rows,
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
            Datum::Text(text) => plan
                .binder
                .standard(&text)
                .map_err(|error| self.in_statement(error.into(), Some(&text), site))?,
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

    /// Runs the text of EXECUTE, or goes on with it.
    pub(super) fn run_dynamic(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        plan: &DynamicPlan,
        sink: &mut dyn RowSink,
        site: Site,
    ) -> ExecResult<ControlFlow<Flow, Answer>> {
        if let Some((text, before, paused)) = self.resumed_text() {
            let now = plan.binder.pieces(&text, ctx.functions.session);
            let now = now.map_err(|error| self.in_statement(error, Some(&text), site))?;
            let renewed = now.and_then(|now| Some((paused.renewed(&before, &now.program)?, now)));
            let (paused, pieces) = match renewed {
                Some(renewed) => renewed,
                None => {
                    let width = before.width as usize;
                    (paused, Arc::new(Pieces { program: before, width, stored: Arc::default() }))
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
        several: ExecResult<Vec<Arc<BoundText>>>,
        (text, params): (Arc<str>, Vec<Datum>),
        sink: &mut dyn RowSink,
        site: Site,
    ) -> ExecResult<ControlFlow<Flow, Answer>> {
        let several = several.map_err(|error| self.in_text(error, &text, site))?;
        self.tell_from_now_on(ctx, site);
        let outer = std::mem::replace(&mut ctx.params, params);
        let answered = self.query(ctx, Some(&text), site, |ctx| {
            let mut rows = 0;
            for (place, text) in several.iter().enumerate() {
                rows = match place + 1 == several.len() {
                    true => text.statement.run(ctx, sink)?,
                    false => text.statement.run(ctx, &mut Counted::default())?,
                };
            }
            Ok(rows)
        });
        ctx.params = outer;
        let rows = answered?;
        let (width, stored) = match several.last() {
            Some(last) => (last.statement.columns.len(), last.stored.clone()),
            None => (0, Arc::default()),
        };
        Ok(ControlFlow::Continue(Answer { rows, width, stored }))
    }

    fn run_text(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        (plan, bound): (&DynamicPlan, ExecResult<Arc<BoundText>>),
        (text, params): (Arc<str>, Vec<Datum>),
        sink: &mut dyn RowSink,
        site: Site,
    ) -> ExecResult<ControlFlow<Flow, Answer>> {
        let bound = bound.map_err(|error| self.in_text(error, &text, site))?;
        self.tell_from_now_on(ctx, site);
        if ctx.is_in_pieces() && ctx.permits.command {
            let pieces = plan.binder.pieces(&text, ctx.functions.session);
            if let Some(pieces) = pieces.map_err(|error| self.in_statement(error, Some(&text), site))? {
                return self.run_pieces(ctx, (plan, &pieces), &text, (&params, None), sink, site);
            }
        }
        let shown = (!plan.looped).then_some(&*text);
        let outer = std::mem::replace(&mut ctx.params, params);
        let result = self.query(ctx, shown, site, |ctx| bound.statement.run(ctx, sink));
        ctx.params = outer;
        let (width, stored) = (bound.statement.columns.len(), bound.stored.clone());
        Ok(ControlFlow::Continue(Answer { rows: result?, width, stored }))
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
    ) -> ExecResult<ControlFlow<Flow, Answer>> {
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
            None => {
                let (width, stored) = (pieces.width, pieces.stored.clone());
                ControlFlow::Continue(Answer { rows: through.rows, width, stored })
            }
        })
    }
}
