//! The keys of a path at run time: values appended to key prefixes, bounds to ranges.

use std::ops::Bound;

use archipel_engine::schema::{KeyColumn, KeyForm};
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::{encode_cell, successor};
use archipel_engine::txn::KeyRange;
use archipel_sql::datum::Datum;
use smallvec::SmallVec;

use super::path::{KeyPart, Path};
use crate::native::run::expression::source;
use crate::native::run::expression::source::Source;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::row::Codec;

/// One range of keys of a path.
pub(crate) struct KeySpan {
    pub low: KeyBuf,
    pub low_included: bool,
    /// Exclusive; `None` is the end of the tree.
    pub high: Option<KeyBuf>,
    /// `low` is one whole key.
    pub point: bool,
}

impl KeySpan {
    pub fn range(&self) -> KeyRange<'_> {
        KeyRange {
            low: if self.low_included { Bound::Included(&self.low) } else { Bound::Excluded(&self.low) },
            high: match &self.high {
                Some(high) => Bound::Excluded(high),
                None => Bound::Unbounded,
            },
        }
    }

    /// Whether a key is in it.
    pub fn holds(&self, key: &[u8]) -> bool {
        if self.point && self.high.is_none() {
            return *key == self.low[..];
        }
        let above = if self.low_included { self.low[..] <= *key } else { self.low[..] < *key };
        above && self.high.as_ref().is_none_or(|high| *key < high[..])
    }
}

/// Whether a range starts and ends past all keys that begin with what stands there, or before them.
#[derive(Clone, Copy)]
struct Ends {
    past_low: bool,
    past_high: bool,
}

/// What a bound says of its side of a range.
enum Side {
    /// Nothing.
    Open,
    /// It ends at a value, and has it or not.
    At { inclusive: bool },
    /// No row is there.
    Empty,
}

/// Where a value lies relative to what a column can hold.
enum Fit {
    Inside,
    /// NULL, or not equal to any value the column can hold.
    Outside,
    Below,
    Above,
}

/// Appends a value to a key.
#[inline]
fn append(out: &mut KeyBuf, value: &Datum, column: &KeyColumn, codec: Codec) -> Fit {
    // What most keys are made of, without a cell in between.
    if codec.append_integer(value, column, out) {
        return Fit::Inside;
    }
    append_any(out, value, column, codec)
}

fn append_any(out: &mut KeyBuf, value: &Datum, column: &KeyColumn, codec: Codec) -> Fit {
    if value.is_null() {
        return Fit::Outside;
    }
    match codec.encode_plain(value) {
        Some(cell) => {
            encode_cell(out, cell, column, codec.kind());
            Fit::Inside
        }
        None if column.form != KeyForm::Stored => append_encoded(out, value, column, codec),
        None => match crate::row::integer(value) {
            Some(v) if v < 0 => Fit::Below,
            Some(_) => Fit::Above,
            None => append_encoded(out, value, column, codec),
        },
    }
}

/// Appends a value that is stored otherwise than it lies in memory: numerics, bit strings, arrays.
fn append_encoded(out: &mut KeyBuf, value: &Datum, column: &KeyColumn, codec: Codec) -> Fit {
    let mut space = Vec::new();
    let Ok(cell) = codec.encode(value, &mut space) else { return Fit::Outside };
    encode_cell(out, cell, column, codec.kind());
    Fit::Inside
}

/// Appends a value to a key; false: no row can have it.
#[inline]
pub(crate) fn append_value(out: &mut KeyBuf, value: &Datum, column: &KeyColumn, codec: Codec) -> bool {
    matches!(append(out, value, column, codec), Fit::Inside)
}

/// The same keys in ranges that are in order and do not overlap. All of them have their low ends.
fn disjoint(mut spans: SmallVec<[KeySpan; 1]>) -> SmallVec<[KeySpan; 1]> {
    spans.sort_unstable_by(|one, other| one.low.cmp(&other.low));
    let mut joined: SmallVec<[KeySpan; 1]> = SmallVec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if last.high.as_ref().is_none_or(|high| span.low < *high) => {
                last.point &= span.point && last.low == span.low;
                last.high = match (last.high.take(), span.high) {
                    (Some(one), Some(other)) => Some(one.max(other)),
                    _ => None,
                };
            }
            _ => joined.push(span),
        }
    }
    joined
}

impl Path {
    /// If the path is a single key: appends it to `out`. False: no row can match.
    #[inline]
    pub fn point(&self, ctx: &mut ExecContext<'_, '_>, out: &mut KeyBuf) -> ExecResult<bool> {
        for (part, (column, codec)) in self.equals.iter().zip(&self.columns) {
            let KeyPart::One(source) = part else { return Ok(false) };
            let fit = match source {
                Source::Operand(operand) => append(out, operand.get(ctx), column, *codec),
                Source::Code(code) => append(out, &code(ctx)?, column, *codec),
            };
            if !matches!(fit, Fit::Inside) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// As [`Path::spans`], of a path to a single key, too.
    pub fn all_spans(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<SmallVec<[KeySpan; 1]>> {
        if !self.unique {
            return self.spans(ctx);
        }
        let mut low = KeyBuf::new();
        let known = self.point(ctx, &mut low)?;
        let span = KeySpan { low, low_included: true, high: None, point: true };
        Ok(known.then_some(span).into_iter().collect())
    }

    /// The ranges of keys to visit, in key order and disjoint.
    pub fn spans(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<SmallVec<[KeySpan; 1]>> {
        let mut spans = self.own_spans(ctx)?;
        if self.also.is_empty() {
            return Ok(spans);
        }
        for path in &self.also {
            spans.extend(path.own_spans(ctx)?);
        }
        let mut spans = disjoint(spans);
        if self.reverse {
            spans.reverse();
        }
        Ok(spans)
    }

    /// As [`Path::spans`], without the other ways.
    fn own_spans(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<SmallVec<[KeySpan; 1]>> {
        if self.equals.iter().all(|part| matches!(part, KeyPart::One(_))) {
            let mut low = KeyBuf::new();
            let mut spans = SmallVec::new();
            if self.point(ctx, &mut low)? {
                let mut high = low.clone();
                if let Some(ends) = self.bounds(ctx, &mut low, &mut high)? {
                    spans.extend(self.span(low, high, ends));
                }
            }
            return Ok(spans);
        }
        let mut prefixes: Vec<KeyBuf> = vec![KeyBuf::new()];
        for (part, (column, codec)) in self.equals.iter().zip(&self.columns) {
            let values: Vec<Datum> = match part {
                KeyPart::One(source) => vec![source.eval(ctx)?],
                KeyPart::Each(sources) => source::eval_all(sources, ctx)?.into_vec(),
                KeyPart::Elements(source) => match source.eval(ctx)? {
                    Datum::Array(array) => array.values.clone(),
                    _ => Vec::new(),
                },
                KeyPart::Null => {
                    for prefix in &mut prefixes {
                        encode_cell(prefix, archipel_engine::cell::Cell::Null, column, codec.kind());
                    }
                    continue;
                }
            };
            let mut grown = Vec::with_capacity(prefixes.len() * values.len());
            for prefix in &prefixes {
                for value in &values {
                    let mut key = prefix.clone();
                    if matches!(append(&mut key, value, column, *codec), Fit::Inside) {
                        grown.push(key);
                    }
                }
            }
            prefixes = grown;
        }
        if prefixes.len() > 1 {
            prefixes.sort_unstable();
            prefixes.dedup();
        }
        let (mut from, mut to) = (KeyBuf::new(), KeyBuf::new());
        let Some(ends) = self.bounds(ctx, &mut from, &mut to)? else { return Ok(SmallVec::new()) };
        let span = |mut low: KeyBuf| {
            let mut high = low.clone();
            low.extend_from_slice(&from);
            high.extend_from_slice(&to);
            self.span(low, high, ends)
        };
        let mut spans: SmallVec<[KeySpan; 1]> = prefixes.into_iter().filter_map(span).collect();
        if self.reverse {
            spans.reverse();
        }
        Ok(spans)
    }

    /// The keys from `low` to `high`; `None` if there can be none.
    fn span(&self, mut low: KeyBuf, mut high: KeyBuf, ends: Ends) -> Option<KeySpan> {
        if ends.past_low && !successor(&mut low) {
            return None;
        }
        let high = if ends.past_high { successor(&mut high).then_some(high) } else { Some(high) };
        Some(KeySpan { low, low_included: true, high, point: self.equals.len() == self.columns.len() })
    }

    /// Appends to the keys before them where the column after the equal ones starts and ends. `None`:
    /// nothing matches.
    fn bounds(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        low: &mut KeyBuf,
        high: &mut KeyBuf,
    ) -> ExecResult<Option<Ends>> {
        let mut ends = Ends { past_low: false, past_high: true };
        if self.low.is_none() && self.high.is_none() {
            return Ok(Some(ends));
        }
        let (column, codec) = &self.columns[self.equals.len()];
        // In a descending column the greater values come first.
        let (least, greatest) =
            if column.descending { (&mut *high, &mut *low) } else { (&mut *low, &mut *high) };
        let least = self.side(ctx, &self.low, true, least)?;
        let greatest = self.side(ctx, &self.high, false, greatest)?;
        let (first, last) = if column.descending { (greatest, least) } else { (least, greatest) };
        let null =
            |key: &mut KeyBuf| encode_cell(key, archipel_engine::cell::Cell::Null, column, codec.kind());
        // From values to keys: a lower bound that includes its value starts at the value's
        // first key, one that excludes it past its last; mirrored for upper bounds.
        match first {
            Side::Empty => return Ok(None),
            Side::At { inclusive } => ends.past_low = !inclusive,
            Side::Open if column.nullable && column.nulls_first => {
                null(low);
                ends.past_low = true;
            }
            Side::Open => {}
        }
        match last {
            Side::Empty => return Ok(None),
            Side::At { inclusive } => ends.past_high = inclusive,
            Side::Open if column.nullable && !column.nulls_first => {
                null(high);
                ends.past_high = false;
            }
            Side::Open => {}
        }
        Ok(Some(ends))
    }

    /// Appends a bound's value to a key.
    fn side(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        bound: &Option<(Source, bool)>,
        lower: bool,
        key: &mut KeyBuf,
    ) -> ExecResult<Side> {
        let Some((source, inclusive)) = bound else { return Ok(Side::Open) };
        let (column, codec) = &self.columns[self.equals.len()];
        let mut fit = |value: &Datum| (!value.is_null()).then(|| append(key, value, column, *codec));
        let fit = match source {
            Source::Operand(operand) => fit(operand.get(ctx)),
            Source::Code(code) => fit(&code(ctx)?),
        };
        Ok(match fit {
            Some(Fit::Inside) => Side::At { inclusive: *inclusive },
            Some(Fit::Outside) => Side::Open,
            Some(Fit::Below) if lower => Side::Open,
            Some(Fit::Above) if !lower => Side::Open,
            Some(Fit::Below | Fit::Above) | None => Side::Empty,
        })
    }
}
