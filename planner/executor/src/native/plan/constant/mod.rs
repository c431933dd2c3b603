//! What PostgreSQL finds out when it plans a statement, and fails at (eval_const_expressions): it
//! computes every immutable call of constants then, whether a row will ever reach it or not, but for
//! what constants before it decide: other arms of CASE, further arguments of COALESCE, AND and OR.
//!
//! A statement that would fail so is compiled to that error. It is looked for in the bound tree, by
//! PostgreSQL's order of things:
//!
//! - what a query in FROM makes is computed where it is used, in its place, if PostgreSQL would pull
//!   the query up; what nobody uses is not;
//! - a query that it plans apart comes after the one around it, and not at all where a condition that
//!   is known to fail leaves nothing to plan for.
//!
//! Where it cannot be told what PostgreSQL would know (of parameters, say), nothing fails here that would not
//! fail there: the error is left for who reaches it.

pub(crate) mod fold;
pub(crate) mod immutable;
pub(crate) mod value;

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use archipel_sql::catalog::TableKind;
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::stack;
use rustc_hash::FxHashMap;

use crate::bind::visit::{calls_volatile, is_volatile};
use crate::bound::{
    AggregateCall, BoundDelete, BoundExpr, BoundInsert, BoundStatement, BoundUpdate, CheckKind, Cte, CteBody,
    ExprKind, FrameBound, JoinKind, Rel, Returning, SetCall, SetItem, SortKey, WindowCall,
};

/// The error that planning a statement ends with.
pub(crate) fn failure(statement: &BoundStatement) -> Option<SqlError> {
    let mut planning = Planning::new(Known::Perhaps);
    let found = planning.statement(statement, &Scope::default());
    failed(found.and_then(|()| planning.settle()))
}

/// The same of an expression that stands alone. `generic`: no value of a variable is known.
pub fn failure_of_expression(expr: &BoundExpr, generic: bool) -> Option<SqlError> {
    let mut planning = Planning::new(if generic { Known::Varies } else { Known::Perhaps });
    let found = planning.value(expr, &Scope::default());
    failed(found.and_then(|_| planning.settle()))
}

fn failed(found: Found<()>) -> Option<SqlError> {
    match found {
        Err(Stop::Fails(error)) => Some(error),
        Err(Stop::TooDeep) | Ok(()) => None,
    }
}

/// What is known of a value.
#[derive(Clone, Debug)]
enum Known {
    Value(Datum),
    /// No plan knows it.
    Varies,
    /// PostgreSQL may know it.
    Perhaps,
}

/// Why no more is looked at.
enum Stop {
    Fails(SqlError),
    /// The stack is nearly used up: nothing is told.
    TooDeep,
}

type Found<T> = Result<T, Stop>;

/// A column of a row.
enum Column<'b> {
    Varies,
    Perhaps,
    /// Computed where it is used.
    Made {
        expr: &'b BoundExpr,
        scope: Scope<'b>,
        known: OnceCell<Known>,
    },
    /// Computed of these, row by row.
    Called {
        parts: Vec<&'b BoundExpr>,
        scope: Scope<'b>,
    },
    /// Of the side of an outer join that may be missing, or a group's.
    Nullable(Rc<Column<'b>>),
    /// Of a query that is planned apart, once, if anybody uses it.
    Apart(Rc<Column<'b>>, Cell<bool>),
}

type Row<'b> = Rc<[Rc<Column<'b>>]>;

/// The rows that an expression reads: the nearest, then those further out.
#[derive(Clone, Default)]
struct Scope<'b>(Option<Rc<Level<'b>>>);

struct Level<'b> {
    row: Row<'b>,
    outer: Scope<'b>,
}

impl<'b> Scope<'b> {
    /// The scope within a row.
    fn within(&self, row: Row<'b>) -> Scope<'b> {
        Scope(Some(Rc::new(Level { row, outer: self.clone() })))
    }

    fn column(&self, depth: u16, index: u16) -> Option<Rc<Column<'b>>> {
        let mut level = self.0.as_ref()?;
        for _ in 0..depth {
            level = level.outer.0.as_ref()?;
        }
        level.row.get(usize::from(index)).cloned()
    }
}

/// What is planned after the query around it.
enum Later<'b> {
    Column(Rc<Column<'b>>),
    Expr(&'b BoundExpr, Scope<'b>),
    /// A query in an expression; whether its columns matter.
    Query(&'b Rel, Scope<'b>, bool),
}

/// A query that has a name.
enum Named<'b> {
    Query(&'b Rel, Scope<'b>),
    Recursive(&'b Rel, &'b Rel, Scope<'b>),
    Done(Row<'b>),
}

struct Planning<'b> {
    named: FxHashMap<u32, Named<'b>>,
    later: Vec<Later<'b>>,
    /// What is known of a routine's variables.
    variable: Known,
    varies: Rc<Column<'b>>,
    nothing: Row<'b>,
}

impl<'b> Planning<'b> {
    fn new(variable: Known) -> Planning<'b> {
        Planning {
            named: FxHashMap::default(),
            later: Vec::new(),
            variable,
            varies: Rc::new(Column::Varies),
            nothing: Rc::from([]),
        }
    }

    /// Plans what has been left for later.
    fn settle(&mut self) -> Found<()> {
        while let Some(next) = self.later.pop() {
            match next {
                Later::Column(column) => {
                    self.read(&column)?;
                }
                Later::Expr(expr, scope) => {
                    self.look_at(expr, &scope)?;
                }
                Later::Query(rel, scope, true) => {
                    let (row, _) = self.relation(rel, &scope)?;
                    self.use_all(&row);
                }
                Later::Query(rel, scope, false) => {
                    let rest = self.asked_whether_any(rel, &scope);
                    self.relation(rest, &scope)?;
                }
            }
        }
        Ok(())
    }

    /// A query of which only matters whether it has rows, without what says nothing of that.
    fn asked_whether_any(&mut self, mut rel: &'b Rel, scope: &Scope<'b>) -> &'b Rel {
        loop {
            match rel {
                Rel::Project { input, .. }
                | Rel::Sort { input, .. }
                | Rel::Distinct { input, .. }
                | Rel::Lock { input } => rel = input,
                Rel::Limit { input, limit, offset, .. } => {
                    self.counts([limit, offset], scope);
                    rel = input;
                }
                rest => return rest,
            }
        }
    }

    fn counts(&mut self, counts: [&'b Option<BoundExpr>; 2], outer: &Scope<'b>) {
        let scope = outer.within(self.nothing.clone());
        self.later.extend(counts.into_iter().flatten().map(|count| Later::Expr(count, scope.clone())));
    }

    fn use_all(&mut self, row: &Row<'b>) {
        let used = row.iter().filter(|column| !matches!(***column, Column::Varies | Column::Perhaps));
        self.later.extend(used.map(|column| Later::Column(column.clone())));
    }

    /// The value of a column for who uses it.
    fn read(&mut self, column: &Rc<Column<'b>>) -> Found<Known> {
        stack::check().map_err(|_| Stop::TooDeep)?;
        Ok(match &**column {
            Column::Varies => Known::Varies,
            Column::Perhaps => Known::Perhaps,
            Column::Made { expr, scope, known } => {
                if let Some(known) = known.get() {
                    return Ok(known.clone());
                }
                let value = self.value(expr, scope)?;
                known.get_or_init(|| value).clone()
            }
            Column::Called { parts, scope } => {
                for part in parts {
                    self.look_at(part, scope)?;
                }
                Known::Varies
            }
            Column::Nullable(inner) => match self.read(inner)? {
                Known::Value(_) => Known::Perhaps,
                known => known,
            },
            Column::Apart(inner, used) => {
                if !used.replace(true) {
                    self.later.push(Later::Column(inner.clone()));
                }
                if surely_varies(inner) { Known::Varies } else { Known::Perhaps }
            }
        })
    }

    fn varying(&self, width: usize) -> Row<'b> {
        (0..width).map(|_| self.varies.clone()).collect()
    }

    /// Columns of a projection or the like.
    fn made(exprs: impl Iterator<Item = &'b BoundExpr>, scope: &Scope<'b>) -> Vec<Rc<Column<'b>>> {
        let made = |expr| Column::Made { expr, scope: scope.clone(), known: OnceCell::new() };
        exprs.map(|expr| Rc::new(made(expr))).collect()
    }

    /// The row of a relation; whether PostgreSQL would pull a query of it up into the one around it, if
    /// nothing else stands above it than a projection.
    fn relation(&mut self, rel: &'b Rel, outer: &Scope<'b>) -> Found<(Row<'b>, bool)> {
        stack::check().map_err(|_| Stop::TooDeep)?;
        Ok(match rel {
            Rel::Unit => (self.nothing.clone(), true),
            Rel::Scan { table, .. } => (self.varying(table.columns.len()), true),
            Rel::Family { .. } => (self.varying(rel.width()), true),
            Rel::Values { rows, types } => (self.values_row(rows, types.len(), outer)?, true),
            Rel::Function { call, .. } => (self.function_row(call, rel.width(), outer)?, true),
            Rel::Explained { statement, .. } => {
                self.statement(statement, outer)?;
                (self.varying(1), false)
            }
            Rel::Filter { input, predicate } => {
                let start = self.later.len();
                let (row, simple) = self.relation(input, outer)?;
                if self.leaves_nothing(predicate, &outer.within(row.clone()))? {
                    self.later.truncate(start);
                }
                (row, simple)
            }
            Rel::Project { input, exprs } => {
                let (row, simple) = self.relation(input, outer)?;
                let columns: Row<'b> = Self::made(exprs.iter(), &outer.within(row)).into();
                match simple && !exprs.iter().any(is_volatile) {
                    true => (columns, true),
                    false => (apart(&columns), false),
                }
            }
            Rel::ProjectSet { input, items } => (self.project_set(input, items, outer)?, false),
            Rel::Join { kind, left, right, on, lateral } => {
                (self.join(*kind, (left, right, *lateral), on.as_ref(), outer)?, true)
            }
            Rel::Aggregate { input, group_by, aggregates, groupings, .. } => {
                (self.aggregation(input, (group_by, aggregates, groupings.len()), outer)?, false)
            }
            Rel::Window { input, calls } => (self.windowing(input, calls, outer)?, false),
            Rel::Sort { input, keys } => {
                let (row, _) = self.relation(input, outer)?;
                self.sorted(keys, &outer.within(row.clone()));
                (apart(&row), false)
            }
            Rel::Distinct { input, on } => (self.distinct(input, on.as_deref(), outer)?, false),
            Rel::Lock { input } => {
                let (row, _) = self.relation(input, outer)?;
                (apart(&row), false)
            }
            Rel::Limit { input, limit, offset, .. } => {
                let (row, _) = self.relation(input, outer)?;
                self.counts([limit, offset], outer);
                (apart(&row), false)
            }
            Rel::SetOp { left, right, .. } => {
                for side in [left, right] {
                    let (row, _) = self.relation(side, outer)?;
                    self.use_all(&row);
                }
                (self.varying(rel.width()), false)
            }
            Rel::With { ctes, body } => {
                self.name_all(ctes, outer)?;
                let (row, _) = self.relation(body, outer)?;
                (apart(&row), false)
            }
            Rel::CteScan { id, types, .. } => (self.named_row(*id, types.len())?, true),
        })
    }

    /// The row of VALUES, `width` columns wide.
    fn values_row(&mut self, rows: &'b [Vec<BoundExpr>], width: usize, outer: &Scope<'b>) -> Found<Row<'b>> {
        let scope = outer.within(self.nothing.clone());
        if let [row] = rows {
            let columns = Self::made(row.iter(), &scope).into_iter();
            return Ok(columns.map(|column| Rc::new(Column::Nullable(column))).collect());
        }
        for expr in rows.iter().flatten() {
            self.look_at(expr, &scope)?;
        }
        Ok(self.varying(width))
    }

    /// The row of a function in FROM, `width` columns wide.
    fn function_row(&mut self, call: &'b SetCall, width: usize, outer: &Scope<'b>) -> Found<Row<'b>> {
        let scope = outer.within(self.nothing.clone());
        for part in parts_of(call) {
            self.look_at(part, &scope)?;
        }
        Ok(match call {
            SetCall::Builtin { .. } => self.varying(width),
            SetCall::Routine { .. } | SetCall::Scalar(_) => {
                (0..width).map(|_| Rc::new(Column::Perhaps)).collect()
            }
        })
    }

    /// The row of a projection with set-returning functions.
    fn project_set(&mut self, input: &'b Rel, items: &'b [SetItem], outer: &Scope<'b>) -> Found<Row<'b>> {
        let (row, _) = self.relation(input, outer)?;
        let scope = outer.within(row);
        let column = |item: &'b SetItem| match item {
            SetItem::Scalar(expr) => Column::Made { expr, scope: scope.clone(), known: OnceCell::new() },
            SetItem::Set { call, .. } => Column::Called { parts: parts_of(call), scope: scope.clone() },
        };
        let columns: Row<'b> = items.iter().map(|item| Rc::new(column(item))).collect();
        Ok(apart(&columns))
    }

    /// The row of an aggregation: groups, aggregates, and the answers of so many GROUPING calls.
    fn aggregation(
        &mut self,
        input: &'b Rel,
        (group_by, aggregates, groupings): (&'b [BoundExpr], &'b [AggregateCall], usize),
        outer: &Scope<'b>,
    ) -> Found<Row<'b>> {
        let (row, _) = self.relation(input, outer)?;
        let scope = outer.within(row);
        self.later.extend(group_by.iter().map(|expr| Later::Expr(expr, scope.clone())));
        let groups = Self::made(group_by.iter(), &scope).into_iter();
        let mut columns: Vec<Rc<Column<'b>>> =
            groups.map(|column| Rc::new(Column::Nullable(column))).collect();
        columns.extend(aggregates.iter().map(|call| {
            let mut parts: Vec<&'b BoundExpr> = call.args.iter().chain(&call.filter).collect();
            parts.extend(call.order_by.iter().map(|key| &key.expr));
            Rc::new(Column::Called { parts, scope: scope.clone() })
        }));
        columns.extend((0..groupings).map(|_| self.varies.clone()));
        Ok(columns.into())
    }

    /// The row of window functions: that of what they are over, then their results.
    fn windowing(&mut self, input: &'b Rel, calls: &'b [WindowCall], outer: &Scope<'b>) -> Found<Row<'b>> {
        let (row, _) = self.relation(input, outer)?;
        let scope = outer.within(row.clone());
        let mut columns = row.to_vec();
        for call in calls {
            self.window(call, &scope);
            let parts = call.args.iter().chain(&call.filter).collect();
            columns.push(Rc::new(Column::Called { parts, scope: scope.clone() }));
        }
        Ok(columns.into())
    }

    /// The row of DISTINCT, or of DISTINCT ON.
    fn distinct(&mut self, input: &'b Rel, on: Option<&'b [BoundExpr]>, outer: &Scope<'b>) -> Found<Row<'b>> {
        let (row, _) = self.relation(input, outer)?;
        match on {
            Some(on) => {
                let scope = outer.within(row.clone());
                self.later.extend(on.iter().map(|expr| Later::Expr(expr, scope.clone())));
            }
            None => self.use_all(&row),
        }
        Ok(apart(&row))
    }

    /// Whether a condition, which is computed, is known to hold of no row, or may be.
    fn leaves_nothing(&mut self, condition: &'b BoundExpr, scope: &Scope<'b>) -> Found<bool> {
        let known = self.value(condition, scope)?;
        Ok(!matches!(known, Known::Varies | Known::Value(Datum::Bool(true))))
    }

    fn join(
        &mut self,
        kind: JoinKind,
        (left, right, lateral): (&'b Rel, &'b Rel, bool),
        on: Option<&'b BoundExpr>,
        outer: &Scope<'b>,
    ) -> Found<Row<'b>> {
        let start = self.later.len();
        let (left_row, _) = self.relation(left, outer)?;
        let middle = self.later.len();
        let beside = if lateral { outer.within(left_row.clone()) } else { outer.clone() };
        let (right_row, _) = self.relation(right, &beside)?;
        let end = self.later.len();
        let nothing = match on {
            Some(on) => {
                let both = left_row.iter().chain(right_row.iter()).cloned().collect();
                self.leaves_nothing(on, &outer.within(both))?
            }
            None => false,
        };
        // Of an outer join nobody needs the side that may be missing if nothing of it is used.
        match kind {
            JoinKind::Inner | JoinKind::Full if nothing => drop(self.later.drain(start..end)),
            JoinKind::Inner | JoinKind::Full => {}
            JoinKind::Left => drop(self.later.drain(middle..end)),
            JoinKind::Right => drop(self.later.drain(start..middle)),
        }
        let side = |row: &Row<'b>, nullable: bool| -> Vec<Rc<Column<'b>>> {
            row.iter()
                .map(|column| match nullable && !matches!(**column, Column::Varies | Column::Perhaps) {
                    true => Rc::new(Column::Nullable(column.clone())),
                    false => column.clone(),
                })
                .collect()
        };
        let mut row = side(&left_row, matches!(kind, JoinKind::Right | JoinKind::Full));
        row.extend(side(&right_row, matches!(kind, JoinKind::Left | JoinKind::Full)));
        Ok(row.into())
    }

    fn sorted(&mut self, keys: &'b [SortKey], scope: &Scope<'b>) {
        self.later.extend(keys.iter().map(|key| Later::Expr(&key.expr, scope.clone())));
    }

    fn window(&mut self, call: &'b WindowCall, scope: &Scope<'b>) {
        self.later.extend(call.partition_by.iter().map(|expr| Later::Expr(expr, scope.clone())));
        self.sorted(&call.order_by, scope);
        for bound in [&call.frame.start, &call.frame.end] {
            if let FrameBound::Preceding(expr) | FrameBound::Following(expr) = bound {
                self.later.push(Later::Expr(expr, scope.clone()));
            }
        }
    }

    /// Takes in the queries of a WITH clause: those that write are planned whether anybody reads them
    /// or not.
    fn name_all(&mut self, ctes: &'b [Cte], outer: &Scope<'b>) -> Found<()> {
        for cte in ctes {
            let named = match &cte.body {
                CteBody::Query(rel) => Named::Query(rel, outer.clone()),
                CteBody::Recursive { initial, recursive, .. } => {
                    Named::Recursive(initial, recursive, outer.clone())
                }
                CteBody::Modify(statement) => {
                    self.statement(statement, outer)?;
                    continue;
                }
            };
            self.named.insert(cte.id, named);
        }
        Ok(())
    }

    /// The row of a query that has a name. PostgreSQL puts one that is read once, and writes nothing, in
    /// the place where it is read.
    fn named_row(&mut self, id: u32, width: usize) -> Found<Row<'b>> {
        let varying = self.varying(width);
        // It may read itself.
        let row = match self.named.insert(id, Named::Done(varying.clone())) {
            None => varying,
            Some(Named::Done(row)) => row,
            Some(Named::Query(rel, scope)) => {
                let (row, _) = self.relation(rel, &scope)?;
                if calls_volatile(rel) {
                    self.use_all(&row);
                }
                apart(&row)
            }
            Some(Named::Recursive(initial, recursive, scope)) => {
                for part in [initial, recursive] {
                    let (row, _) = self.relation(part, &scope)?;
                    self.use_all(&row);
                }
                varying
            }
        };
        self.named.insert(id, Named::Done(row.clone()));
        Ok(row)
    }

    fn statement(&mut self, statement: &'b BoundStatement, outer: &Scope<'b>) -> Found<()> {
        match statement {
            BoundStatement::Query(query) => {
                let (row, _) = self.relation(&query.rel, outer)?;
                self.use_all(&row);
                Ok(())
            }
            BoundStatement::Insert(insert) => self.insert(insert, outer),
            BoundStatement::Update(update) => self.update(update, outer),
            BoundStatement::Delete(delete) => self.delete(delete, outer),
            BoundStatement::Merge(merge) => {
                self.name_all(std::slice::from_ref(&merge.source), outer)?;
                merge.actions.iter().try_for_each(|action| self.statement(action, outer))
            }
            BoundStatement::With { ctes, statement } => {
                self.name_all(ctes, outer)?;
                self.statement(statement, outer)
            }
            BoundStatement::Call(_) => Ok(()),
        }
    }

    fn insert(&mut self, insert: &'b BoundInsert, outer: &Scope<'b>) -> Found<()> {
        let (row, _) = self.relation(&insert.source, outer)?;
        self.use_all(&row);
        let width = insert.table.columns.len();
        let views = insert.checks.iter().filter(|check| check.kind != CheckKind::Constraint);
        let new = outer.within(self.varying(width));
        for check in views {
            self.look_at(&check.expr, &new)?;
        }
        if let Some((set, filter)) = insert.on_conflict.as_ref().and_then(|found| found.update.as_ref()) {
            // What it meets, and beside it what was to be put in.
            let both = outer.within(self.varying(2 * width));
            for expr in set.iter().map(|(_, expr)| expr).chain(filter) {
                self.look_at(expr, &both)?;
            }
        }
        self.returned(insert.returning.as_ref(), &new)
    }

    fn update(&mut self, update: &'b BoundUpdate, outer: &Scope<'b>) -> Found<()> {
        let is_table = matches!(update.table.kind, TableKind::Table);
        let width = match (&update.family, &update.numbered) {
            _ if !is_table => None,
            (Some(family), None) => Some(family.root.columns.len() + 1),
            (None, numbered) => Some(numbered.as_ref().unwrap_or(&update.table).columns.len()),
            (Some(_), Some(_)) => None,
        };
        let scope = self.changed(width, update.from.as_ref(), update.filter.as_ref(), outer)?;
        let views = update.checks.iter().filter(|check| check.kind != CheckKind::Constraint);
        let views = views.map(|check| &check.expr);
        for expr in update.set.iter().map(|(_, expr)| expr).chain(views) {
            self.look_at(expr, &scope)?;
        }
        self.returned(update.returning.as_ref(), &scope)
    }

    fn delete(&mut self, delete: &'b BoundDelete, outer: &Scope<'b>) -> Found<()> {
        let is_table = matches!(delete.table.kind, TableKind::Table);
        let width = match (&delete.family, &delete.numbered) {
            _ if !is_table => None,
            (Some(family), None) => Some(family.root.columns.len() + 1),
            (None, numbered) => Some(numbered.as_ref().unwrap_or(&delete.table).columns.len()),
            (Some(_), Some(_)) => None,
        };
        let scope = self.changed(width, delete.using.as_ref(), delete.filter.as_ref(), outer)?;
        self.returned(delete.returning.as_ref(), &scope)
    }

    /// The rows of a change: those of its table, so wide, and beside them those of FROM. Where the width
    /// is not known, nothing is known of their columns.
    fn changed(
        &mut self,
        width: Option<usize>,
        from: Option<&'b Rel>,
        filter: Option<&'b BoundExpr>,
        outer: &Scope<'b>,
    ) -> Found<Scope<'b>> {
        let start = self.later.len();
        let beside = match from {
            Some(from) => self.relation(from, outer)?.0,
            None => self.nothing.clone(),
        };
        let row = match width {
            Some(width) => self.varying(width).iter().chain(beside.iter()).cloned().collect(),
            None => self.nothing.clone(),
        };
        let scope = outer.within(row);
        if let Some(filter) = filter
            && self.leaves_nothing(filter, &scope)?
        {
            self.later.truncate(start);
        }
        Ok(scope)
    }

    fn returned(&mut self, returning: Option<&'b Returning>, scope: &Scope<'b>) -> Found<()> {
        for expr in returning.into_iter().flat_map(|returning| &returning.exprs) {
            self.look_at(expr, scope)?;
        }
        Ok(())
    }
}

/// The same columns of a query that is planned apart.
fn apart<'b>(row: &Row<'b>) -> Row<'b> {
    row.iter()
        .map(|column| match &**column {
            Column::Varies | Column::Perhaps | Column::Apart(..) => column.clone(),
            _ => Rc::new(Column::Apart(column.clone(), Cell::new(false))),
        })
        .collect()
}

/// Whether no plan knows a column's value, as far as that can be told without computing it.
fn surely_varies(column: &Column<'_>) -> bool {
    match column {
        Column::Varies | Column::Called { .. } => true,
        Column::Perhaps => false,
        Column::Made { expr, scope, .. } => match expr.kind {
            ExprKind::Column { depth, index } => {
                scope.column(depth, index).is_some_and(|inner| surely_varies(&inner))
            }
            _ => false,
        },
        Column::Nullable(inner) | Column::Apart(inner, _) => surely_varies(inner),
    }
}

/// What the call of a set is made of.
fn parts_of(call: &SetCall) -> Vec<&BoundExpr> {
    match call {
        SetCall::Builtin { args, .. } | SetCall::Routine { args, .. } => args.iter().collect(),
        SetCall::Scalar(expr) => vec![expr],
    }
}
