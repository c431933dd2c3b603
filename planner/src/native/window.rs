//! Window functions: rows are kept, partitioned and ordered per call, answered in the order
//! of the last call's sorting (as PostgreSQL's stacked WindowAgg nodes leave them).

use std::ops::{ControlFlow, Range};

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::AggregateFunction;

use super::CompiledPredicate;
use super::aggregate::Call;
use super::compile::{Compiler, Pruned};
use super::context::{ExecContext, ExecResult};
use super::expression::{Source, Values, eval_all};
use super::hash::same;
use super::node::{Node, Out};
use super::rows::RowBuffer;
use super::sort::{KeyOrder, compare_keys};
use crate::bound::{FrameBound, FrameUnits, Rel, WindowCall, WindowFunction};
use crate::row::integer;

struct Window {
    function: Function,
    args: Vec<Source>,
    filter: Option<CompiledPredicate>,
    partition: Vec<Source>,
    order: Vec<Source>,
    orders: Vec<KeyOrder>,
    units: FrameUnits,
    start: Bound,
    end: Bound,
    slot: u32,
}

enum Function {
    Aggregate(Call),
    Ranking(&'static str),
}

enum Bound {
    UnboundedPreceding,
    Preceding(Source),
    CurrentRow,
    Following(Source),
    UnboundedFollowing,
}

pub(crate) struct Windowing {
    input: Node,
    slots: Pruned<u32>,
    windows: Vec<Window>,
}

impl Compiler<'_> {
    pub fn windowing(&mut self, input: &Rel, calls: &[WindowCall], layout: &[u32]) -> Result<Node> {
        let below = self.declare(input);
        let node = self.relation(input)?;
        let windows = self.scoped(&below, |c| {
            calls
                .iter()
                .zip(&layout[below.len()..])
                .map(|(call, slot)| c.window(call, *slot))
                .collect::<Result<Vec<_>>>()
        })?;
        let slots = self.pruned_slots(&below);
        Ok(Node::Window(Box::new(Windowing { input: node, slots, windows })))
    }

    fn window(&mut self, call: &WindowCall, slot: u32) -> Result<Window> {
        let function = match &call.function {
            WindowFunction::Aggregate(function) => {
                let function: &'static AggregateFunction = function;
                Function::Aggregate(Call::plain(function, call.args.iter().map(|arg| arg.ty).collect()))
            }
            WindowFunction::Ranking(name) => Function::Ranking(name),
        };
        let bound = |c: &mut Self, bound: &FrameBound| {
            Ok(match bound {
                FrameBound::UnboundedPreceding => Bound::UnboundedPreceding,
                FrameBound::Preceding(expr) => Bound::Preceding(c.source(expr)?),
                FrameBound::CurrentRow => Bound::CurrentRow,
                FrameBound::Following(expr) => Bound::Following(c.source(expr)?),
                FrameBound::UnboundedFollowing => Bound::UnboundedFollowing,
            })
        };
        let (start, end) = (bound(self, &call.frame.start)?, bound(self, &call.frame.end)?);
        Ok(Window {
            function,
            args: self.exprs(&call.args)?,
            filter: call.filter.as_ref().map(|filter| self.predicate(filter)).transpose()?,
            partition: self.exprs(&call.partition_by)?,
            order: call.order_by.iter().map(|key| self.source(&key.expr)).collect::<Result<_>>()?,
            orders: call.order_by.iter().map(KeyOrder::of).collect(),
            units: call.frame.units,
            start,
            end,
            slot,
        })
    }
}

/// What one call needs of the rows.
struct Columns {
    partition: RowBuffer,
    order: RowBuffer,
    args: RowBuffer,
    passes: Vec<bool>,
}

impl Windowing {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        let slots = self.slots.get();
        let mut rows = RowBuffer::new(slots.len());
        let mut columns: Vec<Columns> = self
            .windows
            .iter()
            .map(|window| Columns {
                partition: RowBuffer::new(window.partition.len()),
                order: RowBuffer::new(window.order.len()),
                args: RowBuffer::new(window.args.len()),
                passes: Vec::new(),
            })
            .collect();
        let _ = self.input.run(ctx, &mut |ctx| {
            rows.push_slots(&ctx.frame, slots);
            for (window, columns) in self.windows.iter().zip(&mut columns) {
                columns.partition.push(eval_all(&window.partition, ctx)?);
                columns.order.push(eval_all(&window.order, ctx)?);
                columns.args.push(eval_all(&window.args, ctx)?);
                columns.passes.push(match &window.filter {
                    Some(filter) => filter(ctx)? == Some(true),
                    None => true,
                });
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let mut shown: Vec<usize> = (0..rows.len()).collect();
        let mut results: Vec<Vec<Datum>> = Vec::with_capacity(self.windows.len());
        for (window, columns) in self.windows.iter().zip(&columns) {
            let partition_order =
                vec![KeyOrder { descending: false, nulls_first: false }; window.partition.len()];
            // Sorting what is already sorted for the call before keeps its order within ties.
            shown.sort_by(|a, b| {
                compare_keys(columns.partition.row(*a), columns.partition.row(*b), &partition_order)
                    .then_with(|| compare_keys(columns.order.row(*a), columns.order.row(*b), &window.orders))
            });
            let mut result = vec![Datum::Null; rows.len()];
            let mut start = 0;
            while start < shown.len() {
                let mut end = start + 1;
                while end < shown.len()
                    && equal(columns.partition.row(shown[start]), columns.partition.row(shown[end]))
                {
                    end += 1;
                }
                window.partition(&shown[start..end], columns, ctx, &mut result)?;
                start = end;
            }
            results.push(result);
        }
        for position in shown {
            rows.restore(position, &mut ctx.frame, slots);
            for (window, result) in self.windows.iter().zip(&results) {
                ctx.frame.slots[window.slot as usize] = result[position].clone();
            }
            if out(ctx)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn equal(a: &[Datum], b: &[Datum]) -> bool {
    a.iter().zip(b).all(|(a, b)| same(a, b))
}

/// One partition in order, with its groups of peers.
struct Partition<'p> {
    rows: &'p [usize],
    columns: &'p Columns,
    /// First and past-the-last position of each row's peers.
    peers: Vec<Range<usize>>,
    /// Number of the peer group of each row.
    group: Vec<usize>,
    groups: Vec<Range<usize>>,
}

impl<'p> Partition<'p> {
    fn new(rows: &'p [usize], columns: &'p Columns) -> Self {
        let mut groups: Vec<Range<usize>> = Vec::new();
        for position in 0..rows.len() {
            match groups.last_mut() {
                Some(group)
                    if equal(columns.order.row(rows[group.start]), columns.order.row(rows[position])) =>
                {
                    group.end = position + 1;
                }
                _ => groups.push(position..position + 1),
            }
        }
        let mut group = Vec::with_capacity(rows.len());
        let mut peers = Vec::with_capacity(rows.len());
        for (number, range) in groups.iter().enumerate() {
            for _ in range.clone() {
                group.push(number);
                peers.push(range.clone());
            }
        }
        Partition { rows, columns, peers, group, groups }
    }

    fn args(&self, position: usize) -> &[Datum] {
        self.columns.args.row(self.rows[position])
    }
}

impl Window {
    fn partition(
        &self,
        rows: &[usize],
        columns: &Columns,
        ctx: &mut ExecContext<'_, '_>,
        result: &mut [Datum],
    ) -> ExecResult<()> {
        let partition = Partition::new(rows, columns);
        match &self.function {
            Function::Ranking(name) => {
                for position in 0..rows.len() {
                    result[rows[position]] = self.ranking(name, &partition, position, ctx)?;
                }
            }
            Function::Aggregate(call) => {
                let mut previous: Option<(Range<usize>, Datum)> = None;
                // A frame that only grows is fed row by row into one state.
                let growing = matches!(self.start, Bound::UnboundedPreceding);
                let mut running = call.start();
                let mut fed = 0;
                for position in 0..rows.len() {
                    let frame = self.frame(&partition, position, ctx)?;
                    if let Some((range, value)) = &previous
                        && *range == frame
                    {
                        result[rows[position]] = value.clone();
                        continue;
                    }
                    if !growing || frame.end < fed {
                        running = call.start();
                        fed = frame.start;
                    }
                    let fresh = fed.max(frame.start)..frame.end.max(fed.max(frame.start));
                    for (at, row) in rows.iter().enumerate().take(fresh.end).skip(fresh.start) {
                        if columns.passes[*row] {
                            let args: Values = partition.args(at).iter().cloned().collect();
                            call.feed(&mut running, ctx, &args)?;
                        }
                    }
                    fed = frame.end;
                    let value = call.finish(&mut running, ctx)?;
                    result[rows[position]] = value.clone();
                    previous = Some((frame, value));
                }
            }
        }
        Ok(())
    }

    fn ranking(
        &self,
        name: &str,
        partition: &Partition<'_>,
        position: usize,
        ctx: &mut ExecContext<'_, '_>,
    ) -> ExecResult<Datum> {
        let count = partition.rows.len();
        let args = partition.args(position);
        Ok(match name {
            "row_number" => Datum::Int8(position as i64 + 1),
            "rank" => Datum::Int8(partition.peers[position].start as i64 + 1),
            "dense_rank" => Datum::Int8(partition.group[position] as i64 + 1),
            "percent_rank" => Datum::Float8(if count > 1 {
                partition.peers[position].start as f64 / (count - 1) as f64
            } else {
                0.0
            }),
            "cume_dist" => Datum::Float8(partition.peers[position].end as f64 / count as f64),
            "ntile" => {
                let Some(buckets) = args.first().and_then(integer) else { return Ok(Datum::Null) };
                if buckets <= 0 {
                    return Err(SqlError::new(
                        SqlState(*b"22014"),
                        "argument of ntile must be greater than zero",
                    )
                    .into());
                }
                let (buckets, count, position) = (buckets as usize, count, position);
                let (size, larger) = (count / buckets, count % buckets);
                let bucket = if position < larger * (size + 1) {
                    position / (size + 1)
                } else {
                    larger + (position - larger * (size + 1)) / size.max(1)
                };
                Datum::Int4(bucket as i32 + 1)
            }
            "lag" | "lead" => {
                let offset = match args.get(1) {
                    None => 1,
                    Some(value) => match integer(value) {
                        Some(offset) => offset,
                        None => return Ok(Datum::Null),
                    },
                };
                let target = if name == "lag" { position as i64 - offset } else { position as i64 + offset };
                match usize::try_from(target).ok().filter(|target| *target < count) {
                    Some(target) => partition.args(target).first().cloned().unwrap_or(Datum::Null),
                    None => args.get(2).cloned().unwrap_or(Datum::Null),
                }
            }
            "first_value" | "last_value" | "nth_value" => {
                let frame = self.frame(partition, position, ctx)?;
                let at = match name {
                    "first_value" => frame.start,
                    "last_value" => match frame.end.checked_sub(1) {
                        Some(at) => at,
                        None => return Ok(Datum::Null),
                    },
                    _ => match args.get(1).and_then(integer) {
                        None => return Ok(Datum::Null),
                        Some(n) if n <= 0 => {
                            return Err(SqlError::new(
                                SqlState(*b"22016"),
                                "argument of nth_value must be greater than zero",
                            )
                            .into());
                        }
                        Some(n) => frame.start.saturating_add(n as usize - 1),
                    },
                };
                if frame.contains(&at) {
                    partition.args(at).first().cloned().unwrap_or(Datum::Null)
                } else {
                    Datum::Null
                }
            }
            other => return Err(SqlError::unsupported(format_args!("window function {other}")).into()),
        })
    }

    /// The rows of the frame around a row, as positions in the partition.
    fn frame(
        &self,
        partition: &Partition<'_>,
        position: usize,
        ctx: &mut ExecContext<'_, '_>,
    ) -> ExecResult<Range<usize>> {
        let count = partition.rows.len();
        let start = match &self.start {
            Bound::UnboundedPreceding => 0,
            Bound::UnboundedFollowing => count,
            Bound::CurrentRow => match self.units {
                FrameUnits::Rows => position,
                _ => partition.peers[position].start,
            },
            Bound::Preceding(offset) => self.edge(partition, position, offset, true, true, ctx)?,
            Bound::Following(offset) => self.edge(partition, position, offset, false, true, ctx)?,
        };
        let end = match &self.end {
            Bound::UnboundedPreceding => 0,
            Bound::UnboundedFollowing => count,
            Bound::CurrentRow => match self.units {
                FrameUnits::Rows => position + 1,
                _ => partition.peers[position].end,
            },
            Bound::Preceding(offset) => self.edge(partition, position, offset, true, false, ctx)?,
            Bound::Following(offset) => self.edge(partition, position, offset, false, false, ctx)?,
        };
        Ok(start.min(end)..end)
    }

    /// One edge of a frame at an offset: the first position inside (`start`) or the first
    /// behind it.
    fn edge(
        &self,
        partition: &Partition<'_>,
        position: usize,
        offset: &Source,
        preceding: bool,
        start: bool,
        ctx: &mut ExecContext<'_, '_>,
    ) -> ExecResult<usize> {
        let count = partition.rows.len();
        let offset = offset.eval(ctx)?;
        let which = if start { "starting" } else { "ending" };
        if offset.is_null() {
            let message = format!("frame {which} offset must not be null");
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message).into());
        }
        let negative = || {
            let message = format!("frame {which} offset must not be negative");
            SqlError::new(SqlState(*b"22013"), message)
        };
        if self.units == FrameUnits::Range {
            return self.range_edge(partition, position, &offset, preceding, start, negative);
        }
        let offset = integer(&offset).unwrap_or(0);
        if offset < 0 {
            return Err(negative().into());
        }
        let offset = if preceding { -offset } else { offset };
        let shifted = |from: usize| (from as i64).saturating_add(offset);
        Ok(match self.units {
            FrameUnits::Rows => {
                let target = shifted(position) + i64::from(!start);
                target.clamp(0, count as i64) as usize
            }
            _ => {
                let target = shifted(partition.group[position]);
                if target < 0 {
                    0
                } else if target as usize >= partition.groups.len() {
                    count
                } else {
                    let group = &partition.groups[target as usize];
                    if start { group.start } else { group.end }
                }
            }
        })
    }

    /// RANGE with an offset, over one numeric or integer ordering column.
    fn range_edge(
        &self,
        partition: &Partition<'_>,
        position: usize,
        offset: &Datum,
        preceding: bool,
        start: bool,
        negative: impl Fn() -> SqlError,
    ) -> ExecResult<usize> {
        let key = |at: usize| &partition.columns.order.row(partition.rows[at])[0];
        let number = |value: &Datum| match value {
            Datum::Float8(v) => Some(*v),
            Datum::Float4(v) => Some(f64::from(*v)),
            Datum::Numeric(v) => Some(v.to_f64()),
            Datum::Date(v) => Some(f64::from(*v)),
            other => integer(other).map(|v| v as f64),
        };
        let (Some(order), Some(offset)) = (self.orders.first(), number(offset)) else {
            return Err(SqlError::unsupported("RANGE with an offset over this type").into());
        };
        if offset < 0.0 {
            return Err(negative().into());
        }
        let Some(current) = number(key(position)) else {
            // NULLs are peers of each other and of nothing else.
            let peers = &partition.peers[position];
            return Ok(if start { peers.start } else { peers.end });
        };
        let sign = if preceding != order.descending { -1.0 } else { 1.0 };
        let limit = current + sign * offset;
        let inside = |at: usize| {
            number(key(at)).is_some_and(|value| {
                let (value, limit) = if order.descending { (-value, -limit) } else { (value, limit) };
                if start { value >= limit } else { value <= limit }
            })
        };
        let count = partition.rows.len();
        Ok(if start {
            (0..count).find(|at| inside(*at)).unwrap_or(count)
        } else {
            (0..count).rev().find(|at| inside(*at)).map_or(0, |at| at + 1)
        })
    }
}
