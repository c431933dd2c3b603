//! The rows of one partition of a window, in order.

use std::ops::Range;

use archipel_sql::datum::Datum;

use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::same;

/// What one call needs of the rows.
pub(crate) struct Columns {
    pub(crate) partition: RowBuffer,
    pub(crate) order: RowBuffer,
    pub(crate) args: RowBuffer,
    pub(crate) passes: Vec<bool>,
}

pub(crate) fn equal(a: &[Datum], b: &[Datum]) -> bool {
    a.iter().zip(b).all(|(a, b)| same(a, b))
}

/// One partition in order, with its groups of peers.
pub(crate) struct Partition<'p> {
    pub(crate) rows: &'p [usize],
    pub(crate) columns: &'p Columns,
    /// First and past-the-last position of each row's peers.
    pub(crate) peers: Vec<Range<usize>>,
    /// Number of the peer group of each row.
    pub(crate) group: Vec<usize>,
    pub(crate) groups: Vec<Range<usize>>,
}

impl<'p> Partition<'p> {
    pub(crate) fn new(rows: &'p [usize], columns: &'p Columns) -> Self {
        let mut groups: Vec<Range<usize>> = Vec::new();
        for position in 0..rows.len() {
            match groups.last_mut() {
                Some(group)
                    if equal(columns.order.row(rows[group.start]), columns.order.row(rows[position])) =>
                {
                    group.end = position + 1;
                }
                _ => groups.push(position..position + 1),
            }
        }
        let mut group = Vec::with_capacity(rows.len());
        let mut peers = Vec::with_capacity(rows.len());
        for (number, range) in groups.iter().enumerate() {
            for _ in range.clone() {
                group.push(number);
                peers.push(range.clone());
            }
        }
        Partition { rows, columns, peers, group, groups }
    }

    pub(crate) fn args(&self, position: usize) -> &[Datum] {
        self.columns.args.row(self.rows[position])
    }

    /// Whether FILTER lets a row pass.
    pub(crate) fn passes(&self, position: usize) -> bool {
        self.columns.passes[self.rows[position]]
    }
}
