//! What a write must not break, and how PostgreSQL says so when it would.
//!
//! NOT NULL and CHECK look at the new row. Unique keys are the engine's own check, reported
//! here. A foreign key is a query in either direction, planned like any other: does the
//! referenced row exist; does a referencing row still exist.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::io;
use archipel_sql::ast::ReferentialAction;
use archipel_sql::catalog::{ForeignKey, Privileges, Required, Requirement, Table, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::types::Type;

use crate::bound::{BoundCheck, BoundChecks, BoundExpr, ExprKind, LockStrength, LockWait, Rel, RowLock};
use crate::native::run::constraint::deferral::DeferredCheck;
use crate::native::run::constraint::partition_bound::{PartitionCheck, Placing};
use crate::native::run::constraint::referential_action::{Action, Event, Waiting};
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::operator::node::Node;
use crate::native::run::row::equality::{equality, widened};
use crate::native::run::state::context::{ExecContext, ExecResult, RunOf};
use crate::partition::{Family, columns_of};
use super::compiler::Compiler;
use super::relation::ScanUse;

/// NOT NULL and CHECK over a new row.
pub(crate) struct RowChecks {
    table: TableRef,
    not_null: Vec<(u16, u32)>,
    checks: Vec<RowCheck>,
    /// The columns that the statement says the values of: nothing new to whoever runs it.
    given: Vec<u16>,
    /// That the row is one of the partition's.
    partition: Option<Box<PartitionCheck>>,
    /// The table that rows are shown as, and where they have its columns.
    shown_as: Option<(TableRef, Vec<u16>)>,
}

struct RowCheck {
    name: String,
    predicate: CompiledPredicate,
    of_view: bool,
}

/// A column's value as error details show it; long ones are cut as PostgreSQL cuts them.
pub(crate) fn shown(value: &Datum, ty: Type, functions: &FunctionContext<'_>) -> String {
    const SHOWN_BYTES_MAX: usize = 64;
    if value.is_null() {
        return "null".to_owned();
    }
    let mut text = io::to_text(value, ty, functions);
    if text.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// Whether whoever runs the statement may read these columns: errors tell nobody more than that.
pub(crate) fn may_read(
    table: &Table,
    columns: impl Iterator<Item = u16>,
    functions: &FunctionContext<'_>,
) -> bool {
    let what = Required::Table {
        table: table.oid,
        privileges: Privileges::SELECT,
        selected: columns.map(|column| column + 1).collect(),
        inserted: Vec::new(),
        updated: Vec::new(),
    };
    functions.session.require(&[Requirement { acting: None, what }]).is_ok()
}

/// `Failing row contains (…).`, with the names of the columns where they are not all of them
/// (ExecBuildSlotValueDescription).
pub(crate) fn failing_row(
    table: &Table,
    row: &[Datum],
    given: &[u16],
    functions: &FunctionContext<'_>,
) -> Option<String> {
    let whole = may_read(table, 0..table.columns.len() as u16, functions);
    let tells =
        |place: u16| whole || given.contains(&place) || may_read(table, std::iter::once(place), functions);
    let told = row.iter().zip(&table.columns).zip(0..).filter(|(_, place)| tells(*place));
    let (names, values): (Vec<&str>, Vec<String>) =
        told.map(|((value, column), _)| (column.name.as_str(), shown(value, column.ty, functions))).unzip();
    match whole {
        true => Some(format!("Failing row contains ({}).", values.join(", "))),
        false if names.is_empty() => None,
        false => Some(format!("Failing row contains ({}) = ({}).", names.join(", "), values.join(", "))),
    }
}

/// An error with a detail, if there is one to tell.
pub(crate) fn with_detail(error: SqlError, detail: Option<String>) -> SqlError {
    match detail {
        Some(detail) => error.with_detail(detail),
        None => error,
    }
}

/// `Key (a, b)=(1, 2)`.
pub(crate) fn key_text(
    table: &Table,
    columns: &[u16],
    values: &[Datum],
    functions: &FunctionContext<'_>,
) -> String {
    let names: Vec<&str> =
        columns.iter().filter_map(|c| Some(table.columns.get(usize::from(*c))?.name.as_str())).collect();
    let values: Vec<String> = columns
        .iter()
        .zip(values)
        .filter_map(|(c, value)| {
            let ty = table.columns.get(usize::from(*c))?.ty;
            Some(if value.is_null() { "null".to_owned() } else { io::to_text(value, ty, functions) })
        })
        .collect();
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}

pub(crate) fn of_table(mut error: SqlError, table: &Table, constraint: Option<&str>) -> SqlError {
    let fields = error.fields_mut();
    fields.schema = Some(table.schema.clone());
    fields.table = Some(table.name.clone());
    fields.constraint = constraint.map(str::to_owned);
    error
}

impl RowChecks {
    /// Checks the new row in its slots. `row` answers all its columns for the error's detail.
    pub fn check(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        row: &dyn Fn(&mut ExecContext<'_, '_>) -> ExecResult<Vec<Datum>>,
    ) -> ExecResult<()> {
        self.check_constraints(ctx, row)?;
        self.check_options(ctx, row)
    }

    /// As [`RowChecks::check`], but for what views say: that is asked of rows that are written.
    pub fn check_constraints(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        row: &dyn Fn(&mut ExecContext<'_, '_>) -> ExecResult<Vec<Datum>>,
    ) -> ExecResult<()> {
        for (column, slot) in &self.not_null {
            if ctx.frame.slots[*slot as usize].is_null() {
                let name = &self.table.columns[usize::from(*column)].name;
                let message = format!(
                    "null value in column \"{name}\" of relation \"{}\" violates not-null constraint",
                    self.table.name
                );
                let row = row(ctx)?;
                let error = SqlError::new(SqlState::NOT_NULL_VIOLATION, message);
                let mut error = with_detail(error, self.failing_row(&row, ctx));
                error.fields_mut().column = Some(name.clone());
                return Err(of_table(error, &self.table, None).into());
            }
        }
        for RowCheck { name, predicate, .. } in self.checks.iter().filter(|check| !check.of_view) {
            if predicate(ctx)? == Some(false) {
                let message = format!(
                    "new row for relation \"{}\" violates check constraint \"{name}\"",
                    self.table.name
                );
                let row = row(ctx)?;
                let error = SqlError::new(SqlState::CHECK_VIOLATION, message);
                let error = with_detail(error, self.failing_row(&row, ctx));
                return Err(of_table(error, &self.table, Some(name)).into());
            }
        }
        if let Some(partition) = &self.partition
            && !partition.holds(ctx)?
        {
            let row = row(ctx)?;
            return Err(partition.violated(self.failing_row(&row, ctx)).into());
        }
        Ok(())
    }

    /// Whether the new row in its slots is one of the partition's; any table's is.
    pub fn keeps_partition(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<bool> {
        self.partition.as_ref().map_or(Ok(true), |partition| partition.holds(ctx))
    }

    /// Whether all there is to check is that columns are not NULL that must not be.
    pub fn only_not_null(&self) -> bool {
        self.checks.is_empty() && self.partition.is_none()
    }

    /// Columns whose values the statement says elsewhere.
    pub fn also_given(&mut self, columns: &[u16]) {
        self.given.extend(columns);
    }

    fn failing_row(&self, row: &[Datum], ctx: &ExecContext<'_, '_>) -> Option<String> {
        let Some((root, columns)) = &self.shown_as else {
            return failing_row(&self.table, row, &self.given, &ctx.functions);
        };
        let value = |column: &u16| row.get(usize::from(*column)).cloned().unwrap_or(Datum::Null);
        let row: Vec<Datum> = columns.iter().map(value).collect();
        let given = (0..).zip(columns).filter(|(_, column)| self.given.contains(column));
        let given: Vec<u16> = given.map(|(place, _)| place).collect();
        failing_row(root, &row, &given, &ctx.functions)
    }

    /// What views demand of the new row in its slots.
    pub fn check_options(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        row: &dyn Fn(&mut ExecContext<'_, '_>) -> ExecResult<Vec<Datum>>,
    ) -> ExecResult<()> {
        for RowCheck { name, predicate, .. } in self.checks.iter().filter(|check| check.of_view) {
            if predicate(ctx)? == Some(false) {
                let message = format!("new row violates check option for view \"{name}\"");
                let row = row(ctx)?;
                let error = SqlError::new(SqlState(*b"44000"), message);
                return Err(with_detail(error, self.failing_row(&row, ctx)).into());
            }
        }
        Ok(())
    }
}

/// One foreign key in one direction, as a query over slots that hold the key's values.
pub(crate) struct ReferenceCheck {
    node: Node,
    pub slots: Vec<u32>,
    /// The values before an update: nothing to check when they stay.
    foreign_key: ForeignKey,
    child: TableRef,
    parent: TableRef,
    /// The partition of the parent that the row leaves, and where it has the key.
    leaving: Option<(TableRef, Vec<u16>)>,
    /// Whether the key references its own table.
    own: bool,
    direction: Direction,
    /// What happens instead of a check.
    action: Option<Arc<Action>>,
    /// The slots of what it takes: the old values, and for an update the new ones.
    sources: Vec<u32>,
    /// ON DELETE or ON UPDATE RESTRICT.
    restricts: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// A row of the child needs its parent.
    ChildNeedsParent,
    /// A row of the parent must have no children left.
    ParentLeaves,
}

impl ReferenceCheck {
    /// Whether rows of the child change.
    pub fn acts(&self) -> bool {
        self.action.is_some()
    }

    /// Whether it is about a key that references the very table, rather than one it is part of.
    pub fn is_direct(&self) -> bool {
        self.leaving.is_none()
    }

    /// The slots it reads.
    pub fn sources(&self) -> &[u32] {
        &self.sources
    }

    /// As [`ReferenceCheck::check`], when the statement has written all its rows if it is one
    /// that waits so long.
    pub fn check_or_queue(self: &Arc<Self>, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        let ExecContext { waiting, frame, .. } = ctx;
        let Some(queue) = waiting else { return self.check(ctx) };
        let values = self.sources.iter().map(|slot| frame.slots[*slot as usize].clone()).collect();
        queue.push(Waiting::Reference(self.clone(), values));
        Ok(())
    }

    /// Checks or acts over these values.
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, values: &[Datum]) -> ExecResult<()> {
        let Some(action) = &self.action else {
            for (slot, value) in self.sources.iter().zip(values) {
                ctx.frame.slots[*slot as usize].clone_from(value);
            }
            return self.check(ctx);
        };
        if values[..self.slots.len()].iter().any(Datum::is_null) {
            return Ok(());
        }
        ctx.outside_view(|ctx| action.run(ctx, values))
    }

    /// Runs the check over the values in its slots.
    pub fn check(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        let nulls = self.slots.iter().filter(|slot| ctx.frame.slots[**slot as usize].is_null()).count();
        if nulls > 0 {
            let mixed = self.foreign_key.match_full && nulls < self.slots.len();
            if mixed && self.direction == Direction::ChildNeedsParent {
                return Err(self.mixed_nulls().into());
            }
            // MATCH SIMPLE: a NULL anywhere references nothing.
            return Ok(());
        }
        let look = |ctx: &mut ExecContext<'_, '_>| -> ExecResult<bool> {
            Ok(self.node.run(ctx, &mut |_| Ok(ControlFlow::Break(())))?.is_break())
        };
        let found = match self.direction {
            Direction::ChildNeedsParent => {
                let found = ctx.outside_view(look)?;
                if !found && ctx.txn.has_view() {
                    // One that was waited for may have gone to another partition, which this tells.
                    look(ctx)?;
                }
                found
            }
            // A child that came after the transaction's snapshot counts, too.
            Direction::ParentLeaves => {
                let before = ctx.txn.read_newest_from_now(true);
                let found = ctx.outside_view(look);
                ctx.txn.read_newest_from_now(before);
                found?
            }
        };
        match self.direction {
            Direction::ChildNeedsParent if !found => self.violated(ctx),
            Direction::ParentLeaves if found => self.violated(ctx),
            _ => Ok(()),
        }
    }

    /// The key does not hold: an error now, or a check to make again at COMMIT.
    fn violated(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        let error = self.violation(ctx);
        let key = &self.foreign_key;
        // RESTRICT does not wait.
        let restricts = self.direction == Direction::ParentLeaves && self.restricts;
        let comes = ctx.run_of == RunOf::BulkPart && self.is_own();
        let deferred = comes || ctx.constraints.as_ref().is_some_and(|modes| modes.is_deferred(key));
        if !deferred || restricts {
            return Err(error.into());
        }
        let values: Vec<Datum> =
            self.slots.iter().map(|slot| ctx.frame.slots[*slot as usize].clone()).collect();
        let check = DeferredCheck::new(
            key,
            &self.child,
            &self.parent,
            self.direction == Direction::ParentLeaves,
            &values,
            error,
            &ctx.functions,
        );
        ctx.effects_mut().deferred.push(check);
        Ok(())
    }

    fn mixed_nulls(&self) -> SqlError {
        let (child, name) = (&self.child, &self.foreign_key.name);
        let message = format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{name}\"",
            child.name
        );
        let error = SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message)
            .with_detail("MATCH FULL does not allow mixing of null and nonnull key values.");
        of_table(error, child, Some(name))
    }

    /// Whether the key references its own table.
    pub fn is_own(&self) -> bool {
        self.own
    }

    fn violation(&self, ctx: &ExecContext<'_, '_>) -> SqlError {
        let values: Vec<Datum> =
            self.slots.iter().map(|slot| ctx.frame.slots[*slot as usize].clone()).collect();
        let (child, name) = (&self.child, &self.foreign_key.name);
        let (parent, referenced) = match &self.leaving {
            Some((partition, columns)) => (partition, columns),
            None => (&self.parent, &self.foreign_key.referenced_columns),
        };
        let key =
            |table: &Table, columns: &[u16]| match may_read(table, columns.iter().copied(), &ctx.functions) {
                true => key_text(table, columns, &values, &ctx.functions),
                false => "Key".to_owned(),
            };
        let (message, detail) = match self.direction {
            Direction::ChildNeedsParent => (
                format!(
                    "insert or update on table \"{}\" violates foreign key constraint \"{name}\"",
                    child.name
                ),
                format!(
                    "{} is not present in table \"{}\".",
                    key(child, &self.foreign_key.columns),
                    parent.name
                ),
            ),
            Direction::ParentLeaves => (
                format!(
                    "update or delete on table \"{}\" violates foreign key constraint \"{name}\" on table \"{}\"",
                    parent.name, child.name
                ),
                format!("{} is still referenced from table \"{}\".", key(parent, referenced), child.name),
            ),
        };
        of_table(
            SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message).with_detail(detail),
            child,
            Some(name),
        )
    }
}

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
        let asked = |check: &&BoundCheck| {
            let read = super::walk::root_columns(&check.expr);
            check.always || read.is_empty() || read.into_iter().any(touched)
        };
        let checks = checks
            .iter()
            .filter(asked)
            .map(|check| {
                let predicate = self.scoped(row, |c| c.predicate(&check.expr))?;
                Ok(RowCheck { name: check.name.clone(), predicate, of_view: check.of_view })
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
        for key in &table.foreign_keys {
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
