//! UPDATE and DELETE.
//!
//! A statement on one row by its whole key runs straight through: read, change, write. Any
//! other finds its targets first, with everything computed from them (new values, RETURNING),
//! and then writes, so that no row is met twice and no query in the statement sees a write of
//! its own. A target that several FROM rows match is changed once, by the first of them.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::txn::LockMode;
use archipel_sql::catalog::{Column, TableRef, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use rustc_hash::FxHashMap;

use crate::array::Values;
use crate::bound::{BoundDelete, BoundExpr, BoundUpdate, Rel};
use crate::native::plan::access::conjunct::Conjunct;
use crate::native::plan::compiler::{Compiler, Layout};
use crate::native::plan::constraint::ReferenceCheck;
use crate::native::run::access::scan::scan_columns;
use crate::native::run::change::cross_partition::{Mover, Moving};
use crate::native::run::change::fate::{Fate, Foreseen};
use crate::native::run::change::row_trigger::{Triggered, Triggering};
use crate::native::run::change::target::{Found, Targets, reads_rows};
use crate::native::run::change::write::Target;
use crate::native::run::constraint::partition_bound::Placing;
use crate::native::run::expression::source::{eval_all, eval_into};
use crate::native::run::operator::node::Node;
use crate::native::run::state::context::{ExecContext, ExecResult};
use crate::native::run::statement::{Answer, Emit};
use crate::route::RouteKey;
use super::assignment::Change;
use super::index_expression::OF_EXPRESSION;

pub(crate) struct Update {
    pub target: Target,
    pub(crate) targets: Targets,
    pub(crate) change: Change,
    pub(crate) triggered: Option<Box<Triggered>>,
    /// For rows that become another partition's.
    pub(crate) mover: Option<Box<Mover>>,
}

pub(crate) struct Delete {
    pub target: Target,
    pub(crate) targets: Targets,
    pub(crate) children: Vec<Arc<ReferenceCheck>>,
    /// Whether deleting a row may change rows that reference it.
    pub(crate) acts: bool,
    pub(crate) triggered: Option<Box<Triggered>>,
}

impl Compiler<'_> {
    /// Plans the target of UPDATE or DELETE with its FROM items: the node, the slots of the target's
    /// columns, those of all that expressions read, and where the target's key will be.
    pub(crate) fn targets<'b>(
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
        let columns = old[..table.columns.len()].to_vec();
        Ok((node, columns, scope, key))
    }

    pub fn update(&mut self, update: &BoundUpdate) -> Result<Update> {
        self.update_of(update, None)
    }

    /// An UPDATE, of a member of a family between whose members rows may move.
    pub(crate) fn update_of(&mut self, update: &BoundUpdate, moving: Option<(&Arc<Moving>, usize)>) -> Result<Update> {
        let table = &update.table;
        let meta = self.table(table)?;
        let scan = self.kept_scan(update.numbered.as_ref().unwrap_or(table), &update.alias);
        let line = self.open_change("Update", table, &update.alias);
        let planned = self.targets(table, &scan, update.from.as_ref(), update.filter.as_ref());
        self.close();
        let (mut node, old, scope, key) = planned?;
        let called = self.changed_name(table, &old);
        self.describe_change(line, table, called, &scope[old.len()..], update.returning.as_ref());
        let deferrable = match node.as_scan() {
            Some(scan) if scan.path.unique => scan_columns(table, &meta, &old),
            _ => Vec::new(),
        };
        let ((change, returning), deferred) = self.deferring(deferrable, |c| {
            let mut set = c.set_with_triggers(table, &meta, &update.set)?;
            if moving.is_some_and(|(moving, _)| moving.rewrites || changes_rows(table)) {
                // Triggers may move rows, too.
                let missing = |(place, _): &(usize, &Column)| {
                    !set.iter().any(|(column, _)| usize::from(*column) == *place)
                };
                let missing: Vec<_> = table.columns.iter().enumerate().filter(missing).collect();
                let stay = missing.into_iter();
                set.extend(stay.map(|(place, column)| (place as u16, BoundExpr::column(place, column.ty))));
            }
            let placing = if moving.is_some() { Placing::Done } else { c.placing };
            let before = std::mem::replace(&mut c.placing, placing);
            let change = c.change(table, &meta, &old, &scope, &set, &update.checks);
            c.placing = before;
            let change = change?;
            let mut shown = change.row.clone();
            shown.extend(&scope[old.len()..]);
            shown.extend(moving.map(|(moving, _)| moving.number));
            let returning = update
                .returning
                .as_ref()
                .map(|returning| c.scoped(&shown, |c| c.exprs(&returning.exprs)))
                .transpose()?;
            Ok((change, returning))
        })?;
        if let Some(scan) = node.as_scan_mut() {
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
        let mover = match moving {
            None => None,
            Some((moving, place)) => {
                if moving.rewrites && returning.is_some() {
                    let shown = [&change.row[..], &scope[old.len()..]].concat();
                    self.mark_all(&shown);
                    kept.extend(shown);
                }
                kept.extend(&old);
                kept.push(moving.number);
                let mover = Mover::new(self, moving, place, &old, &change.row)?;
                kept.extend(mover.sources());
                Some(Box::new(mover))
            }
        };
        let columns = self.updated_columns(table, &update.set)?;
        let triggers =
            self.triggers(table, TriggerEvent::Update, Some(&columns), Some(&old), Some(&change.row))?;
        let (triggered, returning) =
            self.triggered(triggers, &old, &scope, returning, update.returning.as_ref(), &mut kept);
        kept.sort_unstable();
        kept.dedup();
        let target = Target::new(table, meta);
        let once = !change.acts && triggered.is_none() && mover.is_none();
        let mut targets = Targets::new(node, key, kept, returning, update.returning.as_ref(), once);
        targets.event = if self.merged.is_empty() { "updated" } else { CHANGED_BY_MERGE };
        // Whatever asks for rows asks for those from before the statement.
        let asks = update.set.iter().map(|(_, value)| value).chain(&update.filter).any(reads_rows);
        targets.each_at_once = once
            && !asks
            && targets.are_walked()
            && targets.returning.is_none()
            && !change.moves
            && change.checks.only_not_null()
            && change.parents.is_empty()
            && change.children.is_empty();
        Ok(Update { target, targets, change, triggered, mover })
    }

    pub fn delete(&mut self, delete: &BoundDelete) -> Result<Delete> {
        let table = &delete.table;
        let meta = self.table(table)?;
        let scan = self.kept_scan(delete.numbered.as_ref().unwrap_or(table), &delete.alias);
        let line = self.open_change("Delete", table, &delete.alias);
        let planned = self.targets(table, &scan, delete.using.as_ref(), delete.filter.as_ref());
        self.close();
        let (node, old, scope, key) = planned?;
        let called = self.changed_name(table, &old);
        self.describe_change(line, table, called, &scope[old.len()..], delete.returning.as_ref());
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
        let children = if delete.alone { Vec::new() } else { self.child_checks(table, &old, None)? };
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
        let (triggered, returning) =
            self.triggered(triggers, &old, &scope, returning, delete.returning.as_ref(), &mut kept);
        kept.sort_unstable();
        kept.dedup();
        let target = Target::new(table, meta);
        let acts = children.iter().any(|child| child.acts());
        let once = !acts && triggered.is_none();
        let mut targets = Targets::new(node, key, kept, returning, delete.returning.as_ref(), once);
        targets.event = if self.merged.is_empty() { "deleted" } else { CHANGED_BY_MERGE };
        Ok(Delete { target, targets, children, acts, triggered })
    }
}

/// What MERGE does to a row, as errors say it.
const CHANGED_BY_MERGE: &str = "updated or deleted";

/// Whether triggers may change rows that are updated before they are written.
pub(crate) fn changes_rows(table: &TableRef) -> bool {
    table
        .triggers
        .iter()
        .any(|trigger| trigger.before && trigger.row && trigger.answers(TriggerEvent::Update, table, None))
}

impl Update {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        if !self.targets.changes_at_once(ctx) {
            let found = self.find(ctx)?;
            return self.write_all(ctx, &found, emit);
        }
        let mut count = 0;
        let _ = self.targets.node.run(ctx, &mut |ctx| {
            let key = std::mem::take(&mut ctx.frame.keys[self.targets.key]);
            self.change.evaluate(ctx, &self.target, &key)?;
            self.targets.require_unwritten(ctx, &self.target, &key)?;
            let written = self.change.apply(ctx, &self.target, &key)?;
            ctx.frame.keys[self.targets.key] = key;
            if written {
                count += 1;
                if let Some(returning) = &self.targets.returning {
                    let mut row = Values::new();
                    eval_into(&mut row, returning, ctx)?;
                    let _ = emit(Answer::Given(&mut row))?;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    /// Finds the targets and computes their new values.
    pub fn find(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Found> {
        let leaves = self.change.moves || self.mover.is_some();
        let mode = if leaves { LockMode::Update } else { LockMode::NoKeyUpdate };
        if self.triggered.is_some() {
            // Triggers come before the checks.
            return self.targets.find(ctx, (&self.target, mode), &|ctx, _| self.change.compute(ctx));
        }
        if let Some(mover) = &self.mover {
            return self.targets.find(ctx, (&self.target, mode), &|ctx, key| {
                self.change.compute(ctx)?;
                match mover.destination(ctx)? {
                    // The other partition checks it.
                    Some(_) => Ok(()),
                    None => self.change.check(ctx, &self.target, key),
                }
            });
        }
        self.targets.find(ctx, (&self.target, mode), &|ctx, key| self.change.evaluate(ctx, &self.target, key))
    }

    /// As [`Update::find`], of the rows that no other part of the statement writes, past the BEFORE
    /// triggers.
    pub fn foresee(&self, ctx: &mut ExecContext<'_, '_>, foreseen: &mut Foreseen) -> ExecResult<Found> {
        let found = self.find(ctx)?.claim(foreseen, self.target.meta.def.id, Fate::Changed);
        match &self.triggered {
            Some(triggered) => self.fire(triggered, ctx, &found),
            None => Ok(found),
        }
    }

    pub(crate) fn write_rows(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        mut emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        let kept = &self.targets.kept;
        let mut written = Vec::with_capacity(found.keys.len());
        let mut gone = Vec::new();
        let mut shown: FxHashMap<usize, Vec<Datum>> = FxHashMap::default();
        if let Some(mover) = &self.mover {
            for (index, key) in found.keys.iter().enumerate() {
                found.values.restore(index, &mut ctx.frame, kept);
                let to = mover.destination(ctx)?;
                gone.push(to.is_some());
                written.push(match to {
                    Some(to) => mover.run(ctx, &self.target, key, to)?,
                    None => self.change.replace(ctx, &self.target, key)?,
                });
                if let Some(returning) = self.targets.returning.as_ref().filter(|_| mover.rewrites())
                    && to.is_some()
                {
                    shown.insert(index, eval_all(returning, ctx)?.into_vec());
                }
            }
        } else if self.change.moves {
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
                let _ = match shown.get_mut(&index) {
                    Some(row) => emit(Answer::Given(row)),
                    None => emit(Answer::Lent(found.returning.row(index))),
                }?;
            }
        }
        let references = !self.change.parents.is_empty() || !self.change.children.is_empty();
        if references || self.mover.is_some() {
            for (index, _) in written.iter().enumerate().filter(|(_, written)| **written) {
                found.values.restore(index, &mut ctx.frame, kept);
                let moved = gone.get(index).copied().unwrap_or(false);
                self.change.check_references(ctx, moved)?;
                if let Some(mover) = self.mover.as_ref().filter(|_| moved) {
                    mover.check_references(ctx)?;
                }
            }
        }
        Ok(count)
    }
}

impl Delete {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        if !self.targets.at_once || ctx.txn.has_view() {
            let found = self.find(ctx)?;
            return self.write_all(ctx, &found, emit);
        }
        let mut count = 0;
        let _ = self.targets.node.run(ctx, &mut |ctx| {
            let key = std::mem::take(&mut ctx.frame.keys[self.targets.key]);
            let mut row = match &self.targets.returning {
                Some(returning) => Some(eval_all(returning, ctx)?),
                None => None,
            };
            self.targets.require_unwritten(ctx, &self.target, &key)?;
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
        self.targets.find(ctx, (&self.target, LockMode::Update), &|_, _| Ok(()))
    }

    /// As [`Delete::find`], of the rows that no other part of the statement writes, past the BEFORE
    /// triggers.
    pub fn foresee(&self, ctx: &mut ExecContext<'_, '_>, foreseen: &mut Foreseen) -> ExecResult<Found> {
        let found = self.find(ctx)?.claim(foreseen, self.target.meta.def.id, Fate::Gone);
        match &self.triggered {
            Some(triggered) => self.fire(triggered, ctx, &found),
            None => Ok(found),
        }
    }

    pub(crate) fn write_rows(
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
