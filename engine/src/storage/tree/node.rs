//! Nodes: leaves with rows, inner nodes with children and their entry counts.

use super::pointer::Pointer;
use super::slots::{CAPACITY, Key, Slots, insert_first};
use crate::storage::row::Row;

/// Children of an inner node.
pub(super) const FANOUT: usize = CAPACITY + 1;
/// Nodes thinner than this are levelled with a neighbour when a change passes by.
pub(super) const THIN: usize = CAPACITY / 4;

#[derive(Clone)]
#[repr(C)]
pub(super) struct Leaf {
    /// Greatest stamp of any write to this leaf.
    pub(super) stamp: u64,
    /// One bit per slot: the side tables (old versions, row locks) know this key.
    pub(super) flags: u32,
    pub(super) slots: Slots,
    pub(super) rows: [Option<Row>; CAPACITY],
}

#[derive(Clone)]
#[repr(C)]
pub(super) struct Inner<P: Pointer> {
    /// Separators: `separators.key(i)` is at most every key below child `i + 1` and above every
    /// key below child `i`.
    pub(super) separators: Slots,
    pub(super) children: [Option<Node<P>>; FANOUT],
    /// Entries below each child.
    pub(super) counts: [u64; FANOUT],
}

pub(super) enum Node<P: Pointer> {
    Leaf(P::Of<Leaf>),
    Inner(P::Of<Inner<P>>),
}

// An allocator's size class; see `CAPACITY`.
const _: () = assert!(size_of::<Leaf>() <= 1536);

impl<P: Pointer> Clone for Node<P> {
    fn clone(&self) -> Self {
        match self {
            Node::Leaf(leaf) => Node::Leaf(P::share(leaf)),
            Node::Inner(inner) => Node::Inner(P::share(inner)),
        }
    }
}

impl Leaf {
    pub(super) fn new() -> Leaf {
        Leaf { stamp: 0, flags: 0, slots: Slots::new(), rows: [const { None }; CAPACITY] }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(super) fn row(&self, index: usize) -> &Row {
        self.rows[index].as_ref().expect("slots below len hold rows")
    }

    pub(super) fn insert(&mut self, index: usize, key: Key, row: Row) {
        let len = self.len();
        self.slots.insert(index, key);
        insert_first(&mut self.rows[index..=len], Some(row));
        let low = (1u32 << index) - 1;
        self.flags = (self.flags & low) | ((self.flags & !low) << 1);
    }

    /// Adds an entry above all others; see [`Slots::push`].
    pub(super) fn push(&mut self, key: Key, row: Row, stamp: u64) {
        let len = self.len();
        self.slots.push(key);
        self.rows[len] = Some(row);
        self.stamp = self.stamp.max(stamp);
    }

    pub(super) fn remove(&mut self, index: usize) -> (Key, Row) {
        let len = self.len();
        let key = self.slots.remove(index);
        self.rows[index..len].rotate_left(1);
        let row = self.rows[len - 1].take().expect("slots below len hold rows");
        let low = (1u32 << index) - 1;
        self.flags = (self.flags & low) | ((self.flags >> 1) & !low);
        (key, row)
    }

    pub(super) fn split_at(&mut self, at: usize) -> Leaf {
        let mut right = Leaf::new();
        let len = self.len();
        right.stamp = self.stamp;
        right.slots = self.slots.split_at(at);
        for (to, from) in (at..len).enumerate() {
            right.rows[to] = self.rows[from].take();
        }
        if at < CAPACITY {
            right.flags = self.flags >> at;
            self.flags &= (1u32 << at) - 1;
        }
        right
    }

    pub(super) fn append(&mut self, right: &mut Leaf) {
        let (len, more) = (self.len(), right.len());
        self.slots.append(&mut right.slots);
        for index in 0..more {
            self.rows[len + index] = right.rows[index].take();
        }
        if len < CAPACITY {
            self.flags |= right.flags << len;
        }
        right.flags = 0;
        self.stamp = self.stamp.max(right.stamp);
    }
}

impl<P: Pointer> Inner<P> {
    /// A node over one child.
    pub(super) fn over(child: Node<P>, count: u64) -> Inner<P> {
        let mut inner =
            Inner { separators: Slots::new(), children: [const { None }; FANOUT], counts: [0; FANOUT] };
        inner.children[0] = Some(child);
        inner.counts[0] = count;
        inner
    }

    /// Number of children, at least one.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.separators.len() + 1
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() == FANOUT
    }

    #[inline]
    pub(super) fn child(&self, index: usize) -> &Node<P> {
        self.children[index].as_ref().expect("children below len are there")
    }

    #[inline]
    pub(super) fn child_mut(&mut self, index: usize) -> &mut Node<P> {
        self.children[index].as_mut().expect("children below len are there")
    }

    pub(super) fn total(&self) -> u64 {
        self.counts[..self.len()].iter().sum()
    }

    /// Puts `child` behind child `index - 1`; `separator` tells the two apart. There must be
    /// room.
    pub(super) fn insert_after(&mut self, index: usize, separator: Key, child: Node<P>, count: u64) {
        let len = self.len();
        self.separators.insert(index - 1, separator);
        insert_first(&mut self.children[index..=len], Some(child));
        insert_first(&mut self.counts[index..=len], count);
    }

    /// Puts `child` before the first child; `separator` tells the two apart.
    pub(super) fn insert_first(&mut self, separator: Key, child: Node<P>, count: u64) {
        let len = self.len();
        self.separators.insert(0, separator);
        insert_first(&mut self.children[..=len], Some(child));
        insert_first(&mut self.counts[..=len], count);
    }

    /// Keeps the first `at` children (`1 <= at < len`); returns the others and the separator
    /// between.
    pub(super) fn split_at(&mut self, at: usize) -> (Key, Inner<P>) {
        let len = self.len();
        let mut right_separators = self.separators.split_at(at - 1);
        let between = right_separators.remove(0);
        let mut right =
            Inner { separators: right_separators, children: [const { None }; FANOUT], counts: [0; FANOUT] };
        for (to, from) in (at..len).enumerate() {
            right.children[to] = self.children[from].take();
            right.counts[to] = self.counts[from];
        }
        (between, right)
    }

    pub(super) fn append(&mut self, between: Key, right: &mut Inner<P>) {
        let (len, more) = (self.len(), right.len());
        self.separators.insert(len - 1, between);
        self.separators.append(&mut right.separators);
        for index in 0..more {
            self.children[len + index] = right.children[index].take();
            self.counts[len + index] = right.counts[index];
        }
    }

    /// Levels child `index` with a neighbour if it is thin: merged if both fit in one node,
    /// else half and half. Keeps nodes filled after removals and along the edges of cuts.
    /// Returns the bytes of the node that was merged away, if one was.
    pub(super) fn level(&mut self, index: usize) -> u64 {
        if self.len() < 2 || self.child(index).width() >= THIN {
            return 0;
        }
        let left = if index + 1 < self.len() { index } else { index - 1 };
        let right_node = self.children[left + 1].take().expect("the neighbour is there");
        let between = Key::new(self.separators.key(left));
        let between_count = self.counts[left] + self.counts[left + 1];
        match self.child_mut(left).absorb(between, right_node) {
            None => {
                // The absorbed node left an empty place; the others close up.
                let len = self.len();
                self.separators.remove(left);
                self.children[left + 1..len].rotate_left(1);
                self.counts[left + 1..len].rotate_left(1);
                self.counts[left] = between_count;
                self.child(left).bytes()
            }
            Some((separator, right_node)) => {
                let right_count = right_node.count();
                self.separators.remove(left);
                self.separators.insert(left, separator);
                self.children[left + 1] = Some(right_node);
                self.counts[left] = between_count - right_count;
                self.counts[left + 1] = right_count;
                0
            }
        }
    }
}

impl<P: Pointer> Node<P> {
    /// Entries of a leaf, children of an inner node.
    #[inline]
    pub(super) fn width(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.len(),
            Node::Inner(inner) => inner.len(),
        }
    }

    /// Size of the node itself.
    fn bytes(&self) -> u64 {
        match self {
            Node::Leaf(_) => size_of::<Leaf>() as u64,
            Node::Inner(_) => size_of::<Inner<P>>() as u64,
        }
    }

    /// Entries below, from the counts one level down.
    pub(super) fn count(&self) -> u64 {
        match self {
            Node::Leaf(leaf) => leaf.len() as u64,
            Node::Inner(inner) => inner.total(),
        }
    }

    /// Takes in the neighbour to the right (same height). If both do not fit into one node,
    /// entries move so that both are half full, and the right one comes back with its new
    /// separator.
    fn absorb(&mut self, between: Key, right: Node<P>) -> Option<(Key, Node<P>)> {
        match (self, right) {
            (Node::Leaf(left), Node::Leaf(right)) => {
                let left = P::to_mut(left);
                let mut right = P::take(right);
                let total = left.len() + right.len();
                if total <= CAPACITY {
                    left.append(&mut right);
                    return None;
                }
                let half = total / 2;
                if left.len() < half {
                    let mut rest = right.split_at(half - left.len());
                    left.append(&mut right);
                    std::mem::swap(&mut rest, &mut right);
                } else {
                    let mut moved = left.split_at(half);
                    moved.append(&mut right);
                    right = moved;
                }
                // Both leaves now hold writes of either: the newer stamp is true of both.
                right.stamp = left.stamp.max(right.stamp);
                left.stamp = right.stamp;
                let separator =
                    Key::new(super::slots::separator(left.slots.key(left.len() - 1), right.slots.key(0)));
                Some((separator, Node::Leaf(P::new(right))))
            }
            (Node::Inner(left), Node::Inner(right)) => {
                let left = P::to_mut(left);
                let mut right = P::take(right);
                let total = left.len() + right.len();
                if total <= FANOUT {
                    left.append(between, &mut right);
                    return None;
                }
                let half = total / 2;
                if left.len() < half {
                    let (separator, rest) = right.split_at(half - left.len());
                    left.append(between, &mut right);
                    Some((separator, Node::Inner(P::new(rest))))
                } else {
                    let (separator, mut moved) = left.split_at(half);
                    moved.append(between, &mut right);
                    Some((separator, Node::Inner(P::new(moved))))
                }
            }
            _ => unreachable!("neighbours have the same height"),
        }
    }
}
