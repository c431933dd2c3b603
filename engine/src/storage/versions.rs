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
//! have none. New rows that come one behind the other take no entries: [`super::runs`].

use std::iter;
use std::ops::{Bound, ControlFlow};

use super::key::{KeyBuf, excludes_all, reaches};
use super::row::Row;
use super::runs::Runs;
use super::tree::{Finger, Tree, fetch_rows};
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
    pub(super) fn of(code: u8) -> Departure {
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
    let length = |row: &[u8]| u32::try_from(row.len()).expect("rows are bounded far below 4 GiB");
    out.extend_from_slice(&image.row.map_or(ABSENT, length).to_le_bytes());
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

/// A write that a transaction commits.
#[derive(Clone, Copy, Debug)]
pub struct Replaced<'w> {
    pub key: &'w [u8],
    /// `None`: it was absent.
    pub row: Option<&'w [u8]>,
    pub departure: Departure,
    /// Whether it may go into a run: the transaction has removed no row of this tree.
    pub may_run: bool,
}

/// The images of one tree, by key.
#[derive(Default)]
pub struct TreeVersions {
    images: Tree,
    /// Of rows that were absent and have no image here.
    runs: Runs,
    /// Where the last image went: the next one is often its neighbour.
    finger: Finger,
}

impl TreeVersions {
    /// Keeps what a write of the transaction of `epoch` replaced, if a snapshot up to `newest`, the
    /// newest one registered, can see it: an earlier image serves those from before the write it
    /// tells of, so what was written after `newest`, or in this very epoch, is nobody's past. The
    /// write is in `tree` already. Answers the bytes this took.
    pub fn keep(&mut self, tree: &Tree, replaced: Replaced<'_>, epoch: Epoch, newest: Epoch) -> u64 {
        let Replaced { key, row, departure, may_run } = replaced;
        let before = self.bytes();
        let image = Image { superseded: epoch, row, departure };
        let Some(known) = self.images.lookup_with(key, &mut self.finger).row else {
            self.keep_first(tree, key, image, newest, may_run);
            return self.bytes() - before;
        };
        let mut last_at = 0;
        let mut last: Option<Image<'_>> = None;
        for image in images(known) {
            last_at += last.map_or(0, |image| image.bytes());
            last = Some(image);
        }
        match last {
            Some(last) if last.superseded > newest || last.superseded >= epoch => {
                if departure > last.departure {
                    self.images.update_with(key, epoch.0, &mut self.finger, |known| {
                        known[last_at + DEPARTURE_AT] = departure as u8;
                    });
                }
                0
            }
            _ => {
                self.images.update_with(key, epoch.0, &mut self.finger, |known| {
                    let mut encoded = Vec::with_capacity(known.len() + image.bytes());
                    encoded.extend_from_slice(known);
                    encode(image, &mut encoded);
                    *known = encoded.into();
                });
                self.bytes() - before
            }
        }
    }

    /// Keeps the first image of a key.
    fn keep_first(&mut self, tree: &Tree, key: &[u8], image: Image<'_>, newest: Epoch, may_run: bool) {
        let mut encoded = Vec::new();
        match self.runs.since(key) {
            // Nobody saw it, and nobody sees it go.
            Some(since) if since > newest => return,
            Some(since) if image.row.is_some() => {
                encode(Image { superseded: since, row: None, departure: Departure::None }, &mut encoded);
            }
            None if image.row.is_none() && may_run => {
                return self.runs.add(tree, key, image.superseded, newest);
            }
            _ => {}
        }
        encoded.reserve_exact(image.bytes());
        encode(image, &mut encoded);
        let added = self.images.insert_new_with(key, encoded.into(), image.superseded.0, &mut self.finger);
        debug_assert!(added.is_ok(), "it was not there");
    }

    /// Asks the memory for the images under these keys, [`super::tree::AHEAD_MAX`] of them or so,
    /// which are kept next.
    pub fn fetch_ahead<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        if !self.images.is_empty() {
            fetch_rows(keys.map(|key| (&self.images, key)));
        }
    }

    /// The row of `key` at `snapshot`, given the row the tree holds now.
    pub fn at<'r>(&'r self, key: &[u8], snapshot: Epoch, current: Option<&'r Row>) -> Option<&'r [u8]> {
        let current = || current.map(|row| &row[..]);
        match self.images.get(key) {
            Some(images) => visible(images, snapshot).map_or_else(current, |image| image.row),
            None if self.is_new(key, snapshot) => None,
            None => current(),
        }
    }

    /// Whether a row that is there, and of which no image is kept, came after `snapshot`.
    fn is_new(&self, key: &[u8], snapshot: Epoch) -> bool {
        self.runs.since(key).is_some_and(|since| since > snapshot)
    }

    /// Whether a transaction of an epoch after `snapshot` wrote `key` of `tree`. Exact while
    /// `snapshot` is registered, but for a row that came and went since.
    pub fn changed_since(&self, tree: &Tree, key: &[u8], snapshot: Epoch) -> bool {
        match self.images.get(key) {
            Some(images) => visible(images, snapshot).is_some(),
            None => self.is_new(key, snapshot) && tree.contains(key),
        }
    }

    /// What became, by one of them, of the row that was there at `snapshot`.
    pub fn departure_since(&self, key: &[u8], snapshot: Epoch) -> Departure {
        let known = self.images.get(key).map_or(&[][..], |known| known);
        let newer = images(known).filter(|image| image.superseded > snapshot);
        newer.map(|image| image.departure).max().unwrap_or_default()
    }

    /// Whether a transaction of an epoch after `snapshot` wrote any key of `tree` between the
    /// bounds, as far as [`TreeVersions::changed_since`] tells.
    pub fn range_changed_since(
        &self,
        tree: &Tree,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        snapshot: Epoch,
    ) -> bool {
        let mut changed = false;
        if excludes_all(low, high) {
            return false;
        }
        self.images.scan_leaves(low, high, |leaf| {
            changed = leaf.stamp() > snapshot.0
                && leaf.entries().any(|(_, images)| visible(images, snapshot).is_some());
            if changed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        changed || self.runs.unseen_rows(tree, low, high, snapshot).next().is_some()
    }

    /// The keys between the bounds whose row at `snapshot` is not (or may not be) the tree's,
    /// with that row, as far as images tell. They count before [`TreeVersions::new_rows`].
    pub fn old_rows(
        &self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        snapshot: Epoch,
    ) -> impl DoubleEndedIterator<Item = (&[u8], Option<&[u8]>)> + use<'_> {
        let range = self.images.range(low, high);
        range.filter_map(move |(key, images)| Some((key, visible(images, snapshot)?.row)))
    }

    /// The keys of rows of `tree` between the bounds, which are not the wrong way round, that came
    /// after `snapshot`, as far as runs tell.
    pub fn new_rows<'t>(
        &'t self,
        tree: &'t Tree,
        low: Bound<&'t [u8]>,
        high: Bound<&'t [u8]>,
        snapshot: Epoch,
    ) -> impl DoubleEndedIterator<Item = &'t [u8]> + use<'t> {
        self.runs.unseen_rows(tree, low, high, snapshot)
    }

    /// Whether no image is kept.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty() && self.runs.is_empty()
    }

    /// Memory held, in bytes; what a cut divides adds up to the whole.
    pub fn bytes(&self) -> u64 {
        self.images.payload_bytes() + self.images.len() * ENTRY_BYTES + self.runs.bytes()
    }

    /// Drops images no snapshot from `oldest` on can see (with `None`: all of them), visiting at
    /// most `limit` keys and runs from `from` on. Answers the bytes freed and where to go on.
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
        let next = match (next, self.runs.collect(oldest, from, limit)) {
            (Some(image), Some(run)) => Some(image.min(run)),
            (image, run) => image.or(run),
        };
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

    /// Makes the images' memory again: see [`Tree::remake`].
    pub fn remake(
        &mut self,
        from: Option<&[u8]>,
        go_on: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Option<KeyBuf> {
        self.images.remake(from, go_on)
    }

    /// The addresses of the images: see [`Tree::allocations`].
    pub fn allocations(&self, visit: &mut dyn FnMut(*const u8)) {
        self.images.allocations(visit);
    }

    /// Cuts at `key` as [`Tree::split_off`] does.
    pub fn split_off(&mut self, key: &[u8]) -> TreeVersions {
        let runs = self.runs.split_off(key);
        TreeVersions { images: self.images.split_off(key), runs, finger: Finger::default() }
    }

    /// Takes in the images of a tree to the right.
    pub fn append(&mut self, right: TreeVersions) {
        self.images.append(right.images);
        self.runs.append(right.runs);
    }

    /// Visits the rows of `tree` as `snapshot` sees them, between the bounds, ascending.
    pub fn scan<F>(&self, tree: &Tree, snapshot: Epoch, low: Bound<&[u8]>, high: Bound<&[u8]>, mut visit: F)
    where
        F: FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    {
        if excludes_all(low, high) {
            return;
        }
        let mut old = self.old_rows(low, high, snapshot).peekable();
        let mut unseen = self.runs.unseen(low, high, snapshot).peekable();
        let mut is_new = |key: &[u8]| {
            while unseen.next_if(|(_, end)| !reaches(*end, key)).is_some() {}
            unseen.peek().is_some_and(|(first, _)| *first <= key)
        };
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
                None if is_new(key) => None,
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

/// The image of a key that a snapshot sees; `None`: what is there now.
fn visible(encoded: &[u8], snapshot: Epoch) -> Option<Image<'_>> {
    images(encoded).find(|image| image.superseded > snapshot)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const DEPARTURES: [Departure; 4] =
        [Departure::None, Departure::Deleted, Departure::Moved, Departure::MovedAway];

    #[test]
    fn images_read_back_with_their_departures() {
        let mut encoded = Vec::new();
        let mut written = Vec::new();
        for (place, departure) in DEPARTURES.into_iter().enumerate() {
            assert_eq!(Departure::of(departure as u8), departure);
            for row in [None, Some(&b""[..]), Some(&b"a row"[..])] {
                let image = Image { superseded: Epoch(place as u64 + 7), row, departure };
                encode(image, &mut encoded);
                written.push(image);
            }
        }
        assert_eq!(images(&encoded).collect::<Vec<_>>(), written);
    }

    #[test]
    fn the_later_departure_of_one_image_counts() {
        for first in DEPARTURES {
            for second in DEPARTURES {
                let mut versions = TreeVersions::default();
                // Both writes are of epochs after the newest snapshot: one image.
                let write = |row, departure| Replaced { key: b"k", row: Some(row), departure, may_run: true };
                versions.keep(&Tree::new(), write(b"row", first), Epoch(5), Epoch(4));
                versions.keep(&Tree::new(), write(b"other", second), Epoch(6), Epoch(4));
                assert_eq!(versions.departure_since(b"k", Epoch(4)), first.max(second));
                assert_eq!(versions.at(b"k", Epoch(4), None), Some(&b"row"[..]));
            }
        }
    }

    proptest! {
        #[test]
        fn every_snapshot_sees_the_rows_of_its_epoch(
            transactions in proptest::collection::vec(
                proptest::collection::vec((0u8..20, proptest::option::weighted(0.7, any::<u8>())), 1..6),
                1..70,
            ),
            snapshots in proptest::collection::btree_set(0u64..40, 0..8),
            cut: Option<u8>,
            oldest in 0u64..30,
            slice in 1usize..9,
        ) {
            let mut tree: Tree = Tree::new();
            let mut versions = TreeVersions::default();
            // The whole state at the end of each epoch.
            let mut history: Vec<BTreeMap<u8, u8>> = vec![BTreeMap::new()];
            for (number, writes) in transactions.into_iter().enumerate() {
                let epoch = Epoch(number as u64 / 2 + 1);
                if history.len() as u64 <= epoch.0 {
                    history.push(history.last().cloned().unwrap_or_default());
                }
                let state = history.last_mut().expect("never empty");
                let mut undo = Vec::new();
                for (key, value) in writes {
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
                    if value.is_some() || before.is_some() {
                        undo.push((key, before, value.is_none()));
                    }
                }
                // A snapshot registers before the next epoch begins.
                if let Some(&newest) = snapshots.range(..epoch.0).next_back() {
                    let may_run = !undo.iter().any(|(.., removed)| *removed);
                    for (key, before, _) in undo {
                        let kept = versions.bytes();
                        let (row, departure) = (before.as_deref(), Departure::None);
                        let replaced = Replaced { key: &[key], row, departure, may_run };
                        let bytes = versions.keep(&tree, replaced, epoch, Epoch(newest));
                        prop_assert_eq!(versions.bytes(), kept + bytes);
                    }
                }
            }
            let bytes = versions.bytes();
            if let Some(cut) = cut {
                let right = versions.split_off(&[cut % 20]);
                prop_assert_eq!(versions.bytes() + right.bytes(), bytes);
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
                let (all, middle) = ((Bound::Unbounded, Bound::Unbounded), (Bound::Excluded(&[4][..]), Bound::Included(&[9][..])));
                for (low, high) in [all, middle] {
                    let inside = |key: u8| (low, high) == all || (5..=9).contains(&key);
                    let mut patched: BTreeMap<u8, u8> =
                        tree.range(low, high).map(|(key, row)| (key[0], row[0])).collect();
                    let changed = patched != state.iter().map(|(key, row)| (*key, *row)).filter(|(key, _)| inside(*key)).collect();
                    prop_assert!(!changed || versions.range_changed_since(&tree, low, high, Epoch(epoch)));
                    let new: Vec<u8> = versions.new_rows(&tree, low, high, Epoch(epoch)).map(|key| key[0]).collect();
                    prop_assert!(versions.new_rows(&tree, low, high, Epoch(epoch)).rev().map(|key| key[0]).eq(new.iter().rev().copied()));
                    patched.retain(|key, _| !new.contains(key));
                    for (key, row) in versions.old_rows(low, high, Epoch(epoch)) {
                        match row {
                            Some(row) => patched.insert(key[0], row[0]),
                            None => patched.remove(&key[0]),
                        };
                    }
                    prop_assert!(patched.iter().eq(state.iter().filter(|(key, _)| inside(**key))));
                }
                for key in 0..20u8 {
                    let row = versions.at(&[key], Epoch(epoch), tree.get(&[key]));
                    prop_assert_eq!(row.map(|row| row[0]), state.get(&key).copied());
                    let now = tree.get(&[key]).map(|row| row[0]);
                    let changed = versions.changed_since(&tree, &[key], Epoch(epoch));
                    prop_assert!(changed || now == state.get(&key).copied());
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
