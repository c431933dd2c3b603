//! DELETE at run time.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::txn::LockMode;

use super::fate::{Fate, Foreseen};
use super::row_trigger::{Triggered, Triggering};
use super::target::{Found, Targets};
use super::write::Target;
use crate::native::run::constraint::foreign_key::ReferenceCheck;
use crate::native::run::expression::source::eval_all;
use crate::native::run::row::answer::{Answer, Emit};
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

pub(crate) struct Delete {
    pub target: Target,
    pub(crate) targets: Targets,
    pub(crate) children: Vec<Arc<ReferenceCheck>>,
    /// Whether deleting a row may change rows that reference it.
    pub(crate) acts: bool,
    pub(crate) triggered: Option<Box<Triggered>>,
}

impl Delete {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        if !self.targets.at_once || ctx.txn.has_view() {
            let found = self.find(ctx)?;
            return self.write_all(ctx, &found, emit);
        }
        let mut count = 0;
        let _ = self.targets.node.run(ctx, &mut |ctx| {
            let key = std::mem::take(&mut ctx.frame.keys[self.targets.key]);
            let mut row = match &self.targets.returning {
                Some(returning) => Some(eval_all(returning, ctx)?),
                None => None,
            };
            self.targets.require_unwritten(ctx, &self.target, &key)?;
            let deleted = ctx.txn.delete(&self.target.meta, &key)?;
            ctx.frame.keys[self.targets.key] = key;
            if deleted {
                count += 1;
                if let Some(row) = &mut row {
                    let _ = emit(Answer::Given(row))?;
                }
            }
            for child in &self.children {
                child.check_or_queue(ctx)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    /// Finds the targets.
    pub fn find(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Found> {
        self.targets.find(ctx, (&self.target, LockMode::Update), &|_, _| Ok(()))
    }

    /// As [`Delete::find`], of the rows that no other part of the statement writes, past the BEFORE
    /// triggers.
    pub fn foresee(&self, ctx: &mut ExecContext<'_, '_>, foreseen: &mut Foreseen) -> ExecResult<Found> {
        let found = self.find(ctx)?.claim(foreseen, self.target.meta.def.id, Fate::Gone);
        match &self.triggered {
            Some(triggered) => self.fire(triggered, ctx, &found),
            None => Ok(found),
        }
    }

    pub(crate) fn write_rows(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        mut emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        let mut count = 0;
        for (index, key) in found.keys.iter().enumerate() {
            if ctx.txn.delete(&self.target.meta, key)? {
                count += 1;
                if let (Some(emit), Some(_)) = (&mut emit, &self.targets.returning) {
                    let _ = emit(Answer::Lent(found.returning.row(index)))?;
                }
            }
        }
        for child in &self.children {
            for index in 0..found.keys.len() {
                found.values.restore(index, &mut ctx.frame, &self.targets.kept);
                child.check_or_queue(ctx)?;
            }
        }
        Ok(count)
    }
}
