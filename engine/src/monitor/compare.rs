//! Whether two windows show one load. Pure.

use super::settings::MonitorSettings;
use super::trigger::{distance, noise};
use crate::id::PartitionId;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_agree_if_the_second_shows_what_the_first_showed() {
        let settings = MonitorSettings::default();
        let loads = |one: f64, other: f64| vec![(PartitionId(1), one), (PartitionId(2), other)];
        assert!(agree(&loads(70.0, 30.0), &loads(145.0, 55.0), 10_000, &settings));
        assert!(!agree(&loads(70.0, 30.0), &loads(90.0, 110.0), 10_000, &settings));
        assert!(!agree(&loads(70.0, 30.0), &loads(145.0, 55.0)[..1], 10_000, &settings));
    }
}
