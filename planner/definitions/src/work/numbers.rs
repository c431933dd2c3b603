//! The numbers that one definition draws for what it makes.
//!
//! They are nobody else's at once, since others draw at the same time, and stay so until the plan is committed
//! or dropped ([`DrawnOids`]). A definition that comes to nothing while it is planned gives them back, as far as
//! nobody has drawn behind it.

use std::ops::Range;

use archipel_sql::catalog::{DrawnOids, Numbered, Numbers, ObjectNumbers};
use archipel_sql::error::{Result, SqlError, SqlState};

pub(super) struct Draws<'a> {
    source: &'a ObjectNumbers,
    /// The last numbers of each kind that were drawn in a row.
    runs: [Range<u32>; Numbered::ALL.len()],
    /// The numbers behind the largest of each kind.
    behind: [u32; Numbered::ALL.len()],
    drawn: DrawnOids,
    exhausted: bool,
    kept: bool,
}

impl<'a> Draws<'a> {
    pub fn of(source: &'a ObjectNumbers) -> Draws<'a> {
        Draws {
            source,
            runs: Default::default(),
            behind: Default::default(),
            drawn: DrawnOids::default(),
            exhausted: false,
            kept: false,
        }
    }

    /// What is in use as long as it may be committed.
    pub fn drawn(&self) -> DrawnOids {
        self.drawn.clone()
    }

    /// The first of `count` oids in a row, not before `from`; `None` if there are not so many left there.
    pub fn try_oids(&mut self, from: u32, count: u32) -> Option<u32> {
        let first = self.source.draw_oids(Some(&self.drawn), from, count)?;
        self.note(Numbered::Oid, first, count);
        Some(first)
    }

    /// Takes an oid of a space that only this catalog fills, between two of its own; `false` if somebody else may
    /// yet commit it.
    pub fn claim(&mut self, oid: u32, beside: [u32; 2]) -> bool {
        let claimed = self.source.claim(oid, beside, &self.drawn);
        if claimed {
            let behind = &mut self.behind[Numbered::Oid as usize];
            *behind = (*behind).max(oid + 1);
        }
        claimed
    }

    fn note(&mut self, of: Numbered, first: u32, count: u32) {
        let run = &mut self.runs[of as usize];
        if run.end != first {
            run.start = first;
        }
        run.end = first + count;
        let behind = &mut self.behind[of as usize];
        *behind = (*behind).max(run.end);
    }

    /// The first of `count` numbers in a row. Where there are not so many left the answer is nobody's
    /// number: [`Draws::check`] refuses the whole then.
    pub fn draw(&mut self, of: Numbered, count: u32) -> u32 {
        let drawn = match of {
            Numbered::Oid => self.source.draw_oids(Some(&self.drawn), 0, count),
            _ => self.source.draw(of, count),
        };
        let Some(first) = drawn else {
            self.exhausted = true;
            return of.end();
        };
        self.note(of, first, count);
        first
    }

    /// 54000 if something did not get its number.
    pub fn check(&self) -> Result<()> {
        if !self.exhausted {
            return Ok(());
        }
        Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "there are no numbers left for new objects"))
    }

    /// The numbers behind those that were drawn, which are kept from now on; `None` if none were.
    pub fn keep(&mut self) -> Option<Numbers> {
        self.kept = true;
        let behind = |of: Numbered| self.behind[of as usize];
        let drawn = self.behind.iter().any(|behind| *behind > 0);
        drawn.then(|| Numbers {
            oid: behind(Numbered::Oid),
            tree: behind(Numbered::Tree),
            group: behind(Numbered::Group),
            sequence: behind(Numbered::Sequence),
        })
    }
}

impl Drop for Draws<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        for of in Numbered::ALL {
            let run = &self.runs[of as usize];
            if !run.is_empty() {
                self.source.take_back(of, run.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_that_comes_to_nothing_draws_nothing() {
        let source = ObjectNumbers::new(Numbers { oid: 100, tree: 20, group: 30, sequence: 40 });
        let mut failed = Draws::of(&source);
        assert_eq!((failed.draw(Numbered::Oid, 3), failed.draw(Numbered::Oid, 1)), (100, 103));
        assert_eq!(failed.draw(Numbered::Tree, 1), 20);
        drop(failed);
        let mut kept = Draws::of(&source);
        assert_eq!((kept.draw(Numbered::Oid, 2), kept.draw(Numbered::Tree, 1)), (100, 20));
        let behind = Numbers { oid: 102, tree: 21, group: 0, sequence: 0 };
        assert_eq!(kept.keep(), Some(behind));
        drop(kept);
        assert_eq!(Draws::of(&source).draw(Numbered::Oid, 1), 102);
        assert_eq!(Draws::of(&source).keep(), None);
    }

    #[test]
    fn what_others_have_drawn_behind_stays_theirs() {
        let source = ObjectNumbers::new(Numbers { oid: 100, tree: 20, group: 30, sequence: 40 });
        let (mut first, mut second) = (Draws::of(&source), Draws::of(&source));
        assert_eq!((first.draw(Numbered::Oid, 1), second.draw(Numbered::Oid, 1)), (100, 101));
        assert_eq!(first.draw(Numbered::Oid, 1), 102);
        drop(first);
        assert_eq!(second.draw(Numbered::Oid, 1), 102);
        assert_eq!(second.keep().map(|behind| behind.oid), Some(103));
    }

    #[test]
    fn what_has_no_number_is_refused() {
        let end = Numbered::Oid.end();
        let source = ObjectNumbers::new(Numbers { oid: end - 1, tree: 20, group: 30, sequence: 40 });
        let mut draws = Draws::of(&source);
        assert_eq!((draws.draw(Numbered::Oid, 1), draws.check().is_ok()), (end - 1, true));
        draws.draw(Numbered::Oid, 1);
        assert_eq!(draws.check().unwrap_err().state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
}
