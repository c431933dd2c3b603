//! UNION, INTERSECT and EXCEPT, with and without ALL.

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::node::{Node, Out};
use crate::bound::SetOp;
use crate::native::run::row::hash::HashKey;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

pub(crate) struct SetOperation {
    pub(crate) op: SetOp,
    pub(crate) all: bool,
    /// Two of them, but for UNION, which may be of any number.
    pub(crate) arms: Vec<Arm>,
    pub(crate) slots: Vec<u32>,
}

/// A query of a set operation, and where its columns are.
pub(crate) struct Arm {
    pub(crate) node: Node,
    pub(crate) slots: Vec<u32>,
}

impl SetOperation {
    /// Nodes one after the other that put their rows into the same slots.
    pub fn in_turn(nodes: Vec<Node>) -> SetOperation {
        let arms = nodes.into_iter().map(|node| Arm { node, slots: Vec::new() }).collect();
        SetOperation { op: SetOp::Union, all: true, arms, slots: Vec::new() }
    }

    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        match self.op {
            SetOp::Union => {
                let mut seen: FxHashSet<HashKey> = FxHashSet::default();
                let mut pass = |ctx: &mut ExecContext<'_, '_>, from: &[u32]| {
                    if !self.all && !seen.insert(key(ctx, from)) {
                        return Ok(ControlFlow::Continue(()));
                    }
                    self.copy(ctx, from);
                    out(ctx)
                };
                for arm in &self.arms {
                    if arm.node.run(ctx, &mut |ctx| pass(ctx, &arm.slots))?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            SetOp::Intersect | SetOp::Except => {
                let [left, right] = &self.arms[..] else { return Ok(ControlFlow::Continue(())) };
                let mut counts: FxHashMap<HashKey, u64> = FxHashMap::default();
                let _ = right.node.run(ctx, &mut |ctx| {
                    *counts.entry(key(ctx, &right.slots)).or_default() += 1;
                    Ok(ControlFlow::Continue(()))
                })?;
                let mut shown: FxHashSet<HashKey> = FxHashSet::default();
                let intersect = self.op == SetOp::Intersect;
                left.node.run(ctx, &mut |ctx| {
                    let key = key(ctx, &left.slots);
                    let keep = match counts.get_mut(&key) {
                        Some(count) if self.all => {
                            // Each row on the right is good for one on the left.
                            let paired = *count > 0;
                            *count = count.saturating_sub(1);
                            paired == intersect
                        }
                        found => found.is_some() == intersect,
                    };
                    if !keep || (!self.all && !shown.insert(key)) {
                        return Ok(ControlFlow::Continue(()));
                    }
                    self.copy(ctx, &left.slots);
                    out(ctx)
                })
            }
        }
    }

    fn copy(&self, ctx: &mut ExecContext<'_, '_>, from: &[u32]) {
        for (from, to) in from.iter().zip(&self.slots) {
            ctx.frame.slots[*to as usize] = ctx.frame.slots[*from as usize].clone();
        }
    }
}

fn key(ctx: &ExecContext<'_, '_>, slots: &[u32]) -> HashKey {
    HashKey(slots.iter().map(|slot| ctx.frame.slots[*slot as usize].clone()).collect())
}
