//! Rows that are read ahead, decoded: batches of scans, and what lookups have found.

use std::ops::ControlFlow;

use archipel_engine::storage::ColumnPlace;
use archipel_sql::datum::Datum;

use crate::row::Codec;

/// What was looked up for some rows of an outer scan, one after the other.
#[derive(Default)]
pub(crate) struct LookedUp {
    /// The columns of each row, NULL where there is none.
    pub(crate) values: Vec<Datum>,
    /// For which outer rows it is known whether there is a row, and nobody has asked yet.
    pub(crate) known: u32,
    /// For which of them there is one.
    pub(crate) present: u32,
    /// The outer row at hand.
    pub at: usize,
}

impl LookedUp {
    /// Forgets what is known. Values that nobody has asked for stay until others take their place.
    #[inline]
    pub fn forget(&mut self) {
        self.known = 0;
        self.present = 0;
    }

    /// Forgets the values, too.
    pub fn clear(&mut self) {
        self.forget();
        self.values.clear();
    }

    /// What was found for the outer row at hand: the columns of a row, or that there is none. To be
    /// had once.
    #[inline]
    pub fn take(&mut self, width: usize) -> Option<Option<&mut [Datum]>> {
        let mark = 1 << self.at;
        if self.known & mark == 0 {
            return None;
        }
        self.known &= !mark;
        if self.present & mark == 0 {
            return Some(None);
        }
        let start = self.at * width;
        Some(self.values.get_mut(start..start + width))
    }
}

/// A column of a scan: where it is stored, where it goes.
#[derive(Clone, Copy)]
pub(crate) struct ScanColumn {
    pub place: ColumnPlace,
    pub slot: u32,
    pub codec: Codec,
}

/// A batch of a range: the used columns of its rows, and keys where they are needed (the
/// storage keys behind index entries always are).
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) values: Vec<Datum>,
    pub(crate) keys: Vec<u8>,
    /// End of each key in `keys`.
    ends: Vec<usize>,
    pub(crate) rows: usize,
    /// The key the next batch continues after.
    pub(crate) last: Vec<u8>,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.keys.clear();
        self.ends.clear();
        self.rows = 0;
    }

    pub(crate) fn push_key(&mut self, key: &[u8]) {
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
    }

    pub(crate) fn key(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends.get(index - 1).copied().unwrap_or(0) };
        match self.ends.get(index) {
            Some(end) => &self.keys[start..*end],
            None => &[],
        }
    }

    /// Counts a row; whether the batch is full, its last key being noted then.
    pub(crate) fn row(&mut self, key: &[u8], limit: usize) -> ControlFlow<()> {
        self.rows += 1;
        if self.rows < limit {
            return ControlFlow::Continue(());
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        ControlFlow::Break(())
    }
}
