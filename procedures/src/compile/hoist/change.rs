//! Calls in statements that change rows.
//!
//! UPDATE and DELETE with calls find their rows first, lock them and make the calls for each; in the
//! statement these rows stand as its FROM, joined with the target by the primary key. What RETURNING
//! calls is called for the rows that the statement has answered, which is then run before.

use archipel_planner::bind::visit;
use archipel_planner::bound::{
    BoundDelete, BoundExpr, BoundQuery, BoundStatement, BoundUpdate, ExprKind, JoinKind, LockStrength,
    LockWait, OutputColumn, Rel, Returning, RowLock,
};
use archipel_planner::native;
use archipel_sql::catalog::{TableKind, TableRef, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::types::Type;

use super::condition::{all_of, holds_call, is_tested_above, parted, reads_query};
use super::relation::shift_from;
use super::walk::Walk;

/// UPDATE or DELETE.
struct Changed<'b> {
    table: &'b TableRef,
    target: Rel,
    from: &'b mut Option<Rel>,
    filter: &'b mut Option<BoundExpr>,
    set: &'b mut [(u16, BoundExpr)],
    returning: &'b mut Option<Returning>,
    /// Whether to read them before even where there are no calls.
    joins: bool,
}

impl Walk<'_, '_> {
    /// Takes calls out of a statement.
    pub(super) fn statement(&mut self, statement: &mut BoundStatement) -> Result<()> {
        let blocked = self.blocked;
        // Whether the FROM of an UPDATE begins with the rows it changes.
        let mut joined = false;
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
            BoundStatement::Insert(insert) => {
                self.contained(&mut insert.source)?;
                if !blocked {
                    self.before_insert(insert)?;
                }
            }
            BoundStatement::Update(update) => joined = self.update(update, !blocked)?,
            BoundStatement::Delete(delete) => {
                self.delete(delete)?;
            }
            BoundStatement::Merge(_) | BoundStatement::Call(_) => {
                self.blocked = true;
                return Ok(());
            }
        }
        if !blocked {
            self.returned(statement)?;
            self.after_rows(statement, joined)?;
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

    fn update(&mut self, update: &mut BoundUpdate, may_fire: bool) -> Result<bool> {
        let columns: Vec<u16> = update.set.iter().map(|(column, _)| *column).collect();
        let generated = update.table.columns.iter().any(|column| column.generated.is_some());
        let may_fire = may_fire && update.family.is_none() && !generated;
        let fired =
            self.fired_after(&update.table, TriggerEvent::Update, Some(&columns)).filter(|_| may_fire);
        let keyed = |key: &archipel_sql::catalog::KeyConstraint| {
            update.set.iter().any(|(column, _)| key.columns.contains(column))
        };
        let leaves = update.table.primary_key.as_ref().is_some_and(keyed);
        let strength = if leaves { LockStrength::Update } else { LockStrength::NoKeyUpdate };
        let target = match &update.family {
            Some(family) => Rel::Family { family: family.clone(), lock: Some(locked(strength)) },
            None => Rel::Scan { table: update.table.clone(), lock: Some(locked(strength)) },
        };
        self.change(Changed {
            table: &update.table,
            target,
            from: &mut update.from,
            filter: &mut update.filter,
            set: &mut update.set,
            returning: &mut update.returning,
            joins: fired.is_some(),
        })
    }

    fn delete(&mut self, delete: &mut BoundDelete) -> Result<bool> {
        let lock = Some(locked(LockStrength::Update));
        let target = match &delete.family {
            Some(family) => Rel::Family { family: family.clone(), lock },
            None => Rel::Scan { table: delete.table.clone(), lock },
        };
        self.change(Changed {
            table: &delete.table,
            target,
            from: &mut delete.using,
            filter: &mut delete.filter,
            set: &mut [],
            returning: &mut delete.returning,
            joins: false,
        })
    }

    /// Answers whether the rows it changes were read before.
    fn change(&mut self, changed: Changed<'_>) -> Result<bool> {
        let Changed { table, target, from, filter, set, returning, joins } = changed;
        if let Some(from) = from {
            self.contained(from)?;
        }
        let (calls, plain) = filter.clone().map(parted).unwrap_or_default();
        let width = target.width();
        let is_family = matches!(target, Rel::Family { .. });
        let mut rows = match from.clone() {
            None => target,
            Some(from) => Rel::Join {
                kind: JoinKind::Inner,
                left: Box::new(target),
                right: Box::new(from),
                on: None,
                lateral: false,
            },
        };
        let values = || set.iter().map(|(_, value)| value);
        let called = joins || !calls.is_empty() || values().any(holds_call);
        let tested = calls.is_empty() || is_tested_above(&all_of(calls.clone()), &rows);
        let same = same_row(table, width, is_family)?;
        let (true, true, false, Some(same)) = (called, tested, values().any(reads_query), same) else {
            self.blocked = true;
            return Ok(false);
        };
        if !plain.is_empty() {
            rows = Rel::Filter { input: Box::new(rows), predicate: all_of(plain) };
        }
        rows = Rel::Lock { input: Box::new(rows) };
        if !calls.is_empty() {
            rows = Rel::Filter { input: Box::new(rows), predicate: all_of(calls) };
        }
        let before = self.compiler.answers.calls.len();
        let mut values = set.to_vec();
        self.each_tested_row(&mut rows, &mut |walk| {
            values.iter_mut().try_for_each(|(_, value)| walk.expr(value))
        })?;
        self.tested = false;
        self.blocked = true;
        if self.compiler.answers.calls.len() == before {
            if !joins {
                return Ok(false);
            }
            self.keep(&mut rows)?;
        }
        values.iter_mut().for_each(|(_, value)| visit::shift_columns(value, width as u16));
        set.clone_from_slice(&values);
        for expr in returning.iter_mut().flat_map(|returning| &mut returning.exprs) {
            shift_from(expr, width, width);
        }
        *filter = Some(same);
        *from = Some(rows);
        Ok(true)
    }
}

fn locked(strength: LockStrength) -> RowLock {
    RowLock { strength, wait: LockWait::Block, under_limit: false }
}

/// That a row of the target is the one that a row behind it was read as; `None` if that cannot be told.
fn same_row(table: &TableRef, width: usize, is_family: bool) -> Result<Option<BoundExpr>> {
    let Some(key) = table.primary_key.as_ref().filter(|_| table.kind == TableKind::Table) else {
        return Ok(None);
    };
    let columns = key.columns.iter().map(|column| usize::from(*column));
    let mut places: Vec<(usize, Type)> = columns.map(|place| (place, table.columns[place].ty)).collect();
    if is_family {
        places.push((width - 1, Type::OID));
    }
    let mut conditions = Vec::with_capacity(places.len());
    for (place, ty) in places {
        let function = native::equality(ty.oid, ty.oid)?;
        let args = vec![BoundExpr::column(place, ty), BoundExpr::column(width + place, ty)];
        conditions.push(BoundExpr::new(ExprKind::Call { function, args }, Type::BOOL));
    }
    Ok(Some(all_of(conditions)))
}
