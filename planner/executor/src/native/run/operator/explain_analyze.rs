//! EXPLAIN ANALYZE of a statement as rows of another one: it runs, and what is told of it are the rows.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use archipel_sql::ast::ExplainOptions;
use archipel_sql::datum::Datum;

use super::instrument;
use super::node::Out;
use crate::explain;
use crate::explain::Telling;
use crate::explain::plan::PlanLines;
use crate::explain::run::Run;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::statement::Body;
use crate::route::Access;

/// A statement that is run to tell of it.
pub(crate) struct Explained {
    pub(crate) body: Body,
    /// Its plan, and what it touches.
    pub(crate) plan: PlanLines,
    pub(crate) accesses: Vec<Access>,
    pub(crate) planning: Duration,
    pub(crate) options: ExplainOptions,
    /// Where a line goes.
    pub(crate) slot: u32,
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
