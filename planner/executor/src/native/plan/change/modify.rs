//! UPDATE and DELETE.
//!
//! A statement on one row by its whole key runs straight through: read, change, write. Any
//! other finds its targets first, with everything computed from them (new values, RETURNING),
//! and then writes, so that no row is met twice and no query in the statement sees a write of
//! its own. A target that several FROM rows match is changed once, by the first of them.

use std::sync::Arc;

use archipel_sql::catalog::{Column, TableRef, TriggerEvent};
use archipel_sql::error::Result;

use super::index_expression::OF_EXPRESSION;
use super::target::reads_rows;
use crate::bound::{BoundDelete, BoundExpr, BoundUpdate, Rel};
use crate::native::plan::access::conjunct::Conjunct;
use crate::native::plan::compiler::{Compiler, Layout};
use crate::native::plan::constraint::placing::Placing;
use crate::native::run::access::scan::scan_columns;
use crate::native::run::change::cross_partition::{Mover, Moving};
use crate::native::run::change::delete::Delete;
use crate::native::run::change::target::Targets;
use crate::native::run::change::update::Update;
use crate::native::run::change::write::Target;
use crate::native::run::operator::node::Node;
use crate::route::RouteKey;

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
    pub(crate) fn update_of(
        &mut self,
        update: &BoundUpdate,
        moving: Option<(&Arc<Moving>, usize)>,
    ) -> Result<Update> {
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
