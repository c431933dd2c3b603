//! The operators at run time.
//!
//! `run` calls `out` once a row, with the row's columns in their slots. It answers `Break` if
//! and only if `out` did: whoever consumes decides when there is enough.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::system::Sought;
use smallvec::SmallVec;

use super::aggregate::Aggregation;
use super::append::Append;
use super::join::{HashJoin, Loop};
use super::limit::Limit;
use super::lock::Locking;
use super::modifying_cte::Parts;
use super::set_operation::SetOperation;
use super::sort::{Distinct, Sorting};
use super::with::Recursion;
use crate::native::run::access::scan::Scan;
use crate::native::run::access::system_scan::SystemScan;
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::Source;
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::{HashKey, widen};
use crate::native::run::row::projection::Pruned;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::state::frame::Cache;
use crate::native::run::window::Windowing;

/// Receives control once a row.
pub(crate) type Out<'o> = dyn FnMut(&mut ExecContext<'_, '_>) -> ExecResult<ControlFlow<()>> + 'o;

/// Reads rows of a system relation that are kept in tables.
pub(crate) type MoreRows =
    Box<dyn Fn(&mut ExecContext<'_, '_>, &Sought) -> ExecResult<Vec<Vec<Datum>>> + Send + Sync>;

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
    System(SystemScan),
    Set(super::set_function::SetSource),
    Explained(Box<super::explain_analyze::Explained>),
    Filter {
        input: Box<Node>,
        predicate: CompiledPredicate,
    },
    /// Computes columns that do not merely pass through.
    Compute {
        input: Box<Node>,
        columns: Pruned<(u32, Source)>,
    },
    Postponed(super::postponed::Postponed),
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
            Node::System(scan) => scan.run(ctx, out),
            Node::Set(set) => set.run(ctx, out),
            Node::Explained(explained) => explained.run(ctx, out),
            Node::Filter { input, predicate } => input.run(ctx, &mut |ctx| {
                if predicate(ctx)? == Some(true) { out(ctx) } else { Ok(ControlFlow::Continue(())) }
            }),
            Node::Compute { input, columns } => input.run(ctx, &mut |ctx| {
                for (slot, source) in columns.get() {
                    let value = source.eval(ctx)?;
                    ctx.frame.slots[*slot as usize].set(value);
                }
                out(ctx)
            }),
            Node::Postponed(postponed) => postponed.run(ctx, out),
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
