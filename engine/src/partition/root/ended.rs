//! Images of writers that have ended, which are put in place, or taken out, in slices.
//!
//! One of a writer that has committed is the row, of the epoch of its commit: who looks for the row puts it in
//! place first. One of an aborted writer is nothing: readers pass beneath as before, and whoever writes there
//! takes it out first. Only the first kind has a mark, since everybody must look for it: it is set under the
//! claim in which the writer commits, and goes with the last such image.

use super::*;
use crate::txn::WriterOutcome;

/// An image of a writer that has ended.
pub(crate) struct Ended<'i> {
    pub image: Image<'i>,
    /// The epoch of its commit; `None`: it was aborted.
    pub committed: Option<Epoch>,
}

impl Root {
    /// A writer whose images are here has committed.
    pub fn mark_unsettled(&mut self) {
        self.marks.set(Marks::UNSETTLED, self.marks.has(Marks::IMAGES));
        self.decided += 1;
    }

    /// How often that was said.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// Whether there may be images of writers that have committed.
    #[inline]
    pub fn has_unsettled(&self) -> bool {
        self.marks.has(Marks::UNSETTLED)
    }

    /// Whether a writer is listed that has committed and has still images somewhere.
    pub(super) fn lists_committed(&self) -> bool {
        let committed = |writer: &Writer| matches!(writer.outcome(), WriterOutcome::Committed(_));
        self.writers.iter().any(|(_, writer)| committed(writer) && !writer.is_over())
    }

    /// What became of the writer of an image, if it has ended.
    fn end_of(&self, writer: TxnId) -> Option<Option<Epoch>> {
        let (_, writer) = self.writers.iter().find(|(known, _)| *known == writer)?;
        match writer.outcome() {
            WriterOutcome::Running | WriterOutcome::Deciding => None,
            WriterOutcome::Committed(epoch) => Some(Some(epoch)),
            WriterOutcome::Aborted => Some(None),
        }
    }

    /// The image of a row whose writer has ended.
    pub fn ended_at(&self, key: &[u8]) -> Option<Ended<'_>> {
        if !self.writers.iter().any(|(_, writer)| writer.has_ended()) {
            return None;
        }
        let image = self.image(key)?;
        let committed = self.end_of(image.writer)?;
        Some(Ended { image, committed })
    }

    /// When the writer of a row's image has committed.
    pub(super) fn unsettled_at(&self, key: &[u8]) -> Option<Epoch> {
        if self.has_unsettled() { self.ended_at(key)?.committed } else { None }
    }

    /// Whether a transaction of an epoch after `snapshot` has an image between the bounds.
    pub(super) fn has_unsettled_since(&self, low: Bound<&[u8]>, high: Bound<&[u8]>, snapshot: Epoch) -> bool {
        if !self.has_unsettled() || excludes_all(low, high) {
            return false;
        }
        let newer = |writer: TxnId| self.end_of(writer).flatten().is_some_and(|epoch| epoch > snapshot);
        if !self.writers.iter().any(|(writer, _)| newer(*writer)) {
            return false;
        }
        self.images.range(low, high).any(|(_, image)| newer(image.writer))
    }

    /// The keys of images of writers that have committed between the bounds, in the order of a scan: as many
    /// as there are among the first `images_max` images there. Answers the key up to which that is, if there
    /// are images behind it.
    pub fn unsettled_keys(
        &mut self,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        ascending: bool,
        images_max: usize,
        keys: &mut Vec<KeyBuf>,
    ) -> Option<KeyBuf> {
        if !self.lists_committed() {
            // The last one is over.
            self.mark_again();
            return None;
        }
        if excludes_all(low, high) {
            return None;
        }
        let images = self.images.range(low, high);
        let mut look = |at: usize, (key, image): (&[u8], Image<'_>)| {
            if self.end_of(image.writer).flatten().is_some() {
                keys.push(KeyBuf::from_slice(key));
            }
            (at + 1 == images_max).then(|| KeyBuf::from_slice(key))
        };
        match ascending {
            true => images.enumerate().find_map(|(at, image)| look(at, image)),
            false => images.rev().enumerate().find_map(|(at, image)| look(at, image)),
        }
    }
}
