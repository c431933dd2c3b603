//! Walking a tree in key order, both ways.
//!
//! The fast path is internal iteration ([`Tree::scan`], [`Tree::scan_back`]): the tree calls
//! the visitor, so the position lives in machine registers. [`Cursor`] is for callers that
//! interleave several walks; a walk that must survive changes to the tree keeps its last key
//! and seeks again.

use std::ops::{Bound, ControlFlow};

use smallvec::SmallVec;

use super::node::{Inner, Leaf, Node};
use super::{Exclusive, Pointer, Tree};
use crate::storage::row::Row;

type KeyBound<'k> = Bound<&'k [u8]>;

impl<P: Pointer> Tree<P> {
    /// Visits the entries between the bounds in ascending order until the visitor breaks.
    /// Returns the newest stamp of the leaves it looked at, those of an empty range included.
    pub fn scan<F>(&self, low: KeyBound<'_>, high: KeyBound<'_>, mut visit: F) -> u64
    where
        F: FnMut(&[u8], &Row) -> ControlFlow<()>,
    {
        let mut stamp = self.stamp_floor;
        if let Some(root) = &self.root {
            let _ = ascend(root, low, high, &mut |leaf, from, to| {
                stamp = stamp.max(leaf.stamp);
                leaf.entries(from, to).try_for_each(|(key, row)| visit(key, row))
            });
        }
        stamp
    }

    /// As [`Self::scan`], in descending order.
    pub fn scan_back<F>(&self, low: KeyBound<'_>, high: KeyBound<'_>, mut visit: F) -> u64
    where
        F: FnMut(&[u8], &Row) -> ControlFlow<()>,
    {
        let mut stamp = self.stamp_floor;
        if let Some(root) = &self.root {
            let _ = descend(root, low, high, &mut |leaf, from, to| {
                stamp = stamp.max(leaf.stamp);
                for index in (from..to).rev() {
                    visit(leaf.slots.key(index), leaf.row(index))?;
                }
                ControlFlow::Continue(())
            });
        }
        stamp
    }

    /// Visits whole leaves that overlap the bounds, in ascending order: for checkpoints (which
    /// skip leaves by stamp) and validation (which wants nothing but stamps).
    pub fn scan_leaves<F>(&self, low: KeyBound<'_>, high: KeyBound<'_>, mut visit: F)
    where
        F: FnMut(LeafView<'_>) -> ControlFlow<()>,
    {
        if let Some(root) = &self.root {
            let _ = ascend(root, low, high, &mut |leaf, from, to| {
                visit(LeafView { leaf, from, to, floor: self.stamp_floor })
            });
        }
    }

    /// The newest stamp of any leaf that overlaps the bounds.
    pub fn newest_stamp(&self, low: KeyBound<'_>, high: KeyBound<'_>) -> u64 {
        let mut stamp = self.stamp_floor;
        self.scan_leaves(low, high, |leaf| {
            stamp = stamp.max(leaf.stamp());
            ControlFlow::Continue(())
        });
        stamp
    }

    /// The first entry at or above a bound.
    pub fn seek(&self, low: KeyBound<'_>) -> Option<(&[u8], &Row)> {
        self.cursor(low).next()
    }

    /// The last entry at or below a bound.
    pub fn seek_back(&self, high: KeyBound<'_>) -> Option<(&[u8], &Row)> {
        let after = match high {
            Bound::Included(key) => Bound::Excluded(key),
            Bound::Excluded(key) => Bound::Included(key),
            Bound::Unbounded => return self.last(),
        };
        self.cursor(after).prev()
    }

    /// A cursor before the first entry at or above a bound.
    pub fn cursor(&self, low: KeyBound<'_>) -> Cursor<'_, P> {
        let mut cursor = Cursor { path: SmallVec::new(), leaf: None, index: 0 };
        let Some(mut node) = self.root.as_ref() else { return cursor };
        loop {
            match node {
                Node::Inner(inner) => {
                    let index = match low {
                        Bound::Included(key) | Bound::Excluded(key) => inner.separators.upper(key),
                        Bound::Unbounded => 0,
                    };
                    cursor.path.push((inner, index));
                    node = inner.child(index);
                }
                Node::Leaf(leaf) => {
                    cursor.index = from_index(leaf, low);
                    cursor.leaf = Some(leaf);
                    return cursor;
                }
            }
        }
    }
}

impl<P: Pointer> Tree<P> {
    /// The entries between the bounds, from either end.
    pub fn range(&self, low: KeyBound<'_>, high: KeyBound<'_>) -> Range<'_, P> {
        let after = match high {
            Bound::Included(key) => Bound::Excluded(key),
            Bound::Excluded(key) => Bound::Included(key),
            Bound::Unbounded => Bound::Unbounded,
        };
        let end = match after {
            Bound::Unbounded => self.len,
            bound => self.entries_before(bound),
        };
        let left = end.saturating_sub(self.entries_before(low));
        let back =
            if left == 0 || after == Bound::Unbounded { self.cursor_at_end() } else { self.cursor(after) };
        Range { front: self.cursor(low), back, left }
    }

    /// How many entries lie before a lower bound.
    fn entries_before(&self, low: KeyBound<'_>) -> u64 {
        match low {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.rank(key),
            Bound::Excluded(key) => self.rank(key) + u64::from(self.contains(key)),
        }
    }

    /// A cursor behind the last entry.
    fn cursor_at_end(&self) -> Cursor<'_, P> {
        let mut cursor = Cursor { path: SmallVec::new(), leaf: None, index: 0 };
        let Some(mut node) = self.root.as_ref() else { return cursor };
        loop {
            match node {
                Node::Inner(inner) => {
                    cursor.path.push((inner, inner.len() - 1));
                    node = inner.child(inner.len() - 1);
                }
                Node::Leaf(leaf) => {
                    cursor.index = leaf.len();
                    cursor.leaf = Some(leaf);
                    return cursor;
                }
            }
        }
    }
}

/// The entries of a tree between two bounds.
pub struct Range<'t, P: Pointer = Exclusive> {
    front: Cursor<'t, P>,
    back: Cursor<'t, P>,
    /// Entries between the two.
    left: u64,
}

impl<'t, P: Pointer> Iterator for Range<'t, P> {
    type Item = (&'t [u8], &'t Row);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.front.next()
    }
}

impl<P: Pointer> DoubleEndedIterator for Range<'_, P> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.back.prev()
    }
}

/// One leaf, or the part of it inside the bounds of a scan.
#[derive(Clone, Copy)]
pub struct LeafView<'t> {
    leaf: &'t Leaf,
    from: usize,
    to: usize,
    floor: u64,
}

impl<'t> LeafView<'t> {
    /// Greatest stamp of any write to the leaf.
    pub fn stamp(&self) -> u64 {
        self.leaf.stamp.max(self.floor)
    }

    /// Entries inside the bounds.
    pub fn len(&self) -> usize {
        self.to - self.from
    }

    /// Whether none of its entries lies inside the bounds.
    pub fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// The entries inside the bounds, ascending.
    pub fn entries(&self) -> impl Iterator<Item = (&'t [u8], &'t Row)> + use<'t> {
        self.leaf.entries(self.from, self.to)
    }
}

/// A position between two entries of a tree.
pub struct Cursor<'t, P: Pointer = Exclusive> {
    path: SmallVec<[(&'t Inner<P>, usize); 8]>,
    leaf: Option<&'t Leaf>,
    /// Entries of the leaf before the position.
    index: usize,
}

impl<'t, P: Pointer> Cursor<'t, P> {
    /// The entry after the position; the position moves behind it.
    #[allow(clippy::should_implement_trait)] // it is one, below; this one needs no import
    pub fn next(&mut self) -> Option<(&'t [u8], &'t Row)> {
        loop {
            let leaf = self.leaf?;
            if self.index < leaf.len() {
                let index = self.index;
                self.index += 1;
                return Some((leaf.slots.key(index), leaf.row(index)));
            }
            let depth = self.path.iter().rposition(|(inner, index)| index + 1 < inner.len())?;
            self.path.truncate(depth + 1);
            let (inner, index) = &mut self.path[depth];
            *index += 1;
            let mut node = inner.child(*index);
            loop {
                match node {
                    Node::Inner(inner) => {
                        self.path.push((inner, 0));
                        node = inner.child(0);
                    }
                    Node::Leaf(leaf) => {
                        self.leaf = Some(leaf);
                        self.index = 0;
                        break;
                    }
                }
            }
        }
    }

    /// The entry before the position; the position moves before it.
    pub fn prev(&mut self) -> Option<(&'t [u8], &'t Row)> {
        loop {
            let leaf = self.leaf?;
            if self.index > 0 {
                self.index -= 1;
                return Some((leaf.slots.key(self.index), leaf.row(self.index)));
            }
            let depth = self.path.iter().rposition(|&(_, index)| index > 0)?;
            self.path.truncate(depth + 1);
            let (inner, index) = &mut self.path[depth];
            *index -= 1;
            let mut node = inner.child(*index);
            loop {
                match node {
                    Node::Inner(inner) => {
                        self.path.push((inner, inner.len() - 1));
                        node = inner.child(inner.len() - 1);
                    }
                    Node::Leaf(leaf) => {
                        self.leaf = Some(leaf);
                        self.index = leaf.len();
                        break;
                    }
                }
            }
        }
    }
}

impl<'t, P: Pointer> Iterator for Cursor<'t, P> {
    type Item = (&'t [u8], &'t Row);

    fn next(&mut self) -> Option<Self::Item> {
        Cursor::next(self)
    }
}

fn from_index(leaf: &Leaf, low: KeyBound<'_>) -> usize {
    match low {
        Bound::Unbounded => 0,
        Bound::Included(key) => leaf.slots.search(key).0,
        Bound::Excluded(key) => leaf.slots.upper(key),
    }
}

fn to_index(leaf: &Leaf, high: KeyBound<'_>) -> usize {
    match high {
        Bound::Unbounded => leaf.len(),
        Bound::Included(key) => leaf.slots.upper(key),
        Bound::Excluded(key) => leaf.slots.search(key).0,
    }
}

/// The children of `inner` that overlap the bounds.
fn children<P: Pointer>(inner: &Inner<P>, low: KeyBound<'_>, high: KeyBound<'_>) -> (usize, usize) {
    let from = match low {
        Bound::Unbounded => 0,
        Bound::Included(key) | Bound::Excluded(key) => inner.separators.upper(key),
    };
    let to = match high {
        Bound::Unbounded => inner.len() - 1,
        Bound::Included(key) | Bound::Excluded(key) => inner.separators.upper(key),
    };
    (from, to)
}

fn ascend<'t, P: Pointer, F>(
    node: &'t Node<P>,
    low: KeyBound<'_>,
    high: KeyBound<'_>,
    visit: &mut F,
) -> ControlFlow<()>
where
    F: FnMut(&'t Leaf, usize, usize) -> ControlFlow<()>,
{
    match node {
        Node::Leaf(leaf) => {
            let from = from_index(leaf, low);
            visit(leaf, from, to_index(leaf, high).max(from))
        }
        Node::Inner(inner) => {
            let (from, to) = children(inner, low, high);
            for index in from..=to {
                let low = if index == from { low } else { Bound::Unbounded };
                let high = if index == to { high } else { Bound::Unbounded };
                if from < index && index < to {
                    // It has gone on beyond a leaf: it will go on.
                    inner.child(index + 1).fetch_leaf();
                }
                ascend(inner.child(index), low, high, visit)?;
            }
            ControlFlow::Continue(())
        }
    }
}

fn descend<'t, P: Pointer, F>(
    node: &'t Node<P>,
    low: KeyBound<'_>,
    high: KeyBound<'_>,
    visit: &mut F,
) -> ControlFlow<()>
where
    F: FnMut(&'t Leaf, usize, usize) -> ControlFlow<()>,
{
    match node {
        Node::Leaf(leaf) => {
            let from = from_index(leaf, low);
            visit(leaf, from, to_index(leaf, high).max(from))
        }
        Node::Inner(inner) => {
            let (from, to) = children(inner, low, high);
            for index in (from..=to).rev() {
                let low = if index == from { low } else { Bound::Unbounded };
                let high = if index == to { high } else { Bound::Unbounded };
                descend(inner.child(index), low, high, visit)?;
            }
            ControlFlow::Continue(())
        }
    }
}
