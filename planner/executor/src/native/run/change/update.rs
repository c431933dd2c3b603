//! UPDATE at run time.

use std::ops::ControlFlow;

use archipel_engine::txn::LockMode;
use archipel_sql::datum::Datum;
use rustc_hash::FxHashMap;

use super::assignment::Change;
use super::cross_partition::Mover;
use super::fate::{Fate, Foreseen};
use super::row_trigger::{Triggered, Triggering};
use super::target::{Found, Targets};
use super::write::Target;
use crate::array::Values;
use crate::native::run::expression::source::{eval_all, eval_into};
use crate::native::run::row::answer::{Answer, Emit};
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

pub(crate) struct Update {
    pub target: Target,
    pub(crate) targets: Targets,
    pub(crate) change: Change,
    pub(crate) triggered: Option<Box<Triggered>>,
    /// For rows that become another partition's.
    pub(crate) mover: Option<Box<Mover>>,
}

impl Update {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        if !self.targets.changes_at_once(ctx) {
            let found = self.find(ctx)?;
            return self.write_all(ctx, &found, emit);
        }
        let mut count = 0;
        let _ = self.targets.node.run(ctx, &mut |ctx| {
            let key = std::mem::take(&mut ctx.frame.keys[self.targets.key]);
            self.change.evaluate(ctx, &self.target, &key)?;
            self.targets.require_unwritten(ctx, &self.target, &key)?;
            let written = self.change.apply(ctx, &self.target, &key)?;
            ctx.frame.keys[self.targets.key] = key;
            if written {
                count += 1;
                if let Some(returning) = &self.targets.returning {
                    let mut row = Values::new();
                    eval_into(&mut row, returning, ctx)?;
                    let _ = emit(Answer::Given(&mut row))?;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    /// Finds the targets and computes their new values.
    pub fn find(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Found> {
        let leaves = self.change.moves || self.mover.is_some();
        let mode = if leaves { LockMode::Update } else { LockMode::NoKeyUpdate };
        if self.triggered.is_some() {
            // Triggers come before the checks.
            return self.targets.find(ctx, (&self.target, mode), &|ctx, _| self.change.compute(ctx));
        }
        if let Some(mover) = &self.mover {
            return self.targets.find(ctx, (&self.target, mode), &|ctx, key| {
                self.change.compute(ctx)?;
                match mover.destination(ctx)? {
                    // The other partition checks it.
                    Some(_) => Ok(()),
                    None => self.change.check(ctx, &self.target, key),
                }
            });
        }
        self.targets.find(ctx, (&self.target, mode), &|ctx, key| self.change.evaluate(ctx, &self.target, key))
    }

    /// As [`Update::find`], of the rows that no other part of the statement writes, past the BEFORE
    /// triggers.
    pub fn foresee(&self, ctx: &mut ExecContext<'_, '_>, foreseen: &mut Foreseen) -> ExecResult<Found> {
        let found = self.find(ctx)?.claim(foreseen, self.target.meta.def.id, Fate::Changed);
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
        let kept = &self.targets.kept;
        let mut written = Vec::with_capacity(found.keys.len());
        let mut gone = Vec::new();
        let mut shown: FxHashMap<usize, Vec<Datum>> = FxHashMap::default();
        if let Some(mover) = &self.mover {
            for (index, key) in found.keys.iter().enumerate() {
                found.values.restore(index, &mut ctx.frame, kept);
                let to = mover.destination(ctx)?;
                gone.push(to.is_some());
                written.push(match to {
                    Some(to) => mover.run(ctx, &self.target, key, to)?,
                    None => self.change.replace(ctx, &self.target, key)?,
                });
                if let Some(returning) = self.targets.returning.as_ref().filter(|_| mover.rewrites())
                    && to.is_some()
                {
                    shown.insert(index, eval_all(returning, ctx)?.into_vec());
                }
            }
        } else if self.change.moves {
            // Rows that move leave first, so that they may take each other's places.
            let mut moved = Vec::with_capacity(found.keys.len());
            for (index, key) in found.keys.iter().enumerate() {
                found.values.restore(index, &mut ctx.frame, kept);
                moved.push(self.change.take(ctx, &self.target, key)?);
            }
            for moved in moved {
                written.push(moved.is_some());
                if let Some(moved) = moved {
                    self.change.put(ctx, &self.target, moved)?;
                }
            }
        } else {
            for (index, key) in found.keys.iter().enumerate() {
                found.values.restore(index, &mut ctx.frame, kept);
                written.push(self.change.write(ctx, &self.target, key)?);
            }
        }
        let mut count = 0;
        for (index, _) in written.iter().enumerate().filter(|(_, written)| **written) {
            count += 1;
            if let (Some(emit), Some(_)) = (&mut emit, &self.targets.returning) {
                let _ = match shown.get_mut(&index) {
                    Some(row) => emit(Answer::Given(row)),
                    None => emit(Answer::Lent(found.returning.row(index))),
                }?;
            }
        }
        let references = !self.change.parents.is_empty() || !self.change.children.is_empty();
        if references || self.mover.is_some() {
            for (index, _) in written.iter().enumerate().filter(|(_, written)| **written) {
                found.values.restore(index, &mut ctx.frame, kept);
                let moved = gone.get(index).copied().unwrap_or(false);
                self.change.check_references(ctx, moved)?;
                if let Some(mover) = self.mover.as_ref().filter(|_| moved) {
                    mover.check_references(ctx)?;
                }
            }
        }
        Ok(count)
    }
}
