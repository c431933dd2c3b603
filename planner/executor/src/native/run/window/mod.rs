//! Window functions: rows are kept, partitioned and ordered per call, answered in the order
//! of the last call's sorting (as PostgreSQL's stacked WindowAgg nodes leave them). Which rows
//! a call reads around each is [`frame`]'s.

pub(crate) mod frame;
pub(crate) mod partition;

use std::ops::{ControlFlow, Range};

use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};

use crate::array::Values;
use crate::bound::Ranking;
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::operator::aggregate::{Call, Running};
use crate::native::run::operator::node::{Node, Out};
use crate::native::run::operator::sort::{KeyOrder, compare_keys};
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::projection::Pruned;
use crate::native::run::row::quicksort::sort_rows;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::row::integer;
use frame::{Frame, Parts};
use partition::{Columns, Partition, equal};

pub(crate) struct Window {
    pub(crate) function: Function,
    pub(crate) args: Vec<Source>,
    pub(crate) filter: Option<CompiledPredicate>,
    pub(crate) partition: Vec<Source>,
    pub(crate) order: Vec<Source>,
    pub(crate) orders: Vec<KeyOrder>,
    pub(crate) frame: Frame,
    pub(crate) slot: u32,
}

pub(crate) enum Function {
    Aggregate(Call),
    Ranking(Ranking),
}

pub(crate) struct Windowing {
    pub(crate) input: Node,
    pub(crate) slots: Pruned<u32>,
    pub(crate) windows: Vec<Window>,
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
            // What is already sorted for the call before stays as it is.
            sort_rows(&mut shown, |a, b| {
                compare_keys(columns.partition.row(*a), columns.partition.row(*b), &partition_order)
                    .then_with(|| compare_keys(columns.order.row(*a), columns.order.row(*b), &window.orders))
            })?;
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
            Function::Ranking(ranking) => {
                for position in 0..rows.len() {
                    ctx.tick()?;
                    result[rows[position]] = self.ranking(*ranking, &partition, position, ctx)?;
                }
            }
            Function::Aggregate(call) => self.aggregate(call, &partition, ctx, result)?,
        }
        Ok(())
    }

    /// The answers of an aggregate: from the frame of one row to that of the next one, its state takes the rows
    /// that have come in and gives back those that have gone, if it can; otherwise it begins anew.
    fn aggregate(
        &self,
        call: &Call,
        partition: &Partition<'_>,
        ctx: &mut ExecContext<'_, '_>,
        result: &mut [Datum],
    ) -> ExecResult<()> {
        let rows = partition.rows;
        let mut previous: Option<(Parts, Datum)> = None;
        let mut running = call.start();
        // The positions of the rows in the state, where they are one after the other.
        let mut taken: Option<Range<usize>> = Some(0..0);
        for position in 0..rows.len() {
            ctx.tick()?;
            let frame = self.frame.around(partition, position, ctx)?;
            if let Some((range, value)) = &previous
                && *range == frame
            {
                result[rows[position]] = value.clone();
                continue;
            }
            let range = frame.range();
            let goes_on = match (&taken, &range) {
                (Some(taken), Some(range)) => {
                    leave_behind(call, &mut running, partition, (taken, range), ctx)?
                }
                _ => false,
            };
            let fed = match taken {
                Some(taken) if goes_on => taken.end,
                _ => {
                    running = call.start();
                    0
                }
            };
            for at in frame.positions().skip_while(|at| *at < fed) {
                ctx.tick()?;
                if partition.passes(at) {
                    let args: Values = partition.args(at).iter().cloned().collect();
                    call.feed(&mut running, ctx, &args)?;
                }
            }
            taken = range;
            let value = call.finish(&mut running, ctx)?;
            result[rows[position]] = value.clone();
            previous = Some((frame, value));
        }
        Ok(())
    }

    fn ranking(
        &self,
        ranking: Ranking,
        partition: &Partition<'_>,
        position: usize,
        ctx: &mut ExecContext<'_, '_>,
    ) -> ExecResult<Datum> {
        let count = partition.rows.len();
        let args = partition.args(position);
        Ok(match ranking {
            Ranking::RowNumber => Datum::Int8(position as i64 + 1),
            Ranking::Rank => Datum::Int8(partition.peers[position].start as i64 + 1),
            Ranking::DenseRank => Datum::Int8(partition.group[position] as i64 + 1),
            Ranking::PercentRank => Datum::Float8(if count > 1 {
                partition.peers[position].start as f64 / (count - 1) as f64
            } else {
                0.0
            }),
            Ranking::CumeDist => Datum::Float8(partition.peers[position].end as f64 / count as f64),
            Ranking::Ntile => {
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
            Ranking::Lag | Ranking::Lead => {
                let offset = match args.get(1) {
                    None => 1,
                    Some(value) => match integer(value) {
                        Some(offset) => offset,
                        None => return Ok(Datum::Null),
                    },
                };
                let back = ranking == Ranking::Lag;
                let target = if back { position as i64 - offset } else { position as i64 + offset };
                match usize::try_from(target).ok().filter(|target| *target < count) {
                    Some(target) => partition.args(target).first().cloned().unwrap_or(Datum::Null),
                    None => args.get(2).cloned().unwrap_or(Datum::Null),
                }
            }
            Ranking::FirstValue | Ranking::LastValue | Ranking::NthValue => {
                let frame = self.frame.around(partition, position, ctx)?;
                let at = match ranking {
                    Ranking::FirstValue => frame.positions().next(),
                    Ranking::LastValue => frame.last(),
                    _ => match args.get(1).and_then(integer) {
                        None => return Ok(Datum::Null),
                        Some(n) if n <= 0 => {
                            return Err(SqlError::new(
                                SqlState(*b"22016"),
                                "argument of nth_value must be greater than zero",
                            )
                            .into());
                        }
                        Some(n) => frame.nth(n as usize - 1),
                    },
                };
                at.and_then(|at| partition.args(at).first().cloned()).unwrap_or(Datum::Null)
            }
        })
    }
}

/// Gives back the rows that a frame has left behind; false if the state has to begin anew.
fn leave_behind(
    call: &Call,
    running: &mut Running,
    partition: &Partition<'_>,
    (taken, frame): (&Range<usize>, &Range<usize>),
    ctx: &mut ExecContext<'_, '_>,
) -> ExecResult<bool> {
    if frame.start < taken.start || frame.start > taken.end || frame.end < taken.end {
        return Ok(false);
    }
    // More to give back than to take again.
    if frame.start - taken.start > frame.len() {
        return Ok(false);
    }
    for at in taken.start..frame.start {
        ctx.tick()?;
        if partition.passes(at) && !call.give_back(running, partition.args(at))? {
            return Ok(false);
        }
    }
    Ok(true)
}
