//! Scans of system relations, whose rows the server makes when somebody asks for them.
//!
//! Making them costs as much for one row as for all. Where a scan runs once for each of other rows (in a
//! correlated subquery, on the right side of a lateral join), the first run keeps them by what the
//! conditions say is equal, and the later ones look there.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::catalog::TableRef;
use archipel_sql::datum::Datum;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::node::{MoreRows, Out, hash_key};
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::{HashKey, HashTable, widen};
use crate::native::run::row::projection::Pruned;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::state::frame::Cache;

/// A view over the server's own state.
pub(crate) struct SystemScan {
    pub table: TableRef,
    /// Rows that the transaction knows beside those of the server.
    pub more: Option<MoreRows>,
    /// The columns that are read, with the slots that they go to.
    pub columns: Pruned<(usize, u32)>,
    pub filter: Option<CompiledPredicate>,
    /// How its rows are kept between runs, if they are.
    pub kept: Option<KeptRows>,
}

/// Rows that are kept within a run of the statement, by some of their columns.
pub(crate) struct KeptRows {
    /// Where in the frame.
    pub cache: usize,
    /// The columns, by their places in the relation; none: all rows are alike.
    pub columns: Vec<usize>,
    /// What they have to be equal to. The filter says so, too.
    pub values: Vec<Source>,
    /// The slots of the columns that are read, in the order of [`SystemScan::columns`].
    pub slots: Pruned<u32>,
}

impl SystemScan {
    pub(crate) fn run(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        if let Some(kept) = &self.kept {
            return self.run_kept(kept, ctx, out);
        }
        for row in self.rows(ctx)? {
            for (column, slot) in self.columns.get() {
                ctx.frame.slots[*slot as usize] = cell(&row, *column);
            }
            if let Some(filter) = &self.filter
                && filter(ctx)? != Some(true)
            {
                continue;
            }
            if out(ctx)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn rows(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Vec<Vec<Datum>>> {
        let mut rows = ctx.system.rows(&self.table)?;
        if let Some(more) = &self.more {
            rows.extend(more(ctx)?);
        }
        Ok(rows)
    }

    fn run_kept(
        &self,
        kept: &KeptRows,
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let table = self.by_key(kept, ctx)?;
        if table.index.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let key = hash_key(&kept.values, ctx)?;
        // NULL equals nothing.
        let places = if key.has_null() { None } else { table.index.get(&key) };
        for place in places.into_iter().flatten() {
            ctx.tick()?;
            table.rows.restore(*place as usize, &mut ctx.frame, kept.slots.get());
            if let Some(filter) = &self.filter
                && filter(ctx)? != Some(true)
            {
                continue;
            }
            if out(ctx)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The rows by their keys, made by the first who asks.
    fn by_key(&self, kept: &KeptRows, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Arc<HashTable>> {
        if let Cache::Keyed(table) = &ctx.frame.caches[kept.cache] {
            return Ok(table.clone());
        }
        let columns = self.columns.get();
        let mut table = HashTable { rows: RowBuffer::new(columns.len()), index: FxHashMap::default() };
        for row in self.rows(ctx)? {
            ctx.tick()?;
            let key: SmallVec<[Datum; 2]> =
                kept.columns.iter().map(|column| widen(cell(&row, *column))).collect();
            let key = HashKey(key);
            if key.has_null() {
                continue;
            }
            table.index.entry(key).or_default().push(table.rows.len() as u32);
            table.rows.push(columns.iter().map(|(column, _)| cell(&row, *column)));
        }
        let table = Arc::new(table);
        ctx.frame.caches[kept.cache] = Cache::Keyed(table.clone());
        Ok(table)
    }
}

/// A column of a row; NULL where the server does not tell it.
fn cell(row: &[Datum], column: usize) -> Datum {
    row.get(column).cloned().unwrap_or(Datum::Null)
}
