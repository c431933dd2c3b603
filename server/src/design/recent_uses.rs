//! What indexes were used for of late: counts that halve each hour.
//!
//! ```text
//! engine's counts      ────── at the hour ────────────── now ──►   they only grow
//! of late                   what was left │ + what has come since
//! at the next hour          half of both is what is left
//! ```
//!
//! Whoever asks brings them up to the hour first, and [`follow`](super::follow) asks each hour: what was counted
//! since somebody asked last is taken for this hour's. So nothing is written where uses are counted, and an index
//! that is not used any more is known by that after some hours.

use std::sync::Arc;
use std::time::Duration;

use archipel_engine::id::TreeId;
use archipel_engine::index_uses::{IndexUses, UseCounts};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

const HOUR_MICROS: i64 = 3_600_000_000;
/// What is known for a shorter time is taken to be known for so long.
const HOURS_MIN: f64 = 1.0 / 60.0;
/// After so many hours nothing is left of a count.
const HOURS_MAX: i64 = 64;

/// What an index was used for of late.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Recent {
    /// What has come of them by the moment asked about.
    pub counts: UseCounts,
    /// In how many hours, of which earlier ones weigh as much less as their counts.
    pub hours: f64,
}

impl Recent {
    /// How many an hour so many are.
    pub fn per_hour(self, count: u64) -> u64 {
        (count as f64 / self.hours.max(HOURS_MIN)) as u64
    }
}

/// An index's counts as they are.
#[derive(Clone)]
pub struct Seen {
    uses: Arc<IndexUses>,
    counts: UseCounts,
}

impl Seen {
    /// As they are now.
    pub fn of(uses: &Arc<IndexUses>) -> Seen {
        Seen { uses: uses.clone(), counts: uses.sum() }
    }
}

/// What is known of an index since the hour.
struct Known {
    seen: Seen,
    /// When its counts began to be looked at, or the hour, in microseconds.
    since_micros: i64,
    /// What they had come to then.
    before: UseCounts,
    /// What was left of that.
    left: Recent,
}

impl Known {
    fn new(seen: Seen, now_micros: i64) -> Known {
        let (before, left) = (UseCounts::default(), Recent::default());
        Known { seen, since_micros: now_micros, before, left }
    }

    /// As of a moment, if counts were then as they were seen last.
    fn recent(&self, at_micros: i64) -> Recent {
        let micros = at_micros.saturating_sub(self.since_micros).max(0);
        Recent {
            counts: self.left.counts.plus(self.seen.counts.since(self.before)),
            hours: self.left.hours + micros as f64 / HOUR_MICROS as f64,
        }
    }

    fn halve(&mut self, hour_micros: i64) {
        let Recent { counts, hours } = self.recent(hour_micros);
        self.left = Recent { counts: counts.halved(), hours: hours / 2.0 };
        (self.before, self.since_micros) = (self.seen.counts, hour_micros);
    }
}

#[derive(Default)]
struct State {
    /// The hour that counts were halved at last, in microseconds; `None` before the first look.
    hour_micros: Option<i64>,
    known: FxHashMap<TreeId, Known>,
}

/// Those of a database's indexes. See the module's head.
#[derive(Default)]
pub struct RecentUses(Mutex<State>);

impl RecentUses {
    /// What each of some indexes, which are all there are, was used for up to now (wall clock, microseconds).
    pub fn look(
        &self,
        now_micros: i64,
        indexes: impl Iterator<Item = (TreeId, Seen)>,
    ) -> FxHashMap<TreeId, Recent> {
        let State { hour_micros, known } = &mut *self.0.lock();
        let hour = hour_micros.get_or_insert(now_micros);
        if now_micros < *hour {
            // The clock was put back.
            *hour = now_micros;
            known.values_mut().for_each(|known| known.since_micros = known.since_micros.min(now_micros));
        }
        // Where a clock has been put forward by years, say.
        *hour = (*hour).max(now_micros.saturating_sub(HOURS_MAX * HOUR_MICROS));
        while now_micros - *hour >= HOUR_MICROS {
            *hour += HOUR_MICROS;
            known.values_mut().for_each(|known| known.halve(*hour));
        }
        let mut earlier = std::mem::take(known);
        for (tree, seen) in indexes {
            let same = earlier.remove(&tree).filter(|known| Arc::ptr_eq(&known.seen.uses, &seen.uses));
            let now = match same {
                Some(known) => Known { seen, ..known },
                None => Known::new(seen, now_micros),
            };
            known.insert(tree, now);
        }
        known.iter().map(|(tree, known)| (*tree, known.recent(now_micros))).collect()
    }

    /// How long it is until counts are halved again.
    pub fn rest(&self, now_micros: i64) -> Duration {
        let hour = self.0.lock().hour_micros.unwrap_or(now_micros);
        let rest = (hour + HOUR_MICROS - now_micros).clamp(0, HOUR_MICROS);
        Duration::from_micros(rest.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = HOUR_MICROS;
    const TREE: TreeId = TreeId(20);

    /// What is known of an index, and its counts.
    #[derive(Default)]
    struct World {
        recent: RecentUses,
        uses: Arc<IndexUses>,
        counted: u64,
    }

    impl World {
        fn look(&self, now: i64) -> Recent {
            let counts = UseCounts { unbound: self.counted, ..UseCounts::default() };
            let seen = Seen { uses: self.uses.clone(), counts };
            self.recent.look(now, std::iter::once((TREE, seen)))[&TREE]
        }
    }

    #[test]
    fn counts_halve_each_hour() {
        let mut world = World::default();
        assert_eq!(world.look(5 * HOUR), Recent::default());
        world.counted += 800;
        assert_eq!(world.look(5 * HOUR + HOUR / 2).counts.unbound, 800);
        world.counted += 200;
        let after = world.look(6 * HOUR);
        assert_eq!((after.counts.unbound, after.hours), (600, 0.5));
        world.counted += 10;
        assert_eq!(world.look(6 * HOUR + 1).counts.unbound, 610);
        // Hours in which nobody has looked count, too.
        let later = world.look(9 * HOUR);
        assert_eq!((later.counts.unbound, later.hours), (76, 0.9375));
    }

    #[test]
    fn a_rate_is_of_the_hours_in_which_something_was_counted() {
        let mut world = World::default();
        world.look(0);
        for hour in 1..6 {
            world.counted += 1_024;
            let now = world.look(hour * HOUR - 1);
            assert_eq!(now.per_hour(now.counts.unbound), 1_024, "{now:?}");
        }
        let moment = Recent { hours: 0.0, ..Recent::default() };
        assert_eq!(moment.per_hour(10), 600, "of a moment nobody knows how it is in an hour");
    }

    #[test]
    fn an_index_that_has_got_another_tree_begins_anew() {
        let mut world = World::default();
        world.look(0);
        world.counted = 100;
        assert_eq!(world.look(1).counts.unbound, 100);
        (world.uses, world.counted) = (Arc::default(), 7);
        assert_eq!(world.look(2 * HOUR).counts.unbound, 7, "the hours before were another's");
        assert_eq!(world.look(3 * HOUR).counts.unbound, 3);
        assert!(world.recent.look(3 * HOUR, std::iter::empty()).is_empty());
    }

    #[test]
    fn a_clock_that_is_put_forward_by_years_forgets() {
        let mut world = World::default();
        world.look(0);
        world.counted = u64::MAX;
        assert_eq!(world.look(1).counts.unbound, u64::MAX);
        assert_eq!(world.look(500_000 * HOUR).counts.unbound, 0);
        assert_eq!(world.recent.rest(500_000 * HOUR), Duration::from_secs(3_600));
    }

    #[test]
    fn a_clock_that_is_put_back_halves_nothing() {
        let mut world = World::default();
        world.look(10 * HOUR);
        world.counted = 100;
        assert_eq!(world.look(2 * HOUR).counts.unbound, 100);
        assert_eq!(world.recent.rest(2 * HOUR), Duration::from_secs(3_600));
        assert_eq!(world.look(3 * HOUR).counts.unbound, 50);
    }
}
