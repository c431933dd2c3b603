//! What a partition holds: one [root](super::root) per table and index of its group, and what says in
//! which epochs its rows were written.

use std::cell::Cell;
use std::collections::VecDeque;

use super::root::{NOT_COMMITTED, Root, RootPart};
use crate::id::{Epoch, TreeId};
use crate::log::Tag;
use crate::storage::KeyBuf;

/// Where a collection of old versions goes on: a tree and a key.
pub(crate) type CollectFrom = (TreeId, Box<[u8]>);

/// How far a partition's memory has been made again for the node of its home; see
/// `crate::engine::memory`.
#[derive(Clone)]
pub(crate) struct Following {
    pub node: u16,
    /// `None`: from the beginning.
    from: Option<MadeUpTo>,
    /// Entries that were made.
    pub entries: u64,
}

/// A place in the trees of a partition. What lies before it, by the order of the trees and then by
/// key, has been made; so it means the same for both parts of a partition that is split.
#[derive(Clone)]
struct MadeUpTo {
    tree: TreeId,
    part: RootPart,
    /// `None`: at the first key.
    key: Option<KeyBuf>,
}

/// The rows and side tables of one partition.
pub(crate) struct PartitionData {
    /// The first key of the partition's range.
    pub low: KeyBuf,
    /// The first key beyond it; `None` is the end of the group.
    pub high: Option<KeyBuf>,
    /// One root per tree of the group, at the position the schema assigned.
    pub roots: Vec<Root>,
    /// Grows with every write: the stamp of leaves.
    pub sequence: u64,
    /// The greatest number of a transaction that has held it and logged something, written here or not:
    /// the next one's is greater. See [`crate::log::transaction`].
    pub number: u64,
    /// The sequence number up to which everything is committed.
    committed: u64,
    /// Which epoch the writes from a sequence number on were committed in; only epochs that
    /// may not be durable yet. Leaf stamps become durability dependencies through it.
    marks: VecDeque<(u64, Epoch)>,
    /// The epoch of the newest commit.
    pub last_epoch: Epoch,
    /// Do not try to split again below this many rows: the last try found no key to split at.
    pub split_again_rows: u64,
    /// Bytes of rows and keys, as accounted against `max_memory`.
    pub bytes: i64,
    /// Its memory is on its way to another node.
    pub following: Option<Following>,
    /// The range before the last split, for a planted bug that believes in it.
    #[cfg(test)]
    was: Option<(KeyBuf, Option<KeyBuf>)>,
}

/// For every stamp the greater of the two epochs.
fn greater_marks(left: &VecDeque<(u64, Epoch)>, right: &VecDeque<(u64, Epoch)>) -> VecDeque<(u64, Epoch)> {
    let at = |marks: &VecDeque<(u64, Epoch)>, stamp: u64| {
        marks.iter().rev().find(|&&(first, _)| first <= stamp).map_or(Epoch(0), |&(_, epoch)| epoch)
    };
    let mut starts: Vec<u64> = left.iter().chain(right).map(|&(first, _)| first).collect();
    starts.sort_unstable();
    let mut merged: VecDeque<(u64, Epoch)> = VecDeque::new();
    for start in starts {
        let epoch = at(left, start).max(at(right, start));
        if merged.back().is_none_or(|&(_, last)| last < epoch) {
            merged.push_back((start, epoch));
        }
    }
    merged
}

impl PartitionData {
    pub fn new(low: KeyBuf, high: Option<KeyBuf>) -> Self {
        Self {
            low,
            high,
            roots: Vec::new(),
            sequence: 0,
            number: 0,
            committed: 0,
            marks: VecDeque::new(),
            last_epoch: Epoch(0),
            split_again_rows: 0,
            bytes: 0,
            following: None,
            #[cfg(test)]
            was: None,
        }
    }

    /// Whether `key` belonged here before the last split.
    #[cfg(test)]
    pub fn covered(&self, key: &[u8]) -> bool {
        self.was.as_ref().is_some_and(|(low, high)| {
            // A scan that goes on at the boundary must come to an end.
            low[..] <= *key
                && high.as_ref().is_none_or(|high| *key < high[..])
                && self.high.as_deref() != Some(key)
        })
    }

    /// Whether `key` belongs here.
    #[inline]
    pub fn covers(&self, key: &[u8]) -> bool {
        self.low[..] <= *key && self.high.as_ref().is_none_or(|high| *key < high[..])
    }

    /// Whether the partition is no larger than `range`.
    pub fn lies_in(&self, range: &(KeyBuf, Option<KeyBuf>)) -> bool {
        let (low, high) = range;
        *low <= self.low && (high.is_none() || (self.high.is_some() && self.high <= *high))
    }

    /// The next write's sequence number.
    pub fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// The root at `position`, if it still is what the caller's plan was compiled for.
    #[inline]
    pub fn root(&mut self, position: u32, id: TreeId, version: u32) -> Option<&mut Root> {
        self.roots.get_mut(position as usize).filter(|root| root.id == Some(id) && root.version == version)
    }

    /// Puts a root at `position`, growing the list with free positions.
    pub fn put_root(&mut self, position: u32, root: Root) -> Root {
        let position = position as usize;
        while self.roots.len() <= position {
            self.roots.push(Root::empty());
        }
        std::mem::replace(&mut self.roots[position], root)
    }

    /// Takes a root out, with its share of the bytes by rows.
    pub fn take_root(&mut self, position: u32) -> (Root, i64) {
        let rows = self.rows().max(1);
        let root = self.put_root(position, Root::empty());
        let bytes = (i128::from(self.bytes) * i128::from(root.rows().len()) / i128::from(rows)) as i64;
        self.bytes -= bytes;
        (root, bytes)
    }

    /// Puts a root of another group in, with its bytes.
    pub fn give_root(&mut self, position: u32, root: Root, bytes: i64) {
        self.put_root(position, root);
        self.bytes += bytes;
        self.split_again_rows = 0;
        self.following = None;
    }

    /// Stamps of another partition mean something here now. Whatever is derived from a stamp errs
    /// to the safe side, as in [`PartitionData::append`].
    pub fn take_marks(&mut self, other: &Self) {
        self.marks = greater_marks(&self.marks, &other.marks);
        self.number = self.number.max(other.number);
        self.last_epoch = self.last_epoch.max(other.last_epoch);
    }

    /// Notes that the transaction of this number, whose holder calls this before it releases anything,
    /// committed in `epoch`, with what was written since the last commit; and forgets what is durable.
    pub fn mark_commit(&mut self, epoch: Epoch, number: u64, durable: Epoch) {
        self.number = number;
        if self.sequence == self.committed {
            return;
        }
        while self.marks.len() > 1 && self.marks[1].1 <= durable {
            self.marks.pop_front();
        }
        if self.marks.back().is_none_or(|&(_, last)| last < epoch) {
            self.marks.push_back((self.committed + 1, epoch));
        }
        self.committed = self.sequence;
        self.last_epoch = epoch;
    }

    /// The epoch a leaf with this stamp was last committed in; `Epoch(0)` if that is durable
    /// for long.
    #[inline]
    pub fn epoch_of(&self, stamp: u64) -> Epoch {
        match self.marks.back() {
            None => Epoch(0),
            Some(&(first, epoch)) if first <= stamp => epoch,
            Some(_) => self.epoch_of_older(stamp),
        }
    }

    #[cold]
    fn epoch_of_older(&self, stamp: u64) -> Epoch {
        self.marks.iter().rev().find(|&&(first, _)| first <= stamp).map_or(Epoch(0), |&(_, epoch)| epoch)
    }

    /// The tag of its rows, for checkpoints: no write of one of them that was committed is above it, and each
    /// that comes will be.
    pub fn newest_tag(&self) -> Tag {
        Tag { epoch: self.last_epoch, number: self.number }
    }

    /// Starts after recovery: no number in the log is greater, nor any stamp of a leaf.
    pub fn start_at(&mut self, number: u64, epoch: Epoch) {
        self.number = number;
        self.sequence = number;
        self.committed = number;
        self.last_epoch = epoch;
    }

    /// Rows in all trees.
    pub fn rows(&self) -> u64 {
        self.roots.iter().map(|root| root.rows().len()).sum()
    }

    /// Cuts off everything at and above `key`: O(height) a root. Both parts inherit the
    /// sequence and the number, so stamps and tags keep growing per key.
    pub fn split_off(&mut self, key: &[u8]) -> Self {
        #[cfg(test)]
        {
            self.was = Some((self.low.clone(), self.high.clone()));
        }
        let rows_before = self.rows().max(1);
        let roots: Vec<Root> = self.roots.iter_mut().map(|root| root.split_off(key)).collect();
        let mut upper = Self {
            low: KeyBuf::from_slice(key),
            high: self.high.take(),
            sequence: self.sequence,
            number: self.number,
            committed: self.committed,
            marks: self.marks.clone(),
            last_epoch: self.last_epoch,
            split_again_rows: 0,
            bytes: 0,
            following: self.following.clone(),
            #[cfg(test)]
            was: None,
            roots,
        };
        self.high = Some(KeyBuf::from_slice(key));
        self.split_again_rows = 0;
        // Bytes are shared out by rows: exact accounting would visit every row.
        upper.bytes = (i128::from(self.bytes) * i128::from(upper.rows()) / i128::from(rows_before)) as i64;
        self.bytes -= upper.bytes;
        upper
    }

    /// The definitions that made new roots commit in `epoch`.
    pub fn commit_definitions(&mut self, epoch: Epoch) {
        for root in self.roots.iter_mut().filter(|root| root.since == NOT_COMMITTED) {
            root.since = epoch;
        }
    }

    /// Takes in the partition to the right: O(height) a root, and what the side tables hold.
    /// What is left of `right` covers no key.
    ///
    /// Stamps of both parts live in one number space afterwards, so whatever is derived from a
    /// stamp errs to the safe side: the newer epoch of the two, the older checkpoint.
    ///
    /// # Panics
    /// If `right` does not begin where this one ends, or holds other trees.
    pub fn append(&mut self, right: &mut Self) {
        assert_eq!(self.high.as_ref(), Some(&right.low), "only neighbours merge");
        let end = Self::shell(&right.low);
        let right = std::mem::replace(right, end);
        while self.roots.len() < right.roots.len() {
            self.roots.push(Root::empty());
        }
        for (root, right) in self.roots.iter_mut().zip(right.roots) {
            root.append(right);
        }
        self.high = right.high;
        self.marks = greater_marks(&self.marks, &right.marks);
        self.sequence = self.sequence.max(right.sequence);
        self.number = self.number.max(right.number);
        self.committed = self.committed.max(right.committed);
        self.last_epoch = self.last_epoch.max(right.last_epoch);
        self.bytes += right.bytes;
        self.split_again_rows = 0;
        self.following = None;
    }

    /// What a partition leaves behind that was merged, or whose group is gone: no rows, and bounds
    /// that cover no key, so that whoever comes late is sent on.
    pub fn shell(at: &KeyBuf) -> Self {
        Self::new(at.clone(), Some(at.clone()))
    }

    /// Makes about `bytes_max` of the rows, old versions and images again, on this thread, for its memory
    /// node; going on where the last call for that node ended. Answers the bytes, and whether
    /// everything has been made.
    pub fn remake(&mut self, node: u16, bytes_max: usize) -> (usize, bool) {
        let begin = Following { node, from: None, entries: 0 };
        let mut following = self.following.take().filter(|known| known.node == node).unwrap_or(begin);
        let (made, entries) = (Cell::new(0), Cell::new(following.entries));
        let mut go_on = |more: usize, bytes: usize| {
            made.set(made.get() + bytes);
            entries.set(entries.get() + more as u64);
            made.get() < bytes_max
        };
        // A tree that has gone meanwhile: from the beginning, which costs time and nothing else.
        let mut from = following.from.take();
        let first =
            from.as_ref().and_then(|from| self.roots.iter().position(|root| root.id == Some(from.tree)));
        if first.is_none() {
            from = None;
        }
        let mut next = None;
        'trees: for root in &mut self.roots[first.unwrap_or(0)..] {
            let Some(tree) = root.id else { continue };
            let (mut part, mut key) =
                from.take().map_or((RootPart::Rows, None), |from| (from.part, from.key));
            loop {
                key = root.remake(part, key.as_deref(), &mut go_on);
                let through = key.is_none();
                if through {
                    let Some(behind) = part.next() else { break };
                    part = behind;
                }
                if !through || made.get() >= bytes_max {
                    next = Some(MadeUpTo { tree, part, key });
                    break 'trees;
                }
            }
        }
        let done = next.is_none();
        if !done {
            self.following = Some(Following { node, from: next, entries: entries.get() });
        }
        (made.get(), done)
    }

    /// The addresses of everything in its trees.
    pub fn allocations(&self, visit: &mut dyn FnMut(*const u8)) {
        self.roots.iter().for_each(|root| root.allocations(visit));
    }

    /// Drops versions no registered snapshot needs, looking at about `limit` keys from `from`
    /// on. Answers the bytes freed and where to go on.
    pub fn collect_versions(
        &mut self,
        oldest: Option<Epoch>,
        from: Option<CollectFrom>,
        limit: usize,
    ) -> (u64, Option<CollectFrom>) {
        let mut freed = 0;
        // Trees come in the order of their positions; one that left meanwhile is begun anew.
        let first = from.as_ref().and_then(|(id, _)| self.roots.iter().position(|root| root.id == Some(*id)));
        for (at, root) in self.roots.iter_mut().enumerate().skip(first.unwrap_or(0)) {
            let Some(id) = root.id else { continue };
            let start = from.as_ref().filter(|_| Some(at) == first).map(|(_, key)| &key[..]);
            let (bytes, next) = root.versions.collect(oldest, start, limit);
            freed += bytes;
            if let Some(key) = next {
                return (freed, Some((id, key)));
            }
        }
        (freed, None)
    }

    /// Whether some tree has old versions.
    pub fn has_versions(&self) -> bool {
        self.roots.iter().any(|root| !root.versions.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(data: &mut PartitionData, writes: u64, epoch: u64, durable: u64) {
        for _ in 0..writes {
            data.next_sequence();
        }
        let number = data.number + 1;
        data.mark_commit(Epoch(epoch), number, Epoch(durable));
    }

    #[test]
    fn a_leaf_stamp_means_the_epoch_its_write_committed_in() {
        let mut data = PartitionData::new(KeyBuf::new(), None);
        commit(&mut data, 9, 5, 0);
        commit(&mut data, 10, 5, 0);
        commit(&mut data, 10, 7, 0);
        assert_eq!(data.epoch_of(0), Epoch(0));
        assert_eq!(data.epoch_of(9), Epoch(5));
        assert_eq!(data.epoch_of(19), Epoch(5));
        assert_eq!(data.epoch_of(20), Epoch(7));
        commit(&mut data, 1, 8, 7);
        assert_eq!(data.epoch_of(25), Epoch(7));
        assert_eq!(data.epoch_of(9), Epoch(0), "what is durable for long needs no wait");
        assert_eq!(data.epoch_of(30), Epoch(8));
    }

    #[test]
    fn parts_that_merge_depend_on_the_newer_epoch_of_both() {
        let mut left = PartitionData::new(KeyBuf::new(), None);
        left.put_root(0, Root::new(TreeId(9), 1));
        commit(&mut left, 10, 5, 0);
        let mut right = left.split_off(b"m");
        commit(&mut left, 10, 6, 0);
        right.number = 8;
        commit(&mut right, 30, 9, 0);
        left.roots[0].checkpointed = 12;
        left.append(&mut right);
        assert_eq!((left.epoch_of(10), left.epoch_of(20)), (Epoch(5), Epoch(9)));
        assert_eq!((left.sequence, left.newest_tag()), (40, Tag { epoch: Epoch(9), number: 9 }));
        assert_eq!(left.roots[0].checkpointed, 0, "what either has not written must be written");
        assert!(left.covers(b"z") && left.high.is_none());
        assert!(!right.covers(b"m") && !right.covers(b""), "nothing is left on the right");
        commit(&mut left, 1, 10, 9);
        assert_eq!((left.sequence, left.epoch_of(41)), (41, Epoch(10)));
    }

    /// Also of those that only held it: who comes next may have met them here.
    #[test]
    fn numbers_stay_where_they_were_given_and_both_parts_have_them() {
        let mut data = PartitionData::new(KeyBuf::new(), None);
        commit(&mut data, 1, 5, 0);
        data.mark_commit(Epoch(6), 70, Epoch(0));
        assert_eq!(data.newest_tag(), Tag { epoch: Epoch(5), number: 70 });
        let mut right = data.split_off(b"m");
        assert_eq!((data.number, right.number), (70, 70));
        commit(&mut right, 1, 7, 0);
        let mut other = PartitionData::new(KeyBuf::new(), None);
        other.take_marks(&right);
        assert_eq!(other.newest_tag(), Tag { epoch: Epoch(7), number: 71 });
        data.append(&mut right);
        assert_eq!(data.newest_tag(), Tag { epoch: Epoch(7), number: 71 });
    }
}
