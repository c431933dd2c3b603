//! EXPLAIN ANALYZE of a statement as rows of another one: it runs, and what is told of it are the rows.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use archipel_sql::ast::ExplainOptions;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;

use crate::explain;
use crate::bound::BoundStatement;
use crate::explain::Telling;
use crate::explain::plan::PlanLines;
use crate::explain::run::Run;
use crate::native::plan::compiler::Compiler;
use crate::native::plan::explain::column::Describing;
use crate::native::run::state::context::{ExecContext, ExecResult};
use crate::native::run::statement::Body;
use crate::route::Access;
use super::instrument;
use super::node::Out;

/// A statement that is run to tell of it.
pub(crate) struct Explained {
    body: Body,
    /// Its plan, and what it touches.
    plan: PlanLines,
    accesses: Vec<Access>,
    planning: Duration,
    options: ExplainOptions,
    /// Where a line goes.
    slot: u32,
}

impl Compiler<'_> {
    /// A statement to be run and told of.
    pub fn explained(
        &mut self,
        statement: &BoundStatement,
        options: ExplainOptions,
        slot: u32,
    ) -> Result<Explained> {
        let began = Instant::now();
        let (lines, accesses) = (self.plan.lines.len(), self.accesses.len());
        let own = Describing::of(statement, options);
        let outer = std::mem::replace(&mut self.plan.describing, own);
        let watching = std::mem::replace(&mut self.plan.watching, options.watches());
        let body = self.body(statement);
        self.settle_outputs(lines);
        (self.plan.describing, self.plan.watching) = (outer, watching);
        let (body, plan) = (body?, self.plan.lines[lines..].to_vec());
        let (accesses, planning) = (self.accesses[accesses..].to_vec(), began.elapsed());
        Ok(Explained { body, plan, accesses, planning, options, slot })
    }
}

impl Explained {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        instrument::reset(&self.plan);
        let began = Instant::now();
        let rows = self.body.run(ctx, &mut |_| Ok(ControlFlow::Continue(())))?;
        let run = Run { rows, elapsed: began.elapsed() };
        for line in self.told(run) {
            ctx.frame.slots[self.slot as usize] = Datum::text(&line);
            if out(ctx)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn told(&self, run: Run) -> Vec<String> {
        let telling =
            Telling { options: self.options, planning: self.planning, run: Some(run), ..Telling::default() };
        explain::of_plan(&self.plan, &self.accesses, &telling)
    }
}
