//! WITH: queries computed once and read by name, recursion, and modifying CTEs.
//!
//! The parts of a statement see the database as it was before it (chapter 7.8.4): a query
//! with modifying CTEs is answered from what they found, and only then do they write.
//!
//! A CTE's rows are kept in the frame. A recursive one keeps two sets: the working table,
//! which its own term reads, and the result, which everybody else does.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::error::{Result, SqlError};
use rustc_hash::FxHashSet;

use super::compile::{Compiler, CteSource};
use super::conjunct::Conjunct;
use super::context::{Cache, ExecContext, ExecResult};
use super::hash::HashKey;
use super::node::{Node, collect};
use super::path::OrderKey;
use super::relation::Planned;
use super::rows::RowBuffer;
use super::statement::{Body, Deferred};
use crate::bound::{Cte as BoundCte, CteBody, Rel};

pub(crate) struct Cte {
    cache: usize,
    body: CteNode,
}

enum CteNode {
    Query { node: Box<Node>, slots: Vec<u32> },
    Recursive(Box<Recursion>),
    Modify(Box<Body>),
}

/// A recursive query.
pub(crate) struct Recursion {
    initial: Node,
    initial_slots: Vec<u32>,
    recursive: Node,
    recursive_slots: Vec<u32>,
    working: usize,
    all: bool,
}

impl Compiler<'_> {
    pub fn plan_with<'b>(
        &mut self,
        ctes: &'b [BoundCte],
        body: &'b Rel,
        pushed: Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        let compiled = self.ctes(ctes)?;
        let planned = self.plan(body, pushed, wanted)?;
        let ordered = planned.ordered;
        Ok(Planned { node: Node::With { ctes: compiled, body: Box::new(planned.node) }, ordered })
    }

    /// Compiles the CTEs of a WITH and brings them into scope.
    pub fn ctes(&mut self, ctes: &[BoundCte]) -> Result<Vec<Cte>> {
        ctes.iter().map(|cte| self.one_cte(cte)).collect()
    }

    fn one_cte(&mut self, cte: &BoundCte) -> Result<Cte> {
        self.open(format!("CTE {}", cte.name));
        let compiled = self.cte_body(cte);
        self.close();
        compiled
    }

    fn cte_body(&mut self, cte: &BoundCte) -> Result<Cte> {
        let cache = self.cache();
        let body = match &cte.body {
            CteBody::Query(rel) => {
                let node = self.relation(rel)?;
                let slots = self.declare(rel);
                self.mark_all(&slots);
                CteNode::Query { node: Box::new(node), slots }
            }
            CteBody::Recursive { initial, recursive, all } => {
                let working = self.cache();
                let initial_node = self.relation(initial)?;
                let initial_slots = self.declare(initial);
                self.mark_all(&initial_slots);
                self.ctes.insert(cte.id, CteSource { cache: working, working: true });
                let recursive_node = self.relation(recursive)?;
                let recursive_slots = self.declare(recursive);
                self.mark_all(&recursive_slots);
                CteNode::Recursive(Box::new(Recursion {
                    initial: initial_node,
                    initial_slots,
                    recursive: recursive_node,
                    recursive_slots,
                    working,
                    all: *all,
                }))
            }
            CteBody::Modify(statement) => {
                let body = self.body(statement)?;
                if body.fires() {
                    return Err(SqlError::unsupported("a data-modifying WITH on a table with triggers"));
                }
                CteNode::Modify(Box::new(body))
            }
        };
        self.ctes.insert(cte.id, CteSource { cache, working: false });
        Ok(Cte { cache, body })
    }

    /// Where the rows of a CTE are.
    pub fn cte(&self, id: u32) -> Result<usize> {
        self.ctes
            .get(&id)
            .map(|source| source.cache)
            .ok_or_else(|| SqlError::internal(format!("CTE {id} is not in scope")))
    }

    /// Whether a relation reads the working table of a recursion being compiled.
    pub fn reads_working_table(&self, rel: &Rel) -> bool {
        if !self.ctes.values().any(|source| source.working) {
            return false;
        }
        // Inside a recursive term; telling exactly would need one more walk, and running a
        // subquery again is only slower.
        let _ = rel;
        true
    }
}

impl Cte {
    /// Computes the rows; what a modifying CTE is to write is left to [`Cte::write`].
    pub fn find(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Option<Deferred>> {
        let CteNode::Modify(body) = &self.body else {
            self.prepare(ctx)?;
            return Ok(None);
        };
        match body.find(ctx)? {
            Some((rows, deferred)) => {
                ctx.frame.caches[self.cache] = Cache::Rows(Arc::new(rows));
                Ok(Some(deferred))
            }
            None => {
                self.prepare(ctx)?;
                Ok(None)
            }
        }
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
        let mut seen: FxHashSet<HashKey> = FxHashSet::default();
        let mut result = RowBuffer::new(self.initial_slots.len());
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
                return Ok(result);
            }
            for row in working.iter() {
                result.push(row.iter().cloned());
            }
            ctx.tick()?;
            ctx.frame.caches[self.working] = Cache::Rows(Arc::new(working));
            working = collect(&self.recursive, &self.recursive_slots, ctx)?;
        }
    }
}
