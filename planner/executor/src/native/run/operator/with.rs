//! WITH at run time: rows computed once and read by name, and recursion.

use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::node::{Node, Out, collect};
use crate::native::run::change::fate::Foreseen;
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::HashKey;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::state::frame::Cache;
use crate::native::run::statement::{Body, Deferred};

pub(crate) struct Cte {
    pub(crate) cache: usize,
    pub(crate) body: CteNode,
}

pub(crate) enum CteNode {
    Query {
        node: Box<Node>,
        slots: Vec<u32>,
    },
    Recursive(Arc<Recursion>),
    /// Its reader runs it.
    Streamed,
    Modify(Box<Body>),
}

/// A recursive query.
pub(crate) struct Recursion {
    pub(crate) initial: Node,
    pub(crate) initial_slots: Vec<u32>,
    pub(crate) recursive: Node,
    pub(crate) recursive_slots: Vec<u32>,
    pub(crate) working: usize,
    pub(crate) all: bool,
}

impl Cte {
    /// Whether it changes data.
    pub fn modifies(&self) -> bool {
        matches!(self.body, CteNode::Modify(_))
    }

    /// Computes the rows; what a modifying CTE is to write is left to [`Cte::write`].
    pub fn find(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        foreseen: &mut Foreseen,
    ) -> ExecResult<Option<Deferred>> {
        if let CteNode::Modify(body) = &self.body
            && let Some((rows, deferred)) = body.find(ctx, foreseen)?
        {
            ctx.frame.caches[self.cache] = Cache::Rows(Arc::new(rows));
            return Ok(Some(deferred));
        }
        self.prepare(ctx)?;
        Ok(None)
    }

    /// Writes what [`Cte::find`] left.
    pub fn write(&self, ctx: &mut ExecContext<'_, '_>, deferred: Deferred) -> ExecResult<()> {
        if let CteNode::Modify(body) = &self.body {
            body.write(ctx, deferred)?;
        }
        Ok(())
    }

    /// Computes the rows, and writes.
    pub fn prepare(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        let rows = match &self.body {
            CteNode::Query { node, slots } => collect(node, slots, ctx)?,
            CteNode::Recursive(recursion) => recursion.rows(ctx)?,
            CteNode::Streamed => return Ok(()),
            CteNode::Modify(body) => {
                let mut rows = RowBuffer::new(body.width());
                body.run(ctx, &mut |row| {
                    rows.push(row.values().iter().cloned());
                    Ok(ControlFlow::Continue(()))
                })?;
                rows
            }
        };
        ctx.frame.caches[self.cache] = Cache::Rows(Arc::new(rows));
        Ok(())
    }
}

impl Recursion {
    fn rows(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<RowBuffer> {
        let mut result = RowBuffer::new(self.initial_slots.len());
        let _ = self.rounds(ctx, &mut |_, working| {
            for row in working.iter() {
                result.push(row.iter().cloned());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(result)
    }

    /// Fills `slots` with row after row, computing a round when all before it have been taken.
    pub fn run(
        &self,
        slots: &[u32],
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        self.rounds(ctx, &mut |ctx, working| {
            for index in 0..working.len() {
                working.restore(index, &mut ctx.frame, slots);
                if out(ctx)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Calls `round` with the rows of each round that were in none before, if that matters.
    fn rounds(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        round: &mut dyn FnMut(&mut ExecContext<'_, '_>, &RowBuffer) -> ExecResult<ControlFlow<()>>,
    ) -> ExecResult<ControlFlow<()>> {
        let mut seen: FxHashSet<HashKey> = FxHashSet::default();
        let mut working = collect(&self.initial, &self.initial_slots, ctx)?;
        loop {
            if !self.all {
                let mut fresh = RowBuffer::new(self.initial_slots.len());
                for row in working.iter() {
                    if seen.insert(HashKey(row.iter().cloned().collect())) {
                        fresh.push(row.iter().cloned());
                    }
                }
                working = fresh;
            }
            if working.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            if round(ctx, &working)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            ctx.tick()?;
            ctx.frame.caches[self.working] = Cache::Rows(Arc::new(working));
            working = collect(&self.recursive, &self.recursive_slots, ctx)?;
        }
    }
}
