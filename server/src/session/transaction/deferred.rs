//! What COMMIT has to check, and how SAVEPOINT and ROLLBACK TO see it.
//!
//! A list that only grows while there are savepoints: what SET CONSTRAINTS has checked early is
//! marked, and the marks are in a list of their own. A savepoint is the length of both.

use archipel_planner::native::DeferredCheck;
use archipel_sql::types::Oid;

/// See the module's head.
#[derive(Default)]
pub(super) struct Deferred {
    checks: Vec<Entry>,
    /// Which of them have been taken to be checked, in order.
    taken: Vec<usize>,
}

struct Entry {
    check: DeferredCheck,
    waits: bool,
}

/// A point to go back to.
#[derive(Clone, Copy, Default)]
pub(super) struct DeferredMark {
    checks: usize,
    taken: usize,
}

impl Deferred {
    pub fn add(&mut self, checks: Vec<DeferredCheck>) {
        self.checks.extend(checks.into_iter().map(|check| Entry { check, waits: true }));
    }

    pub fn mark(&self) -> DeferredMark {
        DeferredMark { checks: self.checks.len(), taken: self.taken.len() }
    }

    /// What was added since is forgotten, and what was taken since waits again.
    pub fn back_to(&mut self, mark: DeferredMark) {
        for at in self.taken.split_off(mark.taken.min(self.taken.len())) {
            self.checks[at].waits = true;
        }
        self.checks.truncate(mark.checks);
    }

    /// Whether something about a table's rows waits.
    pub fn waits_on(&self, table: Oid) -> bool {
        self.checks.iter().any(|entry| entry.waits && entry.check.work.table() == table)
    }

    /// How many there are, taken or not.
    pub fn len(&self) -> usize {
        self.checks.len()
    }

    /// Takes what waits from a place on: everything, or what `only` some constraints put off. Where
    /// nobody can go back (`!kept`) nothing stays of it.
    pub fn take(&mut self, from: usize, only: Option<&[Oid]>, kept: bool) -> Vec<DeferredCheck> {
        let is_due = |check: &DeferredCheck| only.is_none_or(|only| only.contains(&check.constraint));
        let mut due = Vec::new();
        if kept {
            for (at, entry) in self.checks.iter_mut().enumerate().skip(from) {
                if entry.waits && is_due(&entry.check) {
                    entry.waits = false;
                    self.taken.push(at);
                    due.push(entry.check.clone());
                }
            }
            return due;
        }
        self.taken.clear();
        for entry in self.checks.split_off(from.min(self.checks.len())).into_iter().filter(|it| it.waits) {
            match is_due(&entry.check) {
                true => due.push(entry.check),
                false => self.checks.push(entry),
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archipel_planner::native::DeferredWork;
    use archipel_sql::error::SqlError;

    use super::*;

    fn check(constraint: u32, query: &str) -> DeferredCheck {
        let error = SqlError::internal("violated");
        let work = DeferredWork::Key { table: Oid(7), query: Arc::from(query), error };
        DeferredCheck { constraint: Oid(constraint), work }
    }

    fn names(checks: Vec<DeferredCheck>) -> Vec<String> {
        let name = |check: DeferredCheck| match check.work {
            DeferredWork::Key { query, .. } => query.to_string(),
            DeferredWork::Trigger { .. } => unreachable!("there is none"),
        };
        checks.into_iter().map(name).collect()
    }

    #[test]
    fn a_savepoint_brings_back_what_was_checked_since() {
        let mut deferred = Deferred::default();
        deferred.add(vec![check(1, "a"), check(2, "b")]);
        assert!(deferred.waits_on(Oid(7)) && !deferred.waits_on(Oid(1)));
        let outer = deferred.mark();
        assert_eq!(names(deferred.take(0, Some(&[Oid(1)]), true)), ["a"]);
        deferred.add(vec![check(1, "c")]);
        let inner = deferred.mark();
        assert_eq!(names(deferred.take(0, None, true)), ["b", "c"]);
        deferred.add(vec![check(2, "d")]);
        assert_eq!(names(deferred.take(0, None, true)), ["d"]);
        deferred.back_to(inner);
        assert_eq!(names(deferred.take(0, None, true)), ["b", "c"]);
        deferred.back_to(inner);
        deferred.back_to(outer);
        assert_eq!(names(deferred.take(0, Some(&[Oid(2)]), false)), ["b"]);
        assert_eq!(names(deferred.take(0, None, false)), ["a"]);
        assert!(deferred.take(0, None, false).is_empty());
    }

    #[test]
    fn many_savepoints_hold_no_copies() {
        let mut deferred = Deferred::default();
        let marks: Vec<_> = (0..100_000)
            .map(|_| {
                deferred.add(vec![check(1, "a")]);
                deferred.mark()
            })
            .collect();
        assert_eq!(std::mem::size_of_val(&marks[..]), 100_000 * 2 * size_of::<usize>());
        deferred.back_to(marks[49_999]);
        assert_eq!(deferred.take(0, None, false).len(), 50_000);
    }
}
