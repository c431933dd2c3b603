//! Comparisons: the operators that indexes, hash joins and the fast paths understand.

use std::cmp::Ordering;

use archipel_sql::compare;
use archipel_sql::datum::{Datum, integer};
pub use archipel_sql::function::Comparison;
use archipel_sql::function::ScalarFunction;

/// The comparison a function performs over values whose order is [`order`]'s.
pub fn comparison(function: &ScalarFunction) -> Option<Comparison> {
    function.comparison()
}

/// The order of two values that are not NULL: of one type, or integers of any widths.
#[inline]
pub fn order(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Int4(a), Datum::Int4(b)) => a.cmp(b),
        (Datum::Int8(a), Datum::Int8(b)) => a.cmp(b),
        (Datum::Int4(a), Datum::Int8(b)) => i64::from(*a).cmp(b),
        (Datum::Int8(a), Datum::Int4(b)) => a.cmp(&i64::from(*b)),
        (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Datum::Int2(_), Datum::Int4(_) | Datum::Int8(_))
        | (Datum::Int4(_) | Datum::Int8(_), Datum::Int2(_)) => integer(a).cmp(&integer(b)),
        _ => compare::compare(a, b),
    }
}

#[cfg(test)]
mod tests {
    use archipel_sql::function::lookup_operators;
    use archipel_sql::types::Type;

    use super::*;
    use archipel_row::Codec;

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
