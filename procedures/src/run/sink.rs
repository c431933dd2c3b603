//! Where the rows of statements go.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_planner::native::cursor::CursorRows;
use archipel_planner::native::{ExecContext, ExecResult, RowSink};
use archipel_sql::datum::Datum;
use smallvec::SmallVec;

use super::operation::Targets;
use super::operation::expression::Compiled;

/// How a row of a text becomes what INTO takes.
#[derive(Default)]
pub struct Stored {
    /// The number of its structure, where a record takes rows of several.
    pub structure: Option<i32>,
    /// Columns that become another type, which may be refused, as conversions of `$1`: of the row that
    /// is stored alone, and by no query.
    pub casts: Vec<(usize, Compiled)>,
}

impl Stored {
    pub(super) fn convert(&self, ctx: &mut ExecContext<'_, '_>, row: &mut [Datum]) -> ExecResult<()> {
        for (place, cast) in &self.casts {
            if let Some(value) = row.get_mut(*place) {
                let outer = std::mem::replace(&mut ctx.params, vec![value.take()]);
                let converted = cast(ctx);
                ctx.params = outer;
                *value = converted?;
            }
        }
        Ok(())
    }

    /// Says of the record that took no row which structure its NULLs have.
    pub(super) fn leave_structure(&self, ctx: &mut ExecContext<'_, '_>, targets: &Targets) {
        if let (Some(number), Some(tag)) = (self.structure, targets.registers.last()) {
            ctx.variables[*tag as usize].set(Datum::Int4(number));
        }
    }
}

/// A row on its way between a statement and registers.
pub type Row = SmallVec<[Datum; 8]>;

/// Keeps the first row, in a buffer the invocation lends, and counts up to a limit.
pub(super) struct FirstRow {
    pub row: Vec<Datum>,
    pub count: u64,
    limit: u64,
    /// Of a text that was bound when it ran: what becomes of the row.
    pub stored: Option<Arc<Stored>>,
}

impl FirstRow {
    pub fn new(limit: u64, mut row: Vec<Datum>) -> FirstRow {
        row.clear();
        FirstRow { row, count: 0, limit, stored: None }
    }
}

impl RowSink for FirstRow {
    #[inline]
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        if self.count == 0 {
            self.row.extend_from_slice(row);
        }
        self.count += 1;
        Ok(if self.count >= self.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    #[inline]
    fn given(&mut self, row: &mut [Datum]) -> ExecResult<ControlFlow<()>> {
        if self.count == 0 {
            self.row.extend(row.iter_mut().map(Datum::take));
        }
        self.count += 1;
        Ok(if self.count >= self.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// Counts rows.
#[derive(Default)]
pub(super) struct Counted(pub u64);

impl RowSink for Counted {
    fn row(&mut self, _row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.0 += 1;
        Ok(ControlFlow::Continue(()))
    }
}

/// Keeps all rows, flat.
#[derive(Default)]
pub(super) struct Gathered {
    pub values: Vec<Datum>,
    pub rows: usize,
}

impl Gathered {
    /// How many of the rows of a query that has failed a loop goes over before it meets the error:
    /// PostgreSQL fetches them one by one where the loop may end its transaction, else ten and then
    /// fifty at a time.
    pub fn met_before_error(&self, ctx: &ExecContext<'_, '_>) -> usize {
        match self.rows.checked_sub(10) {
            _ if ctx.permits.end => self.rows,
            Some(more) => 10 + more / 50 * 50,
            None => 0,
        }
    }

    /// The rows, of so many columns.
    pub fn rows(self, width: usize) -> CursorRows {
        CursorRows { values: self.values, width, count: self.rows }
    }
}

impl RowSink for Gathered {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.values.extend_from_slice(row);
        self.rows += 1;
        Ok(ControlFlow::Continue(()))
    }

    fn given(&mut self, row: &mut [Datum]) -> ExecResult<ControlFlow<()>> {
        self.values.extend(row.iter_mut().map(Datum::take));
        self.rows += 1;
        Ok(ControlFlow::Continue(()))
    }
}

/// Passes rows on, never asking to stop.
pub(super) struct Through<'s> {
    pub sink: &'s mut dyn RowSink,
    pub rows: u64,
    /// Whether the only column is the row that is answered.
    pub spread: bool,
}

impl RowSink for Through<'_> {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.rows += 1;
        let row = match row {
            [Datum::Record(fields)] if self.spread => &fields[..],
            _ if self.spread => &[],
            row => row,
        };
        let _: ControlFlow<()> = self.sink.row(row)?;
        Ok(ControlFlow::Continue(()))
    }

    fn given(&mut self, row: &mut [Datum]) -> ExecResult<ControlFlow<()>> {
        if self.spread {
            return self.row(row);
        }
        self.rows += 1;
        let _: ControlFlow<()> = self.sink.given(row)?;
        Ok(ControlFlow::Continue(()))
    }
}
