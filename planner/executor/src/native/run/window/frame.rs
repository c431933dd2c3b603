//! Window frames: which rows of its partition a call reads around each row.
//!
//! A frame is a range of positions in the partition's order, less what EXCLUDE takes out of it: the
//! row itself, its peers, or both.

use std::cmp::Ordering;
use std::ops::Range;

use archipel_sql::compare::{compare, compare_floats};
use archipel_sql::datetime::arithmetic::{add_intervals, add_to_timestamp, add_to_timestamptz, negate};
use archipel_sql::datum::{Datum, Interval};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::parser::FrameExclusion;
use smallvec::SmallVec;

use super::partition::Partition;
use crate::bound::FrameUnits;
use crate::native::run::expression::source::Source;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::{ExecError, ExecResult};
use crate::row::integer;

/// See the module's head.
pub(crate) struct Frame {
    pub(crate) units: FrameUnits,
    pub(crate) start: Bound,
    pub(crate) end: Bound,
    pub(crate) exclusion: FrameExclusion,
    /// Of the first ordering column.
    pub(crate) descending: bool,
}

pub(crate) enum Bound {
    UnboundedPreceding,
    Preceding(Source),
    CurrentRow,
    Following(Source),
    UnboundedFollowing,
}

/// The rows of a frame, as ranges of positions in order; none is empty.
#[derive(PartialEq)]
pub(crate) struct Parts(SmallVec<[Range<usize>; 3]>);

impl Parts {
    /// A range without what lies in another one, which `kept` is left in.
    fn without(frame: Range<usize>, left_out: Range<usize>, kept: Option<usize>) -> Parts {
        let cut = |range: Range<usize>| range.start.max(frame.start)..range.end.min(frame.end);
        let mut parts = SmallVec::new();
        parts.push(cut(0..left_out.start));
        parts.extend(kept.map(|kept| cut(kept..kept + 1)));
        parts.push(cut(left_out.end..frame.end));
        parts.retain(|part: &mut Range<usize>| part.start < part.end);
        Parts(parts)
    }

    pub fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().cloned().flatten()
    }

    /// The positions, if none is left out between the first and the last.
    pub fn range(&self) -> Option<Range<usize>> {
        match &self.0[..] {
            [] => Some(0..0),
            [only] => Some(only.clone()),
            _ => None,
        }
    }

    pub fn last(&self) -> Option<usize> {
        self.0.last().map(|part| part.end - 1)
    }

    /// The position of a row, counted from zero.
    pub fn nth(&self, mut place: usize) -> Option<usize> {
        for part in &self.0 {
            if place < part.len() {
                return Some(part.start + place);
            }
            place -= part.len();
        }
        None
    }
}

/// One edge of a frame.
#[derive(Clone, Copy)]
struct Edge {
    preceding: bool,
    /// The first position inside, or else the first behind it.
    start: bool,
}

impl Frame {
    /// The rows of the frame around a row.
    pub fn around(
        &self,
        partition: &Partition<'_>,
        position: usize,
        ctx: &mut ExecContext<'_, '_>,
    ) -> ExecResult<Parts> {
        let start = self.edge(&self.start, partition, position, true, ctx)?;
        let end = self.edge(&self.end, partition, position, false, ctx)?;
        let frame = start.min(end)..end;
        let peers = partition.peers[position].clone();
        Ok(match self.exclusion {
            FrameExclusion::NoOthers => Parts::without(frame.clone(), frame.end..frame.end, None),
            FrameExclusion::CurrentRow => Parts::without(frame, position..position + 1, None),
            FrameExclusion::Group => Parts::without(frame, peers, None),
            FrameExclusion::Ties => Parts::without(frame, peers, Some(position)),
        })
    }

    fn edge(
        &self,
        bound: &Bound,
        partition: &Partition<'_>,
        position: usize,
        start: bool,
        ctx: &mut ExecContext<'_, '_>,
    ) -> ExecResult<usize> {
        let peers = &partition.peers[position];
        Ok(match bound {
            Bound::UnboundedPreceding => 0,
            Bound::UnboundedFollowing => partition.rows.len(),
            Bound::CurrentRow => match (self.units, start) {
                (FrameUnits::Rows, true) => position,
                (FrameUnits::Rows, false) => position + 1,
                (_, true) => peers.start,
                (_, false) => peers.end,
            },
            Bound::Preceding(offset) => {
                self.offset_edge(partition, position, offset, Edge { preceding: true, start }, ctx)?
            }
            Bound::Following(offset) => {
                self.offset_edge(partition, position, offset, Edge { preceding: false, start }, ctx)?
            }
        })
    }

    /// An edge at an offset.
    fn offset_edge(
        &self,
        partition: &Partition<'_>,
        position: usize,
        offset: &Source,
        edge: Edge,
        ctx: &mut ExecContext<'_, '_>,
    ) -> ExecResult<usize> {
        let count = partition.rows.len();
        let offset = offset.eval(ctx)?;
        let which = if edge.start { "starting" } else { "ending" };
        if offset.is_null() {
            let message = format!("frame {which} offset must not be null");
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message).into());
        }
        if self.units == FrameUnits::Range {
            return self.range_edge(partition, position, &offset, edge, &ctx.functions);
        }
        let offset = integer(&offset).unwrap_or(0);
        if offset < 0 {
            let message = format!("frame {which} offset must not be negative");
            return Err(SqlError::new(SqlState(*b"22013"), message).into());
        }
        let offset = if edge.preceding { -offset } else { offset };
        let shifted = |from: usize| (from as i64).saturating_add(offset);
        Ok(match self.units {
            FrameUnits::Rows => {
                let target = shifted(position).saturating_add(i64::from(!edge.start));
                target.clamp(0, count as i64) as usize
            }
            _ => match usize::try_from(shifted(partition.group[position])) {
                Err(_) => 0,
                Ok(target) => match partition.groups.get(target) {
                    None => count,
                    Some(group) if edge.start => group.start,
                    Some(group) => group.end,
                },
            },
        })
    }

    /// RANGE with an offset, over one ordering column.
    fn range_edge(
        &self,
        partition: &Partition<'_>,
        position: usize,
        offset: &Datum,
        edge: Edge,
        functions: &FunctionContext<'_>,
    ) -> ExecResult<usize> {
        let key = |at: usize| &partition.columns.order.row(partition.rows[at])[0];
        let base = key(position);
        if base.is_null() {
            // NULLs are peers of each other and of nothing else.
            let peers = &partition.peers[position];
            return Ok(if edge.start { peers.start } else { peers.end });
        }
        // NULLs stand together at one end.
        let nulls = |group: Option<&Range<usize>>| group.filter(|group| key(group.start).is_null()).cloned();
        let first = nulls(partition.groups.first()).map_or(0, |nulls| nulls.end);
        let last = nulls(partition.groups.last()).map_or(partition.rows.len(), |nulls| nulls.start);
        let subtract = edge.preceding != self.descending;
        let at_most = edge.start == self.descending;
        let (mut low, mut high) = (first, last);
        while low < high {
            let middle = low + (high - low) / 2;
            let inside =
                in_range(key(middle), base, offset, subtract, at_most, functions).map_err(ExecError::from)?;
            // Before the start all rows are outside, before the end all are inside.
            if inside != edge.start { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }
}

fn negative() -> SqlError {
    SqlError::new(SqlState(*b"22013"), "invalid preceding or following size in window function")
}

/// Whether a value is at most (or at least) as far as `offset` from `base`: PostgreSQL's in_range
/// functions.
fn in_range(
    value: &Datum,
    base: &Datum,
    offset: &Datum,
    subtract: bool,
    at_most: bool,
    functions: &FunctionContext<'_>,
) -> Result<bool> {
    let holds = |order: Ordering| if at_most { order.is_le() } else { order.is_ge() };
    if let (Some(value), Some(base), Some(offset)) = (integer(value), integer(base), integer(offset)) {
        if offset < 0 {
            return Err(negative());
        }
        let sum = if subtract { base.checked_sub(offset) } else { base.checked_add(offset) };
        return Ok(match sum {
            Some(sum) => holds(value.cmp(&sum)),
            // Past all numbers.
            None => at_most != subtract,
        });
    }
    match (value, base, offset) {
        (Datum::Float4(value), Datum::Float4(base), Datum::Float8(offset)) => {
            floats_in_range(f64::from(*value), f64::from(*base), *offset, subtract, at_most)
        }
        (Datum::Float8(value), Datum::Float8(base), Datum::Float8(offset)) => {
            floats_in_range(*value, *base, *offset, subtract, at_most)
        }
        (Datum::Numeric(value), Datum::Numeric(base), Datum::Numeric(offset)) => {
            if offset.is_nan() || offset.signum() < 0 {
                return Err(negative());
            }
            if value.is_nan() || base.is_nan() {
                return Ok(nan_in_range(value.is_nan(), base.is_nan(), at_most));
            }
            if offset.is_infinite() && base.is_infinite() && (base.signum() > 0) == subtract {
                return Ok(true);
            }
            let sum = if subtract { base.sub(offset)? } else { base.add(offset)? };
            Ok(holds(value.cmp(&sum)))
        }
        (_, _, Datum::Interval(offset)) => {
            let standing = if offset_is_negative(base, offset) { return Err(negative()) } else { **offset };
            let shift = if subtract { negate(standing)? } else { standing };
            let (value, limit) = match (value, base) {
                (Datum::Date(value), Datum::Date(base)) => {
                    let limit = add_to_timestamp(of_date(*base)?, shift)?;
                    (Datum::Timestamp(of_date(*value)?), Datum::Timestamp(limit))
                }
                (Datum::Timestamp(_), Datum::Timestamp(base)) => {
                    (value.clone(), Datum::Timestamp(add_to_timestamp(*base, shift)?))
                }
                (Datum::TimestampTz(_), Datum::TimestampTz(base)) => {
                    let limit = add_to_timestamptz(*base, shift, &functions.style().time_zone)?;
                    (value.clone(), Datum::TimestampTz(limit))
                }
                (Datum::Interval(_), Datum::Interval(base)) => {
                    (value.clone(), Datum::Interval(add_intervals(**base, shift)?.into()))
                }
                (Datum::Time(_), Datum::Time(base)) => {
                    // Days and months of the offset do not count, and midnight is not passed.
                    let limit = base.saturating_add(shift.microseconds);
                    (value.clone(), Datum::Time(limit))
                }
                (Datum::TimeTz(value), Datum::TimeTz(base)) => {
                    let limit = base.greenwich().saturating_add(shift.microseconds);
                    return Ok(holds((value.greenwich(), value.west()).cmp(&(limit, base.west()))));
                }
                _ => return Err(SqlError::unsupported("RANGE with an offset over this type")),
            };
            Ok(holds(compare(&value, &limit)))
        }
        _ => Err(SqlError::unsupported("RANGE with an offset over this type")),
    }
}

fn of_date(date: i32) -> Result<i64> {
    archipel_sql::datetime::date_to_timestamp(date)
}

/// Whether an interval goes backwards; of a time of day only its own part counts.
fn offset_is_negative(base: &Datum, offset: &Interval) -> bool {
    match base {
        Datum::Time(_) | Datum::TimeTz(_) => offset.microseconds < 0,
        _ => archipel_sql::compare::interval_value(offset) < 0,
    }
}

/// NaN is equal to itself and larger than all else.
fn nan_in_range(value: bool, base: bool, at_most: bool) -> bool {
    match (value, base) {
        (true, true) => true,
        (true, false) => !at_most,
        (false, _) => at_most,
    }
}

fn floats_in_range(value: f64, base: f64, offset: f64, subtract: bool, at_most: bool) -> Result<bool> {
    if offset.is_nan() || offset < 0.0 {
        return Err(negative());
    }
    if value.is_nan() || base.is_nan() {
        return Ok(nan_in_range(value.is_nan(), base.is_nan(), at_most));
    }
    if offset.is_infinite() && base.is_infinite() && (base > 0.0) == subtract {
        return Ok(true);
    }
    let sum = if subtract { base - offset } else { base + offset };
    let order = compare_floats(value, sum);
    Ok(if at_most { order.is_le() } else { order.is_ge() })
}
