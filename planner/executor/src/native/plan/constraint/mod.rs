//! What a write must not break, and how PostgreSQL says so when it would.
//!
//! NOT NULL and CHECK look at the new row. Unique keys are the engine's own check, reported
//! here. A foreign key is a query in either direction, planned like any other: does the
//! referenced row exist; does a referencing row still exist.

pub(crate) mod partition_bound;
pub(crate) mod placing;
pub(crate) mod referential_action;

use std::sync::Arc;

use archipel_sql::ast::ReferentialAction;
use archipel_sql::catalog::{ForeignKey, TableRef};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Type;

use super::compiler::Compiler;
use crate::bound::{
    BoundCheck, BoundChecks, BoundExpr, CheckKind, ExprKind, LockStrength, LockWait, Rel, RowLock,
};
use crate::native::plan::relation::node::ScanUse;
use crate::native::run::constraint::check::{RowCheck, RowChecks};
use crate::native::run::constraint::foreign_key::{Direction, ReferenceCheck};
use crate::native::run::constraint::referential_action::Event;
use crate::native::run::operator::node::Node;
use crate::native::run::row::equality::{equality, widened};
use crate::partition::{Family, columns_of};
use placing::Placing;

impl Compiler<'_> {
    /// NOT NULL and CHECK over a new row with these slots; only what `changed` columns can
    /// break (all of them for `None`). A condition over no column is always asked, and so is
    /// one that the row before the change need not have met. `given` columns are told in errors.
    pub fn row_checks(
        &mut self,
        table: &TableRef,
        row: &[u32],
        checks: &BoundChecks,
        changed: Option<&[u16]>,
        given: Vec<u16>,
    ) -> Result<RowChecks> {
        let touched = |column: u16| changed.is_none_or(|changed| changed.contains(&column));
        let not_null: Vec<(u16, u32)> = table
            .columns
            .iter()
            .zip(row)
            .enumerate()
            .filter(|(position, (column, _))| column.not_null && touched(*position as u16))
            .map(|(position, (_, slot))| (position as u16, *slot))
            .collect();
        not_null.iter().for_each(|(_, slot)| self.mark(*slot));
        // What is changed in place is no new row to policies.
        let of_others = match changed {
            Some(_) => CheckKind::PolicyOfInsert,
            None => CheckKind::PolicyOfUpdate,
        };
        let asked = |check: &&BoundCheck| {
            if check.kind == of_others {
                return false;
            }
            let read = super::walk::root_columns(&check.expr);
            check.always || read.is_empty() || read.into_iter().any(touched)
        };
        let checks = checks
            .iter()
            .filter(asked)
            .map(|check| {
                let predicate = self.scoped(row, |c| c.predicate(&check.expr))?;
                Ok(RowCheck { name: check.name.clone(), predicate, kind: check.kind })
            })
            .collect::<Result<Vec<_>>>()?;
        let partition = match self.placing {
            Placing::Checked | Placing::Stays => self.partition_check(table, row, changed)?,
            Placing::Done => None,
        };
        let shown_as = self.shown_as.clone();
        Ok(RowChecks { table: table.clone(), not_null, checks, given, partition, shown_as })
    }

    /// The foreign keys of a table that a new row with these slots must satisfy; only those
    /// over `changed` columns.
    pub fn parent_checks(
        &mut self,
        table: &TableRef,
        row: &[u32],
        changed: Option<&[u16]>,
    ) -> Result<Vec<Arc<ReferenceCheck>>> {
        let mut found = Vec::new();
        for key in table.foreign_keys.iter().filter(|key| !table.silenced_keys.contains(&key.oid)) {
            if changed.is_some_and(|changed| !key.columns.iter().any(|column| changed.contains(column))) {
                continue;
            }
            let parent = self.table_by_oid(key.references)?;
            let slots: Vec<u32> = key.columns.iter().map(|column| row[usize::from(*column)]).collect();
            let types = key.columns.iter().map(|column| table.columns[usize::from(*column)].ty);
            // An interactive transaction keeps the parent from going away.
            let lock =
                RowLock { strength: LockStrength::KeyShare, wait: LockWait::Block, under_limit: false };
            let node = self.lookup(&parent, &key.referenced_columns, &slots, types, Some(lock))?;
            found.push(Arc::new(ReferenceCheck {
                node,
                slots: slots.clone(),
                foreign_key: key.clone(),
                own: self.topmost(table) == self.topmost(&parent),
                child: table.clone(),
                parent,
                leaving: None,
                direction: Direction::ChildNeedsParent,
                action: None,
                sources: slots,
                restricts: false,
            }));
        }
        Ok(found)
    }

    /// The foreign keys that point at a table, over the slots of a row that leaves (or changes
    /// one of the `changed` columns, its new row being in these slots).
    pub fn child_checks(
        &mut self,
        table: &TableRef,
        row: &[u32],
        changed: Option<(&[u16], &[u32])>,
    ) -> Result<Vec<Arc<ReferenceCheck>>> {
        // A partition's rows are referenced as those of what it is part of, too.
        let mut parents = vec![table.clone()];
        parents.extend(self.env.catalog.partition_ancestors(table.oid));
        self.checks_over(table, row, changed, &parents)
    }

    /// The foreign keys that point at a partition itself, over the slots of a row that leaves it for
    /// another: those that point at what both are part of still find it there.
    pub fn moving_checks(&mut self, table: &TableRef, row: &[u32]) -> Result<Vec<Arc<ReferenceCheck>>> {
        self.checks_over(table, row, None, std::slice::from_ref(table))
    }

    /// The foreign keys that point at one of `parents`, which are a table or what it is part of.
    fn checks_over(
        &mut self,
        table: &TableRef,
        row: &[u32],
        changed: Option<(&[u16], &[u32])>,
        parents: &[TableRef],
    ) -> Result<Vec<Arc<ReferenceCheck>>> {
        let mut found = Vec::new();
        let event = if changed.is_some() { Event::Update } else { Event::Delete };
        let (changed, new) = changed.unzip();
        let referenced = |key: &ForeignKey| {
            // The keys of partitions say once more what those of their tables say.
            parents.iter().find(|parent| key.references == parent.oid && key.parent.is_none())
        };
        let mut children: Vec<TableRef> =
            parents.iter().flat_map(|parent| self.env.catalog.referrers(parent.oid)).collect();
        children.sort_by_key(|child| child.oid);
        children.dedup_by_key(|child| child.oid);
        for child in children {
            for key in &child.foreign_keys {
                let Some(parent) = referenced(key) else { continue };
                if parent.silenced_keys.contains(&key.oid) {
                    continue;
                }
                let columns = match parent.oid == table.oid {
                    true => key.referenced_columns.clone(),
                    false => {
                        let places = columns_of(parent, table)?;
                        key.referenced_columns.iter().map(|column| places[usize::from(*column)]).collect()
                    }
                };
                let touched = |column: &u16| changed.is_none_or(|changed| changed.contains(column));
                if !columns.iter().any(touched) {
                    continue;
                }
                let key = &ForeignKey { name: self.name_over(key, &child, parent, table), ..key.clone() };
                let slots: Vec<u32> = columns.iter().map(|column| row[usize::from(*column)]).collect();
                let mut sources = slots.clone();
                if let Some(new) = new {
                    sources.extend(columns.iter().map(|column| new[usize::from(*column)]));
                }
                let types = columns.iter().map(|column| table.columns[usize::from(*column)].ty);
                let action = self.reference_action(&child, key, parent, event, &sources)?;
                let node = match &action {
                    Some(_) => Node::Unit,
                    None => self.lookup(&child, &key.columns, &slots, types, None)?,
                };
                found.push(Arc::new(ReferenceCheck {
                    node,
                    slots,
                    foreign_key: key.clone(),
                    own: self.topmost(&child) == self.topmost(table),
                    child: child.clone(),
                    parent: parent.clone(),
                    leaving: (parent.oid != table.oid).then(|| (table.clone(), columns)),
                    direction: Direction::ParentLeaves,
                    action,
                    sources,
                    restricts: match event {
                        Event::Delete => key.on_delete,
                        Event::Update => key.on_update,
                    } == ReferentialAction::Restrict,
                }));
            }
        }
        Ok(found)
    }

    /// Rows of `table` whose `columns` equal the values in `slots`.
    fn lookup(
        &mut self,
        table: &TableRef,
        columns: &[u16],
        slots: &[u32],
        types: impl Iterator<Item = Type>,
        lock: Option<RowLock>,
    ) -> Result<Node> {
        let family = match table.is_partitioned() {
            true => Family::of(self.env.catalog, table)?,
            false => None,
        };
        let input = match &family {
            Some(family) => Rel::Family { family: family.clone(), lock: None, alias: None },
            None => Rel::Scan { table: table.clone(), lock: None, alias: None },
        };
        let rel = Arc::new(Rel::Filter {
            input: Box::new(input),
            predicate: self.key_conditions(table, columns, types)?,
        });
        // Layouts are remembered by address, so the relation lives as long as the compilation.
        self.keep(rel.clone());
        self.scoped(slots, |c| {
            let Rel::Filter { input, predicate } = &*rel else {
                return Err(SqlError::internal("built just above"));
            };
            let layout = c.declare(input);
            let conjuncts = c.conjuncts(predicate, &layout);
            let facts = c.constants_of(&conjuncts);
            let usage = ScanUse { lock, reference: true, ..ScanUse::default() };
            Ok(match &family {
                Some(family) => c.plan_family(family, &layout, &conjuncts, &facts, &[], usage)?.node,
                None => c.plan_scan(table, &layout, &conjuncts, &facts, &[], usage)?.node,
            })
        })
    }

    /// That the columns of a row equal the first values one depth out.
    pub fn key_conditions(
        &self,
        table: &TableRef,
        columns: &[u16],
        types: impl Iterator<Item = Type>,
    ) -> Result<BoundExpr> {
        let conditions = columns
            .iter()
            .zip(types)
            .enumerate()
            .map(|(position, (column, value_type))| {
                let column_type = table.columns[usize::from(*column)].ty;
                let left = BoundExpr::column(usize::from(*column), column_type);
                let kind = ExprKind::Column { depth: 1, index: position as u16 };
                let right = BoundExpr::new(kind, value_type);
                // Types without an `=` of their own meet in the wider one, a value rather than a
                // column becoming it.
                let (left, right) = match equality(column_type.oid, value_type.oid) {
                    Ok(_) => (left, right),
                    Err(error) => match widened(right.clone(), column_type) {
                        Some(right) => (left, right),
                        None => (widened(left, value_type).ok_or(error)?, right),
                    },
                };
                let equality = equality(left.ty.oid, right.ty.oid)?;
                let kind = ExprKind::Call { function: equality, args: vec![left, right] };
                Ok(BoundExpr::new(kind, Type::BOOL))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(BoundExpr::new(ExprKind::And(conditions), Type::BOOL))
    }
}
