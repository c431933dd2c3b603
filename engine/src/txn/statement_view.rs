//! What a statement sees while routines that it calls write.
//!
//! A statement sees the database as it was when it began, and what routines that it calls write
//! does not change that (PostgreSQL, 13.2.1 and 38.7: a volatile function's writes are visible to
//! its own later statements, not to the query that calls it). A program's writes go straight into
//! the trees, or beside them as its transaction's own images, so a statement that calls routines
//! reads *beneath* what has been written since it began: the undo list tells what that was.
//!
//! ```text
//!   undo list   … │ w1  w2  w3 …          written since: not seen by the statement
//!                 └ the statement began   what w1 replaced: seen in its place
//! ```
//!
//! The list is gone through by the first read that finds it longer, and what has come to it since
//! by later ones. The first entry of a key counts.
//!
//! A run that reads over the images of another transaction ([`super::images`]) finds them in the same
//! place: above all that is committed.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::read::Patch;
use super::undo::{OverlayChange, Savepoint, UndoKind};
use super::{KeyRange, Place, Txn};
use crate::id::TreeId;
use crate::storage::Row;
use crate::storage::key::excludes_all;
use crate::table::TableMeta;

/// What there was under a key.
#[derive(Clone, Debug)]
pub(super) enum Before {
    /// A row, or none.
    Was(Option<Row>),
    /// No image of the transaction's own: what others have committed.
    Committed,
}

/// The keys of one tree that have been written since. A scan keeps them while it goes on.
pub(super) type Replaced = Arc<BTreeMap<Box<[u8]>, Before>>;

/// Since when writes are not seen; see the module.
#[derive(Debug)]
pub(super) struct Beneath {
    since: Savepoint,
    /// How far the undo list has been gone through, its entries and those of the overlay.
    seen: (usize, usize),
    trees: Vec<(TreeId, Replaced)>,
}

impl Beneath {
    fn replaced(&self, tree: TreeId) -> Option<&Replaced> {
        self.trees.iter().find(|(id, _)| *id == tree).map(|(_, replaced)| replaced)
    }

    fn add(&mut self, tree: TreeId, key: &[u8], before: impl FnOnce() -> Before) {
        let at = self.trees.iter().position(|(id, _)| *id == tree).unwrap_or_else(|| {
            self.trees.push((tree, Replaced::default()));
            self.trees.len() - 1
        });
        let replaced = &mut self.trees[at].1;
        if !replaced.contains_key(key) {
            Arc::make_mut(replaced).insert(Box::from(key), before());
        }
    }
}

impl Txn<'_> {
    /// A statement begins that does not see what the program writes from now on. Answers what was so
    /// before, for [`Txn::end_beneath`].
    pub fn begin_beneath(&mut self) -> bool {
        self.look_from_here(Vec::new());
        self.read_beneath(true)
    }

    /// From here to its end the run reads over what somebody has written, which lies in no tree.
    pub(super) fn read_over(&mut self, written: &[(TreeId, Replaced)]) {
        self.look_from_here(written.to_vec());
        self.reads_beneath = true;
    }

    /// What is written from here on is not seen; of `trees` it is known already what is seen in its place.
    fn look_from_here(&mut self, trees: Vec<(TreeId, Replaced)>) {
        let since = self.savepoint();
        let scratch = &self.worker.scratch;
        let seen = (scratch.undo.len(), scratch.overlay_undo.len());
        self.beneath.push(Beneath { since, seen, trees });
    }

    /// Whether what reads now does not see everything.
    pub fn is_beneath(&self) -> bool {
        self.reads_beneath
    }

    /// Whether what reads now does not see a write to the row with this storage key.
    pub fn is_written_over(&mut self, table: &TableMeta, key: &[u8]) -> bool {
        // Rows that were only locked are among these, too.
        let is_among = |replaced: &Replaced| replaced.contains_key(key);
        self.replaced(Place::of(table)).is_some_and(is_among)
            && self.beneath.last().is_some_and(|beneath| self.has_written_since(beneath.since, table, key))
    }

    /// The statement that began last ends.
    pub fn end_beneath(&mut self, before: bool) {
        self.beneath.pop();
        self.reads_beneath = before;
    }

    /// From now on, reads do not see what has been written since the statement began that began last,
    /// or they see everything. Answers what was so before.
    #[inline]
    pub fn read_beneath(&mut self, beneath: bool) -> bool {
        std::mem::replace(&mut self.reads_beneath, beneath)
    }

    /// What there was in a tree where it has been written since; nothing where nobody reads beneath.
    pub(super) fn replaced(&mut self, place: Place) -> Option<&Replaced> {
        if !self.reads_beneath || self.reads_newest {
            return None;
        }
        let beneath = self.beneath.last_mut()?;
        let scratch = &self.worker.scratch;
        for undo in scratch.undo.iter().skip(beneath.seen.0).filter(|undo| undo.kind != UndoKind::Overlay) {
            let key = &scratch.arena[undo.key.start as usize..undo.key.end as usize];
            let image = &scratch.arena[undo.image.start as usize..undo.image.end as usize];
            beneath.add(undo.place.id, key, || {
                Before::Was((undo.kind != UndoKind::Inserted).then(|| Row::from(image)))
            });
        }
        for undo in scratch.overlay_undo.iter().skip(beneath.seen.1) {
            let before = match &undo.change {
                OverlayChange::Image(before) => Some(before),
                OverlayChange::Locked | OverlayChange::FirstImage => None,
                OverlayChange::Strengthened(_) => continue,
            };
            beneath.add(undo.place.id, &undo.key, || match before {
                Some(before) => Before::Was(before.image().row.map(Row::from)),
                None => Before::Committed,
            });
        }
        beneath.seen = (scratch.undo.len(), scratch.overlay_undo.len());
        beneath.replaced(place.id)
    }

    /// The same, for a scan to keep while it goes on.
    #[inline]
    pub(super) fn kept_replaced(&mut self, place: Place) -> Option<Replaced> {
        if !self.reads_beneath {
            return None;
        }
        self.replaced(place).cloned()
    }

    /// Writes have been taken back: what comes in their place is new to whoever reads beneath.
    pub(super) fn look_beneath_again(&mut self) {
        let scratch = &self.worker.scratch;
        let (undo, overlay) = (scratch.undo.len(), scratch.overlay_undo.len());
        for beneath in &mut self.beneath {
            beneath.seen = (beneath.seen.0.min(undo), beneath.seen.1.min(overlay));
        }
    }
}

/// What there was of a tree in the bounds of a partition.
#[derive(Clone, Copy)]
pub(super) struct Past<'r> {
    pub replaced: &'r Replaced,
    pub low: &'r [u8],
    pub high: Option<&'r [u8]>,
}

impl<'r> Past<'r> {
    /// The rows of a range as they were; those of other partitions are not even looked at.
    pub fn rows(self, range: KeyRange<'r>) -> impl DoubleEndedIterator<Item = Patch<'r>> + 'r {
        let Past { replaced, low, high } = self;
        let low = match range.low {
            Bound::Included(from) | Bound::Excluded(from) if *from >= *low => range.low,
            _ => Bound::Included(low),
        };
        let high = match (range.high, high) {
            (Bound::Included(to) | Bound::Excluded(to), Some(end)) if *to < *end => range.high,
            (_, Some(end)) => Bound::Excluded(end),
            (_, None) => range.high,
        };
        // An ordered map refuses bounds that are the wrong way round.
        let within = (!excludes_all(low, high)).then(move || replaced.range::<[u8], _>((low, high)));
        within.into_iter().flatten().filter_map(|(key, before)| match before {
            Before::Was(row) => Some((&key[..], row.as_deref())),
            Before::Committed => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys<'r>(
        replaced: &'r Replaced,
        (low, high): (&'r [u8], Option<&'r [u8]>),
        range: KeyRange<'r>,
    ) -> Vec<u8> {
        let up: Vec<u8> = Past { replaced, low, high }.rows(range).map(|(key, _)| key[0]).collect();
        let mut down: Vec<u8> =
            Past { replaced, low, high }.rows(range).rev().map(|(key, _)| key[0]).collect();
        down.reverse();
        assert_eq!(up, down);
        up
    }

    #[test]
    fn rows_as_they_were_are_those_of_the_range_in_the_partition() {
        let rows = (1..=9u8).map(|key| {
            let before = if key == 5 { Before::Committed } else { Before::Was(None) };
            (Box::<[u8]>::from([key]), before)
        });
        let replaced: Replaced = Arc::new(rows.collect());
        let whole: (&[u8], Option<&[u8]>) = (b"", None);
        let part: (&[u8], Option<&[u8]>) = (b"\x03", Some(b"\x07"));
        let range = |low, high| KeyRange { low, high };
        assert_eq!(keys(&replaced, whole, KeyRange::ALL), [1, 2, 3, 4, 6, 7, 8, 9]);
        assert_eq!(keys(&replaced, part, KeyRange::ALL), [3, 4, 6]);
        let wider = range(Bound::Excluded(&b"\x02"[..]), Bound::Included(&b"\x07"[..]));
        assert_eq!(keys(&replaced, part, wider), [3, 4, 6]);
        let narrower = range(Bound::Excluded(&b"\x03"[..]), Bound::Included(&b"\x06"[..]));
        assert_eq!(keys(&replaced, part, narrower), [4, 6]);
        let beside = range(Bound::Included(&b"\x07"[..]), Bound::Unbounded);
        assert!(keys(&replaced, part, beside).is_empty());
        let before = range(Bound::Unbounded, Bound::Excluded(&b"\x03"[..]));
        assert!(keys(&replaced, part, before).is_empty());
    }
}
