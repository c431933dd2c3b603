//! Assignment to elements and slices of array variables, with PostgreSQL's rules for growing.

use std::sync::Arc;

use archipel_planner::native::{ExecContext, ExecError, ExecResult};
use archipel_sql::datum::{Array, Datum, Dimension};
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::types::Oid;
use archipel_sql::{interrupt, memory};
use smallvec::SmallVec;

use super::invocation::Invocation;
use super::operation::expression::{Compiled, Expression};

impl Invocation<'_, '_> {
    /// `array[i] := value`: the array grows as PostgreSQL's does.
    pub(super) fn assign_element(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        register: u32,
        element: Oid,
        subscripts: &[Expression],
        value: &Expression,
    ) -> ExecResult<()> {
        let value = (value.run)(ctx)?;
        let mut at: SmallVec<[i32; 2]> = SmallVec::new();
        for subscript in subscripts {
            match (subscript.run)(ctx)? {
                Datum::Int4(index) => at.push(index),
                _ => {
                    return Err(ExecError::Sql(null_subscript()));
                }
            }
        }
        store_element(&mut ctx.variables[register as usize], element, &at, value).map_err(ExecError::Sql)
    }

    /// `array[i:j] := value`. NULL leaves the array as it is.
    pub(super) fn assign_slice(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        register: u32,
        (lower, upper): &(Option<Compiled>, Option<Compiled>),
        value: &Compiled,
    ) -> ExecResult<()> {
        let Datum::Array(source) = value(ctx)? else { return Ok(()) };
        let mut bound = |bound: &Option<Compiled>| match bound {
            None => Ok(None),
            Some(bound) => match bound(ctx)? {
                Datum::Int4(index) => Ok(Some(index)),
                _ => Err(ExecError::Sql(null_subscript())),
            },
        };
        let bounds = (bound(lower)?, bound(upper)?);
        let array = array_of(&mut ctx.variables[register as usize], source.element);
        set_slice(array, bounds, &source).map_err(ExecError::Sql)
    }
}

/// The array a variable holds, to be changed in place: shared with nobody in the common case. NULL
/// becomes an empty one.
pub(super) fn array_of(variable: &mut Datum, element: Oid) -> &mut Array {
    if !matches!(variable, Datum::Array(_)) {
        *variable = Datum::Array(Arc::new(Array { element, dimensions: Vec::new(), values: Vec::new() }));
    }
    match variable {
        Datum::Array(array) => Arc::make_mut(array),
        _ => unreachable!("it has just been made an array"),
    }
}

/// Assigns to an element of the array in `variable`.
pub(super) fn store_element(
    variable: &mut Datum,
    element: Oid,
    at: &[i32],
    value: Datum,
) -> Result<(), SqlError> {
    store_in(array_of(variable, element), at, value)
}

/// Assigns to an element of an array.
#[inline]
pub(super) fn store_in(array: &mut Array, at: &[i32], value: Datum) -> Result<(), SqlError> {
    if let ([dimension], [index]) = (&array.dimensions[..], at)
        && let Ok(offset) = usize::try_from(i64::from(*index) - i64::from(dimension.lower_bound))
        && let Some(place) = array.values.get_mut(offset)
    {
        place.set(value);
        return Ok(());
    }
    set_element(array, at, value)
}

pub(super) fn null_subscript() -> SqlError {
    SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "array subscript in assignment must not be null")
}

fn set_slice(
    array: &mut Array,
    (lower, upper): (Option<i32>, Option<i32>),
    source: &Array,
) -> Result<(), SqlError> {
    let (lower, upper) = match (&array.dimensions[..], lower, upper) {
        ([], Some(lower), Some(upper)) => (lower, upper),
        ([], ..) => {
            return Err(subscript_error("array slice subscript must provide both boundaries")
                .with_detail("When assigning to a slice of an empty array value, slice boundaries must be fully specified."));
        }
        ([dimension], lower, upper) => {
            let last = dimension.lower_bound.saturating_add(dimension.length as i32 - 1);
            (lower.unwrap_or(dimension.lower_bound), upper.unwrap_or(last))
        }
        _ => return Err(subscript_error("wrong number of array subscripts")),
    };
    if lower > upper {
        return Err(subscript_error("upper bound cannot be less than lower bound"));
    }
    let span = i64::from(upper) - i64::from(lower) + 1;
    if (source.values.len() as i64) < span {
        return Err(subscript_error("source array too small"));
    }
    // The far end first: the array grows once.
    for (at, value) in source.values.iter().take(span as usize).enumerate().rev() {
        set_element(array, &[lower + at as i32], value.clone())?;
    }
    Ok(())
}

fn subscript_error(message: &str) -> SqlError {
    SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
}

/// Largest number of elements an array may have (PostgreSQL's MaxArraySize).
pub(super) const ELEMENTS_MAX: usize = 134_217_727;

/// A dimension whose last index would be the largest integer is refused (ArrayCheckBounds).
fn check_last(lower_bound: i32, length: i64) -> Result<(), SqlError> {
    if i64::from(lower_bound) + length <= i64::from(i32::MAX) {
        return Ok(());
    }
    let message = format!("array lower bound is too large: {lower_bound}");
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
}

/// Takes the memory for so many elements more, if there is as much.
fn make_room(values: &mut Vec<Datum>, missing: usize) -> Result<(), SqlError> {
    interrupt::steps(missing)?;
    let count = values.len() + missing;
    if count > values.capacity() {
        // Arrays mostly grow element by element: they are copied now and then only.
        let capacity = count.max(2 * values.len());
        memory::check(capacity.saturating_mul(size_of::<Datum>()))?;
        values.reserve_exact(capacity - values.len());
    }
    Ok(())
}

fn set_element(array: &mut Array, at: &[i32], value: Datum) -> Result<(), SqlError> {
    if array.dimensions.is_empty() {
        at.iter().try_for_each(|index| check_last(*index, 1))?;
        array.dimensions = at.iter().map(|index| Dimension { length: 1, lower_bound: *index }).collect();
        array.values = vec![value];
        return Ok(());
    }
    if array.dimensions.len() != at.len() {
        return Err(subscript_error("wrong number of array subscripts"));
    }
    if let ([dimension], [index]) = (&mut array.dimensions[..], at) {
        // One dimension grows at both ends, NULLs in between.
        let offset = i64::from(*index) - i64::from(dimension.lower_bound);
        let wanted = if offset < 0 { dimension.length as i64 - offset } else { offset + 1 };
        if wanted > ELEMENTS_MAX as i64 {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})"),
            ));
        }
        check_last(dimension.lower_bound.min(*index), wanted)?;
        if offset < 0 {
            let missing = (-offset) as usize;
            make_room(&mut array.values, missing)?;
            array.values.splice(0..0, std::iter::repeat_n(Datum::Null, missing));
            dimension.lower_bound = *index;
            dimension.length += missing;
            array.values[0] = value;
        } else {
            let offset = offset as usize;
            if offset >= dimension.length {
                make_room(&mut array.values, offset + 1 - dimension.length)?;
                array.values.resize(offset + 1, Datum::Null);
                dimension.length = offset + 1;
            }
            array.values[offset] = value;
        }
        return Ok(());
    }
    let mut offset = 0usize;
    for (dimension, index) in array.dimensions.iter().zip(at) {
        let inside = i64::from(*index) - i64::from(dimension.lower_bound);
        if inside < 0 || inside >= dimension.length as i64 {
            return Err(subscript_error("array subscript out of range"));
        }
        offset = offset * dimension.length + inside as usize;
    }
    array.values[offset] = value;
    Ok(())
}
