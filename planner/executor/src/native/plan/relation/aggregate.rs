//! GROUP BY, grouping sets and aggregate functions, compiled.

use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::Aggregate;
use archipel_sql::types::Oid;

use super::node;
use crate::bound::{Accumulator, AggregateCall, BoundExpr, Rel};
use crate::native::plan::compiler::{Compiler, passed_through};
use crate::native::run::access::path::OrderKey;
use crate::native::run::operator::aggregate::{Aggregation, Call};
use crate::native::run::operator::node::Node;
use crate::native::run::operator::sort::KeyOrder;

impl Compiler<'_> {
    pub fn aggregation(&mut self, rel: &Rel) -> Result<Node> {
        let Rel::Aggregate { input, group_by, sets, aggregates, groupings } = rel else {
            return Err(SqlError::internal("not an aggregate"));
        };
        let slots = self.declare(rel);
        let layout = self.declare(input);
        let wanted = self.extreme_order(&layout, group_by.is_empty(), sets, aggregates);
        let mut planned = self.plan(input, Vec::new(), wanted.as_slice())?;
        let first_value = planned.ordered && !wanted.is_empty();
        if first_value {
            node::expect_rows(&mut planned.node, 1);
        }
        let (groups, calls) = self.scoped(&layout, |c| {
            let groups = c.exprs(group_by)?;
            let calls = aggregates.iter().map(|call| c.aggregate_call(call)).collect::<Result<Vec<_>>>()?;
            Ok((groups, calls))
        })?;
        let (group_slots, rest) = slots.split_at(group_by.len());
        let (call_slots, grouping_slots) = rest.split_at(aggregates.len());
        Ok(Node::Aggregate(Box::new(Aggregation {
            input: planned.node,
            groups,
            sets: sets.clone(),
            calls,
            shared: (0..aggregates.len()).map(|place| shares_with(aggregates, place)).collect(),
            groupings: groupings.clone(),
            group_slots: group_slots.to_vec(),
            call_slots: call_slots.to_vec(),
            grouping_slots: grouping_slots.to_vec(),
            first_value,
        })))
    }

    /// The order in which the first value is the minimum or maximum asked for.
    fn extreme_order(
        &self,
        layout: &[u32],
        ungrouped: bool,
        sets: &[Vec<u16>],
        aggregates: &[AggregateCall],
    ) -> Vec<OrderKey> {
        let [call] = aggregates else { return Vec::new() };
        let descending = match call.function.builtin() {
            Some(Aggregate::Least) => false,
            Some(Aggregate::Greatest) => true,
            _ => return Vec::new(),
        };
        let [arg] = &call.args[..] else { return Vec::new() };
        if !ungrouped || sets.len() > 1 || call.filter.is_some() {
            return Vec::new();
        }
        match passed_through(arg, layout) {
            Some(slot) => vec![OrderKey { slot, descending, nulls_first: descending }],
            None => Vec::new(),
        }
    }

    /// Compiles a call. In scope: the input row.
    pub fn aggregate_call(&mut self, call: &AggregateCall) -> Result<Call> {
        let (mut order_keys, mut orders) = (Vec::new(), Vec::new());
        for key in &call.order_by {
            order_keys.push(self.source(&key.expr)?);
            orders.push(KeyOrder::of(key));
        }
        // PostgreSQL finds distinct arguments by sorting them.
        if call.distinct && tells_order(call) {
            let sorted = |arg: &BoundExpr| call.order_by.iter().any(|key| key.expr.is_same(arg));
            for arg in call.args.iter().filter(|arg| !sorted(arg)) {
                order_keys.push(self.source(arg)?);
                orders.push(KeyOrder { descending: false, nulls_first: false });
            }
        }
        Ok(Call {
            taker: self.taker(&call.function, &call.args)?,
            args: self.exprs(&call.args)?,
            filter: call.filter.as_ref().map(|filter| self.predicate(filter)).transpose()?,
            distinct: call.distinct,
            order_keys,
            orders,
        })
    }
}

/// Whether what a call answers may depend on the order of its rows.
fn tells_order(call: &AggregateCall) -> bool {
    let inexact = |arg: &BoundExpr| matches!(arg.ty.oid, Oid::FLOAT4 | Oid::FLOAT8);
    match call.function.builtin() {
        Some(
            Aggregate::Count
            | Aggregate::Least
            | Aggregate::Greatest
            | Aggregate::All
            | Aggregate::Any
            | Aggregate::BitAnd
            | Aggregate::BitOr,
        ) => false,
        Some(Aggregate::Sum | Aggregate::Average) => call.args.iter().any(inexact),
        _ => true,
    }
}

/// The first call whose states a later one can go on from: that takes the same rows in the same way.
fn shares_with(calls: &[AggregateCall], place: usize) -> Option<usize> {
    let call = &calls[place];
    let Accumulator::Defined(defined) = &call.function else { return None };
    let is_shared = |other: &AggregateCall| match &other.function {
        Accumulator::Builtin(_) => false,
        Accumulator::Defined(known) => {
            known.shares_states(defined)
                && other.distinct == call.distinct
                && other.args == call.args
                && other.filter == call.filter
                && other.order_by == call.order_by
                && !call.args.iter().any(crate::bind::visit::is_volatile)
        }
    };
    calls[..place].iter().position(is_shared)
}
