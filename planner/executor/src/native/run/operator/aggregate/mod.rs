//! GROUP BY, grouping sets and aggregate functions.
//!
//! Groups live in a hash table in order of first appearance, those of several sets in one of [`sets`]. `min` and `max` of a column that
//! some path walks in order need no grouping at all: the first value that is not NULL is the
//! answer, and the scan stops there.

pub(crate) mod sets;

use std::ops::ControlFlow;

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::Aggregate;
use archipel_sql::types::Oid;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::array::Values;
use crate::bound::{Accumulator, AggregateCall, BoundExpr, Rel};
use crate::native::plan::relation;
use crate::native::plan::compiler::{Compiler, passed_through};
use crate::native::run::access::path::OrderKey;
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::HashKey;
use crate::native::run::row::quicksort::sort_rows;
use crate::native::run::state::context::{ExecContext, ExecResult};
use sets::{Groups, Steps};
use super::node::{Node, Out};
use super::sort::{KeyOrder, compare_keys};
use super::transition::{Taker, Taking};

/// One aggregate call, compiled.
pub(crate) struct Call {
    taker: Taker,
    pub args: Vec<Source>,
    pub filter: Option<CompiledPredicate>,
    pub distinct: bool,
    order_keys: Vec<Source>,
    orders: Vec<KeyOrder>,
}

/// The running state of one call over one group.
pub(crate) struct Running {
    state: Taking,
    seen: FxHashSet<HashKey>,
    /// ORDER BY: sort keys and arguments wait until the end.
    waiting: Option<(RowBuffer, RowBuffer)>,
}

pub(crate) struct Aggregation {
    input: Node,
    groups: Vec<Source>,
    sets: Vec<Vec<u16>>,
    calls: Vec<Call>,
    groupings: Vec<Vec<u16>>,
    group_slots: Vec<u32>,
    /// For each call, an earlier one whose states are its own.
    shared: Vec<Option<usize>>,
    call_slots: Vec<u32>,
    grouping_slots: Vec<u32>,
    /// min or max over an ordered walk: the first value settles it.
    first_value: bool,
}

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
            relation::expect_rows(&mut planned.node, 1);
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

impl Call {
    pub fn plain(taker: Taker) -> Call {
        Call {
            taker,
            args: Vec::new(),
            filter: None,
            distinct: false,
            order_keys: Vec::new(),
            orders: Vec::new(),
        }
    }

    pub fn start(&self) -> Running {
        let ordered = !self.orders.is_empty();
        Running {
            state: self.taker.start(),
            seen: FxHashSet::default(),
            waiting: ordered.then(|| (RowBuffer::new(self.orders.len()), RowBuffer::new(self.args.len()))),
        }
    }

    /// Takes the current row.
    fn update(&self, running: &mut Running, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        if let Some(filter) = &self.filter
            && filter(ctx)? != Some(true)
        {
            return Ok(());
        }
        if let [arg] = &self.args[..]
            && self.taker.is_builtin()
            && !self.distinct
            && running.waiting.is_none()
        {
            let computed;
            let arg = match arg {
                Source::Operand(operand) => operand.get(ctx),
                Source::Code(code) => {
                    computed = code(ctx)?;
                    &computed
                }
            };
            if let Taking::Builtin(state) = &mut running.state
                && !(self.taker.strict() && arg.is_null())
            {
                state.update(&ctx.functions, std::slice::from_ref(arg))?;
            }
            return Ok(());
        }
        let args = eval_all(&self.args, ctx)?;
        if self.taker.strict() && args.iter().any(Datum::is_null) {
            return Ok(());
        }
        if self.distinct && !running.seen.insert(HashKey(args.iter().cloned().collect())) {
            return Ok(());
        }
        match &mut running.waiting {
            Some((keys, rows)) => {
                let key = eval_all(&self.order_keys, ctx)?;
                keys.push(key);
                rows.push(args);
            }
            None => self.taker.take(&mut running.state, &args, ctx)?,
        }
        Ok(())
    }

    /// Takes one row of arguments, for windows.
    pub fn feed(
        &self,
        running: &mut Running,
        ctx: &mut ExecContext<'_, '_>,
        args: &Values,
    ) -> ExecResult<()> {
        if !(self.taker.strict() && args.iter().any(Datum::is_null)) {
            self.taker.take(&mut running.state, args, ctx)?;
        }
        Ok(())
    }

    /// Gives back a row of arguments that was taken, for windows; false if that cannot be done.
    pub fn give_back(&self, running: &mut Running, args: &[Datum]) -> ExecResult<bool> {
        if self.taker.strict() && args.iter().any(Datum::is_null) {
            return Ok(true);
        }
        match &mut running.state {
            Taking::Builtin(state) => Ok(state.give_back(args)?),
            Taking::Defined(_) => Ok(false),
        }
    }

    pub fn finish(&self, running: &mut Running, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Datum> {
        self.feed_waiting(running, ctx)?;
        self.taker.finish(&mut running.state, ctx)
    }

    /// Takes the rows that waited for their order.
    fn feed_waiting(&self, running: &mut Running, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        if let Some((keys, rows)) = running.waiting.take() {
            let mut positions: Vec<usize> = (0..rows.len()).collect();
            sort_rows(&mut positions, |a, b| compare_keys(keys.row(*a), keys.row(*b), &self.orders))?;
            for position in positions {
                ctx.tick()?;
                self.taker.take(&mut running.state, rows.row(position), ctx)?;
            }
        }
        Ok(())
    }
}

impl Aggregation {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        if self.first_value {
            return self.run_first_value(ctx, out);
        }
        if self.groups.is_empty() && self.sets.len() <= 1 {
            return self.run_ungrouped(ctx, out);
        }
        if self.sets.len() > 1 {
            return self.run_sets(ctx, out);
        }
        // Keyed by the set's group values; others are NULL.
        let whole: Vec<u16> = (0..self.groups.len() as u16).collect();
        let set = self.sets.first().unwrap_or(&whole);
        let mut index: FxHashMap<HashKey, usize> = FxHashMap::default();
        let mut groups: Vec<(Values, Vec<Running>)> = Vec::new();
        let _ = self.input.run(ctx, &mut |ctx| {
            let values = eval_all(&self.groups, ctx)?;
            let key = HashKey(set.iter().map(|group| values[usize::from(*group)].clone()).collect());
            let position = match index.get(&key) {
                Some(position) => *position,
                None => {
                    let mut shown = Values::from_elem(Datum::Null, self.groups.len());
                    for (group, value) in set.iter().zip(&key.0) {
                        shown[usize::from(*group)] = value.clone();
                    }
                    groups.push((shown, self.calls.iter().map(Call::start).collect()));
                    index.insert(key, groups.len() - 1);
                    groups.len() - 1
                }
            };
            self.update(&mut groups[position].1, ctx)?;
            Ok(ControlFlow::Continue(()))
        })?;
        // The empty set answers a row even for no input.
        if set.is_empty() && groups.is_empty() {
            let shown = Values::from_elem(Datum::Null, self.groups.len());
            groups.push((shown, self.calls.iter().map(Call::start).collect()));
        }
        for (shown, mut running) in groups {
            for (value, slot) in shown.into_iter().zip(&self.group_slots) {
                ctx.frame.slots[*slot as usize] = value;
            }
            self.show_groupings(set, ctx);
            if self.emit(&mut running, ctx, out)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn run_sets(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        let steps = Steps::of(&self.sets);
        let mut found = Groups::new(&steps, self.groups.len());
        let mut groups: Vec<Vec<Running>> = Vec::new();
        let _ = self.input.run(ctx, &mut |ctx| {
            let values = eval_all(&self.groups, ctx)?;
            found.enter(&values);
            for set in 0..self.sets.len() {
                let group = found.group(set, &values);
                if group == groups.len() {
                    groups.push(self.calls.iter().map(Call::start).collect());
                }
                self.update(&mut groups[group], ctx)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        // The empty set answers a row even for no input.
        for (set, _) in self.sets.iter().enumerate().filter(|(_, columns)| columns.is_empty()) {
            if found.group(set, &[]) == groups.len() {
                groups.push(self.calls.iter().map(Call::start).collect());
            }
        }
        for (group, mut running) in groups.into_iter().enumerate() {
            let set = found.show(group, &self.group_slots, &mut ctx.frame.slots);
            self.show_groupings(&self.sets[set], ctx);
            if self.emit(&mut running, ctx, out)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// What GROUPING answers for the groups of a set.
    fn show_groupings(&self, set: &[u16], ctx: &mut ExecContext<'_, '_>) {
        for (grouping, slot) in self.groupings.iter().zip(&self.grouping_slots) {
            ctx.frame.slots[*slot as usize] = Datum::Int4(grouping_bits(grouping, set));
        }
    }

    fn run_ungrouped(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        let mut running: Vec<Running> = self.calls.iter().map(Call::start).collect();
        let mut any = false;
        let _ = self.input.run(ctx, &mut |ctx| {
            any = true;
            self.update(&mut running, ctx)?;
            Ok(ControlFlow::Continue(()))
        })?;
        self.show_groupings(&[], ctx);
        let _ = any;
        self.emit(&mut running, ctx, out)
    }

    /// Takes the current row into the states of a group.
    fn update(&self, running: &mut [Running], ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        for ((call, running), shared) in self.calls.iter().zip(running).zip(&self.shared) {
            if shared.is_none() {
                call.update(running, ctx)?;
            }
        }
        Ok(())
    }

    fn run_first_value(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let mut value = Datum::Null;
        let _ = self.input.run(ctx, &mut |ctx| {
            for arg in self.calls.iter().flat_map(|call| &call.args) {
                value = arg.eval(ctx)?;
            }
            Ok(if value.is_null() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        for slot in &self.call_slots {
            ctx.frame.slots[*slot as usize] = value.clone();
        }
        out(ctx)
    }

    fn emit(
        &self,
        running: &mut [Running],
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        for (place, (call, slot)) in self.calls.iter().zip(&self.call_slots).enumerate() {
            let states = self.shared[place].unwrap_or(place);
            ctx.frame.slots[*slot as usize] = call.finish(&mut running[states], ctx)?;
        }
        out(ctx)
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

/// GROUPING(…): a bit an argument, the last one lowest, set where the set lacks it.
fn grouping_bits(arguments: &[u16], set: &[u16]) -> i32 {
    arguments.iter().fold(0, |bits, argument| bits << 1 | i32::from(!set.contains(argument)))
}
