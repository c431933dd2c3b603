//! Fetching rows ahead of their use.
//!
//! A row under a random key lies several dependent loads away: on each level the heads of a
//! node, then its place of the child; at the end the row. One key after the other waits for
//! each of them. Whoever knows several keys beforehand goes down with all of them together, and
//! asks at each step for what all of them need next, which the memory serves side by side
//! (group prefetching: Chen, Ailamaki, Gibbons and Mowry, "Improving Hash Join Performance
//! through Prefetching", 2004). Nothing is promised: the keys may be other ones when the time
//! comes. A scan knows its rows beforehand, too, and the leaf that comes after this one.

use smallvec::SmallVec;

use super::finger::{Ahead, Way};
use super::node::{Leaf, Node};
use super::slots::Slots;
use super::{Pointer, Tree};
use crate::storage::row::Row;

/// Keys that go down together: about as many lines as a core has under way.
pub const AHEAD_MAX: usize = 16;

/// Bytes of a row that are fetched; most rows are shorter.
const ROW_BYTES_MAX: usize = 384;
const LINE_BYTES: usize = 64;

/// One key on its way down.
struct Descent<'t, P: Pointer> {
    node: &'t Node<P>,
    key: &'t [u8],
    /// The place in the node that was found last.
    at: usize,
    way: Way,
}

/// Asks the memory for the rows under keys of these trees, [`AHEAD_MAX`] of them or so.
pub fn fetch_rows<'t, P: Pointer>(keys: impl Iterator<Item = (&'t Tree<P>, &'t [u8])>) {
    fetch(keys, &mut Descents::new());
}

/// As [`fetch_rows`], keeping the ways to the rows for who asks for them in this order.
pub fn fetch_rows_noted<'t, P: Pointer>(
    keys: impl Iterator<Item = (&'t Tree<P>, &'t [u8])>,
    ahead: &mut Ahead,
) {
    let mut descents = Descents::new();
    fetch(keys, &mut descents);
    ahead.replace(descents.iter().map(|descent| descent.way));
}

type Descents<'t, P> = SmallVec<[Descent<'t, P>; AHEAD_MAX]>;

/// Goes down with all keys together; `descents`, which is empty, has their ends then. There are none
/// in an empty tree.
fn fetch<'t, P: Pointer>(
    keys: impl Iterator<Item = (&'t Tree<P>, &'t [u8])>,
    descents: &mut Descents<'t, P>,
) {
    let begin = |(tree, key): (&'t Tree<P>, &'t [u8])| {
        Some(Descent { node: tree.root.as_ref()?, key, at: 0, way: Way::default() })
    };
    descents.extend(keys.filter_map(begin));
    let mut levels = true;
    while std::mem::take(&mut levels) {
        for descent in descents.iter_mut() {
            if let Node::Inner(inner) = descent.node {
                descent.at = inner.separators.upper_at_once(descent.key);
                descent.way.step(descent.at);
                fetch_one(&inner.children[descent.at]);
                levels = true;
            }
        }
        for descent in descents.iter_mut() {
            if let Node::Inner(inner) = descent.node {
                descent.node = inner.child(descent.at);
                descent.node.fetch_heads();
            }
        }
    }
    for descent in descents.iter_mut() {
        let Node::Leaf(leaf) = descent.node else { continue };
        let (at, place) = leaf.slots.guess(descent.key);
        fetch_one(place);
        fetch_one(&leaf.rows[at]);
        descent.at = at;
    }
    for descent in descents.iter_mut() {
        let Node::Leaf(leaf) = descent.node else { continue };
        let (at, found) = match leaf.slots.is_at(descent.at, descent.key) {
            true => (descent.at, true),
            false => leaf.slots.search(descent.key),
        };
        descent.way.index = if found { at as u8 } else { Way::NOWHERE };
        if found {
            fetch_row(leaf.row(at));
        }
    }
}

impl<P: Pointer> Tree<P> {
    /// Looks up some keys, each with a number of the caller's, for whose rows the memory is asked
    /// together: visits the rows in the order of the keys. Answers a stamp as [`Tree::scan`] does.
    pub fn lookup_each(&self, keys: &[(usize, &[u8])], visit: &mut dyn FnMut(usize, Option<&[u8]>)) -> u64 {
        let mut stamp = self.stamp_floor;
        let mut descents = Descents::new();
        for keys in keys.chunks(AHEAD_MAX) {
            descents.clear();
            fetch(keys.iter().map(|(_, key)| (self, *key)), &mut descents);
            for (place, (number, _)) in keys.iter().enumerate() {
                let row = match descents.get(place) {
                    Some(Descent { node: Node::Leaf(leaf), way, .. }) => {
                        stamp = stamp.max(leaf.stamp);
                        leaf.rows.get(usize::from(way.index)).and_then(Option::as_deref)
                    }
                    _ => None,
                };
                visit(*number, row);
            }
        }
        stamp
    }
}

/// Rows of a scan that are on their way before the first of them is looked at.
const SCANNED_AHEAD: usize = 8;

impl Leaf {
    /// The entries from one place to another, each row asked for some entries before its turn:
    /// rows lie anywhere, and a walk that waits for one after the other takes several times as
    /// long.
    #[inline]
    pub(super) fn entries(&self, from: usize, to: usize) -> impl Iterator<Item = (&[u8], &Row)> {
        (from..to.min(from + SCANNED_AHEAD)).for_each(|index| fetch_row(self.row(index)));
        (from..to).map(move |index| {
            if index + SCANNED_AHEAD < to {
                fetch_row(self.row(index + SCANNED_AHEAD));
            }
            (self.slots.key(index), self.row(index))
        })
    }
}

#[inline]
fn fetch_row(row: &Row) {
    fetch_bytes(row.as_ptr(), row.len().min(ROW_BYTES_MAX));
}

impl<P: Pointer> Node<P> {
    /// Asks for all of a leaf, for a scan that comes to it next.
    #[inline]
    pub(super) fn fetch_leaf(&self) {
        if let Node::Leaf(leaf) = self {
            let leaf: *const Leaf = &raw const **leaf;
            fetch_lines::<{ size_of::<Leaf>().div_ceil(LINE_BYTES) }>(leaf.cast());
        }
    }

    /// Asks for what a search in the node reads first.
    fn fetch_heads(&self) {
        match self {
            Node::Leaf(leaf) => {
                const SEARCHED: usize = std::mem::offset_of!(Leaf, slots) + Slots::SEARCHED_BYTES;
                let leaf: *const Leaf = &raw const **leaf;
                fetch_lines::<{ SEARCHED.div_ceil(LINE_BYTES) }>(leaf.cast());
            }
            Node::Inner(inner) => {
                const LINES: usize = Slots::SEARCHED_BYTES.div_ceil(LINE_BYTES);
                fetch_lines::<LINES>((&raw const **inner).cast());
            }
        }
    }
}

/// Asks for what is no larger than a cache line.
#[inline]
fn fetch_one<T>(value: &T) {
    const { assert!(size_of::<T>() <= LINE_BYTES) };
    fetch_line(std::ptr::from_ref(value).cast());
}

/// Asks the memory for the cache lines of `bytes` bytes at `at`.
#[inline]
pub(crate) fn fetch_bytes(at: *const u8, bytes: usize) {
    for line in 0..bytes.div_ceil(LINE_BYTES) {
        fetch_line(at.wrapping_add(line * LINE_BYTES));
    }
}

/// Asks the memory for so many cache lines.
#[inline]
fn fetch_lines<const LINES: usize>(at: *const u8) {
    for line in 0..LINES {
        fetch_line(at.wrapping_add(line * LINE_BYTES));
    }
}

#[inline]
fn fetch_line(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint: it reads nothing into the program and faults at no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    let _ = at;
}
