//! A tree whose nodes change how they are held: a partition's tree becomes a reference table's
//! first version, and back. Nodes move, entries are not touched: O(nodes).

use super::node::{FANOUT, Inner, Node};
use super::slots::Slots;
use super::{Pointer, Tree};

impl<P: Pointer> Tree<P> {
    /// The same tree, held otherwise. Nodes that others share are copied.
    pub fn held_by<Q: Pointer>(self) -> Tree<Q> {
        Tree {
            root: self.root.map(held_by),
            height: self.height,
            len: self.len,
            payload_bytes: self.payload_bytes,
            node_bytes: self.node_bytes,
            stamp_floor: self.stamp_floor,
        }
    }
}

fn held_by<P: Pointer, Q: Pointer>(node: Node<P>) -> Node<Q> {
    match node {
        Node::Leaf(leaf) => Node::Leaf(Q::new(P::take(leaf))),
        Node::Inner(inner) => {
            let mut inner = P::take(inner);
            let mut children = [const { None }; FANOUT];
            for (to, from) in children.iter_mut().zip(&mut inner.children) {
                *to = from.take().map(held_by);
            }
            let separators = std::mem::replace(&mut inner.separators, Slots::new());
            Node::Inner(Q::new(Inner { separators, children, counts: inner.counts }))
        }
    }
}
