//! A table that is stored otherwise without a pause: copied in slices beside its writers, then
//! brought up to date and put in its place.
//!
//! ```text
//! begin    an empty copy that nobody else knows, and the sequence that all stamps are below
//! slices   some rows at a time, each slice one transaction, in key order
//! end      both tables claimed: the rows of leaves that were stamped since are compared with the
//!          copy; then it has as many rows as the table, or rows were deleted meanwhile, and the
//!          copy is given up
//! ```
//!
//! The end costs what has changed since the beginning, not what there is. The copy's past begins
//! with it: what the slices committed earlier was nobody's to see.

use crate::id::{GroupId, TreeId};
use crate::partition::{ClaimSet, NOT_COMMITTED, RoutingTable};
use crate::program::{Program, Stop};
use crate::schema::TableDef;
use crate::storage::{KeyBuf, Row};
use crate::table::{REFERENCE_GROUP, TableMeta};
use crate::txn::{ColumnSource, DdlOp, Direction, Inserted, KeyRange, Place, Txn};
use std::ops::{Bound, ControlFlow};

/// Makes an empty copy of a table.
pub struct BeginCopy {
    pub from: TreeId,
    pub def: TableDef,
    /// Set by the run: whatever is written later is stamped above this.
    pub since: u64,
}

impl Program for BeginCopy {
    fn counts(&self) -> bool {
        false
    }

    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.add_group(REFERENCE_GROUP);
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        let op = DdlOp::CreateTable(self.def.clone());
        // What is written to the table later is stamped above what all its partitions have now.
        txn.claim_for([&op], [self.from])?;
        match txn.ddl(op)? {
            Inserted::Ok => {}
            _ => return Err(Stop::Abort),
        }
        self.since = txn.greatest_sequence();
        Ok(())
    }
}

/// Copies some rows, from a key on.
pub struct CopySlice {
    pub from: TreeId,
    pub to: TreeId,
    /// The groups of the two, as far as the caller knows.
    pub groups: Option<(GroupId, GroupId)>,
    /// Where each column comes from.
    pub columns: Vec<ColumnSource>,
    /// The last key that was copied.
    pub after: Option<KeyBuf>,
    pub rows_max: usize,
    /// Set by the run: the last key copied now; `None` when there was nothing left.
    pub last: Option<KeyBuf>,
}

impl Program for CopySlice {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        if let Some((from, to)) = self.groups {
            claims.add_point(from, self.after.as_deref().unwrap_or_default());
            // Where the rows go is in the rows.
            claims.add_group(to);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.last = None;
        let from = txn.table(self.from).ok_or(Stop::Recompile)?;
        let to = txn.table(self.to).ok_or(Stop::Recompile)?;
        let mut rows: Vec<(Row, Row)> = Vec::with_capacity(self.rows_max);
        let low = self.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = KeyRange { low, high: Bound::Unbounded };
        let rows_max = self.rows_max;
        txn.scan(&from, range, Direction::Ascending, &mut |key, row| {
            rows.push((Row::from(key), Row::from(row)));
            if rows.len() < rows_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        for (_, row) in &rows {
            let (key, image) = converted(&from, &to, row, &self.columns)?;
            match txn.insert(&to, &key, &image)? {
                Inserted::Ok => {}
                _ => return Err(Stop::Abort),
            }
        }
        self.last = rows.last().map(|(key, _)| KeyBuf::from_slice(key));
        Ok(())
    }
}

/// A row as the copy has it.
fn converted(
    from: &TableMeta,
    to: &TableMeta,
    row: &[u8],
    columns: &[ColumnSource],
) -> Result<(KeyBuf, Row), Stop> {
    let mut cells = Vec::with_capacity(columns.len());
    for source in columns {
        cells.push(match source {
            ColumnSource::Kept(column) => from.layout.get(row, usize::from(*column)),
            ColumnSource::Constant(cell) => cell.as_cell(),
            // Made anew for each row, they would differ from what was copied.
            ColumnSource::Each(_) | ColumnSource::HiddenRowId => return Err(Stop::Abort),
        });
    }
    let image = to.layout.encode_row(&cells);
    let mut key = KeyBuf::new();
    to.storage_key(&image, &mut key);
    Ok((key, image))
}

impl Txn<'_> {
    /// The greatest sequence of any held partition.
    fn greatest_sequence(&self) -> u64 {
        let sequences = self.held().iter().map(|partition| {
            // SAFETY: held by this transaction; the reference ends with the expression.
            unsafe { partition.data_mut() }.sequence
        });
        sequences.max().unwrap_or(0)
    }

    /// Brings a copy up to date: see the module. [`Inserted::Missing`]: it cannot be.
    pub(super) fn catch_up(
        &mut self,
        from: TreeId,
        to: TreeId,
        columns: &[ColumnSource],
        since: u64,
    ) -> Result<Inserted, Stop> {
        let began = self.shared.clock.monotonic_nanos();
        let (from, to) = (self.defined(from)?, self.defined(to)?);
        self.wait_for_locks(&from)?;
        let place = Place::of(&from);
        let mut changed: Vec<Row> = Vec::new();
        let mut rows = 0;
        for partition in self.partitions_of(from.group) {
            let tree = self.root(partition, place)?.rows();
            rows += tree.len();
            tree.scan_leaves(Bound::Unbounded, Bound::Unbounded, |leaf| {
                if leaf.stamp() > since {
                    changed.extend(leaf.entries().map(|(_, row)| Row::from(&row[..])));
                }
                ControlFlow::Continue(())
            });
        }
        for row in &changed {
            let (key, image) = converted(&from, &to, row, columns)?;
            match self.get(&to, &key)?.map(|there| *there == *image) {
                Some(true) => continue,
                Some(false) => {
                    self.delete(&to, &key)?;
                }
                None => {}
            }
            match self.insert(&to, &key, &image)? {
                Inserted::Ok => {}
                refused => return Ok(refused),
            }
        }
        let trees = std::iter::once((to.group, to.root))
            .chain(to.indexes.iter().map(|index| (index.group, index.root)));
        let mut copied = 0;
        for (group, position) in trees {
            for partition in self.partitions_of(group) {
                // SAFETY: the group is held; the reference ends in this iteration.
                let data = unsafe { partition.data_mut() };
                if let Some(root) = data.roots.get_mut(position as usize) {
                    root.since = NOT_COMMITTED;
                    copied += if root.id == Some(to.def.id) { root.rows().len() } else { 0 };
                }
            }
        }
        if copied != rows {
            return Ok(Inserted::Missing);
        }
        self.note_regrouped(&to, began);
        Ok(Inserted::Ok)
    }
}
