//! GROUP BY, grouping sets and aggregate functions.
//!
//! Groups live in a hash table in order of first appearance, those of several sets in one of [`sets`]. `min` and `max` of a column that
//! some path walks in order need no grouping at all: the first value that is not NULL is the
//! answer, and the scan stops there.

pub(crate) mod sets;

use std::ops::ControlFlow;

use archipel_sql::datum::Datum;
use rustc_hash::{FxHashMap, FxHashSet};

use super::node::{Node, Out};
use super::sort::{KeyOrder, compare_keys};
use super::transition::{Taker, Taking};
use crate::array::Values;
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::HashKey;
use crate::native::run::row::quicksort::sort_rows;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use sets::{Groups, Steps};

/// One aggregate call, compiled.
pub(crate) struct Call {
    pub(crate) taker: Taker,
    pub args: Vec<Source>,
    pub filter: Option<CompiledPredicate>,
    pub distinct: bool,
    pub(crate) order_keys: Vec<Source>,
    pub(crate) orders: Vec<KeyOrder>,
}

/// The running state of one call over one group.
pub(crate) struct Running {
    state: Taking,
    seen: FxHashSet<HashKey>,
    /// ORDER BY: sort keys and arguments wait until the end.
    waiting: Option<(RowBuffer, RowBuffer)>,
}

pub(crate) struct Aggregation {
    pub(crate) input: Node,
    pub(crate) groups: Vec<Source>,
    pub(crate) sets: Vec<Vec<u16>>,
    pub(crate) calls: Vec<Call>,
    pub(crate) groupings: Vec<Vec<u16>>,
    pub(crate) group_slots: Vec<u32>,
    /// For each call, an earlier one whose states are its own.
    pub(crate) shared: Vec<Option<usize>>,
    pub(crate) call_slots: Vec<u32>,
    pub(crate) grouping_slots: Vec<u32>,
    /// min or max over an ordered walk: the first value settles it.
    pub(crate) first_value: bool,
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

/// GROUPING(…): a bit an argument, the last one lowest, set where the set lacks it.
fn grouping_bits(arguments: &[u16], set: &[u16]) -> i32 {
    arguments.iter().fold(0, |bits, argument| bits << 1 | i32::from(!set.contains(argument)))
}
