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

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use smallvec::SmallVec;

use super::row::Row;
use super::tree::{Pointer, Tree};
use crate::id::Epoch;

/// The row before a write, and the epoch of that write.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Image {
    superseded: Epoch,
    row: Option<Row>,
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
}

/// Most keys have one image.
type Images = SmallVec<[Image; 1]>;

/// The images of one tree, ascending by key and, within a key, by epoch.
#[derive(Default, Debug)]
pub struct TreeVersions {
    images: BTreeMap<Box<[u8]>, Images>,
    bytes: u64,
}

/// An image's share of a map node and of the allocator's headers.
const IMAGE_OVERHEAD_BYTES: u64 = 96;

fn image_bytes(key: &[u8], image: &Image) -> u64 {
    IMAGE_OVERHEAD_BYTES + key.len() as u64 + image.row.as_ref().map_or(0, |row| row.len() as u64)
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
        row: impl FnOnce() -> Option<Row>,
    ) -> u64 {
        let images = match self.images.get_mut(key) {
            Some(images) => images,
            None => self.images.entry(key.into()).or_default(),
        };
        if let Some(last) = images.last_mut()
            && (last.superseded > newest || last.superseded >= superseded)
        {
            last.departure = last.departure.max(departure);
            return 0;
        }
        let image = Image { superseded, row: row(), departure };
        let bytes = image_bytes(key, &image);
        images.push(image);
        self.bytes += bytes;
        bytes
    }

    /// The row of `key` at `snapshot`, given the row the tree holds now.
    pub fn at<'r>(&'r self, key: &[u8], snapshot: Epoch, current: Option<&'r Row>) -> Option<&'r Row> {
        match self.images.get(key).and_then(|images| visible(images, snapshot)) {
            Some(image) => image.row.as_ref(),
            None => current,
        }
    }

    /// Whether a transaction of an epoch after `snapshot` wrote `key`. Exact while `snapshot` is
    /// registered.
    pub fn changed_since(&self, key: &[u8], snapshot: Epoch) -> bool {
        self.images.get(key).is_some_and(|images| is_newer(images, snapshot))
    }

    /// What became, by one of them, of the row that was there at `snapshot`.
    pub fn departure_since(&self, key: &[u8], snapshot: Epoch) -> Departure {
        let images = self.images.get(key).into_iter().flatten();
        let newer = images.filter(|image| image.superseded > snapshot);
        newer.map(|image| image.departure).max().unwrap_or_default()
    }

    /// Whether a transaction of an epoch after `snapshot` wrote any key between the bounds.
    pub fn range_changed_since(&self, low: Bound<&[u8]>, high: Bound<&[u8]>, snapshot: Epoch) -> bool {
        !range_is_empty(low, high)
            && self.images.range::<[u8], _>((low, high)).any(|(_, images)| is_newer(images, snapshot))
    }

    /// The keys between the bounds whose row at `snapshot` is not (or may not be) the tree's,
    /// with that row.
    pub fn old_rows<'v>(
        &'v self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        snapshot: Epoch,
    ) -> impl DoubleEndedIterator<Item = (&'v [u8], Option<&'v [u8]>)> + use<'v> {
        self.images
            .range::<[u8], _>((low, high))
            .filter_map(move |(key, images)| Some((&key[..], visible(images, snapshot)?.row.as_deref())))
    }

    /// Whether no image is kept.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Drops images no snapshot from `oldest` on can see (with `None`: all of them), visiting at
    /// most `limit` keys from `from` on. Answers the bytes freed and where to go on.
    pub fn collect(
        &mut self,
        oldest: Option<Epoch>,
        from: Option<&[u8]>,
        limit: usize,
    ) -> (u64, Option<Box<[u8]>>) {
        let before = self.bytes;
        let Some(oldest) = oldest else {
            for _ in 0..limit {
                let Some((key, images)) = self.images.pop_first() else { break };
                let freed: u64 = images.iter().map(|image| image_bytes(&key, image)).sum();
                self.bytes = self.bytes.saturating_sub(freed);
            }
            let next = self.images.first_key_value().map(|(key, _)| key.clone());
            return (before - self.bytes, next);
        };
        let start = from.map_or(Bound::Unbounded, Bound::Included);
        let mut range = self.images.range_mut::<[u8], _>((start, Bound::Unbounded));
        let mut empty = Vec::new();
        let mut freed = 0;
        for (key, images) in range.by_ref().take(limit) {
            images.retain(|image| {
                let keep = image.superseded > oldest;
                if !keep {
                    freed += image_bytes(key, image);
                }
                keep
            });
            if images.is_empty() {
                empty.push(key.clone());
            }
        }
        let next = range.next().map(|(key, _)| key.clone());
        for key in empty {
            self.images.remove(&key);
        }
        self.bytes = self.bytes.saturating_sub(freed);
        (freed, next)
    }

    /// Cuts at `key` as [`Tree::split_off`] does.
    pub fn split_off(&mut self, key: &[u8]) -> TreeVersions {
        let images = self.images.split_off(key);
        let bytes =
            images.iter().flat_map(|(key, images)| images.iter().map(|image| image_bytes(key, image))).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        TreeVersions { images, bytes }
    }

    /// Takes in the images of a tree to the right.
    pub fn append(&mut self, mut right: TreeVersions) {
        self.images.append(&mut right.images);
        self.bytes += right.bytes;
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
        F: FnMut(&[u8], &Row) -> ControlFlow<()>,
    {
        if range_is_empty(low, high) {
            return;
        }
        let mut old = self
            .images
            .range::<[u8], _>((low, high))
            .filter_map(|(key, images)| Some((key.as_ref(), visible(images, snapshot)?)))
            .peekable();
        let mut go_on = ControlFlow::Continue(());
        tree.scan(low, high, |key, row| {
            while let Some((old_key, image)) = old.next_if(|(old_key, _)| *old_key < key) {
                if let Some(row) = &image.row {
                    go_on = visit(old_key, row);
                    go_on?;
                }
            }
            let row = match old.next_if(|(old_key, _)| *old_key == key) {
                Some((_, image)) => image.row.as_ref(),
                None => Some(row),
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
            if let Some(row) = &image.row {
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

fn is_newer(images: &[Image], snapshot: Epoch) -> bool {
    images.last().is_some_and(|image| image.superseded > snapshot)
}

fn visible(images: &[Image], snapshot: Epoch) -> Option<&Image> {
    images.get(images.partition_point(|image| image.superseded <= snapshot))
}

#[cfg(test)]
mod tests {
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
                    let bytes = versions.keep(&[key], epoch, Epoch(newest), Departure::None, || before);
                    prop_assert_eq!(versions.bytes(), kept + bytes);
                }
            }
            let bytes = versions.bytes();
            if let Some(cut) = cut {
                let right = versions.split_off(&[cut % 20]);
                versions.append(right);
                prop_assert_eq!(versions.bytes(), bytes);
            }
            for images in versions.images.values() {
                prop_assert!(images.len() <= snapshots.len(), "an image for each snapshot at most");
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
