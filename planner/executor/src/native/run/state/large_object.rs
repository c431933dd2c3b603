//! Descriptors of large objects: what a transaction has opened, and where it stands in it.
//!
//! They live as long as the transaction, or the subtransaction, that has opened them (be-fsstubs.c), so they are
//! kept with its cursors ([`Cursors`](super::cursors::Cursors)), which says when they go. Runs share them until one
//! changes them.

use std::fmt;
use std::sync::Arc;

use archipel_engine::Snapshot;
use archipel_engine::id::Epoch;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

/// Descriptors that a transaction may have open.
const DESCRIPTORS_MAX: usize = 16 << 10;

/// The database as it was when the statement ended that opened a descriptor.
#[derive(Clone)]
struct Past(Arc<Snapshot>);

impl fmt::Debug for Past {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Past").field(&self.0.epoch()).finish()
    }
}

/// An open large object.
#[derive(Clone, Debug)]
pub struct Descriptor {
    pub object: Oid,
    /// Where the next byte is read or written.
    pub offset: i64,
    /// Whether it was opened for writing: then it shows the object as it is.
    pub writes: bool,
    /// What it shows if it was opened for reading alone; `None`: what the statement sees.
    past: Option<Past>,
    /// Counts up over the session, with its cursors.
    number: u64,
}

impl Descriptor {
    /// What others have committed since does not show in it.
    pub fn epoch(&self) -> Option<Epoch> {
        self.past.as_ref().map(|past| past.0.epoch())
    }
}

/// The open descriptors, at the places that are their numbers for the client; most sessions have none.
#[derive(Clone, Debug, Default)]
pub struct Descriptors(Option<Arc<Vec<Option<Descriptor>>>>);

/// 42704.
fn invalid(descriptor: i32) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("invalid large-object descriptor: {descriptor}"))
}

impl Descriptors {
    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn all(&self) -> &[Option<Descriptor>] {
        self.0.as_deref().map_or(&[][..], |all| &all[..])
    }

    fn all_mut(&mut self) -> &mut Vec<Option<Descriptor>> {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// Opens an object at its beginning, under the least number that is free.
    pub fn open(&mut self, object: Oid, writes: bool, number: u64) -> Result<i32> {
        let open = Some(Descriptor { object, offset: 0, writes, past: None, number });
        let all = self.all_mut();
        let place = match all.iter().position(Option::is_none) {
            Some(free) => {
                all[free] = open;
                free
            }
            None if all.len() < DESCRIPTORS_MAX => {
                all.push(open);
                all.len() - 1
            }
            None => {
                let message = "too many open large objects";
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                    .with_detail(format!("A transaction may have {DESCRIPTORS_MAX} of them open.")));
            }
        };
        Ok(place as i32)
    }

    /// What is open under a number; 42704 if nothing is.
    pub fn get(&self, descriptor: i32) -> Result<Descriptor> {
        let place = usize::try_from(descriptor).ok();
        place.and_then(|place| self.all().get(place)?.clone()).ok_or_else(|| invalid(descriptor))
    }

    /// Moves a descriptor that is open.
    pub fn move_to(&mut self, descriptor: i32, offset: i64) {
        let place = usize::try_from(descriptor).unwrap_or(usize::MAX);
        if let Some(Some(open)) = self.all_mut().get_mut(place) {
            open.offset = offset;
        }
    }

    /// Closes what is open under a number; 42704 if nothing is.
    pub fn close(&mut self, descriptor: i32) -> Result<()> {
        self.get(descriptor)?;
        self.all_mut()[descriptor as usize] = None;
        self.trim();
        Ok(())
    }

    /// Closes those of an object.
    pub fn close_all_of(&mut self, object: Oid) {
        self.retain(|open| open.object != object);
    }

    /// Closes those that were opened after this number.
    pub fn close_after(&mut self, number: u64) {
        self.retain(|open| open.number <= number);
    }

    /// Whether something is open for reading alone whose past nobody keeps.
    pub fn has_unpinned(&self) -> bool {
        self.all().iter().flatten().any(|open| !open.writes && open.past.is_none())
    }

    /// What is open so shows this from now on.
    pub fn pin(&mut self, snapshot: &Arc<Snapshot>) {
        let unpinned = self.all_mut().iter_mut().flatten().filter(|open| !open.writes && open.past.is_none());
        unpinned.for_each(|open| open.past = Some(Past(snapshot.clone())));
    }

    /// Closes everything.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    fn retain(&mut self, stays: impl Fn(&Descriptor) -> bool) {
        if self.all().iter().flatten().all(&stays) {
            return;
        }
        for open in self.all_mut() {
            *open = open.take().filter(&stays);
        }
        self.trim();
    }

    fn trim(&mut self) {
        match self.all().iter().rposition(Option::is_some) {
            Some(last) => self.all_mut().truncate(last + 1),
            None => self.0 = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_free_number_is_taken_and_others_stay() {
        let mut open = Descriptors::default();
        let objects = [Oid(1), Oid(2), Oid(3), Oid(1)];
        let numbers: Vec<i32> = objects
            .iter()
            .zip(10..)
            .map(|(object, number)| open.open(*object, true, number).unwrap())
            .collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        open.close(1).unwrap();
        assert!(open.close(1).is_err() && open.get(-1).is_err() && open.get(4).is_err());
        assert_eq!(open.open(Oid(9), false, 20).unwrap(), 1);
        let before = open.clone();
        open.move_to(1, 77);
        assert_eq!((open.get(1).unwrap().offset, before.get(1).unwrap().offset), (77, 0));
        open.close_after(13);
        assert!(open.get(1).is_err() && open.get(3).is_ok());
        open.close_all_of(Oid(1));
        assert_eq!((open.get(0).is_err(), open.get(2).unwrap().object), (true, Oid(3)));
        open.close(2).unwrap();
        assert!(open.is_empty());
    }

    #[test]
    fn a_transaction_opens_no_more_than_so_many() {
        let mut open = Descriptors::default();
        for _ in 0..DESCRIPTORS_MAX {
            open.open(Oid(1), false, 1).unwrap();
        }
        let refused = open.open(Oid(1), false, 1).unwrap_err();
        assert_eq!(refused.state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
}
