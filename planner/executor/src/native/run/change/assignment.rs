//! What an UPDATE makes of a row, at run time.

use std::sync::Arc;

use archipel_engine::Inserted;
use archipel_engine::cell::Cell;
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::versions::Departure;
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use smallvec::SmallVec;

use super::write::{Cells, Target};
use crate::native::run::constraint::check::RowChecks;
use crate::native::run::constraint::foreign_key::ReferenceCheck;
use crate::native::run::expression::source::Source;
use crate::native::run::row::hash;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::row::Codec;

/// Column (or place after the columns), where its new value goes, how it is stored, how it is computed.
pub(crate) type NewValue = (u16, u32, Codec, Source);

/// New values for some columns of one row, and what they must satisfy.
pub(crate) struct Change {
    pub(crate) set: Vec<NewValue>,
    /// How many of the last of them are computed from the new row: generated columns and what it
    /// stores for indexes.
    pub(crate) generated: usize,
    /// Where the latter are, as far as they are computed.
    pub(crate) for_indexes: Vec<Option<u32>>,
    pub(crate) old: Vec<u32>,
    /// The new row: changed columns in their new slots, the others where they are.
    pub row: Vec<u32>,
    pub checks: RowChecks,
    pub(crate) parents: Vec<Arc<ReferenceCheck>>,
    /// Rows that reference the old values of changed columns.
    pub(crate) children: Vec<Arc<ReferenceCheck>>,
    /// Whether changing a row may change rows that reference it.
    pub acts: bool,
    /// Whether a column of the storage key changes.
    pub(crate) moves: bool,
}

impl Change {
    /// Computes the new values into their slots and checks the new row.
    pub fn evaluate(&self, ctx: &mut ExecContext<'_, '_>, target: &Target, key: &[u8]) -> ExecResult<()> {
        self.compute(ctx)?;
        self.check(ctx, target, key)
    }

    /// The slots of what is computed.
    pub fn computed(&self) -> impl Iterator<Item = &u32> {
        self.set.iter().map(|(_, slot, ..)| slot)
    }

    /// Computes the new values into their slots.
    #[inline]
    pub fn compute(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        for (_, slot, _, source) in &self.set {
            let value = source.eval(ctx)?;
            ctx.frame.slots[*slot as usize].set(value);
        }
        Ok(())
    }

    /// Computes generated columns anew, of a row that triggers may have changed.
    pub fn generate(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        for (_, slot, _, source) in &self.set[self.set.len() - self.generated..] {
            let value = source.eval(ctx)?;
            ctx.frame.slots[*slot as usize].set(value);
        }
        Ok(())
    }

    /// Checks the new row.
    #[inline]
    pub fn check(&self, ctx: &mut ExecContext<'_, '_>, target: &Target, key: &[u8]) -> ExecResult<()> {
        self.checks.check(ctx, &|ctx| {
            let mut row = target.stored(ctx, key)?;
            self.overlay(ctx, &mut row);
            Ok(row)
        })
    }

    fn overlay(&self, ctx: &ExecContext<'_, '_>, row: &mut [Datum]) {
        for (column, slot, ..) in &self.set {
            if let Some(value) = row.get_mut(usize::from(*column)) {
                value.clone_from(&ctx.frame.slots[*slot as usize]);
            }
        }
    }

    /// Writes the new values of one row; false if it is gone.
    pub fn apply(&self, ctx: &mut ExecContext<'_, '_>, target: &Target, key: &[u8]) -> ExecResult<bool> {
        let written = self.replace(ctx, target, key)?;
        if written {
            self.check_references(ctx, false)?;
        }
        Ok(written)
    }

    /// As [`Change::apply`], without what follows.
    pub(super) fn replace(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        target: &Target,
        key: &[u8],
    ) -> ExecResult<bool> {
        if !self.moves {
            return self.write(ctx, target, key);
        }
        let Some(moved) = self.take(ctx, target, key)? else { return Ok(false) };
        self.put(ctx, target, moved)?;
        Ok(true)
    }

    pub(crate) fn write(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        target: &Target,
        key: &[u8],
    ) -> ExecResult<bool> {
        let ExecContext { txn, frame, .. } = ctx;
        let value = |slot: &u32| &frame.slots[*slot as usize];
        let prepared;
        let mut changes: SmallVec<[(u16, Cell<'_>); 8]> = SmallVec::new();
        let stored = |column: &u16| target.stored_at(usize::from(*column)) as u16;
        for (column, slot, codec, _) in &self.set {
            match codec.encode_plain(value(slot)) {
                Some(cell) => changes.push((stored(column), cell)),
                None => break,
            }
        }
        if changes.len() < self.set.len() {
            // Some value needs bytes of its own.
            prepared = Cells::prepare(self.set.iter().map(|(_, slot, codec, _)| (*codec, value(slot))))?;
            changes.clear();
            changes.extend(self.set.iter().enumerate().map(|(position, (column, slot, codec, _))| {
                (stored(column), prepared.cell(position, *codec, value(slot)))
            }));
        }
        match txn.update(&target.meta, key, &changes)? {
            Inserted::Ok => Ok(true),
            Inserted::Missing => Ok(false),
            refused => {
                drop(changes);
                let mut row = target.stored(ctx, key)?;
                self.overlay(ctx, &mut row);
                target.accept(refused, ctx, &row)
            }
        }
    }

    /// Takes a row that moves out of its place: its new form and key.
    pub(crate) fn take(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        target: &Target,
        key: &[u8],
    ) -> ExecResult<Option<(Vec<u8>, KeyBuf)>> {
        let hidden = match ctx.txn.get_for_write(&target.meta, key)? {
            None => return Ok(None),
            Some(stored) if target.hidden => match target.meta.layout.get(stored, target.visible) {
                Cell::Int8(number) => Some(number),
                _ => return Err(SqlError::internal("a hidden row number is missing").into()),
            },
            Some(_) => None,
        };
        let mut row = Vec::new();
        let mut new_key = KeyBuf::new();
        let frame = &ctx.frame;
        target.encode(
            |place| {
                let slot = self.row.get(place).copied().or_else(|| self.for_indexes[place - self.row.len()]);
                slot.map_or(&Datum::Null, |slot| &frame.slots[slot as usize])
            },
            hidden,
            &mut row,
            &mut new_key,
        )?;
        if !ctx.txn.take_away(&target.meta, key, Departure::Moved)? {
            return Ok(None);
        }
        Ok(Some((row, new_key)))
    }

    /// Puts a row that has moved where it belongs; answers it if another one is there.
    pub(crate) fn try_put(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        target: &Target,
        moved: (Vec<u8>, KeyBuf),
    ) -> ExecResult<Option<(Vec<u8>, KeyBuf)>> {
        let (row, key) = &moved;
        match ctx.txn.insert(&target.meta, key, row)? {
            Inserted::Ok => Ok(None),
            _ => Ok(Some(moved)),
        }
    }

    pub(crate) fn put(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        target: &Target,
        moved: (Vec<u8>, KeyBuf),
    ) -> ExecResult<()> {
        let (row, key) = moved;
        let inserted = ctx.txn.insert(&target.meta, &key, &row)?;
        if inserted != Inserted::Ok {
            target.accept(inserted, ctx, &target.decode(&row))?;
        }
        Ok(())
    }

    /// Checks the foreign keys over a row that is written; of one that has `moved` to another
    /// partition not those that point at the one it left, where it has been deleted.
    pub(crate) fn check_references(&self, ctx: &mut ExecContext<'_, '_>, moved: bool) -> ExecResult<()> {
        for parent in &self.parents {
            parent.check_or_queue(ctx)?;
        }
        for child in self.children.iter().filter(|child| !(moved && child.is_direct())) {
            // Values that stay leave nobody behind.
            let stays = child.slots.iter().all(|slot| {
                let new = self.old.iter().zip(&self.row).find(|(old, _)| *old == slot).map(|(_, new)| *new);
                new.is_none_or(|new| {
                    hash::same(&ctx.frame.slots[*slot as usize], &ctx.frame.slots[new as usize])
                })
            });
            if !stays {
                child.check_or_queue(ctx)?;
            }
        }
        Ok(())
    }
}
