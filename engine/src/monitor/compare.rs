//! Whether two windows show one load: before a decision, and from before it to after it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::settings::MonitorSettings;
use super::trigger::{distance, noise};
use crate::id::{GroupId, PartitionId};
use crate::storage::KeyBuf;

/// Where a partition begins.
pub type Place = (GroupId, KeyBuf);
/// What part of the load begins where.
pub type Places = BTreeMap<Place, f64>;

/// Whether the load of the second of two windows lies where that of the first lay. `both` are the
/// loads of the partitions in the two together, from so many samples.
pub fn agree(
    first: &[(PartitionId, f64)],
    both: &[(PartitionId, f64)],
    samples: u64,
    settings: &MonitorSettings,
) -> bool {
    let share = |loads: Vec<(PartitionId, f64)>| -> Vec<(PartitionId, f64)> {
        let sum: f64 = loads.iter().map(|(_, load)| load).sum();
        loads.into_iter().map(|(id, load)| (id, load / sum.max(1.0))).collect()
    };
    if both.len() != first.len() {
        return false;
    }
    let second = both.iter().zip(first).map(|(both, first)| (both.0, (both.1 - first.1).max(0.0))).collect();
    let chance = noise(first.len(), samples / 2);
    distance(&share(first.to_vec()), &share(second)).is_some_and(|shift| shift <= settings.mix_shift + chance)
}

/// Whether the load lies where it lay before its partitions were cut, joined and moved; `samples`
/// tell where it lies now. Bounds that only one side has say nothing: what a partition was thought
/// to have in its parts is the forecast's business.
pub fn same_load(before: &Places, after: &Places, samples: u64, settings: &MonitorSettings) -> bool {
    let common: BTreeSet<&Place> = before.keys().filter(|at| after.contains_key(at)).collect();
    let mut shares: BTreeMap<&Place, [f64; 2]> = BTreeMap::new();
    for (side, places) in [before, after].into_iter().enumerate() {
        for (at, share) in places {
            // Of a group that came or went nothing is common.
            let below = common.range::<Place, _>(..=at).next_back().copied();
            let low = below.filter(|low| low.0 == at.0).unwrap_or(at);
            shares.entry(low).or_default()[side] += share;
        }
    }
    let shift = shares.values().map(|[one, other]| (one - other).abs()).sum::<f64>() / 2.0;
    shift <= settings.mix_shift + noise(shares.len(), samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(of: &[(u32, &str, f64)]) -> Places {
        let place = |&(group, low, share): &(u32, &str, f64)| {
            ((GroupId(group), KeyBuf::from_slice(low.as_bytes())), share)
        };
        of.iter().map(place).collect()
    }

    #[test]
    fn cuts_and_merges_leave_a_load_the_same() {
        let settings = MonitorSettings::default();
        let before = places(&[(1, "", 0.6), (1, "k", 0.1), (1, "p", 0.1), (2, "", 0.2)]);
        let cut = places(&[(1, "", 0.1), (1, "d", 0.5), (1, "k", 0.1), (1, "p", 0.1), (2, "", 0.2)]);
        assert!(same_load(&before, &cut, 100_000, &settings));
        // Where in the partition its load lay was a matter of the forecast.
        let elsewhere = places(&[(1, "", 0.55), (1, "d", 0.05), (1, "k", 0.1), (1, "p", 0.1), (2, "", 0.2)]);
        assert!(same_load(&before, &elsewhere, 100_000, &settings));
        let merged = places(&[(1, "", 0.6), (1, "k", 0.2), (2, "", 0.2)]);
        assert!(same_load(&before, &merged, 100_000, &settings));
    }

    #[test]
    fn a_load_that_went_elsewhere_is_another_one() {
        let settings = MonitorSettings::default();
        let before = places(&[(1, "", 0.6), (1, "k", 0.2), (2, "", 0.2)]);
        let away = places(&[(1, "", 0.2), (1, "d", 0.1), (1, "k", 0.5), (2, "", 0.2)]);
        assert!(!same_load(&before, &away, 100_000, &settings));
        assert!(same_load(&before, &away, 10, &settings), "so few samples tell nothing");
        let another = places(&[(1, "", 0.4), (1, "k", 0.1), (3, "", 0.5)]);
        assert!(!same_load(&before, &another, 100_000, &settings));
    }

    #[test]
    fn windows_agree_if_the_second_shows_what_the_first_showed() {
        let settings = MonitorSettings::default();
        let loads = |one: f64, other: f64| vec![(PartitionId(1), one), (PartitionId(2), other)];
        assert!(agree(&loads(70.0, 30.0), &loads(145.0, 55.0), 10_000, &settings));
        assert!(!agree(&loads(70.0, 30.0), &loads(90.0, 110.0), 10_000, &settings));
        assert!(!agree(&loads(70.0, 30.0), &loads(145.0, 55.0)[..1], 10_000, &settings));
    }
}
