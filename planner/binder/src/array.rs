//! Arrays as expressions make them and take them apart.

use std::sync::Arc;

use archipel_sql::datum::{Array, Datum, Dimension};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::{element_of, is_vector};
use archipel_sql::types::Oid;
use smallvec::SmallVec;

use crate::bound::BoundExpr;

/// Argument and element lists, mostly short.
pub type Values = SmallVec<[Datum; 4]>;

/// Whether the items of `ARRAY[…]` are arrays themselves.
pub fn has_arrays(element: Oid, items: &[BoundExpr]) -> bool {
    items.iter().any(|item| element_of(item.ty.oid) == Some(element))
}

/// `ARRAY[…]`: arrays all of which are empty or NULL make an empty one.
pub fn array_of_items(element: Oid, of_arrays: bool, values: Values) -> Result<Datum> {
    let is_empty = |value: &Datum| match value {
        Datum::Array(array) => array.dimensions.is_empty(),
        value => value.is_null(),
    };
    match of_arrays && values.iter().all(is_empty) {
        true => array_of(element, Values::new()),
        false => array_of(element, values),
    }
}

/// An array of scalars, or of arrays of one shape, which gain a dimension.
pub fn array_of(element: Oid, values: Values) -> Result<Datum> {
    let nested = !is_vector(element) && values.iter().any(|value| matches!(value, Datum::Array(_)));
    if !nested {
        let dimensions = match values.len() {
            0 => Vec::new(),
            length => vec![Dimension { length, lower_bound: 1 }],
        };
        return Ok(Datum::Array(Arc::new(Array { element, dimensions, values: values.into_vec() })));
    }
    let mut inner: Option<Vec<Dimension>> = None;
    let mut flat = Vec::new();
    let length = values.len();
    for value in values {
        let shape_error = || {
            SqlError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                "multidimensional arrays must have array expressions with matching dimensions",
            )
        };
        let Datum::Array(array) = value else { return Err(shape_error()) };
        match &inner {
            None => inner = Some(array.dimensions.clone()),
            Some(shape) if *shape != array.dimensions => return Err(shape_error()),
            Some(_) => {}
        }
        flat.extend(array.values.iter().cloned());
    }
    let mut dimensions = vec![Dimension { length, lower_bound: 1 }];
    match inner {
        Some(shape) if !shape.is_empty() => dimensions.extend(shape),
        _ => dimensions.clear(),
    }
    Ok(Datum::Array(Arc::new(Array { element, dimensions, values: flat })))
}

/// One element; NULL outside the bounds or with the wrong number of subscripts.
#[inline]
pub fn element<'a>(array: &'a Array, indexes: &[i64]) -> &'a Datum {
    if let ([dimension], [index]) = (&array.dimensions[..], indexes) {
        let offset = index - i64::from(dimension.lower_bound);
        return usize::try_from(offset).ok().and_then(|at| array.values.get(at)).unwrap_or(&Datum::Null);
    }
    if array.dimensions.len() != indexes.len() {
        return &Datum::Null;
    }
    let mut at = 0usize;
    for (dimension, index) in array.dimensions.iter().zip(indexes) {
        let offset = index - i64::from(dimension.lower_bound);
        if offset < 0 || offset >= dimension.length as i64 {
            return &Datum::Null;
        }
        at = at * dimension.length + offset as usize;
    }
    array.values.get(at).unwrap_or(&Datum::Null)
}

/// A slice, its lower bounds 1; the empty array when nothing is left.
pub fn slice(array: &Array, lows: &[Option<i64>], highs: &[Option<i64>]) -> Datum {
    let empty = || {
        Datum::Array(Arc::new(Array { element: array.element, dimensions: Vec::new(), values: Vec::new() }))
    };
    if lows.len() > array.dimensions.len() {
        return empty();
    }
    let mut ranges = Vec::with_capacity(array.dimensions.len());
    for (position, dimension) in array.dimensions.iter().enumerate() {
        let first = i64::from(dimension.lower_bound);
        let last = first + dimension.length as i64 - 1;
        let low = lows.get(position).copied().flatten().unwrap_or(first).max(first);
        let high = highs.get(position).copied().flatten().unwrap_or(last).min(last);
        if low > high {
            return empty();
        }
        ranges.push((low - first) as usize..=(high - first) as usize);
    }
    let mut positions = vec![0usize];
    for (range, dimension) in ranges.iter().zip(&array.dimensions) {
        positions =
            positions.iter().flat_map(|p| range.clone().map(move |i| p * dimension.length + i)).collect();
    }
    let dimensions =
        ranges.iter().map(|range| Dimension { length: range.clone().count(), lower_bound: 1 }).collect();
    let values = positions.into_iter().map(|p| array.values[p].clone()).collect();
    Datum::Array(Arc::new(Array { element: array.element, dimensions, values }))
}
