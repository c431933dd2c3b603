//! WITH: queries computed once and read by name, recursion, and modifying CTEs.
//!
//! The parts of a statement see the database as it was before it (chapter 7.8.4): a query
//! with modifying CTEs is answered from what they found, and only then do they write
//! ([`modifying_cte`](super::modifying_cte)).
//!
//! A CTE's rows are kept in the frame. A recursive one keeps two sets: the working table,
//! which its own term reads, and the result, which everybody else does; with one reader that
//! reads it once the result goes there round by round, so that a LIMIT ends the recursion.

use std::sync::Arc;

use archipel_sql::error::{Result, SqlError};

use super::node::Planned;
use crate::bind::visit::is_correlated;
use crate::bound::{BoundChild, Cte as BoundCte, CteBody, ExprKind, Rel};
use crate::explain::plan::{CTE, PlanNode};
use crate::native::plan::access::conjunct::Conjunct;
use crate::native::plan::compiler::{Compiler, CteSource};
use crate::native::plan::walk::visit_expressions;
use crate::native::run::access::path::OrderKey;
use crate::native::run::operator::node::Node;
use crate::native::run::operator::with::{Cte, CteNode, Recursion};
use crate::native::run::statement::Body;

impl Compiler<'_> {
    pub fn plan_with<'b>(
        &mut self,
        ctes: &'b [BoundCte],
        body: &'b Rel,
        pushed: Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        let (parts, planned) = self.parts(ctes, Vec::new(), |c, compiled| {
            if let Some(id) = only_read(body)
                && let Some(at) = ctes.iter().rposition(|cte| cte.id == id)
                && ctes[at + 1..].is_empty()
                && let CteNode::Recursive(recursion) = &compiled[at].body
            {
                let recursion = recursion.clone();
                c.ctes.entry(id).and_modify(|source| source.streamed = Some(recursion));
                compiled[at].body = CteNode::Streamed;
            }
            c.plan(body, pushed, wanted)
        })?;
        let ordered = planned.ordered;
        // Out of scope.
        for cte in ctes {
            self.ctes.entry(cte.id).and_modify(|source| source.varies = false);
            if self.ctes.get(&cte.id).is_none_or(|source| !source.working) {
                self.varying.remove(&cte.id);
            }
        }
        Ok(Planned { node: Node::With { parts: Box::new(parts), body: Box::new(planned.node) }, ordered })
    }

    /// Compiles a CTE and brings it into scope.
    pub fn one_cte(&mut self, cte: &BoundCte) -> Result<Cte> {
        self.name_cte(cte);
        self.open(PlanNode::new(CTE).named(&cte.name));
        let compiled = self.cte_body(cte);
        self.close();
        compiled
    }

    fn cte_body(&mut self, cte: &BoundCte) -> Result<Cte> {
        let cache = self.cache();
        let mut varies = self.reads_varying();
        cte.body.for_each_child(|child, _| {
            varies |= matches!(child, BoundChild::Rel(rel) if !varies && is_correlated(rel));
        });
        let body = match &cte.body {
            CteBody::Query(rel) => {
                let node = self.relation(rel)?;
                let slots = self.declare(rel);
                self.mark_all(&slots);
                CteNode::Query { node: Box::new(node), slots }
            }
            CteBody::Recursive { initial, recursive, all } => {
                let working = self.cache();
                let line = self.plan.lines.len();
                let initial_node = self.relation(initial)?;
                let initial_slots = self.declare(initial);
                self.mark_all(&initial_slots);
                self.know_cte(cte.id, CteSource { cache: working, working: true, varies, streamed: None });
                let recursive_node = self.relation(recursive)?;
                if self.is_describing() {
                    self.plan.wrap(line, PlanNode::new("Recursive Union"));
                }
                let recursive_slots = self.declare(recursive);
                self.mark_all(&recursive_slots);
                CteNode::Recursive(Arc::new(Recursion {
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
                if matches!(body, Body::Instead(..)) {
                    return Err(SqlError::unsupported("a data-modifying WITH on a view with triggers"));
                }
                CteNode::Modify(Box::new(body))
            }
        };
        self.know_cte(cte.id, CteSource { cache, working: false, varies, streamed: None });
        Ok(Cte { cache, body })
    }

    fn know_cte(&mut self, id: u32, source: CteSource) {
        match source.working || source.varies {
            true => self.varying.insert(id),
            false => self.varying.remove(&id),
        };
        self.ctes.insert(id, source);
    }

    /// What reads a CTE; somebody does.
    pub fn cte_scan(&mut self, id: u32, slots: Vec<u32>) -> Result<Node> {
        self.ctes_read.insert(id);
        let source =
            self.ctes.get(&id).ok_or_else(|| SqlError::internal(format!("CTE {id} is not in scope")))?;
        Ok(match &source.streamed {
            Some(recursion) => Node::Recursion { recursion: recursion.clone(), slots },
            None => Node::CteScan { cache: source.cache, slots },
        })
    }

    /// Whether a CTE in scope may have other rows before the statement ends: the working table of a
    /// recursion, or one that reads rows of an enclosing query. Telling whether a subquery reads it
    /// would need one more walk, and running a subquery again is only slower.
    pub fn reads_varying(&self) -> bool {
        !self.varying.is_empty()
    }
}

/// The CTE that a query reads once, from one end to the other, and nowhere else.
fn only_read(body: &Rel) -> Option<u32> {
    let mut rel = body;
    let id = loop {
        match rel {
            Rel::Limit { input, .. }
            | Rel::Project { input, .. }
            | Rel::ProjectSet { input, .. }
            | Rel::Filter { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Aggregate { input, .. } => rel = input,
            Rel::CteScan { id, .. } => break *id,
            _ => return None,
        }
    };
    let mut queries = false;
    visit_expressions(body, &mut |expr| queries |= matches!(expr.kind, ExprKind::Subquery(_)));
    (!queries).then_some(id)
}
