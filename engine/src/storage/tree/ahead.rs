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
struct Way<'t, P: Pointer> {
    node: &'t Node<P>,
    key: &'t [u8],
    /// The place in the node that was found last.
    at: usize,
}

/// Asks the memory for the rows under keys of these trees, [`AHEAD_MAX`] of them or so.
pub fn fetch_rows<'t, P: Pointer>(keys: impl Iterator<Item = (&'t Tree<P>, &'t [u8])>) {
    let mut ways: SmallVec<[Way<'t, P>; AHEAD_MAX]> =
        keys.filter_map(|(tree, key)| Some(Way { node: tree.root.as_ref()?, key, at: 0 })).collect();
    let mut levels = true;
    while std::mem::take(&mut levels) {
        for way in &mut ways {
            if let Node::Inner(inner) = way.node {
                way.at = inner.separators.upper(way.key);
                fetch(&inner.children[way.at]);
                levels = true;
            }
        }
        for way in &mut ways {
            if let Node::Inner(inner) = way.node {
                way.node = inner.child(way.at);
                way.node.fetch_heads();
            }
        }
    }
    ways.retain(|way| {
        let Node::Leaf(leaf) = way.node else { return false };
        let (at, found) = leaf.slots.search(way.key);
        way.at = at;
        if found {
            fetch(&leaf.rows[at]);
        }
        found
    });
    for way in &ways {
        if let Node::Leaf(leaf) = way.node {
            leaf.fetch_row(way.at);
        }
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
        (from..to.min(from + SCANNED_AHEAD)).for_each(|index| self.fetch_row(index));
        (from..to).map(move |index| {
            if index + SCANNED_AHEAD < to {
                self.fetch_row(index + SCANNED_AHEAD);
            }
            (self.slots.key(index), self.row(index))
        })
    }

    #[inline]
    fn fetch_row(&self, index: usize) {
        let row = self.row(index);
        fetch_bytes(row.as_ptr(), row.len().min(ROW_BYTES_MAX));
    }
}

impl<P: Pointer> Node<P> {
    /// Asks for all of a leaf, for a scan that comes to it next.
    #[inline]
    pub(super) fn fetch_leaf(&self) {
        if let Node::Leaf(leaf) = self {
            let leaf: &Leaf = leaf;
            fetch(leaf);
        }
    }

    /// Asks for what a search in the node reads first.
    fn fetch_heads(&self) {
        match self {
            Node::Leaf(leaf) => {
                let leaf: *const Leaf = &raw const **leaf;
                fetch_bytes(leaf.cast(), std::mem::offset_of!(Leaf, slots) + Slots::SEARCHED_BYTES);
            }
            Node::Inner(inner) => fetch_bytes((&raw const **inner).cast(), Slots::SEARCHED_BYTES),
        }
    }
}

#[inline]
fn fetch<T>(value: &T) {
    fetch_bytes(std::ptr::from_ref(value).cast(), size_of::<T>());
}

/// Asks the memory for the cache lines of `bytes` bytes at `at`.
#[inline]
pub(crate) fn fetch_bytes(at: *const u8, bytes: usize) {
    for offset in (0..bytes).step_by(LINE_BYTES) {
        let line = at.wrapping_add(offset);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch is a hint: it reads nothing into the program and faults at no
        // address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(line.cast());
        }
        #[cfg(any(not(target_arch = "x86_64"), miri))]
        let _ = line;
    }
}
