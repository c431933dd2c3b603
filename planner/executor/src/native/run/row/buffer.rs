//! Rows kept for later: a flat buffer of datums of a fixed width.

use archipel_sql::datum::Datum;

/// Rows of one width, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowBuffer {
    pub(crate) values: Vec<Datum>,
    width: usize,
    pub(crate) rows: usize,
}

impl RowBuffer {
    pub fn new(width: usize) -> RowBuffer {
        RowBuffer { values: Vec::new(), width, rows: 0 }
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub fn row(&self, index: usize) -> &[Datum] {
        &self.values[index * self.width..(index + 1) * self.width]
    }

    pub fn iter(&self) -> impl Iterator<Item = &[Datum]> {
        (0..self.rows).map(|index| self.row(index))
    }

    pub fn push(&mut self, row: impl IntoIterator<Item = Datum>) {
        self.values.extend(row);
        self.rows += 1;
        debug_assert_eq!(self.values.len(), self.rows * self.width);
    }
}
