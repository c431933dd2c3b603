//! Nested queries in expressions.
//!
//! One that reads no row of the enclosing query is computed once a run of the statement and
//! kept in the frame; `IN (query)` keeps a hash set. A correlated one runs each time, stopping
//! at the first row that settles the answer; its scans take the outer row's slots as key
//! values, so that `EXISTS (… WHERE key = outer.key)` is an index lookup; where there is no such key,
//! [`partners`](super::exists).

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::ResolvedFunction;
use archipel_sql::interrupt;

use crate::array::{Values, array_of};
use crate::bound::{BoundExpr, Rel, Subquery, SubqueryKind};
use crate::comparison::{Comparison, comparison};
use crate::construct::truth;
use crate::explain::plan::{INIT_PLAN, SUB_PLAN};
use crate::native::plan::compiler::Compiler;
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::operator::node::{Node, collect};
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::ValueSet;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::state::frame::Cache;

/// A nested query, compiled.
struct Nested {
    node: Arc<Node>,
    slots: Arc<[u32]>,
}

impl Compiler<'_> {
    /// Compiles a nested query as a value.
    pub fn subquery(&mut self, subquery: &Subquery) -> Result<Source> {
        let once = self.runs_once(subquery);
        match &subquery.kind {
            SubqueryKind::Scalar => {
                let nested = self.nested_query(&subquery.rel, once)?;
                let Some(slot) = nested.slots.first().copied() else {
                    return Err(SqlError::internal("a scalar subquery has no column"));
                };
                let node = nested.node.clone();
                Ok(self.value_of_query(once, move |ctx| scalar(&node, slot, ctx)))
            }
            SubqueryKind::Array { element } => {
                let nested = self.nested_query(&subquery.rel, once)?;
                let (node, slots, element) = (nested.node.clone(), nested.slots.clone(), *element);
                Ok(self.value_of_query(once, move |ctx| {
                    let rows = collect(&node, &slots, ctx)?;
                    let values: Values = rows.iter().filter_map(|row| row.first().cloned()).collect();
                    Ok(array_of(element, values)?)
                }))
            }
            _ => {
                let predicate = self.subquery_predicate(subquery)?;
                Ok(Source::Code(Box::new(move |ctx| Ok(predicate(ctx)?.map_or(Datum::Null, Datum::Bool)))))
            }
        }
    }

    /// Compiles EXISTS, ANY or ALL.
    pub fn subquery_predicate(&mut self, subquery: &Subquery) -> Result<CompiledPredicate> {
        let once = self.runs_once(subquery);
        match &subquery.kind {
            SubqueryKind::Exists => {
                if let Some(partner) = self.partner(subquery)? {
                    return Ok(partner);
                }
                let nested = self.nested_query(&subquery.rel, once)?;
                let node = nested.node.clone();
                let found = self.value_of_query(once, move |ctx| {
                    let flow = node.run(ctx, &mut |_| Ok(ControlFlow::Break(())))?;
                    Ok(Datum::Bool(flow.is_break()))
                });
                Ok(Box::new(move |ctx| Ok(truth(&found.eval(ctx)?))))
            }
            SubqueryKind::Any { left, operators } => self.quantified(subquery, left, operators, false, once),
            SubqueryKind::All { left, operators } => self.quantified(subquery, left, operators, true, once),
            SubqueryKind::Scalar | SubqueryKind::Array { .. } => {
                let value = self.subquery(subquery)?;
                Ok(Box::new(move |ctx| Ok(truth(&value.eval(ctx)?))))
            }
        }
    }

    /// Whether a nested query has one answer for the whole statement.
    fn runs_once(&self, subquery: &Subquery) -> bool {
        !subquery.correlated && !self.reads_varying()
    }

    /// `once`: its value is computed once, before anything asks for it.
    fn nested_query(&mut self, rel: &Rel, once: bool) -> Result<Nested> {
        self.forgetting(|c| {
            let slots = c.declare(rel);
            c.open(if once { INIT_PLAN } else { SUB_PLAN });
            let node = c.relation(rel);
            c.close();
            c.mark_all(&slots);
            Ok(Nested { node: Arc::new(node?), slots: slots.into() })
        })
    }

    /// The value of a nested query, kept if it is computed once.
    fn value_of_query(
        &mut self,
        once: bool,
        compute: impl Fn(&mut ExecContext<'_, '_>) -> ExecResult<Datum> + Send + Sync + 'static,
    ) -> Source {
        if !once {
            return Source::Code(Box::new(compute));
        }
        let cache = self.cache();
        Source::Code(Box::new(move |ctx| cached(ctx, cache, &compute)))
    }

    fn quantified(
        &mut self,
        subquery: &Subquery,
        left: &[BoundExpr],
        operators: &[ResolvedFunction],
        all: bool,
        once: bool,
    ) -> Result<CompiledPredicate> {
        let left = self.exprs(left)?;
        let nested = self.nested_query(&subquery.rel, false)?;
        let (node, slots) = (nested.node.clone(), nested.slots.clone());
        let operators = operators.to_vec();
        let hashed =
            once && !all && operators.iter().all(|op| comparison(op.function) == Some(Comparison::Eq));
        if hashed && left.len() == 1 {
            let cache = self.cache();
            return Ok(Box::new(move |ctx| {
                let value = left[0].eval(ctx)?;
                Ok(value_set(ctx, cache, &node, &slots)?.contains(value))
            }));
        }
        if hashed {
            let cache = self.cache();
            return Ok(Box::new(move |ctx| {
                let row = eval_all(&left, ctx)?;
                let set = value_set(ctx, cache, &node, &slots)?;
                interrupt::steps(STEPS_PER_COMPARISON * (1 + set.compared(row.iter().any(Datum::is_null))))?;
                Ok(set.contains_row(row))
            }));
        }
        let cache = once.then(|| self.cache());
        Ok(Box::new(move |ctx| {
            let left = eval_all(&left, ctx)?;
            let mut result = Some(all);
            let mut settle = |ctx: &ExecContext<'_, '_>, row: &[Datum]| -> ExecResult<ControlFlow<()>> {
                match row_holds(ctx, &left, row, &operators)? {
                    Some(holds) if holds != all => {
                        result = Some(!all);
                        return Ok(ControlFlow::Break(()));
                    }
                    Some(_) => {}
                    None => result = None,
                }
                Ok(ControlFlow::Continue(()))
            };
            match cache {
                Some(cache) => {
                    let rows = kept_rows(ctx, cache, &node, &slots)?;
                    for row in rows.iter() {
                        if settle(ctx, row)?.is_break() {
                            break;
                        }
                    }
                }
                None => {
                    let _ = node.run(ctx, &mut |ctx| {
                        let row: Values =
                            slots.iter().map(|s| ctx.frame.slots[*s as usize].clone()).collect();
                        settle(ctx, &row)
                    })?;
                }
            }
            Ok(result)
        }))
    }
}

/// What comparing two values counts as ([`interrupt::steps`]).
const STEPS_PER_COMPARISON: usize = 16;

/// `(l1, l2) op (r1, r2)`: all of the comparisons.
fn row_holds(
    ctx: &ExecContext<'_, '_>,
    left: &[Datum],
    right: &[Datum],
    operators: &[ResolvedFunction],
) -> ExecResult<Option<bool>> {
    let mut result = Some(true);
    for ((left, right), operator) in left.iter().zip(right).zip(operators) {
        // Of all rows of a subquery, between two of the statement's own.
        interrupt::steps(STEPS_PER_COMPARISON)?;
        if left.is_null() || right.is_null() {
            result = None;
            continue;
        }
        let pair = [left.clone(), right.clone()];
        match truth(&(operator.function.eval)(&ctx.functions, &pair)?) {
            Some(false) => return Ok(Some(false)),
            Some(true) => {}
            None => result = None,
        }
    }
    Ok(result)
}

fn scalar(node: &Node, slot: u32, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Datum> {
    let mut value = None;
    let _ = node.run(ctx, &mut |ctx| {
        if value.is_some() {
            return Err(SqlError::new(
                SqlState::CARDINALITY_VIOLATION,
                "more than one row returned by a subquery used as an expression",
            )
            .into());
        }
        value = Some(ctx.frame.slots[slot as usize].clone());
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(value.unwrap_or(Datum::Null))
}

/// A value that is computed once a run of the statement.
fn cached(
    ctx: &mut ExecContext<'_, '_>,
    cache: usize,
    compute: &impl Fn(&mut ExecContext<'_, '_>) -> ExecResult<Datum>,
) -> ExecResult<Datum> {
    if let Cache::Value(value) = &ctx.frame.caches[cache] {
        return Ok(value.clone());
    }
    let value = compute(ctx)?;
    ctx.frame.caches[cache] = Cache::Value(value.clone());
    Ok(value)
}

fn kept_rows(
    ctx: &mut ExecContext<'_, '_>,
    cache: usize,
    node: &Node,
    slots: &[u32],
) -> ExecResult<Arc<RowBuffer>> {
    if let Cache::Rows(rows) = &ctx.frame.caches[cache] {
        return Ok(rows.clone());
    }
    let rows = Arc::new(collect(node, slots, ctx)?);
    ctx.frame.caches[cache] = Cache::Rows(rows.clone());
    Ok(rows)
}

fn value_set(
    ctx: &mut ExecContext<'_, '_>,
    cache: usize,
    node: &Node,
    slots: &[u32],
) -> ExecResult<Arc<ValueSet>> {
    if let Cache::Set(set) = &ctx.frame.caches[cache] {
        return Ok(set.clone());
    }
    let mut set = ValueSet::default();
    let _ = node.run(ctx, &mut |ctx| {
        let value = |slot: &u32| ctx.frame.slots[*slot as usize].clone();
        match slots {
            [slot] => set.insert(value(slot)),
            slots => set.insert_row(slots.iter().map(value)),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let set = Arc::new(set);
    ctx.frame.caches[cache] = Cache::Set(set.clone());
    Ok(set)
}
