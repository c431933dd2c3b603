//! One new row on its way into its table: past BEFORE triggers, checks and ON CONFLICT.

use std::ops::{Bound, ControlFlow};

use archipel_engine::Inserted;
use archipel_engine::schema::IndexDef;
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::encode_cell;
use archipel_engine::txn::{Direction, KeyRange, LockMode, LockWait};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::types::Oid;
use rustc_hash::FxHashSet;

use super::insert::{Arbiter, Conflict, ConflictUpdate, RowInsert};
use super::target::already_modified;
use super::trigger::Triggers;
use crate::array::Values;
use crate::native::run::access::scan::decode;
use crate::native::run::expression::source::{Source, eval_into};
use crate::native::run::row::answer::{Answer, Emit};
use crate::native::run::row::hash::same;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// What became of one proposed row.
enum Written {
    Inserted,
    Updated,
    Skipped,
}

impl RowInsert {
    /// Whether rows of an INSERT may have to wait for others.
    pub(crate) fn waits(&self, one_row: bool) -> bool {
        let updates = self.conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
        (self.references_itself() && !one_row)
            || updates.is_some_and(|update| update.change.acts || update.triggers.is_some())
            || self.triggers.is_some()
    }

    pub(crate) fn references_itself(&self) -> bool {
        self.parents.iter().any(|parent| parent.is_own())
    }

    pub(crate) fn update_triggers(&self) -> Option<&Triggers> {
        self.conflict.as_ref()?.update.as_ref()?.triggers.as_deref()
    }

    /// Whether BEFORE triggers may change rows on their way.
    pub(in crate::native) fn changes_rows(&self) -> bool {
        self.triggers.as_ref().is_some_and(|triggers| triggers.changes_rows())
    }

    /// Where the row is, once it is written.
    pub(in crate::native) fn row(&self) -> &[u32] {
        &self.slots
    }

    /// The slot of a place in the new row.
    #[inline]
    pub(crate) fn slot(&self, place: usize) -> usize {
        let slot = self.slots.get(place).copied();
        slot.unwrap_or_else(|| self.for_indexes[place - self.slots.len()]) as usize
    }

    pub(super) fn show(&self, ctx: &mut ExecContext<'_, '_>, row: &[u32], shown: &[u32]) {
        for (from, to) in row.iter().zip(shown) {
            ctx.frame.slots[*to as usize] = ctx.frame.slots[*from as usize].clone();
        }
    }

    /// Says who has locked the row, if RETURNING asks: the transaction, if it is there already.
    #[inline]
    pub(super) fn tell_locker(&self, ctx: &mut ExecContext<'_, '_>, updated: bool) -> ExecResult<()> {
        let Some(slot) = self.locker else { return Ok(()) };
        let id = match updated {
            false => 0,
            true => match ctx.functions.session.call("pg_current_xact_id", &[])? {
                // Its lower half, as xid shows it.
                Datum::Int8(id) => id as u32,
                _ => return Err(SqlError::internal("a transaction without an id").into()),
            },
        };
        ctx.frame.slots[slot as usize].set(Datum::Oid(Oid(id)));
        Ok(())
    }

    /// Computes the generated columns of the row in the slots.
    fn generate(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        for (slot, source) in &self.generated {
            let value = source.eval(ctx)?;
            ctx.frame.slots[*slot as usize].set(value);
        }
        Ok(())
    }

    /// Makes the row in the source's slots one that may be written, past the BEFORE triggers;
    /// whether they let it.
    #[inline]
    pub(super) fn propose(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<bool> {
        if let Some(triggers) = &self.triggers
            && !triggers.propose(ctx, &self.source_slots, &self.slots)?
        {
            return Ok(false);
        }
        if let Some(trigger) = &self.stays {
            self.require_unmoved(trigger, ctx)?;
        }
        self.generate(ctx)?;
        self.checks.check_constraints(ctx, &|ctx| Ok(self.values(ctx)))?;
        Ok(true)
    }

    /// A BEFORE trigger that a partition has from what it is part of has not made the row another
    /// partition's (ExecBRInsertTriggers).
    fn require_unmoved(&self, trigger: &str, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        if self.checks.keeps_partition(ctx)? {
            return Ok(());
        }
        let at = |slot: &u32| &ctx.frame.slots[*slot as usize];
        let same = self.source_slots.iter().zip(&self.slots).all(|(from, to)| same(at(from), at(to)));
        if same {
            // The row was never one of the partition's.
            return Ok(());
        }
        let table = &self.target.table;
        Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "moving row to another partition during a BEFORE FOR EACH ROW trigger is not supported",
        )
        .with_detail(format!(
            "Before executing trigger \"{trigger}\", the row was to be in partition \"{}.{}\".",
            table.schema, table.name
        ))
        .into())
    }

    /// The proposed row, with what it stores for indexes.
    pub(crate) fn values(&self, ctx: &ExecContext<'_, '_>) -> Vec<Datum> {
        let slots = self.slots.iter().chain(&self.for_indexes);
        slots.map(|slot| ctx.frame.slots[*slot as usize].clone()).collect()
    }

    /// Gives the proposed row its number, if RETURNING asks for it.
    #[inline]
    pub(super) fn give_number(&self, ctx: &mut ExecContext<'_, '_>) {
        if let Some(slot) = self.number.filter(|_| self.target.hidden) {
            let number = ctx.txn.hidden_row_id();
            ctx.frame.slots[slot as usize].set(Datum::Int8(number));
        }
    }

    /// Encodes the proposed row, under a number of its own where the table has no key.
    pub(super) fn encode(&self, ctx: &mut ExecContext<'_, '_>, row: &mut Vec<u8>) -> ExecResult<KeyBuf> {
        let given = self.number.map(|slot| &ctx.frame.slots[slot as usize]);
        let hidden = match given {
            _ if !self.target.hidden => None,
            Some(Datum::Int8(number)) => Some(*number),
            _ => Some(ctx.txn.hidden_row_id()),
        };
        let mut key = KeyBuf::new();
        let frame = &ctx.frame;
        self.target.encode(|place| &frame.slots[self.slot(place)], hidden, row, &mut key)?;
        Ok(key)
    }

    /// Whether a row whose values go to these slots is written as they are: nothing is computed from
    /// it, and nothing hangs on it but that some columns are not NULL.
    #[inline]
    pub(crate) fn is_straight(&self, slots: &[u32]) -> bool {
        self.conflict.is_none()
            && self.triggers.is_none()
            && self.returning.is_none()
            && self.stays.is_none()
            && self.generated.is_empty()
            && self.for_indexes.is_empty()
            && self.parents.is_empty()
            && self.checks.only_not_null()
            && self.slots == slots
    }

    /// Writes a row of these values, one for each slot, of an INSERT that [`RowInsert::is_straight`].
    /// What has an address is taken from there.
    pub(crate) fn straight(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        values: &[Source],
        row: &mut Vec<u8>,
    ) -> ExecResult<()> {
        ctx.tick()?;
        for (source, slot) in values.iter().zip(&self.slots) {
            if let Source::Code(code) = source {
                let value = code(ctx)?;
                ctx.frame.slots[*slot as usize].set(value);
            }
        }
        let hidden = if self.target.hidden { Some(ctx.txn.hidden_row_id()) } else { None };
        let mut key = KeyBuf::new();
        if !self.target.encode_new(|place| self.given(ctx, values, place), hidden, row, &mut key)? {
            self.gather(ctx, values);
            return self.checks.check_constraints(ctx, &|ctx| Ok(self.values(ctx)));
        }
        let inserted = ctx.txn.insert(&self.target.meta, &key, row)?;
        if inserted != Inserted::Ok {
            self.gather(ctx, values);
            self.target.accept(inserted, ctx, &self.values(ctx))?;
        }
        Ok(())
    }

    /// The value for a place of the row, where it is.
    #[inline]
    fn given<'c>(&'c self, ctx: &'c ExecContext<'_, '_>, values: &'c [Source], place: usize) -> &'c Datum {
        match &values[place] {
            Source::Operand(operand) => operand.get(ctx),
            Source::Code(_) => &ctx.frame.slots[self.slots[place] as usize],
        }
    }

    /// Puts what has an address into the slots of a row, for who asks for all of it.
    #[cold]
    fn gather(&self, ctx: &mut ExecContext<'_, '_>, values: &[Source]) {
        for (source, slot) in values.iter().zip(&self.slots) {
            if let Source::Operand(operand) = source {
                let value = operand.get(ctx).clone();
                ctx.frame.slots[*slot as usize].set(value);
            }
        }
    }

    /// Writes the row in the slots.
    pub(in crate::native) fn one(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        row: &mut Vec<u8>,
        touched: &mut FxHashSet<KeyBuf>,
        emit: &mut Emit<'_>,
    ) -> ExecResult<u64> {
        ctx.tick()?;
        if !self.propose(ctx)? {
            return Ok(0);
        }
        self.give_number(ctx);
        let key = self.encode(ctx, row)?;
        let written = match &self.conflict {
            None => {
                let inserted = ctx.txn.insert(&self.target.meta, &key, row)?;
                if inserted != Inserted::Ok {
                    self.target.accept(inserted, ctx, &self.values(ctx))?;
                }
                Written::Inserted
            }
            Some(conflict) => self.upsert(conflict, ctx, row, &key, touched)?,
        };
        self.tell_locker(ctx, matches!(written, Written::Updated))?;
        match written {
            Written::Skipped => return Ok(0),
            Written::Inserted => {
                self.inserted(ctx)?;
                if let Some(shown) = &self.shown {
                    self.show(ctx, &self.slots, shown);
                }
            }
            Written::Updated => {}
        }
        if let Some(returning) = &self.returning {
            let mut row = Values::new();
            eval_into(&mut row, returning, ctx)?;
            let _ = emit(Answer::Given(&mut row))?;
        }
        Ok(1)
    }

    /// What follows once the proposed row is written.
    #[inline]
    pub(super) fn inserted(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        self.checks.check_options(ctx, &|ctx| Ok(self.values(ctx)))?;
        for parent in &self.parents {
            parent.check_or_queue(ctx)?;
        }
        match &self.triggers {
            Some(triggers) => triggers.queue(ctx, None, Some(&self.slots)),
            None => Ok(()),
        }
    }

    fn upsert(
        &self,
        conflict: &Conflict,
        ctx: &mut ExecContext<'_, '_>,
        row: &[u8],
        key: &KeyBuf,
        touched: &mut FxHashSet<KeyBuf>,
    ) -> ExecResult<Written> {
        // Who holds the key is judged by what is committed, whatever the transaction's snapshot.
        let before = ctx.txn.read_newest_from_now(true);
        let existing = match &conflict.arbiter {
            Arbiter::Any => Ok(None),
            Arbiter::Primary => {
                let found = ctx.txn.get(&self.target.meta, key).map(|row| row.is_some());
                found.map(|found| found.then(|| key.clone())).map_err(Into::into)
            }
            Arbiter::Index(index) => self.holder(index, ctx, row),
        };
        ctx.txn.read_newest_from_now(before);
        let existing = existing?;
        let Some(existing) = existing else {
            let inserted = ctx.txn.insert(&self.target.meta, key, row)?;
            if inserted != Inserted::Ok {
                if matches!(conflict.arbiter, Arbiter::Any) {
                    if inserted == Inserted::DuplicateKey(None) {
                        ctx.txn.require_unchanged(&self.target.meta, key)?;
                    }
                    return Ok(Written::Skipped);
                }
                self.target.accept(inserted, ctx, &self.values(ctx))?;
            }
            if conflict.update.is_some() {
                touched.insert(key.clone());
            }
            return Ok(Written::Inserted);
        };
        ctx.txn.require_unchanged(&self.target.meta, &existing)?;
        let Some(update) = &conflict.update else { return Ok(Written::Skipped) };
        // Routines that made the proposed row may have written it, and so may those that change it.
        if touched.contains(&existing) || ctx.txn.is_written_over(&self.target.meta, &existing) {
            return Err(second_time().into());
        }
        let changes = self.compute_update(update, ctx, &existing)?;
        if changes && ctx.txn.is_written_over(&self.target.meta, &existing) {
            return Err(already_modified("updated").into());
        }
        if !changes || !ctx.outside_view(|ctx| update.change.apply(ctx, &self.target, &existing))? {
            return Ok(Written::Skipped);
        }
        touched.insert(existing);
        if let Some(triggers) = &update.triggers {
            triggers.queue(ctx, Some(&update.existing), Some(&update.change.row))?;
        }
        if let Some(shown) = &self.shown {
            self.show(ctx, &update.change.row, shown);
        }
        Ok(Written::Updated)
    }

    /// Computes what DO UPDATE makes of a row; whether it is to be written.
    pub(super) fn compute_update(
        &self,
        update: &ConflictUpdate,
        ctx: &mut ExecContext<'_, '_>,
        existing: &KeyBuf,
    ) -> ExecResult<bool> {
        if update.met_before {
            ctx.txn.require_locked(&self.target.meta, existing)?;
        }
        // Whoever changes the row now is waited for: the condition is about what comes of it.
        let found = ctx.outside_view(|ctx| {
            ctx.txn.lock_row(&self.target.meta, existing, LockMode::NoKeyUpdate, LockWait::Wait)?;
            let Some(stored) = ctx.txn.get(&self.target.meta, existing)? else { return Ok(false) };
            decode(update.columns.get(), stored, &mut ctx.frame);
            Ok(true)
        })?;
        if !found {
            return Ok(false);
        }
        if let Some(filter) = &update.filter
            && filter(ctx)? != Some(true)
        {
            return Ok(false);
        }
        let Some(triggers) = &update.triggers else {
            update.change.evaluate(ctx, &self.target, existing)?;
            return Ok(true);
        };
        update.change.compute(ctx)?;
        let (old, new) = (&update.existing, &update.change.row);
        if !triggers.before_row(ctx, Some((&self.target, existing, old)), Some(new))? {
            return Ok(false);
        }
        update.change.generate(ctx)?;
        update.change.check(ctx, &self.target, existing)?;
        Ok(true)
    }

    /// The storage key of the row that holds the proposed row's key in a unique index.
    pub(super) fn holder(
        &self,
        index: &IndexDef,
        ctx: &mut ExecContext<'_, '_>,
        row: &[u8],
    ) -> ExecResult<Option<KeyBuf>> {
        let meta = &self.target.meta;
        let Some(entry) = self.entry(index, row) else { return Ok(None) };
        let mut found = None;
        let range = KeyRange { low: Bound::Included(&entry), high: Bound::Included(&entry) };
        ctx.txn.scan_index(meta, index, range, Direction::Ascending, &mut |_, storage_key| {
            found = Some(KeyBuf::from_slice(storage_key));
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// A row's key in a unique index; `None` where a NULL keeps it from being equal to any.
    pub(super) fn entry(&self, index: &IndexDef, row: &[u8]) -> Option<KeyBuf> {
        let meta = &self.target.meta;
        let mut entry = KeyBuf::new();
        for column in &index.key {
            let position = usize::from(column.column);
            if meta.layout.is_null(row, position) && !index.refuses_nulls() {
                return None;
            }
            encode_cell(&mut entry, meta.layout.get(row, position), column, meta.def.columns[position]);
        }
        Some(entry)
    }
}

/// A row that the command has written already is proposed once more.
pub(super) fn second_time() -> SqlError {
    SqlError::new(
        SqlState::CARDINALITY_VIOLATION,
        "ON CONFLICT DO UPDATE command cannot affect row a second time",
    )
    .with_hint(
        "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    )
}
