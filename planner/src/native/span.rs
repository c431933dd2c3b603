//! The keys of a path at run time: values appended to key prefixes, bounds to ranges.

use std::ops::Bound;

use archipel_engine::schema::{KeyColumn, KeyForm};
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::{encode_cell, successor};
use archipel_engine::txn::KeyRange;
use archipel_sql::datum::Datum;
use smallvec::SmallVec;

use super::context::{ExecContext, ExecResult};
use super::expression::Source;
use super::path::{KeyPart, Path};
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

/// Where a range starts and ends after its prefix: key bytes, and whether past all keys that
/// begin with them.
type Bounds = (Option<(KeyBuf, bool)>, Option<(KeyBuf, bool)>);

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
        None if column.form != KeyForm::Stored => {
            let mut space = Vec::new();
            let Ok(cell) = codec.encode(value, &mut space) else { return Fit::Outside };
            encode_cell(out, cell, column, codec.kind());
            Fit::Inside
        }
        None => match crate::row::integer(value) {
            Some(v) if v < 0 => Fit::Below,
            Some(_) => Fit::Above,
            None => Fit::Outside,
        },
    }
}

/// Appends a value to a key; false: no row can have it.
#[inline]
pub(crate) fn append_value(out: &mut KeyBuf, value: &Datum, column: &KeyColumn, codec: Codec) -> bool {
    matches!(append(out, value, column, codec), Fit::Inside)
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
        if self.equals.iter().all(|part| matches!(part, KeyPart::One(_))) {
            let mut prefix = KeyBuf::new();
            let mut spans = SmallVec::new();
            if self.point(ctx, &mut prefix)? {
                let bounds = match self.low.is_some() || self.high.is_some() {
                    true => self.bounds(ctx)?.map(Some),
                    false => Some(None),
                };
                if let Some(bounds) = bounds {
                    spans.extend(self.span(prefix, &bounds));
                }
            }
            return Ok(spans);
        }
        let mut prefixes: Vec<KeyBuf> = vec![KeyBuf::new()];
        for (part, (column, codec)) in self.equals.iter().zip(&self.columns) {
            let values: Vec<Datum> = match part {
                KeyPart::One(source) => vec![source.eval(ctx)?],
                KeyPart::Each(sources) => super::expression::eval_all(sources, ctx)?.into_vec(),
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
        let mut bounds = None;
        if self.low.is_some() || self.high.is_some() {
            match self.bounds(ctx)? {
                Some(found) => bounds = Some(found),
                None => return Ok(SmallVec::new()),
            }
        }
        let mut spans: SmallVec<[KeySpan; 1]> =
            prefixes.into_iter().filter_map(|prefix| self.span(prefix, &bounds)).collect();
        if self.reverse {
            spans.reverse();
        }
        Ok(spans)
    }

    /// The keys that begin with `prefix`, within bounds of the next column; `None` if there can
    /// be none.
    fn span(&self, prefix: KeyBuf, bounds: &Option<Bounds>) -> Option<KeySpan> {
        let mut low = prefix.clone();
        let mut end = prefix;
        let mut past_end = true;
        if let Some((from, to)) = bounds {
            if let Some((bytes, past)) = from {
                low.extend_from_slice(bytes);
                if *past && !successor(&mut low) {
                    return None;
                }
            }
            if let Some((bytes, past)) = to {
                end.extend_from_slice(bytes);
                past_end = *past;
            }
        }
        let high = if past_end { successor(&mut end).then_some(end) } else { Some(end) };
        Some(KeySpan { low, low_included: true, high, point: self.equals.len() == self.columns.len() })
    }

    /// The bounds of the column after the equal ones, as key bytes: where the range starts and
    /// ends, and whether past all keys that begin with those bytes. `None`: nothing matches.
    fn bounds(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Option<Bounds>> {
        let (column, codec) = self.columns[self.equals.len()];
        let mut side =
            |bound: &Option<(Source, bool)>, lower: bool| -> ExecResult<Result<Option<(KeyBuf, bool)>, ()>> {
                let Some((source, inclusive)) = bound else { return Ok(Ok(None)) };
                let value = source.eval(ctx)?;
                if value.is_null() {
                    return Ok(Err(()));
                }
                let mut bytes = KeyBuf::new();
                Ok(match append(&mut bytes, &value, &column, codec) {
                    Fit::Inside => Ok(Some((bytes, *inclusive))),
                    Fit::Outside => Ok(None),
                    Fit::Below if lower => Ok(None),
                    Fit::Above if !lower => Ok(None),
                    Fit::Below | Fit::Above => Err(()),
                })
            };
        let (Ok(low), Ok(high)) = (side(&self.low, true)?, side(&self.high, false)?) else { return Ok(None) };
        // From values to keys: a lower bound that includes its value starts at the value's
        // first key, one that excludes it past its last; mirrored for upper bounds. In a
        // descending column the greater values come first.
        let (first, last) = if column.descending { (high, low) } else { (low, high) };
        let mut start = first.map(|(bytes, inclusive)| (bytes, !inclusive));
        let mut end = last;
        if column.nullable {
            let mut null = KeyBuf::new();
            encode_cell(&mut null, archipel_engine::cell::Cell::Null, &column, codec.kind());
            if column.nulls_first && start.is_none() {
                start = Some((null, true));
            } else if !column.nulls_first && end.is_none() {
                end = Some((null, false));
            }
        }
        Ok(Some((start, end)))
    }
}
