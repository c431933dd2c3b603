//! The order and the equality of jsonb values (jsonb_ops): of numbers the value counts, not how it is
//! written.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::numeric::Numeric;

use super::{Kind, Node};

/// The order of two values by their canonical texts.
pub fn compare_texts(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    match (Node::parse(a), Node::parse(b)) {
        (Ok(a), Ok(b)) => compare(&a, &b, true),
        // No canonical texts: any order that is one.
        _ => a.cmp(b),
    }
}

/// Feeds the value of a canonical text to a hasher: equal values hash alike.
pub fn hash_text<H: Hasher>(text: &str, state: &mut H) {
    match Node::parse(text) {
        Ok(node) => hash(&node, state),
        Err(_) => text.hash(state),
    }
}

fn hash<H: Hasher>(node: &Node<'_>, state: &mut H) {
    rank(node).hash(state);
    match &node.kind {
        Kind::Null => {}
        Kind::Bool(value) => value.hash(state),
        Kind::Number => match node.text.parse::<Numeric>() {
            Ok(number) => number.hash(state),
            Err(_) => node.text.hash(state),
        },
        Kind::String(text) => text.hash(state),
        Kind::Array(items) => {
            items.len().hash(state);
            items.iter().for_each(|item| hash(item, state));
        }
        Kind::Object(fields) => {
            fields.len().hash(state);
            for (key, value) in fields {
                key.hash(state);
                hash(value, state);
            }
        }
    }
}

/// `a = b`: numbers by value.
pub fn equal(a: &Node<'_>, b: &Node<'_>) -> bool {
    compare(a, b, false) == Ordering::Equal
}

fn rank(node: &Node<'_>) -> u8 {
    match node.kind {
        Kind::Null => 0,
        Kind::String(_) => 1,
        Kind::Number => 2,
        Kind::Bool(_) => 3,
        Kind::Array(_) => 4,
        Kind::Object(_) => 5,
    }
}

/// jsonb's btree order: objects above arrays above booleans, numbers, strings and null; of
/// containers, more elements above fewer. An empty array at the top comes first of all.
pub fn compare(a: &Node<'_>, b: &Node<'_>, top: bool) -> Ordering {
    let empty = |node: &Node<'_>| matches!(&node.kind, Kind::Array(items) if items.is_empty());
    if top && empty(a) != empty(b) {
        return if empty(a) { Ordering::Less } else { Ordering::Greater };
    }
    match (&a.kind, &b.kind) {
        (Kind::String(a), Kind::String(b)) => a.cmp(b),
        (Kind::Bool(a), Kind::Bool(b)) => a.cmp(b),
        (Kind::Number, Kind::Number) => match (a.text.parse::<Numeric>(), b.text.parse::<Numeric>()) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            _ => a.text.cmp(b.text),
        },
        (Kind::Array(left), Kind::Array(right)) => left.len().cmp(&right.len()).then_with(|| {
            left.iter()
                .zip(right)
                .map(|(x, y)| compare(x, y, false))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        }),
        (Kind::Object(left), Kind::Object(right)) => left.len().cmp(&right.len()).then_with(|| {
            left.iter()
                .zip(right)
                .map(|((key, x), (other, y))| key.cmp(other).then_with(|| compare(x, y, false)))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        }),
        _ => rank(a).cmp(&rank(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashed(text: &str) -> u64 {
        let mut state = std::hash::DefaultHasher::new();
        hash_text(text, &mut state);
        state.finish()
    }

    #[test]
    fn numbers_count_by_value() {
        for (a, b) in [("1", "1.0"), ("[1, 2.50]", "[1.000, 2.5]"), (r#"{"a": [1]}"#, r#"{"a": [1.00]}"#)] {
            assert_eq!(compare_texts(a, b), Ordering::Equal, "{a} {b}");
            assert_eq!(hashed(a), hashed(b), "{a} {b}");
        }
        assert_ne!(hashed("1"), hashed(r#""1""#));
    }

    #[test]
    fn sorts_as_postgresql() {
        let sorted =
            ["[]", "null", r#""a""#, "-2", "1", "10", "false", "true", "[1]", "[1, 2]", "{}", r#"{"a": 1}"#];
        for pair in sorted.windows(2) {
            assert_eq!(compare_texts(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
    }
}
