//! Calls that are made before the statement they stand in
//! ([`crate::compile`] takes them out of it): unlike a call inside of a query, one of these can
//! stop and go on.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_planner::native::{self, CompiledRoutine, ExecContext, ExecResult, RowSink};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;

use super::condition::is_true;
use super::ending::Flow;
use super::invocation::Invocation;
use super::loops::Budget;
use super::operation::site::Site;
use super::operation::{
    Hoisted, HoistedCall, HoistedRows, HoistedTrigger, HoistedTriggers, Operation, RowPlaces,
};
use super::pause::state::{EachRow, Resume};
use super::sink::Row;

/// Rows as they wait in a register: a record of records.
#[derive(Default)]
struct Waiting(Vec<Datum>);

impl RowSink for Waiting {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.0.push(Datum::Record(row.into()));
        Ok(ControlFlow::Continue(()))
    }
}

impl Invocation<'_, '_> {
    pub(super) fn hoisted(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        calls: &[Hoisted],
        statement: &Operation,
    ) -> ExecResult<Flow> {
        let from = if self.resuming { self.place_in_list() } else { 0 };
        let (text, site) = (statement.text(), statement.site);
        for (at, hoisted) in calls.iter().enumerate().skip(from) {
            let (answered, register) = match hoisted {
                Hoisted::Call { call, register } => (self.answer(ctx, call, text, site)?, *register),
                Hoisted::Rows(rows) => (self.answer_rows(ctx, rows, text, site)?, rows.register),
                Hoisted::Triggers(fired) => (self.fire_triggers(ctx, fired, text, site)?, fired.register),
            };
            match answered {
                ControlFlow::Continue(rows) => ctx.variables[register as usize] = rows,
                ControlFlow::Break(flow) => {
                    self.places.push(Resume::At(at));
                    return Ok(flow);
                }
            }
        }
        let flow = self.operation(ctx, statement)?;
        if matches!(flow, Flow::Pause(_)) {
            self.places.push(Resume::At(calls.len()));
        }
        Ok(flow)
    }

    /// Makes one of the calls, or goes on with it: answers its rows.
    fn answer(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        call: &HoistedCall,
        text: Option<&str>,
        site: Site,
    ) -> ExecResult<ControlFlow<Flow, Datum>> {
        let Some(routine) = &call.routine else { return self.value(ctx, call, text, site) };
        let mut rows = Waiting(self.resumed_answer().unwrap_or_default());
        let mut values = Row::new();
        let (program, paused) = self.program_of_call(routine, site)?;
        if paused.is_none() {
            if let Some(when) = &call.when
                && !is_true(&when(ctx).map_err(|e| self.at(e, site))?)
            {
                return Ok(ControlFlow::Continue(Datum::Null));
            }
            for arg in &call.args {
                values.push(arg(ctx).map_err(|e| self.at(e, site))?);
            }
        }
        if paused.is_some() || !(call.strict && values.iter().any(Datum::is_null)) {
            let paused = self
                .query(ctx, text, site, |ctx| program.invoke_until_pause(ctx, &values, &mut rows, paused))?;
            if let Some(paused) = paused {
                let flow = self.pause_below(program, paused, text, site);
                self.places.push(Resume::Answer(rows.0));
                return Ok(ControlFlow::Break(flow));
            }
        }
        Ok(ControlFlow::Continue(Datum::Record(rows.0.into())))
    }

    /// Computes a value that has its place among the calls.
    fn value(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        HoistedCall { args, when, .. }: &HoistedCall,
        text: Option<&str>,
        site: Site,
    ) -> ExecResult<ControlFlow<Flow, Datum>> {
        if let Some(when) = when
            && !is_true(&when(ctx).map_err(|e| self.at(e, site))?)
        {
            return Ok(ControlFlow::Continue(Datum::Null));
        }
        let values = self.query(ctx, text, site, |ctx| {
            args.iter().map(|arg| arg(ctx)).collect::<ExecResult<Vec<Datum>>>()
        })?;
        Ok(ControlFlow::Continue(Datum::Record([Datum::Record(values.into())].into())))
    }

    /// Makes calls for each row of a query, or goes on with that: answers the rows, the answers behind
    /// their columns.
    fn answer_rows(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        plan: &HoistedRows,
        text: Option<&str>,
        site: Site,
    ) -> ExecResult<ControlFlow<Flow, Datum>> {
        let mut each = match self.resumed_each_row() {
            Some(each) => each,
            None => {
                let mut rows = Waiting::default();
                self.query(ctx, text, site, |ctx| plan.input.run(ctx, &mut rows))?;
                EachRow { rows: rows.0.into(), done: Vec::new(), row: Vec::new() }
            }
        };
        let mut budget = Budget::default();
        while let Some(Datum::Record(columns)) = each.rows.get(each.done.len()) {
            if each.row.is_empty() {
                each.row.extend(columns.iter().cloned());
            }
            while let Some(call) = plan.calls.get(each.row.len() - plan.width) {
                if !self.resuming {
                    budget.round(ctx)?;
                }
                for (column, register) in &plan.columns {
                    if let Some(value) = each.row.get(usize::from(*column)) {
                        ctx.variables[*register as usize] = value.clone();
                    }
                }
                match self.answer(ctx, call, text, site)? {
                    ControlFlow::Continue(rows) => each.row.push(rows),
                    ControlFlow::Break(flow) => {
                        self.places.push(Resume::EachRow(each));
                        return Ok(ControlFlow::Break(flow));
                    }
                }
            }
            let row = std::mem::take(&mut each.row);
            each.done.push(Datum::Record(row.into()));
        }
        Ok(ControlFlow::Continue(Datum::Record(each.done.into())))
    }

    /// Fires triggers for each row of a statement, or for the statement, or goes on with that: answers the
    /// rows that are left.
    fn fire_triggers(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        plan: &HoistedTriggers,
        text: Option<&str>,
        site: Site,
    ) -> ExecResult<ControlFlow<Flow, Datum>> {
        let mut each = match (self.resumed_each_row(), &plan.input) {
            (Some(each), _) => each,
            (None, Some(input)) => {
                let mut rows = Waiting::default();
                self.query(ctx, text, site, |ctx| input.run(ctx, &mut rows))?;
                EachRow { rows: rows.0.into(), done: Vec::new(), row: Vec::new() }
            }
            // The statement itself is the only one, and has no columns.
            (None, None) => {
                EachRow { rows: [Datum::Record([].into())].into(), done: Vec::new(), row: Vec::new() }
            }
        };
        let RowPlaces { width, old, new, fixed } = &plan.places;
        let of_rows = plan.input.is_some();
        let changed = match plan.changed.and_then(|register| ctx.variables.get(register as usize)) {
            Some(Datum::Record(rows)) => rows.shared().clone(),
            _ => each.rows.clone(),
        };
        let known = [OnceCell::new(), OnceCell::new()];
        let tables = |of_new: bool| {
            let from = if of_new { new } else { old };
            known[usize::from(of_new)].get_or_init(|| table_of(&changed, from, *width)).clone()
        };
        let mut budget = Budget::default();
        while let Some(Datum::Record(columns)) = each.rows.get(each.done.len()) {
            let part = |from: &Option<usize>| match from {
                Some(from) if of_rows => Datum::Record(part_of(columns, *from, *width).into()),
                _ => Datum::Null,
            };
            // What is left of the row, and a place for each trigger that it has passed.
            if each.row.is_empty() {
                each.row.push(part(if new.is_some() { new } else { old }));
            }
            while let Some(trigger) = plan.triggers.get(each.row.len() - 1) {
                if !self.resuming {
                    budget.round(ctx)?;
                }
                let row = if new.is_some() { each.row[0].clone() } else { Datum::Null };
                match self.fire(ctx, trigger, ([part(old), row], &tables), text, site)? {
                    ControlFlow::Continue(Some(left)) if plan.before && of_rows => each.row[0] = left,
                    ControlFlow::Continue(_) => {}
                    ControlFlow::Break(flow) => {
                        self.places.push(Resume::EachRow(each));
                        return Ok(ControlFlow::Break(flow));
                    }
                }
                if plan.before && of_rows && each.row[0].is_null() {
                    break;
                }
                each.row.push(Datum::Null);
            }
            let left = std::mem::take(&mut each.row).swap_remove(0);
            each.done.push(match (left, new) {
                (Datum::Null, _) if plan.before && of_rows => Datum::Null,
                (Datum::Record(left), Some(new)) if plan.before => {
                    for (place, name) in fixed {
                        let before = old.and_then(|old| columns.get(old + usize::from(*place)));
                        if before != left.get(usize::from(*place)) {
                            let error = SqlError::unsupported(format_args!(
                                "a trigger that changes key column \"{name}\", which the UPDATE does not set,"
                            ));
                            return Err(self.at(error.into(), site));
                        }
                    }
                    let behind = columns.iter().skip(new + width);
                    let row = columns.iter().take(*new).chain(left.iter()).chain(behind);
                    Datum::Record(row.cloned().collect())
                }
                _ => Datum::Record(columns.clone()),
            });
        }
        let left = each.done.into_iter().filter(|row| !row.is_null()).collect();
        Ok(ControlFlow::Continue(Datum::Record(left)))
    }

    /// Fires one trigger, or goes on with it: answers the row that it leaves, or NULL; nothing if it is not
    /// for this session or its condition does not hold. `tables` are the new rows, or the old ones, where it names them.
    fn fire(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        trigger: &HoistedTrigger,
        (rows_given, tables): ([Datum; 2], &dyn Fn(bool) -> Datum),
        text: Option<&str>,
        site: Site,
    ) -> ExecResult<ControlFlow<Flow, Option<Datum>>> {
        let mut rows = Waiting(self.resumed_answer().unwrap_or_default());
        let function: Arc<dyn CompiledRoutine> = trigger.function.clone();
        let (program, paused) = self.program_of_call(&function, site)?;
        if paused.is_none() && !trigger.fires_in.session(ctx.functions.session.is_replica()) {
            return Ok(ControlFlow::Continue(None));
        }
        if let (None, Some(condition)) = (&paused, &trigger.condition) {
            let mut wanted = Waiting::default();
            self.query(ctx, text, site, |ctx| condition.call(ctx, &rows_given, &mut wanted))?;
            let holds =
                |row: &Datum| matches!(row, Datum::Record(row) if row.first() == Some(&Datum::Bool(true)));
            if !wanted.0.first().is_some_and(holds) {
                return Ok(ControlFlow::Continue(None));
            }
        }
        let mut args = Vec::from(rows_given);
        if paused.is_none() {
            args.extend(trigger.named.iter().map(|of_new| tables(*of_new)));
        }
        args.extend(trigger.variables.iter().cloned());
        ctx.trigger_depth += 1;
        let called =
            self.query(ctx, text, site, |ctx| program.invoke_until_pause(ctx, &args, &mut rows, paused));
        ctx.trigger_depth -= 1;
        match called? {
            Some(paused) => {
                let flow = self.pause_below(program, paused, text, site);
                self.places.push(Resume::Answer(rows.0));
                Ok(ControlFlow::Break(flow))
            }
            None => Ok(ControlFlow::Continue(Some(rows.0.into_iter().next().unwrap_or(Datum::Null)))),
        }
    }
}

/// So many columns of a row, from one on.
fn part_of(columns: &[Datum], from: usize, width: usize) -> Arc<[Datum]> {
    columns.iter().skip(from).take(width).cloned().collect()
}

/// The rows at a place in others, as triggers are given tables.
fn table_of(rows: &[Datum], from: &Option<usize>, width: usize) -> Datum {
    let row = |row: &Datum| match (row, from) {
        (Datum::Record(columns), Some(from)) => Some(Datum::Record(part_of(columns, *from, width).into())),
        _ => None,
    };
    native::rows_as_table(rows.iter().filter_map(row))
}
