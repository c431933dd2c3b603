//! UNION, INTERSECT and EXCEPT, with and without ALL.

use std::ops::ControlFlow;

use archipel_sql::error::Result;
use rustc_hash::{FxHashMap, FxHashSet};

use super::compile::Compiler;
use super::context::{ExecContext, ExecResult};
use super::hash::HashKey;
use super::node::{Node, Out};
use crate::bound::{Rel, SetOp};

pub(crate) struct SetOperation {
    op: SetOp,
    all: bool,
    left: Box<Node>,
    right: Box<Node>,
    left_slots: Vec<u32>,
    right_slots: Vec<u32>,
    slots: Vec<u32>,
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
        self.open(match op {
            SetOp::Union => "Append",
            SetOp::Intersect => "SetOp Intersect",
            SetOp::Except => "SetOp Except",
        });
        let left_node = self.relation(left);
        let right_node = self.relation(right);
        self.close();
        let (left_slots, right_slots) = (self.declare(left), self.declare(right));
        self.mark_all(&left_slots);
        self.mark_all(&right_slots);
        let (left, right) = (Box::new(left_node?), Box::new(right_node?));
        Ok(Node::SetOperation(SetOperation { op, all, left, right, left_slots, right_slots, slots }))
    }
}

impl SetOperation {
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
                if self.left.run(ctx, &mut |ctx| pass(ctx, &self.left_slots))?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                self.right.run(ctx, &mut |ctx| pass(ctx, &self.right_slots))
            }
            SetOp::Intersect | SetOp::Except => {
                let mut counts: FxHashMap<HashKey, u64> = FxHashMap::default();
                let _ = self.right.run(ctx, &mut |ctx| {
                    *counts.entry(key(ctx, &self.right_slots)).or_default() += 1;
                    Ok(ControlFlow::Continue(()))
                })?;
                let mut shown: FxHashSet<HashKey> = FxHashSet::default();
                let intersect = self.op == SetOp::Intersect;
                self.left.run(ctx, &mut |ctx| {
                    let key = key(ctx, &self.left_slots);
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
                    self.copy(ctx, &self.left_slots);
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
