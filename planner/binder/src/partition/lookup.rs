//! From a partition key to the partition it is for: binary search among the bounds.

use std::cmp::Ordering;

use archipel_sql::catalog::{
    Catalog, PartitionBound, PartitionKey, PartitionStrategy, RangeDatum, Table, TableRef, compare_ends,
};
use archipel_sql::compare::compare;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::partition_hash::partition_hash;
use rustc_hash::FxHashMap;

/// The bounds of a table's partitions, which are counted in their order.
#[derive(Debug)]
pub enum Lookup {
    List {
        /// In the order of the values.
        values: Vec<(Datum, usize)>,
        null: Option<usize>,
        default: Option<usize>,
    },
    Range {
        /// In the order of the bounds, which do not overlap.
        ranges: Vec<Range>,
        default: Option<usize>,
    },
    /// Each modulus with the partitions of its remainders.
    Hash {
        moduli: Vec<(u64, FxHashMap<u64, usize>)>,
        /// Functions that users defined tell the hash: it is not known before they run.
        by_functions: bool,
    },
}

/// FROM (…) TO (…).
#[derive(Debug)]
pub struct Range {
    pub from: Vec<RangeDatum>,
    pub to: Vec<RangeDatum>,
    pub child: usize,
}

/// The order of a row's key against an end of a range, which is the earlier where it is equal.
fn against(key: &[Datum], end: &[RangeDatum]) -> Ordering {
    for (value, end) in key.iter().zip(end) {
        let order = match end {
            RangeDatum::MinValue => Ordering::Greater,
            RangeDatum::MaxValue => Ordering::Less,
            RangeDatum::Value(end) => compare(value, end),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

impl Lookup {
    /// The bounds of a partitioned table's partitions.
    pub fn of(catalog: &Catalog, table: &Table, partitions: &[TableRef]) -> Result<Lookup> {
        let missing = || SqlError::internal(format!("{} is not partitioned", table.name));
        let PartitionKey { strategy, .. } = table.partitioned_by.as_ref().ok_or_else(missing)?;
        let types = table.partitioned_by.as_ref().map(|key| key.types(table)).unwrap_or_default();
        let bounds = partitions.iter().map(|partition| partition.bound.as_ref()).enumerate();
        let default = bounds.clone().find(|(_, bound)| *bound == Some(&PartitionBound::Default));
        let default = default.map(|(child, _)| child);
        match strategy {
            PartitionStrategy::List => {
                let (mut values, mut null) = (Vec::new(), None);
                for (child, bound) in bounds {
                    let Some(PartitionBound::List(items)) = bound else { continue };
                    for item in items {
                        match item {
                            None => null = Some(child),
                            Some(text) => values.push((catalog.bound_value(text, types[0])?, child)),
                        }
                    }
                }
                values.sort_by(|(a, _), (b, _)| compare(a, b));
                Ok(Lookup::List { values, null, default })
            }
            PartitionStrategy::Range => {
                let mut ranges = Vec::new();
                for (child, bound) in bounds {
                    let Some(PartitionBound::Range { from, to }) = bound else { continue };
                    let (from, to) = (catalog.range_ends(from, &types)?, catalog.range_ends(to, &types)?);
                    ranges.push(Range { from, to, child });
                }
                ranges.sort_by(|a, b| compare_ends(&a.from, &b.from));
                Ok(Lookup::Range { ranges, default })
            }
            PartitionStrategy::Hash => {
                let mut moduli: Vec<(u64, FxHashMap<u64, usize>)> = Vec::new();
                for (child, bound) in bounds {
                    let Some(PartitionBound::Hash { modulus, remainder }) = bound else { continue };
                    let (modulus, remainder) = (u64::from(*modulus).max(1), u64::from(*remainder));
                    match moduli.iter_mut().find(|(known, _)| *known == modulus) {
                        Some((_, children)) => drop(children.insert(remainder, child)),
                        None => moduli.push((modulus, std::iter::once((remainder, child)).collect())),
                    }
                }
                let by_functions = table.partitioned_by.as_ref().is_some_and(|key| !key.classes.is_empty());
                Ok(Lookup::Hash { moduli, by_functions })
            }
        }
    }

    /// Whether the partitions follow each other in the order of the key, which is never NULL.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Lookup::Range { default: None, .. })
    }

    /// Whether only those who can run functions know the partition of a key.
    pub fn is_by_functions(&self) -> bool {
        matches!(self, Lookup::Hash { by_functions: true, .. })
    }

    /// The partition of a key; `None` if no partition takes it.
    #[inline]
    pub fn child(&self, key: &[Datum]) -> Result<Option<usize>> {
        Ok(match self {
            Lookup::List { values, null, default } => match &key[0] {
                Datum::Null => null.or(*default),
                value => {
                    let found = values.binary_search_by(|(known, _)| compare(known, value));
                    found.ok().map(|at| values[at].1).or(*default)
                }
            },
            Lookup::Range { ranges, default } => {
                if key.iter().any(Datum::is_null) {
                    return Ok(*default);
                }
                let after = ranges.partition_point(|range| against(key, &range.from) != Ordering::Less);
                let range = after.checked_sub(1).map(|at| &ranges[at]);
                let found = range.filter(|range| against(key, &range.to) == Ordering::Less);
                found.map(|range| range.child).or(*default)
            }
            Lookup::Hash { moduli, .. } => {
                let hash = partition_hash(key)?;
                moduli.iter().find_map(|(modulus, children)| children.get(&(hash % modulus)).copied())
            }
        })
    }

    /// The partitions that may hold keys between two bounds on the part of the key that comes after
    /// `prefix`, whose values are given.
    pub fn between(
        &self,
        prefix: &[Datum],
        low: Option<(&Datum, bool)>,
        high: Option<(&Datum, bool)>,
        take: &mut dyn FnMut(usize),
    ) {
        match self {
            Lookup::List { values, default, .. } => {
                for (value, child) in values {
                    let above = low.is_none_or(|(low, included)| match compare(value, low) {
                        Ordering::Equal => included,
                        order => order == Ordering::Greater,
                    });
                    let below = high.is_none_or(|(high, included)| match compare(value, high) {
                        Ordering::Equal => included,
                        order => order == Ordering::Less,
                    });
                    if above && below {
                        take(*child);
                    }
                }
                default.iter().for_each(|child| take(*child));
            }
            Lookup::Range { ranges, default } => {
                let key = |bound: Option<(&Datum, bool)>| -> Vec<Datum> {
                    prefix.iter().cloned().chain(bound.map(|(value, _)| value.clone())).collect()
                };
                let (from, to) = (key(low), key(high));
                for range in ranges {
                    // All that begins with these values comes before the end of the range, and not
                    // before its beginning, as far as one can tell.
                    let ends = match against(&from, &range.to) {
                        Ordering::Greater => true,
                        // An end that says no more than that is not in the range.
                        Ordering::Equal => from.len() >= range.to.len(),
                        Ordering::Less => false,
                    };
                    let begins_later = match against(&to, &range.from) {
                        Ordering::Less => true,
                        Ordering::Equal => {
                            high.is_some_and(|(_, included)| !included) && to.len() >= range.from.len()
                        }
                        Ordering::Greater => false,
                    };
                    if !ends && !begins_later {
                        take(range.child);
                    }
                }
                default.iter().for_each(|child| take(*child));
            }
            Lookup::Hash { moduli, .. } => {
                moduli.iter().flat_map(|(_, children)| children.values()).for_each(|child| take(*child));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(values: &[i32]) -> Vec<RangeDatum> {
        values
            .iter()
            .map(|value| match *value {
                i32::MIN => RangeDatum::MinValue,
                i32::MAX => RangeDatum::MaxValue,
                value => RangeDatum::Value(Datum::Int4(value)),
            })
            .collect()
    }

    fn ranges(bounds: &[(&[i32], &[i32])], default: Option<usize>) -> Lookup {
        let range =
            |(child, (from, to)): (usize, &(&[i32], &[i32]))| Range { from: ends(from), to: ends(to), child };
        Lookup::Range { ranges: bounds.iter().enumerate().map(range).collect(), default }
    }

    fn key(values: &[i32]) -> Vec<Datum> {
        values.iter().map(|value| Datum::Int4(*value)).collect()
    }

    fn between(lookup: &Lookup, prefix: &[i32], low: Option<i32>, high: Option<(i32, bool)>) -> Vec<usize> {
        let (low, high) =
            (low.map(Datum::Int4), high.map(|(value, included)| (Datum::Int4(value), included)));
        let mut found = Vec::new();
        let high = high.as_ref().map(|(value, included)| (value, *included));
        lookup.between(&key(prefix), low.as_ref().map(|low| (low, true)), high, &mut |child| {
            found.push(child);
        });
        found
    }

    #[test]
    fn a_range_holds_its_lower_end_and_not_its_upper() {
        let lookup = ranges(&[(&[i32::MIN], &[10]), (&[10], &[20]), (&[30], &[i32::MAX])], None);
        for (value, child) in [(-5, Some(0)), (9, Some(0)), (10, Some(1)), (20, None), (30, Some(2))] {
            assert_eq!(lookup.child(&key(&[value])).unwrap(), child, "{value}");
        }
        assert_eq!(lookup.child(&[Datum::Null]).unwrap(), None);
    }

    #[test]
    fn keys_of_several_parts_compare_part_by_part() {
        let bounds: [(&[i32], &[i32]); 3] =
            [(&[1, 1], &[1, 10]), (&[1, 10], &[2, i32::MIN]), (&[2, 5], &[i32::MAX, i32::MAX])];
        let lookup = ranges(&bounds, None);
        for (values, child) in
            [([1, 9], Some(0)), ([1, 1000], Some(1)), ([2, 4], None), ([2, 5], Some(2)), ([99, -4], Some(2))]
        {
            assert_eq!(lookup.child(&key(&values)).unwrap(), child, "{values:?}");
        }
        assert_eq!(between(&lookup, &[1], None, None), [0, 1]);
        assert_eq!(between(&lookup, &[1], Some(10), None), [1]);
        assert_eq!(between(&lookup, &[], Some(3), None), [2]);
    }

    #[test]
    fn conditions_leave_the_ranges_they_meet_and_the_default() {
        let lookup = ranges(&[(&[0], &[10]), (&[10], &[20]), (&[20], &[30])], Some(3));
        assert_eq!(between(&lookup, &[], Some(10), Some((20, false))), [1, 3]);
        assert_eq!(between(&lookup, &[], Some(10), Some((20, true))), [1, 2, 3]);
        assert_eq!(between(&lookup, &[], None, Some((0, false))), [3]);
        assert_eq!(lookup.child(&key(&[40])).unwrap(), Some(3));
    }

    #[test]
    fn lists_find_values_null_and_the_rest() {
        let values = vec![(Datum::Int4(1), 0), (Datum::Int4(5), 1)];
        let lookup = Lookup::List { values, null: Some(1), default: Some(2) };
        assert_eq!(lookup.child(&key(&[5])).unwrap(), Some(1));
        assert_eq!(lookup.child(&[Datum::Null]).unwrap(), Some(1));
        assert_eq!(lookup.child(&key(&[7])).unwrap(), Some(2));
        assert_eq!(between(&lookup, &[], Some(2), None), [1, 2]);
    }
}
