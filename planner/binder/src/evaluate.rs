//! Evaluating routing expressions before there is a transaction.

use std::borrow::Cow;
use std::sync::Arc;

use archipel_sql::datum::{Array, Datum, Dimension, integer};
use archipel_sql::function::{FunctionContext, Volatility};

use crate::array::{array_of_items, element, has_arrays};
use crate::bound::{BoundExpr, ExprKind, Subscript};

/// What routing expressions may read.
pub struct RouteInputs<'a> {
    pub params: &'a [Datum],
    /// Values of `Variable(n)`: quantified loop variables of a routine's analysis.
    pub variables: &'a [Datum],
    pub functions: &'a FunctionContext<'a>,
}

/// Whether an expression reads nothing but constants, parameters and variables, and calls
/// nothing that may answer differently a moment later.
pub fn is_row_free(expr: &BoundExpr) -> bool {
    match &expr.kind {
        ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Variable(_) => true,
        ExprKind::Call { function, args } => {
            function.function.volatility != Volatility::Volatile && args.iter().all(is_row_free)
        }
        ExprKind::Relabel(inner) | ExprKind::ConvertIo(inner) => is_row_free(inner),
        // Where it leads tells nothing of its conditions; the statement itself looks at them.
        ExprKind::Domain { expr, .. } => is_row_free(expr),
        ExprKind::Array { items, .. } => items.iter().all(is_row_free),
        ExprKind::Coalesce(args) => args.iter().all(is_row_free),
        ExprKind::Subscript { array, subscripts } => {
            is_row_free(array)
                && subscripts
                    .iter()
                    .all(|subscript| matches!(subscript, Subscript::Index(index) if is_row_free(index)))
        }
        ExprKind::Field { record, .. } => is_row_free(record),
        ExprKind::Case { arms, otherwise } => {
            arms.iter().all(|(condition, value)| is_row_free(condition) && is_row_free(value))
                && otherwise.as_ref().is_none_or(|otherwise| is_row_free(otherwise))
        }
        ExprKind::And(args) | ExprKind::Or(args) => args.iter().all(is_row_free),
        ExprKind::Not(inner) | ExprKind::IsNull(inner) | ExprKind::IsNotNull(inner) => is_row_free(inner),
        _ => false,
    }
}

/// `array[lower:upper]` of a one-dimensional array, its elements alone: that is what keys are
/// read from.
fn slice(
    array: &Array,
    lower: Option<&BoundExpr>,
    upper: Option<&BoundExpr>,
    inputs: &RouteInputs<'_>,
) -> Option<Datum> {
    let [dimension] = &array.dimensions[..] else {
        return array.dimensions.is_empty().then_some(Datum::Null);
    };
    let first = i64::from(dimension.lower_bound);
    let last = first + dimension.length as i64 - 1;
    let bound = |expr: Option<&BoundExpr>, open: i64| match expr {
        None => Some(open),
        Some(expr) => integer(&evaluate(expr, inputs)?),
    };
    let (low, high) = (bound(lower, first)?.max(first), bound(upper, last)?.min(last));
    let values = match usize::try_from(high - low + 1) {
        Ok(count) if count > 0 => array.values[(low - first) as usize..=(high - first) as usize].to_vec(),
        _ => Vec::new(),
    };
    let dimensions =
        if values.is_empty() { Vec::new() } else { vec![Dimension { length: values.len(), lower_bound: 1 }] };
    Some(Datum::Array(Arc::new(Array { element: array.element, dimensions, values })))
}

/// As [`evaluate`], without a copy of a value that is at hand as it is.
#[inline]
pub fn value_of<'a>(expr: &'a BoundExpr, inputs: &RouteInputs<'a>) -> Option<Cow<'a, Datum>> {
    given(expr, inputs).map(Cow::Borrowed).or_else(|| evaluate(expr, inputs).map(Cow::Owned))
}

#[inline]
fn given<'a>(expr: &'a BoundExpr, inputs: &RouteInputs<'a>) -> Option<&'a Datum> {
    match &expr.kind {
        ExprKind::Const(value) => Some(value),
        ExprKind::Param(index) => inputs.params.get(usize::from(*index)),
        ExprKind::Variable(index) => inputs.variables.get(*index as usize),
        ExprKind::Relabel(inner) => given(inner, inputs),
        _ => None,
    }
}

/// The value of a routing expression; `None` where it cannot be computed now. An error is
/// none either: the statement itself will raise it.
pub fn evaluate(expr: &BoundExpr, inputs: &RouteInputs<'_>) -> Option<Datum> {
    let truth = |expr: &BoundExpr| evaluate(expr, inputs).map(|value| value == Datum::Bool(true));
    match &expr.kind {
        ExprKind::Const(value) => Some(value.clone()),
        ExprKind::Param(index) => inputs.params.get(usize::from(*index)).cloned(),
        ExprKind::Variable(index) => inputs.variables.get(*index as usize).cloned(),
        ExprKind::Relabel(inner) | ExprKind::Domain { expr: inner, .. } => evaluate(inner, inputs),
        ExprKind::Call { function, args } => {
            if function.function.volatility == Volatility::Volatile {
                return None;
            }
            let args = args.iter().map(|arg| evaluate(arg, inputs)).collect::<Option<Vec<_>>>()?;
            if function.function.strict && args.iter().any(Datum::is_null) {
                return Some(Datum::Null);
            }
            (function.function.eval)(inputs.functions, &args).ok()
        }
        ExprKind::ConvertIo(inner) => {
            let value = evaluate(inner, inputs)?;
            if value.is_null() {
                return Some(Datum::Null);
            }
            let text = archipel_sql::io::to_text(&value, inner.ty, inputs.functions);
            archipel_sql::io::text_in(&text, expr.ty, inputs.functions).ok()
        }
        ExprKind::Array { element, items } => {
            let values = items.iter().map(|item| evaluate(item, inputs)).collect::<Option<Vec<_>>>()?;
            let of_arrays = has_arrays(*element, items);
            array_of_items(*element, of_arrays, values.into()).ok()
        }
        ExprKind::Coalesce(args) => {
            for arg in args {
                let value = evaluate(arg, inputs)?;
                if !value.is_null() {
                    return Some(value);
                }
            }
            Some(Datum::Null)
        }
        ExprKind::Subscript { array, subscripts } => {
            let Datum::Array(array) = evaluate(array, inputs)? else { return Some(Datum::Null) };
            if let [Subscript::Slice { lower, upper }] = &subscripts[..] {
                return slice(&array, lower.as_ref(), upper.as_ref(), inputs);
            }
            let indexes = subscripts
                .iter()
                .map(|subscript| match subscript {
                    Subscript::Index(index) => integer(&evaluate(index, inputs)?),
                    Subscript::Slice { .. } => None,
                })
                .collect::<Option<Vec<_>>>()?;
            Some(element(&array, &indexes).clone())
        }
        ExprKind::Field { record, index } => match evaluate(record, inputs)? {
            Datum::Record(fields) => fields.get(usize::from(*index)).cloned(),
            _ => Some(Datum::Null),
        },
        ExprKind::Case { arms, otherwise } => {
            for (condition, value) in arms {
                if truth(condition)? {
                    return evaluate(value, inputs);
                }
            }
            otherwise.as_ref().map_or(Some(Datum::Null), |otherwise| evaluate(otherwise, inputs))
        }
        ExprKind::IsNull(inner) => Some(Datum::Bool(evaluate(inner, inputs)?.is_null())),
        ExprKind::IsNotNull(inner) => Some(Datum::Bool(!evaluate(inner, inputs)?.is_null())),
        ExprKind::Not(inner) => match evaluate(inner, inputs)? {
            Datum::Bool(value) => Some(Datum::Bool(!value)),
            _ => Some(Datum::Null),
        },
        ExprKind::And(args) => {
            let mut result = Datum::Bool(true);
            for arg in args {
                match evaluate(arg, inputs)? {
                    Datum::Bool(false) => return Some(Datum::Bool(false)),
                    Datum::Null => result = Datum::Null,
                    _ => {}
                }
            }
            Some(result)
        }
        ExprKind::Or(args) => {
            let mut result = Datum::Bool(false);
            for arg in args {
                match evaluate(arg, inputs)? {
                    Datum::Bool(true) => return Some(Datum::Bool(true)),
                    Datum::Null => result = Datum::Null,
                    _ => {}
                }
            }
            Some(result)
        }
        _ => None,
    }
}
