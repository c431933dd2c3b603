//! An array with an element or a slice replaced (array_set_element, array_set_slice).

use std::sync::Arc;

use crate::datum::{Array, Datum, Dimension};
use crate::error::{Result, SqlError, SqlState};
use crate::function::Eval;
use crate::function::args::*;
use crate::function::length::{check_elements, too_many_elements};

/// So many elements fit into an array (MaxArraySize).
const ELEMENTS_MAX: i64 = crate::function::length::ELEMENTS_MAX as i64;
/// So many dimensions (MAXDIM).
const DIMENSIONS_MAX: usize = 6;

/// `(array, value, bounds, element type, lower, upper, …)`. `bounds` has a letter for each
/// subscript: `i` an index, which is the upper bound, else which bounds of a slice are given: `b`
/// both, `l`, `u`, or `n` none.
pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[("archipel_array_assign", |_, v| assign(v))];

fn error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
}

/// A subscript; `None` for a bound that is not given.
type Bounds = (Option<i64>, Option<i64>);

pub(in crate::function) fn assign(v: &[Datum]) -> Result<Datum> {
    let element = oid(v, 3)?;
    let empty = || Arc::new(Array { element, dimensions: Vec::new(), values: Vec::new() });
    let base = match any(v, 0)? {
        Datum::Null => empty(),
        _ => Arc::clone(array(v, 0)?),
    };
    let value = any(v, 1)?;
    let letters = text(v, 2)?;
    if letters.len() > DIMENSIONS_MAX {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!(
                "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
                letters.len()
            ),
        ));
    }
    let mut bounds: Vec<Bounds> = Vec::with_capacity(letters.len());
    for (place, letter) in letters.bytes().enumerate() {
        let bound = |at: usize, given: bool| match (given, any(v, at)?) {
            (false, _) => Ok(None),
            (true, Datum::Null) => Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "array subscript in assignment must not be null",
            )),
            (true, _) => Ok(Some(i64::from(int4(v, at)?))),
        };
        let lower = bound(4 + 2 * place, matches!(letter, b'b' | b'l'))?;
        let upper = bound(5 + 2 * place, matches!(letter, b'b' | b'u' | b'i'))?;
        bounds.push((lower, upper));
    }
    let changed = if letters.bytes().all(|letter| letter == b'i') {
        let indexes: Vec<i64> = bounds.iter().map(|(_, upper)| upper.unwrap_or(0)).collect();
        with_element(&base, &indexes, value.clone())?
    } else {
        // Among slices a plain subscript n means 1:n.
        for (bound, letter) in bounds.iter_mut().zip(letters.bytes()) {
            if letter == b'i' {
                bound.0 = Some(1);
            }
        }
        match value {
            Datum::Null if base.dimensions.is_empty() && any(v, 0)?.is_null() => return Ok(Datum::Null),
            // A slice that is NULL changes nothing.
            Datum::Null => return Ok(Datum::Array(base)),
            _ => with_slice(&base, &bounds, array(v, 1)?)?,
        }
    };
    Ok(Datum::Array(Arc::new(changed)))
}

/// Refuses dimensions of too many elements or beyond the integers.
fn check_size(dimensions: &[(i64, i64)]) -> Result<i64> {
    let mut count: i64 = 1;
    for (_, length) in dimensions {
        count = count
            .checked_mul(*length)
            .filter(|count| *count <= ELEMENTS_MAX)
            .ok_or_else(too_many_elements)?;
    }
    for (lower, length) in dimensions {
        if lower + length > i64::from(i32::MAX) {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("array lower bound is too large: {lower}"),
            ));
        }
    }
    Ok(count)
}

/// Lower bound and length of each dimension.
fn spans(array: &Array) -> Vec<(i64, i64)> {
    array
        .dimensions
        .iter()
        .map(|dimension| (i64::from(dimension.lower_bound), dimension.length as i64))
        .collect()
}

fn dimensions(spans: &[(i64, i64)]) -> Vec<Dimension> {
    spans
        .iter()
        .map(|(lower, length)| Dimension { length: *length as usize, lower_bound: *lower as i32 })
        .collect()
}

/// A one-dimensional array that reaches from one place to another, at least.
fn widened(base: &Array, from: i64, to: i64) -> Result<Array> {
    let (lower, length) = spans(base)[0];
    let (low, high) = (lower.min(from), (lower + length - 1).max(to));
    let span = (low, high - low + 1);
    check_size(&[span])?;
    let before = (lower - low) as usize;
    check_elements(span.1 as usize)?;
    let mut values = Vec::with_capacity(span.1 as usize);
    values.resize(before, Datum::Null);
    values.extend(base.values.iter().cloned());
    values.resize(span.1 as usize, Datum::Null);
    Ok(Array { element: base.element, dimensions: dimensions(&[span]), values })
}

fn with_element(base: &Array, indexes: &[i64], value: Datum) -> Result<Array> {
    if base.dimensions.is_empty() {
        let spans: Vec<(i64, i64)> = indexes.iter().map(|index| (*index, 1)).collect();
        check_size(&spans)?;
        return Ok(Array { element: base.element, dimensions: dimensions(&spans), values: vec![value] });
    }
    if base.dimensions.len() != indexes.len() {
        return Err(error("wrong number of array subscripts"));
    }
    if let [index] = indexes {
        let mut array = widened(base, *index, *index)?;
        let place = (index - i64::from(array.dimensions[0].lower_bound)) as usize;
        array.values[place] = value;
        return Ok(array);
    }
    let mut place = 0;
    for (index, (lower, length)) in indexes.iter().zip(spans(base)) {
        if !(lower..lower + length).contains(index) {
            return Err(error("array subscript out of range"));
        }
        place = place * length + (index - lower);
    }
    let mut array = base.clone();
    array.values[place as usize] = value;
    Ok(array)
}

fn with_slice(base: &Array, bounds: &[Bounds], source: &Array) -> Result<Array> {
    let too_small = || error("source array too small");
    if base.dimensions.is_empty() {
        let mut spans = Vec::with_capacity(bounds.len());
        for bound in bounds {
            let (Some(lower), Some(upper)) = bound else {
                return Err(error("array slice subscript must provide both boundaries").with_detail(
                    "When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
                ));
            };
            spans.push((*lower, (upper - lower + 1).max(0)));
        }
        let count = check_size(&spans)? as usize;
        if source.values.len() < count {
            return Err(too_small());
        }
        let values = source.values[..count].to_vec();
        let dimensions = if count == 0 { Vec::new() } else { dimensions(&spans) };
        return Ok(Array { element: base.element, dimensions, values });
    }
    if base.dimensions.len() < bounds.len() {
        return Err(error("wrong number of array subscripts"));
    }
    let mut wanted = Vec::with_capacity(base.dimensions.len());
    for (place, (lower, length)) in spans(base).into_iter().enumerate() {
        let (from, to) = bounds.get(place).copied().unwrap_or((None, None));
        let (from, to) = (from.unwrap_or(lower), to.unwrap_or(lower + length - 1));
        if from > to {
            return Err(error("upper bound cannot be less than lower bound"));
        }
        let inside = from >= lower && to < lower + length;
        if base.dimensions.len() > 1 && place < bounds.len() && !inside {
            return Err(error("array subscript out of range"));
        }
        wanted.push((from, to - from + 1));
    }
    let count = check_size(&wanted)? as usize;
    if source.values.len() < count {
        return Err(too_small());
    }
    let mut array = match &wanted[..] {
        [(from, length)] => widened(base, *from, from + length - 1)?,
        _ => base.clone(),
    };
    let spans = spans(&array);
    // Where the slice's elements go, in row-major order.
    let mut offsets = vec![0_i64; wanted.len()];
    for value in &source.values[..count] {
        let place = spans
            .iter()
            .zip(&wanted)
            .zip(&offsets)
            .fold(0, |place, ((span, slice), offset)| place * span.1 + (slice.0 - span.0 + offset));
        array.values[place as usize] = value.clone();
        for (offset, slice) in offsets.iter_mut().zip(&wanted).rev() {
            *offset += 1;
            if *offset < slice.1 {
                break;
            }
            *offset = 0;
        }
    }
    Ok(array)
}
