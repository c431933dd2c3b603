//! UNION, INTERSECT and EXCEPT, with and without ALL.

use std::ops::ControlFlow;

use archipel_sql::error::Result;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bound::{Rel, SetOp};
use crate::native::plan::compiler::Compiler;
use crate::native::run::row::hash::HashKey;
use crate::native::run::state::context::{ExecContext, ExecResult};
use super::node::{Node, Out};

pub(crate) struct SetOperation {
    op: SetOp,
    all: bool,
    /// Two of them, but for UNION, which may be of any number.
    arms: Vec<Arm>,
    slots: Vec<u32>,
}

/// A query of a set operation, and where its columns are.
struct Arm {
    node: Node,
    slots: Vec<u32>,
}

/// The queries of a set operation from left to right. What a UNION is itself made of joins those of the
/// UNION above, which drops what is there twice if it has to: a long chain is one node, and a row passes
/// through one.
fn arms_of<'r>(op: SetOp, all: bool, left: &'r Rel, right: &'r Rel) -> Vec<&'r Rel> {
    let mut arms = Vec::new();
    // From right to left.
    let mut rest = vec![right, left];
    while let Some(rel) = rest.pop() {
        match rel {
            Rel::SetOp { op: SetOp::Union, all: own, left, right }
                if op == SetOp::Union && (*own || !all) =>
            {
                rest.push(right);
                rest.push(left);
            }
            rel => arms.push(rel),
        }
    }
    arms
}

impl Compiler<'_> {
    pub fn set_operation(
        &mut self,
        op: SetOp,
        all: bool,
        left: &Rel,
        right: &Rel,
        slots: Vec<u32>,
    ) -> Result<Node> {
        let opened = self.open_set_operation(op, all);
        let arms = arms_of(op, all, left, right)
            .into_iter()
            .map(|rel| {
                let node = self.relation(rel)?;
                let slots = self.declare(rel);
                self.mark_all(&slots);
                Ok(Arm { node, slots })
            })
            .collect::<Result<Vec<_>>>();
        (0..opened).for_each(|_| self.close());
        let arms = arms?;
        if let Some(first) = arms.first() {
            self.describe_set_operation(&slots, &first.slots);
        }
        Ok(Node::SetOperation(SetOperation { op, all, arms, slots }))
    }
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
