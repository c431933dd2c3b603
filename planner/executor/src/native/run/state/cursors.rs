//! The open cursors of a session, by name.
//!
//! Each statement has them as they were when it began: a run changes a copy, which the session takes over
//! once it has ended well. Copies share what did not change ([`SharedMap`]), and what ends with a
//! transaction or goes back to a savepoint is found by the numbers that cursors are opened under, so that a
//! statement costs the same however many are open.
//!
//! ```text
//!   numbered   1 a   2 b   3 c   4 d   5 e
//!   passing    1 a         3 c   4 d               without WITH HOLD
//!              └───── opened_before ─┘ └ rollback_to(4) takes these ┘
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use archipel_sql::catalog::shared_map::SharedMap;
use archipel_sql::error::Result;

use super::cursor::{OpenCursor, missing_cursor};
use super::large_object::Descriptors;

/// What `pg_cursors` shows of a cursor, beside its name. It does not change, and keeps none of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorAttributes {
    /// The statement.
    pub text: Arc<str>,
    pub hold: bool,
    pub binary: bool,
    pub scroll: bool,
    /// Microseconds since 2000-01-01 UTC.
    pub at: i64,
}

/// The open cursors of a session, by name. See the module's head.
#[derive(Clone, Debug, Default)]
pub struct Cursors {
    open: SharedMap<Arc<str>, Arc<OpenCursor>>,
    attributes: SharedMap<Arc<str>, Arc<CursorAttributes>>,
    /// Their names, by their numbers.
    numbered: SharedMap<u64, Arc<str>>,
    /// Of these, those that end with their transaction.
    passing: SharedMap<u64, Arc<str>>,
    /// How many were opened so far.
    opened: u64,
    unnamed: u64,
    /// How many of them before the transaction at hand.
    opened_before: u64,
    /// Large objects that are open: they come and go with the transaction, as cursors do.
    large_objects: Descriptors,
    /// Whether anything was opened, moved or closed.
    changed: bool,
}

/// Those that were opened after `mark` of them.
fn opened_after(names: &SharedMap<u64, Arc<str>>, mark: u64) -> Vec<Arc<str>> {
    let order = |number: &u64| if *number > mark { Ordering::Equal } else { Ordering::Less };
    names.all_by(order).map(|(_, name)| name.clone()).collect()
}

impl Cursors {
    /// Whether none was ever opened.
    pub fn is_unused(&self) -> bool {
        self.opened == 0
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.large_objects.is_empty()
    }

    /// The large objects that are open.
    pub fn large_objects(&self) -> &Descriptors {
        &self.large_objects
    }

    /// The same, to change them; and the number of one that is opened now.
    pub fn large_objects_mut(&mut self) -> (&mut Descriptors, u64) {
        self.changed = true;
        self.opened += 1;
        (&mut self.large_objects, self.opened)
    }

    /// Whether somebody has moved one of them to rows that were not there.
    pub fn is_wanting(&self) -> bool {
        self.changed && self.open.values().any(|cursor| cursor.is_wanting())
    }

    /// What `pg_cursors` shows of them, by name.
    pub fn attributes(&self) -> &SharedMap<Arc<str>, Arc<CursorAttributes>> {
        &self.attributes
    }

    /// Names and cursors, in the names' order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OpenCursor)> {
        self.open.iter().map(|(name, cursor)| (&**name, &**cursor))
    }

    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<&Arc<OpenCursor>> {
        self.open.get_by(|known| (**known).cmp(name))
    }

    /// Whoever has moved to rows that were not there finds them the next time.
    pub fn forget_wants(&mut self) {
        let wanting = self.open.iter().filter(|(_, cursor)| cursor.wanted);
        let names: Vec<Arc<str>> = wanting.map(|(name, _)| name.clone()).collect();
        for name in names {
            if let Some(cursor) = self.open.get_mut_by(|known| known.cmp(&name)) {
                Arc::make_mut(cursor).wanted = false;
            }
        }
    }

    pub fn get(&self, name: &str) -> Result<&OpenCursor> {
        self.find(name).map(|cursor| &**cursor).ok_or_else(|| missing_cursor(name))
    }

    pub fn get_mut(&mut self, name: &str) -> Result<&mut OpenCursor> {
        self.changed = true;
        let cursor = self.open.get_mut_by(|known| (**known).cmp(name));
        cursor.map(Arc::make_mut).ok_or_else(|| missing_cursor(name))
    }

    /// A name for a cursor that was given none.
    pub fn invent_name(&mut self) -> String {
        loop {
            self.unnamed += 1;
            let name = format!("<unnamed portal {}>", self.unnamed);
            if !self.has(&name) {
                return name;
            }
        }
    }

    pub fn open(&mut self, name: String, mut cursor: OpenCursor) {
        // One of this name gives way.
        self.remove(&name);
        self.changed = true;
        self.opened += 1;
        cursor.number = self.opened;
        let name: Arc<str> = name.into();
        self.numbered.insert(cursor.number, name.clone());
        if !cursor.hold {
            self.passing.insert(cursor.number, name.clone());
        }
        let attributes = CursorAttributes {
            text: cursor.text.clone(),
            hold: cursor.hold,
            binary: cursor.binary,
            scroll: cursor.backward,
            at: cursor.at,
        };
        self.attributes.insert(name.clone(), Arc::new(attributes));
        self.open.insert(name, Arc::new(cursor));
    }

    pub fn close(&mut self, name: &str) -> Result<()> {
        self.changed = true;
        if self.remove(name) { Ok(()) } else { Err(missing_cursor(name)) }
    }

    /// Takes a cursor out; whether there was one.
    fn remove(&mut self, name: &str) -> bool {
        let Some((name, number)) = self.find(name).map(|cursor| (Arc::<str>::from(name), cursor.number))
        else {
            return false;
        };
        self.open.remove(&name);
        self.attributes.remove(&name);
        self.numbered.remove(&number);
        self.passing.remove(&number);
        true
    }

    fn remove_all(&mut self, names: Vec<Arc<str>>) {
        self.changed |= !names.is_empty();
        for name in names {
            self.remove(&name);
        }
    }

    pub fn clear(&mut self) {
        self.changed |= !self.open.is_empty();
        (self.open, self.attributes) = Default::default();
        (self.numbered, self.passing) = Default::default();
    }

    /// The number of a portal that has no rows yet, for [`Cursors::rollback_to`].
    pub fn number(&mut self) -> u64 {
        self.opened += 1;
        self.opened
    }

    /// The end of a transaction: only those WITH HOLD stay.
    pub fn end_transaction(&mut self) {
        self.remove_all(opened_after(&self.passing, 0));
        self.large_objects.clear();
        self.opened_before = self.opened;
    }

    /// A transaction is undone: those stay that one before it has left.
    pub fn abort_transaction(&mut self) {
        self.remove_all(opened_after(&self.passing, 0));
        self.remove_all(opened_after(&self.numbered, self.opened_before));
        self.large_objects.clear();
        self.opened_before = self.opened;
    }

    /// The names of those that the transaction at hand has opened and that stay when it commits.
    pub fn to_hold(&self) -> Vec<String> {
        let names = opened_after(&self.numbered, self.opened_before);
        let held = names.iter().filter(|name| self.find(name).is_some_and(|cursor| cursor.hold));
        held.map(|name| name.to_string()).collect()
    }

    /// Whether a cursor is what an earlier transaction has left: rows, and no scan that is at one of them.
    pub fn is_held(&self, name: &str) -> bool {
        self.find(name).is_some_and(|cursor| cursor.hold && cursor.number <= self.opened_before)
    }

    /// A point to go back to.
    pub fn mark(&self) -> u64 {
        self.opened
    }

    /// Closes what was opened since the mark.
    pub fn rollback_to(&mut self, mark: u64) {
        if self.opened > mark {
            self.changed = true;
            self.remove_all(opened_after(&self.numbered, mark));
            self.large_objects.close_after(mark);
        }
    }

    /// The cursors, if anything has happened to them.
    pub fn take_changed(&mut self) -> Option<Cursors> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        Some(std::mem::take(self))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::cursor::CursorRows;
    use super::*;

    fn cursor(hold: bool) -> OpenCursor {
        let mut cursor = OpenCursor::new(Arc::from([]), CursorRows::default(), false);
        cursor.hold = hold;
        cursor
    }

    /// Numbers and holds by name, gone through as a whole.
    #[derive(Clone, Default)]
    struct Model {
        open: BTreeMap<String, (u64, bool)>,
        opened: u64,
        before: u64,
    }

    impl Model {
        fn agrees(&self, cursors: &Cursors) {
            let open: Vec<_> =
                cursors.iter().map(|(name, cursor)| (name, cursor.number, cursor.hold)).collect();
            let expected: Vec<_> =
                self.open.iter().map(|(name, (number, hold))| (name.as_str(), *number, *hold)).collect();
            assert_eq!(open, expected);
            assert!(cursors.attributes().iter().map(|(name, _)| &**name).eq(self.open.keys()));
            let held = self.open.iter().filter(|(_, (number, hold))| *hold && *number > self.before);
            let mut to_hold = cursors.to_hold();
            to_hold.sort();
            assert!(to_hold.iter().eq(held.map(|(name, _)| name)));
            assert_eq!(cursors.numbered.iter().count(), self.open.len());
            let passing = self.open.values().filter(|(_, hold)| !hold).count();
            assert_eq!(cursors.passing.iter().count(), passing);
        }
    }

    #[test]
    fn cursors_come_and_go_as_if_all_were_looked_at() {
        let (mut cursors, mut model) = (Cursors::default(), Model::default());
        let mut copies = Vec::new();
        let mut chance: u64 = 11;
        for step in 0..5_000_u64 {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (of, name) = ((chance >> 33) % 40, format!("c{}", (chance >> 40) % 60));
            match of {
                0 => {
                    cursors.end_transaction();
                    model.open.retain(|_, (_, hold)| *hold);
                    model.before = model.opened;
                }
                1 => {
                    cursors.abort_transaction();
                    let before = model.before;
                    model.open.retain(|_, (number, hold)| *hold && *number <= before);
                    model.before = model.opened;
                }
                2 | 3 => {
                    let mark = model.opened.saturating_sub((chance >> 50) % 10);
                    cursors.rollback_to(mark);
                    model.open.retain(|_, (number, _)| *number <= mark);
                }
                4..=10 => assert_eq!(cursors.close(&name).is_ok(), model.open.remove(&name).is_some()),
                _ => {
                    let hold = of > 30;
                    cursors.open(name.clone(), cursor(hold));
                    model.opened += 1;
                    model.open.insert(name, (model.opened, hold));
                }
            }
            assert_eq!(cursors.mark(), model.opened);
            model.agrees(&cursors);
            if step % 500 == 0 {
                copies.push((cursors.clone(), model.clone()));
            }
        }
        copies.iter().for_each(|(cursors, model)| model.agrees(cursors));
    }

    #[test]
    fn what_a_run_does_to_its_copy_is_its_own() {
        let mut cursors = Cursors::default();
        cursors.open("a".to_owned(), cursor(false));
        let mut copy = cursors.clone();
        copy.get_mut("a").expect("it is open").wanted = true;
        assert!(copy.is_wanting() && !cursors.is_wanting());
        copy.forget_wants();
        assert!(!copy.is_wanting());
        copy.close("a").expect("it is open");
        assert!(cursors.has("a") && !copy.has("a"));
    }
}
