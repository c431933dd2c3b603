//! Lists of columns that shrink to those that somebody reads.

use std::sync::{Arc, OnceLock};

/// A list of slots (with something about each) that shrinks to the used ones when the whole
/// statement is compiled.
pub(crate) struct Pruned<T>(pub(crate) Arc<OnceLock<Vec<T>>>);

impl<T> Clone for Pruned<T> {
    fn clone(&self) -> Self {
        Pruned(self.0.clone())
    }
}

impl<T> Pruned<T> {
    /// A list of nothing.
    pub fn none() -> Pruned<T> {
        Pruned(Arc::new(OnceLock::new()))
    }

    #[inline]
    pub fn get(&self) -> &[T] {
        self.0.get().map_or(&[], Vec::as_slice)
    }
}
