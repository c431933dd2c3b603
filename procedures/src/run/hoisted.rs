//! Calls that are made before the statement they stand in
//! ([`crate::compile`] takes them out of it): unlike a call inside of a query, one of these can
//! stop and go on.

use std::ops::ControlFlow;

use archipel_planner::native::{ExecContext, ExecResult, RowSink};
use archipel_sql::datum::Datum;

use super::operation::{HoistedCall, Operation, Site};
use super::pause::Resume;
use super::rows::Row;
use super::{Flow, Invocation};

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
        calls: &[HoistedCall],
        statement: &Operation,
    ) -> ExecResult<Flow> {
        let from = if self.resuming { self.place_in_list() } else { 0 };
        for (at, call) in calls.iter().enumerate().skip(from) {
            let flow = self.answer(ctx, call, statement.text(), statement.site)?;
            if matches!(flow, Flow::Pause(_)) {
                self.places.push(Resume::At(at));
                return Ok(flow);
            }
        }
        let flow = self.operation(ctx, statement)?;
        if matches!(flow, Flow::Pause(_)) {
            self.places.push(Resume::At(calls.len()));
        }
        Ok(flow)
    }

    /// Makes one of the calls, or goes on with it.
    fn answer(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        call: &HoistedCall,
        text: Option<&str>,
        site: Site,
    ) -> ExecResult<Flow> {
        let mut rows = Waiting(self.resumed_answer().unwrap_or_default());
        let mut values = Row::new();
        let (program, paused) = self.program_of_call(&call.routine, site)?;
        if paused.is_none() {
            for arg in &call.args {
                values.push(arg(ctx).map_err(|e| self.at(e, site))?);
            }
        }
        if !(call.strict && values.iter().any(Datum::is_null)) {
            let paused = self
                .query(ctx, text, site, |ctx| program.invoke_until_pause(ctx, &values, &mut rows, paused))?;
            if let Some(paused) = paused {
                let flow = self.pause_below(program, paused, text, site);
                self.places.push(Resume::Answer(rows.0));
                return Ok(flow);
            }
        }
        ctx.variables[call.register as usize] = Datum::Record(rows.0.into());
        Ok(Flow::Next)
    }
}
