//! What interactive transactions have made of rows and not committed yet: their images, by key.
//!
//! A tree like that of the rows beside which it lies, so that an image takes little more memory than its row,
//! and a million of them go along with a split in O(height). A key has one image at most, for its writer
//! excludes other writers; as long as that has not ended, the image is the lock of the row.
//!
//! ```text
//! [writer's id 8][lock mode 2 bits, departure 2 bits, deleted 1 bit][row]
//! ```
//!
//! Stamps are all zero: nothing here is in a checkpoint or says anything about epochs.

use std::ops::Bound;

use super::key::KeyBuf;
use super::row::Row;
use super::tree::{Finger, Tree};
use super::versions::Departure;
use crate::id::TxnId;
use crate::txn::LockMode;

/// Bytes of an image before its row, and where the flags are.
const HEAD: usize = 9;
const FLAGS_AT: usize = 8;

const DEPARTURE_SHIFT: u32 = LockMode::BITS;
const DELETED: u8 = 1 << 4;
const MODE: u8 = (1 << LockMode::BITS) - 1;

/// What a transaction has made of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image<'i> {
    pub writer: TxnId,
    /// How its writer locks the row.
    pub mode: LockMode,
    /// What became of the committed row under the key by its writer's hand, whatever that has put there since.
    pub departure: Departure,
    /// `None` is a deleted row.
    pub row: Option<&'i [u8]>,
}

/// An image as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredImage(Row);

impl<'i> Image<'i> {
    fn read(stored: &'i [u8]) -> Self {
        let (head, row) = stored.split_first_chunk::<HEAD>().expect("no image is stored without its head");
        let (writer, _) = head.split_first_chunk::<FLAGS_AT>().expect("the head is longer");
        let flags = head[FLAGS_AT];
        Self {
            writer: TxnId(u64::from_le_bytes(*writer)),
            mode: LockMode::of_bits(flags),
            departure: Departure::of(flags >> DEPARTURE_SHIFT & 0b11),
            row: (flags & DELETED == 0).then_some(row),
        }
    }

    fn store(self) -> StoredImage {
        let row = self.row.unwrap_or_default();
        let mut stored = Vec::with_capacity(HEAD + row.len());
        stored.extend_from_slice(&self.writer.0.to_le_bytes());
        let deleted = if self.row.is_none() { DELETED } else { 0 };
        stored.push(self.mode as u8 | (self.departure as u8) << DEPARTURE_SHIFT | deleted);
        stored.extend_from_slice(row);
        StoredImage(stored.into_boxed_slice())
    }
}

impl StoredImage {
    /// What it says.
    pub fn image(&self) -> Image<'_> {
        Image::read(&self.0)
    }
}

/// The images of one tree's rows.
#[derive(Default)]
pub(crate) struct Images {
    tree: Tree,
    /// Where the last one was put: the next one is often its neighbour.
    finger: Finger,
}

impl Images {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// The image of a row.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<Image<'_>> {
        self.tree.get(key).map(|stored| Image::read(stored))
    }

    /// The images between the bounds, which are not the wrong way round, from either end.
    pub fn range(
        &self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> impl DoubleEndedIterator<Item = (&[u8], Image<'_>)> + use<'_> {
        self.tree.range(low, high).map(|(key, stored)| (key, Image::read(stored)))
    }

    /// The least key that has an image.
    pub fn first_key(&self) -> Option<&[u8]> {
        self.tree.first().map(|(key, _)| key)
    }

    /// Puts an image; answers the one in whose place it is.
    pub fn put(&mut self, key: &[u8], image: Image<'_>) -> Option<StoredImage> {
        self.put_stored(key, image.store())
    }

    fn put_stored(&mut self, key: &[u8], image: StoredImage) -> Option<StoredImage> {
        let mut new = Some(image.0);
        let before = self.tree.update_with(key, 0, &mut self.finger, |stored| {
            new.take().map(|new| std::mem::replace(stored, new))
        });
        if let Some(new) = new {
            let added = self.tree.insert_new_with(key, new, 0, &mut self.finger);
            debug_assert!(added.is_ok(), "it was not there");
        }
        before.flatten().map(StoredImage)
    }

    /// Puts an image back in place of the one that has replaced it. The row is locked as it is now.
    pub fn put_back(&mut self, key: &[u8], mut image: StoredImage) {
        if let Some(now) = self.get(key) {
            image.0[FLAGS_AT] = image.0[FLAGS_AT] & !MODE | now.mode as u8;
        }
        self.put_stored(key, image);
    }

    /// Has the writer of an image lock its row otherwise.
    pub fn set_mode(&mut self, key: &[u8], mode: LockMode) {
        self.tree.update(key, 0, |stored| stored[FLAGS_AT] = stored[FLAGS_AT] & !MODE | mode as u8);
    }

    /// Takes an image out.
    pub fn remove(&mut self, key: &[u8]) -> Option<StoredImage> {
        self.tree.remove(key, 0).map(StoredImage)
    }

    /// Makes their memory again: see [`Tree::remake`].
    pub fn remake(
        &mut self,
        from: Option<&[u8]>,
        go_on: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Option<KeyBuf> {
        self.tree.remake(from, go_on)
    }

    /// The addresses of all of it: see [`Tree::allocations`].
    pub fn allocations(&self, visit: &mut dyn FnMut(*const u8)) {
        self.tree.allocations(visit);
    }

    /// Cuts off everything at and above `key`: O(height).
    pub fn split_off(&mut self, key: &[u8]) -> Self {
        Self { tree: self.tree.split_off(key), finger: Finger::default() }
    }

    /// Takes in the images to the right: O(height).
    pub fn append(&mut self, right: Self) {
        self.tree.append(right.tree);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Model {
        writer: TxnId,
        mode: LockMode,
        departure: Departure,
        row: Option<Vec<u8>>,
    }

    impl Model {
        fn image(&self) -> Image<'_> {
            let Self { writer, mode, departure, row } = self;
            Image { writer: *writer, mode: *mode, departure: *departure, row: row.as_deref() }
        }
    }

    fn models() -> impl Strategy<Value = Model> {
        let rows = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..30));
        (0u64..4, 0u8..4, 0u8..4, rows).prop_map(|(writer, mode, departure, row)| Model {
            writer: TxnId(u64::MAX - writer),
            mode: LockMode::of_bits(mode),
            departure: Departure::of(departure),
            row,
        })
    }

    #[derive(Clone, Debug)]
    enum Step {
        Put(Vec<u8>, Model),
        /// An image, and back.
        PutAndBack(Vec<u8>, Model, u8),
        SetMode(Vec<u8>, u8),
        Remove(Vec<u8>),
        CutAndJoin(Vec<u8>),
    }

    fn keys() -> impl Strategy<Value = Vec<u8>> {
        // Few, some of them too long for a node.
        (0u8..60, any::<bool>()).prop_map(|(key, long)| if long { vec![key; 30] } else { vec![key] })
    }

    fn steps() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (keys(), models()).prop_map(|(key, model)| Step::Put(key, model)),
            2 => (keys(), models(), 0u8..4).prop_map(|(key, model, mode)| Step::PutAndBack(key, model, mode)),
            2 => (keys(), 0u8..4).prop_map(|(key, mode)| Step::SetMode(key, mode)),
            2 => keys().prop_map(Step::Remove),
            1 => keys().prop_map(Step::CutAndJoin),
        ]
    }

    fn all(images: &Images) -> Vec<(Vec<u8>, Image<'_>)> {
        images.range(Bound::Unbounded, Bound::Unbounded).map(|(key, image)| (key.to_vec(), image)).collect()
    }

    fn expected(model: &BTreeMap<Vec<u8>, Model>) -> Vec<(Vec<u8>, Image<'_>)> {
        model.iter().map(|(key, model)| (key.clone(), model.image())).collect()
    }

    proptest! {
        #[test]
        fn images_are_what_a_map_holds(
            steps in proptest::collection::vec(steps(), 0..200),
            (low, high) in (keys(), keys()),
        ) {
            let mut images = Images::default();
            let mut model: BTreeMap<Vec<u8>, Model> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Put(key, new) => {
                        let before = images.put(&key, new.image());
                        let known = model.insert(key, new);
                        prop_assert_eq!(before.as_ref().map(StoredImage::image), known.as_ref().map(Model::image));
                    }
                    Step::PutAndBack(key, new, mode) => {
                        let Some(known) = model.get_mut(&key) else { continue };
                        let before = images.put(&key, new.image()).expect("it is there");
                        images.set_mode(&key, LockMode::of_bits(mode));
                        images.put_back(&key, before);
                        known.mode = LockMode::of_bits(mode);
                    }
                    Step::SetMode(key, mode) => {
                        images.set_mode(&key, LockMode::of_bits(mode));
                        if let Some(known) = model.get_mut(&key) {
                            known.mode = LockMode::of_bits(mode);
                        }
                    }
                    Step::Remove(key) => {
                        let removed = images.remove(&key);
                        let known = model.remove(&key);
                        prop_assert_eq!(removed.as_ref().map(StoredImage::image), known.as_ref().map(Model::image));
                    }
                    Step::CutAndJoin(key) => {
                        let right = images.split_off(&key);
                        let above = model.split_off(&key);
                        prop_assert_eq!(all(&images), expected(&model));
                        prop_assert_eq!(all(&right), expected(&above));
                        images.append(right);
                        model.extend(above);
                    }
                }
                prop_assert_eq!(images.is_empty(), model.is_empty());
                prop_assert_eq!(images.first_key(), model.keys().next().map(|key| &key[..]));
            }
            prop_assert_eq!(all(&images), expected(&model));
            for key in model.keys() {
                prop_assert_eq!(images.get(key), model.get(key).map(Model::image));
            }
            if low <= high {
                let range = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
                let inside: Vec<_> =
                    expected(&model).into_iter().filter(|(key, _)| low <= *key && *key < high).collect();
                let up: Vec<_> = images.range(range.0, range.1).map(|(key, image)| (key.to_vec(), image)).collect();
                let mut down: Vec<_> =
                    images.range(range.0, range.1).rev().map(|(key, image)| (key.to_vec(), image)).collect();
                down.reverse();
                prop_assert_eq!(&up, &inside);
                prop_assert_eq!(&down, &inside);
            }
        }
    }
}
