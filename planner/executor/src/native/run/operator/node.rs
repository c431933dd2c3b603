//! The operators at run time.
//!
//! `run` calls `out` once a row, with the row's columns in their slots. It answers `Break` if
//! and only if `out` did: whoever consumes decides when there is enough.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::native::plan::relation::modifying_cte::Parts;
use crate::native::plan::relation::with::Recursion;
use crate::native::run::access::scan::Scan;
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::Source;
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::{HashKey, HashTable, widen};
use crate::native::run::row::projection::Pruned;
use crate::native::run::state::context::{Cache, ExecContext, ExecResult};
use crate::native::run::window::Windowing;
use super::aggregate::Aggregation;
use super::append::Append;
use super::lock::Locking;
use super::set_operation::SetOperation;
use super::sort::{Distinct, Sorting};

/// Receives control once a row.
pub(crate) type Out<'o> = dyn FnMut(&mut ExecContext<'_, '_>) -> ExecResult<ControlFlow<()>> + 'o;

pub(crate) enum Node {
    /// One row.
    Unit,
    /// Rows of expressions, each into the same slots.
    Values {
        rows: Vec<Vec<Source>>,
        slots: Vec<u32>,
    },
    Scan(Scan),
    /// Scans of the members of a family.
    Append(Append),
    /// A view over the server's own state.
    System {
        table: archipel_sql::catalog::TableRef,
        columns: Pruned<(usize, u32)>,
        filter: Option<CompiledPredicate>,
    },
    Set(super::set_function::SetSource),
    Explained(Box<super::explain_analyze::Explained>),
    Filter {
        input: Box<Node>,
        predicate: CompiledPredicate,
    },
    /// Computes columns that do not merely pass through.
    Compute {
        input: Box<Node>,
        columns: Pruned2,
    },
    /// Numbers the rows that it passes on.
    Count {
        input: Box<Node>,
        slot: u32,
    },
    /// Is counted.
    Watched(Box<super::instrument::Watched>),
    Expand(super::set_function::Expansion),
    Loop(Loop),
    Hash(HashJoin),
    Aggregate(Box<Aggregation>),
    Window(Box<Windowing>),
    Sort(Sorting),
    Distinct(Distinct),
    Lock(Locking),
    Limit(Limit),
    SetOperation(SetOperation),
    With {
        parts: Box<Parts>,
        body: Box<Node>,
    },
    CteScan {
        cache: usize,
        slots: Vec<u32>,
    },
    /// A recursive CTE with one reader.
    Recursion {
        recursion: Arc<Recursion>,
        slots: Vec<u32>,
    },
}

/// Computed columns: slot and expression.
pub(crate) type Pruned2 = Vec<(u32, Source)>;

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

pub(crate) struct Limit {
    pub input: Box<Node>,
    pub limit: Option<Source>,
    pub offset: Option<Source>,
    /// WITH TIES: the sort keys whose change ends the ties.
    pub ties: Option<Vec<Source>>,
}

/// Collects the rows of a node.
pub(crate) fn collect(node: &Node, slots: &[u32], ctx: &mut ExecContext<'_, '_>) -> ExecResult<RowBuffer> {
    let mut rows = RowBuffer::new(slots.len());
    let _ = node.run(ctx, &mut |ctx| {
        rows.push_slots(&ctx.frame, slots);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

/// A key of widened values.
pub(crate) fn hash_key(sources: &[Source], ctx: &mut ExecContext<'_, '_>) -> ExecResult<HashKey> {
    let mut key = SmallVec::with_capacity(sources.len());
    for source in sources {
        key.push(widen(source.eval(ctx)?));
    }
    Ok(HashKey(key))
}

pub(crate) fn set_null(ctx: &mut ExecContext<'_, '_>, slots: &[u32]) {
    for slot in slots {
        ctx.frame.slots[*slot as usize] = Datum::Null;
    }
}

impl Node {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        match self {
            Node::Unit => out(ctx),
            Node::Values { rows, slots } => {
                for row in rows {
                    for (source, slot) in row.iter().zip(slots) {
                        let value = source.eval(ctx)?;
                        ctx.frame.slots[*slot as usize].set(value);
                    }
                    if out(ctx)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            Node::Scan(scan) => scan.run(ctx, out),
            Node::Append(append) => append.run(ctx, out),
            Node::System { table, columns, filter } => {
                for row in ctx.system.rows(table)? {
                    for (column, slot) in columns.get() {
                        ctx.frame.slots[*slot as usize] = row.get(*column).cloned().unwrap_or(Datum::Null);
                    }
                    if let Some(filter) = filter
                        && filter(ctx)? != Some(true)
                    {
                        continue;
                    }
                    if out(ctx)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            Node::Set(set) => set.run(ctx, out),
            Node::Explained(explained) => explained.run(ctx, out),
            Node::Filter { input, predicate } => input.run(ctx, &mut |ctx| {
                if predicate(ctx)? == Some(true) { out(ctx) } else { Ok(ControlFlow::Continue(())) }
            }),
            Node::Compute { input, columns } => input.run(ctx, &mut |ctx| {
                for (slot, source) in columns {
                    let value = source.eval(ctx)?;
                    ctx.frame.slots[*slot as usize].set(value);
                }
                out(ctx)
            }),
            Node::Count { input, slot } => {
                let mut count = 0;
                input.run(ctx, &mut |ctx| {
                    count += 1;
                    ctx.frame.slots[*slot as usize] = Datum::Int8(count);
                    out(ctx)
                })
            }
            Node::Watched(watched) => watched.run(ctx, out),
            Node::Expand(expansion) => expansion.run(ctx, out),
            Node::Loop(join) => join.run(ctx, out),
            Node::Hash(join) => join.run(ctx, out),
            Node::Aggregate(aggregation) => aggregation.run(ctx, out),
            Node::Window(windowing) => windowing.run(ctx, out),
            Node::Sort(sorting) => sorting.run(ctx, out),
            Node::Distinct(distinct) => distinct.run(ctx, out),
            Node::Lock(locking) => locking.run(ctx, out),
            Node::Limit(limit) => limit.run(ctx, out),
            Node::SetOperation(operation) => operation.run(ctx, out),
            Node::With { parts, body } => parts.run_query(ctx, |ctx| body.run(ctx, out)),
            Node::Recursion { recursion, slots } => recursion.run(slots, ctx, out),
            Node::CteScan { cache, slots } => {
                let Cache::Rows(rows) = ctx.frame.caches[*cache].clone() else {
                    return Err(SqlError::internal("a CTE is read before it was computed").into());
                };
                for index in 0..rows.len() {
                    rows.restore(index, &mut ctx.frame, slots);
                    if out(ctx)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }
}

impl Loop {
    fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
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
fn is_alike(a: &Datum, b: &Datum) -> bool {
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
    fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
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

impl Limit {
    fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        let count = |source: &Option<Source>, ctx: &mut ExecContext<'_, '_>, state: SqlState, name: &str| {
            let Some(source) = source else { return Ok(None) };
            match crate::row::integer(&source.eval(ctx)?) {
                Some(count) if count < 0 => {
                    Err(SqlError::new(state, format!("{name} must not be negative")).into())
                }
                count => ExecResult::Ok(count),
            }
        };
        let offset = count(&self.offset, ctx, SqlState::INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE, "OFFSET")?
            .unwrap_or(0);
        let limit = count(&self.limit, ctx, SqlState::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "LIMIT")?;
        if limit == Some(0) {
            return Ok(ControlFlow::Continue(()));
        }
        let past = Cell::new(offset);
        let mut taken = 0;
        let mut enough = false;
        let mut tie: Option<HashKey> = None;
        let mut each = |ctx: &mut ExecContext<'_, '_>| -> ExecResult<ControlFlow<()>> {
            if past.get() > 0 {
                past.set(past.get() - 1);
                return Ok(ControlFlow::Continue(()));
            }
            if let (Some(ties), Some(limit)) = (&self.ties, limit) {
                let key = hash_key(ties, ctx)?;
                if taken >= limit && tie.as_ref() != Some(&key) {
                    enough = true;
                    return Ok(ControlFlow::Break(()));
                }
                tie = Some(key);
            }
            taken += 1;
            if out(ctx)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if self.ties.is_none() && limit.is_some_and(|limit| taken >= limit) {
                enough = true;
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        };
        let flow = match &*self.input {
            Node::Scan(scan) => scan.run_past(ctx, &past, &mut each),
            input => input.run(ctx, &mut each),
        }?;
        Ok(if enough { ControlFlow::Continue(()) } else { flow })
    }
}
