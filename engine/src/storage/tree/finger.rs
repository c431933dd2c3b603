//! Going straight to a leaf again.
//!
//! Accesses come in runs: a row that was read is written next, and the lines of one order are
//! put one behind the other. A [`Finger`] remembers the way down to the leaf of the last
//! access, as child numbers, so that the next access of that leaf searches no inner node.
//!
//! Rows that were fetched [`super::prefetch`] of their use have been found once already: the ways to
//! them are kept in the order in which they will be asked for.
//!
//! Nothing keeps a finger in step with the tree. It is a guess that is checked: a way that
//! leads nowhere, or to a leaf whose keys do not surround the wanted one, counts for nothing.

use super::node::{Leaf, Node};
use super::slots::Key;
use super::{CAPACITY, How, Lookup, Pointer, Tree, entry_bytes};
use crate::storage::row::Row;

/// Trees higher than this go without; each level multiplies the entries by at least eight.
const HEIGHT_MAX: usize = 10;

/// The way to a leaf, and a place in it.
#[derive(Clone, Debug, Default)]
pub struct Finger {
    way: [u8; HEIGHT_MAX],
    index: u8,
    /// To where it will point next.
    pub(crate) ahead: Ahead,
}

/// The way to a row, as far as one was found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    children: [u8; HEIGHT_MAX],
    depth: u8,
    /// In the leaf; no place there has the number of a key that was not found.
    pub(super) index: u8,
}

impl Way {
    /// A place that no leaf has.
    pub(super) const NOWHERE: u8 = u8::MAX;

    /// Goes down to a child.
    #[inline]
    pub(super) fn step(&mut self, child: usize) {
        if let Some(place) = self.children.get_mut(usize::from(self.depth)) {
            *place = child as u8;
            self.depth += 1;
        }
    }
}

/// Ways to rows that will be asked for soon, one after the other. Whoever asks for something else
/// has taken a way that does not lead there, and searches.
#[derive(Clone, Debug, Default)]
pub struct Ahead {
    ways: Vec<Way>,
    next: usize,
}

impl Ahead {
    /// Keeps other ways.
    pub(super) fn replace(&mut self, ways: impl Iterator<Item = Way>) {
        self.ways.clear();
        self.ways.extend(ways);
        self.next = 0;
    }

    /// The way to what is asked for next.
    #[inline]
    pub fn take(&mut self) -> Option<Way> {
        let way = *self.ways.get(self.next)?;
        self.next += 1;
        Some(way)
    }
}

impl<P: Pointer> Tree<P> {
    /// As [`Tree::lookup`], pointing the finger at what it finds.
    #[inline]
    pub fn lookup_with(&self, key: &[u8], finger: &mut Finger) -> Lookup<'_> {
        if let Some(way) = finger.ahead.take()
            && let Some((leaf, index)) = self.end_of(&way, key)
        {
            (finger.way, finger.index) = (way.children, way.index);
            let stamp = leaf.stamp.max(self.stamp_floor);
            return Lookup { row: Some(leaf.row(index)), stamp, flagged: leaf.flags >> index & 1 != 0 };
        }
        let Some(leaf) = self.point(key, finger) else {
            return Lookup { row: None, stamp: self.stamp_floor, flagged: false };
        };
        let stamp = leaf.stamp.max(self.stamp_floor);
        match leaf.slots.search(key) {
            (index, true) => {
                finger.index = index as u8;
                Lookup { row: Some(leaf.row(index)), stamp, flagged: leaf.flags >> index & 1 != 0 }
            }
            _ => Lookup { row: None, stamp, flagged: false },
        }
    }

    /// As [`Tree::get`], trying first the way that was noted when the row was fetched ahead.
    #[inline]
    pub fn get_by(&self, key: &[u8], way: Option<Way>) -> Option<&Row> {
        if let Some(way) = way
            && let Some((leaf, index)) = self.end_of(&way, key)
        {
            return Some(leaf.row(index));
        }
        self.get(key)
    }

    /// The leaf to which a way leads and the place in it, if the key is there.
    #[inline]
    fn end_of(&self, way: &Way, key: &[u8]) -> Option<(&Leaf, usize)> {
        let leaf = self.follow(&way.children)?;
        let index = usize::from(way.index);
        leaf.slots.is_at(index, key).then_some((leaf, index))
    }

    /// The place of `key` in the leaf the finger points at, if it is the finger's or the next one.
    #[inline]
    fn near(&self, key: &[u8], finger: &Finger) -> Option<usize> {
        let leaf = self.follow(&finger.way)?;
        let at = usize::from(finger.index);
        (at..at + 2).find(|index| leaf.slots.is_at(*index, key))
    }

    /// The leaf to which child numbers lead.
    #[inline]
    fn follow(&self, children: &[u8; HEIGHT_MAX]) -> Option<&Leaf> {
        let mut node = self.root.as_ref()?;
        for at in children.get(..self.height as usize)? {
            let Node::Inner(inner) = node else { return None };
            node = inner.children.get(usize::from(*at))?.as_ref()?;
        }
        match node {
            Node::Leaf(leaf) => Some(leaf),
            Node::Inner(_) => None,
        }
    }

    /// As [`Tree::update`], trying the finger first.
    pub fn update_with<R>(
        &mut self,
        key: &[u8],
        stamp: u64,
        finger: &mut Finger,
        change: impl FnOnce(&mut Row) -> R,
    ) -> Option<R> {
        if self.height as usize > HEIGHT_MAX {
            return self.update(key, stamp, change);
        }
        let index = match self.near(key, finger) {
            Some(index) => index,
            None => match self.aim(key, finger)?.slots.search(key) {
                (index, true) => index,
                _ => return None,
            },
        };
        let leaf = self.pointed_mut(finger, 0)?;
        leaf.stamp = leaf.stamp.max(stamp);
        let row = leaf.rows[index].as_mut().expect("slots below len hold rows");
        let before = row.len();
        let result = change(row);
        let after = row.len();
        finger.index = index as u8;
        self.payload_bytes = self.payload_bytes.saturating_sub(before as u64) + after as u64;
        Some(result)
    }

    /// As [`Tree::insert_new`], trying the finger first.
    pub fn insert_new_with(
        &mut self,
        key: &[u8],
        row: Row,
        stamp: u64,
        finger: &mut Finger,
    ) -> Result<(), Row> {
        if self.height as usize > HEIGHT_MAX {
            return self.insert_new(key, row, stamp);
        }
        match self.aim(key, finger) {
            Some(leaf) if leaf.len() < CAPACITY => {
                // What was put last is mostly what this one follows.
                let last = usize::from(finger.index);
                let (index, found) = match leaf.slots.is_next(last, key) {
                    true => (last + 1, false),
                    false => leaf.slots.search(key),
                };
                if found {
                    return Err(row);
                }
                self.len += 1;
                self.payload_bytes += entry_bytes(key, row.len() as u64);
                let leaf = self.pointed_mut(finger, 1).expect("aimed at");
                leaf.stamp = leaf.stamp.max(stamp);
                leaf.insert(index, Key::new(key), row);
                finger.index = index as u8;
                Ok(())
            }
            Some(leaf) if leaf.slots.is_next(usize::from(finger.index), key) => {
                self.put_new(key, row, stamp, How::Behind)
            }
            _ => self.insert_new(key, row, stamp),
        }
    }

    /// The leaf of `key`, by the finger if it points there; else the finger is pointed at it.
    fn aim(&self, key: &[u8], finger: &mut Finger) -> Option<&Leaf> {
        match self.pointed(key, finger) {
            Some(leaf) => Some(leaf),
            None => self.point(key, finger),
        }
    }

    /// The leaf the finger points at, if it is the one of `key`.
    fn pointed(&self, key: &[u8], finger: &Finger) -> Option<&Leaf> {
        let mut node = self.root.as_ref()?;
        // No key of the leaf's own range reaches this.
        let mut fence: Option<&[u8]> = None;
        for at in finger.way.get(..self.height as usize)? {
            let Node::Inner(inner) = node else { return None };
            let at = usize::from(*at);
            if at + 1 < inner.len() {
                fence = Some(inner.separators.key(at));
            } else if at >= inner.len() {
                return None;
            }
            node = inner.child(at);
        }
        let Node::Leaf(leaf) = node else { return None };
        leaf.slots.surround(key, fence).then_some(leaf)
    }

    /// Searches down to the leaf of `key`, noting the way.
    #[inline]
    fn point(&self, key: &[u8], finger: &mut Finger) -> Option<&Leaf> {
        let mut node = self.root.as_ref()?;
        let mut depth = 0;
        loop {
            match node {
                Node::Inner(inner) => {
                    let index = inner.separators.upper(key);
                    if let Some(at) = finger.way.get_mut(depth) {
                        *at = index as u8;
                    }
                    depth += 1;
                    node = inner.child(index);
                }
                Node::Leaf(leaf) => return Some(leaf),
            }
        }
    }

    /// Follows a way that was just checked, counting entries that come to the leaf.
    fn pointed_mut(&mut self, finger: &Finger, added: u64) -> Option<&mut Leaf> {
        let mut node = self.root.as_mut()?;
        for at in finger.way.get(..self.height as usize)? {
            let Node::Inner(inner) = node else { return None };
            let inner = P::to_mut(inner);
            inner.counts[usize::from(*at)] += added;
            node = inner.child_mut(usize::from(*at));
        }
        match node {
            Node::Leaf(leaf) => Some(P::to_mut(leaf)),
            Node::Inner(_) => None,
        }
    }
}
