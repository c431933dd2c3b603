//! INSERT, with ON CONFLICT and RETURNING.
//!
//! Rows are written as the source produces them, unless the source reads tables or calls what
//! may: then they are collected first, so that a statement never sees its own rows.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::schema::IndexDef;
use archipel_engine::storage::KeyBuf;
use rustc_hash::FxHashSet;

use super::assignment::Change;
use super::trigger::Triggers;
use super::tuple_routing::RoutedInsert;
use super::write::Target;
use crate::native::run::access::batch::ScanColumn;
use crate::native::run::constraint::check::RowChecks;
use crate::native::run::constraint::foreign_key::ReferenceCheck;
use crate::native::run::constraint::referential_action::with_queue;
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::node::{Node, collect};
use crate::native::run::row::answer::Emit;
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::projection::Pruned;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

pub(crate) struct Insert {
    pub(crate) source: Node,
    /// Where the source leaves the new row.
    pub(crate) source_slots: Vec<u32>,
    pub(crate) collected: bool,
    /// Rows may reference ones that come after them.
    pub(crate) waits: bool,
    /// Whether ON CONFLICT or RETURNING asks for rows, which are those from before the statement:
    /// both are computed before anything is written.
    pub(crate) asks: bool,
    /// Whether nothing comes between the values of VALUES and their rows.
    pub(crate) straight: bool,
    pub(crate) into: Destination,
}

/// Where new rows go.
pub(crate) enum Destination {
    Table(Box<RowInsert>),
    Partitions(Box<RoutedInsert>),
}

/// What takes new rows into one table.
pub(crate) struct RowInsert {
    pub target: Target,
    /// Where the row comes from.
    pub(crate) source_slots: Vec<u32>,
    /// The new row. BEFORE triggers change it, so it then has slots of its own, and so have
    /// generated columns always.
    pub(crate) slots: Vec<u32>,
    /// Computed from the row: generated columns, then what it stores for indexes.
    pub(crate) generated: Vec<(u32, Source)>,
    /// The slots of the latter.
    pub(crate) for_indexes: Vec<u32>,
    pub(crate) checks: RowChecks,
    pub(crate) parents: Vec<Arc<ReferenceCheck>>,
    pub(crate) conflict: Option<Conflict>,
    pub(crate) triggers: Option<Box<Triggers>>,
    /// A BEFORE trigger that a partition has from what it is part of: it may not move rows.
    pub(crate) stays: Option<String>,
    pub(crate) returning: Option<Vec<Source>>,
    /// What RETURNING reads where a row may have been updated instead.
    pub(crate) shown: Option<Vec<u32>>,
    /// Where RETURNING finds who has locked the row, if it asks.
    pub(crate) locker: Option<u32>,
    /// Where it finds the row's number, if it asks: that of a table without a key.
    pub(crate) number: Option<u32>,
    /// All that writing a proposed row takes, once it is known what will become of it.
    pub(crate) kept: Vec<u32>,
}

pub(crate) struct Conflict {
    pub(crate) arbiter: Arbiter,
    pub(crate) update: Option<ConflictUpdate>,
}

pub(crate) enum Arbiter {
    /// Any unique key.
    Any,
    Primary,
    Index(IndexDef),
}

pub(crate) struct ConflictUpdate {
    pub(crate) existing: Vec<u32>,
    pub(crate) columns: Pruned<ScanColumn>,
    pub(crate) filter: Option<CompiledPredicate>,
    pub(crate) change: Change,
    pub(crate) triggers: Option<Box<Triggers>>,
    /// See [`crate::bound::OnConflict::met_before`].
    pub(crate) met_before: bool,
}

impl Insert {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        if self.asks {
            return with_queue(ctx, |ctx| self.run_foreseen(ctx, emit));
        }
        if self.waits {
            return with_queue(ctx, |ctx| self.run_rows(ctx, emit));
        }
        self.run_rows(ctx, emit)
    }

    /// Inserts a row for each set of parameters that `next` puts into the context, as one statement.
    pub fn run_each(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        next: &mut dyn FnMut(&mut ExecContext<'_, '_>) -> ExecResult<bool>,
    ) -> ExecResult<u64> {
        let mut insert = |ctx: &mut ExecContext<'_, '_>| {
            let mut count = 0;
            let mut touched: FxHashSet<KeyBuf> = FxHashSet::default();
            let mut row = std::mem::take(&mut ctx.frame.row);
            self.begin(ctx)?;
            while next(ctx)? {
                ctx.frame.forget();
                let _ = self.source.run(ctx, &mut |ctx| {
                    count += self.one(ctx, &mut row, &mut touched, &mut |_| Ok(ControlFlow::Continue(())))?;
                    Ok(ControlFlow::Continue(()))
                })?;
            }
            ctx.frame.row = row;
            self.end(ctx)?;
            Ok(count)
        };
        if self.waits || self.references_itself() { with_queue(ctx, insert) } else { insert(ctx) }
    }

    pub(crate) fn references_itself(&self) -> bool {
        match &self.into {
            Destination::Table(row) => row.references_itself(),
            Destination::Partitions(routed) => routed.references_itself(),
        }
    }

    /// The triggers of the statement: of INSERT, of the UPDATE of ON CONFLICT.
    pub(crate) fn triggers(&self) -> [Option<&Triggers>; 2] {
        match &self.into {
            Destination::Table(row) => [row.triggers.as_deref(), row.update_triggers()],
            Destination::Partitions(routed) => routed.triggers(),
        }
    }

    /// Fires the BEFORE STATEMENT triggers.
    pub fn begin(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        self.triggers().into_iter().flatten().try_for_each(|triggers| triggers.begin(ctx))
    }

    /// Queues the AFTER STATEMENT triggers.
    pub fn end(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        self.triggers().into_iter().rev().flatten().try_for_each(|triggers| triggers.end(ctx))
    }

    /// What takes the row in the source's slots, and its place among the partitions.
    pub(crate) fn place(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<(usize, &RowInsert)> {
        match &self.into {
            Destination::Table(row) => Ok((0, row)),
            Destination::Partitions(routed) => {
                let member = routed.place(ctx)?;
                Ok((member, &routed.members[member]))
            }
        }
    }

    pub(crate) fn member(&self, place: usize) -> &RowInsert {
        match &self.into {
            Destination::Table(row) => row,
            Destination::Partitions(routed) => &routed.members[place],
        }
    }

    /// All that writing a proposed row takes.
    pub(crate) fn kept(&self) -> &[u32] {
        match &self.into {
            Destination::Table(row) => &row.kept,
            Destination::Partitions(routed) => &routed.kept,
        }
    }

    /// How many columns RETURNING has.
    pub(crate) fn returned(&self) -> usize {
        let first = match &self.into {
            Destination::Table(row) => Some(&**row),
            Destination::Partitions(routed) => routed.members.first(),
        };
        first.and_then(|row| row.returning.as_ref()).map_or(0, Vec::len)
    }

    /// Writes the row in the source's slots.
    #[inline]
    pub(crate) fn one(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        row: &mut Vec<u8>,
        touched: &mut FxHashSet<KeyBuf>,
        emit: &mut Emit<'_>,
    ) -> ExecResult<u64> {
        match &self.into {
            Destination::Table(insert) => insert.one(ctx, row, touched, emit),
            Destination::Partitions(routed) => routed.one(ctx, row, touched, emit),
        }
    }

    fn run_rows(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        let mut count = 0;
        let mut touched: FxHashSet<KeyBuf> = FxHashSet::default();
        let mut row = std::mem::take(&mut ctx.frame.row);
        if self.collected {
            let rows = collect(&self.source, &self.source_slots, ctx)?;
            self.begin(ctx)?;
            for index in 0..rows.len() {
                rows.restore(index, &mut ctx.frame, &self.source_slots);
                count += self.one(ctx, &mut row, &mut touched, emit)?;
            }
        } else if let Some((insert, rows)) = self.straight() {
            for values in rows {
                insert.straight(ctx, values, &mut row)?;
                count += 1;
            }
        } else {
            self.begin(ctx)?;
            let _ = self.source.run(ctx, &mut |ctx| {
                count += self.one(ctx, &mut row, &mut touched, emit)?;
                Ok(ControlFlow::Continue(()))
            })?;
        }
        ctx.frame.row = row;
        self.end(ctx)?;
        Ok(count)
    }

    /// What takes the values of VALUES straight into rows, and them.
    #[inline]
    fn straight(&self) -> Option<(&RowInsert, &[Vec<Source>])> {
        match (&self.into, &self.source) {
            (Destination::Table(insert), Node::Values { rows, .. }) if self.straight => Some((insert, rows)),
            _ => None,
        }
    }

    /// The rows of the source, before any is written.
    pub fn gather(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<RowBuffer> {
        collect(&self.source, &self.source_slots, ctx)
    }

    /// Writes gathered rows as they are; answers how many were written. Triggers of the statement
    /// are the caller's.
    pub fn write_gathered(&self, ctx: &mut ExecContext<'_, '_>, rows: &RowBuffer) -> ExecResult<u64> {
        let mut touched = FxHashSet::default();
        let (mut row, mut count) = (Vec::new(), 0);
        for index in 0..rows.len() {
            rows.restore(index, &mut ctx.frame, &self.source_slots);
            count += self.one(ctx, &mut row, &mut touched, &mut |_| Ok(ControlFlow::Continue(())))?;
        }
        Ok(count)
    }
}
