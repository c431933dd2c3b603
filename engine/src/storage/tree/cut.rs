//! Cutting a tree at a key and joining two trees end to end, in O(height) node visits.
//!
//! A cut follows the path to the key. At each level the node's children left of the path go to
//! the left tree, those right of it to the right tree, and the two halves of the child on the
//! path join them at the edge. Edge nodes may come out thin, so one more walk down each edge
//! levels them with their neighbours; after that both trees are as good as any.
//!
//! Joining puts the lower tree's root beside the nodes of its own height at the edge of the
//! higher tree; an overflow splits upwards as in an insert, and the edge is levelled again.

use super::node::{Inner, Leaf, Node};
use super::slots::{Key, separator};
use super::{Pointer, Tree};

/// A side of a tree whose nodes may be thin.
#[derive(Clone, Copy)]
pub(super) enum Edge {
    Left,
    Right,
}

impl<P: Pointer> Tree<P> {
    /// Cuts the tree: entries at or above `key` are returned, those below stay.
    pub fn split_off(&mut self, key: &[u8]) -> Tree<P> {
        let Some(root) = self.root.take() else {
            return Tree { stamp_floor: self.stamp_floor, ..Tree::default() };
        };
        let before = (self.len, self.payload_bytes, self.node_bytes);
        let mut floor = self.stamp_floor;
        let (left, right) = cut(root, key, &mut floor);
        let mut right = Tree { root: right, height: self.height, stamp_floor: floor, ..Tree::default() };
        self.root = left;
        self.stamp_floor = floor;
        right.len = right.root.as_ref().map_or(0, Node::count);
        self.len = before.0 - right.len;
        let share = |total: u64, part: u64| {
            (u128::from(total) * u128::from(part) / u128::from(before.0.max(1))) as u64
        };
        right.payload_bytes = share(before.1, right.len);
        right.node_bytes = share(before.2, right.len);
        self.payload_bytes = before.1 - right.payload_bytes;
        self.node_bytes = before.2 - right.node_bytes;
        self.mend(Edge::Right);
        right.mend(Edge::Left);
        right
    }

    /// Appends a tree whose keys are all greater.
    ///
    /// # Panics
    /// If they are not: two partitions would own one key.
    pub fn append(&mut self, mut right: Tree<P>) {
        self.stamp_floor = self.stamp_floor.max(right.stamp_floor);
        if right.is_empty() {
            return;
        }
        if self.is_empty() {
            right.stamp_floor = self.stamp_floor.max(self.newest_stamp_of_empty());
            *self = right;
            return;
        }
        let (last, _) = self.last().expect("not empty");
        let (first, _) = right.first().expect("not empty");
        assert!(last < first, "the appended tree must lie to the right");
        let between = Key::new(separator(last, first));
        let left_root = self.root.take().expect("not empty");
        let right_root = right.root.take().expect("not empty");
        let left_height = self.height;
        let (left_len, right_len) = (self.len, right.len);
        self.len += right.len;
        self.payload_bytes += right.payload_bytes;
        self.node_bytes += right.node_bytes;
        if left_height == right.height {
            let mut root = Inner::over(left_root, left_len);
            root.insert_after(1, between, right_root, right_len);
            root.level(1);
            root.level(0);
            self.root = Some(Node::Inner(P::new(root)));
            self.height += 1;
            self.node_bytes += size_of::<Inner<P>>() as u64;
        } else if left_height > right.height {
            self.root = Some(left_root);
            let down = left_height - right.height - 1;
            let root = self.root.as_mut().expect("set above");
            if let Some((between, node)) = graft_right(root, down, between, right_root, right_len) {
                self.grow(between, node);
            }
            self.mend(Edge::Right);
        } else {
            let down = right.height - left_height - 1;
            self.height = right.height;
            self.root = Some(right_root);
            let root = self.root.as_mut().expect("set above");
            if let Some((between, node)) = graft_left(root, down, between, left_root, left_len) {
                self.grow(between, node);
            }
            self.mend(Edge::Left);
        }
        self.collapse();
    }

    /// The stamp of the last removal from a tree that has become empty.
    fn newest_stamp_of_empty(&self) -> u64 {
        match &self.root {
            Some(Node::Leaf(leaf)) => leaf.stamp,
            _ => 0,
        }
    }

    /// Levels the thin nodes along one edge, and the root.
    pub(super) fn mend(&mut self, edge: Edge) {
        if self.root.is_none() {
            self.height = 0;
            return;
        }
        loop {
            self.collapse();
            let Some(root) = &mut self.root else { return };
            mend_edge(root, edge);
            match root {
                Node::Inner(inner) if inner.len() == 1 => {}
                _ => return,
            }
        }
    }
}

fn mend_edge<P: Pointer>(node: &mut Node<P>, edge: Edge) {
    let Node::Inner(inner) = node else { return };
    let inner = P::to_mut(inner);
    let at_edge = |inner: &Inner<P>| match edge {
        Edge::Left => 0,
        Edge::Right => inner.len() - 1,
    };
    inner.level(at_edge(inner));
    let index = at_edge(inner);
    mend_edge(inner.child_mut(index), edge);
}

type Halves<P> = (Option<Node<P>>, Option<Node<P>>);

/// Cuts one node; either half may be nothing. A leaf that stays whole leaves its stamp in
/// `floor`, because the other side's readers of absent keys depend on it too.
fn cut<P: Pointer>(node: Node<P>, key: &[u8], floor: &mut u64) -> Halves<P> {
    match node {
        Node::Leaf(mut leaf) => {
            let (index, _) = leaf.slots.search(key);
            if index == 0 || index == leaf.len() {
                *floor = (*floor).max(leaf.stamp);
            }
            if index == leaf.len() {
                return (Some(Node::Leaf(leaf)), None);
            }
            if index == 0 {
                return (None, Some(Node::Leaf(leaf)));
            }
            let right: Leaf = P::to_mut(&mut leaf).split_at(index);
            (Some(Node::Leaf(leaf)), Some(Node::Leaf(P::new(right))))
        }
        Node::Inner(inner) => {
            let mut inner = P::take(inner);
            let index = inner.separators.upper(key);
            let after = (index + 1 < inner.len()).then(|| inner.split_at(index + 1));
            let (before, mut path) = if index > 0 {
                let (separator, path) = inner.split_at(index);
                (Some((inner, separator)), path)
            } else {
                (None, inner)
            };
            let child = path.children[0].take().expect("the child on the path");
            let (left, right) = cut(child, key, floor);
            let left = match (before, left) {
                (Some((mut inner, separator)), Some(child)) => {
                    let count = child.count();
                    inner.insert_after(inner.len(), separator, child, count);
                    Some(inner)
                }
                (Some((inner, _)), None) => Some(inner),
                (None, Some(child)) => {
                    let count = child.count();
                    Some(Inner::over(child, count))
                }
                (None, None) => None,
            };
            let right = match (right, after) {
                (Some(child), Some((separator, mut inner))) => {
                    let count = child.count();
                    inner.insert_first(separator, child, count);
                    Some(inner)
                }
                (None, Some((_, inner))) => Some(inner),
                (Some(child), None) => {
                    let count = child.count();
                    Some(Inner::over(child, count))
                }
                (None, None) => None,
            };
            let node = |inner| Node::Inner(P::new(inner));
            (left.map(node), right.map(node))
        }
    }
}

/// Hangs `node` in at the right edge, `down` levels below this one.
fn graft_right<P: Pointer>(
    at: &mut Node<P>,
    down: u32,
    separator: Key,
    node: Node<P>,
    count: u64,
) -> Option<(Key, Node<P>)> {
    let Node::Inner(inner) = at else { unreachable!("the higher tree has inner nodes here") };
    let inner = P::to_mut(inner);
    let last = inner.len() - 1;
    if down == 0 {
        return inner.adopt(last + 1, separator, node, count);
    }
    let split = graft_right(inner.child_mut(last), down - 1, separator, node, count);
    inner.counts[last] = inner.child(last).count();
    let (between, right) = split?;
    let right_count = right.count();
    inner.adopt(last + 1, between, right, right_count)
}

/// Hangs `node` in at the left edge, `down` levels below this one.
fn graft_left<P: Pointer>(
    at: &mut Node<P>,
    down: u32,
    separator: Key,
    node: Node<P>,
    count: u64,
) -> Option<(Key, Node<P>)> {
    let Node::Inner(inner) = at else { unreachable!("the higher tree has inner nodes here") };
    let inner = P::to_mut(inner);
    if down == 0 {
        let split = inner.is_full().then(|| inner.split_at(inner.len() / 2));
        inner.insert_first(separator, node, count);
        return split.map(|(between, right)| (between, Node::Inner(P::new(right))));
    }
    let split = graft_left(inner.child_mut(0), down - 1, separator, node, count);
    inner.counts[0] = inner.child(0).count();
    let (between, right) = split?;
    let right_count = right.count();
    inner.adopt(1, between, right, right_count)
}
