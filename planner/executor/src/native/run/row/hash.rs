//! Keys by which rows are grouped, joined and made distinct: SQL equality over datums, NULLs
//! equal to each other.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use archipel_sql::compare;
use archipel_sql::datum::Datum;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::buffer::RowBuffer;

/// A tuple of values under SQL equality.
#[derive(Clone, Debug)]
pub(crate) struct HashKey(pub SmallVec<[Datum; 2]>);

impl HashKey {
    pub fn has_null(&self) -> bool {
        self.0.iter().any(Datum::is_null)
    }
}

/// Values of neighbouring types compare with each other in joins (`int4 = int8`), so they are
/// brought to the wider one before they become keys.
pub(crate) fn widen(datum: Datum) -> Datum {
    match datum {
        Datum::Int2(v) => Datum::Int8(i64::from(v)),
        Datum::Int4(v) => Datum::Int8(i64::from(v)),
        Datum::Float4(v) => Datum::Float8(f64::from(v)),
        other => other,
    }
}

impl PartialEq for HashKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| same(a, b))
    }
}
impl Eq for HashKey {}

impl Hash for HashKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for value in &self.0 {
            match value {
                Datum::Null => state.write_u8(0),
                Datum::Int8(v) => state.write_i64(*v),
                Datum::Int4(v) => state.write_i32(*v),
                Datum::Text(s) => s.as_bytes().hash(state),
                other => compare::hash(other, state),
            }
        }
    }
}

/// The values, or rows of values, on the right of `IN`: one look-up instead of a comparison for each of them.
#[derive(Clone, Debug, Default)]
pub struct ValueSet {
    values: FxHashSet<HashKey>,
    with_null: bool,
    /// Rows with a NULL, which are compared one by one.
    partial: Vec<HashKey>,
}

impl ValueSet {
    /// What `value IN (…)` is: unknown for NULL, and for what is not found where there is a NULL.
    pub fn contains(&self, value: Datum) -> Option<bool> {
        if self.values.is_empty() && !self.with_null {
            return Some(false);
        }
        if value.is_null() {
            return None;
        }
        let found = self.values.contains(&ValueSet::key(value));
        (found || !self.with_null).then_some(found)
    }

    /// Adds a value, NULL included.
    pub fn insert(&mut self, value: Datum) {
        match value {
            Datum::Null => self.with_null = true,
            value => {
                self.values.insert(ValueSet::key(value));
            }
        }
    }

    fn key(value: Datum) -> HashKey {
        HashKey([widen(value)].into_iter().collect())
    }

    /// What `(value, …) IN (…)` is: unknown where a row is not told from this one but by NULLs.
    pub fn contains_row(&self, row: impl IntoIterator<Item = Datum>) -> Option<bool> {
        let row = HashKey(row.into_iter().map(widen).collect());
        let has_null = row.has_null();
        if !has_null && self.values.contains(&row) {
            return Some(true);
        }
        let may_be = |other: &HashKey| {
            let mut pairs = row.0.iter().zip(&other.0);
            pairs.all(|(a, b)| a.is_null() || b.is_null() || same(a, b))
        };
        let is_unknown = self.partial.iter().any(may_be) || has_null && self.values.iter().any(may_be);
        if is_unknown { None } else { Some(false) }
    }

    /// With how many rows one is compared that is not found: all of them where it has a NULL.
    pub fn compared(&self, has_null: bool) -> usize {
        self.partial.len() + if has_null { self.values.len() } else { 0 }
    }

    /// Adds a row of values.
    pub fn insert_row(&mut self, row: impl IntoIterator<Item = Datum>) {
        let row = HashKey(row.into_iter().map(widen).collect());
        match row.has_null() {
            true => self.partial.push(row),
            false => {
                self.values.insert(row);
            }
        }
    }
}

impl FromIterator<Datum> for ValueSet {
    fn from_iter<I: IntoIterator<Item = Datum>>(values: I) -> ValueSet {
        let mut set = ValueSet::default();
        values.into_iter().for_each(|value| set.insert(value));
        set
    }
}

/// Equality with NULL equal to NULL.
pub(crate) fn same(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Null, _) | (_, Datum::Null) => false,
        (Datum::Int4(a), Datum::Int4(b)) => a == b,
        (Datum::Int8(a), Datum::Int8(b)) => a == b,
        (Datum::Text(a), Datum::Text(b)) => a == b,
        _ => compare::compare(a, b) == Ordering::Equal,
    }
}

/// Rows by the values that were asked for, as long as few were.
pub(crate) type AskedRows = FxHashMap<HashKey, Arc<RowBuffer>>;

/// The build side of a hash join: rows, and which of them carry which key.
pub(crate) struct HashTable {
    pub rows: RowBuffer,
    pub index: FxHashMap<HashKey, SmallVec<[u32; 2]>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_a_set_are_found_as_comparisons_find_them() {
        let row = |a: Option<i32>, b: Option<i32>| [a, b].map(|value| value.map_or(Datum::Null, Datum::Int4));
        let mut set = ValueSet::default();
        assert_eq!(set.contains_row(row(None, None)), Some(false));
        set.insert_row(row(Some(1), Some(2)));
        assert_eq!(set.contains_row(row(Some(1), Some(2))), Some(true));
        assert_eq!(set.contains_row(row(Some(1), Some(3))), Some(false));
        assert_eq!(set.contains_row(row(Some(1), None)), None);
        assert_eq!(set.contains_row(row(Some(2), None)), Some(false));
        set.insert_row(row(None, Some(3)));
        assert_eq!(set.contains_row(row(Some(1), Some(2))), Some(true));
        assert_eq!(set.contains_row(row(Some(1), Some(3))), None);
        assert_eq!(set.contains_row(row(Some(1), Some(4))), Some(false));
    }
}
