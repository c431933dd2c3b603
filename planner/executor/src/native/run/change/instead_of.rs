//! INSTEAD OF triggers at run time.

use std::ops::ControlFlow;

use super::trigger::Triggers;
use crate::native::run::constraint::referential_action::with_queue;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::operator::node::{Node, collect};
use crate::native::run::row::answer::{Answer, Emit};
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// See the module's head.
pub(crate) struct Instead {
    pub(crate) source: Node,
    /// Where the source leaves its rows: the view's, and what stands beside them.
    pub(crate) kept: Vec<u32>,
    pub(crate) old: Option<Vec<u32>>,
    pub(crate) new: Option<Vec<u32>>,
    /// How a new row is made.
    pub(crate) set: Vec<(u32, Source)>,
    pub(crate) triggers: Option<Box<Triggers>>,
    pub(crate) returning: Option<Vec<Source>>,
}

impl Instead {
    /// Answers how many rows a trigger has taken.
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        with_queue(ctx, |ctx| {
            if let Some(triggers) = &self.triggers {
                triggers.begin(ctx)?;
            }
            let count = self.rows(ctx, emit)?;
            if let Some(triggers) = &self.triggers {
                triggers.end(ctx)?;
            }
            Ok(count)
        })
    }

    /// As [`Self::run`] for the rows that `next` puts in the place of the parameters, one each time, while there
    /// is one. All of them count, whatever a trigger makes of them (CopyFrom).
    pub fn run_each(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        next: &mut dyn FnMut(&mut ExecContext<'_, '_>) -> ExecResult<bool>,
    ) -> ExecResult<u64> {
        with_queue(ctx, |ctx| {
            if let Some(triggers) = &self.triggers {
                triggers.begin(ctx)?;
            }
            let mut count = 0;
            while next(ctx)? {
                ctx.frame.forget();
                let rows = collect(&self.source, &self.kept, ctx)?;
                count += rows.len() as u64;
                self.gathered(&rows, ctx, &mut |_| Ok(ControlFlow::Continue(())))?;
            }
            if let Some(triggers) = &self.triggers {
                triggers.end(ctx)?;
            }
            Ok(count)
        })
    }

    fn rows(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        let rows = collect(&self.source, &self.kept, ctx)?;
        self.gathered(&rows, ctx, emit)
    }

    /// Gives rows of the source to the triggers.
    fn gathered(
        &self,
        rows: &RowBuffer,
        ctx: &mut ExecContext<'_, '_>,
        emit: &mut Emit<'_>,
    ) -> ExecResult<u64> {
        let mut count = 0;
        let mut wanted = true;
        for index in 0..rows.len() {
            ctx.tick()?;
            rows.restore(index, &mut ctx.frame, &self.kept);
            for (slot, source) in &self.set {
                let value = source.eval(ctx)?;
                ctx.frame.slots[*slot as usize].set(value);
            }
            if let Some(triggers) = &self.triggers
                && !triggers.instead(ctx, self.old.as_deref(), self.new.as_deref())?
            {
                continue;
            }
            count += 1;
            if let (Some(returning), true) = (&self.returning, wanted) {
                let mut row = eval_all(returning, ctx)?;
                wanted = emit(Answer::Given(&mut row))? == ControlFlow::Continue(());
            }
        }
        Ok(count)
    }
}
