//! What a program predicts it will touch.

use smallvec::SmallVec;

use crate::id::GroupId;
use crate::storage::KeyBuf;

/// One predicted range of a group. A point is the range `[key, key]`.
#[derive(Clone, Debug, PartialEq, Eq)]
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
            for entry in &other.entries {
                if !self.entries.contains(entry) {
                    self.entries.push(entry.clone());
                }
            }
        }
    }

    /// Widens every entry to its whole group: the prediction was wrong too often.
    pub(crate) fn widen(&mut self) {
        let mut groups: SmallVec<[GroupId; 4]> = SmallVec::new();
        for entry in &self.entries {
            let group = match entry {
                ClaimEntry::Point { group, .. }
                | ClaimEntry::Range { group, .. }
                | ClaimEntry::Group { group } => *group,
            };
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        self.entries = groups.into_iter().map(|group| ClaimEntry::Group { group }).collect();
    }
}
