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
    ("enum_range_all", |ctx, v| ctx.session.call("enum_range", &v[v.len() - 1..])),
];
