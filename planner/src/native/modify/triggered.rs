//! UPDATE and DELETE of a table with triggers: the rows are found first, always; then BEFORE
//! triggers, the write and RETURNING take their turns row by row, and what AFTER triggers are to
//! see waits until all rows are written.

use super::super::compile::Compiler;
use super::super::context::ExecContext;
use super::super::expression::{Source, eval_all};
use super::super::path::Meta;
use super::super::rows::RowBuffer;
use super::super::statement::{Answer, Emit};
use super::super::target::Found;
use super::super::trigger::Triggers;
use super::{Delete, Update};
use crate::bound::BoundExpr;
use crate::native::ExecResult;
use archipel_sql::catalog::{TableRef, TriggerEvent};

/// What a statement on a table with triggers has beside the others.
pub(crate) struct Triggered {
    triggers: Box<Triggers>,
    old: Vec<u32>,
    /// Answered when the triggers have had their say.
    returning: Option<Vec<Source>>,
}

impl Compiler<'_> {
    /// What SET amounts to where BEFORE triggers may change any column: the others are set to
    /// what they are. Columns of the storage key stay as they are, unless SET names them.
    pub(crate) fn set_with_triggers(
        &self,
        table: &TableRef,
        meta: &Meta,
        set: &[(u16, BoundExpr)],
    ) -> Vec<(u16, BoundExpr)> {
        let mut set = set.to_vec();
        let columns: Vec<u16> = set.iter().map(|(column, _)| *column).collect();
        let changes = table.triggers.iter().any(|trigger| {
            trigger.before && trigger.row && trigger.answers(TriggerEvent::Update, table, Some(&columns))
        });
        if !changes {
            return set;
        }
        for (place, column) in table.columns.iter().enumerate() {
            let number = place as u16;
            if !columns.contains(&number) && !meta.def.key.iter().any(|part| part.column == number) {
                set.push((number, BoundExpr::column(place, column.ty)));
            }
        }
        set
    }

    /// Keeps what triggers need of the rows; RETURNING then waits for them.
    pub(super) fn triggered(
        &mut self,
        triggers: Option<Box<Triggers>>,
        old: &[u32],
        scope: &[u32],
        returning: Option<Vec<Source>>,
        kept: &mut Vec<u32>,
    ) -> (Option<Box<Triggered>>, Option<Vec<Source>>) {
        let Some(triggers) = triggers else { return (None, returning) };
        let needed = if returning.is_some() { scope } else { old };
        self.mark_all(needed);
        kept.extend(needed);
        (Some(Box::new(Triggered { triggers, old: old.to_vec(), returning })), None)
    }
}

impl Triggered {
    fn answer(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Option<&mut Emit<'_>>) -> ExecResult<()> {
        if let (Some(emit), Some(returning)) = (emit, &self.returning) {
            let mut row = eval_all(returning, ctx)?;
            let _ = emit(Answer::Given(&mut row))?;
        }
        Ok(())
    }
}

impl Update {
    /// Whether rows of the table fire anything.
    pub fn fires(&self) -> bool {
        self.triggered.is_some()
    }

    pub(super) fn write_triggered(
        &self,
        triggered: &Triggered,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        mut emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        let (kept, change) = (&self.targets.kept, &self.change);
        let (old, triggers) = (&triggered.old, &triggered.triggers);
        triggers.begin(ctx)?;
        // The rows as triggers have left them.
        let mut written = RowBuffer::new(kept.len());
        let mut moved = Vec::new();
        for (index, key) in found.keys.iter().enumerate() {
            found.values.restore(index, &mut ctx.frame, kept);
            if !triggers.before_row(ctx, Some((&self.target, key, old)), Some(&change.row))? {
                continue;
            }
            change.generate(ctx)?;
            change.check(ctx, &self.target, key)?;
            let done = if change.moves {
                // Rows that move leave first, so that they may take each other's places.
                let taken = change.take(ctx, &self.target, key)?;
                let done = taken.is_some();
                moved.extend(taken);
                done
            } else {
                change.write(ctx, &self.target, key)?
            };
            if done {
                written.push_slots(&ctx.frame, kept);
            }
        }
        for moved in moved {
            change.put(ctx, &self.target, moved)?;
        }
        for index in 0..written.len() {
            written.restore(index, &mut ctx.frame, kept);
            change.check_references(ctx)?;
            triggered.answer(ctx, &mut emit)?;
            triggers.queue(ctx, Some(old), Some(&change.row))?;
        }
        triggers.end(ctx)?;
        Ok(written.len() as u64)
    }
}

impl Delete {
    /// Whether rows of the table fire anything.
    pub fn fires(&self) -> bool {
        self.triggered.is_some()
    }

    pub(super) fn write_triggered(
        &self,
        triggered: &Triggered,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        mut emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        let kept = &self.targets.kept;
        let (old, triggers) = (&triggered.old, &triggered.triggers);
        triggers.begin(ctx)?;
        let mut count = 0;
        for (index, key) in found.keys.iter().enumerate() {
            found.values.restore(index, &mut ctx.frame, kept);
            if !triggers.before_row(ctx, Some((&self.target, key, old)), None)?
                || !ctx.txn.delete(&self.target.meta, key)?
            {
                continue;
            }
            count += 1;
            for child in &self.children {
                child.check_or_queue(ctx)?;
            }
            triggered.answer(ctx, &mut emit)?;
            triggers.queue(ctx, Some(old), None)?;
        }
        triggers.end(ctx)?;
        Ok(count)
    }
}
