//! Calls of functions over VARIADIC "any" that are given one array: its elements are the arguments.

use super::args::*;
use super::{Eval, FunctionContext, lookup_functions};
use crate::datum::Datum;
use crate::error::{Result, SqlError};
use crate::io::{natural_type, to_text};
use crate::json::shape;
use crate::type_table::element_of;
use crate::types::Type;

/// What such a call is a call of: the name of the function with this before it.
pub const OF_ARRAY: &str = "archipel_variadic_";

pub(super) const FUNCTIONS: &[(&str, Eval)] = &[
    ("archipel_variadic_num_nulls", |c, v| spread(c, v, "num_nulls")),
    ("archipel_variadic_num_nonnulls", |c, v| spread(c, v, "num_nonnulls")),
    ("archipel_variadic_concat", |c, v| spread(c, v, "concat")),
    ("archipel_variadic_concat_ws", |c, v| spread(c, v, "concat_ws")),
    // A NULL array is no arguments here.
    ("archipel_variadic_format", |c, v| match v {
        [format, Datum::Null] => call(c, std::slice::from_ref(format), "format"),
        _ => spread(c, v, "format"),
    }),
    ("archipel_variadic_json_build_array", |c, v| spread_json(c, v, "json_build_array")),
    ("archipel_variadic_json_build_object", |c, v| spread_json(c, v, "json_build_object")),
    ("archipel_variadic_jsonb_build_array", |c, v| spread_json(c, v, "jsonb_build_array")),
    ("archipel_variadic_jsonb_build_object", |c, v| spread_json(c, v, "jsonb_build_object")),
];

fn call(ctx: &FunctionContext<'_>, args: &[Datum], name: &str) -> Result<Datum> {
    let function = lookup_functions(name).iter().find(|function| function.variadic);
    let function = function.ok_or_else(|| SqlError::internal(format!("no function {name} over VARIADIC")))?;
    (function.eval)(ctx, args)
}

/// `(…, array)`.
fn spread(ctx: &FunctionContext<'_>, v: &[Datum], name: &str) -> Result<Datum> {
    let last = v.len().saturating_sub(1);
    if any(v, last)?.is_null() {
        return Ok(Datum::Null);
    }
    let mut args = v[..last].to_vec();
    let elements = array(v, last)?;
    let element = Type::of(elements.element);
    // What values do not tell of their type is to be seen in what they are shown as.
    args.extend(elements.values.iter().map(|value| match value {
        Datum::Null => Datum::Null,
        value if natural_type(value).oid == element.oid => value.clone(),
        value => text_datum(to_text(value, element, ctx)),
    }));
    call(ctx, &args, name)
}

/// `(array, shape)`: the elements as JSON.
fn spread_json(ctx: &FunctionContext<'_>, v: &[Datum], name: &str) -> Result<Datum> {
    if any(v, 0)?.is_null() {
        return Ok(Datum::Null);
    }
    let (elements, array_type) = (array(v, 0)?, shape::type_of(text(v, 1)?)?);
    let element = element_of(array_type.oid).unwrap_or(elements.element);
    let element = Type { oid: element, ..array_type };
    let mut args = Vec::new();
    for value in &elements.values {
        if value.is_null() {
            args.push(Datum::Null);
            continue;
        }
        let mut json = String::new();
        shape::value_out(value, element, ctx, &mut json)?;
        args.push(text_datum(json));
    }
    call(ctx, &args, name)
}
