//! The partitions of groups as the log keeps them: a record for each, under its group and the key that
//! it begins with, so that a split, merge or move logs what it changes and not all that its group has.
//!
//! ```text
//! group/7          {}                            there is such a group
//! route/7/         {"home":0}                    its first partition
//! route/7/00c8     {"home":1,"flags":2}          the one from the key 00c8 on
//! ```
//!
//! Earlier, a group had one record with all of it in lists. Such a record counts until the group's
//! partitions change for the first time: then all of them are written as they are now.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::engine::OpenError;
use crate::id::GroupId;
use crate::partition::{Route, Routes};
use crate::storage::KeyBuf;

/// A group. Its lists are those of before; they are empty where each partition has a record.
#[derive(Default, Serialize, Deserialize)]
struct GroupRecord {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lows: Vec<Vec<u8>>,
    /// Beside `lows`; empty in records of before homes were logged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    homes: Vec<u16>,
    /// Beside `lows`: which partitions are pinned or frozen; empty in records of before that was
    /// logged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    flags: Vec<u32>,
}

/// What the log says of a partition's place, if anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoggedPlace {
    pub home: Option<u16>,
    /// Whether it is pinned or frozen.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flags: u32,
}

fn is_zero(flags: &u32) -> bool {
    *flags == 0
}

/// A record's key, and what stands there now; `None`: nothing any more.
type Change = (String, Option<Vec<u8>>);

const GROUP: &str = "group/";
const ROUTE: &str = "route/";

/// The key of a group in the log's meta space.
fn group_key(id: GroupId) -> String {
    format!("{GROUP}{}", id.0)
}

/// The key of a partition there.
fn route_key(id: GroupId, low: &[u8]) -> String {
    let low: String = low.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{ROUTE}{}/{low}", id.0)
}

/// The group and the first key that a partition's key in the meta space stands for.
fn of_route_key(key: &str) -> Option<(GroupId, KeyBuf)> {
    let (group, low) = key.strip_prefix(ROUTE)?.split_once('/')?;
    if !low.is_ascii() || low.len() % 2 != 0 {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(low.get(at..at + 2)?, 16).ok();
    let bytes: Option<KeyBuf> = (0..low.len()).step_by(2).map(byte).collect();
    Some((GroupId(group.parse().ok()?), bytes?))
}

fn written(record: &impl Serialize) -> Vec<u8> {
    // A record of strings and numbers can always be written as JSON.
    serde_json::to_vec(record).unwrap_or_default()
}

fn route_record(group: GroupId, route: &Route) -> Change {
    let place = LoggedPlace { home: Some(route.home().0), flags: route.partition.flags() };
    (route_key(group, &route.low), Some(written(&place)))
}

/// Which groups have their partitions in one record still. Changed under the routing table's latch.
pub(crate) struct GroupPlaces(Mutex<BTreeSet<GroupId>>);

impl GroupPlaces {
    pub fn new(in_one_record: BTreeSet<GroupId>) -> Self {
        Self(Mutex::new(in_one_record))
    }

    /// What is to be logged when the partition of a group that begins with `low` has come, gone or
    /// changed; `routes` are those of now.
    pub fn changed(&self, group: GroupId, low: &[u8], routes: &Routes) -> Vec<Change> {
        if self.0.lock().remove(&group) {
            return Self::of_group(group, routes);
        }
        let record = routes.beginning(low).map(|route| route_record(group, route));
        vec![record.unwrap_or_else(|| (route_key(group, low), None))]
    }

    /// A group and all of its partitions.
    pub fn of_group(group: GroupId, routes: &Routes) -> Vec<Change> {
        let mut records = vec![(group_key(group), Some(written(&GroupRecord::default())))];
        records.extend(routes.iter().map(|route| route_record(group, route)));
        records
    }

    /// A group that goes with all of its partitions.
    pub fn of_dropped_group(group: GroupId, routes: &Routes) -> Vec<Change> {
        Self::of_group(group, routes).into_iter().map(|(key, _)| (key, None)).collect()
    }
}

/// The partitions of groups by their first keys, and the groups that have them in one record.
pub(crate) type RecoveredPlaces = (BTreeMap<GroupId, BTreeMap<KeyBuf, LoggedPlace>>, BTreeSet<GroupId>);

/// The partitions that the log's meta space tells of.
///
/// # Errors
/// For a record that cannot be read.
pub(crate) fn recovered_places(meta: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<RecoveredPlaces, OpenError> {
    let mut groups: BTreeMap<GroupId, BTreeMap<KeyBuf, LoggedPlace>> = BTreeMap::new();
    let mut in_one_record = BTreeSet::new();
    for (key, value) in meta {
        let Ok(key) = std::str::from_utf8(key) else { continue };
        let unreadable = |reason: String| OpenError::Definition { key: key.to_owned(), reason };
        if let Some(id) = key.strip_prefix(GROUP) {
            let id = GroupId(id.parse().map_err(|error| unreadable(format!("{error}")))?);
            let record: GroupRecord =
                serde_json::from_slice(value).map_err(|error| unreadable(error.to_string()))?;
            let places = groups.entry(id).or_default();
            for (at, low) in record.lows.iter().enumerate() {
                let flags = record.flags.get(at).copied().unwrap_or(0);
                let place = LoggedPlace { home: record.homes.get(at).copied(), flags };
                places.insert(KeyBuf::from_slice(low), place);
            }
            if !record.lows.is_empty() {
                in_one_record.insert(id);
            }
        } else if key.starts_with(ROUTE) {
            let (id, low) = of_route_key(key).ok_or_else(|| unreadable("no group and key".to_owned()))?;
            let place = serde_json::from_slice(value).map_err(|error| unreadable(error.to_string()))?;
            groups.entry(id).or_default().insert(low, place);
        }
    }
    Ok((groups, in_one_record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ExecutorId, PartitionId};
    use crate::partition::{Partition, PartitionData};

    const GROUP_ID: GroupId = GroupId(7);

    fn route(id: u32, low: &[u8], home: u16) -> Route {
        let data = PartitionData::new(KeyBuf::from_slice(low), None);
        let partition = Partition::leak(PartitionId(id), GROUP_ID, ExecutorId(home), data, false);
        Route { low: KeyBuf::from_slice(low), partition }
    }

    fn apply(meta: &mut BTreeMap<Vec<u8>, Vec<u8>>, changes: Vec<Change>) {
        for (key, record) in changes {
            match record {
                Some(record) => meta.insert(key.into_bytes(), record),
                None => meta.remove(key.as_bytes()),
            };
        }
    }

    fn homes(meta: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<(Vec<u8>, Option<u16>)> {
        let (groups, _) = recovered_places(meta).unwrap();
        groups[&GROUP_ID].iter().map(|(low, place)| (low.to_vec(), place.home)).collect()
    }

    #[test]
    fn a_change_is_one_record() {
        let mut meta = BTreeMap::new();
        let places = GroupPlaces::new(BTreeSet::new());
        let mut routes = Routes::new(vec![route(0, b"", 0), route(1, b"k", 1)]);
        apply(&mut meta, GroupPlaces::of_group(GROUP_ID, &routes));
        routes.insert(route(2, &[0, 200], 3));
        let changes = places.changed(GROUP_ID, &[0, 200], &routes);
        assert_eq!((changes.len(), &changes[0].0[..]), (1, "route/7/00c8"));
        apply(&mut meta, changes);
        routes.remove(b"k");
        apply(&mut meta, places.changed(GROUP_ID, b"k", &routes));
        assert_eq!(homes(&meta), [(vec![], Some(0)), (vec![0, 200], Some(3))]);
        apply(&mut meta, GroupPlaces::of_dropped_group(GROUP_ID, &routes));
        assert!(meta.is_empty());
    }

    #[test]
    fn the_record_of_before_counts_until_the_group_changes() {
        let before = br#"{"lows":[[],[107]],"homes":[1,0]}"#;
        let mut meta = BTreeMap::from([(b"group/7".to_vec(), before.to_vec())]);
        let (groups, in_one_record) = recovered_places(&meta).unwrap();
        assert_eq!(groups[&GROUP_ID].len(), 2);
        assert_eq!(homes(&meta), [(vec![], Some(1)), (vec![107], Some(0))]);
        let places = GroupPlaces::new(in_one_record);
        let mut routes = Routes::new(vec![route(0, b"", 1), route(1, b"k", 0)]);
        routes.remove(b"k");
        apply(&mut meta, places.changed(GROUP_ID, b"k", &routes));
        assert_eq!(homes(&meta), [(vec![], Some(1))], "what was merged does not come back");
        routes.insert(route(2, b"m", 0));
        assert_eq!(places.changed(GROUP_ID, b"m", &routes).len(), 1, "it has them one by one now");
    }

    #[test]
    fn what_cannot_be_read_is_told_of() {
        for (key, value) in [
            ("group/7", "7"),
            ("group/x", "{}"),
            ("route/7", "{}"),
            ("route/7/0", "{}"),
            ("route/7/0g", "{}"),
            ("route/7/\u{e4}", "{}"),
            ("route/7/00", "{\"home\":70000}"),
        ] {
            let meta = BTreeMap::from([(key.as_bytes().to_vec(), value.as_bytes().to_vec())]);
            assert!(recovered_places(&meta).is_err(), "{key} {value}");
        }
    }
}
