//! Sets of numbers as ranges: millions of them that lie together take no more room than one.

use std::collections::BTreeMap;
use std::ops::Range;

/// Numbers, by the ranges that they make up: where one begins, and what comes behind it. No two of them
/// touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges(BTreeMap<u32, u32>);

impl Ranges {
    /// The numbers in any of those.
    pub fn of(mut all: Vec<Range<u32>>) -> Ranges {
        all.sort_unstable_by_key(|range| range.start);
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for range in all.into_iter().filter(|range| !range.is_empty()) {
            match ranges.last_mut() {
                Some((_, behind)) if *behind >= range.start => *behind = (*behind).max(range.end),
                _ => ranges.push((range.start, range.end)),
            }
        }
        Ranges(ranges.into_iter().collect())
    }

    /// Adds the numbers of a range, those among them that are here already too.
    pub fn insert(&mut self, range: Range<u32>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut behind) = (range.start, range.end);
        // Those that it meets become one with it.
        while let Some((&first, &last)) = self.0.range(..=behind).next_back() {
            if last < start {
                break;
            }
            (start, behind) = (start.min(first), behind.max(last));
            self.0.remove(&first);
        }
        self.0.insert(start, behind);
    }

    /// Whether a number is here.
    pub fn contains(&self, number: u32) -> bool {
        self.0.range(..=number).next_back().is_some_and(|(_, behind)| *behind > number)
    }

    /// Takes a number out.
    pub fn remove(&mut self, number: u32) {
        let Some((&start, &behind)) = self.0.range(..=number).next_back() else { return };
        if behind <= number {
            return;
        }
        self.0.remove(&start);
        if start < number {
            self.0.insert(start, number);
        }
        if number + 1 < behind {
            self.0.insert(number + 1, behind);
        }
    }

    /// Forgets all that lie before a number.
    pub fn forget_before(&mut self, number: u32) {
        while self.0.first_key_value().is_some_and(|(_, behind)| *behind <= number) {
            self.0.pop_first();
        }
    }

    /// The first number from `from` on behind which `count` in a row are not here.
    pub fn first_gap(&self, from: u32, count: u32) -> u32 {
        let before = self.0.range(..=from).next_back().map_or(0, |(_, behind)| *behind);
        let mut first = from.max(before);
        // No range that is met begins before `first`, so no gap that would do is passed over.
        while let Some((_, behind)) = self.0.range(first..first.saturating_add(count)).next_back() {
            first = *behind;
        }
        first
    }

    /// In their order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u32>> {
        self.0.iter().map(|(start, behind)| *start..*behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(numbers: &[u32]) -> Ranges {
        Ranges::of(numbers.iter().map(|number| *number..*number + 1).collect())
    }

    fn listed(ranges: &Ranges) -> Vec<Range<u32>> {
        ranges.iter().collect()
    }

    #[test]
    fn what_touches_is_one() {
        let mut ranges = single(&[7, 3, 4, 3, 9]);
        assert_eq!(listed(&ranges), [3..5, 7..8, 9..10]);
        ranges.insert(8..9);
        assert_eq!(listed(&ranges), [3..5, 7..10]);
        ranges.insert(1..20);
        ranges.insert(0..0);
        assert_eq!(listed(&ranges), std::slice::from_ref(&(1..20)));
    }

    #[test]
    fn one_taken_out_leaves_those_around_it() {
        let mut ranges = single(&[3, 4, 5]);
        ranges.remove(4);
        ranges.remove(9);
        assert_eq!(listed(&ranges), [3..4, 5..6]);
        assert!(ranges.contains(3) && !ranges.contains(4) && ranges.contains(5) && !ranges.contains(6));
        ranges.forget_before(5);
        assert_eq!(listed(&ranges), std::slice::from_ref(&(5..6)));
    }

    #[test]
    fn gaps_are_as_long_as_they_have_to_be() {
        let ranges = single(&[10, 12, 13, 16]);
        assert_eq!((ranges.first_gap(0, 10), ranges.first_gap(0, 11)), (0, 17));
        assert_eq!((ranges.first_gap(10, 1), ranges.first_gap(10, 2), ranges.first_gap(10, 3)), (11, 14, 17));
        assert_eq!((ranges.first_gap(13, 1), ranges.first_gap(40, 5)), (14, 40));
    }
}
