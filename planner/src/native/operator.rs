//! Which comparison a function is: the operators that indexes, hash joins and the fast paths
//! understand, recognised by PostgreSQL's function names.

use std::cmp::Ordering;

use archipel_sql::compare;
use archipel_sql::datum::Datum;
use archipel_sql::function::ScalarFunction;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Comparison {
    /// The comparison with its sides exchanged.
    pub fn flip(self) -> Comparison {
        match self {
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
            same => same,
        }
    }

    #[inline(always)]
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Eq => ordering.is_eq(),
            Comparison::Ne => ordering.is_ne(),
            Comparison::Lt => ordering.is_lt(),
            Comparison::Le => ordering.is_le(),
            Comparison::Gt => ordering.is_gt(),
            Comparison::Ge => ordering.is_ge(),
        }
    }
}

const SUFFIXES: [(&str, Comparison); 12] = [
    ("_eq", Comparison::Eq),
    ("_ne", Comparison::Ne),
    ("_lt", Comparison::Lt),
    ("_le", Comparison::Le),
    ("_gt", Comparison::Gt),
    ("_ge", Comparison::Ge),
    ("eq", Comparison::Eq),
    ("ne", Comparison::Ne),
    ("lt", Comparison::Lt),
    ("le", Comparison::Le),
    ("gt", Comparison::Gt),
    ("ge", Comparison::Ge),
];

/// The comparison a function performs over values whose order is [`order`]'s.
pub(crate) fn comparison(function: &ScalarFunction) -> Option<Comparison> {
    if function.args.len() != 2 {
        return None;
    }
    SUFFIXES.iter().find_map(|(suffix, comparison)| {
        let family = function.name.strip_suffix(suffix)?;
        matches!(
            family,
            "int2"
                | "int4"
                | "int8"
                | "int24"
                | "int42"
                | "int28"
                | "int82"
                | "int48"
                | "int84"
                | "xid8"
                | "pg_lsn"
                | "tid"
                | "oid"
                | "text"
                | "name"
                | "bpchar"
                | "char"
                | "bool"
                | "date"
                | "time"
                | "timetz"
                | "timestamp"
                | "timestamptz"
                | "numeric"
                | "float4"
                | "float8"
                | "uuid"
                | "bytea"
                | "interval"
                | "jsonb"
                | "array"
        )
        .then_some(*comparison)
    })
}

/// The order of two values that are not NULL: of one type, or integers of any widths.
#[inline]
pub(crate) fn order(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Int4(a), Datum::Int4(b)) => a.cmp(b),
        (Datum::Int8(a), Datum::Int8(b)) => a.cmp(b),
        (Datum::Int4(a), Datum::Int8(b)) => i64::from(*a).cmp(b),
        (Datum::Int8(a), Datum::Int4(b)) => a.cmp(&i64::from(*b)),
        (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Datum::Int2(_), Datum::Int4(_) | Datum::Int8(_))
        | (Datum::Int4(_) | Datum::Int8(_), Datum::Int2(_)) => {
            crate::row::integer(a).cmp(&crate::row::integer(b))
        }
        _ => compare::compare(a, b),
    }
}

#[cfg(test)]
mod tests {
    use archipel_sql::function::lookup_operators;
    use archipel_sql::types::Type;

    use super::*;
    use crate::row::Codec;

    /// Otherwise an index over the type is there and never read.
    #[test]
    fn comparisons_of_all_that_keys_hold_are_known() {
        let mut types = Vec::new();
        for operator in lookup_operators("=") {
            if operator.left == Some(operator.right) && Codec::of(Type::of(operator.right)).ordered() {
                let name = operator.function.name;
                assert_eq!(comparison(operator.function), Some(Comparison::Eq), "{name}");
                types.push(operator.right);
            }
        }
        assert!(types.len() >= 12, "{types:?}");
    }
}
