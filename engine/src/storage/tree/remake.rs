//! Making a tree's memory again, on the thread that does it.
//!
//! Memory lies on the node of the thread that asked for it and touched it first. A partition that
//! has got a home on another node takes its memory along by this: leaf after leaf, with its rows
//! and long keys, is allocated anew by the caller, filled with what it held, and the old one is
//! given back. Nothing else changes: neither keys, rows and stamps, nor the way to them.
//!
//! Invariant: of a tree that nobody changes meanwhile, one walk from the beginning to the end, in
//! as many pieces as the caller likes, makes each node, row and key again exactly once. Nodes that
//! come in between are made by whoever brings them.

use super::node::{FANOUT, Inner, Leaf, Node};
use super::slots::Slots;
use super::{Exclusive, Tree};
use crate::storage::KeyBuf;

/// How a piece of a walk ended.
enum Walked {
    /// With the last leaf below the node.
    Through,
    /// The caller wants no more, and the next leaf is not below the node.
    Stopped,
    /// The caller wants no more; the next leaf begins with this key, or above it.
    Before(KeyBuf),
}

impl Tree<Exclusive> {
    /// Makes leaves again, from that of `from` on, and the inner nodes above them; at least one
    /// leaf, and then as long as `go_on` says so, which is told the entries and bytes of each.
    /// Answers where to go on; `None`: the last leaf was made.
    pub fn remake(
        &mut self,
        from: Option<&[u8]>,
        go_on: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Option<KeyBuf> {
        match remake(self.root.as_mut()?, from, go_on) {
            Walked::Through | Walked::Stopped => None,
            Walked::Before(key) => Some(key),
        }
    }

    /// Calls `visit` with the address of every allocation of the tree: nodes, rows and long keys.
    /// For whoever wants to know where its memory lies.
    pub fn allocations(&self, visit: &mut dyn FnMut(*const u8)) {
        if let Some(root) = &self.root {
            allocations(root, visit);
        }
    }
}

fn remake(
    node: &mut Node<Exclusive>,
    from: Option<&[u8]>,
    go_on: &mut dyn FnMut(usize, usize) -> bool,
) -> Walked {
    let inner = match node {
        Node::Leaf(leaf) => {
            // The clone asks for a row's memory as long as the old row has its own.
            let made = Box::new(Leaf::clone(leaf));
            *leaf = made;
            let rows: usize = leaf.rows.iter().flatten().map(|row| row.len()).sum();
            return match go_on(leaf.len(), size_of::<Leaf>() + rows) {
                true => Walked::Through,
                false => Walked::Stopped,
            };
        }
        Node::Inner(inner) => inner,
    };
    let first = from.map_or(0, |key| inner.separators.upper(key));
    if first == 0 {
        // Its first leaf comes: it was not made before.
        let none =
            Inner { separators: Slots::new(), children: [const { None }; FANOUT], counts: [0; FANOUT] };
        let mut again = std::mem::replace(&mut **inner, none);
        again.separators = again.separators.clone();
        let made = Box::new(again);
        *inner = made;
    }
    let mut from = from;
    for index in first..inner.len() {
        match remake(inner.child_mut(index), from.take(), go_on) {
            Walked::Through => {}
            Walked::Stopped if index + 1 < inner.len() => {
                return Walked::Before(KeyBuf::from_slice(inner.separators.key(index)));
            }
            stopped => return stopped,
        }
    }
    Walked::Through
}

fn allocations(node: &Node<Exclusive>, visit: &mut dyn FnMut(*const u8)) {
    match node {
        Node::Leaf(leaf) => {
            visit((&raw const **leaf).cast());
            leaf.slots.boxed().for_each(|key| visit(key.as_ptr()));
            // A row of no bytes has no memory.
            leaf.rows.iter().flatten().filter(|row| !row.is_empty()).for_each(|row| visit(row.as_ptr()));
        }
        Node::Inner(inner) => {
            visit((&raw const **inner).cast());
            inner.separators.boxed().for_each(|key| visit(key.as_ptr()));
            inner.children[..inner.len()].iter().flatten().for_each(|child| allocations(child, visit));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn contents(tree: &Tree) -> BTreeMap<Vec<u8>, Vec<u8>> {
        tree.cursor(std::ops::Bound::Unbounded).map(|(key, row)| (key.to_vec(), row.to_vec())).collect()
    }

    proptest! {
        #[test]
        fn a_tree_is_made_again_in_pieces_and_stays_what_it_was(
            // Some keys are too long for a node.
            entries in btree_map(vec(0u8..4, 1..40), vec(any::<u8>(), 0..9), 0..1_500),
            pieces in vec(1usize..60, 1..8),
            writes in vec((vec(0u8..4, 1..40), any::<bool>()), 0..40),
        ) {
            let mut tree: Tree = Tree::new();
            let mut expected = entries.clone();
            for (stamp, (key, row)) in entries.iter().enumerate() {
                tree.insert(key, row.clone().into(), stamp as u64);
            }
            let (bytes, height) = (tree.bytes(), tree.height());
            let mut pieces = pieces.into_iter().cycle();
            // A walk that nobody disturbs sees every entry once.
            let (mut from, mut seen, mut asked): (Option<KeyBuf>, usize, usize) = (None, 0, 0);
            loop {
                let mut left = pieces.next().unwrap_or(1);
                let mut go_on = |entries: usize, bytes: usize| {
                    assert!(bytes >= size_of::<Leaf>());
                    (seen, left) = (seen + entries, left - 1);
                    left > 0
                };
                from = tree.remake(from.as_deref(), &mut go_on);
                asked += 1;
                prop_assert!(asked <= 1_500, "a walk comes to its end");
                if from.is_none() {
                    break;
                }
            }
            prop_assert_eq!(seen, entries.len());
            prop_assert_eq!((tree.bytes(), tree.height()), (bytes, height));
            prop_assert_eq!(&contents(&tree), &expected);
            for (stamp, key) in entries.keys().enumerate() {
                prop_assert!(tree.lookup(key).stamp >= stamp as u64, "stamps stay");
            }
            // And one in the middle of changes harms nothing.
            let mut writes = writes.into_iter();
            let mut from: Option<KeyBuf> = None;
            loop {
                from = tree.remake(from.as_deref(), &mut |_, _| false);
                if let Some((key, put)) = writes.next() {
                    match put {
                        true => {
                            tree.insert(&key, Box::new([7]), 2_000);
                            expected.insert(key, vec![7]);
                        }
                        false => {
                            tree.remove(&key, 2_000);
                            expected.remove(&key);
                        }
                    }
                }
                if from.is_none() {
                    break;
                }
            }
            prop_assert_eq!(&contents(&tree), &expected);
        }
    }

    #[test]
    fn every_allocation_is_another_one() {
        let mut tree: Tree = Tree::new();
        for number in 0..5_000u32 {
            let mut key = vec![b'k'; 30];
            key.extend(number.to_be_bytes());
            tree.insert(&key, Box::new([1; 16]), 1);
        }
        let addresses = |tree: &Tree| {
            let mut found = Vec::new();
            tree.allocations(&mut |address| found.push(address));
            found
        };
        let before = addresses(&tree);
        assert_eq!(tree.remake(None, &mut |_, _| true), None);
        let after = addresses(&tree);
        assert_eq!(before.len(), after.len());
        // What is made again has its memory before the old one is given back.
        assert_ne!(before[0], after[0], "the root is another allocation");
        assert!(before.len() > 10_000, "nodes, rows and keys are named: {}", before.len());
    }
}
