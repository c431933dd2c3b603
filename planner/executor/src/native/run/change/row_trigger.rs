//! UPDATE and DELETE of a table with triggers: the rows are found first, always; then BEFORE
//! triggers, the write and RETURNING take their turns row by row, and what AFTER triggers are to
//! see waits until all rows are written.

use rustc_hash::FxHashSet;

use super::delete::Delete;
use super::target::Found;
use super::trigger::Triggers;
use super::update::Update;
use crate::native::run::constraint::referential_action::with_queue;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::row::answer::{Answer, Emit};
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// What a statement on a table with triggers has beside the others.
pub(crate) struct Triggered {
    pub(crate) triggers: Box<Triggers>,
    pub(crate) old: Vec<u32>,
    /// Answered when the triggers have had their say.
    pub(crate) returning: Option<Vec<Source>>,
    /// Whether that asks for rows, which are those from before the statement: it is computed before
    /// anything is written, and so the triggers come before that.
    pub(crate) asks: bool,
}

impl Triggered {
    /// Keeps a row that the BEFORE triggers have left.
    fn keep(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        left: &mut Found,
        key: &[u8],
        kept: &[u32],
    ) -> ExecResult<()> {
        left.keys.push(key);
        left.values.push_slots(&ctx.frame, kept);
        if let Some(returning) = &self.returning {
            let row = eval_all(returning, ctx)?;
            left.returning.push(row);
        }
        Ok(())
    }

    /// Nothing yet of the rows that the BEFORE triggers leave.
    fn left(&self, found: &Found) -> Found {
        let mut left = Found::like(found, self.returning.as_ref().map_or(0, Vec::len));
        left.fired = true;
        left
    }

    /// Answers the row in the slots, which was found at a place, and was perhaps changed on its way
    /// elsewhere since.
    fn answer(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        (place, changed): (usize, bool),
        emit: &mut Option<&mut Emit<'_>>,
    ) -> ExecResult<()> {
        if let (Some(emit), Some(returning)) = (emit, &self.returning) {
            if found.fired && !changed {
                let _ = emit(Answer::Lent(found.returning.row(place)))?;
                return Ok(());
            }
            let mut row = eval_all(returning, ctx)?;
            let _ = emit(Answer::Given(&mut row))?;
        }
        Ok(())
    }
}

/// What the triggers of a statement are about: an UPDATE or a DELETE.
pub(crate) trait Triggering {
    fn triggered(&self) -> Option<&Triggered>;

    /// Takes rows past the BEFORE triggers, before any is written: those left, as they are then.
    fn fire(&self, triggered: &Triggered, ctx: &mut ExecContext<'_, '_>, found: &Found) -> ExecResult<Found>;

    /// As [`Triggering::write`], without the triggers of the statement.
    fn write_alone(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64>;

    /// Fires the BEFORE STATEMENT triggers.
    fn begin(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        self.triggered().map_or(Ok(()), |triggered| triggered.triggers.begin(ctx))
    }

    /// Queues the AFTER STATEMENT triggers.
    fn end(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        self.triggered().map_or(Ok(()), |triggered| triggered.triggers.end(ctx))
    }

    /// Writes what was found, and answers it.
    fn write(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        if self.triggered().is_none() {
            return self.write_alone(ctx, found, emit);
        }
        with_queue(ctx, |ctx| {
            self.begin(ctx)?;
            let count = self.write_alone(ctx, found, emit)?;
            self.end(ctx)?;
            Ok(count)
        })
    }

    /// As [`Triggering::write`], of a statement of its own: what RETURNING asks of rows is computed
    /// before any is written.
    fn write_all(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        emit: &mut Emit<'_>,
    ) -> ExecResult<u64> {
        let Some(triggered) = self.triggered().filter(|triggered| triggered.asks) else {
            return self.write(ctx, found, Some(emit));
        };
        with_queue(ctx, |ctx| {
            let left = self.fire(triggered, ctx, found)?;
            let count = self.write_alone(ctx, &left, Some(emit))?;
            self.end(ctx)?;
            Ok(count)
        })
    }
}

impl Triggering for Update {
    fn triggered(&self) -> Option<&Triggered> {
        self.triggered.as_deref()
    }

    fn fire(&self, triggered: &Triggered, ctx: &mut ExecContext<'_, '_>, found: &Found) -> ExecResult<Found> {
        self.begin(ctx)?;
        let kept = &self.targets.kept;
        let mut left = triggered.left(found);
        for (index, key) in found.keys.iter().enumerate() {
            found.values.restore(index, &mut ctx.frame, kept);
            if self.passes(triggered, ctx, key)? {
                triggered.keep(ctx, &mut left, key, kept)?;
            }
        }
        Ok(left)
    }

    fn write_alone(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        if let Some(triggered) = &self.triggered {
            return self.write_triggered(triggered, ctx, found, emit);
        }
        // Rows that move may reference ones that have not done so yet, and set off what inserting and
        // deleting them does.
        if self.change.acts || self.mover.is_some() {
            return with_queue(ctx, |ctx| self.write_rows(ctx, found, emit));
        }
        self.write_rows(ctx, found, emit)
    }
}

impl Update {
    /// Takes the row in the slots past the BEFORE triggers, and checks what they make of it.
    fn passes(&self, triggered: &Triggered, ctx: &mut ExecContext<'_, '_>, key: &[u8]) -> ExecResult<bool> {
        let row = Some((&self.target, key, &triggered.old[..]));
        if !triggered.triggers.before_row(ctx, row, Some(&self.change.row))? {
            return Ok(false);
        }
        self.change.generate(ctx)?;
        if let Some(mover) = &self.mover
            && mover.destination(ctx)?.is_some()
        {
            // The other partition checks it.
            return Ok(true);
        }
        self.change.check(ctx, &self.target, key)?;
        Ok(true)
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
        // The rows as triggers have left them.
        let mut written = RowBuffer::new(kept.len());
        let mut places = Vec::with_capacity(found.keys.len());
        // Rows whose new place another one still holds wait for it to leave.
        let mut moved = Vec::new();
        // Those that have gone to other partitions, whose triggers have seen them.
        let mut gone = FxHashSet::default();
        for (index, key) in found.keys.iter().enumerate() {
            found.values.restore(index, &mut ctx.frame, kept);
            if !found.fired && !self.passes(triggered, ctx, key)? {
                continue;
            }
            let to = match &self.mover {
                Some(mover) => mover.destination(ctx)?.map(|to| (mover, to)),
                None => None,
            };
            let done = match (to, change.moves) {
                (Some((mover, to)), _) => {
                    gone.insert(index);
                    mover.run(ctx, &self.target, key, to)?
                }
                (None, false) => change.write(ctx, &self.target, key)?,
                (None, true) => match change.take(ctx, &self.target, key)? {
                    None => false,
                    Some(taken) => {
                        // The next row's triggers see this one where it has gone to.
                        moved.extend(change.try_put(ctx, &self.target, taken)?);
                        true
                    }
                },
            };
            if done {
                places.push(index);
                written.push_slots(&ctx.frame, kept);
            }
        }
        for moved in moved {
            change.put(ctx, &self.target, moved)?;
        }
        for (index, place) in places.into_iter().enumerate() {
            written.restore(index, &mut ctx.frame, kept);
            let moved = gone.contains(&place);
            change.check_references(ctx, moved)?;
            if let Some(mover) = self.mover.as_ref().filter(|_| moved) {
                mover.check_references(ctx)?;
            }
            let changed = moved && self.mover.as_ref().is_some_and(|mover| mover.rewrites());
            triggered.answer(ctx, found, (place, changed), &mut emit)?;
            match moved {
                false => triggers.queue(ctx, Some(old), Some(&change.row))?,
                true => triggers.keep_for_root(ctx, Some(old), Some(&change.row)),
            }
        }
        Ok(written.len() as u64)
    }
}

impl Triggering for Delete {
    fn triggered(&self) -> Option<&Triggered> {
        self.triggered.as_deref()
    }

    fn fire(&self, triggered: &Triggered, ctx: &mut ExecContext<'_, '_>, found: &Found) -> ExecResult<Found> {
        self.begin(ctx)?;
        let kept = &self.targets.kept;
        let mut left = triggered.left(found);
        for (index, key) in found.keys.iter().enumerate() {
            found.values.restore(index, &mut ctx.frame, kept);
            if triggered.triggers.before_row(ctx, Some((&self.target, key, &triggered.old)), None)? {
                triggered.keep(ctx, &mut left, key, kept)?;
            }
        }
        Ok(left)
    }

    fn write_alone(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        if let Some(triggered) = &self.triggered {
            return self.write_triggered(triggered, ctx, found, emit);
        }
        if self.acts {
            return with_queue(ctx, |ctx| self.write_rows(ctx, found, emit));
        }
        self.write_rows(ctx, found, emit)
    }
}

impl Delete {
    pub(super) fn write_triggered(
        &self,
        triggered: &Triggered,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        mut emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        let kept = &self.targets.kept;
        let (old, triggers) = (&triggered.old, &triggered.triggers);
        let mut count = 0;
        for (index, key) in found.keys.iter().enumerate() {
            found.values.restore(index, &mut ctx.frame, kept);
            let passes = found.fired || triggers.before_row(ctx, Some((&self.target, key, old)), None)?;
            if !passes || !ctx.txn.delete(&self.target.meta, key)? {
                continue;
            }
            count += 1;
            for child in &self.children {
                child.check_or_queue(ctx)?;
            }
            triggered.answer(ctx, found, (index, false), &mut emit)?;
            triggers.queue(ctx, Some(old), None)?;
        }
        Ok(count)
    }
}
