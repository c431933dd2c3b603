//! `text := text || part`, `array := array || element` or `|| other`: the value grows where it is, so that
//! a loop which builds it copies what it adds and no more.

use std::sync::Arc;

use archipel_planner::native::{ExecContext, ExecError, ExecResult};
use archipel_sql::datum::{Array, Datum, Dimension};
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::ResolvedFunction;
use archipel_sql::function::length::{VALUE_MAX, value_too_long};
use archipel_sql::memory;
use archipel_sql::types::Oid;
use smallvec::SmallVec;

use super::element::{ELEMENTS_MAX, array_of};
use super::operation::expression::Expression;

/// The longest text.
pub(super) const TEXT_LEN_MAX: usize = VALUE_MAX;

#[cold]
fn too_large(message: String) -> ExecError {
    ExecError::Sql(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
}

/// Why a text of so many bytes cannot be.
#[cold]
pub(super) fn too_long(bytes: usize) -> ExecError {
    ExecError::Sql(value_too_long(bytes))
}

/// Every part is evaluated before the text changes: it may read the text, and it may fail.
pub(super) fn text(ctx: &mut ExecContext<'_, '_>, register: u32, parts: &[Expression]) -> ExecResult<()> {
    let mut values: SmallVec<[Datum; 2]> = SmallVec::new();
    for part in parts {
        values.push((part.run)(ctx)?);
    }
    let variable = &mut ctx.variables[register as usize];
    for value in &values {
        match (&mut *variable, value) {
            (Datum::Text(text), Datum::Text(part)) if text.len() + part.len() > TEXT_LEN_MAX => {
                return Err(too_long(text.len() + part.len()));
            }
            (Datum::Text(text), Datum::Text(part)) => {
                // It is copied where there is no room for more.
                if text.len() + part.len() > text.capacity() {
                    memory::check(text.len() + part.len())?;
                }
                text.push_str(part);
            }
            _ => variable.set(Datum::Null),
        }
    }
    Ok(())
}

/// Two arrays of one dimension; others as the function has it.
pub(super) fn array(
    ctx: &mut ExecContext<'_, '_>,
    register: u32,
    value: &Expression,
    function: ResolvedFunction,
) -> ExecResult<()> {
    let value = (value.run)(ctx)?;
    let variable = &mut ctx.variables[register as usize];
    if let (Datum::Array(held), Datum::Array(other)) = (&mut *variable, &value)
        && held.dimensions.len() == 1
        && other.dimensions.len() == 1
        && fits(held, other.values.len())
    {
        let array = Arc::make_mut(held);
        array.values.extend_from_slice(&other.values);
        array.dimensions[0].length += other.values.len();
        return Ok(());
    }
    let pair = [variable.take(), value];
    let joined = (function.function.eval)(&ctx.functions, &pair);
    let [kept, _] = pair;
    let variable = &mut ctx.variables[register as usize];
    variable.set(kept);
    variable.set(joined?);
    Ok(())
}

/// Whether so many elements more are neither too many nor beyond the last index.
fn fits(array: &Array, more: usize) -> bool {
    let length = array.values.len() + more;
    let low = array.dimensions.first().map_or(1, |dimension| i64::from(dimension.lower_bound));
    length <= ELEMENTS_MAX && low + (length as i64) <= i64::from(i32::MAX)
}

pub(super) fn element(
    ctx: &mut ExecContext<'_, '_>,
    register: u32,
    element: Oid,
    value: &Expression,
) -> ExecResult<()> {
    let value = (value.run)(ctx)?;
    push(array_of(&mut ctx.variables[register as usize], element), value)
}

/// Adds an element to an array of one dimension, or to an empty one.
pub(super) fn push(array: &mut Array, value: Datum) -> ExecResult<()> {
    if array.values.len() >= ELEMENTS_MAX {
        return Err(too_large(format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})")));
    }
    match &mut array.dimensions[..] {
        [] => array.dimensions.push(Dimension { length: 1, lower_bound: 1 }),
        [dimension] => {
            let past = i64::from(dimension.lower_bound) + dimension.length as i64 + 1;
            if past > i64::from(i32::MAX) {
                return Err(too_large(format!("array lower bound is too large: {}", dimension.lower_bound)));
            }
            dimension.length += 1;
        }
        _ => {
            return Err(ExecError::Sql(SqlError::new(
                SqlState::DATA_EXCEPTION,
                "argument must be empty or one-dimensional array",
            )));
        }
    }
    array.values.push(value);
    Ok(())
}
