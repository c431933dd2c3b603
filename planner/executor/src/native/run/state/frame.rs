//! The slots of a statement, and what is kept beside them.

use std::ops::Range;
use std::sync::Arc;

use archipel_sql::datum::{Array, Datum};

use crate::native::run::access::batch::{LookedUp, ScanColumn};
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::{AskedRows, HashTable, ValueSet};

impl RowBuffer {
    /// Appends the values standing in some slots.
    pub fn push_slots(&mut self, frame: &Frame, slots: &[u32]) {
        self.values.extend(slots.iter().map(|slot| frame.slots[*slot as usize].clone()));
        self.rows += 1;
    }

    /// Puts a row back where it came from.
    pub fn restore(&self, index: usize, frame: &mut Frame, slots: &[u32]) {
        for (value, slot) in self.row(index).iter().zip(slots) {
            frame.slots[*slot as usize].clone_from(value);
        }
    }
}

/// How many slots and caches a statement needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameShape {
    pub slots: usize,
    /// The slots that are ever filled, as runs of neighbours: emptied after each run.
    pub filled: Vec<Range<usize>>,
    pub caches: usize,
    pub keys: usize,
    pub lookups: usize,
    /// Whether it calls routines that may write, and reads beneath what they do.
    pub beneath: bool,
}

/// The working storage of one running statement. In the pool its slots are NULL; there may be
/// more of them than the statement has.
#[derive(Default)]
pub(crate) struct Frame {
    pub slots: Vec<Datum>,
    /// Results kept within one run: uncorrelated subqueries, CTEs, materialised inputs.
    pub caches: Vec<Cache>,
    /// The storage key of the row a scan stands on, where somebody needs it.
    pub keys: Vec<Vec<u8>>,
    /// What outer scans have looked up for the inner sides of joins.
    pub looked_up: Vec<LookedUp>,
    /// Where INSERT encodes a row, and where a scan keeps the one it stands on for columns that
    /// are read only if an arm of CASE needs them.
    pub row: Vec<u8>,
}

impl Frame {
    #[inline]
    pub(crate) fn take_shape(&mut self, shape: &FrameShape) {
        if self.slots.len() < shape.slots {
            self.slots.resize(shape.slots, Datum::Null);
        }
        if shape.caches > 0 {
            self.caches.resize_with(shape.caches, Cache::default);
        }
        if self.keys.len() < shape.keys {
            self.keys.resize_with(shape.keys, Vec::new);
        }
        if self.looked_up.len() < shape.lookups {
            self.looked_up.resize_with(shape.lookups, LookedUp::default);
        }
    }

    /// Reads columns of the row a scan kept.
    #[inline]
    pub fn read_kept(&mut self, columns: &[ScanColumn]) {
        for column in columns {
            self.slots[column.slot as usize].set(column.codec.read(&column.place, &self.row));
        }
    }

    /// Puts the columns of a row that was looked up beforehand into their slots: whether there is one;
    /// `None` if nobody has looked.
    #[inline]
    pub fn show_looked_up(&mut self, place: usize, columns: &[ScanColumn]) -> Option<bool> {
        let Some(row) = self.looked_up[place].take(columns.len())? else { return Some(false) };
        for (column, value) in columns.iter().zip(row) {
            self.slots[column.slot as usize].set(value.take());
        }
        Some(true)
    }

    /// Forgets what is kept for a run: the parameters have other values now.
    pub(crate) fn forget(&mut self) {
        self.caches.iter_mut().for_each(|cache| *cache = Cache::default());
    }

    pub(crate) fn clear(&mut self, shape: &FrameShape) {
        for run in &shape.filled {
            self.slots[run.clone()].iter_mut().for_each(|slot| slot.set(Datum::Null));
        }
        if !self.caches.is_empty() {
            self.caches.clear();
        }
        if shape.lookups > 0 {
            self.looked_up.iter_mut().for_each(LookedUp::clear);
        }
    }
}

/// Something computed once within a run of a statement.
#[derive(Default, Clone)]
pub(crate) enum Cache {
    #[default]
    Empty,
    Value(Datum),
    Rows(Arc<RowBuffer>),
    /// The values of an uncorrelated `IN (query)`, or of a list of parameters.
    Set(Arc<ValueSet>),
    /// The rows of a correlated EXISTS, by what they have to have in common with the row around it.
    Keyed(Arc<HashTable>),
    /// The rows of a system relation, by the few values that were asked for.
    Asked(Arc<AskedRows>),
    /// The array that was looked through last, and its elements if it was looked through before.
    Elements(Arc<Array>, Option<Arc<ValueSet>>),
}
