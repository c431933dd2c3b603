//! INSERT as a part of a statement whose parts all see the rows from before it: what it will write
//! and answer is found first.

use archipel_engine::id::TreeId;
use archipel_engine::schema::IndexDef;
use archipel_engine::storage::KeyBuf;
use rustc_hash::FxHashSet;

use super::{Arbiter, Conflict, Insert};
use crate::native::context::{ExecContext, ExecResult};
use crate::native::expression::eval_all;
use crate::native::node::collect;
use crate::native::rows::RowBuffer;
use crate::native::scan::decode;

impl Insert {
    /// The proposed rows and what RETURNING says of them, before anything is written.
    pub fn find(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<(RowBuffer, RowBuffer)> {
        let rows = collect(&self.source, &self.source_slots, ctx)?;
        let mut shown = RowBuffer::new(self.returning.as_ref().map_or(0, Vec::len));
        let mut proposed = FxHashSet::default();
        for index in 0..rows.len() {
            let Some(returning) = &self.returning else { break };
            rows.restore(index, &mut ctx.frame, &self.source_slots);
            self.generate(ctx)?;
            if let Some(conflict) = &self.conflict
                && !self.foresee(conflict, ctx, &mut proposed)?
            {
                continue;
            }
            shown.push(eval_all(returning, ctx)?);
        }
        Ok((shown, rows))
    }

    /// Whether ON CONFLICT will write the row in the slots, which RETURNING then finds as it will
    /// be. `proposed` are the keys of the rows before it.
    fn foresee(
        &self,
        conflict: &Conflict,
        ctx: &mut ExecContext<'_, '_>,
        proposed: &mut FxHashSet<(TreeId, KeyBuf)>,
    ) -> ExecResult<bool> {
        let (mut row, mut key) = (Vec::new(), KeyBuf::new());
        let frame = &ctx.frame;
        // Nobody has a hidden number of the future.
        let hidden = self.target.hidden.then_some(i64::MAX);
        self.target.encode(|place| &frame.slots[self.slot(place)], hidden, &mut row, &mut key)?;
        let table = self.target.meta.def.id;
        let mut keys = Vec::new();
        if !self.target.hidden && matches!(conflict.arbiter, Arbiter::Any | Arbiter::Primary) {
            keys.push((table, key));
        }
        let mut existing = None;
        for index in self.deciding(&conflict.arbiter) {
            if let Some(entry) = self.entry(index, &row) {
                existing = existing.or(self.holder(index, ctx, &row)?);
                keys.push((index.id, entry));
            }
        }
        for (tree, key) in &keys {
            if *tree == table && existing.is_none() && ctx.txn.get(&self.target.meta, key)?.is_some() {
                existing = Some(key.clone());
            }
        }
        let mut repeated = false;
        for key in keys {
            repeated |= !proposed.insert(key);
        }
        let Some(existing) = existing else {
            // A second change of one row is an error when it is written.
            if !repeated && let Some(shown) = &self.shown {
                self.show(ctx, &self.slots, shown);
            }
            return Ok(!repeated);
        };
        let Some(update) = &conflict.update else { return Ok(false) };
        let Some(stored) = ctx.txn.get(&self.target.meta, &existing)? else { return Ok(false) };
        decode(update.columns.get(), stored, &mut ctx.frame);
        if let Some(filter) = &update.filter
            && filter(ctx)? != Some(true)
        {
            return Ok(false);
        }
        update.change.compute(ctx)?;
        if let Some(shown) = &self.shown {
            self.show(ctx, &update.change.row, shown);
        }
        Ok(true)
    }

    /// The unique indexes, beside the primary key, that ON CONFLICT asks.
    fn deciding<'i>(&'i self, arbiter: &'i Arbiter) -> impl Iterator<Item = &'i IndexDef> {
        let (all, one) = match arbiter {
            Arbiter::Any => (&self.target.meta.def.indexes[..], None),
            Arbiter::Primary => (&[][..], None),
            Arbiter::Index(index) => (&[][..], Some(index)),
        };
        all.iter().filter(|index| index.unique).chain(one)
    }
}
