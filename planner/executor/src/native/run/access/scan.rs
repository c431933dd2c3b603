//! Reading tables: the scan node.
//!
//! The engine lends a row only for the length of a call, and evaluating a condition may need
//! the transaction itself (a subquery, a routine). A point read therefore decodes straight from
//! the tree into slots, while a range is taken in growing batches: the used columns are decoded
//! as the engine shows each row, and put into their slots one row at a time afterwards. The
//! next batch continues after the last key.

use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use archipel_engine::AHEAD_MAX;
use archipel_engine::index_uses::IndexUse;
use archipel_engine::storage::KeyBuf;
use archipel_engine::txn::{Direction, KeyRange};
use archipel_sql::catalog::Table;
use archipel_sql::datum::Datum;

use super::batch::{Batch, ScanColumn};
use super::key_span::KeySpan;
use super::lookup::Lookup;
use super::path::{CountedIndex, Meta, Path, Tree};
use crate::bound::RowLock;
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::operator::lock::lock_row;
use crate::native::run::operator::node::Out;
use crate::native::run::row::projection::Pruned;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::state::frame::Frame;
use crate::row::Codec;

/// All columns of a table, going to these slots.
pub(crate) fn scan_columns(table: &Table, meta: &Meta, slots: &[u32]) -> Vec<ScanColumn> {
    table
        .columns
        .iter()
        .zip(slots)
        .zip(meta.layout.places())
        .map(|((column, slot), place)| ScanColumn { place: *place, slot: *slot, codec: Codec::of(column.ty) })
        .collect()
}

/// A scan of one table along one path.
pub(crate) struct Scan {
    pub meta: Meta,
    pub path: Arc<Path>,
    pub columns: Pruned<ScanColumn>,
    pub filter: Option<CompiledPredicate>,
    pub lock: Option<RowLock>,
    /// Where the storage key of the current row goes for a [`Locking`](crate::native::run::operator::lock::Locking) above.
    pub key_slot: Option<u32>,
    /// A constraint's lookup: a row of a reference table then needs no lock in a one-shot,
    /// whose commit point checks that the table is still the one it read.
    pub constraint: bool,
    /// Where in the frame's keys the storage key of the current row is kept, if anybody asks.
    pub key: Option<usize>,
    /// How many rows the first batch of a range takes.
    pub first_batch: usize,
    /// Columns that are read later, from the row kept in the frame. Only a scan of one row by
    /// its key keeps it.
    pub deferred: Pruned<ScanColumn>,
    /// What each row of a range will be looked up in by its key.
    pub lookup: Option<Lookup>,
    /// Where in the frame a join's outer scan leaves the rows it has looked up for this one.
    pub looked_up: Option<usize>,
    /// Whether its rows are to be changed or locked: those that changed while the statement waited
    /// are seen as they are now.
    pub reevaluated: bool,
}

/// What one walk along a path goes by, and has come to.
struct Walk<'c> {
    /// How many rows nobody asks for.
    past: &'c Cell<i64>,
    /// Entries of an index that were read, or rows in ranges of them.
    entries: Cell<u64>,
    /// Rows that were looked up by entries.
    rows: Cell<u64>,
}

/// Rows of the first batch of a range, unless the plan expects fewer; each further one is four
/// times as large, up to [`BATCH_ROWS_MAX`].
pub(crate) const BATCH_ROWS: usize = 24;
const BATCH_ROWS_MAX: usize = 8192;

/// Whether a one-shot may refer to a row of a reference table without locking it: its commit
/// point checks that the table is the one it read, and nobody is about to take the row away.
fn may_skip_lock(ctx: &ExecContext<'_, '_>) -> bool {
    ctx.txn.transaction_id().is_none() && !ctx.txn.reference_keys_locked()
}

/// Decodes the used columns of a row into their slots.
#[inline]
pub(crate) fn decode(columns: &[ScanColumn], row: &[u8], frame: &mut Frame) {
    for column in columns {
        frame.slots[column.slot as usize].set(column.codec.read(&column.place, row));
    }
}

impl Walk<'_> {
    #[inline]
    fn read(&self, entries: usize) {
        self.entries.set(self.entries.get() + entries as u64);
    }
}

impl Scan {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        self.run_past(ctx, &Cell::new(0), out)
    }

    /// As [`Scan::run`], where nobody asks for the first `past` rows. Some of them may come all the
    /// same: `past` counts down for those that do not.
    pub fn run_past(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        past: &Cell<i64>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        // Where some are seen as they are now, all of them come.
        let (again, all) = (self.reevaluated && ctx.txn.sees_newer(), Cell::new(0));
        let past = if again { &all } else { past };
        let walk = Walk { past, entries: Cell::new(0), rows: Cell::new(0) };
        match self.path.counted.is_empty() {
            true => self.run_walk(ctx, (&walk, again), out),
            false => self.run_counted(ctx, (&walk, again), out),
        }
    }

    /// As [`Scan::run_past`], where uses of indexes are counted: one a run, once it has come to its end or
    /// enough was found. What was stopped runs again, and counts then.
    fn run_counted(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        (walk, again): (&Walk<'_>, bool),
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let mut shown = 0;
        let flow = self.run_walk(ctx, (walk, again), &mut |ctx| {
            shown += 1;
            out(ctx)
        })?;
        let (entries, rows) = (walk.entries.get(), walk.rows.get());
        // Of a table read whole an index would have found what is shown; where there is one, entries may
        // have been passed over.
        let found = if self.is_by_index() { entries.max(shown) } else { shown };
        let narrow = found < ctx.txn.partitions_of_table(&self.meta) as u64;
        for CountedIndex { uses, bound, missed } in &self.path.counted {
            let (bound, missed) = (*bound, *missed);
            let (entries, rows) = if missed { (0, 0) } else { (entries, rows) };
            ctx.txn.count_use(uses, IndexUse { bound, narrow, missed, entries, rows });
        }
        Ok(flow)
    }

    #[inline]
    fn run_walk(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        (walk, again): (&Walk<'_>, bool),
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        if again { self.run_again(ctx, walk, out) } else { self.walk(ctx, walk, out) }
    }

    fn is_by_index(&self) -> bool {
        matches!(self.path.tree, Tree::Index(_))
    }

    /// Walks the path.
    #[inline]
    fn walk(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        walk: &Walk<'_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        if self.path.unique {
            if let Some(place) = self.looked_up
                && let Some(found) = ctx.frame.show_looked_up(place, self.columns.get())
            {
                return if found { self.emit(ctx, &[], out) } else { Ok(ControlFlow::Continue(())) };
            }
            let mut key = KeyBuf::new();
            if !self.path.point(ctx, &mut key)? {
                return Ok(ControlFlow::Continue(()));
            }
            return match &self.path.tree {
                Tree::Storage => self.fetch(ctx, &key, out),
                Tree::Index(_) => {
                    let span = KeySpan { low: key, low_included: true, high: None, point: true };
                    self.span(ctx, &span, walk, out)
                }
            };
        }
        for span in &self.path.spans(ctx)? {
            let flow = if span.point && matches!(self.path.tree, Tree::Storage) {
                self.fetch(ctx, &span.low, out)?
            } else {
                self.span(ctx, span, walk, out)?
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Runs where some rows are seen in their newest version: each of them where the path met it
    /// before, or at the end if only its newest version is on the path.
    #[cold]
    fn run_again(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        walk: &Walk<'_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let spans = self.path.all_spans(ctx)?;
        let mut unmet = Vec::new();
        for key in ctx.txn.newer_rows(&self.meta) {
            let before = ctx.txn.get(&self.meta, &key)?;
            if !before.is_some_and(|row| self.leads_to(&spans, &key, row)) {
                unmet.push(key);
            }
        }
        let flow = self.walk(ctx, walk, out)?;
        if flow.is_break() {
            return Ok(flow);
        }
        for key in unmet {
            if self.fetch_newest(ctx, &key, out)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Whether the path leads to a row.
    fn leads_to(&self, spans: &[KeySpan], key: &[u8], row: &[u8]) -> bool {
        match &self.path.tree {
            Tree::Storage => spans.iter().any(|span| span.holds(key)),
            Tree::Index(index) => self.meta.index(index.id).is_some_and(|index| {
                let mut entry = KeyBuf::new();
                self.meta.index_key(index, row, key, &mut entry);
                spans.iter().any(|span| span.holds(&entry))
            }),
        }
    }

    /// Whether the statement sees the row under a key in its newest version.
    #[inline]
    fn is_newer(&self, ctx: &ExecContext<'_, '_>, key: &[u8]) -> bool {
        self.reevaluated && ctx.txn.has_view() && ctx.txn.is_newer(&self.meta, key)
    }

    /// The newest version of a row, if the path leads to that.
    #[cold]
    fn fetch_newest(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        key: &[u8],
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let spans = self.path.all_spans(ctx)?;
        let Some(row) = ctx.txn.get_newer(&self.meta, key)? else { return Ok(ControlFlow::Continue(())) };
        if !self.leads_to(&spans, key, row) {
            return Ok(ControlFlow::Continue(()));
        }
        self.show(&mut ctx.frame, row);
        self.emit(ctx, key, out)
    }

    /// Puts the columns of a row into their slots.
    #[inline]
    fn show(&self, frame: &mut Frame, row: &[u8]) {
        decode(self.columns.get(), row, frame);
        if !self.deferred.get().is_empty() {
            frame.row.clear();
            frame.row.extend_from_slice(row);
        }
    }

    /// One row by its storage key.
    #[inline]
    fn fetch(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        key: &[u8],
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        if self.is_newer(ctx, key) {
            return self.fetch_newest(ctx, key, out);
        }
        let Some(row) = ctx.txn.get(&self.meta, key)? else { return Ok(ControlFlow::Continue(())) };
        self.show(&mut ctx.frame, row);
        self.emit(ctx, key, out)
    }

    /// The row an entry of the index stands for. Where others change rows meanwhile, it is asked
    /// whether it still belongs to the entries that are looked for: nothing else compares it.
    #[inline]
    fn fetch_entry(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        span: &KeySpan,
        key: &[u8],
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        if ctx.txn.entries_are_rows() || self.is_newer(ctx, key) {
            return self.fetch(ctx, key, out);
        }
        let Some(row) = ctx.txn.get(&self.meta, key)? else { return Ok(ControlFlow::Continue(())) };
        if !self.leads_to(std::slice::from_ref(span), key, row) {
            return Ok(ControlFlow::Continue(()));
        }
        self.show(&mut ctx.frame, row);
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
        ctx.tick()?;
        if let Some(filter) = &self.filter
            && filter(ctx)? != Some(true)
        {
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(lock) = &self.lock
            && !(self.constraint && self.meta.is_reference() && may_skip_lock(ctx))
            && !lock_row(ctx, &self.meta, key, lock)?
        {
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(slot) = self.key_slot {
            ctx.frame.slots[slot as usize] = Datum::Bytea(key.into());
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
        span: &KeySpan,
        walk: &Walk<'_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let mut batch = ctx.take_batch();
        let result = self.batches(ctx, (span, walk), &mut batch, out);
        if let Some(place) = self.lookup.as_ref().and_then(|lookup| lookup.place) {
            // Whoever had enough has left some.
            ctx.frame.looked_up[place].forget();
        }
        batch.clear();
        ctx.give_batch(batch);
        result
    }

    /// Looks up, or fetches, what the next rows of a batch will be joined with.
    fn look_up(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        lookup: &Lookup,
        batch: &Batch,
        from: usize,
    ) -> ExecResult<()> {
        if let Some(place) = lookup.place {
            ctx.frame.looked_up[place].forget();
        }
        let columns = self.columns.get();
        if columns.is_empty() || batch.rows - from == 1 || !ctx.txn.fetches_ahead() {
            return Ok(());
        }
        let rows = batch.values.chunks_exact(columns.len()).skip(from).take(AHEAD_MAX);
        lookup.run(ctx, columns, rows)
    }

    /// Whether each entry of the index stands for a row that is shown: there is no condition or lock
    /// for which the row has to be looked at.
    fn shows_entries(&self, ctx: &ExecContext<'_, '_>) -> bool {
        self.is_by_index()
            && self.filter.is_none()
            && self.lock.is_none()
            && !self.reevaluated
            && ctx.txn.entries_are_rows()
    }

    /// Walks a range in batches.
    fn batches(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        (span, walk): (&KeySpan, &Walk<'_>),
        batch: &mut Batch,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let direction = if self.path.reverse { Direction::Descending } else { Direction::Ascending };
        let columns = self.columns.get();
        let keep_keys =
            self.key.is_some() || self.lock.is_some() || self.key_slot.is_some() || self.reevaluated;
        let entries = self.shows_entries(ctx);
        // A count of rows, say: nothing of theirs is read.
        let only_entries = entries && columns.is_empty() && self.deferred.get().is_empty();
        let mut limit = self.first_batch.max(1);
        let mut range = span.range();
        if span.point && span.high.is_none() {
            // A whole unique index key: its entry, which carries no storage key after it.
            range.high = Bound::Included(&span.low);
        }
        let mut last: Option<Vec<u8>> = None;
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
            match &self.path.tree {
                Tree::Storage => ctx.txn.scan(&self.meta, part, direction, &mut |key, row| {
                    for column in columns {
                        batch.values.push(column.codec.read(&column.place, row));
                    }
                    if keep_keys {
                        batch.push_key(key);
                    }
                    batch.row(key, limit)
                })?,
                Tree::Index(index) => {
                    ctx.txn.scan_index(&self.meta, index, part, direction, &mut |key, storage_key| {
                        batch.push_key(storage_key);
                        batch.row(key, limit)
                    })?;
                }
            }
            for row in 0..batch.rows {
                if let Some(lookup) = &self.lookup {
                    let at = row % AHEAD_MAX;
                    if at == 0 {
                        self.look_up(ctx, lookup, batch, row)?;
                    }
                    if let Some(place) = lookup.place {
                        ctx.frame.looked_up[place].at = at;
                    }
                }
                let flow = match &self.path.tree {
                    Tree::Storage if self.is_newer(ctx, batch.key(row)) => {
                        self.fetch_newest(ctx, batch.key(row), out)?
                    }
                    Tree::Storage => {
                        let values = &mut batch.values[row * columns.len()..(row + 1) * columns.len()];
                        for (column, value) in columns.iter().zip(values) {
                            ctx.frame.slots[column.slot as usize].set(value.take());
                        }
                        self.emit(ctx, batch.key(row), out)?
                    }
                    Tree::Index(_) if entries && walk.past.get() > 0 => {
                        walk.past.set(walk.past.get() - 1);
                        ctx.tick()?;
                        ControlFlow::Continue(())
                    }
                    Tree::Index(_) if only_entries => self.emit(ctx, batch.key(row), out)?,
                    Tree::Index(_) => {
                        walk.rows.set(walk.rows.get() + 1);
                        self.fetch_entry(ctx, span, batch.key(row), out)?
                    }
                };
                if flow.is_break() {
                    walk.read(row + 1);
                    return Ok(flow);
                }
            }
            walk.read(batch.rows);
            if batch.rows < limit {
                return Ok(ControlFlow::Continue(()));
            }
            let next = last.get_or_insert_default();
            next.clear();
            next.extend_from_slice(&batch.last);
            limit = (limit * 4).min(BATCH_ROWS_MAX);
        }
    }
}
