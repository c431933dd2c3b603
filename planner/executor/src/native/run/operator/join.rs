//! Joins at run time: nested loops and hash joins.

use std::ops::ControlFlow;

use archipel_sql::datum::Datum;
use rustc_hash::FxHashMap;

use super::node::{Node, Out, collect, hash_key, set_null};
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::Source;
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::{HashKey, HashTable};
use crate::native::run::row::projection::Pruned;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// A nested loop: the right side runs once a left row, or was buffered.
pub(crate) struct Loop {
    pub left: Box<Node>,
    pub right: Box<Node>,
    pub on: Option<CompiledPredicate>,
    pub kind: LoopKind,
    /// Right-side slots, set to NULL for a left row without a match.
    pub right_slots: Pruned<u32>,
    /// For FULL.
    pub left_slots: Pruned<u32>,
    /// Run the right side once and keep its rows.
    pub buffered: bool,
    /// If buffered and empty, it leaves the left side alone.
    pub right_first: bool,
    /// Where a number is that the right side's rows are kept with: they are good while it stays. Of
    /// inner joins that are not buffered.
    pub kept: Option<u32>,
    /// The slots by whose values the right side's rows are kept; none: they are not. Of inner and left
    /// joins that are not buffered.
    pub memo: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopKind {
    Inner,
    Left,
    Full,
}

/// A hash join; the right side is the build side.
pub(crate) struct HashJoin {
    pub left: Box<Node>,
    pub right: Box<Node>,
    pub left_keys: Vec<Source>,
    pub right_keys: Vec<Source>,
    pub on: Option<CompiledPredicate>,
    pub kind: LoopKind,
    pub right_slots: Pruned<u32>,
    pub left_slots: Pruned<u32>,
    /// As [`Loop::right_first`].
    pub right_first: bool,
}

impl Loop {
    pub(crate) fn run(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        if self.buffered {
            return self.run_buffered(ctx, out);
        }
        if let Some(count) = self.kept {
            return self.run_kept(count, ctx, out);
        }
        if !self.memo.is_empty() {
            return self.run_memo(ctx, out);
        }
        self.left.run(ctx, &mut |ctx| {
            let mut matched = false;
            let flow = self.right.run(ctx, &mut |ctx| {
                if let Some(on) = &self.on
                    && on(ctx)? != Some(true)
                {
                    return Ok(ControlFlow::Continue(()));
                }
                matched = true;
                out(ctx)
            })?;
            if flow.is_break() || matched || self.kind == LoopKind::Inner {
                return Ok(flow);
            }
            set_null(ctx, self.right_slots.get());
            out(ctx)
        })
    }

    /// Puts a row of the right side that was kept where it was; whether it goes with the left one.
    #[inline]
    fn goes_with(
        &self,
        rows: &RowBuffer,
        index: usize,
        slots: &[u32],
        ctx: &mut ExecContext<'_, '_>,
    ) -> ExecResult<bool> {
        ctx.tick()?;
        rows.restore(index, &mut ctx.frame, slots);
        match &self.on {
            Some(on) => Ok(on(ctx)? == Some(true)),
            None => Ok(true),
        }
    }

    /// Runs the right side anew where the number at `count` is another one.
    fn run_kept(
        &self,
        count: u32,
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let slots = self.right_slots.get();
        let mut rows = RowBuffer::new(slots.len());
        let mut made_for = Datum::Null;
        self.left.run(ctx, &mut |ctx| {
            if ctx.frame.slots[count as usize] != made_for {
                rows = collect(&self.right, slots, ctx)?;
                made_for = ctx.frame.slots[count as usize].clone();
            }
            for index in 0..rows.len() {
                if !self.goes_with(&rows, index, slots, ctx)? {
                    continue;
                }
                if out(ctx)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Runs the right side once for each of the values that it reads (Memoize, in its binary mode).
    fn run_memo(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        let slots = self.right_slots.get();
        let mut made: FxHashMap<HashKey, Vec<(Vec<Datum>, RowBuffer)>> = FxHashMap::default();
        self.left.run(ctx, &mut |ctx| {
            let read: Vec<Datum> =
                self.memo.iter().map(|slot| ctx.frame.slots[*slot as usize].clone()).collect();
            let alike = made.entry(HashKey(read.iter().cloned().collect())).or_default();
            let known = alike.iter().position(|(of, _)| of.iter().zip(&read).all(|(a, b)| is_alike(a, b)));
            let place = match known {
                Some(place) => place,
                None => {
                    alike.push((read, collect(&self.right, slots, ctx)?));
                    alike.len() - 1
                }
            };
            let rows = &alike[place].1;
            let mut matched = false;
            for index in 0..rows.len() {
                ctx.tick()?;
                rows.restore(index, &mut ctx.frame, slots);
                if let Some(on) = &self.on
                    && on(ctx)? != Some(true)
                {
                    continue;
                }
                matched = true;
                if out(ctx)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if matched || self.kind == LoopKind::Inner {
                return Ok(ControlFlow::Continue(()));
            }
            set_null(ctx, slots);
            out(ctx)
        })
    }

    fn run_buffered(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        let slots = self.right_slots.get();
        let rows = collect(&self.right, slots, ctx)?;
        if self.right_first && rows.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut seen = vec![false; if self.kind == LoopKind::Full { rows.len() } else { 0 }];
        let flow = self.left.run(ctx, &mut |ctx| {
            let mut matched = false;
            for index in 0..rows.len() {
                if !self.goes_with(&rows, index, slots, ctx)? {
                    continue;
                }
                matched = true;
                if let Some(seen) = seen.get_mut(index) {
                    *seen = true;
                }
                if out(ctx)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if matched || self.kind == LoopKind::Inner {
                return Ok(ControlFlow::Continue(()));
            }
            set_null(ctx, slots);
            out(ctx)
        })?;
        if flow.is_break() || self.kind != LoopKind::Full {
            return Ok(flow);
        }
        unmatched(&rows, &seen, slots, self.left_slots.get(), ctx, out)
    }
}

/// Whether two values are the same in all that shows: `1.0` and `1.00` are equal, and not alike.
pub(crate) fn is_alike(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Int4(a), Datum::Int4(b)) => a == b,
        (Datum::Int8(a), Datum::Int8(b)) => a == b,
        (Datum::Text(a), Datum::Text(b)) => a == b,
        _ => format!("{a:?}") == format!("{b:?}"),
    }
}

/// The right rows of a FULL join that no left row met.
fn unmatched(
    rows: &RowBuffer,
    seen: &[bool],
    right_slots: &[u32],
    left_slots: &[u32],
    ctx: &mut ExecContext<'_, '_>,
    out: &mut Out<'_>,
) -> ExecResult<ControlFlow<()>> {
    for (index, seen) in seen.iter().enumerate() {
        if *seen {
            continue;
        }
        set_null(ctx, left_slots);
        rows.restore(index, &mut ctx.frame, right_slots);
        if out(ctx)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

impl HashJoin {
    pub(crate) fn run(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let slots = self.right_slots.get();
        let mut table = HashTable { rows: RowBuffer::new(slots.len()), index: FxHashMap::default() };
        let _ = self.right.run(ctx, &mut |ctx| {
            let key = hash_key(&self.right_keys, ctx)?;
            // NULL equals nothing; a FULL join still shows the row.
            if key.has_null() && self.kind != LoopKind::Full {
                return Ok(ControlFlow::Continue(()));
            }
            let position = table.rows.len() as u32;
            table.rows.push_slots(&ctx.frame, slots);
            if !key.has_null() {
                table.index.entry(key).or_default().push(position);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if self.right_first && table.rows.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut seen = vec![false; if self.kind == LoopKind::Full { table.rows.len() } else { 0 }];
        let flow = self.left.run(ctx, &mut |ctx| {
            let key = hash_key(&self.left_keys, ctx)?;
            let mut matched = false;
            if !key.has_null()
                && let Some(positions) = table.index.get(&key)
            {
                for position in positions {
                    ctx.tick()?;
                    table.rows.restore(*position as usize, &mut ctx.frame, slots);
                    if let Some(on) = &self.on
                        && on(ctx)? != Some(true)
                    {
                        continue;
                    }
                    matched = true;
                    if let Some(seen) = seen.get_mut(*position as usize) {
                        *seen = true;
                    }
                    if out(ctx)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            if matched || self.kind == LoopKind::Inner {
                return Ok(ControlFlow::Continue(()));
            }
            set_null(ctx, slots);
            out(ctx)
        })?;
        if flow.is_break() || self.kind != LoopKind::Full {
            return Ok(flow);
        }
        unmatched(&table.rows, &seen, slots, self.left_slots.get(), ctx, out)
    }
}
