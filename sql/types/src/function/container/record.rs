//! Rows as arguments.

use crate::datum::Datum;
use crate::function::Eval;
use crate::function::args::*;

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    // The binder knows that it is a bigint: the depth that SEARCH BREADTH FIRST counts.
    ("archipel_first_field", |_, v| match any(v, 0)? {
        Datum::Record(fields) => Ok(fields.first().cloned().unwrap_or(Datum::Null)),
        _ => Ok(Datum::Null),
    }),
];
