//! Before-images: what a registered snapshot still has to see.
//!
//! Updates are in place. At its commit point a transaction of epoch `E` leaves the images it
//! replaced here if some snapshot is registered, each tagged with the epoch that *superseded*
//! it:
//!
//! ```text
//! images of a key:   (row as it was before epoch 5) (… before epoch 9)     now: the tree's row
//! snapshot S sees:    S < 5                          5 <= S < 9             9 <= S
//! ```
//!
//! Only images a snapshot can see are kept: none that came and went after the newest snapshot
//! registered, so a hot row costs one image a snapshot, however often it is written.
//!
//! A snapshot `S` sees the transactions of epochs up to `S`, so it takes the image with the
//! least superseding epoch above `S`, else the row in the tree. An image without a row says
//! that the key was absent. Images live in the partition, beside its trees, and move with them
//! by key when a partition splits or merges.
//!
//! They lie in a tree like the rows': what a snapshot costs those who write is one more entry
//! there for each row they change or add, mostly beside the one before. All images of a key are
//! one entry, the oldest first:
//!
//! ```text
//! [superseding epoch 8][departure 1][length of the row 4, all ones: no row][row] …
//! ```
//!
//! The tree's stamps are superseding epochs, so a search for changes passes over the leaves that
//! have none.

use std::iter;
use std::ops::{Bound, ControlFlow};

use super::row::Row;
use super::tree::{Finger, Pointer, Tree};
use crate::id::Epoch;

/// The row before a write, and the epoch of that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Image<'v> {
    superseded: Epoch,
    row: Option<&'v [u8]>,
    /// What became of the row by this write, or by a later one that left no image.
    departure: Departure,
}

/// What a write did with the row that had its key: a row that is there afterwards is the same one,
/// or another. The later of two in one image is the one that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Departure {
    /// It was not there, or still is.
    #[default]
    None,
    Deleted,
    /// It has another key now.
    Moved,
    /// It is another table's now: what moves between the partitions of a table.
    MovedAway,
}

impl Departure {
    fn of(code: u8) -> Departure {
        match code {
            0 => Departure::None,
            1 => Departure::Deleted,
            2 => Departure::Moved,
            _ => Departure::MovedAway,
        }
    }
}

/// Bytes of an image beside its row, and where they lie.
const IMAGE_HEAD: usize = 13;
const DEPARTURE_AT: usize = 8;
const ABSENT: u32 = u32::MAX;

/// An entry's share of a leaf.
const ENTRY_BYTES: u64 = 64;

impl Image<'_> {
    /// What it takes among those of its key.
    fn bytes(&self) -> usize {
        IMAGE_HEAD + self.row.map_or(0, <[u8]>::len)
    }
}

/// Appends an image to those of its key.
fn encode(image: Image<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&image.superseded.0.to_le_bytes());
    out.push(image.departure as u8);
    out.extend_from_slice(&image.row.map_or(ABSENT, |row| row.len() as u32).to_le_bytes());
    out.extend_from_slice(image.row.unwrap_or_default());
}

/// The images of one key, the oldest first.
fn images(encoded: &[u8]) -> impl Iterator<Item = Image<'_>> {
    let mut rest = encoded;
    iter::from_fn(move || {
        let (head, after) = rest.split_first_chunk::<IMAGE_HEAD>()?;
        let (superseded, tail) = head.split_first_chunk::<DEPARTURE_AT>()?;
        let length = u32::from_le_bytes(*tail.last_chunk::<4>()?);
        let (row, after) = match length {
            ABSENT => (None, after),
            length => {
                let (row, after) = after.split_at_checked(length as usize)?;
                (Some(row), after)
            }
        };
        rest = after;
        let departure = Departure::of(head[DEPARTURE_AT]);
        Some(Image { superseded: Epoch(u64::from_le_bytes(*superseded)), row, departure })
    })
}

/// The images of one tree, by key.
#[derive(Default)]
pub struct TreeVersions {
    images: Tree,
    /// Where the last image went: the next one is often its neighbour.
    finger: Finger,
}

impl TreeVersions {
    /// Keeps the row `key` had before the transaction of epoch `superseded` wrote it (`None`:
    /// it was absent), if a snapshot up to `newest`, the newest one registered, can see it: an
    /// earlier image serves those from before the write it tells of, so what was written after
    /// `newest`, or in this very epoch, is nobody's past. Answers the bytes this took.
    pub fn keep(
        &mut self,
        key: &[u8],
        superseded: Epoch,
        newest: Epoch,
        departure: Departure,
        row: Option<&[u8]>,
    ) -> u64 {
        let before = self.bytes();
        let image = Image { superseded, row, departure };
        let Some(known) = self.images.lookup_with(key, &mut self.finger).row else {
            let mut encoded = Vec::with_capacity(image.bytes());
            encode(image, &mut encoded);
            let added = self.images.insert_new_with(key, encoded.into(), superseded.0, &mut self.finger);
            debug_assert!(added.is_ok(), "it was not there");
            return self.bytes() - before;
        };
        let mut last_at = 0;
        let mut last: Option<Image<'_>> = None;
        for image in images(known) {
            last_at += last.map_or(0, |image| image.bytes());
            last = Some(image);
        }
        match last {
            Some(last) if last.superseded > newest || last.superseded >= superseded => {
                if departure > last.departure {
                    self.images.update_with(key, superseded.0, &mut self.finger, |known| {
                        known[last_at + DEPARTURE_AT] = departure as u8;
                    });
                }
                0
            }
            _ => {
                self.images.update_with(key, superseded.0, &mut self.finger, |known| {
                    let mut encoded = Vec::with_capacity(known.len() + image.bytes());
                    encoded.extend_from_slice(known);
                    encode(image, &mut encoded);
                    *known = encoded.into();
                });
                self.bytes() - before
            }
        }
    }

    /// The row of `key` at `snapshot`, given the row the tree holds now.
    pub fn at<'r>(&'r self, key: &[u8], snapshot: Epoch, current: Option<&'r Row>) -> Option<&'r [u8]> {
        match self.images.get(key).and_then(|images| visible(images, snapshot)) {
            Some(image) => image.row,
            None => current.map(|row| &row[..]),
        }
    }

    /// Whether a transaction of an epoch after `snapshot` wrote `key`. Exact while `snapshot` is
    /// registered.
    pub fn changed_since(&self, key: &[u8], snapshot: Epoch) -> bool {
        self.images.get(key).is_some_and(|images| visible(images, snapshot).is_some())
    }

    /// What became, by one of them, of the row that was there at `snapshot`.
    pub fn departure_since(&self, key: &[u8], snapshot: Epoch) -> Departure {
        let known = self.images.get(key).map_or(&[][..], |known| known);
        let newer = images(known).filter(|image| image.superseded > snapshot);
        newer.map(|image| image.departure).max().unwrap_or_default()
    }

    /// Whether a transaction of an epoch after `snapshot` wrote any key between the bounds.
    pub fn range_changed_since(&self, low: Bound<&[u8]>, high: Bound<&[u8]>, snapshot: Epoch) -> bool {
        let mut changed = false;
        if range_is_empty(low, high) {
            return false;
        }
        self.images.scan_leaves(low, high, |leaf| {
            changed = leaf.stamp() > snapshot.0
                && leaf.entries().any(|(_, images)| visible(images, snapshot).is_some());
            if changed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        changed
    }

    /// The keys between the bounds whose row at `snapshot` is not (or may not be) the tree's,
    /// with that row.
    pub fn old_rows(
        &self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        snapshot: Epoch,
    ) -> impl DoubleEndedIterator<Item = (&[u8], Option<&[u8]>)> + use<'_> {
        let range = self.images.range(low, high);
        range.filter_map(move |(key, images)| Some((key, visible(images, snapshot)?.row)))
    }

    /// Whether no image is kept.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// Memory held, in bytes; what a cut divides adds up to the whole.
    pub fn bytes(&self) -> u64 {
        self.images.payload_bytes() + self.images.len() * ENTRY_BYTES
    }

    /// Drops images no snapshot from `oldest` on can see (with `None`: all of them), visiting at
    /// most `limit` keys from `from` on. Answers the bytes freed and where to go on.
    pub fn collect(
        &mut self,
        oldest: Option<Epoch>,
        from: Option<&[u8]>,
        limit: usize,
    ) -> (u64, Option<Box<[u8]>>) {
        let before = self.bytes();
        let next = match oldest {
            Some(oldest) => self.collect_below(oldest, from, limit),
            None => {
                // Cut off in one piece.
                let next = self.images.nth(limit as u64).map(|(key, _)| Box::from(key));
                self.images = match &next {
                    Some(key) => self.images.split_off(key),
                    None => Tree::new(),
                };
                next
            }
        };
        if self.images.is_empty() {
            self.images = Tree::new();
        }
        (before.saturating_sub(self.bytes()), next)
    }

    fn collect_below(&mut self, oldest: Epoch, from: Option<&[u8]>, limit: usize) -> Option<Box<[u8]>> {
        let mut cursor = self.images.cursor(from.map_or(Bound::Unbounded, Bound::Included));
        let unseen = |image: &Image<'_>| image.superseded <= oldest;
        let outdated: Vec<Box<[u8]>> = cursor
            .by_ref()
            .take(limit)
            .filter(|(_, known)| images(known).any(|image| unseen(&image)))
            .map(|(key, _)| key.into())
            .collect();
        let next = cursor.next().map(|(key, _)| key.into());
        drop(cursor);
        for key in outdated {
            let Some(known) = self.images.get(&key) else { continue };
            let mut kept = Vec::new();
            images(known).filter(|image| !unseen(image)).for_each(|image| encode(image, &mut kept));
            match kept.is_empty() {
                true => drop(self.images.remove(&key, 0)),
                false => drop(self.images.insert(&key, kept.into(), 0)),
            }
        }
        next
    }

    /// Cuts at `key` as [`Tree::split_off`] does.
    pub fn split_off(&mut self, key: &[u8]) -> TreeVersions {
        TreeVersions { images: self.images.split_off(key), finger: Finger::default() }
    }

    /// Takes in the images of a tree to the right.
    pub fn append(&mut self, right: TreeVersions) {
        self.images.append(right.images);
    }

    /// Visits the rows of `tree` as `snapshot` sees them, between the bounds, ascending.
    pub fn scan<P: Pointer, F>(
        &self,
        tree: &Tree<P>,
        snapshot: Epoch,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        mut visit: F,
    ) where
        F: FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    {
        if range_is_empty(low, high) {
            return;
        }
        let mut old = self.old_rows(low, high, snapshot).peekable();
        let mut go_on = ControlFlow::Continue(());
        tree.scan(low, high, |key, row| {
            while let Some((old_key, image)) = old.next_if(|(old_key, _)| *old_key < key) {
                if let Some(row) = image {
                    go_on = visit(old_key, row);
                    go_on?;
                }
            }
            let row = match old.next_if(|(old_key, _)| *old_key == key) {
                Some((_, image)) => image,
                None => Some(&row[..]),
            };
            if let Some(row) = row {
                go_on = visit(key, row);
            }
            go_on
        });
        for (key, image) in old {
            if go_on.is_break() {
                return;
            }
            if let Some(row) = image {
                go_on = visit(key, row);
            }
        }
    }
}

fn range_is_empty(low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => {
            low >= high
        }
        _ => false,
    }
}

/// The image of a key that a snapshot sees; `None`: what is there now.
fn visible(encoded: &[u8], snapshot: Epoch) -> Option<Image<'_>> {
    images(encoded).find(|image| image.superseded > snapshot)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_snapshot_sees_the_rows_of_its_epoch(
            writes in proptest::collection::vec((0u8..20, proptest::option::of(any::<u8>())), 1..200),
            snapshots in proptest::collection::btree_set(0u64..70, 0..8),
            cut: Option<u8>,
            oldest in 0u64..50,
            slice in 1usize..9,
        ) {
            let mut tree: Tree = Tree::new();
            let mut versions = TreeVersions::default();
            // The whole state at the end of each epoch.
            let mut history: Vec<BTreeMap<u8, u8>> = vec![BTreeMap::new()];
            for (number, (key, value)) in writes.into_iter().enumerate() {
                let epoch = Epoch(number as u64 / 3 + 1);
                if history.len() as u64 <= epoch.0 {
                    history.push(history.last().cloned().unwrap_or_default());
                }
                let state = history.last_mut().expect("never empty");
                let before = match value {
                    Some(value) => {
                        state.insert(key, value);
                        tree.insert(&[key], Box::new([value]), epoch.0)
                    }
                    None => {
                        state.remove(&key);
                        tree.remove(&[key], epoch.0)
                    }
                };
                // A snapshot registers before the next epoch begins.
                if let Some(&newest) = snapshots.range(..epoch.0).next_back() {
                    let kept = versions.bytes();
                    let bytes = versions.keep(&[key], epoch, Epoch(newest), Departure::None, before.as_deref());
                    prop_assert_eq!(versions.bytes(), kept + bytes);
                }
            }
            let bytes = versions.bytes();
            if let Some(cut) = cut {
                let right = versions.split_off(&[cut % 20]);
                versions.append(right);
                prop_assert_eq!(versions.bytes(), bytes);
            }
            for (_, known) in versions.images.cursor(Bound::Unbounded) {
                prop_assert!(images(known).count() <= snapshots.len(), "an image for each snapshot at most");
            }
            let mut from: Option<Box<[u8]>> = None;
            loop {
                let (_, next) = versions.collect(Some(Epoch(oldest)), from.as_deref(), slice);
                prop_assert!(next.is_none() || next > from, "it goes on");
                from = next;
                if from.is_none() {
                    break;
                }
            }
            for &epoch in snapshots.range(oldest..) {
                let Some(state) = history.get(epoch as usize) else { continue };
                let mut seen = BTreeMap::new();
                versions.scan(&tree, Epoch(epoch), Bound::Unbounded, Bound::Unbounded, |key, row| {
                    seen.insert(key[0], row[0]);
                    ControlFlow::Continue(())
                });
                prop_assert_eq!(&seen, state);
                for key in 0..20u8 {
                    let row = versions.at(&[key], Epoch(epoch), tree.get(&[key]));
                    prop_assert_eq!(row.map(|row| row[0]), state.get(&key).copied());
                }
                let mut pages = Vec::new();
                let mut low: Bound<Vec<u8>> = Bound::Unbounded;
                while let Some(key) = {
                    let mut next = None;
                    let from = match &low { Bound::Excluded(key) => Bound::Excluded(&key[..]), _ => Bound::Unbounded };
                    versions.scan(&tree, Epoch(epoch), from, Bound::Included(&[19]), |key, _| {
                        next = Some(key.to_vec());
                        ControlFlow::Break(())
                    });
                    next
                } {
                    pages.push(key[0]);
                    low = Bound::Excluded(key);
                }
                prop_assert!(pages.iter().eq(state.keys()), "page by page");
            }
            while versions.collect(None, None, slice).1.is_some() {}
            prop_assert!(versions.is_empty());
            prop_assert_eq!(versions.bytes(), 0);
        }
    }
}
