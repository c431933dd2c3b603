//! A tree of entries that come in ascending order.
//!
//! Recovery makes all its trees of sorted rows. Inserted one by one, each would be searched for
//! and arranged in its node. Here a leaf takes the entries as they come and is arranged once,
//! when it is full; the nodes above grow at their right edge, one level at a time. The edge may
//! come out thin and is levelled at the end, as after a cut.

use super::cut::Edge;
use super::node::{Inner, Leaf, Node};
use super::slots::{CAPACITY, Key, separator};
use super::{Exclusive, Pointer, Tree, entry_bytes};
use crate::storage::row::Row;

/// A tree that grows at its end only.
pub struct Builder<P: Pointer = Exclusive> {
    /// What is finished; its root is set at the end.
    tree: Tree<P>,
    leaf: Leaf,
    /// Tells `leaf` from the leaf before it.
    low: Option<Key>,
    /// The open node of each level above the leaves, the lowest first.
    levels: Vec<Option<Open<P>>>,
}

/// A node that takes more children.
struct Open<P: Pointer> {
    inner: Inner<P>,
    /// Tells it from the node before it; the first of a level has none.
    low: Option<Key>,
}

impl<P: Pointer> Default for Builder<P> {
    fn default() -> Self {
        Builder { tree: Tree::new(), leaf: Leaf::new(), low: None, levels: Vec::new() }
    }
}

impl<P: Pointer> Builder<P> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry; the row comes back if the key is not above all before it.
    pub fn push(&mut self, key: &[u8], row: Row, stamp: u64) -> Result<(), Row> {
        let len = self.leaf.len();
        if let Some(last) = len.checked_sub(1) {
            let last = self.leaf.slots.key(last);
            if key <= last {
                return Err(row);
            }
            if len == CAPACITY {
                let between = Key::new(separator(last, key));
                self.close_leaf();
                self.low = Some(between);
            }
        }
        self.tree.len += 1;
        self.tree.payload_bytes += entry_bytes(key, row.len() as u64);
        self.leaf.push(Key::new(key), row, stamp);
        Ok(())
    }

    /// The tree of all that was added.
    pub fn finish(mut self) -> Tree<P> {
        if self.leaf.len() == 0 {
            return self.tree;
        }
        self.close_leaf();
        let mut level = 0;
        while level + 1 < self.levels.len() {
            if let Some(open) = self.levels[level].take() {
                self.hang(level + 1, open.low, Node::Inner(P::new(open.inner)));
            }
            level += 1;
        }
        let mut tree = self.tree;
        tree.height = self.levels.len() as u32;
        tree.root = self.levels.pop().flatten().map(|open| Node::Inner(P::new(open.inner)));
        tree.mend(Edge::Right);
        tree
    }

    fn close_leaf(&mut self) {
        let mut leaf = std::mem::replace(&mut self.leaf, Leaf::new());
        leaf.slots.arrange();
        self.tree.node_bytes += size_of::<Leaf>() as u64;
        let low = self.low.take();
        self.hang(0, low, Node::Leaf(P::new(leaf)));
    }

    /// Puts a finished node at the end of a level; `low` tells it from the one before it.
    fn hang(&mut self, level: usize, low: Option<Key>, node: Node<P>) {
        let count = node.count();
        if self.levels.len() == level {
            self.levels.push(None);
        }
        match (&mut self.levels[level], low) {
            (Some(open), Some(low)) if !open.inner.is_full() => {
                open.inner.insert_after(open.inner.len(), low, node, count);
            }
            (open, low) => {
                self.tree.node_bytes += size_of::<Inner<P>>() as u64;
                let full = open.replace(Open { inner: Inner::over(node, count), low });
                if let Some(full) = full {
                    self.hang(level + 1, full.low, Node::Inner(P::new(full.inner)));
                }
            }
        }
    }
}
