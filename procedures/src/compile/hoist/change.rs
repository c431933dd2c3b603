//! Calls in statements that change rows.
//!
//! UPDATE and DELETE with calls find their rows first, lock them and make the calls for each; in the
//! statement these rows stand as its FROM, joined with the target by the primary key, or by the numbers
//! that rows have without one. What RETURNING calls is called for the rows that the statement has
//! answered, which is then run before.

use std::sync::Arc;

use archipel_planner::bind::visit;
use archipel_planner::bound::{
    BoundDelete, BoundExpr, BoundInsert, BoundQuery, BoundStatement, BoundUpdate, ExprKind, JoinKind,
    LockStrength, LockWait, OutputColumn, Rel, Returning, RowLock, SortKey,
};
use archipel_planner::native;
use archipel_planner::partition::Family;
use archipel_sql::catalog::{TableKind, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::types::Type;

use super::condition::{all_of, holds_call, is_tested_above, parted, reads_query};
use super::reads::{reads_tables, shift_from};
use super::state::Walk;
use super::trigger::Fires;
use crate::run::operation::RowPlaces;

/// UPDATE or DELETE.
struct Changed<'b> {
    table: &'b mut TableRef,
    target: Rel,
    from: &'b mut Option<Rel>,
    filter: &'b mut Option<BoundExpr>,
    set: &'b mut Vec<(u16, BoundExpr)>,
    returning: &'b mut Option<Returning>,
    numbered: &'b mut Option<TableRef>,
    /// The triggers that fire around it.
    firing: &'b [Fires],
    /// Whether to read the rows before even where there are no calls.
    joins: bool,
}

impl Walk<'_, '_> {
    /// Takes calls out of a statement.
    pub(super) fn statement(&mut self, statement: &mut BoundStatement) -> Result<()> {
        let blocked = self.blocked;
        let firing = if blocked { Vec::new() } else { self.firing(statement) };
        // Whether the FROM of an UPDATE begins with the rows it changes.
        let mut joined = false;
        if firing.iter().any(Fires::any) || (!blocked && self.is_called_in_statement(statement)) {
            self.read_for_returning(statement)?;
        }
        match statement {
            BoundStatement::Query(query) => return self.contained(&mut query.rel).map(drop),
            BoundStatement::With { ctes, statement: inner } => {
                self.statement_with(ctes, inner)?;
                if matches!(**inner, BoundStatement::Query(_)) {
                    // It reads rows that wait already.
                    *statement = self.unwrapped(statement);
                }
                return Ok(());
            }
            BoundStatement::Insert(insert) if self.is_upsert_in_parts(insert, &firing) => {
                self.upsert(insert, &firing)?;
            }
            BoundStatement::Insert(insert) => self.insert(insert, &firing)?,
            BoundStatement::Update(update) => joined = self.update(update, &firing)?,
            BoundStatement::Delete(delete) => {
                self.delete(delete, &firing)?;
            }
            BoundStatement::Merge(_) | BoundStatement::Call(_) => {
                self.blocked = true;
                return Ok(());
            }
        }
        if !blocked {
            self.returned(statement)?;
            self.after_rows(statement, &firing, joined)?;
        }
        Ok(())
    }

    /// A query with its CTEs inside of it.
    fn unwrapped(&self, statement: &BoundStatement) -> BoundStatement {
        match statement {
            BoundStatement::With { ctes, statement } => match &**statement {
                BoundStatement::Query(BoundQuery { rel, columns }) => {
                    let rel = Rel::With { ctes: ctes.clone(), body: Box::new(rel.clone()) };
                    BoundStatement::Query(BoundQuery { rel, columns: columns.clone() })
                }
                other => other.clone(),
            },
            other => other.clone(),
        }
    }

    /// Reads what queries in RETURNING read before the calls of the statement.
    fn read_for_returning(&mut self, statement: &mut BoundStatement) -> Result<()> {
        let returning = match statement {
            BoundStatement::Insert(insert) => &mut insert.returning,
            BoundStatement::Update(update) => &mut update.returning,
            BoundStatement::Delete(delete) => &mut delete.returning,
            _ => return Ok(()),
        };
        for expr in returning.iter_mut().flat_map(|returning| &mut returning.exprs) {
            self.read_all(expr)?;
        }
        Ok(())
    }

    /// Calls in RETURNING: the statement becomes a query over the rows it answers.
    fn returned(&mut self, statement: &mut BoundStatement) -> Result<()> {
        let returning = match statement {
            BoundStatement::Insert(insert) => &mut insert.returning,
            BoundStatement::Update(update) => &mut update.returning,
            BoundStatement::Delete(delete) => &mut delete.returning,
            _ => return Ok(()),
        };
        let Some(returning) = returning else { return Ok(()) };
        if !returning.exprs.iter().any(holds_call) || returning.exprs.iter().any(reads_query) {
            return Ok(());
        }
        let mut exprs = std::mem::take(&mut returning.exprs);
        let columns = std::mem::take(&mut returning.columns);
        // The columns it reads, in the order of what it answers from now on.
        let mut read: Vec<(u16, Type)> = Vec::new();
        for expr in &mut exprs {
            visit::visit_expr_mut(expr, 0, &mut |part, nesting| {
                if let ExprKind::Column { depth, index } = &mut part.kind
                    && *depth == nesting
                {
                    let place = read.iter().position(|(known, _)| known == index).unwrap_or_else(|| {
                        read.push((*index, part.ty));
                        read.len() - 1
                    });
                    *index = place as u16;
                }
                true
            });
        }
        let one = BoundExpr::constant(Datum::Null, Type::BOOL);
        returning.exprs = match &read[..] {
            [] => vec![one],
            read => read.iter().map(|(index, ty)| BoundExpr::column(usize::from(*index), *ty)).collect(),
        };
        let types: Vec<Type> = returning.exprs.iter().map(|expr| expr.ty).collect();
        let unnamed = |ty: &Type| OutputColumn { name: "?column?".to_owned(), ty: *ty, source: None };
        returning.columns = types.iter().map(unnamed).collect();
        let row = self.calls_of_row(types.len(), &mut |walk| walk.list(&mut exprs))?;
        let rows = self.among_ctes(statement.clone());
        let rows = self.answered_rows(&rows, types, row)?;
        let rel = Rel::Project { input: Box::new(rows), exprs };
        *statement = BoundStatement::Query(BoundQuery { rel, columns });
        self.blocked = false;
        Ok(())
    }

    pub(super) fn insert(&mut self, insert: &mut BoundInsert, firing: &[Fires]) -> Result<()> {
        if firing.iter().any(|fires| fires.first) {
            // What the statement reads is from before its triggers.
            if !self.is_called_in(&insert.source) && reads_tables(&insert.source) {
                self.keep(&mut insert.source)?;
            }
            self.fire_first(&mut insert.table, firing)?;
        }
        self.contained(&mut insert.source)?;
        match firing.first() {
            Some(fires) => self.before_insert(insert, fires),
            None => Ok(()),
        }
    }

    pub(super) fn update(&mut self, update: &mut BoundUpdate, firing: &[Fires]) -> Result<bool> {
        let keyed = |key: &archipel_sql::catalog::KeyConstraint| {
            update.set.iter().any(|(column, _)| key.columns.contains(column))
        };
        let leaves = update.table.primary_key.as_ref().is_some_and(keyed);
        let strength = if leaves { LockStrength::Update } else { LockStrength::NoKeyUpdate };
        let target = target(&update.table, &update.family, locked(strength));
        self.change(Changed {
            table: &mut update.table,
            target,
            from: &mut update.from,
            filter: &mut update.filter,
            set: &mut update.set,
            returning: &mut update.returning,
            numbered: &mut update.numbered,
            firing,
            joins: firing.iter().any(Fires::any),
        })
    }

    fn delete(&mut self, delete: &mut BoundDelete, firing: &[Fires]) -> Result<bool> {
        let target = target(&delete.table, &delete.family, locked(LockStrength::Update));
        self.change(Changed {
            table: &mut delete.table,
            target,
            from: &mut delete.using,
            filter: &mut delete.filter,
            set: &mut Vec::new(),
            returning: &mut delete.returning,
            numbered: &mut delete.numbered,
            firing,
            joins: firing.iter().any(|fires| fires.first || fires.before),
        })
    }

    /// Answers whether the rows it changes were read before.
    fn change(&mut self, changed: Changed<'_>) -> Result<bool> {
        let Changed { table, target, from, filter, set, returning, numbered, firing, joins } = changed;
        let width = target.width();
        let same = same_row(&target)?;
        let key = told_by(&target);
        // A row that is told by its number has that between its columns and those of FROM.
        let (own, read_numbered) = match &target {
            Rel::Scan { table: read, .. } if read.columns.len() > table.columns.len() => {
                (if numbered.is_some() { width } else { table.columns.len() }, Some(read.clone()))
            }
            _ => (width, None),
        };
        let mut values = set.clone();
        values.iter_mut().for_each(|(_, value)| shift_from(value, own, width - own));
        let mut condition = filter.clone();
        condition.iter_mut().for_each(|condition| shift_from(condition, own, width - own));
        let (mut calls, mut plain) = condition.map(parted).unwrap_or_default();
        // What is asked once, is asked when the rows are there.
        let (asked, without): (Vec<_>, Vec<_>) = plain.into_iter().partition(|item| self.asks_once(item));
        (calls, plain) = (calls.into_iter().chain(asked).collect(), without);
        let once = calls.iter().any(|item| self.asks_once(item));
        let joins = joins || once;
        let called = !calls.is_empty() || values.iter().any(|(_, value)| holds_call(value));
        let asks = values.iter().any(|(_, value)| reads_query(value) && !self.may_be_ahead(value));
        let in_from = from.as_ref().is_some_and(|from| self.is_called_in(from));
        // What the statement reads is from before its triggers, where it calls nothing.
        let first = firing.iter().any(|fires| fires.first);
        let waits = first && !called && !in_from && !asks && same.is_some();
        if first && !waits {
            self.fire_first(table, firing)?;
        }
        if let Some(from) = from {
            self.contained(from)?;
        }
        let mut rows = joined(target, from.clone());
        let tested = calls.is_empty() || once || is_tested_above(&all_of(calls.clone()), &rows);
        let (true, true, false, Some(same)) = (called || joins, tested, asks, same) else {
            self.blocked = true;
            return Ok(false);
        };
        rows = self.locked_rows(rows, plain, calls, once)?;
        self.queries_ahead(
            &mut rows,
            &mut values.iter_mut().map(|(_, value)| value).collect::<Vec<_>>(),
            true,
        );
        if waits {
            self.keep(&mut rows)?;
            self.fire_first(table, firing)?;
        }
        let read = rows.width();
        let before = self.compiler.answers.calls.len();
        self.each_tested_row(&mut rows, &mut |walk| {
            values.iter_mut().try_for_each(|(_, value)| walk.expr(value))
        })?;
        self.tested = false;
        self.blocked = true;
        let passed = match firing.first().filter(|fires| fires.before) {
            Some(fires) => {
                let key = key.filter(|_| from.is_some());
                self.pass_triggers(table, fires, &mut rows, (read, key), &mut values)?
            }
            None => false,
        };
        if self.compiler.answers.calls.len() == before {
            if !joins {
                return Ok(false);
            }
            if !waits {
                self.keep(&mut rows)?;
            }
        }
        if passed && let Some(fires) = firing.first() {
            *table = fires.of_columns(table);
        }
        values.iter_mut().for_each(|(_, value)| visit::shift_columns(value, width as u16));
        *set = values;
        for expr in returning.iter_mut().flat_map(|returning| &mut returning.exprs) {
            shift_from(expr, own, width - own + width);
        }
        *numbered = read_numbered;
        *filter = Some(same);
        *from = Some(rows);
        Ok(true)
    }

    /// The rows that meet the conditions, locked; `calls` are asked of these rows, and those that are asked
    /// `once` when the rows are there.
    fn locked_rows(
        &mut self,
        mut rows: Rel,
        plain: Vec<BoundExpr>,
        mut calls: Vec<BoundExpr>,
        once: bool,
    ) -> Result<Rel> {
        if !plain.is_empty() {
            rows = Rel::Filter { input: Box::new(rows), predicate: all_of(plain) };
        }
        rows = Rel::Lock { input: Box::new(rows) };
        if once {
            self.keep(&mut rows)?;
            let blocked = std::mem::take(&mut self.blocked);
            calls.iter_mut().try_for_each(|item| self.ask_once(item))?;
            self.blocked |= blocked;
        }
        if !calls.is_empty() {
            rows = Rel::Filter { input: Box::new(rows), predicate: all_of(calls) };
        }
        Ok(rows)
    }

    /// Lets the rows that an UPDATE or a DELETE has read, `read` columns of them, pass the BEFORE ROW
    /// triggers; the values of an UPDATE are then those that the triggers have left. Where several rows may
    /// be read for one of the table, told by its `key`, the first one counts. False if the triggers fire
    /// where they are.
    fn pass_triggers(
        &mut self,
        table: &mut TableRef,
        fires: &Fires,
        rows: &mut Rel,
        (read, key): (usize, Option<Vec<(usize, Type)>>),
        values: &mut Vec<(u16, BoundExpr)>,
    ) -> Result<bool> {
        let width = table.columns.len();
        let types = rows.types();
        let column = |place: usize| BoundExpr::column(place, types[place]);
        let mut passing = rows.clone();
        if let Some(key) = key {
            let key: Vec<BoundExpr> = key.iter().map(|(place, _)| column(*place)).collect();
            let sorted =
                |expr: &BoundExpr| SortKey { expr: expr.clone(), descending: false, nulls_first: false };
            passing = Rel::Sort { input: Box::new(passing), keys: key.iter().map(sorted).collect() };
            passing = Rel::Distinct { input: Box::new(passing), on: Some(key) };
        }
        let mut exprs: Vec<BoundExpr> = (0..read).map(column).collect();
        let mut places = RowPlaces { width, old: Some(0), new: None, fixed: Vec::new() };
        let changes = fires.is_update();
        if changes {
            places.new = Some(read);
            for place in 0..width {
                let value = values.iter().find(|(column, _)| usize::from(*column) == place);
                exprs.push(value.map_or_else(|| column(place), |(_, value)| value.clone()));
            }
            let set = |place: &u16| values.iter().any(|(column, _)| column == place);
            let fixed = table.storage_key().into_iter().filter(|place| !set(place));
            let named = fixed.filter_map(|place| Some((place, table.columns.get(usize::from(place))?)));
            places.fixed = named.map(|(place, column)| (place, column.name.as_str().into())).collect();
        }
        let left: Vec<u16> =
            (0..width as u16).filter(|place| places.fixed.iter().all(|(fixed, _)| fixed != place)).collect();
        let mut passing = Rel::Project { input: Box::new(passing), exprs };
        if !self.before_rows(table, fires, &mut passing, places)? {
            return Ok(false);
        }
        *rows = passing;
        if changes {
            let value = |place: &u16| {
                let column = usize::from(*place);
                (*place, BoundExpr::column(read + column, table.columns[column].ty))
            };
            *values = left.iter().map(value).collect();
        }
        Ok(true)
    }
}

fn locked(strength: LockStrength) -> RowLock {
    RowLock { strength, wait: LockWait::Block, under_limit: false }
}

/// The rows that a statement changes, with their numbers if they have no key.
fn target(table: &TableRef, family: &Option<Arc<Family>>, lock: RowLock) -> Rel {
    let lock = Some(lock);
    match family {
        Some(family) => Rel::Family { family: family.clone(), lock, alias: None },
        None => {
            let table = table.with_numbers().map_or_else(|| table.clone(), Arc::new);
            Rel::Scan { table, lock, alias: None }
        }
    }
}

/// The rows of the target beside those of FROM, if there is one.
fn joined(target: Rel, from: Option<Rel>) -> Rel {
    match from {
        None => target,
        Some(from) => Rel::Join {
            kind: JoinKind::Inner,
            left: Box::new(target),
            right: Box::new(from),
            on: None,
            lateral: false,
        },
    }
}

/// The columns that tell a row of the target from others; `None` if none do.
fn told_by(target: &Rel) -> Option<Vec<(usize, Type)>> {
    let (table, member) = match target {
        Rel::Scan { table, .. } => (table, None),
        Rel::Family { family, .. } => (&family.root, Some((target.width() - 1, Type::OID))),
        _ => return None,
    };
    let key = table.primary_key.as_ref().filter(|_| table.kind == TableKind::Table)?;
    let columns = key.columns.iter().map(|column| usize::from(*column));
    Some(columns.map(|place| (place, table.columns[place].ty)).chain(member).collect())
}

/// That a row of the target is the one that a row behind it was read as; `None` if that cannot be told.
fn same_row(target: &Rel) -> Result<Option<BoundExpr>> {
    let Some(places) = told_by(target) else { return Ok(None) };
    let width = target.width();
    let mut conditions = Vec::with_capacity(places.len());
    for (place, ty) in places {
        let function = native::equality(ty.oid, ty.oid)?;
        let args = vec![BoundExpr::column(place, ty), BoundExpr::column(width + place, ty)];
        conditions.push(BoundExpr::new(ExprKind::Call { function, args }, Type::BOOL));
    }
    Ok(Some(all_of(conditions)))
}
