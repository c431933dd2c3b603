//! UPDATE and DELETE.
//!
//! A statement on one row by its whole key runs straight through: read, change, write. Any
//! other finds its targets first, with everything computed from them (new values, RETURNING),
//! and then writes, so that no row is met twice and no query in the statement sees a write of
//! its own. A target that several FROM rows match is changed once, by the first of them.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::Inserted;
use archipel_engine::cell::Cell;
use archipel_engine::schema::KeyColumn;
use archipel_engine::storage::KeyBuf;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use smallvec::SmallVec;

mod triggered;

use super::action::with_queue;
use super::compile::{Compiler, Layout};
use super::conjunct::Conjunct;
use super::constraint::{ReferenceCheck, RowChecks};
use super::context::{ExecContext, ExecResult};
use super::expression::{Source, eval_all};
use super::node::Node;
use super::path::Meta;
use super::scan::scan_columns;
use super::statement::{Answer, Emit};
use super::stored::OF_EXPRESSION;
use super::target::{Found, Targets};
use super::write::{Cells, Target};
use crate::bind::reference::bind_generated;
use crate::bound::{BoundChecks, BoundDelete, BoundExpr, BoundUpdate, Rel};
use crate::route::RouteKey;
use crate::row::Codec;
use archipel_sql::catalog::{TableRef, TriggerEvent};
use triggered::Triggered;

/// New values for some columns of one row, and what they must satisfy.
pub(crate) struct Change {
    /// Column (or place after the columns), where its new value goes, how it is stored, how it is
    /// computed.
    set: Vec<(u16, u32, Codec, Source)>,
    /// How many of the last of them are computed from the new row: generated columns and what it
    /// stores for indexes.
    generated: usize,
    /// Where the latter are, as far as they are computed.
    for_indexes: Vec<Option<u32>>,
    old: Vec<u32>,
    /// The new row: changed columns in their new slots, the others where they are.
    pub row: Vec<u32>,
    checks: RowChecks,
    parents: Vec<Arc<ReferenceCheck>>,
    /// Rows that reference the old values of changed columns.
    children: Vec<Arc<ReferenceCheck>>,
    /// Whether changing a row may change rows that reference it.
    pub acts: bool,
    /// Whether a column of the storage key changes.
    moves: bool,
}

pub(crate) struct Update {
    target: Target,
    targets: Targets,
    change: Change,
    triggered: Option<Box<Triggered>>,
}

pub(crate) struct Delete {
    target: Target,
    targets: Targets,
    children: Vec<Arc<ReferenceCheck>>,
    /// Whether deleting a row may change rows that reference it.
    acts: bool,
    triggered: Option<Box<Triggered>>,
}

impl Compiler<'_> {
    /// Compiles SET over `scope` (the old row first).
    pub fn change(
        &mut self,
        table: &TableRef,
        meta: &Meta,
        old: &[u32],
        scope: &Layout,
        set: &[(u16, BoundExpr)],
        checks: &BoundChecks,
    ) -> Result<Change> {
        let mut columns: Vec<u16> = set.iter().map(|(column, _)| *column).collect();
        let mut row = old.to_vec();
        let mut set = set
            .iter()
            .map(|(column, expr)| {
                let source = self.scoped(scope, |c| c.source(expr))?;
                let slot = self.slot();
                self.mark(slot);
                if let Some(value) = self.scoped(scope, |c| Ok(c.row_free(expr)))? {
                    self.known.insert(slot, value);
                }
                Ok((*column, slot, Codec::of(table.columns[usize::from(*column)].ty), source))
            })
            .collect::<Result<Vec<_>>>()?;
        for (column, slot, ..) in &set {
            row[usize::from(*column)] = *slot;
        }
        let mut generated = 0;
        // Generated columns are computed from the new row, after what it is made of.
        for (column, expr) in bind_generated(self.env.catalog, table)? {
            let uses_changed = super::walk::root_columns(&expr).iter().any(|used| columns.contains(used));
            if !uses_changed && !columns.contains(&column) {
                continue;
            }
            let source = self.scoped(&row, |c| c.source(&expr))?;
            let slot = self.slot();
            self.mark(slot);
            let codec = Codec::of(table.columns[usize::from(column)].ty);
            set.retain(|(known, ..)| *known != column);
            set.push((column, slot, codec, source));
            generated += 1;
            row[usize::from(column)] = slot;
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let moves = meta.def.key.iter().any(|part| columns.contains(&part.column));
        if moves {
            // The row is written anew, so all of it is needed.
            self.mark_all(old);
            let key = match meta.def.key.first() {
                Some(first) if usize::from(first.column) < row.len() => {
                    self.route_of_slot(row[usize::from(first.column)])
                }
                _ => RouteKey::Unknown("the row keeps its number".to_owned()),
            };
            self.note_table(table, meta, true, key);
        }
        let for_indexes = self.stored_for_indexes(table, &row, (!moves).then_some(&columns))?;
        let slots: Vec<Option<u32>> =
            for_indexes.iter().map(|part| part.as_ref().map(|part| part.slot)).collect();
        for (place, part) in for_indexes.into_iter().enumerate() {
            let Some(part) = part else { continue };
            set.push(((table.columns.len() + place) as u16, part.slot, part.codec, part.source));
            generated += 1;
        }
        let for_indexes = slots;
        for index in &meta.def.indexes {
            let expression = |part: &KeyColumn| part.column.checked_sub(table.plain_width()).map(usize::from);
            let changed = moves
                || index.key.iter().any(|part| match expression(part) {
                    Some(at) => for_indexes.get(at).is_some_and(Option::is_some),
                    None => columns.contains(&part.column),
                });
            if let archipel_engine::schema::IndexPlacement::Global { group } = index.placement
                && changed
                && let Some(first) = index.key.first()
            {
                let (old, new) = match expression(first) {
                    Some(at) => (None, for_indexes.get(at).copied().flatten()),
                    None => (Some(old[usize::from(first.column)]), Some(row[usize::from(first.column)])),
                };
                for slot in [old, new] {
                    let key = match slot {
                        Some(slot) => self.route_of_slot(slot),
                        None => RouteKey::Unknown(OF_EXPRESSION.to_owned()),
                    };
                    self.note_index(table, meta, *first, group, key);
                }
            }
        }
        let checks = self.row_checks(table, &row, checks, Some(&columns))?;
        let parents = self.parent_checks(table, &row, Some(&columns))?;
        let children = self.child_checks(table, old, Some((&columns, &row)))?;
        for check in &parents {
            self.mark_all(&check.slots);
        }
        for check in &children {
            self.mark_all(check.sources());
        }
        let acts = children.iter().any(|child| child.acts());
        let old = old.to_vec();
        Ok(Change { set, generated, for_indexes, old, row, checks, parents, children, acts, moves })
    }

    /// Plans the target of UPDATE or DELETE with its FROM items: the node, the slots of both,
    /// and where the target's key will be.
    fn targets<'b>(
        &mut self,
        table: &TableRef,
        scan: &'b Rel,
        from: Option<&'b Rel>,
        filter: Option<&'b BoundExpr>,
    ) -> Result<(Node, Layout, Layout, usize)> {
        let old = self.declare(scan);
        let mut scope = old.clone();
        if let Some(from) = from {
            scope.extend(self.declare(from));
        }
        let conjuncts: Vec<Conjunct<'b>> = match filter {
            Some(filter) => self.conjuncts(filter, &scope),
            None => Vec::new(),
        };
        let key = self.key();
        let node = self.target_joins(table, scan, from, conjuncts, key)?;
        Ok((node, old, scope, key))
    }

    pub fn update(&mut self, update: &BoundUpdate) -> Result<Update> {
        let table = &update.table;
        let meta = self.table(table)?;
        let scan = self.kept_scan(table);
        self.open(format!("Update on {}", table.name));
        let planned = self.targets(table, &scan, update.from.as_ref(), update.filter.as_ref());
        self.close();
        let (mut node, old, scope, key) = planned?;
        let deferrable = match &node {
            Node::Scan(scan) if scan.path.unique => scan_columns(table, &meta, &old),
            _ => Vec::new(),
        };
        let ((change, returning), deferred) = self.deferring(deferrable, |c| {
            let set = c.set_with_triggers(table, &meta, &update.set);
            let change = c.change(table, &meta, &old, &scope, &set, &update.checks)?;
            let mut shown = change.row.clone();
            shown.extend(&scope[old.len()..]);
            let returning = update
                .returning
                .as_ref()
                .map(|returning| c.scoped(&shown, |c| c.exprs(&returning.exprs)))
                .transpose()?;
            Ok((change, returning))
        })?;
        if let Node::Scan(scan) = &mut node {
            scan.deferred = deferred;
        }
        let mut kept: Vec<u32> = change.set.iter().map(|(_, slot, ..)| *slot).collect();
        if change.moves {
            kept.extend(&old);
        }
        for check in &change.parents {
            kept.extend(&check.slots);
        }
        for check in &change.children {
            kept.extend(check.sources());
        }
        let columns: Vec<u16> = update.set.iter().map(|(column, _)| *column).collect();
        let triggers =
            self.triggers(table, TriggerEvent::Update, Some(&columns), Some(&old), Some(&change.row))?;
        let (triggered, returning) = self.triggered(triggers, &old, &scope, returning, &mut kept);
        kept.sort_unstable();
        kept.dedup();
        let target = Target::new(table, meta);
        let once = !change.acts && triggered.is_none();
        let targets = Targets::new(node, key, kept, returning, update.returning.as_ref(), once);
        Ok(Update { target, targets, change, triggered })
    }

    pub fn delete(&mut self, delete: &BoundDelete) -> Result<Delete> {
        let table = &delete.table;
        let meta = self.table(table)?;
        let scan = self.kept_scan(table);
        self.open(format!("Delete on {}", table.name));
        let planned = self.targets(table, &scan, delete.using.as_ref(), delete.filter.as_ref());
        self.close();
        let (node, old, scope, key) = planned?;
        for index in &meta.def.indexes {
            if let archipel_engine::schema::IndexPlacement::Global { group } = index.placement
                && let Some(first) = index.key.first()
            {
                let key = match old.get(usize::from(first.column)) {
                    Some(slot) => self.route_of_slot(*slot),
                    None => RouteKey::Unknown(OF_EXPRESSION.to_owned()),
                };
                self.note_index(table, &meta, *first, group, key);
            }
        }
        let children = self.child_checks(table, &old, None)?;
        let mut kept: Vec<u32> = Vec::new();
        for check in &children {
            self.mark_all(check.sources());
            kept.extend(check.sources());
        }
        let returning = delete
            .returning
            .as_ref()
            .map(|returning| self.scoped(&scope, |c| c.exprs(&returning.exprs)))
            .transpose()?;
        let triggers = self.triggers(table, TriggerEvent::Delete, None, Some(&old), None)?;
        let (triggered, returning) = self.triggered(triggers, &old, &scope, returning, &mut kept);
        kept.sort_unstable();
        kept.dedup();
        let target = Target::new(table, meta);
        let acts = children.iter().any(|child| child.acts());
        let once = !acts && triggered.is_none();
        let targets = Targets::new(node, key, kept, returning, delete.returning.as_ref(), once);
        Ok(Delete { target, targets, children, acts, triggered })
    }
}

impl Change {
    /// Computes the new values into their slots and checks the new row.
    pub fn evaluate(&self, ctx: &mut ExecContext<'_, '_>, target: &Target, key: &[u8]) -> ExecResult<()> {
        self.compute(ctx)?;
        self.check(ctx, target, key)
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
        if self.moves {
            let Some(moved) = self.take(ctx, target, key)? else { return Ok(false) };
            self.put(ctx, target, moved)?;
        } else if !self.write(ctx, target, key)? {
            return Ok(false);
        }
        self.check_references(ctx)?;
        Ok(true)
    }

    fn write(&self, ctx: &mut ExecContext<'_, '_>, target: &Target, key: &[u8]) -> ExecResult<bool> {
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
    fn take(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        target: &Target,
        key: &[u8],
    ) -> ExecResult<Option<(Vec<u8>, KeyBuf)>> {
        let hidden = match ctx.txn.get(&target.meta, key)? {
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
        if !ctx.txn.delete(&target.meta, key)? {
            return Ok(None);
        }
        Ok(Some((row, new_key)))
    }

    fn put(
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

    fn check_references(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        for parent in &self.parents {
            parent.check_or_queue(ctx)?;
        }
        for child in &self.children {
            // Values that stay leave nobody behind.
            let stays = child.slots.iter().all(|slot| {
                let new = self.old.iter().zip(&self.row).find(|(old, _)| *old == slot).map(|(_, new)| *new);
                new.is_none_or(|new| {
                    super::hash::same(&ctx.frame.slots[*slot as usize], &ctx.frame.slots[new as usize])
                })
            });
            if !stays {
                child.check_or_queue(ctx)?;
            }
        }
        Ok(())
    }
}

impl Update {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        if !self.targets.at_once {
            let found = self.find(ctx)?;
            return self.write(ctx, &found, Some(emit));
        }
        let mut count = 0;
        let _ = self.targets.node.run(ctx, &mut |ctx| {
            let key = std::mem::take(&mut ctx.frame.keys[self.targets.key]);
            self.change.evaluate(ctx, &self.target, &key)?;
            let written = self.change.apply(ctx, &self.target, &key)?;
            ctx.frame.keys[self.targets.key] = key;
            if written {
                count += 1;
                if let Some(returning) = &self.targets.returning {
                    let mut row = eval_all(returning, ctx)?;
                    let _ = emit(Answer::Given(&mut row))?;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    /// Finds the targets and computes their new values.
    pub fn find(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Found> {
        if self.triggered.is_some() {
            // Triggers come before the checks.
            return self.targets.find(ctx, &|ctx, _| self.change.compute(ctx));
        }
        self.targets.find(ctx, &|ctx, key| self.change.evaluate(ctx, &self.target, key))
    }

    /// Writes what was found, and answers it.
    pub fn write(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        if let Some(triggered) = &self.triggered {
            return with_queue(ctx, |ctx| self.write_triggered(triggered, ctx, found, emit));
        }
        if self.change.acts {
            return with_queue(ctx, |ctx| self.write_rows(ctx, found, emit));
        }
        self.write_rows(ctx, found, emit)
    }

    fn write_rows(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        mut emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        let kept = &self.targets.kept;
        let mut written = Vec::with_capacity(found.keys.len());
        if self.change.moves {
            // Rows that move leave first, so that they may take each other's places.
            let mut moved = Vec::with_capacity(found.keys.len());
            for (index, key) in found.keys.iter().enumerate() {
                found.values.restore(index, &mut ctx.frame, kept);
                moved.push(self.change.take(ctx, &self.target, key)?);
            }
            for moved in moved {
                written.push(moved.is_some());
                if let Some(moved) = moved {
                    self.change.put(ctx, &self.target, moved)?;
                }
            }
        } else {
            for (index, key) in found.keys.iter().enumerate() {
                found.values.restore(index, &mut ctx.frame, kept);
                written.push(self.change.write(ctx, &self.target, key)?);
            }
        }
        let mut count = 0;
        for (index, _) in written.iter().enumerate().filter(|(_, written)| **written) {
            count += 1;
            if let (Some(emit), Some(_)) = (&mut emit, &self.targets.returning) {
                let _ = emit(Answer::Lent(found.returning.row(index)))?;
            }
        }
        if !self.change.parents.is_empty() || !self.change.children.is_empty() {
            for index in 0..found.keys.len() {
                found.values.restore(index, &mut ctx.frame, kept);
                self.change.check_references(ctx)?;
            }
        }
        Ok(count)
    }
}

impl Delete {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        if !self.targets.at_once {
            let found = self.find(ctx)?;
            return self.write(ctx, &found, Some(emit));
        }
        let mut count = 0;
        let _ = self.targets.node.run(ctx, &mut |ctx| {
            let key = std::mem::take(&mut ctx.frame.keys[self.targets.key]);
            let mut row = match &self.targets.returning {
                Some(returning) => Some(eval_all(returning, ctx)?),
                None => None,
            };
            let deleted = ctx.txn.delete(&self.target.meta, &key)?;
            ctx.frame.keys[self.targets.key] = key;
            if deleted {
                count += 1;
                if let Some(row) = &mut row {
                    let _ = emit(Answer::Given(row))?;
                }
            }
            for child in &self.children {
                child.check_or_queue(ctx)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    /// Finds the targets.
    pub fn find(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Found> {
        self.targets.find(ctx, &|_, _| Ok(()))
    }

    /// Deletes what was found, and answers it.
    pub fn write(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        if let Some(triggered) = &self.triggered {
            return with_queue(ctx, |ctx| self.write_triggered(triggered, ctx, found, emit));
        }
        if self.acts {
            return with_queue(ctx, |ctx| self.write_rows(ctx, found, emit));
        }
        self.write_rows(ctx, found, emit)
    }

    fn write_rows(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        mut emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        let mut count = 0;
        for (index, key) in found.keys.iter().enumerate() {
            if ctx.txn.delete(&self.target.meta, key)? {
                count += 1;
                if let (Some(emit), Some(_)) = (&mut emit, &self.targets.returning) {
                    let _ = emit(Answer::Lent(found.returning.row(index)))?;
                }
            }
        }
        for child in &self.children {
            for index in 0..found.keys.len() {
                found.values.restore(index, &mut ctx.frame, &self.targets.kept);
                child.check_or_queue(ctx)?;
            }
        }
        Ok(count)
    }
}
