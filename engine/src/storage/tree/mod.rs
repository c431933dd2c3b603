//! The B+tree: one root per partition and per table or index.
//!
//! A partition's tree is touched by one thread at a time (the claim), so it has no latches.
//! What shapes it is repartitioning: [`Tree::split_off`] cuts along one root-to-leaf path and
//! [`Tree::append`] grafts the lower tree onto the edge of the higher, both O(height) node
//! visits with nothing left to do later, as in *PLP*'s multi-rooted trees. Inner nodes count
//! the entries below each child, so the halves of a cut know their size at once and the n-th
//! key (where to cut) is found in O(height).
//!
//! Nodes hold up to 31 keys, arranged for search (`slots`): common prefix cut off, eight bytes
//! of each key beside each other as integers, short keys in the node. Nodes may be thin; a
//! change that passes a thin one levels it with a neighbour. A leaf that overflows at its end
//! is left full, so ascending keys fill their leaves.
//!
//! **Stamps.** Each leaf carries the greatest stamp of any write to it, removals included: a
//! reader's dependency, SERIALIZABLE's validation and incremental checkpoints use it. To the
//! tree a stamp is a number that grows (the partition's sequence, or an epoch). Whatever
//! happens to leaves, no lookup, present or absent, reports an older stamp than the newest
//! write of its key; it may report a newer one, which costs a reader a needless wait.
//!
//! Decisions: child pointers up to the node's parent and links between leaves are deliberately
//! absent — both would have to be mended in a cut and prevent sharing of nodes between
//! published versions ([`Shared`]).

mod build;
mod cursor;
mod cut;
mod finger;
mod node;
mod ownership;
mod pointer;
mod prefetch;
mod remake;
mod slots;
#[cfg(test)]
mod tests;

use self::node::{Inner, Leaf, Node};
use self::slots::{CAPACITY, Key};
use crate::storage::row::Row;

pub use self::build::Builder;
pub use self::cursor::{Cursor, LeafView, Range};
pub use self::finger::{Ahead, Finger};
pub use self::pointer::{Exclusive, Pointer, Shared};
pub(crate) use self::prefetch::fetch_bytes;
pub use self::prefetch::{AHEAD_MAX, fetch_rows, fetch_rows_noted};

/// An ordered map from key bytes to rows.
pub struct Tree<P: Pointer = Exclusive> {
    root: Option<Node<P>>,
    /// Inner levels above the leaves.
    height: u32,
    len: u64,
    /// Bytes of rows and boxed keys; a cut divides it in proportion to the entries.
    payload_bytes: u64,
    node_bytes: u64,
    /// Writes whose leaf is no more: no lookup reports an older stamp.
    stamp_floor: u64,
}

/// What a lookup saw.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'t> {
    /// The row, if the key is there.
    pub row: Option<&'t Row>,
    /// Newest write to the leaf that holds the key or would hold it.
    pub stamp: u64,
    /// The side tables know this key (see [`Tree::set_flag`]).
    pub flagged: bool,
}

/// Bytes a row costs beyond its own: the box and the allocator's rounding.
const ROW_OVERHEAD_BYTES: u64 = 8;

enum Change<P: Pointer> {
    Replaced(Row),
    Refused(Row),
    Added(Option<(Key, Node<P>)>),
}

impl<P: Pointer> Default for Tree<P> {
    fn default() -> Self {
        Tree { root: None, height: 0, len: 0, payload_bytes: 0, node_bytes: 0, stamp_floor: 0 }
    }
}

impl Clone for Tree<Shared> {
    /// A version of the tree that later writes to the original do not change. O(1).
    fn clone(&self) -> Self {
        Tree { root: self.root.clone(), ..*self }
    }
}

impl<P: Pointer> Tree<P> {
    /// An empty tree; it allocates nothing before the first insert.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inner levels above the leaves.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Memory held, in bytes. After a cut the halves share it in proportion to their entries.
    pub fn bytes(&self) -> u64 {
        self.payload_bytes + self.node_bytes
    }

    /// What of it is rows and long keys.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    #[inline]
    fn leaf(&self, key: &[u8]) -> Option<&Leaf> {
        let mut node = self.root.as_ref()?;
        loop {
            match node {
                Node::Inner(inner) => node = inner.child(inner.separators.upper(key)),
                Node::Leaf(leaf) => return Some(leaf),
            }
        }
    }

    /// The row of `key`.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<&Row> {
        let leaf = self.leaf(key)?;
        match leaf.slots.search(key) {
            (index, true) => Some(leaf.row(index)),
            _ => None,
        }
    }

    /// Whether `key` is there.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    /// The row of `key` together with what its leaf knows, present or not.
    #[inline]
    pub fn lookup(&self, key: &[u8]) -> Lookup<'_> {
        let Some(leaf) = self.leaf(key) else {
            return Lookup { row: None, stamp: self.stamp_floor, flagged: false };
        };
        let stamp = leaf.stamp.max(self.stamp_floor);
        match leaf.slots.search(key) {
            (index, true) => {
                Lookup { row: Some(leaf.row(index)), stamp, flagged: leaf.flags >> index & 1 != 0 }
            }
            _ => Lookup { row: None, stamp, flagged: false },
        }
    }

    fn leaf_mut(&mut self, key: &[u8]) -> Option<&mut Leaf> {
        let mut node = self.root.as_mut()?;
        loop {
            match node {
                Node::Inner(inner) => {
                    let inner = P::to_mut(inner);
                    let index = inner.separators.upper(key);
                    node = inner.child_mut(index);
                }
                Node::Leaf(leaf) => return Some(P::to_mut(leaf)),
            }
        }
    }

    /// Changes the row of `key` in place and marks its leaf as written at `stamp`. Returns
    /// what `change` returned, or `None` if the key is not there.
    pub fn update<R>(&mut self, key: &[u8], stamp: u64, change: impl FnOnce(&mut Row) -> R) -> Option<R> {
        let leaf = self.leaf_mut(key)?;
        let (index, true) = leaf.slots.search(key) else { return None };
        leaf.stamp = leaf.stamp.max(stamp);
        let row = leaf.rows[index].as_mut().expect("slots below len hold rows");
        let before = row.len();
        let result = change(row);
        let after = row.len();
        self.payload_bytes = self.payload_bytes.saturating_sub(before as u64) + after as u64;
        Some(result)
    }

    /// Write access to the row of `key`, marking its leaf as written at `stamp`. The caller does
    /// not change the row's length (memory is counted by [`Self::update`]).
    pub fn get_mut(&mut self, key: &[u8], stamp: u64) -> Option<&mut Row> {
        let leaf = self.leaf_mut(key)?;
        let (index, true) = leaf.slots.search(key) else { return None };
        leaf.stamp = leaf.stamp.max(stamp);
        leaf.rows[index].as_mut()
    }

    /// Marks the leaf of `key` as written at `stamp`.
    pub fn touch(&mut self, key: &[u8], stamp: u64) {
        match self.leaf_mut(key) {
            Some(leaf) => leaf.stamp = leaf.stamp.max(stamp),
            None => self.stamp_floor = self.stamp_floor.max(stamp),
        }
    }

    /// Sets or clears the bit that tells readers of `key` to look into the side tables.
    /// Returns false if the key is not there.
    pub fn set_flag(&mut self, key: &[u8], flag: bool) -> bool {
        let Some(leaf) = self.leaf_mut(key) else { return false };
        let (index, found) = leaf.slots.search(key);
        if found {
            leaf.flags = leaf.flags & !(1 << index) | u32::from(flag) << index;
        }
        found
    }

    /// Inserts or replaces; returns the replaced row.
    pub fn insert(&mut self, key: &[u8], row: Row, stamp: u64) -> Option<Row> {
        match self.put(key, row, stamp, How::Replace) {
            Change::Replaced(old) => Some(old),
            _ => None,
        }
    }

    /// Inserts unless the key is there; then the row comes back.
    pub fn insert_new(&mut self, key: &[u8], row: Row, stamp: u64) -> Result<(), Row> {
        #[cfg(test)]
        assert!(!crate::planted::is(crate::planted::Bug::PanicInStorage), "planted");
        self.put_new(key, row, stamp, How::New)
    }

    fn put_new(&mut self, key: &[u8], row: Row, stamp: u64, how: How) -> Result<(), Row> {
        match self.put(key, row, stamp, how) {
            Change::Refused(row) => Err(row),
            _ => Ok(()),
        }
    }

    fn put(&mut self, key: &[u8], row: Row, stamp: u64, how: How) -> Change<P> {
        let row_len = row.len() as u64;
        let root = self.root.get_or_insert_with(|| {
            self.node_bytes += size_of::<Leaf>() as u64;
            Node::Leaf(P::new(Leaf::new()))
        });
        let mut new_nodes = 0;
        let mut change = insert_into(root, key, row, stamp, how, &mut new_nodes);
        match &mut change {
            Change::Refused(_) => {}
            Change::Replaced(old) => {
                self.payload_bytes = self.payload_bytes.saturating_sub(old.len() as u64) + row_len;
            }
            Change::Added(split) => {
                self.len += 1;
                self.payload_bytes += entry_bytes(key, row_len);
                if let Some((separator, right)) = split.take() {
                    self.grow(separator, right);
                }
                self.node_bytes += new_nodes;
            }
        }
        change
    }

    /// Puts a new root above the old one and its new neighbour.
    fn grow(&mut self, separator: Key, right: Node<P>) {
        let left = self.root.take().expect("a tree that grows has a root");
        let left_count = left.count();
        let right_count = right.count();
        let mut root = Inner::over(left, left_count);
        root.insert_after(1, separator, right, right_count);
        self.root = Some(Node::Inner(P::new(root)));
        self.height += 1;
        self.node_bytes += size_of::<Inner<P>>() as u64;
    }

    /// Removes `key`; its leaf counts as written at `stamp`.
    pub fn remove(&mut self, key: &[u8], stamp: u64) -> Option<Row> {
        let mut freed_nodes = 0;
        let row = remove_from(self.root.as_mut()?, key, stamp, &mut freed_nodes)?;
        self.len -= 1;
        self.node_bytes = self.node_bytes.saturating_sub(freed_nodes);
        let freed = entry_bytes(key, row.len() as u64);
        self.payload_bytes = self.payload_bytes.saturating_sub(freed);
        self.collapse();
        Some(row)
    }

    /// Lets the only child of a root take its place.
    fn collapse(&mut self) {
        while let Some(Node::Inner(inner)) = &self.root {
            if inner.len() > 1 {
                return;
            }
            let Some(Node::Inner(inner)) = self.root.take() else {
                unreachable!("matched above");
            };
            let mut inner = P::take(inner);
            self.root = inner.children[0].take();
            self.height -= 1;
            self.node_bytes = self.node_bytes.saturating_sub(size_of::<Inner<P>>() as u64);
        }
    }

    /// The entry with the least key.
    pub fn first(&self) -> Option<(&[u8], &Row)> {
        let mut node = self.root.as_ref()?;
        loop {
            match node {
                Node::Inner(inner) => node = inner.child(0),
                Node::Leaf(leaf) => {
                    return (leaf.len() > 0).then(|| (leaf.slots.key(0), leaf.row(0)));
                }
            }
        }
    }

    /// The entry with the greatest key.
    pub fn last(&self) -> Option<(&[u8], &Row)> {
        let mut node = self.root.as_ref()?;
        loop {
            match node {
                Node::Inner(inner) => node = inner.child(inner.len() - 1),
                Node::Leaf(leaf) => {
                    let last = leaf.len().checked_sub(1)?;
                    return Some((leaf.slots.key(last), leaf.row(last)));
                }
            }
        }
    }

    /// The `n`-th entry in key order, from zero. O(height).
    pub fn nth(&self, n: u64) -> Option<(&[u8], &Row)> {
        let mut rest = n;
        let mut node = self.root.as_ref()?;
        'down: loop {
            match node {
                Node::Inner(inner) => {
                    for index in 0..inner.len() {
                        if rest < inner.counts[index] {
                            node = inner.child(index);
                            continue 'down;
                        }
                        rest -= inner.counts[index];
                    }
                    return None;
                }
                Node::Leaf(leaf) => {
                    let index = rest as usize;
                    return (index < leaf.len()).then(|| (leaf.slots.key(index), leaf.row(index)));
                }
            }
        }
    }

    /// Number of entries with keys below `key`. O(height).
    pub fn rank(&self, key: &[u8]) -> u64 {
        let mut below = 0;
        let Some(mut node) = self.root.as_ref() else { return 0 };
        loop {
            match node {
                Node::Inner(inner) => {
                    let index = inner.separators.upper(key);
                    below += inner.counts[..index].iter().sum::<u64>();
                    node = inner.child(index);
                }
                Node::Leaf(leaf) => return below + leaf.slots.search(key).0 as u64,
            }
        }
    }
}

fn entry_bytes(key: &[u8], row_len: u64) -> u64 {
    Key::heap_bytes(key) as u64 + row_len + ROW_OVERHEAD_BYTES
}

/// How an entry is put.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// In place of another one of its key.
    Replace,
    New,
    /// New, right behind the one that was put or read last: more will follow there.
    Behind,
}

fn insert_into<P: Pointer>(
    node: &mut Node<P>,
    key: &[u8],
    row: Row,
    stamp: u64,
    how: How,
    new_nodes: &mut u64,
) -> Change<P> {
    match node {
        Node::Leaf(leaf) => {
            let (index, found) = leaf.slots.search(key);
            if found && how != How::Replace {
                return Change::Refused(row);
            }
            let leaf = P::to_mut(leaf);
            leaf.stamp = leaf.stamp.max(stamp);
            if found {
                let old = leaf.rows[index].replace(row).expect("slots below len hold rows");
                return Change::Replaced(old);
            }
            if leaf.len() < CAPACITY {
                leaf.insert(index, Key::new(key), row);
                return Change::Added(None);
            }
            *new_nodes += size_of::<Leaf>() as u64;
            let mut right = if index == CAPACITY {
                let mut right = Leaf::new();
                right.stamp = leaf.stamp;
                right.insert(0, Key::new(key), row);
                right
            } else {
                // Keys that ascend within others, as the newest rows of each of some groups, would
                // leave half of every leaf empty.
                let at = if how == How::Behind { index.max(CAPACITY / 4) } else { CAPACITY / 2 };
                let mut right = leaf.split_at(at);
                if index <= at {
                    leaf.insert(index, Key::new(key), row);
                } else {
                    right.insert(index - at, Key::new(key), row);
                }
                right
            };
            right.stamp = leaf.stamp;
            let separator = slots::separator(leaf.slots.key(leaf.len() - 1), right.slots.key(0));
            let separator = Key::new(separator);
            Change::Added(Some((separator, Node::Leaf(P::new(right)))))
        }
        Node::Inner(inner) => {
            let inner = P::to_mut(inner);
            let index = inner.separators.upper(key);
            let change = insert_into(inner.child_mut(index), key, row, stamp, how, new_nodes);
            let Change::Added(split) = change else { return change };
            inner.counts[index] += 1;
            let Some((separator, child)) = split else { return Change::Added(None) };
            let count = child.count();
            inner.counts[index] -= count;
            if inner.is_full() {
                *new_nodes += size_of::<Inner<P>>() as u64;
            }
            Change::Added(inner.adopt(index + 1, separator, child, count))
        }
    }
}

impl<P: Pointer> Inner<P> {
    /// Puts `child` at `index >= 1`, splitting this node if it is full; then the right half and
    /// its separator come back.
    fn adopt(&mut self, index: usize, separator: Key, child: Node<P>, count: u64) -> Option<(Key, Node<P>)> {
        if !self.is_full() {
            self.insert_after(index, separator, child, count);
            return None;
        }
        let len = self.len();
        // At the right edge keys are probably ascending: leave the left node full.
        let at = if index == len { len - 1 } else { len / 2 };
        let (between, mut right) = self.split_at(at);
        if index <= at {
            self.insert_after(index, separator, child, count);
        } else {
            right.insert_after(index - at, separator, child, count);
        }
        Some((between, Node::Inner(P::new(right))))
    }
}

fn remove_from<P: Pointer>(node: &mut Node<P>, key: &[u8], stamp: u64, freed_nodes: &mut u64) -> Option<Row> {
    match node {
        Node::Leaf(leaf) => {
            let (index, true) = leaf.slots.search(key) else { return None };
            let leaf = P::to_mut(leaf);
            leaf.stamp = leaf.stamp.max(stamp);
            Some(leaf.remove(index).1)
        }
        Node::Inner(inner) => {
            let index = inner.separators.upper(key);
            let inner = P::to_mut(inner);
            let row = remove_from(inner.child_mut(index), key, stamp, freed_nodes)?;
            inner.counts[index] -= 1;
            *freed_nodes += inner.level(index);
            Some(row)
        }
    }
}
