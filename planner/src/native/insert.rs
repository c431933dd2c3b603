//! INSERT, with ON CONFLICT and RETURNING.
//!
//! Rows are written as the source produces them, unless the source reads tables or calls what
//! may: then they are collected first, so that a statement never sees its own rows.

mod foresight;

pub(crate) use foresight::Proposal;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use archipel_engine::Inserted;
use archipel_engine::schema::IndexDef;
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::encode_cell;
use archipel_engine::txn::{Direction, KeyRange, LockMode, LockWait};
use archipel_sql::catalog::{Distribution, Table, TableRef, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use rustc_hash::FxHashSet;

use super::action::with_queue;
use super::compile::{Compiler, Pruned};
use super::constraint::{ReferenceCheck, RowChecks};
use super::context::{ExecContext, ExecResult};
use super::expression::{Source, eval_all};
use super::modify::Change;
use super::node::{Node, collect};
use super::rows::RowBuffer;
use super::scan::{ScanColumn, decode, scan_columns};
use super::statement::{Answer, Emit};
use super::stored::OF_EXPRESSION;
use super::target::has_subquery;
use super::trigger::Triggers;
use super::write::Target;
use super::{CompiledPredicate, walk};
use crate::bind::reference::bind_generated;
use crate::bound::{BoundInsert, ConflictArbiter, ExprKind, Rel};
use crate::explain::plan::PlanNode;
use crate::route::RouteKey;

pub(crate) struct Insert {
    pub target: Target,
    source: Node,
    /// Where the source leaves the new row.
    source_slots: Vec<u32>,
    /// The new row. BEFORE triggers change it, so it then has slots of its own, and so have
    /// generated columns always.
    slots: Vec<u32>,
    /// Computed from the row: generated columns, then what it stores for indexes.
    generated: Vec<(u32, Source)>,
    /// The slots of the latter.
    for_indexes: Vec<u32>,
    collected: bool,
    checks: RowChecks,
    parents: Vec<Arc<ReferenceCheck>>,
    /// Rows may reference ones that come after them.
    waits: bool,
    conflict: Option<Conflict>,
    triggers: Option<Box<Triggers>>,
    returning: Option<Vec<Source>>,
    /// What RETURNING reads where a row may have been updated instead.
    shown: Option<Vec<u32>>,
    /// All that writing a proposed row takes, once it is known what will become of it.
    kept: Vec<u32>,
    /// Whether ON CONFLICT or RETURNING asks for rows, which are those from before the statement:
    /// both are computed before anything is written.
    asks: bool,
}

struct Conflict {
    arbiter: Arbiter,
    update: Option<ConflictUpdate>,
}

enum Arbiter {
    /// Any unique key.
    Any,
    Primary,
    Index(IndexDef),
}

struct ConflictUpdate {
    existing: Vec<u32>,
    columns: Pruned<ScanColumn>,
    filter: Option<CompiledPredicate>,
    change: Change,
    triggers: Option<Box<Triggers>>,
}

impl Compiler<'_> {
    /// The columns that a table without a key could be distributed by, as far as their values
    /// are known before the run.
    fn candidates(&self, table: &Table, slots: &[u32]) -> Vec<(u16, RouteKey)> {
        let columns = table.columns.iter().zip(slots).enumerate();
        let required = columns.filter(|(_, (column, _))| column.not_null);
        let routed = required.map(|(place, (_, slot))| (place as u16, self.route_of_slot(*slot)));
        routed.filter(|(_, key)| matches!(key, RouteKey::Point(_))).collect()
    }

    pub fn insert(&mut self, insert: &BoundInsert) -> Result<Insert> {
        let table = &insert.table;
        let meta = self.table(table)?;
        self.open(PlanNode::new("Insert").on(&table.name));
        let source = self.relation(&insert.source);
        self.close();
        let source = source?;
        let source_slots = self.declare(&insert.source);
        self.mark_all(&source_slots);
        let mut slots = source_slots.clone();
        let mut generated = self.generated(table, &mut slots)?;
        let key = match meta.def.key.first() {
            Some(first) if usize::from(first.column) < slots.len() => {
                self.route_of_slot(slots[usize::from(first.column)])
            }
            _ => RouteKey::Unknown("the row gets a number of its own".to_owned()),
        };
        let numbered = matches!(key, RouteKey::Unknown(_));
        self.note_table(table, &meta, true, key);
        if numbered && matches!(table.distribution, Distribution::HiddenId { .. }) {
            let candidates = self.candidates(table, &slots);
            if let Some(access) = self.accesses.last_mut() {
                access.candidates = candidates;
            }
        }
        let triggers = self.triggers(table, TriggerEvent::Insert, None, None, Some(&slots))?;
        if triggers.as_ref().is_some_and(|triggers| triggers.changes_rows()) {
            let mut own = self.slots(slots.len());
            self.mark_all(&own);
            for (from, to) in slots.iter().zip(&own) {
                if let Some(value) = self.known.get(from).cloned() {
                    self.known.insert(*to, value);
                }
                if let Some(values) = self.lists.get(from).cloned() {
                    self.lists.insert(*to, values);
                }
            }
            generated = self.generated(table, &mut own)?;
            slots = own;
        }
        let mut for_indexes = Vec::new();
        for part in self.stored_for_indexes(table, &slots, None)?.into_iter().flatten() {
            for_indexes.push(part.slot);
            generated.push((part.slot, part.source));
        }
        for index in &meta.def.indexes {
            if let archipel_engine::schema::IndexPlacement::Global { group } = index.placement
                && let Some(first) = index.key.first()
            {
                let place = usize::from(first.column);
                let at = || for_indexes.get(place - usize::from(table.plain_width())).copied();
                let key = match slots.get(place).copied().or_else(at) {
                    Some(slot) => self.route_of_slot(slot),
                    None => RouteKey::Unknown(OF_EXPRESSION.to_owned()),
                };
                self.note_index(table, &meta, *first, group, key);
            }
        }
        let checks = self.row_checks(table, &slots, &insert.checks, None, insert.given.clone())?;
        let parents = self.parent_checks(table, &slots, None)?;
        let target = Target::new(table, meta);
        let mut shown = None;
        let conflict = match &insert.on_conflict {
            None => None,
            Some(on_conflict) => {
                let arbiter = match &on_conflict.target {
                    None => Arbiter::Any,
                    Some(wanted) => self.arbiter(&target, wanted)?,
                };
                let update = match &on_conflict.update {
                    None => None,
                    Some((set, filter)) => {
                        let existing = self.slots(table.columns.len());
                        let mut scope = existing.clone();
                        scope.extend(&slots);
                        let filter = filter
                            .as_ref()
                            .map(|filter| self.scoped(&scope, |c| c.predicate(filter)))
                            .transpose()?;
                        let columns = self.updated_columns(table, set)?;
                        let set = self.set_with_triggers(table, &target.meta, set)?;
                        let mut change =
                            self.change(table, &target.meta, &existing, &scope, &set, &insert.checks)?;
                        change.checks.also_given(&insert.given);
                        let triggers = self.triggers(
                            table,
                            TriggerEvent::Update,
                            Some(&columns),
                            Some(&existing),
                            Some(&change.row),
                        )?;
                        let columns = scan_columns(table, &target.meta, &existing);
                        let columns = self.pruned(columns, |column| column.slot);
                        shown = Some(self.slots(table.columns.len()));
                        Some(ConflictUpdate { existing, columns, filter, change, triggers })
                    }
                };
                Some(Conflict { arbiter, update })
            }
        };
        let row = shown.as_ref().unwrap_or(&slots).clone();
        let returning = insert
            .returning
            .as_ref()
            .map(|returning| self.scoped(&row, |c| c.exprs(&returning.exprs)))
            .transpose()?;
        if shown.is_some() && returning.is_some() {
            // The updated row is shown whole.
            if let Some(update) = conflict.as_ref().and_then(|c| c.update.as_ref()) {
                self.mark_all(&update.existing);
            }
        }
        let collected = reads_anything(&insert.source);
        let updates = conflict.as_ref().and_then(|conflict: &Conflict| conflict.update.as_ref());
        let waits = (parents.iter().any(|parent| parent.is_own()) && !is_one_row(&insert.source))
            || updates.is_some_and(|update| update.change.acts || update.triggers.is_some())
            || triggers.is_some();
        let mut kept = [&slots[..], &for_indexes].concat();
        if let Some(update) = updates {
            kept.extend(&update.existing);
            kept.extend(update.change.computed());
        }
        kept.sort_unstable();
        kept.dedup();
        Ok(Insert {
            target,
            source,
            source_slots,
            slots,
            generated,
            for_indexes,
            collected,
            checks,
            parents,
            waits,
            conflict,
            triggers,
            returning,
            shown,
            kept,
            asks: asks_for_rows(insert),
        })
    }

    /// Gives generated columns slots of their own, and what they are computed from.
    fn generated(&mut self, table: &TableRef, slots: &mut [u32]) -> Result<Vec<(u32, Source)>> {
        let mut generated = Vec::new();
        for (column, expr) in bind_generated(self.env.catalog, table)? {
            let source = self.scoped(slots, |c| c.source(&expr))?;
            let slot = self.slot();
            self.mark(slot);
            slots[usize::from(column)] = slot;
            generated.push((slot, source));
        }
        Ok(generated)
    }

    fn arbiter(&self, target: &Target, wanted: &ConflictArbiter) -> Result<Arbiter> {
        let index = match wanted {
            ConflictArbiter::Primary => return Ok(Arbiter::Primary),
            ConflictArbiter::Index(oid) => target.table.indexes.iter().find(|index| index.oid == *oid),
        };
        index
            .and_then(|index| target.meta.def.indexes.iter().find(|def| def.id.0 == index.tree))
            .map(|def| Arbiter::Index(def.clone()))
            .ok_or_else(|| SqlError::internal("an index that decides conflicts is not there"))
    }
}

/// Whether a source never has a second row, which the first could reference.
fn is_one_row(rel: &Rel) -> bool {
    match rel {
        Rel::Unit => true,
        Rel::Values { rows, .. } => rows.len() <= 1,
        Rel::Project { input, .. } => is_one_row(input),
        _ => false,
    }
}

/// Whether what is done with the rows of the source asks for others.
fn asks_for_rows(insert: &BoundInsert) -> bool {
    let returning = insert.returning.iter().flat_map(|returning| &returning.exprs);
    let update = insert.on_conflict.iter().filter_map(|conflict| conflict.update.as_ref());
    let mut update = update.flat_map(|(set, filter)| set.iter().map(|(_, value)| value).chain(filter));
    returning.clone().any(has_subquery) || update.any(has_subquery)
}

/// Whether a source must be run to its end before the first row is written.
fn reads_anything(rel: &Rel) -> bool {
    let mut reads = !matches!(rel, Rel::Values { .. } | Rel::Unit);
    if let Rel::Project { input, .. } = rel {
        reads = !matches!(**input, Rel::Unit | Rel::Values { .. });
    }
    walk::visit_rel(rel, 0, &mut |expr, _| {
        reads |= matches!(expr.kind, ExprKind::Subquery(_) | ExprKind::Routine { .. });
    });
    reads
}

/// What became of one proposed row.
enum Written {
    Inserted,
    Updated,
    Skipped,
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
                let _ = self.source.run(ctx, &mut |ctx| {
                    count += self.one(ctx, &mut row, &mut touched, &mut |_| Ok(ControlFlow::Continue(())))?;
                    Ok(ControlFlow::Continue(()))
                })?;
            }
            ctx.frame.row = row;
            self.end(ctx)?;
            Ok(count)
        };
        let references_itself = self.parents.iter().any(|parent| parent.is_own());
        if self.waits || references_itself { with_queue(ctx, insert) } else { insert(ctx) }
    }

    fn update_triggers(&self) -> Option<&Triggers> {
        self.conflict.as_ref()?.update.as_ref()?.triggers.as_deref()
    }

    /// Fires the BEFORE STATEMENT triggers.
    pub fn begin(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        for triggers in self.triggers.as_deref().into_iter().chain(self.update_triggers()) {
            triggers.begin(ctx)?;
        }
        Ok(())
    }

    /// Queues the AFTER STATEMENT triggers.
    pub fn end(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        for triggers in self.update_triggers().into_iter().chain(self.triggers.as_deref()) {
            triggers.end(ctx)?;
        }
        Ok(())
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

    /// The slot of a place in the new row.
    #[inline]
    fn slot(&self, place: usize) -> usize {
        let slot = self.slots.get(place).copied();
        slot.unwrap_or_else(|| self.for_indexes[place - self.slots.len()]) as usize
    }

    fn show(&self, ctx: &mut ExecContext<'_, '_>, row: &[u32], shown: &[u32]) {
        for (from, to) in row.iter().zip(shown) {
            ctx.frame.slots[*to as usize] = ctx.frame.slots[*from as usize].clone();
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
    fn propose(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<bool> {
        if let Some(triggers) = &self.triggers
            && !triggers.propose(ctx, &self.source_slots, &self.slots)?
        {
            return Ok(false);
        }
        self.generate(ctx)?;
        self.checks.check_constraints(ctx, &|ctx| Ok(self.values(ctx)))?;
        Ok(true)
    }

    /// The proposed row, with what it stores for indexes.
    fn values(&self, ctx: &ExecContext<'_, '_>) -> Vec<Datum> {
        let slots = self.slots.iter().chain(&self.for_indexes);
        slots.map(|slot| ctx.frame.slots[*slot as usize].clone()).collect()
    }

    /// Encodes the proposed row, under a number of its own where the table has no key.
    fn encode(&self, ctx: &mut ExecContext<'_, '_>, row: &mut Vec<u8>) -> ExecResult<KeyBuf> {
        let hidden = if self.target.hidden { Some(ctx.txn.hidden_row_id()) } else { None };
        let mut key = KeyBuf::new();
        let frame = &ctx.frame;
        self.target.encode(|place| &frame.slots[self.slot(place)], hidden, row, &mut key)?;
        Ok(key)
    }

    /// Writes the row in the slots.
    fn one(
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
            let mut row = eval_all(returning, ctx)?;
            let _ = emit(Answer::Given(&mut row))?;
        }
        Ok(1)
    }

    /// What follows once the proposed row is written.
    #[inline]
    fn inserted(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
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
        if touched.contains(&existing) {
            return Err(second_time().into());
        }
        if !self.compute_update(update, ctx, &existing)?
            || !ctx.outside_view(|ctx| update.change.apply(ctx, &self.target, &existing))?
        {
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
    fn compute_update(
        &self,
        update: &ConflictUpdate,
        ctx: &mut ExecContext<'_, '_>,
        existing: &KeyBuf,
    ) -> ExecResult<bool> {
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
    fn holder(
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
    fn entry(&self, index: &IndexDef, row: &[u8]) -> Option<KeyBuf> {
        let meta = &self.target.meta;
        let mut entry = KeyBuf::new();
        for column in &index.key {
            let position = usize::from(column.column);
            if meta.layout.is_null(row, position) {
                return None;
            }
            encode_cell(&mut entry, meta.layout.get(row, position), column, meta.def.columns[position]);
        }
        Some(entry)
    }
}

/// A row that the command has written already is proposed once more.
fn second_time() -> SqlError {
    SqlError::new(
        SqlState::CARDINALITY_VIOLATION,
        "ON CONFLICT DO UPDATE command cannot affect row a second time",
    )
    .with_hint(
        "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    )
}
