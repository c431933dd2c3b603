//! Enums: order and equality of labels, which are oids in the order they were declared, and the
//! functions over all labels of a type. Those take the type as a last argument that the binder
//! adds.

use super::Eval;
use super::args::*;
use crate::datum::Datum;
use crate::error::Result;

fn ordering(v: &[Datum]) -> Result<std::cmp::Ordering> {
    Ok(oid(v, 0)?.cmp(&oid(v, 1)?))
}

pub(super) const FUNCTIONS: &[(&str, Eval)] = &[
    ("enum_eq", |_, v| Ok(Datum::Bool(ordering(v)?.is_eq()))),
    ("enum_ne", |_, v| Ok(Datum::Bool(ordering(v)?.is_ne()))),
    ("enum_lt", |_, v| Ok(Datum::Bool(ordering(v)?.is_lt()))),
    ("enum_le", |_, v| Ok(Datum::Bool(ordering(v)?.is_le()))),
    ("enum_gt", |_, v| Ok(Datum::Bool(ordering(v)?.is_gt()))),
    ("enum_ge", |_, v| Ok(Datum::Bool(ordering(v)?.is_ge()))),
    ("enum_first", |ctx, v| ctx.session.call("enum_first", &v[v.len() - 1..])),
    ("enum_last", |ctx, v| ctx.session.call("enum_last", &v[v.len() - 1..])),
    ("enum_range_bounds", |ctx, v| {
        let all = ctx.session.call("enum_range", &v[v.len() - 1..])?;
        let Datum::Array(labels) = &all else { return Ok(Datum::Null) };
        let bound = |at: usize| if any(v, at)?.is_null() { Ok(None) } else { oid(v, at).map(Some) };
        let (lower, upper) = (bound(0)?, bound(1)?);
        let inside = |label: &&Datum| match label {
            Datum::Oid(label) => {
                lower.is_none_or(|lower| *label >= lower) && upper.is_none_or(|upper| *label <= upper)
            }
            _ => false,
        };
        let values: Vec<Datum> = labels.values.iter().filter(inside).cloned().collect();
        Ok(super::array_of_values(labels.element, values))
    }),
    ("enum_range_all", |ctx, v| ctx.session.call("enum_range", &v[v.len() - 1..])),
];
