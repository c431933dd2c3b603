//! What the constructs of the language that are no functions make of values at hand: NULL tests, IS
//! DISTINCT FROM, NULLIF, GREATEST and LEAST, `op ANY (array)`, conversions through text. The evaluator
//! ([`crate::evaluate`]) and the executor's closures share them.

use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{FunctionContext, ScalarFunction};
use archipel_sql::io;
use archipel_sql::types::Type;

/// The truth value a datum stands for; `None` is UNKNOWN.
#[inline]
pub fn truth(value: &Datum) -> Option<bool> {
    match value {
        Datum::Bool(value) => Some(*value),
        _ => None,
    }
}

/// A truth as a value.
#[inline]
pub fn of_truth(truth: Option<bool>) -> Datum {
    truth.map_or(Datum::Null, Datum::Bool)
}

/// `IS NULL` where NULL is `wanted`, else `IS NOT NULL`: a row is NULL when all its fields are, NOT NULL
/// when none of them is.
#[inline]
pub fn null_test(value: &Datum, wanted: bool) -> bool {
    match value {
        Datum::Record(fields) => fields.iter().all(|field| field.is_null() == wanted),
        value => value.is_null() == wanted,
    }
}

/// `IS DISTINCT FROM`.
#[inline]
pub fn is_distinct(
    pair: &[Datum; 2],
    equality: &ScalarFunction,
    functions: &FunctionContext<'_>,
) -> Result<bool> {
    Ok(match (pair[0].is_null(), pair[1].is_null()) {
        (true, true) => false,
        (true, false) | (false, true) => true,
        (false, false) => (equality.eval)(functions, pair)? != Datum::Bool(true),
    })
}

/// `NULLIF`: the first, or NULL where the second equals it.
#[inline]
pub fn null_if(
    pair: [Datum; 2],
    equality: &ScalarFunction,
    functions: &FunctionContext<'_>,
) -> Result<Datum> {
    let either_is_null = pair.iter().any(Datum::is_null);
    let equal = !either_is_null && (equality.eval)(functions, &pair)? == Datum::Bool(true);
    let [first, _] = pair;
    Ok(if equal { Datum::Null } else { first })
}

/// One step of `GREATEST` or `LEAST`: the better of the best so far and another value. NULL is none.
#[inline]
pub fn better(
    greatest: bool,
    best: Datum,
    value: Datum,
    less: &ScalarFunction,
    functions: &FunctionContext<'_>,
) -> Result<Datum> {
    if value.is_null() {
        return Ok(best);
    }
    if best.is_null() {
        return Ok(value);
    }
    let pair = if greatest { [best, value] } else { [value, best] };
    let replace = (less.eval)(functions, &pair)? == Datum::Bool(true);
    let [first, second] = pair;
    // Greatest: best < value. Least: value < best. Either way the new one wins.
    Ok(if greatest == replace { second } else { first })
}

/// `left op ANY (…)` of an array's elements or a list's items, or ALL: ALL of nothing is true, ANY of nothing false.
#[inline]
pub fn over_elements(
    left: Datum,
    values: &[Datum],
    operator: &ScalarFunction,
    all: bool,
    functions: &FunctionContext<'_>,
) -> Result<Option<bool>> {
    let mut pair = [left, Datum::Null];
    let mut result = Some(all);
    for value in values {
        let holds = if pair[0].is_null() || value.is_null() {
            None
        } else {
            pair[1] = value.clone();
            truth(&(operator.eval)(functions, &pair)?)
        };
        match holds {
            Some(holds) if holds != all => return Ok(Some(!all)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// The text form of one type read as another.
pub fn convert_io(value: &Datum, from: Type, to: Type, functions: &FunctionContext<'_>) -> Result<Datum> {
    if value.is_null() {
        return Ok(Datum::Null);
    }
    let text = io::text_of(value, from, functions)?;
    io::text_in(&text, to, functions)
}
