//! Where new objects get their numbers from: one source for a whole engine.
//!
//! Trees, groups and sequences are the engine's, and so no two databases may give one number of them to
//! two things. Oids come from the same place, so that the oid of a role or a database is never that of an
//! object in some database. Definitions draw while they are planned; they may commit in any order, or not
//! at all. Each writes with its objects the numbers behind those it has drawn
//! ([`Numbers`](super::object::Numbers)), and the row that is there keeps the larger of each: a start goes
//! on behind all that anybody has written.
//!
//! There are 2^27 oids ([`NUMBERS_END`]), and a server that makes temporary tables all day comes to their
//! end. Then they begin anew, as PostgreSQL's do (GetNewOidWithIndex), and pass over those in use: what the
//! catalogs of all databases name ([`ObjectNumbers::used_by`]), and what somebody has drawn and may still
//! commit ([`DrawnOids`]). Both are looked at once a round, and what is given away in a round is not given
//! again in it:
//!
//! ```text
//!   first round    1 2 3 4 5 6 7 8 …  each number once
//!   ─ end reached: in use are 2, 3, 7 (an object of some database), 8 (drawn, not committed)
//!   next round     1     4 5 6     9 …
//! ```
//!
//! So a number whose object goes becomes free at the next end, and a draw costs what it did: a step over
//! the ranges that it meets. After a start the counter stands where the row says, behind the largest number
//! that was ever written; nobody has drawn anything then, so what the catalogs name is all there is in use.
//! Invariant: no oid is given that an object has, in whichever database, or may yet come to have.
//!
//! Trees, groups and sequences have 2^32 numbers and are given once: records of the log name them.
//!
//! - `ranges`  sets of numbers

mod ranges;

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::type_kind::NUMBERS_END;

use super::FIRST_OID;
use super::object::Numbers;
use ranges::Ranges;

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

/// The oids that somebody has drawn for what is not committed yet. They are in use as long as one copy of
/// this is there: until what is made of them is committed and published, or comes to nothing.
#[derive(Clone, Debug, Default)]
pub struct DrawnOids(Arc<Mutex<Vec<Range<u32>>>>);

impl DrawnOids {
    fn ranges(&self) -> MutexGuard<'_, Vec<Range<u32>>> {
        locked(&self.0)
    }
}

/// Ranges of numbers are as good after a panic as before.
fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The oids.
#[derive(Debug, Default)]
struct Oids {
    /// Given next, if it is not taken.
    next: u32,
    /// How often they have begun anew.
    rounds: u64,
    /// Those ahead of the next that are not given in this round: in use when it began, or given out of turn.
    taken: Ranges,
    /// Those of them that were given out of turn in this round: a look at what is in use may have missed them.
    out_of_turn: Ranges,
    /// What is drawn by whom. Those that are gone are taken out now and then.
    drawn: Vec<Weak<Mutex<Vec<Range<u32>>>>>,
    /// How many of these there were when they were last looked through.
    looked_at: usize,
}

impl Oids {
    /// The first of `count` in a row from a number on, in this round.
    fn give(&mut self, from: u32, count: u32, drawn: Option<&DrawnOids>) -> Option<u32> {
        let in_turn = from <= self.next;
        let first = self.taken.first_gap(from.max(self.next), count);
        let behind = first.checked_add(count).filter(|behind| *behind <= NUMBERS_END)?;
        if in_turn {
            self.next = behind;
            self.taken.forget_before(behind);
        } else {
            self.take_out_of_turn(first..behind);
        }
        self.note(first..behind, drawn);
        Some(first)
    }

    fn take_out_of_turn(&mut self, range: Range<u32>) {
        self.taken.insert(range.clone());
        self.out_of_turn.insert(range);
    }

    fn note(&mut self, range: Range<u32>, drawn: Option<&DrawnOids>) {
        let Some(drawn) = drawn else { return };
        let mut ranges = drawn.ranges();
        if ranges.is_empty() {
            if self.drawn.len() > 2 * self.looked_at + 16 {
                self.drawn.retain(|drawn| drawn.strong_count() > 0);
                self.looked_at = self.drawn.len();
            }
            self.drawn.push(Arc::downgrade(&drawn.0));
        }
        match ranges.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => ranges.push(range),
        }
    }

    /// What is drawn and may yet be committed.
    fn in_flight(&self) -> Vec<Range<u32>> {
        let drawn = self.drawn.iter().filter_map(Weak::upgrade);
        drawn.flat_map(|ranges| locked(&ranges).clone()).collect()
    }

    /// Begins the next round, in which none of those is given that somebody has.
    fn begin_anew(&mut self, in_use: Vec<Range<u32>>, others: impl Iterator<Item = Range<u32>>) {
        let mut taken = Ranges::of(in_use);
        // What was taken for other reasons may be free by now.
        let out_of_turn: Vec<Range<u32>> = std::mem::take(&mut self.out_of_turn).iter().collect();
        others.chain(out_of_turn).chain(self.in_flight()).for_each(|range| taken.insert(range));
        taken.forget_before(FIRST_OID);
        (self.taken, self.next) = (taken, FIRST_OID);
        self.rounds += 1;
    }
}

/// Answers the oids that objects have, whichever database they are in.
struct InUse(Box<dyn Fn() -> Vec<Range<u32>> + Send + Sync>);

impl std::fmt::Debug for InUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InUse")
    }
}

/// See the module's head.
#[derive(Debug)]
pub struct ObjectNumbers {
    oids: Mutex<Oids>,
    in_use: Mutex<Option<Arc<InUse>>>,
    tree: AtomicU32,
    group: AtomicU32,
    sequence: AtomicU32,
}

impl ObjectNumbers {
    /// A source that gives these numbers first.
    pub fn new(first: Numbers) -> ObjectNumbers {
        ObjectNumbers {
            oids: Mutex::new(Oids { next: first.oid, ..Oids::default() }),
            in_use: Mutex::default(),
            tree: AtomicU32::new(first.tree),
            group: AtomicU32::new(first.group),
            sequence: AtomicU32::new(first.sequence),
        }
    }

    /// Says who knows the oids that objects have, asked once a round. Until then there is no second round.
    /// The answer may take long: nobody else waits for it, and it may not draw.
    pub fn used_by(&self, in_use: impl Fn() -> Vec<Range<u32>> + Send + Sync + 'static) {
        *locked(&self.in_use) = Some(Arc::new(InUse(Box::new(in_use))));
    }

    fn counter(&self, of: Numbered) -> Option<&AtomicU32> {
        match of {
            Numbered::Oid => None,
            Numbered::Tree => Some(&self.tree),
            Numbered::Group => Some(&self.group),
            Numbered::Sequence => Some(&self.sequence),
        }
    }

    /// The first of `count` numbers in a row that nobody else gets; `None` if there are not so many left. Oids
    /// that are drawn so are for what no catalog knows: the next round may give them again.
    pub fn draw(&self, of: Numbered, count: u32) -> Option<u32> {
        let Some(counter) = self.counter(of) else { return self.draw_oids(None, 0, count) };
        let behind = |next: u32| next.checked_add(count).filter(|behind| *behind <= of.end());
        // Numbers say nothing of other memory.
        counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, behind).ok()
    }

    /// The first of `count` oids in a row, not before `from`, that nobody else gets as long as `drawn` or what
    /// is made of them is there; `None` if there are not so many free.
    pub fn draw_oids(&self, drawn: Option<&DrawnOids>, from: u32, count: u32) -> Option<u32> {
        let mut oids = locked(&self.oids);
        if let Some(first) = oids.give(from, count, drawn) {
            return Some(first);
        }
        // Behind a number of its own somebody finds no more in the next round.
        if from > oids.next {
            return None;
        }
        let (round, next, in_flight) = (oids.rounds, oids.next, oids.in_flight());
        drop(oids);
        // What was committed before it was asked for is in a catalog, what comes later was in flight or is
        // drawn meanwhile.
        let answer = locked(&self.in_use).clone()?;
        let in_use = (answer.0)();
        let mut oids = locked(&self.oids);
        if oids.rounds == round {
            let meanwhile = next..oids.next;
            oids.begin_anew(in_use, in_flight.into_iter().chain([meanwhile]));
        }
        oids.give(from, count, drawn)
    }

    /// Takes an oid that was chosen (CREATE DATABASE … OID), so that nobody else gets it. `false` if it has been
    /// drawn in this round, is in use, or is none that objects have.
    pub fn choose(&self, oid: u32, drawn: Option<&DrawnOids>) -> bool {
        let mut oids = locked(&self.oids);
        if oid < oids.next || oid >= NUMBERS_END || oids.taken.contains(oid) {
            return false;
        }
        oids.take_out_of_turn(oid..oid + 1);
        oids.note(oid..oid + 1, drawn);
        true
    }

    /// Takes an oid that is the caller's to give, of a space that only its own catalog fills (labels of enums),
    /// so that nobody draws it. `false` if somebody else may yet commit it: what was drawn along with one of
    /// `beside`, which the caller has, is the caller's.
    pub fn claim(&self, oid: u32, beside: [u32; 2], drawn: &DrawnOids) -> bool {
        let mut oids = locked(&self.oids);
        let is_others =
            |range: &Range<u32>| range.contains(&oid) && !beside.iter().any(|known| range.contains(known));
        if oids.in_flight().iter().any(is_others) {
            return false;
        }
        if oid >= oids.next {
            oids.take_out_of_turn(oid..oid + 1);
        }
        oids.note(oid..oid + 1, Some(drawn));
        true
    }

    /// Gives back an oid that was chosen, if it was.
    pub fn give_back(&self, oid: u32) {
        let mut oids = locked(&self.oids);
        oids.taken.remove(oid);
        oids.out_of_turn.remove(oid);
    }

    /// Takes back numbers that came to nothing, if nobody has drawn any since; else they stay drawn. The
    /// caller has drawn all of them, and nobody has seen one.
    pub fn take_back(&self, of: Numbered, drawn: Range<u32>) {
        let Some(counter) = self.counter(of) else {
            let mut oids = locked(&self.oids);
            if oids.next == drawn.end {
                oids.next = drawn.start;
            }
            return;
        };
        let _ = counter.compare_exchange(drawn.end, drawn.start, Ordering::Relaxed, Ordering::Relaxed);
    }
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
        let choose = |oid| numbers.choose(oid, None);
        assert!(choose(at(1)) && choose(at(4)) && !choose(at(4)));
        assert!(!choose(FIRST_OID - 1) && !choose(Numbered::Oid.end()));
        assert_eq!(numbers.draw(Numbered::Oid, 1), Some(at(0)));
        assert_eq!(numbers.draw(Numbered::Oid, 2), Some(at(2)));
        // What it has gone by is nobody's to choose.
        assert!(!choose(at(3)));
        assert_eq!(numbers.draw(Numbered::Oid, 3), Some(at(5)));
        assert!(choose(at(8)));
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

    /// A source near the end of oids, and those that objects have.
    fn near_end(room: u32, in_use: &[u32]) -> (ObjectNumbers, Arc<Mutex<Vec<Range<u32>>>>) {
        let numbers = ObjectNumbers::new(Numbers { oid: NUMBERS_END - room, ..Numbers::FIRST });
        let used = Arc::new(Mutex::new(in_use.iter().map(|oid| *oid..*oid + 1).collect::<Vec<_>>()));
        let answer = used.clone();
        numbers.used_by(move || locked(&answer).clone());
        (numbers, used)
    }

    #[test]
    fn oids_begin_anew_and_pass_over_those_in_use() {
        let at = |ahead: u32| FIRST_OID + ahead;
        let (numbers, used) = near_end(2, &[5, at(0), at(2), at(3), at(9), NUMBERS_END - 1]);
        let draw = |count| numbers.draw(Numbered::Oid, count);
        assert_eq!(draw(2), Some(NUMBERS_END - 2));
        assert_eq!((draw(1), draw(1), draw(6)), (Some(at(1)), Some(at(4)), Some(at(10))));
        // What was given in a round is not given again in it, whatever has become of it.
        locked(&used).clear();
        assert_eq!(draw(1), Some(at(16)));
        assert!(!numbers.choose(at(9), None) && numbers.choose(at(17), None));
        assert_eq!(draw(1), Some(at(18)));
    }

    #[test]
    fn what_is_drawn_and_not_committed_is_nobody_elses_in_the_next_round() {
        let (numbers, used) = near_end(4, &[]);
        let (open, ended) = (DrawnOids::default(), DrawnOids::default());
        assert_eq!(numbers.draw_oids(Some(&ended), 0, 1), Some(NUMBERS_END - 4));
        assert_eq!(numbers.draw_oids(Some(&open), 0, 3), Some(NUMBERS_END - 3));
        drop(ended);
        let first = numbers.draw_oids(Some(&open), 0, 2);
        assert_eq!(first, Some(FIRST_OID));
        // Another round: all in between is somebody's.
        locked(&used).push(FIRST_OID + 2..NUMBERS_END - 4);
        assert_eq!(numbers.draw(Numbered::Oid, NUMBERS_END), None);
        assert_eq!(numbers.draw_oids(Some(&open), 0, 1), Some(NUMBERS_END - 4));
        assert_eq!(numbers.draw(Numbered::Oid, 1), None);
        drop(open);
        assert_eq!(numbers.draw(Numbered::Oid, 5), None);
        assert_eq!(numbers.draw(Numbered::Oid, 2), Some(FIRST_OID));
    }

    #[test]
    fn what_is_given_while_the_catalogs_are_looked_at_is_in_use() {
        let numbers = Arc::new(ObjectNumbers::new(Numbers { oid: NUMBERS_END - 2, ..Numbers::FIRST }));
        let other = Arc::downgrade(&numbers);
        // Somebody draws the last ones, and commits them behind the look's back.
        numbers.used_by(move || {
            let drawn = other.upgrade().and_then(|numbers| numbers.oids.lock().ok()?.give(0, 1, None));
            assert!(drawn.is_none_or(|drawn| drawn == NUMBERS_END - 2 || drawn == NUMBERS_END - 1));
            std::iter::once(FIRST_OID..NUMBERS_END - 2).collect()
        });
        assert_eq!(numbers.draw(Numbered::Oid, 3), None);
        assert_eq!(numbers.draw(Numbered::Oid, 1), Some(NUMBERS_END - 1));
    }

    #[test]
    fn room_behind_a_number_is_found_out_of_turn_and_kept() {
        let (numbers, _) = near_end(300, &[FIRST_OID + 1_000]);
        assert_eq!(numbers.draw(Numbered::Oid, 300), Some(NUMBERS_END - 300));
        let drawn = DrawnOids::default();
        let behind = FIRST_OID + 1_000;
        assert_eq!(numbers.draw_oids(Some(&drawn), behind, 10), Some(behind + 1));
        assert_eq!(numbers.draw(Numbered::Oid, 1), Some(FIRST_OID));
        assert_eq!(numbers.draw(Numbered::Oid, 1_000), Some(behind + 11));
        assert_eq!(numbers.draw_oids(Some(&drawn), NUMBERS_END - 5, 10), None);
        let claim = |oid, beside| numbers.claim(oid, [beside, 0], &DrawnOids::default());
        assert!(!claim(behind + 3, behind) && claim(behind + 3, behind + 5) && claim(behind, 0));
    }

    #[test]
    fn rounds_are_quick_where_millions_are_in_use() {
        let in_use: Vec<u32> = (0..4_000_000).map(|place| FIRST_OID + 3 * place).collect();
        let (numbers, _) = near_end(0, &in_use);
        let begun = std::time::Instant::now();
        let mut last = 0;
        for _ in 0..1_000_000 {
            let drawn = numbers.draw(Numbered::Oid, 2).unwrap();
            assert!(drawn > last && (drawn - FIRST_OID) % 3 == 1);
            last = drawn;
        }
        // Room for more than there is between any two is behind them all.
        assert_eq!(numbers.draw(Numbered::Oid, 256), Some(FIRST_OID + 3 * 3_999_999 + 1));
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
    }
}
