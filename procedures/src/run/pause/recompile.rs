//! A call that has ended a transaction goes on in another form of its routine: one compiled anew
//! from the same source, because a table has changed or because a run has found the structure of
//! rows that had not been seen before.
//!
//! Statements stand at the same places in both forms; only registers move. A variable's value goes
//! from the register it had to the one it has now, told by the variable, the field and the type.
//! Registers that no variable names hold nothing from one statement to the next.

use archipel_sql::datum::Datum;

use super::Paused;
pub use super::home::Home;
use crate::run::operation::Program;

impl Program {
    /// The homes of a structure of a record, in order.
    fn shape_of<'p>(&'p self, home: &'p Home) -> impl Iterator<Item = &'p Home> {
        self.homes.iter().filter(move |other| other.variable == home.variable && other.shape == home.shape)
    }

    /// Where the value of `home`, which is another form's, lives here: in a record of the same
    /// structure if there is one, else in a field of the same name and type.
    fn home_of(&self, home: &Home, other: &Program) -> Option<&Home> {
        let candidates = || self.homes.iter().filter(|candidate| candidate.is_same(home));
        candidates()
            .find(|candidate| {
                let (here, there) = (self.shape_of(candidate), other.shape_of(home));
                here.map(|h| (&h.field, h.ty)).eq(there.map(|h| (&h.field, h.ty)))
            })
            .or_else(|| candidates().next())
    }
}

impl Paused {
    /// The same place in `next`, the routine having run as `before`; `None` if that is not the
    /// same routine, or if a value would be lost.
    pub fn renewed(&self, before: &Program, next: &Program) -> Option<Paused> {
        let (old, new) = (&before.routine, &next.routine);
        if old.oid != new.oid || old.source != new.source || old.args.len() != new.args.len() {
            return None;
        }
        let mut frame = vec![Datum::Null; next.registers as usize];
        for home in &before.homes {
            let value = &self.frame[home.register as usize];
            match next.home_of(home, before) {
                Some(place) => {
                    // Of structures that meet in one field, the one in use has a value.
                    if !value.is_null() {
                        frame[place.register as usize] = value.clone();
                    }
                }
                None if value.is_null() => {}
                None => return None,
            }
        }
        let mut renewed = self.clone();
        renewed.frame = frame;
        Some(renewed)
    }
}
