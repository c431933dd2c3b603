//! A map by numbers whose versions share what did not change.
//!
//! ```text
//! bits 0–3 of the number   [ . . 2 . . . . . . 9 . . . . . . ]     a branch of sixteen
//!                                │             │
//! bits 4–7                  leaf 2       [ . 25 41 . … ]           25 and 41 end alike
//! ```
//!
//! A copy is one pointer. A change of a copy makes the branches on the way anew, and leaves all others to
//! both: as many as there are digits in which keys have to be told apart, few even of many thousand.

use std::sync::Arc;

use crate::id::{GroupId, SequenceId, TreeId};

const BITS: u32 = 4;
const BRANCHES: usize = 1 << BITS;

/// An id that is a number.
pub(crate) trait Number: Copy + Eq {
    fn number(self) -> u32;
}

impl Number for TreeId {
    fn number(self) -> u32 {
        self.0
    }
}

impl Number for GroupId {
    fn number(self) -> u32 {
        self.0
    }
}

impl Number for SequenceId {
    fn number(self) -> u32 {
        self.0
    }
}

#[derive(Clone, Default)]
enum Node<K, V> {
    #[default]
    Empty,
    Leaf(K, V),
    Branch(Arc<[Node<K, V>; BRANCHES]>),
}

/// See the module. A value is copied with the branch that it is in.
#[derive(Clone)]
pub(crate) struct SharedMap<K, V> {
    root: Node<K, V>,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { root: Node::Empty }
    }
}

/// Which branch of a node at this depth leads to a key.
#[inline]
fn branch(key: impl Number, depth: u32) -> usize {
    (key.number() >> (depth * BITS)) as usize % BRANCHES
}

impl<K: Number, V: Clone> SharedMap<K, V> {
    /// The value under a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        let (mut node, mut depth) = (&self.root, 0);
        loop {
            match node {
                Node::Empty => return None,
                Node::Leaf(other, value) => return (other == key).then_some(value),
                Node::Branch(branches) => node = &branches[branch(*key, depth)],
            }
            depth += 1;
        }
    }

    /// The value under a key, to be changed in this version alone.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.get(key)?;
        let (mut node, mut depth) = (&mut self.root, 0);
        loop {
            match node {
                Node::Empty => return None,
                Node::Leaf(_, value) => return Some(value),
                Node::Branch(branches) => node = &mut Arc::make_mut(branches)[branch(*key, depth)],
            }
            depth += 1;
        }
    }

    /// Puts a value under a key, in place of the one that is there.
    pub fn insert(&mut self, key: K, value: V) {
        self.root.insert(key, value, 0);
    }

    /// Takes a key away, if it is there, and answers its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let value = self.get(key)?.clone();
        self.root.remove(*key, 0);
        Some(value)
    }

    /// Whether there is a value under a key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// The value under a key, which is put there if it is not, to be changed in this version alone.
    pub fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        if !self.contains_key(&key) {
            self.insert(key, V::default());
        }
        self.get_mut(&key).expect("it is there by now")
    }

    /// The values, in no order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// All of it, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let mut left = vec![&self.root];
        std::iter::from_fn(move || {
            loop {
                match left.pop()? {
                    Node::Empty => {}
                    Node::Leaf(key, value) => return Some((*key, value)),
                    Node::Branch(branches) => left.extend(branches.iter()),
                }
            }
        })
    }
}

impl<K: Number, V: Clone> Node<K, V> {
    fn insert(&mut self, key: K, value: V, depth: u32) {
        match self {
            Node::Empty => *self = Node::Leaf(key, value),
            Node::Leaf(other, old) if *other == key => *old = value,
            Node::Leaf(..) => {
                let mut branches: [Node<K, V>; BRANCHES] = std::array::from_fn(|_| Node::Empty);
                // Two numbers that differ do so in one of their digits, at this depth or deeper.
                if let Node::Leaf(other, old) = std::mem::take(self) {
                    branches[branch(other, depth)] = Node::Leaf(other, old);
                }
                branches[branch(key, depth)].insert(key, value, depth + 1);
                *self = Node::Branch(Arc::new(branches));
            }
            Node::Branch(branches) => {
                Arc::make_mut(branches)[branch(key, depth)].insert(key, value, depth + 1);
            }
        }
    }

    /// The key is there.
    fn remove(&mut self, key: K, depth: u32) {
        let Node::Branch(branches) = self else {
            *self = Node::Empty;
            return;
        };
        let branches = Arc::make_mut(branches);
        branches[branch(key, depth)].remove(key, depth + 1);
        // A branch with one leaf is that leaf, so that what has gone leaves nothing behind.
        let mut filled = branches.iter_mut().filter(|node| !matches!(node, Node::Empty));
        let left = match (filled.next(), filled.next()) {
            (None, _) => Some(Node::Empty),
            (Some(only), None) if matches!(only, Node::Leaf(..)) => Some(std::mem::take(only)),
            _ => None,
        };
        if let Some(left) = left {
            *self = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::random::RandomStream;

    fn listed(map: &SharedMap<TreeId, u64>) -> BTreeMap<TreeId, u64> {
        let listed: BTreeMap<TreeId, u64> = map.iter().map(|(key, value)| (key, *value)).collect();
        assert_eq!(map.iter().count(), listed.len(), "each once");
        listed
    }

    #[test]
    fn versions_keep_what_they_have() {
        let mut random = RandomStream::new(4);
        let mut map = SharedMap::default();
        let mut model = BTreeMap::new();
        let mut versions = Vec::new();
        for step in 0..4_000u64 {
            // Neighbours, numbers that end alike, and any.
            let key = TreeId(match random.below(3) {
                0 => random.below(300) as u32,
                1 => (random.below(40) as u32) << 24,
                _ => u32::MAX - random.below(50) as u32,
            });
            if random.below(10) < if step < 2_000 { 7 } else { 3 } {
                map.insert(key, step);
                model.insert(key, step);
            } else {
                assert_eq!(map.remove(&key), model.remove(&key));
            }
            assert_eq!(map.get(&key), model.get(&key));
            if random.below(20) == 0 {
                *map.get_or_default(key) += 1;
                *model.entry(key).or_default() += 1;
            }
            if let Some(value) = map.get_mut(&TreeId(step as u32 % 300)) {
                *value += 1;
                *model.entry(TreeId(step as u32 % 300)).or_default() += 1;
            }
            if step % 100 == 0 {
                assert_eq!(listed(&map), model);
                versions.push((map.clone(), model.clone()));
            }
        }
        assert!(versions.iter().all(|(map, model)| listed(map) == *model));
        for key in model.keys() {
            map.remove(key);
        }
        assert!(matches!(map.root, Node::Empty), "nothing is left of what has gone");
    }
}
