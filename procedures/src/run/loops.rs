//! Loops. Each looks at the transaction's budget when it comes round: a long one stops being a
//! one-shot instead of holding its claims.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::Stop;
use archipel_planner::native::prefetch::RowAhead;
use archipel_planner::native::{ExecContext, ExecError, ExecResult};
use archipel_sql::datum::{Array, Datum, Dimension};
use archipel_sql::error::{SqlError, SqlState};

use super::ending::Flow;
use super::invocation::Invocation;
use super::operation::expression::Expression;
use super::operation::site::Site;
use super::operation::*;
use super::pause::state::{Resume, RowsLeft};
use super::prefetch::RoundsAhead;
use super::rows::{store_nulls, store_row};
use super::sink::{Gathered, Row};

/// How often a loop comes round between two looks at the clock.
const ROUNDS_PER_CHECK: u32 = 64;

/// Counts rounds.
#[derive(Default)]
pub(super) struct Budget(u32);

impl Budget {
    #[inline]
    pub(super) fn round(&mut self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        self.0 += 1;
        if self.0.is_multiple_of(ROUNDS_PER_CHECK) { look_around(ctx) } else { Ok(()) }
    }
}

/// Whether to go on.
#[cold]
pub(super) fn look_around(ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
    if ctx.functions.session.interrupted() {
        return Err(ExecError::Stop(Stop::Cancelled));
    }
    if ctx.is_budgeted() && ctx.txn.budget_exceeded() {
        return Err(ExecError::Stop(Stop::Interactive));
    }
    Ok(())
}

#[cold]
pub(super) fn null_array() -> ExecError {
    let message = "FOREACH expression must not be null";
    SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message).into()
}

/// What a loop does after one round.
enum After {
    Again,
    Leave(Flow),
}

/// What comes after a round that ended with `flow`.
fn after(flow: Flow, number: u32) -> After {
    match flow {
        Flow::Next => After::Again,
        Flow::Continue(target) if target == number => After::Again,
        Flow::Exit(target) if target == number => After::Leave(Flow::Next),
        other => After::Leave(other),
    }
}

impl Invocation<'_, '_> {
    pub(super) fn looping(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        looping: &Looping,
        site: Site,
    ) -> ExecResult<Flow> {
        if let Some(machine) = &looping.machine
            && !self.telling
            && !self.resuming
            && let Some(flow) = self.machine(ctx, machine)?
        {
            return Ok(flow);
        }
        let mut budget = Budget(0);
        match &looping.kind {
            LoopKind::Forever => loop {
                if let After::Leave(flow) = after(self.operations(ctx, &looping.body)?, looping.number) {
                    return Ok(flow);
                }
                budget.round(ctx)?;
            },
            LoopKind::While { condition } => {
                // Back in the round that was left, the condition has been seen.
                while self.resuming || self.holds(ctx, &condition.run, site)? {
                    if let After::Leave(flow) = after(self.operations(ctx, &looping.body)?, looping.number) {
                        return Ok(flow);
                    }
                    budget.round(ctx)?;
                }
                Ok(Flow::Next)
            }
            LoopKind::Integer { register, lower, upper, step, reverse, ahead } => {
                let bounds = self.integer_bounds(ctx, (lower, upper, step.as_deref()), site)?;
                self.over_integers(ctx, looping, (*register, *reverse, ahead), bounds)
            }
            LoopKind::Rows { statement, targets } => {
                let rows = self.loop_rows(ctx, statement, site)?;
                self.over_rows(ctx, looping, rows, targets, site)
            }
            LoopKind::Cursor { open, targets } => self.over_cursor(ctx, looping, open, targets, site),
            LoopKind::DynamicRows { plan } => self.over_dynamic_rows(ctx, looping, plan, site),
            LoopKind::Array { array, slice, targets, .. } => {
                if let Some((array, round)) = self.resumed_array() {
                    return self.over_array(ctx, looping, (&array, round), *slice, targets, site);
                }
                let value = array(ctx).map_err(|e| self.at(e, site))?;
                self.settled(ctx, site);
                let Datum::Array(array) = value else { return Err(self.at(null_array(), site)) };
                self.over_array(ctx, looping, (&array, 0), *slice, targets, site)
            }
        }
    }

    /// The bounds of a loop over integers and its step: as they stand where it goes on, else computed.
    fn integer_bounds(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        (lower, upper, step): (&Expression, &Expression, Option<&Expression>),
        site: Site,
    ) -> ExecResult<(i32, i32, i32)> {
        let (lower, upper, step) = match self.resumed_counter() {
            Some(place) => place,
            None => {
                let lower = self.bound(ctx, lower, "lower bound", site)?;
                let upper = self.bound(ctx, upper, "upper bound", site)?;
                let step = match step {
                    Some(step) => self.bound(ctx, step, "BY value", site)?,
                    None => 1,
                };
                (lower, upper, step)
            }
        };
        if step <= 0 {
            let error = SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "BY value of FOR loop must be greater than zero",
            );
            return Err(self.at(error.into(), site));
        }
        Ok((lower, upper, step))
    }

    fn over_integers(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        looping: &Looping,
        (register, reverse, ahead): (u32, bool, &[RowAhead]),
        (lower, upper, step): (i32, i32, i32),
    ) -> ExecResult<Flow> {
        let mut budget = Budget(0);
        let mut at = lower;
        let mut found = 0;
        let mut end = Flow::Next;
        let mut ahead = RoundsAhead::new(ahead);
        let next = |at: i32| {
            let next = if reverse { at.checked_sub(step) } else { at.checked_add(step) };
            next.filter(|&at| if reverse { at >= upper } else { at <= upper })
        };
        while if reverse { at >= upper } else { at <= upper } {
            found = 1;
            if !self.resuming {
                ahead.round(ctx, register, at, next);
                ctx.variables[register as usize].set(Datum::Int4(at));
            }
            if let After::Leave(flow) = after(self.operations(ctx, &looping.body)?, looping.number) {
                if matches!(flow, Flow::Pause(_)) {
                    self.places.push(Resume::Counter { at, upper, step });
                    return Ok(flow);
                }
                end = flow;
                break;
            }
            budget.round(ctx)?;
            let Some(next) = next(at) else { break };
            at = next;
        }
        self.loop_found(ctx, found);
        Ok(end)
    }

    /// The rows of a statement that a loop is over: what is left of them where it goes on.
    fn loop_rows(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        statement: &SqlStatement,
        site: Site,
    ) -> ExecResult<RowsLeft> {
        if let Some(rows) = self.resumed_rows() {
            return Ok(rows);
        }
        let mut rows = Gathered::default();
        let failure = match self.run_statement(ctx, statement, &mut rows, site) {
            Ok(_) => None,
            Err(ExecError::Sql(error)) if rows.met_before_error(ctx) > 0 => {
                rows.rows = rows.met_before_error(ctx);
                Some(Arc::new(error))
            }
            Err(error) => return Err(error),
        };
        let rows = Arc::new(rows.rows(statement.compiled.columns.len()));
        Ok(RowsLeft { rows, at: 0, failure })
    }

    /// FOR … IN EXECUTE.
    fn over_dynamic_rows(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        looping: &Looping,
        plan: &DynamicPlan,
        site: Site,
    ) -> ExecResult<Flow> {
        let inside = self.resumes_call();
        let mut answered = None;
        let resumed = if inside { None } else { self.resumed_rows() };
        let rows = match resumed {
            Some(rows) => rows,
            None => {
                let mut rows = Gathered::default();
                match self.run_dynamic(ctx, plan, &mut rows, site)? {
                    ControlFlow::Continue(answer) => {
                        let rows = Arc::new(rows.rows(answer.width));
                        answered = Some(answer);
                        RowsLeft { rows, at: 0, failure: None }
                    }
                    ControlFlow::Break(flow) => return Ok(flow),
                }
            }
        };
        let Some(into) = &plan.into else { return Ok(Flow::Next) };
        let end = self.over_rows(ctx, looping, rows, &into.targets, site)?;
        if let Some(answer) = answered.filter(|answer| answer.rows == 0) {
            answer.stored.leave_structure(ctx, &into.targets);
        }
        Ok(end)
    }

    fn bound(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        bound: &Expression,
        name: &str,
        site: Site,
    ) -> ExecResult<i32> {
        let value = (bound.run)(ctx).map_err(|e| self.at(e, site))?;
        self.settled(ctx, site);
        match value {
            Datum::Int4(value) => Ok(value),
            _ => {
                let error = SqlError::new(
                    SqlState::NULL_VALUE_NOT_ALLOWED,
                    format!("{name} of FOR loop cannot be null"),
                );
                Err(self.at(error.into(), site))
            }
        }
    }

    /// FOUND after a loop; ROW_COUNT stays.
    pub(super) fn loop_found(&mut self, ctx: &mut ExecContext<'_, '_>, rounds: u64) {
        ctx.variables[self.program.found as usize] = Datum::Bool(rounds > 0);
    }

    /// All rows were read before the first round: the body may change what was read.
    pub(super) fn over_rows(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        looping: &Looping,
        mut left: RowsLeft,
        targets: &Targets,
        site: Site,
    ) -> ExecResult<Flow> {
        let mut budget = Budget(0);
        let count = left.rows.count;
        let mut end = Flow::Next;
        for at in left.at..count {
            if !self.resuming {
                // A run that may have to begin again from a place in the loop shares the rows.
                match Arc::get_mut(&mut left.rows) {
                    Some(rows) => store_row(ctx, targets, rows.row_mut(at)),
                    None => {
                        let mut row: Row = left.rows.row(at).iter().cloned().collect();
                        store_row(ctx, targets, &mut row)
                    }
                }
                .map_err(|e| self.at(e, site))?;
            }
            if let After::Leave(flow) = after(self.operations(ctx, &looping.body)?, looping.number) {
                if matches!(flow, Flow::Pause(_)) {
                    left.at = at;
                    self.places.push(Resume::Rows(left));
                    return Ok(flow);
                }
                end = flow;
                break;
            }
            budget.round(ctx)?;
            if let Some(failure) = left.failure.as_ref().filter(|_| at + 1 == count) {
                return Err(SqlError::clone(failure).into());
            }
        }
        if count == 0 {
            store_nulls(ctx, targets);
        }
        self.loop_found(ctx, count as u64);
        Ok(end)
    }

    fn over_array(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        looping: &Looping,
        (array, from): (&Arc<Array>, usize),
        slice: u32,
        targets: &Targets,
        site: Site,
    ) -> ExecResult<Flow> {
        let slice = slice as usize;
        if slice > array.dimensions.len() {
            let error = SqlError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                format!("slice dimension ({slice}) is out of the valid range 0..{}", array.dimensions.len()),
            );
            return Err(self.at(error.into(), site));
        }
        let inner: &[Dimension] = &array.dimensions[array.dimensions.len().saturating_sub(slice)..];
        let size: usize = inner.iter().map(|d| d.length).product();
        let mut budget = Budget(0);
        let mut rounds = from as u64;
        let mut end = Flow::Next;
        for values in array.values.chunks(size.max(1)).skip(from) {
            rounds += 1;
            let value = match slice {
                0 => values[0].clone(),
                _ => Datum::Array(Arc::new(Array {
                    element: array.element,
                    dimensions: inner.to_vec(),
                    values: values.to_vec(),
                })),
            };
            if !self.resuming {
                store_row(ctx, targets, &mut [value]).map_err(|e| self.at(e, site))?;
            }
            if let After::Leave(flow) = after(self.operations(ctx, &looping.body)?, looping.number) {
                if matches!(flow, Flow::Pause(_)) {
                    self.places.push(Resume::Array(array.clone(), rounds as usize - 1));
                    return Ok(flow);
                }
                end = flow;
                break;
            }
            budget.round(ctx)?;
        }
        self.loop_found(ctx, rounds);
        Ok(end)
    }
}
