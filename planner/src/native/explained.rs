//! EXPLAIN ANALYZE of a statement as rows of another one: it runs, and what is told of it are the rows.

use std::ops::ControlFlow;
use std::time::Instant;

use archipel_sql::ast::{ExplainFormat, ExplainOptions};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;

use super::compile::Compiler;
use super::context::{ExecContext, ExecResult};
use super::node::Out;
use super::statement::Body;
use crate::bound::BoundStatement;
use crate::explain::plan::PlanLine;
use crate::explain::{self, run::Run};
use crate::route::Access;

/// A statement that is run to tell of it.
pub(crate) struct Explained {
    body: Body,
    /// Its plan, and what it touches.
    plan: Vec<(usize, PlanLine)>,
    accesses: Vec<Access>,
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
        let (lines, accesses) = (self.plan.lines.len(), self.accesses.len());
        let body = self.body(statement)?;
        let plan = self.plan.lines[lines..].to_vec();
        Ok(Explained { body, plan, accesses: self.accesses[accesses..].to_vec(), options, slot })
    }
}

impl Explained {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
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
        if self.options.format == ExplainFormat::Json {
            return vec![explain::json::of_plan(&self.plan, &self.accesses, run.properties(self.options))];
        }
        let mut lines = explain::of_plan(&self.plan, &self.accesses);
        lines.extend(run.lines(self.options));
        lines
    }
}
