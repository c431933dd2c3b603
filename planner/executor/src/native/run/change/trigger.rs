//! Triggers: which of a table's fire for a statement, decided when it is compiled, and their turns
//! when it runs.
//!
//! A row passes the BEFORE triggers on its way to the table: each may change it or drop it. What
//! AFTER triggers are to see is queued with the row, and they fire when the statement has written
//! all its rows, together with what its foreign keys set off ([`referential_action`](crate::native::run::constraint::referential_action)), in order.
//!
//! A trigger's function is a routine over the old and the new row. What it touches counts as the
//! statement's, as far as it follows from the rows; what it finds out while it runs costs at most
//! a restart.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::catalog::{FiresIn, TableRef, TriggerEvent, TriggerTiming};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::types::Oid;

use super::target::already_modified;
use super::write::Target;
use crate::native::run::constraint::deferral::{DeferredCheck, DeferredWork};
use crate::native::run::constraint::referential_action::Waiting;
use crate::native::run::routine::CompiledRoutine;
use crate::native::run::row::hash;
use crate::native::run::row::sink::RowSink;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// The triggers that a statement's rows of one event fire.
pub(crate) struct Triggers {
    pub(crate) table: TableRef,
    pub(crate) event: TriggerEvent,
    pub(crate) before_statement: Vec<Arc<Fire>>,
    pub(crate) before_row: Vec<Arc<Fire>>,
    /// INSTEAD OF, of a view.
    pub(crate) instead: Vec<Arc<Fire>>,
    pub(crate) after_row: Vec<Arc<Fire>>,
    pub(crate) after_statement: Vec<Arc<Fire>>,
    /// Whether some trigger names the rows that came or went.
    pub(crate) keeps_rows: bool,
    /// The table named by the statement, whose triggers name them.
    pub(crate) kept_for: Option<KeptFor>,
}

/// For which table of a statement the rows of a member are kept, and where they have its columns.
#[derive(Clone)]
pub(crate) struct KeptFor {
    pub root: Oid,
    pub member: Oid,
    pub event: TriggerEvent,
    pub columns: Vec<u16>,
}

/// One trigger, linked.
pub(crate) struct Fire {
    pub(crate) trigger: Oid,
    pub(crate) event: TriggerEvent,
    pub(crate) function: Arc<dyn CompiledRoutine>,
    pub(crate) condition: Option<Arc<dyn CompiledRoutine>>,
    pub(crate) table: Oid,
    /// The rows it names, old or new: further arguments.
    pub(crate) transitions: Vec<bool>,
    pub(crate) timing: Option<TriggerTiming>,
    pub(crate) fires_in: FiresIn,
}

/// The first row a routine answers.
#[derive(Default)]
struct First(Option<Vec<Datum>>);

impl RowSink for First {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.0.get_or_insert_with(|| row.to_vec());
        Ok(ControlFlow::Continue(()))
    }
}

impl Fire {
    pub fn is_same(&self, other: &Fire) -> bool {
        self.trigger == other.trigger && self.event == other.event
    }

    /// Whether it fires in the session that runs the statement.
    fn is_for_session(&self, ctx: &ExecContext<'_, '_>) -> bool {
        self.fires_in.session(ctx.functions.session.is_replica())
    }

    /// Whether the session and WHEN let it fire.
    fn wants(&self, ctx: &mut ExecContext<'_, '_>, old: &Datum, new: &Datum) -> ExecResult<bool> {
        if !self.is_for_session(ctx) {
            return Ok(false);
        }
        let Some(condition) = &self.condition else { return Ok(true) };
        let mut answer = First::default();
        ctx.outside_view(|ctx| condition.call(ctx, &[old.clone(), new.clone()], &mut answer))?;
        Ok(matches!(answer.0.as_deref(), Some([Datum::Bool(true)])))
    }

    /// Calls its function; the row it answers, or none.
    pub fn call(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        old: &Datum,
        new: &Datum,
    ) -> ExecResult<Option<Vec<Datum>>> {
        let mut answer = First::default();
        let mut args = vec![old.clone(), new.clone()];
        for new in &self.transitions {
            let queue = ctx.waiting.as_mut();
            args.push(
                queue.map_or(Datum::Null, |queue| queue.transition_table(self.table, self.event, *new)),
            );
        }
        ctx.trigger_depth += 1;
        let called = ctx.outside_view(|ctx| self.function.call(ctx, &args, &mut answer));
        ctx.trigger_depth -= 1;
        called?;
        Ok(answer.0)
    }
}

impl Triggers {
    /// Whether triggers may change a row before it is written.
    pub fn changes_rows(&self) -> bool {
        !self.before_row.is_empty()
    }

    /// Fires the BEFORE STATEMENT triggers.
    pub fn begin(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        let first = ctx.waiting.as_mut().is_none_or(|queue| queue.begin(self.table.oid, self.event));
        if first {
            for fire in &self.before_statement {
                if fire.wants(ctx, &Datum::Null, &Datum::Null)? {
                    fire.call(ctx, &Datum::Null, &Datum::Null)?;
                }
            }
        }
        Ok(())
    }

    /// Queues the AFTER STATEMENT triggers.
    pub fn end(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        for fire in &self.after_statement {
            if fire.wants(ctx, &Datum::Null, &Datum::Null)?
                && let Some(queue) = &mut ctx.waiting
            {
                queue.push_once(fire);
            }
        }
        Ok(())
    }

    /// Takes a proposed row to where it is written from, past the BEFORE triggers; whether it is
    /// to be inserted.
    pub fn propose(&self, ctx: &mut ExecContext<'_, '_>, source: &[u32], slots: &[u32]) -> ExecResult<bool> {
        if !self.changes_rows() {
            return Ok(true);
        }
        for (from, to) in source.iter().zip(slots) {
            ctx.frame.slots[*to as usize] = ctx.frame.slots[*from as usize].clone();
        }
        self.before_row(ctx, None, Some(slots))
    }

    /// Fires the BEFORE ROW triggers over a row (where it is stored, and its slots) and its
    /// successor, which they may change; whether it is to be written.
    pub fn before_row(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        old: Option<(&Target, &[u8], &[u32])>,
        new: Option<&[u32]>,
    ) -> ExecResult<bool> {
        for fire in &self.before_row {
            let (old_row, new_row) = (record(ctx, old.map(|(.., slots)| slots)), record(ctx, new));
            if !fire.wants(ctx, &old_row, &new_row)? {
                continue;
            }
            let Some(row) = fire.call(ctx, &old_row, &new_row)? else { return Ok(false) };
            if let Some(slots) = new {
                self.take_over(ctx, row, old.map(|(.., slots)| slots), slots)?;
            }
        }
        if let Some((target, key, slots)) = old
            && !(self.before_row.is_empty() && self.before_statement.is_empty())
        {
            self.require_untouched(ctx, target, key, slots)?;
        }
        Ok(true)
    }

    /// Fires the INSTEAD OF triggers over a row of a view; whether they have taken it.
    pub fn instead(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        old: Option<&[u32]>,
        new: Option<&[u32]>,
    ) -> ExecResult<bool> {
        for fire in &self.instead {
            if !fire.is_for_session(ctx) {
                continue;
            }
            let (old, row) = (record(ctx, old), record(ctx, new));
            let Some(row) = fire.call(ctx, &old, &row)? else { return Ok(false) };
            for (value, slot) in row.into_iter().zip(new.unwrap_or_default()) {
                ctx.frame.slots[*slot as usize].set(value);
            }
        }
        Ok(true)
    }

    /// Puts the row a trigger answered into the slots.
    fn take_over(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        row: Vec<Datum>,
        old: Option<&[u32]>,
        slots: &[u32],
    ) -> ExecResult<()> {
        for (place, (value, slot)) in row.into_iter().zip(slots).enumerate() {
            let at = &mut ctx.frame.slots[*slot as usize];
            // A column that shares the old row's slot is not written.
            if old.is_none_or(|old| old[place] != *slot) {
                at.set(value);
            } else if !hash::same(at, &value) {
                let column = &self.table.columns[place].name;
                return Err(SqlError::unsupported(format_args!(
                    "a trigger that changes key column \"{column}\", which the UPDATE does not set,"
                ))
                .into());
            }
        }
        Ok(())
    }

    /// A row that the statement's own triggers have changed is not written over.
    fn require_untouched(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        target: &Target,
        key: &[u8],
        slots: &[u32],
    ) -> ExecResult<()> {
        let stored = target.stored(ctx, key)?;
        let same = !stored.is_empty()
            && stored
                .iter()
                .zip(slots)
                .all(|(value, slot)| hash::same(value, &ctx.frame.slots[*slot as usize]));
        if same {
            return Ok(());
        }
        let done = if self.event == TriggerEvent::Delete { "deleted" } else { "updated" };
        Err(already_modified(done).into())
    }

    /// Keeps a row for the triggers of the table that the statement names.
    pub fn keep_for_root(&self, ctx: &mut ExecContext<'_, '_>, old: Option<&[u32]>, new: Option<&[u32]>) {
        let Some(kept) = &self.kept_for else { return };
        let of_root = |slots: Option<&[u32]>| -> Option<Vec<u32>> {
            slots.map(|slots| kept.columns.iter().map(|place| slots[usize::from(*place)]).collect())
        };
        let (old, new) = (of_root(old), of_root(new));
        let rows = [record(ctx, old.as_deref()), record(ctx, new.as_deref())];
        if let Some(queue) = &mut ctx.waiting {
            queue.keep(kept.root, self.event, rows);
        }
    }

    /// Queues the AFTER ROW triggers of a row that is written.
    pub fn queue(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        old: Option<&[u32]>,
        new: Option<&[u32]>,
    ) -> ExecResult<()> {
        self.keep_for_root(ctx, old, new);
        if self.after_row.is_empty() && !self.keeps_rows {
            return Ok(());
        }
        let (old, new) = (record(ctx, old), record(ctx, new));
        if self.keeps_rows
            && let Some(queue) = &mut ctx.waiting
        {
            queue.keep(self.table.oid, self.event, [old.clone(), new.clone()]);
        }
        for fire in &self.after_row {
            if !fire.wants(ctx, &old, &new)? {
                continue;
            }
            if let Some(timing) = fire.timing
                && ctx
                    .constraints
                    .as_ref()
                    .is_some_and(|modes| modes.is_trigger_deferred(fire.trigger, timing))
            {
                let rows = [old.clone(), new.clone()];
                let (table, event, function) = (fire.table, fire.event, fire.function.clone());
                let work = DeferredWork::Trigger { table, event, rows, function };
                ctx.effects_mut().deferred.push(DeferredCheck { constraint: fire.trigger, work });
            } else if let Some(queue) = &mut ctx.waiting {
                queue.push(Waiting::Trigger(fire.clone(), old.clone(), new.clone()));
            }
        }
        Ok(())
    }
}

/// A row in slots as one value.
fn record(ctx: &ExecContext<'_, '_>, slots: Option<&[u32]>) -> Datum {
    slots.map_or(Datum::Null, |slots| {
        Datum::Record(slots.iter().map(|slot| ctx.frame.slots[*slot as usize].clone()).collect())
    })
}
