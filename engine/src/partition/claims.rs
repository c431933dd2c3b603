//! What a program predicts it will touch.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::id::GroupId;
use crate::storage::KeyBuf;

/// One predicted range of a group. A point is the range `[key, key]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClaimEntry {
    Point {
        group: GroupId,
        key: KeyBuf,
    },
    /// `[low, high)`; `None` is the end of the group.
    Range {
        group: GroupId,
        low: KeyBuf,
        high: Option<KeyBuf>,
    },
    Group {
        group: GroupId,
    },
}

/// So many entries are compared one by one.
const COMPARED_MAX: usize = 8;

/// A prediction: keys and ranges of groups. Kept by key, not by partition, so that it can be
/// resolved again after a split.
#[derive(Clone, Debug, Default)]
pub struct ClaimSet {
    pub(crate) entries: SmallVec<[ClaimEntry; 2]>,
    pub(crate) everything: bool,
}

impl ClaimSet {
    pub fn new() -> Self {
        Self::default()
    }

    /// The partition of `group` that holds `key` (any key beginning with the distribution
    /// column's encoding).
    pub fn add_point(&mut self, group: GroupId, key: &[u8]) {
        if !self.everything {
            self.entries.push(ClaimEntry::Point { group, key: KeyBuf::from_slice(key) });
        }
    }

    /// Every partition of `group` that meets `[low, high)`; `None` is the end of the group.
    pub fn add_range(&mut self, group: GroupId, low: &[u8], high: Option<&[u8]>) {
        if !self.everything {
            self.entries.push(ClaimEntry::Range {
                group,
                low: KeyBuf::from_slice(low),
                high: high.map(KeyBuf::from_slice),
            });
        }
    }

    /// Every partition of `group`.
    pub fn add_group(&mut self, group: GroupId) {
        if !self.everything {
            self.entries.push(ClaimEntry::Group { group });
        }
    }

    /// Every partition there is: DDL.
    pub fn everything(&mut self) {
        self.everything = true;
        self.entries.clear();
    }

    pub fn is_everything(&self) -> bool {
        self.everything
    }

    pub fn is_empty(&self) -> bool {
        !self.everything && self.entries.is_empty()
    }

    pub fn clear(&mut self) {
        self.everything = false;
        self.entries.clear();
    }

    /// Whether the prediction means the partition `[low, high)` of `group`: as
    /// [`super::RoutingTable::resolve`] would answer.
    pub(crate) fn means(&self, of: GroupId, from: &[u8], to: Option<&[u8]>) -> bool {
        let inside = |key: &[u8]| from <= key && to.is_none_or(|to| key < to);
        self.everything
            || self.entries.iter().any(|entry| match entry {
                ClaimEntry::Point { group, key } => *group == of && inside(key),
                ClaimEntry::Range { group, low, high } => {
                    let reaches = || low[..] < *from && high.as_ref().is_none_or(|high| from < &high[..]);
                    *group == of && (inside(low) || reaches())
                }
                ClaimEntry::Group { group } => *group == of,
            })
    }

    /// Takes over what `other` predicts.
    pub(crate) fn merge(&mut self, other: &ClaimSet) {
        if other.everything {
            self.everything();
        } else if !self.everything {
            if self.entries.len().max(other.entries.len()) > COMPARED_MAX {
                return self.merge_many(other);
            }
            for entry in &other.entries {
                if !self.entries.contains(entry) {
                    self.entries.push(entry.clone());
                }
            }
        }
    }

    #[cold]
    fn merge_many(&mut self, other: &ClaimSet) {
        let mut known: FxHashSet<&ClaimEntry> = self.entries.iter().collect();
        let new: Vec<&ClaimEntry> = other.entries.iter().filter(|entry| known.insert(entry)).collect();
        self.entries.extend(new.into_iter().cloned());
    }

    /// Widens every entry to its whole group: the prediction was wrong too often.
    pub(crate) fn widen(&mut self) {
        let group = |entry: &ClaimEntry| match entry {
            ClaimEntry::Point { group, .. }
            | ClaimEntry::Range { group, .. }
            | ClaimEntry::Group { group } => *group,
        };
        let mut groups: SmallVec<[GroupId; 4]> = self.entries.iter().map(group).collect();
        groups.sort_unstable();
        groups.dedup();
        self.entries = groups.into_iter().map(|group| ClaimEntry::Group { group }).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(keys: std::ops::Range<u8>) -> ClaimSet {
        let mut claims = ClaimSet::new();
        for key in keys {
            claims.add_point(GroupId(u32::from(key % 3)), &[key]);
        }
        claims
    }

    #[test]
    fn many_entries_are_united_as_few_are() {
        for (one, other) in [(0..3, 2..5), (0..100, 50..120), (0..100, 0..2), (0..0, 0..40)] {
            let mut united = points(one.clone());
            united.merge(&points(other.clone()));
            assert_eq!(united.entries, points(one.start..one.end.max(other.end)).entries);
        }
        let mut twice = points(0..20);
        twice.entries.extend(points(0..20).entries);
        let mut united = ClaimSet::new();
        united.merge(&twice);
        assert_eq!(united.entries, points(0..20).entries, "each once");
        united.widen();
        let groups = (0..3).map(|group| ClaimEntry::Group { group: GroupId(group) });
        assert_eq!(united.entries.to_vec(), groups.collect::<Vec<_>>());
    }
}
