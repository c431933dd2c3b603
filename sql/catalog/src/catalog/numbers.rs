//! Where new objects get their numbers from: one source for a whole engine.
//!
//! Trees, groups and sequences are the engine's, and so no two databases may give one number of them to
//! two things. Oids come from the same place, so that the oid of a role or a database is never that of an
//! object in some database. Definitions draw while they are planned; they may commit in any order, or not
//! at all. Each writes with its objects the numbers behind those it has drawn
//! ([`Numbers`](super::object::Numbers)), and the row that is there keeps the larger of each: a start goes
//! on behind all that anybody has written.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::type_kind::NUMBERS_END;

use super::object::Numbers;

/// What is numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbered {
    /// Objects, and parts of them that catalogs know by an oid.
    Oid,
    /// What the engine keeps rows or index entries in.
    Tree,
    /// What the engine distributes together.
    Group,
    /// The engine's sequences.
    Sequence,
}

impl Numbered {
    /// All of it.
    pub const ALL: [Numbered; 4] = [Numbered::Oid, Numbered::Tree, Numbered::Group, Numbered::Sequence];

    /// Numbers are drawn below this.
    pub const fn end(self) -> u32 {
        match self {
            // Those of types are made of drawn ones, which have so much room in them.
            Numbered::Oid => NUMBERS_END,
            Numbered::Tree | Numbered::Group => u32::MAX,
            // The last two are the engine's own: of hidden row ids, and of starts.
            Numbered::Sequence => u32::MAX - 1,
        }
    }
}

/// See the module's head.
#[derive(Debug)]
pub struct ObjectNumbers {
    oid: AtomicU32,
    tree: AtomicU32,
    group: AtomicU32,
    sequence: AtomicU32,
    /// Oids ahead of the counter that somebody has chosen; it passes over them.
    chosen: Mutex<BTreeSet<u32>>,
}

impl ObjectNumbers {
    /// A source that gives these numbers first.
    pub fn new(first: Numbers) -> ObjectNumbers {
        ObjectNumbers {
            oid: AtomicU32::new(first.oid),
            tree: AtomicU32::new(first.tree),
            group: AtomicU32::new(first.group),
            sequence: AtomicU32::new(first.sequence),
            chosen: Mutex::default(),
        }
    }

    fn counter(&self, of: Numbered) -> &AtomicU32 {
        match of {
            Numbered::Oid => &self.oid,
            Numbered::Tree => &self.tree,
            Numbered::Group => &self.group,
            Numbered::Sequence => &self.sequence,
        }
    }

    /// The first of `count` numbers in a row that nobody else gets; `None` if there are not so many left.
    pub fn draw(&self, of: Numbered, count: u32) -> Option<u32> {
        let chosen = (of == Numbered::Oid).then(|| self.chosen());
        let first = |next: u32| match &chosen {
            Some(chosen) => first_free(chosen, next, count),
            None => next,
        };
        let behind = |next: u32| first(next).checked_add(count).filter(|behind| *behind <= of.end());
        // Numbers say nothing of other memory.
        self.counter(of).fetch_update(Ordering::Relaxed, Ordering::Relaxed, behind).ok().map(first)
    }

    /// Takes an oid that was chosen (CREATE DATABASE … OID), so that nobody else gets it. `false` if it has been
    /// drawn, was chosen before, or is none that objects have.
    pub fn choose(&self, oid: u32) -> bool {
        let mut chosen = self.chosen();
        let is_ahead = self.oid.load(Ordering::Relaxed) <= oid && oid < Numbered::Oid.end();
        is_ahead && chosen.insert(oid)
    }

    /// Gives back an oid that was chosen, if it was.
    pub fn give_back(&self, oid: u32) {
        self.chosen().remove(&oid);
    }

    fn chosen(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        // A set of numbers is as good after a panic as before.
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back numbers that came to nothing, if nobody has drawn any since; else they stay drawn. The
    /// caller has drawn all of them, and nobody has seen one.
    pub fn take_back(&self, of: Numbered, drawn: Range<u32>) {
        let counter = self.counter(of);
        let _ = counter.compare_exchange(drawn.end, drawn.start, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// The first number from `next` on behind which `count` in a row are not chosen.
fn first_free(chosen: &BTreeSet<u32>, next: u32, count: u32) -> u32 {
    let mut first = next;
    while let Some(taken) = chosen.range(first..first.saturating_add(count)).next_back() {
        first = taken.saturating_add(1);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::FIRST_OID;

    #[test]
    fn no_two_get_the_same_number() {
        let numbers = ObjectNumbers::new(Numbers::FIRST);
        let draw = || (0..1_000).filter_map(|_| numbers.draw(Numbered::Tree, 3)).collect::<Vec<u32>>();
        let mut drawn: Vec<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        drawn.sort_unstable();
        assert!(drawn.len() == 4_000 && drawn.windows(2).all(|pair| pair[0] + 3 == pair[1]));
        assert_eq!(numbers.draw(Numbered::Oid, 1), Some(FIRST_OID));
    }

    #[test]
    fn chosen_oids_are_passed_over() {
        let numbers = ObjectNumbers::new(Numbers::FIRST);
        let at = |ahead: u32| FIRST_OID + ahead;
        assert!(numbers.choose(at(1)) && numbers.choose(at(4)) && !numbers.choose(at(4)));
        assert!(!numbers.choose(FIRST_OID - 1) && !numbers.choose(Numbered::Oid.end()));
        assert_eq!(numbers.draw(Numbered::Oid, 1), Some(at(0)));
        assert_eq!(numbers.draw(Numbered::Oid, 2), Some(at(2)));
        // What it has gone by is nobody's to choose.
        assert!(!numbers.choose(at(3)));
        assert_eq!(numbers.draw(Numbered::Oid, 3), Some(at(5)));
        assert!(numbers.choose(at(8)));
        numbers.give_back(at(8));
        assert_eq!(numbers.draw(Numbered::Oid, 1), Some(at(8)));
    }

    #[test]
    fn the_last_number_is_given_and_none_behind_it() {
        for of in Numbered::ALL {
            let first = of.end() - 5;
            let at = Numbers { oid: first, tree: first, group: first, sequence: first };
            let numbers = ObjectNumbers::new(at);
            assert_eq!((numbers.draw(of, 6), numbers.draw(of, u32::MAX)), (None, None), "{of:?}");
            assert_eq!((numbers.draw(of, 5), numbers.draw(of, 1)), (Some(first), None), "{of:?}");
        }
    }

    #[test]
    fn numbers_are_taken_back_unless_somebody_has_drawn_since() {
        let numbers = ObjectNumbers::new(Numbers::FIRST);
        let first = numbers.draw(Numbered::Oid, 10).unwrap();
        numbers.take_back(Numbered::Oid, first..first + 10);
        assert_eq!(numbers.draw(Numbered::Oid, 2), Some(first));
        assert_eq!(numbers.draw(Numbered::Oid, 1), Some(first + 2));
        numbers.take_back(Numbered::Oid, first..first + 2);
        assert_eq!(numbers.draw(Numbered::Oid, 1), Some(first + 3));
    }
}
