//! Cursors at run time: see [`archipel_planner::native::cursor`] for what they are.

use std::sync::Arc;

use archipel_planner::native::cursor::OpenCursor;
use archipel_planner::native::{ExecContext, ExecError, ExecResult};
use archipel_sql::ast::FetchDirection;
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};

use super::ending::Flow;
use super::invocation::Invocation;
use super::operation::cursor_plan::{CurrentOfPlan, CursorName, CursorPlace, FetchPlan, Movement};
use super::operation::site::Site;
use super::operation::*;
use super::pause::state::{Resume, RowsLeft};
use super::rows::{store_nulls, store_row};
use super::sink::{Gathered, Row};

/// The name a cursor variable holds.
fn name_in(ctx: &ExecContext<'_, '_>, cursor: &CursorPlace) -> ExecResult<String> {
    match &ctx.variables[cursor.register as usize] {
        Datum::Text(name) => Ok(name.to_string()),
        _ => Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            format!("cursor variable \"{}\" is null", cursor.name),
        )
        .into()),
    }
}

/// Runs a cursor's query. PostgreSQL plans it at once and runs it as its rows are fetched: an error of a
/// row is met where that comes to it.
fn rows_until_error(
    ctx: &mut ExecContext<'_, '_>,
    query: &CursorQuery,
    rows: &mut Gathered,
) -> ExecResult<Option<Arc<SqlError>>> {
    query.compiled.planned()?;
    match query.compiled.run(ctx, rows) {
        Ok(_) => Ok(None),
        Err(ExecError::Sql(error)) if query.is_over_rows => Ok(Some(Arc::new(error))),
        Err(error) => Err(error),
    }
}

impl Invocation<'_, '_> {
    /// OPEN; answers the cursor's name.
    pub(super) fn open_cursor(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        plan: &OpenPlan,
        site: Site,
    ) -> ExecResult<String> {
        let given = match &ctx.variables[plan.cursor.register as usize] {
            Datum::Text(name) => Some(name.to_string()),
            _ => None,
        };
        if let Some(name) = given.as_ref().filter(|name| ctx.effects_mut().cursors.has(name)) {
            let error =
                SqlError::new(SqlState::DUPLICATE_CURSOR, format!("cursor \"{name}\" already in use"));
            return Err(self.at(error.into(), site));
        }
        self.operations(ctx, &plan.arguments)?;
        let mut rows = Gathered::default();
        let (dynamic, failure);
        let opened = plan;
        let query = match &plan.query {
            OpenedQuery::Static(query) => {
                self.require_scrollable(plan, query, site)?;
                failure =
                    self.query(ctx, Some(&query.text), site, |ctx| rows_until_error(ctx, query, &mut rows))?;
                &**query
            }
            OpenedQuery::Dynamic(plan) => {
                let (text, params) = self.dynamic_inputs(ctx, plan, site)?;
                let bound = plan.binder.bind_cursor(&text, ctx.functions.session);
                dynamic = bound.map_err(|e| self.in_text(e.into(), &text, site))?;
                self.require_scrollable(opened, &dynamic, site)?;
                self.tell_from_now_on(ctx, site);
                let outer = std::mem::replace(&mut ctx.params, params);
                let result =
                    self.query(ctx, Some(&text), site, |ctx| rows_until_error(ctx, &dynamic, &mut rows));
                ctx.params = outer;
                failure = result?;
                &*dynamic
            }
        };
        let width = query.compiled.columns.len();
        let backward = plan.scroll.unwrap_or(!query.locks);
        let mut cursor = OpenCursor::new(query.columns.clone(), rows.rows(width), backward);
        (cursor.keys, cursor.locks) = (query.keys.clone(), query.locks);
        (cursor.text, cursor.at) = (query.text.clone(), ctx.functions.now);
        cursor.failure = failure;
        if let (None, Some(refused)) = (&given, &plan.cursor.constant) {
            return Err(self.at(refused.clone().into(), site));
        }
        let name = given.unwrap_or_else(|| {
            let name = ctx.effects_mut().cursors.invent_name();
            ctx.variables[plan.cursor.register as usize] = Datum::text(name.as_str());
            name
        });
        ctx.effects_mut().cursors.open(name.clone(), cursor);
        Ok(name)
    }

    /// A cursor that locks what it reads goes forward only.
    fn require_scrollable(&self, plan: &OpenPlan, query: &CursorQuery, site: Site) -> ExecResult<()> {
        if plan.scroll != Some(true) || !query.locks {
            return Ok(());
        }
        let message = "DECLARE SCROLL CURSOR ... FOR UPDATE/SHARE is not supported";
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .with_detail("Scrollable cursors must be READ ONLY.");
        Err(self.in_statement(error.into(), Some(&query.text), site))
    }

    /// FETCH and MOVE.
    pub(super) fn fetch(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        plan: &FetchPlan,
        site: Site,
    ) -> ExecResult<()> {
        let name = name_in(ctx, &plan.cursor).map_err(|e| self.at(e, site))?;
        ctx.effects_mut().cursors.get(&name).map_err(|e| self.at(e.into(), site))?;
        let direction = match &plan.direction {
            Movement::Fixed(direction) => *direction,
            Movement::Counted(direction, count) => match count(ctx).map_err(|e| self.at(e, site))? {
                Datum::Int4(count) => direction(i64::from(count)),
                _ => {
                    let error = SqlError::new(
                        SqlState::NULL_VALUE_NOT_ALLOWED,
                        "relative or absolute cursor position is null",
                    );
                    return Err(self.at(error.into(), site));
                }
            },
        };
        let moved = ctx.effects_mut().cursors.get_mut(&name).and_then(|cursor| {
            let places = cursor.advance(direction)?;
            let row = places.first().map(|at| cursor.row(*at)[..cursor.columns.len()].to_vec());
            Ok((places.len() as u64, row.unwrap_or_default(), cursor.columns.clone()))
        });
        let (count, row, columns) = moved.map_err(|e| self.at(e.into(), site))?;
        if let Some(into) = &plan.into {
            let (taken, casts) =
                into.casts.of(&columns, ctx.functions.session).map_err(|e| self.at(e, site))?;
            let Some(targets) = into.targets.get(taken) else {
                return Err(SqlError::internal("FETCH into a structure that nobody compiled").into());
            };
            let mut values: Row = match into.gathers && !row.is_empty() {
                true => std::iter::once(Datum::Record(row.into())).collect(),
                false => row.into_iter().collect(),
            };
            for ((value, cast), scratch) in values.iter_mut().zip(casts.iter()).zip(&into.scratch) {
                if let Some(cast) = cast {
                    ctx.variables[*scratch as usize] = value.take();
                    *value = cast(ctx).map_err(|e| self.at(e, site))?;
                }
            }
            store_row(ctx, targets, &mut values).map_err(|e| self.at(e, site))?;
        }
        self.set_found(ctx, count);
        Ok(())
    }

    pub(super) fn close_cursor(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        cursor: &CursorPlace,
        site: Site,
    ) -> ExecResult<()> {
        let name = name_in(ctx, cursor).map_err(|e| self.at(e, site))?;
        ctx.effects_mut().cursors.close(&name).map_err(|e| self.at(e.into(), site))
    }

    /// FOR over a cursor: it is open while the loop runs, and stands on the loop's row. A
    /// transaction that ends in the loop closes it; the loop goes on over its rows.
    pub(super) fn over_cursor(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        looping: &Looping,
        open: &OpenPlan,
        targets: &Targets,
        site: Site,
    ) -> ExecResult<Flow> {
        if let Some(rows) = self.resumed_rows() {
            return self.over_rows(ctx, looping, rows, targets, site);
        }
        let unnamed = ctx.variables[open.cursor.register as usize].is_null();
        let name = self.open_cursor(ctx, open, site)?;
        let mut rounds = 0;
        let mut end = Flow::Next;
        let mut budget = super::loops::Budget::default();
        loop {
            let next = ctx.effects_mut().cursors.get_mut(&name).and_then(|cursor| {
                let places = cursor.advance(FetchDirection::Forward(1))?;
                Ok(places.first().map(|at| (*at, cursor.all_rows().clone())))
            });
            let Some((at, rows)) = next.map_err(|e| self.at(e.into(), site))? else { break };
            rounds += 1;
            let mut row: Row = rows.row(at).iter().cloned().collect();
            store_row(ctx, targets, &mut row).map_err(|e| self.at(e, site))?;
            let flow = self.operations(ctx, &looping.body)?;
            match flow {
                Flow::Next => {}
                Flow::Continue(target) if target == looping.number => {}
                Flow::Exit(target) if target == looping.number => break,
                Flow::Pause(_) => {
                    let failure =
                        ctx.effects_mut().cursors.get(&name).ok().and_then(|cursor| cursor.failure.clone());
                    self.places.push(Resume::Rows(RowsLeft { rows, at, failure }));
                    return Ok(flow);
                }
                other => {
                    end = other;
                    break;
                }
            }
            budget.round(ctx)?;
        }
        if ctx.effects_mut().cursors.has(&name) {
            ctx.effects_mut().cursors.close(&name).map_err(|e| self.at(e.into(), site))?;
        }
        if unnamed {
            ctx.variables[open.cursor.register as usize] = Datum::Null;
        }
        if rounds == 0 {
            store_nulls(ctx, targets);
        }
        self.loop_found(ctx, rounds);
        Ok(end)
    }

    /// Reads the key of the row a cursor stands on.
    pub(super) fn current_of(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        plan: &CurrentOfPlan,
        site: Site,
    ) -> ExecResult<()> {
        let name = match &plan.cursor {
            CursorName::Is(name) => name.to_string(),
            CursorName::In(place) => name_in(ctx, place).map_err(|e| self.at(e, site))?,
        };
        let found = ctx.effects_mut().cursors.get(&name);
        let found = found.and_then(|cursor| cursor.key_of(&name, plan.table, &plan.table_name));
        let key = found.map_err(|e| self.in_statement(e.into(), Some(&plan.text), site))?;
        for (register, value) in plan.registers.iter().zip(key) {
            ctx.variables[*register as usize] = value;
        }
        Ok(())
    }
}
