//! Sort and Distinct.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use archipel_sql::datum::Datum;
use rustc_hash::FxHashSet;

use super::node::{Node, Out};
use crate::bound::SortKey;
use crate::comparison::order;
use crate::native::run::expression::source;
use crate::native::run::expression::source::Source;
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::HashKey;
use crate::native::run::row::projection::Pruned;
use crate::native::run::row::quicksort::sort_rows;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// How one sort key orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyOrder {
    pub descending: bool,
    pub nulls_first: bool,
}

impl KeyOrder {
    pub fn of(key: &SortKey) -> KeyOrder {
        KeyOrder { descending: key.descending, nulls_first: key.nulls_first }
    }

    pub fn compare(self, a: &Datum, b: &Datum) -> Ordering {
        match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => {
                if self.nulls_first {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (false, true) => {
                if self.nulls_first {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (false, false) => {
                let order = order(a, b);
                if self.descending { order.reverse() } else { order }
            }
        }
    }
}

/// Compares tuples of sort keys.
pub(crate) fn compare_keys(a: &[Datum], b: &[Datum], orders: &[KeyOrder]) -> Ordering {
    a.iter()
        .zip(b)
        .zip(orders)
        .map(|((a, b), key)| key.compare(a, b))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// A sort: rows are kept as the used slots of the input, and put back into them.
pub(crate) struct Sorting {
    pub(crate) input: Box<Node>,
    pub(crate) slots: Pruned<u32>,
    pub(crate) keys: Vec<Source>,
    pub(crate) orders: Vec<KeyOrder>,
}

impl Sorting {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        let slots = self.slots.get();
        let mut rows = RowBuffer::new(slots.len());
        let mut keys = RowBuffer::new(self.keys.len());
        let _ = self.input.run(ctx, &mut |ctx| {
            let key = source::eval_all(&self.keys, ctx)?;
            keys.push(key);
            rows.push_slots(&ctx.frame, slots);
            Ok(ControlFlow::Continue(()))
        })?;
        let mut positions: Vec<u32> = (0..rows.len() as u32).collect();
        sort_rows(&mut positions, |a, b| {
            compare_keys(keys.row(*a as usize), keys.row(*b as usize), &self.orders)
        })?;
        for position in positions {
            rows.restore(position as usize, &mut ctx.frame, slots);
            if out(ctx)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Distinct rows, or the first row of each group of `on` keys; rows pass as they come.
pub(crate) struct Distinct {
    pub(crate) input: Box<Node>,
    pub(crate) keys: Vec<Source>,
}

impl Distinct {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        let mut seen: FxHashSet<HashKey> = FxHashSet::default();
        self.input.run(ctx, &mut |ctx| {
            let key = super::node::hash_key(&self.keys, ctx)?;
            if seen.insert(key) { out(ctx) } else { Ok(ControlFlow::Continue(())) }
        })
    }
}
