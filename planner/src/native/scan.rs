//! Reading tables: the scan node.
//!
//! The engine lends a row only for the length of a call, and evaluating a condition may need
//! the transaction itself (a subquery, a routine). A point read therefore decodes straight from
//! the tree into slots, while a range is taken in growing batches: rows are copied into an
//! arena of bytes, then decoded one at a time. The next batch continues after the last key.

use std::ops::{Bound, ControlFlow};

use archipel_engine::storage::KeyBuf;
use archipel_engine::txn::{Direction, KeyRange};

use super::CompiledPredicate;
use super::compile::Pruned;
use super::context::{ExecContext, ExecResult, Frame};
use super::node::Out;
use super::path::{KeySpan, Meta, Path, Tree};
use crate::bound::{LockStrength, LockWait, RowLock};
use crate::row::Codec;

/// A column of a scan: where it is stored, where it goes.
#[derive(Clone, Copy)]
pub(crate) struct ScanColumn {
    pub column: u16,
    pub slot: u32,
    pub codec: Codec,
}

/// A scan of one table along one path.
pub(crate) struct Scan {
    pub meta: Meta,
    pub path: Path,
    pub columns: Pruned<ScanColumn>,
    pub filter: Option<CompiledPredicate>,
    pub lock: Option<RowLock>,
    /// A constraint's lookup: a row of a reference table then needs no lock in a one-shot,
    /// whose commit point checks that the table is still the one it read.
    pub constraint: bool,
    /// Where in the frame's keys the storage key of the current row is kept, if anybody asks.
    pub key: Option<usize>,
}

/// Rows of the first batch of a range; each further one is four times as large, up to
/// [`BATCH_ROWS_MAX`].
const BATCH_ROWS_MIN: usize = 8;
const BATCH_ROWS_MAX: usize = 1024;

/// A batch: keys and rows (or storage keys, from an index) one after the other.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// End of each key and of the value after it.
    ends: Vec<(u32, u32)>,
}

impl Batch {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len() as u32));
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn get(&self, index: usize) -> (&[u8], &[u8]) {
        let start = if index == 0 { 0 } else { self.ends[index - 1].1 as usize };
        let (key_end, end) = self.ends[index];
        (&self.bytes[start..key_end as usize], &self.bytes[key_end as usize..end as usize])
    }
}

/// Decodes the used columns of a row into their slots.
#[inline]
pub(crate) fn decode(meta: &Meta, columns: &[ScanColumn], row: &[u8], frame: &mut Frame) {
    for column in columns {
        frame.slots[column.slot as usize] =
            column.codec.decode(meta.layout.get(row, usize::from(column.column)));
    }
}

impl Scan {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        if self.path.unique {
            let mut key = KeyBuf::new();
            if !self.path.point(ctx, &mut key)? {
                return Ok(ControlFlow::Continue(()));
            }
            return match &self.path.tree {
                Tree::Storage => self.fetch(ctx, &key, out),
                Tree::Index(_) => {
                    let span = KeySpan { low: key, low_included: true, high: None, point: true };
                    self.span(ctx, span, out)
                }
            };
        }
        for span in self.path.spans(ctx)? {
            let flow = if span.point && matches!(self.path.tree, Tree::Storage) {
                self.fetch(ctx, &span.low, out)?
            } else {
                self.span(ctx, span, out)?
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// One row by its storage key.
    #[inline]
    fn fetch(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        key: &[u8],
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let Some(row) = ctx.txn.get(&self.meta, key)? else { return Ok(ControlFlow::Continue(())) };
        decode(&self.meta, self.columns.get(), row, &mut ctx.frame);
        self.emit(ctx, key, out)
    }

    /// A row whose columns are in their slots.
    #[inline]
    fn emit(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        key: &[u8],
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        if let Some(filter) = &self.filter
            && filter(ctx)? != Some(true)
        {
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(lock) = &self.lock
            && !(self.constraint && self.meta.is_reference() && ctx.txn.transaction_id().is_none())
            && !lock_row(ctx, &self.meta, key, lock)?
        {
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(kept) = self.key {
            let kept = &mut ctx.frame.keys[kept];
            kept.clear();
            kept.extend_from_slice(key);
        }
        out(ctx)
    }

    fn span(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        span: KeySpan,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let direction = if self.path.reverse { Direction::Descending } else { Direction::Ascending };
        let mut batch = Batch::default();
        let mut limit = BATCH_ROWS_MIN;
        let mut last: Option<Vec<u8>> = None;
        let point_end;
        let mut range = span.range();
        if span.point && span.high.is_none() {
            // A whole unique index key: its entry, which carries no storage key after it.
            point_end = span.low.clone();
            range.high = Bound::Included(&point_end);
        }
        loop {
            batch.clear();
            let part = match (&last, direction) {
                (None, _) => range,
                (Some(last), Direction::Ascending) => {
                    KeyRange { low: Bound::Excluded(last), high: range.high }
                }
                (Some(last), Direction::Descending) => {
                    KeyRange { low: range.low, high: Bound::Excluded(last) }
                }
            };
            let mut visit = |key: &[u8], value: &[u8]| {
                batch.push(key, value);
                if batch.ends.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            match &self.path.tree {
                Tree::Storage => ctx.txn.scan(&self.meta, part, direction, &mut visit)?,
                Tree::Index(index) => ctx.txn.scan_index(&self.meta, index, part, direction, &mut visit)?,
            }
            for position in 0..batch.ends.len() {
                let (key, value) = batch.get(position);
                let flow = match &self.path.tree {
                    Tree::Storage => {
                        decode(&self.meta, self.columns.get(), value, &mut ctx.frame);
                        self.emit(ctx, key, out)?
                    }
                    Tree::Index(_) => self.fetch(ctx, value, out)?,
                };
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            if batch.ends.len() < limit {
                return Ok(ControlFlow::Continue(()));
            }
            last = Some(batch.get(batch.ends.len() - 1).0.to_vec());
            limit = (limit * 4).min(BATCH_ROWS_MAX);
        }
    }
}

/// Locks a row for SELECT … FOR; false if it is skipped.
fn lock_row(ctx: &mut ExecContext<'_, '_>, meta: &Meta, key: &[u8], lock: &RowLock) -> ExecResult<bool> {
    use archipel_engine::txn::{LockMode, LockWait as Wait};
    let mode = match lock.strength {
        LockStrength::KeyShare => LockMode::KeyShare,
        LockStrength::Share => LockMode::Share,
        LockStrength::NoKeyUpdate => LockMode::NoKeyUpdate,
        LockStrength::Update => LockMode::Update,
    };
    let wait = match lock.wait {
        LockWait::Block => Wait::Wait,
        LockWait::NoWait | LockWait::SkipLocked => Wait::NoWait,
    };
    match ctx.txn.lock_row(meta, key, mode, wait) {
        Ok(_) => Ok(true),
        Err(archipel_engine::Stop::LockNotAvailable) if lock.wait == LockWait::SkipLocked => Ok(false),
        Err(stop) => Err(stop.into()),
    }
}
