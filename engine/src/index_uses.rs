//! What indexes are there for, as it went: entries that were written, and what was looked for by them.
//!
//! ```text
//! index ── slots, one an executor ──► line, made when its executor counts there first
//!                └ and one for all threads that are no executors
//! ```
//!
//! An executor writes a cache line of its own and nobody else's; who asks adds the lines up
//! ([`IndexUses::sum`]). Counts only grow: what they come to with time is for who asks, and the engine looks at
//! no clock for it. They last as long as the index has its tree, beyond new layouts of its table, and no longer
//! than the server runs. What is done again, or undone, is counted as the work that it was.
//!
//! A use is *bound* if it gives the value of the table's distribution column: it then concerns the partitions of
//! that value alone. Who plans a statement knows, and says so with each use.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of one index, or what was added to them in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UseCounts {
    /// Entries that were put in or taken out: one for a row that comes or goes, two where it moves.
    pub writes: u64,
    /// Uses that gave the distribution column.
    pub bound: u64,
    /// Uses that did not.
    pub unbound: u64,
    /// Unbound uses that found fewer rows than the table has partitions.
    pub narrow: u64,
    /// Uses of both kinds that the index did not serve, and would have served if its entries were elsewhere.
    pub missed: u64,
    /// Entries that were read.
    pub entries: u64,
    /// Rows that were looked up by them.
    pub rows: u64,
}

impl UseCounts {
    /// Each count of one and the other, put together.
    fn with(self, other: UseCounts, join: impl Fn(u64, u64) -> u64) -> UseCounts {
        UseCounts {
            writes: join(self.writes, other.writes),
            bound: join(self.bound, other.bound),
            unbound: join(self.unbound, other.unbound),
            narrow: join(self.narrow, other.narrow),
            missed: join(self.missed, other.missed),
            entries: join(self.entries, other.entries),
            rows: join(self.rows, other.rows),
        }
    }

    /// Both together.
    pub fn plus(self, other: UseCounts) -> UseCounts {
        self.with(other, u64::saturating_add)
    }

    /// What has come to an earlier state of the same counts.
    pub fn since(self, earlier: UseCounts) -> UseCounts {
        self.with(earlier, u64::saturating_sub)
    }

    /// Half of each.
    pub fn halved(self) -> UseCounts {
        self.with(self, |count, _| count / 2)
    }

    /// Uses that went by the index.
    pub fn served(self) -> u64 {
        (self.bound + self.unbound).saturating_sub(self.missed)
    }
}

/// What was looked for by an index, once.
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexUse {
    /// Whether the value of the distribution column was given.
    pub bound: bool,
    /// Whether fewer rows were found than there are partitions.
    pub narrow: bool,
    /// Whether the rows were found another way, and an index with its entries elsewhere would have been better.
    pub missed: bool,
    /// Entries read.
    pub entries: u64,
    /// Rows looked up by them.
    pub rows: u64,
}

#[derive(Default)]
#[repr(align(128))]
struct Line {
    writes: AtomicU64,
    bound: AtomicU64,
    unbound: AtomicU64,
    narrow: AtomicU64,
    missed: AtomicU64,
    entries: AtomicU64,
    rows: AtomicU64,
}

impl Line {
    fn counts(&self) -> UseCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        UseCounts {
            writes: of(&self.writes),
            bound: of(&self.bound),
            unbound: of(&self.unbound),
            narrow: of(&self.narrow),
            missed: of(&self.missed),
            entries: of(&self.entries),
            rows: of(&self.rows),
        }
    }
}

type Slots = Box<[OnceLock<Box<Line>>]>;

/// The counters of an index. See the module's head.
#[derive(Default)]
pub struct IndexUses(OnceLock<Slots>);

/// Who counts: an executor by its place among so many, or another thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    /// Its place, of an executor.
    pub executor: Option<usize>,
    /// How many there may ever be.
    pub executors: usize,
}

impl Counter {
    /// Adds to a count of this one's line.
    #[inline]
    fn add(self, count: &AtomicU64, more: u64) {
        match self.executor {
            // One thread writes the line.
            Some(_) => count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed),
            None => {
                count.fetch_add(more, Ordering::Relaxed);
            }
        }
    }
}

impl IndexUses {
    #[inline]
    fn line(&self, counter: Counter) -> &Line {
        let slots = self.0.get_or_init(|| (0..=counter.executors).map(|_| OnceLock::new()).collect());
        let others = slots.len() - 1;
        slots[counter.executor.map_or(others, |own| own.min(others))].get_or_init(Box::default)
    }

    /// Counts entries that are written.
    #[inline]
    pub(crate) fn add_writes(&self, counter: Counter, writes: u64) {
        counter.add(&self.line(counter).writes, writes);
    }

    /// Counts a use.
    pub(crate) fn add(&self, counter: Counter, used: IndexUse) {
        let line = self.line(counter);
        counter.add(if used.bound { &line.bound } else { &line.unbound }, 1);
        if used.narrow && !used.bound {
            counter.add(&line.narrow, 1);
        }
        if used.missed {
            counter.add(&line.missed, 1);
        }
        counter.add(&line.entries, used.entries);
        counter.add(&line.rows, used.rows);
    }

    /// What all threads have counted.
    pub fn sum(&self) -> UseCounts {
        let lines = self.0.get().into_iter().flatten().filter_map(OnceLock::get);
        lines.fold(UseCounts::default(), |sum, line| sum.plus(line.counts()))
    }
}

impl std::fmt::Debug for IndexUses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.sum().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executor(place: usize) -> Counter {
        Counter { executor: Some(place), executors: 2 }
    }

    const OTHER: Counter = Counter { executor: None, executors: 2 };

    #[test]
    fn what_threads_count_is_added_up() {
        let uses = IndexUses::default();
        assert_eq!(uses.sum(), UseCounts::default());
        uses.add_writes(executor(0), 1);
        uses.add_writes(executor(1), 2);
        uses.add(executor(1), IndexUse { bound: true, entries: 5, rows: 4, ..IndexUse::default() });
        uses.add(OTHER, IndexUse { narrow: true, missed: true, ..IndexUse::default() });
        let all = UseCounts { writes: 3, bound: 1, unbound: 1, narrow: 1, missed: 1, entries: 5, rows: 4 };
        assert_eq!(uses.sum(), all);
        assert_eq!(uses.sum().served(), 1);
    }

    #[test]
    fn no_two_executors_have_a_line_in_common() {
        let uses = IndexUses::default();
        let lines = [executor(0), executor(1), OTHER].map(|counter| std::ptr::from_ref(uses.line(counter)));
        assert!(lines[0] != lines[1] && lines[1] != lines[2] && lines[0] != lines[2]);
        assert!(lines.iter().all(|line| line.addr() % 128 == 0));
    }

    #[test]
    fn threads_that_are_no_executors_lose_no_count_of_each_other() {
        let uses = IndexUses::default();
        let count = || (0..10_000).for_each(|_| uses.add_writes(OTHER, 1));
        std::thread::scope(|scope| {
            scope.spawn(count);
            scope.spawn(count);
        });
        assert_eq!(uses.sum().writes, 20_000);
    }
}
